// SPDX-License-Identifier: Apache-2.0
// An event: a marker job in a stream, and a native event beside it where somebody asked for one. A wrapper has the
// native event only.
#pragma once

#include <memory>
#include <mutex>

#include "base/object.hpp"
#include "run/job/job.hpp"
#include "run/objects/event_lanes.hpp"
#include "run/objects/native_event.hpp"
#include "run/order/job_sink.hpp"

namespace sg {

class stream;

class event final : public object {
 public:
  event(ref<job_sink> owner, event_lanes &lanes) noexcept
      : object(object_type::event), owner_(std::move(owner)), lanes_(lanes), wraps_(false) {}
  // Over one of the caller's. Throws as native_event does.
  event(ref<job_sink> owner, event_lanes &lanes, void *native);

  job_sink &owner() const noexcept { return *owner_; }
  bool wraps() const noexcept { return wraps_; }
  // All of these throw std::bad_alloc, sg::error.
  void record(stream &in);
  // What ends when the event, as last recorded, has happened; empty: it has.
  ref<job> recorded() const;
  bool happened() const;
  // What is submitted to `later` from now on runs after the event.
  void block(stream &later) const;
  // A marker that depends on nothing: what an event that was never recorded stands for.
  ref<job> happened_already() const;
  // The native event, which moves with this one from now on.
  void *native();

 private:
  ref<job> marker() const noexcept;
  ref<job> new_marker() const;  // one that the device's work may follow where it follows any
  void put(const ref<job> &marker, stream *in, job *behind) const;
  // A command of its own, in a lane for events.
  ref<job> new_lane_marker() const;
  void record_natively(job &behind) const;

  const ref<job_sink> owner_;
  event_lanes &lanes_;  // the context's
  const bool wraps_;
  std::mutex recording_;  // one at a time, so that both stand for the same point
  std::unique_ptr<native_event> native_;
  mutable std::mutex lock_;
  ref<job> marker_;  // as last recorded
};

}  // namespace sg
