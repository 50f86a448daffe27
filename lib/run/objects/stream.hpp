// SPDX-License-Identifier: Apache-2.0
// A stream: the order of what is submitted to it. It has no thread and no queue of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/object.hpp"
#include "run/job/job.hpp"
#include "run/objects/dedicated_lane.hpp"
#include "run/objects/partitions.hpp"
#include "run/order/job_sink.hpp"

namespace sg {

class stream final : public object {
 public:
  stream(ref<job_sink> owner, std::int32_t priority) noexcept;
  // Whose products use some compute units only, `most` of them at most, which are set aside where that is possible.
  // Throws as the partitions do.
  stream(ref<job_sink> owner, std::int32_t priority, partitions &of, std::int32_t most);
  // Over a stream of the caller's. Throws as dedicated_lane does.
  stream(ref<job_sink> owner, engine &in, void *native);

  job_sink &owner() const noexcept { return *owner_; }
  std::int32_t priority() const noexcept { return priority_; }
  std::int32_t units() const noexcept { return units_; }  // that its products may use; 0: all
  // The lane of its products, on units that are set aside for it; nullptr: there are none.
  lane_slot *partition_lane() const noexcept { return partition_ ? &partition_->lane.slot() : nullptr; }
  std::uint32_t number() const noexcept { return number_; }  // streams take turns by it

  bool is_native() const noexcept { return native_ != nullptr; }
  // Of a stream of the caller's: whether `work` is one command that goes into it, which it is then made for. Other work
  // runs elsewhere, between what is in the stream and what the caller puts there once it has ended.
  bool takes(job &work) const noexcept;

  // Orders `next` after the latest submission, which is returned: it may be the last reference, to be dropped without
  // the context's submission lock, which is held.
  ref<job> append(job &next);
  // The latest submission; empty when there was none.
  ref<job> latest() const noexcept;
  // What ends when everything in the stream has ended, the caller's own work in a native stream too; empty when nothing
  // was submitted. Throws like job_sink::submit.
  ref<job> end();

 private:
  // What is in flight in a stream of the caller's ends before that is let go; a partition is let go when its own has.
  void last_ref_dropped() noexcept override;

  const ref<job_sink> owner_;
  const std::int32_t priority_;
  std::int32_t units_ = 0;
  const std::uint32_t number_ = count_++;
  inline static std::atomic<std::uint32_t> count_{0};
  const std::unique_ptr<dedicated_lane> native_;
  partitions *const partitions_ = nullptr;  // the context's; of a stream with units of its own
  std::unique_ptr<partition> partition_;
  ref<job> latest_;  // guarded by the context's submission lock
};

}  // namespace sg
