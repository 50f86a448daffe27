// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import org.streamgemm.internal.Native;

/**
 * The layers of deep networks and the operations between their GEMMs, as jobs of a context ({@link Context#layers}) or recorded
 * in a graph ({@link Graph#layers()}). The methods without {@code Async} block in a context, and record in a graph, where they
 * return at once. Types are F64, F32, F16 and BF16, the same for all operands if not said otherwise. On a device with memory of
 * its own, operands are in device memory if not said otherwise. The result of an operation of elements or rows may be the operand
 * itself, by the same {@link Matrix}.
 */
public final class Layers {
  private static final Submit DEFAULTS = new Submit();

  private final Context context;
  /** Records; null: submits. */
  private final Graph graph;
  private final Submit recorded;

  Layers(Context context) {
    this(context, null, DEFAULTS);
  }

  Layers(Context context, Graph graph, Submit recorded) {
    this.context = context;
    this.graph = graph;
    this.recorded = recorded;
  }

  private <T> Job<T> submit(LayerCall<T> call, Submit submit) {
    if (graph != null) throw new StreamGemmException.InvalidArgument("a graph records by the method without Async");
    return call.submit(context, submit);
  }

  private <T> T run(LayerCall<T> call) {
    return graph == null ? call.run(context) : call.record(graph, recorded);
  }

  /**
   * C = function(A), element by element.
   *
   * @param function a function of one operand
   * @param a only read
   * @param c the result, which may be A
   * @return a future of C
   */
  public Job<Matrix> elementwiseAsync(Function function, Matrix a, Matrix c) {
    return elementwiseAsync(function, a, null, c, DEFAULTS);
  }

  /**
   * C = function(A), or function(A, B), element by element. With a gradient A is that of the function's result, and B is the
   * function's operand.
   *
   * @param function the function
   * @param a only read
   * @param b only read; null with functions of one operand
   * @param c the result, which may be A or B
   * @param submit order and priority
   * @return a future of C
   */
  public Job<Matrix> elementwiseAsync(Function function, Matrix a, Matrix b, Matrix c, Submit submit) {
    return submit(elementwiseCall(function, a, b, c), submit);
  }

  /**
   * C = function(A), or function(A, B), element by element. With a gradient A is that of the function's result, and B is the
   * function's operand. Blocks until C is complete.
   *
   * @param function the function
   * @param a only read
   * @param b only read; null with functions of one operand
   * @param c the result, which may be A or B
   * @return C
   */
  public Matrix elementwise(Function function, Matrix a, Matrix b, Matrix c) {
    return run(elementwiseCall(function, a, b, c));
  }

  private static LayerCall<Matrix> elementwiseCall(Function function, Matrix a, Matrix b, Matrix c) {
    boolean two = function.value >= Function.ADD.value;
    if (two != (b != null))
      throw new StreamGemmException.InvalidArgument("b is " + b + "; " + function + " has " + (two ? "two operands" : "one operand"));
    Matrix second = LayerCall.sizes(b);
    return new LayerCall<>(c).reads("a", a).reads("b", b).writes("c", c)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_elementwise_async(on, graph, at[0], a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, at[1],
                second.rows, second.cols, second.ld, second.dtype.value, second.layout.value, at[2], c.rows, c.cols, c.ld,
                c.dtype.value, c.layout.value, function.value, stream, after, count, priority, flags, queue, tag, options,
                deadline, label));
  }

  /**
   * C = activation(alpha * A + beta * C), element by element: a scale-and-add. Of F64, F32, F16, BF16, C64, C128 or I32.
   *
   * @param a only read; of C's shape, type and layout
   * @param c the result
   * @param how alpha, beta and the activation
   * @param submit order and priority
   * @return a future of C
   */
  public Job<Matrix> axpbyAsync(Matrix a, Matrix c, Axpby how, Submit submit) {
    return submit(how.call(a, c), submit);
  }

  /**
   * C = activation(alpha * A + beta * C), element by element: a scale-and-add, as that of {@link #axpbyAsync}. Blocks until C is
   * complete.
   *
   * @param a only read; of C's shape, type and layout
   * @param c the result
   * @param how alpha, beta and the activation
   * @return C
   */
  public Matrix axpby(Matrix a, Matrix c, Axpby how) {
    return run(how.call(a, c));
  }

  /**
   * The softmax of each row.
   *
   * @param x only read
   * @param y the result, which may be X
   * @return a future of Y
   */
  public Job<Matrix> softmaxAsync(Matrix x, Matrix y) {
    return softmaxAsync(x, y, Mask.NONE, 0, DEFAULTS);
  }

  /**
   * The softmax of each row, with a mask.
   *
   * @param x only read
   * @param y the result, which may be X
   * @param mask with a causal one, row i has the columns up to i + maskOffset, and 0 in the others
   * @param maskOffset 0 without a mask
   * @param submit order and priority
   * @return a future of Y
   */
  public Job<Matrix> softmaxAsync(Matrix x, Matrix y, Mask mask, long maskOffset, Submit submit) {
    return softmaxAsync(x, y, mask, maskOffset, 0, submit);
  }

  /**
   * The softmax of each row of a stack of matrices, with a mask that counts the rows anew in each.
   *
   * @param x only read
   * @param y the result, which may be X
   * @param mask as for one matrix
   * @param maskOffset 0 without a mask
   * @param maskRows rows of each matrix, a divisor of X's; 0: there is one
   * @param submit order and priority
   * @return a future of Y
   */
  public Job<Matrix> softmaxAsync(Matrix x, Matrix y, Mask mask, long maskOffset, long maskRows, Submit submit) {
    return submit(softmaxCall(x, y, mask, maskOffset, maskRows), submit);
  }

  /**
   * The softmax of each row of a stack of matrices, with a mask that counts the rows anew in each. Blocks until Y is complete.
   *
   * @param x only read
   * @param y the result, which may be X
   * @param mask as for one matrix
   * @param maskOffset 0 without a mask
   * @param maskRows rows of each matrix, a divisor of X's; 0: there is one
   * @return Y
   */
  public Matrix softmax(Matrix x, Matrix y, Mask mask, long maskOffset, long maskRows) {
    return run(softmaxCall(x, y, mask, maskOffset, maskRows));
  }

  private static LayerCall<Matrix> softmaxCall(Matrix x, Matrix y, Mask mask, long maskOffset, long maskRows) {
    return new LayerCall<>(y).reads("x", x).writes("y", y)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_softmax_async(on, graph, at[0], x.rows, x.cols, x.ld, x.dtype.value, x.layout.value, at[1], y.rows,
                y.cols, y.ld, y.dtype.value, y.layout.value, mask.value, maskOffset, maskRows, stream, after, count,
                priority, flags, queue, tag, options, deadline, label));
  }

  /**
   * The layer norm of each row: (x - mean) / sqrt(variance + epsilon) * gamma + beta.
   *
   * @param x only read
   * @param gamma a row with a value for each column of X, of X's type; null: ones
   * @param beta likewise; null: zeros
   * @param y the result, which may be X
   * @param epsilon not negative
   * @param submit order and priority
   * @return a future of Y
   */
  public Job<Matrix> layerNormAsync(Matrix x, Matrix gamma, Matrix beta, Matrix y, double epsilon, Submit submit) {
    return submit(normCall(NormKind.LAYER, x, gamma, beta, y, epsilon), submit);
  }

  /**
   * The layer norm of each row: (x - mean) / sqrt(variance + epsilon) * gamma + beta. Blocks until Y is complete.
   *
   * @param x only read
   * @param gamma a row with a value for each column of X, of X's type; null: ones
   * @param beta likewise; null: zeros
   * @param y the result, which may be X
   * @param epsilon not negative
   * @return Y
   */
  public Matrix layerNorm(Matrix x, Matrix gamma, Matrix beta, Matrix y, double epsilon) {
    return run(normCall(NormKind.LAYER, x, gamma, beta, y, epsilon));
  }

  /**
   * The RMS norm of each row: x / sqrt(mean of x^2 + epsilon) * gamma.
   *
   * @param x only read
   * @param gamma a row with a value for each column of X, of X's type; null: ones
   * @param y the result, which may be X
   * @param epsilon not negative
   * @param submit order and priority
   * @return a future of Y
   */
  public Job<Matrix> rmsNormAsync(Matrix x, Matrix gamma, Matrix y, double epsilon, Submit submit) {
    return submit(normCall(NormKind.RMS, x, gamma, null, y, epsilon), submit);
  }

  /**
   * The RMS norm of each row: x / sqrt(mean of x^2 + epsilon) * gamma. Blocks until Y is complete.
   *
   * @param x only read
   * @param gamma a row with a value for each column of X, of X's type; null: ones
   * @param y the result, which may be X
   * @param epsilon not negative
   * @return Y
   */
  public Matrix rmsNorm(Matrix x, Matrix gamma, Matrix y, double epsilon) {
    return run(normCall(NormKind.RMS, x, gamma, null, y, epsilon));
  }

  private static LayerCall<Matrix> normCall(NormKind kind, Matrix x, Matrix gamma, Matrix beta, Matrix y, double epsilon) {
    LayerCall.requireContiguous("gamma", gamma, 1, x.cols, x.dtype);
    LayerCall.requireContiguous("beta", beta, 1, x.cols, x.dtype);
    return new LayerCall<>(y).reads("x", x).reads("gamma", gamma).reads("beta", beta).writes("y", y)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_norm_async(on, graph, at[0], x.rows, x.cols, x.ld, x.dtype.value, x.layout.value, at[3], y.rows, y.cols,
                y.ld, y.dtype.value, y.layout.value, at[1], at[2], epsilon, kind.value, stream, after, count, priority,
                flags, queue, tag, options, deadline, label));
  }

  /**
   * C = op(A), cast to C's type with one rounding. The layouts may differ.
   *
   * @param a only read
   * @param opA N, or T: the transpose
   * @param c the result; may be A if no element moves
   * @param submit order and priority
   * @return a future of C
   */
  public Job<Matrix> convertAsync(Matrix a, Op opA, Matrix c, Submit submit) {
    return submit(convertCall(a, opA, c), submit);
  }

  /**
   * C = op(A), cast to C's type with one rounding. The layouts may differ. Blocks until C is complete.
   *
   * @param a only read
   * @param opA N, or T: the transpose
   * @param c the result; may be A if no element moves
   * @return C
   */
  public Matrix convert(Matrix a, Op opA, Matrix c) {
    return run(convertCall(a, opA, c));
  }

  private static LayerCall<Matrix> convertCall(Matrix a, Op opA, Matrix c) {
    return new LayerCall<>(c).reads("a", a).writes("c", c)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_convert_async(on, graph, at[0], a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, at[1], c.rows,
                c.cols, c.ld, c.dtype.value, c.layout.value, opA.value, stream, after, count, priority, flags, queue, tag,
                options, deadline, label));
  }

  /**
   * Y = (X - zero points) * scales, by blocks of a row. All matrices are row major.
   *
   * @param quantization how values are stored
   * @param blockSize consecutive values of a row that share a scale
   * @param x the quantized values, of I8: of I4 two in a byte, the first in the low four bits; only read
   * @param scales one for each block, of F32, F16 or BF16; only read
   * @param zeroPoints likewise, of I8; null: zeros
   * @param y the result, of F32, F16 or BF16
   * @param submit order and priority
   * @return a future of Y
   */
  public Job<Matrix> dequantizeAsync(Quantization quantization, long blockSize, Matrix x, Matrix scales, Matrix zeroPoints,
      Matrix y, Submit submit) {
    return submit(dequantizeCall(quantization, blockSize, x, scales, zeroPoints, y), submit);
  }

  /**
   * Y = (X - zero points) * scales, by blocks of a row. All matrices are row major. Blocks until Y is complete.
   *
   * @param quantization how values are stored
   * @param blockSize consecutive values of a row that share a scale
   * @param x the quantized values, of I8: of I4 two in a byte, the first in the low four bits; only read
   * @param scales one for each block, of F32, F16 or BF16; only read
   * @param zeroPoints likewise, of I8; null: zeros
   * @param y the result, of F32, F16 or BF16
   * @return Y
   */
  public Matrix dequantize(Quantization quantization, long blockSize, Matrix x, Matrix scales, Matrix zeroPoints,
      Matrix y) {
    return run(dequantizeCall(quantization, blockSize, x, scales, zeroPoints, y));
  }

  private static LayerCall<Matrix> dequantizeCall(Quantization quantization, long blockSize, Matrix x, Matrix scales, Matrix zeroPoints,
      Matrix y) {
    Matrix zeros = LayerCall.sizes(zeroPoints);
    return new LayerCall<>(y).reads("x", x).reads("scales", scales).reads("zeroPoints", zeroPoints).writes("y", y)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_dequantize_async(on, graph, at[0], x.rows, x.cols, x.ld, x.dtype.value, x.layout.value, at[1],
                scales.rows, scales.cols, scales.ld, scales.dtype.value, scales.layout.value, at[2], zeros.rows, zeros.cols,
                zeros.ld, zeros.dtype.value, zeros.layout.value, at[3], y.rows, y.cols, y.ld, y.dtype.value, y.layout.value,
                blockSize, quantization.value, stream, after, count, priority, flags, queue, tag, options, deadline, label));
  }

  /**
   * The rotary embedding of each row: pairs of elements of each head are rotated by the row's position.
   *
   * @param x tokens by rows, row major; only read
   * @param y the result, which may be X
   * @param how heads, positions and angles
   * @param submit order and priority
   * @return a future of Y
   */
  public Job<Matrix> rotaryAsync(Matrix x, Matrix y, Rotary how, Submit submit) {
    return submit(rotaryCall(x, y, how), submit);
  }

  /**
   * The rotary embedding of each row: pairs of elements of each head are rotated by the row's position. Blocks until Y is complete.
   *
   * @param x tokens by rows, row major; only read
   * @param y the result, which may be X
   * @param how heads, positions and angles
   * @return Y
   */
  public Matrix rotary(Matrix x, Matrix y, Rotary how) {
    return run(rotaryCall(x, y, how));
  }

  private static LayerCall<Matrix> rotaryCall(Matrix x, Matrix y, Rotary how) {
    Matrix cos = LayerCall.sizes(how.cos);
    Matrix sin = LayerCall.sizes(how.sin);
    return new LayerCall<>(y).reads("x", x).reads("cos", how.cos).reads("sin", how.sin).writes("y", y)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_rotary_async(on, graph, at[0], x.rows, x.cols, x.ld, x.dtype.value, x.layout.value, at[3], y.rows,
                y.cols, y.ld, y.dtype.value, y.layout.value, at[1], cos.rows, cos.cols, cos.ld, cos.dtype.value,
                cos.layout.value, at[2], sin.rows, sin.cols, sin.ld, sin.dtype.value, sin.layout.value, how.headSize,
                how.rotatedSize, how.firstPosition, how.sequenceLength, how.theta, how.pairs.value, how.inverse ? 1 : 0, stream, after,
                count, priority, flags, queue, tag, options, deadline, label));
  }

  /**
   * A linear layer: Y = activation(X * W + bias). Its operands may be in any memory.
   *
   * @param x rows by inputs; only read
   * @param w inputs by outputs, or outputs by inputs with {@link Linear#opW}; only read
   * @param y the result, rows by outputs
   * @param layer its bias, activation and arithmetic
   * @param submit order, priority, planning
   * @return a future of Y
   */
  public Job<Matrix> linearAsync(Matrix x, Matrix w, Matrix y, Linear layer, Submit submit) {
    return submit(layer.forward(x, w, y), submit);
  }

  /**
   * A linear layer: Y = activation(X * W + bias). Blocks until Y is complete.
   *
   * @param x rows by inputs; only read
   * @param w inputs by outputs, or outputs by inputs with {@link Linear#opW}; only read
   * @param y the result, rows by outputs
   * @param layer its bias, activation and arithmetic
   * @return Y
   */
  public Matrix linear(Matrix x, Matrix w, Matrix y, Linear layer) {
    return run(layer.forward(x, w, y));
  }

  /**
   * The gradients of a linear layer as one job: dX = dY * W^T, dW = X^T * dY, and dbias, the sums of dY's columns. dY is the
   * gradient of the loss with respect to X * W + bias: the activation's derivative has been applied. Operands may be in any memory.
   *
   * @param dy rows by outputs; only read
   * @param x as given to the layer; only read; null without dW
   * @param w as given to the layer; only read; null without dX
   * @param dx a result like X; null: it is not computed
   * @param dw a result like W; null: it is not computed
   * @param dbias a result: a row with a value for each output; null: it is not computed
   * @param layer of which opW, the arithmetic and {@link Linear#accumulate} apply
   * @param submit order, priority, planning
   * @return a future without a result
   */
  public Job<Void> linearBackwardAsync(
      Matrix dy, Matrix x, Matrix w, Matrix dx, Matrix dw, Matrix dbias, Linear layer, Submit submit) {
    return submit(layer.backward(dy, x, w, dx, dw, dbias), submit);
  }

  /**
   * The gradients of a linear layer, as those of {@link #linearBackwardAsync}. Blocks until they are complete.
   *
   * @param dy rows by outputs; only read
   * @param x as given to the layer; only read; null without dW
   * @param w as given to the layer; only read; null without dX
   * @param dx a result like X; null: it is not computed
   * @param dw a result like W; null: it is not computed
   * @param dbias a result: a row with a value for each output; null: it is not computed
   * @param layer of which opW, the arithmetic and {@link Linear#accumulate} apply
   */
  public void linearBackward(Matrix dy, Matrix x, Matrix w, Matrix dx, Matrix dw, Matrix dbias, Linear layer) {
    run(layer.backward(dy, x, w, dx, dw, dbias));
  }

  /**
   * Attention: O = softmax(scale * Q * K^T + mask) * V for each head of each batch. K and V may have fewer heads than Q, of
   * which each serves as many of Q.
   *
   * @param q the queries; only read
   * @param k the keys; only read
   * @param v a value for each key; only read
   * @param o the result, with Q's heads and tokens and V's width
   * @param how mask, scale, workspace and arithmetic
   * @param submit order and priority
   * @return a future of O
   */
  public Job<Heads> attentionAsync(Heads q, Heads k, Heads v, Heads o, Attention how, Submit submit) {
    return submit(how.forward(q, k, v, o), submit);
  }

  /**
   * Attention, as that of {@link #attentionAsync}. Blocks until O is complete.
   *
   * @param q the queries; only read
   * @param k the keys; only read
   * @param v a value for each key; only read
   * @param o the result, with Q's heads and tokens and V's width
   * @param how mask, scale, workspace and arithmetic
   * @return O
   */
  public Heads attention(Heads q, Heads k, Heads v, Heads o, Attention how) {
    return run(how.forward(q, k, v, o));
  }

  /**
   * The gradients of an attention as one job. Of heads that serve several of Q, dK and dV are the sums.
   *
   * @param q as given to the attention, and so are k and v; only read
   * @param k only read
   * @param v only read
   * @param dO the gradient of the loss with respect to O; only read
   * @param dq a result like Q; null: it is not computed
   * @param dk a result like K; null: it is not computed
   * @param dv a result like V; null: it is not computed
   * @param how as given to the attention
   * @param submit order and priority
   * @return a future without a result
   */
  public Job<Void> attentionBackwardAsync(
      Heads q, Heads k, Heads v, Heads dO, Heads dq, Heads dk, Heads dv, Attention how, Submit submit) {
    return submit(how.backward(q, k, v, dO, dq, dk, dv), submit);
  }

  /**
   * The gradients of an attention, as those of {@link #attentionBackwardAsync}. Blocks until they are complete.
   *
   * @param q as given to the attention, and so are k and v; only read
   * @param k only read
   * @param v only read
   * @param dO the gradient of the loss with respect to O; only read
   * @param dq a result like Q; null: it is not computed
   * @param dk a result like K; null: it is not computed
   * @param dv a result like V; null: it is not computed
   * @param how as given to the attention
   */
  public void attentionBackward(Heads q, Heads k, Heads v, Heads dO, Heads dq, Heads dk, Heads dv, Attention how) {
    run(how.backward(q, k, v, dO, dq, dk, dv));
  }

  /**
   * A convolution of images: Y = activation(conv(X, W) + bias). As in PyTorch and ONNX, filters are not mirrored. Operands may
   * be in any memory.
   *
   * @param x the images; only read
   * @param w the filters: a row for each channel of Y, contiguous, in the order of the windows' layout; only read
   * @param y the result, in the order of X, with as many rows and columns as there are windows
   * @param how windows, groups, bias, activation and arithmetic
   * @param submit order, priority, planning
   * @return a future of Y
   */
  public Job<Images> conv2dAsync(Images x, Matrix w, Images y, Conv2d how, Submit submit) {
    return submit(how.forward(x, w, y), submit);
  }

  /**
   * A convolution of images, as that of {@link #conv2dAsync}. Blocks until Y is complete.
   *
   * @param x the images; only read
   * @param w the filters: a row for each channel of Y, contiguous, in the order of the windows' layout; only read
   * @param y the result, in the order of X, with as many rows and columns as there are windows
   * @param how windows, groups, bias, activation and arithmetic
   * @return Y
   */
  public Images conv2d(Images x, Matrix w, Images y, Conv2d how) {
    return run(how.forward(x, w, y));
  }

  /**
   * The gradients of a convolution as one job. dY is the gradient of the loss with respect to conv(X, W) + bias: the
   * activation's derivative has been applied. dX alone is the transposed convolution of dY with W. Operands may be in any memory.
   *
   * @param dy like Y; only read
   * @param x as given to the convolution; only read; null without dW
   * @param w as given to the convolution; only read; null without dX
   * @param dx a result like X; null: it is not computed
   * @param dw a result like W; null: it is not computed
   * @param dbias a result: a row with a value for each channel of Y; null: it is not computed
   * @param how as given to the convolution; its bias and activation are not used
   * @param submit order, priority, planning
   * @return a future without a result
   */
  public Job<Void> conv2dBackwardAsync(
      Images dy, Images x, Matrix w, Images dx, Matrix dw, Matrix dbias, Conv2d how, Submit submit) {
    return submit(how.backward(dy, x, w, dx, dw, dbias), submit);
  }

  /**
   * The gradients of a convolution, as those of {@link #conv2dBackwardAsync}. Blocks until they are complete.
   *
   * @param dy like Y; only read
   * @param x as given to the convolution; only read; null without dW
   * @param w as given to the convolution; only read; null without dX
   * @param dx a result like X; null: it is not computed
   * @param dw a result like W; null: it is not computed
   * @param dbias a result: a row with a value for each channel of Y; null: it is not computed
   * @param how as given to the convolution; its bias and activation are not used
   */
  public void conv2dBackward(Images dy, Images x, Matrix w, Images dx, Matrix dw, Matrix dbias, Conv2d how) {
    run(how.backward(dy, x, w, dx, dw, dbias));
  }

  /**
   * The windows of images as a matrix, of any type.
   *
   * @param x the images, or a range of their channels; only read
   * @param matrix the result: a row for each window of each image, a column for each of its pixels in each channel
   * @param windows the windows, and the order of the columns
   * @param submit order and priority
   * @return a future of the matrix
   */
  public Job<Matrix> im2colAsync(Images x, Matrix matrix, Windows windows, Submit submit) {
    return submit(Conv2d.im2col(x, matrix, windows), submit);
  }

  /**
   * The windows of images as a matrix, as that of {@link #im2colAsync}. Blocks until it is complete.
   *
   * @param x the images, or a range of their channels; only read
   * @param matrix the result: a row for each window of each image, a column for each of its pixels in each channel
   * @param windows the windows, and the order of the columns
   * @return the matrix
   */
  public Matrix im2col(Images x, Matrix matrix, Windows windows) {
    return run(Conv2d.im2col(x, matrix, windows));
  }

  /**
   * The sums of windows: each element of the images becomes the sum of the elements of the matrix that {@link #im2colAsync} takes
   * from it. That is its gradient.
   *
   * @param matrix the matrix of windows; only read
   * @param x the result: images, or a range of their channels, of which alone something is written
   * @param windows the windows, and the order of the columns
   * @param accumulate the sums are added to the images; otherwise they replace them
   * @param submit order and priority
   * @return a future of the images
   */
  public Job<Images> col2imAsync(Matrix matrix, Images x, Windows windows, boolean accumulate, Submit submit) {
    return submit(Conv2d.col2im(matrix, x, windows, accumulate), submit);
  }

  /**
   * The sums of windows, as those of {@link #col2imAsync}. Blocks until they are complete.
   *
   * @param matrix the matrix of windows; only read
   * @param x the result: images, or a range of their channels, of which alone something is written
   * @param windows the windows, and the order of the columns
   * @param accumulate the sums are added to the images; otherwise they replace them
   * @return the images
   */
  public Images col2im(Matrix matrix, Images x, Windows windows, boolean accumulate) {
    return run(Conv2d.col2im(matrix, x, windows, accumulate));
  }

  /**
   * A recurrent layer: an LSTM or a GRU over all steps of a batch of sequences, as one job.
   *
   * @param x the inputs; only read
   * @param y the result: the state after each step
   * @param layer cell, weights, states, reserve, direction
   * @param submit order and priority
   * @return a future of Y
   */
  public Job<Sequence> recurrentAsync(Sequence x, Sequence y, Recurrent layer, Submit submit) {
    return submit(layer.forward(x, y), submit);
  }

  /**
   * A recurrent layer, as that of {@link #recurrentAsync}. Blocks until Y is complete.
   *
   * @param x the inputs; only read
   * @param y the result: the state after each step
   * @param layer cell, weights, states, reserve, direction
   * @return Y
   */
  public Sequence recurrent(Sequence x, Sequence y, Recurrent layer) {
    return run(layer.forward(x, y));
  }

  /**
   * The gradients of a recurrent layer as one job. Of a GRU whose reset gate comes before the product there are none.
   *
   * @param x as given to the layer; only read
   * @param y as the layer computed it; only read
   * @param layer as for the layer, with the reserve that it has written; its biases and last states are not used
   * @param gradients those of the results, and the results
   * @param submit order and priority
   * @return a future without a result
   */
  public Job<Void> recurrentBackwardAsync(
      Sequence x, Sequence y, Recurrent layer, RecurrentGradients gradients, Submit submit) {
    return submit(layer.backward(x, y, gradients), submit);
  }

  /**
   * The gradients of a recurrent layer, as those of {@link #recurrentBackwardAsync}. Blocks until they are complete.
   *
   * @param x as given to the layer; only read
   * @param y as the layer computed it; only read
   * @param layer as for the layer, with the reserve that it has written; its biases and last states are not used
   * @param gradients those of the results, and the results
   */
  public void recurrentBackward(Sequence x, Sequence y, Recurrent layer, RecurrentGradients gradients) {
    run(layer.backward(x, y, gradients));
  }

  /**
   * Memory for what the gradients of a recurrent layer need: {@link Recurrent#reserve}.
   *
   * @param y the layer's result
   * @return a matrix in device memory of its own
   */
  public Matrix recurrentReserve(Sequence y) {
    return context.deviceMatrix(Recurrent.reserveType(y), y.memory.rows, Recurrent.reserveWidth(y));
  }

  /**
   * Rows of a table by their numbers: row i of Y is row indices[i] of the table, of any type. The row of an index out of range
   * becomes 0, or NaN.
   *
   * @param table row major; only read
   * @param indices as many as Y has rows; only read
   * @param y the result, row major, with the table's columns
   * @param submit order and priority
   * @param flags whether indices below 0 count from the table's end, and whether rows become NaN
   * @return a future of Y
   */
  public Job<Matrix> gatherAsync(Matrix table, Indices indices, Matrix y, Submit submit, GatherFlag... flags) {
    return submit(indices.gather(table, y, flags), submit);
  }

  /**
   * Rows of a table by their numbers, as those of {@link #gatherAsync}. Blocks until Y is complete.
   *
   * @param table row major; only read
   * @param indices as many as Y has rows; only read
   * @param y the result, row major, with the table's columns
   * @param flags whether indices below 0 count from the table's end, and whether rows become NaN
   * @return Y
   */
  public Matrix gather(Matrix table, Indices indices, Matrix y, GatherFlag... flags) {
    return run(indices.gather(table, y, flags));
  }
}
