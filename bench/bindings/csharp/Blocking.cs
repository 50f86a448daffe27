// SPDX-License-Identifier: Apache-2.0
using System;
using System.Globalization;
using System.Text;
using StreamGemm;

/// <summary>The cost of a blocking GEMM in C#: blocking.c in another language. Prints one line of JSON.</summary>
static class Blocking {
  const int Rounds = 15;  // the first ones warm up the compiler
  static readonly int[] sides = { 4, 8, 16, 32, 64, 128, 256, 512 };

  static T[] Filled<T>(int count, T value) {
    var all = new T[count];
    for (int i = 0; i < count; ++i) all[i] = value;
    return all;
  }

  /// <summary>Microseconds for each of a row of calls: the median of the rounds.</summary>
  static double Measure(GemmContext context, Matrix a, Matrix b, Matrix c, int n) {
    int calls = Math.Max(1, (int)Math.Min(2000, 2e7 / (2.0 * n * n * n)));
    var rounds = new double[Rounds];
    for (int round = 0; round < Rounds; ++round) {
      double start = MonotonicClock.Microseconds();
      for (int i = 0; i < calls; ++i) context.Gemm(a, b, c);
      rounds[round] = (MonotonicClock.Microseconds() - start) / calls;
    }
    Array.Sort(rounds);
    return rounds[Rounds / 2];
  }

  static int Main() {
    string runtime = Type.GetType("Mono.Runtime") != null ? "Mono" : ".NET " + Environment.Version.Major;
    var line = new StringBuilder("{\"language\": \"C#, " + runtime + "\"");
    using (var context = new GemmContext(new ContextOptions { Device = "cpu" })) {
      foreach (string type in new[] { "f32", "f64" })
        foreach (int n in sides) {
          Func<int, Matrix> matrix = value => type == "f32" ? Matrix.Of(Filled(n * n, (float)value), n, n) : Matrix.Of(Filled(n * n, (double)value), n, n);
          line.AppendFormat(CultureInfo.InvariantCulture, ", \"{0} {1}^3\": {2:0.000}", type, n, Measure(context, matrix(1), matrix(1), matrix(0), n));
        }
    }
    Console.WriteLine(line.Append('}'));
    return 0;
  }
}
