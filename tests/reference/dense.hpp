// SPDX-License-Identifier: Apache-2.0
// Dense layers by definition.
#pragma once

#include <cstddef>
#include <vector>

namespace sg_reference {

// relu(x W): x rows x in, W in x out.
std::vector<double> dense_relu(const std::vector<double> &x, const std::vector<double> &w, std::size_t rows,
                               std::size_t in, std::size_t out);

}  // namespace sg_reference
