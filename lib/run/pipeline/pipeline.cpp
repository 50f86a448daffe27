// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/pipeline.hpp"

#include <algorithm>
#include <thread>

#include "base/checked.hpp"
#include "base/format.hpp"
#include "base/log.hpp"
#include "run/job/service.hpp"
#include "run/order/footprint.hpp"

namespace sg {

namespace {

// The addresses of stages have no memory outside of what is recorded for them.
void require_no_stage(const void *memory, std::int64_t bytes, const char *name) {
  const auto range = process_ranges::find(memory, static_cast<std::uint64_t>(bytes));
  if (range && range->kind == range_kind::stage)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s (%p) is an address of a pipeline's stage, which has no memory there",
                name, memory);
}

constexpr std::int64_t alignment_in_place = 64;  // of memory that the operations use where it is
constexpr double worth_replicas = 0.9;           // of the time of a batch
using long_long = long long;

}  // namespace

// One thread at a time makes batches. A stage's function, which runs in the turn, may not ask for another.
class pipeline::pushing {
 public:
  explicit pushing(pipeline &of) : of_(of) {
    if (of_.in_turn_.load() == std::this_thread::get_id())
      throw error(SG_STATUS_DEADLOCK, "a function of a stage uses its pipeline");
    if (!in_callback_of(*of_.owner_))
      of_.turn_.lock();
    else if (!of_.turn_.try_lock())
      throw error(SG_STATUS_DEADLOCK, "a callback of the context would wait for another use of the pipeline");
    of_.in_turn_.store(std::this_thread::get_id());
  }
  ~pushing() {
    of_.in_turn_.store({});
    of_.turn_.unlock();
  }
  pushing(const pushing &) = delete;
  pushing &operator=(const pushing &) = delete;

 private:
  pipeline &of_;
};

pipeline::pipeline(ref<job_sink> owner, const pipeline_parts &parts, const pipeline_settings &settings)
    : object(object_type::pipeline),
      owner_(std::move(owner)),
      parts_(parts),
      settings_(settings),
      maker_(*owner_, parts.machine, parts.memory, stages_) {}

pipeline::~pipeline() { release_graphs(); }

void pipeline::release_graphs() noexcept {
  for (pipeline_stage &each : stages_) {
    if (each.graph_handle != 0) release_handle(each.graph_handle, object_type::graph);
    each.graph_handle = 0;
  }
}

std::size_t pipeline::size() {
  const pushing turn(*this);
  return stages_.size();
}

const pipeline_stage &pipeline::add(pipeline_stage &&given) {
  const pushing turn(*this);
  if (is_prepared_) throw error(SG_STATUS_BUSY, "the pipeline is prepared; no stage can be added");
  pipeline_stage stage = std::move(given);
  if (settings_.replicates && stage.wanted_device)
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@desc->device is %zu; a stage of a pipeline with replicas is on all devices",
                number_of(*stage.wanted_device));
  if (stage.name.empty()) stage.name = "stage " + std::to_string(stages_.size());
  stage.input_bytes = stages_.empty() ? settings_.input_bytes : stages_.back().output_bytes;
  stage.device = stage.wanted_device.value_or(stages_.empty() ? first_device : stages_.back().recorded_device);
  stage.recorded_device = stage.device;
  // Of several devices, one may get this stage, and another the one before.
  const bool has_own_input = stages_.empty() || parts_.machine.devices.size() > 1;
  stage.receives_input = stages_.empty() || stages_.back().recorded_device != stage.device;
  const auto room = [](std::int64_t bytes) {
    return round_up(bytes, 256) + 256;
  };  // a gap, so that no two ranges touch
  for (std::size_t i = 0; i < stage.weights.size(); ++i) {
    pipeline_weight &each = stage.weights[i];
    const std::string name = "desc->weights[" + std::to_string(i) + "].data";
    each.space = parts_.memory.usable(each.data, static_cast<std::uint64_t>(each.bytes), name.c_str());
    require_no_stage(each.data, each.bytes, name.c_str());
    each.in_place = each.space == memory_space::of_device(stage.device);
    if (!each.in_place)
      stage.weights_bytes = checked_add(stage.weights_bytes, round_up(each.bytes, 256), "the weights of a stage");
  }
  std::int64_t total = room(stage.output_bytes);
  for (const std::int64_t more :
       {room(has_own_input ? stage.input_bytes : 0), room(stage.workspace_bytes), room(stage.weights_bytes)})
    total = checked_add(total, more, "the addresses of a stage");
  stage.reserved = std::make_unique<address_range>(parts_.memory.known(), total, stage.device);
  char *next = stage.reserved->begin();
  const auto take = [&](std::int64_t bytes) {
    char *const taken = next;
    next += room(bytes);
    return taken;
  };
  stage.output = take(stage.output_bytes);
  stage.input = has_own_input ? take(stage.input_bytes) : stages_.back().output;
  if (stage.workspace_bytes > 0) stage.workspace = take(stage.workspace_bytes);
  stage.weights_begin = next;
  for (const pipeline_weight &each : stage.weights) {
    stage.weight_addresses.push_back(each.in_place ? each.data : next);
    if (!each.in_place) next += round_up(each.bytes, 256);
  }
  stage.index = static_cast<std::int32_t>(stages_.size());
  stages_.push_back(std::move(stage));
  pipeline_stage &added = stages_.back();
  if (added.record) return added;
  try {
    added.recorded = ref<graph>::adopt(new graph(owner_, true));
    added.graph_handle = make_handle(added.recorded);
  } catch (...) {
    stages_.pop_back();
    throw;
  }
  return added;
}

pipeline_choice pipeline::prepare() {
  const pushing turn(*this);
  prepare_in_turn();
  return choice_;
}

std::string pipeline::describe() {
  const pushing turn(*this);
  prepare_in_turn();
  std::string text = sg::describe(stages_, choice_, settings_);
  if (!with_replicas_) with_replicas_ = seconds_with_replicas();
  if (const double seconds = *with_replicas_; seconds > 0 && seconds < worth_replicas * choice_.seconds_per_batch)
    text += formatted("replicas on all devices would take %.3f ms a batch\n", seconds * 1e3);
  return text;
}

batch_ends pipeline::ends_of(const void *input, void *output, const std::string &which) const {
  const std::int64_t input_bytes = settings_.input_bytes, output_bytes = stages_.back().output_bytes;
  const auto whole = [](const void *memory, std::int64_t bytes) {
    return footprint::rectangle(memory, bytes, 1, bytes);
  };
  if (overlap(whole(input, input_bytes), whole(output, output_bytes)))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@input%s (%p, %lld bytes) and @output%s (%p, %lld bytes) overlap",
                which.c_str(), input, long_long{input_bytes}, which.c_str(), output, long_long{output_bytes});
  batch_ends ends;
  ends.input = const_cast<char *>(static_cast<const char *>(input));
  ends.output = static_cast<char *>(output);
  const auto space_of = [&](const void *memory, std::int64_t bytes, const std::string &name) {
    require_no_stage(memory, bytes, name.c_str());
    return parts_.memory.usable(memory, static_cast<std::uint64_t>(bytes), name.c_str());
  };
  ends.input_space = space_of(input, input_bytes, "input" + which);
  ends.output_space = space_of(output, output_bytes, "output" + which);
  const auto in_place = [](const pipeline_stage &by, memory_space space, const void *memory) {
    return space == memory_space::of_device(by.device) &&
           reinterpret_cast<std::uintptr_t>(memory) % alignment_in_place == 0;
  };
  ends.input_in_place = in_place(stages_.front(), ends.input_space, input);
  ends.output_in_place = in_place(stages_.back(), ends.output_space, output);
  return ends;
}

// Waits, or throws, at the limit of batches in flight.
void pipeline::require_room(std::size_t count) {
  const auto most = static_cast<std::size_t>(choice_.batches_in_flight);
  while (!in_flight_.empty() && in_flight_.front()->done()) in_flight_.pop_front();
  while (in_flight_.size() + count > most) {
    if (settings_.refuses_when_full)
      throw error(SG_STATUS_BUSY, "%zu batches are in flight, and the pipeline's limit is %zu", in_flight_.size(),
                  most);
    if (in_callback_of(*owner_))
      throw error(SG_STATUS_DEADLOCK,
                  "a callback of the context waits for a batch: %zu are in flight, the limit is %zu", in_flight_.size(),
                  most);
    in_flight_.front()->wait(deadline(-1));
    in_flight_.pop_front();
  }
}

std::vector<std::size_t> pipeline::next_replicas() const {
  std::vector<std::size_t> next;
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    const std::size_t r = (next_replica_ + i) % replicas_.size();
    const auto is_lost = [this](device_index each) { return owner_->on(each).status() != SG_STATUS_OK; };
    if (replicas_.size() == 1 || !is_lost(replicas_[r].where[0])) next.push_back(r);
  }
  if (next.empty()) next.push_back(next_replica_);
  return next;
}

std::size_t pipeline::independent(std::span<const batch> batches) const {
  if (!choice_.interleaves) return std::min<std::size_t>(batches.size(), 1);
  const auto input = [&](std::size_t i) {
    return footprint::rectangle(batches[i].input, settings_.input_bytes, 1, settings_.input_bytes);
  };
  const auto output = [&](std::size_t i) {
    const std::int64_t bytes = stages_.back().output_bytes;
    return footprint::rectangle(batches[i].output, bytes, 1, bytes);
  };
  const auto is_read = [&](std::size_t i) {
    return std::any_of(other_reads_.begin(), other_reads_.end(),
                       [&](const footprint &each) { return overlap(each, output(i)); });
  };
  for (std::size_t i = 1; i < batches.size(); ++i) {
    if (is_read(i - 1) || is_read(i)) return i;
    for (std::size_t before = 0; before < i; ++before)
      if (overlap(output(before), input(i)) || overlap(output(before), output(i)) || overlap(input(before), output(i)))
        return i;
  }
  return batches.size();
}

// What functions record is for the device that will run it.
void pipeline::put_on(const placement &where) {
  maker_.place(stages_, where);
  for (pipeline_stage &each : stages_)
    if (each.record && each.device != each.recorded_device) {
      each.reserved->move_to(each.device);
      each.recorded_device = each.device;
    }
}

pipeline_batch pipeline::make_batch(replica &on, const batch &given, weights_source source, std::int64_t number) {
  if (replicas_.size() > 1) put_on(on.where);
  const batch_ends ends = ends_of(given.input, given.output, "");
  replica::latest &latest = on.latest_of[static_cast<int>(source)];
  if (!latest.program || !latest.ends.same_kinds(ends) || maker_.calls_functions())
    latest = {ends, maker_.program(memory_, ends, source, number)};
  return {latest.program, maker_.addresses(memory_, ends, on.batches_begun)};
}

pipeline_batch pipeline::make_shared_weights(const std::vector<std::size_t> &replicas) {
  std::vector<device_index> devices;
  std::vector<std::int64_t> turns;
  for (const std::size_t r : replicas) {
    devices.push_back(replicas_[r].where[0]);
    turns.push_back(replicas_[r].batches_begun);
  }
  if (devices != sharing_) {
    shared_weights_ = maker_.weights(memory_, devices, true);
    sharing_ = devices;
  }
  return {shared_weights_, maker_.weight_addresses(memory_, devices, turns)};
}

std::vector<child_run> pipeline::make_rounds(const job &parent, std::span<const batch> batches, batch_list &list) {
  std::vector<child_run> runs;
  job *latest = in_flight_.empty() ? nullptr : in_flight_.back().get();
  for (std::size_t begun = 0; begun < batches.size();) {
    std::vector<std::size_t> chosen = next_replicas();
    std::span<const batch> rest = batches.subspan(begun);
    rest = rest.first(independent(rest.first(std::min(rest.size(), chosen.size()))));
    chosen.resize(rest.size());
    const bool shares = choice_.shares_weights && rest.size() > 1;
    std::vector<pipeline_batch> made;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      made.push_back(make_batch(replicas_[chosen[i]], rest[i], shares ? weights_source::shared : weights_source::own,
                                next_batch_ + static_cast<std::int64_t>(begun + i)));
      rest[i].run->graph = made.back().program;
      runs.push_back({rest[i].run, latest, static_cast<std::int32_t>(begun + i)});
      latest = rest[i].run.get();
    }
    if (shares) {
      made.push_back(make_shared_weights(chosen));
      runs.push_back({owner_->new_job(), nullptr, static_cast<std::int32_t>(batches.size() + runs.size())});
      runs.back().run->graph = made.back().program;
    }
    list.add_round(std::move(made), shares);
    for (const std::size_t r : chosen) ++replicas_[r].batches_begun;
    next_replica_ = (chosen.back() + 1) % replicas_.size();
    begun += rest.size();
  }
  for (const child_run &each : runs) {
    each.run->priority = parent.priority;
    each.run->trace_id = parent.trace_id;
    each.run->submitter = parent.submitter;
  }
  return runs;
}

void pipeline::push(const ref<job> &parent, submission_order order, std::span<const batch> batches) {
  const pushing turn(*this);
  prepare_in_turn();
  const bool is_one = batches[0].run.get() == parent.get();
  for (std::size_t i = 0; i < batches.size(); ++i)  // refused before it waits
    ends_of(batches[i].input, batches[i].output, is_one ? "" : formatted("s[%zu]", i));
  const auto most = static_cast<std::size_t>(choice_.batches_in_flight);
  if (batches.size() > most)
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@inputs has %zu batches, and the pipeline's limit of batches in flight is %zu", batches.size(), most);
  require_room(batches.size());
  batch_list list;
  std::vector<child_run> runs = make_rounds(*parent, batches, list);
  // The flag promises that no other job uses the caller's memory; the pipeline's buffers serve every batch.
  order.untracked = false;
  if (is_one) {
    order.completes_behind = runs[0].completes_behind;
    runs.clear();
  } else {
    parent->graph = list.totals();
  }
  const std::size_t before = in_flight_.size();
  try {
    for (const batch &each : batches) in_flight_.push_back(each.run);
    owner_->submit_children(parent, order, list, runs);
  } catch (...) {
    in_flight_.resize(before);
    throw;
  }
  next_batch_ += static_cast<std::int64_t>(batches.size());
}

}  // namespace sg
