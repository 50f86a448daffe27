// SPDX-License-Identifier: Apache-2.0
// The table of operations that sg_operation_async submits and sg_graph_update changes.
#pragma once

#include <streamgemm/operation.h>

#include "api/submission/submission.hpp"

namespace sg {

struct operation_entry {
  sg_operation operation;
  const char *name;  // in messages, with its article
  // `desc_name`: the descriptor's name in messages.
  void (*submit)(context &on, const sg_operation_desc &given, const char *desc_name, checked_submit &order,
                 sg_job **out_job);
};

// Throws if there is no such operation.
const operation_entry &entry_of(sg_operation operation);

}  // namespace sg
