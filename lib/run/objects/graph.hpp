// SPDX-License-Identifier: Apache-2.0
// A graph: submissions recorded to run together. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/object.hpp"
#include "run/objects/graph_program.hpp"
#include "run/order/job_sink.hpp"

namespace sg {

class graph final : public object {
 public:
  // `records_only`: a pipeline runs what is recorded.
  explicit graph(ref<job_sink> owner, bool records_only = false) noexcept
      : object(object_type::graph), owner_(std::move(owner)), records_only_(records_only) {}

  job_sink &owner() const noexcept { return *owner_; }
  bool records_only() const noexcept { return records_only_; }
  std::int32_t size() const noexcept;
  void record(submission &&work);  // Throws std::bad_alloc, or sg::error(SG_STATUS_BUSY) after the first run.
  // The submission with that index, which exists. replace() keeps its stream, priority, units, partition, label,
  // trace_id, whether it is tracked, and what its function uses.
  submission at(std::int32_t index) const;
  void replace(std::int32_t index, submission &&work);
  // All submissions; nothing more can be recorded until reopen().
  std::vector<submission> finish();
  void reopen() noexcept;
  // Submits a run; `parent` completes after all of its children. Throws as job_sink::submit does.
  void run(const ref<job> &parent, submission_order order);

 private:
  std::shared_ptr<const graph_program> prepared();
  std::vector<submission> copies() const;  // with pointer arrays of their own

  const ref<job_sink> owner_;
  const bool records_only_;
  mutable std::mutex lock_;
  std::vector<submission> works_;
  std::shared_ptr<const graph_program> program_;  // of works_; empty after a change
  bool has_run_ = false;
};

}  // namespace sg
