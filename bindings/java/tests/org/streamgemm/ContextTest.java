// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.Test;

/** Devices, options, streams, events, plans, failures. */
public class ContextTest {
  @Test
  public void devices() {
    assertTrue(StreamGemm.version(), StreamGemm.version().matches("\\d+\\.\\d+\\.\\d+"));
    Set<String> names = StreamGemm.devices().stream().map(DeviceInfo::name).collect(Collectors.toSet());
    assertTrue(names.toString(), names.contains("cpu") && names.contains("sim:h200"));
    for (BackendInfo backend : StreamGemm.backends())
      assertEquals(backend.toString(), backend.available() == 0, !backend.reason().isEmpty());
    Path missing = Path.of("no-such-plugin.so");
    StreamGemmException refused = assertThrows(StreamGemmException.NoDevice.class, () -> StreamGemm.loadBackend(missing));
    assertTrue(refused.getMessage(), refused.getMessage().contains(missing.toAbsolutePath() + "\": No such file"));
    try (Context context = Context.open("sim:h200")) {
      assertEquals("sim:h200", context.device().name());
      assertTrue(context.device().linkInBytesPerSecond() > 1e9);
      assertEquals(2, context.device().copyEngines());
      long available = context.availableMemory(0);
      assertTrue("available memory is " + available, available > 0 && available <= context.device().memoryBytes());
      assertThrows(StreamGemmException.InvalidArgument.class, () -> context.availableMemory(1));
      StreamGemm.setLog(LogLevel.WARN);
      StreamGemm.setLog(LogLevel.OFF);
    }
    try (Context context =
             Context.open(new ContextOptions().device("sim:h200").computeLanes(2).flags(ContextFlag.CHECK_HAZARDS))) {
      assertEquals(2, context.device().computeLanes());
    }
  }

  @Test
  public void failuresCarryTheLibrarysMessage() {
    StreamGemmException none = assertThrows(StreamGemmException.NoDevice.class, () -> Context.open("cuda:99"));
    assertEquals(Status.NO_DEVICE, none.status());
    assertTrue(none.getMessage(), none.getMessage().contains("cuda"));
    assertTrue(assertThrows(IllegalArgumentException.class, () -> Context.open("sim:h200?no=such"))
                   .getMessage()
                   .contains("no option"));
    assertThrows(StreamGemmException.class, () -> Context.open("\u00e4\ud83d\ude00"));
    assertThrows(NullPointerException.class, () -> Context.open((String) null));
    assertThrows(NullPointerException.class, () -> Context.open(new ContextOptions(), null));
  }

  @Test
  public void everyStatusHasItsException() {
    for (Status status : Status.values()) {
      RuntimeException made = StreamGemmException.of(status, "why");
      assertEquals("why", made.getMessage());
      if (status == Status.CANCELLED) assertEquals(java.util.concurrent.CancellationException.class, made.getClass());
      else assertEquals(status, ((StreamGemmFailure) made).status());
      if (status.value() < 0)
        assertFalse(status + " has no class of its own", made.getClass() == StreamGemmException.class);
      assertEquals(status, Status.of(status.value()));
    }
    assertThrows(IllegalArgumentException.class, () -> Status.of(12345));
  }

  @Test(timeout = Support.LIMIT)
  public void streamsAndEvents() {
    float[] values = Support.integers(64 * 64, 1);
    try (Context context = Context.open("sim:h200"); Gate gate = new Gate(values); Stream first = context.stream(new StreamOptions().priority(1));
         Stream second = context.stream(); Event start = context.event(); Event between = context.event();
         Event end = context.event()) {
      assertEquals(1, first.priority());
      assertEquals(0, first.computeUnits());
      try (Stream limited = context.stream(new StreamOptions().computeUnits(5))) {
        assertEquals(5, limited.computeUnits());
        assertFalse(limited.isPartition());
      }
      assertThrows(StreamGemmException.InvalidArgument.class, () -> context.stream(new StreamOptions().computeUnits(-1)));
      assertTrue(start.hasHappened());
      assertThrows(StreamGemmException.InvalidArgument.class, () -> start.secondsUntil(end));
      assertThrows(StreamGemmException.InvalidArgument.class, () -> context.stream(new StreamOptions().priority(5)));
      Matrix x = Matrix.of(Support.direct(values), 64, 64);
      start.record(first);
      context.gemmAsync(
          Gemm.of(gate.matrix(64, 64), x, context.pinnedMatrix(DType.F32, 64, 64)), new Submit().stream(first));
      between.record(first);
      assertFalse(first.isIdle());
      assertFalse(between.hasHappened());
      assertThrows(IllegalStateException.class, () -> start.secondsUntil(between));
      assertFalse(between.await(Duration.ofMillis(1)));
      assertFalse(first.synchronize(Duration.ofNanos(1)));
      assertThrows(StreamGemmException.InvalidArgument.class, () -> between.await(Duration.ofSeconds(-1)));
      second.waitFor(between);
      Job<Matrix> job = context.gemmAsync(
          Gemm.of(x, x, context.pinnedMatrix(DType.F32, 64, 64)), new Submit().stream(second).priority(-1));
      end.record(second);
      Job<Void> marker = context.marker(new Submit().stream(second));
      gate.open();
      assertTrue(end.await(Duration.ofMinutes(2)));
      assertTrue(between.hasHappened());
      assertTrue(start.secondsUntil(end) > start.secondsUntil(between));
      second.synchronize();
      assertTrue(second.isIdle());
      assertEquals(null, marker.join());
      job.join();
      context.synchronize();
      try (Context other = Context.open("cpu"); Stream foreign = other.stream()) {
        assertThrows(StreamGemmException.InvalidArgument.class, () -> end.record(foreign));
        assertThrows(StreamGemmException.InvalidArgument.class,
            ()
                -> context.gemmAsync(
                    Gemm.of(x, x, context.pinnedMatrix(DType.F32, 64, 64)), new Submit().stream(foreign)));
      }
    }
  }

  @Test
  public void nativeStreamsAndEventsAreWrappedWhereSupported() {
    try (Context context = Context.open("cpu")) {
      assertThrows(StreamGemmException.Unsupported.class, () -> context.wrapStream(1));
      assertThrows(StreamGemmException.Unsupported.class, () -> context.wrapEvent(1));
      assertThrows(StreamGemmException.InvalidArgument.class, () -> context.wrapEvent(0));
      try (Event event = context.event()) {
        assertThrows(StreamGemmException.Unsupported.class, event::address);
      }
    }
  }

  @Test
  public void plans() {
    try (Context context = Context.open("sim:h200")) {
      Matrix shape = Matrix.shape(DType.F32, 4096, 4096);
      try (Plan resident = context.plan(Gemm.of(shape, shape, shape));
           Plan streamed = context.plan(Gemm.of(shape, shape, shape).with(Compute.TF32),
               new PlanOptions().placeA(MemoryKind.PINNED).placeB(MemoryKind.PINNED).placeC(MemoryKind.PINNED))) {
        assertEquals(2.0 * 4096 * 4096 * 4096, resident.prediction().flops(), 0);
        assertEquals(0, resident.prediction().bytesIn());
        assertEquals(2L * 4 * 4096 * 4096, streamed.prediction().bytesIn());
        PlanPrediction p = streamed.prediction();
        assertTrue(p.toString(),
            p.boundSeconds() > 0 && p.predictedSeconds() >= p.boundSeconds()
                && p.serialSeconds() > p.predictedSeconds());
        assertTrue(streamed.describe(PlanFormat.TEXT).contains(p.strategy()));
        assertEquals(streamed.describe(PlanFormat.TEXT), streamed.toString());
        assertTrue(streamed.describe(PlanFormat.JSON).startsWith("{"));
        assertTrue(streamed.describe(PlanFormat.TIMELINE).lines().count() > 2);
      }
      assertThrows(StreamGemmException.OutOfMemory.class,
          ()
              -> context.plan(Gemm.of(shape, shape, shape),
                  new PlanOptions()
                      .memoryLimit(1)
                      .placeA(MemoryKind.PINNED)
                      .placeB(MemoryKind.PINNED)
                      .placeC(MemoryKind.PINNED)));
    }
  }

  @Test
  public void plansRunManyTimes() {
    for (String device : java.util.List.of("cpu", "sim:h200")) try (Context context = Context.open(device)) {
        int n = 50;
        float[] a = Support.integers(n * n, 1);
        float[] b = Support.integers(n * n, 2);
        float[] c = new float[n * n];
        Gemm gemm = Gemm.of(Matrix.of(a, n, n), Matrix.of(b, n, n), Matrix.of(c, n, n));
        try (Plan plan = context.plan(gemm, new PlanOptions().split(Split.M).parts(2))) {
          for (int i = 0; i < 3; ++i) {
            java.util.Arrays.fill(c, Float.NaN);
            plan.runAsync(gemm).join();
            org.junit.Assert.assertArrayEquals(Support.multiply(a, b, n, n, n), c, 0);
          }
          Gemm other = Gemm.of(Matrix.of(a, 25, n), Matrix.of(b, n, n), Matrix.of(c, 25, n));
          assertThrows(StreamGemmException.InvalidArgument.class, () -> plan.runAsync(other));
        }
        context.gemmAsync(gemm, new Submit().plan(new PlanOptions().split(Split.N).parts(2))).join();
      }
  }
}
