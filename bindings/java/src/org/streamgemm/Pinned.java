// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.lang.ref.Reference;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.streamgemm.internal.Native;

/** Pinned host memory, and the wait for the garbage collector when memory runs out. */
final class Pinned {
  private static final AtomicLong inUse = new AtomicLong();

  private Pinned() {}

  /** Memory that Native.sg_host_free frees. */
  static long allocate(long context, long bytes) {
    return patiently(() -> Native.sg_host_alloc(context, bytes));
  }

  /** The same on the NUMA node of a device. */
  static long allocate(long context, int device, long bytes) {
    return patiently(() -> Native.sg_host_alloc_near(context, device, bytes));
  }

  /** Memory that returns to its pool once its owner is garbage. */
  static void giveBackWith(Object owner, PinnedPool pool, PinnedPool.Block block) {
    // The collector does not see this memory: as with Java's own direct buffers, it is run once as much is in use as the
    // maximum heap size.
    if (inUse.addAndGet(block.bytes) > Runtime.getRuntime().maxMemory()) System.gc();
    NativeObject.CLEANER.register(owner, () -> {
      inUse.addAndGet(-block.bytes);
      pool.give(block);
    });
    Reference.reachabilityFence(owner);
  }

  /** An allocation; when there is no memory, garbage is collected first. */
  static long patiently(LongSupplier allocation) {
    for (long pause = 1;; pause *= 4) {
      try {
        return allocation.getAsLong();
      } catch (StreamGemmException.OutOfMemory e) {
        if (pause > 64) throw e;
        System.gc();
        try {
          Thread.sleep(pause);
        } catch (InterruptedException interrupted) {
          Thread.currentThread().interrupt();
          throw e;
        }
      }
    }
  }
}
