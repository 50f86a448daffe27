// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import org.junit.Test;

/** Recurrent layers against loops over doubles, and their gradients against differences of these. */
public class RecurrentTest extends DeviceTest {
  private static final int STEPS = 3;
  private static final int BATCH = 2;
  private static final int IN = 3;
  private static final int HIDDEN = 2;
  private static final int STATE = BATCH * HIDDEN;

  private final double[] x = numbers(STEPS * BATCH * IN);
  private final double[] h0 = numbers(STATE);
  private final double[] c0 = numbers(STATE);
  private final double[] dy = numbers(STEPS * STATE);
  private final double[] dhn = numbers(STATE);
  private final double[] dcn = numbers(STATE);
  private double[] wIh;
  private double[] wHh;
  private double[] biasIh;
  private double[] biasHh;
  /** Of the layer computed last: the states after each step, and the last ones. */
  private final double[] y = new double[STEPS * STATE];
  private double[] h;
  private double[] c;

  private void makeWeights(Cell cell) {
    int gates = cell == Cell.LSTM ? 4 : 3;
    wIh = numbers(gates * HIDDEN * IN);
    wHh = numbers(gates * HIDDEN * HIDDEN);
    biasIh = numbers(gates * HIDDEN);
    biasHh = numbers(gates * HIDDEN);
  }

  private static double sigmoid(double value) {
    return 1 / (1 + Math.exp(-value));
  }

  private double fromX(int row, int step, int sequence) {
    double sum = biasIh[row];
    for (int i = 0; i < IN; ++i) sum += wIh[row * IN + i] * x[(step * BATCH + sequence) * IN + i];
    return sum;
  }

  private double fromState(int row, double[] state) {
    double sum = biasHh[row];
    for (int i = 0; i < HIDDEN; ++i) sum += wHh[row * HIDDEN + i] * state[i];
    return sum;
  }

  private void compute(Cell cell, boolean reverse) {
    h = h0.clone();
    c = c0.clone();
    for (int s = 0; s < STEPS; ++s) {
      int step = reverse ? STEPS - 1 - s : s;
      for (int b = 0; b < BATCH; ++b) {
        double[] before = java.util.Arrays.copyOfRange(h, b * HIDDEN, (b + 1) * HIDDEN);
        for (int j = 0; j < HIDDEN; ++j) {
          int at = b * HIDDEN + j;
          h[at] = cell == Cell.LSTM ? lstm(step, b, j, at, before) : gru(cell, step, b, j, before);
          y[step * STATE + at] = h[at];
        }
      }
    }
  }

  private double lstm(int step, int b, int j, int at, double[] before) {
    double[] gates = new double[4]; // i, f, g, o
    for (int g = 0; g < 4; ++g) gates[g] = fromX(g * HIDDEN + j, step, b) + fromState(g * HIDDEN + j, before);
    c[at] = sigmoid(gates[1]) * c[at] + sigmoid(gates[0]) * Math.tanh(gates[2]);
    return sigmoid(gates[3]) * Math.tanh(c[at]);
  }

  private double gru(Cell cell, int step, int b, int j, double[] before) {
    double z = sigmoid(fromX(HIDDEN + j, step, b) + fromState(HIDDEN + j, before));
    int row = 2 * HIDDEN + j;
    double[] reset = new double[HIDDEN];
    for (int i = 0; i < HIDDEN; ++i) reset[i] = sigmoid(fromX(i, step, b) + fromState(i, before));
    double state = reset[j] * fromState(row, before);
    if (cell == Cell.GRU_RESET_BEFORE) {
      for (int i = 0; i < HIDDEN; ++i) reset[i] *= before[i];
      state = fromState(row, reset);
    }
    return (1 - z) * Math.tanh(fromX(row, step, b) + state) + z * before[j];
  }

  private double loss(Cell cell) {
    compute(cell, false);
    double sum = 0;
    for (int i = 0; i < y.length; ++i) sum += dy[i] * y[i];
    for (int i = 0; i < STATE; ++i) sum += dhn[i] * h[i] + (cell == Cell.LSTM ? dcn[i] * c[i] : 0);
    return sum;
  }

  /** The gradient of the loss with respect to values that it is computed from. */
  private double[] differences(Cell cell, double[] values) {
    double[] made = new double[values.length];
    for (int i = 0; i < values.length; ++i) {
      double value = values[i];
      values[i] = value + 1e-5;
      double more = loss(cell);
      values[i] = value - 1e-5;
      made[i] = (more - loss(cell)) / 2e-5;
      values[i] = value;
    }
    return made;
  }

  private Sequence inputs() {
    return Sequence.byStep(place(STEPS * BATCH, IN, x), BATCH);
  }

  private Sequence poisonedSteps(int values) {
    return Sequence.byStep(poisoned(STEPS * BATCH, values), BATCH);
  }

  private Recurrent layer(Cell cell) {
    int gates = wIh.length / IN / HIDDEN;
    Recurrent made = new Recurrent(cell, place(gates * HIDDEN, IN, wIh), place(gates * HIDDEN, HIDDEN, wHh));
    made.biases(place(1, gates * HIDDEN, biasIh), place(1, gates * HIDDEN, biasHh));
    return made.start(place(BATCH, HIDDEN, h0), cell == Cell.LSTM ? place(BATCH, HIDDEN, c0) : null);
  }

  @Test
  public void forward() {
    for (Cell cell : Cell.values()) {
      makeWeights(cell);
      Matrix hn = poisoned(BATCH, HIDDEN);
      Matrix cn = cell == Cell.LSTM ? poisoned(BATCH, HIDDEN) : null;
      Recurrent layer = layer(cell).end(hn, cn);
      Sequence to = poisonedSteps(HIDDEN);
      compute(cell, false);
      assertSame(to, context.layers().recurrentAsync(inputs(), to, layer, DEFAULTS).join());
      holds(y, to.memory());
      holds(h, hn);
      if (cn != null) holds(c, cn);
      compute(cell, true);
      assertSame(to, context.layers().recurrent(inputs(), to, layer.reverse(true)));
      holds(y, to.memory());
    }
  }

  @Test
  public void sequencesByBatchAndHalvesOfRows() {
    makeWeights(Cell.GRU);
    double[] moved = new double[x.length];
    for (int s = 0; s < STEPS; ++s)
      for (int b = 0; b < BATCH; ++b) System.arraycopy(x, (s * BATCH + b) * IN, moved, (b * STEPS + s) * IN, IN);
    Matrix both = poisoned(BATCH * STEPS, 2 * HIDDEN);
    Sequence from = Sequence.byBatch(place(BATCH * STEPS, IN, moved), BATCH);
    for (int half = 0; half < 2; ++half) {
      Sequence to = Sequence.byBatch(both.block(0, half * HIDDEN, BATCH * STEPS, HIDDEN), BATCH);
      context.layers().recurrent(from, to, layer(Cell.GRU).reverse(half == 1));
    }
    double[] found = fetch(both);
    for (int half = 0; half < 2; ++half) {
      compute(Cell.GRU, half == 1);
      for (int s = 0; s < STEPS; ++s)
        for (int b = 0; b < BATCH; ++b)
          for (int j = 0; j < HIDDEN; ++j)
            assertEquals(y[s * STATE + b * HIDDEN + j], found[((b * STEPS + s) * 2 + half) * HIDDEN + j], 1e-12);
    }
  }

  @Test
  public void theStateInPlace() {
    makeWeights(Cell.LSTM);
    Matrix state = place(BATCH, HIDDEN, h0);
    Matrix cells = place(BATCH, HIDDEN, c0);
    compute(Cell.LSTM, false);
    context.layers().recurrent(inputs(), poisonedSteps(HIDDEN), layer(Cell.LSTM).start(state, cells).end(state, cells));
    holds(h, state);
    holds(c, cells);
  }

  @Test
  public void gradients() {
    for (Cell cell : new Cell[] {Cell.LSTM, Cell.GRU}) {
      boolean lstm = cell == Cell.LSTM;
      makeWeights(cell);
      int rows = biasIh.length;
      Sequence from = inputs();
      Sequence to = poisonedSteps(HIDDEN);
      Matrix reserve = context.layers().recurrentReserve(to);
      assertEquals(5 * HIDDEN, reserve.cols());
      Recurrent layer = layer(cell).reserve(reserve);
      context.layers().recurrent(from, to, layer);
      Sequence dx = poisonedSteps(IN);
      Matrix dwIh = poisoned(rows, IN);
      Matrix dwHh = poisoned(rows, HIDDEN);
      Matrix dbiasIh = poisoned(1, rows);
      Matrix dbiasHh = poisoned(1, rows);
      Matrix dh0 = poisoned(BATCH, HIDDEN);
      Matrix dc0 = lstm ? poisoned(BATCH, HIDDEN) : null;
      RecurrentGradients gradients = new RecurrentGradients().dy(Sequence.byStep(place(STEPS * BATCH, HIDDEN, dy), BATCH));
      gradients.end(place(BATCH, HIDDEN, dhn), lstm ? place(BATCH, HIDDEN, dcn) : null);
      gradients.dx(dx).weights(dwIh, dwHh).biases(dbiasIh, dbiasHh).start(dh0, dc0);
      context.layers().recurrentBackwardAsync(from, to, layer, gradients, DEFAULTS).join();
      assertArrayEquals(differences(cell, x), fetch(dx.memory()), 1e-8);
      assertArrayEquals(differences(cell, wIh), fetch(dwIh), 1e-8);
      assertArrayEquals(differences(cell, wHh), fetch(dwHh), 1e-8);
      assertArrayEquals(differences(cell, biasIh), fetch(dbiasIh), 1e-8);
      assertArrayEquals(differences(cell, biasHh), fetch(dbiasHh), 1e-8);
      assertArrayEquals(differences(cell, h0), fetch(dh0), 1e-8);
      if (lstm) assertArrayEquals(differences(cell, c0), fetch(dc0), 1e-8);
      double[] once = fetch(dwHh);
      context.layers().recurrentBackward(from, to, layer, gradients.accumulate(true));
      for (int i = 0; i < once.length; ++i) once[i] *= 2;
      holds(once, dwHh);
    }
  }

  @Test
  public void gradientsOfF32ForF16() {
    makeWeights(Cell.GRU);
    Sequence from = Sequence.byStep(cast(inputs().memory(), DType.F16), BATCH);
    Sequence to = Sequence.byStep(cast(poisoned(STEPS * BATCH, HIDDEN), DType.F16), BATCH);
    Matrix reserve = context.layers().recurrentReserve(to);
    assertEquals(DType.F32, reserve.dtype());
    Recurrent layer = new Recurrent(Cell.GRU, cast(place(3 * HIDDEN, IN, wIh), DType.F16), cast(place(3 * HIDDEN, HIDDEN, wHh), DType.F16))
        .biases(cast(place(1, 3 * HIDDEN, biasIh), DType.F16), cast(place(1, 3 * HIDDEN, biasHh), DType.F16))
        .start(cast(place(BATCH, HIDDEN, h0), DType.F16), null).reserve(reserve);
    context.layers().recurrent(from, to, layer);
    Matrix dwIh = context.deviceMatrix(DType.F32, 3 * HIDDEN, IN);
    RecurrentGradients gradients = new RecurrentGradients().weights(dwIh, null)
        .dy(Sequence.byStep(cast(place(STEPS * BATCH, HIDDEN, dy), DType.F16), BATCH))
        .end(cast(place(BATCH, HIDDEN, dhn), DType.F16), null);
    context.layers().recurrentBackward(from, to, layer, gradients);
    assertArrayEquals(differences(Cell.GRU, wIh), fetch(cast(dwIh, DType.F64)), 2e-2);
    refused("dbiasIh is f64 1 x 6", () -> context.layers().recurrentBackward(from, to, layer, gradients.biases(poisoned(1, 6), null)));
  }

  @Test
  public void arraysAreCopied() {
    makeWeights(Cell.GRU);
    double[] states = new double[STEPS * STATE];
    Recurrent layer = new Recurrent(Cell.GRU, Matrix.of(wIh, 3 * HIDDEN, IN), Matrix.of(wHh, 3 * HIDDEN, HIDDEN))
        .biases(Matrix.of(biasIh, 1, 3 * HIDDEN), Matrix.of(biasHh, 1, 3 * HIDDEN)).start(Matrix.of(h0, BATCH, HIDDEN), null);
    Sequence from = Sequence.byStep(Matrix.of(x, STEPS * BATCH, IN), BATCH);
    Sequence to = Sequence.byStep(Matrix.of(states, STEPS * BATCH, HIDDEN), BATCH);
    context.layers().recurrentAsync(from, to, layer, DEFAULTS).join();
    compute(Cell.GRU, false);
    assertArrayEquals(y, states, 1e-12);
  }

  @Test
  public void wrongCallsNameTheArgument() {
    makeWeights(Cell.LSTM);
    Layers layers = context.layers();
    Sequence from = inputs();
    Sequence to = poisonedSteps(HIDDEN);
    Recurrent layer = layer(Cell.LSTM);
    refused("y is f64 3 steps of 2 sequences", () -> layers.recurrent(Sequence.byStep(place(1, IN, 1, 2, 3), 1), to, layer));
    refused("wIh is f64 8 x 3", () -> layers.recurrent(from, to, new Recurrent(Cell.GRU, place(8, IN, wIh), place(8, HIDDEN, wHh))));
    refused("wHh is f64 8 x 2", () -> layers.recurrent(from, poisonedSteps(3), new Recurrent(Cell.LSTM, poisoned(12, IN), place(8, HIDDEN, wHh))));
    refused("biasHh is f64 1 x 2", () -> layers.recurrent(from, to, layer(Cell.LSTM).biases(null, place(1, 2, 1, 2))));
    refused("hn is f64 1 x 2", () -> layers.recurrentAsync(from, to, layer(Cell.LSTM).end(poisoned(1, 2), null), DEFAULTS));
    refused("reserve is f64 1 x 1", () -> layers.recurrent(from, to, layer(Cell.LSTM).reserve(poisoned(1, 1))));
    refused("reserve is null", () -> layers.recurrentBackward(from, to, layer, new RecurrentGradients()));
    refused("batch is 4, which does not divide", () -> Sequence.byBatch(from.memory(), 4));
    Recurrent kept = layer(Cell.LSTM).reserve(layers.recurrentReserve(to));
    refused("dwIh is f64 2 x 2", () -> layers.recurrentBackward(from, to, kept, new RecurrentGradients().weights(poisoned(2, 2), null)));
    refused("dy is f64 3 steps", () -> layers.recurrentBackward(from, to, kept, new RecurrentGradients().dy(from)));
    makeWeights(Cell.GRU);
    refused("cn is given; a GRU has no state c", () -> layers.recurrent(from, to, layer(Cell.GRU).end(null, poisoned(BATCH, HIDDEN))));
    StreamGemmException.Unsupported none = assertThrows(StreamGemmException.Unsupported.class,
        () -> layers.recurrentBackward(from, to, layer(Cell.GRU_RESET_BEFORE).reserve(layers.recurrentReserve(to)), new RecurrentGradients()));
    assertTrue(none.getMessage(), none.getMessage().startsWith("cell is 2"));
    fails(submit -> layers.recurrentAsync(from, to, layer, submit));
    fails(submit -> layers.recurrentBackwardAsync(from, to, kept, new RecurrentGradients().dx(poisonedSteps(IN)), submit));
  }
}
