// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/** A view of an operand in the memory of a matrix. */
abstract class View {
  final Matrix memory;

  View(Matrix memory) {
    this.memory = memory;
  }

  /**
   * The memory of the elements.
   *
   * @return the matrix that this was made of
   */
  public Matrix memory() {
    return memory;
  }

  DType dtype() {
    return memory.dtype;
  }

  /** Whether elements of the memory may not belong to it. */
  abstract boolean isPart();
}
