/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of one GEMM, by its descriptor. */
#ifndef SG_TEST_GEMM_PLAN_H
#define SG_TEST_GEMM_PLAN_H

#include <streamgemm/streamgemm.h>

static inline sg_status create_gemm_plan(sg_context *context, const sg_gemm_desc *desc, const sg_plan_options *options,
                                         sg_plan **out) {
  const sg_operation_desc gemm = {sizeof gemm, SG_OPERATION_GEMM, 1, desc};
  return sg_plan_create(context, &gemm, options, out);
}

static inline sg_status run_gemm_plan(sg_plan *plan, const sg_gemm_desc *desc, const sg_submit *submit, sg_job **out) {
  const sg_operation_desc gemm = {sizeof gemm, SG_OPERATION_GEMM, 1, desc};
  return sg_plan_run_async(plan, &gemm, submit, out);
}

#endif
