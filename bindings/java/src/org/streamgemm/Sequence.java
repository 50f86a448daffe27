// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/** Steps of a batch of sequences, each in a row of a matrix. Immutable; copies nothing. */
public final class Sequence {
  final Matrix memory;
  final long steps;
  final long batch;
  final long stepStride;
  final long batchStride;

  private Sequence(Matrix memory, long steps, long batch, long stepStride, long batchStride) {
    this.memory = memory;
    this.steps = steps;
    this.batch = batch;
    this.stepStride = stepStride;
    this.batchStride = batchStride;
  }

  /**
   * The first step of all sequences, then the second, ...
   *
   * @param memory row major; a row is a step of one sequence. A layer in both directions writes two blocks of columns
   * @param batch number of sequences, which divides the rows
   * @return the sequences
   */
  public static Sequence byStep(Matrix memory, long batch) {
    long steps = steps(memory, batch);
    return new Sequence(memory, steps, batch, batch * memory.ld, memory.ld);
  }

  /**
   * All steps of the first sequence, then those of the second, ...
   *
   * @param memory row major; a row is a step of one sequence. A layer in both directions writes two blocks of columns
   * @param batch number of sequences, which divides the rows
   * @return the sequences
   */
  public static Sequence byBatch(Matrix memory, long batch) {
    long steps = steps(memory, batch);
    return new Sequence(memory, steps, batch, memory.ld, steps * memory.ld);
  }

  private static long steps(Matrix memory, long batch) {
    if (memory.layout != Layout.ROW_MAJOR)
      throw new StreamGemmException.InvalidArgument("memory is " + memory + "; it must be row major");
    if (batch < 1 || memory.rows % batch != 0)
      throw new StreamGemmException.InvalidArgument("batch is " + batch + ", which does not divide the rows of " + memory);
    return memory.rows / batch;
  }

  /**
   * Number of steps.
   *
   * @return the number
   */
  public long steps() {
    return steps;
  }

  /**
   * Number of sequences.
   *
   * @return the number
   */
  public long batch() {
    return batch;
  }

  /**
   * Values of a step.
   *
   * @return the number
   */
  public long values() {
    return memory.cols;
  }

  /**
   * The memory of the steps.
   *
   * @return the matrix that this was made of
   */
  public Matrix memory() {
    return memory;
  }

  DType dtype() {
    return memory.dtype;
  }

  void write(Scratch s, int at, long place) {
    s.putLong(at, place);
    s.putLong(at + 8, stepStride);
    s.putLong(at + 16, batchStride);
  }

  void require(String name, DType type, long hasSteps, long hasBatch, long values) {
    if (memory.dtype != type || steps != hasSteps || batch != hasBatch || memory.cols != values)
      throw new StreamGemmException.InvalidArgument(
          name + " is " + this + "; it must be " + describe(type, hasSteps, hasBatch, values));
  }

  @Override
  public String toString() {
    return describe(memory.dtype, steps, batch, memory.cols);
  }

  private static String describe(DType type, long steps, long batch, long values) {
    return type.name().toLowerCase(java.util.Locale.ROOT) + " " + steps + " steps of " + batch
        + " sequences of " + values + " values";
  }
}
