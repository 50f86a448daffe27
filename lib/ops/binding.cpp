// SPDX-License-Identifier: Apache-2.0
#include "ops/binding.hpp"

namespace sg {

char *address_of(const buffer_list &buffers, const view &v, const binding &where, std::int64_t item) {
  const buffer &b = buffer_of(buffers, v);
  switch (b.kind) {
    case buffer_kind::parameter: {
      const parameter_address &own = where.parameter(static_cast<std::size_t>(b.parameter));
      char *start = b.pointer_array ? own.items[item] : own.base + item * b.item_stride;
      return start + v.offset;
    }
    case buffer_kind::device:
      return where.device_arena_of(b.space.device()) + b.offset + item * b.item_stride + v.offset;
    case buffer_kind::staging:
      return where.staging_arena_of(b.space.device()) + b.offset + item * b.item_stride + v.offset;
  }
  return nullptr;
}

sg_scalar value_of(scalar_role role, const sg_scalar &own) noexcept {
  switch (role) {
    case scalar_role::zero: return {0, 0};
    case scalar_role::one: return {1, 0};
    case scalar_role::minus_one: return {-1, 0};
    case scalar_role::conjugate: return {own.re, -own.im};
    case scalar_role::job: break;
  }
  return own;
}

}  // namespace sg
