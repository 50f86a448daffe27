// SPDX-License-Identifier: Apache-2.0
using System;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Tasks, cancellation, jobs and their order.</summary>
static class TasksTest {
  static readonly GemmContext context = new GemmContext(Harness.Device);
  static readonly Random random = new Random(11);

  // A job that keeps the device busy for a while, on a stream, so that other jobs can be ordered after it.
  static GemmJob Long(GemmStream stream, int size = 1200) {
    var a = new float[size, size];
    return context.SubmitGemm(a, a, new float[size, size], new GemmOptions { Stream = stream });
  }

  public static async Task ManyAtOnce() {
    var work = Enumerable.Range(0, 500).Select(async i => {
      float[,] a = Numbers.Floats(new Random(i), 1 + i % 13, 1 + i % 7), b = Numbers.Floats(new Random(-i), 1 + i % 7, 1 + i % 11);
      Numbers.Same(Numbers.Multiply(a, b), await context.MultiplyAsync(a, b), "GEMM " + i);
    });
    await Task.WhenAll(work);
  }

  public static async Task ContinuationsRunOnTheThreadPool() {
    for (int i = 0; i < 50; ++i) {
      float[,] a = Numbers.Floats(random, 40, 40);
      string name = await context.GemmAsync(a, a, new float[40, 40])
        .ContinueWith(_ => Thread.CurrentThread.Name, CancellationToken.None, TaskContinuationOptions.ExecuteSynchronously, TaskScheduler.Default);
      Expect.True(name != "StreamGemm", "a continuation is not on the thread of the completions");
    }
  }

  public static void ABlockedContinuationBlocksNoOther() {
    using (GemmStream stream = context.CreateStream())
    using (var gate = new ManualResetEventSlim()) {
      float[,] a = Numbers.Floats(random, 8, 8);
      GemmJob slow = Long(stream);
      Task blocked = Task.Run(() => WaitAfter(slow.Completion, gate));  // not here: the job may have completed already
      slow.Wait();
      Expect.True(context.GemmAsync(a, a, new float[8, 8]).Wait(TimeSpan.FromMinutes(5)), "another job's task completes");
      gate.Set();
      blocked.Wait();
    }
  }

  static async Task WaitAfter(Task job, ManualResetEventSlim gate) {
    await job.ConfigureAwait(false);
    gate.Wait();
  }

  public static void CancelledBeforehand() {
    float[,] a = Numbers.Floats(random, 2, 2), c = { { 7, 7 }, { 7, 7 } };
    Task task = context.GemmAsync(a, a, c, null, new CancellationToken(true));
    Expect.True(task.IsCanceled, "the task is canceled at once");
    Expect.Equal(7f, c[0, 0], "C");
    Expect.Throws<OperationCanceledException>(() => task.Wait());
  }

  public static void CancelledWhileWaiting() {
    using (GemmStream stream = context.CreateStream())
    using (var source = new CancellationTokenSource())
    using (var gate = new Gate(1)) {
      GemmJob before = gate.Job(context, stream);
      float[,] a = Numbers.Floats(random, 4, 4), c = new float[4, 4];
      Task[] tasks = Enumerable.Range(0, 20)
        .Select(i => context.GemmAsync(a, a, new float[4, 4], new GemmOptions { Stream = stream }, source.Token)).ToArray();
      Task kept = context.GemmAsync(a, a, c, new GemmOptions { Stream = stream });
      source.Cancel();
      gate.Open();
      Expect.Throws<AggregateException>(() => Task.WaitAll(tasks));
      Expect.True(tasks.All(t => t.IsCanceled), "all are canceled");
      try {
        tasks[3].GetAwaiter().GetResult();
      } catch (OperationCanceledException error) {
        Expect.Equal(source.Token, error.CancellationToken, "token");
      }
      kept.Wait();
      Numbers.Same(Numbers.Multiply(a, a), c, "the job behind");
      before.Wait();
    }
  }

  // A token canceled by a timer drops every kind of job that has not started.
  public static void ATimeLimitReachesTheWork() {
    using (GemmStream stream = context.CreateStream())
    using (var source = new CancellationTokenSource())
    using (var cancelled = new ManualResetEventSlim())
    using (var gate = new Gate(1)) {
      GemmJob before = gate.Job(context, stream);
      source.Token.Register(cancelled.Set);  // callbacks run in reverse order of registration
      var options = new GemmOptions { Stream = stream };
      float[,] a = Numbers.Floats(random, 4, 4), c = { { 7 } }, one = { { 1 } }, copy = { { 7 } };
      Task[] tasks = {
        context.GemmAsync(one, one, c, options, source.Token), context.CopyAsync(one, copy, options, source.Token),
        context.MultiplyAsync(a, a, options, source.Token),
        context.GemmGroupAsync(new[] { new GemmItem(a, a, new float[4, 4]) }, options, source.Token),
      };
      source.CancelAfter(1);
      cancelled.Wait();
      gate.Open();
      Expect.Throws<AggregateException>(() => Task.WaitAll(tasks));
      Expect.True(tasks.All(t => t.IsCanceled), "all are canceled");
      before.Wait();
      Expect.Equal(7f, c[0, 0], "C");
      Expect.Equal(7f, copy[0, 0], "the copy");
    }
  }

  public static void ALabelBeginsTheMessageOfAFailure() {
    using (GemmStream stream = context.CreateStream())
    using (var gate = new Gate(1)) {
      GemmJob before = gate.Job(context, stream);
      float[,] two = { { 2 } }, c = { { 7 } };
      var options = new GemmOptions { Stream = stream, Timeout = TimeSpan.FromMilliseconds(1), Label = "q \u00b7 k" };
      Task late = context.GemmAsync(two, two, c, options);
      using (GemmJob job = context.SubmitGemm(two, two, c, options)) {
        Expect.Equal("q \u00b7 k", job.Label, "the label");
        Thread.Sleep(20);
        gate.Open();
        var failure = Expect.Throws<DeadlineExceededException>(() => late.GetAwaiter().GetResult());
        Expect.True(failure.Message.Contains("job \"q \u00b7 k\": the deadline passed"), failure.Message);
        Expect.Throws<DeadlineExceededException>(() => job.Wait());
        Expect.Equal("q \u00b7 k", job.Label, "the label later");
      }
      before.Wait();
      Expect.Equal("", before.Label, "no label");
      var most = new GemmOptions { Label = new string('a', 62) + "\u20ac" };
      using (GemmJob job = context.SubmitGemm(two, two, c, most)) {
        Expect.Equal(new string('a', 62), job.Label, "a long label");
        job.Wait();
      }
      Expect.Throws<ArgumentException>(() => { most.Label = "a\0b"; }, "Label");
    }
  }

  public static void ADeadlineDropsJobsThatHaveNotStarted() {
    using (GemmStream stream = context.CreateStream())
    using (var gate = new Gate(1)) {
      GemmJob before = gate.Job(context, stream);
      float[,] two = { { 2 } }, c = { { 7 } };
      Task late = context.GemmAsync(two, two, c, new GemmOptions { Stream = stream, Timeout = TimeSpan.FromMilliseconds(1) });
      Thread.Sleep(20);
      gate.Open();
      Expect.Throws<DeadlineExceededException>(() => late.GetAwaiter().GetResult());
      Expect.True(new TimeoutException().GetType().IsAssignableFrom(typeof(DeadlineExceededException)), "a TimeoutException");
      before.Wait();
      Expect.Equal(7f, c[0, 0], "C");
      context.GemmAsync(two, two, c, new GemmOptions { Timeout = TimeSpan.FromHours(1) }).Wait();
      Expect.Equal(4f, c[0, 0], "C in time");
      Expect.Throws<ArgumentException>(() => { context.GemmAsync(two, two, c, new GemmOptions { Timeout = TimeSpan.Zero }); }, "Timeout");
    }
  }

  public static void CancellingRacesWithCompletion() {
    float[,] a = Numbers.Floats(random, 3, 3), expected = Numbers.Multiply(a, a);
    int cancelled = 0;
    for (int i = 0; i < 2000; ++i) {
      using (var source = new CancellationTokenSource()) {
        var c = new float[3, 3];
        Task task = context.GemmAsync(a, a, c, null, source.Token);
        if (i % 3 == 0) Thread.SpinWait(i);
        source.Cancel();
        try {
          task.Wait();
          Numbers.Same(expected, c, "c");
        } catch (AggregateException error) {
          Expect.True(task.IsCanceled, "canceled, not failed: " + error);
          ++cancelled;
        }
      }
    }
    Console.WriteLine("     " + cancelled + " of 2000 were cancelled in time");
  }

  public static async Task JobsCanBeQueriedAndOrdered() {
    using (GemmStream stream = context.CreateStream(new StreamOptions { Priority = 1 })) {
      Expect.Equal(1, stream.Priority, "priority");
      float[,] a = Numbers.Floats(random, 6, 6), b = new float[6, 6], c = new float[6, 6];
      GemmJob slow = Long(stream);
      GemmJob first = context.SubmitGemm(a, a, b, new GemmOptions { After = new[] { slow }, Flags = SubmitFlags.Untracked });
      GemmJob second = context.SubmitGemm(b, a, c, new GemmOptions { After = new[] { first, slow } });
      await second;
      Expect.True(first.IsCompleted && slow.IsCompleted, "those before have ended");
      Numbers.Same(Numbers.Multiply(Numbers.Multiply(a, a), a), c, "c");
      Expect.True(GemmJob.WaitAll(new[] { slow, first, second }, TimeSpan.FromSeconds(1)), "all");
      Expect.Equal(0, GemmJob.WaitAny(new[] { slow, first }, TimeSpan.Zero), "any");
      Expect.Equal(Status.Ok, second.Status, "status");
      Expect.Equal("", second.Message, "message");
      Expect.Equal(false, second.Cancel(), "too late to cancel");
      Expect.Equal(2.0 * 6 * 6 * 6, second.Statistics.Flops, "flops");
      Expect.True(second.Statistics.Commands >= 1 && second.Statistics.Strategy.Length > 0, "statistics");
      foreach (GemmJob job in new[] { slow, first, second }) job.Dispose();
    }
  }

  public static void WaitsTimeOut() {
    using (GemmStream stream = context.CreateStream())
    using (var gate = new Gate(1)) {
      using (GemmJob job = gate.Job(context, stream)) {
        Expect.True(!job.Wait(TimeSpan.Zero), "it runs");
        Expect.True(GemmJob.WaitAny(new[] { job }, TimeSpan.FromTicks(1)) < 0, "none has ended");
        Expect.Throws<ArgumentOutOfRangeException>(() => job.Wait(TimeSpan.FromSeconds(-5)), "timeout");
        gate.Open();
        Expect.True(job.Wait(TimeSpan.MaxValue), "a very long wait");
      }
    }
  }

  public static void AJobIsCancelled() {
    using (GemmStream stream = context.CreateStream())
    using (var gate = new Gate(1)) {
      GemmJob before = gate.Job(context, stream);
      float[,] a = Numbers.Floats(random, 4, 4), b = new float[4, 4];
      GemmJob dropped = context.SubmitGemm(a, a, b, new GemmOptions { Stream = stream });
      GemmJob reader = context.SubmitGemm(b, a, new float[4, 4]);
      Expect.True(dropped.Cancel(), "it has not begun");
      gate.Open();
      Expect.Throws<OperationCanceledException>(() => dropped.Wait());
      Expect.Throws<OperationCanceledException>(() => dropped.Completion.Wait());
      Expect.Throws<DependencyFailedException>(() => reader.Completion.Wait());
      Expect.True(dropped.Completion.IsCanceled, "canceled");
      Expect.Equal(Status.Cancelled, dropped.Status, "status");
      before.Wait();
    }
  }

  public static void AJobLimitRefusesOrWaits() {
    foreach (WhenFull full in new[] { WhenFull.Refuse, WhenFull.Block })
      using (var limited = new GemmContext(new ContextOptions { Device = Harness.Device, JobLimit = 4, WhenFull = full }))
      using (GemmStream stream = limited.CreateStream())
      using (var gate = new Gate(1)) {
        GemmJob first = gate.Job(limited, stream);
        if (full == WhenFull.Block) gate.Open();
        var large = new float[500, 500];
        var tasks = Enumerable.Range(0, 12)
          .Select(i => limited.GemmAsync(large, large, new float[500, 500], new GemmOptions { Stream = stream })).ToArray();
        Task all = Task.WhenAll(tasks);
        gate.Open();
        first.Wait();
        if (full == WhenFull.Refuse) Expect.Throws<BusyException>(() => all.Wait());
        else all.Wait();
        Expect.Equal(full == WhenFull.Refuse ? 3 : 12, tasks.Count(t => t.Status == TaskStatus.RanToCompletion), "those below the limit run");
      }
  }
}
