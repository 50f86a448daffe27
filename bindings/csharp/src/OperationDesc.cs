// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;

namespace StreamGemm {
  /// <summary>An operation and its operands, made by the methods of <see cref="Operations"/>: a plan is made for it and runs it, a graph
  /// records it. It is immutable: its options
  /// are copies of those that it is made with. Matrices are neither copied nor pinned. The order and priority of the options that it is made with are not used: what
  /// runs it takes options of its own.</summary>
  public sealed class OperationDesc {
    internal readonly LayerCall Call;

    internal OperationDesc(LayerCall call) {
      Call = call;
    }

    internal static OperationDesc Given(OperationDesc operation) => operation ?? throw new ArgumentNullException("operation");
  }

  public static partial class Operations {
    /// <summary>C = activation(alpha * op(A) * op(B) + beta * C + bias), as <see cref="GemmContext.GemmAsync"/> computes it.</summary>
    public static OperationDesc Gemm(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) =>
      new OperationDesc(GemmContext.GemmCall(Internal.Call.Gemm, a, b, c, options?.Copy()));

    /// <summary>A batch of GEMMs, as <see cref="GemmContext.GemmBatchAsync"/> computes it. A plan needs their memory.</summary>
    public static OperationDesc GemmBatch(IReadOnlyList<Matrix> a, IReadOnlyList<Matrix> b, IReadOnlyList<Matrix> c, GemmOptions options = null) =>
      new OperationDesc(GemmContext.BatchCall(a, b, c, options?.Copy()));

    /// <summary>GEMMs of different shapes, types and scalars, as <see cref="GemmContext.GemmGroupAsync"/> computes them.</summary>
    public static OperationDesc GemmGroup(IReadOnlyList<GemmItem> items) => new OperationDesc(GemmContext.GroupCall(items));

    /// <summary>A copy of the elements of one matrix to another.</summary>
    public static OperationDesc Copy(in Matrix source, in Matrix destination) => new OperationDesc(GemmContext.CopyCall(source, destination));

    /// <summary>A function of the application's, as <see cref="GemmContext.CustomAsync"/> runs it. A plan, or a graph that is updated, keeps
    /// the function: later descriptions name the same one.</summary>
    public static OperationDesc Custom(Action<CustomCall> function, Matrix[] reads = null, Matrix[] writes = null, Matrix[] updates = null,
                                       CustomOptions options = null) =>
      new OperationDesc(GemmContext.CustomOperation(function, reads, writes, updates, options?.Copy() ?? new CustomOptions()));

    /// <summary>An all-reduce, as <see cref="GemmContext.AllReduceAsync"/> computes it.</summary>
    public static OperationDesc AllReduce(Matrix[] operands) => new OperationDesc(GemmContext.AllReduceOperation(operands));
  }
}
