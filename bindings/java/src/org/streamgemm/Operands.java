// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.streamgemm.internal.Native;

/**
 * Prepares the operands of one submission: arrays are copied into pinned memory before and the result back after it,
 * device memory is held while the submission is made.
 */
final class Operands {
  /** Elements that one thread copies at a time. */
  private static final int PIECE = 1 << 20;

  /** An array's copy. */
  private static final class Staged {
    final Matrix matrix;
    final long batch;
    final long stride;
    final long end;
    final PinnedPool.Block block;
    final boolean written;

    Staged(Matrix matrix, long batch, long stride, long end, PinnedPool.Block block, boolean written) {
      this.matrix = matrix;
      this.batch = batch;
      this.stride = stride;
      this.end = end;
      this.block = block;
      this.written = written;
    }
  }

  private final PinnedPool pool;
  private final PendingResults pending;
  /** The submission's operands; kept with this. */
  private final Object given;
  private final List<Staged> staged = new ArrayList<>(3);
  private final List<Long> held = new ArrayList<>(3);

  Operands(PinnedPool pool, PendingResults pending, Object given) {
    this.pool = pool;
    this.pending = pending;
    this.given = given;
  }

  long reads(Matrix m, long batch, long stride, String name) {
    return address(m, batch, stride, true, false, name);
  }

  long writes(Matrix m, long batch, long stride, boolean readToo, String name) {
    return address(m, batch, stride, readToo, true, name);
  }

  private long address(Matrix m, long batch, long stride, boolean read, boolean written, String name) {
    DeviceBuffer device = m.device();
    if (device != null) held.add(device.retain());
    if (m.array == null) return m.address;
    long elements = m.span(batch, stride);
    long end = m.arrayOffset + elements;
    refuseOverlap(m, end, written, name);
    pending.refuse(m.array, m.arrayOffset, end, name);
    PinnedPool.Block block = pool.take(elements * sizeOf(m));
    if (written) pending.add(m.array, m.arrayOffset, end);
    staged.add(new Staged(m, batch, stride, end, block, written));
    if (read) copy(m.array, m.arrayOffset, block.address, elements, true);
    return block.address;
  }

  /** The library's rule for memory: a written operand overlaps no other operand. */
  private void refuseOverlap(Matrix m, long end, boolean written, String name) {
    for (Staged other : staged)
      if (other.matrix.array == m.array && (written || other.written) && m.arrayOffset < other.end
          && other.matrix.arrayOffset < end)
        throw new StreamGemmException.InvalidArgument(name + " overlaps another operand in its array");
  }

  /**
   * The library has the submission and now holds the device memory itself. The job may complete before its submission
   * returns, so two threads may call this at once.
   */
  synchronized void submitted() {
    for (long buffer : held) Native.sg_buffer_release(buffer);
    held.clear();
  }

  /** The job has completed, or was not submitted. */
  void end(boolean well) {
    submitted();
    try {
      if (well)
        for (Staged s : staged)
          if (s.written) copyBack(s);
    } finally {
      for (Staged s : staged) {
        if (s.written) pending.remove(s.matrix.array, s.matrix.arrayOffset, s.end);
        pool.give(s.block);
      }
      staged.clear();
    }
  }

  /** The elements of the matrix alone: gaps between its rows are not touched. */
  private static void copyBack(Staged s) {
    Matrix m = s.matrix;
    if (m.rows == 0 || m.cols == 0) return;
    boolean whole = m.ld == m.inner() && (s.batch == 1 || s.stride == m.inner() * m.outer());
    long items = whole ? 1 : s.batch;
    long runs = whole ? 1 : m.outer();
    long length = whole ? m.span(s.batch, s.stride) : m.inner();
    for (long item = 0; item < items; ++item)
      for (long run = 0; run < runs; ++run) {
        long at = item * s.stride + run * m.ld;
        copy(m.array, (int) (m.arrayOffset + at), s.block.address + at * sizeOf(m), length, false);
      }
  }

  private static int sizeOf(Matrix m) {
    return m.array instanceof float[] ? Float.BYTES : Double.BYTES;
  }

  /**
   * Copies between an array and memory; several threads copy large arrays, as one alone does not use the full memory
   * bandwidth.
   */
  private static void copy(Object array, int offset, long address, long elements, boolean in) {
    int chunks = (int) ((elements + PIECE - 1) / PIECE);
    IntStream all = IntStream.range(0, chunks);
    (chunks > 1 ? all.parallel() : all).forEach(piece -> {
      long from = (long) piece * PIECE;
      copyPiece(array, (int) (offset + from), address, from, (int) Math.min(PIECE, elements - from), in);
    });
  }

  private static void copyPiece(Object array, int at, long address, long from, int count, boolean in) {
    int size = array instanceof float[] ? Float.BYTES : Double.BYTES;
    ByteBuffer window = Native.window(address + from * size, (long) count * size).order(ByteOrder.nativeOrder());
    if (array instanceof float[]) {
      if (in) window.asFloatBuffer().put((float[]) array, at, count);
      else window.asFloatBuffer().get((float[]) array, at, count);
    } else {
      if (in) window.asDoubleBuffer().put((double[]) array, at, count);
      else window.asDoubleBuffer().get((double[]) array, at, count);
    }
  }
}
