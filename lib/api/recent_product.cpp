// SPDX-License-Identifier: Apache-2.0
#include "api/recent_product.hpp"

#include <cstring>
#include <type_traits>

#include "api/accesses.hpp"
#include "api/operand_bytes.hpp"
#include "base/dtype.hpp"

namespace sg {

namespace {

// Descriptors are compared byte by byte.
static_assert(std::is_trivially_copyable_v<sg_gemm_desc> && sizeof(sg_matrix) == 40 && sizeof(sg_gemm_desc) == 256,
              "sg_gemm_desc has gaps, or has grown: what decides the check must be in the comparison");

sg_gemm_desc without_addresses(const sg_gemm_desc &desc) noexcept {
  sg_gemm_desc form = desc;
  form.a.data = form.b.data = form.c.data = nullptr;
  form.bias = nullptr;  // whether there is one, the number of operands says
  return form;
}

}  // namespace

recent_product &recent_product::like(const sg_gemm_desc &desc) noexcept {
  constexpr std::size_t places = 8;
  thread_local recent_product latest[places];
  const auto mixed = static_cast<std::uint64_t>(desc.c.rows * 5 + desc.c.cols * 3 + desc.a.rows + desc.a.cols);
  return latest[mixed / 8 % places];
}

bool recent_product::again(const context &on, const sg_gemm_desc &desc, problem_binding &where,
                           access (&accesses)[4]) const noexcept {
  if (context_ != on.number() || (desc.bias != nullptr) != (count_ == 4)) return false;
  const sg_gemm_desc form = without_addresses(desc);
  if (std::memcmp(&form, &form_, sizeof form) != 0) return false;
  const bool by_rows = desc.c.layout == SG_LAYOUT_ROW_MAJOR;
  const void *const data[] = {by_rows ? desc.b.data : desc.a.data, by_rows ? desc.a.data : desc.b.data, desc.c.data,
                              desc.bias};
  where = where_;
  for (int i = 0; i < count_; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(data[i]);
    if (address == 0 || (address & unaligned_[i]) != 0) return false;
    if (on.memory_kind(data[i], static_cast<std::uint64_t>(bytes_[i])) != places_[i]) return false;
    where.operands[i].base = static_cast<char *>(const_cast<void *>(data[i]));
    accesses[i] = touched_[i];
    accesses[i].bytes.lo += address;
    accesses[i].bytes.hi += address;
  }
  return !overlap(accesses[0].bytes, accesses[2].bytes) && !overlap(accesses[1].bytes, accesses[2].bytes) &&
         (count_ < 4 || !overlap(accesses[3].bytes, accesses[2].bytes));
}

void recent_product::remember(const context &on, const sg_gemm_desc &desc, const checked_gemm &product,
                              const std::shared_ptr<const compiled_plan> &plan) noexcept {
  const problem &p = product.shape;
  if (product.nothing_to_do || p.no_product || !product.pointers.empty()) return;
  context_ = on.number();
  form_ = without_addresses(desc);
  where_ = product.where;
  count_ = static_cast<int>(list_accesses(product, touched_));
  const operand *const operands[] = {&p.a, &p.b, &p.c, &p.bias};
  for (int i = 0; i < count_; ++i) {
    const operand &o = *operands[i];
    const auto address = reinterpret_cast<std::uintptr_t>(where_.operands[i].base);
    where_.operands[i].base = nullptr;
    touched_[i].bytes.lo -= address;
    touched_[i].bytes.hi -= address;
    bytes_[i] = total_bytes(o, p.batch, "an operand");
    unaligned_[i] = static_cast<std::uintptr_t>(size_of(o.type) / (is_complex(o.type) ? 2 : 1)) - 1;
    places_[i] = o.place;
  }
  plan_ = plan;
}

}  // namespace sg
