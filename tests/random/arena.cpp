// SPDX-License-Identifier: Apache-2.0
#include "arena.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace sg_test::random_tests {

namespace {

// Simulated devices write to all of their memory when it is allocated.
constexpr std::size_t part_bytes = std::size_t(96) << 20, part_bytes_of_several = std::size_t(16) << 20;
constexpr std::size_t neighbour_bytes = 64;

}  // namespace

void require_ok(sg_status status, const char *what) {
  if (status == SG_STATUS_OK) return;
  throw std::runtime_error(std::string(what) + ": " + sg_status_name(status) + ": " + sg_last_error_message());
}

block arena::shared_part::take(std::size_t bytes) {
  const std::size_t start = (used + neighbour_bytes + 15) / 16 * 16, end = start + bytes;
  if (end + neighbour_bytes > size) throw too_little_memory();
  gaps.push_back({used, start});
  std::memset(image + used, untouched, end + neighbour_bytes - used);
  used = end;
  dirty = std::max(dirty, end + neighbour_bytes);
  return {image + start, address + start, bytes};
}

void arena::shared_part::clear() {
  used = dirty = 0;
  gaps.clear();
}

bool arena::shared_part::gaps_untouched() const {
  const auto is_untouched = [this](std::size_t from, std::size_t to) {
    return std::all_of(image + from, image + to, [](std::uint8_t x) { return x == untouched; });
  };
  return std::all_of(gaps.begin(), gaps.end(), [&](const auto &gap) { return is_untouched(gap.first, gap.second); }) &&
         is_untouched(used, dirty);
}

arena::arena(sg_context *context) : context_(context) {
  require_ok(sg_host_alloc(context_, part_bytes, &pinned_memory_), "sg_host_alloc");
  sg_device_info info = SG_DEVICE_INFO_INIT;
  require_ok(sg_context_get_device_info(context_, 0, &info), "sg_context_device");
  unified_ = info.unified_memory != 0;
  pinned_.image = static_cast<std::uint8_t *>(pinned_memory_);
  pinned_.address = static_cast<char *>(pinned_memory_);
  pinned_.size = part_bytes;
  std::int32_t count = 0;
  require_ok(sg_context_device_count(context_, &count), "sg_context_device_count");
  for (std::int32_t i = 0; i < count; ++i) {
    device_part &made = devices_.emplace_back();
    sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
    options.bytes = made.part.size = count > 1 ? part_bytes_of_several : part_bytes;
    options.device = i;
    require_ok(sg_buffer_create_with(context_, &options, made.memory.out()), "sg_buffer_create_with");
    void *address = nullptr;
    require_ok(sg_buffer_data(made.memory, &address), "sg_buffer_data");
    if (!unified_) made.image.reset(new std::uint8_t[options.bytes]);
    made.part.image = unified_ ? static_cast<std::uint8_t *>(address) : made.image.get();
    made.part.address = static_cast<char *>(address);
  }
}

arena::~arena() {
  reset();
  sg_host_free(context_, pinned_memory_);
}

void arena::reset() {
  for (const ordinary_block &x : ordinary_)
    if (x.registered) sg_host_unregister(context_, x.memory.data());
  ordinary_.clear();
  pinned_.clear();
  for (device_part &each : devices_) each.part.clear();
}

block arena::take(const operand_case &x, std::size_t bytes) {
  if (x.where == memory::pinned || x.where == memory::device) {
    shared_part &part = x.where == memory::pinned ? pinned_ : devices_.at(std::size_t(x.device)).part;
    return part.take(bytes);
  }
  ordinary_.push_back({guarded(bytes, x.at_start ? flush::to_start : flush::to_end), false});
  guarded &memory = ordinary_.back().memory;
  std::memset(memory.data(), untouched, bytes);
  if (x.where == memory::registered && bytes > 0) {
    require_ok(sg_host_register(context_, memory.data(), bytes), "sg_host_register");
    ordinary_.back().registered = true;
  }
  return {memory.data(), memory.data(), bytes};
}

void arena::upload() {
  for (const auto &[memory, image, part] : devices_)
    if (!unified_ && part.dirty > 0)
      require_ok(sg_copy(context_, part.address, part.image, part.dirty, nullptr), "upload");
}

void arena::download() {
  for (const auto &[memory, image, part] : devices_)
    if (!unified_ && part.dirty > 0)
      require_ok(sg_copy(context_, part.image, part.address, part.dirty, nullptr), "download");
}

std::string arena::neighbours() const {
  if (!pinned_.gaps_untouched()) return "bytes beside an operand in pinned memory have changed";
  if (!std::all_of(devices_.begin(), devices_.end(), [](const auto &x) { return x.part.gaps_untouched(); }))
    return "bytes beside an operand in device memory have changed";
  return "";
}

}  // namespace sg_test::random_tests
