// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/** Checks of operands that the library cannot make: of memory of which it has the address alone. */
final class Shapes {
  private Shapes() {}

  static long gates(Cell cell) {
    return cell == Cell.LSTM ? 4 : 3;
  }

  /** The type of what a layer keeps for its gradients. */
  static DType wide(DType type) {
    return type == DType.F64 ? DType.F64 : DType.F32;
  }

  static void requireMultiple(long size, long by, String which, String of) {
    if (by < 1 || size % by != 0) throw invalid(which.replace("#", Long.toString(by)) + " the " + size + " of " + of);
  }

  static void requireFor(String needing, boolean given, String name, boolean isThere) {
    if (given && !isThere) throw invalid(name + " is null; " + needing + " needs it");
  }

  /** Throws unless an operand, which may be null, has this shape, and its values follow each other row by row. */
  static void requireContiguous(Matrix m, long rows, long cols, DType type, String name) {
    if (m == null) return;
    boolean byRows = m.layout == Layout.ROW_MAJOR || rows == 1 || cols == 1;
    if (m.rows != rows || m.cols != cols || !byRows || m.span(1, 0) != rows * cols || (type != null && m.dtype != type))
      throw invalid(name + " is " + m + "; it must be " + rows + " x " + cols + " contiguous values"
          + (type == null ? "" : " of " + type) + (rows == 1 ? "" : ", row by row"));
  }

  /** A row for each sequence. Rows of all such matrices are equally far apart, which is the result. */
  static long requireRows(Matrix m, long rows, long cols, DType type, String name, long stride) {
    if (m.dtype != type || m.rows != rows || m.cols != cols || m.layout != Layout.ROW_MAJOR)
      throw invalid(name + " is " + m + "; it must be " + rows + " x " + cols + " by rows, of " + type);
    if (stride != 0 && stride != m.ld)
      throw invalid(name + " is " + m + "; the leading dimension of another state is " + stride);
    return m.ld;
  }

  static void checkElementwise(Function function, Matrix a, Matrix b, Matrix c) {
    boolean two = function.value >= Function.ADD.value;
    if (two != (b != null)) throw invalid("b is " + b + "; " + function + " has " + (two ? "two operands" : "one operand"));
  }

  private static StreamGemmException.InvalidArgument invalid(String message) {
    return new StreamGemmException.InvalidArgument(message);
  }
}
