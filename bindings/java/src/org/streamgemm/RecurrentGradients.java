// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/**
 * The gradients of a recurrent layer, given ones and results: {@link Layers#recurrentBackwardAsync}. A result that is null is not
 * computed. Read during the call only.
 */
public final class RecurrentGradients {
  Sequence dy;
  Matrix dhn;
  Matrix dcn;
  Sequence dx;
  Matrix dwIh;
  Matrix dwHh;
  Matrix dbiasIh;
  Matrix dbiasHh;
  Matrix dh0;
  Matrix dc0;
  boolean accumulate;

  /** Zeros are given, and nothing is computed. */
  public RecurrentGradients() {}

  /**
   * Gives the gradient of Y.
   *
   * @param dy like Y; only read; null: zeros
   * @return these gradients
   */
  public RecurrentGradients dy(Sequence dy) {
    this.dy = dy;
    return this;
  }

  /**
   * Gives the gradients of the last state.
   *
   * @param dhn like hn; only read; null: zeros
   * @param dcn likewise, of an LSTM
   * @return these gradients
   */
  public RecurrentGradients end(Matrix dhn, Matrix dcn) {
    this.dhn = dhn;
    this.dcn = dcn;
    return this;
  }

  /**
   * Computes the gradient of X.
   *
   * @param dx a result like X
   * @return these gradients
   */
  public RecurrentGradients dx(Sequence dx) {
    this.dx = dx;
    return this;
  }

  /**
   * Computes the gradients of the weights, all of one type: the layer's, or F32 for F16 and BF16.
   *
   * @param dwIh a result like wIh
   * @param dwHh a result like wHh
   * @return these gradients
   */
  public RecurrentGradients weights(Matrix dwIh, Matrix dwHh) {
    this.dwIh = dwIh;
    this.dwHh = dwHh;
    return this;
  }

  /**
   * Computes the gradients of the biases, of the type of those of the weights.
   *
   * @param dbiasIh a result like biasIh
   * @param dbiasHh a result like biasHh
   * @return these gradients
   */
  public RecurrentGradients biases(Matrix dbiasIh, Matrix dbiasHh) {
    this.dbiasIh = dbiasIh;
    this.dbiasHh = dbiasHh;
    return this;
  }

  /**
   * Computes the gradients of the first state.
   *
   * @param dh0 a result like h0
   * @param dc0 likewise, of an LSTM
   * @return these gradients
   */
  public RecurrentGradients start(Matrix dh0, Matrix dc0) {
    this.dh0 = dh0;
    this.dc0 = dc0;
    return this;
  }

  /**
   * Sets what becomes of the gradients of weights and biases.
   *
   * @param accumulate they are added to what is there; otherwise they replace it
   * @return these gradients
   */
  public RecurrentGradients accumulate(boolean accumulate) {
    this.accumulate = accumulate;
    return this;
  }

  /** The type of the gradients of weights and biases: that of the first one. */
  DType type(DType otherwise) {
    for (Matrix m : new Matrix[] {dwIh, dwHh, dbiasIh, dbiasHh})
      if (m != null) return m.dtype;
    return otherwise;
  }
}
