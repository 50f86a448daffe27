// SPDX-License-Identifier: Apache-2.0
// Schedules that stream from the host: every layout, memory limit, memory space and form of problem.
#include <algorithm>
#include <functional>
#include <tuple>

#include "../support/sweep.hpp"
#include "execute.hpp"
#include "plan/gemm/resident/cost.hpp"
#include "plan/gemm/streaming/stream_layouts.hpp"
#include "plan/gemm/streaming/stream_memory.hpp"

namespace sg::test {
namespace {

using layout_maker = std::function<stream_layout(const problem &)>;

// Limits from the least that works to plenty, so that slots are reused after one panel, after two, and never.
std::vector<std::int64_t> limits(const problem &p, stream_layout layout) {
  const std::int64_t least = fit_slots(p, layout, 0);
  stream_layout roomy = layout;
  const std::int64_t most = fit_slots(p, roomy, std::int64_t(1) << 40);
  return {least, least + (most - least) / 3, most};
}

void check(const problem_form &f, const layout_maker &make_layout) {
  const problem p = make(f);
  for (std::int64_t limit : limits(p, make_layout(p))) {
    stream_layout layout = make_layout(p);
    ASSERT_LE(fit_slots(p, layout, limit), limit);
    const schedule s = build_stream(p, layout, h200_with_three_staging_workers(), 2);
    EXPECT_LE(s.device_bytes, limit) << text(f);
    EXPECT_TRUE(is_right(s, p, std::uint32_t(limit))) << text(f) << " limit " << limit;
  }
}

std::vector<layout_maker> panel_layouts() {
  std::vector<layout_maker> all;
  for (axis along : {axis::m, axis::n})
    for (std::int64_t panels : {1, 3})
      for (const auto &[pieces, across] : {std::pair{1, false}, std::pair{3, false}, std::pair{3, true}})
        for (double outer : {0.0, 0.6}) {
          panel_choice choice;
          choice.along = along, choice.panels = panels, choice.pieces = pieces, choice.across = across;
          choice.outer = outer, choice.outer_pieces = 2;
          choice.head = panels == 3 ? 0.5 : 1;
          choice.taper = panels == 3;
          all.push_back([choice](const problem &p) { return panel_layout(p, choice); });
        }
  return all;
}

std::vector<layout_maker> tile_layouts() {
  std::vector<layout_maker> all;
  for (tile_choice choice :
       {tile_choice{5, 4, 6, axis::m}, tile_choice{5, 4, 6, axis::n}, tile_choice{13, 3, 17, axis::n},
        tile_choice{1, 11, 5, axis::m}, tile_choice{100, 100, 100, axis::m}, tile_choice{4, 11, 17, axis::m}})
    all.push_back([choice](const problem &p) { return tile_layout(p, choice); });
  return all;
}

std::vector<layout_maker> item_layouts() {
  std::vector<layout_maker> all;
  for (std::int64_t groups : {1, 2, 5}) all.push_back([groups](const problem &p) { return item_layout(p, groups); });
  return all;
}

// Calls test(form) for each subset of the operands on the host, pinned and pageable, with one of the epilogues.
template <class Test>
void for_places(problem_form f, Test &&test) {
  static int next = 0;
  for (sg_memory_kind host : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE})
    for (int subset = 1; subset < 8; ++subset) {
      f.a = subset & 1 ? host : SG_MEMORY_DEVICE;
      f.b = subset & 2 ? host : SG_MEMORY_DEVICE;
      f.c = subset & 4 ? host : SG_MEMORY_DEVICE;
      f.end = ending(next % endings);
      f.bias = next / endings % 2 ? host : SG_MEMORY_DEVICE;
      ++next;
      test(f);
    }
}

// Only the bias has to be copied in.
TEST(stream, a_bias_alone_on_the_host) {
  for (const layout_maker &layout : tile_layouts())
    for (sg_dtype out : {SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_C64})
      for (sg_memory_kind host : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE})
        for (bool no_multiply : {true, false})
          for (ending end :
               {ending::row_bias, ending::column_bias, ending::own_row_bias_relu, ending::own_column_bias_relu}) {
            problem_form f;
            f.batch = 2, f.in = f.out = out, f.bias = host, f.end = end, f.no_multiply = no_multiply;
            f.beta_zero = false;
            check(f, layout);
          }
}

// It is copied once, however often it is used.
TEST(stream, a_bias_is_loaded_once) {
  problem_form f;
  f.m = 40, f.n = 40, f.k = 40;
  f.a = f.b = f.c = f.bias = SG_MEMORY_PINNED;
  f.end = ending::row_bias;
  const problem p = make(f);
  stream_layout layout = tile_layout(p, {p.m, 5, 20, axis::m});
  fit_slots(p, layout, 1 << 20);
  const schedule s = build_stream(p, layout, h200_with_three_staging_workers(), 2);
  int loads = 0;
  for (const command &c : s.commands) loads += c.is<ops::copy_in>() && source_of(c).buffer == int(operand_name::bias);
  EXPECT_EQ(loads, 1);
  EXPECT_EQ(s.bytes_in, problem::bytes(p.a, 1) + problem::bytes(p.b, 1) + problem::bytes(p.bias, 1));
}

TEST(stream, panels_are_right_in_every_place_and_op) {
  for (const layout_maker &layout : panel_layouts())
    for (sg_transpose op_a : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
      for (sg_transpose op_b : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
        for (std::int64_t pad : {0, 3})
          for (bool beta_zero : {true, false}) {
            problem_form f;
            f.op_a = op_a, f.op_b = op_b, f.pad = pad, f.beta_zero = beta_zero;
            for_places(f, [&](const problem_form &placed) { check(placed, layout); });
          }
}

TEST(stream, tiles_are_right_in_every_place_and_op) {
  for (const layout_maker &layout : tile_layouts())
    for (sg_transpose op_a : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
      for (sg_transpose op_b : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
        for (std::int64_t pad : {0, 3})
          for (bool beta_zero : {true, false}) {
            problem_form f;
            f.op_a = op_a, f.op_b = op_b, f.pad = pad, f.beta_zero = beta_zero;
            for_places(f, [&](const problem_form &placed) { check(placed, layout); });
          }
}

TEST(stream, larger_panels_are_tapered_and_right) {
  for (axis along : {axis::m, axis::n}) {
    panel_choice choice;
    choice.along = along, choice.panels = 2, choice.taper = true, choice.pieces = 2, choice.outer = 0.5;
    problem_form f;
    f.m = 150, f.n = 140, f.k = 40;
    f.a = f.b = f.c = SG_MEMORY_PINNED;
    const stream_layout layout = panel_layout(make(f), choice);
    EXPECT_EQ(layout.c.panels.size(), 4u);
    check(f, [&](const problem &p) { return panel_layout(p, choice); });
  }
}

TEST(stream, small_padding_is_copied) {
  for (axis along : {axis::m, axis::n})
    for (std::int64_t pad : {3, 20}) {
      panel_choice choice;
      choice.along = along, choice.panels = 3, choice.pieces = 2;
      problem_form f;
      f.m = 64, f.n = 72, f.k = 80, f.pad = pad;
      f.op_a = along == axis::m ? SG_TRANSPOSE_T : SG_TRANSPOSE_N,
      f.op_b = along == axis::m ? SG_TRANSPOSE_T : SG_TRANSPOSE_N;  // whole columns
      f.a = f.b = f.c = SG_MEMORY_PINNED;
      const problem p = make(f);
      stream_layout layout = panel_layout(p, choice);
      fit_slots(p, layout, 1 << 20);
      const schedule s = build_stream(p, layout, h200_with_three_staging_workers(), 1);
      for (const command &c : s.commands) {
        if (c.is<ops::copy_in>()) {
          EXPECT_EQ(shape_of_copy(s.buffers, c).height == 1, pad == 3);
        } else if (c.is<ops::copy_out>()) {
          EXPECT_GT(shape_of_copy(s.buffers, c).height, 1);
        }
      }
      check(f, [&](const problem &placed) { return panel_layout(placed, choice); });

      stream_layout tight = panel_layout(p, choice), least = tight;
      tight.a.keeps_pitch = tight.b.keeps_pitch = false;
      const std::int64_t limit = fit_slots(p, tight, 1);
      EXPECT_EQ(fit_slots(p, least, limit), limit) << "padding must not require memory that does not exist";
    }
}

// Kernels for 16-bit types need columns at multiples of 16 bytes.
TEST(stream, columns_of_16_bit_types_are_spaced_on_the_device) {
  const auto leading_dimensions = [](const problem_form &f, std::int64_t limit) {
    const problem p = make(f);
    stream_layout layout = panel_layout(p, {.panels = 3, .pieces = 2});
    fit_slots(p, layout, limit);
    const schedule s = build_stream(p, layout, h200_with_three_staging_workers(), 1);
    std::vector<std::int64_t> found;
    for (const command &c : s.commands)
      if (c.is<ops::gemm>())
        for (const std::size_t operand : {ops::gemm::a, ops::gemm::b, ops::gemm::c})
          if (size_of(type_of(s.buffers, c.views[operand])) == size_of(f.in)) found.push_back(c.views[operand].ld);
    return found;
  };
  const auto are_multiples = [](const std::vector<std::int64_t> &all) {
    return std::all_of(all.begin(), all.end(), [](std::int64_t ld) { return ld % 8 == 0; });
  };
  problem_form f;
  f.in = f.out = SG_DTYPE_BF16;
  f.m = 443, f.n = 633, f.k = 505;
  for (const sg_memory_kind host : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE})
    for (const std::int64_t pad : {0, 1, 8, 60})
      for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T}) {
        f.a = f.b = f.c = host, f.pad = pad, f.op_a = f.op_b = op;
        EXPECT_TRUE(are_multiples(leading_dimensions(f, 1 << 24)));
      }
  problem_form small = f;
  small.m = 67, small.n = 69, small.k = 65, small.pad = 1;
  for (const sg_memory_kind host : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE})
    for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T}) {
      small.a = small.b = small.c = host, small.op_a = small.op_b = op;
      check(small, [](const problem &placed) { return panel_layout(placed, {.panels = 1, .pieces = 1}); });
    }
  f.pad = 0;
  const problem p = make(f);
  stream_layout spaced = panel_layout(p, {.panels = 3, .pieces = 2}), tight = spaced;
  for (stream_operand *x : {&tight.a, &tight.b, &tight.c}) x->ld_multiple = 1;
  const std::int64_t least = fit_slots(p, tight, 1);
  EXPECT_EQ(least, fit_slots(p, spaced, least)) << "gaps must not require memory that does not exist";
  f.batch = 3;
  EXPECT_FALSE(are_multiples(leading_dimensions(f, 1 << 24))) << "the items of a batch are one copy";
  f.batch = 1, f.in = f.out = SG_DTYPE_F32;
  EXPECT_FALSE(are_multiples(leading_dimensions(f, 1 << 24)));
  f.in = f.out = SG_DTYPE_BF16, f.m = 63, f.k = 63, f.op_a = SG_TRANSPOSE_N;
  EXPECT_FALSE(are_multiples(leading_dimensions(f, 1 << 24))) << "short columns";
}

TEST(stream, a_first_panel_formed_across_is_stored_early) {
  for (axis along : {axis::m, axis::n})
    for (bool across : {false, true}) {
      panel_choice choice;
      choice.along = along, choice.panels = 2, choice.pieces = 4, choice.across = across;
      problem_form f;
      f.m = f.n = f.k = 128;
      f.a = f.b = f.c = SG_MEMORY_PINNED;
      const stream_layout layout = panel_layout(make(f), choice);
      EXPECT_EQ(layout.c.panels.size(), across ? 5u : 2u);
      const auto &steps = layout.steps;
      EXPECT_EQ(steps[0].stores, across);
      EXPECT_EQ(along == axis::n ? steps[0].m.size : steps[0].n.size, across ? 32 : 128);
      EXPECT_EQ(steps[0].k.size, across ? 128 : 32);
    }
}

TEST(stream, every_type_and_conjugation) {
  struct types {
    sg_dtype in, out;
  };
  std::vector<layout_maker> layouts = panel_layouts();
  for (const layout_maker &layout : tile_layouts()) layouts.push_back(layout);
  for (types t :
       {types{SG_DTYPE_F64, SG_DTYPE_F64}, types{SG_DTYPE_C64, SG_DTYPE_C64}, types{SG_DTYPE_C128, SG_DTYPE_C128},
        types{SG_DTYPE_F16, SG_DTYPE_F16}, types{SG_DTYPE_F16, SG_DTYPE_F32}, types{SG_DTYPE_BF16, SG_DTYPE_BF16},
        types{SG_DTYPE_I8, SG_DTYPE_I32}, types{SG_DTYPE_F8_E4M3, SG_DTYPE_F32}, types{SG_DTYPE_F8_E5M2, SG_DTYPE_F16}})
    for (const layout_maker &layout : layouts)
      for (bool beta_zero : {true, false})
        for (sg_memory_kind c : {SG_MEMORY_DEVICE, SG_MEMORY_PAGEABLE}) {
          problem_form f;
          f.in = t.in, f.out = t.out, f.beta_zero = beta_zero;
          f.op_a = is_complex(t.in) ? SG_TRANSPOSE_C : SG_TRANSPOSE_N, f.op_b = SG_TRANSPOSE_T;
          f.a = f.b = SG_MEMORY_PAGEABLE, f.c = f.bias = c;
          check(f, layout);
          f.end = beta_zero ? ending::own_row_bias_relu : ending::own_column_bias_relu;
          check(f, layout);
        }
}

// One row, one column or one value an item, with every padding and gap.
TEST(stream, batches_of_thin_items) {
  std::vector<layout_maker> layouts = item_layouts();
  for (const layout_maker &layout : tile_layouts()) layouts.push_back(layout);
  for (const layout_maker &layout : layouts)
    for (batch_form form : {batch_form::strided, batch_form::gapped, batch_form::interleaved, batch_form::pointers})
      for (const auto &[m, n, k] :
           {std::tuple{1, 1, 65}, std::tuple{65, 1, 1}, std::tuple{65, 1, 3}, std::tuple{1, 65, 2}})
        for (sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
          for (std::int64_t pad : {0, 7}) {
            problem_form f;
            f.m = m, f.n = n, f.k = k, f.op_a = f.op_b = op, f.batch = 3, f.batching = form, f.pad = pad;
            f.a = f.b = f.c = SG_MEMORY_PINNED;
            check(f, layout);
          }
}

TEST(stream, every_form_of_batch) {
  sweep cases(5);
  std::vector<layout_maker> layouts = item_layouts();
  for (const layout_maker &layout : tile_layouts()) layouts.push_back(layout);
  for (const layout_maker &layout : layouts)
    for (batch_form form : {batch_form::strided, batch_form::gapped, batch_form::interleaved, batch_form::shared_a,
                            batch_form::shared_b, batch_form::pointers})
      for (std::int64_t pad : {0, 3})
        for (bool beta_zero : {true, false})
          for (sg_dtype out : {SG_DTYPE_F32, SG_DTYPE_F16})
            for (bool no_multiply : {true, false}) {
              problem_form f;
              f.m = 7, f.n = 5, f.k = 9, f.batch = 5, f.batching = form, f.pad = pad, f.beta_zero = beta_zero;
              f.op_a = SG_TRANSPOSE_T, f.in = f.out = out, f.no_multiply = no_multiply;
              for_places(f, [&](const problem_form &placed) {
                if (!cases.tries_next()) return;
                if (!placed.no_multiply || placed.c != SG_MEMORY_DEVICE) check(placed, layout);
              });
            }
}

TEST(stream, panels_of_several_items) {
  for (const layout_maker &layout : panel_layouts())
    for (batch_form form : {batch_form::strided, batch_form::gapped, batch_form::pointers})
      for (bool beta_zero : {true, false}) {
        problem_form f;
        f.m = 7, f.n = 5, f.k = 9, f.batch = 3, f.batching = form, f.beta_zero = beta_zero;
        for_places(f, [&](const problem_form &placed) { check(placed, layout); });
      }
}

TEST(stream, shared_operands_are_loaded_once) {
  problem_form f;
  f.m = 8, f.n = 8, f.k = 8, f.batch = 6, f.batching = batch_form::shared_b;
  f.a = f.b = f.c = SG_MEMORY_PINNED;
  for (const layout_maker &make_layout :
       {layout_maker([](const problem &p) { return item_layout(p, 3); }), layout_maker([](const problem &p) {
          return tile_layout(p, {8, 8, 8, axis::m});
        })}) {
    const problem p = make(f);
    stream_layout layout = make_layout(p);
    fit_slots(p, layout, 1 << 20);
    const schedule s = build_stream(p, layout, h200_with_three_staging_workers(), 2);
    EXPECT_EQ(s.bytes_in, problem::bytes(p.a, p.batch) + problem::bytes(p.b, p.batch));
    EXPECT_EQ(s.bytes_out, problem::bytes(p.c, p.batch));
  }
}

TEST(stream, items_that_are_runs_move_in_one_copy) {
  problem_form f;
  f.m = 8, f.n = 8, f.k = 8, f.batch = 6;
  f.a = f.b = f.c = SG_MEMORY_PINNED;
  for (batch_form form : {batch_form::strided, batch_form::gapped}) {
    f.batching = form;
    stream_layout layout = item_layout(make(f), 2);
    fit_slots(make(f), layout, 1 << 20);
    EXPECT_EQ(build_stream(make(f), layout, h200_with_three_staging_workers(), 1).commands.size(), 8u);
  }
}

// Matrices of more than one staging slot: in columns, and columns longer than a slot.
TEST(stream, pageable_memory_goes_through_slots) {
  problem_form f;
  f.in = f.out = SG_DTYPE_C128;
  f.a = f.b = f.c = SG_MEMORY_PAGEABLE;
  f.beta_zero = false;
  const auto whole = [](const problem &p) { return tile_layout(p, {p.m, p.n, p.k, axis::m}); };
  f.m = 2000, f.n = 300, f.k = 2;
  check(f, whole);
  f.m = 300000, f.n = 2, f.k = 2;
  check(f, whole);
  problem p = make(f);
  stream_layout layout = whole(p);
  fit_slots(p, layout, std::int64_t(1) << 30);
  const schedule s = build_stream(p, layout, h200_with_three_staging_workers(), 1);
  for (const command &c : s.commands)
    if (c.is<ops::pack>()) {
      EXPECT_LE(destination_of(c).rows * destination_of(c).cols * 16, 4 << 20);
    }
  EXPECT_GT(s.lanes[int(lane_kind::staging)], 1);
}

// The link starts before a worker has packed a whole slot, and the job does not end by one worker's whole slot.
TEST(stream, workers_share_the_first_and_the_last_chunks) {
  problem_form f;
  f.in = f.out = SG_DTYPE_F64;
  f.a = f.b = f.c = SG_MEMORY_PAGEABLE;
  f.beta_zero = true;
  f.m = 5000, f.n = 5000, f.k = 2000;
  const problem p = make(f);
  stream_layout layout = tile_layout(p, {p.m, p.n, p.k, axis::m});
  fit_slots(p, layout, std::int64_t(1) << 40);
  const schedule s = build_stream(p, layout, h200_with_three_staging_workers(), 1);
  const auto bytes = [](const view &v) { return v.rows * v.cols * 8; };
  std::vector<std::int64_t> packed, unpacked, copied;
  for (const command &c : s.commands) {
    if (c.is<ops::pack>()) packed.push_back(bytes(destination_of(c)));
    if (c.is<ops::unpack>()) unpacked.push_back(bytes(destination_of(c)));
    if (c.is<ops::copy_in>() || c.is<ops::copy_out>()) copied.push_back(bytes(destination_of(c)));
  }
  EXPECT_GT(copied.front(), 3 << 19) << "the link takes chunks whole";
  for (auto *list : {&packed, &unpacked}) {
    EXPECT_LE(list->front(), 1 << 19);
    EXPECT_LE(list->back(), 1 << 19);
    EXPECT_GT((*list)[list->size() / 2], 3 << 19) << "between them a worker moves all of a chunk";
  }
}

// A delay in one chunk delays no other chunk: only its own readers and writers wait.
TEST(stream, host_workers_wait_for_slots_and_copies_only) {
  problem_form f;
  f.in = f.out = SG_DTYPE_F64;
  f.a = f.b = f.c = SG_MEMORY_PAGEABLE;
  f.beta_zero = true;
  f.m = 2000, f.n = 1000, f.k = 5000;
  const problem p = make(f);
  stream_layout layout = panel_layouts().front()(p);
  fit_slots(p, layout, std::int64_t(1) << 40);
  const schedule s = build_stream(p, layout, h200_with_three_staging_workers(), 1);
  std::int64_t packed = 0, unpacked = 0;
  for (const command &c : s.commands) {
    if (in_order(c.where)) continue;
    ++(c.is<ops::pack>() ? packed : unpacked);
    for (std::uint32_t w = 0; w < c.waits; ++w) EXPECT_TRUE(in_order(s.commands[s.waits[c.first_wait + w]].where));
    EXPECT_LE(c.waits, 1u);
  }
  EXPECT_GT(packed, 9);
  EXPECT_GT(unpacked, 1);
}

}  // namespace
}  // namespace sg::test
