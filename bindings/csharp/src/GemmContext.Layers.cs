// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmContext {
    /// <summary>Submits C = function(A), or function(A, B), element by element, and returns at once. With a gradient A is that of the
    /// function's result, and B is the function's operand. On a device with memory of its own, operands are in device memory.</summary>
    /// <param name="function">The function.</param>
    /// <param name="a">A; only read. F64, F32, F16 or BF16, as all operands.</param>
    /// <param name="b">B; only read. default(Matrix) with functions of one operand.</param>
    /// <param name="c">The result, which may be A or B.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task ElementwiseAsync(Function function, in Matrix a, in Matrix b, in Matrix c, SubmitOptions options = null,
                                 CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, ElementwiseCall(function, a, b, c));

    /// <summary>Computes C = function(A), or function(A, B), element by element; blocks until the result is complete. With a gradient A
    /// is that of the function's result, and B is the function's operand. On a device with memory of its own, operands are in device
    /// memory.</summary>
    /// <param name="function">The function.</param>
    /// <param name="a">A; only read. F64, F32, F16 or BF16, as all operands.</param>
    /// <param name="b">B; only read. default(Matrix) with functions of one operand.</param>
    /// <param name="c">The result, which may be A or B.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    public void Elementwise(Function function, in Matrix a, in Matrix b, in Matrix c, SubmitOptions options = null) =>
      LayerAndWait(options, ElementwiseCall(function, a, b, c));

    internal static LayerCall ElementwiseCall(Function function, Matrix a, Matrix b, Matrix c) {
      bool two = function >= Function.Add;
      if (two != (b.DType != 0))
        throw new ArgumentException((two ? "b is missing; " : "b is given; ") + function + (two ? " has two operands" : " has one operand"), "b");
      RequireWritable(c, "c");
      return (pins, o) => {
        long atA = pins.Take(a), atB = pins.Take(b), atC = pins.Take(c);
        return RawPINVOKE.sg_flat_elementwise_async(o.Context, o.Graph,
          atA, a.Rows, a.Cols, a.Ld, (int)a.DType, (int)a.Layout,
          atB, b.Rows, b.Cols, b.Ld, (int)b.DType, (int)b.Layout,
          atC, c.Rows, c.Cols, c.Ld, (int)c.DType, (int)c.Layout, (int)function,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    /// <summary>Submits the softmax of each row, and returns at once.</summary>
    /// <param name="x">X; only read.</param>
    /// <param name="y">The result, which may be X.</param>
    /// <param name="options">The mask, order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task SoftmaxAsync(in Matrix x, in Matrix y, SoftmaxOptions options = null,
                             CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, SoftmaxCall(x, y, options ?? new SoftmaxOptions()));

    /// <summary>Computes the softmax of each row; blocks until the result is complete.</summary>
    /// <param name="x">X; only read.</param>
    /// <param name="y">The result, which may be X.</param>
    /// <param name="options">The mask, order and priority; null: the defaults.</param>
    public void Softmax(in Matrix x, in Matrix y, SoftmaxOptions options = null) =>
      LayerAndWait(options, SoftmaxCall(x, y, options ?? new SoftmaxOptions()));

    internal static LayerCall SoftmaxCall(Matrix x, Matrix y, SoftmaxOptions how) {
      RequireWritable(y, "y");
      return (pins, o) => {
        long atX = pins.Take(x), atY = pins.Take(y);
        return RawPINVOKE.sg_flat_softmax_async(o.Context, o.Graph,
          atX, x.Rows, x.Cols, x.Ld, (int)x.DType, (int)x.Layout,
          atY, y.Rows, y.Cols, y.Ld, (int)y.DType, (int)y.Layout, (int)how.Mask, how.MaskOffset, how.MaskRows,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    /// <summary>Submits the layer norm of each row, (x - mean) / sqrt(variance + epsilon) * gamma + beta, and returns at once.</summary>
    /// <param name="x">X; only read.</param>
    /// <param name="gamma">A row with a value for each column of X, of X's type; default(Matrix): ones.</param>
    /// <param name="beta">Likewise; default(Matrix): zeros.</param>
    /// <param name="y">The result, which may be X.</param>
    /// <param name="options">Epsilon, order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task LayerNormAsync(in Matrix x, in Matrix gamma, in Matrix beta, in Matrix y, NormOptions options = null,
                               CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, NormCall(NormKind.Layer, x, gamma, beta, y, options ?? new NormOptions()));

    /// <summary>Computes the layer norm of each row, (x - mean) / sqrt(variance + epsilon) * gamma + beta; blocks until the result is
    /// complete.</summary>
    /// <param name="x">X; only read.</param>
    /// <param name="gamma">A row with a value for each column of X, of X's type; default(Matrix): ones.</param>
    /// <param name="beta">Likewise; default(Matrix): zeros.</param>
    /// <param name="y">The result, which may be X.</param>
    /// <param name="options">Epsilon, order and priority; null: the defaults.</param>
    public void LayerNorm(in Matrix x, in Matrix gamma, in Matrix beta, in Matrix y, NormOptions options = null) =>
      LayerAndWait(options, NormCall(NormKind.Layer, x, gamma, beta, y, options ?? new NormOptions()));

    /// <summary>Submits the RMS norm of each row, x / sqrt(mean of x^2 + epsilon) * gamma, and returns at once.</summary>
    /// <param name="x">X; only read.</param>
    /// <param name="gamma">A row with a value for each column of X, of X's type; default(Matrix): ones.</param>
    /// <param name="y">The result, which may be X.</param>
    /// <param name="options">Epsilon, order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task RmsNormAsync(in Matrix x, in Matrix gamma, in Matrix y, NormOptions options = null,
                             CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, NormCall(NormKind.Rms, x, gamma, default(Matrix), y, options ?? new NormOptions()));

    /// <summary>Computes the RMS norm of each row, x / sqrt(mean of x^2 + epsilon) * gamma; blocks until the result is complete.</summary>
    /// <param name="x">X; only read.</param>
    /// <param name="gamma">A row with a value for each column of X, of X's type; default(Matrix): ones.</param>
    /// <param name="y">The result, which may be X.</param>
    /// <param name="options">Epsilon, order and priority; null: the defaults.</param>
    public void RmsNorm(in Matrix x, in Matrix gamma, in Matrix y, NormOptions options = null) =>
      LayerAndWait(options, NormCall(NormKind.Rms, x, gamma, default(Matrix), y, options ?? new NormOptions()));

    internal static LayerCall NormCall(NormKind kind, Matrix x, Matrix gamma, Matrix beta, Matrix y, NormOptions how) {
      RequireContiguous(gamma, 1, x.Cols, x.DType, "gamma");
      RequireContiguous(beta, 1, x.Cols, x.DType, "beta");
      RequireWritable(y, "y");
      return (pins, o) => {
        long atX = pins.Take(x), atGamma = pins.Take(gamma), atBeta = pins.Take(beta), atY = pins.Take(y);
        return RawPINVOKE.sg_flat_norm_async(o.Context, o.Graph,
          atX, x.Rows, x.Cols, x.Ld, (int)x.DType, (int)x.Layout,
          atY, y.Rows, y.Cols, y.Ld, (int)y.DType, (int)y.Layout, atGamma, atBeta, how.Epsilon, (int)kind,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    /// <summary>Submits the rotary embedding of each row, and returns at once: pairs of elements of each head are rotated by the row's
    /// position.</summary>
    /// <param name="x">X: tokens by rows, row major; only read.</param>
    /// <param name="y">The result, which may be X.</param>
    /// <param name="options">Heads, positions and angles, order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task RotaryAsync(in Matrix x, in Matrix y, RotaryOptions options = null,
                            CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, RotaryCall(x, y, options ?? new RotaryOptions()));

    /// <summary>Computes the rotary embedding of each row, as <see cref="RotaryAsync"/>; blocks until the result is complete.</summary>
    /// <param name="x">X: tokens by rows, row major; only read.</param>
    /// <param name="y">The result, which may be X.</param>
    /// <param name="options">Heads, positions and angles, order and priority; null: the defaults.</param>
    public void Rotary(in Matrix x, in Matrix y, RotaryOptions options = null) =>
      LayerAndWait(options, RotaryCall(x, y, options ?? new RotaryOptions()));

    internal static LayerCall RotaryCall(Matrix x, Matrix y, RotaryOptions how) {
      Matrix cos = how.Cos, sin = how.Sin;
      RequireWritable(y, "y");
      return (pins, o) => {
        long atX = pins.Take(x), atCos = pins.Take(cos), atSin = pins.Take(sin), atY = pins.Take(y);
        return RawPINVOKE.sg_flat_rotary_async(o.Context, o.Graph,
          atX, x.Rows, x.Cols, x.Ld, (int)x.DType, (int)x.Layout,
          atY, y.Rows, y.Cols, y.Ld, (int)y.DType, (int)y.Layout,
          atCos, cos.Rows, cos.Cols, cos.Ld, (int)cos.DType, (int)cos.Layout,
          atSin, sin.Rows, sin.Cols, sin.Ld, (int)sin.DType, (int)sin.Layout,
          how.HeadSize, how.RotatedSize, how.FirstPosition, how.SequenceLength, how.Theta, (int)how.Pairs, how.Inverse ? 1 : 0,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    /// <summary>Submits C = op(A), cast to C's type with one rounding, and returns at once. The layouts may differ.</summary>
    /// <param name="a">A; only read.</param>
    /// <param name="opA">N, or T: the transpose.</param>
    /// <param name="c">The result; may be A if no element moves.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task ConvertAsync(in Matrix a, Op opA, in Matrix c, SubmitOptions options = null,
                             CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, ConvertCall(a, opA, c));

    /// <summary>Computes C = op(A), cast to C's type with one rounding; blocks until the result is complete. The layouts may
    /// differ.</summary>
    /// <param name="a">A; only read.</param>
    /// <param name="opA">N, or T: the transpose.</param>
    /// <param name="c">The result; may be A if no element moves.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    public void Convert(in Matrix a, Op opA, in Matrix c, SubmitOptions options = null) =>
      LayerAndWait(options, ConvertCall(a, opA, c));

    internal static LayerCall ConvertCall(Matrix a, Op opA, Matrix c) {
      RequireWritable(c, "c");
      return (pins, o) => {
        long atA = pins.Take(a), atC = pins.Take(c);
        return RawPINVOKE.sg_flat_convert_async(o.Context, o.Graph,
          atA, a.Rows, a.Cols, a.Ld, (int)a.DType, (int)a.Layout,
          atC, c.Rows, c.Cols, c.Ld, (int)c.DType, (int)c.Layout, (int)opA,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    /// <summary>Submits Y = (X - zero points) * scales, by blocks of a row, and returns at once. All matrices are row major.</summary>
    /// <param name="quantization">How values are stored.</param>
    /// <param name="blockSize">Consecutive values of a row that share a scale.</param>
    /// <param name="x">The quantized values, of I8: of I4 two in a byte, the first in the low four bits; only read.</param>
    /// <param name="scales">One for each block, of F32, F16 or BF16; only read.</param>
    /// <param name="zeroPoints">Likewise, of I8; default(Matrix): zeros.</param>
    /// <param name="y">The result, of F32, F16 or BF16.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task DequantizeAsync(Quantization quantization, long blockSize, in Matrix x, in Matrix scales, in Matrix zeroPoints,
                                in Matrix y, SubmitOptions options = null,
                                CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, DequantizeCall(quantization, blockSize, x, scales, zeroPoints, y));

    /// <summary>Computes Y = (X - zero points) * scales, by blocks of a row; blocks until the result is complete. All matrices are row
    /// major.</summary>
    /// <param name="quantization">How values are stored.</param>
    /// <param name="blockSize">Consecutive values of a row that share a scale.</param>
    /// <param name="x">The quantized values, of I8: of I4 two in a byte, the first in the low four bits; only read.</param>
    /// <param name="scales">One for each block, of F32, F16 or BF16; only read.</param>
    /// <param name="zeroPoints">Likewise, of I8; default(Matrix): zeros.</param>
    /// <param name="y">The result, of F32, F16 or BF16.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    public void Dequantize(Quantization quantization, long blockSize, in Matrix x, in Matrix scales, in Matrix zeroPoints,
                           in Matrix y, SubmitOptions options = null) =>
      LayerAndWait(options, DequantizeCall(quantization, blockSize, x, scales, zeroPoints, y));

    internal static LayerCall DequantizeCall(Quantization quantization, long blockSize, Matrix x, Matrix scales, Matrix zeroPoints, Matrix y) {
      RequireWritable(y, "y");
      return (pins, o) => {
        long atX = pins.Take(x), atScales = pins.Take(scales), atZeros = pins.Take(zeroPoints), atY = pins.Take(y);
        return RawPINVOKE.sg_flat_dequantize_async(o.Context, o.Graph,
          atX, x.Rows, x.Cols, x.Ld, (int)x.DType, (int)x.Layout,
          atScales, scales.Rows, scales.Cols, scales.Ld, (int)scales.DType, (int)scales.Layout,
          atZeros, zeroPoints.Rows, zeroPoints.Cols, zeroPoints.Ld, (int)zeroPoints.DType, (int)zeroPoints.Layout,
          atY, y.Rows, y.Cols, y.Ld, (int)y.DType, (int)y.Layout, blockSize, (int)quantization,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    internal delegate int LayerCall(Pins pins, Native.Order order);

    // Pins and submits in `call`; the task completes with the job.
    Task Layer(SubmitOptions options, CancellationToken cancellationToken, LayerCall call) {
      if (cancellationToken.IsCancellationRequested) return Task.FromCanceled(cancellationToken);
      var pending = new Pending(completions, cancellationToken);
      long job = 0;
      int status;
      try {
        status = Native.InOrder(options ?? SubmitOptions.None, handle.Token, completions.Queue, pending.Tag, &job, order => call(pending.More, order));
      } catch (Exception error) {
        return pending.Refused(error);
      }
      GC.KeepAlive(this);
      return pending.Submitted(status, job);
    }

    // Pins and submits in `call`, and waits for the job.
    void LayerAndWait(SubmitOptions options, LayerCall call) {
      var pins = new Pins();
      long job = 0;
      try {
        Errors.Check(Native.InOrder(options ?? SubmitOptions.None, handle.Token, 0, 0, &job, order => {
          order.Flags |= (int)SubmitFlags.WillWait;
          return call(pins, order);
        }));
        Errors.Check(RawPINVOKE.sg_job_wait(job, -1));
      } finally {
        if (job != 0) RawPINVOKE.sg_job_release(job);
        pins.Release();
      }
      GC.KeepAlive(this);
    }

    // Checks that the library cannot make: of memory of which it has the address alone.
    static void RequireWritable(in Matrix result, string name) {
      if (result.ReadOnly) throw new ArgumentException(name + " is read-only memory", name);
    }

    internal static void RequireContiguous(in Matrix values, long rows, long cols, DType type, string name) {
      if (values.DType == 0) return;
      bool byRows = values.Layout == Layout.RowMajor || rows == 1 || cols == 1;
      if (values.Rows != rows || values.Cols != cols || !byRows || values.Span != rows * cols || (type != 0 && values.DType != type))
        throw new ArgumentException(name + " is " + values + "; it must be " + rows + " x " + cols + " contiguous values" +
                                    (type == 0 ? "" : " of " + type) + (rows == 1 ? "" : ", row by row"), name);
    }

    static void RequireFor(string needing, in Matrix given, string name, in Matrix needed) {
      if (given.DType != 0 && needed.DType == 0) throw new ArgumentException(name + " is missing; " + needing + " needs it", name);
    }
  }

  /// <summary>The mask of a softmax, and the options of its submission.</summary>
  public sealed class SoftmaxOptions : SubmitOptions {
    /// <summary>Default: none. With a causal one row i has the columns up to i + MaskOffset, and 0 in the others.</summary>
    public Mask Mask { get; set; }

    /// <summary>0 without a mask.</summary>
    public long MaskOffset { get; set; }

    /// <summary>Rows of each matrix of a stack, in which a causal mask counts them anew; a divisor of X's rows. 0: X is one matrix.</summary>
    public long MaskRows { get; set; }
  }

  /// <summary>Epsilon of a norm, and the options of its submission.</summary>
  public sealed class NormOptions : SubmitOptions {
    /// <summary>Not negative. Default: 1e-5.</summary>
    public double Epsilon { get; set; } = 1e-5;
  }

  /// <summary>How a rotary embedding rotates, and the options of its submission.</summary>
  public sealed class RotaryOptions : SubmitOptions {
    /// <summary>Cosines: a row for each position and a column for each pair, of X's type, or F32 for F16 and BF16. Default: none; the
    /// angles follow from <see cref="Theta"/>.</summary>
    public Matrix Cos { get; set; }

    /// <summary>Sines, likewise.</summary>
    public Matrix Sin { get; set; }

    /// <summary>Columns of a head; 0: all columns of X.</summary>
    public long HeadSize { get; set; }

    /// <summary>The first elements of a head, which are rotated; even. 0: all of them.</summary>
    public long RotatedSize { get; set; }

    /// <summary>Position of the first row.</summary>
    public long FirstPosition { get; set; }

    /// <summary>Rows of a sequence, after which positions begin again; 0: there is one sequence.</summary>
    public long SequenceLength { get; set; }

    /// <summary>Base of the angles: pair j of d/2 turns by p * theta^(-2j/d) at position p. Default: 10000.</summary>
    public double Theta { get; set; } = 10000;

    /// <summary>Which elements are rotated together. Default: halves (GPT-NeoX, Llama).</summary>
    public RotaryPairs Pairs { get; set; }

    /// <summary>Rotates back, which is the gradient.</summary>
    public bool Inverse { get; set; }
  }
}
