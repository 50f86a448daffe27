// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Submissions recorded once and run many times.</summary>
static class GraphsTest {
  static readonly GemmContext context = new GemmContext(Harness.Device);
  static readonly Random random = new Random(31);

  public static async Task RunsInTheOrderOfItsOperands() {
    float[,] a = Numbers.Floats(random, 9, 9), b = new float[9, 9], c = new float[9, 9], d = new float[9, 9];
    using (GemmGraph graph = context.CreateGraph()) {
      await graph.RunAsync();  // an empty graph succeeds
    }
    using (GemmGraph graph = context.CreateGraph()) {
      Expect.Equal(0, graph.Record(a, a, b), "index");
      Expect.Equal(1, graph.Record(b, a, c), "index");
      Expect.Equal(2, graph.RecordCopy(c, d), "index");
      Expect.Equal(3, graph.Count, "count");
      Expect.Equal(0f, b[0, 0] + c[0, 0] + d[0, 0], "nothing has run");
      for (int run = 0; run < 4; ++run) {
        Array.Clear(d, 0, d.Length);
        a[run, run] += 1;
        if (run % 2 == 0) await graph.RunAsync();
        else
          using (GemmJob job = graph.Submit()) job.Wait();
        Numbers.Same(Numbers.Multiply(Numbers.Multiply(a, a), a), d, "run " + run);
      }
      Expect.Throws<BusyException>(() => graph.Record(a, a, b));
      Expect.Equal(3, graph.Count, "count after a refusal");
    }
  }

  public static async Task ChildrenAreReplaced() {
    float[,] a = Numbers.Floats(random, 5, 6), b = Numbers.Floats(random, 6, 7), c = new float[5, 7], d = new float[5, 7], e = new float[5, 7];
    float[,] x = Numbers.Floats(random, 5, 6), y = new float[5, 7];
    using (GemmGraph graph = context.CreateGraph()) {
      graph.Record(a, b, c);
      graph.RecordCopy(c, d);
      await graph.RunAsync();
      Numbers.Same(Numbers.Multiply(a, b), d, "first");
      graph.Update(0, x, b, y, new GemmOptions { Alpha = 2 });
      graph.Update(1, y, e);
      await graph.RunAsync();
      float[,] twice = Numbers.Multiply(x, b);
      for (int i = 0; i < 5; ++i)
        for (int j = 0; j < 7; ++j) Expect.Equal(2 * twice[i, j], e[i, j], "after the change");
      Expect.Throws<ArgumentException>(() => graph.Update(0, new float[5, 5], new float[5, 7], y));
      Expect.Throws<ArgumentException>(() => graph.Update(2, x, b, y), "index");
      Expect.Throws<ArgumentException>(() => graph.Update(1, new float[2, 2], new float[2, 2]), "source is 2 x 2", "5 x 7");
      Expect.Throws<ArgumentException>(() => graph.Update(1, Matrix.Of(new float[50], 5, 7), Matrix.Of(new float[50], 5, 7, 9)), "destination is 5 x 7 F32, ld 9", "ld 7");
      Expect.Throws<ArgumentException>(() => graph.Update(0, Operations.Copy(c, d)), "GEMM and not a copy");
      Expect.Throws<ArgumentException>(() => graph.Update(0, y, e));
      Expect.Throws<ArgumentException>(() => graph.Record(x, x, y));
      await graph.RunAsync();
      Expect.Equal(2 * twice[4, 6], e[4, 6], "a refused update changes nothing");
    }
  }

  [MethodImpl(MethodImplOptions.NoInlining)]
  static GemmGraph OfDropped(float[,] result) {
    GemmGraph graph = context.CreateGraph();
    float[,] a = Numbers.Floats(new Random(1), 40, 40), b = new float[40, 40];
    graph.Record(a, a, b);
    graph.Record(b, a, result);
    return graph;
  }

  public static async Task OperandsHeldByTheJobAlone() {
    var result = new float[40, 40];
    float[,] a = Numbers.Floats(new Random(1), 40, 40);
    using (GemmGraph graph = OfDropped(result)) {
      for (int run = 0; run < 5; ++run) {
        Memory.Collect();
        var litter = new byte[1000][];
        for (int i = 0; i < litter.Length; ++i) litter[i] = new byte[6400];
        await graph.RunAsync();
        Numbers.Same(Numbers.Multiply(Numbers.Multiply(a, a), a), result, "run " + run);
      }
    }
  }

  [MethodImpl(MethodImplOptions.NoInlining)]
  static WeakReference Forgotten() {
    var operand = new float[64, 64];
    GemmGraph graph = context.CreateGraph();
    graph.Record(operand, operand, new float[64, 64]);
    graph.RunAsync();
    return new WeakReference(operand);
  }

  public static void DroppedGraphsReleaseTheirOperands() {
    var operands = new WeakReference[20];
    for (int i = 0; i < operands.Length; ++i) operands[i] = Forgotten();
    Expect.Soon(() => Array.FindAll(operands, o => o.IsAlive).Length < 3, "operands of dropped graphs are collected");
  }

  public static async Task DisposedWithARunInFlight() {
    float[,] a = Numbers.Floats(random, 300, 300), c = new float[300, 300];
    GemmGraph graph = context.CreateGraph();
    graph.Record(a, a, c);
    Task run = graph.RunAsync();
    graph.Dispose();
    graph.Dispose();
    Expect.Throws<ObjectDisposedException>(() => { graph.RunAsync(); });
    Expect.Throws<ObjectDisposedException>(() => graph.Record(a, a, c));
    await run;
    Numbers.Same(Numbers.Multiply(a, a), c, "c");
  }

  public static void AFailureReachesTheTask() {
    using (var failing = new GemmContext("sim:h200?fail-launch=1"))
    using (GemmGraph graph = failing.CreateGraph()) {
      graph.Record(new float[8, 8], new float[8, 8], new float[8, 8]);
      Expect.Throws<BackendFailureException>(() => graph.RunAsync().Wait());
      graph.RunAsync().Wait();
    }
  }
}
