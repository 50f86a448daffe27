// SPDX-License-Identifier: Apache-2.0
#include "api/gemm/submission_cache.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "api/context_of.hpp"
#include "api/gemm/accesses.hpp"
#include "api/operands/operand_bytes.hpp"
#include "base/dtype.hpp"
#include "base/thread_owned.hpp"

namespace sg {

namespace {

// Descriptors are compared in whole words, members of later releases included. Gaps would make equal ones differ, no
// others equal.
static_assert(std::is_trivially_copyable_v<sg_gemm_desc> && sizeof(sg_gemm_desc) % sizeof(std::uint64_t) == 0);

constexpr std::size_t words = sizeof(sg_gemm_desc) / sizeof(std::uint64_t);

// All bits except addresses; the number of operands tells whether there is a bias.
constexpr std::array<std::uint64_t, words> form_bits = [] {
  std::array<std::uint64_t, words> bits;
  bits.fill(~std::uint64_t{0});
  for (const std::size_t offset : {offsetof(sg_gemm_desc, a.data), offsetof(sg_gemm_desc, b.data),
                                   offsetof(sg_gemm_desc, c.data), offsetof(sg_gemm_desc, bias)})
    bits[offset / sizeof bits[0]] = 0;
  return bits;
}();

// `y` has the alignment of form_.
bool same_form(const sg_gemm_desc &x, const sg_gemm_desc &y) noexcept {
  std::uint64_t difference = 0;
  const char *const known = std::assume_aligned<16>(reinterpret_cast<const char *>(&y));
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t one, other;
    std::memcpy(&one, reinterpret_cast<const char *>(&x) + i * sizeof one, sizeof one);
    std::memcpy(&other, known + i * sizeof other, sizeof other);
    difference |= (one ^ other) & form_bits[i];
  }
  return difference == 0;
}

// Multiplies each part by an odd constant.
std::uint64_t mix(const context &on, const sg_gemm_desc &d, chosen_by by) noexcept {
  const auto word = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const std::uint64_t choices = word(d.op_a) | word(d.op_b) << 4 | word(d.compute) << 8 | word(d.a.dtype) << 16 |
                                word(d.c.dtype) << 24 | word(d.c.layout) << 32 | word(d.activation) << 40 |
                                word(d.bias != nullptr) << 48 | word(by.latency) << 49;
  const std::uint64_t lds = word(d.a.ld) + 3 * word(d.b.ld) + 5 * word(d.c.ld);
  const std::uint64_t scalars = std::bit_cast<std::uint64_t>(d.alpha.re) + 3 * std::bit_cast<std::uint64_t>(d.beta.re);
  const std::uint64_t sum = word(d.c.rows) * 0x9E3779B97F4A7C15ull + word(d.c.cols) * 0xC2B2AE3D27D4EB4Full +
                            word(d.a.rows) * 0x165667B19E3779F9ull + word(d.a.cols) * 0xD6E8FEB86659FD93ull +
                            lds * 0xFF51AFD7ED558CCDull + (choices + word(d.batch)) * 0xA0761D6478BD642Full +
                            (scalars + on.number() + by.plan) * 0xE7037ED1A0B428DBull;
  return (sum ^ sum >> 32) * 0x9E3779B97F4A7C15ull;
}

// Larger plans are not cached: a look-up costs little beside their run.
constexpr std::size_t most_commands = 128;

}  // namespace

// A thread's cache.
struct submission_cache {
  static constexpr std::size_t ways = 4;
  struct set {
    cached_gemm entries[ways];
    std::size_t next = 0;
  };
  set sets[16];
  cached_gemm *latest = nullptr;  // latest found or added: GEMMs of one form often follow each other
  cached_group groups[4];
  std::size_t next_group = 0;

  set &set_of(std::uint64_t mixed) noexcept { return sets[mixed >> 60]; }
  static submission_cache *own() noexcept { return thread_owned<submission_cache>::get(); }
};

cached_gemm *cached_gemm::find(const context &on, const sg_gemm_desc &desc, chosen_by by) noexcept {
  submission_cache *const own = submission_cache::own();
  if (!own || !own->latest) return nullptr;
  if (own->latest->has_form_of(on, desc, by)) return own->latest;
  const std::uint64_t mixed = mix(on, desc, by);
  for (cached_gemm &one : own->set_of(mixed).entries)
    if (one.mixed_ == mixed && one.has_form_of(on, desc, by)) return own->latest = &one;
  return nullptr;
}

cached_gemm *cached_gemm::entry_for(const context &on, const sg_gemm_desc &desc, chosen_by by) noexcept {
  submission_cache *const own = submission_cache::own();
  if (!own) return nullptr;
  const std::uint64_t mixed = mix(on, desc, by);
  submission_cache::set &set = own->set_of(mixed);
  for (cached_gemm &one : set.entries)
    if (one.mixed_ == mixed) return own->latest = &one;
  return own->latest = &set.entries[set.next++ % submission_cache::ways];
}

bool cached_gemm::has_form_of(const context &on, const sg_gemm_desc &desc, chosen_by by) const noexcept {
  return context_ == on.number() && by_ == by && (desc.bias != nullptr) == (count_ == 4) && same_form(desc, form_);
}

std::optional<cached_gemm::instance> cached_gemm::rebind(const context &on, const sg_gemm_desc &desc) const noexcept {
  const bool by_rows = desc.c.layout == SG_LAYOUT_ROW_MAJOR;
  const void *const data[] = {by_rows ? desc.b.data : desc.a.data, by_rows ? desc.a.data : desc.b.data, desc.c.data,
                              desc.bias};
  std::optional<instance> now(at_null_);
  const auto suits = [&](int i) {
    const auto address = reinterpret_cast<std::uintptr_t>(data[i]);
    if (!has_address(data[i]) || (address & unaligned_[i]) != 0 ||
        on.memory().of(data[i], static_cast<std::uint64_t>(bytes_[i]), found_[i]) != spaces_[i])
      return false;
    now->where.parameters[i].base = static_cast<char *>(const_cast<void *>(data[i]));
    now->accesses[i].bytes.lo += address;
    now->accesses[i].bytes.hi += address;
    return true;
  };
  const auto meets_c = [&](int i) { return overlap(now->accesses[i].bytes, now->accesses[2].bytes); };
  if (!(suits(0) && suits(1) && suits(2)) || meets_c(0) || meets_c(1) || (count_ == 4 && (!suits(3) || meets_c(3))))
    now.reset();
  return now;
}

bool cached_gemm::remember(const context &on, const sg_gemm_desc &desc, const checked_gemm &gemm, chosen_by by) {
  const problem &p = gemm.shape;
  if (gemm.nothing_to_do || p.no_multiply || !gemm.pointers.empty()) return false;
  context_ = on.number();
  by_ = by;
  form_ = desc;
  mixed_ = mix(on, desc, by);
  at_null_.where = gemm.where;
  count_ = static_cast<int>(list_accesses(gemm, at_null_.accesses));
  if (count_ == 0) {
    context_ = 0;
    return false;
  }
  const operand *const operands[] = {&p.a, &p.b, &p.c, &p.bias};
  for (int i = 0; i < count_; ++i) {
    const operand &o = *operands[i];
    const auto address = reinterpret_cast<std::uintptr_t>(at_null_.where.parameters[i].base);
    at_null_.where.parameters[i].base = nullptr;
    at_null_.accesses[i].bytes.lo -= address;
    at_null_.accesses[i].bytes.hi -= address;
    bytes_[i] = total_bytes(o, p.batch, "an operand");
    unaligned_[i] = static_cast<std::uintptr_t>(size_of(o.type) / (is_complex(o.type) ? 2 : 1)) - 1;
    spaces_[i] = o.space;
  }
  return true;
}

bool cached_gemm::keeps(const sg::program &compiled) noexcept {
  return compiled.schedule->commands.size() <= most_commands;
}

bool cached_gemm::is_same(const cached_gemm &other) const noexcept {
  return context_ == other.context_ && by_ == other.by_ && mixed_ == other.mixed_ && count_ == other.count_ &&
         std::equal(spaces_, spaces_ + count_, other.spaces_) && same_form(form_, other.form_);
}

const cached_group *cached_group::find(const context &on, const sg_gemm_desc *descs, std::size_t count, binding &where,
                                       group_accesses &accesses) {
  const submission_cache *const own = submission_cache::own();
  if (!own || descs->struct_size != sizeof *descs) return nullptr;
  for (const cached_group &one : own->groups) {
    if (!one.program_ || one.which_.size() != count) continue;
    if (one.rebind(on, descs, where, accesses)) return &one;
    accesses = {};  // some may be equal
  }
  return nullptr;
}

bool cached_group::rebind(const context &on, const sg_gemm_desc *descs, binding &where,
                          group_accesses &accesses) const {
  const std::size_t count = which_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const cached_gemm &gemm = distinct_[which_[i]];
    if (!gemm.has_form_of(on, descs[i])) return false;
    if (i == 0) {
      where.clear();  // of a group that was tried before
      where.more_parameters.reserve(binding::few * (count - 1));
      where.more_scalars.reserve(count - 1);
      accesses.reserve(count);
    }
    const auto now = gemm.rebind(on, descs[i]);
    if (!now) return false;
    if (i == 0)
      where.first = now->where;
    else
      where.add_group(now->where);
    accesses.add(now->accesses, static_cast<std::size_t>(gemm.operand_count()), i);
  }
  return true;
}

void cached_group::add(const context &on, const sg_gemm_desc &desc, const checked_gemm &gemm) {
  if (!is_known_) return;
  cached_gemm one;
  is_known_ = which_.size() < most_gemms && one.remember(on, desc, gemm);
  if (!is_known_) return;
  auto same = std::find_if(distinct_.begin(), distinct_.end(), [&](const cached_gemm &x) { return x.is_same(one); });
  if (same == distinct_.end()) {
    is_known_ = distinct_.size() < most_distinct;
    if (!is_known_) return;
    same = distinct_.insert(same, std::move(one));
  }
  which_.push_back(static_cast<std::uint8_t>(same - distinct_.begin()));
}

void cached_group::remember(cached_group &&made, const std::shared_ptr<const sg::program> &compiled) noexcept {
  if (!made.is_known_ || compiled->schedule->commands.size() > most_gemms) return;
  submission_cache *const own = submission_cache::own();
  if (!own) return;
  cached_group &cache_entry = own->groups[own->next_group++ % std::size(own->groups)];
  cache_entry = std::move(made);
  cache_entry.program_ = compiled;
}

}  // namespace sg
