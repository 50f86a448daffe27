// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/**
 * An operand of an attention: tokens of each head of each batch, in the memory of a matrix. The elements of a token are
 * contiguous. Immutable; copies nothing.
 */
public final class Heads {
  final Matrix memory;
  /** Elements of the memory before the first one. */
  private final long first;
  final long batch;
  final long heads;
  final long tokens;
  final long width;
  final long batchStride;
  final long headStride;
  final long tokenStride;

  private Heads(Matrix memory, long first, long batch, long heads, long tokens, long width, long batchStride,
      long headStride, long tokenStride) {
    this.memory = memory;
    this.first = first;
    this.batch = batch;
    this.heads = heads;
    this.tokens = tokens;
    this.width = width;
    this.batchStride = batchStride;
    this.headStride = headStride;
    this.tokenStride = tokenStride;
  }

  /**
   * Tokens by rows, with their heads side by side in the columns.
   *
   * @param memory row major; the tokens of each batch follow each other
   * @param batch number of batches, which divides the rows
   * @param heads number of heads, which divides the columns
   * @return the operand
   */
  public static Heads inColumns(Matrix memory, long batch, long heads) {
    requireRowMajor(memory);
    long tokens = divided(memory.rows, batch, memory, "batches");
    long width = divided(memory.cols, heads, memory, "heads");
    return new Heads(memory, 0, batch, heads, tokens, width, tokens * memory.ld, width, memory.ld);
  }

  /**
   * Tokens by rows, head after head, batch after batch.
   *
   * @param memory row major; a row is a token of one head
   * @param batch number of batches
   * @param heads number of heads; its product with the batches divides the rows
   * @return the operand
   */
  public static Heads inRows(Matrix memory, long batch, long heads) {
    requireRowMajor(memory);
    long tokens = divided(divided(memory.rows, batch, memory, "batches"), heads, memory, "heads");
    return new Heads(
        memory, 0, batch, heads, tokens, memory.cols, heads * tokens * memory.ld, tokens * memory.ld, memory.ld);
  }

  /**
   * Tokens anywhere in the memory of a matrix. Strides are in elements and not negative.
   *
   * @param memory of which type and memory count
   * @param batch number of batches
   * @param heads number of heads
   * @param tokens tokens of each head
   * @param width elements of a token
   * @param batchStride from one batch to the next
   * @param headStride from one head to the next
   * @param tokenStride from one token to the next
   * @return the operand
   */
  public static Heads strided(Matrix memory, long batch, long heads, long tokens, long width, long batchStride,
      long headStride, long tokenStride) {
    long[] all = {batch, heads, tokens, width, batchStride, headStride, tokenStride};
    String[] names = {"batch", "heads", "tokens", "width", "batchStride", "headStride", "tokenStride"};
    for (int i = 0; i < all.length; ++i)
      if (all[i] < 0) throw invalid(names[i] + " is " + all[i]);
    long room = memory.span(1, 0);
    long needed = span(batch, heads, tokens, width, batchStride, headStride, tokenStride);
    if (needed > room)
      throw invalid("the tokens span " + needed + " elements, and the memory, " + memory + ", has " + room);
    return new Heads(memory, 0, batch, heads, tokens, width, batchStride, headStride, tokenStride);
  }

  /**
   * Some tokens of each head: of a cache, those that it has so far.
   *
   * @param from the first one
   * @param count their number
   * @return a view of the same memory
   */
  public Heads tokens(long from, long count) {
    if (from < 0 || count < 0 || from > tokens - count)
      throw invalid(count + " tokens from " + from + " of " + tokens);
    long skipped = count == 0 ? 0 : from * tokenStride;
    return new Heads(memory, first + skipped, batch, heads, count, width, batchStride, headStride, tokenStride);
  }

  /**
   * Number of batches.
   *
   * @return the number
   */
  public long batch() {
    return batch;
  }

  /**
   * Number of heads.
   *
   * @return the number
   */
  public long heads() {
    return heads;
  }

  /**
   * Tokens of each head of each batch.
   *
   * @return the number
   */
  public long tokens() {
    return tokens;
  }

  /**
   * Elements of a token.
   *
   * @return the number
   */
  public long width() {
    return width;
  }

  /**
   * The memory of the tokens.
   *
   * @return the matrix that this was made of
   */
  public Matrix memory() {
    return memory;
  }

  DType dtype() {
    return memory.dtype;
  }

  /** With the memory at an address. */
  void write(Scratch s, int at, long place) {
    s.putLong(at, place == 0 ? 0 : place + first * memory.elementSize());
    s.putLong(at + 8, batchStride);
    s.putLong(at + 16, headStride);
    s.putLong(at + 24, tokenStride);
  }

  void require(String name, DType type, long hasBatch, long hasHeads, long hasTokens, long hasWidth) {
    if (memory.dtype != type || batch != hasBatch || heads != hasHeads || tokens != hasTokens || width != hasWidth)
      throw invalid(name + " is " + this + "; it must be " + describe(type, hasBatch, hasHeads, hasTokens, hasWidth));
  }

  /** Whether elements of the memory may not belong to it. */
  boolean isPart() {
    return batch * heads * tokens * width != memory.rows * memory.cols;
  }

  @Override
  public String toString() {
    return describe(memory.dtype, batch, heads, tokens, width);
  }

  static String describe(DType dtype, long batch, long heads, long tokens, long width) {
    return dtype.name().toLowerCase(java.util.Locale.ROOT) + " " + batch + " x " + heads + " heads x " + tokens
        + " tokens x " + width;
  }

  private static long span(long batch, long heads, long tokens, long width, long batchStride, long headStride, long tokenStride) {
    if (batch == 0 || heads == 0 || tokens == 0 || width == 0) return 0;
    try {
      long rows = Math.addExact(
          Math.multiplyExact(batch - 1, batchStride), Math.multiplyExact(heads - 1, headStride));
      return Math.addExact(rows, Math.addExact(Math.multiplyExact(tokens - 1, tokenStride), width));
    } catch (ArithmeticException e) {
      return Long.MAX_VALUE;
    }
  }

  private static void requireRowMajor(Matrix m) {
    if (m.layout != Layout.ROW_MAJOR) throw invalid("memory is " + m + "; it must be row major");
  }

  private static long divided(long size, long by, Matrix m, String what) {
    if (by < 1 || size % by != 0) throw invalid(by + " " + what + " do not divide " + size + " of " + m);
    return size / by;
  }

  private static StreamGemmException.InvalidArgument invalid(String message) {
    return new StreamGemmException.InvalidArgument(message);
  }
}
