// SPDX-License-Identifier: Apache-2.0
#include "dense.hpp"

#include <algorithm>

namespace sg_reference {

std::vector<double> dense_relu(const std::vector<double> &x, const std::vector<double> &w, std::size_t rows,
                               std::size_t in, std::size_t out) {
  std::vector<double> y(rows * out);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < in; ++k)
      for (std::size_t j = 0; j < out; ++j) y[i * out + j] += x[i * in + k] * w[k * out + j];
    for (std::size_t j = 0; j < out; ++j) y[i * out + j] = std::max(y[i * out + j], 0.0);
  }
  return y;
}

}  // namespace sg_reference
