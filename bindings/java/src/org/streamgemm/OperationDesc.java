// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/**
 * An operation and its operands: {@link Operations} makes them, and a {@link Gemm} and a {@link CustomOperation} are ones. A plan is made for one
 * and runs it, a graph records it. {@link Operations} copy the options, so that later changes of them
 * have no effect; matrices are not copied before a call uses them.
 *
 * @param <T> what its job gives
 */
public abstract class OperationDesc<T> {
  OperationDesc() {}

  /** Its call; of a custom operation a new one each time. */
  abstract LayerCall<T> call();
}
