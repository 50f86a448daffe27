// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/batch.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "ops/backend_commands.hpp"
#include "plan/gemm/streaming/staged_copy.hpp"
#include "run/pipeline/moved.hpp"

namespace sg {

batch_buffers batch_sizes::at(char *begin) const noexcept {
  batch_buffers made;
  made.input = begin;
  made.outputs[0] = made.input + input;
  made.outputs[1] = made.outputs[0] + outputs[0];
  made.workspace = made.outputs[1] + outputs[1];
  return made;
}

submission batch_maker::copy(char *to, memory_space to_space, char *from, memory_space from_space, std::int64_t bytes,
                             std::string label) {
  submission made;
  made.operation = SG_OPERATION_COPY;
  made.kind = work_kind::copy;
  made.copy = backend_command<sg_backend_copy>();
  made.copy.dst = to;
  made.copy.src = from;
  made.copy.width = made.copy.dst_pitch = made.copy.src_pitch = bytes;
  made.copy.height = 1;
  made.copy.dst_space = backend_space_of(to_space);
  made.copy.src_space = backend_space_of(from_space);
  made.accesses = {{footprint::rectangle(to, bytes, 1, bytes), true, false},
                   {footprint::rectangle(from, bytes, 1, bytes), false, true}};
  made.label = std::move(label);
  const bool is_staged = to_space == SG_MEMORY_PAGEABLE || from_space == SG_MEMORY_PAGEABLE;
  made.follows_on_device = on_.orders_commands() && !is_staged;
  if (!is_staged) return made;
  const bool to_device = from_space == SG_MEMORY_PAGEABLE;
  std::shared_ptr<const program> &staged = staged_[{bytes, to_device}];
  if (!staged)
    staged = std::make_shared<program>(nullptr, plan_request(),
                                       std::make_shared<schedule>(staged_copy(bytes, to_device, model_)), model_);
  made.kind = work_kind::schedule;
  made.program = staged;
  made.operands.first.parameters[staged_copy_from].base = from;
  made.operands.first.parameters[staged_copy_to].base = to;
  return made;
}

void batch_maker::add_weights(const pipeline_stage &stage, char *buffer, batch_works &to) {
  for (std::size_t i = 0; i < stage.weights.size(); ++i) {
    const pipeline_weight &weight = stage.weights[i];
    if (weight.space == SG_MEMORY_DEVICE) continue;
    char *const at = buffer + (stage.weight_addresses[i] - stage.weights_begin);
    to.works.push_back(copy(at, SG_MEMORY_DEVICE, weight.data, weight.space, weight.bytes, "weights of " + stage.name));
    to.roles.push_back(batch_role::transfer_in);
  }
}

void batch_maker::add_taking(std::initializer_list<std::pair<char *, std::int64_t>> buffers, batch_role role,
                             batch_works &to) const {
  submission taking;
  taking.follows_on_device = on_.orders_commands();
  for (const auto &[memory, bytes] : buffers)
    if (bytes > 0) taking.accesses.push_back({footprint::rectangle(memory, bytes, 1, bytes), true, false});
  if (taking.accesses.empty()) return;
  to.works.push_back(std::move(taking));
  to.roles.push_back(role);
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
                    "%s accesses memory of %s, other than its output: a stage has the addresses of its own only",
                    stage.name.c_str(), other.name.c_str());
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
  if (const auto unwritten = first_unwritten(output, accesses, false))
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

batch_works batch_maker::make(const pipeline_memory &memory, std::int64_t number, const batch_ends &ends, bool calls) {
  const auto at = [number](const auto &list, std::int64_t index) {
    return list[static_cast<std::size_t>(index % static_cast<std::int64_t>(list.size()))];
  };
  const batch_buffers own = at(memory.batches, number);
  std::int64_t streamed = 0;
  for (const pipeline_stage &stage : stages_) streamed += stage.is_streamed();
  batch_works made;
  if (!ends.input_in_place) {
    made.works.push_back(copy(own.input, SG_MEMORY_DEVICE, ends.input, ends.input_space, input_bytes_, "input"));
    made.roles.push_back(batch_role::transfer_in);
  }
  char *input = ends.input_in_place ? ends.input : own.input;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const pipeline_stage &stage = stages_[s];
    const bool in_place = s + 1 == stages_.size() && ends.output_in_place;
    char *const output = in_place ? ends.output : own.outputs[s % 2];
    address_moves moves;
    moves.add(stage.input, stage.input_bytes, input);
    moves.add(stage.output, stage.output_bytes, output);
    moves.add(stage.workspace, stage.workspace_bytes, own.workspace);
    if (stage.weights_bytes > 0) {
      char *buffer = memory.resident[s];
      if (stage.is_streamed()) {
        buffer = at(memory.weight_buffers, number * streamed + stage.streamed_index);
        add_taking({{buffer, memory.weight_buffer_bytes}}, batch_role::transfer_in, made);
        add_weights(stage, buffer, made);
      }
      moves.add(stage.weights_begin, stage.weights_bytes, buffer);
    }
    add_taking({{output, in_place ? 0 : memory.sizes.outputs[s % 2]},
                {own.workspace, stage.workspace_bytes > 0 ? memory.sizes.workspace : 0}},
               batch_role::work, made);
    const bool asks = stage.record && calls;
    const std::vector<submission> given = asks ? stage.record(stage, number) : std::vector<submission>();
    if (asks) check(stage, given);
    for (const submission &recorded : asks ? given : stage.works) {
      made.works.push_back(moves.moved(recorded));
      if (made.works.back().label.empty()) made.works.back().label = stage.name;
      made.roles.push_back(batch_role::work);
    }
    input = output;
  }
  if (!ends.output_in_place) {
    made.works.push_back(
        copy(ends.output, ends.output_space, input, SG_MEMORY_DEVICE, stages_.back().output_bytes, "result"));
    made.roles.push_back(batch_role::transfer_out);
  }
  return made;
}

}  // namespace sg
