// SPDX-License-Identifier: Apache-2.0
// An event: a marker job in a stream, and a native event if one was requested. A wrapper has the native event only.
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
  // Wraps a native event of the caller. Throws as native_event does.
  event(ref<job_sink> owner, event_lanes &lanes, void *native);

  job_sink &owner() const noexcept { return *owner_; }
  bool wraps() const noexcept { return wraps_; }
  // All of these throw std::bad_alloc, sg::error.
  void record(stream &in);
  // A job that completes when the event, as last recorded, has happened; empty: it has.
  ref<job> recorded() const;
  bool happened() const;
  // Later submissions to `later` run after the event.
  void block(stream &later) const;
  // A marker without dependencies: the state of an event that was never recorded.
  ref<job> happened_already() const;
  // The native event, recorded with this one from now on.
  void *native();

 private:
  ref<job> marker() const noexcept;
  ref<job> new_marker() const;  // can follow its predecessors on the device
  void put(const ref<job> &marker, stream *in, job *behind) const;
  // A command of its own in a lane for events.
  ref<job> new_lane_marker() const;
  void record_natively(job &behind) const;

  const ref<job_sink> owner_;
  event_lanes &lanes_;  // the context's
  const bool wraps_;
  std::mutex recording_;  // serializes record(), so that job and native event mark the same point
  std::unique_ptr<native_event> native_;
  mutable std::mutex lock_;
  ref<job> marker_;  // as last recorded
};

}  // namespace sg
