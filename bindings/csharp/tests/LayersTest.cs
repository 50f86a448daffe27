// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Numerics;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>The operations of layers.h, in the device's memory.</summary>
static class LayersTest {
  static readonly GemmContext context = OnDevice.Context;
  static readonly Matrix none = default(Matrix);

  static Matrix Place(double[,] values) => OnDevice.Place(values);

  static void Holds(double[,] expected, Matrix got, string what) => OnDevice.Holds(expected, got, what);

  public static async Task FunctionsOfElements() {
    Matrix a = Place(new double[,] { { -1, 2 }, { -3, 4 } }), c = Place(new double[2, 2]);
    await context.ElementwiseAsync(Function.Relu, a, none, c);
    Holds(new double[,] { { 0, 2 }, { 0, 4 } }, c, "relu");
    await context.ElementwiseAsync(Function.Add, a, c, c);
    Holds(new double[,] { { -1, 4 }, { -3, 8 } }, c, "add in place");
    await context.ElementwiseAsync(Function.ReluGradient, c, a, c);
    Holds(new double[,] { { 0, 4 }, { 0, 8 } }, c, "gradient");
  }

  public static async Task ScaleAndAdd() {
    Matrix a = Place(new double[,] { { 1, -2 }, { 3, -4 } }), c = Place(new double[,] { { 10, 10 }, { 10, 10 } });
    await context.AxpbyAsync(a, c);
    Holds(new double[,] { { 11, 8 }, { 13, 6 } }, c, "sum");
    await context.AxpbyAsync(a, c, new AxpbyOptions { Alpha = -4, Beta = 0.5, Activation = Activation.Relu });
    Holds(new double[,] { { 1.5, 12 }, { 0, 19 } }, c, "scalars and activation");
    Matrix unread = OnDevice.Poisoned(2, 2);
    context.Axpby(a, unread, new AxpbyOptions { Alpha = 2, Beta = 0 });
    Holds(new double[,] { { 2, -4 }, { 6, -8 } }, unread, "C is not read");
    context.Axpby(OnDevice.Poisoned(2, 2), unread, new AxpbyOptions { Alpha = 0, Beta = 3 });
    Holds(new double[,] { { 6, -12 }, { 18, -24 } }, unread, "A is not accessed");
    var found = new Complex[,] { { new Complex(1, 2) } };
    Matrix complex = context.AllocateDevice(16).Matrix(1, 1, DType.C128), sum = context.AllocateDevice(16).Matrix(1, 1, DType.C128);
    context.Copy(found, complex);
    context.Copy(new Complex[,] { { new Complex(3, 4) } }, sum);
    context.Axpby(complex, sum, new AxpbyOptions { Alpha = Complex.ImaginaryOne, Beta = 2 });
    context.Copy(sum, found);
    Expect.Equal(new Complex(4, 9), found[0, 0], "i (1 + 2i) + 2 (3 + 4i)");
    OnDevice.Refused("c is 1 x 2", () => { context.AxpbyAsync(a, Place(new double[1, 2])); });
    Expect.Throws<NotSupportedException>(() => context.Axpby(complex, sum, new AxpbyOptions { Activation = Activation.Relu }), "options.Activation is ");
  }

  public static async Task Softmax() {
    Matrix x = Place(new double[,] { { 0, Math.Log(3) }, { 5, 5 } }), y = Place(new double[2, 2]);
    await context.SoftmaxAsync(x, y);
    Holds(new double[,] { { 0.25, 0.75 }, { 0.5, 0.5 } }, y, "softmax");
    await context.SoftmaxAsync(x, y, new SoftmaxOptions { Mask = Mask.Causal, MaskRows = 1 });
    Holds(new double[,] { { 1, 0 }, { 1, 0 } }, y, "a stack of two rows");
    await context.SoftmaxAsync(x, x, new SoftmaxOptions { Mask = Mask.Causal });
    Holds(new double[,] { { 1, 0 }, { 0.5, 0.5 } }, x, "causal, in place");
  }

  public static async Task Norms() {
    Matrix x = Place(new double[,] { { 1, 3 }, { -2, 2 } }), y = Place(new double[2, 2]);
    Matrix gamma = Place(new double[,] { { 2, 3 } }), beta = Place(new double[,] { { 10, 20 } });
    await context.LayerNormAsync(x, gamma, beta, y, new NormOptions { Epsilon = 0 });
    Holds(new double[,] { { 8, 23 }, { 8, 23 } }, y, "layer norm");
    await context.RmsNormAsync(x, none, x, new NormOptions { Epsilon = 0 });
    Holds(new double[,] { { 1 / Math.Sqrt(5), 3 / Math.Sqrt(5) }, { -1, 1 } }, x, "rms norm");
  }

  public static async Task RotaryEmbedding() {
    double c = Math.Cos(1), s = Math.Sin(1);
    Matrix x = Place(new double[,] { { 1, 2 }, { 1, 2 } }), y = Place(new double[2, 2]);
    await context.RotaryAsync(x, y);
    Holds(new double[,] { { 1, 2 }, { c - 2 * s, s + 2 * c } }, y, "by theta");
    await context.RotaryAsync(y, y, new RotaryOptions { Inverse = true });
    Holds(new double[,] { { 1, 2 }, { 1, 2 } }, y, "inverse");
    await context.RotaryAsync(x, y, new RotaryOptions {
      Cos = Place(new double[,] { { 9 }, { 2 }, { 3 } }), Sin = Place(new double[,] { { 9 }, { 5 }, { 7 } }), FirstPosition = 1, SequenceLength = 1
    });
    Holds(new double[,] { { -8, 9 }, { -8, 9 } }, y, "by tables");
  }

  public static async Task Fills() {
    Matrix y = OnDevice.Poisoned(2, 2);
    await context.FillAsync(y, new FillOptions { Value = 1.5 });
    Holds(new double[,] { { 1.5, 1.5 }, { 1.5, 1.5 } }, y, "fill");
    context.Fill(y);
    Holds(new double[,] { { 0, 0 }, { 0, 0 } }, y, "zeros");
    var bytes = new sbyte[4];
    context.Fill(Matrix.Of(bytes, 2, 2), new FillOptions { Value = -7 });
    Expect.Equal("-7 -7 -7 -7", string.Join(" ", bytes), "of bytes");
    Expect.Throws<ArgumentException>(() => { context.FillAsync(Matrix.Of(bytes, 2, 2), new FillOptions { Value = 200 }); }, "options.Value.Real is 200");
  }

  public static async Task Clamps() {
    Matrix x = Place(new double[,] { { -3, 1 }, { 2, 2.5 } }), y = OnDevice.Poisoned(2, 2);
    var limits = new ClampOptions { Low = -1, High = 2 };
    await context.ClampAsync(x, y, limits);
    Holds(new double[,] { { -1, 1 }, { 2, 2 } }, y, "clamp");
    Matrix dy = Place(new double[,] { { 5, 6 }, { 7, 8 } });
    context.ClampBackward(dy, x, dy, limits);
    Holds(new double[,] { { 0, 6 }, { 7, 0 } }, dy, "gradient");
    Expect.Throws<ArgumentException>(() => { context.ClampAsync(x, y, new ClampOptions { High = double.NaN }); }, "options.High is NaN");
  }

  public static async Task RowDots() {
    Matrix a = Place(new double[,] { { 1, 2, 3 }, { 4, 5, 6 } }), b = Place(new double[,] { { 1, 0, -1 }, { 2, 2, 2 } }), y = OnDevice.Poisoned(2, 1);
    await context.RowDotAsync(a, b, y);
    Holds(new double[,] { { -2 }, { 30 } }, y, "row dot");
    context.RowDot(a, a, y);
    Holds(new double[,] { { 14 }, { 77 } }, y, "squares");
    Expect.Throws<ArgumentException>(() => { context.RowDotAsync(a, b, b); }, "y is 2 x 3; with a of 2 x 3 it must be 2 x 1");
  }

  public static async Task Triangles() {
    Matrix a = Place(new double[,] { { 2, 9 }, { 3, 4 } }), b = Place(new double[,] { { 5 }, { 6 } }), y = OnDevice.Poisoned(2, 1);
    await context.TriangularAsync(a, b, new TriangularOptions { Kind = TriangularKind.Multiply });
    Holds(new double[,] { { 10 }, { 39 } }, b, "product");
    context.Triangular(a, b);
    Holds(new double[,] { { 5 }, { 6 } }, b, "solve");
    context.Symmetric(a, b, y);
    Holds(new double[,] { { 28 }, { 39 } }, y, "symmetric product");
    Matrix c = Place(new double[,] { { 1, 7 }, { 1, 1 } });
    context.RankK(b, c, new RankKOptions { B = y, Beta = 1 });
    Holds(new double[,] { { 281, 7 }, { 364, 469 } }, c, "update");
    Expect.Throws<ArgumentException>(() => { context.TriangularAsync(a, Place(new double[,] { { 1, 1 } })); }, "a is 2 x 2; with b of 1 x 2 it must be 1 x 1");
  }

  public static async Task ReductionsOfRows() {
    Matrix x = Place(new double[,] { { 1, 2, 6 }, { 4, -5, 4 } }), y = OnDevice.Poisoned(2, 1);
    await context.RowReduceAsync(x, y);
    Holds(new double[,] { { 9 }, { 3 } }, y, "sums");
    context.RowReduce(x, y, new RowReduceOptions { Reduction = Reduction.Mean });
    Holds(new double[,] { { 3 }, { 1 } }, y, "means");
    context.RowReduce(x, y, new RowReduceOptions { Reduction = Reduction.Min });
    Holds(new double[,] { { 1 }, { -5 } }, y, "minima");
    Expect.Throws<ArgumentException>(() => { context.RowReduceAsync(x, x); }, "y is 2 x 3");
  }

  public static async Task LossesAndTheirGradients() {
    Matrix x = Place(new double[,] { { 0, Math.Log(3) }, { 5, 5 } }), y = OnDevice.Poisoned(2, 1), dx = OnDevice.Poisoned(2, 2);
    Indices classes = OnTheDevice(new[,] { { 1, -100 } });  // the second row is ignored
    await context.CrossEntropyAsync(x, classes, y);
    Holds(new double[,] { { Math.Log(4.0 / 3) }, { 0 } }, y, "losses");
    context.CrossEntropyBackward(x, classes, dx, new CrossEntropyOptions { Scale = 2 });
    Holds(new double[,] { { 0.5, -0.5 }, { 0, 0 } }, dx, "gradient of the losses");
    await context.SoftmaxBackwardAsync(Place(new double[,] { { 0.25, 0.75 }, { 0.5, 0.5 } }), Place(new double[,] { { 4, 0 }, { 1, 1 } }), dx);
    Holds(new double[,] { { 0.75, -0.75 }, { 0, 0 } }, dx, "gradient of a softmax");
    Expect.Throws<ArgumentException>(() => { context.CrossEntropyBackwardAsync(x, classes, dx, new CrossEntropyOptions { Scale = double.NaN }); }, "it must be finite");
  }

  public static async Task GradientsOfNorms() {
    Matrix x = Place(new double[,] { { 1, 3 }, { -2, 2 } }), dy = Place(new double[,] { { 1, 2 }, { 3, 5 } }), dx = OnDevice.Poisoned(2, 2);
    Matrix dgamma = OnDevice.Poisoned(1, 2), dbeta = OnDevice.Poisoned(1, 2);
    await context.LayerNormBackwardAsync(dy, x, none, dx, dgamma, dbeta, new NormOptions { Epsilon = 0 });
    Holds(new double[,] { { 0, 0 }, { 0, 0 } }, dx, "dx of a layer norm");
    Holds(new double[,] { { -4, 7 } }, dgamma, "dgamma");
    Holds(new double[,] { { 4, 7 } }, dbeta, "dbeta");
    context.RmsNormBackward(dy, x, none, dx, options: new NormOptions { Epsilon = 0 });
    double factor = 1 / Math.Sqrt(5);
    Holds(new double[,] { { factor * (1 - 7.0 / 10), factor * (2 - 21.0 / 10) }, { 2, 2 } }, dx, "dx of an RMS norm");
    Matrix back = OnDevice.Poisoned(2, 2);
    context.Rotary(dy, back);
    context.RotaryBackward(back, back);
    Holds(new double[,] { { 1, 2 }, { 3, 5 } }, back, "turned back");
    Expect.Throws<ArgumentException>(() => context.RmsNormBackward(dy, x, none, dx, OnDevice.Poisoned(1, 1)), "dgamma is ");
  }

  public static async Task Optimizers() {
    Matrix parameters = Place(new double[,] { { 1, 2 }, { 3, 4 } }), gradient = Place(new double[,] { { 1, 1 }, { -1, 2 } });
    Matrix momentum = Place(new double[,] { { 1, 0 }, { 0, 0 } }), first = Place(new double[2, 2]), second = Place(new double[2, 2]);
    await context.SgdAsync(parameters, gradient, new SgdOptions { Rate = 0.5, Momentum = 0.5, MomentumBuffer = momentum });
    Holds(new double[,] { { 0.25, 1.5 }, { 3.5, 3 } }, parameters, "sgd");
    Holds(new double[,] { { 1.5, 1 }, { -1, 2 } }, momentum, "momentum");
    context.Adam(parameters, gradient, first, second, new AdamOptions { Rate = 0.25, Epsilon = 0 });
    Holds(new double[,] { { 0, 1.25 }, { 3.75, 2.75 } }, parameters, "adam");
    Expect.Throws<ArgumentException>(() => context.Adam(parameters, gradient, first, second, new AdamOptions { Step = 0 }), "options.Step is 0");
    Expect.Throws<ArgumentException>(() => context.Adam(parameters, gradient, first, OnDevice.Poisoned(1, 1)), "second is ");
  }

  public static async Task Pooling() {
    Matrix x = Place(new double[,] { { 1, 5, 2, 3 } }), y = OnDevice.Poisoned(1, 1), dx = OnDevice.Poisoned(1, 4);
    Images images = Images.Nchw(x, 1, 2, 2), pooled = Images.Nchw(y, 1, 1, 1), gradient = Images.Nchw(dx, 1, 2, 2);
    var windows = new Windows(2, 2);
    await context.Pool2dAsync(images, pooled, windows);
    Holds(new double[,] { { 5 } }, y, "maximum");
    context.Pool2dBackward(pooled, images, windows, gradient);
    Holds(new double[,] { { 0, 5, 0, 0 } }, dx, "its gradient");
    var average = new Pool2dOptions { Pooling = global::StreamGemm.Pooling.Average };
    context.Pool2d(images, pooled, windows, average);
    Holds(new double[,] { { 2.75 } }, y, "average");
    context.Pool2dBackward(pooled, default(Images), windows, gradient, average);
    Holds(new double[,] { { 0.6875, 0.6875, 0.6875, 0.6875 } }, dx, "its gradient");
    Expect.Throws<ArgumentException>(() => context.Pool2d(images, gradient, windows), "y is ");
  }

  public static async Task Conversions() {
    Matrix a = Place(new double[,] { { 1, 2, 3 }, { 4, 5, 6 } }), c = context.AllocateDevice(24).Matrix(3, 2, DType.F32);
    await context.ConvertAsync(a, Transpose.T, c);
    var found = new float[3, 2];
    context.Copy(c, found);
    Numbers.Same(new float[,] { { 1, 4 }, { 2, 5 }, { 3, 6 } }, found, "transposed");
  }

  public static async Task Dequantization() {
    Matrix x = context.AllocateDevice(2).Matrix(1, 2, DType.I8), zeros = context.AllocateDevice(2).Matrix(1, 2, DType.I8);
    Matrix scales = context.AllocateDevice(8).Matrix(1, 2, DType.F32), y = context.AllocateDevice(16).Matrix(1, 4, DType.F32);
    context.Copy(new sbyte[,] { { 0x21, -113 } }, x);  // 1 2, -1 -8
    context.Copy(new sbyte[,] { { 1, -1 } }, zeros);
    context.Copy(new float[,] { { 10, 100 } }, scales);
    var found = new float[1, 4];
    await context.DequantizeAsync(Quantization.I4, 2, x, scales, none, y);
    context.Copy(y, found);
    Numbers.Same(new float[,] { { 10, 20, -100, -800 } }, found, "without zero points");
    await context.DequantizeAsync(Quantization.I4, 2, x, scales, zeros, y);
    context.Copy(y, found);
    Numbers.Same(new float[,] { { 0, 10, 0, -700 } }, found, "with zero points");
    Expect.Throws<ArgumentException>(() => { context.DequantizeAsync(Quantization.I4, 2, x, y, none, y); }, "scales is 1 x 4");
    Expect.Throws<ArgumentException>(() => { context.DequantizeAsync(Quantization.I4, 2, x, scales, context.AllocateDevice(1).Matrix(1, 1, DType.I8), y); }, "zeroPoints is 1 x 1");
    Expect.Throws<ArgumentException>(() => { context.DequantizeAsync(Quantization.I4, 3, x, scales, none, y); }, "blockSize is 3");
  }

  static Heads HeadsOf(Matrix m) => Heads.InRows(m, 1);
  static Images ImagesOf(Matrix m) => Images.Nchw(m, 1, 1, 2);  // two of 1 x 2 pixels
  static Sequence StepsOf(Matrix m) => Sequence.ByStep(m);

  public static async Task AllAreRecorded() {
    Matrix x = Place(OnDevice.Numbers(2, 2)), w = Place(OnDevice.Numbers(2, 2)), filter = Place(new double[,] { { 3 } });
    Matrix wIh = Place(OnDevice.Numbers(6, 2)), wHh = Place(OnDevice.Numbers(6, 2)), between = OnDevice.Poisoned(2, 2);
    Indices indices = OnTheDevice(new[,] { { 1, 0 } });
    var gru = new RecurrentOptions { Cell = Cell.Gru, Reserve = context.AllocateReserve(StepsOf(x)) };
    Windows pixel = new Windows(1, 1), row = new Windows(1, 2);
    GemmGraph graph = context.CreateGraph();
    var names = new List<string>();
    var expected = new List<double[,]>();
    var later = new List<Matrix>();
    Action<string, Action<Matrix>, Action<Matrix>> add = (name, run, record) => {
      Matrix now = OnDevice.Poisoned(2, 2), then = OnDevice.Poisoned(2, 2);
      var values = new double[2, 2];
      run(now);
      record(then);
      context.Copy(now, values);
      names.Add(name);
      expected.Add(values);
      later.Add(then);
    };
    add("multiply", y => context.Elementwise(Function.Multiply, x, w, y), y => graph.RecordElementwise(Function.Multiply, x, w, y));
    add("clamp", y => context.Clamp(x, y), y => graph.RecordClamp(x, y));
    add("fill", y => context.Fill(y, new FillOptions { Value = 3 }), y => graph.RecordFill(y, new FillOptions { Value = 3 }));
    add("clamp backward", y => context.ClampBackward(w, x, y), y => graph.RecordClampBackward(w, x, y));
    add("row dots", y => {
      context.RowDot(x, w, y.Block(0, 0, 2, 1));
      context.RowDot(x, x, y.Block(0, 1, 2, 1));
    }, y => {
      graph.RecordRowDot(x, w, y.Block(0, 0, 2, 1));
      graph.RecordRowDot(x, x, y.Block(0, 1, 2, 1));
    });
    add("scale-and-add", y => context.Axpby(x, y, new AxpbyOptions { Alpha = 3, Beta = 0 }), y => graph.RecordAxpby(x, y, new AxpbyOptions { Alpha = 3, Beta = 0 }));
    add("symmetric product", y => context.Symmetric(x, w, y), y => graph.RecordSymmetric(x, w, y));
    add("update of a triangle", y => {
      context.Convert(x, Transpose.N, y);
      context.RankK(x, y);
    }, y => {
      graph.RecordConvert(x, Transpose.N, y);
      graph.RecordRankK(x, y);
    });
    add("triangular solve", y => {
      context.Convert(x, Transpose.N, y);
      context.Triangular(w, y);
    }, y => {
      graph.RecordConvert(x, Transpose.N, y);
      graph.RecordTriangular(w, y);
    });
    add("softmax", y => context.Softmax(x, y), y => graph.RecordSoftmax(x, y));
    add("layer norm", y => context.LayerNorm(x, none, none, y), y => graph.RecordLayerNorm(x, none, none, y));
    add("RMS norm", y => context.RmsNorm(x, none, y), y => graph.RecordRmsNorm(x, none, y));
    add("rotary", y => context.Rotary(x, y), y => graph.RecordRotary(x, y));
    add("transposition", y => context.Convert(x, Transpose.T, y), y => graph.RecordConvert(x, Transpose.T, y));
    add("rotary backward", y => context.RotaryBackward(x, y), y => graph.RecordRotaryBackward(x, y));
    add("softmax backward", y => context.SoftmaxBackward(x, w, y), y => graph.RecordSoftmaxBackward(x, w, y));
    add("layer norm backward", y => context.LayerNormBackward(x, w, none, y), y => graph.RecordLayerNormBackward(x, w, none, y));
    add("RMS norm backward", y => context.RmsNormBackward(x, w, none, y), y => graph.RecordRmsNormBackward(x, w, none, y));
    add("cross entropy backward", y => context.CrossEntropyBackward(x, indices, y), y => graph.RecordCrossEntropyBackward(x, indices, y));
    add("pooling", y => context.Pool2d(ImagesOf(x), ImagesOf(y), pixel), y => graph.RecordPool2d(ImagesOf(x), ImagesOf(y), pixel));
    add("pooling backward", y => context.Pool2dBackward(ImagesOf(x), ImagesOf(w), pixel, ImagesOf(y)),
        y => graph.RecordPool2dBackward(ImagesOf(x), ImagesOf(w), pixel, ImagesOf(y)));
    add("gather", y => context.Gather(x, indices, y), y => graph.RecordGather(x, indices, y));
    add("linear", y => context.Linear(x, w, y), y => graph.RecordLinear(x, w, y));
    add("linear backward", y => context.LinearBackward(x, w: w, dx: y), y => graph.RecordLinearBackward(x, w: w, dx: y));
    add("attention", y => context.Attention(HeadsOf(x), HeadsOf(w), HeadsOf(x), HeadsOf(y)),
        y => graph.RecordAttention(HeadsOf(x), HeadsOf(w), HeadsOf(x), HeadsOf(y)));
    add("attention backward", y => context.AttentionBackward(HeadsOf(x), HeadsOf(w), HeadsOf(x), HeadsOf(w), dk: HeadsOf(y)),
        y => graph.RecordAttentionBackward(HeadsOf(x), HeadsOf(w), HeadsOf(x), HeadsOf(w), dk: HeadsOf(y)));
    add("convolution", y => context.Conv2d(ImagesOf(x), filter, ImagesOf(y), pixel), y => graph.RecordConv2d(ImagesOf(x), filter, ImagesOf(y), pixel));
    add("convolution backward", y => context.Conv2dBackward(ImagesOf(x), pixel, w: filter, dx: ImagesOf(y)),
        y => graph.RecordConv2dBackward(ImagesOf(x), pixel, w: filter, dx: ImagesOf(y)));
    add("windows", y => context.Im2Col(ImagesOf(x), y, row), y => graph.RecordIm2Col(ImagesOf(x), y, row));
    add("sums of windows", y => context.Col2Im(x, ImagesOf(y), row), y => graph.RecordCol2Im(x, ImagesOf(y), row));
    add("GRU", y => context.Recurrent(StepsOf(x), wIh, wHh, StepsOf(y), gru), y => graph.RecordRecurrent(StepsOf(x), wIh, wHh, StepsOf(y), gru));
    add("GRU backward", y => {
      context.Recurrent(StepsOf(x), wIh, wHh, StepsOf(between), gru);
      context.RecurrentBackward(StepsOf(x), wIh, wHh, StepsOf(between), new RecurrentGradients { Dy = StepsOf(w), Dx = StepsOf(y) }, gru);
    }, y => {
      graph.RecordRecurrent(StepsOf(x), wIh, wHh, StepsOf(between), gru);
      graph.RecordRecurrentBackward(StepsOf(x), wIh, wHh, StepsOf(between), new RecurrentGradients { Dy = StepsOf(w), Dx = StepsOf(y) }, gru);
    });
    Memory.Collect();
    Expect.Equal(names.Count + 4, graph.Count, "submissions");
    await graph.RunAsync();
    for (int i = 0; i < names.Count; ++i) Holds(expected[i], later[i], names[i]);
    using (GemmGraph other = context.CreateGraph()) {
      OnDevice.Refused("x is 2 x 2", () => other.RecordSoftmax(x, OnDevice.Poisoned(1, 1)));
      Expect.Equal(0, other.Count, "after a refused call");
    }
    graph.Dispose();
  }

  static Indices OnTheDevice(int[,] words, IndexType type = IndexType.I32) {
    Matrix made = context.AllocateDevice(4 * words.Length).Matrix(1, words.Length, DType.I32);
    context.Copy(words, made);
    return Indices.Of(made, type);
  }

  public static async Task RowsOfATable() {
    Matrix table = Place(new double[,] { { 1, 2 }, { 3, 4 }, { 5, 6 } }), y = Place(new double[4, 2]);
    await context.GatherAsync(table, OnTheDevice(new[,] { { 2, 0, 3, -1 } }), y);
    Holds(new double[,] { { 5, 6 }, { 1, 2 }, { 0, 0 }, { 0, 0 } }, y, "by 32 bits");
    Indices wide = OnTheDevice(new[,] { { 0, 1, 1, 0, -3, -1, 2, 0 } }, IndexType.I64);
    context.Gather(table, wide, y, new GatherOptions { GatherFlags = GatherFlags.FromEnd | GatherFlags.Nan });
    var first = new double[1, 2];
    context.Copy(y.Block(0, 0, 1, 2), first);
    Expect.True(double.IsNaN(first[0, 0]) && double.IsNaN(first[0, 1]), "2^32 is out of range");
    Holds(new double[,] { { 3, 4 }, { 1, 2 }, { 5, 6 } }, y.Block(1, 0, 3, 2), "by 64 bits");
    OnDevice.Refused("3 indices are given; y.Rows is 4", () => { context.GatherAsync(table, new[] { 0, 1, 2 }, y); });
    OnDevice.Refused("memory is 3 x 2", () => Indices.Of(table));
    OnDevice.Refused("an index of 64 bits has two", () => Indices.Of(Matrix.Shape(1, 3, DType.I32), IndexType.I64));
    Matrix whole = context.AllocateDevice(8).Matrix(1, 2, DType.I32);
    Expect.Throws<NotSupportedException>(() => context.Gather(whole, OnTheDevice(new[,] { { 0 } }), whole, new GatherOptions { GatherFlags = GatherFlags.Nan }), "options.GatherFlags is 2");
    OnDevice.Fails(soon => context.GatherAsync(table, OnTheDevice(new[,] { { 0, 0, 0, 0 } }), y, new GatherOptions { Timeout = soon }));
    await context.GatherAsync(table, new long[] { 0, 1, 2, 0 }, y);
    Holds(new double[,] { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 1, 2 } }, y, "by an array");
  }

  public static async Task ArraysArePinned() {
    var values = new double[,] { { -1, 2 } };
    await context.ElementwiseAsync(Function.Relu, values, none, values);
    Expect.Equal("0 2", values[0, 0] + " " + values[0, 1], "in place");
  }

  public static void WrongCallsNameTheArgument() {
    Matrix x = Place(new double[,] { { 1, 2 } }), three = Place(new double[,] { { 1, 2, 3 } });
    Expect.Throws<ArgumentException>(() => { context.ElementwiseAsync(Function.Add, x, none, x); }, "b is missing; Add has two operands");
    Expect.Throws<ArgumentException>(() => { context.ElementwiseAsync(Function.Relu, x, x, x); }, "Relu has one operand");
    Expect.Throws<ArgumentException>(() => { context.SoftmaxAsync(three, x); }, "x is 1 x 3");
    Expect.Throws<ArgumentException>(() => { context.SoftmaxAsync(x, x, new SoftmaxOptions { MaskOffset = 1 }); }, "options.MaskOffset is 1");
    Expect.Throws<ArgumentException>(() => { context.RmsNormAsync(x, three, x); }, "gamma is ");
    Expect.Throws<ArgumentException>(() => { context.RmsNormAsync(x, none, x, new NormOptions { Epsilon = -1 }); }, "options.Epsilon is -1");
    Expect.Throws<ArgumentException>(() => { context.RotaryAsync(x, x, new RotaryOptions { HeadSize = 3 }); }, "options.HeadSize is 3");
    Expect.True(context.SoftmaxAsync(x, x, null, new CancellationToken(true)).IsCanceled, "canceled before the call");
  }
}
