// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>A requirement of a test is missing.</summary>
sealed class SkippedException : Exception {
  internal SkippedException(string why) : base(why) { }
}

/// <summary>Runs the public static methods of the named classes as tests. usage: Tests.exe DEVICE CLASS[.METHOD]...</summary>
static class Harness {
  internal static string Device = "cpu";

  /// <summary>Whether to run a soak test.</summary>
  internal static bool Soak => Environment.GetEnvironmentVariable("SG_SOAK") == "1";

  static int Main(string[] args) {
    Device = args[0];
    int failed = 0, run = 0;
    foreach (string name in args.Skip(1)) {
      string[] names = name.Split('.');
      Type type = Assembly.GetExecutingAssembly().GetType(names[0], true);
      foreach (MethodInfo test in type.GetMethods(BindingFlags.Static | BindingFlags.Public | BindingFlags.DeclaredOnly)) {
        if (names.Length > 1 && names[1] != test.Name) continue;
        ++run;
        Stopwatch time = Stopwatch.StartNew();
        try {
          var task = test.Invoke(null, null) as Task;
          if (task != null && !task.Wait(TimeSpan.FromMinutes(10))) throw new TimeoutException("the test's task did not complete");
          Console.WriteLine("ok   " + names[0] + "." + test.Name + " (" + time.ElapsedMilliseconds + " ms)");
        } catch (Exception error) {
          while ((error is TargetInvocationException || error is AggregateException) && error.InnerException != null) error = error.InnerException;
          if (error is SkippedException) {
            Console.WriteLine("skip " + names[0] + "." + test.Name + ": " + error.Message);
            continue;
          }
          ++failed;
          Console.WriteLine("FAIL " + names[0] + "." + test.Name + ": " + error);
        }
      }
    }
    Console.WriteLine(run - failed + " of " + run + " passed");
    return failed == 0 && run > 0 ? 0 : 1;
  }
}

static class Expect {
  internal static void True(bool holds, string what) {
    if (!holds) throw new Exception("not so: " + what);
  }

  internal static void Equal<T>(T expected, T got, string what) {
    if (!EqualityComparer<T>.Default.Equals(expected, got)) throw new Exception(what + ": expected " + expected + ", got " + got);
  }

  /// <summary>The action throws an E whose message contains all of the words.</summary>
  internal static E Throws<E>(Action action, params string[] words) where E : Exception {
    try {
      action();
    } catch (AggregateException all) when (all.InnerException is E) {
      return Says((E)all.InnerException, words);
    } catch (E error) {
      return Says(error, words);
    }
    throw new Exception("no " + typeof(E).Name + " was thrown");
  }

  static E Says<E>(E error, string[] words) where E : Exception {
    foreach (string word in words) True(error.Message.Contains(word), "\"" + error.Message + "\" says \"" + word + "\"");
    return error;
  }

  /// <summary>Waits, collecting garbage meanwhile, until a condition holds.</summary>
  internal static void Soon(Func<bool> holds, string what) {
    for (Stopwatch time = Stopwatch.StartNew(); !holds(); System.Threading.Thread.Sleep(5)) {
      if (time.Elapsed.TotalSeconds > 300) throw new Exception("not within 300 s: " + what);
      Memory.Collect();
    }
  }
}

static class Memory {
  internal static void Collect() {
    GC.Collect();
    GC.WaitForPendingFinalizers();
    GC.Collect();
  }

  /// <summary>A figure of this process in bytes: VmRSS, VmHWM.</summary>
  internal static long Status(string name) => Numeric(name) * 1024;

  internal static int Threads => (int)Numeric("Threads");

  static long Numeric(string name) {
    string line = File.ReadAllLines("/proc/self/status").First(l => l.StartsWith(name + ":"));
    return long.Parse(new string(line.Where(char.IsDigit).ToArray()));
  }
}

/// <summary>Random integer-valued matrices, whose products are exact, and a reference GEMM.</summary>
static class Numbers {
  internal static float[,] Floats(Random random, int rows, int cols) {
    var a = new float[rows, cols];
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j) a[i, j] = random.Next(-8, 9);
    return a;
  }

  internal static float[] FloatRow(Random random, int count) {
    var a = new float[count];
    for (int i = 0; i < count; ++i) a[i] = random.Next(-8, 9);
    return a;
  }

  internal static float[,] Multiply(float[,] a, float[,] b) {
    int m = a.GetLength(0), n = b.GetLength(1), k = a.GetLength(1);
    var c = new float[m, n];
    for (int i = 0; i < m; ++i)
      for (int l = 0; l < k; ++l)
        for (int j = 0; j < n; ++j) c[i, j] += a[i, l] * b[l, j];
    return c;
  }

  internal static void Same(float[,] expected, float[,] got, string what) {
    Expect.Equal(expected.GetLength(0), got.GetLength(0), what + ": rows");
    Expect.Equal(expected.GetLength(1), got.GetLength(1), what + ": columns");
    for (int i = 0; i < expected.GetLength(0); ++i)
      for (int j = 0; j < expected.GetLength(1); ++j)
        if (expected[i, j] != got[i, j]) throw new Exception(what + "[" + i + ", " + j + "]: expected " + expected[i, j] + ", got " + got[i, j]);
  }
}
