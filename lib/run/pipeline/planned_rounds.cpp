// SPDX-License-Identifier: Apache-2.0
// Batches of a pipeline whose buffers are not allocated, to be simulated and checked.
#include "base/checked.hpp"
#include "base/log.hpp"
#include "plan/schedule/hazard.hpp"
#include "run/pipeline/batch_schedule.hpp"
#include "run/pipeline/pipeline_plan.hpp"

namespace sg {

namespace {

// Buffers that are not allocated: numbers above all addresses of the process, which is all that a plan needs.
class planned_buffers {
 public:
  char *take(std::int64_t bytes) noexcept {
    next_ += static_cast<std::uintptr_t>(bytes);
    return reinterpret_cast<char *>(next_ - static_cast<std::uintptr_t>(bytes));
  }

 private:
  std::uintptr_t next_ = std::uintptr_t(1) << 63;
};

}  // namespace

std::vector<batch_list> planned_rounds(const pipeline_choice &choice, std::deque<pipeline_stage> &stages,
                                       const pipeline_settings &settings, batch_maker &maker, bool in_place,
                                       std::int64_t count) {
  planned_buffers buffers;
  const pipeline_memory memory =
      make_memory(choice, stages, [&](device_index, std::int64_t bytes) { return buffers.take(bytes); });
  batch_ends ends;
  ends.input_in_place = ends.output_in_place = in_place;
  if (in_place) ends.input_space = ends.output_space = SG_MEMORY_DEVICE;
  const auto source = choice.shares_weights ? weights_source::shared : weights_source::own;
  std::vector<std::vector<pipeline_batch>> batches(static_cast<std::size_t>(count));
  std::vector<device_index> devices;
  for (const placement &each : choice.replicas) {
    maker.place(stages, each);
    const auto program = maker.program(memory, ends, source, {});
    for (std::int64_t i = 0; i < count; ++i) {
      ends.input = buffers.take(round_up(settings.input_bytes, 256));
      ends.output = buffers.take(round_up(stages.back().output_bytes, 256));
      batches[static_cast<std::size_t>(i)].push_back({program, maker.addresses(memory, ends, i)});
    }
    devices.push_back(each[0]);
  }
  maker.place(stages, choice.replicas[0]);
  if (choice.shares_weights) {
    const auto weights = maker.weights(memory, devices, true);
    for (std::int64_t i = 0; i < count; ++i)
      batches[static_cast<std::size_t>(i)].push_back(
          {weights, maker.weight_addresses(memory, devices, std::vector(devices.size(), i))});
  }
  std::vector<batch_list> made;
  for (std::vector<pipeline_batch> &each : batches)
    made.emplace_back().add_round(std::move(each), choice.shares_weights);
  return made;
}

void check_rounds(pipeline_choice choice, std::deque<pipeline_stage> &stages, const pipeline_settings &settings,
                  batch_maker &maker, bool in_place) {
  constexpr std::size_t most_checked = 4000;    // commands: the memory of the check grows with their square
  const std::int64_t count = choice.depth + 1;  // each buffer is used by a second batch at least
  const batch_schedule all = checked_schedule(planned_rounds(choice, stages, settings, maker, in_place, count));
  if (all.whole.commands.size() <= most_checked)
    require_no_hazards(all.whole);
  else if (logs(log_level::info, log_area::plan))
    log_message(
        log_level::info, log_area::plan,
        "%lld rounds of batches of a pipeline have %zu commands, and are not checked for races: the limit is %zu",
        static_cast<long long>(count), all.whole.commands.size(), most_checked);
  if (!choice.shares_weights) return;
  choice.shares_weights = false;
  check_rounds(std::move(choice), stages, settings, maker, in_place);
}

}  // namespace sg
