// SPDX-License-Identifier: Apache-2.0
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmContext {
    /// <summary>Submits a linear layer, Y = activation(X * W + bias), and returns at once. Its operands may be in any memory.</summary>
    /// <param name="x">Rows by inputs; only read.</param>
    /// <param name="w">Inputs by outputs, or outputs by inputs with OpW; only read.</param>
    /// <param name="y">The result, rows by outputs.</param>
    /// <param name="options">Bias, activation, order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task LinearAsync(in Matrix x, in Matrix w, in Matrix y, LinearOptions options = null,
                            CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, LinearCall(x, w, y, options ?? new LinearOptions()));

    /// <summary>Computes a linear layer, Y = activation(X * W + bias); blocks until Y is complete.</summary>
    /// <param name="x">Rows by inputs; only read.</param>
    /// <param name="w">Inputs by outputs, or outputs by inputs with OpW; only read.</param>
    /// <param name="y">The result, rows by outputs.</param>
    /// <param name="options">Bias, activation, order and priority; null: the defaults.</param>
    public void Linear(in Matrix x, in Matrix w, in Matrix y, LinearOptions options = null) =>
      LayerAndWait(options, LinearCall(x, w, y, options ?? new LinearOptions()));

    /// <summary>Submits the gradients of a linear layer as one job, dX = dY * W^T, dW = X^T * dY and dbias, the sums of dY's columns, and
    /// returns at once. dY is the gradient of the loss with respect to X * W + bias: the activation's derivative has been applied. A
    /// result that is left out is not computed. Operands may be in any memory.</summary>
    /// <param name="dy">Rows by outputs; only read.</param>
    /// <param name="x">As given to the layer; only read. Not needed without dW.</param>
    /// <param name="w">As given to the layer; only read. Not needed without dX.</param>
    /// <param name="dx">A result like X.</param>
    /// <param name="dw">A result like W.</param>
    /// <param name="dbias">A result: a row with a value for each output.</param>
    /// <param name="options">Of which OpW, Compute, Accumulate, order and priority apply; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task LinearBackwardAsync(Matrix dy, Matrix x = default(Matrix), Matrix w = default(Matrix), Matrix dx = default(Matrix),
                                    Matrix dw = default(Matrix), Matrix dbias = default(Matrix), LinearOptions options = null,
                                    CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, LinearBackwardCall(dy, x, w, dx, dw, dbias, options ?? new LinearOptions()));

    /// <summary>Computes the gradients of a linear layer, as those of <see cref="LinearBackwardAsync"/>; blocks until they are
    /// complete.</summary>
    /// <param name="dy">Rows by outputs; only read.</param>
    /// <param name="x">As given to the layer; only read. Not needed without dW.</param>
    /// <param name="w">As given to the layer; only read. Not needed without dX.</param>
    /// <param name="dx">A result like X.</param>
    /// <param name="dw">A result like W.</param>
    /// <param name="dbias">A result: a row with a value for each output.</param>
    /// <param name="options">Of which OpW, Compute, Accumulate, order and priority apply; null: the defaults.</param>
    public void LinearBackward(Matrix dy, Matrix x = default(Matrix), Matrix w = default(Matrix), Matrix dx = default(Matrix),
                               Matrix dw = default(Matrix), Matrix dbias = default(Matrix), LinearOptions options = null) =>
      LayerAndWait(options, LinearBackwardCall(dy, x, w, dx, dw, dbias, options ?? new LinearOptions()));

    internal static LayerCall LinearCall(Matrix x, Matrix w, Matrix y, LinearOptions how) {
      RequireWritable(y, "y");
      RequireContiguous(how.Bias, 1, y.Cols, y.DType, "options.Bias");
      return (pins, o) => {
        long atX = pins.Take(x), atW = pins.Take(w), atY = pins.Take(y), atBias = pins.Take(how.Bias);
        return RawPINVOKE.sg_flat_linear_async(o.Context, o.Graph,
          atX, x.Rows, x.Cols, x.Ld, (int)x.DType, (int)x.Layout, atW, w.Rows, w.Cols, w.Ld, (int)w.DType, (int)w.Layout,
          atY, y.Rows, y.Cols, y.Ld, (int)y.DType, (int)y.Layout, atBias, (int)how.OpW, (int)how.Activation, (int)how.Compute,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    internal static LayerCall LinearBackwardCall(Matrix dy, Matrix x, Matrix w, Matrix dx, Matrix dw, Matrix dbias, LinearOptions how) {
      RequireFor("dx", dx, "w", w);
      RequireFor("dw", dw, "x", x);
      RequireWritable(dx, "dx");
      RequireWritable(dw, "dw");
      RequireWritable(dbias, "dbias");
      RequireContiguous(dbias, 1, dy.Cols, 0, "dbias");
      if (dx.DType == 0) w = default(Matrix);
      if (dw.DType == 0) x = default(Matrix);
      return (pins, o) => {
        long atDy = pins.Take(dy), atX = pins.Take(x), atW = pins.Take(w), atDx = pins.Take(dx), atDw = pins.Take(dw);
        long atDbias = pins.Take(dbias);
        return RawPINVOKE.sg_flat_linear_backward_async(o.Context, o.Graph,
          atDy, dy.Rows, dy.Cols, dy.Ld, (int)dy.DType, (int)dy.Layout, atX, x.Rows, x.Cols, x.Ld, (int)x.DType, (int)x.Layout,
          atW, w.Rows, w.Cols, w.Ld, (int)w.DType, (int)w.Layout, atDx, dx.Rows, dx.Cols, dx.Ld, (int)dx.DType, (int)dx.Layout,
          atDw, dw.Rows, dw.Cols, dw.Ld, (int)dw.DType, (int)dw.Layout, atDbias, (int)dbias.DType, (int)how.OpW, (int)how.Compute,
          how.Accumulate ? 1 : 0,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }
  }

  /// <summary>A linear layer beside its matrices, and the options of its submission.</summary>
  public sealed class LinearOptions : SubmitOptions {
    /// <summary>A row with a value for each output, of Y's type; only read, and not by the gradients. Default: none.</summary>
    public Matrix Bias { get; set; }

    /// <summary>How W, and dW, is stored. N, the default: inputs by outputs; T: outputs by inputs.</summary>
    public Op OpW { get; set; }

    /// <summary>The activation applied last to each element of Y. Default: none. The gradients do not apply its derivative.</summary>
    public Activation Activation { get; set; }

    /// <summary>The least accurate arithmetic allowed. Default: exact.</summary>
    public Compute Compute { get; set; }

    /// <summary>Adds the gradients to dW and dbias; otherwise they replace them.</summary>
    public bool Accumulate { get; set; }
  }
}
