// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/streaming/stream_layouts.hpp"

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"

namespace sg {
namespace {

residency residency_of(const operand &x, residency on_host_one) { return on_host(x) ? on_host_one : residency::device; }

// GEMMs of 16-bit types are several times slower where columns begin at no multiple of 16 bytes. Not in a batch, whose
// items are to be contiguous.
std::int64_t ld_multiple_of(const problem &p, const operand &x) {
  constexpr std::int64_t aligned_bytes = 16;
  return p.batch == 1 && size_of(x.type) == 2 ? aligned_bytes / 2 : 1;
}

// For operands that are only read.
void place(const problem &p, stream_operand &how, const operand &x, residency on_host_one) {
  how.how = residency_of(x, on_host_one);
  how.ld_multiple = ld_multiple_of(p, x);
  how.keeps_pitch = copies_padding(x) && x.ld % how.ld_multiple == 0;
}
void place_result(const problem &p, stream_operand &how, residency on_host_one) {
  how.how = residency_of(p.c, on_host_one);
  how.ld_multiple = ld_multiple_of(p, p.c);
}

std::vector<range> shifted(std::vector<range> ranges, std::int64_t by) {
  for (range &r : ranges) r.first += by;
  return ranges;
}

// Splits a dimension into panels, the first one narrower or wider, the last ones tapered.
std::vector<range> cut_panels(std::int64_t total, std::int64_t count, double head, bool taper) {
  const std::int64_t even = ceil_div(total, std::max<std::int64_t>(1, count));
  std::int64_t first = std::clamp<std::int64_t>(std::int64_t(std::llround(double(even) * head)), 1, total);
  if (first >= grain) first = first / grain * grain;
  std::vector<range> ranges{{0, first}};
  if (first < total) {
    const std::int64_t rest = std::max<std::int64_t>(1, std::llround(double(total - first) / double(even)));
    for (const range &r : shifted(cut(total - first, rest, grain), first)) ranges.push_back(r);
  }
  if (taper && ranges.size() > 1 && ranges.back().size >= 4 * grain) {
    const range last = ranges.back();
    ranges.pop_back();
    const std::int64_t half = last.size / 2 / grain * grain, quarter = half / 2 / grain * grain;
    ranges.push_back({last.first, half});
    ranges.push_back({last.first + half, quarter});
    ranges.push_back({last.first + half + quarter, last.size - half - quarter});
  }
  return ranges;
}

std::int32_t count_of(const std::vector<panel> &panels) { return std::int32_t(panels.size()); }

// The two operands by their role in a panel layout, independent of the axis of the panels.
class panel_writer {
 public:
  panel_writer(const problem &p, const panel_choice &choice, stream_layout &out)
      : p_(p),
        along_n_(choice.along == axis::n),
        out_(out),
        stays_(along_n_ ? out.a : out.b),
        passes_(along_n_ ? out.b : out.a) {}

  // Later panels and steps belong to this item.
  void begin_item(std::int64_t item) { items_ = {item, 1}; }

  std::int64_t along_size() const { return along_n_ ? p_.n : p_.m; }
  std::int64_t across_size() const { return along_n_ ? p_.m : p_.n; }

  panel_range add_staying(range across, range k) {
    stays_.panels.push_back({items_, along_n_ ? block_of_a(p_, across, k) : block_of_b(p_, k, across)});
    return {count_of(stays_.panels) - 1, 1};
  }
  panel_range add_passing(range along, range k) {
    passes_.panels.push_back({items_, along_n_ ? block_of_b(p_, k, along) : block_of_a(p_, along, k)});
    return {count_of(passes_.panels) - 1, 1};
  }
  panel_range add_result(range along, range across) {
    out_.c.panels.push_back({items_, along_n_ ? block_of_c(across, along) : block_of_c(along, across)});
    return {count_of(out_.c.panels) - 1, 1};
  }
  void add_step(range along, range across, range k, panel_range staying, panel_range passing, panel_range result,
                bool begins, bool ends, bool stores) {
    stream_step s;
    s.items = items_;
    s.m = along_n_ ? across : along;
    s.n = along_n_ ? along : across;
    s.k = k;
    s.a = along_n_ ? staying : passing;
    s.b = along_n_ ? passing : staying;
    s.c = result;
    s.begins = begins, s.ends = ends, s.stores = stores;
    out_.steps.push_back(s);
  }
  stream_operand &stays() { return stays_; }

 private:
  const problem &p_;
  bool along_n_;
  stream_layout &out_;
  stream_operand &stays_, &passes_;
  range items_{0, 1};
};

}  // namespace

namespace {

// The panels of one item.
class panel_item {
 public:
  panel_item(const problem &p, const panel_choice &choice, panel_writer &writer, std::int64_t item)
      : p_(p),
        choice_(choice),
        w_(writer),
        all_along_{0, writer.along_size()},
        all_across_{0, writer.across_size()},
        panels_(cut_panels(all_along_.size, choice.panels, item == 0 ? choice.head : 1,
                           choice.taper && item == p.batch - 1)),
        first_parts_{all_across_} {
    if (choice.across) first_parts_ = cut(all_across_.size, choice.pieces, grain);
    w_.begin_item(item);
    for (const range &part : first_parts_) first_results_.push_back(w_.add_result(panels_[0], part));
    for (std::size_t i = 1; i < panels_.size(); ++i) results_.push_back(w_.add_result(panels_[i], all_across_));
  }

  std::size_t panels() const noexcept { return panels_.size(); }
  std::int64_t outer() const {
    // Sums for all of C at once are kept in C itself, so C must have the accumulator's type.
    if (accumulator_of(p_.c.type) != p_.c.type) return 0;
    const std::int64_t outer =
        std::clamp<std::int64_t>(std::int64_t(std::llround(double(p_.k) * choice_.outer)), 0, p_.k - 1);
    return outer >= grain ? outer / grain * grain : outer;
  }

  void add() {
    add_outer();
    const panel_range passing = w_.add_passing(panels_[0], depth());
    const panel_range staying = choice_.across ? add_first_panel_in_parts(passing) : add_first_panel(passing);
    for (std::size_t i = 1; i < panels_.size(); ++i)
      w_.add_step(panels_[i], all_across_, depth(), staying, w_.add_passing(panels_[i], depth()), results_[i - 1],
                  outer() == 0, true, true);
  }

 private:
  // The part of the depth that is streamed by panels.
  range depth() const { return {outer(), p_.k - outer()}; }

  void add_outer() {
    if (outer() == 0) return;
    const panel_range every_result{first_results_.front().first, std::int32_t(first_results_.size() + results_.size())};
    for (const range &k : cut(outer(), choice_.outer_pieces, grain)) {
      const panel_range staying = w_.add_staying(all_across_, k);
      w_.add_step(all_along_, all_across_, k, staying, w_.add_passing(all_along_, k), every_result, k.first == 0, false,
                  false);
    }
  }

  // Uses the resident operand in pieces as they arrive; returns all of them.
  panel_range add_first_panel(panel_range passing) {
    panel_range staying{0, 0};
    for (range k : shifted(cut(depth().size, choice_.pieces, grain), outer())) {
      const panel_range piece = w_.add_staying(all_across_, k);
      const bool last = k.end() == p_.k;
      w_.add_step(panels_[0], all_across_, k, piece, passing, first_results_[0], k.first == 0, last, last);
      staying = {staying.count == 0 ? piece.first : staying.first, staying.count + 1};
    }
    return staying;
  }

  // The first panel, of which each piece completes a part.
  panel_range add_first_panel_in_parts(panel_range passing) {
    panel_range staying{0, 0};
    for (std::size_t i = 0; i < first_parts_.size(); ++i) {
      const panel_range piece = w_.add_staying(first_parts_[i], depth());
      w_.add_step(panels_[0], first_parts_[i], depth(), piece, passing, first_results_[i], outer() == 0, true, true);
      staying = {i == 0 ? piece.first : staying.first, staying.count + 1};
    }
    return staying;
  }

  const problem &p_;
  const panel_choice &choice_;
  panel_writer &w_;
  range all_along_, all_across_;
  std::vector<range> panels_;
  std::vector<range> first_parts_;                    // of the first panel, across
  std::vector<panel_range> first_results_, results_;  // of those parts; of each panel after the first
};

}  // namespace

stream_layout panel_layout(const problem &p, const panel_choice &choice) {
  stream_layout layout;
  panel_writer writer(p, choice, layout);
  std::size_t panels = 0;
  std::int64_t outer = 0;
  for (std::int64_t item = 0; item < p.batch; ++item) {
    panel_item one(p, choice, writer, item);
    one.add();
    panels = one.panels();
    outer = one.outer();
  }
  place(p, layout.a, p.a, choice.along == axis::n ? residency::whole : residency::slots);
  place(p, layout.b, p.b, choice.along == axis::m ? residency::whole : residency::slots);
  place_result(p, layout.c, outer > 0 ? residency::whole : residency::slots);
  layout.name = std::string("stream ") + (choice.along == axis::n ? "n" : "m") + "-panels x" + std::to_string(panels);
  if (choice.pieces > 1)
    layout.name += ", first by " + std::to_string(choice.pieces) + (choice.across ? " across" : "");
  if (outer > 0) layout.name += ", " + std::to_string(outer) + " of k first by " + std::to_string(choice.outer_pieces);
  return layout;
}

std::vector<range> cut_tiles(std::int64_t total, std::int64_t tile) {
  return cut(total, ceil_div(total, std::max<std::int64_t>(1, tile)), grain);
}

stream_layout tile_layout(const problem &p, const tile_choice &choice) {
  stream_layout layout;
  const auto rows = cut_tiles(p.m, choice.tile_m), cols = cut_tiles(p.n, choice.tile_n);
  const auto depths = p.no_multiply ? std::vector<range>{{0, 0}} : cut_tiles(p.k, choice.tile_k);
  const auto rows_n = std::int32_t(rows.size()), cols_n = std::int32_t(cols.size());
  const auto depths_n = std::int32_t(depths.size());
  for (std::int64_t item = 0; item < p.batch; ++item) {
    const range items{item, 1};
    const bool fresh_a = item == 0 || !is_shared(p.a), fresh_b = item == 0 || !is_shared(p.b);
    for (const range &m : rows)
      for (const range &k : depths)
        if (fresh_a && !p.no_multiply) layout.a.panels.push_back({items, block_of_a(p, m, k)});
    for (const range &n : cols)
      for (const range &k : depths)
        if (fresh_b && !p.no_multiply) layout.b.panels.push_back({items, block_of_b(p, k, n)});
    for (const range &n : cols)
      for (const range &m : rows) layout.c.panels.push_back({items, block_of_c(m, n)});

    const std::int32_t nth = std::int32_t(item);
    const std::int32_t first_a = is_shared(p.a) ? 0 : nth * rows_n * depths_n;
    const std::int32_t first_b = is_shared(p.b) ? 0 : nth * cols_n * depths_n;
    const std::int32_t first_c = nth * rows_n * cols_n;
    const std::int32_t outer_n = choice.inner == axis::m ? cols_n : rows_n;
    const std::int32_t inner_n = choice.inner == axis::m ? rows_n : cols_n;
    for (std::int32_t o = 0; o < outer_n; ++o)
      for (std::int32_t step = 0; step < inner_n; ++step) {
        // Alternating direction: the panels used last are used next.
        const std::int32_t in = o % 2 == 0 ? step : inner_n - 1 - step;
        const std::int32_t i = choice.inner == axis::m ? in : o, j = choice.inner == axis::m ? o : in;
        const bool backwards = (o * inner_n + step) % 2 == 1;
        for (std::int32_t d = 0; d < depths_n; ++d) {
          const std::int32_t l = backwards ? depths_n - 1 - d : d;
          stream_step s;
          s.items = items;
          s.m = rows[i], s.n = cols[j], s.k = depths[l];
          s.a = {first_a + i * depths_n + l, 1};
          s.b = {first_b + j * depths_n + l, 1};
          s.c = {first_c + j * rows_n + i, 1};
          s.begins = d == 0;
          s.ends = s.stores = d == depths_n - 1;
          layout.steps.push_back(s);
        }
      }
  }
  place(p, layout.a, p.a, residency::slots);
  place(p, layout.b, p.b, residency::slots);
  place_result(p, layout.c, residency::slots);
  layout.name =
      "stream tiles " + std::to_string(rows_n) + "x" + std::to_string(cols_n) + "x" + std::to_string(depths_n);
  return layout;
}

stream_layout item_layout(const problem &p, std::int64_t groups) {
  stream_layout layout;
  const range m{0, p.m}, n{0, p.n}, k{0, p.k};
  const auto parts = cut(p.batch, groups);
  for (std::int32_t g = 0; g < std::int32_t(parts.size()); ++g) {
    const range items = parts[g];
    stream_step s;
    s.items = items;
    s.m = m, s.n = n, s.k = k;
    if (!p.no_multiply && (g == 0 || !is_shared(p.a)))
      layout.a.panels.push_back({is_shared(p.a) ? range{0, 1} : items, block_of_a(p, m, k)});
    if (!p.no_multiply && (g == 0 || !is_shared(p.b)))
      layout.b.panels.push_back({is_shared(p.b) ? range{0, 1} : items, block_of_b(p, k, n)});
    layout.c.panels.push_back({items, block_of_c(m, n)});
    s.a = {is_shared(p.a) ? 0 : g, 1};
    s.b = {is_shared(p.b) ? 0 : g, 1};
    s.c = {g, 1};
    layout.steps.push_back(s);
  }
  place(p, layout.a, p.a, residency::slots);
  place(p, layout.b, p.b, residency::slots);
  place_result(p, layout.c, residency::slots);
  layout.name = "stream items x" + std::to_string(parts.size());
  return layout;
}

}  // namespace sg
