// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmContext {
    /// <summary>Submits a recurrent layer, an LSTM or a GRU over all steps of a batch of sequences, as one job, and returns at once. On a
    /// device with memory of its own, operands are in device memory.</summary>
    /// <param name="x">The inputs; only read.</param>
    /// <param name="wIh">Weights of X: gates * hidden by inputs, contiguous; only read. An LSTM has 4 gates, a GRU 3.</param>
    /// <param name="wHh">Weights of the state: gates * hidden by hidden, contiguous; only read.</param>
    /// <param name="y">The result: the state after each step.</param>
    /// <param name="options">Cell, biases, states, reserve, direction, order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task RecurrentAsync(in Sequence x, in Matrix wIh, in Matrix wHh, in Sequence y, RecurrentOptions options = null,
                               CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, RecurrentCall(x, wIh, wHh, y, options ?? new RecurrentOptions()));

    /// <summary>Computes a recurrent layer, as that of <see cref="RecurrentAsync"/>; blocks until Y is complete.</summary>
    /// <param name="x">The inputs; only read.</param>
    /// <param name="wIh">Weights of X: gates * hidden by inputs, contiguous; only read. An LSTM has 4 gates, a GRU 3.</param>
    /// <param name="wHh">Weights of the state: gates * hidden by hidden, contiguous; only read.</param>
    /// <param name="y">The result: the state after each step.</param>
    /// <param name="options">Cell, biases, states, reserve, direction, order and priority; null: the defaults.</param>
    public void Recurrent(in Sequence x, in Matrix wIh, in Matrix wHh, in Sequence y, RecurrentOptions options = null) =>
      LayerAndWait(options, RecurrentCall(x, wIh, wHh, y, options ?? new RecurrentOptions()));

    /// <summary>Submits the gradients of a recurrent layer as one job, and returns at once. Of a GRU whose reset gate comes before the
    /// product there are none.</summary>
    /// <param name="x">As given to the layer; only read.</param>
    /// <param name="wIh">As given to the layer; only read.</param>
    /// <param name="wHh">As given to the layer; only read.</param>
    /// <param name="y">As the layer computed it; only read.</param>
    /// <param name="gradients">Those of the results, and the results.</param>
    /// <param name="options">As given to the layer, with the reserve that it has written; biases and last states are not used.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task RecurrentBackwardAsync(in Sequence x, in Matrix wIh, in Matrix wHh, in Sequence y, RecurrentGradients gradients,
                                       RecurrentOptions options, CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, RecurrentBackwardCall(x, wIh, wHh, y, gradients, options));

    /// <summary>Computes the gradients of a recurrent layer, as those of <see cref="RecurrentBackwardAsync"/>; blocks until they are
    /// complete.</summary>
    /// <param name="x">As given to the layer; only read.</param>
    /// <param name="wIh">As given to the layer; only read.</param>
    /// <param name="wHh">As given to the layer; only read.</param>
    /// <param name="y">As the layer computed it; only read.</param>
    /// <param name="gradients">Those of the results, and the results.</param>
    /// <param name="options">As given to the layer, with the reserve that it has written; biases and last states are not used.</param>
    public void RecurrentBackward(in Sequence x, in Matrix wIh, in Matrix wHh, in Sequence y, RecurrentGradients gradients,
                                  RecurrentOptions options) =>
      LayerAndWait(options, RecurrentBackwardCall(x, wIh, wHh, y, gradients, options));

    /// <summary>Memory for what the gradients of a recurrent layer need: <see cref="RecurrentOptions.Reserve"/>.</summary>
    /// <param name="y">The layer's result.</param>
    /// <returns>A matrix in device memory of its own.</returns>
    public Matrix AllocateReserve(in Sequence y) {
      DType type = ReserveType(y);
      long width = ReserveWidth(y);
      return AllocateDevice(Math.Max(1, y.Memory.Rows * width * Element.Size(type))).Matrix(y.Memory.Rows, width, type);
    }

    internal static LayerCall RecurrentCall(Sequence x, Matrix wIh, Matrix wHh, Sequence y, RecurrentOptions how) {
      CheckRecurrent(x, wIh, wHh, y, how);
      RequireContiguous(how.BiasIh, 1, how.Gates * y.Values, x.DType, "options.BiasIh");
      RequireContiguous(how.BiasHh, 1, how.Gates * y.Values, x.DType, "options.BiasHh");
      RequireWritable(y.Memory, "y");
      RequireWritable(how.Hn, "options.Hn");
      RequireWritable(how.Cn, "options.Cn");
      RequireWritable(how.Reserve, "options.Reserve");
      long stride = 0;
      CheckState(how.H0, "options.H0", y, ref stride);
      CheckState(how.C0, "options.C0", y, ref stride);
      CheckState(how.Hn, "options.Hn", y, ref stride);
      CheckState(how.Cn, "options.Cn", y, ref stride);
      return (pins, o) => {
        long atX = pins.Take(x.Memory), atY = pins.Take(y.Memory), atWih = pins.Take(wIh), atWhh = pins.Take(wHh);
        long atBiasIh = pins.Take(how.BiasIh), atBiasHh = pins.Take(how.BiasHh), atH0 = pins.Take(how.H0), atC0 = pins.Take(how.C0);
        long atHn = pins.Take(how.Hn), atCn = pins.Take(how.Cn), atReserve = pins.Take(how.Reserve);
        return RawPINVOKE.sg_flat_recurrent_async(o.Context, o.Graph, (int)how.Cell, (int)how.GateOrder, x.Steps, x.Batch, x.Values, y.Values,
          atX, x.StepStride, x.BatchStride, atY, y.StepStride, y.BatchStride, atWih, atWhh, atBiasIh, atBiasHh,
          atH0, atC0, atHn, atCn, stride, atReserve, (int)x.DType, (int)how.Compute, how.Reverse ? 1 : 0,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    internal static LayerCall RecurrentBackwardCall(Sequence x, Matrix wIh, Matrix wHh, Sequence y, RecurrentGradients g, RecurrentOptions how) {
      if (g == null) throw new ArgumentNullException("gradients");
      if (how == null) throw new ArgumentNullException("options");
      CheckRecurrent(x, wIh, wHh, y, how);
      if (how.Reserve.DType == 0) throw new ArgumentException("options.Reserve is missing; the gradients need it", "options");
      if (g.Dy.DType != 0) g.Dy.RequireLike("gradients.Dy", x, "x", y.Values);
      if (g.Dx.DType != 0) g.Dx.RequireLike("gradients.Dx", x, "x", x.Values);
      long rows = how.Gates * y.Values, stride = 0;
      DType type = g.Type(x.DType);
      RequireContiguous(g.DwIh, rows, x.Values, type, "gradients.DwIh");
      RequireContiguous(g.DwHh, rows, y.Values, type, "gradients.DwHh");
      RequireContiguous(g.DbiasIh, 1, rows, type, "gradients.DbiasIh");
      RequireContiguous(g.DbiasHh, 1, rows, type, "gradients.DbiasHh");
      Matrix h0 = g.DwHh.DType == 0 ? default(Matrix) : how.H0;
      CheckState(h0, "options.H0", y, ref stride);
      CheckState(g.Dhn, "gradients.Dhn", y, ref stride);
      CheckState(g.Dcn, "gradients.Dcn", y, ref stride);
      CheckState(g.Dh0, "gradients.Dh0", y, ref stride);
      CheckState(g.Dc0, "gradients.Dc0", y, ref stride);
      RequireWritable(g.Dx.Memory, "gradients.Dx");
      RequireWritable(g.DwIh, "gradients.DwIh");
      RequireWritable(g.DwHh, "gradients.DwHh");
      RequireWritable(g.DbiasIh, "gradients.DbiasIh");
      RequireWritable(g.DbiasHh, "gradients.DbiasHh");
      RequireWritable(g.Dh0, "gradients.Dh0");
      RequireWritable(g.Dc0, "gradients.Dc0");
      return (pins, o) => {
        long atX = g.DwIh.DType == 0 ? 0 : pins.Take(x.Memory), atY = g.DwHh.DType == 0 ? 0 : pins.Take(y.Memory);
        long atWih = g.Dx.DType == 0 ? 0 : pins.Take(wIh), atWhh = pins.Take(wHh), atH0 = pins.Take(h0), atReserve = pins.Take(how.Reserve);
        long atDy = pins.Take(g.Dy.Memory), atDhn = pins.Take(g.Dhn), atDcn = pins.Take(g.Dcn), atDx = pins.Take(g.Dx.Memory);
        long atDwIh = pins.Take(g.DwIh), atDwHh = pins.Take(g.DwHh), atDbiasIh = pins.Take(g.DbiasIh), atDbiasHh = pins.Take(g.DbiasHh);
        long atDh0 = pins.Take(g.Dh0), atDc0 = pins.Take(g.Dc0);
        return RawPINVOKE.sg_flat_recurrent_backward_async(o.Context, o.Graph, (int)how.Cell, (int)how.GateOrder, x.Steps, x.Batch, x.Values,
          y.Values, atX, x.StepStride, x.BatchStride, atY, y.StepStride, y.BatchStride, atWih, atWhh, atH0, atReserve,
          atDy, g.Dy.StepStride, g.Dy.BatchStride, atDhn, atDcn, atDx, g.Dx.StepStride, g.Dx.BatchStride,
          atDwIh, atDwHh, atDbiasIh, atDbiasHh, atDh0, atDc0, stride, (int)x.DType, (int)type, (int)how.Compute, how.Reverse ? 1 : 0,
          g.Accumulate ? 1 : 0,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    static void CheckRecurrent(in Sequence x, in Matrix wIh, in Matrix wHh, in Sequence y, RecurrentOptions how) {
      y.RequireLike("y", x, "x", y.Values);
      long rows = how.Gates * y.Values;
      RequireFor("x", x.Memory, "wIh", wIh);
      RequireFor("x", x.Memory, "wHh", wHh);
      RequireContiguous(wIh, rows, x.Values, x.DType, "wIh");
      RequireContiguous(wHh, rows, y.Values, x.DType, "wHh");
      RequireContiguous(how.Reserve, y.Memory.Rows, ReserveWidth(y), ReserveType(y), "options.Reserve");
    }

    // Elements from one state to the next are the same for all.
    static void CheckState(in Matrix state, string name, in Sequence y, ref long stride) {
      if (state.DType == 0) return;
      if (state.DType != y.DType || state.Rows != y.Batch || state.Cols != y.Values || state.Layout != Layout.RowMajor)
        throw new ArgumentException(name + " is " + state + "; it must be " + y.Batch + " x " + y.Values + ", row major, of " + y.DType, name);
      if (stride != 0 && stride != state.Ld)
        throw new ArgumentException(name + " is " + state + "; the leading dimension of another state is " + stride, name);
      stride = state.Ld;
    }

    static DType ReserveType(in Sequence y) => y.DType == DType.F64 ? DType.F64 : DType.F32;

    // Elements of the reserve for each step of each sequence.
    static long ReserveWidth(in Sequence y) {
      ulong bytes;
      Raw.sg_flat_recurrent_reserve_size(y.Steps, y.Batch, y.Values, (int)y.DType, out bytes);
      return y.Memory.Rows == 0 ? 0 : (long)bytes / y.Memory.Rows / Element.Size(ReserveType(y));
    }
  }

  /// <summary>A recurrent layer beside its sequences and weights, and the options of its submission.</summary>
  public sealed class RecurrentOptions : SubmitOptions {
    /// <summary>LSTM, the default, or GRU.</summary>
    public Cell Cell { get; set; }

    /// <summary>Order of the gates in weights and biases. Default: PyTorch's.</summary>
    public GateOrder GateOrder { get; set; }

    /// <summary>A row of gates * hidden values; only read, and not by the gradients. Default: zeros.</summary>
    public Matrix BiasIh { get; set; }

    /// <summary>Likewise.</summary>
    public Matrix BiasHh { get; set; }

    /// <summary>The first state: a row of hidden values for each sequence; only read. Default: zeros.</summary>
    public Matrix H0 { get; set; }

    /// <summary>Likewise the first c, of an LSTM.</summary>
    public Matrix C0 { get; set; }

    /// <summary>A result: the last state, like H0, which it may be. Default: it is not stored.</summary>
    public Matrix Hn { get; set; }

    /// <summary>Likewise the last c, of an LSTM.</summary>
    public Matrix Cn { get; set; }

    /// <summary>Memory of what the gradients need, of <see cref="GemmContext.AllocateReserve"/> or like it: the layer writes it, they read
    /// it. Default: none.</summary>
    public Matrix Reserve { get; set; }

    /// <summary>From the last step to the first.</summary>
    public bool Reverse { get; set; }

    /// <summary>The least accurate arithmetic of the products allowed. Default: exact.</summary>
    public Compute Compute { get; set; }

    internal long Gates => Cell == Cell.Lstm ? 4 : 3;
  }

  /// <summary>The gradients of a recurrent layer, given ones and results. A given one that is left out is zeros, a result that is left out
  /// is not computed.</summary>
  public sealed class RecurrentGradients {
    /// <summary>The gradient of Y; only read.</summary>
    public Sequence Dy { get; set; }

    /// <summary>The gradient of the last state; only read.</summary>
    public Matrix Dhn { get; set; }

    /// <summary>The gradient of the last c, of an LSTM; only read.</summary>
    public Matrix Dcn { get; set; }

    /// <summary>A result: the gradient of X.</summary>
    public Sequence Dx { get; set; }

    /// <summary>A result like wIh. This and the next three are of one type: the layer's, or F32 for F16 and BF16.</summary>
    public Matrix DwIh { get; set; }

    /// <summary>A result like wHh.</summary>
    public Matrix DwHh { get; set; }

    /// <summary>A result like BiasIh.</summary>
    public Matrix DbiasIh { get; set; }

    /// <summary>A result like BiasHh.</summary>
    public Matrix DbiasHh { get; set; }

    /// <summary>A result: the gradient of the first state.</summary>
    public Matrix Dh0 { get; set; }

    /// <summary>A result: the gradient of the first c, of an LSTM.</summary>
    public Matrix Dc0 { get; set; }

    /// <summary>Adds the gradients of weights and biases to what is there; otherwise they replace it.</summary>
    public bool Accumulate { get; set; }

    internal DType Type(DType otherwise) {
      foreach (Matrix m in new[] { DwIh, DwHh, DbiasIh, DbiasHh })
        if (m.DType != 0) return m.DType;
      return otherwise;
    }
  }
}
