// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.hpp"
#include "run/pipeline/pipeline_plan.hpp"

namespace sg {

std::string describe(const std::deque<pipeline_stage> &stages, const pipeline_choice &choice,
                     const pipeline_settings &settings) {
  constexpr double mb = 1e6, ms = 1e3;
  std::string text = formatted("%zu stage%s, %d batch%s in flight on the device, %.1f MB of device memory\n",
                               stages.size(), stages.size() == 1 ? "" : "s", choice.depth,
                               choice.depth == 1 ? "" : "es", double(choice.device_bytes) / mb);
  if (choice.replicas.size() > 1)
    text += formatted("%zu replicas%s\n", choice.replicas.size(),
                      choice.shares_weights ? "; batches that are pushed at once share streamed weights" : "");
  text += formatted("weights: %.1f MB resident, %.1f MB streamed for each batch", double(choice.resident_bytes) / mb,
                    double(choice.streamed_bytes) / mb);
  std::int64_t largest = 0;
  for (const auto &[device, there] : choice.devices) largest = std::max(largest, there.weight_buffer_bytes);
  const bool is_spread = choice.devices.size() > 1;
  text += choice.streamed_stages == 0
              ? "\n"
              : formatted(" (%d stage%s) into %d buffer%s of %s%.1f MB%s\n", choice.streamed_stages,
                          choice.streamed_stages == 1 ? "" : "s", choice.weight_buffers,
                          choice.weight_buffers == 1 ? "" : "s", is_spread ? "at most " : "", double(largest) / mb,
                          is_spread ? " on each device" : "");
  for (const auto &[device, there] : choice.devices)
    if (is_spread)
      text +=
          formatted("device %zu: %d stage%s, %.1f MB of device memory; weights: %.1f MB resident, %.1f MB streamed\n",
                    number_of(device), there.stages, there.stages == 1 ? "" : "s", double(choice.bytes_of(there)) / mb,
                    double(there.resident_bytes) / mb, double(there.streamed_bytes) / mb);
  if (choice.fitting_bytes > 0)
    text += formatted("all weights would fit: %.1f MB of device memory\n", double(choice.fitting_bytes) / mb);
  text += formatted("input %.1f MB, result %.1f MB\n", double(settings.input_bytes) / mb,
                    double(stages.back().output_bytes) / mb);
  text += formatted("predicted: %.3f ms a batch; transfers in %.3f ms, work %.3f ms, transfers out %.3f ms\n",
                    choice.seconds_per_batch * ms, choice.transfer_in_seconds * ms, choice.work_seconds * ms,
                    choice.transfer_out_seconds * ms);
  const double transfers = std::max(choice.transfer_in_seconds, choice.transfer_out_seconds);
  constexpr double much_longer = 1.3;  // than the link alone
  // Of pinned weights, what the links of several devices share may be slower than each of them.
  const bool has_staged = std::any_of(stages.begin(), stages.end(), [](const pipeline_stage &each) {
    const auto is_pageable = [](const pipeline_weight &weight) { return weight.space == SG_MEMORY_PAGEABLE; };
    return each.is_streamed() && std::any_of(each.weights.begin(), each.weights.end(), is_pageable);
  });
  const bool is_staged = has_staged && choice.link_in_seconds > 0 && transfers == choice.transfer_in_seconds &&
                         transfers > much_longer * choice.link_in_seconds;
  if (transfers > choice.work_seconds && choice.work_seconds > 0) {
    text += formatted("%s the limit: the work would hide it if a batch had %.1f times the work\n",
                      is_staged ? "staging is" : "the link is", transfers / choice.work_seconds);
    if (is_staged)
      text += formatted("the link alone needs %.3f ms a batch: weights and inputs in pinned memory are not staged\n",
                        choice.link_in_seconds * ms);
  } else if (transfers > 0 && choice.work_seconds > 0)
    text +=
        formatted("the work is the limit: transfers take %.0f%% of its time\n", 100 * transfers / choice.work_seconds);
  return text;
}

}  // namespace sg
