/* SPDX-License-Identifier: Apache-2.0 */
/* What would a GEMM cost on a GPU that is not present? A plan on a simulated device predicts it; nothing is computed.
 */
#include "check.h"

int main(void) {
  sg_context_options where = SG_CONTEXT_OPTIONS_INIT;
  sg_context *context;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  const sg_operation_desc gemm = {sizeof gemm, SG_OPERATION_GEMM, 1, &desc};
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  sg_plan_prediction says = SG_PLAN_PREDICTION_INIT;
  sg_plan *plan;
  char text[4096];

  where.device = "sim:h200";
  check(sg_context_create(&where, &context), "sg_context_create");
  desc.a.rows = desc.a.cols = desc.b.rows = desc.b.cols = desc.c.rows = desc.c.cols = 8192; /* no data: shapes only */
  desc.compute = SG_COMPUTE_TF32;
  options.place_a = options.place_b = options.place_c = SG_MEMORY_PINNED;
  check(sg_plan_create(context, &gemm, &options, &plan), "sg_plan_create");
  check(sg_plan_get_prediction(plan, &says), "sg_plan_get_prediction");
  check(sg_plan_describe(plan, SG_PLAN_FORMAT_TEXT, text, sizeof text, NULL), "sg_plan_describe");
  printf("%s\n", text);
  printf("overlap saves %.0f%% of %.2f ms\n", 100 * (1 - says.predicted_seconds / says.serial_seconds),
         says.serial_seconds * 1e3);
  expect(says.predicted_seconds >= says.bound_seconds, "no schedule beats the bound");
  expect(says.predicted_seconds < says.serial_seconds, "copies and arithmetic overlap");
  sg_plan_release(plan);
  sg_context_release(context);
  return 0;
}
