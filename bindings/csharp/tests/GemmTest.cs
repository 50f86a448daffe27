// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Numerics;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Every form of a GEMM, each compared with a plain loop.</summary>
static class GemmTest {
  static readonly GemmContext context = new GemmContext(Harness.Device);
  static readonly Random random = new Random(5);

  public static async Task OfTwoDimensionalArrays() {
    float[,] a = Numbers.Floats(random, 17, 33), b = Numbers.Floats(random, 33, 9), c = new float[17, 9];
    for (int i = 0; i < 17; ++i) c[i, 0] = float.NaN;  // beta is 0: C is never read
    await context.GemmAsync(a, b, c);
    Numbers.Same(Numbers.Multiply(a, b), c, "c");
    Numbers.Same(Numbers.Multiply(a, b), await context.MultiplyAsync(a, b), "result");
    Numbers.Same(Numbers.Multiply(a, b), context.Multiply(a, b), "blocking result");
  }

  public static async Task WithAlphaAndBeta() {
    float[,] a = Numbers.Floats(random, 5, 6), b = Numbers.Floats(random, 6, 7), c = Numbers.Floats(random, 5, 7);
    float[,] expected = Numbers.Multiply(a, b);
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 7; ++j) expected[i, j] = 2 * expected[i, j] - 3 * c[i, j];
    await context.GemmAsync(a, b, c, new GemmOptions { Alpha = 2, Beta = -3 });
    Numbers.Same(expected, c, "c");
  }

  static float[,] WithEpilogue(float[,] product, Func<int, int, float> bias, bool relu) {
    var made = (float[,])product.Clone();
    for (int i = 0; i < made.GetLength(0); ++i)
      for (int j = 0; j < made.GetLength(1); ++j) {
        made[i, j] += bias(i, j);
        if (relu && made[i, j] < 0) made[i, j] = 0;
      }
    return made;
  }

  public static async Task WithBiasAndActivation() {
    float[,] a = Numbers.Floats(random, 5, 6), b = Numbers.Floats(random, 6, 7), c = new float[5, 7], product = Numbers.Multiply(a, b);
    float[,] row = Numbers.Floats(random, 1, 7), column = Numbers.Floats(random, 5, 1);
    float[,] byColumn = WithEpilogue(product, (i, j) => row[0, j], true), byRow = WithEpilogue(product, (i, j) => column[i, 0], false);
    var ofColumns = new GemmOptions { Bias = row, Activation = Activation.Relu };
    var ofRows = new GemmOptions { Bias = column };
    await context.GemmAsync(a, b, c, ofColumns);
    Numbers.Same(byColumn, c, "a value for each column");
    context.Gemm(a, b, c, ofRows);
    Numbers.Same(byRow, c, "a value for each row");
    await context.GemmGroupAsync(new[] { new GemmItem(a, b, c, ofColumns) });
    Numbers.Same(byColumn, c, "in a group");
    await context.GemmBatchAsync(new Matrix[] { a }, new Matrix[] { b }, new Matrix[] { c }, ofRows);
    Numbers.Same(byRow, c, "in a batch");
    using (GemmPlan plan = context.Plan(a, b, c, ofColumns)) await plan.RunAsync(a, b, c, ofColumns);
    Numbers.Same(byColumn, c, "by a plan");
    using (var graph = context.CreateGraph()) {
      graph.Record(a, b, c, ofColumns);
      row[0, 0] += 1;
      await graph.RunAsync();
    }
    Numbers.Same(WithEpilogue(product, (i, j) => row[0, j], true), c, "by a graph");
    context.Gemm(a, b, c, new GemmOptions { Activation = Activation.Gelu });
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 7; ++j) {
        double x = product[i, j], wanted = x / 2 * (1 + Math.Tanh(Math.Sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
        Expect.True(Math.Abs(wanted - c[i, j]) < 1e-5, "gelu of " + x + " is " + c[i, j]);
      }
    Expect.Throws<ArgumentException>(() => context.Gemm(a, b, c, new GemmOptions { Bias = new float[1, 5] }), "Bias");
    Expect.Throws<ArgumentException>(() => context.Gemm(a, b, c, new GemmOptions { Bias = new double[1, 7] }), "F64", "F32");
  }

  public static async Task TransposedByViewAndByOperation() {
    float[,] a = Numbers.Floats(random, 6, 5), b = Numbers.Floats(random, 7, 6), c = new float[5, 7], d = new float[5, 7], e = new float[7, 5];
    var expected = new float[5, 7];
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 7; ++j)
        for (int l = 0; l < 6; ++l) expected[i, j] += a[l, i] * b[j, l];
    await context.GemmAsync(((Matrix)a).T, ((Matrix)b).T, c);
    Numbers.Same(expected, c, "by view");
    await context.GemmAsync(a, b, d, new GemmOptions { OpA = Transpose.T, OpB = Transpose.T });
    Numbers.Same(expected, d, "by operation");
    await context.GemmAsync(((Matrix)a).T, ((Matrix)b).T, ((Matrix)e).T);
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 7; ++j) Expect.Equal(expected[i, j], e[j, i], "transposed result");
  }

  public static async Task OfBlocksOfLargerArrays() {
    float[,] a = Numbers.Floats(random, 20, 20), c = Numbers.Floats(random, 20, 20), before = (float[,])c.Clone();
    Matrix whole = a;
    await context.GemmAsync(whole.Block(2, 3, 4, 5), whole.Block(7, 1, 5, 6), ((Matrix)c).Block(10, 11, 4, 6));
    for (int i = 0; i < 20; ++i)
      for (int j = 0; j < 20; ++j) {
        float expected = before[i, j];
        if (i >= 10 && i < 14 && j >= 11 && j < 17) {
          expected = 0;
          for (int l = 0; l < 5; ++l) expected += a[2 + i - 10, 3 + l] * a[7 + l, 1 + j - 11];
        }
        Expect.Equal(expected, c[i, j], "element " + i + ", " + j);
      }
  }

  public static async Task OfMemoryWithOffsetsAndLeadingDimensions() {
    float[] store = Numbers.FloatRow(random, 200);
    var result = new float[100];
    ReadOnlyMemory<float> constant = store.AsMemory(50);
    await context.GemmAsync(Matrix.Of(store, 3, 4, ld: 6, offset: 5), Matrix.Of(constant, 4, 2, ld: 7, layout: Layout.ColumnMajor),
                            Matrix.Of(result.AsMemory(10, 90), 3, 2, ld: 20));
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 2; ++j) {
        float expected = 0;
        for (int l = 0; l < 4; ++l) expected += store[5 + i * 6 + l] * store[50 + l + j * 7];
        Expect.Equal(expected, result[10 + i * 20 + j], "element " + i + ", " + j);
        result[10 + i * 20 + j] = 0;
      }
    foreach (float untouched in result) Expect.Equal(0, untouched, "the gap");
  }

  public static async Task OfEveryElementType() {
    var i8 = new sbyte[,] { { 1, -2 }, { 3, 4 } };
    var i32 = new int[2, 2];
    await context.GemmAsync(i8, i8, i32);
    Expect.Equal("-5 -10 15 10", i32[0, 0] + " " + i32[0, 1] + " " + i32[1, 0] + " " + i32[1, 1], "i8");

    double[,] f64 = await context.MultiplyAsync(new double[,] { { 1, 2 } }, new double[,] { { 0.5 }, { 0.25 } });
    Expect.Equal(1.0, f64[0, 0], "f64");

    Complex[,] c128 = await context.MultiplyAsync(new[,] { { new Complex(1, 2) } }, new[,] { { new Complex(3, -1) } });
    Expect.Equal(new Complex(5, 5), c128[0, 0], "c128");
    ComplexFloat[,] c64 = await context.MultiplyAsync(new[,] { { new ComplexFloat(1, 2) } }, new[,] { { new ComplexFloat(3, -1) } },
                                                      new GemmOptions { Alpha = Complex.ImaginaryOne });
    Expect.Equal(new ComplexFloat(-5, 5), c64[0, 0], "c64");

    var h = new[,] { { (Float16)1.5f, (Float16)(-2) } };
    var ht = new[,] { { (Float16)4 }, { (Float16)0.5f } };
    Expect.Equal(5f, (float)(await context.MultiplyAsync(h, ht))[0, 0], "f16");
    var wide = new float[1, 1];
    await context.GemmAsync(h, ht, wide);
    Expect.Equal(5f, wide[0, 0], "f16 to f32");
    var bf = new[,] { { (BFloat16)3 } };
    Expect.Equal(9f, (float)(await context.MultiplyAsync(bf, bf))[0, 0], "bf16");

    foreach (DType f8 in new[] { DType.F8E4m3, DType.F8E5m2 }) {  // 1, -2 and 3
      byte[] codes = f8 == DType.F8E4m3 ? new byte[] { 0x38, 0xc0, 0x44 } : new byte[] { 0x3c, 0xc0, 0x42 };
      Matrix row = Matrix.Of(codes, 1, 3, dtype: f8);
      await context.GemmAsync(row, row.T, wide, new GemmOptions { Compute = Compute.F8 });
      Expect.Equal(14f, wide[0, 0], f8.ToString());
    }

    var bits = new ushort[] { new Float16(0).Bits, ((Float16)2).Bits };  // a type of another name, by its bits
    Matrix named = Matrix.Of(bits, 1, 2, dtype: DType.F16);
    await context.GemmAsync(named, named.T, wide);
    Expect.Equal(4f, wide[0, 0], "named type");
  }

  public static async Task ConjugateTransposed() {
    var z = new[,] { { new Complex(1, 2), new Complex(0, 1) } };
    var c = new Complex[1, 1];
    await context.GemmAsync(z, z, c, new GemmOptions { OpB = Transpose.C });
    Expect.Equal(new Complex(6, 0), c[0, 0], "squared norm");
  }

  public static void OfSpansOnTheStack() {
    Span<float> a = stackalloc float[6], b = stackalloc float[6], c = stackalloc float[4];
    for (int i = 0; i < 6; ++i) {
      a[i] = i;
      b[i] = i - 2;
    }
    context.Gemm<float>(a, b, c, 2, 2, 3);
    Expect.Equal("4 7 4 16", c[0] + " " + c[1] + " " + c[2] + " " + c[3], "c");
    context.Gemm<float>(Layout.ColumnMajor, 2, 2, 3, a, 2, b, 3, c, 2, new GemmOptions { Beta = 1 });
    float first = 4 + 0 * -2 + 2 * -1 + 4 * 0;
    Expect.Equal(first, c[0], "column major, added");
  }

  public static async Task BlasForm() {
    float[] a = Numbers.FloatRow(random, 40), b = Numbers.FloatRow(random, 40), c = new float[40];
    await context.GemmAsync<float>(Layout.RowMajor, 3, 4, 5, a, 6, b, 7, c, 8, new GemmOptions { OpB = Transpose.T });
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j) {
        float expected = 0;
        for (int l = 0; l < 5; ++l) expected += a[i * 6 + l] * b[j * 7 + l];
        Expect.Equal(expected, c[i * 8 + j], "element " + i + ", " + j);
      }
  }

  public static async Task StridedBatch() {
    const int items = 6;
    float[] a = Numbers.FloatRow(random, items * 12), b = Numbers.FloatRow(random, 20), c = new float[items * 15];
    await context.GemmAsync(Matrix.Of(a, 3, 4), Matrix.Of(b, 4, 5), Matrix.Of(c, 3, 5),
                            new GemmOptions { Batch = items, StrideA = 12, StrideB = 0, StrideC = 15 });
    for (int t = 0; t < items; ++t)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 5; ++j) {
          float expected = 0;
          for (int l = 0; l < 4; ++l) expected += a[t * 12 + i * 4 + l] * b[l * 5 + j];
          Expect.Equal(expected, c[t * 15 + i * 5 + j], "item " + t);
        }
  }

  public static async Task BatchOfMatricesAnywhere() {
    var a = new List<Matrix>();
    var b = new List<Matrix>();
    var c = new List<Matrix>();
    var results = new List<float[,]>();
    var expected = new List<float[,]>();
    for (int t = 0; t < 9; ++t) {
      float[,] x = Numbers.Floats(random, 4, 6), y = Numbers.Floats(random, 6, 3), z = new float[4, 3];
      a.Add(x);
      b.Add(y);
      c.Add(z);
      results.Add(z);
      expected.Add(Numbers.Multiply(x, y));
    }
    await context.GemmBatchAsync(a, b, c);
    for (int t = 0; t < 9; ++t) Numbers.Same(expected[t], results[t], "item " + t);
  }

  public static async Task GroupOfDifferentGemms() {
    float[,] a = Numbers.Floats(random, 4, 6), b = Numbers.Floats(random, 6, 3), c = new float[4, 3];
    double[,] x = { { 2 } }, y = { { 4 } }, z = { { 100 } };
    await context.GemmGroupAsync(new[] { new GemmItem(a, b, c), new GemmItem(x, y, z, new GemmOptions { Alpha = 3, Beta = 1 }) });
    Numbers.Same(Numbers.Multiply(a, b), c, "first");
    Expect.Equal(124.0, z[0, 0], "second");
  }

  public static async Task EmptyOnes() {
    var c = new float[3, 0];
    await context.GemmAsync(new float[3, 4], new float[4, 0], c);
    var zero = new float[,] { { 7 } };
    await context.GemmAsync(new float[1, 0], new float[0, 1], zero);
    Expect.Equal(0f, zero[0, 0], "a sum of nothing");
  }

  public static void RoundingOfSmallFloats() {
    for (int bits = 0; bits < 65536; ++bits) {
      float half = new Float16((ushort)bits), brain = new BFloat16((ushort)bits);
      Expect.True(float.IsNaN(half) ? float.IsNaN((Float16)half) : ((Float16)half).Bits == bits, "f16 " + bits + " there and back");
      Expect.True(float.IsNaN(brain) ? float.IsNaN((BFloat16)brain) : ((BFloat16)brain).Bits == bits, "bf16 " + bits + " there and back");
      if (bits == 0 || (bits & 0x7fff) >= 0x7c00) continue;
      float next = new Float16((ushort)(bits + 1));  // for the last one: infinity, whose step is that of 65504
      if (float.IsInfinity(next)) next = bits < 0x8000 ? 65536 : -65536;
      float middle = (half + next) / 2;  // a tie goes to the even one
      Expect.Equal((bits & 1) == 0 ? bits : bits + 1, ((Float16)middle).Bits, "f16 tie above " + half);
    }
    Expect.True(float.IsPositiveInfinity((Float16)1e9f) && float.IsNegativeInfinity((Float16)float.NegativeInfinity), "f16 overflow");
    Expect.Equal(0x3f80, ((BFloat16)1.00390625f).Bits, "bf16 tie to even");
    Expect.Equal(0x3f82, ((BFloat16)1.01171875f).Bits, "bf16 tie to even");
  }
}
