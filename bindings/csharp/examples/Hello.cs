// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>The smallest program: the matrix product of two arrays.</summary>
static class Hello {
  static async Task Run() {
    using (var context = new GemmContext()) {
      float[,] a = { { 1, 2, 3 }, { 4, 5, 6 } }, b = { { 1, 0 }, { 0, 1 }, { 1, 1 } };
      float[,] c = await context.MultiplyAsync(a, b);
      Console.WriteLine("on " + context.Device.Name + ": " + c[0, 0] + " " + c[0, 1] + " / " + c[1, 0] + " " + c[1, 1]);
      if (c[0, 0] != 4 || c[0, 1] != 5 || c[1, 0] != 10 || c[1, 1] != 11) throw new Exception("wrong");
    }
  }

  static void Main() => Run().GetAwaiter().GetResult();
}
