// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import org.streamgemm.internal.Native;

/** A schedule made ahead of its run: for inspection, prediction and repeated runs. */
public final class Plan extends NativeObject {
  private final Context context;

  Plan(long handle, Context context) {
    super(handle, Native::sg_plan_release);
    this.context = context;
  }

  /**
   * Runs the plan.
   *
   * @param product matrices of the planned shapes and memory spaces; beta and alpha are 0 if the planned ones were
   * @param submit order and priority [= new Submit()]
   * @return a future of C
   */
  public Job<Matrix> runAsync(Gemm product, Submit submit) {
    try {
      return product.call(Structs.CALL_PLAN_RUN).submit(context, handle(), submit);
    } finally {
      reachabilityFence(this);
    }
  }

  @Override
  public String toString() {
    return isClosed() ? "Plan[closed]" : describe(PlanFormat.TEXT);
  }
}
