// SPDX-License-Identifier: Apache-2.0
// Schedules in tiles: within the memory limit, free of hazards, each byte over the link as often as the limit asks for.
#include <random>

#include "base/error.hpp"
#include "execute.hpp"
#include "plan/form/tile_slots.hpp"
#include "plan/form/tiled_plan.hpp"
#include "plan/planner.hpp"

namespace sg::test {
namespace {

enum class operation { solve, product, symmetric_product, update, double_update };

struct tiled_case {
  operation what = operation::solve;
  std::int64_t rows = 300, cols = 200;  // of the result; of an update its order, and the depth
  sg_memory_kind at_a = SG_MEMORY_PINNED, at_b = SG_MEMORY_PINNED, at_c = SG_MEMORY_PINNED;
  bool is_left = true, is_lower = true, transposes_a = false, transposes_b = false, beta_zero = false;
  sg_dtype type = SG_DTYPE_F64;
};

command_form form_of_case(const tiled_case &t) {
  command_form f;
  const auto set = [&](std::size_t at, std::int64_t rows, std::int64_t cols, sg_memory_kind kind, share needed) {
    command_form::parameter &x = f.parameters[at];
    x.given = true, x.needed = needed;
    x.stored.rows = rows, x.stored.cols = cols, x.stored.ld = rows, x.stored.type = t.type, x.stored.space = kind;
  };
  const stored_part part = t.is_lower ? stored_part::lower : stored_part::upper;
  const sg_triangle triangle = t.is_lower ? SG_TRIANGLE_LOWER : SG_TRIANGLE_UPPER;
  const sg_side side = t.is_left ? SG_SIDE_LEFT : SG_SIDE_RIGHT;
  const std::int64_t order = t.is_left ? t.rows : t.cols;
  const sg_transpose op = t.transposes_a ? SG_TRANSPOSE_T : SG_TRANSPOSE_N;
  const scalar_role beta = t.beta_zero ? scalar_role::zero : scalar_role::job;
  f.flops_per_element = 2;
  if (t.what == operation::solve || t.what == operation::product) {
    ops::triangular what;
    what.kind = t.what == operation::solve ? SG_TRIANGULAR_SOLVE : SG_TRIANGULAR_MULTIPLY;
    what.side = side, what.triangle = triangle, what.op = op;
    f.what = what, f.strategy = "triangular";
    set(ops::triangular::b, t.rows, t.cols, t.at_c, share::same);
    set(ops::triangular::a, order, order, t.at_a, share::whole);
    f.parameters[ops::triangular::a].accessed = part;
    return f;
  }
  ops::symmetric what;
  what.triangle = triangle, what.beta = beta;
  f.strategy = "symmetric";
  if (t.what == operation::symmetric_product) {
    what.side = side;
    set(ops::symmetric::c, t.rows, t.cols, t.at_c, share::same);
    set(ops::symmetric::a, order, order, t.at_a, share::whole);
    set(ops::symmetric::b, t.transposes_b ? t.cols : t.rows, t.transposes_b ? t.rows : t.cols, t.at_b, share::same);
    f.parameters[ops::symmetric::b].transposed = t.transposes_b;
    f.parameters[ops::symmetric::a].accessed = part;
  } else {
    what.kind = t.what == operation::update ? SG_BACKEND_SYMMETRIC_RANK_K : SG_BACKEND_SYMMETRIC_RANK_2K;
    what.op = op;
    f.splits = command_form::split::triangle;
    set(ops::symmetric::c, t.rows, t.rows, t.at_c, share::same);
    for (const std::size_t factor : {ops::symmetric::a, ops::symmetric::b})
      if (factor == ops::symmetric::a || t.what == operation::double_update)
        set(factor, t.transposes_a ? t.cols : t.rows, t.transposes_a ? t.rows : t.cols,
            factor == ops::symmetric::a ? t.at_a : t.at_b, share::whole);
    f.parameters[ops::symmetric::c].accessed = part;
  }
  f.what = what;
  return f;
}

schedule plan_within(const command_form &f, std::int64_t limit) {
  plan_request request;
  request.memory_limit = limit;
  return *make_plan(form_of(f), h200(), request);
}

TEST(tiled, any_form_within_any_limit) {
  std::mt19937 random(5);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  int in_tiles = 0;
  for (int attempt = 0; attempt < 150; ++attempt) {
    tiled_case t;
    t.what = operation(below(5));
    t.rows = 40 + below(120), t.cols = 40 + below(120);
    for (sg_memory_kind *at : {&t.at_a, &t.at_b, &t.at_c})
      *at = std::array{SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE, SG_MEMORY_DEVICE}[std::size_t(below(3))];
    t.is_left = below(2), t.is_lower = below(2), t.transposes_a = below(2), t.transposes_b = below(2);
    t.beta_zero = below(2);
    const std::int64_t limit = (13 + below(40)) * 256 * std::int64_t(sizeof(double));
    const schedule s = plan_within(form_of_case(t), limit);
    const std::string what = s.strategy + " " + std::to_string(int(t.what)) + " " + std::to_string(attempt);
    EXPECT_LE(s.device_bytes, limit) << what;
    const auto hazards = check_hazards(s);
    ASSERT_TRUE(hazards.empty()) << what << ": " << hazards.front().text;
    EXPECT_GE(s.predicted_seconds, s.bound_seconds) << what;
    in_tiles += s.strategy.find("in tiles of") != std::string::npos;
  }
  EXPECT_GT(in_tiles, 50);
}

TEST(tiled, a_limit_that_no_tile_fits) {
  try {
    plan_within(form_of_case({}), 1000);
    FAIL();
  } catch (const error &e) {
    EXPECT_EQ(SG_STATUS_OUT_OF_MEMORY, e.status());
    EXPECT_STREQ("a step of the triangular needs 40960 bytes of device memory; the limit is 1000", e.what());
  }
}

// The bytes that a refusal names suffice, and fewer do not.
TEST(tiled, names_the_memory_that_it_needs) {
  for (const operation what : {operation::solve, operation::product, operation::symmetric_product, operation::update,
                               operation::double_update})
    for (const sg_memory_kind at_a : {SG_MEMORY_PINNED, SG_MEMORY_DEVICE})
      for (const sg_memory_kind at_c : {SG_MEMORY_PINNED, SG_MEMORY_DEVICE}) {
        tiled_case t;
        t.what = what, t.at_a = at_a, t.at_c = at_c;
        const command_form f = form_of_case(t);
        const plan_request request;
        plan_terms terms{h200(), request, 1, 1000};
        std::int64_t needed = 0;
        if (at_a == SG_MEMORY_DEVICE && at_c == SG_MEMORY_DEVICE) continue;
        EXPECT_FALSE(build_tiled(f, 64, 1, terms, &needed));
        terms.memory_limit = needed;
        EXPECT_TRUE(build_tiled(f, 64, 1, terms)) << int(what) << int(at_a) << int(at_c);
        terms.memory_limit = needed - 1;
        EXPECT_FALSE(build_tiled(f, 64, 1, terms)) << int(what) << int(at_a) << int(at_c);
      }
}

// Copies overlap with computing, from pinned memory and from pageable; with enough memory each byte crosses the link
// once.
TEST(tiled, large_operands_come_near_the_bound) {
  constexpr std::int64_t size = 8192, little = 400 << 20;
  for (const operation what : {operation::solve, operation::product, operation::symmetric_product, operation::update,
                               operation::double_update})
    for (const sg_memory_kind at : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE})
      for (const std::int64_t limit : {std::int64_t{0}, little}) {
        tiled_case t;
        t.what = what, t.at_a = t.at_b = t.at_c = at, t.rows = t.cols = size;
        const schedule s = plan_within(form_of_case(t), limit);
        EXPECT_LE(s.predicted_seconds, (limit ? 2.7 : 2.2) * s.bound_seconds) << s.strategy << " " << int(what);
        const double crossing = limit ? HUGE_VAL : 1.05 * s.bound_seconds * h200().link_in;
        EXPECT_LE(s.bytes_in, crossing) << s.strategy << " " << int(what);
      }
}

// Host workers cannot read or write the memory of another GPU.
TEST(tiled, host_workers_do_not_touch_a_peers_memory) {
  for (const operation what : {operation::solve, operation::product, operation::symmetric_product, operation::update})
    for (const bool is_lower : {false, true})
      for (const std::int64_t limit : {0, 500'000}) {
        tiled_case t;
        t.what = what, t.is_lower = is_lower, t.at_a = t.at_b = t.at_c = SG_MEMORY_PEER;
        const schedule s = plan_within(form_of_case(t), limit);
        EXPECT_TRUE(check_hazards(s).empty());
        for (const command &c : s.commands)
          for (const accessed_view &v : c.views) {
            if (!v.exists() || (!c.is<ops::pack>() && !c.is<ops::unpack>())) continue;
            ASSERT_NE(SG_MEMORY_PEER, buffer_of(s.buffers, v).space.kind()) << s.strategy << " " << int(what);
          }
      }
}

// Squares on the diagonal and rectangles beside them, no copy of each column.
TEST(tiled, a_triangle_crosses_the_link_in_few_copies) {
  for (const bool is_lower : {false, true}) {
    tiled_case t;
    t.what = operation::update, t.rows = 4000, t.cols = 1, t.is_lower = is_lower, t.beta_zero = true;
    const schedule s = plan_within(form_of_case(t), 0);
    EXPECT_TRUE(check_hazards(s).empty());
    EXPECT_LE(s.commands.size(), 120u) << s.strategy;
    EXPECT_LE(s.bytes_out, 1.1 * 4000 * 4000 / 2 * sizeof(double));
  }
}

}  // namespace
}  // namespace sg::test
