// SPDX-License-Identifier: Apache-2.0
// Chooses which weights of a pipeline are resident, how many batches have buffers, and how many buffers streamed
// weights have: by simulation of successive batches, within the memory limit.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "run/pipeline/batch.hpp"
#include "run/pipeline/placement.hpp"

namespace sg {

struct pipeline_settings {
  std::int64_t input_bytes = 0, memory_limit = 0;  // limit: 0: none
  std::int32_t depth = 0, weight_buffers = 0;      // 0: to be chosen
  std::int32_t batches_in_flight = 0;              // 0: by the depth
  bool refuses_when_full = false;
  bool replicates = false;  // all devices get all stages
  bool is_trial = false;    // what cannot be is not logged
};

// Parts of the context, which the pipeline's owner keeps.
struct pipeline_parts {
  const machine_model &machine;
  memory_kinds &memory;
  bool checks_hazards;
};

struct pipeline_choice {
  std::int32_t depth = 0, weight_buffers = 0, streamed_stages = 0;  // weight buffers: of each device
  std::vector<placement> replicas;                                  // one, or for each device all stages on it
  std::int32_t batches_in_flight = 0;                               // limit
  bool interleaves = false;                                         // batches of all replicas that are pushed at once
  bool shares_weights = false;                                      // they share streamed weights
  std::map<device_index, device_sizes> devices;                     // with stages
  bool has(const pipeline_stage &stage, device_index device) const noexcept;
  std::int64_t resident_bytes = 0, streamed_bytes = 0, device_bytes = 0;
  std::int64_t bytes_of(const device_sizes &sizes) const;
  std::int64_t fitting_bytes = 0;  // that all weights resident would take; 0: they do not fit, or are resident
  double seconds_per_batch = 0, transfer_in_seconds = 0, transfer_out_seconds = 0, work_seconds = 0;
  double link_in_seconds = 0;  // of the transfers in, at the rate of the link alone
};

// The pipeline's buffers, each from `take`.
pipeline_memory make_memory(const pipeline_choice &choice, const std::deque<pipeline_stage> &stages,
                            const std::function<char *(device_index, std::int64_t bytes)> &take);

// Rounds of a batch for each replica, with ends of their own and buffers that are not allocated. The stages are then on
// the devices of the first replica.
std::vector<batch_list> planned_rounds(const pipeline_choice &choice, std::deque<pipeline_stage> &stages,
                                       const pipeline_settings &settings, batch_maker &maker, bool in_place,
                                       std::int64_t count);

// Throws SG_STATUS_INTERNAL if batches race: those that are pushed at once, and single ones.
void check_rounds(pipeline_choice choice, std::deque<pipeline_stage> &stages, const pipeline_settings &settings,
                  batch_maker &maker, bool in_place);

// Sets the stages' streamed_index, and puts the stages that name no device on some of `usable`, or all stages on each
// of them. `in_place`: batches need no copies. `limits`: bytes of each device's memory. Throws SG_STATUS_OUT_OF_MEMORY
// if one is too low, and SG_STATUS_INTERNAL if `checks` and batches race.
pipeline_choice choose(std::deque<pipeline_stage> &stages, const pipeline_settings &settings,
                       const std::map<device_index, std::int64_t> &limits, const std::vector<device_index> &usable,
                       const pipeline_parts &parts, batch_maker &maker, bool in_place);

// As lines of text: what limits the batches.
std::string describe(const std::deque<pipeline_stage> &stages, const pipeline_choice &choice,
                     const pipeline_settings &settings);

}  // namespace sg
