// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/poll.hpp"

namespace sg::cpu {
namespace {

// X and Y of an operation on rows.
struct row_operands {
  std::int64_t rows, cols;
  sg_dtype type, x_type;
  const void *x;
  std::int64_t x_row, x_col;
  void *y;
  std::int64_t y_row, y_col;
};

template <class Command>
row_operands operands_of(const Command &c) noexcept {
  return {c.rows, c.cols, c.type, c.type, c.x, c.x_row, c.x_col, c.y, c.y_row, c.y_col};
}

std::size_t bytes_of(std::int64_t elements, std::int64_t size) noexcept {
  return static_cast<std::size_t>(elements) * static_cast<std::size_t>(size);
}

// Of contiguous rows. `body(to, from, i)` computes row i in the accumulator's type; rows of f32 and f64 without copies.
template <class Body>
sg_status each_contiguous_row(const row_operands &p, workspace &space, Body &&body) noexcept {
  const std::int64_t size = element_size(p.type), wide = element_size(sum_type_of(p.type));
  const std::int64_t x_size = element_size(p.x_type);
  char *scratch = nullptr;
  if (wide != size) {
    scratch = static_cast<char *>(space.get(scratch::converted, bytes_of(p.cols, wide)));
    if (scratch == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  }
  poll end(space);
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const char *x = static_cast<const char *>(p.x) + i * p.x_row * x_size;
    char *y = static_cast<char *>(p.y) + i * p.y_row * size;
    if (scratch != nullptr) {
      if (x_size != wide) widen(scratch, x, p.x_type, p.cols);
      body(scratch, x_size == wide ? x : scratch, i);
      narrow(y, p.type, scratch, p.cols);
    } else {
      body(y, x, i);
    }
    if (end.stops(p.cols)) return SG_STATUS_CANCELLED;
  }
  return SG_STATUS_OK;
}

// Moves elements between `count` neighbouring rows, whose columns are contiguous in memory, and one row after another.
template <class T>
void gather(T *to, const T *from, std::int64_t count, std::int64_t cols, std::int64_t ld) noexcept {
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < count; ++i) to[i * cols + j] = from[i + j * ld];
}
template <class T>
void scatter(T *to, const T *from, std::int64_t count, std::int64_t cols, std::int64_t ld) noexcept {
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < count; ++i) to[i + j * ld] = from[i * cols + j];
}
template <class Body>
void with_size(std::int64_t size, Body &&body) noexcept {
  if (size == 8) return body(std::uint64_t{});
  if (size == 4) return body(std::uint32_t{});
  return body(std::uint16_t{});
}

// Of rows whose elements are apart: several rows at a time, as many as a cache line has elements, are made contiguous.
template <class Body>
sg_status each_strided_row(const row_operands &p, workspace &space, Body &&body) noexcept {
  const std::int64_t size = element_size(p.type), wide = element_size(sum_type_of(p.type)), block = 64 / size;
  char *const tile = static_cast<char *>(space.get(scratch::panel_a, bytes_of(p.cols, 64)));
  char *const row = static_cast<char *>(space.get(scratch::converted, bytes_of(p.cols, wide)));
  if (tile == nullptr || row == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  poll end(space);
  for (std::int64_t first = 0; first < p.rows; first += block) {
    const std::int64_t count = std::min(block, p.rows - first);
    with_size(size, [&]<class T>(T) {
      gather(reinterpret_cast<T *>(tile), static_cast<const T *>(p.x) + first, count, p.cols, p.x_col);
    });
    for (std::int64_t i = 0; i < count; ++i) {
      widen(row, tile + i * p.cols * size, p.type, p.cols);
      body(row, row, first + i);
      narrow(tile + i * p.cols * size, p.type, row, p.cols);
    }
    with_size(size, [&]<class T>(T) {
      scatter(static_cast<T *>(p.y) + first, reinterpret_cast<const T *>(tile), count, p.cols, p.y_col);
    });
    if (end.stops(count * p.cols)) return SG_STATUS_CANCELLED;
  }
  return SG_STATUS_OK;
}

template <class Body>
sg_status each_row(const row_operands &p, workspace &space, Body &&body) noexcept {
  const bool contiguous = p.cols == 1 || (p.x_col == 1 && p.y_col == 1);
  return contiguous ? each_contiguous_row(p, space, body) : each_strided_row(p, space, body);
}

}  // namespace

sg_status run_elementwise(const sg_backend_elementwise &what, workspace &space) noexcept {
  const sg_dtype type = sum_type_of(what.type);
  const std::int64_t size = element_size(what.type);
  constexpr std::int64_t step = 2048;  // elements of a column, which stay in the first-level cache
  alignas(64) float first[step], second[step];
  poll end(space);
  const auto at = [size](const void *of, std::int64_t element) {
    return static_cast<const char *>(of) + element * size;
  };
  for (std::int64_t j = 0; j < what.n; ++j)
    for (std::int64_t i = 0; i < what.m; i += step) {
      const std::int64_t count = std::min(step, what.m - i);
      const void *a = at(what.a, i + j * what.lda), *b = what.b ? at(what.b, i + j * what.ldb) : nullptr;
      void *const c = static_cast<char *>(what.c) + (i + j * what.ldc) * size;
      void *to = c;
      if (type != what.type) {
        widen(first, a, what.type, count);
        if (b != nullptr) widen(second, b, what.type, count);
        a = to = first, b = second;
      }
      if (what.b != nullptr)
        simd().layers->binary(type, what.function, to, a, b, count);
      else
        simd().layers->unary(type, what.function, to, a, count);
      if (to != c) narrow(c, what.type, to, count);
      if (end.stops(count)) return SG_STATUS_CANCELLED;
    }
  return SG_STATUS_OK;
}

namespace {

// The sums of contiguous rows of Y as stored.
sg_status sum_rows(const sg_backend_softmax &what, workspace &space) noexcept {
  auto *const row = static_cast<float *>(space.get(scratch::converted, bytes_of(what.cols, sizeof(float))));
  if (row == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  poll end(space);
  for (std::int64_t i = 0; i < what.rows; ++i) {
    widen(row, static_cast<const char *>(what.y) + i * what.y_row * element_size(what.type), what.type, what.cols);
    what.sums[i] = simd().layers->sum(row, what.cols);
    if (end.stops(what.cols)) return SG_STATUS_CANCELLED;
  }
  return SG_STATUS_OK;
}

}  // namespace

// Masked elements are read with their row, but take no part in the result.
sg_status run_softmax(const sg_backend_softmax &what, workspace &space) noexcept {
  const sg_dtype type = sum_type_of(what.type);
  const std::int64_t size = element_size(type);
  row_operands rows = operands_of(what);
  if (what.x_type != 0) rows.x_type = what.x_type;
  const sg_status status = each_row(rows, space, [&](char *to, const char *from, std::int64_t i) {
    std::int64_t visible = what.cols, row = i + what.mask_row;
    if (what.mask_rows > 0) row %= what.mask_rows;
    if (what.mask == SG_MASK_CAUSAL) visible = std::clamp<std::int64_t>(row + what.mask_offset + 1, 0, what.cols);
    if (visible > 0) simd().layers->softmax(type, to, from, visible, what.sums == nullptr);
    std::memset(to + visible * size, 0, bytes_of(what.cols - visible, size));
  });
  return status != SG_STATUS_OK || what.sums == nullptr ? status : sum_rows(what, space);
}

sg_status run_softmax_backward(const sg_backend_softmax_backward &what, workspace &space) noexcept {
  const sg_dtype wide = sum_type_of(what.type);
  const std::int64_t size = element_size(what.type), dy_size = element_size(what.dy_type);
  const bool widens = wide != what.type, widens_dy = wide != what.dy_type;
  char *scratch = nullptr;
  if (widens || widens_dy) {
    scratch = static_cast<char *>(space.get(scratch::converted, 2 * bytes_of(what.cols, element_size(wide))));
    if (scratch == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  }
  char *const second = scratch == nullptr ? nullptr : scratch + what.cols * element_size(wide);
  poll end(space);
  for (std::int64_t i = 0; i < what.rows; ++i) {
    const void *y = static_cast<const char *>(what.y) + i * what.y_row * size;
    const void *dy = static_cast<const char *>(what.dy) + i * what.dy_row * dy_size;
    char *const dx = static_cast<char *>(what.dx) + i * what.dx_row * size;
    void *const to = widens ? scratch : dx;
    if (widens) widen(scratch, y, what.type, what.cols), y = scratch;
    if (widens_dy) widen(second, dy, what.dy_type, what.cols), dy = second;
    simd().layers->softmax_gradient(wide, to, y, dy, what.cols);
    if (widens) narrow(dx, what.type, scratch, what.cols);
    if (end.stops(what.cols)) return SG_STATUS_CANCELLED;
  }
  return SG_STATUS_OK;
}

sg_status run_norm(const sg_backend_norm &what, workspace &space) noexcept {
  const sg_dtype type = sum_type_of(what.type);
  const void *gamma = what.gamma, *beta = what.beta;
  if (type != what.type && (gamma != nullptr || beta != nullptr)) {
    const std::int64_t size = element_size(type);
    char *const wide = static_cast<char *>(space.get(scratch::sums, 2 * bytes_of(what.cols, size)));
    if (wide == nullptr) return SG_STATUS_OUT_OF_MEMORY;
    const auto widened = [&](const void *values, char *to) -> const void * {
      if (values == nullptr) return nullptr;
      widen(to, values, what.type, what.cols);
      return to;
    };
    gamma = widened(what.gamma, wide);
    beta = widened(what.beta, wide + what.cols * size);
  }
  return each_row(operands_of(what), space, [&](char *to, const char *from, std::int64_t) {
    simd().layers->norm(type, what.kind, to, from, gamma, beta, what.epsilon, what.cols);
  });
}

}  // namespace sg::cpu
