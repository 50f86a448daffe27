// SPDX-License-Identifier: Apache-2.0
// Small GEMMs of f32 with AVX-512, on unpacked operands: nothing is packed, generated or looked up. As in simd.cpp, no
// inline function of another header may be called here.
#include <immintrin.h>

#include "kernel.hpp"

namespace sg::cpu::avx512 {
namespace {

constexpr std::int64_t width = 16;  // floats of a vector
// Most products that are added one after another, as BLAS libraries add them (OpenBLAS: 384): the error of a sum grows
// with the root of it. Not less, measured on 512 GEMMs of 64x64x1024 from memory: with 256 two cores take a tenth
// longer than with 1024, because the runs of B's columns are shorter.
constexpr std::int64_t depth = 512;
// Prefetch distance in columns of A. The processor's own prefetching does not cross pages, and a column of B is a page
// of its own where k is 1024. Measured on the same GEMMs: one core takes 52 ms, without prefetching 61; unchanged in
// cache.
constexpr std::int64_t ahead = 16;
// Size of a GEMM that fits the first-level cache together with the next one, whose operands are then prefetched instead
// of its own. Measured on 32^3 from memory: one core takes 1.16 us, with its own operands prefetched 1.54; unchanged in
// cache.
constexpr std::int64_t short_enough = 24 << 10;

// Operands of one call of a block; `last` are the rows of its last vector.
struct strip {
  const float *a, *b;
  float *c;
  std::int64_t k, lda, b_row, b_col, ldc;
  float alpha, beta;
  __mmask16 last;
};

// The line may be unmapped, which is harmless.
inline void prefetch_line(const float *address) noexcept {
  _mm_prefetch(reinterpret_cast<const char *>(address), _MM_HINT_T0);
}

// Memory to be prefetched line by line; the last line repeats.
struct prefetch_list {
  const char *at = nullptr, *last = nullptr;

  void prefetch_next() noexcept {
    _mm_prefetch(at, _MM_HINT_T0);
    at += at < last ? 64 : 0;
  }
};

// The operands of the next GEMM.
struct next_operands {
  prefetch_list a, b, c;
};

// `vectors` by `columns` of C, with the sums in registers. `next`: prefetches the next GEMM's lines instead of its own.
template <int vectors, int columns, bool next>
void multiply_block(const strip &s, std::int64_t column, next_operands &coming) noexcept {
  __m512 sums[columns][vectors];
#pragma GCC unroll 8
  for (int j = 0; j < columns; ++j)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sums[j][v] = _mm512_setzero_ps();
  const float *a = s.a, *b = s.b + column * s.b_col;
  const auto add_outer_product = [&]() __attribute__((always_inline)) {
    __m512 rows[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors - 1; ++v) rows[v] = _mm512_loadu_ps(a + v * width);
    rows[vectors - 1] = _mm512_maskz_loadu_ps(s.last, a + (vectors - 1) * width);
#pragma GCC unroll 8
    for (int j = 0; j < columns; ++j) {
      const __m512 factor = _mm512_set1_ps(b[j * s.b_col]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[j][v] = _mm512_fmadd_ps(rows[v], factor, sums[j][v]);
    }
    a += s.lda;
    b += s.b_row;
  };
  std::int64_t left = s.k;
  if constexpr (next) {
    next_operands local = coming;
    for (; left >= 2; left -= 2) {
      local.a.prefetch_next();
      local.b.prefetch_next();
      local.c.prefetch_next();
      add_outer_product();
      add_outer_product();
    }
    coming = local;
  } else {
    for (; left >= width; left -= width) {  // a cache line of a column of B
#pragma GCC unroll 8
      for (int j = 0; j < columns; ++j) prefetch_line(b + (columns + j) * s.b_col);
      for (std::int64_t l = 0; l < width; ++l) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) prefetch_line(a + ahead * s.lda + v * width);
        add_outer_product();
      }
    }
  }
  for (; left > 0; --left) add_outer_product();
#pragma GCC unroll 8
  for (int j = 0; j < columns; ++j)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const __mmask16 rows = v == vectors - 1 ? s.last : static_cast<__mmask16>(0xffff);
      float *const at = s.c + (column + j) * s.ldc + v * width;
      __m512 result = _mm512_mul_ps(_mm512_set1_ps(s.alpha), sums[j][v]);
      if (s.beta != 0) result = _mm512_fmadd_ps(_mm512_set1_ps(s.beta), _mm512_maskz_loadu_ps(rows, at), result);
      _mm512_mask_storeu_ps(at, rows, result);
    }
}

template <int vectors, bool next>
void multiply_strip(const strip &s, std::int64_t n, next_operands &coming) noexcept {
  constexpr int columns = vectors == 4 ? 6 : 8;  // 16 to 24 sums in the 32 registers
  std::int64_t j = 0;
  for (; n - j >= columns; j += columns) multiply_block<vectors, columns, next>(s, j, coming);
  if (n - j >= 4) {
    multiply_block<vectors, 4, next>(s, j, coming);
    j += 4;
  }
  if (n - j >= 2) {
    multiply_block<vectors, 2, next>(s, j, coming);
    j += 2;
  }
  if (n > j) multiply_block<vectors, 1, next>(s, j, coming);
}

template <bool next>
constexpr void (*strips[])(const strip &, std::int64_t n, next_operands &) noexcept = {
    multiply_strip<1, next>, multiply_strip<2, next>, multiply_strip<3, next>, multiply_strip<4, next>};

// From the first element to the last.
std::int64_t bytes_of(std::int64_t rows, std::int64_t columns, std::int64_t ld) noexcept {
  return ((columns - 1) * ld + rows) * static_cast<std::int64_t>(sizeof(float));
}

// Avoids narrow strips: 5 vectors are 3 and 2, 6 are 3 and 3.
constexpr std::int64_t vectors_of_strip(std::int64_t left) noexcept {
  return left >= 8 || left == 4 ? 4 : left > 4 ? (left + 1) / 2 : left;
}

}  // namespace

void multiply_small(const gemm_args &p) noexcept {
  const bool plain = p.op_b == SG_TRANSPOSE_N;
  const auto *a = static_cast<const float *>(p.a), *b = static_cast<const float *>(p.b);
  auto *c = static_cast<float *>(p.c);
  strip s = {.a = a,
             .b = b,
             .c = c,
             .k = p.k,
             .lda = p.lda,
             .b_row = plain ? 1 : p.ldb,
             .b_col = plain ? p.ldb : 1,
             .ldc = p.ldc,
             .alpha = static_cast<float>(p.alpha.re),
             .beta = static_cast<float>(p.beta.re),
             .last = 0};
  const std::int64_t a_bytes = bytes_of(p.m, p.k, p.lda), c_bytes = bytes_of(p.m, p.n, p.ldc),
                     b_bytes = plain ? bytes_of(p.k, p.n, p.ldb) : bytes_of(p.n, p.k, p.ldb);
  const bool asks_for_next = p.next.a != nullptr && a_bytes + b_bytes + c_bytes <= short_enough;
  const auto list = [](const void *first, std::int64_t bytes) {
    const auto *at = static_cast<const char *>(first);
    return prefetch_list{at, at + (bytes - 64)};
  };
  next_operands coming;
  if (asks_for_next) coming = {list(p.next.a, a_bytes), list(p.next.b, b_bytes), list(p.next.c, c_bytes)};
  const auto &multiply = asks_for_next ? strips<true> : strips<false>;
  // Equal pieces, of whole cache lines of a column of B.
  const std::int64_t pieces = p.k > depth ? (p.k + depth - 1) / depth : 1,
                     piece = ((p.k + pieces - 1) / pieces + width - 1) / width * width;
  for (std::int64_t i = 0; i < p.m;) {
    const std::int64_t vectors = vectors_of_strip((p.m - i + width - 1) / width);
    const std::int64_t rows = vectors * width < p.m - i ? vectors * width : p.m - i;
    s.last = static_cast<__mmask16>((1u << (rows - (vectors - 1) * width)) - 1);
    s.c = c + i;
    for (std::int64_t l = 0; l < p.k; l += s.k) {
      s.k = p.k - l < piece ? p.k - l : piece;
      s.a = a + i + l * p.lda;
      s.b = b + l * s.b_row;
      s.beta = l == 0 ? static_cast<float>(p.beta.re) : 1.0f;
      multiply[vectors - 1](s, p.n, coming);
    }
    i += rows;
  }
}

}  // namespace sg::cpu::avx512
