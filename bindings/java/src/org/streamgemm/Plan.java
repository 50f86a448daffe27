// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.streamgemm.internal.Native;

/** A schedule made ahead of its run: for inspection, prediction and repeated runs. */
public final class Plan extends NativeObject {
  private final Context context;

  Plan(long handle, Context context) {
    super(handle, Native::sg_plan_release);
    this.context = context;
  }

  /**
   * The device model's prediction.
   *
   * @return the prediction
   */
  public PlanPrediction prediction() {
    try {
      return PlanPrediction.from(struct -> Native.sg_plan_predict(handle(), struct));
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Describes the plan.
   *
   * @param format as a few lines, as JSON, or as a timeline with a row for each lane
   * @return the text
   */
  public String describe(PlanFormat format) {
    try {
      long size = Native.sg_plan_describe(handle(), format.value, 0, 0);
      ByteBuffer text = ByteBuffer.allocateDirect(Math.toIntExact(size));
      Native.sg_plan_describe(handle(), format.value, Native.address(text), size);
      byte[] bytes = new byte[(int) size - 1]; // without the NUL
      text.get(bytes);
      return new String(bytes, StandardCharsets.UTF_8);
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Runs the plan.
   *
   * @param product matrices of the planned shapes and memory spaces; beta and alpha are 0 if the planned ones were
   * @return a future of C
   */
  public Job<Matrix> runAsync(Gemm product) {
    return runAsync(product, new Submit());
  }

  /**
   * Runs the plan.
   *
   * @param product matrices of the planned shapes and memory spaces; beta and alpha are 0 if the planned ones were
   * @param submit order and priority
   * @return a future of C
   */
  public Job<Matrix> runAsync(Gemm product, Submit submit) {
    long plan = handle();
    Operands operands = context.operands(product);
    try {
      return context.launch(product.c, operands, submit,
          (s, order) -> product.call(s, Structs.CALL_PLAN_RUN, plan, new Gemm.Places(product, operands), order));
    } finally {
      reachabilityFence(this);
    }
  }

  @Override
  public String toString() {
    return isClosed() ? "Plan[closed]" : describe(PlanFormat.TEXT);
  }
}
