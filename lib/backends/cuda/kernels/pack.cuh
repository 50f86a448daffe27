// SPDX-License-Identifier: Apache-2.0
// Several neighbouring elements, read and written as one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstring>
#include <type_traits>

#include "accesses.hpp"

namespace sg::cuda {

template <class T, int count>
struct alignas(sizeof(T) * count) pack {
  T at[count];
};

template <int value>
using constant = std::integral_constant<int, value>;

// Elements of the widest access.
template <class T>
constexpr int whole_pack = int(widest_access / sizeof(T));

// The widest word that a pack consists of. Its accesses are written as such, because the compiler does not join all
// those of elements.
template <int bytes>
using word_of = std::conditional_t<
    bytes % 16 == 0, uint4,
    std::conditional_t<bytes % 8 == 0, uint2, std::conditional_t<bytes % 4 == 0, unsigned, unsigned short>>>;

template <int count, class T>
__device__ pack<T, count> load_pack(const T *from) {
  pack<T, count> values;
  if constexpr (count == 1) {
    values.at[0] = *from;
  } else {
    using word = word_of<int(sizeof values)>;
    word words[sizeof values / sizeof(word)];
#pragma unroll
    for (int i = 0; i < int(sizeof values / sizeof(word)); ++i) words[i] = reinterpret_cast<const word *>(from)[i];
    memcpy(&values, words, sizeof values);
  }
  return values;
}
template <int count, class T>
__device__ void store_pack(T *to, const pack<T, count> &values) {
  if constexpr (count == 1) {
    *to = values.at[0];
  } else {
    using word = word_of<int(sizeof values)>;
    word words[sizeof values / sizeof(word)];
    memcpy(words, &values, sizeof values);
#pragma unroll
    for (int i = 0; i < int(sizeof values / sizeof(word)); ++i) __stwb(reinterpret_cast<word *>(to) + i, words[i]);
  }
}

}  // namespace sg::cuda
