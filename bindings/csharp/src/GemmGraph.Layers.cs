// SPDX-License-Identifier: Apache-2.0
using System;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmGraph {
    // The layers of a context, recorded: each takes the arguments of the context's method of that name, and returns its index.

    /// <summary>Records <see cref="GemmContext.Linear"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordLinear(in Matrix x, in Matrix w, in Matrix y, LinearOptions options = null) =>
      RecordLayer(options, GemmContext.LinearCall(x, w, y, options ?? new LinearOptions()));

    /// <summary>Records <see cref="GemmContext.LinearBackward"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordLinearBackward(Matrix dy, Matrix x = default(Matrix), Matrix w = default(Matrix), Matrix dx = default(Matrix),
                                    Matrix dw = default(Matrix), Matrix dbias = default(Matrix), LinearOptions options = null) =>
      RecordLayer(options, GemmContext.LinearBackwardCall(dy, x, w, dx, dw, dbias, options ?? new LinearOptions()));

    /// <summary>Records <see cref="GemmContext.Attention"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordAttention(in Heads q, in Heads k, in Heads v, in Heads o, AttentionOptions options = null) =>
      RecordLayer(options, GemmContext.AttentionCall(q, k, v, o, options ?? new AttentionOptions()));

    /// <summary>Records <see cref="GemmContext.AttentionBackward"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordAttentionBackward(Heads q, Heads k, Heads v, Heads dO, Heads dq = default(Heads), Heads dk = default(Heads),
                                       Heads dv = default(Heads), AttentionOptions options = null) =>
      RecordLayer(options, GemmContext.AttentionBackwardCall(q, k, v, dO, dq, dk, dv, options ?? new AttentionOptions()));

    /// <summary>Records <see cref="GemmContext.Conv2d"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordConv2d(in Images x, in Matrix w, in Images y, Windows windows, Conv2dOptions options = null) =>
      RecordLayer(options, GemmContext.Conv2dCall(x, w, y, Windows.Checked(windows), options ?? new Conv2dOptions()));

    /// <summary>Records <see cref="GemmContext.Conv2dBackward"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordConv2dBackward(Images dy, Windows windows, Images x = default(Images), Matrix w = default(Matrix),
                                    Images dx = default(Images), Matrix dw = default(Matrix), Matrix dbias = default(Matrix),
                                    Conv2dOptions options = null) =>
      RecordLayer(options, GemmContext.Conv2dBackwardCall(dy, Windows.Checked(windows), x, w, dx, dw, dbias, options ?? new Conv2dOptions()));

    /// <summary>Records <see cref="GemmContext.Im2Col"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordIm2Col(in Images x, in Matrix matrix, Windows windows, SubmitOptions options = null) =>
      RecordLayer(options, GemmContext.Im2ColCall(x, matrix, Windows.Checked(windows)));

    /// <summary>Records <see cref="GemmContext.Col2Im"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordCol2Im(in Matrix matrix, in Images x, Windows windows, bool accumulate = false, SubmitOptions options = null) =>
      RecordLayer(options, GemmContext.Col2ImCall(matrix, x, Windows.Checked(windows), accumulate));

    /// <summary>Records <see cref="GemmContext.Recurrent"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordRecurrent(in Sequence x, in Matrix wIh, in Matrix wHh, in Sequence y, RecurrentOptions options = null) =>
      RecordLayer(options, GemmContext.RecurrentCall(x, wIh, wHh, y, options ?? new RecurrentOptions()));

    /// <summary>Records <see cref="GemmContext.RecurrentBackward"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordRecurrentBackward(in Sequence x, in Matrix wIh, in Matrix wHh, in Sequence y, RecurrentGradients gradients,
                                       RecurrentOptions options) =>
      RecordLayer(options, GemmContext.RecurrentBackwardCall(x, wIh, wHh, y, gradients, options));

    /// <summary>Records <see cref="GemmContext.Gather"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordGather(in Matrix table, in Indices indices, in Matrix y, GatherOptions options = null) =>
      RecordLayer(options, GemmContext.GatherCall(table, indices, y, options ?? new GatherOptions()));

    /// <summary>Records <see cref="GemmContext.Elementwise"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordElementwise(Function function, in Matrix a, in Matrix b, in Matrix c, SubmitOptions options = null) =>
      RecordLayer(options, GemmContext.ElementwiseCall(function, a, b, c));

    /// <summary>Records <see cref="GemmContext.Axpby"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordAxpby(in Matrix a, in Matrix c, AxpbyOptions options = null) =>
      RecordLayer(options, GemmContext.AxpbyCall(a, c, options ?? new AxpbyOptions()));

    /// <summary>Records <see cref="GemmContext.Softmax"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordSoftmax(in Matrix x, in Matrix y, SoftmaxOptions options = null) =>
      RecordLayer(options, GemmContext.SoftmaxCall(x, y, options ?? new SoftmaxOptions()));

    /// <summary>Records <see cref="GemmContext.LayerNorm"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordLayerNorm(in Matrix x, in Matrix gamma, in Matrix beta, in Matrix y, NormOptions options = null) =>
      RecordLayer(options, GemmContext.NormCall(NormKind.Layer, x, gamma, beta, y, options ?? new NormOptions()));

    /// <summary>Records <see cref="GemmContext.RmsNorm"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordRmsNorm(in Matrix x, in Matrix gamma, in Matrix y, NormOptions options = null) =>
      RecordLayer(options, GemmContext.NormCall(NormKind.Rms, x, gamma, default(Matrix), y, options ?? new NormOptions()));

    /// <summary>Records <see cref="GemmContext.Rotary"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordRotary(in Matrix x, in Matrix y, RotaryOptions options = null) =>
      RecordLayer(options, GemmContext.RotaryCall(x, y, options ?? new RotaryOptions()));

    /// <summary>Records <see cref="GemmContext.Convert"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordConvert(in Matrix a, Op opA, in Matrix c, SubmitOptions options = null) =>
      RecordLayer(options, GemmContext.ConvertCall(a, opA, c));

    /// <summary>Records <see cref="GemmContext.Dequantize"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordDequantize(Quantization quantization, long blockSize, in Matrix x, in Matrix scales, in Matrix zeroPoints,
                                in Matrix y, SubmitOptions options = null) =>
      RecordLayer(options, GemmContext.DequantizeCall(quantization, blockSize, x, scales, zeroPoints, y));

    /// <summary>Records <see cref="GemmContext.Custom"/> instead of running it: the function is called in each run.</summary>
    /// <returns>Its index.</returns>
    public int RecordCustom(Action<CustomCall> function, Matrix[] reads = null, Matrix[] writes = null, Matrix[] updates = null,
                            CustomOptions options = null) =>
      RecordLayer(options, GemmContext.CustomOperation(function, reads, writes, updates, options ?? new CustomOptions()));

    int RecordLayer(SubmitOptions options, GemmContext.LayerCall call) {
      lock (children) {
        var pins = new Pins();
        int status;
        try {
          long graph = handle.Token;
          status = Native.InOrder(options ?? SubmitOptions.None, context.Token, 0, 0, null, order => {
            order.Graph = graph;
            return call(pins, order);
          });
        } catch {
          pins.Release();
          throw;
        }
        return Keep(new Recorded(pins), status);
      }
    }
  }
}
