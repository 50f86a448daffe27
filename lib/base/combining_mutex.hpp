// SPDX-License-Identifier: Apache-2.0
// A mutex for sections that are mostly shorter than a microsecond and that many threads enter at once. Threads queue,
// and the holder executes the sections of waiting threads on its own core (flat combining): the data that sections
// write stays in that core's caches, and no thread has to be woken for the next section.
#pragma once

#include <atomic>
#include <cstdint>

namespace sg {

class combining_mutex {
 public:
  combining_mutex() noexcept = default;
  combining_mutex(const combining_mutex &) = delete;
  combining_mutex &operator=(const combining_mutex &) = delete;

  // Sections that one thread executes for others before it passes the mutex on: its own call takes that much longer.
  static constexpr int combining_limit = 16;

  // Executes `section()` on this thread, or on the one that holds the mutex, and returns after it. So it must not
  // throw, block, enter this mutex, use thread-local state, or drop a possibly last reference. `fetch()`, if called,
  // runs there some time earlier: it may only prefetch data of the section.
  template <class Section, class Fetch>
  void run(Section &&section, Fetch &&fetch) noexcept {
    struct sections {
      Section &section;
      Fetch &fetch;
    } both{section, fetch};
    request mine;
    mine.what = &both;
    mine.section = [](void *what) noexcept { static_cast<sections *>(what)->section(); };
    mine.fetch = [](const void *what) noexcept { static_cast<const sections *>(what)->fetch(); };
    if (!enter(mine)) return;
    section();
    leave(mine);
  }
  template <class Section>
  void run(Section &&section) noexcept {
    run(section, [] {});
  }
  // Runs a longer section: always on this thread, so that no other thread's call takes so long.
  template <class Section>
  void run_here(Section &&section) noexcept {
    request mine;
    enter(mine);
    section();
    leave(mine);
  }

 private:
  enum state : std::uint32_t { waits, sleeps, holds, executed };
  struct request {  // a node of the queue, on its thread's stack until that holds the mutex or its section is executed
    std::atomic<request *> next{nullptr};
    std::atomic<std::uint32_t> now{waits};       // its state: a futex
    void (*section)(void *) noexcept = nullptr;  // nullptr: its thread executes it
    void (*fetch)(const void *) noexcept = nullptr;
    void *what = nullptr;
  };

  bool enter(request &mine) noexcept;  // true: this thread holds the mutex; false: its section has been executed
  void leave(request &mine) noexcept;
  static state await(request &mine) noexcept;

  std::atomic<request *> last_{nullptr};  // tail of the queue; the head holds the mutex
};

}  // namespace sg
