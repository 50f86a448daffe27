// SPDX-License-Identifier: Apache-2.0
#include "api/operands/conflict.hpp"

#include <algorithm>
#include <tuple>

namespace sg {
namespace {

auto sort_key(const owned_bytes &x) { return std::tie(x.bytes.lo, x.bytes.hi, x.bytes.run, x.bytes.pitch, x.writes); }

// An entry, by its start address.
struct start {
  std::uintptr_t lo;
  std::size_t index;
};

// Sorted by address. The input often consists of a few ascending runs (A of every GEMM, then B, then C), which are
// merged.
std::vector<start> sorted(const std::vector<owned_bytes> &all) {
  constexpr std::size_t most_runs = 8;
  const auto before = [&](const start &x, const start &y) {
    return x.lo != y.lo ? x.lo < y.lo : sort_key(all[x.index]) < sort_key(all[y.index]);
  };
  std::vector<start> starts;
  std::vector<std::ptrdiff_t> runs{0};  // start of each
  starts.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    starts.push_back({all[i].bytes.lo, i});
    if (i > 0 && runs.size() <= most_runs && before(starts[i], starts[i - 1]))
      runs.push_back(static_cast<std::ptrdiff_t>(i));
  }
  if (runs.size() > most_runs) {
    std::sort(starts.begin(), starts.end(), before);
    return starts;
  }
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const auto end = i + 1 < runs.size() ? starts.begin() + runs[i + 1] : starts.end();
    std::inplace_merge(starts.begin(), starts.begin() + runs[i], end, before);
  }
  return starts;
}

// Entries of one kind whose range may reach the next one.
class open_ranges {
 public:
  void add(const owned_bytes &x) { open_.push_back(&x); }
  void clear() noexcept { open_.clear(); }

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
  open_ranges written, read;
  std::uintptr_t reached = 0;  // by the entries before
  owned_bytes *latest = nullptr;
  for (const start &next : sorted(all)) {
    owned_bytes &x = all[next.index];
    const bool again = latest && !x.writes && sort_key(*latest) == sort_key(x);
    if (again && (latest->owner == x.owner || latest->owner == several_owners)) continue;
    if (x.bytes.lo >= reached) {
      written.clear();
      read.clear();
    } else {
      const owned_bytes *other = written.find(x);
      if (!other && x.writes) other = read.find(x);
      if (other) return conflict{*other, x};
    }
    if (again) {  // bytes with several readers are one entry
      latest->owner = several_owners;
      continue;
    }
    latest = &x;
    (x.writes ? written : read).add(x);
    reached = std::max(reached, x.bytes.hi);
  }
  return std::nullopt;
}

}  // namespace sg
