// SPDX-License-Identifier: Apache-2.0
// A stream: an order of submissions. It has no thread and no queue of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/object.hpp"
#include "run/job/job.hpp"
#include "run/objects/dedicated_lane.hpp"
#include "run/objects/partitions.hpp"
#include "run/order/job_sink.hpp"

namespace sg {

class stream final : public object {
 public:
  // `device`: whose its work is to be; empty: of the operands' memory, or any.
  stream(ref<job_sink> owner, std::int32_t priority, std::optional<device_index> device) noexcept;
  // A stream whose GEMMs use at most `most` compute units of the device, reserved ones if possible. Throws as
  // partitions does.
  stream(ref<job_sink> owner, std::int32_t priority, device_index device, partitions &of, std::int32_t most);
  // Wraps a native stream of the caller. Throws as dedicated_lane does.
  stream(ref<job_sink> owner, engine &in, void *native);

  job_sink &owner() const noexcept { return *owner_; }
  std::int32_t priority() const noexcept { return priority_; }
  std::optional<device_index> device() const noexcept { return device_; }
  std::int32_t units() const noexcept { return units_; }  // limit for its GEMMs; 0: none
  // The lane of its GEMMs on reserved units; nullptr: none are reserved.
  lane_slot *partition_lane() const noexcept { return partition_ ? &partition_->lane.slot() : nullptr; }
  std::uint32_t number() const noexcept { return number_; }  // its submitter number, for fair sharing

  bool is_native() const noexcept { return native_ != nullptr; }
  // For a wrapped stream: prepares `work` and returns true if it is one command that can be enqueued in the native
  // stream. Other work runs elsewhere, ordered after the present contents of the native stream and before the caller's
  // next work.
  bool takes(job &work) const noexcept;

  // Orders `next` after the latest submission and returns that: it may be the last reference, to be released without
  // the submission lock, which the caller holds.
  ref<job> append(job &next);
  // The latest submission; empty when there was none.
  ref<job> latest() const noexcept;
  // A job that completes when everything in the stream has completed, in a native stream the caller's own work too;
  // empty if nothing was submitted. Throws like job_sink::submit.
  ref<job> end();

 private:
  // A wrapped stream waits for its commands in flight; a partition is released when its latest job completes.
  void last_ref_dropped() noexcept override;

  const ref<job_sink> owner_;
  const std::int32_t priority_;
  const std::optional<device_index> device_;
  std::int32_t units_ = 0;
  const std::uint32_t number_ = count_++;
  inline static std::atomic<std::uint32_t> count_{0};
  const std::unique_ptr<dedicated_lane> native_;
  partitions *const partitions_ = nullptr;  // the context's; only with reserved units
  std::unique_ptr<partition> partition_;
  ref<job> latest_;  // guarded by the context's submission lock
};

}  // namespace sg
