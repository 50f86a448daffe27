// SPDX-License-Identifier: Apache-2.0
using System;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Devices, streams, events, device memory, copies and plans.</summary>
static class DevicesTest {
  static readonly GemmContext context = new GemmContext(Harness.Device);
  static readonly Random random = new Random(23);

  public static void ReportTheirProperties() {
    Expect.True(Library.Version.Split('.').Length == 3, "version " + Library.Version);
    Expect.True(Library.Devices.Any(d => d.Name == "cpu"), "the cpu is a device");
    BackendInfo cpu = Library.Backends.First(b => b.Name == "cpu");
    Expect.True(cpu.Available && cpu.Reason == "" && cpu.Origin == "built in", "the cpu backend");
    Expect.Throws<NoDeviceException>(() => Library.LoadBackend("no-such-plugin.so"), "/no-such-plugin.so\": No such file");
    DeviceInfo device = context.Device;
    Expect.Equal(Harness.Device, device.Name, "name");
    Expect.True(device.MemoryBytes > 1 << 20 && device.ComputeUnits > 0 && device.Description.Length > 0, "properties");
    Expect.Equal(Harness.Device == "cpu", device.UnifiedMemory, "unified memory");
    long available = context.AvailableMemory(0);
    Expect.True(available > 0 && available <= device.MemoryBytes, "available memory");
    Library.SetLog(LogLevel.Warn);
    Library.SetLog(LogLevel.Off);
  }

  public static void OptionsOfAContext() {
    var options = new ContextOptions { Device = Harness.Device, MemoryLimit = 1 << 24, Flags = ContextFlags.CheckHazards };
    Expect.Equal(Harness.Device, options.Device, "a text option");
    Expect.Equal(1L << 24, options.MemoryLimit, "a number");
    Expect.Equal(ContextFlags.CheckHazards, options.Flags, "flags");
    using (var limited = new GemmContext(options)) {
      float[,] a = Numbers.Floats(random, 100, 100);
      Numbers.Same(Numbers.Multiply(a, a), limited.Multiply(a, a), "GEMM");
    }
    options.Device = null;
    Expect.Equal(null, options.Device, "no text");
  }

  public static async Task CopiesInAndOut() {
    float[,] host = Numbers.Floats(random, 30, 20), back = new float[30, 20];
    using (DeviceBuffer buffer = context.AllocateDevice(4096 * 4))
    using (GemmStream stream = context.CreateStream(), limited = context.CreateStream(new StreamOptions { ComputeUnits = 1 })) {
      Expect.Equal(0, stream.ComputeUnits, "compute units");
      Expect.Equal(1, limited.ComputeUnits, "compute units");
      Expect.True(!limited.IsPartition, "cores are never reserved");
      Expect.Equal(4096L * 4, buffer.Bytes, "bytes");
      Expect.True(buffer.Address != IntPtr.Zero, "address");
      var onStream = new SubmitOptions { Stream = stream };
      Matrix on = buffer.Matrix(30, 20, DType.F32, ld: 25, offset: 100);
      Task copyIn = context.CopyAsync(host, on, onStream);
      GemmJob copyOut = context.SubmitCopy(on, back, onStream);
      await copyIn;
      await copyOut;
      Numbers.Same(host, back, "there and back");
      var part = new float[3, 4];
      context.Copy(on.Block(5, 6, 3, 4), part);
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 4; ++j) Expect.Equal(host[5 + i, 6 + j], part[i, j], "part");
      Expect.Throws<ArgumentException>(() => { context.CopyAsync(host, part); }, "destination is 3 x 4");
      Expect.Throws<ArgumentException>(() => { context.CopyAsync(host, default(Matrix)); }, "destination");
      Expect.Throws<ArgumentException>(() => buffer.Matrix(100, 100, DType.F32), "has 4096");
      Expect.Throws<ArgumentException>(() => buffer.Matrix(1, 1, DType.F32, offset: 4097), "offset");
    }
  }

  public static async Task MatricesOnTheDevice() {
    float[,] a = Numbers.Floats(random, 6, 8), b = Numbers.Floats(random, 8, 5), wanted = new float[6, 5];
    await context.GemmAsync(a, b, wanted);
    Matrix on = context.OnDevice(a), c = context.DeviceMatrix(6, 5, DType.F32);
    Task product = context.GemmAsync(on, context.OnDevice(b), c);
    Numbers.Same(wanted, context.ToArray<float>(c), "after the product");
    await product;
    Numbers.Same(a, context.ToArray<float>(on), "there and back");
    float[,] turned = context.ToArray<float>(on.T), part = context.ToArray<float>(on.Block(1, 2, 3, 4));
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 6; ++j) Expect.Equal(a[j, i], turned[i, j], "transposed");
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j) Expect.Equal(a[1 + i, 2 + j], part[i, j], "part");
    Expect.Equal(0, context.ToArray<float>(context.OnDevice(Matrix.Of(new float[0, 3]))).Length, "empty");
    Expect.Throws<ArgumentException>(() => { context.ToArray<double>(on); }, "whose elements are no Double");
    Expect.Throws<ArgumentException>(() => { context.DeviceMatrix(-1, 2, DType.F32); }, "a matrix of -1 x 2");
  }

  public static async Task GemmsOnTheDevice() {
    const int n = 64;
    float[,] a = Numbers.Floats(random, n, n), b = Numbers.Floats(random, n, n), c = new float[n, n];
    using (DeviceBuffer buffer = context.AllocateDevice(3 * n * n * 4)) {
      Matrix onA = buffer.Matrix(n, n, DType.F32), onB = buffer.Matrix(n, n, DType.F32, offset: n * n),
             onC = buffer.Matrix(n, n, DType.F32, offset: 2 * n * n);
      Task[] work = { context.CopyAsync(a, onA), context.CopyAsync(b, onB), context.GemmAsync(onA, onB, onC), context.CopyAsync(onC, c) };
      await Task.WhenAll(work);
    }
    Numbers.Same(Numbers.Multiply(a, b), c, "c");
  }

  public static async Task RawAddresses() {
    float[,] a = Numbers.Floats(random, 4, 4), c = new float[4, 4];
    Expect.Throws<InvalidArgumentException>(() => context.AllocatePinned<float>(16, 9), "device is 9");
    using (PinnedMemory<float> near = context.AllocatePinned<float>(16, 0), all = context.AllocatePinned<float>(16, -1))
      Expect.Equal(32, near.Memory.Length + all.Memory.Length, "pinned memory near a device");
    using (PinnedMemory<float> pinned = context.AllocatePinned<float>(16)) {
      for (int i = 0; i < 16; ++i) pinned.Memory.Span.Slice(i, 1).Fill(a[i / 4, i % 4]);
      using (System.Buffers.MemoryHandle handle = pinned.Pin())
        await context.GemmAsync(Matrix.At(AddressOf(handle), 4, 4, DType.F32, keepAlive: pinned), a, c);
      Numbers.Same(Numbers.Multiply(a, a), c, "c");
      foreach (object keep in new object[] { null, pinned })
        using (System.Buffers.MemoryHandle handle = pinned.Pin()) {
          var part = new float[2, 4];
          await context.GemmAsync(Matrix.At(AddressOf(handle), 4, 4, DType.F32, keepAlive: keep).Block(1, 0, 2, 4), a, part);
          for (int j = 0; j < 4; ++j) Expect.Equal(c[2, j], part[1, j], "GEMM of a block");
        }
    }
  }

  static unsafe IntPtr AddressOf(System.Buffers.MemoryHandle handle) => (IntPtr)handle.Pointer;

  public static async Task StreamsAndEvents() {
    using (GemmStream one = context.CreateStream(), two = context.CreateStream(new StreamOptions { Priority = -1 }))
    using (GemmEvent start = context.CreateEvent(), end = context.CreateEvent()) {
      Expect.True(start.HasHappened, "an event never recorded");
      float[,] a = Numbers.Floats(random, 300, 300), b = new float[300, 300], c = new float[300, 300];
      start.Record(one);
      Task first = context.GemmAsync(a, a, b, new GemmOptions { Stream = one, Flags = SubmitFlags.Untracked });
      end.Record(one);
      two.WaitFor(end);
      Task second = context.GemmAsync(b, a, c, new GemmOptions { Stream = two, Flags = SubmitFlags.Untracked });
      await end.WaitAsync();
      Expect.True(first.Wait(300000) && end.HasHappened, "what the event waits for has ended");
      await two.SynchronizeAsync();
      Expect.True(first.Wait(300000) && second.Wait(300000), "both have ended");
      Numbers.Same(Numbers.Multiply(b, a), c, "the second saw the first's result");
      end.Wait();
      Expect.True(end.Wait(TimeSpan.FromSeconds(1)) && end.HasHappened, "the event");
      Expect.True(end.SecondsSince(start) > 0 && end.Since(start) >= TimeSpan.Zero, "time passed: " + end.SecondsSince(start));
      one.Synchronize();
      Expect.True(one.Synchronize(TimeSpan.FromSeconds(1)) && one.IsIdle, "idle");
      using (GemmEvent never = context.CreateEvent()) Expect.Throws<ArgumentException>(() => never.SecondsSince(start));
    }
    if (Harness.Device != "cpu") return;
    Expect.Throws<NotSupportedException>(() => context.WrapStream((IntPtr)1));
    Expect.Throws<NotSupportedException>(() => context.WrapEvent((IntPtr)1));
    Expect.Throws<ArgumentException>(() => context.WrapEvent(IntPtr.Zero));
    using (GemmEvent event_ = context.CreateEvent()) Expect.Throws<NotSupportedException>(() => event_.GetNative());
  }

  public static void SynchronizesWithAFailureBefore() {
    using (var failing = new GemmContext("sim:h200?fail-launch=1"))
    using (GemmStream stream = failing.CreateStream()) {
      Task failed = failing.GemmAsync(new float[4, 4], new float[4, 4], new float[4, 4], new GemmOptions { Stream = stream });
      stream.SynchronizeAsync().Wait();
      failing.Synchronize();
      Expect.Throws<BackendFailureException>(() => failed.Wait());
    }
  }

  public static async Task PlansPredictDescribeAndRun() {
    using (var h200 = new GemmContext("sim:h200")) {
      GemmOptions pinned = Placed(MemoryKind.Pinned);
      Matrix shape = Matrix.Shape(8192, 8192, DType.F32);
      using (GemmPlan plan = h200.Plan(shape, shape, shape, pinned)) {
        PlanPrediction says = plan.Prediction;
        Expect.Equal(2 * Math.Pow(8192, 3), says.Flops, "flops");
        Expect.True(says.PredictedSeconds >= says.BoundSeconds && says.BoundSeconds > 0, "no faster than the bound");
        Expect.True(says.SerialSeconds > says.PredictedSeconds, "overlap");
        Expect.Equal(2L * 8192 * 8192 * 4, says.BytesIn, "bytes in");
        Expect.True(says.Commands > 1 && says.Strategy.Length > 0 && says.DeviceBytes > 0, "properties");
        Expect.True(plan.Describe().Contains("ms") || plan.Describe().Contains(" s"), plan.Describe());
        Expect.True(plan.Describe(PlanFormat.Json).StartsWith("{") && plan.Describe(PlanFormat.Json).TrimEnd().EndsWith("}"), "JSON");
        Expect.True(plan.Describe(PlanFormat.Timeline).Split('\n').Length > 3, "timeline");
      }
    }
    Matrix small = Matrix.Shape(12, 12, DType.F32);
    using (GemmPlan plan = context.Plan(small, small, small, Placed(MemoryKind.Pageable))) {
      for (int i = 0; i < 5; ++i) {
        float[,] a = Numbers.Floats(random, 12, 12), b = Numbers.Floats(random, 12, 12), c = new float[12, 12], d = new float[12, 12];
        await plan.RunAsync(a, b, c);
        using (GemmJob job = plan.Submit(a, b, d, new GemmOptions { Alpha = 2 })) await job;
        Numbers.Same(Numbers.Multiply(a, b), c, "run " + i);
        Expect.Equal(2 * c[3, 4], d[3, 4], "with another factor");
      }
      Expect.Throws<ArgumentException>(() => { plan.RunAsync(new float[12, 12], new float[12, 12], new float[12, 11]); }, "c");
    }
  }

  static GemmOptions Placed(MemoryKind kind) =>
    new GemmOptions { Plan = new PlanOptions { PlaceA = kind, PlaceB = kind, PlaceC = kind } };

  public static async Task SplitsAreObeyed() {
    float[,] a = Numbers.Floats(random, 64, 64), c = new float[64, 64];
    var split = new GemmOptions { Plan = new PlanOptions { Split = Split.K, Parts = 4 } };
    using (GemmJob job = context.SubmitGemm(a, a, c, split)) {
      await job;
      Expect.True(job.Statistics.Commands >= 4, job.Statistics.Commands + " commands, " + job.Statistics.Strategy);
    }
    Numbers.Same(Numbers.Multiply(a, a), c, "c");
  }
}
