// SPDX-License-Identifier: Apache-2.0
#include "run/program/program.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "ops/backend_commands.hpp"
#include "plan/gemm/resident/latency_parts.hpp"
#include "plan/schedule/lanes.hpp"
#include "plan/schedule/out_of_order_copies.hpp"
#include "run/program/batching.hpp"

namespace sg {

namespace {
// A command of this length gains nothing from being queued behind another when a lane is about to become free.
constexpr double long_command_seconds = 100e-6;
// A GEMM of this length gains from a batch: less than a launch on a GPU, or the cost of some calls on a core.
constexpr double small_gemm_seconds = 50e-6;
// A GEMM of this length may run on the waiting thread.
constexpr double short_gemm_seconds = 1e-3;
// A GEMM of this length may run on all cores.
constexpr double short_parts_seconds = 10e-3;
// Copies and kernels of this length together do not hold up what else a lane has to do.
constexpr double short_chain_seconds = 500e-6;
// Limit of prepared calls of a plan, of some 300 bytes each.
constexpr std::size_t most_prepared = 4096;

bool computes_by(const command &c) noexcept { return !is_copy(c) && !c.is<ops::marker>() && !c.is<ops::graph>(); }

bool copies_pageable_memory(const schedule &s) {
  const auto is_pageable = [&](const view &end) { return buffer_of(s.buffers, end).space == SG_MEMORY_PAGEABLE; };
  const command &only = s.commands[0];
  return is_copy(only) && (is_pageable(destination_of(only)) || is_pageable(source_of(only)));
}

// Whether no two commands of the device could overlap, so that lanes of their own are worth nothing. Of longer ones the
// lane would be missed by others.
bool follow_one_another(const schedule &s) {
  if (!(s.predicted_seconds < short_chain_seconds)) return false;
  std::uint32_t latest = UINT32_MAX;
  bool changes_lane = false;
  for (std::uint32_t i = 0; i < s.commands.size(); ++i) {
    const command &c = s.commands[i];
    if (!on_device(c.where)) continue;
    if (latest != UINT32_MAX && !(s.commands[latest].where == c.where)) {
      const auto first = s.waits.begin() + c.first_wait;
      if (s.commands[latest].where.device != c.where.device) return false;
      if (std::find(first, first + c.waits, latest) == first + c.waits) return false;
      changes_lane = true;
    }
    latest = i;
  }
  return changes_lane;
}

// Tiles of C that the multiprocessors of a chip share; kernels for fewer multiprocessors use smaller tiles.
constexpr std::int64_t tile = 128;

float share_of(const command &c, const device_model &model) noexcept {
  const auto tiles = [](std::int64_t size) { return std::ceil(double(size) / double(tile)); };
  const ops::gemm &gemm = *c.as<ops::gemm>();
  return static_cast<float>(
      std::min(1.0, tiles(gemm.m) * tiles(gemm.n) * double(c.views[gemm.c].items) / double(std::max(1, model.units))));
}
}  // namespace

// Finds independent GEMMs. A command lists its dependencies, except the implied order of its lane: pieces of one sum
// follow each other.
void program::find_batchable(const device_model &model) {
  const auto &commands = schedule->commands;
  std::vector<float> seconds(commands.size(), 0);
  std::map<std::tuple<std::int32_t, std::int64_t, std::int64_t>, std::uint32_t> sums;  // first GEMM of each
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const command &c = commands[i];
    if (!c.is<ops::gemm>() || c.waits > 0 || has_pointer_arrays(schedule->buffers, c)) continue;
    const double alone = gemm_seconds(model, shape_of_gemm(schedule->buffers, c));
    if (alone < small_gemm_seconds) seconds[i] = static_cast<float>(alone);
  }
  for (std::uint32_t i = 0; i < commands.size(); ++i) {
    const command &c = commands[i];
    if (!c.is<ops::gemm>()) continue;
    const view &sum = c.views[ops::gemm::c];
    const auto [first, fresh] = sums.emplace(std::tuple(sum.buffer, sum.item, sum.offset), i);
    if (!fresh) seconds[i] = seconds[first->second] = 0;
  }
  for (const std::uint32_t before : schedule->waits) seconds[before] = 0;
  leave_unbatched(model, seconds);
  if (std::count_if(seconds.begin(), seconds.end(), [](float s) { return s > 0; }) < 2) return;
  batchable = std::move(seconds);
  if (commands.size() > most_prepared) return;
  binding nowhere;
  for (const command &each : commands)
    nowhere.more_scalars.resize(std::max(nowhere.more_scalars.size(), static_cast<std::size_t>(each.group)));
  for (const buffer &each : schedule->buffers)
    if (each.kind == buffer_kind::parameter) nowhere.set_parameter(static_cast<std::size_t>(each.parameter));
  for (std::uint32_t i = 0; i < commands.size(); ++i)
    if (batchable[i] > 0) prepare_call(i, nowhere);
}

// Clears the seconds of GEMMs that are faster unbatched.
void program::leave_unbatched(const device_model &model, std::vector<float> &seconds) const {
  std::vector<std::size_t> all, least(seconds.size());
  const auto shape = [&](std::size_t i) { return shape_of_gemm(schedule->buffers, schedule->commands[i]); };
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (seconds[i] == 0) continue;
    all.push_back(i);
    least[i] = sg::min_batch_size(model, shape(i));
  }
  const auto kind = [&](std::size_t i) {
    const gemm_shape it = shape(i);
    return std::tuple(it.in_type, it.out_type, it.compute);
  };
  for (const std::size_t i : unbatched_items(std::move(all), kind, [&](std::size_t x) { return least[x]; }))
    seconds[i] = 0;
}

program::program(std::shared_ptr<const form> planned, const plan_request &requested,
                 std::shared_ptr<const sg::schedule> made, const device_model &model)
    : what(std::move(planned)),
      request(requested),
      schedule(std::move(made)),
      devices(devices_of(*schedule)),
      after(*schedule),
      needs_event(schedule->commands.size(), false),
      is_out_of_order(out_of_order_copies(*schedule)) {
  const auto &commands = schedule->commands;
  if (devices.size() <= 1) arenas.push_back({schedule->device_bytes, schedule->staging_bytes});
  for (std::size_t i = 0; devices.size() > 1 && i < devices.size(); ++i)
    arenas.push_back({arena_bytes_of(*schedule, devices[i], buffer_kind::device),
                      arena_bytes_of(*schedule, devices[i], buffer_kind::staging)});
  in_one_lane = !model.unified_memory && follow_one_another(*schedule);
  std::size_t of_device = 0;
  for (std::uint32_t i = 0; i < commands.size(); ++i) {
    const command &c = commands[i];
    if (!on_device(c.where)) continue;
    ++of_device;
    const lane where = in_one_lane ? lane{lane_kind::compute, 0, c.where.device} : c.where;
    auto list = std::find_if(lanes.begin(), lanes.end(), [&](const lane_list &l) { return l.where == where; });
    if (list == lanes.end()) list = lanes.insert(lanes.end(), lane_list{where, {}});
    list->commands.push_back(i);
    if (in_one_lane) continue;
    for (std::uint32_t w = 0; w < c.waits; ++w) {
      const std::uint32_t before = schedule->waits[c.first_wait + w];
      if (on_device(commands[before].where) && !(commands[before].where == c.where)) needs_event[before] = true;
    }
  }
  if (is_single()) computes = computes_by(commands[0]);
  may_follow = is_single() ? !copies_pageable_memory(*schedule)
                           : std::all_of(commands.begin(), commands.end(),
                                         [](const command &c) { return c.where.kind == lane_kind::compute; });
  // Commands that the planner split off one problem must stay separate.
  if (what && what->gemms().problems > 1) find_batchable(model);
  const double lane_seconds = schedule->predicted_seconds * static_cast<double>(lanes.size());
  wants_core = computes && lane_seconds > long_command_seconds * static_cast<double>(of_device);
  if (has_latency_parts()) {
    short_here = schedule->predicted_seconds < short_parts_seconds;
    one_call = !wants_core;
    if (one_call) {
      batchable.assign(commands.size(), static_cast<float>(lane_seconds / static_cast<double>(of_device)));
      wants_core = lane_seconds > long_command_seconds;
    }
  }
  // Batches are of GEMMs with the first scalars.
  if (!is_single() || !commands[0].is<ops::gemm>() || commands[0].group != 0) return;
  const command &gemm_command = commands[0];
  const ops::gemm &gemm = *gemm_command.as<ops::gemm>();
  in_type = type_of(schedule->buffers, gemm_command.views[gemm.a]);
  out_type = type_of(schedule->buffers, gemm_command.views[gemm.c]);
  compute = gemm.compute;
  share = share_of(gemm_command, model);
  items = gemm_command.views[gemm.c].items;
  work_seconds = std::max(0.0, schedule->predicted_seconds - model.launch_latency);
  const bool scattered = has_pointer_arrays(schedule->buffers, gemm_command);
  short_here = !scattered && schedule->predicted_seconds < short_gemm_seconds;
  small = !scattered && schedule->predicted_seconds < small_gemm_seconds;
  if (!small) return;
  min_batch_size = sg::min_batch_size(model, shape_of_gemm(schedule->buffers, gemm_command));
  prepare_call(0, {});
}

std::shared_ptr<const program> program::of_command(const payload &what, const char *strategy,
                                                   std::vector<device_index> on) {
  auto made = std::make_shared<sg::schedule>();
  made->strategy = strategy;
  command &only = made->commands.emplace_back();
  only.what = what;
  only.where.device = on.front();
  made->lanes[static_cast<int>(lane_kind::compute)] = 1;
  auto whole = std::make_shared<program>(nullptr, plan_request(), std::move(made), device_model());
  whole->arenas.resize(on.size());
  whole->devices = std::move(on);
  return whole;
}

// Whether the schedule is a latency_parts() split, and not one for throughput.
bool program::has_latency_parts() const noexcept {
  const auto &commands = schedule->commands;
  return request.latency && commands.size() > 1 && commands.size() <= static_cast<std::size_t>(most_latency_parts) &&
         schedule->waits.empty() && schedule->device_bytes == 0 &&
         std::all_of(commands.begin(), commands.end(),
                     [](const command &c) { return c.is<ops::gemm>() && c.as<ops::gemm>()->beta != scalar_role::one; });
}

void program::prepare_call(std::uint32_t index, const binding &nowhere) {
  const command &gemm_command = schedule->commands[index];
  const ops::gemm &gemm = *gemm_command.as<ops::gemm>();
  if (gemm.alpha == scalar_role::conjugate) return;
  call_template made{};
  const std::size_t views[] = {gemm.a, gemm.b, gemm.c, gemm.bias};
  for (std::size_t i = 0; i < std::size(views); ++i) {
    const view &v = gemm_command.views[views[i]];
    if (!v.exists()) continue;
    if (buffer_of(schedule->buffers, v).kind != buffer_kind::parameter || v.item != 0 || v.offset != 0) return;
    made.parameters[i] = static_cast<std::uint32_t>(buffer_of(schedule->buffers, v).parameter);
  }
  pointer_scratch unused;
  made.group = gemm_command.group;
  made.form = lower_gemm(schedule->buffers, gemm_command, nowhere, unused);
  made.own_alpha = gemm.alpha == scalar_role::job;
  made.own_beta = gemm.beta == scalar_role::job;
  made.has_bias = gemm_command.views[gemm.bias].exists();
  calls_.resize(schedule->commands.size());
  calls_[index] = made;
}

}  // namespace sg
