// SPDX-License-Identifier: Apache-2.0
// Random pipelines: stages of GEMMs, functions of elements, copies, custom operations and functions, with weights of
// every place and kind of memory, batches of every kind of memory, cancelled and failing batches, and memory of the
// application's that batches change; one pipeline, or two on threads of their own. Each result is that of the stages
// one after the other, exactly. Stages that leave bytes of their output unwritten, always or at one batch, are refused.
// With several devices, stages and memory are on any of them.
// usage: random_pipelines_test --device NAME --seconds N [--seed N]
#include <streamgemm/streamgemm.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "foreign.hpp"
#include "shares.hpp"
#include "support/owned.hpp"

namespace sg_test {
namespace {

using doubles = std::vector<double>;
using pipeline = owned<sg_pipeline, sg_pipeline_release>;

// A batch whose first value is this one fails in the stages that check it; all others are integers.
constexpr double failing_value = 0.5;

shares drawn;
foreign_memory foreign;

class random_pipeline {
 public:
  random_pipeline(sg_context *context, bool calls_functions, std::uint64_t seed)
      : context_(context), calls_functions_(calls_functions), seed_(seed), random_(seed) {
    require_ok(sg_context_device_count(context, &devices_), "sg_context_device_count");
  }

  void run() {
    rows_ = 1 + below(12);
    widths_.push_back(1 + below(40));
    sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
    options.input_bytes = bytes_of(widths_[0]);
    if (below(2) == 0) options.depth = 1 + below(4);
    if (below(2) == 0) options.weight_buffers = 1 + below(4);
    if (below(3) == 0) options.batches_in_flight = 1 + below(6);
    most_at_once_ = options.batches_in_flight > 0 ? std::min(options.batches_in_flight, 4) : 4;
    is_replicated_ = devices_ > 1 && drawn.note("pipelines with replicas", below(3) == 0);
    if (is_replicated_) options.replicas = SG_REPLICAS_BATCHES;
    if (is_replicated_) log_ += "replicas\n";
    const bool is_limited = below(6) == 0;
    if (is_limited) options.memory_limit = std::uint64_t(1 + below(200)) << 10;
    require_ok(sg_pipeline_create(context_, &options, made_.out()), "sg_pipeline_create");
    for (int stages = 1 + below(5); stages > 0; --stages) add_stage();
    sg_pipeline_info info = SG_PIPELINE_INFO_INIT;
    const sg_status prepared = sg_pipeline_prepare(made_, &info);
    if (is_limited && prepared == SG_STATUS_OUT_OF_MEMORY) return;
    if (leaves_output()) return require_refused(prepared, "sg_pipeline_prepare");
    require_ok(prepared, "sg_pipeline_prepare");
    require(!is_limited || info.device_bytes <= options.memory_limit * std::uint64_t(devices_used_.size()),
            "a pipeline within its limit");
    push_all(below(14));
    for (const auto &each : states_) {
      doubles seen(each->values.size());
      require_ok(sg_copy(context_, seen.data(), each->memory.data, seen.size() * sizeof(double), nullptr), "sg_copy");
      require(seen == each->values, "the application's memory after all batches");
    }
  }

 private:
  struct placed {
    sg_context *context = nullptr;
    buffer owner;
    doubles own;
    double *pinned = nullptr;
    double *data = nullptr;
    placed() = default;
    placed(const placed &) = delete;
    placed &operator=(const placed &) = delete;
    ~placed() {
      if (pinned) sg_host_free(context, pinned);
    }
  };
  // What batches add to: sums of a stage's input, in the application's memory.
  struct state {
    placed memory;
    doubles values;
  };
  struct function_of_elements {
    const random_pipeline *of;
    std::int64_t count;
    double added;
  };
  // What a stage does to a batch.
  using effect = std::function<doubles(const doubles &, std::int64_t batch)>;

  [[noreturn]] void stop(const std::string &why) const {
    std::fprintf(stderr, "--seed %llu: %s\n%s(%s)\n", static_cast<unsigned long long>(seed_), why.c_str(), log_.c_str(),
                 sg_last_error_message());
    std::fflush(stderr);
    std::_Exit(1);
  }
  void require(bool holds, const char *what) const {
    if (!holds) stop(what);
  }
  // Some bytes of a stage's output were left.
  void require_refused(sg_status status, const char *what) const {
    const char *const message = sg_last_error_message();
    const bool says_why = std::strstr(message, "none writes byte") || std::strstr(message, "has no operation");
    if (status != SG_STATUS_INVALID_ARGUMENT || !says_why)
      stop(std::string(what) + " of a stage that leaves some of its output: " + sg_status_name(status));
  }
  void require_ok(sg_status status, const char *what) const {
    if (status != SG_STATUS_OK) stop(std::string(what) + ": " + sg_status_name(status));
  }
  int below(int limit) { return int(random_() % std::uint64_t(limit)); }
  doubles integers(std::int64_t count) {
    doubles made(static_cast<std::size_t>(count));
    for (double &each : made) each = below(5) - 2;
    return made;
  }
  std::uint64_t bytes_of(std::int64_t width) const { return std::uint64_t(rows_ * width) * sizeof(double); }

  int any_device() { return devices_ == 1 ? 0 : below(devices_); }
  // Draws the device of the next stage.
  std::int32_t device_of_stage() {
    std::int32_t wanted = SG_DEVICE_ANY;
    if (devices_ > 1 && !is_replicated_ && below(3) > 0) wanted = below(devices_);
    if (wanted >= 0) drawn.note("stages on another device than the one before", wanted != device_);
    if (wanted >= 0) device_ = wanted;
    devices_used_.insert(device_);
    if (wanted < 0)  // the library may place it on any
      for (int i = 0; i < devices_; ++i) devices_used_.insert(i);
    log_ += "on device " + std::to_string(wanted) + ": ";
    return wanted;
  }

  // `skewed`: at an address that is a multiple of 8 alone. `device`: of device memory.
  void place(placed &to, const doubles &values, int kind, int device, bool skewed = false) {
    const std::size_t skew = skewed ? 1 : 0, count = values.size() + skew;
    to.context = context_;
    void *data = nullptr;
    if (kind == 0) {
      to.own.resize(count);
      data = to.own.data();
    } else if (kind == 1) {
      require_ok(sg_host_alloc(context_, count * sizeof(double), &data), "sg_host_alloc");
      to.pinned = static_cast<double *>(data);
    } else {
      sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
      options.device = device;
      require_ok(sg_buffer_create(context_, count * sizeof(double), &options, to.owner.out()), "sg_buffer_create");
      require_ok(sg_buffer_data(to.owner, &data), "sg_buffer_data");
    }
    to.data = static_cast<double *>(data) + skew;
    if (kind == 2)
      require_ok(sg_copy(context_, to.data, values.data(), values.size() * sizeof(double), nullptr), "sg_copy");
    else
      std::copy(values.begin(), values.end(), to.data);
  }
  doubles values_at(const placed &from, std::int64_t count) const {
    doubles made(static_cast<std::size_t>(count));
    require_ok(sg_copy(context_, made.data(), from.data, made.size() * sizeof(double), nullptr), "sg_copy");
    return made;
  }
  sg_matrix matrix(const void *data, std::int64_t rows, std::int64_t cols) const {
    return {const_cast<void *>(data), rows, cols, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  }

  static sg_status add_number(const sg_custom_call *call, void *user) {
    const auto &own = *static_cast<const function_of_elements *>(user);
    const auto *x = static_cast<const double *>(call->operands[0]);
    auto *y = static_cast<double *>(call->operands[1]);
    if (x[0] == failing_value) {
      std::snprintf(call->message, call->message_size, "a failing batch");
      return SG_STATUS_UNSUPPORTED;
    }
    for (std::int64_t i = 0; i < own.count; ++i) y[i] = x[i] + own.added;
    return SG_STATUS_OK;
  }

  // y = activation(alpha x w + bias), with the weights of the stage; alpha depends on the batch if it has a function.
  struct layer {
    const random_pipeline *of;
    std::int64_t in, out;
    bool has_bias, has_activation, varies, through_workspace;
    enum class left { none, all, rows, cols, all_but_workspace } leaves;
    int leaves_at;         // -1: when it is recorded, or called by sg_pipeline_prepare; otherwise at this batch's call
    int calls = 0;         // for batches
    bool is_left = false;  // the latest call left some of its output
    void record(const sg_stage &stage, sg_graph *graph) {
      sg_submit submit = SG_SUBMIT_INIT;
      submit.graph = graph;
      const void *x = stage.input;
      is_left = leaves != left::none && leaves_at == (stage.batch < 0 || !varies ? -1 : calls++);
      if (is_left && leaves == left::all) return;
      if (through_workspace) {
        of->require_ok(sg_copy_async(of->context_, stage.workspace, x, of->bytes_of(in), &submit, nullptr),
                       "sg_copy_async");
        x = stage.workspace;
      }
      if (is_left && leaves == left::all_but_workspace) return;
      const std::int64_t rows = of->rows_ - (is_left && leaves == left::rows);
      const std::int64_t cols = out - (is_left && leaves == left::cols);
      sg_gemm_desc desc = SG_GEMM_DESC_INIT;
      desc.a = of->matrix(x, rows, in);
      desc.b = of->matrix(stage.weights[0], in, cols);
      desc.c = of->matrix(stage.output, rows, cols);
      desc.b.ld = desc.c.ld = out;
      desc.alpha.re = varies ? double(1 + (stage.batch < 0 ? 0 : stage.batch) % 3) : 1;
      if (has_bias) desc.bias = stage.weights[1];
      if (has_activation) desc.activation = SG_ACTIVATION_RELU;
      of->require_ok(sg_gemm_async(of->context_, &desc, &submit, nullptr), "sg_gemm_async");
    }
  };
  static sg_status record_layer(const sg_stage *stage, void *user) {
    static_cast<layer *>(user)->record(*stage, stage->graph);
    return SG_STATUS_OK;
  }

  bool leaves_output() const {
    return std::any_of(layers_.begin(), layers_.end(), [](const auto &each) { return each->is_left; });
  }

  void add_stage() {
    const std::int64_t in = widths_.back();
    const int kind = below(is_replicated_ ? 3 : calls_functions_ ? 5 : 4);  // those that can be on any device
    if (kind <= 1) return add_layer(in, 1 + below(40));
    sg_stage_desc desc = SG_STAGE_DESC_INIT;
    desc.output_bytes = bytes_of(in);
    desc.device = device_of_stage();
    widths_.push_back(in);
    sg_stage stage = SG_STAGE_INIT;
    require_ok(sg_pipeline_add_stage(made_, &desc, &stage), "sg_pipeline_add_stage");
    sg_submit submit = SG_SUBMIT_INIT;
    submit.graph = stage.graph;
    if (kind == 2) {
      log_ += "relu\n";
      sg_elementwise_desc relu = SG_ELEMENTWISE_DESC_INIT;
      relu.function = SG_FUNCTION_RELU;
      relu.a = matrix(stage.input, rows_, in);
      relu.c = matrix(stage.output, rows_, in);
      require_ok(sg_elementwise_async(context_, &relu, &submit, nullptr), "sg_elementwise_async");
      effects_.push_back([](doubles x, std::int64_t) {
        for (double &each : x) each = each > 0 ? each : 0;
        return x;
      });
    } else if (kind == 3) {
      log_ += "copy, and a sum in the application's memory\n";
      states_.push_back(std::make_unique<state>());
      state &sum = *states_.back();
      sum.values.assign(static_cast<std::size_t>(rows_ * in), 0);
      place(sum.memory, sum.values, 2, device_);
      sg_axpby_desc add = SG_AXPBY_DESC_INIT;
      add.a = matrix(stage.input, rows_, in);
      add.c = matrix(sum.memory.data, rows_, in);
      add.alpha.re = add.beta.re = 1;
      require_ok(sg_axpby_async(context_, &add, &submit, nullptr), "sg_axpby_async");
      require_ok(sg_copy_async(context_, stage.output, stage.input, bytes_of(in), &submit, nullptr), "sg_copy_async");
      effects_.push_back([&sum](const doubles &x, std::int64_t) {
        for (std::size_t i = 0; i < x.size(); ++i) sum.values[i] += x[i];
        return x;
      });
    } else {
      log_ += "custom\n";
      functions_.push_back(
          std::make_unique<function_of_elements>(function_of_elements{this, rows_ * in, double(below(5) - 2)}));
      function_of_elements &own = *functions_.back();
      const sg_custom_operand operands[] = {{const_cast<void *>(stage.input), bytes_of(in), SG_ACCESS_READ},
                                            {stage.output, bytes_of(in), SG_ACCESS_WRITE}};
      sg_custom_desc custom = SG_CUSTOM_DESC_INIT;
      custom.function = add_number;
      custom.user = &own;
      custom.operands = operands;
      custom.operand_count = 2;
      require_ok(sg_custom_async(context_, &custom, &submit, nullptr), "sg_custom_async");
      first_custom_ = std::min(first_custom_, effects_.size());
      effects_.push_back([added = own.added](doubles x, std::int64_t) {
        for (double &each : x) each += added;
        return x;
      });
    }
  }

  void add_layer(std::int64_t in, std::int64_t out) {
    layers_.push_back(std::make_unique<layer>(
        layer{this, in, out, below(2) == 0, below(2) == 0, below(3) == 0, below(3) == 0, layer::left::none, -1}));
    layer &own = *layers_.back();
    if (drawn.note("layers that leave output", below(16) == 0))
      own.leaves = layer::left(1 + below(own.through_workspace ? 4 : 3));
    if (drawn.note("layers that are functions", own.varies)) own.leaves_at = below(6) - 1;
    widths_.push_back(out);
    sg_stage_desc desc = SG_STAGE_DESC_INIT;
    desc.output_bytes = bytes_of(out);
    desc.device = device_of_stage();
    desc.workspace_bytes = own.through_workspace ? bytes_of(in) : 0;
    desc.place = static_cast<sg_weights_place>(below(3));
    const doubles w = integers(in * out), bias = integers(out);
    sg_weight weights[2];
    log_ += "layer " + std::to_string(in) + " -> " + std::to_string(out) + ", weights in memory";
    for (int i = 0; i < 2; ++i) {
      weights_.push_back(std::make_unique<placed>());
      const int memory = below(is_replicated_ ? 2 : 3);
      drawn.note("weights in device memory", memory == 2);
      log_ += " " + std::to_string(memory);
      place(*weights_.back(), i == 0 ? w : bias, memory, any_device(),
            drawn.note("weights at 8 mod 16", below(3) == 0));
      weights[i] = {weights_.back()->data, (i == 0 ? w : bias).size() * sizeof(double)};
    }
    desc.weights = weights;
    desc.weight_count = own.has_bias ? 2 : 1;
    if (own.varies) {
      desc.function = record_layer;
      desc.user = layers_.back().get();
    }
    log_ += ", place " + std::to_string(int{desc.place}) + (own.varies ? ", a function" : "") + ", leaves " +
            std::to_string(int(own.leaves)) + " at " + std::to_string(own.leaves_at) + "\n";
    sg_stage stage = SG_STAGE_INIT;
    require_ok(sg_pipeline_add_stage(made_, &desc, &stage), "sg_pipeline_add_stage");
    if (!own.varies) own.record(stage, stage.graph);
    effects_.push_back([this, own, w, bias](const doubles &x, std::int64_t batch) {
      doubles y(static_cast<std::size_t>(rows_ * own.out));
      const double alpha = own.varies ? double(1 + batch % 3) : 1;
      for (std::int64_t i = 0; i < rows_; ++i)
        for (std::int64_t j = 0; j < own.out; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < own.in; ++k)
            sum += x[std::size_t(i * own.in + k)] * w[std::size_t(k * own.out + j)];
          sum = alpha * sum + (own.has_bias ? bias[std::size_t(j)] : 0);
          y[std::size_t(i * own.out + j)] = own.has_activation && sum < 0 ? 0 : sum;
        }
      return y;
    });
  }

  struct batch {
    placed input, output;
    doubles wanted;
    bool fails = false, is_cancelled = false;
    job handle;
  };

  void push_all(int count) {
    const bool may_end_early = states_.empty();  // otherwise the sums are unknown
    const bool may_leave =
        std::any_of(layers_.begin(), layers_.end(), [](const auto &each) { return each->leaves != layer::left::none; });
    std::vector<std::unique_ptr<batch>> batches;
    std::int64_t number = 0;
    std::vector<batch *> together;
    std::size_t at_once = 1;
    for (int i = 0; i < count; ++i) {
      batches.push_back(std::make_unique<batch>());
      batch &each = *batches.back();
      doubles x = integers(rows_ * widths_[0]);
      if (may_end_early && first_custom_ == 0 && drawn.note("failing batches", below(6) == 0)) {
        each.fails = true;
        x[0] = failing_value;
      }
      place(each.input, x, below(3), any_device(), below(3) == 0);
      place(each.output, doubles(static_cast<std::size_t>(rows_ * widths_.back()), -9), below(3), any_device(),
            below(3) == 0);
      sg_submit submit = SG_SUBMIT_INIT;
      submit.priority = below(3) - 1;
      if (drawn.note("batches of foreign memory", below(16) == 0)) {
        const bool is_input = below(2) == 0;
        const sg_status status = sg_pipeline_push_async(made_, is_input ? foreign.data() : each.input.data,
                                                        is_input ? each.output.data : foreign.data(), &submit, nullptr);
        if (!foreign_memory::is_refusal(status))
          stop(std::string("a batch of foreign memory: ") + sg_status_name(status));
      }
      each.wanted = std::move(x);
      together.push_back(&each);
      if (together.size() < at_once && i + 1 < count) continue;
      const sg_status pushed = push(together, submit);
      const std::vector<batch *> latest = std::exchange(together, {});
      at_once = may_leave || below(2) == 0 ? 1 : std::size_t(1 + below(most_at_once_));
      drawn.note("batches pushed at once", latest.size() > 1);
      if (drawn.note("refused batches", leaves_output())) {
        require_refused(pushed, "sg_pipeline_push_async");
        for (const auto &stage : layers_) stage->is_left = false;
        batches.pop_back();
        continue;
      }
      require_ok(pushed, "sg_pipeline_push_async");
      for (batch *one : latest) {
        for (const effect &stage : effects_) one->wanted = stage(one->wanted, number);
        ++number;
      }
      if (may_end_early && drawn.note("cancelled batches", below(8) == 0)) {
        const std::size_t at = std::size_t(below(int(batches.size())));
        if (sg_job_cancel(batches[at]->handle) == SG_STATUS_OK) batches[at]->is_cancelled = true;
      }
    }
    for (std::size_t i = 0; i < batches.size(); ++i) {
      batch &each = *batches[i];
      const sg_status status = sg_job_wait(each.handle, SG_FOREVER, nullptr);
      const std::string which = "batch " + std::to_string(i);
      for (std::size_t before = 0; before < i; ++before)
        require(sg_job_query(batches[before]->handle, nullptr) != SG_STATUS_NOT_READY,
                "batches complete in their order");
      if (status != SG_STATUS_OK && each.is_cancelled) continue;
      if (each.fails) {
        if (status == SG_STATUS_OK) stop(which + " was to fail");
        continue;
      }
      require_ok(status, which.c_str());
      const doubles seen = values_at(each.output, rows_ * widths_.back());
      for (std::size_t k = 0; k < seen.size(); ++k)
        if (seen[k] != each.wanted[k])
          stop(which + ": element " + std::to_string(k) + " is " + std::to_string(seen[k]) + " instead of " +
               std::to_string(each.wanted[k]));
    }
  }

  sg_status push(const std::vector<batch *> &some, const sg_submit &submit) {
    if (some.size() == 1)
      return sg_pipeline_push_async(made_, some[0]->input.data, some[0]->output.data, &submit, some[0]->handle.out());
    std::vector<const void *> inputs;
    std::vector<void *> outputs;
    std::vector<sg_job *> jobs(some.size());
    for (const batch *each : some) {
      inputs.push_back(each->input.data);
      outputs.push_back(each->output.data);
    }
    const sg_status status = sg_pipeline_push_batches_async(
        made_, static_cast<std::int32_t>(some.size()), inputs.data(), outputs.data(), &submit, jobs.data(), nullptr);
    for (std::size_t i = 0; i < some.size(); ++i)
      if (jobs[i]) *some[i]->handle.out() = jobs[i];
    return status;
  }

  sg_context *context_;
  const bool calls_functions_;  // on the host: not on a GPU
  const std::uint64_t seed_;
  std::int32_t devices_ = 1, device_ = 0;  // of the context; of the latest stage
  std::set<std::int32_t> devices_used_;
  bool is_replicated_ = false;
  std::int32_t most_at_once_ = 1;
  std::mt19937_64 random_;
  std::string log_;
  std::int64_t rows_ = 0;
  std::vector<std::int64_t> widths_;
  std::vector<std::unique_ptr<placed>> weights_;
  std::vector<std::unique_ptr<layer>> layers_;
  std::vector<std::unique_ptr<function_of_elements>> functions_;
  std::vector<std::unique_ptr<state>> states_;
  std::vector<effect> effects_;
  std::size_t first_custom_ = SIZE_MAX;
  pipeline made_;
};

int run_all(const char *device, random_rounds &rounds) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = device;
  options.flags = SG_CONTEXT_CHECK_HAZARDS;
  context on;
  if (sg_context_create(&options, on.out()) != SG_STATUS_OK) {
    std::fprintf(stderr, "%s: %s\n", device, sg_last_error_message());
    return 1;
  }
  const bool calls_functions = std::strncmp(device, "cuda", 4) != 0;
  if (!foreign.data()) return 1;  // before threads ask for it
  while (const auto seed = rounds.next()) {
    if (*seed % 4 == 0) {  // two at a time
      std::thread other([&] { random_pipeline(on, calls_functions, ~*seed).run(); });
      random_pipeline(on, calls_functions, *seed).run();
      other.join();
    } else {
      random_pipeline(on, calls_functions, *seed).run();
    }
  }
  std::printf("%ld rounds\n", rounds.count());
  drawn.print();
  return 0;
}

}  // namespace
}  // namespace sg_test

int main(int count, char **arguments) { return sg_test::run_with_arguments(count, arguments, sg_test::run_all); }
