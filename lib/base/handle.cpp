// SPDX-License-Identifier: Apache-2.0
#include "base/handle.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <new>

namespace sg {
namespace {

// A handle, from the most significant bits: 4 bits type (never 0, so no address of user space is a handle), the lowest
// 6 bits of the process epoch, 28 bits generation, 26 bits slot.
constexpr int slot_bits = 26, generation_bits = 28, epoch_bits = 6;
constexpr std::uint64_t slot_mask = (1u << slot_bits) - 1;
constexpr std::uint64_t generation_mask = (1u << generation_bits) - 1;
constexpr std::uint64_t epoch_mask = (1u << epoch_bits) - 1;

// A slot's word, from the most significant bits: 28 bits generation, 16 bits pins (calls that use the slot now), 20
// bits references. References 0: the handle is released. The slot is freed when both counts are 0.
constexpr std::uint64_t one_reference = 1, one_pin = 1u << 20, reference_mask = one_pin - 1;
constexpr int generation_shift = 36;
constexpr std::uint64_t pin_mask = ((1ull << generation_shift) - 1) & ~reference_mask;

struct slot {
  std::atomic<std::uint64_t> word{0};
  // The original type and complete process epoch; the handle itself comes from the caller.
  std::atomic<std::uint64_t> identity{0};
  std::atomic<object *> target{nullptr};
  std::atomic<std::uint32_t> next_free{0};
};

constexpr std::uint32_t chunk_slots = 1024;
constexpr std::uint32_t chunks = (1u << slot_bits) / chunk_slots;
using chunk = std::array<slot, chunk_slots>;

// Never destroyed: threads may use it while the process exits.
std::array<std::atomic<chunk *>, chunks> g_chunks;
std::atomic<std::uint32_t> g_slots_begun{1};  // slot 0 is not used: it ends the free list
std::atomic<std::uint64_t> g_free{0};         // first free slot; upper half: a count against ABA
std::atomic<std::uint64_t> g_epoch{0};        // forks between the first process and this one

std::uint64_t identity_of(object_type type) noexcept {
  return g_epoch.load(std::memory_order_relaxed) << 4 | static_cast<std::uint64_t>(type);
}

slot &slot_at(std::uint32_t index) noexcept {
  return (*g_chunks[index / chunk_slots].load(std::memory_order_acquire))[index % chunk_slots];
}

std::uint32_t take_slot() {
  std::uint64_t head = g_free.load(std::memory_order_acquire);
  while (const auto index = static_cast<std::uint32_t>(head)) {
    const std::uint64_t next = slot_at(index).next_free.load(std::memory_order_relaxed);
    if (!g_free.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | next, std::memory_order_acq_rel)) continue;
    __builtin_prefetch(&slot_at(static_cast<std::uint32_t>(next)), 1);  // with many slots in use it has left the caches
    return index;
  }
  std::uint32_t index = g_slots_begun.load(std::memory_order_relaxed);
  do {
    if (index > slot_mask) throw std::bad_alloc();
    auto &place = g_chunks[index / chunk_slots];
    if (!place.load(std::memory_order_acquire)) {
      auto fresh = std::make_unique<chunk>();
      chunk *none = nullptr;
      if (place.compare_exchange_strong(none, fresh.get(), std::memory_order_acq_rel))
        static_cast<void>(fresh.release());  // owned by the table
    }
  } while (!g_slots_begun.compare_exchange_weak(index, index + 1, std::memory_order_acq_rel));
  return index;
}

void give_slot(std::uint32_t index) noexcept {
  std::uint64_t head = g_free.load(std::memory_order_relaxed);
  do {
    slot_at(index).next_free.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
  } while (!g_free.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | index, std::memory_order_acq_rel));
}

struct decoded {
  slot *where = nullptr;
  std::uint32_t index = 0;
  std::uint64_t generation = 0;
};

decoded decode(handle_bits handle, object_type type) noexcept {
  const auto index = static_cast<std::uint32_t>(handle & slot_mask);
  const std::uint64_t epoch = (handle >> (slot_bits + generation_bits)) & epoch_mask;
  if (handle >> 60 != static_cast<std::uint64_t>(type) || index == 0 ||
      index >= g_slots_begun.load(std::memory_order_acquire) || epoch != (g_epoch.load() & epoch_mask))
    return {};
  slot &where = slot_at(index);
  if (where.identity.load(std::memory_order_acquire) != identity_of(type)) return {};
  return {&where, index, (handle >> slot_bits) & generation_mask};
}

// Changes a live slot's word by `change`; false if the handle is not alive.
bool change_word(const decoded &d, std::uint64_t change) noexcept {
  std::uint64_t word = d.where->word.load(std::memory_order_acquire);
  do {
    if (word >> generation_shift != d.generation || (word & reference_mask) == 0) return false;
    if (change == one_reference && (word & reference_mask) == reference_mask) return false;
  } while (!d.where->word.compare_exchange_weak(word, word + change, std::memory_order_acq_rel));
  return true;
}

// Removes one pin. Without pins and references no other thread changes the word, so this thread frees the slot.
void unpin(const decoded &d) noexcept {
  const std::uint64_t left = d.where->word.fetch_sub(one_pin, std::memory_order_acq_rel) - one_pin;
  if ((left & (reference_mask | pin_mask)) != 0) return;
  object *target = d.where->target.exchange(nullptr, std::memory_order_acq_rel);
  d.where->word.store(((d.generation + 1) & generation_mask) << generation_shift, std::memory_order_release);
  give_slot(d.index);
  target->drop_ref();
}

}  // namespace

handle_bits make_handle(ref<object> object) {
  const std::uint32_t index = take_slot();
  slot &s = slot_at(index);
  const auto type = static_cast<std::uint64_t>(object->type());
  const std::uint64_t generation = s.word.load(std::memory_order_relaxed) >> generation_shift;
  s.identity.store(identity_of(object->type()), std::memory_order_relaxed);
  s.target.store(object.release(), std::memory_order_relaxed);
  s.word.store(generation << generation_shift | one_reference, std::memory_order_release);
  return type << 60 | (g_epoch.load() & epoch_mask) << (slot_bits + generation_bits) | generation << slot_bits | index;
}

bool retain_handle(handle_bits handle, object_type type) noexcept {
  const decoded d = decode(handle, type);
  return d.where && change_word(d, one_reference);
}

bool release_handle(handle_bits handle, object_type type) noexcept {
  const decoded d = decode(handle, type);
  // Pins first, so that the slot cannot be freed and reused between the check and the change.
  if (!d.where || !change_word(d, one_pin - one_reference)) return false;
  unpin(d);
  return true;
}

ref<object> find_object(handle_bits handle, object_type type) noexcept {
  const decoded d = decode(handle, type);
  if (!d.where || !change_word(d, one_pin)) return {};
  auto result = ref<object>::share(d.where->target.load(std::memory_order_acquire));
  unpin(d);
  return result;
}

object *pin_handle(handle_bits handle, object_type type) noexcept {
  const decoded d = decode(handle, type);
  if (!d.where || !change_word(d, one_pin)) return nullptr;
  return d.where->target.load(std::memory_order_acquire);
}

void unpin_handle(handle_bits handle) noexcept {
  const auto index = static_cast<std::uint32_t>(handle & slot_mask);
  unpin({&slot_at(index), index, (handle >> slot_bits) & generation_mask});
}

void invalidate_all_handles() noexcept { g_epoch.fetch_add(1); }

}  // namespace sg
