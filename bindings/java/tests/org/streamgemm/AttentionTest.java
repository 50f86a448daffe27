// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import org.junit.Test;

/** Attention and its gradients, against loops over doubles. */
public class AttentionTest extends DeviceTest {
  private static final int BATCH = 2;
  private static final int HEADS = 4;
  private static final int GROUPS = 2;
  private static final int TOKENS = 5;
  private static final int WIDTH = 3;

  /** Heads of tokens, in the order (batch, head, token, element). */
  private final double[] q = numbers(BATCH * HEADS * TOKENS * WIDTH);
  private final double[] k = numbers(BATCH * GROUPS * TOKENS * WIDTH);
  private final double[] v = numbers(BATCH * GROUPS * TOKENS * WIDTH);
  private final double[] dO = numbers(BATCH * HEADS * TOKENS * WIDTH);

  private static int at(int batch, int heads, int head, int token) {
    return ((batch * heads + head) * TOKENS + token) * WIDTH;
  }

  private static double dot(double[] a, int atA, double[] b, int atB) {
    double sum = 0;
    for (int e = 0; e < WIDTH; ++e) sum += a[atA + e] * b[atB + e];
    return sum;
  }

  /** The weights of the keys of a query. */
  private double[] weights(int batch, int head, int query, boolean causal, double scale) {
    int visible = causal ? query + 1 : TOKENS;
    double[] p = new double[TOKENS];
    double sum = 0;
    for (int j = 0; j < visible; ++j) {
      p[j] = Math.exp(scale * dot(q, at(batch, HEADS, head, query), k, at(batch, GROUPS, head / (HEADS / GROUPS), j)));
      sum += p[j];
    }
    for (int j = 0; j < visible; ++j) p[j] /= sum;
    return p;
  }

  private double[] expected(boolean causal, double scale) {
    double[] o = new double[q.length];
    for (int b = 0; b < BATCH; ++b)
      for (int h = 0; h < HEADS; ++h)
        for (int i = 0; i < TOKENS; ++i) {
          double[] p = weights(b, h, i, causal, scale);
          for (int j = 0; j < TOKENS; ++j)
            for (int e = 0; e < WIDTH; ++e)
              o[at(b, HEADS, h, i) + e] += p[j] * v[at(b, GROUPS, h / (HEADS / GROUPS), j) + e];
        }
    return o;
  }

  /** dQ, dK and dV. */
  private double[][] expectedGradients(boolean causal, double scale) {
    double[] dq = new double[q.length];
    double[] dk = new double[k.length];
    double[] dv = new double[v.length];
    for (int b = 0; b < BATCH; ++b)
      for (int h = 0; h < HEADS; ++h)
        for (int i = 0; i < TOKENS; ++i) {
          double[] p = weights(b, h, i, causal, scale);
          int query = at(b, HEADS, h, i);
          double[] dp = new double[TOKENS];
          double sum = 0;
          for (int j = 0; j < TOKENS; ++j) {
            dp[j] = dot(dO, query, v, at(b, GROUPS, h / (HEADS / GROUPS), j));
            sum += p[j] * dp[j];
          }
          for (int j = 0; j < TOKENS; ++j) {
            int key = at(b, GROUPS, h / (HEADS / GROUPS), j);
            double ds = scale * p[j] * (dp[j] - sum);
            for (int e = 0; e < WIDTH; ++e) {
              dv[key + e] += p[j] * dO[query + e];
              dq[query + e] += ds * k[key + e];
              dk[key + e] += ds * q[query + e];
            }
          }
        }
    return new double[][] {dq, dk, dv};
  }

  private Heads placed(double[] values, int heads) {
    return Heads.inRows(place(BATCH * heads * TOKENS, WIDTH, values), BATCH, heads);
  }

  private Heads poisonedHeads(int heads) {
    return Heads.inRows(poisoned(BATCH * heads * TOKENS, WIDTH), BATCH, heads);
  }

  /** Values in the order (batch, token, head, element). */
  private static double[] inColumns(double[] values, int heads) {
    double[] made = new double[values.length];
    for (int b = 0; b < BATCH; ++b)
      for (int h = 0; h < heads; ++h)
        for (int i = 0; i < TOKENS; ++i)
          System.arraycopy(values, at(b, heads, h, i), made, ((b * TOKENS + i) * heads + h) * WIDTH, WIDTH);
    return made;
  }

  @Test
  public void groupsOfHeads() {
    Heads o = poisonedHeads(HEADS);
    Attention how = new Attention();
    assertSame(o, context.layers().attentionAsync(placed(q, HEADS), placed(k, GROUPS), placed(v, GROUPS), o, how, DEFAULTS).join());
    holds(expected(false, 1 / Math.sqrt(WIDTH)), o.memory());
    how.causal(0).scale(0.25);
    assertSame(o, context.layers().attention(placed(q, HEADS), placed(k, GROUPS), placed(v, GROUPS), o, how));
    holds(expected(true, 0.25), o.memory());
  }

  @Test
  public void headsInColumns() {
    Heads queries = Heads.inColumns(place(BATCH * TOKENS, HEADS * WIDTH, inColumns(q, HEADS)), BATCH, HEADS);
    Heads keys = Heads.inColumns(place(BATCH * TOKENS, GROUPS * WIDTH, inColumns(k, GROUPS)), BATCH, GROUPS);
    Heads values = Heads.inColumns(place(BATCH * TOKENS, GROUPS * WIDTH, inColumns(v, GROUPS)), BATCH, GROUPS);
    Matrix to = poisoned(BATCH * TOKENS, HEADS * WIDTH);
    context.layers().attention(queries, keys, values, Heads.inColumns(to, BATCH, HEADS), new Attention().causal(0));
    holds(inColumns(expected(true, 1 / Math.sqrt(WIDTH)), HEADS), to);
  }

  @Test
  public void cachedKeys() {
    int last = TOKENS - 2;
    Heads one = placed(q, HEADS).tokens(last, 1);
    Matrix to = poisoned(BATCH * HEADS, WIDTH);
    Attention how = new Attention().causal(last);
    context.layers().attention(
        one, placed(k, GROUPS).tokens(0, last + 1), placed(v, GROUPS).tokens(0, last + 1), Heads.inRows(to, BATCH, HEADS), how);
    double[] all = expected(true, 1 / Math.sqrt(WIDTH));
    double[] row = new double[BATCH * HEADS * WIDTH];
    for (int b = 0; b < BATCH; ++b)
      for (int h = 0; h < HEADS; ++h)
        System.arraycopy(all, at(b, HEADS, h, last), row, (b * HEADS + h) * WIDTH, WIDTH);
    holds(row, to);
  }

  /** Scores that any stride of 0 repeats. */
  private static Heads scores(Matrix memory) {
    return Heads.strided(memory, BATCH, HEADS, TOKENS, TOKENS, 0, 0, TOKENS);
  }

  @Test
  public void masksThatLeaveWhatACausalOneDoes() {
    double[] bias = new double[TOKENS * TOKENS];
    java.nio.ByteBuffer shown = java.nio.ByteBuffer.allocateDirect(TOKENS * TOKENS);
    java.nio.ByteBuffer tokens = java.nio.ByteBuffer.allocateDirect(4 * BATCH).order(java.nio.ByteOrder.nativeOrder());
    for (int b = 0; b < BATCH; ++b) tokens.putInt(4 * b, TOKENS);
    for (int i = 0; i < TOKENS; ++i)
      for (int j = 0; j < TOKENS; ++j) {
        bias[i * TOKENS + j] = j > i ? Double.NEGATIVE_INFINITY : 0;
        shown.put(i * TOKENS + j, (byte) (j > i ? 0 : 1));
      }
    Matrix visible = context.deviceMatrix(DType.I8, TOKENS, TOKENS);
    context.copyAsync(visible, Matrix.of(shown, DType.I8, TOKENS, TOKENS)).join();
    Matrix lengths = context.deviceMatrix(DType.I32, 1, BATCH);
    context.copyAsync(lengths, Matrix.of(tokens, DType.I32, 1, BATCH)).join();
    Attention[] all = {
      new Attention().bias(scores(place(TOKENS, TOKENS, bias))), new Attention().visible(scores(visible)),
      new Attention().causalFromEnd(0).keyLengths(lengths).queryLengths(lengths).window(TOKENS)
    };
    for (Attention how : all) {
      Heads o = poisonedHeads(HEADS);
      context.layers().attention(placed(q, HEADS), placed(k, GROUPS), placed(v, GROUPS), o, how);
      holds(expected(true, 1 / Math.sqrt(WIDTH)), o.memory());
      Heads dv = poisonedHeads(GROUPS);
      context.layers().attentionBackward(placed(q, HEADS), placed(k, GROUPS), placed(v, GROUPS), placed(dO, HEADS), null, null, dv, how);
      holds(expectedGradients(true, 1 / Math.sqrt(WIDTH))[2], dv.memory());
    }
    Heads o = poisonedHeads(HEADS);
    Attention wide = new Attention().visible(scores(place(TOKENS, TOKENS, bias)));
    refused("visible is f64", () -> context.layers().attention(placed(q, HEADS), placed(k, GROUPS), placed(v, GROUPS), o, wide));
  }

  @Test
  public void gradients() {
    double[][] expected = expectedGradients(true, 0.5);
    Heads dq = poisonedHeads(HEADS);
    Heads dk = poisonedHeads(GROUPS);
    Heads dv = poisonedHeads(GROUPS);
    Attention how = new Attention().causal(0).scale(0.5);
    context.layers().attentionBackwardAsync(
        placed(q, HEADS), placed(k, GROUPS), placed(v, GROUPS), placed(dO, HEADS), dq, dk, dv, how, DEFAULTS).join();
    holds(expected[0], dq.memory());
    holds(expected[1], dk.memory());
    holds(expected[2], dv.memory());
    Heads alone = poisonedHeads(GROUPS);
    context.layers().attentionBackward(
        placed(q, HEADS), placed(k, GROUPS), placed(v, GROUPS), placed(dO, HEADS), null, alone, null, how);
    holds(expected[1], alone.memory());
  }

  @Test
  public void arraysAreCopied() {
    double[] values = {1, 2, 3, 9, 4, 5, 6, 9};
    Heads tokens = Heads.strided(Matrix.of(values, 1, 8), 1, 1, 2, 3, 0, 0, 4);
    Heads first = tokens.tokens(0, 1);
    context.layers().attention(first, first, first, tokens.tokens(1, 1), new Attention());
    assertArrayEquals(new double[] {1, 2, 3, 9, 1, 2, 3, 9}, values, 0);
  }

  @Test
  public void wrongCallsNameTheArgument() {
    Heads queries = placed(q, HEADS);
    Heads keys = placed(k, GROUPS);
    Heads o = poisonedHeads(HEADS);
    Layers layers = context.layers();
    refused("o is f64 2 x 2 heads x 5 tokens x 3", () -> layers.attention(queries, keys, keys, poisonedHeads(GROUPS), new Attention()));
    refused("v is f64 2 x 2 heads x 4 tokens x 3", () -> layers.attention(queries, keys, keys.tokens(0, 4), o, new Attention()));
    refused("k has 4 heads", () -> layers.attention(keys, queries, queries, poisonedHeads(GROUPS), new Attention()));
    refused("scale is inf", () -> layers.attention(queries, keys, keys, o, new Attention().scale(Double.POSITIVE_INFINITY)));
    refused("dk is ", () -> layers.attentionBackward(queries, keys, keys, o, null, queries, null, new Attention()));
    refused("o (", () -> layers.attention(queries, keys, keys, queries, new Attention()));
    refused("heads is 3, which does not divide 4", () -> Heads.inColumns(poisoned(2, 4), 1, 3));
    refused("the tokens span 6 elements", () -> Heads.strided(poisoned(1, 5), 1, 1, 2, 3, 0, 0, 3));
    refused("3 tokens from 3 of 5", () -> keys.tokens(3, 3));
    fails(submit -> layers.attentionAsync(queries, keys, keys, o, new Attention(), submit));
    fails(submit -> layers.attentionBackwardAsync(queries, keys, keys, o, poisonedHeads(HEADS), null, null, new Attention(), submit));
  }
}
