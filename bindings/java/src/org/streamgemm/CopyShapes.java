// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/** The shapes of a copy, which the library knows in bytes alone. */
final class CopyShapes implements LayerCall.Kept {
  private final Matrix to;
  private final Matrix from;

  CopyShapes(Matrix to, Matrix from) {
    this.to = withoutMemory(to);
    this.from = withoutMemory(from);
  }

  @Override
  public void requireLike(LayerCall.Kept planned) {
    requireLike("to", to, ((CopyShapes) planned).to);
    requireLike("from", from, ((CopyShapes) planned).from);
  }

  private static Matrix withoutMemory(Matrix m) {
    return Matrix.ofAddress(0, null, m.dtype, m.rows, m.cols, m.ld, m.layout);
  }

  private static void requireLike(String name, Matrix now, Matrix planned) {
    if (now.dtype != planned.dtype || now.layout != planned.layout || now.rows != planned.rows || now.cols != planned.cols
        || (now.outer() > 1 && now.ld != planned.ld))
      throw new StreamGemmException.InvalidArgument(name + " is " + now + "; " + planned + " was planned or recorded");
  }
}
