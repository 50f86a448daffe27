// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/copy.hpp"

#include "base/hash.hpp"
#include "ops/operation.hpp"
#include "plan/schedule/schedule_builder.hpp"
#include "plan/schedule/transfer.hpp"

namespace sg {

namespace {

// A device's engines copy between it and any other memory; within one memory the chip, or a core, copies. A copy from
// or to another device is not queued behind copies over the link to the host.
void place(const copy_form &f, command &copy) noexcept {
  const bool to_device = f.to_space == SG_MEMORY_DEVICE, from_device = f.from_space == SG_MEMORY_DEVICE;
  if (to_device == from_device) {
    copy.what = ops::copy();
    return;
  }
  if (to_device)
    copy.what = ops::copy_in();
  else
    copy.what = ops::copy_out();
  const bool is_peer = f.to_space == SG_MEMORY_PEER || f.from_space == SG_MEMORY_PEER;
  copy.where = lane(is_peer ? lane_kind::copy_peer : to_device ? lane_kind::copy_in : lane_kind::copy_out, 0);
}

schedule staged(const copy_form &f, const device_model &model) {
  const auto end = [&](memory_space space, std::int64_t pitch) {
    operand made;
    made.rows = f.width;
    made.cols = f.height;
    made.ld = pitch;
    made.type = SG_DTYPE_I8;
    made.space = space;
    return made;
  };
  schedule_builder builder;
  builder.add_parameter({end(f.to_space, f.to_pitch), "the destination", true});
  builder.add_parameter({end(f.from_space, f.from_pitch), "the source"});
  const bool to_device = f.to_space == SG_MEMORY_DEVICE;
  const auto amount = static_cast<double>(f.width) * static_cast<double>(f.height);
  transfers through(builder, model, to_device ? pageable_bytes{amount, 0} : pageable_bytes{0, amount});
  const panel whole{{0, 1}, {0, 0, f.width, f.height}};
  const device_location at{to_device ? copy_form::to : copy_form::from, 0, 0, to_device ? f.to_pitch : f.from_pitch, 0};
  if (to_device)
    through.in(copy_form::from, whole, at, {});
  else
    through.out(copy_form::to, whole, at, {});
  schedule made = builder.finish(to_device ? "staged copy in" : "staged copy out");
  made.bound_seconds = amount / (to_device ? model.link_in : model.link_out);
  return made;
}

}  // namespace

schedule plan_of(const copy_form &f, const plan_terms &terms) {
  if (f.staged) return staged(f, terms.model);
  schedule made;
  made.strategy = "copy";
  command copy;
  place(f, copy);
  const auto add = [&](copy_form::parameter index, memory_space space, std::int64_t pitch, const char *name) {
    buffer parameter;
    parameter.type = SG_DTYPE_I8;
    parameter.space = space;
    parameter.bytes = (f.height - 1) * pitch + f.width;
    parameter.parameter = static_cast<std::int32_t>(index);
    parameter.name = name;
    made.buffers.push_back(parameter);
    copy.views[index] = view{static_cast<std::int32_t>(index), 0, 1, 0, pitch, f.width, f.height};
  };
  add(copy_form::to, f.to_space, f.to_pitch, "the destination");
  add(copy_form::from, f.from_space, f.from_pitch, "the source");
  set_access_modes(copy);
  made.lanes[static_cast<int>(copy.where.kind)] = 1;
  made.commands.push_back(copy);
  const command_cost cost = operation_of(copy).cost(terms.model, made.buffers, copy);
  const double rate = cost.one_way > 0 ? cost.one_way : 1;  // none: the amount is in seconds
  made.predicted_seconds = cost.delay_idle + cost.amount / rate;
  made.bound_seconds = cost.amount / rate;
  const bytes_moved moved = bytes_moved_by(made.buffers, copy);
  made.bytes_in = moved.in;
  made.bytes_out = moved.out;
  made.bytes_peer = moved.peer;
  return made;
}

std::uint64_t hash_of(const copy_form &f) noexcept {
  hasher mixed;
  mixed << f.width << f.height << f.to_pitch << f.from_pitch
        << (std::int64_t{f.to_space.bits()} << 32 | std::int64_t{f.from_space.bits()}) << std::int64_t{f.staged};
  return mixed.value();
}

std::string description_of(const copy_form &f) {
  return "copy of " + std::to_string(f.height) + " x " + std::to_string(f.width) + " bytes";
}

}  // namespace sg
