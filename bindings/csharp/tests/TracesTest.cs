// SPDX-License-Identifier: Apache-2.0
using System;
using System.IO;
using System.Text;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>A recording: its figures, its files, and one at a time.</summary>
static class TracesTest {
  static readonly GemmContext context = new GemmContext(Harness.Device);
  static readonly Random random = new Random(5);

  public static async Task HoldsWhatRan() {
    float[,] a = Numbers.Floats(random, 40, 40), b = new float[40, 40], c = new float[40, 40];
    string path = Path.Combine(Path.GetTempPath(), "trace" + Guid.NewGuid().ToString("N") + ".json");
    using (var trace = new GemmTrace())
    using (GemmStream one = context.CreateStream(), other = context.CreateStream()) {
      Expect.Throws<BusyException>(() => new GemmTrace());
      using (GemmJob first = context.SubmitGemm(a, a, b, new GemmOptions { Stream = one, Label = "by hand" }))
      using (GemmJob second = context.SubmitGemm(a, a, c, new GemmOptions { Stream = other })) {
        first.Wait();
        second.Wait();
        trace.Stop();
        TraceMetrics figures = trace.Metrics(context);
        Expect.Equal(2L, figures.Jobs, "jobs");
        Expect.Equal(0L, figures.DroppedEvents, "dropped events");
        Expect.True(figures.ComputeSeconds > 0, "compute time");
        Expect.True(figures.BusySeconds <= figures.SpanSeconds, "busy time");
        Expect.Equal(1L, trace.Metrics(one).Jobs, "jobs of a stream");
        Expect.True(first.Progress == 1, "progress");
        Expect.True(context.MemoryKindOf(Matrix.Of(a)) == MemoryKind.Pageable, "memory of an array");
        context.Synchronize();
        ContextMetrics counters = context.Metrics;
        Expect.Equal(counters.JobsSubmitted, counters.JobsCompleted, "completed jobs");
        string text = Library.MetricsText();
        Expect.True(text.Contains("streamgemm_jobs_submitted_total{context=") && text.EndsWith("# EOF\n"), text);
        Expect.True(trace.Overlap(first, first) > 0, "a job runs beside itself");
        Expect.Equal(trace.Overlap(first, second), trace.Overlap(one, other), "overlap");
      }
      trace.Write(path);
      string written = File.ReadAllText(path);
      File.Delete(path);
      Expect.True(written.Contains("by hand"), "label");
      Expect.Equal(written, Encoding.UTF8.GetString(trace.Export(TraceFormat.Json)), "content");
      Expect.Throws<ArgumentException>(() => trace.Write(Path.Combine(Path.GetTempPath(), "trace")));
    }
    new GemmTrace(5).Dispose();
    await Task.Yield();
  }

  /// <summary>An option of sg_submit that no file of the wrappers names.</summary>
  public static void NamesTheRequestOfAJob() {
    float[,] a = Numbers.Floats(random, 40, 40), c = new float[40, 40];
    using (var trace = new GemmTrace())
    using (GemmJob job = context.SubmitGemm(a, a, c, new GemmOptions { TraceId = -2 })) {
      job.Wait();
      trace.Stop();
      Expect.Equal(-2L, job.Statistics.TraceId, "statistics");
      string written = Encoding.UTF8.GetString(trace.Export(TraceFormat.Json));
      Expect.True(written.Contains("\"trace_id\": \"18446744073709551614\""), written);
    }
  }
}
