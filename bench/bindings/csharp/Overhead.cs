// SPDX-License-Identifier: Apache-2.0
using System;
using System.Globalization;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>The cost of one asynchronous GEMM of 4 x 4 matrices in C#: overhead.c in another language. Prints one line of JSON.
/// usage: overhead.exe CALLS</summary>
static class Overhead {
  const int N = 4, Block = 1000, GateSide = 512, WarmUp = 20, Pipeline = 64;

  static GemmContext context;
  static GemmOptions inOrder;
  static Matrix a, b, gateIn, gateOut;
  static readonly float[][] results = new float[Block][];
  static readonly Matrix[] c = new Matrix[Block];

  static T[] Ones<T>(int count, T one) {
    var all = new T[count];
    for (int i = 0; i < count; ++i) all[i] = one;
    return all;
  }

  static void Prepare() {
    a = Matrix.Of(Ones(N * N, 1f), N, N);
    b = Matrix.Of(Ones(N * N, 1f), N, N);
    for (int i = 0; i < Block; ++i) {
      results[i] = new float[N * N];
      c[i] = Matrix.Of(results[i], N, N);
    }
    gateIn = Matrix.Of(Ones(GateSide * GateSide, 1.0), GateSide, GateSide);
    gateOut = Matrix.Of(new double[GateSide * GateSide], GateSide, GateSide);
  }

  /// <summary>Calls that the worker cannot start yet, behind a GEMM of some milliseconds: only the submission is timed.</summary>
  static void RunBehindGate(int blocks, double[] cost) {
    var tasks = new Task[Block + 1];
    for (int block = 0; block < blocks; ++block) {
      tasks[Block] = context.GemmAsync(gateIn, gateIn, gateOut, inOrder);
      for (int i = 0; i < Block; ++i) {
        double before = MonotonicClock.Microseconds();
        tasks[i] = context.GemmAsync(a, b, c[i], inOrder);
        cost[block * Block + i] = MonotonicClock.Microseconds() - before;
      }
      Task.WaitAll(tasks);
    }
  }

  /// <summary>Calls that run at once, some in flight together. Microseconds for each, start to completion.</summary>
  static double RunPipelined(int calls) {
    var tasks = new Task[Pipeline];
    double start = MonotonicClock.Microseconds();
    for (int done = 0; done < calls; done += Pipeline) {
      for (int i = 0; i < Pipeline; ++i) tasks[i] = context.GemmAsync(a, b, c[i]);
      Task.WaitAll(tasks);
    }
    return (MonotonicClock.Microseconds() - start) / calls;
  }

  /// <summary>Calls that are waited for one by one.</summary>
  static double RunLone(int calls, double[] cost, Action call) {
    for (int i = 0; i < calls; ++i) {
      double before = MonotonicClock.Microseconds();
      call();
      cost[i] = MonotonicClock.Microseconds() - before;
    }
    return Median(cost, calls);
  }

  static double Median(double[] values, int count) {
    Array.Sort(values, 0, count);
    return values[count / 2];
  }

  static int Main(string[] arguments) {
    int blocks = (arguments.Length > 0 ? int.Parse(arguments[0]) : 100000) / Block, calls = blocks * Block, lone = calls / 10;
    var cost = new double[Math.Max(blocks, WarmUp) * Block];
    using (context = new GemmContext(new ContextOptions { Device = "cpu", ComputeLanes = 1 }))  // the caller keeps a core for itself
    using (GemmStream stream = context.CreateStream()) {
      inOrder = new GemmOptions { Stream = stream };
      Prepare();
      RunBehindGate(WarmUp, cost);
      RunBehindGate(blocks, cost);
      double call = Median(cost, calls), pipelined = RunPipelined(calls / Pipeline * Pipeline);
      double future = RunLone(lone, cost, () => context.GemmAsync(a, b, c[0]).Wait());
      double blocking = RunLone(lone, cost, () => context.Gemm(a, b, c[0]));
      string runtime = Type.GetType("Mono.Runtime") != null ? "Mono" : ".NET " + Environment.Version.Major;
      Console.WriteLine(string.Format(CultureInfo.InvariantCulture,
        "{{\"language\": \"C#, {5}\", \"calls\": {0}, \"call_us\": {1:0.000}, \"pipelined_us\": {2:0.000}, \"lone_us\": {3:0.000}, \"blocking_us\": {4:0.000}}}",
        calls, call, pipelined, future, blocking, runtime));
    }
    foreach (float x in results[Block - 1])
      if (x != N) return 1;
    return 0;
  }
}
