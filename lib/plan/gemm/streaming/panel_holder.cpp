// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/streaming/panel_holder.hpp"

#include <algorithm>
#include <limits>

#include "plan/gemm/streaming/stream_memory.hpp"

namespace sg {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

}  // namespace

panel_holder::panel_holder(gemm_builder &builder, operand_name name, const stream_layout &layout,
                           const stream_operand &x)
    : builder_(builder),
      name_(name),
      held_(operand_of(builder.of(0).as_on_device(), name)),
      x_(x),
      uses_(x.panels.size()),
      slot_of_(x.panels.size(), -1) {
  if (x.panels.empty()) return;  // no GEMM
  const operand &o = held_;
  const std::size_t places = x.how == residency::slots ? std::size_t(x.slots) : x.panels.size();
  slots_.resize(places);
  if (x.how == residency::slots) {
    item_elements_ = slot_item_elements(o, x);
    const std::int64_t bytes = slot_bytes(o, x);
    for (slot &s : slots_) s.buffer = builder.add_device_buffer(o.type, bytes, item_elements_ * size_of(o.type));
  } else if (x.how == residency::whole) {
    item_elements_ = whole_item_elements(o, x);
    const std::int32_t buffer =
        builder.add_device_buffer(o.type, whole_bytes(o, x, builder.of(0).batch), item_elements_ * size_of(o.type));
    for (slot &s : slots_) s.buffer = buffer;
  }
  for (std::size_t i = 0; i < layout.steps.size(); ++i) {
    const panel_range used = range_of(layout.steps[i]);
    for (std::int32_t p = used.first; p < used.first + used.count; ++p) uses_[p].push_back(std::int64_t(i));
  }
}

panel_range panel_holder::range_of(const stream_step &s) const {
  return name_ == operand_name::a ? s.a : name_ == operand_name::b ? s.b : s.c;
}

std::int32_t panel_holder::choose(std::int32_t panel, std::int64_t step) const {
  if (x_.how != residency::slots) return panel;
  if (filled_ < std::int32_t(slots_.size())) return filled_;
  std::int32_t best = 0;
  for (std::int32_t i = 1; i < std::int32_t(slots_.size()); ++i)
    if (preferred(slots_[i], slots_[best], step)) best = i;
  return best;
}

void panel_holder::take(std::int32_t panel, std::int32_t slot) {
  if (slots_[slot].panel >= 0)
    slot_of_[slots_[slot].panel] = -1;
  else
    ++filled_;
  slots_[slot].panel = panel;
  slot_of_[panel] = slot;
}

device_location panel_holder::location(std::int32_t panel) const {
  const block &where = x_.panels[panel].where;
  const slot &s = slots_[slot_of_[panel]];
  const operand &o = held_;
  const std::int64_t ld = device_ld(o, x_, where);
  if (x_.how == residency::slots) return {s.buffer, 0, 0, ld, item_elements_};
  const std::int64_t item = is_shared(o) ? 0 : x_.panels[panel].items.first;
  return {s.buffer, item, (where.row + where.col * ld) * size_of(o.type), ld, item_elements_};
}

view panel_holder::view_of(std::int32_t first, range items, block part) const {
  if (x_.how == residency::device) return builder_.operand_view(0, name_, items, part);
  const operand &o = held_;
  const panel &p = x_.panels[first];
  const device_location at = location(first);
  const std::int64_t item = at.item + (is_shared(o) ? 0 : items.first - p.items.first);
  const std::int64_t inside = (part.row - p.where.row) + (part.col - p.where.col) * at.ld;
  return {at.buffer, item,     is_shared(o) ? 1 : items.size, at.offset + inside * size_of(o.type), at.ld,
          part.rows, part.cols};
}

std::int64_t panel_holder::next_use(const slot &s, std::int64_t step) const {
  if (s.panel < 0) return never;
  const auto &uses = uses_[s.panel];
  const auto next = std::lower_bound(uses.begin(), uses.end(), step);
  return next == uses.end() ? never : *next;
}

bool panel_holder::preferred(const slot &a, const slot &b, std::int64_t step) const {
  const std::int64_t next_a = next_use(a, step), next_b = next_use(b, step);
  if (next_a != next_b) return next_a > next_b;
  const auto latest = [](const slot &s) {
    return s.users.empty() ? std::int64_t(-1) : std::int64_t(*std::max_element(s.users.begin(), s.users.end()));
  };
  return latest(a) < latest(b);
}

}  // namespace sg
