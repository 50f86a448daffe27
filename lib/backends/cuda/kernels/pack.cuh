// SPDX-License-Identifier: Apache-2.0
// Several neighbouring elements, read and written as one.
#pragma once

#include <cstdint>

namespace sg::cuda {

template <class T, int count>
struct alignas(sizeof(T) * count) pack {
  T at[count];
};

// Elements in 16 bytes.
template <class T>
constexpr int whole_pack = 16 / sizeof(T);

template <int count, class T>
__device__ pack<T, count> load_pack(const T *from) {
  return *reinterpret_cast<const pack<T, count> *>(from);
}
template <int count, class T>
__device__ void store_pack(T *to, const pack<T, count> &values) {
  *reinterpret_cast<pack<T, count> *>(to) = values;
}

// Whether every run of a matrix starts at a multiple of 16 bytes; NULL does.
template <class T>
bool is_aligned(const T *first, std::int64_t runs, std::int64_t ld) {
  return reinterpret_cast<std::uintptr_t>(first) % 16 == 0 && (runs <= 1 || ld % whole_pack<T> == 0);
}

}  // namespace sg::cuda
