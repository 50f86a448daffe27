// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/batch.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "plan/layers/copy.hpp"
#include "plan/planner.hpp"

namespace sg {

namespace {

// The buffers of a batch: any memory (batch_work::any_memory), these, and those of each stage.
enum batch_buffer : std::uint32_t { given_input = 1, given_output, own_input, first_of_stages };
enum stage_buffer : std::uint32_t { input, output, workspace, stage_weights, buffers_of_stage };

std::uint32_t buffer_of(const pipeline_stage &stage, stage_buffer which) noexcept {
  return first_of_stages + static_cast<std::uint32_t>(stage.index) * buffers_of_stage + which;
}

}  // namespace

batch_buffers batch_sizes::at(char *begin) const noexcept {
  batch_buffers made;
  made.input = begin;
  made.outputs[0] = made.input + input;
  made.outputs[1] = made.outputs[0] + outputs[0];
  made.workspace = made.outputs[1] + outputs[1];
  return made;
}

std::shared_ptr<const program> batch_maker::copy_program(const copy_form &wanted, const plan_request &request) {
  const form_of what(wanted);
  for (const auto &known : copies_)
    if (known->request == request && *known->what == what) return known;
  copies_.push_back(std::make_shared<sg::program>(what.share(), request, make_plan(what, machine_, request),
                                                  machine_.device(request.device)));
  return copies_.back();
}

submission batch_maker::copy(char *to, memory_space to_space, char *from, memory_space from_space, std::int64_t bytes,
                             std::string label) {
  submission made;
  made.operation = SG_OPERATION_COPY;
  made.accesses = {{footprint::rectangle(to, bytes, 1, bytes), true, false},
                   {footprint::rectangle(from, bytes, 1, bytes), false, true}};
  made.label = std::move(label);
  const plan_request request{.device = to_space == SG_MEMORY_DEVICE ? to_space.device() : from_space.device()};
  copy_form wanted{.width = bytes,
                   .to_pitch = bytes,
                   .from_pitch = bytes,
                   .to_space = memory_.seen_from(request.device, to_space),
                   .from_space = memory_.seen_from(request.device, from_space)};
  wanted.staged = to_space == SG_MEMORY_PAGEABLE || from_space == SG_MEMORY_PAGEABLE;
  made.program = copy_program(wanted, request);
  made.follows_on_device = home_.on(request.device).orders_commands() && made.program->may_follow;
  made.operands.first.parameters[copy_form::to].base = to;
  made.operands.first.parameters[copy_form::from].base = from;
  return made;
}

void batch_maker::add_copy(placed to, memory_space to_space, placed from, memory_space from_space, std::int64_t bytes,
                           std::string label, batch_role role, work_list &list) {
  static_assert(copy_form::to == 0 && copy_form::from == 1);
  list.push_back(std::make_shared<batch_work>(
      copy(to.offset, to_space, from.offset, from_space, bytes, std::move(label)),
      std::initializer_list<std::uint32_t>{to.buffer, from.buffer}, std::vector{to.buffer, from.buffer}, role));
}

// Stages of one device may have inputs of different sizes in one buffer.
void batch_maker::add_input(const pipeline_stage &stage, placed from, memory_space from_space,
                            const pipeline_memory &memory, work_list &to) {
  const batch_role role = stage.index == 0 ? batch_role::transfer_in : batch_role::transfer_between_devices;
  const std::uint32_t at = stage.index == 0 ? std::uint32_t{own_input} : buffer_of(stage, input);
  const std::int64_t whole = memory.devices.at(stage.device).sizes.batch.input;
  if (stage.input_bytes < whole) add_taking(stage.device, {{at, whole}}, role, to);
  add_copy({at, nullptr}, memory_space::of_device(stage.device), from, from_space, stage.input_bytes,
           stage.index == 0 ? "input" : "input of " + stage.name, role, to);
}

void batch_maker::add_taking(device_index device, std::initializer_list<std::pair<std::uint32_t, std::int64_t>> buffers,
                             batch_role role, work_list &to) const {
  submission taking;
  taking.device = device;
  taking.follows_on_device = home_.on(device).orders_commands();
  std::vector<std::uint32_t> taken;
  for (const auto &[buffer, bytes] : buffers) {
    if (bytes == 0) continue;
    taking.accesses.push_back({footprint::rectangle(nullptr, bytes, 1, bytes), true, false});
    taken.push_back(buffer);
  }
  if (taken.empty()) return;
  to.push_back(
      std::make_shared<batch_work>(std::move(taking), std::initializer_list<std::uint32_t>{}, std::move(taken), role));
}

void batch_maker::require_own_addresses(const pipeline_stage &stage, const std::vector<submission> &works) const {
  const auto inside = [](const footprint &bytes, const char *first, std::int64_t size) {
    const auto lo = reinterpret_cast<std::uintptr_t>(first);
    return bytes.lo >= lo && bytes.hi <= lo + static_cast<std::uintptr_t>(size);
  };
  for (const submission &work : works)
    for (const access &each : work.accesses) {
      if (inside(each.bytes, stage.input, stage.input_bytes) || inside(each.bytes, stage.output, stage.output_bytes) ||
          inside(each.bytes, stage.workspace, stage.workspace_bytes) ||
          inside(each.bytes, stage.weights_begin, stage.weights_bytes))
        continue;
      for (const pipeline_stage &other : stages_) {
        const auto first = reinterpret_cast<std::uintptr_t>(other.reserved->begin());
        if (each.bytes.hi <= first || each.bytes.lo >= first + static_cast<std::uintptr_t>(other.reserved->size()))
          continue;
        if (&other == &stage)
          throw error(SG_STATUS_INVALID_ARGUMENT, "%s accesses memory beyond the ends of its buffers",
                      stage.name.c_str());
        throw error(SG_STATUS_INVALID_ARGUMENT,
                    "%s accesses memory of %s, %s: a stage has the addresses of its own only", stage.name.c_str(),
                    other.name.c_str(),
                    machine_.devices.size() > 1 ? "which may be on another device" : "other than its output");
      }
      const auto range =
          process_ranges::find(reinterpret_cast<const void *>(each.bytes.lo), each.bytes.hi - each.bytes.lo);
      if (range && range->kind == range_kind::stage)
        throw error(SG_STATUS_INVALID_ARGUMENT, "%s accesses memory of a stage of another pipeline",
                    stage.name.c_str());
    }
}

void batch_maker::require_output(const pipeline_stage &stage, const std::vector<submission> &works) const {
  std::vector<access> accesses;
  for (const submission &work : works) accesses.insert(accesses.end(), work.accesses.begin(), work.accesses.end());
  const auto output = footprint::rectangle(stage.output, stage.output_bytes, 1, stage.output_bytes);
  if (const auto unwritten = first_unwritten(output, accesses))
    throw error(
        SG_STATUS_INVALID_ARGUMENT,
        "%s has %zu operations, and none writes byte %llu of its output of %lld bytes: it would have the value of "
        "another batch",
        stage.name.c_str(), works.size(), static_cast<unsigned long long>(*unwritten - output.lo),
        static_cast<long long>(stage.output_bytes));
}

void batch_maker::check(const pipeline_stage &stage, const std::vector<submission> &works) const {
  require_own_addresses(stage, works);
  require_output(stage, works);
}

work_list batch_maker::works_of(const pipeline_stage &stage, std::vector<submission> recorded) const {
  check(stage, recorded);
  const buffer_range ranges[] = {{stage.input, stage.input_bytes, buffer_of(stage, input)},
                                 {stage.output, stage.output_bytes, buffer_of(stage, output)},
                                 {stage.workspace, stage.workspace_bytes, buffer_of(stage, workspace)},
                                 {stage.weights_begin, stage.weights_bytes, buffer_of(stage, stage_weights)}};
  work_list made;
  for (submission &each : recorded) {
    if (each.label.empty()) each.label = stage.name;
    made.push_back(std::make_shared<batch_work>(std::move(each), ranges));
  }
  return made;
}

bool batch_maker::can_move(const pipeline_stage &stage, const std::vector<submission> &recorded) const {
  const auto is_in_place = [](const pipeline_weight &each) { return each.in_place; };
  if (std::any_of(stage.weights.begin(), stage.weights.end(), is_in_place)) return false;
  const auto is_own = [&](const char *address) {
    const char *const first = stage.reserved->begin();
    return address >= first && address < first + stage.reserved->size();
  };
  return std::all_of(recorded.begin(), recorded.end(), [&](const submission &work) {
    if (!work.program) return true;
    if (!work.program->what || work.program->is_spread() || work.partition_stream) return false;
    if (work.operation == SG_OPERATION_CUSTOM) return false;
    return std::all_of(work.accesses.begin(), work.accesses.end(), [&](const access &each) {
      const auto *const first = reinterpret_cast<const char *>(each.bytes.lo);
      if (is_own(first)) return true;
      const memory_space space = memory_.of(first, each.bytes.hi - each.bytes.lo);
      return space != SG_MEMORY_DEVICE && space != SG_MEMORY_PEER;
    });
  });
}

void batch_maker::place(std::deque<pipeline_stage> &stages, const std::vector<device_index> &devices) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    pipeline_stage &stage = stages[s];
    stage.device = devices[s];
    stage.receives_input = s == 0 || stages[s - 1].device != stage.device;
    if (stage.works_by_device.count(stage.device) == 0) {
      work_list moved;
      for (const auto &each : stage.works_by_device.at(stage.recorded_device))
        moved.push_back(each->on(stage.device, home_));
      stage.works_by_device[stage.device] = std::move(moved);
    }
  }
}

bool batch_maker::calls_functions() const noexcept {
  return std::any_of(stages_.begin(), stages_.end(), [](const pipeline_stage &each) { return bool(each.record); });
}

std::shared_ptr<const batch_program> batch_maker::program(const pipeline_memory &memory, const batch_ends &ends,
                                                          weights_source source, std::optional<std::int64_t> number) {
  work_list made;
  std::vector<std::size_t> stage_ends;
  if (!ends.input_in_place) add_input(stages_.front(), {given_input, nullptr}, ends.input_space, memory, made);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const pipeline_stage &stage = stages_[s];
    const device_sizes &sizes = memory.devices.at(stage.device).sizes;
    const bool in_place = s + 1 == stages_.size() && ends.output_in_place;
    if (stage.is_streamed() && source == weights_source::own) {
      add_taking(stage.device, {{buffer_of(stage, stage_weights), sizes.weight_buffer_bytes}}, batch_role::transfer_in,
                 made);
      add_weights(stage, {stage.device}, {buffer_of(stage, stage_weights)}, made);
    }
    if (s > 0 && stage.receives_input)
      add_input(stage, {buffer_of(stages_[s - 1], output), nullptr}, memory_space::of_device(stages_[s - 1].device),
                memory, made);
    add_taking(stage.device,
               {{buffer_of(stage, output), in_place ? 0 : sizes.batch.outputs[s % 2]},
                {buffer_of(stage, workspace), stage.workspace_bytes > 0 ? sizes.batch.workspace : 0}},
               batch_role::work, made);
    const bool asks = stage.record && number;
    const work_list given = asks ? works_of(stage, stage.record(stage, *number)) : work_list();
    const work_list &works = asks ? given : stage.works();
    made.insert(made.end(), works.begin(), works.end());
    if (s + 1 == stages_.size() && !ends.output_in_place)
      add_copy({given_output, nullptr}, ends.output_space, {buffer_of(stage, output), nullptr},
               memory_space::of_device(stage.device), stage.output_bytes, "result", batch_role::transfer_out, made);
    stage_ends.push_back(made.size());
  }
  const auto program = std::make_shared<batch_program>(std::move(made), std::move(stage_ends));
  for (const pipeline_stage &stage : stages_) program->keep(stage.kept);
  return program;
}

batch_addresses batch_maker::addresses(const pipeline_memory &memory, const batch_ends &ends, std::int64_t turn) const {
  batch_addresses made(first_of_stages + stages_.size() * buffers_of_stage, nullptr);
  made[given_input] = ends.input;
  made[given_output] = ends.output;
  made[own_input] = memory.devices.at(stages_.front().device).of_batch(turn).input;
  char *latest = nullptr;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const pipeline_stage &stage = stages_[s];
    const pipeline_memory::of_device &there = memory.devices.at(stage.device);
    const batch_buffers &own = there.of_batch(turn);
    if (stage.receives_input) latest = s == 0 && ends.input_in_place ? ends.input : own.input;
    made[buffer_of(stage, input)] = latest;
    latest = s + 1 == stages_.size() && ends.output_in_place ? ends.output : own.outputs[s % 2];
    made[buffer_of(stage, output)] = latest;
    made[buffer_of(stage, workspace)] = own.workspace;
    made[buffer_of(stage, stage_weights)] = there.weights_of(stage, turn);
  }
  return made;
}

}  // namespace sg
