// SPDX-License-Identifier: Apache-2.0
// Attention of f16 and bf16 in one kernel: a block has 64 queries of a head, and takes the keys and values 64 at a
// time. Scores stay in registers; their softmax is completed with each tile of keys: the sums of earlier tiles are
// scaled to the new maximum.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "accesses.hpp"
#include "layers.hpp"
#include "tensor_cores.cuh"

namespace sg::cuda {
inline namespace attention_cu {

constexpr int warps = 4, threads = 32 * warps;
constexpr int block_keys = 64;
constexpr int stages = 2;  // of keys and values in shared memory
constexpr float log2_e = 1.44269504088896340736f;

struct strides {
  std::int64_t batch, head, token;
};

struct call {
  const void *q, *k, *v;
  void *o;
  strides of_q, of_k, of_v, of_o;
  std::int64_t heads, items;  // items: heads of all batches
  std::int64_t heads_of_key;  // query heads for each key head
  std::int64_t queries, keys, mask_offset, query_blocks;
  int width, value_width;
  bool causal, in_chunks;  // in_chunks: q, k and v can be copied 16 bytes at a time
  bool negates;            // scores
  float scale;             // then of scores, times log2(e); > 0
};

#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)

constexpr int chunk = 8;  // elements of the widest copy

// The place of a chunk in a tile with rows of `Width` elements: rows are rotated, so that no two of eight rows share
// banks.
template <int Width>
__device__ int place_of(int row, int at) {
  return (row * (Width / chunk) + (at ^ (row & 7))) * chunk;
}

// `Rows` tokens from `first`, of `width` elements; zeros behind the last token and element.
template <class T, int Width, int Rows>
__device__ void load_tile(T *tile, const T *from, std::int64_t token_stride, std::int64_t first, std::int64_t tokens,
                          int width, bool in_chunks) {
  constexpr int chunks = Width / chunk;
  for (int i = threadIdx.x; i < Rows * chunks; i += threads) {
    const int row = i / chunks, column = i % chunks * chunk;
    T *const to = tile + place_of<Width>(row, i % chunks);
    const bool exists = first + row < tokens && column < width;
    const T *const source = from + (exists ? (first + row) * token_stride + column : 0);
    if (in_chunks) {
      const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
      const int bytes = exists ? 16 : 0;  // the others become 0
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(source), "r"(bytes));
    } else {
      for (int e = 0; e < chunk; ++e) to[e] = exists && column + e < width ? source[e] : T(0.0f);
    }
  }
}

__device__ void end_stage() { asm volatile("cp.async.commit_group;"); }
template <int Left>
__device__ void wait_for_stages() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left));
}

__device__ float over_row(float x, float (*join)(float, float)) {
  x = join(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return join(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ float larger(float x, float y) { return fmaxf(x, y); }
__device__ float sum(float x, float y) { return x + y; }

// 2^x; 0 for -infinity.
__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#endif

// A warp has `Parts` times 16 queries.
template <class T, int Width, int Parts>
__global__ void __launch_bounds__(threads) attention_kernel(const __grid_constant__ call c) {
#if __CUDA_ARCH__ >= 800  // earlier chips do not get the command
  using half = half_type<T>;
  constexpr int block_queries = 16 * Parts * warps, tile = block_keys * Width;
  constexpr int key_parts = block_keys / 8, width_parts = Width / 8;
  extern __shared__ __align__(128) unsigned char memory[];
  T *const keys = reinterpret_cast<T *>(memory), *const values = keys + stages * tile;
  T *const queries = values + stages * tile;

  // The last queries first: with a causal mask they have the most keys.
  const std::int64_t item = blockIdx.x % c.items, block = c.query_blocks - 1 - blockIdx.x / c.items;
  const std::int64_t batch = item / c.heads, head = item % c.heads, key_head = head / c.heads_of_key;
  const T *const q = static_cast<const T *>(c.q) + batch * c.of_q.batch + head * c.of_q.head;
  const T *const k = static_cast<const T *>(c.k) + batch * c.of_k.batch + key_head * c.of_k.head;
  const T *const v = static_cast<const T *>(c.v) + batch * c.of_v.batch + key_head * c.of_v.head;
  T *const o = static_cast<T *>(c.o) + batch * c.of_o.batch + head * c.of_o.head;
  const std::int64_t first_query = block * block_queries;
  const std::int64_t last_query = min(c.queries, first_query + block_queries) - 1;
  std::int64_t visible = c.keys;
  if (c.causal) visible = max(std::int64_t(0), min(visible, last_query + c.mask_offset + 1));
  const int tiles = int((visible + block_keys - 1) / block_keys);

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int own_row = warp * 16 * Parts + lane / 4;  // and 8 more, for each part
  float out[Parts][width_parts][4] = {}, most[Parts][2], total[Parts][2] = {};
  std::uint32_t own[Parts][Width / 16][4];
#pragma unroll
  for (int p = 0; p < Parts; ++p) most[p][0] = most[p][1] = -INFINITY;

  const auto load = [&](int index) {
    if (index < tiles) {
      const std::int64_t first = std::int64_t(index) * block_keys;
      T *const of_keys = keys + index % stages * tile, *const of_values = values + index % stages * tile;
      load_tile<T, Width, block_keys>(of_keys, k, c.of_k.token, first, visible, c.width, c.in_chunks);
      load_tile<T, Width, block_keys>(of_values, v, c.of_v.token, first, visible, c.value_width, c.in_chunks);
    }
    end_stage();
  };
  load_tile<T, Width, block_queries>(queries, q, c.of_q.token, first_query, c.queries, c.width, c.in_chunks);
  load(0);
  for (int index = 0; index < tiles; ++index) {
    load(index + 1);
    wait_for_stages<1>();
    __syncthreads();
    if (index == 0) {
#pragma unroll
      for (int p = 0; p < Parts; ++p)
#pragma unroll
        for (int part = 0; part < Width / 16; ++part)
          load_matrices(own[p][part],
                        queries + place_of<Width>((warp * Parts + p) * 16 + lane % 16, 2 * part + lane / 16));
    }
    const T *const of_keys = keys + index % stages * tile, *const of_values = values + index % stages * tile;

    float scores[Parts][key_parts][4] = {};
#pragma unroll
    for (int part = 0; part < Width / 16; ++part)
#pragma unroll
      for (int key = 0; key < key_parts; key += 2) {
        std::uint32_t two[4];
        load_matrices(two, of_keys + place_of<Width>(key * 8 + lane / 16 * 8 + lane % 8, 2 * part + lane / 8 % 2));
#pragma unroll
        for (int p = 0; p < Parts; ++p) {
          half::multiply(scores[p][key], own[p][part], two[0], two[1]);
          half::multiply(scores[p][key + 1], own[p][part], two[2], two[3]);
        }
      }

    const std::int64_t first_key = std::int64_t(index) * block_keys;
    const bool is_cut = first_key + block_keys > visible;
    if (c.negates) {
#pragma unroll
      for (int p = 0; p < Parts; ++p)
#pragma unroll
        for (int key = 0; key < key_parts; ++key)
#pragma unroll
          for (int e = 0; e < 4; ++e) scores[p][key][e] = -scores[p][key][e];
    }
    if (is_cut || (c.causal && first_key + block_keys - 1 > first_query + c.mask_offset)) {
      const auto left = int(visible - first_key);
      const std::int64_t after = c.causal ? first_query + c.mask_offset - first_key : block_keys;
      const auto diagonal = int(min(max(after, std::int64_t(-block_queries)), std::int64_t(block_keys)));
#pragma unroll
      for (int p = 0; p < Parts; ++p)
#pragma unroll
        for (int key = 0; key < key_parts; ++key)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int j = key * 8 + lane % 4 * 2 + e % 2, i = own_row + p * 16 + e / 2 * 8;
            if (j >= left || (c.causal && j > i + diagonal)) scores[p][key][e] = -INFINITY;
          }
    }
#pragma unroll
    for (int p = 0; p < Parts; ++p) {
      float largest[2] = {-INFINITY, -INFINITY}, shift[2], kept[2];
#pragma unroll
      for (int key = 0; key < key_parts; ++key)
#pragma unroll
        for (int e = 0; e < 4; ++e) largest[e / 2] = fmaxf(largest[e / 2], scores[p][key][e]);
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const float now = fmaxf(most[p][row], over_row(largest[row], larger));
        shift[row] = now == -INFINITY ? 0 : now * c.scale;  // a row without keys yet
        kept[row] = power_of_two(most[p][row] * c.scale - shift[row]);
        most[p][row] = now;
        total[p][row] *= kept[row];
      }
#pragma unroll
      for (int key = 0; key < key_parts; ++key)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          // As the values are multiplied by it, so that the result is a mean of them.
          scores[p][key][e] = float(T(power_of_two(scores[p][key][e] * c.scale - shift[e / 2])));
          total[p][e / 2] += scores[p][key][e];
        }
#pragma unroll
      for (int part = 0; part < width_parts; ++part)
#pragma unroll
        for (int e = 0; e < 4; ++e) out[p][part][e] *= kept[e / 2];
    }
#pragma unroll
    for (int key = 0; key < key_parts; key += 2) {
      std::uint32_t weights[Parts][4];
#pragma unroll
      for (int p = 0; p < Parts; ++p) {
        weights[p][0] = half::pack(scores[p][key][0], scores[p][key][1]);
        weights[p][1] = half::pack(scores[p][key][2], scores[p][key][3]);
        weights[p][2] = half::pack(scores[p][key + 1][0], scores[p][key + 1][1]);
        weights[p][3] = half::pack(scores[p][key + 1][2], scores[p][key + 1][3]);
      }
#pragma unroll
      for (int part = 0; part < width_parts; part += 2) {
        std::uint32_t two[4];
        load_transposed(two, of_values + place_of<Width>(key * 8 + lane / 8 % 2 * 8 + lane % 8, part + lane / 16));
#pragma unroll
        for (int p = 0; p < Parts; ++p) {
          half::multiply(out[p][part], weights[p], two[0], two[1]);
          half::multiply(out[p][part + 1], weights[p], two[2], two[3]);
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int p = 0; p < Parts; ++p)
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float all = over_row(total[p][row], sum), factor = all == 0 ? 0 : 1 / all;
      const std::int64_t query = first_query + own_row + p * 16 + row * 8;
      if (query > last_query) continue;
      T *const to = o + query * c.of_o.token;
#pragma unroll
      for (int part = 0; part < width_parts; ++part) {
        const int column = part * 8 + lane % 4 * 2;
        if (column < c.value_width) to[column] = T(out[p][part][2 * row] * factor);
        if (column + 1 < c.value_width) to[column + 1] = T(out[p][part][2 * row + 1] * factor);
      }
    }
#endif
}

template <class T, int Width, int Parts>
cudaError_t launch(call c, cudaStream_t in) {
  constexpr int block_queries = 16 * Parts * warps;
  constexpr int bytes = (block_queries + 2 * stages * block_keys) * Width * int(sizeof(T));
  if (bytes > 48 << 10) {
    const cudaError_t error =
        cudaFuncSetAttribute(attention_kernel<T, Width, Parts>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
  }
  c.query_blocks = (c.queries + block_queries - 1) / block_queries;
  const std::int64_t blocks = c.query_blocks * c.items;
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  attention_kernel<T, Width, Parts><<<unsigned(blocks), threads, bytes, in>>>(c);
  return cudaGetLastError();
}

// 32 queries for each warp read keys and values from shared memory half as often; with more than 64 elements registers
// do not suffice for that, and few queries would leave multiprocessors idle.
template <class T>
cudaError_t launch(const call &c, cudaStream_t in) {
  constexpr std::int64_t enough_blocks = 128;
  if (c.width > 64 || c.value_width > 64) return launch<T, 128, 1>(c, in);
  const bool many = c.items * (c.queries / (32 * warps)) >= enough_blocks;
  return many ? launch<T, 64, 2>(c, in) : launch<T, 64, 1>(c, in);
}

}  // namespace attention_cu

cudaError_t launch_attention(const sg_backend_attention &what, cudaStream_t in) noexcept {
  const auto of = [](const sg_backend_heads &x) { return strides{x.batch, x.head, x.token}; };
  call c{};
  c.q = what.q.data, c.k = what.k.data, c.v = what.v.data, c.o = what.o.data;
  c.of_q = of(what.q), c.of_k = of(what.k), c.of_v = of(what.v), c.of_o = of(what.o);
  c.heads = what.heads;
  c.items = what.heads * what.batch;
  c.heads_of_key = what.heads / what.kv_heads;
  c.queries = what.queries;
  c.keys = what.keys;
  c.causal = what.mask == SG_MASK_CAUSAL;
  c.mask_offset = std::clamp(what.mask_offset, -what.queries, what.keys);
  c.width = int(what.width);
  c.value_width = int(what.value_width);
  c.in_chunks = access_of(what) == widest_access;
  c.negates = what.scale < 0;
  c.scale = std::max(std::fabs(float(what.scale) * log2_e), FLT_MIN);  // 0 * infinity would be NaN
  return what.type == SG_DTYPE_F16 ? launch<__half>(c, in) : launch<__nv_bfloat16>(c, in);
}

}  // namespace sg::cuda
