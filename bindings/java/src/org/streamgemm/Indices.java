// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Numbers of rows of a table: {@link Layers#gatherAsync}. They are read when the job runs. */
public final class Indices {
  /** The memory of the indices: elements of I32, which a copy may take to the device. [get] */
  final Matrix memory;
  final IndexType type;

  private Indices(Matrix memory, IndexType type) {
    this.memory = memory;
    this.type = type;
  }

  /**
   * A copy of these numbers in a direct buffer.
   *
   * @param indices of 32 bits
   * @return the indices
   */
  public static Indices of(int... indices) {
    ByteBuffer copy = ByteBuffer.allocateDirect(Integer.BYTES * indices.length).order(ByteOrder.nativeOrder());
    copy.asIntBuffer().put(indices);
    return of(Matrix.of(copy, DType.I32, 1, indices.length), IndexType.I32);
  }

  /**
   * A copy of these numbers in a direct buffer.
   *
   * @param indices of 64 bits
   * @return the indices
   */
  public static Indices of(long... indices) {
    ByteBuffer copy = ByteBuffer.allocateDirect(Long.BYTES * indices.length).order(ByteOrder.nativeOrder());
    copy.asLongBuffer().put(indices);
    return of(Matrix.of(copy, DType.I32, 1, 2L * indices.length), IndexType.I64);
  }

  /**
   * Numbers in memory of any kind.
   *
   * @param memory contiguous elements of I32: one for an index of 32 bits, two for one of 64 bits
   * @param type of the indices
   * @return the indices
   */
  public static Indices of(Matrix memory, IndexType type) {
    Shapes.requireContiguous(memory, memory.rows, memory.cols, DType.I32, "memory");
    if (type == IndexType.I64 && memory.rows * memory.cols % 2 != 0)
      throw new StreamGemmException.InvalidArgument("memory is " + memory + "; an index of 64 bits has two elements");
    return new Indices(memory, type);
  }

  /**
   * Number of indices.
   *
   * @return the number
   */
  public long count() {
    return memory.rows * memory.cols / (type == IndexType.I64 ? 2 : 1);
  }

  void require(String name, long count, String of) {
    if (count() != count) throw new StreamGemmException.InvalidArgument(count() + " indices are given; " + of + " is " + count);
  }
}
