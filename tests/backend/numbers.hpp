// SPDX-License-Identifier: Apache-2.0
// The reference's numbers, and the precision of what a device computes.
#pragma once

#include "../reference/numbers.hpp"

namespace sg::test {

using sg_reference::bf16_format;
using sg_reference::decode_16;
using sg_reference::decode_8;
using sg_reference::f16_format;
using sg_reference::format;
using sg_reference::is_complex;
using sg_reference::is_integer;
using sg_reference::load;
using sg_reference::number;
using sg_reference::real;
using sg_reference::round_to;
using sg_reference::rounded;
using sg_reference::size_of;
using sg_reference::store;

// Unit roundoffs of a result's format and of its accumulator, and the least normal number of the shorter one.
struct precision {
  real out, sum, tiny;
};

// `short_sums`: of operands that tensor cores multiply, which truncate their sums; f8 units sum to 14 bits.
inline precision precision_of(sg_dtype out, bool short_sums, sg_compute compute = SG_COMPUTE_EXACT) {
  const real sum_16 = std::ldexp(real{1}, compute == SG_COMPUTE_F8 ? -13 : -23);
  switch (out) {
    case SG_DTYPE_F64:
    case SG_DTYPE_C128: return {0, std::ldexp(real{1}, -53), std::ldexp(real{1}, -1022)};
    case SG_DTYPE_F16: return {std::ldexp(real{1}, -11), sum_16, std::ldexp(real{1}, -24)};
    case SG_DTYPE_BF16: return {std::ldexp(real{1}, -8), sum_16, std::ldexp(real{1}, -126)};
    default: return {0, short_sums ? sum_16 : std::ldexp(real{1}, -24), std::ldexp(real{1}, -126)};
  }
}

}  // namespace sg::test
