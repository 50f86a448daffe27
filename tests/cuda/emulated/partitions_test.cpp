// SPDX-License-Identifier: Apache-2.0
// Which commands run on reserved multiprocessors: those of the partition's GEMMs, and no others.
#include <chrono>
#include <thread>
#include <vector>

#include "faults.h"
#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t n = 24;

class emulated_partitions : public testing::Test {
 protected:
  // Waits until the previous test's context, which closes on a thread of its own, is gone.
  void SetUp() override {
    for (int tries = 0; tries < 6000 && emulated_gpu_objects() > 0; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    context_ = open_context("cuda:0");
  }
  stream limited(std::int32_t units, std::int32_t expected) {
    stream made;
    EXPECT_OK(create_stream(context_, 0, units, made.out()));
    std::int32_t granted = -1, is_partition = -1;
    EXPECT_OK(sg_stream_compute_units(made, &granted));
    EXPECT_OK(sg_stream_is_partition(made, &is_partition));
    EXPECT_EQ(expected > 0 ? expected : units, granted);
    EXPECT_EQ(expected > 0, is_partition == 1) << "of " << units;
    return made;
  }
  // Commands on reserved multiprocessors during `work`.
  template <class Work>
  long within(Work &&work) {
    const long before = emulated_gpu_commands_within();
    work();
    EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
    return emulated_gpu_commands_within() - before;
  }
  context context_;
};

TEST_F(emulated_partitions, whole_groups_that_are_free) {
  // Six groups of two; four multiprocessors remain.
  limited(1, 0);
  limited(16, 0);
  {
    const stream most = limited(15, 12), none = limited(2, 0);
    const context other = open_context("cuda:0");
    stream of_other;
    EXPECT_OK(create_stream(other, 0, 2, of_other.out()));
    std::int32_t is_partition = -1;
    EXPECT_OK(sg_stream_is_partition(of_other, &is_partition));
    EXPECT_EQ(0, is_partition) << "another context has all of them";
  }
  const stream five = limited(5, 4), nine = limited(9, 8), none = limited(9, 0);
}

TEST_F(emulated_partitions, gemms_stay_in_their_partition) {
  const stream in = limited(8, 8);
  stream beside;
  ASSERT_OK(sg_stream_create(context_, nullptr, beside.out()));
  std::vector<double> a(n * n, 1), b(n * n, 2), c(n * n);
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(context_, 3 * n * n * sizeof(double), nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  auto *x = static_cast<double *>(data);
  ASSERT_OK(sg_copy(context_, x, a.data(), n * n * sizeof(double), nullptr));
  ASSERT_OK(sg_copy(context_, x + n * n, b.data(), n * n * sizeof(double), nullptr));
  const sg_gemm_desc there = make_gemm(x, x + n * n, x + 2 * n * n, n, n, n);
  const sg_gemm_desc here = make_gemm(a.data(), b.data(), c.data(), n, n, n);
  sg_submit on_part = SG_SUBMIT_INIT, on_all = SG_SUBMIT_INIT;
  on_part.stream = in;
  on_all.stream = beside;
  const auto submit = [&](const sg_gemm_desc &what, const sg_submit &how) {
    return within([&] { EXPECT_OK(sg_gemm_async(context_, &what, &how, nullptr)); });
  };
  EXPECT_EQ(1, submit(there, on_part));
  EXPECT_EQ(0, submit(there, on_all));
  EXPECT_EQ(0, submit(here, on_all));
  on_part.priority = 1;
  EXPECT_EQ(1, submit(there, on_part)) << "at another priority";
  on_part.priority = 0;
  sg_plan_options in_tiles = SG_PLAN_OPTIONS_INIT;
  in_tiles.tile_m = 8;
  in_tiles.tile_n = n;
  in_tiles.tile_k = n;
  on_part.plan = &in_tiles;
  EXPECT_GE(submit(here, on_part), 1) << "each tile's GEMM, or all in one call";
  EXPECT_EQ(2 * n, c[7]);
  on_part.plan = nullptr;
  EXPECT_EQ(0, within([&] { EXPECT_OK(sg_copy(context_, x, a.data(), n * n * sizeof(double), &on_part)); }))
      << "copies have no limit";
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  on_part.graph = on_all.graph = graph;
  EXPECT_EQ(0, submit(there, on_part)) << "it is recorded only";
  EXPECT_EQ(0, submit(there, on_all));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(1, within([&] { EXPECT_OK(sg_graph_run_async(graph, nullptr, nullptr)); })) << "of the two";
  EXPECT_OK(sg_graph_release(graph));
}

// Each allocation fails in turn: the stream is created, with a smaller workspace, or the call reports the failure, and
// nothing leaks.
TEST_F(emulated_partitions, creation_without_memory_is_refused) {
  int failed = 0;
  const long before = emulated_gpu_objects();
  for (int nth = 1; nth <= 8; ++nth) {
    emulated_gpu_break(EMULATED_NO_MEMORY, nth, 0);
    sg_stream *made = nullptr;
    const sg_status status = create_stream(context_, 0, 8, &made);
    const bool broken = emulated_gpu_is_broken() != 0;
    emulated_gpu_break(EMULATED_NONE, 0, 0);
    if (status != SG_STATUS_OK) {
      EXPECT_TRUE(broken) << nth;
      EXPECT_EQ(SG_STATUS_OUT_OF_MEMORY, status) << nth;
      EXPECT_EQ(nullptr, made) << nth;
      EXPECT_EQ(before, emulated_gpu_objects()) << nth;
      ++failed;
    }
    EXPECT_OK(sg_stream_release(made));
    limited(8, 8);  // earlier partitions have been released
  }
  EXPECT_GE(failed, 3) << "the context, its stream and cuBLAS's handle";
}

}  // namespace
}  // namespace sg_test
