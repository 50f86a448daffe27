// SPDX-License-Identifier: Apache-2.0
// Attention in f32 with rounded weights, divided by the sum of the rounded ones.
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

// The command's own pointers are not used.
template <sg_dtype type>
void attend(const sg_backend_attention &what, const std::byte *q, const std::byte *k, const std::byte *v,
            std::byte *o) {
  using format = element<type>;
  using stored = typename format::stored;
  const auto value_of = [](stored x) { return static_cast<float>(format::load(x)); };
  const auto row = [](const std::byte *base, const sg_backend_heads &x, std::int64_t batch, std::int64_t head,
                      std::int64_t token) {
    return reinterpret_cast<const stored *>(base) + batch * x.batch + head * x.head + token * x.token;
  };
  std::vector<float> weights(static_cast<std::size_t>(what.keys)), sums(static_cast<std::size_t>(what.value_width));
  for (std::int64_t b = 0; b < what.batch; ++b)
    for (std::int64_t h = 0; h < what.heads; ++h)
      for (std::int64_t i = 0; i < what.queries; ++i) {
        const std::int64_t own = h / (what.heads / what.kv_heads);
        const std::int64_t last = std::clamp(what.mask_offset, -what.queries, what.keys) + i;
        const std::int64_t visible =
            what.mask == SG_MASK_CAUSAL ? std::clamp<std::int64_t>(last + 1, 0, what.keys) : what.keys;
        const stored *const query = row(q, what.q, b, h, i);
        float most = -std::numeric_limits<float>::infinity(), total = 0;
        for (std::int64_t j = 0; j < visible; ++j) {
          const stored *const key = row(k, what.k, b, own, j);
          float score = 0;
          for (std::int64_t e = 0; e < what.width; ++e) score += value_of(query[e]) * value_of(key[e]);
          weights[static_cast<std::size_t>(j)] = score * static_cast<float>(what.scale);
          most = std::fmax(most, weights[static_cast<std::size_t>(j)]);
        }
        std::fill(sums.begin(), sums.end(), 0.0f);
        for (std::int64_t j = 0; j < visible; ++j) {
          const float weight = value_of(format::store(std::exp(weights[static_cast<std::size_t>(j)] - most)));
          const stored *const value = row(v, what.v, b, own, j);
          total += weight;
          for (std::int64_t e = 0; e < what.value_width; ++e)
            sums[static_cast<std::size_t>(e)] += weight * value_of(value[e]);
        }
        stored *const to = const_cast<stored *>(row(o, what.o, b, h, i));
        for (std::int64_t e = 0; e < what.value_width; ++e)
          to[e] = format::store(visible == 0 ? 0 : sums[static_cast<std::size_t>(e)] / total);
      }
}

inline void run_attention(const sg_backend_attention &what, const std::byte *q, const std::byte *k, const std::byte *v,
                          std::byte *o) {
  if (what.type == SG_DTYPE_F16)
    attend<SG_DTYPE_F16>(what, q, k, v, o);
  else
    attend<SG_DTYPE_BF16>(what, q, k, v, o);
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_attention &what) {
  const auto bytes = [&](const sg_backend_heads &x, std::int64_t heads, std::int64_t tokens, std::int64_t width,
                         const char *name) -> std::byte * {
    if (tokens == 0) return nullptr;
    const std::int64_t last = (what.batch - 1) * x.batch + (heads - 1) * x.head + (tokens - 1) * x.token + width;
    return memory.device_bytes(x.data, static_cast<std::uint64_t>(2 * last), name);
  };
  const std::byte *q = bytes(what.q, what.heads, what.queries, what.width, "Q of an attention");
  const std::byte *k = bytes(what.k, what.kv_heads, what.keys, what.width, "K of an attention");
  const std::byte *v = bytes(what.v, what.kv_heads, what.keys, what.value_width, "V of an attention");
  std::byte *o = bytes(what.o, what.heads, what.queries, what.value_width, "O of an attention");
  return [what, q, k, v, o] { run_attention(what, q, k, v, o); };
}

}  // namespace sg::sim
