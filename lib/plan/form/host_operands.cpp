// SPDX-License-Identifier: Apache-2.0
#include "plan/form/host_operands.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/schedule/schedule_builder.hpp"
#include "plan/schedule/transfer.hpp"

namespace sg {

namespace {

constexpr const char *an_operand = "an operand";

std::int64_t reach(std::int64_t before, std::int64_t count, std::int64_t stride) {
  return checked_add(before, checked_mul(count - 1, stride, an_operand), an_operand);
}

}  // namespace

void host_operands::move(const stored_array &x, memory_space &space) {
  const bool has_elements = x.run > 0 && std::ranges::all_of(x.dimensions, [](const auto &d) { return d.count > 0; });
  if (space == SG_MEMORY_DEVICE || !has_elements) return;
  std::vector<stored_array::dimension> by_stride;
  for (const auto &d : x.dimensions)
    if (d.count > 1 && d.stride > 0) by_stride.push_back(d);
  std::ranges::stable_sort(by_stride, {}, &stored_array::dimension::stride);
  const bool stays = !std::ranges::all_of(by_stride, &stored_array::dimension::of_form);
  moved_operand made{x.parameter, x.type, x.mode, space, x.run, {}, x.run, x.run, x.accessed};
  std::int64_t dense = x.run;
  for (const auto &d : by_stride) {
    const std::int64_t there = stays ? d.stride : dense;
    if (made.accessed == stored_part::all && made.dimensions.empty() && d.stride == made.run && there == made.run) {
      made.run *= d.count;
    } else if (auto *last = made.dimensions.empty() ? nullptr : &made.dimensions.back();
               last && d.stride == last->here * last->count && there == last->there * last->count) {
      last->count *= d.count;
    } else {
      made.dimensions.push_back({d.count, d.stride, there});
    }
    made.reach_here = reach(made.reach_here, d.count, d.stride);
    made.reach_there = reach(made.reach_there, d.count, there);
    dense = checked_mul(dense, d.count, an_operand);
    if (!stays) *d.of_form = there;
  }
  space = SG_MEMORY_DEVICE;
  moved_.push_back(std::move(made));
}

plan_terms host_operands::beside(const plan_terms &terms) const {
  std::int64_t all = 0;
  for (const moved_operand &x : moved_)
    all = checked_add(all, round_up(checked_mul(x.reach_there, size_of(x.type), an_operand), 256), an_operand);
  if (all > terms.memory_limit)
    throw error(SG_STATUS_OUT_OF_MEMORY,
                "the operands in host memory need %lld bytes of device memory; the limit is %lld",
                static_cast<long long>(all), static_cast<long long>(terms.memory_limit));
  plan_terms rest = terms;
  rest.memory_limit -= all;
  return rest;
}

// Builds the schedule: copies in, the commands of the resident schedule, copies out.
class host_operands::copies {
 public:
  copies(const std::vector<moved_operand> &moved, const schedule &resident, const device_model &model)
      : resident_(resident) {
    for (const moved_operand &x : moved) places_.push_back({&x});
    add_buffers();
    transfers through(builder_, model, bytes_staged());
    for (place &at : places_)
      if (reads(at.x->mode))
        each_panel(at, [&](const panel &p, const device_location &to) {
          at.ready = through.in(at.x->parameter, p, to, {});
          at.is_copied = true;
        });
    add_commands();
    for (const place &at : places_)
      if (writes(at.x->mode))
        each_panel(at, [&](const panel &p, const device_location &from) {
          through.out(at.x->parameter, p, from, at.writers);
        });
  }

  schedule finish() { return builder_.finish(resident_.strategy); }

 private:
  struct place {
    const moved_operand *x;
    std::int32_t buffer = -1;  // in the arena
    bool is_copied = false;
    std::uint32_t ready = 0;             // the last copy
    std::vector<std::uint32_t> writers;  // the latest of each lane
  };

  pageable_bytes bytes_staged() const {
    pageable_bytes bytes;
    for (const place &at : places_) {
      double all = 0;
      const operand stored = as_stored(*at.x, "").stored;
      each_panel(at, [&](const panel &p, const device_location &) { all += staged_bytes(stored, p); });
      if (reads(at.x->mode)) bytes.in += all;
      if (writes(at.x->mode)) bytes.out += all;
    }
    return bytes;
  }

  place *moved(const buffer &b) {
    const auto found = std::ranges::find_if(places_, [&](const place &at) { return at.x->parameter == b.parameter; });
    return b.kind == buffer_kind::parameter && found != places_.end() ? &*found : nullptr;
  }

  // The resident schedule's buffers have their places in the arena, and the operands follow.
  void add_buffers() {
    const buffer_list &all = resident_.buffers;
    index_.assign(all.size(), -1);
    std::size_t parameters = 0;
    while (parameters < all.size() && all[parameters].parameter == std::int32_t(parameters)) ++parameters;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const place *at = moved(all[i]);
      if (!at) index_[i] = builder_.add_placed_buffer(all[i]);
      if (at && i < parameters) builder_.add_parameter(as_stored(*at->x, all[i].name));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      place *at = moved(all[i]);
      if (!at) continue;
      const std::int64_t bytes = at->x->reach_there * size_of(at->x->type);
      if (i < parameters)
        index_[i] = at->buffer = builder_.add_device_buffer(all[i].type, bytes, all[i].item_stride);
      else
        index_[i] = builder_.add_alias(at->buffer, all[i].type, all[i].item_stride);
    }
  }

  static parameter as_stored(const moved_operand &x, const char *name) {
    const std::int64_t stride = x.dimensions.empty() ? x.reach_here : x.dimensions[0].here;
    return {{x.reach_here, 1, stride, 0, x.type, x.space, false}, name, writes(x.mode)};
  }

  // Rectangles of the innermost dimension, which are one copy each.
  template <class Each>
  static void each_panel(const place &of, const Each &each) {
    const moved_operand &x = *of.x;
    std::vector<stride_pair> outer = x.dimensions;
    stride_pair inner;
    if (x.has_rectangles()) inner = outer[0], outer.erase(outer.begin());
    outer.resize(3);
    for (std::int64_t i = 0; i < outer[0].count; ++i)
      for (std::int64_t j = 0; j < outer[1].count; ++j)
        for (std::int64_t k = 0; k < outer[2].count; ++k) {
          const auto at = [&](std::int64_t stride_pair::*side) {
            return i * outer[0].*side + j * outer[1].*side + k * outer[2].*side;
          };
          each(panel{{0, 1}, {at(&stride_pair::here), 0, x.run, inner.count}, x.accessed},
               device_location{of.buffer, 0, at(&stride_pair::there) * size_of(x.type),
                               inner.count > 1 ? inner.there : x.run, 0});
        }
  }

  // The commands of the resident schedule, each behind the copies of what it reads.
  void add_commands() {
    std::vector<std::uint32_t> index;                    // by index in the resident schedule
    std::vector<std::pair<lane, std::uint32_t>> waited;  // the latest copy that a command of the lane waits for
    for (const command &c : resident_.commands) {
      command made = c;
      std::vector<std::uint32_t> waits;
      for (std::uint32_t i = 0; i < c.waits; ++i) waits.push_back(index[resident_.waits[c.first_wait + i]]);
      for (accessed_view &v : made.views) {
        if (!v.exists()) continue;
        const place *at = moved(buffer_of(resident_.buffers, v));
        if (at && at->is_copied && is_first(waited, c.where, at->ready)) waits.push_back(at->ready);
        v.buffer = index_[static_cast<std::size_t>(v.buffer)];
      }
      index.push_back(builder_.add(made, waits));
      for (const accessed_view &v : c.views)
        if (v.exists() && writes(v.mode))
          if (place *at = moved(buffer_of(resident_.buffers, v))) builder_.merge(at->writers, index.back());
    }
  }

  static bool is_first(std::vector<std::pair<lane, std::uint32_t>> &waited, lane where, std::uint32_t copy) {
    for (auto &[known, latest] : waited)
      if (known == where) return latest < copy && (latest = copy, true);
    waited.emplace_back(where, copy);
    return true;
  }

  const schedule &resident_;
  schedule_builder builder_;
  std::vector<place> places_;
  std::vector<std::int32_t> index_;  // of the resident schedule's buffers
};

schedule host_operands::around(const schedule &resident, const plan_terms &terms) const {
  double count = 0;
  for (const moved_operand &x : moved_) {
    double panels = 1;
    for (const stride_pair &d : x.dimensions) panels *= static_cast<double>(d.count);
    count += x.has_rectangles() ? panels / static_cast<double>(x.dimensions[0].count) : panels;
  }
  if (count > static_cast<double>(most_asked_commands))
    throw error(SG_STATUS_UNSUPPORTED,
                "the operands in host memory are %.0f separate rectangles, more than %lld; make them contiguous", count,
                static_cast<long long>(most_asked_commands));
  schedule made = copies(moved_, resident, terms.model).finish();
  made.flops = resident.flops;
  made.bound_seconds =
      std::max({resident.bound_seconds, made.bytes_in / terms.model.link_in, made.bytes_out / terms.model.link_out});
  return made;
}

}  // namespace sg
