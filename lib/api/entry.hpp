// SPDX-License-Identifier: Apache-2.0
// Common first and last steps of exported functions: exceptions to statuses, handles to objects, option structs to
// values.
#pragma once

#include <streamgemm/context.h>
#include <streamgemm/gemm.h>
#include <streamgemm/plan.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "api/structs.hpp"
#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/handle.hpp"

namespace sg {

// Stores the message for the calling thread.
inline sg_status failed(const error &e) noexcept {
  set_last_error(e);
  return e.status();
}

// A type in a message, whatever a program gave.
inline std::string type_text(sg_dtype type) {
  return is_dtype(type) ? name_of(type) : std::to_string(int{type}) + ", which is no type";
}

// Throws if a pointer argument is NULL.
inline void require(const void *pointer, const char *name) {
  if (!pointer) throw error(SG_STATUS_INVALID_ARGUMENT, "@%s is @NULL", name);
}

// Throws unless lowest <= value <= highest.
inline void require_range(std::int64_t value, std::int64_t lowest, std::int64_t highest, const char *name) {
  if (value < lowest || value > highest)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s is %lld; it must be from %lld to %lld", name,
                static_cast<long long>(value), static_cast<long long>(lowest), static_cast<long long>(highest));
}

template <class Handle>
handle_bits bits_of(const Handle *handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle);
}

template <class Handle>
Handle *handle_of(handle_bits bits) noexcept {
  return reinterpret_cast<Handle *>(static_cast<std::uintptr_t>(bits));
}

[[noreturn]] inline void throw_invalid_handle(const void *handle, object_type type, const char *name) {
  if (!handle) throw error(SG_STATUS_INVALID_HANDLE, "@%s is @NULL; it must be the handle of %s", name, name_of(type));
  throw error(SG_STATUS_INVALID_HANDLE,
              "@%s is %p, which is no handle of %s (it was released, is of another type, or from before a fork)", name,
              handle, name_of(type));
}

// The object of a handle. Throws SG_STATUS_INVALID_HANDLE naming the argument.
template <class Object, class Handle>
ref<Object> object_of(const Handle *handle, object_type type, const char *name) {
  ref<object> found = find_object(bits_of(handle), type);
  if (!found) throw_invalid_handle(handle, type, name);
  return ref<Object>::adopt(static_cast<Object *>(found.release()));
}

// The object of a handle, pinned for the duration of a call.
template <class Object>
class borrowed {
 public:
  template <class Handle>
  borrowed(const Handle *handle, object_type type, const char *name)
      : handle_(bits_of(handle)), object_(static_cast<Object *>(pin_handle(handle_, type))) {
    if (!object_) throw_invalid_handle(handle, type, name);
  }
  ~borrowed() { unpin_handle(handle_); }
  borrowed(const borrowed &) = delete;
  borrowed &operator=(const borrowed &) = delete;

  Object &operator*() const noexcept { return *object_; }
  Object *operator->() const noexcept { return object_; }

 private:
  const handle_bits handle_;
  Object *const object_;
};

// `retain` and `release` for every handle type.
template <class Handle>
sg_status retain(const Handle *handle, object_type type, const char *name) noexcept {
  return guarded([&] {
    if (handle && !retain_handle(bits_of(handle), type)) throw_invalid_handle(handle, type, name);
  });
}

template <class Handle>
sg_status release(const Handle *handle, object_type type, const char *name) noexcept {
  return guarded([&] {
    if (handle && !release_handle(bits_of(handle), type)) throw_invalid_handle(handle, type, name);
  });
}

// The size of each struct in release 0.1, the minimum that a program can have.
template <class Struct>
inline constexpr std::size_t first_size = sizeof(Struct);
template <>
inline constexpr std::size_t first_size<sg_gemm_desc> = offsetof(sg_gemm_desc, bias);
template <>
inline constexpr std::size_t first_size<sg_submit> = offsetof(sg_submit, graph);
template <>
inline constexpr std::size_t first_size<sg_job_statistics> = offsetof(sg_job_statistics, batch_size);
template <>
inline constexpr std::size_t first_size<sg_context_options> = offsetof(sg_context_options, commands_in_flight);
template <>
inline constexpr std::size_t first_size<sg_device_info> = offsetof(sg_device_info, nvlink_bytes_per_second);
template <>
inline constexpr std::size_t first_size<sg_plan_options> = offsetof(sg_plan_options, devices);
template <>
inline constexpr std::size_t first_size<sg_plan_prediction> = offsetof(sg_plan_prediction, devices);

inline constexpr std::size_t max_struct_size = 65536;

// Throws unless the size may be that of a released header, or of one newer than this library.
template <class Struct>
void require_size(std::size_t size, const char *name) {
  if (size < first_size<Struct> || size % alignof(Struct) != 0 || size > max_struct_size ||
      (size < sizeof(Struct) && !is_between_members(public_struct<Struct>::starts, size)))
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@%s->struct_size is %zu; it must be a multiple of %zu from %zu to %zu that ends within no member: "
                "initialise the struct with its INIT macro or sg_struct_init",
                name, size, alignof(Struct), first_size<Struct>, max_struct_size);
}

// Throws if a program built with newer headers sets a field that this library does not know.
template <class Struct>
void require_known(const Struct &given, const char *name) {
  const auto *const bytes = reinterpret_cast<const unsigned char *>(&given);
  for (std::size_t i = sizeof given; i < given.struct_size; ++i)
    if (bytes[i] != 0)
      throw error(SG_STATUS_UNSUPPORTED,
                  "@%s->struct_size is %zu and its byte %zu is %u: this library knows %zu bytes, and those behind them "
                  "must be 0",
                  name, given.struct_size, i, unsigned{bytes[i]}, sizeof given);
}

// Copies the caller's struct over the initial value. By its size, a program built with older headers omits later
// fields, and one built with newer headers may have unknown ones.
template <class Struct>
Struct options_of(const Struct *given, const char *name) {
  Struct result = public_struct<Struct>::initial;
  if (!given) return result;
  const std::size_t size = given->struct_size;
  require_size<Struct>(size, name);
  require_known(*given, name);
  std::memcpy(&result, given, size < sizeof result ? size : sizeof result);
  result.struct_size = sizeof result;
  require_reserved_zero(result, name);
  return result;
}

// The caller's struct itself if it has this library's size, which saves the copy; otherwise a copy in `room`.
template <class Struct>
const Struct &in_full(const Struct &given, Struct &room, const char *name) {
  if (given.struct_size != sizeof given) return room = options_of(&given, name);
  require_reserved_zero(given, name);
  return given;
}

// A text for the caller: first nothing, then as much as fits with its NUL, and the bytes of all in *out_size.
inline void clear_text(char *text, std::uint64_t size, std::uint64_t *out_size) noexcept {
  if (out_size) *out_size = 0;
  if (text && size > 0) text[0] = '\0';
}
inline void write_text(const char *whole, char *text, std::uint64_t size, std::uint64_t *out_size) {
  if (size > 0) require(text, "text");
  if (out_size) *out_size = std::strlen(whole) + 1;
  if (size > 0) copy_text(text, size, whole);
}

// Writes as much of `value` as the caller's struct can hold.
template <class Struct>
void write_out(Struct *out, Struct value, const char *name) {
  require(out, name);
  const std::size_t size = out->struct_size;
  require_size<Struct>(size, name);
  value.struct_size = size;
  std::memcpy(out, &value, size < sizeof value ? size : sizeof value);
}

}  // namespace sg
