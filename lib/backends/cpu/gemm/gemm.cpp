// SPDX-License-Identifier: Apache-2.0
#include "gemm.hpp"

#include <algorithm>

#include "backends/cpu/elements/epilogue.hpp"
#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/worker/workspace.hpp"
#include "select.hpp"
#include "tiles.hpp"

namespace sg::cpu {
namespace {

// Libraries use 32-bit integers in their interface or in offsets of generated code.
constexpr std::int64_t largest_dimension = std::int64_t{1} << 30;
constexpr std::int64_t largest_ld = std::int64_t{1} << 24;

bool takes(const kernel &x, const gemm_args &p) noexcept {
  if (!x || std::max({p.m, p.n, p.k}) > largest_dimension || std::max({p.lda, p.ldb, p.ldc}) > largest_ld) return false;
  return x.takes == scalars::any || (is_one(p.alpha) && (is_zero(p.beta) || is_one(p.beta)));
}

template <class Pointer>
Pointer item_of(Pointer first, Pointer const *array, std::int64_t item, std::int64_t stride_bytes) noexcept {
  if (array != nullptr) return array[item];
  using byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
  return static_cast<byte *>(first) + item * stride_bytes;
}

// Multiply-adds of one core in some 10 ms.
double macs_between_polls(sg_dtype in) noexcept { return 0.01 * rate_of(in) / (is_complex(in) ? 8 : 2); }

double macs_of(const gemm_args &p) noexcept {
  return static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

// Runs a long GEMM by a library's kernel in parts that are large enough for cheap packing. Sums accumulate from part to
// part if C holds them unrounded.
sg_status run_in_parts(const gemm_args &p, const kernel &by, sg_dtype in, sg_dtype out, workspace &space) noexcept {
  constexpr std::int64_t most_m = 1024, most_n = 1024, grain = 256;
  const double macs = macs_between_polls(in);
  const std::int64_t m = std::min(p.m, most_m), n = std::min(p.n, most_n);
  const auto depth = static_cast<std::int64_t>(macs / (static_cast<double>(m) * static_cast<double>(n)));
  const bool holds_sums = sum_type_of(out) == out;
  const std::int64_t k = holds_sums ? std::min(p.k, std::max(grain, depth / grain * grain)) : p.k;
  const std::int64_t in_size = element_size(in), out_size = element_size(out);
  const auto part_of = [in_size](const void *x, sg_transpose op, std::int64_t ld, std::int64_t row, std::int64_t col) {
    return static_cast<const char *>(x) + (op == SG_TRANSPOSE_N ? row + col * ld : col + row * ld) * in_size;
  };
  for (std::int64_t j = 0; j < p.n; j += n)
    for (std::int64_t i = 0; i < p.m; i += m)
      for (std::int64_t l = 0; l < p.k; l += k) {
        if (space.is_stopped()) return SG_STATUS_CANCELLED;
        gemm_args part = p;
        part.m = std::min(m, p.m - i);
        part.n = std::min(n, p.n - j);
        part.k = std::min(k, p.k - l);
        part.a = part_of(p.a, p.op_a, p.lda, i, l);
        part.b = part_of(p.b, p.op_b, p.ldb, l, j);
        part.c = static_cast<char *>(p.c) + (i + j * p.ldc) * out_size;
        if (l > 0) part.beta = {1, 0};
        if (const sg_status status = by.run(part, space); status != SG_STATUS_OK) return status;
      }
  return SG_STATUS_OK;
}

// Applies the epilogue to all of C, whose type is its accumulator's.
void finish_result(const gemm_args &p, sg_dtype out) noexcept {
  for (std::int64_t j = 0; j < p.n; ++j)
    finish_sums(p.end, out, static_cast<char *>(p.c) + j * p.ldc * element_size(out), 0, j, p.m);
}

// All GEMMs of a batch have the same types.
bool same_shape(const sg_backend_gemm &x, const sg_backend_gemm &y) noexcept {
  return x.m == y.m && x.n == y.n && x.k == y.k && x.op_a == y.op_a && x.op_b == y.op_b && x.lda == y.lda &&
         x.ldb == y.ldb && x.ldc == y.ldc;
}

}  // namespace

sg_status run_gemm(const sg_backend_gemm &gemm, const sg_backend_gemm *following, workspace &space) noexcept {
  const route &way = route_for(gemm.in_type, gemm.out_type);
  const std::int64_t in_size = element_size(gemm.in_type), out_size = element_size(gemm.out_type);
  gemm_args p = {.m = gemm.m,
                 .n = gemm.n,
                 .k = gemm.k,
                 .op_a = gemm.op_a,
                 .op_b = gemm.op_b,
                 .alpha = gemm.alpha,
                 .beta = gemm.beta,
                 .lda = gemm.lda,
                 .ldb = gemm.ldb,
                 .ldc = gemm.ldc,
                 .end = {gemm.bias, gemm.bias_per_row != 0, gemm.activation}};
  if (!is_complex(gemm.out_type)) p.alpha.im = p.beta.im = 0;
  // Tiles hold the sums unrounded, a short C does not.
  const bool finishes = is_any(p.end);
  const bool large = way.is_large(p);
  const bool direct = !large && takes(way.direct, p) && (!finishes || sum_type_of(gemm.out_type) == gemm.out_type);
  const auto operands_of = [in_size, out_size](const sg_backend_gemm &of, std::int64_t item) {
    return gemm_args::operands{item_of(of.a, of.a_array, item, of.stride_a * in_size),
                               item_of(of.b, of.b_array, item, of.stride_b * in_size),
                               item_of(of.c, of.c_array, item, of.stride_c * out_size)};
  };
  if (following != nullptr && !same_shape(gemm, *following)) following = nullptr;
  const double macs = macs_of(p), most = macs_between_polls(gemm.in_type);
  const bool in_parts = direct && macs > 2 * most;
  double since_poll = 0;
  for (std::int64_t i = 0; i < gemm.batch; ++i) {
    since_poll += macs;
    if (i > 0 && since_poll > most) {
      if (space.is_stopped()) return SG_STATUS_CANCELLED;
      since_poll = 0;
    }
    p.a = item_of(gemm.a, gemm.a_array, i, gemm.stride_a * in_size);
    p.b = item_of(gemm.b, gemm.b_array, i, gemm.stride_b * in_size);
    p.c = item_of(gemm.c, gemm.c_array, i, gemm.stride_c * out_size);
    p.next = i + 1 < gemm.batch     ? operands_of(gemm, i + 1)
             : following != nullptr ? operands_of(*following, 0)
                                    : gemm_args::operands{};
    const sg_status status = in_parts ? run_in_parts(p, way.direct, gemm.in_type, gemm.out_type, space)
                             : direct ? way.direct.run(p, space)
                             : large  ? run_tiles(p, gemm.in_type, gemm.out_type, way.large, way.large_tiles, space)
                                      : run_tiles(p, gemm.in_type, gemm.out_type, way.panels, {}, space);
    if (status != SG_STATUS_OK) return status;
    if (!finishes) continue;
    if (direct) finish_result(p, gemm.out_type);
    if (gemm.bias != nullptr) p.end.bias = static_cast<const char *>(p.end.bias) + gemm.stride_bias * out_size;
  }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
