// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.streamgemm.internal.Native;

/**
 * A submission, as a future of its result. The context's executor completes it, so dependent stages run there too.
 *
 * <p>Operands stay in memory until the job has completed, whatever the program drops. Until then A and B must not change,
 * and C must not be accessed: until the future is done, unless it was completed early ({@link #cancel}, {@code
 * orTimeout}, {@code complete}), which cancels the job; then until {@link #released()} is done.
 *
 * <p>Jobs that read what a failed job was to write fail, too, until the program has asked for the outcome of the failed one:
 * by {@code get}, {@code join}, {@code getNow}, {@code isCompletedExceptionally} or {@code isCancelled}, by a stage that depends
 * on it, or by completing it early. {@code CompletableFuture.allOf} and {@code anyOf} do not ask.
 *
 * @param <T> type of the result
 */
public final class Job<T> extends Stage<T> {
  /**
   * Completes the futures of contexts without an executor of their own: daemon threads, more of them while some wait for
   * futures.
   */
  static final Executor SHARED = new ForkJoinPool(Math.max(2, Runtime.getRuntime().availableProcessors()),
      ForkJoinPool.defaultForkJoinWorkerThreadFactory, null, true);

  private static final int MESSAGE_SIZE = 4096;

  private final Completions home;
  private final Executor executor;
  private final T result;
  private final boolean wantsStatistics;
  /** The label that it was submitted with, as the library stores it; "" without one. [get] */
  private final String label;
  /** The operands; dropped when the job has completed. */
  private Object operands;

  // Guarded by this.
  private long handle;
  /** The handle of a job that failed, or completed while a trace was recorded, as long as this object lives. */
  private long kept;
  /** The program asks for the outcome, or gets it: it observes a failure. */
  private boolean asked;
  private boolean ended;
  private boolean settled;
  private CompletableFuture<Void> released;

  private volatile Status status;
  /** Of a failed job, whose whole text it has once the program has asked. */
  private RuntimeException failure;
  private volatile JobStatistics statistics;

  Job(Completions home, Executor executor, T result, Object operands, Submit submit) {
    super(executor, null);
    this.home = home;
    this.executor = executor;
    this.result = result;
    this.operands = operands;
    this.wantsStatistics = submit.wantsStatistics();
    this.label = submit.labelText();
  }

  /**
   * Cancels the job, and completes this future as cancelled. Queued commands are dropped; a running command completes
   * first, so C may still be written until {@link #released()} is done. Any other way to complete
   * this future early ({@code orTimeout}, {@code completeOnTimeout}, {@code completeExceptionally}, {@code complete})
   * does the same, and so does the early completion of the last stage made from this future, unless a thread waits for
   * it.
   *
   * @param mayInterruptIfRunning makes no difference
   * @return true if this future is now cancelled
   */
  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    return super.cancel(mayInterruptIfRunning);
  }

  @Override
  void drop() {
    synchronized (this) {
      if (handle == 0) return;
      try {
        Native.sg_job_cancel(handle);
      } catch (StreamGemmException.Busy late) {
        // Its completion will follow.
      }
    }
  }

  /**
   * Done when the job has completed, successfully or not, and no longer uses the operands. Never fails.
   *
   * @return a future without a result
   */
  public synchronized CompletableFuture<Void> released() {
    if (released == null) {
      released = new Stage<>(executor, null) {
        @Override
        public <V> CompletableFuture<V> newIncompleteFuture() { // completing it early affects no other future
          return new Stage<>(executor, null);
        }
      };
      if (settled) released.complete(null);
    }
    return released.copy();
  }

  /**
   * The fraction of its commands that have completed.
   *
   * @return 1 exactly if it has succeeded; 0 before it starts, and after it has failed
   */
  public double progress() {
    synchronized (this) {
      if (handle != 0) return Double.longBitsToDouble(Native.sg_job_progress(handle));
    }
    return status == Status.OK ? 1 : 0;
  }

  /**
   * The statistics of the completed job.
   *
   * @return empty unless {@link Submit#statistics()} requested them and the job has completed
   */
  public Optional<JobStatistics> statistics() {
    return Optional.ofNullable(statistics);
  }

  /** The library accepted the job; this object owns the handle until the completion is delivered. */
  void submitted(long taken) {
    synchronized (this) {
      if (!ended) {
        handle = taken;
        notifyAll();
        return;
      }
    }
    Native.sg_job_release(taken);
  }

  /** On the completion thread: the job has completed. */
  void ended(Status how, String message) {
    status = how;
    long held;
    synchronized (this) {
      boolean interrupted = false;
      while ((wantsStatistics || how != Status.OK) && handle == 0) { // submitted() is about to set it
        try {
          wait();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      if (interrupted) Thread.currentThread().interrupt();
      ended = true;
      held = handle;
      handle = 0;
    }
    if (held != 0) {
      if (wantsStatistics) statistics = JobStatistics.from(struct -> Native.sg_job_get_statistics(held, struct));
      if (how != Status.OK || Trace.isRecorded()) {
        NativeObject.CLEANER.register(this, () -> Native.sg_job_release(held));
        synchronized (this) {
          kept = held;
        }
      } else {
        Native.sg_job_release(held);
      }
    }
    try {
      executor.execute(() -> settle(how, message));
    } catch (Throwable refused) { // perhaps it was shut down
      SHARED.execute(() -> settle(how, message));
    }
  }

  /** On the executor: releases the operands and completes the future. */
  private void settle(Status how, String message) {
    if (endsEarly()) ask();
    Throwable failure = how == Status.OK ? null : failure(how, message);
    if (operands instanceof Operands) {
      try {
        ((Operands) operands).end(how == Status.OK);
      } catch (Throwable t) {
        failure = t;
      }
    }
    operands = null;
    CompletableFuture<Void> done;
    synchronized (this) {
      settled = true;
      done = released;
    }
    finish(result, failure);
    if (done != null) done.complete(null);
  }

  /** The exception of the failed job; the program observes it if it has asked. */
  private synchronized RuntimeException failure(Status how, String message) {
    failure = StreamGemmException.of(how, message);
    if (asked) observe();
    return failure;
  }

  /** The program asks for the outcome: it has observed a failure (job.h). */
  private synchronized void ask() {
    if (!asked && failure != null) observe();
    asked = true;
  }

  /** The library gives the whole text to those who observe. With the lock, when the job has completed. */
  private void observe() {
    if (kept == 0) return;
    ByteBuffer text = ByteBuffer.allocateDirect(MESSAGE_SIZE);
    Native.sg_job_message(kept, Native.address(text), MESSAGE_SIZE);
    if (failure instanceof StreamGemmException)
      ((StreamGemmException) failure).complete(new String(Native.text(Native.address(text)), StandardCharsets.UTF_8));
    reachabilityFence(text);
  }

  /** A reference to the native job for a trace, to be released; 0 when no trace saw it. */
  long traced() {
    synchronized (this) {
      long found = handle != 0 ? handle : kept;
      if (found != 0) Native.sg_job_retain(found);
      return found;
    }
  }

  /** References to native jobs for the duration of a call, without those that order nothing any more. */
  static long[] retain(Job<?>[] jobs) {
    long[] held = new long[jobs.length];
    int count = 0;
    try {
      for (Job<?> job : jobs) {
        held[count] = job.retain();
        if (held[count] != 0) ++count;
      }
      return java.util.Arrays.copyOf(held, count);
    } catch (Throwable t) {
      release(java.util.Arrays.copyOf(held, count));
      throw t;
    }
  }

  static void release(long[] held) {
    for (long each : held) Native.sg_job_release(each);
  }

  /**
   * A reference to the native job for the duration of a call, to be released; 0 when it has succeeded and orders
   * nothing.
   */
  long retain() {
    synchronized (this) {
      if (handle != 0) {
        Native.sg_job_retain(handle);
        return handle;
      }
    }
    if (status != Status.OK) throw new StreamGemmException.DependencyFailed("a job in `after` ended with " + status);
    return 0;
  }

  private void refuseOwnThread() {
    if (home.onThread() && !isDone())
      throw new StreamGemmException.Deadlock(
          "the completion thread would wait for itself: the context's executor runs tasks on"
          + " the thread that gives them");
  }

  @Override
  public T get() throws InterruptedException, ExecutionException {
    refuseOwnThread();
    ask();
    return super.get();
  }

  @Override
  public T get(long timeout, TimeUnit unit) throws InterruptedException, ExecutionException, TimeoutException {
    refuseOwnThread();
    try {
      return super.get(timeout, unit);
    } catch (ExecutionException | CancellationException failed) {
      ask();
      return super.get();
    }
  }

  @Override
  public T join() {
    refuseOwnThread();
    ask();
    return super.join();
  }

  @Override
  public T getNow(T valueIfAbsent) {
    if (isDone()) ask();
    return super.getNow(valueIfAbsent);
  }

  @Override
  public boolean isCompletedExceptionally() {
    if (isDone()) ask();
    return super.isCompletedExceptionally();
  }

  @Override
  public boolean isCancelled() {
    if (isDone()) ask();
    return super.isCancelled();
  }

  @Override
  public <V> CompletableFuture<V> newIncompleteFuture() {
    ask();
    return super.newIncompleteFuture();
  }
}
