// SPDX-License-Identifier: Apache-2.0
// The operations of symmetric.h. The command's own pointers are not used.
#pragma once

#include <cstddef>

#include "backends/common/triangles.hpp"
#include "layers.hpp"

namespace sg::sim {

// `a` and `b` may be NULL, as the command's.
inline void run_symmetric(const sg_backend_symmetric &what, const std::byte *a, const std::byte *b, std::byte *c) {
  with_blas_type(what.type, [&]<class T>() {
    compute_symmetric(what, reinterpret_cast<const T *>(a), reinterpret_cast<const T *>(b), reinterpret_cast<T *>(c));
  });
}

}  // namespace sg::sim
