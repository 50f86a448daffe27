// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertSame;

import org.junit.Test;

/** Linear layers and their gradients, against loops over doubles. */
public class LinearTest extends DeviceTest {
  private static final int ROWS = 5;
  private static final int IN = 4;
  private static final int OUT = 3;

  private final double[] x = numbers(ROWS * IN);
  private final double[] w = numbers(IN * OUT);
  private final double[] bias = numbers(OUT);
  private final double[] dy = numbers(ROWS * OUT);

  /** op(A) * op(B), where A is m x k and B k x n, each stored transposed if asked for. */
  private static double[] product(double[] a, boolean transA, double[] b, boolean transB, int m, int n, int k) {
    double[] c = new double[m * n];
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j)
        for (int l = 0; l < k; ++l) c[i * n + j] += a[transA ? l * m + i : i * k + l] * b[transB ? j * k + l : l * n + j];
    return c;
  }

  private static double[] transposed(double[] a, int rows, int cols) {
    double[] made = new double[a.length];
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j) made[j * rows + i] = a[i * cols + j];
    return made;
  }

  private double[] sumsOfColumns() {
    double[] made = new double[OUT];
    for (int i = 0; i < ROWS; ++i)
      for (int j = 0; j < OUT; ++j) made[j] += dy[i * OUT + j];
    return made;
  }

  private static double[] sum(double[] a, double[] b) {
    double[] made = a.clone();
    for (int i = 0; i < made.length; ++i) made[i] += b[i];
    return made;
  }

  private double[] expected() {
    double[] y = product(x, false, w, false, ROWS, OUT, IN);
    for (int i = 0; i < y.length; ++i) y[i] = Math.max(0, y[i] + bias[i % OUT]);
    return y;
  }

  @Test
  public void forward() {
    Linear layer = new Linear().bias(place(1, OUT, bias)).activation(Activation.RELU);
    Matrix y = poisoned(ROWS, OUT);
    Matrix inputs = place(ROWS, IN, x);
    assertSame(y, context.layers().linearAsync(inputs, place(IN, OUT, w), y, layer, DEFAULTS).join());
    holds(expected(), y);
    Matrix other = poisoned(ROWS, OUT);
    assertSame(other, context.layers().linear(inputs, place(OUT, IN, transposed(w, IN, OUT)), other, layer.opW(Transpose.T)));
    holds(expected(), other);
    context.layers().linear(inputs, place(IN, OUT, w), y, new Linear());
    holds(product(x, false, w, false, ROWS, OUT, IN), y);
  }

  @Test
  public void arraysAreCopied() {
    double[] y = new double[ROWS * OUT];
    Linear layer = new Linear().bias(Matrix.of(bias, 1, OUT)).activation(Activation.RELU);
    context.layers().linearAsync(Matrix.of(x, ROWS, IN), Matrix.of(w, IN, OUT), Matrix.of(y, ROWS, OUT), layer, DEFAULTS).join();
    assertArrayEquals(expected(), y, 1e-12);
    double[] dw = numbers(IN * OUT);
    double[] before = dw.clone();
    context.layers().linearBackward(Matrix.of(dy, ROWS, OUT), Matrix.of(x, ROWS, IN), null, null, Matrix.of(dw, IN, OUT), null,
        new Linear().accumulate(true));
    assertArrayEquals(sum(before, product(x, true, dy, false, IN, OUT, ROWS)), dw, 1e-12);
  }

  @Test
  public void gradients() {
    double[] dx = product(dy, false, w, true, ROWS, IN, OUT);
    double[] dw = product(x, true, dy, false, IN, OUT, ROWS);
    Matrix outputs = place(ROWS, OUT, dy);
    Matrix inputs = place(ROWS, IN, x);
    Matrix weights = place(IN, OUT, w);
    Matrix toX = poisoned(ROWS, IN);
    Matrix toW = poisoned(IN, OUT);
    Matrix toBias = poisoned(1, OUT);
    context.layers().linearBackwardAsync(outputs, inputs, weights, toX, toW, toBias, new Linear(), DEFAULTS).join();
    holds(dx, toX);
    holds(dw, toW);
    holds(sumsOfColumns(), toBias);
    context.layers().linearBackward(outputs, inputs, weights, toX, toW, toBias, new Linear().accumulate(true));
    holds(dx, toX);
    holds(sum(dw, dw), toW);
    holds(sum(sumsOfColumns(), sumsOfColumns()), toBias);
  }

  @Test
  public void eachGradientAlone() {
    Matrix outputs = place(ROWS, OUT, dy);
    Matrix toX = poisoned(ROWS, IN);
    Linear stored = new Linear().opW(Transpose.T);
    context.layers().linearBackward(outputs, null, place(OUT, IN, transposed(w, IN, OUT)), toX, null, null, stored);
    holds(product(dy, false, w, true, ROWS, IN, OUT), toX);
    Matrix toW = poisoned(OUT, IN);
    context.layers().linearBackward(outputs, place(ROWS, IN, x), null, null, toW, null, stored);
    holds(transposed(product(x, true, dy, false, IN, OUT, ROWS), IN, OUT), toW);
    Matrix toBias = poisoned(1, OUT);
    context.layers().linearBackward(outputs, null, null, null, null, toBias, stored);
    holds(sumsOfColumns(), toBias);
  }

  @Test
  public void gradientsOfF32ForF16() {
    double[] from = integers(ROWS * IN);
    double[] gradient = integers(ROWS * OUT);
    Matrix toW = cast(poisoned(IN, OUT), DType.F32);
    Matrix toBias = cast(place(1, OUT, 1, 2, 3), DType.F16);
    context.layers().linearBackward(
        cast(place(ROWS, OUT, gradient), DType.F16), cast(place(ROWS, IN, from), DType.F16), null, null, toW, toBias, new Linear());
    holds(product(from, true, gradient, false, IN, OUT, ROWS), cast(toW, DType.F64));
    double[] sums = new double[OUT];
    for (int i = 0; i < gradient.length; ++i) sums[i % OUT] += gradient[i];
    holds(sums, cast(toBias, DType.F64));
  }

  @Test
  public void wrongCallsNameTheArgument() {
    Matrix inputs = place(ROWS, IN, x);
    Matrix weights = place(IN, OUT, w);
    Matrix y = poisoned(ROWS, OUT);
    Layers layers = context.layers();
    refused("w is 4 x 3; with this x, y and op of w", () -> layers.linearAsync(inputs, weights, y, new Linear().opW(Transpose.T), DEFAULTS));
    refused("y is 4 x 3", () -> layers.linear(inputs, weights, poisoned(IN, OUT), new Linear()));
    refused("bias is f64 1 x 4", () -> layers.linear(inputs, weights, y, new Linear().bias(place(1, IN, w[0], w[1], w[2], w[3]))));
    refused("w is null; dx needs it", () -> layers.linearBackward(y, inputs, null, inputs, null, null, new Linear()));
    refused("x is null; dw needs it", () -> layers.linearBackwardAsync(y, null, weights, null, weights, null, new Linear(), DEFAULTS));
    refused("dbias is f64 4 x 3", () -> layers.linearBackward(y, null, null, null, null, weights, new Linear()));
    refused("dw is 3 x 4", () -> layers.linearBackward(y, inputs, null, null, poisoned(OUT, IN), null, new Linear()));
    refused("dx.dtype() is ", () -> layers.linearBackward(y, null, weights, context.deviceMatrix(DType.F16, ROWS, IN), null, null, new Linear()));
    fails(submit -> layers.linearAsync(inputs, weights, y, new Linear(), submit));
    fails(submit -> layers.linearBackwardAsync(y, null, weights, poisoned(ROWS, IN), null, null, new Linear(), submit));
  }
}
