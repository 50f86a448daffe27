// SPDX-License-Identifier: Apache-2.0
#include "run/memory/pinned_memory.hpp"

#include <algorithm>
#include <iterator>

#include "base/error.hpp"

namespace sg {

namespace {
std::uintptr_t address_of(const void *memory) { return reinterpret_cast<std::uintptr_t>(memory); }
}  // namespace

pinned_memory::~pinned_memory() {
  for (const auto &[start, its] : allocated_)
    its.by->ops().host_free(its.by->handle(), reinterpret_cast<void *>(start));
  for (const auto &[start, its] : registered_)
    if (its.by->ops().host_unregister) its.by->ops().host_unregister(its.by->handle(), reinterpret_cast<void *>(start));
}

const device &pinned_memory::working() const noexcept {
  for (const auto &each : devices_)
    if (each->status() == SG_STATUS_OK) return *each;
  return *devices_.front();
}

void *pinned_memory::allocate(std::uint64_t bytes, int node) {
  if (bytes > INT64_MAX)
    throw error(SG_STATUS_OUT_OF_MEMORY, "@bytes is %llu, more than can be had",
                static_cast<unsigned long long>(bytes));
  const device &by = working();
  void *memory = by.host_alloc(std::max<std::uint64_t>(bytes, 1), node);
  try {
    const std::lock_guard lock(lock_);
    known_.add(memory, bytes, SG_MEMORY_PINNED);
    allocated_.emplace(address_of(memory), range{bytes, &by});
    allocated_bytes_ += bytes;
  } catch (...) {
    known_.remove(memory);
    by.ops().host_free(by.handle(), memory);
    throw;
  }
  return memory;
}

std::uint64_t pinned_memory::allocated_bytes() const noexcept {
  const std::lock_guard lock(lock_);
  return allocated_bytes_;
}

std::uint64_t pinned_memory::size_of(const void *memory) const {
  const std::lock_guard lock(lock_);
  const auto found = allocated_.find(address_of(memory));
  return found == allocated_.end() ? 0 : found->second.bytes;
}

void pinned_memory::free(void *memory) {
  if (!memory) return;
  const device *by = nullptr;
  {
    const std::lock_guard lock(lock_);
    const auto found = allocated_.find(address_of(memory));
    if (found == allocated_.end())
      throw error(SG_STATUS_INVALID_ARGUMENT, "@memory is %p, which sg_host_alloc did not give for this context",
                  memory);
    by = found->second.by;
    allocated_bytes_ -= found->second.bytes;
    allocated_.erase(found);
    known_.remove(memory);
  }
  by->ops().host_free(by->handle(), memory);
}

void pinned_memory::pin(void *memory, std::uint64_t bytes) {
  const std::uintptr_t start = address_of(memory);
  if (bytes > UINTPTR_MAX - start)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@bytes is %llu, beyond the end of memory",
                static_cast<unsigned long long>(bytes));
  const std::lock_guard lock(lock_);
  auto next = registered_.lower_bound(start);
  const bool meets_next = next != registered_.end() && next->first < start + bytes;
  const bool meets_previous =
      next != registered_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > start;
  if (meets_next || meets_previous)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@memory is %p, in a range that is registered already", memory);
  const device &by = working();
  const auto place = registered_.emplace(start, range{bytes, &by}).first;
  try {
    by.host_register(memory, bytes);
  } catch (...) {
    registered_.erase(place);
    throw;
  }
}

void pinned_memory::unpin(void *memory) {
  const std::lock_guard lock(lock_);
  const auto found = registered_.find(address_of(memory));
  if (found == registered_.end())
    throw error(SG_STATUS_INVALID_ARGUMENT, "@memory is %p, which is not the start of a registered range", memory);
  found->second.by->host_unregister(memory);
  registered_.erase(found);
}

}  // namespace sg
