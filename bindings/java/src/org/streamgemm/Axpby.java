// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import org.streamgemm.internal.Native;

/** The scalars and the activation of a scale-and-add ({@link Layers#axpbyAsync}). Read during the call only. */
public final class Axpby {
  private double alpha = 1;
  private double alphaIm;
  private double beta = 1;
  private double betaIm;
  private Activation activation = Activation.NONE;

  /** alpha 1, beta 1, no activation: C += A. */
  public Axpby() {}

  /**
   * Sets real scalars.
   *
   * @param alpha factor of A; 0: A is not accessed
   * @param beta factor of C; 0: C is not read
   * @return these options
   */
  public Axpby with(double alpha, double beta) {
    return with(alpha, 0, beta, 0);
  }

  /**
   * Sets scalars, of which C64 and C128 alone use the imaginary parts.
   *
   * @param alphaRe real part of A's factor
   * @param alphaIm its imaginary part
   * @param betaRe real part of C's factor
   * @param betaIm its imaginary part
   * @return these options
   */
  public Axpby with(double alphaRe, double alphaIm, double betaRe, double betaIm) {
    this.alpha = alphaRe;
    this.alphaIm = alphaIm;
    this.beta = betaRe;
    this.betaIm = betaIm;
    return this;
  }

  /**
   * Applies an activation to the result.
   *
   * @param activation the activation
   * @return these options
   */
  public Axpby activation(Activation activation) {
    this.activation = activation;
    return this;
  }

  LayerCall<Matrix> call(Matrix a, Matrix c) {
    double byA = alpha;
    double byAIm = alphaIm;
    double byC = beta;
    double byCIm = betaIm;
    Activation last = activation;
    return new LayerCall<>(c).reads("a", a).writes("c", c, byC != 0 || byCIm != 0)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_axpby_async(on, graph, at[0], a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, at[1], c.rows, c.cols,
                c.ld, c.dtype.value, c.layout.value, byA, byAIm, byC, byCIm, last.value, stream, after, count, priority, flags,
                queue, tag, options, deadline, label));
  }
}
