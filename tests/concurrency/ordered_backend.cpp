// SPDX-License-Identifier: Apache-2.0
// The cpu backend as a plugin that claims memory of its own, so that streams and events order what the core would
// otherwise order itself, as on a GPU: jobs follow each other on the "device", on real threads that ThreadSanitizer
// sees. A native stream is a stream made by this table, a native event an event. As on a GPU, the times of a command
// behind another stream's may be inconsistent with that stream's: they are reported far too early. Twelve compute units
// can be reserved, one or two for a stream.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "backends/cpu/cpu_backend.hpp"
#include "backends/cpu/threads/event.hpp"

namespace {

sg_backend_space device_memory(sg_backend_device *, const void *, uint64_t) { return {SG_MEMORY_DEVICE, 0}; }

void poll(sg_backend_device *) {}

// Never destroyed: a context closes on a thread of its own, which may outlive main().
struct known_handles {
  std::mutex lock;
  std::multiset<sg_backend_stream *> wrapped;
  std::set<sg_backend_event *> events;  // not destroyed yet
  std::multiset<sg_backend_event *> wrapped_events;
  std::set<sg_backend_stream *> waiting;  // streams with an event wait since their latest command
  std::int32_t free_units = 12;
  std::map<sg_backend_stream *, std::int32_t> units;  // reserved units
};
known_handles &known() {
  static known_handles *const only = new known_handles;
  return *only;
}

sg_status stream_wrap(sg_backend_device *, void *native, sg_backend_stream **out) {
  const std::lock_guard lock(known().lock);
  *out = static_cast<sg_backend_stream *>(native);
  known().wrapped.insert(*out);
  return SG_STATUS_OK;
}

sg_status stream_create_within(sg_backend_device *device, std::int32_t priority, std::int32_t *units,
                               sg_backend_stream **out) {
  const std::lock_guard lock(known().lock);
  *out = nullptr;
  const std::int32_t granted = std::min({*units, known().free_units, 2});
  if (granted == 0) return SG_STATUS_UNSUPPORTED;
  if (const sg_status status = sg_cpu_backend()->stream_create(device, priority, out)) return status;
  known().free_units -= granted;
  known().units[*out] = *units = granted;
  return SG_STATUS_OK;
}

void stream_destroy(sg_backend_stream *stream) {
  {
    const std::lock_guard lock(known().lock);
    if (const auto wrapper = known().wrapped.find(stream); wrapper != known().wrapped.end()) {
      known().wrapped.erase(wrapper);
      return;
    }
  }
  {
    const std::lock_guard lock(known().lock);
    known().waiting.erase(stream);
    if (const auto held = known().units.find(stream); held != known().units.end()) {
      known().free_units += held->second;
      known().units.erase(held);
    }
  }
  sg_cpu_backend()->stream_destroy(stream);
}

sg_status stream_wait(sg_backend_stream *stream, sg_backend_event *event) {
  {
    const std::lock_guard lock(known().lock);
    known().waiting.insert(stream);
  }
  return sg_cpu_backend()->stream_wait(stream, event);
}

void report_early_times(void *user, const sg_backend_result *result) {
  const std::unique_ptr<sg_backend_done> done(static_cast<sg_backend_done *>(user));
  // Early by half of the time since the machine was started, which keeps the times positive.
  sg_backend_result early = *result;
  early.start_ns /= 2;
  early.end_ns /= 2;
  done->fn(done->user, &early);
}

// A command enqueued by `enqueue`, whose completion is reported to `done`.
template <class Enqueue>
sg_status with_its_start(sg_backend_stream *stream, sg_backend_done done, Enqueue &&enqueue) {
  bool waited = false;
  {
    const std::lock_guard lock(known().lock);
    waited = known().waiting.erase(stream) != 0;
  }
  if (!waited || done.fn == nullptr) return enqueue(done);
  auto notified = std::make_unique<sg_backend_done>(done);
  const sg_status status = enqueue({report_early_times, notified.get()});
  if (status == SG_STATUS_OK) notified.release();
  return status;
}

sg_status enqueue(sg_backend_stream *stream, const sg_backend_command *const *commands, std::int32_t count,
                  sg_status *statuses, sg_backend_done done) {
  const auto forward = [&](sg_backend_done notified) {
    return sg_cpu_backend()->enqueue(stream, commands, count, statuses, notified);
  };
  return count > 1 || commands[0]->kind == SG_BACKEND_MARKER ? forward(done) : with_its_start(stream, done, forward);
}

sg_status event_create(sg_backend_device *device, sg_backend_event **out) {
  const sg_status status = sg_cpu_backend()->event_create(device, out);
  const std::lock_guard lock(known().lock);
  if (status == SG_STATUS_OK) known().events.insert(*out);
  return status;
}

sg_status event_wrap(sg_backend_device *, void *native, sg_backend_event **out) {
  const std::lock_guard lock(known().lock);
  *out = nullptr;
  if (known().events.count(static_cast<sg_backend_event *>(native)) == 0) return SG_STATUS_INVALID_ARGUMENT;
  *out = static_cast<sg_backend_event *>(native);
  known().wrapped_events.insert(*out);
  return SG_STATUS_OK;
}

void event_destroy(sg_backend_event *event) {
  {
    const std::lock_guard lock(known().lock);
    if (const auto wrapper = known().wrapped_events.find(event); wrapper != known().wrapped_events.end()) {
      known().wrapped_events.erase(wrapper);
      return;
    }
    known().events.erase(event);
  }
  sg_cpu_backend()->event_destroy(event);
}

void *event_native(sg_backend_event *event) { return event; }

sg_status event_query(sg_backend_event *event) {
  const sg::cpu::stream_position at = reinterpret_cast<sg::cpu::event *>(event)->recorded();
  if (!at.of) return SG_STATUS_OK;
  const bool happened = at.of->completed() >= at.count;
  at.of->release();
  return happened ? SG_STATUS_OK : SG_STATUS_NOT_READY;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const sg_backend_ops *sg_backend_entry_3(void) {
  static const sg_backend_ops table = [] {
    sg_backend_ops own = *sg_cpu_backend();
    own.name = "ordered";
    own.memory_space = device_memory;
    own.poll = poll;
    own.run_here = nullptr;  // the device's threads are to run all commands
    own.run_waiting = nullptr;
    own.stream_wrap = stream_wrap;
    own.stream_create_within = stream_create_within;
    own.stream_destroy = stream_destroy;
    own.stream_wait = stream_wait;
    own.enqueue = enqueue;
    own.event_create = event_create;
    own.event_destroy = event_destroy;
    own.event_wrap = event_wrap;
    own.event_native = event_native;
    own.event_query = event_query;
    return own;
  }();
  return &table;
}
