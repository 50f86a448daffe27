// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/pipeline_plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "base/log.hpp"
#include "plan/schedule/hazard.hpp"
#include "plan/schedule/simulate.hpp"
#include "run/pipeline/batch_schedule.hpp"
#include "run/pipeline/placement.hpp"

namespace sg {

namespace {

constexpr std::int32_t most_chosen = 4;        // of batches with buffers, and of weight buffers
constexpr double worth_a_buffer = 0.99;        // a further buffer must shorten a batch to this
constexpr std::size_t enough_commands = 6000;  // of a simulation
constexpr std::size_t most_checked = 4000;     // commands of the hazard check: its memory grows with their square
constexpr std::int64_t simulated_batches = 24;

using long_long = long long;

// Buffers that are not allocated: numbers above all addresses of the process, which is all that a plan needs.
class planned_buffers {
 public:
  char *take(std::int64_t bytes) noexcept {
    next_ += static_cast<std::uintptr_t>(bytes);
    return reinterpret_cast<char *>(next_ - static_cast<std::uintptr_t>(bytes));
  }
  pipeline_memory memory(const pipeline_choice &chosen, const std::deque<pipeline_stage> &stages, std::int32_t depth,
                         std::int32_t weight_buffers) {
    pipeline_memory made;
    for (const auto &[device, sizes] : chosen.devices) {
      pipeline_memory::of_device &there = made.devices[device];
      there.sizes = sizes;
      for (std::int32_t i = 0; i < depth; ++i) there.batches.push_back(sizes.batch.at(take(sizes.batch.total())));
      for (std::int32_t i = 0; i < weight_buffers; ++i) there.weight_buffers.push_back(take(sizes.weight_buffer_bytes));
    }
    for (const pipeline_stage &each : stages)
      made.resident.push_back(each.weights_bytes > 0 && !each.is_streamed() ? take(each.weights_bytes) : nullptr);
    return made;
  }

 private:
  std::uintptr_t next_ = std::uintptr_t(1) << 63;
};

class chooser {
 public:
  chooser(std::deque<pipeline_stage> &stages, const pipeline_settings &settings,
          const std::map<device_index, std::int64_t> &limits, const pipeline_parts &parts, batch_maker &maker,
          bool in_place)
      : stages_(stages), settings_(settings), limits_(limits), parts_(parts), maker_(maker), in_place_(in_place) {}

  pipeline_choice choose() {
    set_sizes();
    const bool all_fit = place_weights();
    if (made_.streamed_stages == 0 || !all_fit) made_.fitting_bytes = 0;
    set_counts();
    predict_parts();
    for (const auto &[device, sizes] : made_.devices) made_.device_bytes += made_.bytes_of(sizes);
    if (parts_.checks_hazards) check();
    return made_;
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
    for (const auto &[device, there] : made_.devices) all_fit = place_weights(device, limits_.at(device)) && all_fit;
    return all_fit;
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

  void set_counts() {
    const std::int32_t least_depth = std::max(1, settings_.depth);
    const std::int32_t least_buffers = made_.streamed_stages == 0 ? 0 : std::max(1, settings_.weight_buffers);
    made_.depth = least_depth;
    made_.weight_buffers = least_buffers;
    for (const auto &[device, there] : made_.devices)
      if (made_.bytes_of(there) > limits_.at(device)) throw too_little_memory(device, there);
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

  // Batches with buffers and ends of their own.
  std::vector<pipeline_batch> batches(std::int32_t depth, std::int32_t weight_buffers, std::int64_t count) {
    planned_buffers buffers;
    const pipeline_memory memory = buffers.memory(made_, stages_, depth, weight_buffers);
    batch_ends ends;
    ends.input_in_place = ends.output_in_place = in_place_;
    if (in_place_) ends.input_space = ends.output_space = SG_MEMORY_DEVICE;
    const auto program = maker_.program(memory, ends, false);
    std::vector<pipeline_batch> made;
    for (std::int64_t i = 0; i < count; ++i) {
      ends.input = buffers.take(round_up(settings_.input_bytes, 256));
      ends.output = buffers.take(round_up(stages_.back().output_bytes, 256));
      made.emplace_back(program, maker_.addresses(memory, ends, i));
    }
    return made;
  }

  // Seconds from the end of one batch to the end of the next, once the pipeline is full.
  double simulated(std::int32_t depth, std::int32_t weight_buffers) {
    const batch_schedule one = simulated_schedule(batches(depth, weight_buffers, 1), parts_.machine, parts_.memory);
    const std::size_t commands = std::max<std::size_t>(one.whole.commands.size(), 1);
    const auto count = static_cast<std::int64_t>(
        std::clamp<std::size_t>(enough_commands / commands, 3, static_cast<std::size_t>(simulated_batches)));
    const batch_schedule all = simulated_schedule(batches(depth, weight_buffers, count), parts_.machine, parts_.memory);
    const timeline times = simulate(all.whole, parts_.machine, all.jobs);
    const std::int64_t later = (count + 1) / 2;
    return (end_of(all, times, count - 1) - end_of(all, times, count - 1 - later)) / double(later);
  }

  static double end_of(const batch_schedule &of, const timeline &times, std::int64_t batch) {
    double end = 0;
    const std::uint32_t last = of.ends[static_cast<std::size_t>(batch)];
    for (std::uint32_t i = 0; i < last; ++i) end = std::max(end, times.commands[i].end);
    return end;
  }

  // Of each further batch, as a batch that follows others has no part of their latencies.
  double seconds_of(const std::vector<pipeline_batch> &all, batch_role role) const {
    const auto simulated = [&](const std::vector<pipeline_batch> &some) {
      const batch_schedule joined = simulated_schedule(some, parts_.machine, parts_.memory, role);
      return simulate(joined.whole, parts_.machine, joined.jobs).seconds;
    };
    return (simulated(all) - simulated({all[0]})) / double(all.size() - 1);
  }

  void predict_parts() {
    // Buffers of their own for all, so that only the link orders the copies.
    constexpr std::int32_t count = 3;
    const std::vector<pipeline_batch> all = batches(count, count * made_.streamed_stages, count);
    made_.transfer_in_seconds = seconds_of(all, batch_role::transfer_in);
    made_.transfer_out_seconds = seconds_of(all, batch_role::transfer_out);
    made_.work_seconds = seconds_of(all, batch_role::work);
    for (const auto &[device, there] : made_.devices) {
      const bool is_first = device == stages_.front().device;
      const std::int64_t bytes_in = there.streamed_bytes + (is_first && !in_place_ ? settings_.input_bytes : 0);
      const double rate = parts_.machine.device(device).link_in;
      if (rate > 0) made_.link_in_seconds = std::max(made_.link_in_seconds, double(bytes_in) / rate);
    }
  }

  // Each buffer is used by a second batch at least.
  void check() {
    const std::int64_t count = made_.depth + 1;
    const batch_schedule all = checked_schedule(batches(made_.depth, made_.weight_buffers, count));
    if (all.whole.commands.size() <= most_checked) return require_no_hazards(all.whole);
    if (logs(log_level::info, log_area::plan))
      log_message(log_level::info, log_area::plan,
                  "%lld batches of a pipeline have %zu commands, and are not checked for races: the limit is %zu",
                  long_long{count}, all.whole.commands.size(), most_checked);
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

std::int64_t pipeline_choice::bytes_of(const device_sizes &sizes) const {
  const auto of = [](std::int64_t count, std::int64_t bytes) {
    return checked_mul(count, bytes, "device memory of the pipeline");
  };
  return checked_add(checked_add(of(depth, sizes.batch.total()), of(weight_buffers, sizes.weight_buffer_bytes), ""),
                     sizes.resident_bytes, "device memory of the pipeline");
}

pipeline_choice choose(std::deque<pipeline_stage> &stages, const pipeline_settings &settings,
                       const std::map<device_index, std::int64_t> &limits, const std::vector<device_index> &usable,
                       const pipeline_parts &parts, batch_maker &maker, bool in_place) {
  // So many simulated operations in all take less than a second.
  constexpr std::size_t most_simulated = 2400, least_tried = 16, most_tried = 300;
  placement_request wanted{{}, usable, limits};
  std::size_t operations = 1;
  for (const pipeline_stage &each : stages) {
    wanted.fixed.push_back(each.is_movable ? std::nullopt : std::optional(each.recorded_device));
    operations += each.works.size();
  }
  wanted.most_tried = std::clamp(most_simulated / operations, least_tried, most_tried);
  const bool is_free = std::any_of(stages.begin(), stages.end(), [](const auto &each) { return each.is_movable; });
  if (is_free && parts.machine.devices.size() > 1 && !usable.empty()) {
    // A device may lack an operation, or the memory for it.
    const auto seconds = [&](const placement &where) {
      try {
        maker.place(stages, where);
        return chooser(stages, settings, limits, parts, maker, in_place).least_seconds();
      } catch (const error &e) {
        if (e.status() != SG_STATUS_UNSUPPORTED && e.status() != SG_STATUS_OUT_OF_MEMORY) throw;
        return double(HUGE_VAL);
      }
    };
    maker.place(stages, best_placement(wanted, parts.machine, seconds));
  }
  return chooser(stages, settings, limits, parts, maker, in_place).choose();
}

}  // namespace sg
