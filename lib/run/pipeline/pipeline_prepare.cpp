// SPDX-License-Identifier: Apache-2.0
// A pipeline's choices, its memory, and its resident weights.
#include <algorithm>
#include <thread>

#include "base/checked.hpp"
#include "base/log.hpp"
#include "run/job/service.hpp"
#include "run/order/footprint.hpp"
#include "run/pipeline/pipeline.hpp"

namespace sg {

namespace {

void log_choice(const pipeline_choice &choice) {
  if (!logs(log_level::warn, log_area::plan)) return;
  const double mb = 1e-6, ms = 1e3;
  if (choice.fitting_bytes > 0)
    log_message(log_level::warn, log_area::plan,
                "a pipeline streams %.1f MB of weights for each batch, and all of them would fit: %.1f MB",
                double(choice.streamed_bytes) * mb, double(choice.fitting_bytes) * mb);
  if (choice.streamed_bytes > 0 && choice.transfer_in_seconds > choice.work_seconds)
    log_message(
        log_level::warn, log_area::plan,
        "a pipeline's transfers to the device take %.3f ms for each batch, and its work %.3f ms: batches with %.1f "
        "times the work would hide the link",
        choice.transfer_in_seconds * ms, choice.work_seconds * ms,
        choice.transfer_in_seconds / std::max(choice.work_seconds, 1e-9));
}

}  // namespace

void pipeline::prepare_in_turn() {
  if (is_prepared_) return;
  if (stages_.empty()) throw error(SG_STATUS_INVALID_ARGUMENT, "the pipeline has no stage");
  try {
    for (pipeline_stage &each : stages_) {
      std::vector<submission> recorded = each.record ? each.record(each, -1) : each.recorded->finish();
      if (recorded.empty())
        throw error(SG_STATUS_INVALID_ARGUMENT, "%s of the pipeline has no operation", each.name.c_str());
      each.is_movable = !each.wanted_device && maker_.can_move(each, recorded);
      each.device = each.recorded_device;
      each.receives_input = each.index == 0 || stages_[std::size_t(each.index) - 1].device != each.device;
      if (settings_.replicates && owner_->devices().size() > 1 && !each.is_movable)
        throw error(
            SG_STATUS_UNSUPPORTED,
            "%s has a custom operation, reserved compute units or memory of device %zu, and the replicas of the "
            "pipeline are on other devices, too",
            each.name.c_str(), number_of(each.recorded_device));
      each.works_by_device = {{each.recorded_device, maker_.works_of(each, std::move(recorded))}};
    }
    choose_and_allocate();
  } catch (...) {
    for (pipeline_stage &each : stages_)
      if (each.recorded) each.recorded->reopen();
    throw;
  }
  forget_other_devices();
  other_reads_.clear();
  for (const pipeline_stage &each : stages_)
    for (const auto &work : each.works())
      work->each_other_access([this](const footprint &bytes, bool) { other_reads_.push_back(bytes); });
  replicas_.clear();
  for (const placement &each : choice_.replicas) replicas_.push_back({each});
  put_on(choice_.replicas[0]);
  log_choice(choice_);
  is_prepared_ = true;
  release_graphs();
}

// A device's memory may have other users, which its model does not know: then the stages that can be elsewhere are.
void pipeline::choose_and_allocate() {
  for (std::set<device_index> full;;) {
    choice_ = within_free_memory(full);
    try {
      return allocate();
    } catch (const error &e) {
      const auto can_leave = [&](const pipeline_stage &each) {
        return each.is_movable && choice_.has(each, allocating_);
      };
      if (e.status() != SG_STATUS_OUT_OF_MEMORY || full.size() + 1 >= owner_->devices().size() ||
          std::none_of(stages_.begin(), stages_.end(), can_leave))
        throw;
      if (!full.insert(allocating_).second) throw;
    }
  }
}

std::map<device_index, std::int64_t> pipeline::limits() const {
  std::map<device_index, std::int64_t> made;
  for (std::size_t i = 0; i < owner_->devices().size(); ++i) {
    const auto device = device_index(i);
    const std::int64_t usable = parts_.machine.device(device).usable_memory();
    const std::int64_t taken = owner_->device_memory(device).buffer_bytes.load(std::memory_order_relaxed);
    made[device] = settings_.memory_limit > 0 ? settings_.memory_limit : (usable - taken) / 10 * 9;
  }
  return made;
}

std::vector<device_index> pipeline::working_devices() const {
  std::vector<device_index> made;
  for (std::size_t i = 0; i < owner_->devices().size(); ++i)
    if (owner_->on(device_index(i)).status() == SG_STATUS_OK) made.push_back(device_index(i));
  return made;
}

// The stages are then as they were.
double pipeline::seconds_with_replicas() {
  const auto is_movable = [](const pipeline_stage &each) { return each.is_movable; };
  const std::vector<device_index> devices = working_devices();
  if (settings_.replicates || devices.size() < 2 || !std::all_of(stages_.begin(), stages_.end(), is_movable)) return 0;
  struct restorer {
    explicit restorer(pipeline &given) : of(given) {
      for (const pipeline_stage &each : of.stages_) streamed.push_back(each.streamed_index);
    }
    ~restorer() {
      of.maker_.place(of.stages_, of.choice_.replicas[0]);  // where their works are: nothing is planned
      for (pipeline_stage &each : of.stages_) each.streamed_index = streamed[static_cast<std::size_t>(each.index)];
      of.forget_other_devices();
    }
    pipeline &of;
    std::vector<std::int32_t> streamed;
  } const at_end(*this);
  pipeline_settings replicated = settings_;
  replicated.replicates = replicated.is_trial = true;
  std::map<device_index, std::int64_t> room = limits();
  if (settings_.memory_limit == 0)  // instead of this pipeline
    for (const auto &[device, sizes] : choice_.devices) room[device] += choice_.bytes_of(sizes) / 10 * 9;
  try {
    const pipeline_choice found = choose(stages_, replicated, room, devices, parts_, maker_, owner_->on().unified());
    return found.replicas.size() > 1 ? found.seconds_per_batch : 0;
  } catch (const error &) {  // they lack the memory, or an operation
    return 0;
  }
}

// What was planned for devices that do not run the stages.
void pipeline::forget_other_devices() noexcept {
  for (pipeline_stage &each : stages_)
    std::erase_if(each.works_by_device, [&](const auto &works) {
      return !choice_.has(each, works.first) && works.first != each.recorded_device;
    });
}

// Released buffers of complete jobs are free memory, as for a new buffer: the service thread may not have freed them
// yet.
pipeline_choice pipeline::within_free_memory(const std::set<device_index> &full) {
  constexpr std::int64_t longest_wait_ns = 100'000'000;
  for (const deadline enough(longest_wait_ns);;) {
    owner_->free_unused_buffers();
    std::vector<device_index> usable_devices = working_devices();
    std::erase_if(usable_devices, [&](device_index each) { return full.count(each) != 0; });
    try {
      return choose(stages_, settings_, limits(), usable_devices, parts_, maker_, owner_->on().unified());
    } catch (const error &e) {
      if (e.status() != SG_STATUS_OUT_OF_MEMORY || !owner_->has_released_buffers() || enough.passed()) throw;
    }
    std::this_thread::yield();
  }
}

char *pipeline::device_memory(device_index device, std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  allocating_ = device;
  buffers_.push_back(ref<device_buffer>::adopt(new device_buffer(
      owner_, parts_.memory.known(), owner_->device_memory(device), static_cast<std::uint64_t>(bytes))));
  return static_cast<char *>(buffers_.back()->data());
}

void pipeline::allocate() {
  buffers_.clear();
  try {
    memory_ = make_memory(choice_, stages_,
                          [this](device_index device, std::int64_t bytes) { return device_memory(device, bytes); });
    copy_resident_weights();
  } catch (...) {
    buffers_.clear();  // freed once the copies in flight have completed
    throw;
  }
}

// Returns once they have completed: the caller may then release everything.
void pipeline::copy_resident_weights() {
  std::vector<ref<job>> copies;
  const auto wait = [&copies] {
    for (const ref<job> &each : copies) each->wait(deadline(-1));
  };
  try {
    std::vector<std::vector<device_index>> groups(1);  // of devices with the same stages
    for (const auto &[device, there] : memory_.devices) {
      if (choice_.replicas.size() == 1 && !groups.back().empty()) groups.emplace_back();
      groups.back().push_back(device);
    }
    for (const std::vector<device_index> &devices : groups) {
      const auto program = maker_.weights(memory_, devices, false);
      if (program->works.empty()) continue;
      copies.reserve(copies.size() + 1);
      const ref<job> run = owner_->new_job();
      run->graph = program;
      batch_list all;
      all.add_round({{program, maker_.weight_addresses(memory_, devices, std::vector<std::int64_t>(devices.size()))}},
                    false);
      owner_->submit_children(run, {}, all);
      copies.push_back(run);  // submitted: it will complete
    }
  } catch (...) {
    wait();
    throw;
  }
  wait();
  for (const ref<job> &each : copies) {
    each->mark_observed();
    if (each->status() != SG_STATUS_OK) throw error(each->status(), "%s", each->message());
  }
}

}  // namespace sg
