// SPDX-License-Identifier: Apache-2.0
// GEMMs as one of the operations.
#pragma once

#include <streamgemm/operation.h>

#include "api/submission/submission.hpp"

namespace sg {

// Submits a group of `count` GEMMs; `descs_name`: the array's name in messages.
void submit_group(context &on, const sg_gemm_desc *descs, std::int32_t count, const char *descs_name,
                  checked_submit &order, sg_job **out_job);
// Changes GEMM, or group, `index` of a graph, recorded as `was`.
void update_gemm(context &on, const sg_operation_desc &given, const submission &was, std::int32_t index,
                 const char *name, checked_submit &order);

}  // namespace sg
