// SPDX-License-Identifier: Apache-2.0
#include "api/submission/cached_submission.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "api/context_of.hpp"
#include "api/operands/operand_bytes.hpp"
#include "base/thread_owned.hpp"

namespace sg {

namespace {

constexpr std::size_t most_bytes_of_desc = 512, most_accesses = 32;

struct cached_operand {
  std::uint32_t field = 0;  // offset of its address in the descriptor
  std::uint32_t parameter = 0;
  std::uint32_t first = 0, count = 0;  // accesses, whose addresses are relative
  std::int64_t start = 0;              // of its parameter, relative
  std::size_t is = operand_set::none;
  std::uint64_t bytes = 0;
  std::uintptr_t unaligned = 0;  // address bits that must be 0
  memory_space space;
  mutable memory_map::memo found;
};

// A submission with its operands at address 0.
class cached_submission {
 public:
  // `runs`: the number of the plan made ahead that it runs; 0: none.
  bool is_of(const context &on, const void *desc, std::size_t size, std::uint64_t runs) const noexcept {
    if (context_ != on.number() || size != size_ || runs_ != runs) return false;
    // Address by address: what is between them must be equal.
    std::size_t at = 0;
    const auto *given = static_cast<const std::byte *>(desc);
    for (const cached_operand &each : by_field_) {
      if (std::memcmp(given + at, desc_ + at, each.field - at) != 0) return false;
      at = each.field + sizeof(void *);
    }
    return std::memcmp(given + at, desc_ + at, size - at) == 0;
  }

  // Sets the addresses; false: they need the checks of a new submission.
  bool bind(const context &on, const void *desc, binding &where, access *accesses) const {
    where.first.scalars = scalars_;
    where.more_scalars = more_scalars_;
    std::uintptr_t addresses[operand_set::most_operands];
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const cached_operand &each = operands_[i];
      const void *given = nullptr;
      std::memcpy(&given, static_cast<const std::byte *>(desc) + each.field, sizeof given);
      const auto address = addresses[i] = reinterpret_cast<std::uintptr_t>(given);
      if (!has_address(given) || (address & each.unaligned) != 0) return false;
      char *const base = static_cast<char *>(const_cast<void *>(given)) + each.start;
      if (on.memory().of(base, each.bytes, each.found) != each.space) return false;
      where.set_parameter(each.parameter).base = base;
      if (each.is != operand_set::none) {
        if (address != addresses[each.is]) return false;
        continue;
      }
      for (std::uint32_t j = each.first; j < each.first + each.count; ++j) {
        access *const made = ::new (accesses + j) access(accesses_[j]);
        made->bytes.lo += address;
        made->bytes.hi += address;
      }
    }
    for (const std::uint8_t i : written_)
      for (std::size_t j = 0; j < accesses_.size(); ++j)
        if (owners_[i] != owners_[j] && accesses[i].bytes.lo < accesses[j].bytes.hi &&
            accesses[j].bytes.lo < accesses[i].bytes.hi && overlap(accesses[i].bytes, accesses[j].bytes))
          return false;
    return true;
  }

  bool remember(const context &on, const void *desc, std::size_t size, const operand_set &given,
                const std::shared_ptr<const program> &plan, std::uint64_t runs) {
    const binding &where = given.where();
    context_ = 0;
    const std::span<const operand_set::bound> bound = given.operands();
    const std::span<const access> accesses = given.accesses();
    if (size > most_bytes_of_desc || bound.size() > operand_set::most_operands || accesses.size() > most_accesses)
      return false;
    const auto *begin = static_cast<const std::byte *>(desc);
    operands_.clear();
    accesses_.assign(accesses.begin(), accesses.end());
    owners_.assign(accesses.size(), 0);
    for (const operand_set::bound &each : bound) {
      const auto *field = reinterpret_cast<const std::byte *>(each.field);
      if (!field || field < begin || field >= begin + size) return false;
      const auto address = reinterpret_cast<std::uintptr_t>(*each.field);
      cached_operand made;
      made.field = static_cast<std::uint32_t>(field - begin);
      made.parameter = static_cast<std::uint32_t>(each.parameter);
      made.first = each.first, made.count = each.count;
      made.start = where.parameter(each.parameter).base - static_cast<const char *>(*each.field);
      made.is = each.is;
      made.bytes = static_cast<std::uint64_t>(each.bytes);
      made.unaligned = static_cast<std::uintptr_t>(each.alignment) - 1;
      made.space = each.space;
      if (each.is == operand_set::none)
        for (std::uint32_t j = each.first; j < each.first + each.count; ++j) {
          accesses_[j].bytes.lo -= address;
          accesses_[j].bytes.hi -= address;
          owners_[j] = static_cast<std::uint8_t>(operands_.size());
        }
      operands_.push_back(made);
    }
    written_.clear();
    for (std::size_t i = 0; i < accesses_.size(); ++i)
      if (accesses_[i].writes) written_.push_back(static_cast<std::uint8_t>(i));
    by_field_ = operands_;
    std::ranges::sort(by_field_, {}, &cached_operand::field);
    const auto is_same = [](const cached_operand &x, const cached_operand &y) { return x.field == y.field; };
    by_field_.erase(std::unique(by_field_.begin(), by_field_.end(), is_same), by_field_.end());
    std::memcpy(desc_, desc, size);
    size_ = size;
    scalars_ = where.first.scalars;
    more_scalars_ = where.more_scalars;
    program_ = runs == 0 ? plan : nullptr;
    runs_ = runs;
    context_ = on.number();
    return true;
  }

  const std::shared_ptr<const program> &plan() const noexcept { return program_; }
  std::size_t access_count() const noexcept { return accesses_.size(); }

 private:
  std::uint64_t context_ = 0;  // its context's number; 0: none
  std::size_t size_ = 0;
  std::vector<cached_operand> operands_, by_field_;
  std::vector<access> accesses_;
  std::vector<std::uint8_t> owners_;   // by access: its operand
  std::vector<std::uint8_t> written_;  // indices of accesses
  scalar_pair scalars_;
  std::vector<scalar_pair> more_scalars_;
  std::shared_ptr<const program> program_;
  std::uint64_t runs_ = 0;
  std::byte desc_[most_bytes_of_desc];
};

// Of a thread and an operation: the latest ones. Few, because a look-up compares each.
struct recent_submissions {
  static constexpr std::size_t most = 8;
  std::vector<cached_submission> all;
  std::size_t next = 0, latest = 0;
};

struct recent_of_thread {
  static constexpr std::size_t operations = 64;
  recent_submissions by_operation[operations];

  static recent_submissions *of(sg_operation operation) noexcept {
    recent_of_thread *const own = thread_owned<recent_of_thread>::get();
    return own && static_cast<std::size_t>(operation) < operations ? &own->by_operation[operation] : nullptr;
  }
};

}  // namespace

bool repeat_submission(context &on, sg_operation operation, const void *desc, std::size_t size, checked_submit &order,
                       sg_job **out_job) {
  if (!order.repeats()) return false;
  const std::uint64_t runs = order.number_of_plan();
  recent_submissions *const recent = recent_of_thread::of(operation);
  if (!recent || recent->all.empty()) return false;
  if (!recent->all[recent->latest].is_of(on, desc, size, runs)) {
    std::size_t at = 0;
    while (at < recent->all.size() && !recent->all[at].is_of(on, desc, size, runs)) ++at;
    if (at == recent->all.size()) return false;
    recent->latest = at;
  }
  const cached_submission &known = recent->all[recent->latest];
  alignas(access) std::byte room[most_accesses * sizeof(access)];  // constructed as far as they are needed
  auto *const accesses = reinterpret_cast<access *>(room);
  ref<job> work = on.new_job();
  if (!known.bind(on, desc, work->operands, accesses)) return false;
  work->give_work(runs == 0 ? known.plan() : *order.plan_to_run());
  order.go(std::move(work), accesses, known.access_count(), out_job);
  return true;
}

void remember_submission(const context &on, sg_operation operation, const void *desc, std::size_t size,
                         const operand_set &operands, const std::shared_ptr<const program> &plan,
                         const checked_submit &order) noexcept {
  constexpr std::size_t most_commands = 1 << 13;  // a larger program is not kept by threads that may be idle
  if (!order.repeats() || plan->schedule->commands.size() > most_commands) return;
  recent_submissions *const recent = recent_of_thread::of(operation);
  if (!recent) return;
  try {
    if (recent->all.size() < recent_submissions::most) {
      recent->all.emplace_back();
      recent->next = recent->all.size() - 1;
    } else {
      recent->next = (recent->next + 1) % recent_submissions::most;
    }
    if (recent->all[recent->next].remember(on, desc, size, operands, plan, order.number_of_plan()))
      recent->latest = recent->next;
  } catch (const std::bad_alloc &) {  // it is only not remembered
  }
}

}  // namespace sg
