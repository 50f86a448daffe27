// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Custom operations, in the device's memory.</summary>
static class CustomTest {
  static readonly GemmContext context = OnDevice.Context;

  static Matrix Place(double[,] values) => OnDevice.Place(values);

  static void Holds(double[,] expected, Matrix got, string what) => OnDevice.Holds(expected, got, what);

  /// <summary>The function of y = factor * x.</summary>
  static Action<CustomCall> Scale(double factor) => call => {
    Span<double> x = call.Span<double>(0), y = call.Span<double>(1);
    for (int i = 0; i < x.Length; ++i) y[i] = factor * x[i];
  };

  static Matrix[] These(params Matrix[] all) => all;

  public static async Task BetweenOtherJobs() {
    Matrix x = Place(new double[,] { { 1, 2 }, { 3, 4 } }), y = OnDevice.Poisoned(2, 2), z = OnDevice.Poisoned(2, 2);
    Task first = context.AxpbyAsync(x, y, new AxpbyOptions { Alpha = 2, Beta = 0 });
    Task second = context.CustomAsync(Scale(10), These(y), These(z));
    Task third = context.AxpbyAsync(z, x, new AxpbyOptions { Alpha = 1, Beta = 0 });
    await context.CustomAsync(call => call.Span<double>(0)[0] += 1, updates: These(x));
    await Task.WhenAll(first, second, third);
    Holds(new double[,] { { 21, 40 }, { 60, 80 } }, x, "a chain");
    context.Custom(Scale(-1), These(x), These(y));
    Holds(new double[,] { { -21, -40 }, { -60, -80 } }, y, "blocking");
  }

  public static void TheCallDescribesItsOperands() {
    Matrix x = context.AllocateDevice(96).Matrix(4, 6, DType.F32).Block(1, 1, 2, 3);
    PinnedMemory<double> memory = context.AllocatePinned<double>(2);
    string found = null;
    context.Custom(call => {
      call.Span<double>(1).Fill(5);
      found = call.NativeStream + " " + call.Count + " " + call.Size(0) + " " + call.Size(1) + " " + call.Span<float>(0).Length + " " +
              (call.Address(0) != IntPtr.Zero);
      Expect.Throws<IndexOutOfRangeException>(() => call.Span<byte>(2).Clear());
    }, These(x), updates: These(Matrix.Of(memory.Memory, 1, 2)), options: new CustomOptions { Seconds = 1e-6, ComputeUnits = 1 });
    Expect.Equal("0 2 36 16 9 True", found, "the call");
    Expect.Equal(5.0, memory.Memory.Span[1], "pinned memory");
  }

  public static async Task ArraysArePinned() {
    double[,] x = { { 1, 2 } }, y = { { 7, 7 } };
    Task job = context.CustomAsync(call => {
      GC.Collect();
      Scale(3)(call);
    }, These(x), These(y));
    Memory.Collect();
    await job;
    Expect.Equal("3 6", y[0, 0] + " " + y[0, 1], "an array");
  }

  public static void AnExceptionFailsTheJobAndThoseThatReadItsResult() {
    Matrix x = Place(new double[,] { { 1 } }), y = Place(new double[,] { { 1 } });
    var submitted = new ManualResetEventSlim();
    Task failing = context.CustomAsync(call => {
      submitted.Wait();
      throw new System.IO.IOException("no such \u00fcnit");
    }, These(x), These(y));
    Task reader = context.AxpbyAsync(y, x);
    submitted.Set();
    Expect.Throws<BackendFailureException>(() => failing.GetAwaiter().GetResult(), "System.IO.IOException: no such \u00fcnit");
    Expect.Throws<DependencyFailedException>(() => reader.GetAwaiter().GetResult());
    Expect.Throws<BackendFailureException>(() => context.Custom(call => { throw new Exception(new string('\u20ac', 3000)); }, writes: These(y)),
                                           "System.Exception: \u20ac\u20ac");
    Expect.Throws<OutOfMemoryException>(() => context.Custom(call => { throw new OutOfMemoryException("on purpose"); }, writes: These(y)));
    context.Custom(call => call.Span<double>(0).Fill(5), writes: These(y));
    Holds(new double[,] { { 5 } }, y, "written anew");
  }

  public static void WrongCallsNameTheArgument() {
    Matrix x = Place(new double[,] { { 1, 2 } });
    Action<CustomCall> nothing = call => { };
    Expect.Throws<ArgumentNullException>(() => context.Custom(null, These(x)), "function");
    Expect.Throws<ArgumentException>(() => context.Custom(nothing), "there are 0 operands");
    Expect.Throws<ArgumentException>(() => context.Custom(nothing, These(x, x, x), updates: These(x, x)), "there are 5 operands");
    Expect.Throws<ArgumentException>(() => context.Custom(nothing, These(x), These(x.Block(0, 0, 0, 2))), "writes[0] is 0 x 2");
    Expect.Throws<ArgumentException>(() => context.Custom(nothing, These(x), These(x.Block(0, 1, 1, 1))), "operands[1]");
    Expect.Throws<ArgumentException>(() => context.Custom(nothing, updates: These(Matrix.Of(new ReadOnlyMemory<double>(new double[1]), 1, 1))),
                                     "updates[0] is read-only");
    Expect.Throws<ArgumentException>(() => context.Custom(nothing, These(x), options: new CustomOptions { Seconds = -1 }), "options.Seconds is -1");
    Expect.Throws<ArgumentException>(() => context.Custom(nothing, These(x), options: new CustomOptions { ComputeUnits = -2 }),
                                     "options.ComputeUnits is -2");
  }

  public static async Task ACancelledOneIsNotCalled() {
    Matrix x = Place(new double[,] { { 1 } });
    var open = new ManualResetEventSlim();
    var cancel = new CancellationTokenSource();
    int calls = 0;
    Task first = context.CustomAsync(call => open.Wait(), updates: These(x));
    Task second = context.CustomAsync(call => Interlocked.Increment(ref calls), updates: These(x), cancellationToken: cancel.Token);
    cancel.Cancel();
    open.Set();
    await first;
    Expect.Throws<OperationCanceledException>(() => second.GetAwaiter().GetResult());
    Expect.Equal(0, calls, "calls");
    Expect.True(context.CustomAsync(call => { }, These(x), cancellationToken: cancel.Token).IsCanceled, "cancelled before the call");
  }

  public static async Task RecordedInAGraph() {
    Matrix x = Place(new double[,] { { 1, 2 } }), y = OnDevice.Poisoned(1, 2), sum = Place(new double[1, 2]);
    GemmGraph graph = context.CreateGraph();
    Expect.Equal(0, graph.RecordCustom(Scale(2), These(x), These(y)), "index");
    graph.RecordAxpby(y, sum);
    Expect.Equal(2, graph.RecordCustom(Scale(1), These(sum), These(x)), "index");
    var runs = new List<Task>();
    for (int i = 0; i < 3; ++i) {
      runs.Add(graph.RunAsync());
      Memory.Collect();
    }
    graph.Dispose();  // its runs in flight continue
    Memory.Collect();
    await Task.WhenAll(runs);
    Holds(new double[,] { { 18, 36 } }, sum, "after three runs");
  }

  [MethodImpl(MethodImplOptions.NoInlining)]
  static GemmPipeline TwoStages(int n) {
    GemmPipeline pipeline = context.CreatePipeline(new PipelineOptions { InputBytes = 4 * n, Depth = 3 });
    for (int s = 1; s <= 2; ++s) {
      int add = s;
      GemmStage stage = pipeline.AddStage(4 * n);
      stage.Graph.RecordCustom(call => {
        Span<float> from = call.Span<float>(0), to = call.Span<float>(1);
        for (int i = 0; i < from.Length; ++i) to[i] = 2 * from[i] + add;
      }, These(stage.Input(1, n)), These(stage.Output(1, n)));
    }
    return pipeline;
  }

  public static async Task InTheStagesOfAPipeline() {
    const int n = 8;
    GemmPipeline pipeline = TwoStages(n);
    var tasks = new List<Task>();
    var results = new List<float[,]>();
    for (int i = 0; i < 20; ++i) {
      if (i % 5 == 0) Memory.Collect();  // the stages are no one's but the pipeline's
      var x = new float[1, n];
      for (int j = 0; j < n; ++j) x[0, j] = i;
      results.Add(new float[1, n]);
      tasks.Add(pipeline.PushAsync(x, results[i]));
    }
    pipeline.Dispose();  // its batches continue
    Memory.Collect();
    await Task.WhenAll(tasks);
    for (int i = 0; i < 20; ++i)
      foreach (float value in results[i]) Expect.Equal(2 * (2 * i + 1) + 2f, value, "batch " + i);
  }

  public static void ManyThreadsAndGarbageCollections() {
    int calls = 0;
    var failures = new List<Exception>();
    var threads = Enumerable.Range(0, 4).Select(t => new Thread(() => {
      try {
        Matrix sum = Place(new double[1, 1]);
        Task last = null;
        for (int i = 0; i < 200; ++i) {
          var garbage = new byte[10000];  // captured
          last = context.CustomAsync(call => {
            call.Span<double>(0)[0] += garbage.Length / 10000;
            Interlocked.Increment(ref calls);
          }, updates: These(sum));
          if (i % 50 == 0) Memory.Collect();
          if (i % 40 == 0) context.Custom(call => { }, updates: These(sum));
        }
        last.Wait();
        Holds(new double[,] { { 200 } }, sum, "sum");
      } catch (Exception error) {
        lock (failures) failures.Add(error);
      }
    })).ToList();
    threads.ForEach(thread => thread.Start());
    threads.ForEach(thread => thread.Join());
    Expect.True(failures.Count == 0, string.Join("\n", failures));
    Expect.Equal(800, calls, "calls");
  }

  [MethodImpl(MethodImplOptions.NoInlining)]
  static List<WeakReference> Used(Matrix x) {
    var seen = new List<WeakReference>();
    for (int i = 0; i < 4; ++i) {
      var captured = new object();
      seen.Add(new WeakReference(captured));
      Action<CustomCall> function = call => captured.GetHashCode();
      if (i == 0) context.CustomAsync(function, updates: These(x)).Wait();
      if (i == 1) context.Custom(function, updates: These(x));
      if (i < 2) continue;
      GemmGraph graph = context.CreateGraph();
      graph.RecordCustom(call => { captured.GetHashCode(); graph.GetHashCode(); }, updates: These(x));
      graph.RunAsync().Wait();
      if (i == 2) graph.Dispose();  // the other is dropped
    }
    return seen;
  }

  public static void FunctionsAreCollected() {
    Matrix x = Place(new double[1, 1]);
    List<WeakReference> seen = null;
    var thread = new Thread(() => seen = Used(x));  // whose stack is gone then
    thread.Start();
    thread.Join();
    for (int i = 0; i < 100 && seen.Any(each => each.IsAlive); ++i) {
      Memory.Collect();
      context.Custom(call => new object().GetHashCode(), updates: These(x));       // on the stacks of the functions' threads,
      context.CustomAsync(call => new object().GetHashCode(), updates: These(x)).Wait();  // and of the one that completes tasks
      Thread.Sleep(10);
    }
    Expect.Equal("", string.Join(" ", Enumerable.Range(0, seen.Count).Where(i => seen[i].IsAlive)), "functions that live on");
  }
}
