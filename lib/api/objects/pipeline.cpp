// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/pipeline.hpp"

#include <streamgemm/pipeline.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "api/application_function.hpp"
#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/submission/submission.hpp"
#include "api/wait.hpp"
#include "base/format.hpp"
#include "base/text.hpp"

namespace sg {
namespace {

ref<pipeline> pipeline_of(const sg_pipeline *handle) {
  return object_of<pipeline>(handle, object_type::pipeline, "pipeline");
}

// A byte count that is above 0 and fits.
std::int64_t checked_bytes(std::uint64_t bytes, const char *name) {
  if (bytes == 0 || bytes > static_cast<std::uint64_t>(INT64_MAX) / 4)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s is %llu; it must be from 1 to 2^61 - 1", name,
                static_cast<unsigned long long>(bytes));
  return static_cast<std::int64_t>(bytes);
}

pipeline_settings settings_of(const sg_pipeline_options &given) {
  constexpr std::int32_t most_buffers = 64, most_batches = 1 << 20;
  pipeline_settings made;
  made.input_bytes = checked_bytes(given.input_bytes, "options->input_bytes");
  if (given.memory_limit > 0) made.memory_limit = checked_bytes(given.memory_limit, "options->memory_limit");
  require_range(given.depth, 0, most_buffers, "options->depth");
  require_range(given.weight_buffers, 0, most_buffers, "options->weight_buffers");
  require_range(given.batches_in_flight, 0, most_batches, "options->batches_in_flight");
  require_range(given.when_full, SG_WHEN_FULL_BLOCK, SG_WHEN_FULL_REFUSE, "options->when_full");
  made.depth = given.depth;
  made.weight_buffers = given.weight_buffers;
  made.batches_in_flight = given.batches_in_flight;
  made.refuses_when_full = given.when_full == SG_WHEN_FULL_REFUSE;
  require_range(given.replicas, SG_REPLICAS_NONE, SG_REPLICAS_BATCHES, "options->replicas");
  made.replicates = given.replicas == SG_REPLICAS_BATCHES;
  return made;
}

sg_stage public_stage(const pipeline_stage &stage, std::int32_t index, sg_graph *graph, std::int64_t batch) {
  sg_stage made = SG_STAGE_INIT;
  made.graph = graph;
  made.input = stage.input;
  made.output = stage.output;
  made.workspace = stage.workspace;
  static_assert(sizeof(char *) == sizeof(void *));
  made.weights =
      stage.weight_addresses.empty() ? nullptr : reinterpret_cast<void *const *>(stage.weight_addresses.data());
  made.batch = batch;
  made.index = index;
  return made;
}

// Calls the stage's function with a graph for this batch.
std::vector<submission> record_batch(const ref<job_sink> &owner, const pipeline_stage &stage, std::int32_t index,
                                     std::int64_t batch, sg_stage_function function, void *user) {
  const auto recorded = ref<graph>::adopt(new graph(owner, true));
  const handle_bits handle = make_handle(recorded);
  const sg_stage given = public_stage(stage, index, handle_of<sg_graph>(handle), batch);
  struct releaser {
    handle_bits of;
    ~releaser() { release_handle(of, object_type::graph); }
  } const at_end{handle};
  set_last_error(SG_STATUS_OK, "");
  const std::string what = "the function of " + stage.name + " for batch " + std::to_string(batch);
  char message[1024];
  const sg_status status = call_application(
      what.c_str(), message, sizeof message, [&] { return function(&given, user); }, sg_last_error_message);
  if (status != SG_STATUS_OK) throw error(status, "%s", message);
  return recorded->finish();
}

pipeline_stage stage_of(const context &on, const sg_stage_desc &d) {
  pipeline_stage made;
  require_device(on, d.device, SG_DEVICE_ANY, "desc->device");
  if (d.device != SG_DEVICE_ANY) made.wanted_device = device_index(d.device);
  char name[SG_LABEL_SIZE] = "";
  if (d.name) copy_utf8(name, sizeof name, d.name);
  made.name = name;
  made.output_bytes = checked_bytes(d.output_bytes, "desc->output_bytes");
  if (d.workspace_bytes > 0) made.workspace_bytes = checked_bytes(d.workspace_bytes, "desc->workspace_bytes");
  require_range(d.place, SG_WEIGHTS_AUTO, SG_WEIGHTS_STREAMED, "desc->place");
  require_range(d.weight_count, 0, INT32_MAX, "desc->weight_count");
  if (d.weight_count > 0) require(d.weights, "desc->weights");
  made.place = d.place;
  for (std::int32_t i = 0; i < d.weight_count; ++i) {
    const std::string name = "desc->weights[" + std::to_string(i) + "]";
    require(d.weights[i].data, (name + ".data").c_str());
    require_reserved_zero(d.weights[i], name.c_str(), ".");
    made.weights.push_back({const_cast<char *>(static_cast<const char *>(d.weights[i].data)),
                            checked_bytes(d.weights[i].bytes, (name + ".bytes").c_str()),
                            {}});
  }
  return made;
}

sg_pipeline_info public_info(const pipeline_choice &choice, std::size_t stages) {
  const auto size = [](std::int64_t bytes) { return static_cast<std::uint64_t>(bytes); };
  sg_pipeline_info info = SG_PIPELINE_INFO_INIT;
  info.stages = static_cast<std::int32_t>(stages);
  info.streamed_stages = choice.streamed_stages;
  info.depth = choice.depth;
  info.weight_buffers = choice.weight_buffers;
  info.device_bytes = size(choice.device_bytes);
  info.resident_bytes = size(choice.resident_bytes);
  info.streamed_bytes = size(choice.streamed_bytes);
  info.seconds_per_batch = choice.seconds_per_batch;
  info.transfer_in_seconds = choice.transfer_in_seconds;
  info.transfer_out_seconds = choice.transfer_out_seconds;
  info.work_seconds = choice.work_seconds;
  info.replicas = static_cast<std::int32_t>(choice.replicas.size());
  info.shares_weights = choice.shares_weights;
  info.batches_in_flight = choice.batches_in_flight;
  return info;
}

// References for the caller to jobs, which are released unless they are given.
class job_handles {
 public:
  job_handles() = default;
  void make(std::span<const pipeline::batch> batches) {
    handles_.reserve(batches.size());
    for (const pipeline::batch &each : batches) handles_.push_back(make_handle(each.run));
  }
  ~job_handles() {
    for (const handle_bits each : handles_) release_handle(each, object_type::job);
  }
  job_handles(const job_handles &) = delete;
  job_handles &operator=(const job_handles &) = delete;
  void give(sg_job **out) noexcept {
    for (const handle_bits each : handles_) *out++ = handle_of<sg_job>(each);
    handles_.clear();
  }

 private:
  std::vector<handle_bits> handles_;
};

}  // namespace
}  // namespace sg

using sg::guarded;
using sg::object_type;
using sg::ref;

sg_status sg_pipeline_create(sg_context *context, const sg_pipeline_options *options, sg_pipeline **out_pipeline) {
  if (out_pipeline) *out_pipeline = nullptr;
  return guarded([&] {
    auto on = sg::context_of(context);
    sg::require(options, "options");
    sg::require(out_pipeline, "out_pipeline");
    const sg_pipeline_options given = sg::options_of(options, "options");
    const sg::pipeline_parts parts{on->machine(), on->memory(), on->checks_hazards()};
    auto made = ref<sg::object>::adopt(new sg::pipeline(std::move(on), parts, sg::settings_of(given)));
    *out_pipeline = sg::handle_of<sg_pipeline>(sg::make_handle(std::move(made)));
  });
}

sg_status sg_pipeline_retain(sg_pipeline *pipeline) { return sg::retain(pipeline, object_type::pipeline, "pipeline"); }

sg_status sg_pipeline_release(sg_pipeline *pipeline) {
  return sg::release(pipeline, object_type::pipeline, "pipeline");
}

sg_status sg_pipeline_add_stage(sg_pipeline *pipeline, const sg_stage_desc *desc, sg_stage *out_stage) {
  return guarded([&] {
    const auto found = sg::pipeline_of(pipeline);
    sg::require(desc, "desc");
    const sg_stage_desc d = sg::options_of(desc, "desc");
    if (!d.function) sg::require(out_stage, "out_stage");
    if (out_stage) sg::require_size<sg_stage>(out_stage->struct_size, "out_stage");
    sg::pipeline_stage stage = sg::stage_of(sg::context_of(found->owner()), d);
    if (d.function)
      stage.record = [owner = &found->owner(), function = d.function, user = d.user](const sg::pipeline_stage &of,
                                                                                     std::int64_t batch) {
        return sg::record_batch(ref<sg::job_sink>::share(owner), of, of.index, batch, function, user);
      };
    const auto kept = sg::user_release::make(found->owner(), d.release, d.user);
    stage.kept = kept;
    const sg::pipeline_stage &added = found->add(std::move(stage));
    if (kept) kept->accept();
    if (out_stage)
      sg::write_out(out_stage, sg::public_stage(added, added.index, sg::handle_of<sg_graph>(added.graph_handle), -1),
                    "out_stage");
  });
}

sg_status sg_pipeline_prepare(sg_pipeline *pipeline, sg_pipeline_info *out_info) {
  return guarded([&] {
    const auto found = sg::pipeline_of(pipeline);
    if (out_info) sg::require_size<sg_pipeline_info>(out_info->struct_size, "out_info");
    const sg::pipeline_choice choice = found->prepare();
    if (out_info) sg::write_out(out_info, sg::public_info(choice, found->size()), "out_info");
  });
}

sg_status sg_pipeline_describe(sg_pipeline *pipeline, char *text, uint64_t size, uint64_t *out_size) {
  sg::clear_text(text, size, out_size);
  return guarded([&] {
    const auto found = sg::pipeline_of(pipeline);
    sg::write_text(found->describe().c_str(), text, size, out_size);
  });
}

sg_status sg_pipeline_push_async(sg_pipeline *pipeline, const void *input, void *output, const sg_submit *submit,
                                 sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const auto found = sg::pipeline_of(pipeline);
    sg::require(input, "input");
    sg::require(output, "output");
    sg::context &on = sg::context_of(found->owner());
    sg::checked_submit order(on, submit);
    if (order.records())
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@submit->graph is given; a batch is not recorded");
    order.go_with(on.new_job(), out_job, [&](const ref<sg::job> &parent, const sg::submission_order &in) {
      const sg::pipeline::batch one{parent, input, output};
      found->push(parent, in, {&one, 1});
    });
  });
}

sg_status sg_pipeline_push_batches_async(sg_pipeline *pipeline, int32_t count, const void *const *inputs,
                                         void *const *outputs, const sg_submit *submit, sg_job **out_batches,
                                         sg_job **out_job) {
  if (out_batches && count > 0) std::fill_n(out_batches, count, nullptr);
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const auto found = sg::pipeline_of(pipeline);
    sg::require_range(count, 1, INT32_MAX, "count");
    sg::require(inputs, "inputs");
    sg::require(outputs, "outputs");
    sg::context &on = sg::context_of(found->owner());
    sg::checked_submit order(on, submit);
    if (order.records())
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@submit->graph is given; a batch is not recorded");
    std::vector<sg::pipeline::batch> batches;
    for (std::int32_t i = 0; i < count; ++i) {
      sg::require(inputs[i], sg::formatted("inputs[%d]", i).c_str());
      sg::require(outputs[i], sg::formatted("outputs[%d]", i).c_str());
      batches.push_back({on.new_job(), inputs[i], outputs[i]});
    }
    sg::job_handles handles;
    if (out_batches) handles.make(batches);
    order.go_with(on.new_job(), out_job, [&](const ref<sg::job> &parent, const sg::submission_order &in) {
      found->push(parent, in, batches);
    });
    if (out_batches) handles.give(out_batches);
  });
}

sg_status sg_pipeline_push_batches(sg_pipeline *pipeline, int32_t count, const void *const *inputs,
                                   void *const *outputs, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) {
    return sg_pipeline_push_batches_async(pipeline, count, inputs, outputs, submit, nullptr, out_job);
  });
}

sg_status sg_pipeline_push(sg_pipeline *pipeline, const void *input, void *output, const sg_submit *submit) {
  return sg::submit_and_wait(
      [&](sg_job **out_job) { return sg_pipeline_push_async(pipeline, input, output, submit, out_job); });
}
