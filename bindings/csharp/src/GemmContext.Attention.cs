// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmContext {
    /// <summary>Submits an attention, O = softmax(scale * Q * K^T + mask) * V for each head of each batch, and returns at once. K and V may
    /// have fewer heads than Q, of which each serves as many of Q. On a device with memory of its own, operands are in device
    /// memory.</summary>
    /// <param name="q">The queries; only read.</param>
    /// <param name="k">The keys; only read.</param>
    /// <param name="v">A value for each key; only read.</param>
    /// <param name="o">The result, with Q's heads and tokens and V's width.</param>
    /// <param name="options">Mask and scale, order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task AttentionAsync(in Heads q, in Heads k, in Heads v, in Heads o, AttentionOptions options = null,
                               CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, AttentionCall(q, k, v, o, options ?? new AttentionOptions()));

    /// <summary>Computes an attention, as that of <see cref="AttentionAsync"/>; blocks until O is complete.</summary>
    /// <param name="q">The queries; only read.</param>
    /// <param name="k">The keys; only read.</param>
    /// <param name="v">A value for each key; only read.</param>
    /// <param name="o">The result, with Q's heads and tokens and V's width.</param>
    /// <param name="options">Mask and scale, order and priority; null: the defaults.</param>
    public void Attention(in Heads q, in Heads k, in Heads v, in Heads o, AttentionOptions options = null) =>
      LayerAndWait(options, AttentionCall(q, k, v, o, options ?? new AttentionOptions()));

    /// <summary>Submits the gradients of an attention as one job, and returns at once. Of heads that serve several of Q, dK and dV are
    /// the sums. A result that is left out is not computed.</summary>
    /// <param name="q">As given to the attention, and so are k and v; only read.</param>
    /// <param name="k">Only read.</param>
    /// <param name="v">Only read.</param>
    /// <param name="dO">The gradient of the loss with respect to O; only read.</param>
    /// <param name="dq">A result like Q.</param>
    /// <param name="dk">A result like K.</param>
    /// <param name="dv">A result like V.</param>
    /// <param name="options">As given to the attention.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task AttentionBackwardAsync(Heads q, Heads k, Heads v, Heads dO, Heads dq = default(Heads), Heads dk = default(Heads),
                                       Heads dv = default(Heads), AttentionOptions options = null,
                                       CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, AttentionBackwardCall(q, k, v, dO, dq, dk, dv, options ?? new AttentionOptions()));

    /// <summary>Computes the gradients of an attention, as those of <see cref="AttentionBackwardAsync"/>; blocks until they are
    /// complete.</summary>
    /// <param name="q">As given to the attention, and so are k and v; only read.</param>
    /// <param name="k">Only read.</param>
    /// <param name="v">Only read.</param>
    /// <param name="dO">The gradient of the loss with respect to O; only read.</param>
    /// <param name="dq">A result like Q.</param>
    /// <param name="dk">A result like K.</param>
    /// <param name="dv">A result like V.</param>
    /// <param name="options">As given to the attention.</param>
    public void AttentionBackward(Heads q, Heads k, Heads v, Heads dO, Heads dq = default(Heads), Heads dk = default(Heads),
                                  Heads dv = default(Heads), AttentionOptions options = null) =>
      LayerAndWait(options, AttentionBackwardCall(q, k, v, dO, dq, dk, dv, options ?? new AttentionOptions()));

    internal static LayerCall AttentionCall(Heads q, Heads k, Heads v, Heads to, AttentionOptions how) {
      CheckHeads(q, k, v);
      RequireLike(to, "o", q.DType, q.Batch, q.Count, q.Tokens, v.Width);
      RequireWritable(to.Memory, "o");
      return (pins, o) => {
        long atQ = q.PinIn(pins), atK = k.PinIn(pins), atV = v.PinIn(pins), atO = to.PinIn(pins);
        return RawPINVOKE.sg_flat_attention_async(o.Context, o.Graph,
          atQ, q.BatchStride, q.HeadStride, q.TokenStride, atK, k.BatchStride, k.HeadStride, k.TokenStride,
          atV, v.BatchStride, v.HeadStride, v.TokenStride, atO, to.BatchStride, to.HeadStride, to.TokenStride,
          (int)q.DType, (int)how.Mask, how.MaskOffset, q.Batch, q.Count, k.Count, q.Tokens, k.Tokens, q.Width, v.Width, how.Scale,
          how.Workspace, (int)how.Compute,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    internal static LayerCall AttentionBackwardCall(Heads q, Heads k, Heads v, Heads dO, Heads dq, Heads dk, Heads dv, AttentionOptions how) {
      CheckHeads(q, k, v);
      RequireLike(dO, "dO", q.DType, q.Batch, q.Count, q.Tokens, v.Width);
      if (dq.DType != 0) RequireLike(dq, "dq", q.DType, q.Batch, q.Count, q.Tokens, q.Width);
      if (dk.DType != 0) RequireLike(dk, "dk", k.DType, k.Batch, k.Count, k.Tokens, k.Width);
      if (dv.DType != 0) RequireLike(dv, "dv", v.DType, v.Batch, v.Count, v.Tokens, v.Width);
      RequireWritable(dq.Memory, "dq");
      RequireWritable(dk.Memory, "dk");
      RequireWritable(dv.Memory, "dv");
      return (pins, o) => {
        long atQ = q.PinIn(pins), atK = k.PinIn(pins), atV = v.PinIn(pins), atDo = dO.PinIn(pins);
        long atDq = dq.PinIn(pins), atDk = dk.PinIn(pins), atDv = dv.PinIn(pins);
        return RawPINVOKE.sg_flat_attention_backward_async(o.Context, o.Graph,
          atQ, q.BatchStride, q.HeadStride, q.TokenStride, atK, k.BatchStride, k.HeadStride, k.TokenStride,
          atV, v.BatchStride, v.HeadStride, v.TokenStride, atDo, dO.BatchStride, dO.HeadStride, dO.TokenStride,
          atDq, dq.BatchStride, dq.HeadStride, dq.TokenStride, atDk, dk.BatchStride, dk.HeadStride, dk.TokenStride,
          atDv, dv.BatchStride, dv.HeadStride, dv.TokenStride,
          (int)q.DType, (int)how.Mask, how.MaskOffset, q.Batch, q.Count, k.Count, q.Tokens, k.Tokens, q.Width, v.Width, how.Scale,
          how.Workspace, (int)how.Compute,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }

    static void CheckHeads(in Heads q, in Heads k, in Heads v) {
      RequireLike(k, "k", q.DType, q.Batch, k.Count, k.Tokens, q.Width);
      RequireLike(v, "v", q.DType, q.Batch, k.Count, k.Tokens, v.Width);
      if (k.Count < 1 || q.Count % k.Count != 0)
        throw new ArgumentException("k has " + k.Count + " heads, which do not divide the " + q.Count + " of q", "k");
    }

    static void RequireLike(in Heads x, string name, DType dtype, long batch, long heads, long tokens, long width) {
      if (x.DType != dtype || x.Batch != batch || x.Count != heads || x.Tokens != tokens || x.Width != width)
        throw new ArgumentException(name + " is " + x + "; it must be " + Heads.Describe(dtype, batch, heads, tokens, width), name);
    }
  }

  /// <summary>How an attention computes, and the options of its submission.</summary>
  public sealed class AttentionOptions : SubmitOptions {
    /// <summary>Default: none. With a causal one query i has the keys j &lt;= i + MaskOffset.</summary>
    public Mask Mask { get; set; }

    /// <summary>Of a causal mask: 0 for as many keys as queries; with cached keys, the number of those before the first query's own.</summary>
    public long MaskOffset { get; set; }

    /// <summary>The factor of the products of queries and keys; finite. 0, the default: 1 / sqrt(width).</summary>
    public double Scale { get; set; }

    /// <summary>Limit of the memory for scores, in bytes; 0: the library's choice.</summary>
    public long Workspace { get; set; }

    /// <summary>The least accurate arithmetic allowed. Default: exact.</summary>
    public Compute Compute { get; set; }
  }
}
