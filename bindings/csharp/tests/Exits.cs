// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Exits with work in flight, in the way named by the second argument. usage: Exits.exe DEVICE WAY</summary>
static class Exits {
  static readonly List<object> kept = new List<object>();
  static readonly List<GemmJob> jobs = new List<GemmJob>();

  static int Main(string[] args) {
    if (args[1].EndsWith("unload")) {  // of a domain, which the process outlives
      AppDomain domain = AppDomain.CreateDomain("second");
      domain.ExecuteAssembly(typeof(Exits).Assembly.Location, new[] { args[0], args[1].Replace("unload", "return") });
      AppDomain.Unload(domain);
      return 0;
    }
    var context = new GemmContext(args[0]);
    if (args[1].StartsWith("custom-")) return WithFunctions(context, args[1].Substring(7));
    int size = args[0] == "cpu" ? 1500 : 400;
    Task last = null;
    for (int i = 0; i < 40; ++i) {
      var a = new float[size, size];
      last = context.GemmAsync(a, a, new float[size, size]);
      jobs.Add(context.SubmitGemm(a, a, new float[size, size]));
      kept.Add(context.AllocatePinned<float>(1000));
    }
    last.ContinueWith(_ => Thread.Sleep(Timeout.Infinite));
    Console.WriteLine(last.IsCompleted ? "nothing is in flight" : "in flight");
    Console.Out.Flush();
    switch (args[1]) {
      case "return": return 0;
      case "exit": Environment.Exit(0); break;
      case "dispose": context.Dispose(); return 0;
      case "throw": throw new InvalidOperationException("on purpose");
      case "waiting":  // other threads wait for the work meanwhile
        GemmJob job = context.SubmitGemm(new float[2, 2], new float[2, 2], new float[2, 2], new GemmOptions { After = jobs });
        foreach (Action wait in new Action[] { () => last.Wait(), () => job.Wait(), () => GemmJob.WaitAll(jobs, Timeout.InfiniteTimeSpan),
                                               () => job.Completion.Wait(), context.Synchronize })
          new Thread(() => wait()) { IsBackground = true }.Start();
        Thread.Sleep(20);
        return 0;
      case "submitting":  // other threads go on to submit
        var y = new float[50, 50];
        foreach (Action submit in new Action[] { () => context.GemmAsync(y, y, new float[50, 50]).Wait(), () => context.Gemm(y, y, new float[50, 50]),
                                                 () => context.SubmitGemm(y, y, new float[50, 50]).Wait(), () => new GemmContext(args[0]).Dispose(),
                                                 () => context.GemmAsync(y, y, new float[50, 50]).GetAwaiter().GetResult() })
          new Thread(() => {
            for (;;) submit();
          }) { IsBackground = true }.Start();
        Thread.Sleep(50);
        return 0;
    }
    return 2;
  }

  // Functions that take a while are in flight, and run.
  static int WithFunctions(GemmContext context, string way) {
    var running = new ManualResetEventSlim();
    for (int i = 0; i < 4; ++i) {
      var sum = context.AllocatePinned<double>(1);
      kept.Add(sum);
      for (int j = 0; j < 200; ++j)
        context.CustomAsync(call => {
          running.Set();
          Thread.Sleep(5);
          call.Span<double>(0)[0] += new byte[1000].Length;
        }, updates: new[] { Matrix.Of(sum.Memory, 1, 1) });
    }
    Matrix other = Matrix.Of(context.AllocatePinned<double>(1).Memory, 1, 1);
    running.Wait();
    Console.WriteLine("in flight");
    Console.Out.Flush();
    switch (way) {
      case "return": return 0;
      case "exit": Environment.Exit(0); break;
      case "dispose": context.Dispose(); return 0;
      case "throw": throw new InvalidOperationException("on purpose");
      case "inside":
        context.Custom(call => Environment.Exit(0), updates: new[] { other });
        break;
      case "waiting":
        for (int i = 0; i < 3; ++i)
          new Thread(() => {
            for (;;) context.Custom(call => Thread.Sleep(1), updates: new[] { other });
          }) { IsBackground = true }.Start();
        Thread.Sleep(20);
        return 0;
    }
    return 2;
  }
}
