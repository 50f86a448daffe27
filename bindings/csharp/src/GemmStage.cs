// SPDX-License-Identifier: Apache-2.0
using System;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>A stage of a pipeline, whose operations are recorded into its graph. Its matrices have no memory: they stand for
  /// those of each batch.</summary>
  public sealed class GemmStage {
    readonly GemmPipeline pipeline;
    readonly long input, output, workspace;
    readonly long[] weights;

    internal GemmStage(GemmPipeline pipeline, GemmContext context, sg_stage filled, int weightCount) {
      this.pipeline = pipeline;
      Raw.sg_graph_retain(filled.graph);
      Graph = new GemmGraph(context, filled.graph, pipeline);
      input = filled.input;
      output = filled.output;
      workspace = filled.workspace;
      weights = new long[weightCount];
      for (int i = 0; i < weightCount; ++i) weights[i] = filled.weight(i);
    }

    Matrix At(long address, long rows, long cols, DType dtype) {
      return Matrix.At(new IntPtr(address), rows, cols, dtype, keepAlive: pipeline);
    }

    /// <summary>What records the stage's operations. The pipeline runs it.</summary>
    public GemmGraph Graph { get; }

    /// <summary>The batch's input, or the output of the stage before.</summary>
    public Matrix Input(long rows, long cols, DType dtype = DType.F32) {
      return At(input, rows, cols, dtype);
    }

    /// <summary>The stage's output.</summary>
    public Matrix Output(long rows, long cols, DType dtype = DType.F32) {
      return At(output, rows, cols, dtype);
    }

    /// <summary>A matrix in the stage's workspace, whose contents at the start are undefined.</summary>
    public Matrix Workspace(long offset, long rows, long cols, DType dtype = DType.F32) {
      if (workspace == 0) throw new InvalidOperationException("the stage has no workspace");
      return At(workspace + offset, rows, cols, dtype);
    }

    /// <summary>A matrix of weights, by its place among those that the stage was added with.</summary>
    public Matrix Weight(int index, long rows, long cols, DType dtype = DType.F32) {
      return At(weights[index], rows, cols, dtype);
    }
  }
}
