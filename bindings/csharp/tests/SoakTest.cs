// SPDX-License-Identifier: Apache-2.0
using System;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Jobs from eight threads while the collector is forced: no wrong result, memory stays flat.</summary>
static class SoakTest {
  const int Threads = 8, Kinds = 16, Window = 32;

  public static void JobsWhileTheCollectorRuns() {
    int jobs = Harness.Soak ? 1000000 : 40000;
    float[][,] a = new float[Kinds][,], b = new float[Kinds][,], expected = new float[Kinds][,];
    for (int i = 0; i < Kinds; ++i) {
      a[i] = Numbers.Floats(new Random(i), 2 + i % 5, 3 + i % 4);
      b[i] = Numbers.Floats(new Random(~i), 3 + i % 4, 2 + i % 3);
      expected[i] = Numbers.Multiply(a[i], b[i]);
    }
    using (var context = new GemmContext(Harness.Device)) {
      Run(context, jobs / 10, a, b, expected);  // one-time growth
      Memory.Collect();
      long before = Memory.Status("VmRSS");
      Run(context, jobs, a, b, expected);
      Memory.Collect();
      long after = Memory.Status("VmRSS");
      Console.WriteLine("     " + jobs + " jobs; resident memory " + (before >> 10) + " KiB at the start, " + (after >> 10) + " KiB at the end");
      Expect.True(after - before < 24L << 20, "resident memory stays flat");
    }
  }

  static void Run(GemmContext context, int jobs, float[][,] a, float[][,] b, float[][,] expected) {
    Exception failure = null;
    bool over = false;
    Thread[] workers = Enumerable.Range(0, Threads).Select(t => new Thread(() => {
      try {
        Work(context, t, jobs / Threads, a, b, expected);
      } catch (Exception error) {
        failure = error;
      }
    })).ToArray();
    var collector = new Thread(() => {
      while (!Volatile.Read(ref over)) {
        GC.Collect(0);
        Thread.Sleep(1);
        GC.Collect();
        Thread.Sleep(4);
      }
    });
    collector.Start();
    foreach (Thread worker in workers) worker.Start();
    foreach (Thread worker in workers) worker.Join();
    Volatile.Write(ref over, true);
    collector.Join();
    if (failure != null) throw failure;
  }

  // Each job has its own operands, which only the job holds; some have a token, some a handle.
  static void Work(GemmContext context, int thread, int jobs, float[][,] a, float[][,] b, float[][,] expected) {
    var results = new float[Window][,];
    var tasks = new Task[Window];
    using (var source = new CancellationTokenSource())
      for (int first = 0; first < jobs; first += Window) {
        for (int i = 0; i < Window; ++i) {
          int kind = (first + i * 7 + thread) % Kinds;
          results[i] = new float[expected[kind].GetLength(0), expected[kind].GetLength(1)];
          Matrix left = (float[,])a[kind].Clone(), right = (float[,])b[kind].Clone();
          if (i % 8 == 0) tasks[i] = context.GemmAsync(left, right, results[i], null, source.Token);
          else if (i % 8 == 1) tasks[i] = context.SubmitGemm(left, right, results[i]).Completion;
          else tasks[i] = context.GemmAsync(left, right, results[i]);
        }
        Task.WaitAll(tasks);
        for (int i = 0; i < Window; ++i) Numbers.Same(expected[(first + i * 7 + thread) % Kinds], results[i], "job " + (first + i));
      }
  }
}
