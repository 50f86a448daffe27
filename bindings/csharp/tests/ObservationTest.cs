// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Failures of jobs: they poison the memory until the program has asked for the outcome, however far the completing thread is.</summary>
static class ObservationTest {
  static readonly GemmContext context = OnDevice.Context;
  static readonly string longText = "page " + new string('7', 300) + " is missing";
  static readonly Matrix x = OnDevice.Place(new double[,] { { 1 } }), y = OnDevice.Place(new double[,] { { 2 } }),
                         c = OnDevice.Place(new double[,] { { 3 } });

  /// <summary>A failed job that was to write c, whose completion has been taken, and which the program has not asked for.</summary>
  static async Task<GemmJob> Failed() {
    using (var open = new ManualResetEventSlim()) {
      Task held = context.CustomAsync(call => open.Wait(), updates: new[] { y });
      GemmJob late = context.SubmitGemm(x, y, c, new GemmOptions { Timeout = TimeSpan.FromMilliseconds(1) });
      Thread.Sleep(5);
      open.Set();
      await held;
      context.Synchronize();
      await context.AxpbyAsync(x, y);  // completions are taken in order
      return late;
    }
  }

  static void Read() => context.Axpby(c, OnDevice.Poisoned(1, 1), new AxpbyOptions { Alpha = 1, Beta = 0 });

  static void Fails(Action ask) => Expect.Throws<DeadlineExceededException>(ask, "the deadline passed");

  public static async Task ReadersFailUntilTheProgramAsks() {
    var ways = new Dictionary<string, Action<GemmJob>> {
      { "Wait", job => Fails(job.Wait) },
      { "WaitAll", job => Fails(() => GemmJob.WaitAll(new[] { job }, Timeout.InfiniteTimeSpan)) },
      { "Status", job => Expect.Equal(Status.DeadlineExceeded, job.Status, "the status") },
      { "Message", job => Expect.True(job.Message.Contains("the deadline passed"), job.Message) },
      { "Completion", job => Fails(() => job.Completion.GetAwaiter().GetResult()) },
      { "await", job => Fails(() => job.GetAwaiter().GetResult()) },
      { "a continuation", job => job.Completion.ContinueWith(_ => { }).Wait() },
    };
    foreach (KeyValuePair<string, Action<GemmJob>> way in ways) {
      (await Failed()).Dispose();
      Expect.Throws<DependencyFailedException>(Read);
      using (GemmJob job = await Failed()) {
        way.Value(job);
        Read();
        Fails(() => job.Completion.GetAwaiter().GetResult());  // its task has the failure, too
      }
    }
  }

  public static async Task ATaskThatWasAskedForBefore() {
    using (var open = new ManualResetEventSlim()) {
      Task held = context.CustomAsync(call => open.Wait(), updates: new[] { y });
      Task late = context.SubmitGemm(x, y, c, new GemmOptions { Timeout = TimeSpan.FromMilliseconds(1) }).Completion;
      Thread.Sleep(5);
      open.Set();
      await held;
      Fails(() => late.GetAwaiter().GetResult());
      Read();
    }
  }

  public static void TasksHaveTheWholeText() {
    Task failing = context.CustomAsync(call => { throw new System.IO.IOException(longText); }, writes: new[] { c });
    Expect.Throws<BackendFailureException>(() => failing.GetAwaiter().GetResult(), "System.IO.IOException: " + longText);
    Read();  // the task is how the program gets it
  }

  sealed class Mute : Exception {
    public override string Message => throw new InvalidOperationException();
  }

  public static void AnExceptionWithoutATextKeepsItsType() {
    Expect.Throws<BackendFailureException>(() => context.Custom(call => { throw new Mute(); }, writes: new[] { c }), "Mute");
  }
}
