// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Recurrent layers against loops over doubles, and their gradients against differences of these.</summary>
static class RecurrentTest {
  const int Steps = 3, Batch = 2, In = 3, Hidden = 2;
  static readonly GemmContext context = OnDevice.Context;

  // A layer with its operands; a row of X and Y for each sequence of each step.
  sealed class Layer {
    internal readonly Cell Cell;
    internal readonly double[,] X = OnDevice.Numbers(Steps * Batch, In), H0 = OnDevice.Numbers(Batch, Hidden), C0 = OnDevice.Numbers(Batch, Hidden);
    internal readonly double[,] Dy = OnDevice.Numbers(Steps * Batch, Hidden), Dhn = OnDevice.Numbers(Batch, Hidden), Dcn = OnDevice.Numbers(Batch, Hidden);
    internal readonly double[,] Wih, Whh, BiasIh, BiasHh;
    internal readonly double[,] Y = new double[Steps * Batch, Hidden];  // computed, as the last states
    internal double[,] H, C;

    internal Layer(Cell cell) {
      int rows = (cell == Cell.Lstm ? 4 : 3) * Hidden;
      Cell = cell;
      Wih = OnDevice.Numbers(rows, In);
      Whh = OnDevice.Numbers(rows, Hidden);
      BiasIh = OnDevice.Numbers(1, rows);
      BiasHh = OnDevice.Numbers(1, rows);
    }

    static double Sigmoid(double value) => 1 / (1 + Math.Exp(-value));

    double FromX(int row, int at) {
      double sum = BiasIh[0, row];
      for (int i = 0; i < In; ++i) sum += Wih[row, i] * X[at, i];
      return sum;
    }

    double FromState(int row, double[] state) {
      double sum = BiasHh[0, row];
      for (int i = 0; i < Hidden; ++i) sum += Whh[row, i] * state[i];
      return sum;
    }

    internal void Compute(bool reverse) {
      H = (double[,])H0.Clone();
      C = (double[,])C0.Clone();
      for (int s = 0; s < Steps; ++s) {
        for (int b = 0; b < Batch; ++b) {
          int at = (reverse ? Steps - 1 - s : s) * Batch + b;
          var before = new double[Hidden];
          for (int j = 0; j < Hidden; ++j) before[j] = H[b, j];
          for (int j = 0; j < Hidden; ++j) Y[at, j] = H[b, j] = Cell == Cell.Lstm ? Lstm(at, b, j, before) : Gru(at, j, before);
        }
      }
    }

    double Lstm(int at, int b, int j, double[] before) {
      var gates = new double[4];  // i, f, g, o
      for (int g = 0; g < 4; ++g) gates[g] = FromX(g * Hidden + j, at) + FromState(g * Hidden + j, before);
      C[b, j] = Sigmoid(gates[1]) * C[b, j] + Sigmoid(gates[0]) * Math.Tanh(gates[2]);
      return Sigmoid(gates[3]) * Math.Tanh(C[b, j]);
    }

    double Gru(int at, int j, double[] before) {
      double z = Sigmoid(FromX(Hidden + j, at) + FromState(Hidden + j, before));
      int row = 2 * Hidden + j;
      var reset = new double[Hidden];
      for (int i = 0; i < Hidden; ++i) reset[i] = Sigmoid(FromX(i, at) + FromState(i, before));
      double state = reset[j] * FromState(row, before);
      if (Cell == Cell.GruResetBefore) {
        for (int i = 0; i < Hidden; ++i) reset[i] *= before[i];
        state = FromState(row, reset);
      }
      return (1 - z) * Math.Tanh(FromX(row, at) + state) + z * before[j];
    }

    double Loss() {
      Compute(false);
      double sum = 0;
      for (int i = 0; i < Steps * Batch; ++i)
        for (int j = 0; j < Hidden; ++j) sum += Dy[i, j] * Y[i, j];
      for (int b = 0; b < Batch; ++b)
        for (int j = 0; j < Hidden; ++j) sum += Dhn[b, j] * H[b, j] + (Cell == Cell.Lstm ? Dcn[b, j] * C[b, j] : 0);
      return sum;
    }

    // Checks the gradient of the loss with respect to values that it is computed from.
    internal void Differences(double[,] values, Matrix gradient, string what) {
      var found = new double[values.GetLength(0), values.GetLength(1)];
      context.Copy(gradient, found);
      for (int i = 0; i < values.GetLength(0); ++i) {
        for (int j = 0; j < values.GetLength(1); ++j) {
          double value = values[i, j];
          values[i, j] = value + 1e-5;
          double more = Loss();
          values[i, j] = value - 1e-5;
          double expected = (more - Loss()) / 2e-5;
          values[i, j] = value;
          Expect.True(Math.Abs(found[i, j] - expected) < 1e-8, what + "[" + i + ", " + j + "] is " + found[i, j] + ", not " + expected);
        }
      }
    }

    internal Sequence Inputs => Sequence.ByStep(OnDevice.Place(X), Batch);
    internal Matrix WeightsX => OnDevice.Place(Wih);
    internal Matrix WeightsState => OnDevice.Place(Whh);

    internal RecurrentOptions Options() {
      var made = new RecurrentOptions { Cell = Cell, BiasIh = OnDevice.Place(BiasIh), BiasHh = OnDevice.Place(BiasHh), H0 = OnDevice.Place(H0) };
      if (Cell == Cell.Lstm) made.C0 = OnDevice.Place(C0);
      return made;
    }
  }

  static Matrix PoisonedSteps(int values) => OnDevice.Poisoned(Steps * Batch, values);

  public static async Task Forward() {
    foreach (Cell cell in new[] { Cell.Lstm, Cell.Gru, Cell.GruResetBefore }) {
      var layer = new Layer(cell);
      Matrix y = PoisonedSteps(Hidden);
      RecurrentOptions options = layer.Options();
      options.Hn = OnDevice.Poisoned(Batch, Hidden);
      if (cell == Cell.Lstm) options.Cn = OnDevice.Poisoned(Batch, Hidden);
      layer.Compute(false);
      await context.RecurrentAsync(layer.Inputs, layer.WeightsX, layer.WeightsState, Sequence.ByStep(y, Batch), options);
      OnDevice.Holds(layer.Y, y, cell + ": Y");
      OnDevice.Holds(layer.H, options.Hn, cell + ": hn");
      if (cell == Cell.Lstm) OnDevice.Holds(layer.C, options.Cn, "cn");
      options.Reverse = true;
      layer.Compute(true);
      context.Recurrent(layer.Inputs, layer.WeightsX, layer.WeightsState, Sequence.ByStep(y, Batch), options);
      OnDevice.Holds(layer.Y, y, cell + ": reverse");
    }
  }

  public static void SequencesByBatchAndHalvesOfRows() {
    var layer = new Layer(Cell.Gru);
    double[,] moved = OnDevice.Made(Batch * Steps, In, (i, j) => layer.X[i % Steps * Batch + i / Steps, j]), expected = new double[Batch * Steps, 2 * Hidden];
    Matrix both = OnDevice.Poisoned(Batch * Steps, 2 * Hidden);
    for (int half = 0; half < 2; ++half) {
      RecurrentOptions options = layer.Options();
      options.Reverse = half == 1;
      context.Recurrent(Sequence.ByBatch(OnDevice.Place(moved), Batch), layer.WeightsX, layer.WeightsState,
                        Sequence.ByBatch(both.Block(0, half * Hidden, Batch * Steps, Hidden), Batch), options);
      layer.Compute(half == 1);
      for (int i = 0; i < Batch * Steps; ++i)
        for (int j = 0; j < Hidden; ++j) expected[i, half * Hidden + j] = layer.Y[i % Steps * Batch + i / Steps, j];
    }
    OnDevice.Holds(expected, both, "both directions");
  }

  public static void TheStateInPlace() {
    var layer = new Layer(Cell.Lstm);
    RecurrentOptions options = layer.Options();
    options.Hn = options.H0;
    options.Cn = options.C0;
    layer.Compute(false);
    context.Recurrent(layer.Inputs, layer.WeightsX, layer.WeightsState, Sequence.ByStep(PoisonedSteps(Hidden), Batch), options);
    OnDevice.Holds(layer.H, options.H0, "h");
    OnDevice.Holds(layer.C, options.C0, "c");
  }

  public static async Task Gradients() {
    foreach (Cell cell in new[] { Cell.Lstm, Cell.Gru }) {
      var layer = new Layer(cell);
      bool lstm = cell == Cell.Lstm;
      int rows = layer.BiasIh.GetLength(1);
      Sequence y = Sequence.ByStep(PoisonedSteps(Hidden), Batch);
      RecurrentOptions options = layer.Options();
      options.Reserve = context.AllocateReserve(y);
      Expect.Equal(5L * Hidden, options.Reserve.Cols, "columns of the reserve");
      context.Recurrent(layer.Inputs, layer.WeightsX, layer.WeightsState, y, options);
      Matrix dx = PoisonedSteps(In);
      var gradients = new RecurrentGradients {
        Dy = Sequence.ByStep(OnDevice.Place(layer.Dy), Batch), Dhn = OnDevice.Place(layer.Dhn), Dx = Sequence.ByStep(dx, Batch),
        DwIh = OnDevice.Poisoned(rows, In), DwHh = OnDevice.Poisoned(rows, Hidden), DbiasIh = OnDevice.Poisoned(1, rows),
        DbiasHh = OnDevice.Poisoned(1, rows), Dh0 = OnDevice.Poisoned(Batch, Hidden)
      };
      if (lstm) {
        gradients.Dcn = OnDevice.Place(layer.Dcn);
        gradients.Dc0 = OnDevice.Poisoned(Batch, Hidden);
      }
      await context.RecurrentBackwardAsync(layer.Inputs, layer.WeightsX, layer.WeightsState, y, gradients, options);
      layer.Differences(layer.X, dx, cell + ": dX");
      layer.Differences(layer.Wih, gradients.DwIh, cell + ": dW_ih");
      layer.Differences(layer.Whh, gradients.DwHh, cell + ": dW_hh");
      layer.Differences(layer.BiasIh, gradients.DbiasIh, cell + ": dbias_ih");
      layer.Differences(layer.BiasHh, gradients.DbiasHh, cell + ": dbias_hh");
      layer.Differences(layer.H0, gradients.Dh0, cell + ": dh0");
      if (lstm) layer.Differences(layer.C0, gradients.Dc0, "dc0");
      var once = new double[rows, Hidden];
      context.Copy(gradients.DwHh, once);
      gradients.Accumulate = true;
      context.RecurrentBackward(layer.Inputs, layer.WeightsX, layer.WeightsState, y, gradients, options);
      OnDevice.Holds(OnDevice.Sum(once, once), gradients.DwHh, cell + ": dW_hh added");
    }
  }

  public static async Task ArraysArePinned() {
    var layer = new Layer(Cell.Gru);
    var y = new double[Steps * Batch, Hidden];
    var options = new RecurrentOptions { Cell = Cell.Gru, BiasIh = layer.BiasIh, BiasHh = layer.BiasHh, H0 = layer.H0 };
    Sequence from = Sequence.ByStep(layer.X, Batch), to = Sequence.ByStep(y, Batch);
    Task job = context.RecurrentAsync(from, layer.Wih, layer.Whh, to, options);
    Memory.Collect();
    await job;
    layer.Compute(false);
    OnDevice.Same(layer.Y, y, "of arrays");
  }

  public static void WrongCallsNameTheArgument() {
    var layer = new Layer(Cell.Lstm);
    Sequence from = layer.Inputs, to = Sequence.ByStep(PoisonedSteps(Hidden), Batch);
    Matrix wIh = layer.WeightsX, wHh = layer.WeightsState;
    Action<string, Action<RecurrentOptions>> refused = (part, change) => {
      RecurrentOptions options = layer.Options();
      change(options);
      OnDevice.Refused(part, () => context.Recurrent(from, wIh, wHh, to, options));
    };
    OnDevice.Refused("y is 3 steps of 2 sequences", () => context.Recurrent(Sequence.ByStep(OnDevice.Place(new double[1, In])), wIh, wHh, to));
    OnDevice.Refused("wHh is 8 x 3", () => { context.RecurrentAsync(from, wIh, wIh, to); });
    OnDevice.Refused("wIh is missing", () => context.Recurrent(from, default(Matrix), wHh, to));
    refused("wIh is 8 x 3", o => o.Cell = Cell.Gru);
    refused("options.BiasHh is 2 x 2", o => o.BiasHh = OnDevice.Poisoned(Batch, Hidden));
    refused("options.Hn is 1 x 2", o => o.Hn = OnDevice.Poisoned(1, Hidden));
    refused("options.Reserve is 1 x 1", o => o.Reserve = OnDevice.Poisoned(1, 1));
    refused("options.Hn (", o => o.Hn = o.C0);
    OnDevice.Refused("options.Reserve is missing", () => context.RecurrentBackward(from, wIh, wHh, to, new RecurrentGradients(), layer.Options()));
    OnDevice.Refused("batch is 4, which does not divide", () => Sequence.ByBatch(OnDevice.Place(layer.X), 4));
    RecurrentOptions kept = layer.Options();
    kept.Reserve = context.AllocateReserve(to);
    OnDevice.Refused("gradients.DwIh is 2 x 2", () => context.RecurrentBackward(from, wIh, wHh, to, new RecurrentGradients { DwIh = OnDevice.Poisoned(2, 2) }, kept));
    OnDevice.Refused("gradients.Dy is 3 steps", () => context.RecurrentBackward(from, wIh, wHh, to, new RecurrentGradients { Dy = from }, kept));
    OnDevice.Refused("gradients.Dh0 (", () => context.RecurrentBackward(from, wIh, wHh, to, new RecurrentGradients { Dh0 = kept.Reserve.Block(0, 0, Batch, Hidden) }, kept));
    var gru = new Layer(Cell.Gru);
    RecurrentOptions wrong = gru.Options();
    wrong.Cn = OnDevice.Poisoned(Batch, Hidden);
    OnDevice.Refused("options.Cn is given; a GRU has no state c", () => context.Recurrent(from, gru.WeightsX, gru.WeightsState, to, wrong));
    OnDevice.Fails(soon => { kept.Timeout = soon; return context.RecurrentAsync(from, wIh, wHh, to, kept); });
    OnDevice.Fails(soon => context.RecurrentBackwardAsync(from, wIh, wHh, to, new RecurrentGradients { Dx = Sequence.ByStep(PoisonedSteps(In), Batch) }, kept));
  }
}
