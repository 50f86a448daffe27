// SPDX-License-Identifier: Apache-2.0
// Commands on the calling thread, and batches that the device's threads may help with: results, statuses and times are
// those of a stream, and always the same.
#include <algorithm>
#include <atomic>

#include "gemm_case.hpp"

namespace sg::test {
namespace {

class run_here : public conformance {
 protected:
  void SetUp() override {
    if (ops().run_here == nullptr) GTEST_SKIP() << "only the device's streams run commands";
  }

  struct batch {
    std::vector<gemm_case> cases;
    std::vector<sg_backend_gemm> gemms;
    std::vector<const sg_backend_command *> commands;
  };
  // Operands in this process's memory, which any command of such a device may use.
  batch make(const std::vector<gemm_spec> &shapes) {
    batch made;
    made.cases.reserve(shapes.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      gemm_case &x = made.cases.emplace_back(shapes[i], i + 1);
      x.remember_c();
      made.gemms.push_back(x.command(x.a.bytes.data(), x.b.bytes.data(), x.c.bytes.data(), x.bias.bytes.data()));
      made.gemms.back().header = backend_command<sg_backend_gemm>().header;
    }
    for (const sg_backend_gemm &each : made.gemms) made.commands.push_back(&each.header);
    return made;
  }
  sg_status run(const batch &what, std::int64_t *out_busy_ns = nullptr) {
    return ops().run_here(handle(), what.commands.data(), static_cast<std::int32_t>(what.commands.size()), out_busy_ns);
  }

  static std::vector<gemm_spec> mixed(pair_of_types types) {
    std::vector<gemm_spec> shapes;
    for (std::int64_t i = 0; i < 16; ++i)
      shapes.push_back({.types = types, .m = 20 + i % 5 * 7, .n = 9 + i % 3 * 9, .k = 11 + i % 7 * 6, .gap = i % 2});
    return shapes;
  }

  stream idle_[3] = {stream(dev()), stream(dev()), stream(dev())};  // whose workers may help
};

TEST_P(run_here, one_command) {
  for (const pair_of_types types : all_pairs) {
    batch one = make({{.types = types, .m = 7, .n = 5, .k = 11, .gap = 2}});
    std::int64_t busy_ns = -1;
    ASSERT_EQ(SG_STATUS_OK, run(one, &busy_ns)) << ops().last_message(handle());
    EXPECT_GE(busy_ns, 0);
    one.cases[0].check();
    EXPECT_EQ(SG_STATUS_OK, run(one));
  }
}

TEST_P(run_here, batches) {
  for (const pair_of_types types : all_pairs) {
    batch all = make(mixed(types));
    std::int64_t busy_ns = -1;
    ASSERT_EQ(SG_STATUS_OK, run(all, &busy_ns)) << ops().last_message(handle());
    EXPECT_GT(busy_ns, 0);
    for (gemm_case &each : all.cases) each.check();
  }
}

// Whichever threads compute it, and whatever else the device runs.
TEST_P(run_here, batches_give_the_same_bits_each_time) {
  const std::vector<gemm_spec> shapes(8, {.m = 64, .n = 48, .k = 100});
  batch first = make(shapes);
  ASSERT_EQ(SG_STATUS_OK, run(first));
  std::atomic<bool> stop{false};
  std::thread beside([&] {
    while (!stop) EXPECT_EQ(SG_STATUS_OK, idle_[0].finish());
  });
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&] {
      std::optional<batch> again;
      for (int i = 0; i < 100; ++i) {
        if (i % 10 == 0) again.emplace(make(shapes));  // at other addresses
        for (gemm_case &each : again->cases) std::fill(each.c.bytes.begin(), each.c.bytes.end(), 1);
        ASSERT_EQ(SG_STATUS_OK, run(*again));
        for (std::size_t c = 0; c < shapes.size(); ++c) ASSERT_EQ(first.cases[c].c.bytes, again->cases[c].c.bytes);
      }
    });
  for (std::thread &each : callers) each.join();
  stop = true;
  beside.join();
}

TEST_P(run_here, unsupported_commands_are_refused) {
  batch all = make(mixed({SG_DTYPE_F32, SG_DTYPE_F32}));
  all.gemms[0].header.kind = static_cast<sg_backend_command_kind>(77);
  EXPECT_EQ(SG_STATUS_UNSUPPORTED, run(all));
  EXPECT_STRNE("", ops().last_message(handle()));
}

SG_CONFORMANCE(run_here);

}  // namespace
}  // namespace sg::test
