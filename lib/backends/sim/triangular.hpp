// SPDX-License-Identifier: Apache-2.0
// The operation of triangular.h. The command's own pointers are not used.
#pragma once

#include <cstddef>

#include "backends/common/triangles.hpp"
#include "layers.hpp"

namespace sg::sim {

inline void run_triangular(const sg_backend_triangular &what, const std::byte *a, std::byte *b) {
  with_blas_type(what.type, [&]<class T>() {
    compute_triangular(what, reinterpret_cast<const T *>(a), reinterpret_cast<T *>(b));
  });
}

}  // namespace sg::sim
