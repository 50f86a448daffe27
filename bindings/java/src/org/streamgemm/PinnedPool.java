// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.streamgemm.internal.Native;

/**
 * A context's pinned memory, kept for reuse because pinning is slow: the program's allocations and the staging
 * memory of arrays. Safe for use by several threads.
 */
final class PinnedPool {
  private static final long SMALLEST = 4096;
  private static final long LARGE = 64L << 20;
  private static final long GRAIN = 2L << 20;
  /** Unused bytes that are kept: at most the maximum heap size. */
  private static final long KEPT = Runtime.getRuntime().maxMemory();

  /** A piece of pinned memory; of one on a device's NUMA node nothing is kept. */
  static final class Block {
    final long address;
    final long bytes;
    final boolean isPlaced;

    Block(long address, long bytes, boolean isPlaced) {
      this.address = address;
      this.bytes = bytes;
      this.isPlaced = isPlaced;
    }
  }

  private final long context;
  private final Map<Long, ArrayDeque<Block>> free = new HashMap<>();
  private long kept;
  private int taken;
  private boolean closed;

  /** A pool of a context, which it keeps until it is closed and all blocks are returned. */
  PinnedPool(long context) {
    this.context = context;
    Native.sg_context_retain(context);
  }

  Block take(long bytes) {
    long size = sizeFor(bytes);
    synchronized (this) {
      if (closed) throw new StreamGemmException.InvalidHandle("this Context is closed");
      ++taken;
      ArrayDeque<Block> ready = free.get(size);
      if (ready != null && !ready.isEmpty()) {
        kept -= size;
        return ready.pop();
      }
    }
    return made(() -> new Block(Pinned.allocate(context, size), size, false));
  }

  /** On the NUMA node of a device. */
  Block takeNear(int device, long bytes) {
    synchronized (this) {
      if (closed) throw new StreamGemmException.InvalidHandle("this Context is closed");
      ++taken;
    }
    return made(() -> new Block(Pinned.allocate(context, device, bytes), bytes, true));
  }

  private Block made(Supplier<Block> allocation) {
    try {
      return allocation.get();
    } catch (Throwable t) {
      synchronized (this) {
        --taken;
        releaseIfDone();
      }
      throw t;
    }
  }

  void give(Block block) {
    synchronized (this) {
      if (!closed && !block.isPlaced && kept + block.bytes <= KEPT) {
        --taken;
        kept += block.bytes;
        free.computeIfAbsent(block.bytes, size -> new ArrayDeque<>()).push(block);
        return;
      }
    }
    Native.sg_host_free(context, block.address);
    synchronized (this) {
      --taken;
      releaseIfDone();
    }
  }

  /** Frees unused blocks. */
  synchronized void trim() {
    for (ArrayDeque<Block> blocks : free.values())
      for (Block block : blocks) Native.sg_host_free(context, block.address);
    free.clear();
    kept = 0;
  }

  /** No more blocks are acquired. */
  synchronized void close() {
    if (closed) return;
    closed = true;
    trim();
    releaseIfDone();
  }

  private void releaseIfDone() {
    if (closed && taken == 0) Native.sg_context_release(context);
  }

  /** Powers of two, and halves between them, so that at most a third is lost; less of large sizes. */
  private static long sizeFor(long bytes) {
    if (bytes > Long.MAX_VALUE - GRAIN) return bytes; // for the library to refuse
    if (bytes >= LARGE) return (bytes + GRAIN - 1) / GRAIN * GRAIN;
    long power = Math.max(SMALLEST, Long.highestOneBit(Math.max(1, bytes - 1)) << 1);
    long between = power / 4 * 3;
    return bytes <= between && between >= SMALLEST ? between : power;
  }
}
