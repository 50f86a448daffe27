// SPDX-License-Identifier: Apache-2.0
using System;
using System.Linq;
using StreamGemm;

/// <summary>A context of several devices: where streams, memory and GEMMs are.</summary>
static class SeveralDevicesTest {
  static readonly GemmContext context = new GemmContext("sim:h200x2");
  static readonly Random random = new Random(7);
  static readonly float[,] a = Numbers.Floats(random, 48, 48), b = Numbers.Floats(random, 48, 48);

  static Matrix OnDevice(int device, float[,] values = null) {
    Matrix made = context.AllocateDevice(4 * 48 * 48, new BufferOptions { Device = device }).Matrix(48, 48, DType.F32);
    if (values != null) context.Copy(values, made);
    return made;
  }

  static float[,] Fetched(Matrix from) {
    var made = new float[48, 48];
    context.Copy(from, made);
    return made;
  }

  static ulong DevicesOf(GemmJob job) {
    job.Wait();
    return (ulong)job.Statistics.Devices;
  }

  public static void EachIsDescribed() {
    Expect.Equal("sim:h200x2/0 sim:h200x2/1", string.Join(" ", context.Devices.Select(d => d.Name)), "names");
    Expect.Equal(2, context.DeviceCount, "count");
    Expect.Equal(context.Device.Name, context.GetDeviceInfo(0).Name, "the first");
    using (var one = new GemmContext("cpu")) Expect.Equal(1, one.Devices.Count, "one");
  }

  public static void AGemmRunsWhereItsOperandsAre() {
    float[,] product = Numbers.Multiply(a, b);
    for (int device = 0; device < 2; ++device) {
      Matrix c = OnDevice(device);
      Expect.Equal(1UL << device, DevicesOf(context.SubmitGemm(OnDevice(device, a), OnDevice(device, b), c)), "device");
      Numbers.Same(product, Fetched(c), "GEMM");
    }
    Matrix copied = OnDevice(1);
    Expect.Equal(2UL, DevicesOf(context.SubmitGemm(OnDevice(0, a), OnDevice(1, b), copied)), "memory of both");
    Numbers.Same(product, Fetched(copied), "GEMM");
  }

  public static void AStreamKeepsItsWorkOnItsDevice() {
    for (int device = 0; device < 2; ++device)
      using (GemmStream stream = context.CreateStream(new StreamOptions { Device = device })) {
        var c = new float[48, 48];
        Expect.Equal(1UL << device, DevicesOf(context.SubmitGemm(a, b, c, new GemmOptions { Stream = stream })), "device");
        Numbers.Same(Numbers.Multiply(a, b), c, "GEMM");
      }
  }

  public static void AGemmIsSharedOut() {
    var c = new float[48, 48];
    var both = new GemmOptions { Plan = new PlanOptions { DeviceCount = 2 } };
    Expect.Equal(3UL, DevicesOf(context.SubmitGemm(a, b, c, both)), "devices");
    Numbers.Same(Numbers.Multiply(a, b), c, "GEMM");
  }

  public static void APlanTellsTheMemoryOnEach() {
    using (GemmPlan plan = context.Plan(a, b, new float[48, 48], new GemmOptions { Plan = new PlanOptions { DeviceCount = 2 } })) {
      Expect.True(Math.Min(plan.DeviceSize(0), plan.DeviceSize(1)) > 0, "on each");
      Expect.Equal(plan.Prediction.DeviceBytes, Math.Max(plan.DeviceSize(0), plan.DeviceSize(1)), "most");
    }
  }

  public static void SumsAreOnEach() {
    float[,] sum = Numbers.Floats(random, 48, 48), doubled = Numbers.Floats(random, 48, 48);
    for (int i = 0; i < 48; ++i)
      for (int j = 0; j < 48; ++j) {
        sum[i, j] = a[i, j] + b[i, j];
        doubled[i, j] = 2 * sum[i, j];
      }
    Matrix[] both = { OnDevice(0, a), OnDevice(1, b) };
    context.AllReduceAsync(both).Wait();
    foreach (Matrix each in both) Numbers.Same(sum, Fetched(each), "sum");
    context.AllReduce(both);
    foreach (Matrix each in both) Numbers.Same(doubled, Fetched(each), "sum of sums");
    using (GemmGraph graph = context.CreateGraph()) {
      context.Copy(a, both[0]);
      context.Copy(b, both[1]);
      Expect.Equal(0, graph.RecordAllReduce(both), "index");
      graph.RunAsync().Wait();
      foreach (Matrix each in both) Numbers.Same(sum, Fetched(each), "recorded");
    }
    Expect.Throws<ArgumentException>(() => context.AllReduce(new Matrix[0]), "there are 0 operands");
    Expect.Throws<ArgumentException>(() => context.AllReduce(new Matrix[] { both[0], a }), "operands[1]");
    Matrix larger = context.AllocateDevice(4 * 49 * 48, new BufferOptions { Device = 1 }).Matrix(49, 48, DType.F32);
    Expect.Throws<ArgumentException>(() => context.AllReduce(new[] { both[0], larger }), "must be equal");
  }

  public static void APipelineHasStagesOnEach() {
    using (GemmPipeline pipeline = context.CreatePipeline(new PipelineOptions { InputBytes = 4 * 48 * 48 })) {
      foreach (int device in new[] { 0, 1 }) {
        GemmStage stage = pipeline.AddStage(4 * 48 * 48, new Matrix[] { b }, place: WeightsPlace.Streamed, device: device);
        stage.Graph.Record(stage.Input(48, 48), stage.Weight(0, 48, 48), stage.Output(48, 48));
      }
      Expect.Throws<ArgumentException>(() => pipeline.AddStage(64, device: 2), "device is 2");
      GemmStage last = pipeline.AddStage(4 * 48 * 48);  // where the one before is
      last.Graph.RecordElementwise(Function.Relu, last.Input(48, 48), default(Matrix), last.Output(48, 48));
      string text = pipeline.Describe();
      Expect.Equal(true, text.Contains("device 0: 1 stage,") && text.Contains("device 1: 2 stages,"), text);
      var found = new float[48, 48];
      using (GemmJob job = pipeline.Push(a, found)) job.Wait();
      float[,] expected = Numbers.Multiply(Numbers.Multiply(a, b), b);
      for (int i = 0; i < 48; ++i)
        for (int j = 0; j < 48; ++j) expected[i, j] = Math.Max(0, expected[i, j]);
      Numbers.Same(expected, found, "a batch");
    }
  }

  public static void BatchesGoRoundReplicas() {
    using (GemmPipeline pipeline = context.CreatePipeline(new PipelineOptions { InputBytes = 4 * 48 * 48, Replicas = Replicas.Batches })) {
      GemmStage stage = pipeline.AddStage(4 * 48 * 48, new Matrix[] { b }, place: WeightsPlace.Streamed);
      stage.Graph.Record(stage.Input(48, 48), stage.Weight(0, 48, 48), stage.Output(48, 48));
      Expect.Equal(2, pipeline.Prepare().Replicas, "replicas");
      float[][,] found = { new float[48, 48], new float[48, 48], new float[48, 48] };
      using (GemmJob job = pipeline.PushBatches(new Matrix[] { a, b, a }, new Matrix[] { found[0], found[1], found[2] })) job.Wait();
      Numbers.Same(Numbers.Multiply(a, b), found[0], "the first batch");
      Numbers.Same(Numbers.Multiply(b, b), found[1], "the second batch");
      Numbers.Same(found[0], found[2], "the third batch");
      pipeline.PushBatchesAsync(new Matrix[] { b }, new Matrix[] { found[0] }).Wait();
      Numbers.Same(found[1], found[0], "a batch alone");
      Expect.Throws<ArgumentException>(() => pipeline.PushBatches(new Matrix[] { a }, new Matrix[0]), "outputs has 0 items, and inputs has 1");
      Expect.Throws<ArgumentException>(() => pipeline.PushBatches(new Matrix[0], new Matrix[0]));
      Expect.Throws<ArgumentException>(() => context.CreatePipeline(new PipelineOptions { InputBytes = 8, Replicas = (Replicas)7 }));
    }
  }

  public static void OtherDevicesAreRefusedByName() {
    foreach (int device in new[] { 2, -2 }) {
      Expect.Throws<ArgumentException>(() => context.AllocateDevice(64, new BufferOptions { Device = device }), "options.Device is " + device);
      Expect.Throws<ArgumentException>(() => context.CreateStream(new StreamOptions { Device = device }), "options.Device is " + device);
      Expect.Throws<ArgumentException>(() => context.GetDeviceInfo(device), "device is " + device);
    }
  }
}
