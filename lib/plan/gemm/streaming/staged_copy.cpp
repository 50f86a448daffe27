// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/streaming/staged_copy.hpp"

#include "plan/gemm/streaming/transfer.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {

schedule staged_copy(std::int64_t bytes, bool to_device, const device_model &model) {
  operand host;
  host.rows = host.ld = bytes;
  host.cols = 1;
  host.type = SG_DTYPE_I8;
  operand device = host;
  host.space = SG_MEMORY_PAGEABLE;
  device.space = SG_MEMORY_DEVICE;
  schedule_builder builder;
  builder.add_parameter({to_device ? host : device, "the source"});
  builder.add_parameter({to_device ? device : host, "the destination", true});
  const auto amount = static_cast<double>(bytes);
  transfers through(builder, model, to_device ? pageable_bytes{amount, 0} : pageable_bytes{0, amount});
  const panel whole{{0, 1}, {0, 0, bytes, 1}};
  const device_location at{to_device ? staged_copy_to : staged_copy_from, 0, 0, bytes, 0};
  if (to_device)
    through.in(staged_copy_from, whole, at, {});
  else
    through.out(staged_copy_to, whole, at, {});
  schedule made = builder.finish(to_device ? "staged copy in" : "staged copy out");
  made.predicted_seconds = simulate(made, model).seconds;
  made.bound_seconds = amount / (to_device ? model.link_in : model.link_out);
  return made;
}

}  // namespace sg
