// SPDX-License-Identifier: Apache-2.0
#include "api/operands/operand_bytes.hpp"

#include "base/checked.hpp"
#include "base/dtype.hpp"
#include "base/error.hpp"

namespace sg {

std::int64_t span_bytes(const operand &o, const char *what) {
  if (o.rows == 0 || o.cols == 0) return 0;
  const std::int64_t elements = checked_add(checked_mul(o.cols - 1, o.ld, what), o.rows, what);
  return checked_mul(elements, size_of(o.type), what);
}

std::int64_t total_bytes(const operand &o, std::int64_t batch, const char *what) {
  const std::int64_t one = span_bytes(o, what);
  if (one == 0 || o.pointer_array || batch == 1) return one;
  const std::int64_t stride = checked_mul(o.item_stride, size_of(o.type), what);
  return checked_add(checked_mul(batch - 1, stride, what), one, what);
}

strided_bytes bytes_of(const operand &o, std::int64_t batch, const void *start) {
  const std::int64_t element = size_of(o.type);
  const std::int64_t width = o.rows * element;
  return {start,
          width,
          {{{o.cols, step_bytes(o.ld, element, width)}, {batch, step_bytes(o.item_stride, element, width)}, {}}}};
}

footprint footprint_of(const operand &o, const parameter_address &where) {
  const std::int64_t element = size_of(o.type);
  const std::int64_t width = o.rows * element;
  return footprint::rectangle(o.pointer_array ? where.items[0] : where.base, width, o.cols,
                              step_bytes(o.ld, element, width));
}

void require_address(const void *data, const char *name) {
  if (!data) throw error(SG_STATUS_INVALID_ARGUMENT, "@%s is @NULL", name);
  if (!has_address(data))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s is %p, SG_PLAN_ADDRESS, which is no address of memory", name, data);
}

memory_space space_without_address(const memory_kinds &kinds, sg_memory_kind kind) noexcept {
  if (kinds.on().unified()) return {};
  return kind == SG_MEMORY_AUTO ? SG_MEMORY_DEVICE : kind;
}

memory_space space_of(const memory_kinds &kinds, const given_operand &x, const operand &o, std::int64_t batch,
                      const parameter_address &where, sg_memory_kind known, bool pointers_given) {
  if (!pointers_given) return space_without_address(kinds, known);
  memory_space seen;
  const std::int64_t bytes = o.pointer_array ? span_bytes(o, x.name) : total_bytes(o, batch, x.name);
  for (std::int64_t i = 0; i < addresses_of(o, batch); ++i) {
    const char *start = o.pointer_array ? where.items[i] : where.base;
    memory_space space = kinds.of(start, static_cast<std::uint64_t>(bytes));
    if (!space.is_usable())
      space =
          kinds.usable(start, static_cast<std::uint64_t>(bytes), name_of_pointer(x, o.pointer_array ? i : -1).c_str());
    if (i > 0 && (space == SG_MEMORY_DEVICE) != (seen == SG_MEMORY_DEVICE)) {
      const bool has_peer = space == SG_MEMORY_PEER || seen == SG_MEMORY_PEER;
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s_array mixes device memory and %s memory (item %lld is %p)",
                  x.desc, x.name, has_peer ? "peer" : "host", static_cast<long long>(i),
                  static_cast<const void *>(start));
    }
    if (i > 0 && space == SG_MEMORY_DEVICE && space != seen)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s_array mixes memory of devices %zu and %zu (item %lld is %p)",
                  x.desc, x.name, number_of(seen.device()), number_of(space.device()), static_cast<long long>(i),
                  static_cast<const void *>(start));
    if (i == 0 || space == SG_MEMORY_PAGEABLE) seen = space;
  }
  if (known == SG_MEMORY_AUTO || seen == known || kinds.on().unified()) return seen;
  if ((known == SG_MEMORY_DEVICE) != (seen == SG_MEMORY_DEVICE))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s%s is in %s memory, but the plan has it in %s memory", x.desc,
                x.name, x.data, name_of(seen.kind()), name_of(known));
  return known;
}

}  // namespace sg
