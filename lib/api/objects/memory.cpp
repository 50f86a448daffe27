// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/memory.h>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/operands/operand_bytes.hpp"
#include "api/submission/placement.hpp"
#include "api/submission/submission.hpp"
#include "api/wait.hpp"
#include "base/checked.hpp"
#include "base/numa.hpp"
#include "plan/layers/copy.hpp"
#include "run/objects/device_buffer.hpp"

namespace sg {
namespace {

// A smaller copy is over before a second staging thread could help.
constexpr std::int64_t least_staged = std::int64_t(1) << 20;

ref<device_buffer> device_buffer_of(const sg_buffer *handle) {
  return object_of<device_buffer>(handle, object_type::buffer, "buffer");
}

sg_buffer *made_buffer(const ref<context> &on, device_index device, std::uint64_t bytes) {
  if (bytes == 0) throw error(SG_STATUS_INVALID_ARGUMENT, "@bytes is 0; it must be above 0");
  auto made = ref<object>::adopt(new device_buffer(on, on->memory().known(), on->device_memory(device), bytes));
  return handle_of<sg_buffer>(make_handle(std::move(made)));
}

}  // namespace

void submit_copy(context &on, void *dst, std::uint64_t dst_pitch, const void *src, std::uint64_t src_pitch,
                 const char *width_name, std::uint64_t width, std::uint64_t height, checked_submit &order,
                 sg_job **out_job) {
  ref<job> work = on.new_job();
  if (order.records()) order.note_operation(SG_OPERATION_COPY);
  if (width == 0 || height == 0) return order.go(work, nullptr, 0, out_job);
  const std::optional<sg_memory_kind> absent = order.place_of_absent();
  if (!absent) require_address(dst, "dst"), require_address(src, "src");
  const auto require_signed = [](std::uint64_t value, const char *name) {
    if (value > INT64_MAX)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s is %llu, above 2^63 - 1", name,
                  static_cast<unsigned long long>(value));
  };
  require_signed(width, width_name);
  require_signed(height, "height");
  require_signed(dst_pitch, "dst_pitch");
  require_signed(src_pitch, "src_pitch");
  if (height > 1 && dst_pitch < width)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@dst_pitch is %llu, below the width of %llu",
                static_cast<unsigned long long>(dst_pitch), static_cast<unsigned long long>(width));
  if (height > 1 && src_pitch < width)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@src_pitch is %llu, below the width of %llu",
                static_cast<unsigned long long>(src_pitch), static_cast<unsigned long long>(width));
  copy_form copy;
  copy.width = static_cast<std::int64_t>(width);
  copy.height = static_cast<std::int64_t>(height);
  copy.to_pitch = height > 1 ? static_cast<std::int64_t>(dst_pitch) : copy.width;
  copy.from_pitch = height > 1 ? static_cast<std::int64_t>(src_pitch) : copy.width;
  checked_add(checked_mul(copy.to_pitch, copy.height, "dst_pitch * height"), copy.width, "dst");
  checked_add(checked_mul(copy.from_pitch, copy.height, "src_pitch * height"), copy.width, "src");
  const access accesses[] = {
      {footprint::rectangle(dst, copy.width, copy.height, copy.to_pitch), true, false},
      {footprint::rectangle(src, copy.width, copy.height, copy.from_pitch), false, true},
  };
  const bool is_absent[] = {absent && !has_address(dst), absent && !has_address(src)};
  if (!is_absent[0] && !is_absent[1] && overlap(accesses[0].bytes, accesses[1].bytes))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@dst (%p) and @src (%p) overlap", dst, src);
  const auto space_of = [&](int which, const char *name) {
    if (is_absent[which]) return space_without_address(on.memory(), *absent);
    const footprint &f = accesses[which].bytes;
    return on.memory().usable(reinterpret_cast<void *>(f.lo), f.hi - f.lo, name);
  };
  const memory_space spaces[] = {space_of(0, "dst"), space_of(1, "src")};
  // Where memory of a device is, one that has it copies.
  const bool on_host = spaces[0] != SG_MEMORY_DEVICE && spaces[1] != SG_MEMORY_DEVICE;
  const auto device = spaces[0] == SG_MEMORY_DEVICE   ? std::optional(spaces[0].device())
                      : spaces[1] == SG_MEMORY_DEVICE ? std::optional(spaces[1].device())
                                                      : order.device();
  const auto *const known = order.plan_to_run();
  plan_request request;
  request.device = known ? (*known)->device() : on_host && !device ? on.least_busy() : *device;
  copy.to_space = on.memory().seen_from(request.device, spaces[0]);
  copy.from_space = on.memory().seen_from(request.device, spaces[1]);
  const bool crosses_link = (copy.to_space == SG_MEMORY_DEVICE && copy.from_space == SG_MEMORY_PAGEABLE) ||
                            (copy.to_space == SG_MEMORY_PAGEABLE && copy.from_space == SG_MEMORY_DEVICE);
  copy.staged = crosses_link && copy.width >= least_staged / copy.height;
  const form_of what(copy);
  if (known)
    order.require_as_planned(what, "operation->desc"), work->give_work(*known);
  else
    work->give_work(on.plan_for(what, request));
  work->operands.first.parameters[copy_form::to].base = static_cast<char *>(dst);
  work->operands.first.parameters[copy_form::from].base = static_cast<char *>(const_cast<void *>(src));
  order.go(work, accesses, 2, out_job);
}

}  // namespace sg

using sg::guarded;
using sg::object_type;
using sg::ref;

sg_status sg_context_memory_kind(sg_context *handle, const void *memory, uint64_t bytes, sg_memory_kind *out_kind) {
  if (out_kind) *out_kind = SG_MEMORY_AUTO;
  return guarded([&] {
    const auto context = sg::context_of(handle);
    sg::require(memory, "memory");
    sg::require(out_kind, "out_kind");
    const auto first = reinterpret_cast<std::uintptr_t>(memory);
    if (bytes == 0 || bytes > UINTPTR_MAX - first)
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@bytes is %llu; it must be above 0, and end within memory",
                      static_cast<unsigned long long>(bytes));
    *out_kind = context->memory().usable(memory, bytes, "memory").kind();
  });
}

sg_status sg_context_available_memory(sg_context *handle, int32_t device, uint64_t *out_bytes) {
  if (out_bytes) *out_bytes = 0;
  return guarded([&] {
    const auto context = sg::context_of(handle);
    sg::require_device(*context, device, 0, "device");
    sg::require(out_bytes, "out_bytes");
    *out_bytes = context->on(sg::device_index(device)).known_free_memory();
  });
}

sg_status sg_host_alloc(sg_context *context, uint64_t bytes, void **out_memory) {
  if (out_memory) *out_memory = nullptr;
  return guarded([&] {
    const auto on = sg::context_of(context);
    sg::require(out_memory, "out_memory");
    *out_memory = on->pinned().allocate(bytes);
  });
}

sg_status sg_host_alloc_near(sg_context *context, int32_t device, uint64_t bytes, void **out_memory) {
  if (out_memory) *out_memory = nullptr;
  return guarded([&] {
    const auto on = sg::context_of(context);
    sg::require(out_memory, "out_memory");
    if (device != -1) sg::require_device(*on, device, 0, "device");
    *out_memory = on->pinned().allocate(
        bytes, device < 0 ? sg::page_placement::interleaved : on->model(sg::device_index(device)).numa_node);
  });
}

sg_status sg_host_free(sg_context *context, void *memory) {
  return guarded([&] {
    const auto on = sg::context_of(context);
    on->forget_failures_in(memory, on->pinned().size_of(memory));
    on->pinned().free(memory);
  });
}

sg_status sg_host_register(sg_context *context, void *memory, uint64_t bytes) {
  return guarded([&] {
    const auto on = sg::context_of(context);
    sg::require(memory, "memory");
    if (bytes == 0) throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@bytes is 0; it must be above 0");
    on->pinned().pin(memory, bytes);
  });
}

sg_status sg_host_unregister(sg_context *context, void *memory) {
  return guarded([&] {
    const auto on = sg::context_of(context);
    sg::require(memory, "memory");
    on->pinned().unpin(memory);
  });
}

sg_status sg_buffer_create(sg_context *context, uint64_t bytes, const sg_buffer_options *options,
                           sg_buffer **out_buffer) {
  if (out_buffer) *out_buffer = nullptr;
  return guarded([&] {
    const auto on = sg::context_of(context);
    sg::require(out_buffer, "out_buffer");
    const sg_buffer_options given = sg::options_of(options, "options");
    sg::require_device(*on, given.device, 0, "options->device");
    *out_buffer = sg::made_buffer(on, sg::device_index(given.device), bytes);
  });
}

sg_status sg_buffer_device(sg_buffer *buffer, int32_t *out_device) {
  return guarded([&] {
    const auto found = sg::device_buffer_of(buffer);
    sg::require(out_device, "out_device");
    *out_device = static_cast<int32_t>(sg::number_of(found->index()));
  });
}

sg_status sg_buffer_retain(sg_buffer *buffer) { return sg::retain(buffer, object_type::buffer, "buffer"); }

sg_status sg_buffer_release(sg_buffer *buffer) { return sg::release(buffer, object_type::buffer, "buffer"); }

sg_status sg_buffer_data(sg_buffer *buffer, void **out_data) {
  if (out_data) *out_data = nullptr;
  return guarded([&] {
    const auto found = sg::device_buffer_of(buffer);
    sg::require(out_data, "out_data");
    *out_data = found->data();
  });
}

sg_status sg_buffer_size(sg_buffer *buffer, uint64_t *out_bytes) {
  if (out_bytes) *out_bytes = 0;
  return guarded([&] {
    const auto found = sg::device_buffer_of(buffer);
    sg::require(out_bytes, "out_bytes");
    *out_bytes = found->size();
  });
}

sg_status sg_copy_async(sg_context *context, void *dst, const void *src, uint64_t bytes, const sg_submit *submit,
                        sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const auto on = sg::context_of(context);
    sg::checked_submit order(*on, submit);
    sg::submit_copy(*on, dst, bytes, src, bytes, "bytes", bytes, 1, order, out_job);
  });
}

sg_status sg_copy_2d_async(sg_context *context, void *dst, uint64_t dst_pitch, const void *src, uint64_t src_pitch,
                           uint64_t width, uint64_t height, const sg_submit *submit, sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const auto on = sg::context_of(context);
    sg::checked_submit order(*on, submit);
    sg::submit_copy(*on, dst, dst_pitch, src, src_pitch, "width", width, height, order, out_job);
  });
}

sg_status sg_copy(sg_context *context, void *dst, const void *src, uint64_t bytes, const sg_submit *submit) {
  return sg::submit_and_wait(
      [&](sg_job **out_job) { return sg_copy_async(context, dst, src, bytes, submit, out_job); });
}

sg_status sg_copy_2d(sg_context *context, void *dst, uint64_t dst_pitch, const void *src, uint64_t src_pitch,
                     uint64_t width, uint64_t height, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) {
    return sg_copy_2d_async(context, dst, dst_pitch, src, src_pitch, width, height, submit, out_job);
  });
}
