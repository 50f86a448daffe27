// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;

/** Pipelines: batches from arrays and buffers, places of weights, refused calls. */
@RunWith(Parameterized.class)
public class PipelineTest {
  private static final int N = 12;
  private static final long BYTES = 4L * N * N;

  @Parameterized.Parameters(name = "{0}")
  public static Collection<Object[]> devices() {
    return Arrays.asList(new Object[][] {{"cpu"}, {"sim:h200"}});
  }

  @Parameterized.Parameter public String device;

  private final float[] w = Support.integers(N * N, 1);
  private final float[] v = Support.integers(N * N, 2);

  private Pipeline twoStages(Context context, WeightsPlace place) {
    Pipeline made = context.pipeline(new PipelineOptions().inputBytes(BYTES).depth(2));
    for (float[] weights : List.of(w, v)) {
      Pipeline.Stage stage = made.stage("layer", BYTES, 0, place, Matrix.of(Support.direct(weights), N, N));
      stage.graph().record(Gemm.of(
          stage.input(DType.F32, N, N), stage.weight(0, DType.F32, N, N), stage.output(DType.F32, N, N)));
    }
    return made;
  }

  private float[] expected(float[] x) {
    return Support.multiply(Support.multiply(x, w, N, N, N), v, N, N, N);
  }

  @Test(timeout = Support.LIMIT)
  public void batchesPassThroughTheStages() {
    for (WeightsPlace place : WeightsPlace.values())
      try (Context context = Context.open(device); Pipeline pipeline = twoStages(context, place)) {
        List<Job<Matrix>> jobs = new ArrayList<>();
        List<float[]> results = new ArrayList<>();
        for (int i = 0; i < 6; ++i) {
          results.add(new float[N * N]);
          jobs.add(pipeline.pushAsync(
              Matrix.of(Support.integers(N * N, 10 + i), N, N), Matrix.of(results.get(i), N, N)));
        }
        for (int i = 0; i < 6; ++i) {
          jobs.get(i).join();
          assertArrayEquals(expected(Support.integers(N * N, 10 + i)), results.get(i), 0);
        }
        FloatBuffer out = Support.directNan(N * N);
        pipeline.pushAsync(Matrix.of(Support.direct(w), N, N), Matrix.of(out, N, N), new Submit().priority(1)).join();
        assertArrayEquals(expected(w), Support.content(out), 0);
        PipelineInfo info = pipeline.prepare();
        assertEquals(2, info.stages());
        assertEquals(2, info.depth());
        assertTrue(pipeline.describe(), pipeline.describe().contains("2 stages"));
      }
  }

  @Test(timeout = Support.LIMIT)
  public void layersInAStage() {
    try (Context context = Context.open(device); Pipeline pipeline = context.pipeline(new PipelineOptions().inputBytes(BYTES))) {
      Pipeline.Stage stage = pipeline.stage("layer", BYTES, BYTES, WeightsPlace.AUTO, Matrix.of(Support.direct(w), N, N));
      Layers layers = stage.graph().layers();
      Matrix between = layers.linear(stage.input(DType.F32, N, N), stage.weight(0, DType.F32, N, N),
          stage.workspace(0, DType.F32, N, N), new Linear());
      layers.elementwise(Function.RELU, between, null, stage.output(DType.F32, N, N));
      float[] x = Support.integers(N * N, 5);
      float[] found = new float[N * N];
      pipeline.pushAsync(Matrix.of(x, N, N), Matrix.of(found, N, N)).join();
      float[] expected = Support.multiply(x, w, N, N, N);
      for (int i = 0; i < expected.length; ++i) expected[i] = Math.max(0, expected[i]);
      assertArrayEquals(expected, found, 0);
    }
  }

  @Test(timeout = Support.LIMIT)
  public void wrongUseIsRefused() {
    try (Context context = Context.open(device); Pipeline pipeline = twoStages(context, WeightsPlace.AUTO)) {
      Matrix whole = Matrix.of(new float[N * N], N, N);
      Matrix half = Matrix.of(new float[N * N], N / 2, N);
      assertTrue(assertThrows(StreamGemmException.InvalidArgument.class, () -> pipeline.pushAsync(half, whole))
                     .getMessage()
                     .contains("input"));
      assertThrows(StreamGemmException.InvalidArgument.class, () -> pipeline.pushAsync(whole, half));
      assertThrows(StreamGemmException.InvalidArgument.class,
          () -> pipeline.stage(null, BYTES, 0, WeightsPlace.AUTO, whole));
      pipeline.prepare();
      assertThrows(StreamGemmException.Busy.class, () -> pipeline.stage(null, BYTES, 0, WeightsPlace.AUTO));
      assertThrows(StreamGemmException.InvalidArgument.class,
          () -> context.pipeline(new PipelineOptions().inputBytes(8).depth(-1)));
    }
  }

  private static void refused(String text, org.junit.function.ThrowingRunnable call) {
    Throwable refusal = assertThrows(Throwable.class, call);
    if (refusal instanceof java.util.concurrent.CompletionException) refusal = refusal.getCause();
    assertTrue(refusal.toString(), refusal instanceof StreamGemmException.InvalidArgument && refusal.getMessage().matches(".*(" + text + ").*"));
  }

  @Test(timeout = Support.LIMIT)
  public void theMatricesOfAStageAreRefusedElsewhere() {
    String said = "is an address of a pipeline's stage|is in the device memory of another context";
    try (Context context = Context.open(device); Context other = Context.open("cpu");
        Pipeline pipeline = context.pipeline(new PipelineOptions().inputBytes(BYTES).depth(2))) {
      Pipeline.Stage stage = pipeline.stage(null, BYTES, BYTES, WeightsPlace.AUTO);
      stage.graph().record(Gemm.of(stage.input(DType.F32, N, N), stage.input(DType.F32, N, N), stage.output(DType.F32, N, N)));
      Matrix result = context.deviceMatrix(DType.F32, N, N);
      float[] host = new float[N * N];
      for (Matrix each : List.of(stage.input(DType.F32, N, N), stage.output(DType.F32, N, N), stage.workspace(0, DType.F32, N, N))) {
        refused(said, () -> context.gemm(Gemm.of(each, each, result)));
        refused(said, () -> context.gemmAsync(Gemm.of(each, each, result)).join());
        refused(said, () -> context.copyAsync(each, Matrix.of(host, N, N)).join());
        refused(said, () -> context.layers().axpbyAsync(each, result, new Axpby(), new Submit()).join());
        refused(said, () -> context.custom(new CustomOperation(call -> {}).reads(each).writes(result)));
        refused(said, () -> pipeline.pushAsync(each, result).join());
        refused(said, () -> other.gemmAsync(Gemm.of(each, each, Matrix.of(host, N, N))).join());
      }
    }
  }

  @Test(timeout = Support.LIMIT)
  public void textsWithANulAreRefusedByName() {
    refused("device holds a NUL", () -> Context.open(device + "\0z"));
    refused("label holds a NUL", () -> new Submit().label("a\0b"));
    try (Context context = Context.open(device); Pipeline pipeline = context.pipeline(new PipelineOptions().inputBytes(BYTES))) {
      refused("name holds a NUL", () -> pipeline.stage("a\0b", BYTES, 0, WeightsPlace.AUTO));
    }
  }
}
