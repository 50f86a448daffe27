// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/streaming/staged_copy.hpp"

#include "plan/gemm/streaming/transfer.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {

schedule staged_copy(std::int64_t bytes, bool to_device, const device_model &model) {
  problem copied;
  operand &device = to_device ? copied.c : copied.a, &host = to_device ? copied.a : copied.c;
  host.rows = host.ld = bytes;
  host.cols = 1;
  host.type = SG_DTYPE_I8;
  device = host;
  host.space = SG_MEMORY_PAGEABLE;
  schedule_builder builder({&copied, 1});
  const auto amount = static_cast<double>(bytes);
  transfers through(builder, 0, model, to_device ? pageable_bytes{amount, 0} : pageable_bytes{0, amount});
  const panel whole{{0, 1}, {0, 0, bytes, 1}};
  const device_location at{static_cast<std::int32_t>(to_device ? operand_name::c : operand_name::a), 0, 0, bytes, 0};
  if (to_device)
    through.in(operand_name::a, whole, at, {});
  else
    through.out(operand_name::c, whole, at, {});
  schedule made = builder.finish(to_device ? "staged copy in" : "staged copy out");
  made.predicted_seconds = simulate(made, model).seconds;
  made.bound_seconds = amount / (to_device ? model.link_in : model.link_out);
  return made;
}

}  // namespace sg
