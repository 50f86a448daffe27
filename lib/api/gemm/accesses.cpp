// SPDX-License-Identifier: Apache-2.0
#include "api/gemm/accesses.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "api/operands/conflict.hpp"
#include "api/operands/operand_bytes.hpp"
#include "base/error.hpp"

namespace sg {

namespace {

template <class Add>
void for_each_access(const checked_gemm &g, Add &&add) {
  const problem &p = g.shape;
  const auto list = [&](const operand &o, std::size_t which, bool writes, bool reads) {
    each_footprint(o, p.batch, g.where.parameters[which], [&](const footprint &bytes, bool exact) {
      add(access{bytes, writes, reads, exact}, which);
    });
  };
  if (!p.no_multiply) {
    list(p.a, 0, false, true);
    list(p.b, 1, false, true);
  }
  list(p.c, 2, true, !p.beta_zero);
  if (p.has_bias()) list(p.bias, 3, false, true);
}

// Extends the first by the second if they are adjacent.
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

[[noreturn]] void refuse_overlap(const char *name, const char *result, const char *input, const footprint &read,
                                 const footprint &written) {
  throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s overlaps @%s->%s in memory (%p and %p)", name, result, name, input,
              reinterpret_cast<void *>(written.lo), reinterpret_cast<void *>(read.lo));
}

}  // namespace

std::size_t list_accesses(const checked_gemm &g, access *out) {
  std::size_t count = 0, latest = operands_of_problem;
  bool one_each = true;
  for_each_access(g, [&](const access &a, std::size_t which) {
    one_each = one_each && which != latest;
    latest = which;
    if (one_each) out[count++] = a;
  });
  return one_each ? count : 0;
}

void access_list::add(const checked_gemm &g) {
  for_each_access(g, [&](const access &a, std::size_t which) { add(a, which); });
}

void access_list::add(const access &next, std::size_t which) {
  if (latest_[which] > 0 && joined(all_[latest_[which] - 1], next)) return;
  all_.push_back(next);
  latest_[which] = all_.size();
}

void check_overlap(const checked_gemm &g, const char *name, bool by_rows, const gemm_names &given) {
  const problem &p = g.shape;
  if (p.no_multiply && !p.has_bias() && !p.c.pointer_array) return;  // C alone, whose stride has been checked
  const char *const names[] = {by_rows ? given.b : given.a, by_rows ? given.a : given.b, given.c,
                               "bias"};  // the caller's names
  const operand *const operands[] = {&p.a, &p.b, &p.c, &p.bias};
  const auto is_used = [&](std::size_t which) { return which == 2 || (which == 3 ? p.has_bias() : !p.no_multiply); };
  if (!p.a.pointer_array && !p.b.pointer_array && !p.c.pointer_array) {
    access found[operands_of_problem];
    const std::size_t count = list_accesses(g, found);
    const access *const written = std::find_if(found, found + count, [](const access &a) { return a.writes; });
    bool may_meet = count == 0;
    std::size_t next = 0;
    for (std::size_t which = 0; which < std::size(operands) && count > 0; ++which) {
      if (!is_used(which)) continue;
      const access &read = found[next++];
      if (read.writes || !overlap(read.bytes, written->bytes)) continue;
      if (read.exact && written->exact) refuse_overlap(name, given.c, names[which], read.bytes, written->bytes);
      may_meet = true;
    }
    if (!may_meet) return;
    constexpr std::int64_t most_items = 1 << 20;
    if (p.batch > most_items)
      throw error(SG_STATUS_INVALID_ARGUMENT,
                  "@%s->batch is %lld, too many items to exclude that @%s->%s overlaps another operand", name,
                  static_cast<long long>(p.batch), name, given.c);
  }
  // Each item of C is an owner of its own, after the inputs.
  std::vector<owned_bytes> all;
  std::size_t owner_of_item = std::size(operands);
  for (std::size_t which = 0; which < std::size(operands); ++which) {
    if (!is_used(which)) continue;
    each_item(*operands[which], p.batch, g.where.parameters[which], [&](const footprint &bytes) {
      all.push_back({bytes, which == 2 ? owner_of_item++ : which, which == 2});
    });
  }
  const auto found = find_conflict(std::move(all));
  if (!found) return;
  if (found->first.writes && found->second.writes)
    throw error(SG_STATUS_INVALID_ARGUMENT, "items of @%s->c_array overlap in memory (%p and %p)", name,
                reinterpret_cast<void *>(found->first.bytes.lo), reinterpret_cast<void *>(found->second.bytes.lo));
  const owned_bytes &read = found->first.writes ? found->second : found->first;
  const owned_bytes &written = found->first.writes ? found->first : found->second;
  refuse_overlap(name, given.c, names[read.owner == several_owners ? 0 : read.owner], read.bytes, written.bytes);
}

void group_accesses::reserve(std::size_t gemms) {
  list_.reserve(3 * gemms);
  for (std::size_t which = 0; which < 3; ++which) bytes_[which].reserve(gemms);
}

void group_accesses::add(const access &a, std::size_t which, std::size_t index) {
  list_.add(a, which);
  bytes_[which].push_back({a.bytes, index, a.writes});
}

void group_accesses::add(const checked_gemm &g, std::size_t index) {
  for_each_access(g, [&](const access &a, std::size_t which) { add(a, which, index); });
}

void group_accesses::add(const access *accesses, std::size_t count, std::size_t index) {
  for (std::size_t which = 0; which < count; ++which) add(accesses[which], which, index);
}

void group_accesses::check_disjoint(const char *name) {
  std::vector<owned_bytes> all = std::move(bytes_[0]);
  for (std::size_t which = 1; which < bytes_.size(); ++which)
    all.insert(all.end(), bytes_[which].begin(), bytes_[which].end());
  const auto found = find_conflict(std::move(all));
  if (!found) return;
  const bool is_first = found->first.writes && (!found->second.writes || found->first.owner > found->second.owner);
  const owned_bytes &written = is_first ? found->first : found->second,
                    &other = is_first ? found->second : found->first;
  void *const at = reinterpret_cast<void *>(written.bytes.lo), *const also = reinterpret_cast<void *>(other.bytes.lo);
  if (other.writes)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s[%zu]->c overlaps @%s[%zu]->c in memory (%p and %p)", name,
                written.owner, name, other.owner, at, also);
  if (other.owner == several_owners)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s[%zu]->c overlaps what other GEMMs of the group read (%p and %p)", name,
                written.owner, at, also);
  throw error(SG_STATUS_INVALID_ARGUMENT, "@%s[%zu]->c overlaps what @%s[%zu] reads (%p and %p)", name, written.owner,
              name, other.owner, at, also);
}

}  // namespace sg
