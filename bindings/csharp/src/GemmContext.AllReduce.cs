// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmContext {
    const int MaxAllReduceOperands = 64;  // SG_MAX_ALL_REDUCE_OPERANDS

    /// <summary>Submits an all-reduce: each matrix becomes the sum of all of them. One job for all of the context's devices, which the
    /// memory of the matrices orders.</summary>
    /// <param name="operands">Matrices without gaps, each in the memory of its device, of one shape, type and layout.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task AllReduceAsync(Matrix[] operands, SubmitOptions options = null,
                               CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, AllReduceOperation(operands));

    /// <summary>An all-reduce, as <see cref="AllReduceAsync"/>; blocks until it is complete.</summary>
    /// <param name="operands">Matrices without gaps, each in the memory of its device, of one shape, type and layout.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    public void AllReduce(Matrix[] operands, SubmitOptions options = null) => LayerAndWait(options, AllReduceOperation(operands));

    internal static LayerCall AllReduceOperation(Matrix[] given) {
      if (given == null) throw new ArgumentNullException("operands");
      var operands = (Matrix[])given.Clone();
      int count = operands.Length;
      if (count < 1 || count > MaxAllReduceOperands)
        throw new ArgumentException("there are " + count + " operands; an all-reduce has from 1 to " + MaxAllReduceOperands, "operands");
      Matrix first = operands[0];
      for (int i = 0; i < count; ++i) {
        Matrix m = operands[i];
        string name = "operands[" + i + "]";
        m.RequireWritable(name);
        if (m.Outer > 1 && m.Span != m.Rows * m.Cols) throw new ArgumentException(name + " is " + m + ", which has gaps", name);
        if (m.DType != first.DType || m.Layout != first.Layout || m.Rows != first.Rows || m.Cols != first.Cols)
          throw new ArgumentException(name + " is " + m + " and operands[0] is " + first + "; shapes, types and layouts must be equal", name);
      }
      return (pins, submission) => {
        var addresses = stackalloc long[MaxAllReduceOperands];
        for (int i = 0; i < count; ++i) addresses[i] = pins.Take(operands[i]);
        sg_all_reduce_desc d = sg_all_reduce_desc.Initial;
        d.operands = (long)addresses;
        d.elements = first.Rows * first.Cols;
        d.operand_count = count;
        d.dtype = first.DType;
        return submission.Run(Call.AllReduce, &d);
      };
    }
  }
}
