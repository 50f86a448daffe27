// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.Objects;
import org.streamgemm.internal.Native;

/** A linear layer beside its matrices: {@link Layers#linearAsync}, {@link Layers#linearBackwardAsync}. Read during the call only. */
public final class Linear {
  private Matrix bias;
  private Op opW = Op.N;
  private Activation activation = Activation.NONE;
  private Compute compute = Compute.EXACT;
  private boolean accumulate;

  /** W is stored inputs by outputs; no bias, no activation. */
  public Linear() {}

  /**
   * Adds a bias. The gradients do not need it.
   *
   * @param bias a row with a value for each output, of Y's type; only read; null: none
   * @return these options
   */
  public Linear bias(Matrix bias) {
    this.bias = bias;
    return this;
  }

  /**
   * Sets how W, and dW, is stored.
   *
   * @param opW N: inputs by outputs; T: outputs by inputs
   * @return these options
   */
  public Linear opW(Op opW) {
    this.opW = Objects.requireNonNull(opW, "opW");
    return this;
  }

  /**
   * Sets the activation of the layer. The gradients do not apply its derivative.
   *
   * @param activation applied last to each element of Y
   * @return these options
   */
  public Linear activation(Activation activation) {
    this.activation = Objects.requireNonNull(activation, "activation");
    return this;
  }

  /**
   * Sets the arithmetic.
   *
   * @param compute the least accurate one allowed
   * @return these options
   */
  public Linear compute(Compute compute) {
    this.compute = Objects.requireNonNull(compute, "compute");
    return this;
  }

  /**
   * Sets what becomes of the gradients of W and the bias.
   *
   * @param accumulate they are added to dW and dbias; otherwise they replace them
   * @return these options
   */
  public Linear accumulate(boolean accumulate) {
    this.accumulate = accumulate;
    return this;
  }

  LayerCall<Matrix> forward(Matrix x, Matrix w, Matrix y) {
    LayerCall.requireContiguous("bias", bias, 1, y.cols, y.dtype);
    return new LayerCall<>(y).reads("x", x).reads("w", w).reads("bias", bias).writes("y", y)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_linear_async(on, graph, at[0], x.rows, x.cols, x.ld, x.dtype.value, x.layout.value, at[1], w.rows,
                w.cols, w.ld, w.dtype.value, w.layout.value, at[3], y.rows, y.cols, y.ld, y.dtype.value, y.layout.value,
                at[2], opW.value, activation.value, compute.value, stream, after, count, priority, flags, queue, tag, options, deadline, label));
  }

  LayerCall<Void> backward(Matrix dy, Matrix x, Matrix w, Matrix dx, Matrix dw, Matrix dbias) {
    LayerCall.requireFor("dx", dx, "w", w);
    LayerCall.requireFor("dw", dw, "x", x);
    LayerCall.requireContiguous("dbias", dbias, 1, dy.cols);
    Matrix forDw = dw == null ? null : x;
    Matrix forDx = dx == null ? null : w;
    Matrix sizesX = LayerCall.sizes(forDw);
    Matrix sizesW = LayerCall.sizes(forDx);
    Matrix sizesDx = LayerCall.sizes(dx);
    Matrix sizesDw = LayerCall.sizes(dw);
    int biasType = LayerCall.sizes(dbias).dtype.value;
    return new LayerCall<Void>(null).reads("dy", dy).reads("x", forDw).reads("w", forDx).writes("dx", dx)
        .writes("dw", dw, accumulate).writes("dbias", dbias, accumulate)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_linear_backward_async(on, graph, at[0], dy.rows, dy.cols, dy.ld, dy.dtype.value, dy.layout.value,
                at[1], sizesX.rows, sizesX.cols, sizesX.ld, sizesX.dtype.value, sizesX.layout.value, at[2], sizesW.rows,
                sizesW.cols, sizesW.ld, sizesW.dtype.value, sizesW.layout.value, at[3], sizesDx.rows, sizesDx.cols,
                sizesDx.ld, sizesDx.dtype.value, sizesDx.layout.value, at[4], sizesDw.rows, sizesDw.cols, sizesDw.ld,
                sizesDw.dtype.value, sizesDw.layout.value, at[5], biasType, opW.value, compute.value, accumulate ? 1 : 0, stream, after, count, priority,
                flags, queue, tag, options, deadline, label));
  }
}
