// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/resident/latency_parts.hpp"

#include <algorithm>

namespace sg {
namespace {

// The work from which a GEMM is split, and the work of each part if there are more than two.
struct limits {
  double first, part;
};
// A part takes a core 10 us or more: several times the cost of handing it to an awake core.
constexpr limits flops_limits(std::int64_t size) noexcept {
  if (size < 4) return {16e6, 8e6};
  return size < 8 ? limits{4e6, 2e6} : limits{1.6e6, 2e6};
}
// The limits where memory is the bound.
constexpr limits bytes_limits{1.6e6, 4e6};
// From here on a split into as many parts as cores is as good, with larger blocks.
constexpr double most_flops = 2e9;

constexpr double parts_of(double work, const limits &l) noexcept {
  return work < l.first ? 1 : std::max(2.0, work / l.part);
}

}  // namespace

std::int64_t latency_parts(const problem &p, int lanes) noexcept {
  const double flops = p.flops();
  if (lanes < 2 || p.no_multiply || flops > most_flops) return 1;
  if (p.a.pointer_array || p.b.pointer_array || p.c.pointer_array) return 1;
  const double bytes = problem::bytes(p.a, p.batch) + problem::bytes(p.b, p.batch) + problem::bytes(p.c, p.batch);
  const std::int64_t real_size = size_of(p.a.type) / (is_complex(p.a.type) ? 2 : 1);
  // One part for each core: OpenBLAS packs A and B once for each part. f64 256^3 and 384^3 on two cores of an AVX-512
  // Xeon took 1.2 times as long in four parts as in two.
  const auto most = std::min<std::int64_t>(most_latency_parts, lanes);
  return std::int64_t(
      std::min(double(most), std::max(parts_of(flops, flops_limits(real_size)), parts_of(bytes, bytes_limits))));
}

}  // namespace sg
