// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import org.streamgemm.internal.Native;

/** A schedule made ahead of its run: for inspection, prediction and repeated runs. */
public final class Plan extends NativeObject {
  private final Context context;
  private final LayerCall.Kept kept;

  Plan(long handle, Context context, LayerCall.Kept kept) {
    super(handle, Native::sg_plan_release);
    this.context = context;
    this.kept = kept;
  }

  /**
   * Runs the plan.
   *
   * @param <T> what the operation gives
   * @param operation the planned one, with matrices of the planned shapes and memory spaces; a GEMM's beta and alpha are 0 if the planned ones were
   * @param submit order and priority [= new Submit()]
   * @return a future of its result
   */
  public <T> Job<T> runAsync(OperationDesc<T> operation, Submit submit) {
    try {
      return operation.call().keepsAs(kept).runPlan(context, handle(), submit);
    } finally {
      reachabilityFence(this);
    }
  }

  @Override
  public String toString() {
    return isClosed() ? "Plan[closed]" : describe(PlanFormat.TEXT);
  }
}
