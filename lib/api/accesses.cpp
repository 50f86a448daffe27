// SPDX-License-Identifier: Apache-2.0
#include "api/accesses.hpp"

#include <cstdint>
#include <utility>

#include "api/conflict.hpp"
#include "api/operand_bytes.hpp"
#include "base/error.hpp"

namespace sg {

namespace {

template <class Add>
void for_each_access(const checked_gemm &g, Add &&add) {
  const problem &p = g.shape;
  const auto list = [&](const operand &o, std::size_t which, bool writes, bool reads) {
    for (std::int64_t i = 0; i < pieces_of(o, p.batch); ++i)
      add(access{footprint_of(o, p.batch, g.where.operands[which], i), writes, reads, has_exact_footprint(o, p.batch)},
          which);
  };
  if (!p.no_product) {
    list(p.a, 0, false, true);
    list(p.b, 1, false, true);
  }
  list(p.c, 2, true, !p.beta_zero);
  if (p.has_bias()) list(p.bias, 3, false, true);
}

// Whether the second is now part of the first.
bool joined(access &first, const access &second) noexcept {
  footprint &bytes = first.bytes;
  const bool without_gaps = bytes.pitch == bytes.run && second.bytes.pitch == second.bytes.run;
  if (!without_gaps || bytes.hi != second.bytes.lo || first.writes != second.writes || first.reads != second.reads ||
      first.exact != second.exact)
    return false;
  bytes.hi = second.bytes.hi;
  bytes.run = bytes.pitch = static_cast<std::int64_t>(bytes.hi - bytes.lo);
  return true;
}

[[noreturn]] void refuse_overlap(const char *name, const char *input, const footprint &read, const footprint &written) {
  throw error(SG_STATUS_INVALID_ARGUMENT, "%s->c overlaps %s->%s in memory (%p and %p)", name, name, input,
              reinterpret_cast<void *>(written.lo), reinterpret_cast<void *>(read.lo));
}

void require_apart(std::vector<owned_bytes> all, const char *what) {
  if (const auto found = find_conflict(std::move(all)))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s overlap in memory (%p and %p)", what,
                reinterpret_cast<void *>(found->first.bytes.lo), reinterpret_cast<void *>(found->second.bytes.lo));
}

}  // namespace

std::size_t list_accesses(const checked_gemm &g, access *out) {
  std::size_t count = 0;
  for_each_access(g, [&](const access &a, std::size_t) { out[count++] = a; });
  return count;
}

void access_list::add(const checked_gemm &g) {
  for_each_access(g, [&](const access &a, std::size_t which) { add(a, which); });
}

void access_list::add(const access &next, std::size_t which) {
  if (latest_[which] > 0 && joined(all_[latest_[which] - 1], next)) return;
  all_.push_back(next);
  latest_[which] = all_.size();
}

void check_overlap(const checked_gemm &g, const char *name, bool by_rows) {
  const problem &p = g.shape;
  if (p.no_product && !p.has_bias()) return;
  const char *const names[] = {by_rows ? "b" : "a", by_rows ? "a" : "b", "c", "bias"};  // what the caller calls them
  const auto where = [&](const operand &o, std::size_t which, std::int64_t item) {
    return footprint_of(o, p.batch, g.where.operands[which], item);
  };
  const operand *const operands[] = {&p.a, &p.b, &p.c, &p.bias};
  const auto is_used = [&](std::size_t which) { return which == 2 || (which == 3 ? p.has_bias() : !p.no_product); };
  if (!p.a.pointer_array && !p.b.pointer_array && !p.c.pointer_array) {
    const footprint written = where(p.c, 2, 0);
    for (const std::size_t which : {0, 1, 3}) {
      if (!is_used(which)) continue;
      const footprint read = where(*operands[which], which, 0);
      if (overlap(read, written)) refuse_overlap(name, names[which], read, written);
    }
    return;
  }
  std::vector<owned_bytes> all;
  for (std::size_t which = 0; which < 4; ++which)
    for (std::int64_t i = 0; is_used(which) && i < pieces_of(*operands[which], p.batch); ++i)
      all.push_back({where(*operands[which], which, i), which, which == 2});
  if (const auto found = find_conflict(std::move(all))) {
    const bool first_reads = !found->first.writes;
    const owned_bytes &read = first_reads ? found->first : found->second;
    const owned_bytes &written = first_reads ? found->second : found->first;
    refuse_overlap(name, names[read.owner < 4 ? read.owner : 0], read.bytes, written.bytes);
  }
}

void check_items_apart(const checked_gemm &g, const char *what) {
  std::vector<owned_bytes> written;
  for_each_access(g, [&](const access &a, std::size_t) {
    if (a.writes) written.push_back({a.bytes, written.size(), true});
  });
  require_apart(std::move(written), what);
}

void group_accesses::reserve(std::size_t products) {
  list_.reserve(3 * products);
  for (std::size_t which = 0; which < 3; ++which) bytes_[which].reserve(products);
}

void group_accesses::add(const access &a, std::size_t which) {
  list_.add(a, which);
  bytes_[which].push_back({a.bytes, products_, a.writes});
}

void group_accesses::add(const checked_gemm &g) {
  for_each_access(g, [&](const access &a, std::size_t which) { add(a, which); });
  ++products_;
}

void group_accesses::add(const access *accesses, std::size_t count) {
  for (std::size_t which = 0; which < count; ++which) add(accesses[which], which);
  ++products_;
}

void group_accesses::check_apart() {
  std::vector<owned_bytes> all = std::move(bytes_[0]);
  for (std::size_t which = 1; which < bytes_.size(); ++which)
    all.insert(all.end(), bytes_[which].begin(), bytes_[which].end());
  require_apart(std::move(all), "an operand that one of descs writes and an operand of another");
}

}  // namespace sg
