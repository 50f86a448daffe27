// SPDX-License-Identifier: Apache-2.0
#include "run/job/job_pool.hpp"

#include <new>

#include "run/job/job_home.hpp"

namespace sg {

job_pool::~job_pool() {
  for (std::uint32_t i = 0; i < chunk_count_; ++i) delete chunks_[i].load();
}

job &job_pool::at(std::uint32_t index) noexcept {
  return (*chunks_[index / chunk_records].load(std::memory_order_acquire))[index % chunk_records];
}

void job_pool::grow(job_home &owner) {
  const std::lock_guard lock(growing_);
  if (static_cast<std::uint32_t>(free_.load())) return;  // another thread was faster
  if (chunk_count_ == chunks) throw std::bad_alloc();
  auto fresh = std::make_unique<chunk>();
  for (std::uint32_t i = 0; i < chunk_records; ++i) {
    (*fresh)[i].pool = this;
    (*fresh)[i].owner_ = &owner;
    (*fresh)[i].pool_index = chunk_count_ * chunk_records + i;
  }
  chunk *records = fresh.release();
  chunks_[chunk_count_++].store(records, std::memory_order_release);
  for (job &record : *records) release(record);
}

ref<job> job_pool::acquire(ref<job_home> owner) {
  for (;;) {
    std::uint64_t head = free_.load(std::memory_order_acquire);
    while (const auto place = static_cast<std::uint32_t>(head)) {
      job &record = at(place - 1);
      const std::uint64_t next = record.next_free_.load(std::memory_order_relaxed);
      if (free_.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | next, std::memory_order_acq_rel)) {
        if (next) at(static_cast<std::uint32_t>(next) - 1).fetch();  // the next submission's
        record.begin();
        owner.release();  // the record holds it now
        return ref<job>::adopt(&record);
      }
    }
    grow(*owner);
  }
}

void job_pool::link(job &record, const job *behind) noexcept {
  record.next_free_.store(behind ? behind->pool_index + 1 : 0, std::memory_order_relaxed);
}

void job_pool::release(job &first, job &last) noexcept {
  std::uint64_t head = free_.load(std::memory_order_relaxed);
  do {
    last.next_free_.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
  } while (
      !free_.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | (first.pool_index + 1), std::memory_order_acq_rel));
}

}  // namespace sg
