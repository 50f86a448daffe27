// SPDX-License-Identifier: Apache-2.0
#include "run/objects/stream.hpp"

#include <utility>

#include "base/futex.hpp"

namespace sg {

stream::stream(ref<job_sink> owner, std::int32_t priority, std::optional<device_index> device) noexcept
    : object(object_type::stream), owner_(std::move(owner)), priority_(priority), device_(device) {}

stream::stream(ref<job_sink> owner, std::int32_t priority, device_index device, partitions &of, std::int32_t most)
    : object(object_type::stream),
      owner_(std::move(owner)),
      priority_(priority),
      device_(device),
      units_(of.grant(most)),
      partitions_(&of),
      partition_(units_ > 0 ? of.acquire(priority, units_) : nullptr) {}

stream::stream(ref<job_sink> owner, engine &in, void *native)
    : object(object_type::stream),
      owner_(std::move(owner)),
      priority_(0),
      native_(std::make_unique<dedicated_lane>(owner_->on(), in, native)) {}

void stream::last_ref_dropped() noexcept {
  if (native_ && latest_) latest_->wait(deadline(-1));
  if (partition_) partitions_->release(std::move(partition_), latest_.get());
  delete this;
}

bool stream::takes(job &work) const noexcept {
  if (!work.program && !work.graph) {
    work.give_work(owner_->lane_marker);
    work.follows_on_device = true;
  }
  if (!work.follows_on_device || work.is_run || work.device != native_->slot().device) return false;
  work.native = &native_->slot();
  return true;
}

ref<job> stream::append(job &next) {
  if (latest_) next.order_after(*latest_, latest_->incarnation(), false);
  return std::exchange(latest_, ref<job>::share(&next));
}

ref<job> stream::end() {
  if (!native_) return latest();
  ref<job> made = owner_->new_job();
  submission_order order;
  order.on = this;
  owner_->submit(made, order, nullptr, 0);
  return made;
}

ref<job> stream::latest() const noexcept {
  ref<job> result;
  owner_->submission_lock().run([&] { result = latest_; });
  return result;
}

}  // namespace sg
