// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>What one submission of each operation costs its thread in C#, once its plan is cached, beside a GEMM's: submissions.py in another
/// language. Prints a table.</summary>
static class Submissions {
  const int Rows = 64, Calls = 200, Gate = 1024, Rounds = 30;

  static GemmContext context;
  static GemmStream stream;
  static Matrix gateIn, gateOut;

  static Matrix Zeros(long rows, long columns) => Matrix.Of(new float[rows * columns], rows, columns);

  static List<KeyValuePair<string, Func<Task>>> Operations() {
    Matrix x = Zeros(Rows, Rows), w = Zeros(Rows, Rows), y = Zeros(Rows, Rows), row = Zeros(1, Rows), dx = Zeros(Rows, Rows),
           dw = Zeros(Rows, Rows), dbias = Zeros(1, Rows);
    Matrix half = Matrix.Of(new Float16[Rows * Rows], Rows, Rows);
    Indices indices = Indices.Of(new int[Rows]);
    var heads = new Heads[8];
    for (int i = 0; i < heads.Length; ++i) heads[i] = Heads.Of(new Float16[1, 4, 64, 64]);
    Images image = Images.Of(new float[2, 16, 8, 8]), imageOut = Images.Of(new float[2, 16, 8, 8]);
    Matrix filters = Zeros(16, 16 * 9), wIh = Zeros(64, 16), wHh = Zeros(64, 16);
    Sequence steps = Sequence.ByStep(Zeros(16, 16), 1), states = Sequence.ByStep(Zeros(16, 16), 1);
    var windows = new Windows(3, 3, padding: 1);
    var inOrder = new SubmitOptions { Stream = stream };
    var gemm = new GemmOptions { Stream = stream };
    var axpby = new AxpbyOptions { Stream = stream };
    var softmax = new SoftmaxOptions { Stream = stream };
    var norm = new NormOptions { Stream = stream };
    var gather = new GatherOptions { Stream = stream };
    var attention = new AttentionOptions { Stream = stream };
    var conv = new Conv2dOptions { Stream = stream };
    var lstm = new RecurrentOptions { Stream = stream, Cell = Cell.Lstm };
    var linear = new LinearOptions { Stream = stream, Bias = row };
    var plain = new LinearOptions { Stream = stream };
    var all = new List<KeyValuePair<string, Func<Task>>>();
    Action<string, Func<Task>> add = (name, submit) => all.Add(new KeyValuePair<string, Func<Task>>(name, submit));
    add("gemm", () => context.GemmAsync(x, w, y, gemm));
    add("axpby", () => context.AxpbyAsync(x, y, axpby));
    add("gelu", () => context.ElementwiseAsync(Function.Gelu, x, default(Matrix), y, inOrder));
    add("softmax", () => context.SoftmaxAsync(x, y, softmax));
    add("layer norm", () => context.LayerNormAsync(x, row, row, y, norm));
    add("convert", () => context.ConvertAsync(x, Transpose.N, half, inOrder));
    add("gather", () => context.GatherAsync(x, indices, y, gather));
    add("attention", () => context.AttentionAsync(heads[0], heads[1], heads[2], heads[3], attention));
    add("attention backward",
        () => context.AttentionBackwardAsync(heads[0], heads[1], heads[2], heads[4], heads[5], heads[6], heads[7], attention));
    add("conv2d", () => context.Conv2dAsync(image, filters, imageOut, windows, conv));
    add("lstm of 16 steps", () => context.RecurrentAsync(steps, wIh, wHh, states, lstm));
    add("linear", () => context.LinearAsync(x, w, y, linear));
    add("linear backward", () => context.LinearBackwardAsync(y, x, w, dx, dw, dbias, plain));
    return all;
  }

  /// <summary>The median of calls behind one that takes some milliseconds, in microseconds.</summary>
  static double Cost(Func<Task> submit) {
    var tasks = new Task[Calls + 1];
    var cost = new double[Calls];
    tasks[Calls] = context.GemmAsync(gateIn, gateIn, gateOut, new GemmOptions { Stream = stream });
    for (int i = 0; i < Calls; ++i) {
      double before = MonotonicClock.Microseconds();
      tasks[i] = submit();
      cost[i] = MonotonicClock.Microseconds() - before;
    }
    Task.WaitAll(tasks);
    Array.Sort(cost);
    return cost[Calls / 2];
  }

  static void Main() {
    using (context = new GemmContext(new ContextOptions { Device = "cpu", ComputeLanes = 1 }))
    using (stream = context.CreateStream()) {
      gateIn = Matrix.Of(new double[Gate * Gate], Gate, Gate);
      gateOut = Matrix.Of(new double[Gate * Gate], Gate, Gate);
      double gemm = 0;
      foreach (KeyValuePair<string, Func<Task>> each in Operations()) {
        var rounds = new double[Rounds];
        for (int i = 0; i < Rounds; ++i) rounds[i] = Cost(each.Value);
        Array.Sort(rounds, Rounds / 2, Rounds - Rounds / 2);
        double median = rounds[Rounds * 3 / 4];
        if (gemm == 0) gemm = median;
        Console.WriteLine(string.Format(CultureInfo.InvariantCulture, "{0,-20} {1,7:0.00} us  {2,5:0.00} x gemm", each.Key, median, median / gemm));
      }
    }
  }
}
