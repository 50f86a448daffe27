// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.Arrays;
import java.util.Objects;
import java.util.stream.Collectors;
import org.streamgemm.internal.Native;

/**
 * The operations of deep networks between their GEMMs, as jobs of a context: see {@link Context#layers}. Types are F64, F32, F16
 * and BF16, the same for all operands if not said otherwise. On a device with memory of its own, operands are in device memory. The result may be the
 * operand itself, by the same {@link Matrix}.
 */
public final class Layers {
  private static final Submit DEFAULTS = new Submit();
  private static final Matrix NONE = Matrix.shape(DType.F32, 0, 0);

  private final Context context;

  Layers(Context context) {
    this.context = context;
  }

  /** A call with the operands' addresses, in their order. */
  private interface Call {
    long submit(long context, long[] at, long stream, long after, int afterCount, int priority, int flags, long queue,
        long tag, long options, long deadline, long label);
  }

  /** Submits an operation: `result` is written, the others, which may be null, are read. */
  private Job<Matrix> launch(Matrix result, Submit submit, Call call, String[] names, Matrix... read) {
    if (result.readOnly) throw new StreamGemmException.InvalidArgument("the result is in a read-only buffer");
    long on = context.handle();
    Operands operands =
        context.operands(Arrays.stream(read).filter(Objects::nonNull).collect(Collectors.toList()));
    boolean inPlace = Arrays.asList(read).contains(result);
    return context.launch(result, operands, submit, (stream, after, count, priority, flags, queue, tag, options, deadline, label) -> {
      long[] at = new long[read.length + 1];
      long written = operands.writes(result, 1, 0, inPlace, "the result");
      for (int i = 0; i < read.length; ++i)
        at[i] = read[i] == null ? 0 : read[i] == result ? written : operands.reads(read[i], 1, 0, names[i]);
      at[read.length] = written;
      return call.submit(on, at, stream, after, count, priority, flags, queue, tag, options, deadline, label);
    });
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
    boolean two = function.value >= Function.ADD.value;
    if (two != (b != null))
      throw new StreamGemmException.InvalidArgument("b is " + b + "; " + function + " has " + (two ? "two operands" : "one operand"));
    Matrix second = b == null ? NONE : b;
    return launch(c, submit,
        (on, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_elementwise_async(on, at[0], a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, at[1],
                second.rows, second.cols, second.ld, second.dtype.value, second.layout.value, at[2], c.rows, c.cols, c.ld,
                c.dtype.value, c.layout.value, function.value, stream, after, count, priority, flags, queue, tag, options,
                deadline, label),
        new String[] {"a", "b"}, a, b);
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
    return launch(y, submit,
        (on, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_softmax_async(on, at[0], x.rows, x.cols, x.ld, x.dtype.value, x.layout.value, at[1], y.rows,
                y.cols, y.ld, y.dtype.value, y.layout.value, mask.value, maskOffset, stream, after, count, priority, flags,
                queue, tag, options, deadline, label),
        new String[] {"x"}, x);
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
    return normAsync(NormKind.LAYER, x, gamma, beta, y, epsilon, submit);
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
    return normAsync(NormKind.RMS, x, gamma, null, y, epsilon, submit);
  }

  private Job<Matrix> normAsync(NormKind kind, Matrix x, Matrix gamma, Matrix beta, Matrix y, double epsilon, Submit submit) {
    checkRow(gamma, x, "gamma");
    checkRow(beta, x, "beta");
    return launch(y, submit,
        (on, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_norm_async(on, at[0], x.rows, x.cols, x.ld, x.dtype.value, x.layout.value, at[3], y.rows, y.cols,
                y.ld, y.dtype.value, y.layout.value, at[1], at[2], epsilon, kind.value, stream, after, count, priority,
                flags, queue, tag, options, deadline, label),
        new String[] {"x", "gamma", "beta"}, x, gamma, beta);
  }

  private static void checkRow(Matrix values, Matrix x, String name) {
    if (values == null) return;
    boolean contiguous = values.layout == Layout.ROW_MAJOR || values.ld == 1;
    if (values.rows != 1 || values.cols != x.cols || values.dtype != x.dtype || !contiguous)
      throw new StreamGemmException.InvalidArgument(name + " is " + values + "; with x, which is " + x + ", it is a row of " + x.cols
          + " contiguous values of " + x.dtype);
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
    return launch(c, submit,
        (on, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_convert_async(on, at[0], a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, at[1], c.rows,
                c.cols, c.ld, c.dtype.value, c.layout.value, opA.value, stream, after, count, priority, flags, queue, tag,
                options, deadline, label),
        new String[] {"a"}, a);
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
    Matrix zeros = zeroPoints == null ? NONE : zeroPoints;
    return launch(y, submit,
        (on, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_dequantize_async(on, at[0], x.rows, x.cols, x.ld, x.dtype.value, x.layout.value, at[1],
                scales.rows, scales.cols, scales.ld, scales.dtype.value, scales.layout.value, at[2], zeros.rows, zeros.cols,
                zeros.ld, zeros.dtype.value, zeros.layout.value, at[3], y.rows, y.cols, y.ld, y.dtype.value, y.layout.value,
                blockSize, quantization.value, stream, after, count, priority, flags, queue, tag, options, deadline, label),
        new String[] {"x", "scales", "zeroPoints"}, x, scales, zeroPoints);
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
    Rotary r = how.copy();
    Matrix cos = r.cos == null ? NONE : r.cos;
    Matrix sin = r.sin == null ? NONE : r.sin;
    return launch(y, submit,
        (on, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_rotary_async(on, at[0], x.rows, x.cols, x.ld, x.dtype.value, x.layout.value, at[3], y.rows,
                y.cols, y.ld, y.dtype.value, y.layout.value, at[1], cos.rows, cos.cols, cos.ld, cos.dtype.value,
                cos.layout.value, at[2], sin.rows, sin.cols, sin.ld, sin.dtype.value, sin.layout.value, r.headSize,
                r.rotatedSize, r.firstPosition, r.sequenceLength, r.theta, r.pairs.value, r.inverse ? 1 : 0, stream, after,
                count, priority, flags, queue, tag, options, deadline, label),
        new String[] {"x", "cos", "sin"}, x, r.cos, r.sin);
  }
}
