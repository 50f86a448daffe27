// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;

/**
 * A job, or a stage that depends on one. Asynchronous stages run on the context's executor. A stage that the program
 * completes early (cancel, orTimeout, ...) no longer needs its source, which is cancelled when nothing else needs it:
 * no other stage of it and no thread that waits for it.
 *
 * @param <U> type of the result
 */
class Stage<U> extends CompletableFuture<U> {
  private final Executor executor;
  /** The source of this stage, or null. */
  private final Stage<?> source;
  /** Stages of this that have not been completed early, and threads that wait for this. Guarded by this. */
  private int wanted;
  /** The program completes this early. Guarded by this. */
  private boolean early;

  Stage(Executor executor, Stage<?> source) {
    this.executor = executor;
    this.source = source;
  }

  /** No stage or thread needs this any more. */
  void drop() {}

  private synchronized void want() {
    ++wanted;
  }

  private synchronized void wantNoMore() {
    --wanted;
  }

  private synchronized boolean isWantedWithoutOne() {
    return --wanted > 0;
  }

  /**
   * Before the program completes this: cancels jobs that are not needed any more, so that they are cancelled before the
   * first waiter of this wakes.
   */
  private boolean endEarly() {
    synchronized (this) {
      if (early || isDone()) return false;
      early = true;
    }
    drop();
    if (source != null && !source.isWantedWithoutOne()) source.endEarly();
    return true;
  }

  /** Afterwards: cancels the sources that endEarly() found unneeded. */
  private void cancelSources() {
    for (Stage<?> each = source; each != null && each.endsEarly(); each = each.source) each.cancelThis();
  }

  /** Whether the program completes this early. */
  final synchronized boolean endsEarly() {
    return early;
  }

  private boolean cancelThis() {
    return super.cancel(false);
  }

  /** Completes this with the job's outcome, unless the program completes it early. */
  final void finish(U value, Throwable failure) {
    if (endsEarly()) return;
    if (failure == null) super.complete(value);
    else super.completeExceptionally(failure);
  }

  /** Completes this before the library does. */
  private boolean endEarlyBy(BooleanSupplier completion) {
    boolean early = endEarly();
    boolean completed = completion.getAsBoolean();
    if (early) cancelSources();
    return completed;
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    return endEarlyBy(() -> super.cancel(mayInterruptIfRunning));
  }

  @Override
  public boolean complete(U value) {
    return endEarlyBy(() -> super.complete(value));
  }

  @Override
  public boolean completeExceptionally(Throwable failure) {
    return endEarlyBy(() -> super.completeExceptionally(failure));
  }

  @Override
  public U get() throws InterruptedException, ExecutionException {
    want();
    try {
      return super.get();
    } finally {
      wantNoMore();
    }
  }

  @Override
  public U get(long timeout, TimeUnit unit) throws InterruptedException, ExecutionException, TimeoutException {
    want();
    try {
      return super.get(timeout, unit);
    } finally {
      wantNoMore();
    }
  }

  @Override
  public U join() {
    want();
    try {
      return super.join();
    } finally {
      wantNoMore();
    }
  }

  @Override
  public Executor defaultExecutor() {
    return executor;
  }

  @Override
  public <V> CompletableFuture<V> newIncompleteFuture() {
    want();
    return new Stage<>(executor, this);
  }
}
