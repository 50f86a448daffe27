// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.Objects;
import org.streamgemm.internal.Native;

/** A convolution beside its operands: {@link Layers#conv2dAsync}, {@link Layers#conv2dBackwardAsync}. Read during the call only. */
public final class Conv2d {
  private final Windows windows;
  private Matrix bias;
  private long groups = 1;
  private Activation activation = Activation.NONE;
  private long workspace;
  private Compute compute = Compute.EXACT;
  private boolean accumulate;

  /**
   * One group, no bias, no activation.
   *
   * @param windows its windows, and the order of its filters
   */
  public Conv2d(Windows windows) {
    this.windows = Objects.requireNonNull(windows, "windows");
  }

  /**
   * Adds a bias. The gradients do not need it.
   *
   * @param bias a row with a value for each channel of Y, of Y's type; only read; null: none
   * @return these options
   */
  public Conv2d bias(Matrix bias) {
    this.bias = bias;
    return this;
  }

  /**
   * Sets the groups of channels, each of which has filters of its own.
   *
   * @param groups a divisor of the channels of X and of Y
   * @return these options
   */
  public Conv2d groups(long groups) {
    if (groups < 1) throw new StreamGemmException.InvalidArgument("groups is " + groups);
    this.groups = groups;
    return this;
  }

  /**
   * Sets the activation. The gradients do not apply its derivative.
   *
   * @param activation applied last to each element of Y
   * @return these options
   */
  public Conv2d activation(Activation activation) {
    this.activation = Objects.requireNonNull(activation, "activation");
    return this;
  }

  /**
   * Limits the memory for matrices of windows.
   *
   * @param workspace bytes; 0: the library's choice
   * @return these options
   */
  public Conv2d workspace(long workspace) {
    this.workspace = workspace;
    return this;
  }

  /**
   * Sets the arithmetic.
   *
   * @param compute the least accurate one allowed
   * @return these options
   */
  public Conv2d compute(Compute compute) {
    this.compute = Objects.requireNonNull(compute, "compute");
    return this;
  }

  /**
   * Sets what becomes of the gradients of the filters and the bias.
   *
   * @param accumulate they are added to dW and dbias; otherwise they replace them
   * @return these options
   */
  public Conv2d accumulate(boolean accumulate) {
    this.accumulate = accumulate;
    return this;
  }

  LayerCall<Images> forward(Images x, Matrix w, Images y) {
    Windows s = windows;
    DType type = x.memory.dtype;
    requireSizes(x, "x", y, "y", type);
    LayerCall.requireContiguous("w", w, y.channels, filterSize(x), type);
    LayerCall.requireContiguous("bias", bias, 1, y.channels, type);
    return new LayerCall<>(y).reads("x", x.memory).reads("w", w).reads("bias", bias).writes("y", y.memory)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_conv2d_async(on, graph, at[0], x.memory.ld, at[3], y.memory.ld, at[1], at[2], x.memory.rows,
                x.channels, x.height, x.width, s.kernelH, s.kernelW, s.strideH, s.strideW, s.dilationH, s.dilationW,
                s.padTop, s.padLeft, s.padBottom, s.padRight, y.channels, groups, workspace, x.layout.value,
                s.layout.value, type.value, activation.value, compute.value, stream, after, count, priority, flags,
                queue, tag, options, deadline, label));
  }

  LayerCall<Void> backward(Images dy, Images x, Matrix w, Images dx, Matrix dw, Matrix dbias) {
    LayerCall.requireFor("dx", dx, "w", w);
    LayerCall.requireFor("dw", dw, "x", x);
    LayerCall.requireContiguous("dbias", dbias, 1, dy.channels);
    Images of = dw != null ? x : dx; // has the sizes of X; null: the sums of dY alone, of any windows
    Windows s = of == null ? new Windows(1, 1) : windows;
    DType type = dy.memory.dtype;
    if (of != null) {
      requireSizes(of, dw != null ? "x" : "dx", dy, "dy", type);
      if (dw != null && dx != null) dx.require("dx", type, x.layout, x.memory.rows, x.channels, x.height, x.width);
      if (dx != null) LayerCall.requireContiguous("w", w, dy.channels, filterSize(of), type);
      LayerCall.requireContiguous("dw", dw, dy.channels, filterSize(of));
    }
    DType gradientType = dw != null ? dw.dtype : dbias != null ? dbias.dtype : type;
    LayerCall.requireContiguous("dbias", dbias, 1, dy.channels, gradientType);
    long group = of == null ? 1 : groups;
    long channels = of == null ? 0 : of.channels;
    long height = of == null ? dy.height : of.height;
    long width = of == null ? dy.width : of.width;
    long strideX = dw == null ? 0 : x.memory.ld;
    long strideDx = dx == null ? 0 : dx.memory.ld;
    return new LayerCall<Void>(null).reads("dy", dy.memory).reads("x", dw == null ? null : x.memory)
        .reads("w", dx == null ? null : w).writes("dx", dx == null ? null : dx.memory)
        .writes("dw", dw, accumulate).writes("dbias", dbias, accumulate)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_conv2d_backward_async(on, graph, at[0], dy.memory.ld, at[1], strideX, at[2], at[3], strideDx, at[4],
                at[5], dy.memory.rows, channels, height, width, s.kernelH, s.kernelW, s.strideH, s.strideW, s.dilationH,
                s.dilationW, s.padTop, s.padLeft, s.padBottom, s.padRight, dy.channels, group, workspace,
                dy.layout.value, s.layout.value, type.value, gradientType.value, compute.value, accumulate ? 1 : 0,
                stream, after, count, priority, flags, queue, tag, options, deadline, label));
  }

  /** Elements of a filter. */
  private long filterSize(Images x) {
    return x.channels / groups * windows.kernelH * windows.kernelW;
  }

  /** Throws unless Y has the sizes of the convolution of X. */
  private void requireSizes(Images x, String nameX, Images y, String nameY, DType type) {
    x.require(nameX, type, x.layout, x.memory.rows, x.channels, x.height, x.width);
    y.require(nameY, type, x.layout, x.memory.rows, y.channels, windows.outHeight(x.height), windows.outWidth(x.width));
    if (x.channels % groups != 0 || y.channels % groups != 0)
      throw new StreamGemmException.InvalidArgument(
          "groups is " + groups + "; " + nameX + " has " + x.channels + " and " + nameY + " " + y.channels + " channels");
  }

  /** The matrix of windows. */
  static LayerCall<Matrix> im2col(Images x, Matrix matrix, Windows s) {
    requireType("matrix", matrix, x);
    return new LayerCall<>(matrix).reads("x", x.memory).writes("matrix", matrix)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_im2col_async(on, graph, at[0], x.memory.ld, at[1], matrix.rows, matrix.cols, matrix.ld,
                matrix.dtype.value, matrix.layout.value, x.memory.rows, x.channels, x.height, x.width, s.kernelH, s.kernelW,
                s.strideH, s.strideW, s.dilationH, s.dilationW, s.padTop, s.padLeft, s.padBottom, s.padRight, x.firstChannel,
                x.usedChannels, x.layout.value, s.layout.value, stream, after, count, priority, flags, queue, tag, options,
                deadline, label));
  }

  /** The sum of windows. */
  static LayerCall<Images> col2im(Matrix matrix, Images x, Windows s, boolean accumulate) {
    requireType("matrix", matrix, x);
    return new LayerCall<>(x).reads("matrix", matrix).writes("x", x.memory, accumulate || x.isPart())
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_col2im_async(on, graph, at[0], matrix.rows, matrix.cols, matrix.ld, matrix.dtype.value,
                matrix.layout.value, at[1], x.memory.ld, x.memory.rows, x.channels, x.height, x.width, s.kernelH, s.kernelW,
                s.strideH, s.strideW, s.dilationH, s.dilationW, s.padTop, s.padLeft, s.padBottom, s.padRight, x.firstChannel,
                x.usedChannels, x.layout.value, s.layout.value, accumulate ? 1 : 0, stream, after, count, priority, flags,
                queue, tag, options, deadline, label));
  }

  private static void requireType(String name, Matrix matrix, Images x) {
    if (matrix.dtype != x.memory.dtype)
      throw new StreamGemmException.InvalidArgument(name + " is " + matrix + "; x is of " + x.memory.dtype);
  }
}
