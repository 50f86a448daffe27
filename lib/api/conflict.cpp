// SPDX-License-Identifier: Apache-2.0
#include "api/conflict.hpp"

#include <algorithm>
#include <tuple>

namespace sg {
namespace {

auto place_of(const owned_bytes &x) { return std::tie(x.bytes.lo, x.bytes.hi, x.bytes.run, x.bytes.pitch, x.writes); }

// Sorts by address; what several read becomes one entry.
void sort_and_merge(std::vector<owned_bytes> &all) {
  std::sort(all.begin(), all.end(),
            [](const owned_bytes &x, const owned_bytes &y) { return place_of(x) < place_of(y); });
  std::size_t kept = 0;
  for (const owned_bytes &x : all) {
    owned_bytes *last = kept > 0 ? &all[kept - 1] : nullptr;
    if (!last || x.writes || place_of(*last) != place_of(x))
      all[kept++] = x;
    else if (last->owner != x.owner)
      last->owner = several_owners;
  }
  all.resize(kept);
}

// Those of one kind whose range may reach what comes next.
class open_ranges {
 public:
  void add(const owned_bytes &x) { open_.push_back(&x); }

  const owned_bytes *find(const owned_bytes &x) {
    std::erase_if(open_, [&](const owned_bytes *o) { return o->bytes.hi <= x.bytes.lo; });
    const auto at = std::find_if(open_.begin(), open_.end(), [&](const owned_bytes *o) {
      return o->owner != x.owner && overlap(o->bytes, x.bytes);
    });
    return at == open_.end() ? nullptr : *at;
  }

 private:
  std::vector<const owned_bytes *> open_;
};

}  // namespace

std::optional<conflict> find_conflict(std::vector<owned_bytes> all) {
  sort_and_merge(all);
  open_ranges written, read;
  for (const owned_bytes &x : all) {
    const owned_bytes *other = written.find(x);
    if (!other && x.writes) other = read.find(x);
    if (other) return conflict{*other, x};
    (x.writes ? written : read).add(x);
  }
  return std::nullopt;
}

}  // namespace sg
