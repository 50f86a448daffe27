// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Attention and its gradients, against loops over doubles.</summary>
static class AttentionTest {
  const int Batch = 2, Count = 4, Groups = 2, Tokens = 5, Width = 3;
  static readonly GemmContext context = OnDevice.Context;

  // A row for each token: batch by batch, head by head.
  static readonly double[,] q = OnDevice.Numbers(Batch * Count * Tokens, Width), k = OnDevice.Numbers(Batch * Groups * Tokens, Width),
                            v = OnDevice.Numbers(Batch * Groups * Tokens, Width), dO = OnDevice.Numbers(Batch * Count * Tokens, Width);

  static double Dot(double[,] a, int row, double[,] b, int other) {
    double sum = 0;
    for (int e = 0; e < Width; ++e) sum += a[row, e] * b[other, e];
    return sum;
  }

  // The first key of a query's head.
  static int Keys(int query) {
    int head = query / Tokens % Count, batch = query / Tokens / Count;
    return (batch * Groups + head / (Count / Groups)) * Tokens;
  }

  static double[] Weights(int query, bool causal, double scale) {
    var p = new double[Tokens];
    double sum = 0;
    for (int j = 0; j < (causal ? query % Tokens + 1 : Tokens); ++j) sum += p[j] = Math.Exp(scale * Dot(q, query, k, Keys(query) + j));
    for (int j = 0; j < Tokens; ++j) p[j] /= sum;
    return p;
  }

  static double[,] Expected(bool causal, double scale) => OnDevice.Made(Batch * Count * Tokens, Width, (query, e) => {
    double[] p = Weights(query, causal, scale);
    double sum = 0;
    for (int j = 0; j < Tokens; ++j) sum += p[j] * v[Keys(query) + j, e];
    return sum;
  });

  static void ExpectedGradients(bool causal, double scale, double[,] dq, double[,] dk, double[,] dv) {
    for (int query = 0; query < Batch * Count * Tokens; ++query) {
      double[] p = Weights(query, causal, scale);
      double sum = 0;
      for (int j = 0; j < Tokens; ++j) sum += p[j] * Dot(dO, query, v, Keys(query) + j);
      for (int j = 0; j < Tokens; ++j) {
        int key = Keys(query) + j;
        double ds = scale * p[j] * (Dot(dO, query, v, key) - sum);
        for (int e = 0; e < Width; ++e) {
          dv[key, e] += p[j] * dO[query, e];
          dq[query, e] += ds * k[key, e];
          dk[key, e] += ds * q[query, e];
        }
      }
    }
  }

  static Heads Place(double[,] values) => Heads.InRows(OnDevice.Place(values), values.GetLength(0) / (Batch * Tokens), Batch);

  // The same values with a row for each token, its heads side by side.
  static double[,] InColumns(double[,] values) {
    int heads = values.GetLength(0) / (Batch * Tokens);
    return OnDevice.Made(Batch * Tokens, heads * Width, (i, j) => values[(i / Tokens * heads + j / Width) * Tokens + i % Tokens, j % Width]);
  }

  public static async Task GroupsOfHeads() {
    Matrix o = OnDevice.Poisoned(Batch * Count * Tokens, Width);
    await context.AttentionAsync(Place(q), Place(k), Place(v), Heads.InRows(o, Count, Batch));
    OnDevice.Holds(Expected(false, 1 / Math.Sqrt(Width)), o, "without a mask");
    context.Attention(Place(q), Place(k), Place(v), Heads.InRows(o, Count, Batch), new AttentionOptions { Mask = Mask.Causal, Scale = 0.25 });
    OnDevice.Holds(Expected(true, 0.25), o, "causal");
  }

  public static async Task HeadsInColumns() {
    Matrix o = OnDevice.Poisoned(Batch * Tokens, Count * Width);
    await context.AttentionAsync(Heads.InColumns(OnDevice.Place(InColumns(q)), Count, Batch), Heads.InColumns(OnDevice.Place(InColumns(k)), Groups, Batch),
                                 Heads.InColumns(OnDevice.Place(InColumns(v)), Groups, Batch), Heads.InColumns(o, Count, Batch),
                                 new AttentionOptions { Mask = Mask.Causal });
    OnDevice.Holds(InColumns(Expected(true, 1 / Math.Sqrt(Width))), o, "heads in columns");
  }

  public static void CachedKeys() {
    const int last = Tokens - 2;
    Matrix o = OnDevice.Poisoned(Batch * Count, Width);
    context.Attention(Place(q).Slice(last, 1), Place(k).Slice(0, last + 1), Place(v).Slice(0, last + 1), Heads.InRows(o, Count, Batch),
                      new AttentionOptions { Mask = Mask.Causal, MaskOffset = last });
    double[,] all = Expected(true, 1 / Math.Sqrt(Width));
    OnDevice.Holds(OnDevice.Made(Batch * Count, Width, (i, e) => all[i * Tokens + last, e]), o, "the last query");
  }

  // Scores that any stride of 0 repeats.
  static Heads Scores(Matrix memory) => Heads.Strided(memory, Batch, Count, Tokens, Tokens, 0, 0, Tokens);

  public static void MasksThatLeaveWhatACausalOneDoes() {
    Matrix bias = OnDevice.Place(OnDevice.Made(Tokens, Tokens, (i, j) => j > i ? double.NegativeInfinity : 0));
    var shown = new sbyte[Tokens, Tokens];
    for (int i = 0; i < Tokens; ++i)
      for (int j = 0; j <= i; ++j) shown[i, j] = 1;
    Matrix visible = context.AllocateDevice(Tokens * Tokens).Matrix(Tokens, Tokens, DType.I8);
    context.Copy(shown, visible);
    Matrix lengths = context.AllocateDevice(4 * Batch).Matrix(1, Batch, DType.I32);
    context.Copy(new int[,] { { Tokens, Tokens } }, lengths);
    foreach (var options in new[] { new AttentionOptions { Bias = Scores(bias) }, new AttentionOptions { Visible = Scores(visible) },
                                    new AttentionOptions { Mask = Mask.CausalFromEnd, KeyLengths = lengths, QueryLengths = lengths, Window = Tokens } }) {
      Matrix o = OnDevice.Poisoned(Batch * Count * Tokens, Width);
      context.Attention(Place(q), Place(k), Place(v), Heads.InRows(o, Count, Batch), options);
      OnDevice.Holds(Expected(true, 1 / Math.Sqrt(Width)), o, "masks");
    }
    OnDevice.Refused("options.Visible is", () => context.Attention(Place(q), Place(k), Place(v), Place(q), new AttentionOptions { Visible = Scores(bias) }));
  }

  public static async Task Gradients() {
    double[,] dq = new double[Batch * Count * Tokens, Width], dk = new double[Batch * Groups * Tokens, Width], dv = new double[Batch * Groups * Tokens, Width];
    ExpectedGradients(true, 0.5, dq, dk, dv);
    Matrix toQ = OnDevice.Poisoned(dq.GetLength(0), Width), toK = OnDevice.Poisoned(dk.GetLength(0), Width), toV = OnDevice.Poisoned(dv.GetLength(0), Width);
    var options = new AttentionOptions { Mask = Mask.Causal, Scale = 0.5 };
    await context.AttentionBackwardAsync(Place(q), Place(k), Place(v), Place(dO), Heads.InRows(toQ, Count, Batch), Heads.InRows(toK, Groups, Batch),
                                         Heads.InRows(toV, Groups, Batch), options);
    OnDevice.Holds(dq, toQ, "dQ");
    OnDevice.Holds(dk, toK, "dK");
    OnDevice.Holds(dv, toV, "dV");
    Matrix alone = OnDevice.Poisoned(dk.GetLength(0), Width);
    context.AttentionBackward(Place(q), Place(k), Place(v), Place(dO), dk: Heads.InRows(alone, Groups, Batch), options: options);
    OnDevice.Holds(dk, alone, "dK alone");
  }

  public static async Task ArraysArePinned() {
    var one = new double[1, 1, 2, 3] { { { { 1, 2, 3 }, { 9, 9, 9 } } } };
    Heads tokens = Heads.Of(one), first = tokens.Slice(0, 1);
    Task job = context.AttentionAsync(first, first, first, tokens.Slice(1, 1));
    Memory.Collect();
    await job;
    Expect.Equal("1 2 3", one[0, 0, 1, 0] + " " + one[0, 0, 1, 1] + " " + one[0, 0, 1, 2], "the value of the only key");
  }

  public static void WrongCallsNameTheArgument() {
    Heads queries = Place(q), keys = Place(k), o = Place(q);
    OnDevice.Refused("o is 2 x 2 heads x 5 tokens x 3", () => context.Attention(queries, keys, keys, keys));
    OnDevice.Refused("v is 2 x 2 heads x 4 tokens x 3", () => { context.AttentionAsync(queries, keys, keys.Slice(0, 4), o); });
    OnDevice.Refused("k has 4 heads", () => context.Attention(keys, queries, queries, keys));
    OnDevice.Refused("options.Scale is inf", () => context.Attention(queries, keys, keys, o, new AttentionOptions { Scale = double.PositiveInfinity }));
    OnDevice.Refused("dk is 2 x 4 heads", () => context.AttentionBackward(queries, keys, keys, o, dk: queries));
    OnDevice.Refused("q (", () => context.Attention(queries, keys, keys, queries));
    OnDevice.Refused("heads is 3, which does not divide 4", () => Heads.InColumns(OnDevice.Poisoned(2, 4), 3));
    OnDevice.Refused("the tokens span 6 elements", () => Heads.Strided(OnDevice.Poisoned(1, 5), 1, 1, 2, 3, 0, 0, 3));
    OnDevice.Refused("3 tokens from 3 of 5", () => keys.Slice(3, 3));
    OnDevice.Fails(soon => context.AttentionAsync(queries, keys, keys, o, new AttentionOptions { Timeout = soon }));
    OnDevice.Fails(soon => context.AttentionBackwardAsync(queries, keys, keys, o, dq: Place(q), options: new AttentionOptions { Timeout = soon }));
  }
}
