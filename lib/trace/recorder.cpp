// SPDX-License-Identifier: Apache-2.0
#include "trace/recorder.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "base/error.hpp"
#include "base/thread.hpp"
#include "base/thread_owned.hpp"
#include "trace/profiler_ranges.hpp"

namespace sg::trace {

constinit std::atomic<std::uint8_t> g_recording{0};

namespace {

constexpr std::uint64_t ring_events = 16384;  // 1 MiB; a thread that writes one event each 0.15 us fills it in 2.5 ms
constexpr auto collect_every = std::chrono::milliseconds(1);
constexpr std::uint32_t thread_numbers = 65'000;

// One thread writes, the collector reads. Never freed: a thread may be about to write when a recording ends.
struct ring {
  std::uint32_t index = 0;                      // among all rings
  std::atomic<std::uint16_t> thread_number{0};  // of the thread that has it: no other of the latest 65,000 has the same
  std::atomic<std::int32_t> thread_id{0};       // the system's
  char thread_name[16] = "";                    // written by its thread before the first event
  std::atomic<bool> is_used{true};              // by a thread that lives
  std::uint64_t jobs = 0;                       // numbered by its thread
  std::uint64_t read_by_writer = 0;             // the writer's latest knowledge of `read`
  alignas(64) std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint64_t> dropped{0};
  alignas(64) std::atomic<std::uint64_t> read{0};
  ring *next = nullptr;     // in the list of all rings
  event *events = nullptr;  // of ring_events; pages that were never written take no memory
};

std::atomic<ring *> g_rings{nullptr};
std::atomic<std::uint32_t> g_ring_count{0}, g_thread_count{0};

void name_after_thread(ring &own) noexcept {
  pthread_getname_np(pthread_self(), own.thread_name, sizeof own.thread_name);
  const std::uint32_t number = g_thread_count.fetch_add(1, std::memory_order_relaxed) % thread_numbers;
  own.thread_number.store(static_cast<std::uint16_t>(number), std::memory_order_relaxed);
  own.thread_id.store(static_cast<std::int32_t>(syscall(SYS_gettid)), std::memory_order_release);
}

ring *acquire_ring() noexcept {
  for (ring *each = g_rings.load(std::memory_order_acquire); each; each = each->next) {
    bool unused = false;
    // Read to the end, so that no event of the thread before goes under this one's name.
    if (each->written.load(std::memory_order_relaxed) == each->read.load(std::memory_order_acquire) &&
        !each->is_used.load(std::memory_order_relaxed) &&
        each->is_used.compare_exchange_strong(unused, true, std::memory_order_acquire))
      return each;
  }
  auto *const events = static_cast<event *>(std::calloc(ring_events, sizeof(event)));
  ring *const fresh = events ? new (std::nothrow) ring : nullptr;
  if (!fresh) {
    std::free(events);
    return nullptr;
  }
  fresh->events = events;
  fresh->index = g_ring_count.fetch_add(1, std::memory_order_relaxed);
  fresh->next = g_rings.load(std::memory_order_relaxed);
  while (!g_rings.compare_exchange_weak(fresh->next, fresh, std::memory_order_acq_rel)) {
  }
  return fresh;
}

// A thread's ring, given to another thread when this one has ended.
struct ring_lease {
  ring *const own = acquire_ring();
  ring_lease() noexcept {
    if (own) name_after_thread(*own);
  }
  ~ring_lease() {
    if (own) own->is_used.store(false, std::memory_order_release);
  }
};

ring *own_ring() noexcept {
  const ring_lease *const lease = thread_owned<ring_lease>::get();
  return lease ? lease->own : nullptr;
}

// The recording that is on, its collector, and the lock of both.
struct collector {
  std::mutex lock;
  std::condition_variable stopped;
  bool stops = false;
  std::uint64_t most_events = 0;
  std::shared_ptr<recording> into;
  thread worker;

  void work() noexcept {
    std::unique_lock held(lock);
    while (!stops) {
      stopped.wait_for(held, collect_every);
      collect();
    }
  }
  void collect() noexcept {
    for (ring *each = g_rings.load(std::memory_order_acquire); each; each = each->next) empty(*each);
  }
  void empty(ring &of) noexcept {
    const std::uint64_t from = of.read.load(std::memory_order_relaxed), to = of.written.load(std::memory_order_acquire);
    if (from == to) return;
    try {
      name(of);
      for (std::uint64_t at = from; at != to; ++at) {
        if (into->events.size() >= most_events) {
          into->dropped += to - at;
          break;
        }
        into->events.push_back(of.events[at % ring_events]);
      }
    } catch (const std::bad_alloc &) {
      most_events = into->events.size();  // nothing more is kept
      into->dropped += to - from;
    }
    of.read.store(to, std::memory_order_release);
  }
  void name(const ring &of) {
    auto &known = into->threads;
    const std::uint16_t number = of.thread_number.load(std::memory_order_relaxed);
    const auto is_same = [&](const recorded_thread &each) { return each.number == number; };
    if (std::any_of(known.begin(), known.end(), is_same)) return;
    known.push_back({number, of.thread_id.load(std::memory_order_acquire), of.thread_name});
  }
};

// Of the process. Replaced, and not freed, in the child of a fork, where its lock may be held for ever.
std::atomic<collector *> g_collector{nullptr};

collector &the_collector() {
  collector *known = g_collector.load(std::memory_order_acquire);
  if (known) return *known;
  auto fresh = std::make_unique<collector>();
  if (g_collector.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *known;
}

}  // namespace

std::uint64_t new_job_number() noexcept {
  ring *const own = own_ring();
  return own ? (std::uint64_t{own->index} + 1) << 40 | ++own->jobs : 0;
}

void record(const event &happened) noexcept {
  if ((g_recording.load(std::memory_order_relaxed) & into_rings) == 0) return;
  ring *const own = own_ring();
  if (!own) return;
  const std::uint64_t at = own->written.load(std::memory_order_relaxed);
  if (at - own->read_by_writer >= ring_events) {
    own->read_by_writer = own->read.load(std::memory_order_acquire);
    if (at - own->read_by_writer >= ring_events) {
      own->dropped.store(own->dropped.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
  }
  event &place = own->events[at % ring_events];
  place = happened;
  place.thread = own->thread_number.load(std::memory_order_relaxed);
  own->written.store(at + 1, std::memory_order_release);
}

void record_text(event_kind kind, std::uint64_t context, std::uint64_t job, const char *text,
                 std::uint8_t detail) noexcept {
  const std::size_t length = std::strlen(text);
  for (std::size_t at = 0; at == 0 || at < length; at += event_text_size, ++detail) {
    event part(kind, context, job);
    part.detail = detail;
    std::memset(part.text, 0, sizeof part.text);
    std::memcpy(part.text, text + at, std::min(length - at, event_text_size));
    record(part);
    if (at > 0) return;
  }
}

namespace {

std::atomic<bool> g_device_times{false};
std::atomic<std::size_t> g_noted{0};  // schedules: read without the lock

// What is noted under the collector's lock; `note(recording)` may throw std::bad_alloc.
template <class Note>
void with_recording(Note &&note) noexcept {
  collector *const known = g_collector.load(std::memory_order_acquire);
  if (!known) return;
  const std::lock_guard held(known->lock);
  if (!known->into) return;
  try {
    note(*known->into);
  } catch (const std::bad_alloc &) {
  }
}

}  // namespace

void note_machine(std::uint64_t context, const machine_model &model) noexcept {
  with_recording([&](recording &into) {
    const auto number = static_cast<std::uint32_t>(context);
    for (const recorded_machine &each : into.machines)
      if (each.context == number) return;
    into.machines.push_back({number, std::make_shared<const machine_model>(model)});
  });
}

void note_schedule(std::uint64_t job, std::uint64_t context, const std::shared_ptr<const schedule> &runs,
                   const std::shared_ptr<const form> &what, const plan_request &request) noexcept {
  if (g_noted.load(std::memory_order_relaxed) >= most_schedules) return;
  with_recording([&](recording &into) {
    if (into.schedules.size() >= most_schedules) return;
    g_noted.store(into.schedules.size() + 1, std::memory_order_relaxed);
    for (const recorded_machine &each : into.machines)
      if (each.context == static_cast<std::uint32_t>(context))
        return into.schedules.push_back({job, each.context, runs, what, request, each.model});
  });
}

static const char *name_of(event_kind kind) noexcept {
  switch (kind) {
    case event_kind::submission: return "submit";
    case event_kind::planning: return "plan";
    case event_kind::wait: return "wait";
    case event_kind::replan: return "plan for less memory";
    default: return "event";
  }
}

void timed_event::begin(std::uint64_t context) noexcept {
  context_ = context;
  job_ = 0;
  count_ = 0;
  detail_ = 0;
  in_profiler_ = profiler_is_on();
  if (in_profiler_) push_range(name_of(kind_));
  start_ns_ = monotonic_ns();
}

void timed_event::finish() const noexcept {
  if (in_profiler_) pop_range();
  event made(kind_, context_, job_);
  made.detail = detail_;
  made.body.start_ns = start_ns_;
  made.body.end_ns = monotonic_ns();
  made.body.count = count_;
  record(made);
}

void start_for_profiler() noexcept {
  if (!profiler_is_on() && profiler_listens()) g_recording.fetch_or(into_profiler, std::memory_order_release);
}

bool wants_device_times() noexcept { return g_device_times.load(std::memory_order_relaxed); }

void start_recording(std::uint64_t most_events, bool device_times) {
  collector &here = the_collector();
  const std::lock_guard held(here.lock);
  if (here.into) throw error(SG_STATUS_BUSY, "a trace is being recorded; a process records one at a time");
  auto fresh = std::make_shared<recording>();
  fresh->events.reserve(most_events);  // address space: a vector that grew would hold the collector up
  for (ring *each = g_rings.load(std::memory_order_acquire); each; each = each->next) {
    each->read.store(each->written.load(std::memory_order_acquire), std::memory_order_release);
    each->dropped.store(0, std::memory_order_relaxed);
  }
  here.stops = false;
  here.most_events = most_events;
  here.worker = thread("sg-trace", [&here] { here.work(); });
  fresh->start_ns = monotonic_ns();
  here.into = std::move(fresh);
  g_noted.store(0, std::memory_order_relaxed);
  g_device_times.store(device_times, std::memory_order_relaxed);
  g_recording.fetch_or(into_rings, std::memory_order_release);
}

std::shared_ptr<recording> stop_recording() noexcept {
  collector *const here = g_collector.load(std::memory_order_acquire);
  if (!here) return nullptr;
  std::unique_lock held(here->lock);
  if (!here->into || here->stops) return nullptr;
  g_recording.fetch_and(static_cast<std::uint8_t>(~into_rings), std::memory_order_release);
  g_device_times.store(false, std::memory_order_relaxed);
  here->stops = true;
  here->stopped.notify_all();
  held.unlock();
  here->worker.join();
  held.lock();
  here->collect();
  here->into->end_ns = monotonic_ns();
  for (ring *each = g_rings.load(std::memory_order_acquire); each; each = each->next)
    here->into->dropped += each->dropped.load(std::memory_order_relaxed);
  return std::move(here->into);
}

void forget_recording() noexcept {
  g_recording.store(0, std::memory_order_relaxed);
  g_collector.store(nullptr, std::memory_order_relaxed);
}

}  // namespace sg::trace
