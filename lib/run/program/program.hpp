// SPDX-License-Identifier: Apache-2.0
// A schedule with the tables needed to run it, built once.
#pragma once

#include <streamgemm/backend.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/device_model.hpp"
#include "ops/binding.hpp"
#include "plan/form/form.hpp"
#include "plan/schedule/dependents.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

// Immutable. It owns its schedule and refers to none of its owners: the program cache, submission caches, sg_plan
// objects, recorded submissions, runs, and the jobs that used it last.
struct program {
  // `planned`: nullptr if the schedule was not made from a form; such a program is not planned again.
  program(std::shared_ptr<const form> planned, const plan_request &requested, std::shared_ptr<const sg::schedule> made,
          const device_model &model);

  // One command without views.
  // `on`: its devices; several for a graph, which a stream of the first one launches.
  static std::shared_ptr<const program> of_command(const payload &what, const char *strategy,
                                                   std::vector<device_index> on = {first_device});

  // One command without memory of its own, which needs no run.
  bool is_single() const noexcept {
    return schedule->commands.size() == 1 && schedule->device_bytes == 0 && schedule->staging_bytes == 0 &&
           !is_spread();
  }
  std::int64_t predicted_ns() const noexcept {
    constexpr double most_seconds = 1e8;
    return static_cast<std::int64_t>(std::min(schedule->predicted_seconds, most_seconds) * 1e9);
  }

  // The commands of one lane of the device, in order.
  struct lane_list {
    lane where;
    std::vector<std::uint32_t> commands;
  };

  std::shared_ptr<const form> what;
  plan_request request;
  std::shared_ptr<const sg::schedule> schedule;
  std::vector<lane_list> lanes;
  std::vector<device_index> devices;  // that run its commands, ascending
  bool is_spread() const noexcept { return devices.size() > 1; }
  std::uint64_t device_bits() const noexcept {  // bit i for device i; later ones have none
    std::uint64_t bits = 0;
    for (const device_index each : devices)
      if (number_of(each) < 64) bits |= std::uint64_t{1} << number_of(each);
    return bits;
  }
  // Of each of `devices`, in that order.
  struct arena_bytes {
    std::int64_t device = 0, staging = 0;
  };
  std::vector<arena_bytes> arenas;
  // Whose engine runs it; of several the machine's first, which has lanes on each.
  device_index device() const noexcept { return devices.size() == 1 ? devices[0] : first_device; }
  dependents after;
  // A device command on which another lane's device command depends needs an event.
  std::vector<bool> needs_event;
  std::vector<bool> is_out_of_order;  // copies that may overtake earlier ones of their lane
  bool wants_core = false;            // its commands are long enough to need a core of their own
  // A short copy in, kernels and a copy out that wait for each other anyway: one lane, the only one of `lanes`, takes
  // all of its device commands, without events between them.
  bool in_one_lane = false;
  // Not one copy, marker or graph: its commands take shares of the device.
  bool computes = true;
  // On a device that orders commands, it may begin behind its predecessors' commands, once these are enqueued: it is
  // one command, or all of its commands compute. Not a copy of pageable memory, which may block the thread that
  // enqueues it: no command may be queued before it.
  bool may_follow = false;
  // Its commands are short independent GEMMs of one problem, which the engine sends as one call: the submitter waits,
  // and one command queued behind another job would delay the whole job.
  bool one_call = false;
  // By command, for programs of several problems: seconds of a small GEMM without dependencies or dependents, which can
  // be batched; 0 for any other command. Empty: no two commands are batchable.
  std::vector<float> batchable;

  // Independent GEMMs, short enough to run on the waiting thread, without a reduction first.
  bool short_here = false;

  // Of a single GEMM.
  bool small = false;              // a launch costs much of its time: it can be batched
  std::size_t min_batch_size = 1;  // the smallest batch that is faster than unbatched calls
  double work_seconds = 0;         // predicted, without the launch: its contribution to a batch
  std::int64_t work_ns() const noexcept { return static_cast<std::int64_t>(work_seconds * 1e9); }
  float share = 1;         // share of the device that it fills
  std::int64_t items = 1;  // of the GEMM's batch
  sg_dtype in_type = SG_DTYPE_F32, out_type = SG_DTYPE_F32;
  sg_compute compute = SG_COMPUTE_EXACT;
  // The backend call of a GEMM without addresses; of a job it needs only the addresses and scalars.
  struct call_template {
    sg_backend_gemm form;
    std::int32_t group;                       // of the scalars
    std::array<std::uint32_t, 4> parameters;  // indices of A, B, C and the bias
    bool own_alpha, own_beta, has_bias;       // set from the job
  };
  // For small single GEMMs and batchable ones; nullptr: the command must be lowered.
  const call_template *call_of(std::uint32_t command) const noexcept {
    return command < calls_.size() && calls_[command] ? &*calls_[command] : nullptr;
  }

 private:
  void prepare_call(std::uint32_t command, const binding &nowhere);
  bool has_latency_parts() const noexcept;
  void find_batchable(const device_model &model);
  void leave_unbatched(const device_model &model, std::vector<float> &seconds) const;

  std::vector<std::optional<call_template>> calls_;  // by command, or empty
};

}  // namespace sg
