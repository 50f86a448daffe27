// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.FloatBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** Futures that the program completes early: which completions cancel the job. */
public class EarlyEndTest {
  private final Context context = Context.open("sim:h200");
  private Stream stream;
  private Gate gate;
  private FloatBuffer result;
  /** Behind the gate, in the same stream. */
  private Job<Matrix> waiting;

  @Before
  public void queue() {
    stream = context.stream();
    gate = new Gate(4);
    Submit inOrder = new Submit().stream(stream);
    gate.job(context, inOrder);
    result = Support.directNan(1);
    Matrix two = Matrix.of(Support.direct(2), 1, 1);
    waiting = context.gemmAsync(Gemm.of(two, two, Matrix.of(result, 1, 1)), inOrder);
  }

  @After
  public void close() {
    gate.close();
    stream.close();
    context.close();
  }

  /** Whether the job wrote its result, once it has completed. */
  private boolean ran() {
    gate.open();
    waiting.released().join();
    return !Float.isNaN(result.get(0));
  }

  @Test(timeout = Support.LIMIT)
  public void aTimeoutCancelsTheJob() {
    Throwable cause =
        assertThrows(CompletionException.class, () -> waiting.orTimeout(1, TimeUnit.MILLISECONDS).join()).getCause();
    assertEquals(TimeoutException.class, cause.getClass());
    assertFalse(ran());
  }

  @Test(timeout = Support.LIMIT)
  public void afterATimeoutTheJobIsCancelled() {
    CompletableFuture<Boolean> ran = waiting.handle((c, failure) -> ran());
    waiting.orTimeout(1, TimeUnit.MILLISECONDS);
    assertFalse(ran.join());
  }

  @Test(timeout = Support.LIMIT)
  public void aDefaultResultCancelsTheJob() {
    assertEquals(null, waiting.completeOnTimeout(null, 1, TimeUnit.MILLISECONDS).join());
    assertFalse(ran());
  }

  @Test(timeout = Support.LIMIT)
  public void aLabelBeginsTheMessageOfAFailure() throws Exception {
    Matrix two = Matrix.of(Support.direct(2), 1, 1);
    Matrix to = Matrix.of(Support.directNan(1), 1, 1);
    Submit named = new Submit().stream(stream).label("q \u00b7 k");
    Job<Matrix> job = context.gemmAsync(Gemm.of(two, two, to), named.timeout(Duration.ofMillis(1)));
    assertEquals("q \u00b7 k", job.label());
    Thread.sleep(20);
    gate.open();
    Throwable failure = assertThrows(CompletionException.class, job::join).getCause();
    assertTrue(failure.getMessage(), failure.getMessage().contains("job \"q \u00b7 k\": the deadline passed"));
    assertEquals("", waiting.label());
    Submit most = new Submit().label("a".repeat(62) + "\u20ac");
    assertEquals("a".repeat(62), context.gemmAsync(Gemm.of(two, two, to), most).label());
    assertEquals("", context.gemmAsync(Gemm.of(two, two, to), most.label(null)).label());
    assertThrows(IllegalArgumentException.class, () -> new Submit().label("a\0b"));
  }

  @Test(timeout = Support.LIMIT)
  public void aDeadlineDropsJobsThatHaveNotStarted() throws Exception {
    Matrix two = Matrix.of(Support.direct(2), 1, 1);
    FloatBuffer late = Support.directNan(1);
    Job<Matrix> job = context.gemmAsync(Gemm.of(two, two, Matrix.of(late, 1, 1)),
        new Submit().stream(stream).timeout(Duration.ofMillis(1)));
    Thread.sleep(20);
    gate.open();
    Throwable cause = assertThrows(CompletionException.class, job::join).getCause();
    assertEquals(StreamGemmException.DeadlineExceeded.class, cause.getClass());
    assertTrue(Float.isNaN(late.get(0)));
    context.gemmAsync(Gemm.of(two, two, Matrix.of(late, 1, 1)), new Submit().timeout(Duration.ofHours(1))).join();
    assertEquals(4, late.get(0), 0);
    assertThrows(IllegalArgumentException.class, () -> new Submit().timeout(Duration.ZERO));
  }

  @Test(timeout = Support.LIMIT)
  public void cancellationOfAStageReachesTheJob() {
    CompletableFuture<Void> last = waiting.thenApply(c -> c).thenApplyAsync(c -> 1).thenAccept(one -> { });
    assertTrue(last.cancel(true));
    assertTrue(waiting.isCancelled());
    assertFalse(ran());
  }

  @Test(timeout = Support.LIMIT)
  public void aTimeoutOfAStageReachesTheJob() {
    CompletableFuture<Integer> last = waiting.thenApply(c -> 1);
    assertThrows(CompletionException.class, () -> last.orTimeout(1, TimeUnit.MILLISECONDS).join());
    assertFalse(ran());
    assertTrue(waiting.isCancelled());
  }

  @Test(timeout = Support.LIMIT)
  public void afterTheEarlyCompletionOfAStageTheJobIsCancelled() {
    CompletableFuture<Integer> last = waiting.thenApply(c -> 1);
    CompletableFuture<Boolean> ran = last.handle((c, failure) -> ran());
    last.completeExceptionally(new IllegalStateException());
    assertFalse(ran.join());
    assertTrue(waiting.isCancelled());
  }

  @Test(timeout = Support.LIMIT)
  public void aJobThatAnotherStageNeedsContinues() {
    CompletableFuture<Matrix> other = waiting.thenApply(c -> c);
    CompletableFuture<Void> log = waiting.thenRun(() -> { });
    log.cancel(false);
    assertFalse(waiting.isDone());
    assertTrue(ran());
    other.join();
  }

  @Test(timeout = Support.LIMIT)
  public void aJobThatAThreadWaitsForContinues() throws Exception {
    Thread waiter = new Thread(waiting::join);
    waiter.start();
    while (waiter.getState() != Thread.State.WAITING) Thread.sleep(1);
    waiting.thenRun(() -> { }).cancel(false);
    assertFalse(waiting.isDone());
    assertTrue(ran());
    waiter.join();
  }

  @Test(timeout = Support.LIMIT)
  public void releasedDoesNotDependOnTheJob() {
    waiting.released().cancel(true);
    assertFalse(waiting.isDone());
    assertTrue(ran());
  }
}
