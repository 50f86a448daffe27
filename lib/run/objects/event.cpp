// SPDX-License-Identifier: Apache-2.0
#include "run/objects/event.hpp"

#include "base/error.hpp"
#include "run/objects/stream.hpp"

namespace sg {

event::event(ref<job_sink> owner, event_lanes &lanes, void *native)
    : object(object_type::event),
      owner_(std::move(owner)),
      lanes_(lanes),
      wraps_(true),
      native_(std::make_unique<native_event>(owner_->on(), native)) {}

ref<job> event::new_marker() const {
  ref<job> made = owner_->new_job();
  made->follows_on_device = owner_->on().orders_commands();
  return made;
}

ref<job> event::new_lane_marker() const {
  ref<job> made = owner_->new_job();
  made->give_work(owner_->lane_marker);
  made->follows_on_device = true;
  made->native = &lanes_.least_busy();
  return made;
}

void event::put(const ref<job> &work, stream *in, job *behind) const {
  submission_order order;
  order.on = in;
  order.behind = behind;
  owner_->submit(work, order, nullptr, 0);
  if (!(work->awaited || work->recorded) || !work->failed()) return;
  work->wait(deadline(-1));
  throw error(work->status(), "%s", work->message());
}

void event::record(stream &in) {
  const std::lock_guard one_at_a_time(recording_);
  ref<job> made = new_marker();
  if (native_ && in.is_native()) made->recorded = native_->get();
  put(made, &in, nullptr);
  if (native_ && !in.is_native()) record_natively(*made);
  const std::lock_guard lock(lock_);
  marker_ = std::move(made);
}

void event::record_natively(job &behind) const {
  const ref<job> made = new_lane_marker();
  made->recorded = native_->get();
  put(made, nullptr, &behind);
}

void *event::native() {
  const std::lock_guard one_at_a_time(recording_);
  if (!native_) {
    native_ = std::make_unique<native_event>(owner_->on());
    try {
      if (const ref<job> now = marker()) record_natively(*now);
    } catch (...) {
      native_.reset();
      throw;
    }
  }
  return native_->address();
}

ref<job> event::recorded() const {
  if (!wraps_) return marker();
  ref<job> made = new_lane_marker();
  made->awaited = native_->get();
  put(made, nullptr, nullptr);
  return made;
}

bool event::happened() const {
  if (wraps_) return native_->happened();
  const ref<job> now = marker();
  return !now || now->done();
}

void event::block(stream &later) const {
  const bool in_lane = wraps_ && later.is_native();
  const ref<job> before = in_lane ? ref<job>() : recorded();
  if (!before && !in_lane) return;
  const ref<job> made = new_marker();
  if (in_lane) made->awaited = native_->get();
  put(made, &later, before.get());
}

ref<job> event::happened_already() const {
  ref<job> made = owner_->new_job();
  owner_->submit(made, submission_order(), nullptr, 0);
  return made;
}

ref<job> event::marker() const noexcept {
  const std::lock_guard lock(lock_);
  return marker_;
}

}  // namespace sg
