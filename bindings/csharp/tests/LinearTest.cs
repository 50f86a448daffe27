// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Linear layers and their gradients, against loops over doubles.</summary>
static class LinearTest {
  const int Rows = 5, In = 4, Out = 3;
  static readonly GemmContext context = OnDevice.Context;
  static readonly double[,] x = OnDevice.Numbers(Rows, In), w = OnDevice.Numbers(In, Out), bias = OnDevice.Numbers(1, Out),
                            dy = OnDevice.Numbers(Rows, Out);
  static readonly double[,] dx = OnDevice.Product(dy, OnDevice.Transposed(w)), dw = OnDevice.Product(OnDevice.Transposed(x), dy);
  static readonly double[,] dbias = OnDevice.Product(OnDevice.Made(1, Rows, (i, j) => 1), dy);

  static double[,] Expected() {
    double[,] y = OnDevice.Product(x, w);
    return OnDevice.Made(Rows, Out, (i, j) => Math.Max(0, y[i, j] + bias[0, j]));
  }

  public static async Task Forward() {
    var options = new LinearOptions { Bias = OnDevice.Place(bias), Activation = Activation.Relu };
    Matrix y = OnDevice.Poisoned(Rows, Out), inputs = OnDevice.Place(x);
    await context.LinearAsync(inputs, OnDevice.Place(w), y, options);
    OnDevice.Holds(Expected(), y, "with a bias");
    Matrix other = OnDevice.Poisoned(Rows, Out);
    options.OpW = Transpose.T;
    context.Linear(inputs, OnDevice.Place(OnDevice.Transposed(w)), other, options);
    OnDevice.Holds(Expected(), other, "outputs by inputs");
    context.Linear(inputs, OnDevice.Place(w), y);
    OnDevice.Holds(OnDevice.Product(x, w), y, "the product alone");
  }

  public static async Task ArraysArePinned() {
    var y = new double[Rows, Out];
    Task job = context.LinearAsync(x, w, y, new LinearOptions { Bias = bias, Activation = Activation.Relu });
    Memory.Collect();
    await job;
    OnDevice.Same(Expected(), y, "of arrays");
    var sum = (double[,])w.Clone();
    context.LinearBackward(dy, x, dw: sum, options: new LinearOptions { Accumulate = true });
    OnDevice.Same(OnDevice.Sum(w, dw), sum, "dW of arrays");
  }

  public static async Task Gradients() {
    Matrix outputs = OnDevice.Place(dy), inputs = OnDevice.Place(x), weights = OnDevice.Place(w);
    Matrix toX = OnDevice.Poisoned(Rows, In), toW = OnDevice.Poisoned(In, Out), toBias = OnDevice.Poisoned(1, Out);
    await context.LinearBackwardAsync(outputs, inputs, weights, toX, toW, toBias);
    OnDevice.Holds(dx, toX, "dX");
    OnDevice.Holds(dw, toW, "dW");
    OnDevice.Holds(dbias, toBias, "dbias");
    context.LinearBackward(outputs, inputs, weights, toX, toW, toBias, new LinearOptions { Accumulate = true });
    OnDevice.Holds(dx, toX, "dX again");
    OnDevice.Holds(OnDevice.Sum(dw, dw), toW, "dW added");
    OnDevice.Holds(OnDevice.Sum(dbias, dbias), toBias, "dbias added");
  }

  public static void EachGradientAlone() {
    Matrix outputs = OnDevice.Place(dy), toX = OnDevice.Poisoned(Rows, In), toW = OnDevice.Poisoned(Out, In), toBias = OnDevice.Poisoned(1, Out);
    var stored = new LinearOptions { OpW = Transpose.T };
    context.LinearBackward(outputs, w: OnDevice.Place(OnDevice.Transposed(w)), dx: toX, options: stored);
    OnDevice.Holds(dx, toX, "dX alone");
    context.LinearBackward(outputs, x: OnDevice.Place(x), dw: toW, options: stored);
    OnDevice.Holds(OnDevice.Transposed(dw), toW, "dW alone");
    context.LinearBackward(outputs, dbias: toBias);
    OnDevice.Holds(dbias, toBias, "dbias alone");
  }

  public static void GradientsOfF32ForF16() {
    double[,] from = OnDevice.Integers(Rows, In), gradient = OnDevice.Integers(Rows, Out);
    Matrix toW = OnDevice.Cast(OnDevice.Poisoned(In, Out), DType.F32), toBias = OnDevice.Cast(OnDevice.Poisoned(1, Out), DType.F16);
    context.LinearBackward(OnDevice.Cast(OnDevice.Place(gradient), DType.F16), OnDevice.Cast(OnDevice.Place(from), DType.F16), dw: toW, dbias: toBias);
    OnDevice.Holds(OnDevice.Product(OnDevice.Transposed(from), gradient), OnDevice.Cast(toW, DType.F64), "dW");
    OnDevice.Holds(OnDevice.Product(OnDevice.Made(1, Rows, (i, j) => 1), gradient), OnDevice.Cast(toBias, DType.F64), "dbias");
  }

  public static void WrongCallsNameTheArgument() {
    Matrix inputs = OnDevice.Place(x), weights = OnDevice.Place(w), y = OnDevice.Poisoned(Rows, Out);
    OnDevice.Refused("w is 4 x 3; with this x, y and op of w", () => { context.LinearAsync(inputs, weights, y, new LinearOptions { OpW = Transpose.T }); });
    OnDevice.Refused("y is 4 x 3", () => context.Linear(inputs, weights, weights));
    OnDevice.Refused("options.Bias is 4 x 3", () => context.Linear(inputs, weights, y, new LinearOptions { Bias = weights }));
    OnDevice.Refused("w is missing; dx needs it", () => context.LinearBackward(y, dx: inputs));
    OnDevice.Refused("x is missing; dw needs it", () => { context.LinearBackwardAsync(y, dw: weights); });
    OnDevice.Refused("dbias is 4 x 3", () => context.LinearBackward(y, dbias: weights));
    OnDevice.Refused("dw is 5 x 3", () => context.LinearBackward(y, inputs, dw: OnDevice.Poisoned(Rows, Out)));
    OnDevice.Refused("y is read-only memory", () => context.Linear(inputs, weights, Matrix.Of(new ReadOnlyMemory<double>(new double[15]), 5, 3)));
    OnDevice.Fails(soon => context.LinearAsync(inputs, weights, y, new LinearOptions { Deadline = soon }));
    OnDevice.Fails(soon => context.LinearBackwardAsync(y, w: weights, dx: OnDevice.Poisoned(Rows, In), options: new LinearOptions { Deadline = soon }));
    Expect.Throws<DeadlineExceededException>(() => context.Linear(inputs, weights, y, new LinearOptions { Deadline = TimeSpan.FromTicks(1) }));
    Expect.True(context.LinearAsync(inputs, weights, y, null, new CancellationToken(true)).IsCanceled, "canceled before the call");
  }
}
