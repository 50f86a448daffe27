// SPDX-License-Identifier: Apache-2.0
#include "run/objects/graph.hpp"

#include "base/error.hpp"

namespace sg {

std::int32_t graph::size() const noexcept {
  const std::lock_guard lock(lock_);
  return static_cast<std::int32_t>(works_.size());
}

void graph::record(submission &&work) {
  const std::lock_guard lock(lock_);
  if (has_run_)
    throw error(SG_STATUS_BUSY, "the graph has run%s; nothing more can be recorded into it",
                records_only_ ? " as a stage of a pipeline" : "");
  if (works_.size() == INT32_MAX) throw std::bad_alloc();
  works_.push_back(std::move(work));
  program_.reset();
}

submission graph::at(std::int32_t index) const {
  const std::lock_guard lock(lock_);
  return works_[static_cast<std::size_t>(index)];
}

void graph::replace(std::int32_t index, submission &&work) {
  const std::lock_guard lock(lock_);
  submission &recorded = works_[static_cast<std::size_t>(index)];
  work.stream = recorded.stream;
  work.priority = recorded.priority;
  work.units = recorded.units;
  work.partition_stream = recorded.partition_stream;
  work.tracked = recorded.tracked;
  work.label = std::move(recorded.label);
  work.trace_id = recorded.trace_id;
  work.kept = std::move(recorded.kept);
  recorded = std::move(work);
  program_.reset();
}

std::vector<submission> graph::copies() const {
  std::vector<submission> works;
  works.reserve(works_.size());
  for (const submission &work : works_) {
    works.push_back(work);
    works.back().operands = work.operands.copy();
  }
  return works;
}

std::vector<submission> graph::finish() {
  const std::lock_guard lock(lock_);
  has_run_ = true;
  return copies();
}

void graph::reopen() noexcept {
  const std::lock_guard lock(lock_);
  has_run_ = false;
}

std::shared_ptr<const graph_program> graph::prepared() {
  const std::lock_guard lock(lock_);
  if (records_only_)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@graph is a stage of a pipeline, which runs it for each batch");
  has_run_ = true;
  if (program_) return program_;
  auto made = std::make_shared<graph_program>(copies());
  if (owner_->on().orders_commands()) {
    std::vector<arena_pool *> memory(owner_->devices().size(), nullptr);
    for (std::size_t i = 0; i < memory.size(); ++i)
      if (made->device_bits_of_all() >> i & 1) memory[i] = &owner_->device_memory(device_index(i));
    made->put_on(memory);
  }
  program_ = made;
  return made;
}

void graph::run(const ref<job> &parent, submission_order order) {
  const auto program = prepared();
  parent->graph = program;
  if (!program->device) return owner_->submit_children(parent, order, *program);
  parent->give_work(program->launch);
  parent->follows_on_device = !program->launch->is_spread();
  owner_->submit(parent, order, program->accesses_of_all.data(), program->accesses_of_all.size());
}

}  // namespace sg
