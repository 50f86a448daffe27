// SPDX-License-Identifier: Apache-2.0
#include "plan/stream.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace sg {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// Elements between items of a panel's slot, and bytes of a slot: those of the largest panel.
std::int64_t slot_item_elements(const stream_operand &x) {
  std::int64_t most = 0;
  for (const panel &p : x.panels) most = std::max(most, checked_mul(p.where.rows, p.where.cols, "panel"));
  return most;
}

std::int64_t slot_bytes(const operand &x, const stream_operand &s) {
  std::int64_t most = 0;
  for (const panel &p : s.panels) most = std::max(most, p.items.size);
  return round_up(checked_mul(checked_mul(slot_item_elements(s), most, "panel"), size_of(x.type), "panel"), 256);
}

std::int64_t whole_bytes(const operand &x, std::int64_t batch) {
  const std::int64_t items = is_shared(x) ? 1 : batch;
  return round_up(checked_mul(checked_mul(checked_mul(x.rows, x.cols, "operand"), items, "operand"), size_of(x.type),
                              "operand"), 256);
}

// Sums of products that C's own type is too narrow for are kept beside it until they are complete.
bool needs_accumulators(const problem &p, const stream_layout &layout) {
  return accumulator_of(p.c.type) != p.c.type &&
         std::any_of(layout.steps.begin(), layout.steps.end(),
                     [](const stream_step &s) { return !s.begins || !s.ends; });
}
constexpr int accumulators = 2;

std::int64_t accumulator_bytes(const problem &p, const stream_layout &layout) {
  return slot_bytes(p.c, layout.c) / size_of(p.c.type) * size_of(accumulator_of(p.c.type));
}

// An operand while a schedule is built: which panel is where, and who used it last.
class holder {
 public:
  holder(schedule_builder &builder, operand_name name, const stream_layout &layout, const stream_operand &x)
      : builder_(builder), name_(name), x_(x), uses_(x.panels.size()), slot_of_(x.panels.size(), -1) {
    if (x.panels.empty()) return;  // there is no product
    const operand &o = operand_of(builder.of(0), name);
    const std::size_t places = x.how == residency::slots ? std::size_t(x.slots) : x.panels.size();
    slots_.resize(places);
    if (x.how == residency::slots) {
      item_elements_ = slot_item_elements(x);
      for (slot &s : slots_)
        s.buffer = builder.add_device_buffer(o.type, slot_bytes(o, x), item_elements_ * size_of(o.type));
    } else if (x.how == residency::whole) {
      item_elements_ = o.rows * o.cols;
      const std::int32_t buffer =
          builder.add_device_buffer(o.type, whole_bytes(o, builder.of(0).batch), item_elements_ * size_of(o.type));
      for (slot &s : slots_) s.buffer = buffer;
    }
    for (std::size_t i = 0; i < layout.steps.size(); ++i) {
      const panel_range used = range_of(layout.steps[i]);
      for (std::int32_t p = used.first; p < used.first + used.count; ++p) uses_[p].push_back(std::int64_t(i));
    }
  }

  panel_range range_of(const stream_step &s) const {
    return name_ == operand_name::a ? s.a : name_ == operand_name::b ? s.b : s.c;
  }

  bool is_held(std::int32_t panel) const { return slot_of_[panel] >= 0; }

  // A slot for the panel: a free one, else the one whose panel is needed last (of those, the one idle for longest).
  std::int32_t choose(std::int32_t panel, std::int64_t step) const {
    if (x_.how != residency::slots) return panel;
    std::int32_t best = 0;
    for (std::int32_t i = 1; i < std::int32_t(slots_.size()); ++i)
      if (preferred(slots_[i], slots_[best], step)) best = i;
    return best;
  }

  std::int32_t panel_in(std::int32_t slot) const { return slots_[slot].panel; }

  void take(std::int32_t panel, std::int32_t slot) {
    if (slots_[slot].panel >= 0) slot_of_[slots_[slot].panel] = -1;
    slots_[slot].panel = panel;
    slot_of_[panel] = slot;
  }

  std::vector<std::uint32_t> &ready(std::int32_t panel) { return slots_[slot_of_[panel]].ready; }
  std::vector<std::uint32_t> &users(std::int32_t panel) { return slots_[slot_of_[panel]].users; }

  device_place place(std::int32_t panel) const {
    const block &where = x_.panels[panel].where;
    const slot &s = slots_[slot_of_[panel]];
    if (x_.how == residency::slots) return {s.buffer, 0, 0, where.rows, item_elements_};
    const operand &o = operand_of(builder_.of(0), name_);
    const std::int64_t item = is_shared(o) ? 0 : x_.panels[panel].items.first;
    return {s.buffer, item, (where.row + where.col * o.rows) * size_of(o.type), o.rows, item_elements_};
  }

  // A part of the operand that the panels from `first` on contain.
  view view_of(std::int32_t first, range items, block part) const {
    if (x_.how == residency::device) return builder_.operand_view(0, name_, items, part);
    const operand &o = operand_of(builder_.of(0), name_);
    const panel &p = x_.panels[first];
    const device_place at = place(first);
    const std::int64_t item = at.item + (is_shared(o) ? 0 : items.first - p.items.first);
    const std::int64_t inside = (part.row - p.where.row) + (part.col - p.where.col) * at.ld;
    return {at.buffer, item, is_shared(o) ? 1 : items.size, at.offset + inside * size_of(o.type), at.ld, part.rows,
            part.cols};
  }

 private:
  struct slot {
    std::int32_t buffer = -1;
    std::int32_t panel = -1;
    std::vector<std::uint32_t> ready;  // the panel is there when these have ended
    std::vector<std::uint32_t> users;  // the slot is free when these have ended
  };

  std::int64_t next_use(const slot &s, std::int64_t step) const {
    if (s.panel < 0) return never;
    const auto &uses = uses_[s.panel];
    const auto next = std::lower_bound(uses.begin(), uses.end(), step);
    return next == uses.end() ? never : *next;
  }

  bool preferred(const slot &a, const slot &b, std::int64_t step) const {
    const std::int64_t next_a = next_use(a, step), next_b = next_use(b, step);
    if (next_a != next_b) return next_a > next_b;
    const auto latest = [](const slot &s) {
      return s.users.empty() ? std::int64_t(-1) : std::int64_t(*std::max_element(s.users.begin(), s.users.end()));
    };
    return latest(a) < latest(b);
  }

  schedule_builder &builder_;
  operand_name name_;
  const stream_operand &x_;
  std::vector<std::vector<std::int64_t>> uses_;  // steps that use each panel
  std::vector<std::int32_t> slot_of_;
  std::vector<slot> slots_;
  std::int64_t item_elements_ = 0;
};

// The narrow C's wide sums: two places used in turn by the tiles that need one.
class accumulator_ring {
 public:
  accumulator_ring(schedule_builder &builder, const problem &p, const stream_layout &layout) {
    if (!needs_accumulators(p, layout)) return;
    const sg_dtype type = accumulator_of(p.c.type);
    for (place &x : places_)
      x.buffer = builder.add_device_buffer(type, accumulator_bytes(p, layout),
                                           slot_item_elements(layout.c) * size_of(type));
  }

  void next() { current_ = (current_ + 1) % accumulators; }
  std::int32_t buffer() const { return places_[current_].buffer; }
  std::vector<std::uint32_t> &users() { return places_[current_].users; }

 private:
  struct place {
    std::int32_t buffer = -1;
    std::vector<std::uint32_t> users;
  };
  place places_[accumulators];
  int current_ = 0;
};

class stream_build {
 public:
  stream_build(const problem &p, const stream_layout &layout, const device_model &model, int lanes, worker_use use)
      : p_(p), layout_(layout), lanes_(lanes), builder_({&p, 1}), a_(builder_, operand_name::a, layout, layout.a),
        b_(builder_, operand_name::b, layout, layout.b), c_(builder_, operand_name::c, layout, layout.c),
        sums_(builder_, p, layout), moves_(builder_, 0, model, {pageable_in(), pageable_out()}, use) {}

  schedule run() {
    for (std::size_t i = 0; i < layout_.steps.size(); ++i) add_step(layout_.steps[i], std::int64_t(i));
    while (!leaving_.empty()) store_next();
    return builder_.finish(layout_.name);
  }

 private:
  // Panels of C that are final, and how many chunks had been packed by then. Host workers take what they do in order, so
  // an unpacking is put behind the packings that it would hold up while it waits for its product.
  struct leaving {
    std::int32_t panel;
    std::int64_t chunks_in;
  };

  static double bytes_if_pageable(const problem &p, const operand &x) {
    return x.place == SG_MEMORY_PAGEABLE ? problem::bytes(x, p.batch) : 0;
  }
  double pageable_in() const {
    return (p_.no_product ? 0 : bytes_if_pageable(p_, p_.a) + bytes_if_pageable(p_, p_.b)) +
           (p_.beta_zero ? 0 : bytes_if_pageable(p_, p_.c));
  }
  double pageable_out() const { return bytes_if_pageable(p_, p_.c); }

  void hold(holder &h, operand_name name, const stream_operand &x, panel_range range, std::int64_t step) {
    const bool loads = x.how != residency::device && (name != operand_name::c || !p_.beta_zero);
    for (std::int32_t i = range.first; i < range.first + range.count; ++i) {
      if (h.is_held(i)) continue;
      const std::int32_t slot = h.choose(i, step);
      if (name == operand_name::c)
        while (is_leaving(h.panel_in(slot))) store_next();
      h.take(i, slot);
      if (!loads) continue;
      auto &users = h.users(i);
      const std::uint32_t last = moves_.in(name, x.panels[i], h.place(i), users);
      h.ready(i) = {last};
      users.clear();
    }
  }

  void merge_all(std::vector<std::uint32_t> &into, const std::vector<std::uint32_t> &from) {
    for (std::uint32_t index : from) builder_.merge(into, index);
  }

  void add_step(const stream_step &s, std::int64_t number) {
    std::vector<std::uint32_t> waits;
    if (!p_.no_product) {
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
    const std::uint16_t lane_index = std::uint16_t(s.c.first % lanes_);
    if (p_.no_product)
      add_scaling(s, lane_index, waits);
    else
      add_product(s, lane_index, waits);
    if (s.stores && layout_.c.how != residency::device)
      for (std::int32_t i = s.c.first; i < s.c.first + s.c.count; ++i) leaving_.push_back({i, moves_.chunks_in()});
    while (!leaving_.empty() && moves_.chunks_in() >= leaving_.front().chunks_in + moves_.chunks_ahead()) store_next();
  }

  bool is_leaving(std::int32_t panel) const {
    return std::any_of(leaving_.begin(), leaving_.end(), [&](const leaving &l) { return l.panel == panel; });
  }

  void store_next() {
    const std::int32_t i = leaving_.front().panel;
    leaving_.pop_front();
    const std::uint32_t last = moves_.out(operand_name::c, layout_.c.panels[i], c_.place(i), c_.users(i));
    c_.users(i).assign(1, last);
  }

  void used(const stream_step &s, std::uint32_t command) {
    if (!p_.no_product) {
      for (std::int32_t i = s.a.first; i < s.a.first + s.a.count; ++i) builder_.merge(a_.users(i), command);
      for (std::int32_t i = s.b.first; i < s.b.first + s.b.count; ++i) builder_.merge(b_.users(i), command);
    }
    for (std::int32_t i = s.c.first; i < s.c.first + s.c.count; ++i) builder_.merge(c_.users(i), command);
  }

  void add_scaling(const stream_step &s, std::uint16_t lane_index, const std::vector<std::uint32_t> &waits) {
    for (std::int64_t item = 0; item < s.items.size; ++item) {
      const view out = c_.view_of(s.c.first, {s.items.first + item, 1}, block_of_c(s.m, s.n));
      used(s, builder_.add(builder_.scale(0, out, first_beta(p_), lane_index), waits));
    }
  }

  void add_product(const stream_step &s, std::uint16_t lane_index, std::vector<std::uint32_t> &waits) {
    command c = builder_.gemm(0, s.m, s.n, s.k, lane_index);
    c.in0 = a_.view_of(s.a.first, s.items, block_of_a(p_, s.m, s.k));
    c.in1 = b_.view_of(s.b.first, s.items, block_of_b(p_, s.k, s.n));
    c.out = c_.view_of(s.c.first, s.items, block_of_c(s.m, s.n));
    if (!s.begins) c.beta = scalar_role::one;
    const bool wide = accumulator_of(p_.c.type) != p_.c.type && !(s.begins && s.ends);
    if (!wide) return used(s, builder_.add(c, waits));

    if (s.begins) {
      sums_.next();
      c.beta = scalar_role::zero;
    }
    const view narrow = c.out;
    c.out = {sums_.buffer(), 0, s.items.size, 0, s.m.size, s.m.size, s.n.size};
    merge_all(waits, sums_.users());
    const std::uint32_t product = builder_.add(c, waits);
    used(s, product);
    sums_.users().assign(1, product);
    if (s.ends) add_narrowing(s, narrow, c.out, lane_index);
  }

  // C = beta * C + the sum, item by item.
  void add_narrowing(const stream_step &s, view narrow, view wide, std::uint16_t lane_index) {
    const std::vector<std::uint32_t> waits = c_.users(s.c.first);
    for (std::int64_t item = 0; item < s.items.size; ++item) {
      view out = narrow;
      if (out.items > 1) out.item += item;
      out.items = 1;
      command c = builder_.scale(0, out, first_beta(p_), lane_index);
      c.in0 = wide;
      c.in0.item = item;
      c.in0.items = 1;
      c.alpha = scalar_role::one;
      const std::uint32_t index = builder_.add(c, waits);
      used(s, index);
      builder_.merge(sums_.users(), index);
    }
  }

  const problem &p_;
  const stream_layout &layout_;
  int lanes_;
  schedule_builder builder_;
  holder a_, b_, c_;
  accumulator_ring sums_;
  transfers moves_;
  std::deque<leaving> leaving_;
};

}  // namespace

std::int64_t fit_slots(const problem &p, stream_layout &layout, std::int64_t limit) {
  std::int64_t used = needs_accumulators(p, layout) ? accumulators * accumulator_bytes(p, layout) : 0;
  struct slotted {
    stream_operand *x;
    std::int64_t bytes;
  };
  std::vector<slotted> growing;
  const auto account = [&](stream_operand &s, const operand &x) {
    if (s.how == residency::whole) used += whole_bytes(x, p.batch);
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

schedule build_stream(const problem &p, const stream_layout &layout, const device_model &model, int lanes,
                      worker_use use) {
  return stream_build(p, layout, model, lanes, use).run();
}

}  // namespace sg
