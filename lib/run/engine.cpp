// SPDX-License-Identifier: Apache-2.0
#include "run/engine.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/error.hpp"
#include "run/context.hpp"

namespace sg {

namespace {

// Commands that a run may have in a stream of a device at once: enough that the device never waits for the host, and few
// enough that the driver takes them at once (from some dozens on, CUDA's calls wait for the device).
constexpr std::int32_t device_lane_depth = 12;
// Runs of one priority at a time.
constexpr std::size_t most_running = 64;

template <class Node>
void push_to(std::atomic<Node *> &list, Node &node) noexcept {
  node.next = list.load(std::memory_order_relaxed);
  while (!list.compare_exchange_weak(node.next, &node, std::memory_order_acq_rel)) {
  }
}

// Empties the list; the oldest comes first.
template <class Node>
Node *take_in_order(std::atomic<Node *> &list) noexcept {
  Node *in_order = nullptr;
  for (Node *node = list.exchange(nullptr, std::memory_order_acq_rel); node;) {
    Node *next = node->next;
    node->next = in_order;
    in_order = node;
    node = next;
  }
  return in_order;
}

}  // namespace

engine::engine(const device &on, const device_model &model, arena_pool &device_memory, arena_pool &staging_memory)
    : device_(on),
      ops_(on.ops()),
      device_ordered_(!on.unified()),
      depth_(std::max(1, model.lane_depth)),
      device_memory_(device_memory),
      staging_memory_(staging_memory),
      stager_(std::max(1, model.staging_workers), [this](flight &f) { stage(f); }) {
  try {
    for (std::int32_t i = 0; i < std::max(1, model.compute_lanes); ++i) {
      compute_.push_back(std::make_unique<lane_slot>());
      compute_.back()->stream = device_.stream_create(0);
    }
    if (device_ordered_) {
      copy_in_.stream = device_.stream_create(0);
      copy_out_.stream = device_.stream_create(0);
    }
    for (auto &list : running_) list.reserve(most_running);  // starting a run needs no memory
  } catch (...) {
    destroy_streams();
    throw;
  }
}

engine::~engine() {
  for (sg_backend_event *unused : events_) ops_.event_destroy(unused);
  destroy_streams();
}

void engine::destroy_streams() noexcept {
  for (const auto &slot : compute_)
    if (slot->stream) ops_.stream_destroy(slot->stream);
  if (copy_in_.stream) ops_.stream_destroy(copy_in_.stream);
  if (copy_out_.stream) ops_.stream_destroy(copy_out_.stream);
}

// ---- News, from any thread ----

void engine::push(job &ready) noexcept {
  push_to(inbox_, ready);
  pump();
}

void engine::sweep() noexcept {
  sweep_wanted_.store(true, std::memory_order_release);
  pump();
}

void engine::piece_ended(void *user, const sg_backend_result *result) {
  flight &f = *static_cast<flight *>(user);
  engine &home = f.about->owner().executor();
  home.piece_of(f, result->status, result->message, result->start_ns, result->end_ns, 1);
}

// Some backend calls of a command have ended; the last one ends the command.
void engine::piece_of(flight &f, sg_status status, const char *message, std::int64_t start_ns, std::int64_t end_ns,
                      std::int32_t pieces) noexcept {
  if (status != SG_STATUS_OK) f.about->fail(status, message ? message : sg_status_name(status));
  if (end_ns != 0) {
    f.start_ns = f.start_ns == 0 ? start_ns : std::min(f.start_ns, start_ns);
    f.end_ns = std::max(f.end_ns, end_ns);
  }
  if (f.pieces.fetch_sub(pieces, std::memory_order_acq_rel) == pieces) flight_ended(f);
}

void engine::flight_ended(flight &f) noexcept {
  const auto keep = ref<context>::share(&f.about->owner());  // the job may be the last that holds it
  if (f.lane) f.lane->in_flight.fetch_sub(1, std::memory_order_acq_rel);
  if (f.about->run) {
    push_to(ended_, f);
  } else {
    f.about->ran(f);
    f.about->finish();
  }
  pump();
}

void engine::pump() noexcept {
  if (requests_.fetch_add(1, std::memory_order_acq_rel) != 0) return;
  std::uint32_t served = 1;
  do {
    step();
  } while (!requests_.compare_exchange_strong(served, 0, std::memory_order_acq_rel));
}

// ---- With the token ----

void engine::job_list::push_back(job &j) noexcept {
  j.next = nullptr;
  (first ? last->next : first) = &j;
  last = &j;
}

job &engine::job_list::pop_front() noexcept {
  job &j = *first;
  first = j.next;
  return j;
}

void engine::step() noexcept {
  for (flight *f = take_in_order(ended_); f;) {
    flight *next = f->next;
    command_ended(*f);
    f = next;
  }
  for (job *j = take_in_order(inbox_); j;) {
    job *next = j->next;
    sort_in(*j);
    j = next;
  }
  if (sweep_wanted_.exchange(false, std::memory_order_acq_rel)) drop_cancelled();
  for (int priority = priorities - 1; priority >= 0; --priority) {
    auto &running = running_[static_cast<std::size_t>(priority)];
    for (std::size_t i = 0; i < running.size();) {
      job &j = *running[i];
      advance(j);
      if (i < running.size() && running[i] == &j) ++i;  // else it has ended and is gone from the list
    }
    start_ready(priority);
  }
}

// Jobs that need no device end here.
bool engine::ends_unrun(job &ready) noexcept {
  if (ready.cancel_requested())
    ready.fail(SG_STATUS_CANCELLED, "cancelled before it started; nothing was written");
  else if (ready.dependency_failed())
    ready.fail(SG_STATUS_DEPENDENCY_FAILED, "a job that this one was ordered after failed; nothing was written");
  else if (ready.kind != work_kind::marker)
    return false;
  ready.finish();
  return true;
}

void engine::sort_in(job &ready) noexcept {
  if (ends_unrun(ready)) return;
  work_class what = computing;
  if (ready.kind == work_kind::copy && device_ordered_) {
    if (ready.copy.to_device && !ready.copy.from_device) what = to_device;
    if (ready.copy.from_device && !ready.copy.to_device) what = from_device;
  }
  ready_[static_cast<std::size_t>(ready.priority + 1)][what].push_back(ready);
}

void engine::drop_cancelled() noexcept {
  for (auto &classes : ready_) {
    for (job_list &list : classes) {
      job_list old = list;
      list = {};
      while (old.first) {
        job &j = old.pop_front();
        if (!ends_unrun(j)) list.push_back(j);
      }
    }
  }
}

void engine::start_ready(int priority) noexcept {
  auto &classes = ready_[static_cast<std::size_t>(priority)];
  for (int what = 0; what < work_classes; ++what) {
    job_list &list = classes[static_cast<std::size_t>(what)];
    while (list.first && start_first(list, static_cast<work_class>(what))) {
    }
  }
}

// Starts the list's first job, or ends it if it was cancelled; false when it has to wait for a lane or for memory.
bool engine::start_first(job_list &from, work_class what) noexcept {
  job &next = *from.first;
  if (next.cancel_requested()) {
    from.pop_front();
    return ends_unrun(next);
  }
  if (next.run) {
    if (!start_run(next)) return false;
    from.pop_front();
    advance(next);
    return true;
  }
  lane_slot *slot = free_lane(what, next.plan && next.plan->wants_core);
  if (!slot) return false;
  from.pop_front();
  slot->in_flight.fetch_add(1, std::memory_order_relaxed);
  next.single.begin(next, 0, slot, 1);
  if (ops_.stream_begin_at) ops_.stream_begin_at(slot->stream, next.ready_ns());
  launch(next.single, next.kind == work_kind::schedule ? next.plan->text->commands.data() : nullptr);
  return true;
}

// Takes the run's memory; false when it has to wait for another run's.
bool engine::start_run(job &ready) noexcept {
  auto &running = running_[static_cast<std::size_t>(ready.priority + 1)];
  if (running.size() == most_running) return false;
  const schedule &s = *ready.plan->text;
  try {
    if (!ready.operands.device_arena) ready.operands.device_arena = device_memory_.take(s.device_bytes);
    if (!ready.operands.staging_arena) ready.operands.staging_arena = staging_memory_.take(s.staging_bytes);
  } catch (...) {
    const sg_status status = status_of_current_exception();
    device_memory_.give_back(std::exchange(ready.operands.device_arena, nullptr));
    bool others = false;
    for (const auto &list : running_) others = others || !list.empty();
    if (status == SG_STATUS_OUT_OF_MEMORY && others) return false;
    ready.fail(status, last_error());  // advance() ends it
  }
  running.push_back(&ready);
  return true;
}

void engine::advance(job &running) noexcept {
  schedule_run &run = *running.run;
  if (running.cancel_requested() && !running.failed() && !run.complete())
    running.fail(SG_STATUS_CANCELLED, "cancelled while it ran; C may be partly written");
  // In the order of the schedule across the lanes: a lane's first command does not stand behind the issuing of another
  // lane's last one.
  for (auto &lane : run.lanes) lane.held_up = false;
  while (!running.failed()) {
    schedule_run::lane_progress *first = nullptr;
    std::uint32_t command = UINT32_MAX;
    for (std::size_t l = 0; l < run.lanes.size(); ++l) {
      const auto &list = running.plan->lanes[l].commands;
      schedule_run::lane_progress &lane = run.lanes[l];
      if (lane.held_up || lane.next == list.size() || list[lane.next] >= command) continue;
      first = &lane;
      command = list[lane.next];
    }
    if (!first) break;
    if (may_go(running, command) && issue(running, command))
      ++first->next;
    else
      first->held_up = true;
  }
  if (run.idle() && (run.complete() || running.failed())) end_run(running);
}

// Whether everything that the command waits for has ended, or is ahead of it on the device.
bool engine::may_go(const job &running, std::uint32_t index) const noexcept {
  const schedule_run &run = *running.run;
  const schedule &s = *running.plan->text;
  const command &c = s.commands[index];
  const bool ordered_by_device = device_ordered_ && on_device(c.kind);
  if (!ordered_by_device && run.lanes[run.lane_of[index]].busy) return false;
  for (std::uint32_t w = 0; w < c.waits; ++w) {
    const std::uint32_t before = s.waits[c.first_wait + w];
    if (run.steps[before] == schedule_run::step::ended) continue;
    if (run.steps[before] == schedule_run::step::waiting) return false;
    if (!ordered_by_device || !on_device(s.commands[before].kind)) return false;
  }
  return true;
}

bool engine::issue(job &running, std::uint32_t index) noexcept {
  schedule_run &run = *running.run;
  const command &c = running.plan->text->commands[index];
  flight &f = run.flights[index];
  lane_slot *slot = nullptr;
  if (on_device(c.kind)) {
    slot = lane_for(c.kind, c.where, running.plan->wants_core);
    if (!slot) return false;
  }
  schedule_run::lane_progress &progress = run.lanes[run.lane_of[index]];
  f.begin(running, index, slot, 1);
  run.slots[index] = slot;
  run.steps[index] = schedule_run::step::enqueued;
  ++run.in_flight;
  progress.busy = true;
  try {
    if (!slot) {
      stager_.add(f);
      return true;
    }
    slot->in_flight.fetch_add(1, std::memory_order_relaxed);
    if (!progress.started) device_.begin_at(slot->stream, running.ready_ns());
    progress.started = true;
    wait_for_others(running, index, *slot);
  } catch (...) {
    const sg_status status = status_of_current_exception();
    piece_of(f, status, last_error(), 0, 0, 1);
    return true;
  }
  launch(f, &c);
  if (device_ordered_ && running.plan->needs_event[index] && !running.failed()) {
    try {
      if (events_.empty()) {
        events_.reserve(1);  // first, so that no event is made that there is no room for
        events_.push_back(device_.event_create());
      }
      run.events[index] = events_.back();
      events_.pop_back();
      device_.check(ops_.event_record(run.events[index], slot->stream), "recording an event");
    } catch (...) {
      const sg_status status = status_of_current_exception();
      running.fail(status, last_error());
    }
  }
  return true;
}

// On the device, behind what other streams do first.
void engine::wait_for_others(job &running, std::uint32_t index, lane_slot &slot) {
  if (!device_ordered_) return;
  const schedule &s = *running.plan->text;
  const command &c = s.commands[index];
  schedule_run &run = *running.run;
  for (std::uint32_t w = 0; w < c.waits; ++w) {
    const std::uint32_t before = s.waits[c.first_wait + w];
    if (run.slots[before] == &slot || !run.events[before]) continue;
    device_.check(ops_.stream_wait(slot.stream, run.events[before]), "waiting for an event");
  }
}

void engine::command_ended(flight &f) noexcept {
  job &running = *f.about;
  schedule_run &run = *running.run;
  run.steps[f.index] = schedule_run::step::ended;
  run.lanes[run.lane_of[f.index]].busy = false;
  --run.in_flight;
  ++run.ended;
  if (f.end_ns != 0 || !running.failed()) running.ran(f);
}

void engine::end_run(job &running) noexcept {
  auto &list = running_[static_cast<std::size_t>(running.priority + 1)];
  list.erase(std::find(list.begin(), list.end(), &running));
  for (sg_backend_event *event : running.run->events) {
    if (!event) continue;
    try {
      events_.push_back(event);
    } catch (const std::bad_alloc &) {
      ops_.event_destroy(event);
    }
  }
  device_memory_.give_back(running.operands.device_arena);
  staging_memory_.give_back(running.operands.staging_arena);
  running.finish();
}

// ---- Lanes ----

bool engine::has_room(const lane_slot &slot, bool alone) const noexcept {
  return slot.in_flight.load(std::memory_order_acquire) < (alone ? 1 : depth_);
}

lane_slot *engine::free_lane(work_class what, bool alone) noexcept {
  if (what != computing) {
    lane_slot &slot = what == to_device ? copy_in_ : copy_out_;
    return has_room(slot, false) ? &slot : nullptr;
  }
  // The least loaded one; among equals the next in turn.
  lane_slot *best = nullptr;
  for (std::size_t i = 0; i < compute_.size(); ++i) {
    lane_slot &slot = *compute_[(next_lane_ + i) % compute_.size()];
    if (!best || slot.in_flight.load(std::memory_order_acquire) < best->in_flight.load(std::memory_order_acquire))
      best = &slot;
  }
  if (!has_room(*best, alone && !device_ordered_)) return nullptr;
  next_lane_ = (next_lane_ + 1) % compute_.size();
  return best;
}

lane_slot *engine::lane_for(command_kind kind, lane where, bool alone) noexcept {
  if (!device_ordered_) return free_lane(computing, alone);
  lane_slot &slot = kind == command_kind::copy_in    ? copy_in_
                    : kind == command_kind::copy_out ? copy_out_
                                                     : *compute_[where.index % compute_.size()];
  return slot.in_flight.load(std::memory_order_acquire) < device_lane_depth ? &slot : nullptr;
}

// Makes a command's calls. What fails here ends the pieces that were not enqueued.
template <class Calls, class Enqueue>
void engine::enqueue(flight &f, const Calls &calls, Enqueue &&enqueue_one) noexcept {
  const auto count = static_cast<std::int32_t>(calls.size());
  f.pieces.store(count, std::memory_order_release);
  for (std::int32_t i = 0; i < count; ++i) {
    const sg_status status = enqueue_one(calls[static_cast<std::size_t>(i)], sg_backend_done{piece_ended, &f});
    if (status == SG_STATUS_OK) continue;
    piece_of(f, status, ops_.last_message(device_.handle()), 0, 0, count - i);
    return;
  }
}

void engine::launch(flight &f, const command *c) noexcept {
  sg_backend_stream *stream = f.lane->stream;
  const job &about = *f.about;
  const auto copy = [&](const sg_backend_copy &one, sg_backend_done done) { return ops_.copy(stream, &one, done); };
  try {
    if (!c) return enqueue(f, std::array{about.copy}, copy);
    const schedule &s = *about.plan->text;
    switch (c->kind) {
      case command_kind::gemm:
        return enqueue(f, std::array{lower_gemm(s, *c, about.operands, pointers_)},
                       [&](const sg_backend_gemm &one, sg_backend_done done) { return ops_.gemm(stream, &one, done); });
      case command_kind::reduce:
        lower_reduce(s, *c, about.operands, reduces_);
        return enqueue(f, reduces_, [&](const sg_backend_reduce &one, sg_backend_done done) {
          return ops_.reduce(stream, &one, done);
        });
      case command_kind::copy_in:
      case command_kind::copy_out:
        lower_copy(s, *c, about.operands, copies_);
        return enqueue(f, copies_, copy);
      case command_kind::pack:
      case command_kind::unpack: break;  // staging workers do these
    }
    piece_of(f, SG_STATUS_INTERNAL, "a staging command reached a device lane", 0, 0, 1);
  } catch (const std::bad_alloc &) {
    piece_of(f, SG_STATUS_OUT_OF_MEMORY, "out of host memory while the command was prepared", 0, 0, 1);
  }
}

// On a staging worker's thread.
void engine::stage(flight &f) noexcept {
  sg_status status = SG_STATUS_OK;
  const char *message = nullptr;
  try {
    const schedule &s = *f.about->plan->text;
    std::vector<sg_backend_copy> copies;
    lower_copy(s, s.commands[f.index], f.about->operands, copies);
    for (const sg_backend_copy &copy : copies)
      for (std::int64_t run = 0; run < copy.height; ++run)
        std::memcpy(static_cast<char *>(copy.dst) + run * copy.dst_pitch,
                    static_cast<const char *>(copy.src) + run * copy.src_pitch, static_cast<std::size_t>(copy.width));
  } catch (const std::bad_alloc &) {
    status = SG_STATUS_OUT_OF_MEMORY;
    message = "out of host memory while staging";
  }
  piece_of(f, status, message, 0, 0, 1);
}

}  // namespace sg
