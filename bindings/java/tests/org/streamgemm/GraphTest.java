// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletionException;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;

/** Recorded submissions: run many times, changed in between, safe when their operands are dropped or closed. */
@RunWith(Parameterized.class)
public class GraphTest {
  private static final int N = 12;

  @Parameterized.Parameters(name = "{0}")
  public static Collection<Object[]> devices() {
    return Arrays.asList(new Object[][] {{"cpu"}, {"sim:h200"}});
  }

  @Parameterized.Parameter public String device;

  private final float[] a = Support.integers(N * N, 1);
  private final float[] b = Support.integers(N * N, 2);
  private final float[] ab = Support.multiply(a, b, N, N, N);

  private static Matrix square(FloatBuffer buffer) {
    return Matrix.of(buffer, N, N);
  }

  @Test(timeout = Support.LIMIT)
  public void recordedOnceRunManyTimes() {
    try (Context context = Context.open(device); Graph graph = context.graph()) {
      FloatBuffer input = Support.direct(a);
      FloatBuffer output = Support.directNan(N * N);
      Matrix copied = context.deviceMatrix(DType.F32, N, N);
      Matrix gemmResult = context.deviceMatrix(DType.F32, N, N);
      assertEquals(0, graph.recordCopy(copied, square(input)));
      assertEquals(1, graph.record(Gemm.of(copied, square(Support.direct(b)), gemmResult)));
      assertEquals(2, graph.recordCopy(square(output), gemmResult));
      assertEquals(3, graph.size());
      assertTrue("nothing ran", Float.isNaN(output.get(0)));
      graph.runAsync().join();
      assertArrayEquals(ab, Support.content(output), 0);
      for (int i = 0; i < N * N; ++i) input.put(i, 2 * a[i]);
      graph.runAsync(new Submit().priority(1)).join();
      for (int i = 0; i < N * N; ++i) assertEquals(2 * ab[i], output.get(i), 0);
      assertThrows(StreamGemmException.Busy.class, () -> graph.recordCopy(square(output), gemmResult));
      assertEquals(3, graph.size());
    }
  }

  @Test(timeout = Support.LIMIT)
  public void changedBetweenRuns() {
    try (Context context = Context.open(device); Graph graph = context.graph()) {
      FloatBuffer first = Support.directNan(N * N);
      FloatBuffer second = Support.directNan(N * N);
      FloatBuffer copy = Support.directNan(N * N);
      int gemm = graph.record(Gemm.of(square(Support.direct(a)), square(Support.direct(b)), square(first)));
      int last = graph.recordCopy(square(copy), square(first));
      graph.runAsync();
      graph.update(gemm, Gemm.of(square(Support.direct(a)), square(Support.direct(b)), square(second)).with(3, 0));
      graph.update(last, square(copy), square(second));
      graph.runAsync().join();
      assertArrayEquals(ab, Support.content(first), 0);
      for (int i = 0; i < N * N; ++i) assertEquals(3 * ab[i], copy.get(i), 0);
      Matrix small = Matrix.of(Support.direct(1), 1, 1);
      Matrix disjoint = Matrix.of(Support.direct(1), 1, 1);
      String shapes = assertThrows(StreamGemmException.InvalidArgument.class, () -> graph.update(last, small, disjoint)).getMessage();
      assertTrue(shapes, shapes.contains("to is f32 1 x 1") && shapes.contains("; f32 " + N + " x " + N));
      assertThrows(StreamGemmException.InvalidArgument.class,
          () -> graph.update(gemm, Gemm.of(small, small, Matrix.of(Support.direct(1), 1, 1))));
      assertThrows(StreamGemmException.InvalidArgument.class, () -> graph.update(7, square(copy), square(first)));
      String message = assertThrows(StreamGemmException.InvalidArgument.class,
          () -> graph.update(gemm, square(copy), square(first))).getMessage();
      assertTrue(message, message.contains("is a GEMM and not a copy"));
      graph.runAsync().join();
    }
  }

  @Test
  public void refused() {
    try (Context context = Context.open(device); Graph graph = context.graph()) {
      Matrix inArray = Matrix.of(new float[1], 1, 1);
      Matrix one = Matrix.of(Support.direct(1), 1, 1);
      String message =
          assertThrows(StreamGemmException.InvalidArgument.class, () -> graph.record(Gemm.of(one, inArray, one)))
              .getMessage();
      assertTrue(message, message.contains("array"));
      assertThrows(StreamGemmException.InvalidArgument.class, () -> graph.recordCopy(one, inArray));
      assertThrows(StreamGemmException.InvalidArgument.class, () -> graph.record(Gemm.of(one, one, one)));
      Job<Matrix> before = context.gemmAsync(one, one, Matrix.of(Support.direct(0), 1, 1));
      before.join();
      assertEquals(0, graph.size());
      assertEquals(null, graph.runAsync().join()); // an empty graph
      NativeObject closedTwice = graph;
      closedTwice.close();
      closedTwice.close();
      assertThrows(StreamGemmException.InvalidHandle.class, graph::runAsync);
      assertThrows(StreamGemmException.InvalidHandle.class, () -> graph.record(Gemm.of(one, one, one)));
    }
  }

  @Test(timeout = Support.LIMIT)
  public void closedDeviceMemoryStaysForTheGraph() {
    try (Context context = Context.open(device); Graph graph = context.graph()) {
      Matrix between = context.deviceMatrix(DType.F32, N, N);
      FloatBuffer output = Support.directNan(N * N);
      graph.recordCopy(between, square(Support.direct(a)));
      graph.recordCopy(square(output), between);
      ((DeviceBuffer) between.owner()).close();
      assertThrows(StreamGemmException.InvalidHandle.class, () -> graph.recordCopy(square(output), between));
      Matrix other = context.deviceMatrix(DType.F32, N, N); // where the closed one would have been
      context.copyAsync(other, square(Support.directNan(N * N))).join();
      graph.runAsync().join();
      assertArrayEquals(a, Support.content(output), 0);
    }
  }

  /** Runs a graph and drops it and an operand. */
  private Job<Void> dropped(Context context, Gate gate, FloatBuffer output, List<WeakReference<Object>> gone) {
    Graph graph = context.graph();
    FloatBuffer input = Support.direct(b);
    graph.record(Gemm.of(gate.matrix(N, N), square(input), square(output)));
    gone.add(new WeakReference<>(graph));
    gone.add(new WeakReference<>(input));
    return graph.runAsync();
  }

  @Test(timeout = Support.LIMIT)
  public void droppedWithARunInFlight() throws Exception {
    try (Context context = Context.open(device); Gate gate = new Gate(a)) {
      FloatBuffer output = Support.directNan(N * N);
      List<WeakReference<Object>> gone = new java.util.ArrayList<>();
      Job<Void> run = dropped(context, gate, output, gone);
      Support.collectUntil("the graph is collected", () -> gone.get(0).get() == null);
      assertTrue("collected while it is read", gone.get(1).get() != null);
      gate.open();
      run.join();
      assertArrayEquals(ab, Support.content(output), 0);
      Support.collectUntil("operands are collected", () -> gone.get(1).get() == null);
    }
  }

  @Test(timeout = Support.LIMIT)
  public void failuresReachTheRunsFuture() {
    if (device.equals("cpu")) return; // it has no injectable faults
    try (Context context = Context.open("sim:h200?fail-launch=1"); Graph graph = context.graph()) {
      FloatBuffer output = Support.directNan(N * N);
      graph.record(Gemm.of(square(Support.direct(a)), square(Support.direct(b)), square(output)));
      Throwable cause = assertThrows(CompletionException.class, () -> graph.runAsync().join()).getCause();
      assertEquals(StreamGemmException.BackendFailure.class, cause.getClass());
      graph.runAsync().join();
      assertArrayEquals(ab, Support.content(output), 0);
    }
  }
}
