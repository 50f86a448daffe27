// SPDX-License-Identifier: Apache-2.0
// Many submissions whose operands overlap in every way, in flight together: the results are those of sequential
// execution.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {
namespace {

// Rectangles of one matrix, from single elements to long ones, so that unordered jobs would overtake.
constexpr int extent = 160, longest = 96;

struct rectangle {
  int row = 0, col = 0, rows = 1, cols = 1;
  bool meets(const rectangle &other) const {
    return row < other.row + other.rows && other.row < row + rows && col < other.col + other.cols &&
           other.col < col + cols;
  }
};

struct step {
  rectangle a, b, c;
  double beta;
};

int side(random_source &random) {
  switch (random.below(4)) {
    case 0: return 1 + random.below(2);
    case 1: return 1 + random.below(longest);
    default: return 1 + random.below(12);
  }
}

// Mostly in a corner, where they overlap often.
rectangle somewhere(random_source &random, int rows, int cols) {
  const auto place = [&](int size) {
    return random.below((random.below(3) ? extent / 2 : extent) - std::min(size, 64));
  };
  rectangle found{place(rows), place(cols), rows, cols};
  found.row = std::min(found.row, extent - rows);
  found.col = std::min(found.col, extent - cols);
  return found;
}

std::vector<step> steps(int seed, int count) {
  random_source random(static_cast<std::uint64_t>(seed));
  std::vector<step> made;
  while (static_cast<int>(made.size()) < count) {
    const int m = side(random), n = side(random), k = side(random);
    const step next{somewhere(random, m, k), somewhere(random, k, n), somewhere(random, m, n),
                    random.below(2) ? 0.5 : 0.0};
    if (!next.c.meets(next.a) && !next.c.meets(next.b)) made.push_back(next);
  }
  return made;
}

class overlaps : public testing::TestWithParam<const char *> {
 protected:
  void run(const std::vector<step> &all, std::vector<double> &in, bool one_by_one) {
    const auto view = [&](const rectangle &r) {
      return sg_matrix{&in[static_cast<std::size_t>(r.row * extent + r.col)],
                       r.rows,
                       r.cols,
                       extent,
                       SG_DTYPE_F64,
                       SG_LAYOUT_ROW_MAJOR};
    };
    for (const step &each : all) {
      sg_gemm_desc desc = SG_GEMM_DESC_INIT;
      desc.a = view(each.a);
      desc.b = view(each.b);
      desc.c = view(each.c);
      desc.alpha.re = 0.5 / each.a.cols;  // keeps values of at most 1 at most 1
      desc.beta.re = each.beta;
      if (one_by_one)
        ASSERT_OK(sg_gemm(context_, &desc, nullptr));
      else
        ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, nullptr));
    }
    ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  }
  const context context_ = open_context(GetParam(), 2);
};

TEST_P(overlaps, are_computed_in_order) {
  std::vector<double> start(extent * extent);
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = std::sin(double(i));
  for (int seed = 1; seed <= 8; ++seed) {
    const std::vector<step> all = steps(seed, 400);
    std::vector<double> expected = start, seen = start;
    run(all, expected, true);
    run(all, seen, false);
    ASSERT_EQ(0, std::memcmp(expected.data(), seen.data(), expected.size() * sizeof(double))) << "seed " << seed;
    ASSERT_NE(start, expected);
  }
}

ON_EACH_DEVICE(overlaps);

}  // namespace
}  // namespace sg_test
