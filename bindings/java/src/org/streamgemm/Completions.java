// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.streamgemm.internal.Native;

/**
 * The jobs of a context in flight, by the tags that their completions carry, and the daemon thread that blocks on the
 * context's completion queue and completes each job. The map keeps every job, and so its operands, reachable until
 * then. The thread exits when the context has been closed and nothing is in flight.
 */
final class Completions implements Runnable {
  private static final int BATCH = 128;

  private final long queue;
  private final ConcurrentHashMap<Long, Job<?>> inFlight = new ConcurrentHashMap<>();
  private final AtomicLong tags = new AtomicLong();
  private final Thread thread;
  private volatile boolean closed;
  /** Whether the queue may still be closed: after a close its thread may release it at any time. Guarded by this. */
  private boolean open = true;

  Completions(long context, String name) {
    queue = Native.sg_call_queue_create(context);
    thread = new Thread(null, this, "streamgemm-completions-" + name, 256 << 10);
    thread.setDaemon(true);
    thread.start();
  }

  /** The queue's handle; the thread holds the reference. */
  long queue() {
    return queue;
  }

  /** Keeps a job until its completion is delivered, or it is removed. Returns its tag. */
  long admit(Job<?> job) {
    Long tag = tags.incrementAndGet();
    inFlight.put(tag, job);
    if (closed) { // read after the job can be seen: either this sees the close, or the close sees the job
      forget(tag);
      throw new StreamGemmException.InvalidHandle("this Context is closed");
    }
    return tag;
  }

  /** For a job that was not submitted after all. */
  void forget(long tag) {
    inFlight.remove(tag);
    closeIfIdle();
  }

  /** No more jobs come. */
  void close() {
    closed = true;
    closeIfIdle();
  }

  /** Whether the calling thread is the one that delivers completions, which must not wait for a job. */
  boolean onThread() {
    return Thread.currentThread() == thread;
  }

  /** Jobs whose completion has not been delivered. */
  int count() {
    return inFlight.size();
  }

  /**
   * Several threads may find that no job is left; one of them closes the queue, which wakes the thread.
   */
  private synchronized boolean closeIfIdle() {
    if (!closed || !inFlight.isEmpty()) return false;
    if (open) Native.sg_queue_close(queue);
    open = false;
    return true;
  }

  @Override
  public void run() {
    int size = Structs.sg_completion.SIZE;
    ByteBuffer memory = ByteBuffer.allocateDirect(BATCH * size).order(ByteOrder.nativeOrder());
    long address = Native.address(memory);
    try {
      for (;;) {
        int count = (int) Native.sg_call_next_batch(queue, address, BATCH, -1);
        for (int i = 0; i < count; ++i) {
          int at = i * size;
          Job<?> job = inFlight.remove(memory.getLong(at + Structs.sg_completion.tag));
          try {
            int status = memory.getInt(at + Structs.sg_completion.status);
            String message =
                status == 0 ? "" : new String(Native.text(address + at + Structs.sg_completion.message), StandardCharsets.UTF_8);
            job.ended(Status.of(status), message);
          } catch (Throwable t) { // perhaps no memory; the other jobs must not wait for ever
            job.completeExceptionally(t);
          }
        }
        if (closeIfIdle()) return;
      }
    } catch (CancellationException closedAndEmpty) {
      // The queue was closed by closeIfIdle.
    } finally {
      Native.sg_queue_release(queue);
    }
  }
}
