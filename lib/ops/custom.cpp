// SPDX-License-Identifier: Apache-2.0
#include "ops/custom.hpp"

#include <algorithm>
#include <type_traits>

#include "ops/binding.hpp"
#include "ops/command.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::custom;

static_assert(custom::most_operands <= command::most_views);
static_assert(custom::most_operands == std::extent_v<decltype(sg_backend_custom::operands)>);

access_mode access(const command &c, std::size_t view) { return c.as<custom>()->modes[view]; }

const char *defect(const buffer_list &, const command &c) {
  if (!c.views[0].exists()) return "a custom operation has an operand";
  for (const accessed_view &each : c.views)
    if (each.exists() && (each.items != 1 || each.cols != 1))
      return "an operand of a custom operation is not contiguous";
  return nullptr;
}

// All units unless it says otherwise: nothing is known of the function.
double share_of_chip(const device_model &model, std::int32_t units) {
  if (model.lanes_are_cores || units < 0) return 0;
  return units > 0 ? std::min(1.0, double(units) / double(model.units)) : 1;
}

command_cost cost(const device_model &model, const buffer_list &, const command &c) {
  double bytes = 0;
  for (const accessed_view &each : c.views)
    if (each.exists()) bytes += double(each.rows) * (each.mode == access_mode::read_write ? 2 : 1);
  command_cost made = memory_bound_cost(model, bytes);
  const custom &own = *c.as<custom>();
  if (own.expected_seconds > 0) {
    made.amount = own.expected_seconds;
    made.memory_share = 0;
  }
  made.chip_share = share_of_chip(model, own.compute_units);
  return made;
}

std::string describe(const buffer_list &, const command &) { return "custom"; }

sg_status run(const void *what, void *native_stream, void *const *operands, std::int32_t operand_count, char *message) {
  const custom &own = *static_cast<const custom *>(what);
  return own.call(own, native_stream, operands, operand_count, message);
}

void lower(const buffer_list &buffers, const command &c, const binding &where, backend_commands &out) {
  const custom &own = *c.as<custom>();
  auto made = backend_command<sg_backend_custom>();
  made.run = run;
  made.what = &own;
  made.seconds = own.expected_seconds;
  made.compute_units = own.compute_units;
  for (const accessed_view &each : c.views) {
    if (!each.exists()) continue;
    made.operands[made.operand_count] = address_of(buffers, each, where, each.item);
    made.bytes[made.operand_count++] = static_cast<std::uint64_t>(each.rows);
  }
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_custom>(command);
  double bytes = 0;
  for (std::int32_t i = 0; i < x.operand_count; ++i) bytes += double(x.bytes[i]);
  return model.launch_gap + (x.seconds > 0 ? x.seconds : memory_bound_kernel(model, bytes).seconds);
}

}  // namespace

constinit const operation ops::custom::entry{"custom",          access, defect, cost, describe, lower,
                                             SG_BACKEND_CUSTOM, seconds};

}  // namespace sg
