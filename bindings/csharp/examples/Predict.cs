// SPDX-License-Identifier: Apache-2.0
using System;
using StreamGemm;

/// <summary>The predicted time of a GEMM on a GPU that this machine does not have.</summary>
static class Predict {
  static void Main(string[] args) {
    using (var context = new GemmContext("sim:h200")) {
      Matrix shape = Matrix.Shape(16384, 16384, DType.F32);
      var options = new GemmOptions {
        Compute = Compute.Tf32,
        Plan = new PlanOptions { PlaceA = MemoryKind.Pinned, PlaceB = MemoryKind.Pinned, PlaceC = MemoryKind.Pinned }
      };
      using (GemmPlan plan = context.Plan(shape, shape, shape, options)) {
        PlanPrediction says = plan.Prediction;
        Console.WriteLine(plan.Describe());
        Console.WriteLine(plan.Describe(PlanFormat.Timeline));
        Console.WriteLine("predicted " + says.PredictedSeconds.ToString("0.0000") + " s, no schedule below " +
                          says.BoundSeconds.ToString("0.0000") + " s, without overlap " + says.SerialSeconds.ToString("0.0000") + " s");
        if (says.PredictedSeconds < says.BoundSeconds || says.PredictedSeconds > says.SerialSeconds) throw new Exception("wrong");
      }
    }
  }
}
