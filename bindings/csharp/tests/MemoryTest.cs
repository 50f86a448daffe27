// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>No operand is ever copied: a GEMM of a 1 GiB array allocates no other memory.</summary>
static class MemoryTest {
  public static async Task OneGibibyteIsNotCopied() {
    const int n = 16384;
    const long bytes = 1L << 30;
    using (var context = new GemmContext("cpu")) {
      var a = new float[n * n];
      for (int i = 0; i < a.Length; ++i) a[i] = i % 7 - 3;
      float[] x = new float[n * 2], y = new float[n * 2];
      for (int i = 0; i < n; ++i) x[2 * i] = i % 5;
      await context.GemmAsync(Matrix.Of(new float[n], 1, n), Matrix.Of(x, n, 2), Matrix.Of(new float[2], 1, 2));  // the library's fixed allocations
      Memory.Collect();
      long before = Memory.Status("VmRSS"), peak = Memory.Status("VmHWM");
      await context.GemmAsync(Matrix.Of(a, n, n), Matrix.Of(x, n, 2), Matrix.Of(y, n, 2));
      context.Gemm(Matrix.Of(a.AsMemory(), n, n), Matrix.Of(x, n, 2), Matrix.Of(y, n, 2));
      long grown = Memory.Status("VmRSS") - before, above = Memory.Status("VmHWM") - Math.Max(peak, before);
      Console.WriteLine("     1024 MiB multiplied, resident memory grew by " + (grown >> 20) + " MiB, at its peak by " + (above >> 20) + " MiB");
      Expect.True(grown < bytes / 20 && above < bytes / 20, "resident memory grows by less than 5%");
      double expected = 0;
      for (int l = 0; l < n; ++l) expected += (double)a[5L * n + l] * x[2 * l];
      Expect.True(Math.Abs(y[10] - expected) < 1, "y[5] is " + y[10] + ", expected " + expected);
    }
  }
}
