// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.Test;

/** Futures: completion, cancellation, failure, executors. */
public class JobTest {
  private static final Matrix TWO = Matrix.of(Support.direct(2), 1, 1);

  private static Matrix one() {
    return Matrix.of(Support.directNan(1), 1, 1);
  }

  private static float valueOf(Matrix m) {
    return ((java.nio.FloatBuffer) m.owner()).get(0);
  }

  @Test(timeout = Support.LIMIT)
  public void stagesRunOnTheExecutorOfTheCallersChoice() throws Exception {
    ExecutorService own = Executors.newSingleThreadExecutor(task -> new Thread(task, "of the caller's choice"));
    try (Context context = Context.open(new ContextOptions().device("sim:h200"), own); Gate gate = new Gate(4)) {
      Job<Matrix> job = gate.job(context, new Submit());
      List<CompletableFuture<String>> stages = List.of(job.thenApply(m -> Thread.currentThread().getName()),
          job.thenApplyAsync(m -> Thread.currentThread().getName()),
          job.thenApply(m -> m).thenApplyAsync(m -> Thread.currentThread().getName()));
      assertFalse(job.isDone());
      gate.open();
      for (CompletableFuture<String> stage : stages) assertEquals("of the caller's choice", stage.join());
      assertEquals(4, valueOf(job.join()), 0);
    } finally {
      own.shutdown();
    }
  }

  @Test(timeout = Support.LIMIT)
  public void stagesMayBlockWhereTheExecutorHasThreads() throws Exception {
    ExecutorService own = Executors.newCachedThreadPool();
    try (Context context = Context.open(new ContextOptions().device("cpu"), own)) {
      CountDownLatch allRun = new CountDownLatch(16);
      List<CompletableFuture<Matrix>> stages = new ArrayList<>();
      for (int i = 0; i < 16; ++i)
        stages.add(context.gemmAsync(TWO, TWO, one()).thenApplyAsync(m -> {
          allRun.countDown();
          try {
            allRun.await();
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
          return context.gemmAsync(m, m, one()).join(); // waits for a job in a stage
        }));
      for (CompletableFuture<Matrix> stage : stages) assertEquals(16, valueOf(stage.join()), 0);
    } finally {
      own.shutdown();
    }
  }

  @Test(timeout = Support.LIMIT)
  public void waitingForAJobOnTheCompletionThreadIsAnError() throws Exception {
    try (Context context = Context.open(new ContextOptions().device("sim:h200"), Runnable::run);
         Gate gate = new Gate(4)) {
      AtomicReference<Job<Matrix>> other = new AtomicReference<>();
      Job<Matrix> first = gate.job(context, new Submit());
      CompletableFuture<Matrix> stage = first.thenApply(m -> other.get().join());
      other.set(context.gemmAsync(Gemm.of(TWO, TWO, one()), new Submit().after(first)));
      gate.open();
      Throwable cause = assertThrows(CompletionException.class, stage::join).getCause();
      assertEquals(StreamGemmException.Deadlock.class, cause.getClass());
      assertEquals(4, valueOf(other.get().join()), 0);
    }
  }

  @Test(timeout = Support.LIMIT)
  public void anExecutorThatWasShutDownLosesNoFuture() {
    ExecutorService own = Executors.newSingleThreadExecutor();
    try (Context context = Context.open(new ContextOptions().device("cpu"), own)) {
      own.shutdown();
      assertEquals(4, valueOf(context.gemmAsync(TWO, TWO, one()).join()), 0);
    }
  }

  @Test(timeout = Support.LIMIT)
  public void anExecutorThatFailsLosesNoFuture() {
    try (Context context = Context.open(
             new ContextOptions().device("cpu"), task -> { throw new AssertionError("an executor that fails"); })) {
      for (int i = 0; i < 10; ++i) assertEquals(4, valueOf(context.gemmAsync(TWO, TWO, one()).join()), 0);
    }
  }

  @Test(timeout = Support.LIMIT)
  public void aJobLimit() {
    try (Context context = Context.open(new ContextOptions().device("sim:h200").jobLimit(2).whenFull(WhenFull.REFUSE));
         Gate gate = new Gate(4)) {
      Job<Matrix> first = gate.job(context, new Submit());
      Job<Matrix> second = gate.job(context, new Submit());
      float[] array = new float[1];
      assertThrows(StreamGemmException.Busy.class, () -> context.gemmAsync(TWO, TWO, Matrix.of(array, 1, 1)));
      gate.open();
      assertEquals(4, valueOf(first.join()), 0);
      second.join();
      context.gemmAsync(TWO, TWO, Matrix.of(array, 1, 1)).join(); // the refused submission left no state
      assertEquals(4, array[0], 0);
    }
  }

  @Test(timeout = Support.LIMIT)
  public void cancelled() throws Exception {
    try (Context context = Context.open("sim:h200"); Stream stream = context.stream(); Gate gate = new Gate(4)) {
      Submit inOrder = new Submit().stream(stream);
      Job<Matrix> running = gate.job(context, inOrder);
      Matrix c = one();
      Job<Matrix> waiting = context.gemmAsync(Gemm.of(TWO, TWO, c), inOrder);
      Job<Matrix> dependent = context.gemmAsync(Gemm.of(TWO, TWO, one()), new Submit().after(waiting));
      CompletableFuture<Matrix> stage = waiting.thenApply(m -> m);
      CompletableFuture<Void> released = waiting.released();
      assertTrue(waiting.cancel(true));
      assertTrue(waiting.isCancelled());
      assertThrows(CancellationException.class, waiting::join);
      assertThrows(CancellationException.class, waiting::get);
      assertEquals(
          CancellationException.class, assertThrows(CompletionException.class, stage::join).getCause().getClass());
      gate.open();
      released.join();
      assertTrue("a dropped job must not write", Float.isNaN(valueOf(c)));
      Throwable cause = assertThrows(CompletionException.class, dependent::join).getCause();
      assertEquals(StreamGemmException.DependencyFailed.class, cause.getClass());
      assertEquals(4, valueOf(running.join()), 0);
      assertFalse("too late", running.cancel(false));
      assertFalse(running.isCancelled());
    }
  }

  @Test(timeout = Support.LIMIT)
  public void operandsAreReleasedWhenTheJobCompletesNotTheFuture() throws Exception {
    try (Context context = Context.open("sim:h200"); Gate gate = new Gate(4)) {
      Job<Matrix> job = gate.job(context, new Submit());
      assertThrows(TimeoutException.class, () -> job.get(1, TimeUnit.MILLISECONDS));
      assertThrows(CompletionException.class, () -> job.orTimeout(1, TimeUnit.MILLISECONDS).join());
      assertTrue(job.isDone());
      assertFalse(job.released().isDone());
      assertEquals(1, context.inFlight());
      gate.open();
      job.released().join();
      assertEquals(0, context.inFlight());
    }
  }

  @Test(timeout = Support.LIMIT)
  public void failuresReachTheirFuture() {
    try (Context context = Context.open("sim:h200?fail-launch=1")) {
      Job<Matrix> job = context.gemmAsync(TWO, TWO, one());
      Throwable cause = assertThrows(CompletionException.class, job::join).getCause();
      assertEquals(StreamGemmException.BackendFailure.class, cause.getClass());
      assertEquals(Status.BACKEND_FAILURE, ((StreamGemmException) cause).status());
      assertTrue(cause.getMessage(), cause.getMessage().contains("fail"));
      assertSame(cause, assertThrows(ExecutionException.class, job::get).getCause());
      assertThrows("known to have failed", StreamGemmException.DependencyFailed.class,
          () -> context.gemmAsync(Gemm.of(TWO, TWO, one()), new Submit().after(job)));
      assertEquals(4, valueOf(context.gemmAsync(TWO, TWO, one()).join()), 0);
    }
    try (Context context = Context.open("sim:h200?fail-launch=1")) {
      assertThrows(StreamGemmException.BackendFailure.class, () -> context.gemm(TWO, TWO, one()));
    }
  }

  @Test(timeout = Support.LIMIT)
  public void arraysOfFailedJobsAreUsableAgain() {
    try (Context context = Context.open("sim:h200?fail-launch=1")) {
      float[] c = {Float.NaN};
      Matrix two = Matrix.of(new float[] {2}, 1, 1);
      assertThrows(CompletionException.class, () -> context.gemmAsync(two, two, Matrix.of(c, 1, 1)).join());
      assertTrue(Float.isNaN(c[0]));
      context.gemmAsync(two, two, Matrix.of(c, 1, 1)).join();
      assertEquals(4, c[0], 0);
    }
  }

  @Test(timeout = Support.LIMIT)
  public void orderAfterCompletedJobs() {
    try (Context context = Context.open("cpu")) {
      Job<Matrix> first = context.gemmAsync(TWO, TWO, one());
      first.join();
      assertEquals(16,
          valueOf(context.gemmAsync(Gemm.of(first.join(), first.join(), one()), new Submit().after(first)).join()), 0);
    }
  }

  @Test(timeout = Support.LIMIT)
  public void statistics() {
    try (Context context = Context.open("sim:h200")) {
      int n = 64;
      Matrix a = Matrix.of(Support.direct(Support.integers(n * n, 1)), n, n);
      Submit asked = new Submit().statistics();
      for (int i = 0; i < 200; ++i) { // also when the job completes before the submission has returned
        Job<Matrix> job = context.gemmAsync(Gemm.of(a, a, context.pinnedMatrix(DType.F32, n, n)), asked);
        job.join();
        JobStatistics statistics = job.statistics().get();
        assertEquals(2.0 * n * n * n, statistics.flops(), 0);
        assertTrue(statistics.toString(), statistics.endNs() > statistics.startNs());
      }
      Job<Matrix> plain = context.gemmAsync(TWO, TWO, one());
      plain.join();
      assertFalse(plain.statistics().isPresent());
    }
  }

  @Test(timeout = Support.LIMIT)
  public void manyThreadsSubmitAtOnce() throws Exception {
    try (Context context = Context.open("cpu")) {
      ExecutorService threads = Executors.newFixedThreadPool(8);
      List<CompletableFuture<Void>> all = new ArrayList<>();
      for (int t = 0; t < 8; ++t) {
        int seed = t;
        all.add(CompletableFuture.runAsync(() -> {
          List<Job<Matrix>> jobs = new ArrayList<>();
          for (int i = 0; i < 500; ++i) {
            Matrix x = Matrix.of(Support.direct(seed + i), 1, 1);
            jobs.add(context.gemmAsync(x, x, one()));
          }
          for (int i = 0; i < 500; ++i) assertEquals((float) (seed + i) * (seed + i), valueOf(jobs.get(i).join()), 0);
        }, threads));
      }
      for (CompletableFuture<Void> each : all) each.join();
      threads.shutdown();
    }
  }
}
