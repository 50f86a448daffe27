// SPDX-License-Identifier: Apache-2.0
// The softmax of each row.
#include <cmath>
#include <cstdint>

#include "layers.hpp"
#include "rows.cuh"

namespace sg::cuda {
inline namespace softmax_cu {

// From exponentials, or from the row's own values.
template <class Real, bool keeps>
struct softmax_values {
  Real most, inverse;

  template <int count>
  __device__ void load(std::int64_t) {}
  __device__ Real operator()(int, Real value) const { return (keeps ? value : exponential(value - most)) * inverse; }
};

struct softmax_rows {
  static constexpr bool reads_vectors = false;
  bool causal;
  std::int64_t offset, first, period;
  float *sums;  // of the exponentials as rounded; nullptr: the elements are divided by their sum

  __device__ std::int64_t limit(std::int64_t i, std::int64_t cols) const {
    const std::int64_t row = i + first, visible = (period > 0 ? row % period : row) + offset + 1;
    return !causal || visible > cols ? cols : visible < 0 ? 0 : visible;
  }

  // A maximum of minus infinity is replaced by 0: the exponentials, unless there is a NaN, are then all 0.
  template <class Row>
  __device__ void run(Row &row, std::int64_t i) const {
    using real = typename Row::real;
    if constexpr (!Row::keeps && sizeof(typename Row::element) == sizeof(typename Row::out_element))
      return run_once(row);
    real most = -real(INFINITY), sum = 0;
    row.each([&](real &value) { most = value > most ? value : most; });
    most = row.combined(most, [](real a, real b) { return b > a ? b : a; });
    if (most == -real(INFINITY)) most = 0;
    if constexpr (sizeof(typename Row::element) != sizeof(typename Row::out_element))
      if (sums != nullptr) return weigh(row, i, most);
    row.each([&](real &value) {
      value = exponential(value - most);
      sum += value;
    });
    sum = row.combined(sum, [](real a, real b) { return a + b; });
    row.write(softmax_values<real, Row::keeps>{most, sum == 0 ? real(0) : 1 / sum});
  }

  // With one pass for the maximum and the sum, which is scaled whenever the maximum grows.
  template <class Row>
  __device__ void run_once(Row &row) const {
    using real = typename Row::real;
    real most = -real(INFINITY), sum = 0;
    row.each([&](real &value) {
      if (value == -real(INFINITY)) return;
      if (value > most) {
        sum *= exponential(most - value);
        most = value;
      }
      sum += exponential(value - most);
    });
    const real own = most;
    most = row.combined(most, [](real a, real b) { return b > a ? b : a; });
    if (most == -real(INFINITY)) most = 0;
    if (own != most) sum *= exponential(own - most);
    sum = row.combined(sum, [](real a, real b) { return a + b; });
    row.write(softmax_values<real, false>{most, sum == 0 ? real(0) : 1 / sum});
  }

  template <class Row>
  __device__ void weigh(Row &row, std::int64_t i, float most) const {
    using stored = arithmetic<typename Row::out_element>;
    float sum = 0;
    row.each([&](float &value) {
      value = exponential(value - most);
      sum += stored::widened(stored::rounded(value));
    });
    sum = row.combined(sum, [](float a, float b) { return a + b; });
    if (row.thread == 0) sums[i] = sum;
    row.write(softmax_values<float, Row::keeps>{most, 1});
  }
};

}  // namespace softmax_cu

cudaError_t launch_softmax(const sg_backend_softmax &what, cudaStream_t in) noexcept {
  const row_operands p = operands_of(what);
  const softmax_rows rows{what.mask == SG_MASK_CAUSAL, what.mask_offset, what.mask_row, what.mask_rows, what.sums};
  if (what.x_type != 0 && what.type == SG_DTYPE_F16) return launch_rows<float, __half>(p, rows, {}, in);
  if (what.x_type != 0) return launch_rows<float, __nv_bfloat16>(p, rows, {}, in);
  switch (what.type) {
    case SG_DTYPE_F64: return launch_rows<double>(p, rows, {}, in);
    case SG_DTYPE_F32: return launch_rows<float>(p, rows, {}, in);
    case SG_DTYPE_F16: return launch_rows<__half>(p, rows, {}, in);
    case SG_DTYPE_BF16: return launch_rows<__nv_bfloat16>(p, rows, {}, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
