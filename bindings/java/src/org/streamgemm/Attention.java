// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.Objects;
import org.streamgemm.internal.Native;

/** How an attention computes: {@link Layers#attentionAsync}, {@link Layers#attentionBackwardAsync}. Read during the call only. */
public final class Attention {
  private static final Heads NONE = Heads.strided(LayerCall.NONE, 0, 0, 0, 0, 0, 0, 0);

  private Mask mask = Mask.NONE;
  private long maskOffset;
  private double scale;
  private long workspace;
  private Compute compute = Compute.EXACT;

  /** No mask; the scale is 1 / sqrt(width). */
  public Attention() {}

  /**
   * Masks keys: query i has the keys j &lt;= i + maskOffset.
   *
   * @param maskOffset 0 for as many keys as queries; with cached keys, the number of those before the first query's own
   * @return these options
   */
  public Attention causal(long maskOffset) {
    this.mask = Mask.CAUSAL;
    this.maskOffset = maskOffset;
    return this;
  }

  /**
   * Sets the factor of the products of queries and keys.
   *
   * @param scale finite; 0: 1 / sqrt(width)
   * @return these options
   */
  public Attention scale(double scale) {
    this.scale = scale;
    return this;
  }

  /**
   * Limits the memory for scores.
   *
   * @param workspace bytes; 0: the library's choice
   * @return these options
   */
  public Attention workspace(long workspace) {
    this.workspace = workspace;
    return this;
  }

  /**
   * Sets the arithmetic.
   *
   * @param compute the least accurate one allowed
   * @return these options
   */
  public Attention compute(Compute compute) {
    this.compute = Objects.requireNonNull(compute, "compute");
    return this;
  }

  LayerCall<Heads> forward(Heads q, Heads k, Heads v, Heads o) {
    requireLike(k, "k", q.memory.dtype, q.batch, k.heads, k.tokens, q.width);
    requireLike(v, "v", q.memory.dtype, q.batch, k.heads, k.tokens, v.width);
    requireLike(o, "o", q.memory.dtype, q.batch, q.heads, q.tokens, v.width);
    requireGroups(q, k);
    return new LayerCall<>(o).reads("q", q.memory).reads("k", k.memory).reads("v", v.memory)
        .writes("o", o.memory, o.isPart())
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_attention_async(on, graph, q.in(at[0]), q.batchStride, q.headStride, q.tokenStride, k.in(at[1]),
                k.batchStride, k.headStride, k.tokenStride, v.in(at[2]), v.batchStride, v.headStride, v.tokenStride,
                o.in(at[3]), o.batchStride, o.headStride, o.tokenStride, q.memory.dtype.value, mask.value,
                maskOffset, q.batch, q.heads, k.heads, q.tokens, k.tokens, q.width, v.width, scale, workspace,
                compute.value, stream, after, count, priority, flags, queue, tag, options, deadline, label));
  }

  LayerCall<Void> backward(Heads q, Heads k, Heads v, Heads dO, Heads givenDq, Heads givenDk, Heads givenDv) {
    DType type = q.memory.dtype;
    requireLike(k, "k", type, q.batch, k.heads, k.tokens, q.width);
    requireLike(v, "v", type, q.batch, k.heads, k.tokens, v.width);
    requireLike(dO, "dO", type, q.batch, q.heads, q.tokens, v.width);
    requireGroups(q, k);
    if (givenDq != null) requireLike(givenDq, "dq", type, q.batch, q.heads, q.tokens, q.width);
    if (givenDk != null) requireLike(givenDk, "dk", type, k.batch, k.heads, k.tokens, k.width);
    if (givenDv != null) requireLike(givenDv, "dv", type, v.batch, v.heads, v.tokens, v.width);
    Heads dq = givenDq == null ? NONE : givenDq;
    Heads dk = givenDk == null ? NONE : givenDk;
    Heads dv = givenDv == null ? NONE : givenDv;
    return new LayerCall<Void>(null).reads("q", q.memory).reads("k", k.memory).reads("v", v.memory)
        .reads("dO", dO.memory).writes("dq", memory(givenDq), dq.isPart()).writes("dk", memory(givenDk), dk.isPart())
        .writes("dv", memory(givenDv), dv.isPart())
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_attention_backward_async(on, graph, q.in(at[0]), q.batchStride, q.headStride, q.tokenStride,
                k.in(at[1]), k.batchStride, k.headStride, k.tokenStride, v.in(at[2]), v.batchStride, v.headStride,
                v.tokenStride, dO.in(at[3]), dO.batchStride, dO.headStride, dO.tokenStride, dq.in(at[4]), dq.batchStride,
                dq.headStride, dq.tokenStride, dk.in(at[5]), dk.batchStride, dk.headStride, dk.tokenStride, dv.in(at[6]),
                dv.batchStride, dv.headStride, dv.tokenStride, type.value, mask.value, maskOffset, q.batch,
                q.heads, k.heads, q.tokens, k.tokens, q.width, v.width, scale, workspace, compute.value,
                stream, after, count, priority, flags, queue, tag, options, deadline, label));
  }

  private static Matrix memory(Heads given) {
    return given == null ? null : given.memory;
  }

  private static void requireLike(Heads x, String name, DType dtype, long batch, long heads, long tokens, long width) {
    if (x.memory.dtype != dtype || x.batch != batch || x.heads != heads || x.tokens != tokens || x.width != width)
      throw new StreamGemmException.InvalidArgument(name + " is " + x + "; it must be "
          + Heads.describe(dtype, batch, heads, tokens, width));
  }

  private static void requireGroups(Heads q, Heads k) {
    if (k.heads < 1 || q.heads % k.heads != 0)
      throw new StreamGemmException.InvalidArgument("k has " + k.heads + " heads, which do not divide the " + q.heads + " of q");
  }
}
