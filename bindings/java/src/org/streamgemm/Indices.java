// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.streamgemm.internal.Native;

/** Numbers of rows of a table: {@link Layers#gatherAsync}. They are read when the job runs. */
public final class Indices {
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
    LayerCall.requireContiguous("memory", memory, memory.rows, memory.cols, DType.I32);
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

  /**
   * The memory of the indices.
   *
   * @return its elements of I32, which a copy may take to the device
   */
  public Matrix memory() {
    return memory;
  }

  /** Rows of a table by these numbers. */
  LayerCall<Matrix> gather(Matrix table, Matrix y, GatherFlag... flags) {
    if (y.rows != count())
      throw new StreamGemmException.InvalidArgument("y is " + y + "; " + count() + " indices are given");
    int bits = 0;
    for (GatherFlag each : flags) bits |= each.value;
    int given = bits;
    return new LayerCall<>(y).reads("table", table).reads("indices", memory).writes("y", y)
        .calls((on, graph, at, stream, after, count, priority, submitFlags, queue, tag, options, deadline, label)
            -> Native.sg_flat_gather_async(on, graph, at[0], table.rows, table.cols, table.ld, table.dtype.value,
                table.layout.value, at[2], y.rows, y.cols, y.ld, y.dtype.value, y.layout.value, at[1], type.value, given,
                stream, after, count, priority, submitFlags, queue, tag, options, deadline, label));
  }
}
