// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.Test;

/** Failures of jobs: they poison the memory until the program has asked for the outcome, however far the completing thread is. */
public class ObservationTest extends DeviceTest {
  private static final String LONG = "page " + "7".repeat(300) + " is missing";

  private Matrix y;

  private Job<Void> fails() {
    return context.customAsync(new CustomOperation(call -> {
      throw new java.io.IOException(LONG);
    }).writes(y));
  }

  /** A failed job whose completion has been delivered, and which the program has not asked for. */
  private Job<Void> failed() {
    Job<Void> job = fails();
    job.released().join();
    return job;
  }

  private Job<Matrix> read() {
    return context.layers().axpbyAsync(y, poisoned(1, 1), new Axpby(), DEFAULTS);
  }

  private void readFails() {
    Throwable failure = assertThrows(CompletionException.class, () -> read().join()).getCause();
    assertTrue(failure.toString(), failure instanceof StreamGemmException.DependencyFailed);
  }

  private interface Ask {
    void of(Job<Void> job) throws Exception;
  }

  private static Consumer<Job<Void>> caught(Ask how) {
    return job -> {
      try {
        how.of(job);
        throw new AssertionError("it did not fail");
      } catch (ExecutionException | CompletionException expected) {
        assertTrue(expected.getMessage(), expected.getMessage().contains(LONG));
        assertTrue(expected.getCause().getMessage(), expected.getCause().getMessage().contains("java.io.IOException: " + LONG));
      } catch (Exception other) {
        throw new AssertionError(other);
      }
    };
  }

  @Test(timeout = Support.LIMIT)
  public void readersFailUntilTheProgramAsks() {
    y = place(1, 1, 1);
    Map<String, Consumer<Job<Void>>> ways = new LinkedHashMap<>();
    ways.put("get", caught(Job::get));
    ways.put("get in time", caught(job -> job.get(1, TimeUnit.MINUTES)));
    ways.put("join", caught(Job::join));
    ways.put("getNow", caught(job -> job.getNow(null)));
    ways.put("a stage", caught(job -> job.thenRun(() -> {}).join()));
    ways.put("isCompletedExceptionally", job -> assertTrue(job.isCompletedExceptionally()));
    ways.put("handle", job -> job.handle((value, failure) -> failure).join());
    ways.forEach((name, ask) -> {
      failed();
      readFails();
      ask.accept(failed());
      read().join();
    });
  }

  @Test(timeout = Support.LIMIT)
  public void readersThatAreSubmittedAtOnceFail() {
    y = place(1, 1, 1);
    for (int i = 0; i < ("1".equals(System.getenv("SG_SOAK")) ? 1000 : 50); ++i) {
      fails();
      readFails();
      context.custom(new CustomOperation(call -> {}).writes(y)); // written anew
    }
  }

  @Test(timeout = Support.LIMIT)
  public void stagesThatWaitObserve() {
    y = place(1, 1, 1);
    Job<Void> job = fails();
    CompletableFuture<String> said = job.handle((value, failure) -> failure.getMessage());
    assertTrue(said.join(), said.join().contains(LONG));
    read().join();
  }

  @Test(timeout = Support.LIMIT)
  public void theEarlyEndOfAJobIsTheProgramsOwn() {
    y = place(1, 1, 1);
    java.util.concurrent.CountDownLatch open = new java.util.concurrent.CountDownLatch(1);
    Job<Void> first = context.customAsync(new CustomOperation(call -> open.await()).updates(y));
    Job<Void> second = context.customAsync(new CustomOperation(call -> {}).updates(y));
    second.cancel(true);
    open.countDown();
    first.join();
    second.released().join();
    read().join();
  }
}
