// SPDX-License-Identifier: Apache-2.0
// A pipeline: stages, the memory of the batches in flight, and the batches themselves, each a job with children. Any
// thread.
#pragma once

#include <streamgemm/pipeline.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
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
  struct batch {
    ref<job> run;
    const void *input;
    void *output;
  };
  // Submits batches, each a run of `parent`; or one batch, whose run is `parent`. Throws as job_sink::submit does, and
  // then has submitted none.
  void push(const ref<job> &parent, submission_order order, std::span<const batch> batches);

 private:
  class pushing;  // the calling thread's turn
  struct replica {
    placement where;
    std::int64_t batches_begun = 0;
    struct latest {
      batch_ends ends;
      std::shared_ptr<const batch_program> program;
    } latest_of[2];  // by weights_source
  };

  void prepare_in_turn();
  void choose_and_allocate();
  // `full`: devices that get none of the stages that can be elsewhere.
  pipeline_choice within_free_memory(const std::set<device_index> &full);
  std::map<device_index, std::int64_t> limits() const;  // of their memory
  std::vector<device_index> working_devices() const;
  double seconds_with_replicas();  // of a batch; 0: the pipeline has replicas, or cannot have them
  void forget_other_devices() noexcept;
  void release_graphs() noexcept;
  void allocate();
  void copy_resident_weights();
  char *device_memory(device_index device, std::int64_t bytes);
  batch_ends ends_of(const void *input, void *output, const std::string &which) const;
  void require_room(std::size_t count);
  // The next replicas whose devices are not lost, the one after the latest first; or one whose device is lost.
  std::vector<std::size_t> next_replicas() const;
  // Number of the first batches that do not depend on each other.
  std::size_t independent(std::span<const batch> batches) const;
  void put_on(const placement &where);
  // The runs of the list, with the same numbers.
  std::vector<child_run> make_rounds(const job &parent, std::span<const batch> batches, batch_list &list);
  pipeline_batch make_batch(replica &on, const batch &given, weights_source source, std::int64_t number);
  pipeline_batch make_shared_weights(const std::vector<std::size_t> &replicas);

  const ref<job_sink> owner_;
  const pipeline_parts parts_;
  const pipeline_settings settings_;
  std::mutex turn_;  // held while a batch is made and submitted
  std::atomic<std::thread::id> in_turn_{};
  std::deque<pipeline_stage> stages_;
  bool is_prepared_ = false;
  pipeline_choice choice_;
  batch_maker maker_;
  std::vector<replica> replicas_;
  std::size_t next_replica_ = 0;
  std::vector<device_index> sharing_;  // devices of the latest batches that share weights
  std::shared_ptr<const batch_program> shared_weights_;
  std::vector<footprint> other_reads_;  // memory of the application that stages read
  std::optional<double> with_replicas_;
  pipeline_memory memory_;
  std::vector<ref<device_buffer>> buffers_;
  device_index allocating_{};  // whose memory was taken last
  std::int64_t next_batch_ = 0;
  std::deque<ref<job>> in_flight_;  // batches; the last one is the latest
};

}  // namespace sg
