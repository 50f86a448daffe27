// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/streaming/stream_memory.hpp"

#include <algorithm>
#include <iterator>

#include "base/checked.hpp"

namespace sg {

namespace {

// In shorter columns the gaps would be too much of the copy.
constexpr std::int64_t least_column_bytes = 128;

std::int64_t spaced(const operand &x, const stream_operand &how, std::int64_t rows) {
  return rows * size_of(x.type) < least_column_bytes ? rows : round_up(rows, how.ld_multiple);
}

}  // namespace

std::int64_t device_ld(const operand &x, const stream_operand &how, const block &where) {
  if (how.how == residency::whole) return how.keeps_pitch ? x.ld : spaced(x, how, x.rows);
  return how.keeps_pitch && where.rows == x.rows ? x.ld : spaced(x, how, where.rows);
}

std::int64_t slot_item_elements(const operand &x, const stream_operand &s) {
  std::int64_t most = 0;
  for (const panel &p : s.panels) most = std::max(most, checked_mul(device_ld(x, s, p.where), p.where.cols, "panel"));
  return most;
}

std::int64_t slot_bytes(const operand &x, const stream_operand &s) {
  std::int64_t most = 0;
  for (const panel &p : s.panels) most = std::max(most, p.items.size);
  return round_up(checked_mul(checked_mul(slot_item_elements(x, s), most, "panel"), size_of(x.type), "panel"), 256);
}

std::int64_t whole_item_elements(const operand &x, const stream_operand &s) {
  return checked_mul(s.keeps_pitch ? x.ld : spaced(x, s, x.rows), x.cols, "operand");
}

std::int64_t whole_bytes(const operand &x, const stream_operand &s, std::int64_t batch) {
  const std::int64_t items = is_shared(x) ? 1 : batch;
  return round_up(checked_mul(checked_mul(whole_item_elements(x, s), items, "operand"), size_of(x.type), "operand"),
                  256);
}

std::int64_t bias_bytes(const problem &p) {
  return p.has_bias() && on_host(p.bias) ? whole_bytes(p.bias, {}, p.batch) : 0;
}

bool needs_accumulators(const problem &p, const stream_layout &layout) {
  return accumulator_of(p.c.type) != p.c.type && std::any_of(layout.steps.begin(), layout.steps.end(),
                                                             [](const stream_step &s) { return !s.begins || !s.ends; });
}

std::int64_t accumulator_bytes(const problem &p, const stream_layout &layout) {
  return slot_bytes(p.c, layout.c) / size_of(p.c.type) * size_of(accumulator_of(p.c.type));
}

namespace {

std::int64_t fit_slots_as_laid_out(const problem &p, stream_layout &layout, std::int64_t limit) {
  std::int64_t used = bias_bytes(p);
  if (needs_accumulators(p, layout)) used += accumulators * accumulator_bytes(p, layout);
  struct slotted {
    stream_operand *x;
    std::int64_t bytes;
  };
  std::vector<slotted> growing;
  const auto account = [&](stream_operand &s, const operand &x) {
    if (s.how == residency::whole) used += whole_bytes(x, s, p.batch);
    if (s.how != residency::slots || s.panels.empty()) return;
    growing.push_back({&s, slot_bytes(x, s)});
    s.slots = 1;
    used += growing.back().bytes;
  };
  account(layout.c, p.c);
  account(layout.a, p.a);
  account(layout.b, p.b);
  for (bool grew = true; grew;) {
    grew = false;
    for (slotted &g : growing)
      if (g.x->slots < std::int64_t(g.x->panels.size()) && used + g.bytes <= limit) {
        ++g.x->slots;
        used += g.bytes;
        grew = true;
      }
  }
  return used;
}

}  // namespace

std::int64_t fit_slots(const problem &p, stream_layout &layout, std::int64_t limit) {
  const std::int64_t needed = fit_slots_as_laid_out(p, layout, limit);
  stream_operand *const all[] = {&layout.a, &layout.b, &layout.c};
  const auto is_tight = [](const stream_operand *x) { return !x->keeps_pitch && x->ld_multiple == 1; };
  if (needed <= limit || std::all_of(std::begin(all), std::end(all), is_tight)) return needed;
  for (stream_operand *x : all) x->keeps_pitch = false, x->ld_multiple = 1;
  return fit_slots_as_laid_out(p, layout, limit);
}

}  // namespace sg
