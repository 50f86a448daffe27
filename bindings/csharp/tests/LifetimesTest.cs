// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Disposing twice, the parent first, with work in flight, or never; operands that only the job holds.</summary>
static class LifetimesTest {
  [MethodImpl(MethodImplOptions.NoInlining)]
  static Task<float[,]> Dropped(GemmContext context, GemmStream stream, int seed, out WeakReference operand) {
    float[,] a = Numbers.Floats(new Random(seed), 30, 30), b = Numbers.Floats(new Random(~seed), 30, 30), c = new float[30, 30];
    operand = new WeakReference(a);
    return context.GemmAsync(a, b, c, new GemmOptions { Stream = stream }).ContinueWith(task => {
      task.GetAwaiter().GetResult();
      return c;
    });
  }

  public static void OperandsHeldByTheJobAlone() {
    using (var context = new GemmContext(Harness.Device))
    using (GemmStream stream = context.CreateStream()) {
      var operands = new List<WeakReference>();
      var large = new float[700, 700];
      for (int round = 0; round < 20; ++round) {
        Task before = context.GemmAsync(large, large, new float[700, 700], new GemmOptions { Stream = stream });  // the other jobs wait
        var tasks = new List<Task<float[,]>>();
        for (int i = 0; i < 50; ++i) {
          WeakReference operand;
          tasks.Add(Dropped(context, stream, 50 * round + i, out operand));
          operands.Add(operand);
        }
        GC.Collect();
        var litter = new List<byte[]>();  // freed memory is overwritten
        for (int i = 0; i < 200; ++i) {
          var bytes = new byte[3600];
          for (int j = 0; j < bytes.Length; ++j) bytes[j] = 0x55;
          litter.Add(bytes);
        }
        GC.Collect();
        before.Wait();
        for (int i = 0; i < 50; ++i) {
          int seed = 50 * round + i;
          float[,] a = Numbers.Floats(new Random(seed), 30, 30), b = Numbers.Floats(new Random(~seed), 30, 30);
          Numbers.Same(Numbers.Multiply(a, b), tasks[i].Result, "job " + seed);
        }
      }
      Expect.Soon(() => operands.Count(o => o.IsAlive) < operands.Count / 10, "operands of ended jobs are collected");
    }
  }

  public static void DisposedTwice() {
    var context = new GemmContext(Harness.Device);
    GemmStream stream = context.CreateStream();
    GemmEvent happened = context.CreateEvent();
    DeviceBuffer buffer = context.AllocateDevice(1024);
    PinnedMemory<float> pinned = context.AllocatePinned<float>(16), registered = context.Register(new float[16]);
    GemmPlan plan = context.Plan(Matrix.Shape(8, 8, DType.F32), Matrix.Shape(8, 8, DType.F32), Matrix.Shape(8, 8, DType.F32));
    GemmJob job = context.SubmitGemm(new float[2, 2], new float[2, 2], new float[2, 2]);
    for (int i = 0; i < 2; ++i) {
      context.Dispose();
      stream.Dispose();
      happened.Dispose();
      buffer.Dispose();
      pinned.Dispose();
      registered.Dispose();
      plan.Dispose();
      job.Dispose();
    }
    job.Completion.Wait();
    Expect.Throws<ObjectDisposedException>(() => { context.GemmAsync(new float[1, 1], new float[1, 1], new float[1, 1]); });
    Expect.Throws<ObjectDisposedException>(() => context.Synchronize());
    Expect.Throws<ObjectDisposedException>(() => stream.Synchronize());
    Expect.Throws<ObjectDisposedException>(() => happened.Wait());
    Expect.Throws<ObjectDisposedException>(() => buffer.Matrix(1, 1, DType.F32));
    Expect.Throws<ObjectDisposedException>(() => pinned.GetSpan());
    Expect.Throws<ObjectDisposedException>(() => plan.Describe());
    Expect.Throws<ObjectDisposedException>(() => job.Wait());
  }

  public static async Task ParentFirst() {
    var context = new GemmContext(Harness.Device);
    GemmStream stream = context.CreateStream();
    DeviceBuffer buffer = context.AllocateDevice(64);
    PinnedMemory<float> pinned = context.AllocatePinned<float>(16);
    GemmPlan plan = context.Plan(Matrix.Shape(2, 2, DType.F32), Matrix.Shape(2, 2, DType.F32), Matrix.Shape(2, 2, DType.F32));
    GemmJob job = context.SubmitGemm(new float[2, 2], new float[2, 2], new float[2, 2]);
    context.Dispose();
    Expect.True(stream.IsIdle || !stream.IsIdle, "a stream answers");
    Expect.Equal(64L, buffer.Bytes, "bytes");
    pinned.GetSpan().Fill(3);
    Expect.True(plan.Describe().Length > 0, "a plan describes itself");
    await job;
    stream.Dispose();
    buffer.Dispose();
    ((IDisposable)pinned).Dispose();
    plan.Dispose();
    job.Dispose();
  }

  public static void EverythingDisposedWithWorkInFlight() {
    for (int round = 0; round < 10; ++round) {
      var context = new GemmContext(Harness.Device);
      GemmStream stream = context.CreateStream();
      DeviceBuffer buffer = context.AllocateDevice(400 * 400 * 4);
      PinnedMemory<float> pinned = context.AllocatePinned<float>(400 * 400);
      float[] ones = Enumerable.Repeat(1f, 400 * 400).ToArray(), back = new float[400 * 400];
      ones.AsSpan().CopyTo(pinned.GetSpan());
      var onStream = new GemmOptions { Stream = stream };
      Matrix on = buffer.Matrix(400, 400, DType.F32);
      Task gemm = context.GemmAsync(Matrix.Of(pinned.Memory, 400, 400), Matrix.Of(ones, 400, 400), on, onStream);
      Task copy = context.CopyAsync(on, Matrix.Of(back, 400, 400), onStream);
      context.Dispose();
      stream.Dispose();
      buffer.Dispose();
      pinned.Dispose();
      GC.Collect();
      Task.WaitAll(gemm, copy);
      foreach (float x in back) Expect.Equal(400f, x, "element");
    }
  }

  [MethodImpl(MethodImplOptions.NoInlining)]
  static Task Forgotten(int size) {
    var context = new GemmContext(Harness.Device);
    var stream = context.CreateStream();
    PinnedMemory<float> pinned = context.AllocatePinned<float>(size * size);
    Matrix on = context.AllocateDevice(size * size * 4L).Matrix(size, size, DType.F32);
    context.SubmitGemm(Matrix.Of(pinned.Memory, size, size), Matrix.Of(pinned.Memory, size, size), on, new GemmOptions { Stream = stream });
    return stream.SynchronizeAsync();
  }

  public static void EverythingDroppedWithoutDispose() {
    int before = Memory.Threads;
    var tasks = new List<Task>();
    for (int i = 0; i < 20; ++i) tasks.Add(Forgotten(200));
    Memory.Collect();
    Expect.True(Task.WaitAll(tasks.ToArray(), TimeSpan.FromMinutes(10)), "the work ends all the same");
    tasks.Clear();
    Expect.Soon(() => Memory.Threads <= before + 8, "threads of forgotten contexts end (" + before + " before)");
  }

  public static void ThreadsEndWithTheirContexts() {
    int before = Memory.Threads;
    for (int i = 0; i < 50; ++i)
      using (var context = new GemmContext(Harness.Device)) {
        context.Gemm(new float[2, 2], new float[2, 2], new float[2, 2]);
      }
    Expect.Soon(() => Memory.Threads <= before + 8, "threads of disposed contexts end (" + before + " before)");
  }

  public static void DisposingRacesWithSubmitting() {
    for (int round = 0; round < 100; ++round) {
      var context = new GemmContext(Harness.Device);
      var tasks = new List<Task>();
      var submitter = new Thread(() => {
        try {
          for (;;) tasks.Add(context.GemmAsync(new float[3, 3], new float[3, 3], new float[3, 3]));
        } catch (InvalidOperationException) {  // disposed, or a stale handle
        }
      });
      submitter.Start();
      Thread.Sleep(round % 5);
      context.Dispose();
      submitter.Join();
      foreach (Task task in tasks) Expect.True(task.Wait(TimeSpan.FromMinutes(10)), "each task completes");
    }
  }

  public static void PinnedMemoryIsAMemory() {
    using (var context = new GemmContext(Harness.Device)) {
      PinnedMemory<double> pinned = context.AllocatePinned<double>(100);
      Span<double> elements = pinned.GetSpan();
      for (int i = 0; i < 100; ++i) elements[i] = i;
      Memory<double> memory = pinned.Memory;
      Expect.Equal(100, memory.Length, "length");
      Expect.Equal(41.0, memory.Span.Slice(40)[1], "element");
      var c = new double[1, 1];
      context.Gemm(Matrix.Of(memory.Slice(10, 3), 1, 3), Matrix.Of(memory.Slice(20, 3), 3, 1), c);
      Expect.Equal(10.0 * 20 + 11 * 21 + 12 * 22, c[0, 0], "GEMM of slices");
      using (memory.Pin()) {
        pinned.Dispose();
        Expect.Throws<ObjectDisposedException>(() => pinned.GetSpan());
        Expect.Throws<ObjectDisposedException>(() => memory.Pin());
      }
      Expect.Throws<ObjectDisposedException>(() => context.Gemm(Matrix.Of(memory, 10, 10), c, c));

      double[] array = Enumerable.Range(0, 100).Select(i => (double)i).ToArray();
      using (PinnedMemory<double> registered = context.Register(array)) {
        Expect.Throws<ArgumentException>(() => context.Register(array), "");
        context.Gemm(Matrix.Of(registered.Memory.Slice(10, 3), 1, 3), Matrix.Of(registered.Memory.Slice(20, 3), 3, 1), c);
        Expect.Equal(10.0 * 20 + 11 * 21 + 12 * 22, c[0, 0], "GEMM of registered slices");
      }
      using (context.Register(array)) { }  // the array is free again
      using (context.AllocatePinned<float>(0)) { }
    }
  }

  public static void DroppedPinnedMemoryIsFreed() {
    using (var context = new GemmContext(Harness.Device)) {
      Memory.Collect();
      long before = 0;
      for (int i = 0; i < 300; ++i) {
        Touch(context);
        if (i == 20) before = Memory.Status("VmRSS");
        if (i % 10 == 9) Memory.Collect();
      }
      long grown = Memory.Status("VmRSS") - before;
      Expect.True(grown < 200L << 20, "300 dropped blocks of 4 MiB leave nothing (" + (grown >> 20) + " MiB more)");
    }
  }

  [MethodImpl(MethodImplOptions.NoInlining)]
  static void Touch(GemmContext context) {
    context.AllocatePinned<float>(1 << 20).GetSpan().Fill(1);
  }
}
