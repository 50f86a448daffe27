// SPDX-License-Identifier: Apache-2.0
#include "arena.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace sg_test::random_tests {

namespace {

constexpr std::size_t part_bytes = std::size_t(96) << 20, neighbour_bytes = 64;

}  // namespace

void require_ok(sg_status status, const char *what) {
  if (status == SG_STATUS_OK) return;
  throw std::runtime_error(std::string(what) + ": " + sg_status_name(status) + ": " + sg_last_error_message());
}

block arena::shared_part::take(std::size_t bytes) {
  const std::size_t start = (used + neighbour_bytes + 15) / 16 * 16, end = start + bytes;
  if (end + neighbour_bytes > part_bytes) throw std::runtime_error("the operands of a test need too much memory");
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
  require_ok(sg_buffer_create(context_, part_bytes, &buffer_), "sg_buffer_create");
  void *address = nullptr;
  require_ok(sg_buffer_data(buffer_, &address), "sg_buffer_data");
  sg_device_info info = SG_DEVICE_INFO_INIT;
  require_ok(sg_context_device(context_, &info), "sg_context_device");
  unified_ = info.unified_memory != 0;
  pinned_.image = static_cast<std::uint8_t *>(pinned_memory_);
  pinned_.address = static_cast<char *>(pinned_memory_);
  if (!unified_) device_image_.reset(new std::uint8_t[part_bytes]);
  device_.image = unified_ ? static_cast<std::uint8_t *>(address) : device_image_.get();
  device_.address = static_cast<char *>(address);
}

arena::~arena() {
  reset();
  sg_buffer_release(buffer_);
  sg_host_free(context_, pinned_memory_);
}

void arena::reset() {
  for (const ordinary_block &x : ordinary_)
    if (x.registered) sg_host_unregister(context_, x.memory.data());
  ordinary_.clear();
  pinned_.clear();
  device_.clear();
}

block arena::take(const operand_case &x, std::size_t bytes) {
  if (x.where == memory::pinned || x.where == memory::device) {
    shared_part &part = x.where == memory::pinned ? pinned_ : device_;
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
  if (unified_ || device_.dirty == 0) return;
  require_ok(sg_copy(context_, device_.address, device_.image, device_.dirty, nullptr), "upload");
}

void arena::download() {
  if (unified_ || device_.dirty == 0) return;
  require_ok(sg_copy(context_, device_.image, device_.address, device_.dirty, nullptr), "download");
}

std::string arena::neighbours() const {
  if (!pinned_.gaps_untouched()) return "bytes beside an operand in pinned memory have changed";
  if (!device_.gaps_untouched()) return "bytes beside an operand in device memory have changed";
  return "";
}

}  // namespace sg_test::random_tests
