// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.List;
import java.util.stream.Collectors;
import org.junit.Test;

/** A context of several devices: where streams, memory and GEMMs are. */
public class SeveralDevicesTest {
  private static final int SIDE = 48;
  private final float[] a = Support.integers(SIDE * SIDE, 1), b = Support.integers(SIDE * SIDE, 2);
  private final float[] product = Support.multiply(a, b, SIDE, SIDE, SIDE);

  private static Matrix host(float[] values) {
    return Matrix.of(values, SIDE, SIDE);
  }

  private static DeviceBuffer allocateOn(Context context, int device) {
    return context.allocateDevice(4 * SIDE * SIDE, new BufferOptions().device(device));
  }

  private static Matrix onDevice(Context context, int device, float[] values) {
    Matrix made = Matrix.of(allocateOn(context, device), 0, DType.F32, SIDE, SIDE);
    if (values != null) context.copyAsync(made, host(values)).join();
    return made;
  }

  private static Submit asked() {
    return new Submit().statistics();
  }

  private static long devicesOf(Job<?> job) {
    job.join();
    return job.statistics().orElseThrow().devices();
  }

  @Test
  public void eachIsDescribed() {
    try (Context context = Context.open("sim:h200x2"); Context one = Context.open("cpu")) {
      assertEquals(List.of("sim:h200x2/0", "sim:h200x2/1"), context.devices().stream().map(DeviceInfo::name).collect(Collectors.toList()));
      assertEquals(2, context.deviceCount());
      assertEquals(context.device().name(), context.deviceInfo(0).name());
      assertEquals(1, one.devices().size());
    }
  }

  @Test
  public void aGemmRunsWhereItsOperandsAre() {
    try (Context context = Context.open("sim:h200x2")) {
      for (int device = 0; device < 2; ++device) {
        Matrix c = onDevice(context, device, null);
        assertEquals(1 << device, devicesOf(context.gemmAsync(Gemm.of(onDevice(context, device, a), onDevice(context, device, b), c), asked())));
        assertArrayEquals(product, context.toFloats(c), 0);
      }
      Matrix c = onDevice(context, 1, null);  // the memory of both is copied
      assertEquals(2, devicesOf(context.gemmAsync(Gemm.of(onDevice(context, 0, a), onDevice(context, 1, b), c), asked())));
      assertArrayEquals(product, context.toFloats(c), 0);
    }
  }

  @Test
  public void aStreamKeepsItsWorkOnItsDevice() {
    try (Context context = Context.open("sim:h200x2")) {
      for (int device = 0; device < 2; ++device)
        try (Stream stream = context.stream(new StreamOptions().device(device))) {
          float[] c = new float[SIDE * SIDE];
          assertEquals(1 << device, devicesOf(context.gemmAsync(Gemm.of(host(a), host(b), host(c)), asked().stream(stream))));
          assertArrayEquals(product, c, 0);
        }
    }
  }

  @Test
  public void aGemmIsSharedOut() {
    try (Context context = Context.open("sim:h200x2")) {
      float[] c = new float[SIDE * SIDE];
      Submit both = asked().plan(new PlanOptions().deviceCount(2));
      assertEquals(3, devicesOf(context.gemmAsync(Gemm.of(host(a), host(b), host(c)), both)));
      assertArrayEquals(product, c, 0);
    }
  }

  @Test
  public void aPlanTellsTheMemoryOnEach() {
    try (Context context = Context.open("sim:h200x2");
        Plan plan = context.plan(Gemm.of(host(a), host(b), host(new float[SIDE * SIDE])), new PlanOptions().deviceCount(2))) {
      assertTrue(Math.min(plan.deviceSize(0), plan.deviceSize(1)) > 0);
      assertEquals(plan.prediction().deviceBytes(), Math.max(plan.deviceSize(0), plan.deviceSize(1)));
    }
  }

  @Test
  public void batchesGoRoundReplicas() {
    PipelineOptions options = new PipelineOptions().inputBytes(4 * SIDE * SIDE).replicas(Replicas.BATCHES);
    try (Context context = Context.open("sim:h200x2"); Pipeline pipeline = context.pipeline(options)) {
      Matrix weights = Matrix.of(Support.direct(b), SIDE, SIDE);
      Pipeline.Stage stage = pipeline.stage(null, 4 * SIDE * SIDE, 0, WeightsPlace.STREAMED, weights);
      stage.graph().record(Gemm.of(
          stage.input(DType.F32, SIDE, SIDE), stage.weight(0, DType.F32, SIDE, SIDE), stage.output(DType.F32, SIDE, SIDE)));
      assertEquals(2, pipeline.prepare().replicas());
      float[][] found = new float[3][SIDE * SIDE];
      List<Matrix> inputs = List.of(host(a), host(b), host(a));
      List<Matrix> outputs = List.of(host(found[0]), host(found[1]), host(found[2]));
      assertEquals(outputs, pipeline.pushBatchesAsync(inputs, outputs).join());
      assertArrayEquals(product, found[0], 0);
      assertArrayEquals(Support.multiply(b, b, SIDE, SIDE, SIDE), found[1], 0);
      assertArrayEquals(product, found[2], 0);
      assertTrue(assertThrows(StreamGemmException.InvalidArgument.class, () -> pipeline.pushBatchesAsync(inputs, List.of()))
          .getMessage().contains("outputs has 0 items, and inputs has 3"));
      assertThrows(StreamGemmException.InvalidArgument.class, () -> pipeline.pushBatchesAsync(List.of(), List.of()));
    }
  }

  @Test
  public void aPipelineHasStagesOnEach() {
    PipelineOptions options = new PipelineOptions().inputBytes(4 * SIDE * SIDE);
    try (Context context = Context.open("sim:h200x2"); Pipeline pipeline = context.pipeline(options)) {
      for (int device = 0; device < 2; ++device) {
        Matrix weights = Matrix.of(Support.direct(b), SIDE, SIDE);
        Pipeline.Stage stage = pipeline.stage(null, 4 * SIDE * SIDE, 0, WeightsPlace.STREAMED, device, weights);
        stage.graph().record(Gemm.of(
            stage.input(DType.F32, SIDE, SIDE), stage.weight(0, DType.F32, SIDE, SIDE), stage.output(DType.F32, SIDE, SIDE)));
      }
      String refused = assertThrows(StreamGemmException.InvalidArgument.class,
          () -> pipeline.stage(null, 64, 0, WeightsPlace.AUTO, 2)).getMessage();
      assertTrue(refused, refused.contains("device is 2"));
      String text = pipeline.describe();
      assertTrue(text, text.contains("device 0: 1 stage,") && text.contains("device 1: 1 stage,"));
      float[] found = new float[SIDE * SIDE];
      pipeline.pushAsync(host(a), host(found)).join();
      assertArrayEquals(Support.multiply(product, b, SIDE, SIDE, SIDE), found, 0);
    }
  }

  @Test
  public void sumsAreOnEach() {
    float[] sum = new float[SIDE * SIDE];
    float[] doubled = new float[SIDE * SIDE];
    for (int i = 0; i < sum.length; ++i) {
      sum[i] = a[i] + b[i];
      doubled[i] = 2 * sum[i];
    }
    try (Context context = Context.open("sim:h200x2")) {
      List<Matrix> both = List.of(onDevice(context, 0, a), onDevice(context, 1, b));
      assertEquals(3, devicesOf(context.allReduceAsync(both, asked())));
      for (Matrix each : both) assertArrayEquals(sum, context.toFloats(each), 0);
      context.allReduce(both);
      for (Matrix each : both) assertArrayEquals(doubled, context.toFloats(each), 0);
      try (Graph graph = context.graph()) {
        context.copyAsync(both.get(0), host(a)).join();
        context.copyAsync(both.get(1), host(b)).join();
        assertEquals(0, graph.recordAllReduce(both));
        graph.runAsync().join();
        for (Matrix each : both) assertArrayEquals(sum, context.toFloats(each), 0);
      }
      Exception of = assertThrows(StreamGemmException.InvalidArgument.class, () -> context.allReduce(List.of()));
      assertTrue(of.getMessage(), of.getMessage().contains("there are 0 operands"));
      of = assertThrows(StreamGemmException.InvalidArgument.class, () -> context.allReduce(List.of(both.get(0), host(a))));
      assertTrue(of.getMessage(), of.getMessage().contains("operands[1]"));
      Matrix shorter = Matrix.of(allocateOn(context, 1), 0, DType.F32, SIDE - 1, SIDE);
      of = assertThrows(StreamGemmException.InvalidArgument.class, () -> context.allReduce(List.of(both.get(0), shorter)));
      assertTrue(of.getMessage(), of.getMessage().contains("must be equal"));
    }
  }

  @Test
  public void otherDevicesAreRefusedByName() {
    try (Context context = Context.open("sim:h200x2")) {
      for (int device : new int[] {2, -2}) {
        Exception of = assertThrows(StreamGemmException.InvalidArgument.class, () -> allocateOn(context, device));
        assertTrue(of.getMessage(), of.getMessage().contains("device is " + device));
        of = assertThrows(StreamGemmException.InvalidArgument.class, () -> context.stream(new StreamOptions().device(device)));
        assertTrue(of.getMessage(), of.getMessage().contains("device is " + device));
        of = assertThrows(StreamGemmException.InvalidArgument.class, () -> context.deviceInfo(device));
        assertTrue(of.getMessage(), of.getMessage().contains("device is " + device));
      }
    }
  }
}
