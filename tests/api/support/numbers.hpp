// SPDX-License-Identifier: Apache-2.0
// The reference's numbers, and random ones.
#pragma once

#include <algorithm>

#include "../../reference/numbers.hpp"

namespace sg_test {

using sg_reference::bf16_format;
using sg_reference::encode_16;
using sg_reference::encode_8;
using sg_reference::f16_format;
using sg_reference::is_complex;
using sg_reference::load;
using sg_reference::number;
using sg_reference::rounded;
using sg_reference::store;
using sg_reference::unit_of;

// The type of C that goes with operands of a type, the widest if there are several.
inline sg_dtype natural_result(sg_dtype in) {
  if (in == SG_DTYPE_I8) return SG_DTYPE_I32;
  return in == SG_DTYPE_F8_E4M3 || in == SG_DTYPE_F8_E5M2 ? SG_DTYPE_F32 : in;
}

// SplitMix64: the same numbers on every machine.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }
  // In [-1, 1), never 0.
  double real() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-52 - 1.0; }
  // A number of the type, never zero for floating types.
  number of(sg_dtype type) {
    if (type == SG_DTYPE_I8) return below(256) - 128;
    if (type == SG_DTYPE_I32) return below(2000001) - 1000000;
    if (is_complex(type)) return {real(), real()};
    return real();
  }

 private:
  std::uint64_t state_;
};

}  // namespace sg_test
