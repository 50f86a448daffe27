// SPDX-License-Identifier: Apache-2.0
// The operations of layers.h, in the arithmetic that it names.
#pragma once

#include <streamgemm/backend.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "address_space.hpp"
#include "element.hpp"

namespace sg::sim {

// A times the sigmoid of x; 0 for A at minus infinity.
template <class Real>
Real times_sigmoid(Real a, Real x) noexcept {
  const Real e = std::exp(-std::fabs(x));
  return a == -Real(INFINITY) ? 0 : a * ((x < 0 ? e : 1) / (1 + e));
}

// The derivative of a function. Far from 0 it is the limit.
template <class Real>
Real derivative_of(sg_function of, Real given) noexcept {
  const Real x = given < -1000 ? -1000 : given > 1000 ? 1000 : given;
  // Of x times the sigmoid of t.
  const auto of_product = [x](Real t, Real t_derivative) -> Real {
    const Real e = std::exp(-std::fabs(t)), sum = 1 + e;
    return (t < 0 ? e : 1) / sum + x * t_derivative * e / (sum * sum);
  };
  const Real e = std::exp(-std::fabs(x)), e2 = e * e;
  switch (of) {
    case SG_FUNCTION_GELU:
      return of_product(x * (Real(1.5957691216057308) + Real(0.071354816272600249) * x * x),
                        Real(1.5957691216057308) + Real(3 * 0.071354816272600249) * x * x);
    case SG_FUNCTION_GELU_ERF:
      return Real(0.5) * std::erfc(x * Real(-0.70710678118654752)) +
             x * Real(0.39894228040143268) * std::exp(Real(-0.5) * x * x);
    case SG_FUNCTION_SILU: return of_product(x, 1);
    case SG_FUNCTION_SIGMOID: return e / ((1 + e) * (1 + e));
    case SG_FUNCTION_TANH: return 4 * e2 / ((1 + e2) * (1 + e2));
    default: return 0;
  }
}

template <class Real>
Real value_of(sg_function function, Real a, Real b) noexcept {
  switch (function) {
    case SG_FUNCTION_RELU: return a < 0 ? 0 : a;
    case SG_FUNCTION_GELU: return times_sigmoid(a, a * (Real(1.5957691216057308) + Real(0.071354816272600249) * a * a));
    case SG_FUNCTION_GELU_ERF:
      return a == -Real(INFINITY) ? 0 : Real(0.5) * a * std::erfc(a * Real(-0.70710678118654752));
    case SG_FUNCTION_SILU: return times_sigmoid(a, a);
    case SG_FUNCTION_SIGMOID: return times_sigmoid(Real(1), a);
    case SG_FUNCTION_TANH: return std::tanh(a);
    case SG_FUNCTION_ADD: return a + b;
    case SG_FUNCTION_MULTIPLY: return a * b;
    case SG_FUNCTION_RELU_GRADIENT: return a * (b > 0 ? 1 : b <= 0 ? 0 : b);
    case SG_FUNCTION_GELU_GRADIENT: return a * derivative_of(SG_FUNCTION_GELU, b);
    case SG_FUNCTION_GELU_ERF_GRADIENT: return a * derivative_of(SG_FUNCTION_GELU_ERF, b);
    case SG_FUNCTION_SILU_GRADIENT: return a * derivative_of(SG_FUNCTION_SILU, b);
    case SG_FUNCTION_SIGMOID_GRADIENT: return a * derivative_of(SG_FUNCTION_SIGMOID, b);
    case SG_FUNCTION_TANH_GRADIENT: return a * derivative_of(SG_FUNCTION_TANH, b);
  }
  return 0;
}

// Calls body<traits>() for a type of layers.h.
template <class Body>
void with_layer_type(sg_dtype type, Body &&body) {
  switch (type) {
    case SG_DTYPE_F64: return body.template operator()<element<SG_DTYPE_F64>>();
    case SG_DTYPE_F16: return body.template operator()<element<SG_DTYPE_F16>>();
    case SG_DTYPE_BF16: return body.template operator()<element<SG_DTYPE_BF16>>();
    default: return body.template operator()<element<SG_DTYPE_F32>>();
  }
}

template <class Traits>
const typename Traits::stored *stored_at(const std::byte *at) noexcept {
  return reinterpret_cast<const typename Traits::stored *>(at);
}
template <class Traits>
typename Traits::stored *stored_at(std::byte *at) noexcept {
  return reinterpret_cast<typename Traits::stored *>(at);
}

// `b` may be NULL. The commands' own pointers are not used here and below.
inline void run_elementwise(const sg_backend_elementwise &what, const std::byte *a, const std::byte *b, std::byte *c) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    for (std::int64_t j = 0; j < what.n; ++j)
      for (std::int64_t i = 0; i < what.m; ++i) {
        const auto x = static_cast<real>(Traits::load(stored_at<Traits>(a)[i + j * what.lda]));
        const auto y = static_cast<real>(b ? Traits::load(stored_at<Traits>(b)[i + j * what.ldb]) : 0);
        stored_at<Traits>(c)[i + j * what.ldc] = Traits::store(value_of(what.function, x, y));
      }
  });
}

template <class Real>
void softmax_row(std::vector<Real> &row, std::int64_t visible, bool divides) {
  Real most = -INFINITY;
  const auto at = [&row](std::int64_t j) -> Real & { return row[static_cast<std::size_t>(j)]; };
  for (std::int64_t j = 0; j < visible; ++j) most = std::max(most, at(j));  // passes over a NaN
  if (most == -INFINITY) most = 0;
  for (std::int64_t j = 0; j < visible; ++j) at(j) = std::exp(at(j) - most);
  const Real sum = divides ? pairwise_sum<Real>(0, visible, at) : 1;
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = std::int64_t(j) < visible && sum != 0 ? row[j] / sum : 0;
}

// Reads each row in the type of the arithmetic, calls body(row, i), and stores it.
template <class Command, class Body>
void each_row(const Command &what, sg_dtype x_type, const std::byte *x, std::byte *y, Body &&body) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    std::vector<real> row(static_cast<std::size_t>(what.cols));
    for (std::int64_t i = 0; i < what.rows; ++i) {
      with_layer_type(x_type, [&]<class Given>() {
        for (std::int64_t j = 0; j < what.cols; ++j)
          row[static_cast<std::size_t>(j)] =
              static_cast<real>(Given::load(stored_at<Given>(x)[i * what.x_row + j * what.x_col]));
      });
      body(row, i);
      for (std::int64_t j = 0; j < what.cols; ++j)
        stored_at<Traits>(y)[i * what.y_row + j * what.y_col] = Traits::store(row[static_cast<std::size_t>(j)]);
    }
  });
}

inline sg_dtype x_type_of(const sg_backend_softmax &what) noexcept { return what.x_type ? what.x_type : what.type; }

// `sums` may be NULL.
inline void run_softmax(const sg_backend_softmax &what, const std::byte *x, std::byte *y, float *sums) {
  each_row(what, x_type_of(what), x, y, [&](auto &row, std::int64_t i) {
    std::int64_t visible = what.cols, number = i + what.mask_row;
    if (what.mask_rows > 0) number %= what.mask_rows;
    if (what.mask == SG_MASK_CAUSAL) visible = std::clamp<std::int64_t>(number + what.mask_offset + 1, 0, what.cols);
    softmax_row(row, visible, sums == nullptr);
  });
  if (sums == nullptr) return;
  with_layer_type(what.type, [&]<class Traits>() {
    for (std::int64_t i = 0; i < what.rows; ++i)
      sums[i] = pairwise_sum<float>(0, what.cols, [&](std::int64_t j) {
        return static_cast<float>(Traits::load(stored_at<Traits>(y)[i * what.y_row + j]));
      });
  });
}

// The mean of a layer norm is the rounded one and, beside it, the mean of the differences from that.
template <class Real>
void norm_row(const sg_backend_norm &what, std::vector<Real> &row) {
  const auto count = static_cast<std::int64_t>(row.size());
  const auto mean_of = [&](auto &&value) {
    return pairwise_sum<Real>(0, count, [&](std::int64_t j) { return value(row[static_cast<std::size_t>(j)]); }) /
           static_cast<Real>(count);
  };
  if (what.kind == SG_NORM_LAYER) {
    const Real mean = mean_of([](Real v) { return v; });
    for (Real &value : row) value -= mean;
    const Real rest = mean_of([](Real v) { return v; });
    for (Real &value : row) value -= rest;
  }
  const Real variance = mean_of([](Real v) { return v * v; });
  const Real factor = 1 / std::sqrt(variance + static_cast<Real>(what.epsilon));
  for (Real &value : row) value *= factor;
}

// `gamma` and `beta` may be NULL.
inline void run_norm(const sg_backend_norm &what, const std::byte *x, std::byte *y, const std::byte *gamma,
                     const std::byte *beta) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    each_row(what, what.type, x, y, [&](auto &row, std::int64_t) {
      norm_row(what, row);
      for (std::size_t j = 0; j < row.size(); ++j) {
        if (gamma) row[j] *= static_cast<real>(Traits::load(stored_at<Traits>(gamma)[j]));
        if (beta) row[j] += static_cast<real>(Traits::load(stored_at<Traits>(beta)[j]));
      }
    });
  });
}

inline void run_softmax_backward(const sg_backend_softmax_backward &what, const std::byte *y, const std::byte *dy,
                                 std::byte *dx) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    std::vector<real> weights(static_cast<std::size_t>(what.cols)), gradients(weights.size());
    with_layer_type(what.dy_type, [&]<class Gradient>() {
      for (std::int64_t i = 0; i < what.rows; ++i) {
        for (std::size_t j = 0; j < weights.size(); ++j) {
          weights[j] = static_cast<real>(Traits::load(stored_at<Traits>(y)[i * what.y_row + std::int64_t(j)]));
          gradients[j] = static_cast<real>(Gradient::load(stored_at<Gradient>(dy)[i * what.dy_row + std::int64_t(j)]));
        }
        const real sum = pairwise_sum<real>(0, what.cols, [&](std::int64_t j) {
          return weights[static_cast<std::size_t>(j)] * gradients[static_cast<std::size_t>(j)];
        });
        for (std::size_t j = 0; j < weights.size(); ++j)
          stored_at<Traits>(dx)[i * what.dx_row + std::int64_t(j)] = Traits::store(weights[j] * (gradients[j] - sum));
      }
    });
  });
}

// Bytes from the first to the last element of a matrix with any strides.
inline std::uint64_t strided_extent(std::int64_t rows, std::int64_t row, std::int64_t cols, std::int64_t col,
                                    sg_dtype type) noexcept {
  return static_cast<std::uint64_t>(((rows - 1) * row + (cols - 1) * col + 1) * element_size(type));
}

// The command's task, with its operands resolved in the device's memory. Throws if they are not there.
inline std::function<void()> work_of(const address_space &memory, const sg_backend_elementwise &what) {
  const auto extent = [&](std::int64_t ld) { return strided_extent(what.m, 1, what.n, ld, what.type); };
  const std::byte *a = memory.device_bytes(what.a, extent(what.lda), "A of an elementwise function");
  const std::byte *b = what.b ? memory.device_bytes(what.b, extent(what.ldb), "B of an elementwise function") : nullptr;
  std::byte *c = memory.device_bytes(what.c, extent(what.ldc), "C of an elementwise function");
  return [what, a, b, c] { run_elementwise(what, a, b, c); };
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_softmax &what) {
  const std::byte *x = memory.device_bytes(
      what.x, strided_extent(what.rows, what.x_row, what.cols, what.x_col, x_type_of(what)), "X of a softmax");
  std::byte *y = memory.device_bytes(what.y, strided_extent(what.rows, what.y_row, what.cols, what.y_col, what.type),
                                     "Y of a softmax");
  float *sums = nullptr;
  if (what.sums)
    sums = reinterpret_cast<float *>(
        memory.device_bytes(what.sums, strided_extent(1, 0, what.rows, 1, SG_DTYPE_F32), "the sums of a softmax"));
  return [what, x, y, sums] { run_softmax(what, x, y, sums); };
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_norm &what) {
  const std::byte *x = memory.device_bytes(
      what.x, strided_extent(what.rows, what.x_row, what.cols, what.x_col, what.type), "X of a norm");
  std::byte *y = memory.device_bytes(what.y, strided_extent(what.rows, what.y_row, what.cols, what.y_col, what.type),
                                     "Y of a norm");
  const auto vector = [&](const void *at, const char *name) -> const std::byte * {
    return at ? memory.device_bytes(at, strided_extent(1, 0, what.cols, 1, what.type), name) : nullptr;
  };
  const std::byte *gamma = vector(what.gamma, "gamma of a norm"), *beta = vector(what.beta, "beta of a norm");
  return [what, x, y, gamma, beta] { run_norm(what, x, y, gamma, beta); };
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_softmax_backward &what) {
  const auto found = [&](const void *at, std::int64_t row, sg_dtype type, const char *name) {
    return memory.device_bytes(at, strided_extent(what.rows, row, what.cols, 1, type), name);
  };
  const std::byte *y = found(what.y, what.y_row, what.type, "Y of a softmax's gradient");
  const std::byte *dy = found(what.dy, what.dy_row, what.dy_type, "dY of a softmax's gradient");
  std::byte *dx = found(what.dx, what.dx_row, what.type, "dX of a softmax's gradient");
  return [what, y, dy, dx] { run_softmax_backward(what, y, dy, dx); };
}

}  // namespace sg::sim
