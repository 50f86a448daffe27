// SPDX-License-Identifier: Apache-2.0
using System;

namespace StreamGemm {
  /// <summary>Steps of a batch of sequences, each in a row of a matrix. Copies and pins nothing.</summary>
  public readonly struct Sequence {
    internal readonly Matrix Memory;
    internal readonly long StepStride, BatchStride;

    /// <summary>Number of steps.</summary>
    public long Steps { get; }
    /// <summary>Number of sequences.</summary>
    public long Batch { get; }
    /// <summary>Values of a step.</summary>
    public long Values => Memory.Cols;
    /// <summary>Element type; 0 of default(Sequence), which stands for none.</summary>
    public DType DType => Memory.DType;

    Sequence(in Matrix memory, long batch, bool byStep) {
      if (memory.Layout != Layout.RowMajor) throw new ArgumentException("memory is " + memory + "; it must be row major", "memory");
      if (batch < 1 || memory.Rows % batch != 0)
        throw new ArgumentException("batch is " + batch + ", which does not divide the rows of " + memory, "batch");
      Memory = memory;
      Batch = batch;
      Steps = memory.Rows / batch;
      StepStride = byStep ? batch * memory.Ld : memory.Ld;
      BatchStride = byStep ? memory.Ld : Steps * memory.Ld;
    }

    /// <summary>The first step of all sequences, then the second, ...</summary>
    /// <param name="memory">Row major; a row is a step of one sequence. A layer in both directions writes two blocks of columns.</param>
    /// <param name="batch">Number of sequences, which divides the rows.</param>
    public static Sequence ByStep(in Matrix memory, long batch = 1) => new Sequence(memory, batch, true);

    /// <summary>All steps of the first sequence, then those of the second, ...</summary>
    /// <param name="memory">Row major; a row is a step of one sequence. A layer in both directions writes two blocks of columns.</param>
    /// <param name="batch">Number of sequences, which divides the rows.</param>
    public static Sequence ByBatch(in Matrix memory, long batch = 1) => new Sequence(memory, batch, false);

    /// <inheritdoc/>
    public override string ToString() => Describe(DType, Steps, Batch, Values);

    static string Describe(DType dtype, long steps, long batch, long values) =>
      steps + " steps of " + batch + " sequences of " + values + " values " + dtype;

    internal Internal.sg_sequence In(Pins pins) =>
      new Internal.sg_sequence { data = pins.Take(Memory), step_stride = StepStride, batch_stride = BatchStride };

    internal void RequireWritable(string name) => Memory.RequireWritable(name);

    internal void Require(string name, DType dtype, long steps, long batch, long values) {
      if (DType != dtype || Steps != steps || Batch != batch || Values != values)
        throw new ArgumentException(name + " is " + this + "; it must be " + Describe(dtype, steps, batch, values), name);
    }
  }
}
