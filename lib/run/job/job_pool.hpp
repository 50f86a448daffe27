// SPDX-License-Identifier: Apache-2.0
// Job records of a context. Acquire and release are lock-free; records are freed with the pool.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "run/job/job.hpp"

namespace sg {

class job_pool {
 public:
  job_pool() noexcept = default;
  ~job_pool();

  ref<job> acquire(ref<job_home> owner);  // Throws std::bad_alloc.
  void release(job &record) noexcept { release(record, record); }
  // A list of records, linked by link().
  void release(job &first, job &last) noexcept;
  static void link(job &record, const job *behind) noexcept;

 private:
  static constexpr std::uint32_t chunk_records = 64, chunks = 16384;
  using chunk = std::array<job, chunk_records>;

  job &at(std::uint32_t index) noexcept;
  void grow(job_home &owner);

  std::atomic<std::uint64_t> free_{0};  // index + 1 of the first free record; upper half: a count against ABA
  std::mutex growing_;
  std::uint32_t chunk_count_ = 0;
  std::array<std::atomic<chunk *>, chunks> chunks_{};
};

}  // namespace sg
