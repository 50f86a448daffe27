// SPDX-License-Identifier: Apache-2.0
// Timelines of one device, to the bit: what a machine of several devices adds to the simulator must not change them.
#include <gtest/gtest.h>

#include <bit>

#include "plan/gemm/streaming/stream_layouts.hpp"
#include "plan/gemm/streaming/stream_memory.hpp"
#include "plan/schedule/simulate.hpp"
#include "problems.hpp"

namespace sg::test::of_one_device {
namespace {

// A case of bench/results/host.json.
struct host_case {
  std::int64_t m, n, k;
  sg_dtype type;
  sg_compute compute;
  sg_transpose op_a, op_b;
  std::int64_t pad;
  std::uint64_t pinned, pageable;  // digests of the timelines
};

constexpr host_case cases[] = {
    {16384, 16384, 16384, SG_DTYPE_BF16, SG_COMPUTE_EXACT, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 0, 0xa649395c8b89cc0f,
     0x40e7c5e976f91baa},
    {8192, 8192, 8192, SG_DTYPE_BF16, SG_COMPUTE_EXACT, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 0, 0x937ccccdc68ecf8e,
     0x4219af6bee569fa8},
    {16384, 16384, 16384, SG_DTYPE_F32, SG_COMPUTE_EXACT, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 0, 0x7006a8cb6ac8ccd5,
     0x37253ee0273dd96b},
    {8192, 8192, 8192, SG_DTYPE_F32, SG_COMPUTE_EXACT, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 0, 0xec6f0822b0faf661,
     0x3d8db3b76917d52a},
    {8191, 4097, 5003, SG_DTYPE_F32, SG_COMPUTE_EXACT, SG_TRANSPOSE_N, SG_TRANSPOSE_T, 9, 0xcfaa34dff2536d4c,
     0x25549531e2e57668},
    {8191, 4097, 5003, SG_DTYPE_F32, SG_COMPUTE_EXACT, SG_TRANSPOSE_T, SG_TRANSPOSE_N, 9, 0x20cc3d076802f194,
     0x4b6c112e1db38318},
    {16384, 16384, 16384, SG_DTYPE_F32, SG_COMPUTE_TF32, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 0, 0x4c97ff7a17380dfd,
     0xfb61c1e0ecd0c273},
    {8192, 8192, 8192, SG_DTYPE_F32, SG_COMPUTE_TF32, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 0, 0xe5ac3e91b56df81c,
     0x389c12bb24653123},
    {8191, 4097, 5003, SG_DTYPE_F32, SG_COMPUTE_TF32, SG_TRANSPOSE_N, SG_TRANSPOSE_T, 9, 0x0375e24b456034f3,
     0xe0040e312ea372a0},
    {8191, 4097, 5003, SG_DTYPE_F32, SG_COMPUTE_TF32, SG_TRANSPOSE_T, SG_TRANSPOSE_N, 9, 0xbaac3c9abdd53f73,
     0xaa3ce898ba92fc06},
    {1000, 1000, 5000, SG_DTYPE_F64, SG_COMPUTE_EXACT, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 0, 0xc3015d83e88eab89,
     0x467ae9ca8d3ba8d},
    {30000, 30000, 3000, SG_DTYPE_F64, SG_COMPUTE_EXACT, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 0, 0x2c3e78867739539b,
     0xbfb06e22e0e7b68e},
};

// A fixed layout, so that a better search changes nothing here.
schedule schedule_of(const host_case &of, sg_memory_kind host, const device_model &model) {
  problem_form f;
  f.m = of.m, f.n = of.n, f.k = of.k, f.op_a = of.op_a, f.op_b = of.op_b, f.pad = of.pad;
  f.in = f.out = of.type;
  f.a = f.b = f.c = host;
  problem p = make(f);
  p.compute = of.compute;
  panel_choice choice;
  choice.panels = 16, choice.pieces = 8, choice.taper = true;
  stream_layout layout = panel_layout(p, choice);
  fit_slots(p, layout, model.usable_memory());
  return build_stream(p, layout, model, 2);
}

// FNV-1a over the bits of each start and end.
std::uint64_t digest_of(const timeline &t) {
  std::uint64_t digest = 0xcbf29ce484222325u;
  for (const interval &each : t.commands)
    for (const double time : {each.start, each.end}) {
      const auto bits = std::bit_cast<std::uint64_t>(time);
      for (int byte = 0; byte < 8; ++byte) digest = (digest ^ (bits >> 8 * byte & 255)) * 0x100000001b3u;
    }
  return digest;
}

// Of the simulator of one device; the simulator of machines must reproduce them.
TEST(one_device, timelines_of_the_host_cases_are_the_same_to_the_bit) {
#ifndef __x86_64__
  GTEST_SKIP() << "the digests are of arithmetic without fused multiply-adds";
#endif
  // Without rates of 2-D copies: their logarithm depends on the processor by a rounding error.
  device_model model = h200();
  model.runs.clear();
  const machine_model machine{{model}, {}};
  machine_model limited = machine;  // by what its own link allows: no limit
  limited.shared = {{"host", {first_device}, model.link_in, model.link_out, 1e12}};
  for (const host_case &each : cases)
    for (const sg_memory_kind host : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE}) {
      SCOPED_TRACE(std::to_string(each.m) + "x" + std::to_string(each.n) + "x" + std::to_string(each.k));
      const schedule s = schedule_of(each, host, model);
      const std::uint64_t digest = host == SG_MEMORY_PINNED ? each.pinned : each.pageable;
      EXPECT_EQ(digest, digest_of(simulate(s, model)));
      EXPECT_EQ(digest, digest_of(simulate(s, machine)));
      EXPECT_EQ(digest, digest_of(simulate(s, limited)));
    }
}

}  // namespace
}  // namespace sg::test::of_one_device
