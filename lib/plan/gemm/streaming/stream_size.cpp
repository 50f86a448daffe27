// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/streaming/stream_size.hpp"

#include "base/checked.hpp"
#include "plan/gemm/streaming/stream_memory.hpp"

namespace sg {
namespace {

// Copies of one operand's panels in a step, if none is resident.
double copies_of(const operand &x, const stream_operand &how, panel_range panels) {
  if (!on_host(x)) return 0;
  double copies = 0;
  for (std::int32_t i = panels.first; i < panels.first + panels.count; ++i)
    copies += double(rectangles_of(x, how.panels[i], device_ld(x, how, how.panels[i].where)));
  return copies;
}

double copies_of_bias(const problem &p) {
  if (!p.has_bias() || !on_host(p.bias)) return 0;
  const panel all{{0, is_shared(p.bias) ? 1 : p.batch}, {0, 0, p.bias.rows, p.bias.cols}};
  return double(rectangles_of(p.bias, all, p.bias.rows));
}

}  // namespace

double commands_of(const problem &p, const tile_choice &t) {
  const double tiles_of_c = double(ceil_div(p.m, t.tile_m)) * double(ceil_div(p.n, t.tile_n)) * double(p.batch);
  const double depths = p.no_multiply ? 1 : double(ceil_div(p.k, t.tile_k));
  const double steps = tiles_of_c * depths;
  const bool needs_downcast = accumulator_of(p.c.type) != p.c.type && depths > 1;
  const int for_a_and_b = p.no_multiply ? 0 : int(on_host(p.a)) + int(on_host(p.b));
  const int for_c = on_host(p.c) ? (p.beta_zero ? 1 : 2) : 0;
  return steps * (1 + for_a_and_b) + tiles_of_c * (for_c + int(needs_downcast)) + copies_of_bias(p);
}

double commands_of(const problem &p, const stream_layout &layout) {
  const bool needs_downcast = needs_accumulators(p, layout);
  double commands = copies_of_bias(p);
  for (const stream_step &s : layout.steps) {
    commands += p.no_multiply ? double(s.items.size) : 1;
    if (needs_downcast && s.ends) commands += double(s.items.size);
    if (!p.no_multiply) commands += copies_of(p.a, layout.a, s.a) + copies_of(p.b, layout.b, s.b);
    if (s.begins && !p.beta_zero) commands += copies_of(p.c, layout.c, s.c);
    if (s.stores) commands += copies_of(p.c, layout.c, s.c);
  }
  return commands;
}

double commands_when_staged(const schedule &s, const problem &p) {
  double commands = 0;
  for (const command &c : s.commands) {
    const bool copies = c.is<ops::copy_in>() || c.is<ops::copy_out>();
    const view &host = c.is<ops::copy_in>() ? source_of(c) : destination_of(c);
    const operand &x = copies ? operand_of(p, operand_name(host.buffer)) : p.c;
    commands += copies && x.space == SG_MEMORY_PAGEABLE ? 2 * double(chunks_of(host, size_of(x.type))) : 1;
  }
  return commands;
}

}  // namespace sg
