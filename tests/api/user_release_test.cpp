// SPDX-License-Identifier: Apache-2.0
// sg_release_callback: called once when the library does not use a `user` any more, and not before.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "support/harness.hpp"

namespace sg_test {
namespace {

using graph = owned<sg_graph, sg_graph_release>;
using pipeline = owned<sg_pipeline, sg_pipeline_release>;

// What a function uses: its calls after the release are counted.
struct resource {
  std::atomic<int> calls{0}, late{0}, releases{0};

  static sg_status use(const sg_custom_call *, void *user) {
    auto &own = *static_cast<resource *>(user);
    ++own.calls;
    if (own.releases > 0) ++own.late;
    return SG_STATUS_OK;
  }
  static sg_status use_for_stage(const sg_stage *, void *user) {
    auto &own = *static_cast<resource *>(user);
    ++own.calls;
    if (own.releases > 0) ++own.late;
    return SG_STATUS_UNSUPPORTED;  // no batch is made
  }
  static void release(void *user) { ++static_cast<resource *>(user)->releases; }

  void expect_released(int times = 1) const {
    for (int i = 0; i < 60000 && releases < times; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(times, releases);
    EXPECT_EQ(0, late);
  }
};

class user_releases : public on_each_device {
 protected:
  // A custom operation on memory of the device.
  struct operation {
    sg_custom_operand operand;
    sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
    operation(resource &of, void *data) : operand{data, 64, SG_ACCESS_READ_WRITE} {
      desc.function = resource::use, desc.user = &of, desc.release = resource::release;
      desc.operands = &operand, desc.operand_count = 1;
    }
    operation(const operation &) = delete;
    operation &operator=(const operation &) = delete;
  };
  void SetUp() override {
    on_each_device::SetUp();
    EXPECT_OK(sg_buffer_create(context_, 64, nullptr, memory_.out()));
    EXPECT_OK(sg_buffer_data(memory_, &data_));
  }
  // A graph of that operation.
  graph graph_of(const operation &what) {
    graph made;
    EXPECT_OK(sg_graph_create(context_, made.out()));
    sg_submit record = SG_SUBMIT_INIT;
    record.graph = made;
    EXPECT_OK(sg_custom_async(context_, &what.desc, &record, nullptr));
    return made;
  }
  buffer memory_;
  void *data_ = nullptr;
};

TEST_P(user_releases, a_job_releases_it_once_it_has_completed) {
  resource of_handle, without_handle, waited;
  const operation one(of_handle, data_), two(without_handle, data_), three(waited, data_);
  job kept;
  ASSERT_OK(sg_custom_async(context_, &one.desc, nullptr, kept.out()));
  ASSERT_OK(sg_custom_async(context_, &two.desc, nullptr, nullptr));
  ASSERT_OK(sg_custom(context_, &three.desc, nullptr));
  for (const resource *each : {&of_handle, &without_handle, &waited}) {
    each->expect_released();
    EXPECT_EQ(1, each->calls);
  }
  ASSERT_OK(sg_job_wait(kept, SG_FOREVER, nullptr));
}

TEST_P(user_releases, a_cancelled_job_releases_it_too) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  resource of;
  const operation one(of, data_);
  sg_job *const before = gated.get();
  sg_submit behind = SG_SUBMIT_INIT;
  behind.after = &before, behind.after_count = 1;
  job pending;
  ASSERT_OK(sg_custom_async(context_, &one.desc, &behind, pending.out()));
  ASSERT_OK(sg_job_cancel(pending));
  EXPECT_EQ(0, of.releases);
  gated.open();
  of.expect_released();
  EXPECT_EQ(0, of.calls);
}

TEST_P(user_releases, a_refused_call_does_not) {
  resource of;
  {
    operation one(of, data_);
    one.desc.operand_count = 9;
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_custom_async(context_, &one.desc, nullptr, nullptr));
    one.desc.operand_count = 1;
    sg_operation_desc given = SG_OPERATION_DESC_INIT;
    given.operation = SG_OPERATION_CUSTOM, given.desc = &one.desc;
    EXPECT_OK(sg_context_supports(context_, &given));
    plan planned;
    EXPECT_OK(sg_plan_create(context_, &given, nullptr, planned.out()));
    sg_stage_desc stage = SG_STAGE_DESC_INIT;
    stage.function = resource::use_for_stage, stage.user = &of, stage.release = resource::release;
    sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
    options.input_bytes = 64;
    pipeline made;
    ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_add_stage(made, &stage, nullptr)) << "no output";
  }
  resource after;  // what is called later comes in order
  const operation accepted(after, data_);
  ASSERT_OK(sg_custom(context_, &accepted.desc, nullptr));
  after.expect_released();
  EXPECT_EQ(0, of.releases);
}

TEST_P(user_releases, a_graph_keeps_it_for_its_runs) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  resource of;
  const operation one(of, data_);
  graph recorded = graph_of(one);
  for (int i = 0; i < 3; ++i) ASSERT_OK(sg_graph_run(recorded, nullptr));
  EXPECT_EQ(3, of.calls);
  EXPECT_EQ(0, of.releases);
  sg_job *const before = gated.get();
  sg_submit behind = SG_SUBMIT_INIT;
  behind.after = &before, behind.after_count = 1;
  job last;
  ASSERT_OK(sg_graph_run_async(recorded, &behind, last.out()));
  recorded = {};
  EXPECT_EQ(0, of.releases) << "a run is in flight";
  gated.open();
  of.expect_released();
  EXPECT_EQ(4, of.calls);
}

// Its job's callback, or that of a graph's run, may use the same `user`, and comes first.
TEST_P(user_releases, it_comes_behind_callbacks) {
  struct shared {
    std::atomic<int> callbacks{0}, before{0}, releases{0};
  } own[2];
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  resource unused;
  operation one(unused, data_);
  one.desc.function = [](const sg_custom_call *, void *) { return SG_STATUS_OK; };
  one.desc.release = [](void *user) {
    auto &it = *static_cast<shared *>(user);
    it.before = it.callbacks.load();
    ++it.releases;
  };
  const auto callback = [](sg_job *, sg_status, void *user) { ++static_cast<shared *>(user)->callbacks; };
  sg_job *const before = gated.get();
  sg_submit behind = SG_SUBMIT_INIT;
  behind.after = &before, behind.after_count = 1;
  job alone, run;
  one.desc.user = &own[0];
  ASSERT_OK(sg_custom_async(context_, &one.desc, &behind, alone.out()));
  {
    one.desc.user = &own[1];
    const graph recorded = graph_of(one);
    ASSERT_OK(sg_graph_run_async(recorded, &behind, run.out()));
  }
  ASSERT_OK(sg_job_on_complete(alone, callback, &own[0]));
  ASSERT_OK(sg_job_on_complete(run, callback, &own[1]));
  gated.open();
  for (shared &each : own) {
    for (int i = 0; i < 60000 && each.releases < 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(1, each.releases);
    EXPECT_EQ(1, each.before);
  }
}

TEST_P(user_releases, an_update_of_a_graph_keeps_it) {
  resource of;
  const operation one(of, data_);
  graph recorded = graph_of(one);
  ASSERT_OK(sg_graph_run(recorded, nullptr));
  ASSERT_OK(update_recorded(recorded, 0, SG_OPERATION_CUSTOM, &one.desc));
  ASSERT_OK(sg_graph_run(recorded, nullptr));
  EXPECT_EQ(0, of.releases);
  recorded = {};
  of.expect_released();
  EXPECT_EQ(2, of.calls);
}

// The function's user and the weights are one object, which its release frees.
TEST_P(user_releases, a_pipeline_keeps_the_users_and_weights_of_its_stages) {
  constexpr std::int64_t n = 8;
  constexpr std::uint64_t bytes = n * n * sizeof(double);
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  struct layer {
    std::vector<double> weights = std::vector<double>(n * n, 0.5);
    std::atomic<int> *freed;
  };
  std::atomic<int> freed{0};
  std::vector<double> x(n * n, 1), y(n * n);
  {
    sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
    options.input_bytes = bytes;
    pipeline made;
    ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
    for (int s = 0; s < 2; ++s) {
      auto own = std::make_unique<layer>();
      own->freed = &freed;
      const sg_weight weight = {own->weights.data(), bytes};
      sg_stage_desc desc = SG_STAGE_DESC_INIT;
      desc.output_bytes = bytes, desc.weights = &weight, desc.weight_count = 1, desc.place = SG_WEIGHTS_STREAMED;
      desc.user = own.get();
      desc.release = [](void *user) {
        const std::unique_ptr<layer> last(static_cast<layer *>(user));
        std::fill(last->weights.begin(), last->weights.end(), -1.0);
        ++*last->freed;
      };
      sg_stage stage = SG_STAGE_INIT;
      ASSERT_OK(sg_pipeline_add_stage(made, &desc, &stage));
      static_cast<void>(own.release());  // the pipeline's
      sg_submit record = SG_SUBMIT_INIT;
      record.graph = stage.graph;
      const sg_gemm_desc gemm =
          make_gemm(static_cast<const double *>(stage.input), static_cast<double *>(stage.weights[0]),
                    static_cast<double *>(stage.output), n, n, n);
      ASSERT_OK(sg_gemm_async(context_, &gemm, &record, nullptr));
    }
    sg_job *const before = gated.get();
    sg_submit behind = SG_SUBMIT_INIT;
    behind.after = &before, behind.after_count = 1;
    ASSERT_OK(sg_pipeline_push_async(made, x.data(), y.data(), &behind, nullptr));
  }
  EXPECT_EQ(0, freed) << "a batch is in flight";
  gated.open();
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(std::vector<double>(n * n, n * 0.5 * n * 0.5), y);
  for (int i = 0; i < 60000 && freed < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(2, freed);
}

// It runs where callbacks run, so it may submit and release, and may not wait for all jobs.
TEST_P(user_releases, it_may_use_the_library) {
  struct closer {
    sg_context *context;
    sg_buffer *buffer;
    std::atomic<int> done{0};
  } own{context_, nullptr};
  ASSERT_OK(sg_buffer_create(context_, 64, nullptr, &own.buffer));
  resource of;
  operation one(of, data_);
  one.desc.user = &own;
  one.desc.function = [](const sg_custom_call *, void *) { return SG_STATUS_OK; };
  one.desc.release = [](void *user) {
    auto &it = *static_cast<closer *>(user);
    EXPECT_STATUS(SG_STATUS_DEADLOCK, sg_context_synchronize(it.context, SG_FOREVER));
    EXPECT_OK(sg_buffer_release(it.buffer));
    it.done = 1;
  };
  ASSERT_OK(sg_custom_async(context_, &one.desc, nullptr, nullptr));
  for (int i = 0; i < 60000 && own.done == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(1, own.done);
}

ON_EACH_DEVICE(user_releases);

}  // namespace
}  // namespace sg_test
