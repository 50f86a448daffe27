// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/** How a rotary embedding rotates: {@link Layers#rotaryAsync}. Read during the call only. */
public final class Rotary {
  Matrix cos;
  Matrix sin;
  long headSize;
  long rotatedSize;
  long firstPosition;
  long sequenceLength;
  double theta = 10000;
  RotaryPairs pairs = RotaryPairs.HALVES;
  boolean inverse;

  /** One head, all of it rotated, in halves, by theta 10000 from position 0. */
  public Rotary() {}

  /**
   * Rotates by tables, with a row for each position and a column for each pair.
   *
   * @param cos cosines, of X's type, or F32 for F16 and BF16; null: by theta
   * @param sin sines, likewise
   * @return these options
   */
  public Rotary tables(Matrix cos, Matrix sin) {
    this.cos = cos;
    this.sin = sin;
    return this;
  }

  /**
   * Sets the columns of a head.
   *
   * @param headSize a divisor of X's columns; 0: all of them
   * @return these options
   */
  public Rotary headSize(long headSize) {
    this.headSize = headSize;
    return this;
  }

  /**
   * Sets how many of a head's elements are rotated: its first ones.
   *
   * @param rotatedSize an even number; 0: all of them
   * @return these options
   */
  public Rotary rotatedSize(long rotatedSize) {
    this.rotatedSize = rotatedSize;
    return this;
  }

  /**
   * Sets the position of the first row.
   *
   * @param firstPosition not negative
   * @return these options
   */
  public Rotary firstPosition(long firstPosition) {
    this.firstPosition = firstPosition;
    return this;
  }

  /**
   * Sets the rows of a sequence, after which positions begin again.
   *
   * @param sequenceLength 0: there is one sequence
   * @return these options
   */
  public Rotary sequenceLength(long sequenceLength) {
    this.sequenceLength = sequenceLength;
    return this;
  }

  /**
   * Sets the base of the angles: pair j of d/2 turns by p * theta^(-2j/d) at position p.
   *
   * @param theta positive
   * @return these options
   */
  public Rotary theta(double theta) {
    this.theta = theta;
    return this;
  }

  /**
   * Sets which elements are rotated together.
   *
   * @param pairs halves (GPT-NeoX, Llama) or interleaved (GPT-J)
   * @return these options
   */
  public Rotary pairs(RotaryPairs pairs) {
    this.pairs = pairs;
    return this;
  }

  /**
   * Rotates back, which is the gradient.
   *
   * @param inverse by the negative angle
   * @return these options
   */
  public Rotary inverse(boolean inverse) {
    this.inverse = inverse;
    return this;
  }
}
