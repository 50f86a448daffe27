// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A job, or what depends on one. Asynchronous stages run on the context's executor. A stage that the program completes
 * early (cancel, orTimeout, ...) no longer wants what it was made from, which is cancelled when nothing else wants it:
 * no other stage of it and no thread that waits for it.
 *
 * @param <U> type of the result
 */
class Stage<U> extends CompletableFuture<U> {
  private final Executor executor;
  /** What this was made from, or null. */
  private final Stage<?> source;
  /** Stages made from this that have not been completed early, and threads that wait for this. Guarded by this. */
  private int wanted;

  Stage(Executor executor, Stage<?> source) {
    this.executor = executor;
    this.source = source;
  }

  /** The program has completed this before its work did. */
  void endedEarly() {
    if (source != null) source.unwant();
  }

  private synchronized void want() {
    ++wanted;
  }

  private synchronized void wantNoMore() {
    --wanted;
  }

  private void unwant() {
    synchronized (this) {
      if (--wanted > 0) return;
    }
    if (!isDone()) cancel(false);
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    boolean done = isDone();
    boolean cancelled = super.cancel(mayInterruptIfRunning);
    if (!done && cancelled) endedEarly();
    return cancelled;
  }

  @Override
  public boolean complete(U value) {
    boolean first = super.complete(value);
    if (first) endedEarly();
    return first;
  }

  @Override
  public boolean completeExceptionally(Throwable failure) {
    boolean first = super.completeExceptionally(failure);
    if (first) endedEarly();
    return first;
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
