// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/pipeline_plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "base/log.hpp"
#include "plan/schedule/simulate.hpp"
#include "run/pipeline/batch_schedule.hpp"
#include "run/pipeline/placement.hpp"

namespace sg {

namespace {

constexpr std::int32_t most_chosen = 4;  // of batches with buffers, and of weight buffers
constexpr double worth_sharing = 0.97;
constexpr double worth_a_buffer = 0.99;        // a further buffer must shorten a batch to this
constexpr std::size_t enough_commands = 6000;  // of a simulation
constexpr std::int64_t simulated_rounds = 24;

using long_long = long long;

// Whether a stage of one batch may have to wait for another stage of an earlier one: by memory of the application that
// it writes. What a function will record is not known.
bool depends_on_batches(const pipeline_stage &stage) {
  bool writes_other_memory = false;
  for (const auto &work : stage.works())
    work->each_other_access([&](const footprint &, bool writes) { writes_other_memory |= writes; });
  return stage.record || writes_other_memory;
}

class chooser {
 public:
  // The stages are on the devices of the first replica.
  chooser(std::deque<pipeline_stage> &stages, const pipeline_settings &settings,
          const std::map<device_index, std::int64_t> &limits, const pipeline_parts &parts, batch_maker &maker,
          bool in_place, std::vector<placement> replicas)
      : stages_(stages), settings_(settings), limits_(limits), parts_(parts), maker_(maker), in_place_(in_place) {
    made_.replicas = std::move(replicas);
  }

  pipeline_choice choose() {
    set_sizes();
    const bool all_fit = place_weights();
    if (made_.streamed_stages == 0 || !all_fit) made_.fitting_bytes = 0;
    set_counts();
    made_.interleaves = replicas() > 1 && std::none_of(stages_.begin(), stages_.end(), depends_on_batches);
    if (made_.streamed_stages > 0 && made_.interleaves) share_weights();
    predict_parts();
    for (const auto &[device, sizes] : made_.devices) made_.device_bytes += made_.bytes_of(sizes);
    made_.batches_in_flight = settings_.batches_in_flight > 0
                                  ? settings_.batches_in_flight
                                  : static_cast<std::int32_t>(replicas()) * 2 * made_.depth + 2;
    if (parts_.checks_hazards) check_rounds(made_, stages_, settings_, maker_, in_place_);
    return made_;
  }

  // Throws SG_STATUS_OUT_OF_MEMORY if a limit is too low.
  void require_memory() {
    set_sizes();
    place_weights();
    start_counts();
  }

  // Of a batch, with all the buffers that may be chosen, or with as many as fit; HUGE_VAL: none do.
  double least_seconds() {
    set_sizes();
    place_weights();
    const bool streams = made_.streamed_stages > 0;
    for (const std::int32_t most : {most_chosen, 2, 1}) {
      const std::int32_t depth = settings_.depth > 0 ? settings_.depth : most;
      const std::int32_t buffers = !streams ? 0 : settings_.weight_buffers > 0 ? settings_.weight_buffers : most;
      if (fits(depth, buffers)) return simulated(depth, buffers);
    }
    return HUGE_VAL;
  }

 private:
  // Returns whether all weights would fit.
  bool place_weights() {
    bool all_fit = true;
    if (replicas() == 1) {
      for (const auto &[device, there] : made_.devices) all_fit = place_weights(device, limits_.at(device)) && all_fit;
      return all_fit;
    }
    // All devices have what fits on each of them.
    const device_index first = made_.replicas[0][0];
    std::int64_t limit = limits_.at(first);
    for (const placement &each : made_.replicas) limit = std::min(limit, limits_.at(each[0]));
    all_fit = place_weights(first, limit);
    for (const placement &each : made_.replicas) made_.devices[each[0]] = made_.devices.at(first);
    return all_fit;
  }

  std::int64_t replicas() const noexcept { return static_cast<std::int64_t>(made_.replicas.size()); }

  // Whether a round of batches is faster if they share streamed weights.
  void share_weights() {
    pipeline_choice own = made_;
    made_.shares_weights = true;
    set_counts();
    if (made_.seconds_per_batch > worth_sharing * own.seconds_per_batch) made_ = std::move(own);
  }

  void set_sizes() {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      device_sizes &there = made_.devices[stages_[s].device];
      const auto grow = [](std::int64_t &size, std::int64_t bytes) { size = std::max(size, round_up(bytes, 256)); };
      if (stages_[s].receives_input) grow(there.batch.input, stages_[s].input_bytes);
      grow(there.batch.outputs[s % 2], stages_[s].output_bytes);
      grow(there.batch.workspace, stages_[s].workspace_bytes);
      ++there.stages;
    }
  }

  // Which stages of a device are streamed: those that must be, and of the others every so many as do not fit, spread
  // evenly. Returns whether all would fit.
  bool place_weights(device_index device, std::int64_t limit) {
    device_sizes &there = made_.devices.at(device);
    std::int64_t all = 0, free_to_choose = 0, forced = 0, largest = 0;
    bool must_stream = false;
    for (const pipeline_stage &each : stages_) {
      if (each.device != device) continue;
      must_stream = must_stream || each.place == SG_WEIGHTS_STREAMED;
      all = checked_add(all, each.weights_bytes, "weights");
      largest = std::max(largest, each.weights_bytes);
      if (each.place == SG_WEIGHTS_AUTO) free_to_choose += each.weights_bytes;
      if (each.place == SG_WEIGHTS_RESIDENT) forced += each.weights_bytes;
    }
    const std::int32_t depth = settings_.depth > 0 ? settings_.depth : 2;
    const std::int64_t batches = checked_mul(depth, there.batch.total(), "batches");
    const std::int64_t ring = (settings_.weight_buffers > 0 ? settings_.weight_buffers : 3) * largest;
    const bool chosen_fit = forced + free_to_choose <= limit - batches - (must_stream ? ring : 0);
    const std::int64_t room = std::max<std::int64_t>(0, limit - batches - ring - forced);
    std::int64_t seen = 0, kept = 0;
    for (pipeline_stage &each : stages_) {
      if (each.device != device) continue;
      each.streamed_index = -1;
      if (each.weights_bytes == 0) continue;
      bool resident = each.place == SG_WEIGHTS_RESIDENT;
      if (each.place == SG_WEIGHTS_AUTO) {
        seen += each.weights_bytes;
        const double share = double(room) / double(std::max<std::int64_t>(free_to_choose, 1));
        resident = chosen_fit ||
                   (double(kept + each.weights_bytes) <= share * double(seen) && kept + each.weights_bytes <= room);
        if (resident) kept += each.weights_bytes;
      }
      if (resident) {
        there.resident_bytes += each.weights_bytes;
      } else {
        each.streamed_index = there.streamed_stages++;
        there.streamed_bytes += each.weights_bytes;
        there.weight_buffer_bytes = std::max(there.weight_buffer_bytes, each.weights_bytes);
      }
    }
    made_.resident_bytes += there.resident_bytes;
    made_.streamed_bytes += there.streamed_bytes;
    made_.streamed_stages += there.streamed_stages;
    made_.fitting_bytes += all + batches;
    return all <= limit - batches;
  }

  // The least counts.
  void start_counts() {
    made_.depth = std::max(1, settings_.depth);
    made_.weight_buffers = made_.streamed_stages == 0 ? 0 : std::max(1, settings_.weight_buffers);
    for (const auto &[device, there] : made_.devices)
      if (made_.bytes_of(there) > limits_.at(device)) throw too_little_memory(device, there);
  }

  void set_counts() {
    start_counts();
    const std::int32_t least_depth = made_.depth, least_buffers = made_.weight_buffers;
    made_.seconds_per_batch = simulated(made_.depth, made_.weight_buffers);
    const bool grows_depth = settings_.depth == 0, grows_buffers = settings_.weight_buffers == 0 && least_buffers > 0;
    // One more of one, of the other, or of both, as long as that helps.
    for (bool helps = true; helps;) {
      helps = false;
      for (const auto &[more_depth, more_buffers] : {std::pair(0, 1), std::pair(1, 0), std::pair(1, 1)}) {
        const std::int32_t depth = made_.depth + more_depth, buffers = made_.weight_buffers + more_buffers;
        if ((more_depth && !grows_depth) || (more_buffers && !grows_buffers)) continue;
        if (depth > std::max(most_chosen, least_depth) || buffers > std::max(most_chosen, least_buffers)) continue;
        if (!fits(depth, buffers)) continue;
        const double seconds = simulated(depth, buffers);
        if (seconds > worth_a_buffer * made_.seconds_per_batch) continue;
        made_.depth = depth;
        made_.weight_buffers = buffers;
        made_.seconds_per_batch = seconds;
        helps = true;
        break;
      }
    }
  }

  bool fits(std::int32_t depth, std::int32_t weight_buffers) const {
    pipeline_choice wanted = made_;
    wanted.depth = depth;
    wanted.weight_buffers = weight_buffers;
    return std::all_of(made_.devices.begin(), made_.devices.end(),
                       [&](const auto &each) { return wanted.bytes_of(each.second) <= limits_.at(each.first); });
  }

  error too_little_memory(device_index device, const device_sizes &there) const {
    const std::string where = made_.devices.size() > 1 ? " on device " + std::to_string(number_of(device)) : "";
    const std::int32_t buffers = there.streamed_stages > 0 ? made_.weight_buffers : 0;
    return error(
        SG_STATUS_OUT_OF_MEMORY,
        "the pipeline needs at least %lld bytes of device memory%s: %d batch%s of %lld, %d weight buffer%s of %lld, "
        "%lld of resident weights; the limit is %lld",
        long_long{made_.bytes_of(there)}, where.c_str(), made_.depth, made_.depth == 1 ? "" : "es",
        long_long{there.batch.total()}, buffers, buffers == 1 ? "" : "s", long_long{there.weight_buffer_bytes},
        long_long{there.resident_bytes}, long_long{limits_.at(device)});
  }

  std::vector<batch_list> rounds(std::int32_t depth, std::int32_t weight_buffers, std::int64_t count) {
    pipeline_choice wanted = made_;
    wanted.depth = depth;
    wanted.weight_buffers = weight_buffers;
    return planned_rounds(wanted, stages_, settings_, maker_, in_place_, count);
  }

  // Seconds from the end of one batch to the end of the next, once the pipeline is full.
  double simulated(std::int32_t depth, std::int32_t weight_buffers) {
    const batch_schedule one = simulated_schedule(rounds(depth, weight_buffers, 1), parts_.machine, parts_.memory);
    const std::size_t commands = std::max<std::size_t>(one.whole.commands.size(), 1);
    const auto count = static_cast<std::int64_t>(
        std::clamp<std::size_t>(enough_commands / commands, 3, static_cast<std::size_t>(simulated_rounds)));
    const batch_schedule all = simulated_schedule(rounds(depth, weight_buffers, count), parts_.machine, parts_.memory);
    const timeline times = simulate(all.whole, parts_.machine, all.jobs);
    const std::int64_t later = (count + 1) / 2;
    return (end_of(all, times, count - 1) - end_of(all, times, count - 1 - later)) / double(later * replicas());
  }

  static double end_of(const batch_schedule &of, const timeline &times, std::int64_t round) {
    double end = 0;
    const std::uint32_t last = of.ends[static_cast<std::size_t>(round)];
    for (std::uint32_t i = 0; i < last; ++i) end = std::max(end, times.commands[i].end);
    return end;
  }

  // Of each further batch, as a batch that follows others has no part of their latencies.
  double seconds_of(const std::vector<batch_list> &all, batch_role role) const {
    const auto simulated = [&](const std::vector<batch_list> &some) {
      const batch_schedule joined = simulated_schedule(some, parts_.machine, parts_.memory, role);
      return simulate(joined.whole, parts_.machine, joined.jobs).seconds;
    };
    return (simulated(all) - simulated({all[0]})) / double((static_cast<std::int64_t>(all.size()) - 1) * replicas());
  }

  void predict_parts() {
    // Buffers of their own for all, so that only the link orders the copies.
    constexpr std::int32_t count = 3;
    const std::vector<batch_list> all = rounds(count, count * made_.streamed_stages, count);
    made_.transfer_in_seconds = seconds_of(all, batch_role::transfer_in);
    made_.transfer_out_seconds = seconds_of(all, batch_role::transfer_out);
    made_.work_seconds = seconds_of(all, batch_role::work);
    for (const auto &[device, there] : made_.devices) {
      const bool is_first = replicas() > 1 || device == stages_.front().device;
      const std::int64_t streamed = there.streamed_bytes / (made_.shares_weights ? replicas() : 1);
      const std::int64_t bytes_in = streamed + (is_first && !in_place_ ? settings_.input_bytes : 0);
      const double rate = parts_.machine.device(device).link_in * double(replicas());
      if (rate > 0) made_.link_in_seconds = std::max(made_.link_in_seconds, double(bytes_in) / rate);
    }
  }

  std::deque<pipeline_stage> &stages_;
  const pipeline_settings &settings_;
  const std::map<device_index, std::int64_t> &limits_;
  const pipeline_parts &parts_;
  batch_maker &maker_;
  const bool in_place_;
  pipeline_choice made_;
};

}  // namespace

namespace {

bool is_lack(const error &of) {  // of an operation, or of memory
  return of.status() == SG_STATUS_UNSUPPORTED || of.status() == SG_STATUS_OUT_OF_MEMORY;
}

// All stages on each device that can have them.
pipeline_choice choose_replicas(std::deque<pipeline_stage> &stages, const pipeline_settings &settings,
                                const std::map<device_index, std::int64_t> &limits,
                                const std::vector<device_index> &usable, const pipeline_parts &parts,
                                batch_maker &maker, bool in_place) {
  std::vector<placement> replicas;
  for (const device_index each : usable) {
    const std::vector<placement> alone(1, placement(stages.size(), each));
    try {
      maker.place(stages, alone[0]);
      chooser(stages, settings, limits, parts, maker, in_place, alone).require_memory();
      replicas.push_back(alone[0]);
    } catch (const error &e) {
      if (!is_lack(e) || (replicas.empty() && each == usable.back())) throw;
      if (!settings.is_trial && logs(log_level::warn, log_area::plan))
        log_message(log_level::warn, log_area::plan, "device %zu gets no replica of a pipeline: %s", number_of(each),
                    e.what());
    }
  }
  maker.place(stages, replicas[0]);
  return chooser(stages, settings, limits, parts, maker, in_place, std::move(replicas)).choose();
}

}  // namespace

pipeline_choice choose(std::deque<pipeline_stage> &stages, const pipeline_settings &settings,
                       const std::map<device_index, std::int64_t> &limits, const std::vector<device_index> &usable,
                       const pipeline_parts &parts, batch_maker &maker, bool in_place) {
  if (settings.replicates && !usable.empty())
    return choose_replicas(stages, settings, limits, usable, parts, maker, in_place);
  // So many simulated operations in all take less than a second.
  constexpr std::size_t most_simulated = 2400, least_tried = 16, most_tried = 300;
  placement_request wanted{{}, usable, limits};
  std::size_t operations = 1;
  for (const pipeline_stage &each : stages) {
    wanted.fixed.push_back(each.is_movable ? std::nullopt : std::optional(each.recorded_device));
    operations += each.works().size();
  }
  wanted.most_tried = std::clamp(most_simulated / operations, least_tried, most_tried);
  const bool is_free = std::any_of(stages.begin(), stages.end(), [](const auto &each) { return each.is_movable; });
  if (is_free && parts.machine.devices.size() > 1 && !usable.empty()) {
    // A device may lack an operation, or the memory for it.
    const auto seconds = [&](const placement &where) {
      try {
        maker.place(stages, where);
        return chooser(stages, settings, limits, parts, maker, in_place, {where}).least_seconds();
      } catch (const error &e) {
        if (!is_lack(e)) throw;
        return double(HUGE_VAL);
      }
    };
    maker.place(stages, best_placement(wanted, parts.machine, seconds));
  }
  placement where;
  for (const pipeline_stage &each : stages) where.push_back(each.device);
  return chooser(stages, settings, limits, parts, maker, in_place, {std::move(where)}).choose();
}

}  // namespace sg
