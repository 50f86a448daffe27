// SPDX-License-Identifier: Apache-2.0
// Memory that a context cannot use as given: of other contexts, beyond the end of a buffer, addresses of stages.
#include <cstring>
#include <functional>
#include <optional>

#include "support/harness.hpp"

namespace sg_test {
namespace {

using pipeline = owned<sg_pipeline, sg_pipeline_release>;
using graph = owned<sg_graph, sg_graph_release>;

constexpr std::size_t size = 64;
constexpr std::uint64_t bytes = size * sizeof(double);

struct device_memory {
  explicit device_memory(sg_context *of, std::uint64_t count = bytes) {
    EXPECT_OK(sg_buffer_create(of, count, nullptr, memory.out()));
    EXPECT_OK(sg_buffer_data(memory, &data));
  }
  buffer memory;
  void *data = nullptr;
};

sg_status do_nothing(const sg_custom_call *, void *) { return SG_STATUS_OK; }

class foreign_memory : public on_each_device {
 protected:
  void SetUp() override {
    on_each_device::SetUp();
    own_.emplace(context_, bytes + 64);
  }
  bool is_unified() {
    sg_memory_kind kind{};
    EXPECT_OK(sg_context_memory_kind(context_, host_, bytes, &kind));
    return kind == SG_MEMORY_DEVICE;
  }

  // Every kind of submission with that memory of `count` bytes as an operand.
  std::vector<std::pair<const char *, std::function<sg_status()>>> uses(void *memory, std::uint64_t count = bytes) {
    auto *const there = static_cast<double *>(memory);
    const auto n = static_cast<std::int64_t>(count / sizeof(double));
    const auto row = [n](void *data) { return sg_matrix{data, 1, n, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR}; };
    return {
        {"src", [=, this] { return sg_copy(context_, own_->data, there, count, nullptr); }},
        {"dst", [=, this] { return sg_copy(context_, there, own_->data, count, nullptr); }},
        {"b",
         [=, this] {
           const sg_gemm_desc desc = make_gemm(host_, there, result_, 1, n, 1);
           return sg_gemm(context_, &desc, nullptr);
         }},
        {"c",
         [=, this] {
           const sg_gemm_desc desc = make_gemm(host_, host_, there, 1, n, 1);
           return sg_gemm(context_, &desc, nullptr);
         }},
        {"x",
         [=, this] {
           sg_softmax_desc desc = SG_SOFTMAX_DESC_INIT;
           desc.x = row(there), desc.y = row(own_->data);
           return sg_softmax(context_, &desc, nullptr);
         }},
        {"operands[0]",
         [=, this] {
           const sg_custom_operand operand = {there, count, SG_ACCESS_READ_WRITE};
           sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
           desc.function = do_nothing, desc.operands = &operand, desc.operand_count = 1;
           return sg_custom(context_, &desc, nullptr);
         }},
        {"memory",
         [=, this] {
           sg_memory_kind kind;
           return sg_context_memory_kind(context_, there, count, &kind);
         }},
    };
  }

  void expect_refused(void *memory, const char *why, std::uint64_t count = bytes) {
    for (const auto &[name, use] : uses(memory, count)) {
      EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, use()) << name;
      EXPECT_TRUE(std::strstr(sg_last_error_message(), why)) << name << ": " << sg_last_error_message();
      EXPECT_TRUE(std::strstr(sg_last_error_message(), name)) << name << ": " << sg_last_error_message();
    }
    EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
  }

  double host_[size + 8] = {}, result_[size + 8] = {};
  std::optional<device_memory> own_;
};

TEST_P(foreign_memory, device_memory_of_another_device_is_refused_with_its_name) {
  const context other = open_context("sim:h200");
  const device_memory theirs(other);
  expect_refused(theirs.data, "is in the device memory of another context");
}

TEST_P(foreign_memory, device_memory_of_another_context_is_usable_on_the_same_card_only) {
  const context other = open_context(GetParam());
  const device_memory theirs(other);
  if (std::strncmp(GetParam(), "sim", 3) == 0)  // each context has a card of its own
    return expect_refused(theirs.data, "is in the device memory of another context");
  for (const auto &[name, use] : uses(theirs.data)) {
    if (std::strcmp(name, "c") != 0) {
      EXPECT_OK(use()) << name;
    }
  }
  for (double &each : host_) each = 7;
  ASSERT_OK(sg_copy(context_, theirs.data, host_, bytes, nullptr));
  ASSERT_OK(sg_copy(other, result_, theirs.data, bytes, nullptr));
  EXPECT_EQ(7, result_[size - 1]);
}

TEST_P(foreign_memory, freed_memory_of_another_context_is_ordinary_again) {
  const context other = open_context("sim:h200");
  device_memory(other).memory.reset();
  ASSERT_OK(sg_context_synchronize(other, SG_FOREVER));
  const device_memory mine(context_);
  for (const auto &[name, use] : uses(mine.data)) EXPECT_OK(use()) << name;
}

TEST_P(foreign_memory, pinned_memory_of_another_context_counts_as_pinned) {
  const context other = open_context(GetParam());
  void *pinned = nullptr;
  ASSERT_OK(sg_host_alloc(other, bytes, &pinned));
  sg_memory_kind kind{};
  ASSERT_OK(sg_context_memory_kind(context_, pinned, bytes, &kind));
  EXPECT_EQ(is_unified() ? SG_MEMORY_DEVICE : SG_MEMORY_PINNED, kind);
  for (const auto &[name, use] : uses(pinned)) {
    if (is_unified() || std::strcmp(name, "x") != 0) {
      EXPECT_OK(use()) << name;
    }
  }
  ASSERT_OK(sg_host_free(other, pinned));
  if (!is_unified()) {
    ASSERT_OK(sg_context_memory_kind(context_, host_, bytes, &kind));
    EXPECT_EQ(SG_MEMORY_PAGEABLE, kind);
  }
}

TEST_P(foreign_memory, an_operand_that_ends_beyond_its_buffer_is_refused) {
  const device_memory short_one(context_);
  for (const std::uint64_t beyond : {8u, 16u, 64u})
    expect_refused(short_one.data, "ends beyond its buffer", bytes + beyond);
  expect_refused(static_cast<double *>(short_one.data) + size - 1, "ends beyond its buffer", 16);
}

TEST_P(foreign_memory, addresses_of_a_stage_have_no_memory_outside_of_its_pipeline) {
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = bytes;
  pipeline layers;
  ASSERT_OK(sg_pipeline_create(context_, &options, layers.out()));
  sg_stage_desc stage = SG_STAGE_DESC_INIT;
  stage.output_bytes = stage.workspace_bytes = bytes;
  sg_stage added = SG_STAGE_INIT;
  ASSERT_OK(sg_pipeline_add_stage(layers, &stage, &added));
  graph recorded;
  ASSERT_OK(sg_graph_create(context_, recorded.out()));
  for (void *const memory : {const_cast<void *>(added.input), added.output, added.workspace}) {
    for (const auto &[name, use] : uses(memory)) {
      if (std::strcmp(name, "memory") == 0) continue;  // device memory, where the stage is recorded
      EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, use()) << name;
      EXPECT_TRUE(std::strstr(sg_last_error_message(), "stage")) << name << ": " << sg_last_error_message();
    }
    sg_submit untracked = SG_SUBMIT_INIT, into_graph = SG_SUBMIT_INIT;
    untracked.flags = SG_SUBMIT_UNTRACKED, into_graph.graph = recorded;
    for (const sg_submit *each : {&untracked, &into_graph}) {
      EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_copy_async(context_, own_->data, memory, bytes, each, nullptr));
      EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_copy_async(context_, memory, own_->data, bytes, each, nullptr));
    }
    const context other = open_context("cpu");
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_copy(other, host_, memory, bytes, nullptr));
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_push(layers, memory, own_->data, nullptr));
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_push(layers, own_->data, memory, nullptr));
    const sg_weight weight = {memory, bytes};
    sg_stage_desc with_weight = stage;
    with_weight.weights = &weight, with_weight.weight_count = 1;
    sg_stage unused = SG_STAGE_INIT;
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_add_stage(layers, &with_weight, &unused));
  }
  EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
}

ON_EACH_DEVICE(foreign_memory);

}  // namespace
}  // namespace sg_test
