// SPDX-License-Identifier: Apache-2.0
// Several neighbouring elements, read and written as one.
#pragma once

#include "accesses.hpp"

namespace sg::cuda {

template <class T, int count>
struct alignas(sizeof(T) * count) pack {
  T at[count];
};

// Elements of the widest access.
template <class T>
constexpr int whole_pack = int(widest_access / sizeof(T));

template <int count, class T>
__device__ pack<T, count> load_pack(const T *from) {
  return *reinterpret_cast<const pack<T, count> *>(from);
}
template <int count, class T>
__device__ void store_pack(T *to, const pack<T, count> &values) {
  *reinterpret_cast<pack<T, count> *>(to) = values;
}

}  // namespace sg::cuda
