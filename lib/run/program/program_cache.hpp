// SPDX-License-Identifier: Apache-2.0
// Programs by form: one map, shared by the threads of a context. A form that is being planned is planned once;
// other threads wait for it. The least recently used entry is evicted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "model/machine_model.hpp"
#include "plan/form/form.hpp"
#include "run/program/program.hpp"

namespace sg {

// Any thread.
class program_cache {
 public:
  static constexpr std::size_t most_entries = 4096;

  // `context`: its number.
  explicit program_cache(std::uint64_t context) noexcept : number_(context) {}

  // Throws what make_plan throws, and SG_STATUS_INTERNAL when `check` is set and the schedule has a hazard.
  std::shared_ptr<const sg::program> get(const form &what, const plan_request &request, const machine_model &machine,
                                         bool check);
  // Looks in the shared map only: no thread-local storage, whose first use may allocate.
  std::shared_ptr<const sg::program> look_up(const form &what, const plan_request &request,
                                             const machine_model &machine, bool check);

 private:
  // A thread's latest program, found without the lock.
  struct memo {
    std::uint64_t cache = 0;  // number_ of its cache
    std::uint64_t key = 0;
    plan_request request;
    std::shared_ptr<const sg::program> program;
  };
  struct memos;
  static memo *memo_of(std::uint64_t key) noexcept;  // nullptr: the thread has none (thread_owned)

  std::shared_ptr<const sg::program> look_up(std::uint64_t key, const form &what, const plan_request &request,
                                             const machine_model &machine, bool check);

  const std::uint64_t number_;

  // The cache owns a reference to each program; a program refers to no cache.
  struct entry {
    std::uint64_t key = 0;
    const form *what = nullptr;  // of the program, or of the planning thread
    plan_request request;
    std::shared_ptr<const sg::program> program;  // nullptr while being planned
  };
  using entry_position = std::list<entry>::iterator;

  entry_position find(std::uint64_t key, const form &what, const plan_request &request) noexcept;
  void erase(entry_position which) noexcept;
  void evict() noexcept;

  std::mutex lock_;
  std::condition_variable planned_;  // planned, or planning failed
  std::list<entry> entries_;         // most recently used first
  std::unordered_multimap<std::uint64_t, entry_position> positions_;
};

}  // namespace sg
