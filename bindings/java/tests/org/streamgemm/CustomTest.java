// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.Test;

/** Custom operations, on both kinds of device. */
public class CustomTest extends DeviceTest {
  /** y = factor * x. */
  private static CustomOperation scaling(double factor, Matrix x, Matrix y) {
    return new CustomOperation(call -> {
      DoubleBuffer from = call.buffer(0).asDoubleBuffer();
      DoubleBuffer to = call.buffer(1).asDoubleBuffer();
      for (int i = 0; i < from.capacity(); ++i) to.put(i, factor * from.get(i));
    }).reads(x).writes(y);
  }

  @Test(timeout = Support.LIMIT)
  public void betweenOtherJobs() {
    Matrix x = place(2, 2, 1, 2, 3, 4);
    Matrix y = poisoned(2, 2);
    Matrix z = poisoned(2, 2);
    context.layers().axpbyAsync(x, x, new Axpby().with(0, 2), DEFAULTS);
    context.customAsync(scaling(10, x, y));
    context.layers().axpbyAsync(y, z, new Axpby().with(1, 0), DEFAULTS);
    context.customAsync(new CustomOperation(call -> {
      DoubleBuffer values = call.buffer(0).asDoubleBuffer();
      values.put(0, values.get(0) + 1);
    }).updates(z)).join();
    holds(new double[] {21, 40, 60, 80}, z);
    context.custom(scaling(-1, z, y));
    holds(new double[] {-21, -40, -60, -80}, y);
  }

  @Test(timeout = Support.LIMIT)
  public void theCallDescribesItsOperands() {
    Matrix x = context.deviceMatrix(DType.F32, 4, 6);
    Matrix part = x.block(1, 1, 2, 3);
    Matrix y = context.pinnedMatrix(DType.F64, 1, 2);
    List<String> found = new ArrayList<>();
    context.custom(new CustomOperation(call -> {
      found.add(call.nativeStream() + " " + call.size(0) + " " + call.size(1));
      found.add("order " + call.buffer(0).order() + " " + call.buffer(1).order());
      found.add("read-only " + call.buffer(0).isReadOnly() + " " + call.buffer(1).isReadOnly());
      found.add("at " + (call.address(1) == y.address()));
      assertThrows(ReadOnlyBufferException.class, () -> call.buffer(0).put(0, (byte) 1));
      assertThrows(IndexOutOfBoundsException.class, () -> call.buffer(2));
    }).seconds(1e-6).computeUnits(1).reads(part).writes(y));
    String order = ByteOrder.nativeOrder().toString();
    assertEquals(List.of("0 " + 4 * (6 + 3) + " 16", "order " + order + " " + order, "read-only true false", "at true"), found);
  }

  @Test(timeout = Support.LIMIT)
  public void arraysAreCopied() {
    double[] x = {1, 2};
    double[] y = {7, 7};
    context.customAsync(scaling(3, Matrix.of(x, 1, 2), Matrix.of(y, 1, 2))).join();
    assertArrayEquals(new double[] {3, 6}, y, 0);
  }

  @Test(timeout = Support.LIMIT)
  public void anExceptionFailsTheJobAndThoseThatReadItsResult() {
    Matrix x = place(1, 1, 1);
    Matrix y = place(1, 1, 1);
    CountDownLatch submitted = new CountDownLatch(1);
    Job<Void> failing = context.customAsync(new CustomOperation(call -> {
      submitted.await();
      throw new java.io.IOException("no such \u00fcnit");
    }).reads(x).writes(y));
    Job<Matrix> reader = context.layers().axpbyAsync(y, x, new Axpby(), DEFAULTS);
    submitted.countDown();
    Throwable failure = assertThrows(CompletionException.class, failing::join).getCause();
    assertTrue(failure.toString(), failure instanceof StreamGemmException.BackendFailure);
    assertTrue(failure.getMessage(), failure.getMessage().contains("java.io.IOException: no such \u00fcnit"));
    assertThrows(CompletionException.class, reader::join);
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < 3000; ++i) text.append('\u20ac');
    StreamGemmException cut = assertThrows(StreamGemmException.BackendFailure.class,
        () -> context.custom(new CustomOperation(call -> {
          throw new Error(text.toString());
        }).writes(y)));
    assertTrue(cut.getMessage(), cut.getMessage().contains("java.lang.Error: \u20ac\u20ac"));
    assertThrows(StreamGemmException.OutOfMemory.class, () -> context.custom(new CustomOperation(call -> {
      throw new OutOfMemoryError("on purpose");
    }).writes(y)));
    context.custom(new CustomOperation(call -> call.buffer(0).putDouble(0, 5)).writes(y)); // written anew
    holds(new double[] {5}, y);
  }

  @Test(timeout = Support.LIMIT)
  public void anExceptionWithoutATextKeepsItsClass() {
    class Mute extends RuntimeException {
      private static final long serialVersionUID = 1;

      @Override
      public String getMessage() {
        throw new IllegalStateException();
      }
    }
    Matrix y = place(1, 1, 1);
    StreamGemmException failure = assertThrows(StreamGemmException.BackendFailure.class, () -> context.custom(new CustomOperation(call -> {
      throw new Mute();
    }).writes(y)));
    assertTrue(failure.getMessage(), failure.getMessage().contains("Mute"));
  }

  @Test(timeout = Support.LIMIT)
  public void theInterruptOfOneFunctionIsNotThatOfTheNext() {
    Matrix y = place(1, 1, 1);
    AtomicInteger interrupted = new AtomicInteger();
    for (int i = 0; i < 20; ++i)
      context.custom(new CustomOperation(call -> {
        if (Thread.currentThread().isInterrupted()) interrupted.incrementAndGet();
        Thread.currentThread().interrupt();
      }).writes(y));
    assertEquals(0, interrupted.get());
  }

  @Test(timeout = Support.LIMIT)
  public void wrongCallsNameTheArgument() {
    Matrix x = place(1, 2, 1, 2);
    CustomOperation.Function nothing = call -> {};
    assertThrows(NullPointerException.class, () -> new CustomOperation(null));
    refused("there are 0 operands", () -> context.custom(new CustomOperation(nothing)));
    refused("there are 5 operands", () -> context.custom(new CustomOperation(nothing).reads(x, x, x, x, x)));
    refused("operands[1] is f64 0 x 2", () -> context.custom(new CustomOperation(nothing).reads(x, x.block(0, 0, 0, 2))));
    refused("operands[1]", () -> context.custom(new CustomOperation(nothing).reads(x).writes(x.block(0, 1, 1, 1))));
    refused("seconds is -1", () -> context.customAsync(new CustomOperation(nothing).reads(x).seconds(-1)));
    refused("computeUnits is -2", () -> context.customAsync(new CustomOperation(nothing).reads(x).computeUnits(-2)));
    refused("read-only", () -> context.custom(new CustomOperation(nothing).writes(Matrix.of(Support.direct(1).asReadOnlyBuffer(), 1, 1))));
    context.custom(new CustomOperation(nothing).reads(Matrix.of(Support.direct(1), 1, 1)));
  }

  @Test(timeout = Support.LIMIT)
  public void aCancelledOneIsNotCalled() throws Exception {
    Matrix x = place(1, 1, 1);
    CountDownLatch open = new CountDownLatch(1);
    AtomicInteger calls = new AtomicInteger();
    Job<Void> first = context.customAsync(new CustomOperation(call -> open.await()).updates(x));
    Job<Void> second = context.customAsync(new CustomOperation(call -> calls.incrementAndGet()).updates(x));
    second.cancel(false);
    open.countDown();
    first.join();
    assertThrows(CancellationException.class, second::join);
    second.released().join();
    assertEquals(0, calls.get());
  }

  @Test(timeout = Support.LIMIT)
  public void recordedInAGraph() {
    Matrix x = place(1, 2, 1, 2);
    Matrix y = poisoned(1, 2);
    Matrix sum = place(1, 2, 0, 0);
    Graph graph = context.graph();
    assertEquals(0, graph.recordCustom(scaling(2, x, y)));
    graph.layers().axpby(y, sum, new Axpby());
    assertEquals(2, graph.recordCustom(scaling(1, sum, x), DEFAULTS)); // the next run begins with the sum
    List<Job<Void>> runs = new ArrayList<>();
    for (int i = 0; i < 3; ++i) {
      runs.add(graph.runAsync());
      if (i == 0) System.gc();
    }
    graph.close(); // its runs in flight continue
    runs.forEach(Job::join);
    holds(new double[] {26 - 8, 52 - 16}, sum); // 2, 6, 18
    try (Graph arrays = context.graph()) {
      refused("cannot record", () -> arrays.recordCustom(scaling(1, Matrix.of(new double[2], 1, 2), x)));
      assertEquals(0, arrays.size());
    }
  }

  @Test(timeout = Support.LIMIT)
  public void inTheStagesOfAPipeline() {
    int n = 8;
    long bytes = 4 * n;
    Pipeline pipeline = context.pipeline(new PipelineOptions().inputBytes(bytes).depth(3));
    for (int s = 1; s <= 2; ++s) {
      float add = s;
      Pipeline.Stage stage = pipeline.stage(null, bytes, 0, WeightsPlace.AUTO);
      stage.graph().recordCustom(new CustomOperation(call -> {
        FloatBuffer from = call.buffer(0).asFloatBuffer();
        FloatBuffer to = call.buffer(1).asFloatBuffer();
        for (int i = 0; i < from.capacity(); ++i) to.put(i, 2 * from.get(i) + add);
      }).reads(stage.input(DType.F32, 1, n)).writes(stage.output(DType.F32, 1, n)));
    }
    List<Job<Matrix>> jobs = new ArrayList<>();
    List<float[]> results = new ArrayList<>();
    for (int i = 0; i < 20; ++i) {
      if (i % 5 == 0) System.gc(); // the stages are no one's but the pipeline's
      float[] x = new float[n];
      java.util.Arrays.fill(x, i);
      results.add(new float[n]);
      jobs.add(pipeline.pushAsync(Matrix.of(x, 1, n), Matrix.of(results.get(i), 1, n)));
    }
    pipeline.close(); // its batches continue
    pipeline = null;
    System.gc();
    for (int i = 0; i < 20; ++i) {
      jobs.get(i).join();
      for (float value : results.get(i)) assertEquals(2 * (2 * i + 1) + 2, value, 0);
    }
  }

  @Test(timeout = Support.LIMIT)
  public void manyThreadsAndGarbageCollections() throws Exception {
    List<Thread> threads = new ArrayList<>();
    List<Throwable> failures = java.util.Collections.synchronizedList(new ArrayList<>());
    AtomicInteger calls = new AtomicInteger();
    for (int t = 0; t < 4; ++t) {
      threads.add(new Thread(() -> {
        try {
          Matrix sum = place(1, 1, 0);
          Job<Void> last = null;
          for (int i = 0; i < 200; ++i) {
            byte[] garbage = new byte[10_000]; // captured
            last = context.customAsync(new CustomOperation(call -> {
              ByteBuffer value = call.buffer(0);
              value.putDouble(0, value.getDouble(0) + garbage.length / 10_000);
              calls.incrementAndGet();
            }).updates(sum));
            if (i % 50 == 0) System.gc();
            if (i % 40 == 0) context.custom(new CustomOperation(call -> call.buffer(0).putDouble(0, call.buffer(0).getDouble(0))).updates(sum));
          }
          last.join();
          holds(new double[] {200}, sum);
        } catch (Throwable failure) {
          failures.add(failure);
        }
      }));
    }
    for (Thread thread : threads) thread.start();
    for (Thread thread : threads) thread.join();
    assertTrue(failures.toString(), failures.isEmpty());
    assertEquals(800, calls.get());
  }

  @Test(timeout = Support.LIMIT)
  public void functionsAreCollected() throws Exception {
    Matrix x = place(1, 1, 1);
    List<java.lang.ref.WeakReference<Object>> seen = new ArrayList<>();
    for (int i = 0; i < 3; ++i) {
      Object captured = new Object();
      seen.add(new java.lang.ref.WeakReference<>(captured));
      CustomOperation operation = new CustomOperation(call -> captured.hashCode()).updates(x);
      if (i == 0) context.customAsync(operation).join();
      if (i == 1) context.custom(operation);
      if (i == 2) {
        try (Graph graph = context.graph()) {
          graph.recordCustom(operation);
          graph.runAsync().join();
        }
      }
    }
    for (int i = 0; i < 100 && seen.stream().anyMatch(each -> each.get() != null); ++i) {
      System.gc();
      Thread.sleep(20);
    }
    for (java.lang.ref.WeakReference<Object> each : seen) assertFalse(String.valueOf(seen.indexOf(each)), each.get() != null);
  }
}
