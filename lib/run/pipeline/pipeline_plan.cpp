// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/pipeline_plan.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/checked.hpp"
#include "base/log.hpp"
#include "plan/schedule/hazard.hpp"
#include "plan/schedule/simulate.hpp"
#include "run/pipeline/batch_schedule.hpp"

namespace sg {

namespace {

constexpr std::int32_t most_chosen = 4;        // of batches with buffers, and of weight buffers
constexpr double worth_a_buffer = 0.99;        // a further buffer must shorten a batch to this
constexpr std::size_t enough_commands = 6000;  // of a simulation
constexpr std::size_t most_checked = 4000;     // commands of the hazard check: its memory grows with their square
constexpr std::int64_t simulated_batches = 8;

using long_long = long long;

// Buffers that are not allocated: numbers above all addresses of the process, which is all that a plan needs.
class planned_buffers {
 public:
  char *take(std::int64_t bytes) noexcept {
    next_ += static_cast<std::uintptr_t>(bytes);
    return reinterpret_cast<char *>(next_ - static_cast<std::uintptr_t>(bytes));
  }
  pipeline_memory memory(const pipeline_choice &sizes, const std::deque<pipeline_stage> &stages, std::int32_t depth,
                         std::int32_t weight_buffers) {
    pipeline_memory made;
    made.sizes = sizes.batch;
    made.weight_buffer_bytes = sizes.weight_buffer_bytes;
    for (std::int32_t i = 0; i < depth; ++i) made.batches.push_back(sizes.batch.at(take(sizes.batch.total())));
    for (std::int32_t i = 0; i < weight_buffers; ++i) made.weight_buffers.push_back(take(sizes.weight_buffer_bytes));
    for (const pipeline_stage &each : stages)
      made.resident.push_back(each.weights_bytes > 0 && !each.is_streamed() ? take(each.weights_bytes) : nullptr);
    return made;
  }

 private:
  std::uintptr_t next_ = std::uintptr_t(1) << 63;
};

class chooser {
 public:
  chooser(std::deque<pipeline_stage> &stages, const pipeline_settings &settings, std::int64_t limit,
          const device_model &model, batch_maker &maker, bool in_place)
      : stages_(stages), settings_(settings), limit_(limit), model_(model), maker_(maker), in_place_(in_place) {}

  pipeline_choice choose(bool checks) {
    set_sizes();
    place_weights();
    set_counts();
    predict_parts();
    made_.device_bytes = bytes_with(made_.depth, made_.weight_buffers);
    if (checks) check();
    return made_;
  }

 private:
  void set_sizes() {
    made_.batch.input = round_up(settings_.input_bytes, 256);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      std::int64_t &output = made_.batch.outputs[s % 2];
      output = std::max(output, round_up(stages_[s].output_bytes, 256));
      made_.batch.workspace = std::max(made_.batch.workspace, round_up(stages_[s].workspace_bytes, 256));
    }
  }

  std::int64_t bytes_with(std::int32_t depth, std::int32_t weight_buffers) const {
    const auto of = [](std::int64_t count, std::int64_t bytes) {
      return checked_mul(count, bytes, "device memory of the pipeline");
    };
    return checked_add(checked_add(of(depth, made_.batch.total()), of(weight_buffers, made_.weight_buffer_bytes), ""),
                       made_.resident_bytes, "device memory of the pipeline");
  }

  // Which stages are streamed: those that must be, and of the others every so many as do not fit, spread evenly.
  void place_weights() {
    std::int64_t all = 0, free_to_choose = 0, forced = 0, largest = 0;
    for (const pipeline_stage &each : stages_) {
      all = checked_add(all, each.weights_bytes, "weights");
      largest = std::max(largest, each.weights_bytes);
      if (each.place == SG_WEIGHTS_AUTO) free_to_choose += each.weights_bytes;
      if (each.place == SG_WEIGHTS_RESIDENT) forced += each.weights_bytes;
    }
    const std::int32_t depth = settings_.depth > 0 ? settings_.depth : 2;
    const std::int64_t batches = checked_mul(depth, made_.batch.total(), "batches");
    const std::int64_t ring = (settings_.weight_buffers > 0 ? settings_.weight_buffers : 3) * largest;
    const bool all_fit = all <= limit_ - batches;
    const bool chosen_fit = forced + free_to_choose <= limit_ - batches - (has(SG_WEIGHTS_STREAMED) ? ring : 0);
    const std::int64_t room = std::max<std::int64_t>(0, limit_ - batches - ring - forced);
    std::int64_t seen = 0, kept = 0;
    for (pipeline_stage &each : stages_) {
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
        made_.resident_bytes += each.weights_bytes;
      } else {
        each.streamed_index = made_.streamed_stages++;
        made_.streamed_bytes += each.weights_bytes;
        made_.weight_buffer_bytes = std::max(made_.weight_buffer_bytes, each.weights_bytes);
      }
    }
    if (made_.streamed_stages > 0 && all_fit) made_.fitting_bytes = all + batches;
  }
  bool has(sg_weights_place place) const {
    return std::any_of(stages_.begin(), stages_.end(), [=](const pipeline_stage &each) { return each.place == place; });
  }

  void set_counts() {
    const std::int32_t least_depth = std::max(1, settings_.depth);
    const std::int32_t least_buffers = made_.streamed_stages == 0 ? 0 : std::max(1, settings_.weight_buffers);
    const std::int64_t least = bytes_with(least_depth, least_buffers);
    if (least > limit_)
      throw error(
          SG_STATUS_OUT_OF_MEMORY,
          "the pipeline needs at least %lld bytes of device memory: %d batch%s of %lld, %d weight buffer%s of %lld, "
          "%lld of resident weights; the limit is %lld",
          long_long{least}, least_depth, least_depth == 1 ? "" : "es", long_long{made_.batch.total()}, least_buffers,
          least_buffers == 1 ? "" : "s", long_long{made_.weight_buffer_bytes}, long_long{made_.resident_bytes},
          long_long{limit_});
    made_.depth = least_depth;
    made_.weight_buffers = least_buffers;
    made_.seconds_per_batch = simulated(made_.depth, made_.weight_buffers);
    const bool grows_depth = settings_.depth == 0, grows_buffers = settings_.weight_buffers == 0 && least_buffers > 0;
    // One more of one, of the other, or of both, as long as that helps.
    for (bool helps = true; helps;) {
      helps = false;
      for (const auto &[more_depth, more_buffers] : {std::pair(0, 1), std::pair(1, 0), std::pair(1, 1)}) {
        const std::int32_t depth = made_.depth + more_depth, buffers = made_.weight_buffers + more_buffers;
        if ((more_depth && !grows_depth) || (more_buffers && !grows_buffers)) continue;
        if (depth > std::max(most_chosen, least_depth) || buffers > std::max(most_chosen, least_buffers)) continue;
        if (bytes_with(depth, buffers) > limit_) continue;
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
    const batch_schedule one = simulated_schedule(batches(depth, weight_buffers, 1), model_);
    const std::size_t commands = std::max<std::size_t>(one.whole.commands.size(), 1);
    const auto count = static_cast<std::int64_t>(
        std::clamp<std::size_t>(enough_commands / commands, 3, static_cast<std::size_t>(simulated_batches)));
    const batch_schedule all = simulated_schedule(batches(depth, weight_buffers, count), model_);
    const timeline times = simulate(all.whole, model_);
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
      return simulate(simulated_schedule(some, model_, role).whole, model_).seconds;
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
    const std::int64_t bytes_in = made_.streamed_bytes + (in_place_ ? 0 : settings_.input_bytes);
    made_.link_in_seconds = model_.link_in > 0 ? double(bytes_in) / model_.link_in : 0;
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
  const std::int64_t limit_;
  const device_model &model_;
  batch_maker &maker_;
  const bool in_place_;
  pipeline_choice made_;
};

[[gnu::format(printf, 1, 2)]] std::string line(const char *format, ...) {
  char text[300];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

}  // namespace

pipeline_choice choose(std::deque<pipeline_stage> &stages, const pipeline_settings &settings, std::int64_t limit,
                       const device_model &model, batch_maker &maker, bool in_place, bool checks) {
  return chooser(stages, settings, limit, model, maker, in_place).choose(checks);
}

std::string describe(const std::deque<pipeline_stage> &stages, const pipeline_choice &choice,
                     const pipeline_settings &settings) {
  constexpr double mb = 1e6, ms = 1e3;
  std::string text = line("%zu stage%s, %d batch%s in flight on the device, %.1f MB of device memory\n", stages.size(),
                          stages.size() == 1 ? "" : "s", choice.depth, choice.depth == 1 ? "" : "es",
                          double(choice.device_bytes) / mb);
  text += line("weights: %.1f MB resident, %.1f MB streamed for each batch", double(choice.resident_bytes) / mb,
               double(choice.streamed_bytes) / mb);
  text += choice.streamed_stages == 0
              ? "\n"
              : line(" (%d stage%s) into %d buffer%s of %.1f MB\n", choice.streamed_stages,
                     choice.streamed_stages == 1 ? "" : "s", choice.weight_buffers,
                     choice.weight_buffers == 1 ? "" : "s", double(choice.weight_buffer_bytes) / mb);
  if (choice.fitting_bytes > 0)
    text += line("all weights would fit: %.1f MB of device memory\n", double(choice.fitting_bytes) / mb);
  text += line("input %.1f MB, result %.1f MB\n", double(settings.input_bytes) / mb,
               double(stages.back().output_bytes) / mb);
  text += line("predicted: %.3f ms a batch; transfers in %.3f ms, work %.3f ms, transfers out %.3f ms\n",
               choice.seconds_per_batch * ms, choice.transfer_in_seconds * ms, choice.work_seconds * ms,
               choice.transfer_out_seconds * ms);
  const double transfers = std::max(choice.transfer_in_seconds, choice.transfer_out_seconds);
  constexpr double much_longer = 1.3;  // than the link alone
  const bool is_staged = choice.link_in_seconds > 0 && transfers == choice.transfer_in_seconds &&
                         transfers > much_longer * choice.link_in_seconds;
  if (transfers > choice.work_seconds && choice.work_seconds > 0) {
    text += line("%s the limit: the work would hide it if a batch had %.1f times the work\n",
                 is_staged ? "staging is" : "the link is", transfers / choice.work_seconds);
    if (is_staged)
      text += line("the link alone needs %.3f ms a batch: weights and inputs in pinned memory are not staged\n",
                   choice.link_in_seconds * ms);
  } else if (transfers > 0 && choice.work_seconds > 0)
    text += line("the work is the limit: transfers take %.0f%% of its time\n", 100 * transfers / choice.work_seconds);
  return text;
}

}  // namespace sg
