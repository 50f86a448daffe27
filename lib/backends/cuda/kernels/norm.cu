// SPDX-License-Identifier: Apache-2.0
// Layer norm and RMS norm of each row.
#include <cstdint>

#include "layers.hpp"
#include "rows.cuh"

namespace sg::cuda {
inline namespace norm_cu {

template <class T>
struct norm_values {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const T *gamma, *beta;  // NULL: ones, zeros
  real mean, factor;
  pack<T, whole_pack<T>> factors, addends;

  template <int count>
  __device__ void load(std::int64_t col) {
    const auto read = [col](pack<T, whole_pack<T>> &to, const T *from) {
      const pack<T, count> values = load_pack<count>(from + col);
#pragma unroll
      for (int v = 0; v < count; ++v) to.at[v] = values.at[v];
    };
    if (gamma != nullptr) read(factors, gamma);
    if (beta != nullptr) read(addends, beta);
  }
  __device__ real operator()(int v, real value) const {
    real result = (value - mean) * factor;
    if (gamma != nullptr) result *= ops::widened(factors.at[v]);
    if (beta != nullptr) result += ops::widened(addends.at[v]);
    return result;
  }
};

struct norm_rows {
  static constexpr bool reads_vectors = true;

  const void *gamma, *beta;
  double epsilon;
  bool subtracts_mean;

  __device__ std::int64_t limit(std::int64_t, std::int64_t cols) const { return cols; }

  template <class Row>
  __device__ void run(Row &row, std::int64_t) const {
    using real = typename Row::real;
    using T = typename Row::element;
    const auto plus = [](real a, real b) { return a + b; };
    real mean = 0, squares = 0;
    if (subtracts_mean) {
      row.each([&](real &value) { mean += value; });
      mean = row.combined(mean, plus) / real(row.cols);
    }
    row.each([&](real &value) { squares += (value - mean) * (value - mean); });
    squares = row.combined(squares, plus);
    const real factor = 1 / square_root(squares / real(row.cols) + real(epsilon));
    row.write(norm_values<T>{static_cast<const T *>(gamma), static_cast<const T *>(beta), mean, factor, {}, {}});
  }
};

template <class T>
cudaError_t launch_typed(const sg_backend_norm &what, cudaStream_t in) {
  const norm_rows rows{what.gamma, what.beta, what.epsilon, what.kind == SG_NORM_LAYER};
  return launch_rows<T>(operands_of(what), rows, {what.gamma, what.beta}, in);
}

}  // namespace norm_cu

cudaError_t launch_norm(const sg_backend_norm &what, cudaStream_t in) noexcept {
  switch (what.type) {
    case SG_DTYPE_F64: return launch_typed<double>(what, in);
    case SG_DTYPE_F32: return launch_typed<float>(what, in);
    case SG_DTYPE_F16: return launch_typed<__half>(what, in);
    case SG_DTYPE_BF16: return launch_typed<__nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
