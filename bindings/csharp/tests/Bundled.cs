// SPDX-License-Identifier: Apache-2.0
using System;
using System.IO;
using System.Reflection;
using System.Runtime.CompilerServices;
using StreamGemm;

/// <summary>Loads the assembly from bytes, so that it has no location, as in a program that is a single file. usage: Bundled.exe STREAMGEMM.dll</summary>
static class Bundled {
  static int Main(string[] args) {
    AppDomain.CurrentDomain.AssemblyResolve += (sender, asked) => new AssemblyName(asked.Name).Name == "StreamGemm" ? Assembly.Load(File.ReadAllBytes(args[0])) : null;
    return Run();
  }

  [MethodImpl(MethodImplOptions.NoInlining)]
  static int Run() {
    using (var context = new GemmContext("cpu")) {
      float[,] a = { { 1, 2 }, { 3, 4 } }, c = context.MultiplyAsync(a, a).Result;
      bool isRight = c[0, 0] == 7 && c[0, 1] == 10 && c[1, 0] == 15 && c[1, 1] == 22;
      return isRight && typeof(GemmContext).Assembly.Location == "" ? 0 : 1;
    }
  }
}
