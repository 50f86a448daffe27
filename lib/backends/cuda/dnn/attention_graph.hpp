// SPDX-License-Identifier: Apache-2.0
// Attention and its gradients as computations that cuDNN recognizes and has fused kernels for.
#pragma once

#include <streamgemm/backend.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cuda/dnn/computation.hpp"

namespace sg::cuda::dnn {

enum class band : std::uint8_t { none, from_start, from_end };  // keys j <= i, or j <= i + keys - queries

// A shape that cuDNN has kernels for. Strides of Q, K, V and O or dO, then of dQ, dK and dV.
struct attention_shape {
  std::int64_t batch, heads, kv_heads, queries, keys, width, value_width;
  std::array<std::array<std::int64_t, 3>, 7> strides;
  data_type type;
  band mask;
  bool gradients;

  std::vector<std::int64_t> key() const;
};

// Nothing: cuDNN's kernels do not compute it as promised.
std::optional<attention_shape> shape_of(const sg_backend_attention &what) noexcept;
std::optional<attention_shape> shape_of(const sg_backend_attention_backward &what) noexcept;

// The numbers of the tensors that a run binds. O is without gaps in the gradients and in an attention with statistics.
enum attention_tensor : std::int64_t {
  of_q,
  of_k,
  of_v,
  of_o,
  of_scale,
  of_hidden,      // the score of a key that a query does not have; with a mask
  of_keys,        // their number; with a mask from the end
  of_queries,     // likewise
  of_statistics,  // log of the sum of exponentials of each query, f32
  // Of the gradients:
  of_d_o,
  of_dq,
  of_dk,
  of_dv,
  of_one,            // the value 1
  of_sums,           // of dO * O of each query, f32; memory of the kernels
  of_dq_sums,        // dQ in f32; memory of the kernels
  of_padding,        // the score of what is beyond the lengths; with lengths
  of_query_lengths,  // an i32 for each batch; with lengths
  of_key_lengths,
};

// has_statistics: they are results, too.
void describe_attention(computation &to, const attention_shape &of, bool has_statistics);
// pads: the numbers of queries and keys are read from memory.
void describe_gradients(computation &to, const attention_shape &of, bool pads);

}  // namespace sg::cuda::dnn
