// SPDX-License-Identifier: Apache-2.0
using System;

namespace StreamGemm {
  /// <summary>An operand of an attention: tokens of each head of each batch, in the memory of a matrix. The elements of a token are
  /// contiguous. Copies and pins nothing.</summary>
  public readonly struct Heads {
    internal readonly Matrix Memory;  // of the whole; its elements from First on are the operand's
    internal readonly long First;
    internal readonly long BatchStride, HeadStride, TokenStride;

    /// <summary>Number of batches.</summary>
    public long Batch { get; }
    /// <summary>Number of heads.</summary>
    public long Count { get; }
    /// <summary>Tokens of each head of each batch.</summary>
    public long Tokens { get; }
    /// <summary>Elements of a token.</summary>
    public long Width { get; }
    /// <summary>Element type; 0 of default(Heads), which stands for none.</summary>
    public DType DType => Memory.DType;

    Heads(in Matrix memory, long first, long batch, long heads, long tokens, long width, long batchStride, long headStride,
          long tokenStride) {
      Memory = memory;
      First = first;
      Batch = batch;
      Count = heads;
      Tokens = tokens;
      Width = width;
      BatchStride = batchStride;
      HeadStride = headStride;
      TokenStride = tokenStride;
    }

    /// <summary>An array of batches of heads of tokens of elements.</summary>
    public static Heads Of<T>(T[,,,] array, DType dtype = 0) where T : struct {
      Matrix memory = Matrix.Of(array, dtype);
      long batch = array.GetLongLength(0), heads = array.GetLongLength(1), tokens = array.GetLongLength(2), width = array.GetLongLength(3);
      return new Heads(memory, 0, batch, heads, tokens, width, heads * tokens * width, tokens * width, width);
    }

    /// <summary>Tokens by rows, with their heads side by side in the columns.</summary>
    /// <param name="memory">Row major; the tokens of each batch follow each other.</param>
    /// <param name="heads">Number of heads, which divides the columns.</param>
    /// <param name="batch">Number of batches, which divides the rows.</param>
    public static Heads InColumns(in Matrix memory, long heads, long batch = 1) {
      RequireRowMajor(memory);
      long tokens = Divided(memory.Rows, batch, memory, "batch"), width = Divided(memory.Cols, heads, memory, "heads");
      return new Heads(memory, 0, batch, heads, tokens, width, tokens * memory.Ld, width, memory.Ld);
    }

    /// <summary>Tokens by rows, head after head, batch after batch.</summary>
    /// <param name="memory">Row major; a row is a token of one head.</param>
    /// <param name="heads">Number of heads.</param>
    /// <param name="batch">Number of batches; its product with the heads divides the rows.</param>
    public static Heads InRows(in Matrix memory, long heads, long batch = 1) {
      RequireRowMajor(memory);
      long tokens = Divided(Divided(memory.Rows, batch, memory, "batch"), heads, memory, "heads");
      return new Heads(memory, 0, batch, heads, tokens, memory.Cols, heads * tokens * memory.Ld, tokens * memory.Ld, memory.Ld);
    }

    /// <summary>Tokens anywhere in the memory of a matrix. Strides are in elements and not negative.</summary>
    /// <param name="memory">Of which type and memory count.</param>
    /// <param name="batch">Number of batches.</param>
    /// <param name="heads">Number of heads.</param>
    /// <param name="tokens">Tokens of each head.</param>
    /// <param name="width">Elements of a token.</param>
    /// <param name="batchStride">From one batch to the next.</param>
    /// <param name="headStride">From one head to the next.</param>
    /// <param name="tokenStride">From one token to the next.</param>
    public static Heads Strided(in Matrix memory, long batch, long heads, long tokens, long width, long batchStride, long headStride,
                                long tokenStride) {
      var all = new[] { batch, heads, tokens, width, batchStride, headStride, tokenStride };
      var names = new[] { "batch", "heads", "tokens", "width", "batchStride", "headStride", "tokenStride" };
      for (int i = 0; i < all.Length; ++i)
        if (all[i] < 0) throw new ArgumentOutOfRangeException(names[i], all[i], names[i] + " is negative");
      bool empty = batch == 0 || heads == 0 || tokens == 0 || width == 0;
      decimal needed = empty ? 0 : (batch - 1) * (decimal)batchStride + (heads - 1) * (decimal)headStride + (tokens - 1) * (decimal)tokenStride + width;
      if (needed > memory.Span)
        throw new ArgumentException("the tokens span " + needed + " elements, the memory, " + memory + ", has " + memory.Span, "memory");
      return new Heads(memory, 0, batch, heads, tokens, width, batchStride, headStride, tokenStride);
    }

    /// <summary>Some tokens of each head: of a cache, those that it has so far. The same elements, none copied.</summary>
    /// <param name="from">The first one.</param>
    /// <param name="count">Their number.</param>
    public Heads Slice(long from, long count) {
      if (from < 0 || from > Tokens) throw new ArgumentOutOfRangeException("from", from, "from is outside the " + Tokens + " tokens");
      if (count < 0 || count > Tokens - from) throw new ArgumentOutOfRangeException("count", count, "the slice ends outside the " + Tokens + " tokens");
      return new Heads(Memory, First + (count == 0 ? 0 : from * TokenStride), Batch, Count, count, Width, BatchStride, HeadStride, TokenStride);
    }

    /// <inheritdoc/>
    public override string ToString() => Describe(DType, Batch, Count, Tokens, Width);

    internal static string Describe(DType dtype, long batch, long heads, long tokens, long width) =>
      batch + " x " + heads + " heads x " + tokens + " tokens x " + width + " " + dtype;

    internal Internal.sg_heads In(Pins pins) {
      long address = pins.Take(Memory);
      return new Internal.sg_heads { data = address == 0 ? 0 : address + First * Element.Size(DType), batch_stride = BatchStride,
                                     head_stride = HeadStride, token_stride = TokenStride };
    }

    internal void RequireWritable(string name) => Memory.RequireWritable(name);

    internal void Require(string name, DType dtype, long batch, long heads, long tokens, long width) {
      if (DType != dtype || Batch != batch || Count != heads || Tokens != tokens || Width != width)
        throw new ArgumentException(name + " is " + this + "; it must be " + Describe(dtype, batch, heads, tokens, width), name);
    }

    static void RequireRowMajor(in Matrix memory) {
      if (memory.Layout != Layout.RowMajor) throw new ArgumentException("memory is " + memory + "; it must be row major", "memory");
    }

    static long Divided(long size, long by, in Matrix memory, string name) {
      if (by < 1 || size % by != 0) throw new ArgumentException(name + " is " + by + ", which does not divide " + size + " of " + memory, name);
      return size / by;
    }
  }
}
