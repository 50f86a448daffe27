// SPDX-License-Identifier: Apache-2.0
// A pipeline: stages, the memory of the batches in flight, and the batches themselves, each a job with children. Any
// thread.
#pragma once

#include <streamgemm/pipeline.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/object.hpp"
#include "run/objects/device_buffer.hpp"
#include "run/order/job_sink.hpp"
#include "run/pipeline/batch.hpp"
#include "run/pipeline/pipeline_plan.hpp"

namespace sg {

class pipeline final : public object {
 public:
  pipeline(ref<job_sink> owner, const pipeline_parts &parts, const pipeline_settings &settings);

  ~pipeline() override;

  job_sink &owner() const noexcept { return *owner_; }
  // Adds the next stage, whose description is given, and reserves its addresses. Throws SG_STATUS_BUSY once prepared.
  // The result stays valid.
  const pipeline_stage &add(pipeline_stage &&given);
  // Chooses, allocates, and copies resident weights. Throws sg::error; it may then be called again.
  pipeline_choice prepare();
  std::string describe();
  std::size_t size();  // number of stages
  // Submits a batch; `parent` completes after its children. Throws as job_sink::submit does.
  void push(const ref<job> &parent, submission_order order, const void *input, void *output);

 private:
  class pushing;  // the calling thread's turn

  void prepare_in_turn();
  void choose_and_allocate();
  // `full`: devices that get none of the stages that can be elsewhere.
  pipeline_choice within_free_memory(const std::set<device_index> &full);
  void release_graphs() noexcept;
  void allocate();
  void copy_resident_weights();
  char *device_memory(device_index device, std::int64_t bytes);
  batch_ends ends_of(const void *input, void *output) const;
  void require_room();

  const ref<job_sink> owner_;
  const pipeline_parts parts_;
  const pipeline_settings settings_;
  std::mutex turn_;  // held while a batch is made and submitted
  std::atomic<std::thread::id> in_turn_{};
  std::deque<pipeline_stage> stages_;
  bool is_prepared_ = false;
  pipeline_choice choice_;
  batch_maker maker_;
  std::shared_ptr<const batch_program> program_;  // of the latest batch, and its ends
  batch_ends ends_;
  pipeline_memory memory_;
  std::vector<ref<device_buffer>> buffers_;
  device_index allocating_{};  // whose memory was taken last
  std::int64_t next_batch_ = 0;
  std::deque<ref<job>> in_flight_;  // batches; the last one is the latest
};

}  // namespace sg
