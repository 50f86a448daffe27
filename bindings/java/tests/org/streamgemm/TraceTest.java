// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collection;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;

/** A recording: its figures, its files, and one at a time. */
@RunWith(Parameterized.class)
public class TraceTest {
  private static final int N = 48;

  @Parameterized.Parameters(name = "{0}")
  public static Collection<Object[]> devices() {
    return Arrays.asList(new Object[][] {{"cpu"}, {"sim:h200"}});
  }

  @Parameterized.Parameter public String device;

  private static Gemm gemm() {
    Matrix input = Matrix.of(Support.direct(Support.integers(N * N, 1)), N, N);
    return Gemm.of(input, input, Matrix.of(Support.directNan(N * N), N, N));
  }

  @Test(timeout = Support.LIMIT)
  public void holdsWhatRan() throws Exception {
    Path file = Files.createTempFile("trace", ".json");
    try (Context context = Context.open(device); Stream one = context.stream(); Stream other = context.stream();
        Trace trace = Trace.start()) {
      assertThrows(StreamGemmException.Busy.class, Trace::start);
      Job<?> first = context.gemmAsync(gemm(), new Submit().stream(one).label("by hand"));
      Job<?> second = context.gemmAsync(gemm(), new Submit().stream(other));
      first.join();
      second.join();
      trace.stop();
      TraceMetrics figures = trace.metrics(context);
      assertEquals(2, figures.jobs());
      assertEquals(0, figures.droppedEvents());
      assertTrue(figures.computeSeconds() > 0);
      assertTrue(figures.busySeconds() <= figures.spanSeconds());
      assertEquals(1, trace.metrics(one).jobs());
      assertEquals(1, first.progress(), 0);
      context.synchronize();
      assertEquals(2, context.metrics().jobsCompleted());
      Matrix heap = Matrix.of(new float[4], 2, 2);
      assertEquals(MemoryKind.PAGEABLE, context.memoryKind(heap));
      MemoryKind expected = device.equals("cpu") ? MemoryKind.DEVICE : MemoryKind.PAGEABLE;
      assertEquals(expected, context.memoryKind(Matrix.of(Support.directNan(4), 2, 2)));
      String text = StreamGemm.metricsText();
      assertTrue(text, text.contains("streamgemm_jobs_submitted_total{context="));
      assertTrue(text, text.endsWith("# EOF\n"));
      assertTrue(trace.overlap(one, one) > 0);
      assertEquals(trace.overlap(one, one), trace.overlap(first, first), 0);
      assertEquals(trace.overlap(one, other), trace.overlap(first, second), 0);
      assertTrue(trace.overlap(one, other) <= trace.overlap(one, one));
      trace.write(file);
      String written = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
      assertTrue(written.contains("by hand"));
      assertEquals(written, new String(trace.export(TraceFormat.JSON), StandardCharsets.UTF_8));
      assertThrows(StreamGemmException.InvalidArgument.class, () -> trace.write(file.resolveSibling("trace")));
      trace.write(file, TraceFormat.TEXT);
      assertTrue(new String(Files.readAllBytes(file), StandardCharsets.UTF_8).contains("parallelism"));
    } finally {
      Files.delete(file);
    }
    Trace.start(new TraceOptions().maxEvents(5)).close();
  }

  /** An option of sg_submit that no file of the wrappers names. */
  @Test(timeout = Support.LIMIT)
  public void namesTheRequestOfAJob() {
    try (Context context = Context.open(device); Trace trace = Trace.start()) {
      Job<?> job = context.gemmAsync(gemm(), new Submit().traceId(-2).statistics());
      job.join();
      trace.stop();
      assertEquals(-2, job.statistics().get().traceId());
      String written = new String(trace.export(TraceFormat.JSON), StandardCharsets.UTF_8);
      assertTrue(written, written.contains("\"trace_id\": \"18446744073709551614\""));
    }
  }
}
