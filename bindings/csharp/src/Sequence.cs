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
    public override string ToString() => Steps + " steps of " + Batch + " sequences of " + Values + " values " + DType;

    /// <summary>Throws unless these are as many steps of as many sequences as those of another, of its type.</summary>
    internal void RequireLike(string name, in Sequence other, string nameOther, long values) {
      if (DType != other.DType || Steps != other.Steps || Batch != other.Batch || Values != values)
        throw new ArgumentException(name + " is " + this + "; with " + nameOther + ", which is " + other + ", a step has " + values + " values", name);
    }
  }
}
