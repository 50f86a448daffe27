// SPDX-License-Identifier: Apache-2.0
#include "address_space.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "failure.hpp"

namespace sg::sim {

namespace {

using ull = unsigned long long;

// New device memory reads as NaN in every floating-point format, so that reads of uninitialized memory show in the
// result. Only the head of a large allocation, so that unused pages stay unmapped.
constexpr std::uint64_t poisoned_bytes = 64 << 20;
constexpr int poison = 0xff;

// The entry of a table of ranges that contains `at`, or the last one before it, or end().
template <class Table>
auto at_or_before(Table &table, std::uintptr_t at) {
  auto next = table.upper_bound(at);
  return next == table.begin() ? table.end() : std::prev(next);
}

bool inside(std::uintptr_t base, std::uint64_t size, std::uintptr_t at, std::uint64_t bytes) {
  return at >= base && at - base <= size && bytes <= size - (at - base);
}

template <class Table>
bool touches(Table &table, std::uintptr_t at, std::uint64_t bytes) {
  const auto before = at_or_before(table, at);
  if (before != table.end() && at - before->first < before->second.bytes) return true;
  const auto next = table.upper_bound(at);
  return next != table.end() && next->first - at < bytes;
}

}  // namespace

mapping::mapping(std::uint64_t bytes, int protection) : bytes_(bytes) {
  void *data = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    throw failure(SG_STATUS_OUT_OF_MEMORY, "the host has no %llu bytes for the simulated device", ull(bytes));
  data_ = static_cast<std::byte *>(data);
}

mapping::mapping(mapping &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

mapping &mapping::operator=(mapping &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

mapping::~mapping() {
  if (data_) munmap(data_, bytes_);
}

void *address_space::device_alloc(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > limit_ - used_) throw failure(SG_STATUS_OUT_OF_MEMORY, "it has %llu in all", ull(limit_));
  if (bytes > piece_)
    throw failure(SG_STATUS_OUT_OF_MEMORY, "planned fault: %llu bytes of device memory in one piece, %llu are the most",
                  ull(bytes), ull(piece_));
  allocation made;
  made.bytes = bytes;
  made.handle = mapping(std::max<std::uint64_t>(bytes, 1), PROT_NONE);
  if (backed_) {
    made.store = mapping(std::max<std::uint64_t>(bytes, 1), PROT_READ | PROT_WRITE);
    std::memset(made.store.data(), poison, std::min(bytes, poisoned_bytes));
  }
  void *memory = made.handle.data();
  allocations_.emplace(reinterpret_cast<address>(memory), std::move(made));
  used_ += bytes;
  return memory;
}

void address_space::device_free(void *memory) noexcept {
  std::lock_guard lock(mutex_);
  const auto found = allocations_.find(reinterpret_cast<address>(memory));
  if (found == allocations_.end()) return;
  used_ -= found->second.bytes;
  allocations_.erase(found);
}

std::uint64_t address_space::device_free_bytes() const {
  std::lock_guard lock(mutex_);
  return limit_ - used_;
}

void *address_space::pinned_alloc(std::uint64_t bytes) {
  host_range range{bytes, mapping(std::max<std::uint64_t>(bytes, 1), PROT_READ | PROT_WRITE)};
  void *memory = range.owned.data();
  std::lock_guard lock(mutex_);
  pinned_.emplace(reinterpret_cast<address>(memory), std::move(range));
  return memory;
}

void address_space::pinned_free(void *memory) noexcept {
  std::lock_guard lock(mutex_);
  const auto found = pinned_.find(reinterpret_cast<address>(memory));
  if (found != pinned_.end() && found->second.owned.data()) pinned_.erase(found);
}

void address_space::pin(void *memory, std::uint64_t bytes) {
  const address at = reinterpret_cast<address>(memory);
  std::lock_guard lock(mutex_);
  if (touches(allocations_, at, bytes))
    throw failure(SG_STATUS_INVALID_ARGUMENT, "[%p, +%llu) to be registered is device memory", memory, ull(bytes));
  if (touches(pinned_, at, bytes))
    throw failure(SG_STATUS_INVALID_ARGUMENT, "[%p, +%llu) overlaps memory that is pinned already", memory, ull(bytes));
  pinned_.emplace(at, host_range{bytes, mapping()});
}

void address_space::unpin(void *memory) {
  std::lock_guard lock(mutex_);
  const auto found = pinned_.find(reinterpret_cast<address>(memory));
  if (found == pinned_.end() || found->second.owned.data())
    throw failure(SG_STATUS_INVALID_ARGUMENT, "%p is not the start of registered memory", memory);
  pinned_.erase(found);
}

sg_memory_kind address_space::kind_of(const void *memory, std::uint64_t bytes) const noexcept {
  const address at = reinterpret_cast<address>(memory);
  const auto holds = [&](const auto &table) {
    const auto found = at_or_before(table, at);
    return found != table.end() && inside(found->first, found->second.bytes, at, bytes);
  };
  std::lock_guard lock(mutex_);
  if (holds(allocations_)) return SG_MEMORY_DEVICE;
  return holds(pinned_) ? SG_MEMORY_PINNED : SG_MEMORY_PAGEABLE;
}

std::byte *address_space::device_bytes(const void *memory, std::uint64_t bytes, const char *what) const {
  const address at = reinterpret_cast<address>(memory);
  std::lock_guard lock(mutex_);
  const auto found = at_or_before(allocations_, at);
  if (found == allocations_.end() || at - found->first >= found->second.bytes)
    throw failure(SG_STATUS_BACKEND_FAILURE, "%s: [%p, +%llu) is not memory of this device", what, memory, ull(bytes));
  if (!inside(found->first, found->second.bytes, at, bytes))
    throw failure(SG_STATUS_BACKEND_FAILURE, "%s: [%p, +%llu) reaches past its allocation [%p, +%llu)", what, memory,
                  ull(bytes), static_cast<void *>(found->second.handle.data()), ull(found->second.bytes));
  return backed_ ? found->second.store.data() + (at - found->first) : nullptr;
}

std::byte *address_space::host_bytes(const void *memory, std::uint64_t bytes, const char *what) const {
  std::lock_guard lock(mutex_);
  if (touches(allocations_, reinterpret_cast<address>(memory), bytes))
    throw failure(SG_STATUS_BACKEND_FAILURE, "%s: [%p, +%llu) is device memory where host memory belongs", what, memory,
                  ull(bytes));
  return static_cast<std::byte *>(const_cast<void *>(memory));
}

}  // namespace sg::sim
