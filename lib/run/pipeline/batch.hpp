// SPDX-License-Identifier: Apache-2.0
// What a batch of a pipeline submits: copies of its input, of streamed weights and of its result, and each stage's
// recorded submissions; and the addresses of a batch's buffers. What is simulated, proved free of races and run is made
// here.
#pragma once

#include <streamgemm/pipeline.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/handle.hpp"
#include "base/memory_space.hpp"
#include "model/machine_model.hpp"
#include "run/memory/memory_kinds.hpp"
#include "run/objects/graph.hpp"
#include "run/pipeline/address_range.hpp"
#include "run/pipeline/batch_work.hpp"

namespace sg {

struct copy_form;

struct pipeline_weight {
  char *data = nullptr;
  std::int64_t bytes = 0;
  memory_space space;
  bool in_place = false;  // in the memory of the device that its stage's operations are recorded for
};

struct pipeline_stage {
  std::string name;
  std::optional<device_index> wanted_device;
  std::int64_t output_bytes = 0, workspace_bytes = 0;
  std::vector<pipeline_weight> weights;
  sg_weights_place place = SG_WEIGHTS_AUTO;
  // Makes the submissions of one batch (-1: for planning); empty: they are recorded once.
  std::function<std::vector<submission>(const pipeline_stage &, std::int64_t batch)> record;
  std::shared_ptr<user_release> kept;  // what the function uses, and the weights

  device_index recorded_device{};  // for which its operations are recorded
  bool is_movable = false;         // to other devices
  device_index device{};           // on which it runs
  // Its input is a buffer of its own: it is the batch's, or the output of a stage on another device.
  bool receives_input = false;

  // Addresses that its operations use, and those of the weights in one block.
  std::unique_ptr<address_range> reserved;
  char *input = nullptr, *output = nullptr, *workspace = nullptr, *weights_begin = nullptr;
  std::int64_t input_bytes = 0, weights_bytes = 0;  // of weights that are copied
  std::vector<char *> weight_addresses;
  std::int32_t index = 0;
  // Without a function: what is recorded, the caller's handle of it until the pipeline is prepared, and the result.
  ref<graph> recorded;
  handle_bits graph_handle = 0;
  std::map<device_index, work_list> works_by_device;  // of those that may run it, and of the recorded one
  const work_list &works() const { return works_by_device.at(device); }

  std::int32_t streamed_index = -1;  // among the streamed stages of its device; -1: resident, or nothing to copy
  bool is_streamed() const noexcept { return streamed_index >= 0; }
};

// The buffers of one batch in flight on one device. Outputs of successive stages alternate between two.
struct batch_buffers {
  char *input = nullptr;
  char *outputs[2] = {nullptr, nullptr};
  char *workspace = nullptr;
};

// Their sizes in bytes, multiples of 256; 0: none.
struct batch_sizes {
  std::int64_t input = 0, outputs[2] = {0, 0}, workspace = 0;
  std::int64_t total() const noexcept { return input + outputs[0] + outputs[1] + workspace; }
  batch_buffers at(char *begin) const noexcept;
};

// Of a pipeline's memory on one device.
struct device_sizes {
  batch_sizes batch;                     // of one
  std::int64_t weight_buffer_bytes = 0;  // of one
  std::int64_t resident_bytes = 0, streamed_bytes = 0;
  std::int32_t stages = 0, streamed_stages = 0;
};

struct pipeline_memory {
  struct of_device {
    device_sizes sizes;
    std::vector<batch_buffers> batches;
    std::vector<char *> weight_buffers;  // of streamed weights
    std::vector<char *> resident;        // weights, by stage; NULL: none
    // Of a batch, by the number of those that this device has had before.
    const batch_buffers &of_batch(std::int64_t turn) const { return in_turn(batches, turn); }
    char *weights_of(const pipeline_stage &stage, std::int64_t turn) const {
      if (!stage.is_streamed()) return resident[static_cast<std::size_t>(stage.index)];
      if (weight_buffers.empty()) return nullptr;  // the stage is on another device
      return in_turn(weight_buffers, turn * sizes.streamed_stages + stage.streamed_index);
    }

   private:
    template <class Item>
    static const Item &in_turn(const std::vector<Item> &list, std::int64_t turn) {
      return list[static_cast<std::size_t>(turn % static_cast<std::int64_t>(list.size()))];
    }
  };
  std::map<device_index, of_device> devices;  // with stages
};

// What a batch does about streamed weights.
enum class weights_source : std::uint8_t { own, shared };  // it copies them; or they are copied for several batches

// The input and the output of a batch.
struct batch_ends {
  char *input = nullptr, *output = nullptr;
  memory_space input_space = SG_MEMORY_PINNED, output_space = SG_MEMORY_PINNED;
  bool input_in_place = false, output_in_place = false;
  bool same_kinds(const batch_ends &other) const noexcept {
    return input_space == other.input_space && output_space == other.output_space &&
           input_in_place == other.input_in_place && output_in_place == other.output_in_place;
  }
};

class batch_maker {
 public:
  batch_maker(job_home &home, const machine_model &machine, const memory_kinds &memory,
              const std::deque<pipeline_stage> &stages)
      : home_(home), machine_(machine), memory_(memory), stages_(stages) {}

  // The submissions of the stage, without addresses. Throws as check() does.
  work_list works_of(const pipeline_stage &stage, std::vector<submission> recorded) const;
  // Whether the stage can run on another device than its operations were recorded for: these use no other memory of a
  // device than the stage's, and are no functions of the application.
  bool can_move(const pipeline_stage &stage, const std::vector<submission> &recorded) const;
  // Puts all stages, by their numbers, on devices: what is made next is made for these. Throws as job_home::replan
  // does.
  void place(std::deque<pipeline_stage> &stages, const std::vector<device_index> &devices);
  // What batches with ends of these kinds submit. `number`: for which stages with functions are called; empty: they are
  // not.
  std::shared_ptr<const batch_program> program(const pipeline_memory &memory, const batch_ends &ends,
                                               weights_source source, std::optional<std::int64_t> number);
  // The addresses of a batch, by the number of batches that these devices have had before.
  batch_addresses addresses(const pipeline_memory &memory, const batch_ends &ends, std::int64_t turn) const;
  bool calls_functions() const noexcept;

  // Copies of weights to devices with the same stages: each copies a part from the host if all are
  // linked, and the rest from the others. `streamed`: of the streamed weights, else of the resident ones.
  std::shared_ptr<const batch_program> weights(const pipeline_memory &memory, const std::vector<device_index> &to,
                                               bool streamed);
  // `turns`: of each of the devices, as above.
  batch_addresses weight_addresses(const pipeline_memory &memory, const std::vector<device_index> &to,
                                   const std::vector<std::int64_t> &turns) const;

 private:
  // Throws SG_STATUS_INVALID_ARGUMENT if an operation accesses addresses of another stage, or beyond the ends of its
  // own, or if none writes a byte of the output: it would have that of another batch.
  void check(const pipeline_stage &stage, const std::vector<submission> &works) const;
  void require_own_addresses(const pipeline_stage &stage, const std::vector<submission> &works) const;
  void require_output(const pipeline_stage &stage, const std::vector<submission> &works) const;
  struct placed {
    std::uint32_t buffer;
    char *offset;
  };
  std::shared_ptr<const sg::program> copy_program(const copy_form &wanted, const plan_request &request);
  void add_copy(placed to, memory_space to_space, placed from, memory_space from_space, std::int64_t bytes,
                std::string label, batch_role role, work_list &list);
  // A copy of `bytes`, by the device of the destination, or of the source if that is in host memory.
  submission copy(char *to, memory_space to_space, char *from, memory_space from_space, std::int64_t bytes,
                  std::string label);
  // `buffers`: those of the stage's weights on each of `devices`.
  void add_weights(const pipeline_stage &stage, const std::vector<device_index> &devices,
                   const std::vector<std::uint32_t> &buffers, work_list &to);
  bool are_linked(const std::vector<device_index> &devices) const;
  // Work of this batch begins in whole buffers, given with their bytes. A failure of an earlier batch, which was to
  // write more or other parts of them than this one, has no effect then.
  void add_taking(device_index device, std::initializer_list<std::pair<std::uint32_t, std::int64_t>> buffers,
                  batch_role role, work_list &to) const;
  void add_input(const pipeline_stage &stage, placed from, memory_space from_space, const pipeline_memory &memory,
                 work_list &to);

  job_home &home_;
  const machine_model &machine_;
  const memory_kinds &memory_;
  const std::deque<pipeline_stage> &stages_;
  std::vector<std::shared_ptr<const sg::program>> copies_;  // few
};

}  // namespace sg
