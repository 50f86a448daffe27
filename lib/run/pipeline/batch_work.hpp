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

 private:
  static constexpr std::uint32_t no_buffer = UINT32_MAX;  // of a parameter that is not bound

  submission recorded_;                     // with offsets
  std::vector<std::uint32_t> of_operands_;  // the buffer of each parameter, then of each pointer of an array
  std::vector<std::uint32_t> of_accesses_;  // likewise
  batch_role role_ = batch_role::work;
};

using work_list = std::vector<std::shared_ptr<const batch_work>>;

// What batches submit, whose ends are in the same memory spaces.
struct batch_program : recorded_graph {
  explicit batch_program(work_list made);
  const work_list works;
};

class pipeline_batch final : public submission_list {
 public:
  pipeline_batch(std::shared_ptr<const batch_program> what, batch_addresses at) noexcept
      : program(std::move(what)), addresses(std::move(at)) {}

  std::size_t size() const noexcept override { return program->works.size(); }
  const submission &at(std::size_t index) const noexcept override { return program->works[index]->recorded(); }
  binding operands(std::size_t index) const override { return program->works[index]->operands(addresses); }
  std::span<const access> accesses(std::size_t index, std::vector<access> &room) const override {
    return program->works[index]->accesses(addresses, room);
  }

  const std::shared_ptr<const batch_program> program;
  const batch_addresses addresses;
};

}  // namespace sg
