// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmContext {
    /// <summary>Submits a convolution of images, Y = activation(conv(X, W) + bias), and returns at once. As in PyTorch and ONNX, filters
    /// are not mirrored. Operands may be in any memory.</summary>
    /// <param name="x">The images; only read.</param>
    /// <param name="w">The filters: a row for each channel of Y, contiguous, in the order of the windows' layout; only read.</param>
    /// <param name="y">The result, in the order of X, with as many rows and columns as there are windows.</param>
    /// <param name="windows">The windows.</param>
    /// <param name="options">Bias, groups, activation, order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task Conv2dAsync(in Images x, in Matrix w, in Images y, Windows windows, Conv2dOptions options = null,
                            CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, Conv2dCall(x, w, y, Windows.Checked(windows), options ?? new Conv2dOptions()));

    /// <summary>Computes a convolution, as that of <see cref="Conv2dAsync"/>; blocks until Y is complete.</summary>
    /// <param name="x">The images; only read.</param>
    /// <param name="w">The filters: a row for each channel of Y, contiguous, in the order of the windows' layout; only read.</param>
    /// <param name="y">The result, in the order of X, with as many rows and columns as there are windows.</param>
    /// <param name="windows">The windows.</param>
    /// <param name="options">Bias, groups, activation, order and priority; null: the defaults.</param>
    public void Conv2d(in Images x, in Matrix w, in Images y, Windows windows, Conv2dOptions options = null) =>
      LayerAndWait(options, Conv2dCall(x, w, y, Windows.Checked(windows), options ?? new Conv2dOptions()));

    /// <summary>Submits the gradients of a convolution as one job, and returns at once. dY is the gradient of the loss with respect to
    /// conv(X, W) + bias: the activation's derivative has been applied. A result that is left out is not computed. dX alone is the
    /// transposed convolution of dY with W. Operands may be in any memory.</summary>
    /// <param name="dy">Like Y; only read.</param>
    /// <param name="windows">As given to the convolution.</param>
    /// <param name="x">As given to the convolution; only read. Not needed without dW.</param>
    /// <param name="w">As given to the convolution; only read. Not needed without dX.</param>
    /// <param name="dx">A result like X.</param>
    /// <param name="dw">A result like W.</param>
    /// <param name="dbias">A result: a row with a value for each channel of Y.</param>
    /// <param name="options">As given to the convolution, whose bias and activation are not used; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task Conv2dBackwardAsync(Images dy, Windows windows, Images x = default(Images), Matrix w = default(Matrix),
                                    Images dx = default(Images), Matrix dw = default(Matrix), Matrix dbias = default(Matrix),
                                    Conv2dOptions options = null, CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken,
            Conv2dBackwardCall(dy, Windows.Checked(windows), x, w, dx, dw, dbias, options ?? new Conv2dOptions()));

    /// <summary>Computes the gradients of a convolution, as those of <see cref="Conv2dBackwardAsync"/>; blocks until they are
    /// complete.</summary>
    /// <param name="dy">Like Y; only read.</param>
    /// <param name="windows">As given to the convolution.</param>
    /// <param name="x">As given to the convolution; only read. Not needed without dW.</param>
    /// <param name="w">As given to the convolution; only read. Not needed without dX.</param>
    /// <param name="dx">A result like X.</param>
    /// <param name="dw">A result like W.</param>
    /// <param name="dbias">A result: a row with a value for each channel of Y.</param>
    /// <param name="options">As given to the convolution, whose bias and activation are not used; null: the defaults.</param>
    public void Conv2dBackward(Images dy, Windows windows, Images x = default(Images), Matrix w = default(Matrix),
                               Images dx = default(Images), Matrix dw = default(Matrix), Matrix dbias = default(Matrix),
                               Conv2dOptions options = null) =>
      LayerAndWait(options, Conv2dBackwardCall(dy, Windows.Checked(windows), x, w, dx, dw, dbias, options ?? new Conv2dOptions()));

    /// <summary>Submits the matrix of the windows of images, of any type, and returns at once. On a device with memory of its own,
    /// operands are in device memory.</summary>
    /// <param name="x">The images, or a slice of their channels; only read.</param>
    /// <param name="matrix">The result: a row for each window of each image, a column for each of its pixels in each channel.</param>
    /// <param name="windows">The windows, and the order of the columns.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task Im2ColAsync(in Images x, in Matrix matrix, Windows windows, SubmitOptions options = null,
                            CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, Im2ColCall(x, matrix, Windows.Checked(windows)));

    /// <summary>Computes the matrix of the windows of images, as that of <see cref="Im2ColAsync"/>; blocks until it is complete.</summary>
    /// <param name="x">The images, or a slice of their channels; only read.</param>
    /// <param name="matrix">The result: a row for each window of each image, a column for each of its pixels in each channel.</param>
    /// <param name="windows">The windows, and the order of the columns.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    public void Im2Col(in Images x, in Matrix matrix, Windows windows, SubmitOptions options = null) =>
      LayerAndWait(options, Im2ColCall(x, matrix, Windows.Checked(windows)));

    /// <summary>Submits the sums of windows, and returns at once: each element of the images becomes the sum of the elements of the matrix
    /// that <see cref="Im2ColAsync"/> takes from it. That is its gradient.</summary>
    /// <param name="matrix">The matrix of windows; only read.</param>
    /// <param name="x">The result: images, or a slice of their channels, of which alone something is written.</param>
    /// <param name="windows">The windows, and the order of the columns.</param>
    /// <param name="accumulate">Adds the sums to the images; otherwise they replace them.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task Col2ImAsync(in Matrix matrix, in Images x, Windows windows, bool accumulate = false, SubmitOptions options = null,
                            CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, Col2ImCall(matrix, x, Windows.Checked(windows), accumulate));

    /// <summary>Computes the sums of windows, as those of <see cref="Col2ImAsync"/>; blocks until they are complete.</summary>
    /// <param name="matrix">The matrix of windows; only read.</param>
    /// <param name="x">The result: images, or a slice of their channels, of which alone something is written.</param>
    /// <param name="windows">The windows, and the order of the columns.</param>
    /// <param name="accumulate">Adds the sums to the images; otherwise they replace them.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    public void Col2Im(in Matrix matrix, in Images x, Windows windows, bool accumulate = false, SubmitOptions options = null) =>
      LayerAndWait(options, Col2ImCall(matrix, x, Windows.Checked(windows), accumulate));

    internal static LayerCall Conv2dCall(Images x, Matrix w, Images y, Windows s, Conv2dOptions how) {
      RequireSizes(x, "x", y, "y", s, how.Groups);
      RequireContiguous(w, y.Channels, FilterSize(x, s, how), x.DType, "w");
      RequireContiguous(how.Bias, 1, y.Channels, x.DType, "options.Bias");
      RequireWritable(y.Memory, "y");
      return (pins, o) => {
        long atX = pins.Take(x.Memory), atY = pins.Take(y.Memory), atW = pins.Take(w), atBias = pins.Take(how.Bias);
        return RawPINVOKE.sg_flat_conv2d_async(o.Context, o.Graph, atX, x.Memory.Ld, atY, y.Memory.Ld, atW, atBias,
          x.Count, x.Channels, x.Height, x.Width,
          s.KernelH, s.KernelW, s.StrideH, s.StrideW, s.DilationH, s.DilationW, s.PadTop, s.PadLeft, s.PadBottom, s.PadRight,
          y.Channels, how.Groups, how.Workspace, (int)x.Layout, (int)s.Layout, (int)x.DType, (int)how.Activation, (int)how.Compute,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    internal static LayerCall Conv2dBackwardCall(Images dy, Windows s, Images x, Matrix w, Images dx, Matrix dw, Matrix dbias, Conv2dOptions how) {
      RequireFor("dx", dx.Memory, "w", w);
      RequireFor("dw", dw, "x", x.Memory);
      if (dw.DType == 0) x = default(Images);
      if (dx.DType == 0) w = default(Matrix);
      Images of = dw.DType != 0 ? x : dx;  // has the sizes of X
      bool alone = of.DType == 0;          // the sums of dY, of any windows
      if (alone) s = new Windows(1, 1);
      else RequireSizes(of, dw.DType != 0 ? "x" : "dx", dy, "dy", s, how.Groups);
      if (dw.DType != 0 && dx.DType != 0) dx.Require("dx", x.DType, x.Layout, x.Count, x.Channels, x.Height, x.Width);
      DType gradient = dw.DType != 0 ? dw.DType : dbias.DType;
      long size = alone ? 0 : FilterSize(of, s, how);
      RequireContiguous(w, dy.Channels, size, dy.DType, "w");
      RequireContiguous(dw, dy.Channels, size, gradient, "dw");
      RequireContiguous(dbias, 1, dy.Channels, gradient, "dbias");
      RequireWritable(dx.Memory, "dx");
      RequireWritable(dw, "dw");
      RequireWritable(dbias, "dbias");
      return (pins, o) => {
        long atDy = pins.Take(dy.Memory), atX = pins.Take(x.Memory), atW = pins.Take(w), atDx = pins.Take(dx.Memory);
        long atDw = pins.Take(dw), atDbias = pins.Take(dbias);
        return RawPINVOKE.sg_flat_conv2d_backward_async(o.Context, o.Graph, atDy, dy.Memory.Ld, atX, x.Memory.Ld, atW, atDx, dx.Memory.Ld,
          atDw, atDbias, dy.Count, of.Channels, alone ? dy.Height : of.Height, alone ? dy.Width : of.Width,
          s.KernelH, s.KernelW, s.StrideH, s.StrideW, s.DilationH, s.DilationW, s.PadTop, s.PadLeft, s.PadBottom, s.PadRight,
          dy.Channels, alone ? 1 : how.Groups, how.Workspace, (int)dy.Layout, (int)s.Layout, (int)dy.DType, (int)gradient, (int)how.Compute,
          how.Accumulate ? 1 : 0,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    internal static LayerCall Im2ColCall(Images x, Matrix matrix, Windows s) {
      RequireType(matrix, x);
      RequireWritable(matrix, "matrix");
      return (pins, o) => {
        long atX = pins.Take(x.Memory), atMatrix = pins.Take(matrix);
        return RawPINVOKE.sg_flat_im2col_async(o.Context, o.Graph, atX, x.Memory.Ld,
          atMatrix, matrix.Rows, matrix.Cols, matrix.Ld, (int)matrix.DType, (int)matrix.Layout, x.Count, x.Channels, x.Height, x.Width,
          s.KernelH, s.KernelW, s.StrideH, s.StrideW, s.DilationH, s.DilationW, s.PadTop, s.PadLeft, s.PadBottom, s.PadRight,
          x.FirstChannel, x.UsedChannels, (int)x.Layout, (int)s.Layout,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    internal static LayerCall Col2ImCall(Matrix matrix, Images x, Windows s, bool accumulate) {
      RequireType(matrix, x);
      RequireWritable(x.Memory, "x");
      return (pins, o) => {
        long atMatrix = pins.Take(matrix), atX = pins.Take(x.Memory);
        return RawPINVOKE.sg_flat_col2im_async(o.Context, o.Graph,
          atMatrix, matrix.Rows, matrix.Cols, matrix.Ld, (int)matrix.DType, (int)matrix.Layout, atX, x.Memory.Ld,
          x.Count, x.Channels, x.Height, x.Width,
          s.KernelH, s.KernelW, s.StrideH, s.StrideW, s.DilationH, s.DilationW, s.PadTop, s.PadLeft, s.PadBottom, s.PadRight,
          x.FirstChannel, x.UsedChannels, (int)x.Layout, (int)s.Layout, accumulate ? 1 : 0,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    // Throws unless Y has the sizes of the convolution of X.
    static void RequireSizes(in Images x, string nameX, in Images y, string nameY, Windows s, long groups) {
      x.Require(nameX, y.DType, x.Layout, x.Count, x.Channels, x.Height, x.Width);
      y.Require(nameY, x.DType, x.Layout, x.Count, y.Channels, s.OutHeight(x.Height), s.OutWidth(x.Width));
      if (groups < 1 || x.Channels % groups != 0 || y.Channels % groups != 0)
        throw new ArgumentException("options.Groups is " + groups + "; " + nameX + " has " + x.Channels + " and " + nameY + " " + y.Channels +
                                    " channels", "options");
    }

    static long FilterSize(in Images x, Windows s, Conv2dOptions how) => x.Channels / how.Groups * s.KernelH * s.KernelW;

    static void RequireType(in Matrix matrix, in Images x) {
      if (matrix.DType != x.DType) throw new ArgumentException("matrix is " + matrix + "; x is of " + x.DType, "matrix");
    }
  }

  /// <summary>A convolution beside its operands and windows, and the options of its submission.</summary>
  public sealed class Conv2dOptions : SubmitOptions {
    /// <summary>A row with a value for each channel of Y, of Y's type; only read, and not by the gradients. Default: none.</summary>
    public Matrix Bias { get; set; }

    /// <summary>Groups of channels, each of which has filters of its own. Default: 1.</summary>
    public long Groups { get; set; } = 1;

    /// <summary>The activation applied last to each element of Y. Default: none. The gradients do not apply its derivative.</summary>
    public Activation Activation { get; set; }

    /// <summary>Limit of the memory for matrices of windows, in bytes; 0: the library's choice.</summary>
    public long Workspace { get; set; }

    /// <summary>The least accurate arithmetic allowed. Default: exact.</summary>
    public Compute Compute { get; set; }

    /// <summary>Adds the gradients to dW and dbias; otherwise they replace them.</summary>
    public bool Accumulate { get; set; }
  }
}
