// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/streaming/stream.hpp"

#include <algorithm>

#include "plan/gemm/streaming/panel_holder.hpp"
#include "plan/gemm/streaming/stream_memory.hpp"
#include "plan/gemm/streaming/stream_size.hpp"

namespace sg {
namespace {

// Wide accumulators for a narrow C: two buffers used alternately by the tiles that need one.
class accumulator_ring {
 public:
  accumulator_ring(gemm_builder &builder, const problem &p, const stream_layout &layout) {
    if (!needs_accumulators(p, layout)) return;
    const sg_dtype type = accumulator_of(p.c.type);
    for (accumulator &x : accumulators_)
      x.buffer = builder.add_device_buffer(type, accumulator_bytes(p, layout),
                                           slot_item_elements(p.c, layout.c) * size_of(type));
  }

  void next() { current_ = (current_ + 1) % accumulators; }
  std::int32_t buffer() const { return accumulators_[current_].buffer; }
  std::vector<std::uint32_t> &users() { return accumulators_[current_].users; }

 private:
  struct accumulator {
    std::int32_t buffer = -1;
    std::vector<std::uint32_t> users;
  };
  accumulator accumulators_[accumulators];
  int current_ = 0;
};

// The bias on the device: the caller's, or a copy of all of it, which is small beside C.
class bias_holder {
 public:
  bias_holder(gemm_builder &builder, const problem &p) : p_(p) {
    if (!on_host()) return;
    item_elements_ = p.bias.rows * p.bias.cols;
    buffer_ = builder.add_device_buffer(p.bias.type, bias_bytes(p), item_elements_ * size_of(p.bias.type));
  }

  // Copies it on the first call; adds to the `waits` of a command that reads it.
  void hold(gemm_builder &builder, transfers &moves, std::vector<std::uint32_t> &waits) {
    if (!on_host()) return;
    const panel all{{0, is_shared(p_.bias) ? 1 : p_.batch}, {0, 0, p_.bias.rows, p_.bias.cols}};
    if (!held_)
      copied_ = moves.in(parameter_of(0, operand_name::bias), all, {buffer_, 0, 0, p_.bias.rows, item_elements_}, {});
    held_ = true;
    builder.merge(waits, copied_);
  }

  void finish_sums(const gemm_builder &builder, command &last, range items, block c) const {
    builder.finish_sums(last, items, c);
    if (!on_host()) return;
    const block part = block_of_bias(p_, c);
    view &copied = last.views[ops::epilogue::bias];
    copied.buffer = buffer_;
    copied.ld = p_.bias.rows;
    copied.offset = (part.row + part.col * p_.bias.rows) * size_of(p_.bias.type);
  }

 private:
  bool on_host() const { return p_.has_bias() && sg::on_host(p_.bias); }

  const problem &p_;
  std::int64_t item_elements_ = 0;
  std::int32_t buffer_ = -1;
  std::uint32_t copied_ = 0;
  bool held_ = false;
};

class stream_build {
 public:
  stream_build(const problem &p, const stream_layout &layout, const device_model &model, int lanes)
      : p_(p),
        layout_(layout),
        lanes_(lanes),
        builder_({&p, 1}),
        a_(builder_, operand_name::a, layout, layout.a),
        b_(builder_, operand_name::b, layout, layout.b),
        c_(builder_, operand_name::c, layout, layout.c),
        bias_(builder_, p),
        sums_(builder_, p, layout),
        moves_(builder_, model, {pageable_in(), pageable_out()}) {
    builder_.reserve(std::size_t(std::min(commands_of(p, layout), double(most_commands))));
  }

  schedule run() {
    for (std::size_t i = 0; i < layout_.steps.size(); ++i) add_step(layout_.steps[i], std::int64_t(i));
    return builder_.finish(layout_.name);
  }

 private:
  static double bytes_if_pageable(const problem &p, const operand &x) {
    return x.space == SG_MEMORY_PAGEABLE ? problem::bytes(x, p.batch) : 0;
  }
  double pageable_in() const {
    return (p_.no_multiply ? 0 : bytes_if_pageable(p_, p_.a) + bytes_if_pageable(p_, p_.b)) +
           (p_.beta_zero ? 0 : bytes_if_pageable(p_, p_.c)) + (p_.has_bias() ? bytes_if_pageable(p_, p_.bias) : 0);
  }
  double pageable_out() const { return bytes_if_pageable(p_, p_.c); }

  void hold(panel_holder &h, operand_name name, const stream_operand &x, panel_range range, std::int64_t step) {
    const bool loads = x.how != residency::device && (name != operand_name::c || !p_.beta_zero);
    for (std::int32_t i = range.first; i < range.first + range.count; ++i) {
      if (h.is_held(i)) continue;
      const std::int32_t slot = h.choose(i, step);
      h.take(i, slot);
      if (!loads) continue;
      auto &users = h.users(i);
      h.ready(i) = {moves_.in(parameter_of(0, name), x.panels[i], h.location(i), users)};
      users.clear();
    }
  }

  void merge_all(std::vector<std::uint32_t> &into, const std::vector<std::uint32_t> &from) {
    for (std::uint32_t index : from) builder_.merge(into, index);
  }

  void add_step(const stream_step &s, std::int64_t number) {
    std::vector<std::uint32_t> waits;
    if (!p_.no_multiply) {
      hold(b_, operand_name::b, layout_.b, s.b, number);
      hold(a_, operand_name::a, layout_.a, s.a, number);
      for (std::int32_t i = s.a.first; i < s.a.first + s.a.count; ++i) merge_all(waits, a_.ready(i));
      for (std::int32_t i = s.b.first; i < s.b.first + s.b.count; ++i) merge_all(waits, b_.ready(i));
    }
    hold(c_, operand_name::c, layout_.c, s.c, number);
    for (std::int32_t i = s.c.first; i < s.c.first + s.c.count; ++i) {
      merge_all(waits, c_.ready(i));
      merge_all(waits, c_.users(i));
    }
    if (s.ends) bias_.hold(builder_, moves_, waits);
    const std::uint16_t lane_index = std::uint16_t(s.c.first % lanes_);
    if (p_.no_multiply)
      add_scaling(s, lane_index, waits);
    else
      add_gemm(s, lane_index, waits);
    if (s.stores && layout_.c.how != residency::device)
      for (std::int32_t i = s.c.first; i < s.c.first + s.c.count; ++i)
        c_.users(i) = {moves_.out(parameter_of(0, operand_name::c), layout_.c.panels[i], c_.location(i), c_.users(i))};
  }

  void used(const stream_step &s, std::uint32_t command) {
    if (!p_.no_multiply) {
      for (std::int32_t i = s.a.first; i < s.a.first + s.a.count; ++i) builder_.merge(a_.users(i), command);
      for (std::int32_t i = s.b.first; i < s.b.first + s.b.count; ++i) builder_.merge(b_.users(i), command);
    }
    for (std::int32_t i = s.c.first; i < s.c.first + s.c.count; ++i) builder_.merge(c_.users(i), command);
  }

  void add_scaling(const stream_step &s, std::uint16_t lane_index, const std::vector<std::uint32_t> &waits) {
    for (std::int64_t item = 0; item < s.items.size; ++item) {
      const range one{s.items.first + item, 1};
      command c = builder_.scale(c_.view_of(s.c.first, one, block_of_c(s.m, s.n)), first_beta(p_), lane_index);
      bias_.finish_sums(builder_, c, one, block_of_c(s.m, s.n));
      used(s, builder_.add(c, waits));
    }
  }

  void add_gemm(const stream_step &s, std::uint16_t lane_index, std::vector<std::uint32_t> &waits) {
    command c = builder_.gemm(0, s.m, s.n, s.k, lane_index);
    ops::gemm &gemm = *c.as<ops::gemm>();
    c.views[gemm.a] = a_.view_of(s.a.first, s.items, block_of_a(p_, s.m, s.k));
    c.views[gemm.b] = b_.view_of(s.b.first, s.items, block_of_b(p_, s.k, s.n));
    c.views[gemm.c] = c_.view_of(s.c.first, s.items, block_of_c(s.m, s.n));
    if (!s.begins) gemm.beta = scalar_role::one;
    const bool wide = accumulator_of(p_.c.type) != p_.c.type && !(s.begins && s.ends);
    if (!wide) {
      if (s.ends) bias_.finish_sums(builder_, c, s.items, block_of_c(s.m, s.n));
      return used(s, builder_.add(c, waits));
    }
    if (s.begins) {
      sums_.next();
      gemm.beta = scalar_role::zero;
    }
    const view narrow = c.views[gemm.c];
    c.views[gemm.c] = view{sums_.buffer(), 0, s.items.size, 0, s.m.size, s.m.size, s.n.size};
    merge_all(waits, sums_.users());
    const std::uint32_t gemm_command = builder_.add(c, waits);
    used(s, gemm_command);
    sums_.users().assign(1, gemm_command);
    if (s.ends) add_downcast(s, narrow, c.views[gemm.c], lane_index);
  }

  // C = beta * C + the sum, item by item, after the last GEMM in its lane.
  void add_downcast(const stream_step &s, view narrow, view wide, std::uint16_t lane_index) {
    const std::vector<std::uint32_t> waits = c_.users(s.c.first);
    for (std::int64_t item = 0; item < s.items.size; ++item) {
      view out = narrow;
      if (out.items > 1) out.item += item;
      out.items = 1;
      command c = builder_.scale(out, first_beta(p_), lane_index);
      wide.item = item;
      wide.items = 1;
      c.views[ops::reduce::parts] = wide;
      bias_.finish_sums(builder_, c, {s.items.first + item, 1}, block_of_c(s.m, s.n));
      const std::uint32_t index = builder_.add(c, waits);
      used(s, index);
      builder_.merge(sums_.users(), index);
    }
  }

  const problem &p_;
  const stream_layout &layout_;
  int lanes_;
  gemm_builder builder_;
  panel_holder a_, b_, c_;
  bias_holder bias_;
  accumulator_ring sums_;
  transfers moves_;
};

}  // namespace

schedule build_stream(const problem &p, const stream_layout &layout, const device_model &model, int lanes) {
  return stream_build(p, layout, model, lanes).run();
}

}  // namespace sg
