// SPDX-License-Identifier: Apache-2.0
// Groups of GEMMs as one command: each has the result and the status that it would have alone.
#include "gemm_case.hpp"

namespace sg::test {
namespace {

class gemm_group : public conformance {
 protected:
  void SetUp() override {
    if (!dev()->has_batches()) GTEST_SKIP() << "the device has no such command";
  }

  // The GEMMs as one command with one completion; each is compared with its reference.
  void try_group(const std::vector<gemm_spec> &shapes) {
    std::vector<gemm_case> cases;
    std::vector<std::unique_ptr<memory>> places;
    std::vector<sg_backend_gemm> items;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      gemm_case &x = cases.emplace_back(shapes[i], i + 1);
      const auto place = [&](host_operand &from) {
        places.push_back(std::make_unique<memory>(dev(), static_cast<std::int64_t>(from.bytes.size())));
        places.back()->write(stream_, from.bytes.data());
        return places.back()->data();
      };
      char *a = place(x.a), *b = place(x.b), *c = place(x.c), *bias = place(x.bias);
      items.push_back(x.command(a, b, c, bias));
      x.remember_c();
    }
    std::vector<sg_status> statuses(items.size(), SG_STATUS_OK);
    listener end;
    std::vector<const sg_backend_command *> commands;
    for (sg_backend_gemm &each : items) {
      each.header = backend_command<sg_backend_gemm>().header;
      commands.push_back(&each.header);
    }
    ASSERT_EQ(SG_STATUS_OK, ops().enqueue(stream_.handle(), commands.data(), static_cast<std::int32_t>(items.size()),
                                          statuses.data(), end.done()))
        << ops().last_message(handle());
    ASSERT_TRUE(end.wait(1));
    ASSERT_EQ(SG_STATUS_OK, end.results().at(0).status) << end.results().at(0).message;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(SG_STATUS_OK, statuses[i]) << i;
      places[4 * i + 2]->read(stream_, cases[i].c.bytes.data());
      cases[i].check();
    }
    EXPECT_EQ(1u, end.results().size());
  }

  stream stream_{dev()};
};

TEST_P(gemm_group, equal_shapes) {
  for (const pair_of_types types : all_pairs)
    try_group(std::vector<gemm_spec>(9, {.types = types, .m = 7, .n = 5, .k = 11, .gap = 2}));
}

TEST_P(gemm_group, mixed_shapes_ops_scalars_and_batches) {
  for (const pair_of_types types : all_pairs) {
    std::vector<gemm_spec> shapes;
    for (std::int64_t i = 0; i < 24; ++i)
      shapes.push_back({.types = types,
                        .m = 1 + i % 5 * 7,
                        .n = 1 + i % 3 * 9,
                        .k = 1 + i % 7 * 6,
                        .op_a = i % 2 ? SG_TRANSPOSE_T : SG_TRANSPOSE_N,
                        .op_b = i % 3 ? SG_TRANSPOSE_T : SG_TRANSPOSE_N,
                        .alpha = {double(1 + i % 2), 0},
                        .beta = {double(i % 3), 0},
                        .gap = i % 2,
                        .batch = 1 + i % 4 / 3 * 2});
    try_group(shapes);
  }
}

// Each item has its own epilogue, or none.
TEST_P(gemm_group, epilogues) {
  if (!has_epilogues(*dev())) GTEST_SKIP() << "the device has no epilogues";
  constexpr bias_form biases[] = {bias_form::none, bias_form::per_row, bias_form::per_column, bias_form::own_per_row,
                                  bias_form::own_per_column};
  for (const pair_of_types types : all_pairs)
    for (const bool equal : {true, false}) {
      std::vector<gemm_spec> shapes;
      for (std::int64_t i = 0; i < 60; ++i)
        shapes.push_back({.types = types,
                          .m = equal ? 9 : 1 + i % 7 * 5,
                          .n = equal ? 6 : 1 + i % 3 * 9,
                          .k = 11,
                          .beta = {double(i % 2), 0},
                          .batch = 1 + i % 4 / 3 * 2,
                          .bias = biases[i % 5],
                          .activation = is_complex(types.out)   ? SG_ACTIVATION_NONE
                                        : is_integer(types.out) ? static_cast<sg_activation>(i % 2)
                                                                : static_cast<sg_activation>(i % 3)});
      try_group(shapes);
    }
}

SG_CONFORMANCE(gemm_group);

}  // namespace
}  // namespace sg::test
