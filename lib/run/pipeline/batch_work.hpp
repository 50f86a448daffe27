// SPDX-License-Identifier: Apache-2.0
// A submission of a batch without addresses: each one is an offset in one of the batch's buffers, which is found when
// the submission is recorded. A batch is a vector of addresses, one for each buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "run/objects/submission_list.hpp"
#include "run/program/device_graph.hpp"

namespace sg {

using batch_addresses = std::vector<char *>;

enum class batch_role : std::uint8_t { transfer_in, work, transfer_between_devices, transfer_out };

// An offset is kept where an address was.
inline char *offset_of(std::int64_t bytes) noexcept { return reinterpret_cast<char *>(bytes); }

// Recorded addresses that stand for a buffer.
struct buffer_range {
  const char *begin = nullptr;
  std::int64_t bytes = 0;
  std::uint32_t buffer = 0;
};

class batch_work {
 public:
  static constexpr std::uint32_t any_memory = 0;  // the buffer at address 0, for memory that all batches use

  batch_work(submission recorded, std::span<const buffer_range> ranges);
  // With the buffers of its first parameters, and of its accesses, which have offsets instead of addresses.
  batch_work(submission made, std::initializer_list<std::uint32_t> parameters, std::vector<std::uint32_t> accesses,
             batch_role in);

  // The same on another device.
  std::shared_ptr<const batch_work> on(device_index device, job_home &home) const;

  const submission &recorded() const noexcept { return recorded_; }
  batch_role role() const noexcept { return role_; }
  binding operands(const batch_addresses &at) const;
  std::span<const access> accesses(const batch_addresses &at, std::vector<access> &room) const;
  submission with(const batch_addresses &at) const;
  // Calls each(footprint, writes) for accesses of memory that is not the batch's.
  template <class Each>
  void each_other_access(Each &&each) const {
    for (std::size_t i = 0; i < of_accesses_.size(); ++i)
      if (of_accesses_[i] == any_memory) each(recorded_.accesses[i].bytes, recorded_.accesses[i].writes);
  }

 private:
  static constexpr std::uint32_t no_buffer = UINT32_MAX;  // of a parameter that is not bound

  submission recorded_;                     // with offsets
  std::vector<std::uint32_t> of_operands_;  // the buffer of each parameter, then of each pointer of an array
  std::vector<std::uint32_t> of_accesses_;  // likewise
  batch_role role_ = batch_role::work;
};

using work_list = std::vector<std::shared_ptr<const batch_work>>;

// What batches submit, whose ends are in the same memory spaces; or the copies of streamed weights that batches share.
struct batch_program : recorded_graph {
  batch_program(work_list made, std::vector<std::size_t> ends_of_stages);
  const work_list works;
  const std::vector<std::size_t> stage_ends;  // one past the last of each stage's
};

// A batch, or the weights of several, with its addresses.
struct pipeline_batch {
  std::shared_ptr<const batch_program> program;
  batch_addresses addresses;
};

// Batches that are submitted together, each a run of its own: by rounds, and within a round stage by stage.
class batch_list final : public submission_list {
 public:
  // Weights that the batches of the round share are the last run of it, whose copies for a stage come before the work
  // of that stage.
  void add_round(std::vector<pipeline_batch> batches, bool last_are_weights);

  std::size_t runs() const noexcept { return runs_.size(); }
  std::shared_ptr<const recorded_graph> totals() const;  // of all runs
  std::size_t size() const noexcept override { return order_.size(); }
  const submission &at(std::size_t index) const noexcept override { return work(index).recorded(); }
  binding operands(std::size_t index) const override { return work(index).operands(addresses_of(index)); }
  std::span<const access> accesses(std::size_t index, std::vector<access> &room) const override {
    return work(index).accesses(addresses_of(index), room);
  }
  std::size_t run_of(std::size_t index) const noexcept override { return order_[index].run; }
  batch_role role(std::size_t index) const noexcept { return work(index).role(); }
  submission with_addresses(std::size_t index) const { return work(index).with(addresses_of(index)); }

 private:
  struct place {
    std::uint32_t run, index;
  };
  const batch_work &work(std::size_t index) const noexcept {
    return *runs_[order_[index].run].program->works[order_[index].index];
  }
  const batch_addresses &addresses_of(std::size_t index) const noexcept { return runs_[order_[index].run].addresses; }

  std::vector<pipeline_batch> runs_;
  std::vector<place> order_;
};

}  // namespace sg
