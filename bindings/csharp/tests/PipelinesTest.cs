// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Batches through stages.</summary>
static class PipelinesTest {
  static readonly GemmContext context = new GemmContext(Harness.Device);
  static readonly Random random = new Random(77);
  const int n = 9;
  const long bytes = 4 * n * n;

  static GemmPipeline TwoStages(float[,] w, float[,] v, WeightsPlace place) {
    GemmPipeline made = context.CreatePipeline(new PipelineOptions { InputBytes = bytes, Depth = 2 });
    foreach (float[,] each in new[] { w, v }) {
      GemmStage stage = made.AddStage(bytes, new Matrix[] { each }, place: place, name: "layer");
      stage.Graph.Record(stage.Input(n, n), stage.Weight(0, n, n), stage.Output(n, n));
    }
    return made;
  }

  public static async Task BatchesPassThroughTheStages() {
    float[,] w = Numbers.Floats(random, n, n), v = Numbers.Floats(random, n, n);
    foreach (WeightsPlace place in new[] { WeightsPlace.Auto, WeightsPlace.Resident, WeightsPlace.Streamed })
      using (GemmPipeline pipeline = TwoStages(w, v, place)) {
        var inputs = new List<float[,]>();
        var results = new List<float[,]>();
        var tasks = new List<Task>();
        for (int i = 0; i < 6; ++i) {
          inputs.Add(Numbers.Floats(random, n, n));
          results.Add(new float[n, n]);
          tasks.Add(pipeline.PushAsync(inputs[i], results[i]));
        }
        await Task.WhenAll(tasks);
        for (int i = 0; i < 6; ++i)
          Numbers.Same(Numbers.Multiply(Numbers.Multiply(inputs[i], w), v), results[i], "batch " + i);
        var last = new float[n, n];
        using (GemmJob job = pipeline.Push(inputs[0], last)) job.Wait();
        Numbers.Same(results[0], last, "again");
        Expect.Equal(2, pipeline.Prepare().Stages, "stages");
        Expect.Equal(true, pipeline.Describe().Contains("2 stages"), "the description");
      }
  }

  public static async Task LayersInAStage() {
    float[,] w = Numbers.Floats(random, n, n), x = Numbers.Floats(random, n, n), found = new float[n, n];
    using (GemmPipeline pipeline = context.CreatePipeline(new PipelineOptions { InputBytes = bytes })) {
      GemmStage stage = pipeline.AddStage(bytes, new Matrix[] { w }, workspace: bytes);
      stage.Graph.RecordLinear(stage.Input(n, n), stage.Weight(0, n, n), stage.Workspace(0, n, n));
      stage.Graph.RecordElementwise(Function.Relu, stage.Workspace(0, n, n), default(Matrix), stage.Output(n, n));
      await pipeline.PushAsync(x, found);
    }
    float[,] expected = Numbers.Multiply(x, w);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) expected[i, j] = Math.Max(0, expected[i, j]);
    Numbers.Same(expected, found, "a linear layer and its activation");
  }

  public static Task WrongUseIsRefused() {
    float[,] w = Numbers.Floats(random, n, n);
    using (GemmPipeline pipeline = TwoStages(w, w, WeightsPlace.Auto)) {
      float[,] whole = new float[n, n], half = new float[n - 1, n];
      Expect.Throws<ArgumentException>(() => pipeline.Push(half, whole));
      Expect.Throws<ArgumentException>(() => pipeline.Push(whole, half));
      pipeline.Prepare();
      Expect.Throws<BusyException>(() => pipeline.AddStage(bytes));
      Expect.Throws<ArgumentException>(() => context.CreatePipeline(new PipelineOptions { InputBytes = 8, Depth = -1 }));
    }
    return Task.CompletedTask;
  }

  public static void TheMatricesOfAStageAreRefusedElsewhere() {
    using (GemmPipeline pipeline = context.CreatePipeline(new PipelineOptions { InputBytes = bytes }))
    using (var other = new GemmContext("cpu")) {
      GemmStage stage = pipeline.AddStage(bytes, workspace: bytes);
      stage.Graph.Record(stage.Input(n, n), stage.Input(n, n), stage.Output(n, n));
      Matrix y = context.AllocateDevice(bytes).Matrix(n, n, DType.F32);
      var host = new float[n, n];
      foreach (Matrix m in new[] { stage.Input(n, n), stage.Output(n, n), stage.Workspace(0, n, n) })
        foreach (Action use in new Action[] {
                   () => context.Gemm(m, m, y), () => context.GemmAsync(m, m, y).Wait(), () => context.Axpby(m, y), () => context.Copy(m, host),
                   () => context.Custom(call => { }, new[] { m }, new[] { y }), () => pipeline.PushAsync(m, y).Wait(), () => other.Gemm(m, m, host) }) {
          string said = Expect.Throws<ArgumentException>(use).Message;
          Expect.True(said.Contains("an address of a pipeline's stage") || said.Contains("in the device memory of another context"), said);
        }
    }
  }
}
