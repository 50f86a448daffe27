// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule/hazard.hpp"

#include <algorithm>
#include <map>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "ops/operation.hpp"
#include "plan/schedule/dependents.hpp"
#include "plan/schedule/lanes.hpp"
#include "plan/schedule/out_of_order_copies.hpp"

namespace sg {
namespace {

// For each command, the number of commands of each ordered lane that have completed before it starts; out-of-order
// copies are counted with the next ordered one.
class order {
 public:
  explicit order(const schedule &s)
      : numbers_(s), after_(s), lanes_(numbers_.count()), clocks_(s.commands.size() * lanes_) {
    const std::vector<bool> is_out_of_order = out_of_order_copies(s);
    std::vector<std::int64_t> last(lanes_, -1);             // latest ordered command of each lane
    std::vector<std::vector<std::uint32_t>> since(lanes_);  // out-of-order copies after it
    position_.resize(s.commands.size(), out_of_order);
    next_in_order_.resize(s.commands.size(), none);
    lane_.resize(s.commands.size());
    for (std::uint32_t i = 0; i < s.commands.size(); ++i) {
      const command &c = s.commands[i];
      lane_[i] = numbers_.of(c.where);
      for (std::uint32_t w = c.first_wait; w < c.first_wait + c.waits; ++w) join(i, s.waits[w]);
      if (!in_order(c.where)) continue;
      if (is_out_of_order[i]) {
        since[lane_[i]].push_back(i);
        continue;
      }
      for (const std::uint32_t before : since[lane_[i]]) {
        join(i, before);
        next_in_order_[before] = i;
      }
      since[lane_[i]].clear();
      std::int64_t &latest = last[lane_[i]];
      if (latest >= 0) join(i, std::uint32_t(latest));
      position_[i] = latest < 0 ? 1 : position_[latest] + 1;
      latest = i;
    }
  }

  // Of a < b: whether a has completed when b starts.
  bool before(std::uint32_t a, std::uint32_t b) const {
    if (position_[a] != out_of_order) return clocks_[b * lanes_ + lane_[a]] >= position_[a];
    const auto after = after_.of(a);
    const auto passes_on = [&](std::uint32_t d) { return d == b || (d < b && before(d, b)); };
    return passes_on(next_in_order_[a]) || std::any_of(after.begin(), after.end(), passes_on);
  }

 private:
  static constexpr std::uint32_t out_of_order = 0, none = UINT32_MAX;

  void join(std::uint32_t to, std::uint32_t from) {
    for (std::size_t l = 0; l < lanes_; ++l)
      clocks_[to * lanes_ + l] = std::max(clocks_[to * lanes_ + l], clocks_[from * lanes_ + l]);
    auto &own = clocks_[to * lanes_ + lane_[from]];
    own = std::max(own, position_[from]);
  }

  lane_numbers numbers_;
  dependents after_;
  std::size_t lanes_;
  std::vector<std::uint32_t> clocks_, position_;
  std::vector<std::uint32_t> next_in_order_;  // of an out-of-order copy: the next ordered command of its lane
  std::vector<int> lane_;
};

// A view in bytes. Items beyond the first follow at `stride`.
struct region {
  std::int32_t buffer = -1;
  std::int64_t begin = 0, end = 0;                // hull of all items, in the address space of the buffer
  std::int64_t width = 0, pitch = 0, height = 0;  // of one item
  std::int64_t offset = 0;                        // of the first element, in its item
  std::int64_t first_item = 0, items = 1;
  std::int64_t stride = 0;  // from item to item; 0: at separate addresses, or one
  bool within_item = true;  // no overlap with the next item
};

region region_of(const schedule &s, const view &v) {
  const buffer &b = s.buffers[v.buffer];
  const std::int64_t size = size_of(b.type);
  region r;
  r.buffer = v.buffer;
  r.width = v.rows * size;
  r.pitch = step_bytes(v.ld, size, r.width);
  r.height = v.cols;
  r.offset = v.offset;
  r.first_item = v.item;
  r.items = v.items;
  const std::int64_t extent = (r.height - 1) * r.pitch + r.width;
  const std::int64_t stride = b.pointer_array ? 0 : b.item_stride;
  const std::int64_t base = b.kind == buffer_kind::parameter ? 0 : b.offset;
  r.stride = stride;
  r.begin = base + v.offset + v.item * stride;
  r.end = r.begin + (v.items - 1) * stride + extent;
  // Items follow each other, or are interleaved within one leading dimension.
  r.within_item = b.pointer_array || v.offset + extent <= stride || r.pitch > stride;
  return r;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0); }

// One item of each, from `a_begin` and `b_begin`. Exact, but for tall rectangles of different pitches: their hulls are
// compared.
bool rectangles_meet(const region &a, std::int64_t a_begin, const region &b, std::int64_t b_begin) {
  constexpr std::int64_t most_columns = 1 << 12;
  const auto end = [](const region &x, std::int64_t begin) { return begin + (x.height - 1) * x.pitch + x.width; };
  if (end(a, a_begin) <= b_begin || end(b, b_begin) <= a_begin) return false;
  const std::int64_t pitch = a.height == 1 ? b.pitch : a.pitch;
  if (pitch <= 0) return true;
  if (b.height > 1 && b.pitch != pitch) {  // column by column of the one that has fewer
    if (b.height < a.height) return rectangles_meet(b, b_begin, a, a_begin);
    region column = a;
    column.height = 1;
    for (std::int64_t i = 0; i < a.height && a.height <= most_columns; ++i)
      if (rectangles_meet(column, a_begin + i * pitch, b, b_begin)) return true;
    return a.height > most_columns;
  }
  // Column i + k of b begins `distance` + k * `pitch` bytes after column i of a. The columns meet for a k in a range.
  const std::int64_t distance = b_begin - a_begin;
  const std::int64_t least = -floor_div(b.width - 1 + distance, pitch), most = floor_div(a.width - 1 - distance, pitch);
  return std::max(least, 1 - a.height) <= std::min(most, b.height - 1);
}

// Each item of one with each of the other; true if they are too many or their addresses are not known.
bool items_meet(const region &a, const region &b) {
  constexpr std::int64_t most_pairs = 1 << 12;
  const auto is_known = [](const region &x) { return x.items == 1 || x.stride > 0; };
  if (!is_known(a) || !is_known(b)) return true;
  if (a.stride == b.stride && a.items + b.items <= most_pairs) {  // only the distance between two items matters
    for (std::int64_t between = 1 - b.items; between < a.items; ++between)
      if (rectangles_meet(a, a.begin + std::max<std::int64_t>(between, 0) * a.stride, b,
                          b.begin - std::min<std::int64_t>(between, 0) * b.stride))
        return true;
    return false;
  }
  if (a.items > most_pairs / b.items) return true;
  for (std::int64_t i = 0; i < a.items; ++i)
    for (std::int64_t j = 0; j < b.items; ++j)
      if (rectangles_meet(a, a.begin + i * a.stride, b, b.begin + j * b.stride)) return true;
  return false;
}

bool overlap(const region &a, const region &b) {
  // Items of one buffer share no element.
  if (a.buffer == b.buffer && a.within_item && b.within_item)
    return a.first_item < b.first_item + b.items && b.first_item < a.first_item + a.items &&
           rectangles_meet(a, a.offset, b, b.offset);
  if (a.begin >= b.end || b.begin >= a.end) return false;
  return items_meet(a, b);
}

// Whether `inner` is a subset of `outer`. Conservative: may return false.
bool covers(const schedule &s, const region &outer, const region &inner) {
  const bool contiguous = outer.items == 1 && (outer.pitch == outer.width || outer.height == 1);
  if (contiguous && !s.buffers[outer.buffer].pointer_array && !s.buffers[inner.buffer].pointer_array)
    return outer.begin <= inner.begin && inner.end <= outer.end;
  return outer.buffer == inner.buffer && outer.first_item == inner.first_item && outer.items == inner.items &&
         outer.offset == inner.offset && outer.pitch == inner.pitch && outer.width == inner.width &&
         outer.height == inner.height;
}

struct access {
  std::uint32_t command;
  bool writes;
  region where;
};

class checker {
 public:
  explicit checker(const schedule &s) : s_(s) {}

  std::vector<hazard> run() {
    for (std::uint32_t i = 0; i < s_.commands.size(); ++i) check_form(i);
    check_arenas();
    if (found_.empty()) check_order();
    return std::move(found_);
  }

 private:
  void report(std::uint32_t first, std::uint32_t second, std::string text) {
    found_.push_back({first, second, std::move(text)});
  }

  void check_arenas() {
    for (const buffer &b : s_.buffers) {
      if (b.kind == buffer_kind::parameter) continue;
      const std::int64_t arena = b.kind == buffer_kind::device ? s_.device_bytes : s_.staging_bytes;
      if (b.offset < 0 || b.offset % 256 != 0 || b.bytes < 0 || b.offset + b.bytes > arena)
        report(0, 0, "a buffer leaves its arena or is not aligned to 256 bytes");
    }
  }

  void check_view(std::uint32_t i, const view &v, std::size_t index) {
    const auto wrong = [&](const char *what) { report(i, i, "view " + std::to_string(index) + ": " + what); };
    if (std::size_t(v.buffer) >= s_.buffers.size()) return wrong("no such buffer");
    if (v.rows <= 0 || v.cols <= 0 || v.items <= 0 || v.item < 0 || v.offset < 0) return wrong("an empty view");
    if (v.ld < v.rows && v.cols > 1) return wrong("columns overlap");
    const buffer &b = s_.buffers[v.buffer];
    const region r = region_of(s_, v);
    const std::int64_t base = b.kind == buffer_kind::parameter ? 0 : b.offset;
    if (b.bytes > 0 && (r.begin < base || r.end > base + b.bytes)) wrong("leaves its buffer");
    const lane where = s_.commands[i].where;
    // A peer copy reads one; its own check knows which (ops/copy.cpp).
    const bool is_foreign = b.space == SG_MEMORY_DEVICE && b.space.device() != where.device;
    if (is_foreign && on_device(where) && where.kind != lane_kind::copy_peer) wrong("is in another device's memory");
  }

  void check_form(std::uint32_t i) {
    const command &c = s_.commands[i];
    if (std::size_t(c.first_wait) + c.waits > s_.waits.size()) return report(i, i, "waits are not in the list");
    for (std::uint32_t w = c.first_wait; w < c.first_wait + c.waits; ++w)
      if (s_.waits[w] >= i) report(i, i, "waits for a later command");
    command defined = c;
    set_access_modes(defined);
    for (std::size_t v = 0; v < c.views.size(); ++v) {
      if (c.views[v].exists()) check_view(i, c.views[v], v);
      if (c.views[v].mode != defined.views[v].mode) report(i, i, "an access mode is not the operation's");
    }
    if (!found_.empty()) return;
    if (const char *defect = operation_of(c).defect(s_.buffers, c)) report(i, i, defect);
  }

  // Address spaces: each parameter has its own; the arenas of each device have one each.
  int space_of(std::int32_t index) const {
    const buffer &b = s_.buffers[index];
    const int device = int(number_of(b.space.device()));
    switch (b.kind) {
      case buffer_kind::staging: return -1 - 2 * device;
      case buffer_kind::device: return -2 - 2 * device;
      case buffer_kind::parameter: break;
    }
    return b.parameter;
  }

  void check_order() {
    const order happens(s_);
    std::map<int, bool> written;
    for (const command &c : s_.commands)
      for (const accessed_view &v : c.views)
        if (writes(v.mode)) written[space_of(v.buffer)] = true;
    std::map<int, std::vector<access>> spaces;
    const auto touch = [&](std::uint32_t i, const accessed_view &v, bool writing) {
      if (!v.exists() || writes(v.mode) != writing || !written[space_of(v.buffer)]) return;
      record(spaces[space_of(v.buffer)], {i, writing, region_of(s_, v)}, happens);
    };
    for (std::uint32_t i = 0; i < s_.commands.size(); ++i)
      for (const bool writing : {false, true})
        for (const accessed_view &v : s_.commands[i].views) touch(i, v, writing);
  }

  void record(std::vector<access> &earlier, const access &now, const order &happens) {
    std::size_t kept = 0;
    for (const access &a : earlier) {
      bool superseded = false;
      if (a.command != now.command && (a.writes || now.writes) && overlap(a.where, now.where)) {
        const bool ordered = happens.before(a.command, now.command);
        if (!ordered)
          report(a.command, now.command,
                 "commands " + std::to_string(a.command) + " and " + std::to_string(now.command) +
                     " touch the same memory in no order");
        // A later access that overlaps the earlier one overlaps this write too, and is ordered after both if ordered
        // after this.
        superseded = ordered && now.writes && covers(s_, now.where, a.where);
      }
      if (!superseded) earlier[kept++] = a;
    }
    earlier.resize(kept);
    earlier.push_back(now);
  }

  const schedule &s_;
  std::vector<hazard> found_;
};

}  // namespace

std::vector<hazard> check_hazards(const schedule &s) { return checker(s).run(); }

void require_no_hazards(const schedule &s) {
  const auto hazards = check_hazards(s);
  if (!hazards.empty())
    throw error(SG_STATUS_INTERNAL, "the schedule \"%s\" has %zu hazards; the first: %s", s.strategy.c_str(),
                hazards.size(), hazards.front().text.c_str());
}

}  // namespace sg
