// SPDX-License-Identifier: Apache-2.0
// The numbers of the attributes of cuDNN's descriptors.
#pragma once

#include "backends/cuda/libraries/dnn.hpp"

namespace sg::cuda::dnn {

namespace of_pointwise_mode {
constexpr int function = 0, arithmetic = 1, nan = 2, axis = 9;
}
namespace of_convolution_mode {
constexpr int arithmetic = 100, kind = 101, dilations = 102, strides = 103, after = 104, before = 105, dimensions = 106;
}
namespace of_heuristics {
constexpr int mode = 200, graph = 201, results = 202;
}
namespace of_configuration {
constexpr int engine = 300;
}
namespace of_plan {
constexpr int handle = 400, configuration = 401, workspace = 402;
}
namespace of_pointwise {
constexpr int mode = 750, x = 751, b = 752, y = 753, t = 758;
}
namespace of_graph {
constexpr int handle = 800, operations = 801;
}
namespace of_tensor {
constexpr int alignment = 900, type = 901, sizes = 902, strides = 903, number = 906, is_virtual = 907, is_value = 908;
}
namespace of_pack {
constexpr int numbers = 1000, addresses = 1001, workspace = 1003;
}
namespace of_engine {
constexpr int notes = 1303;
}
namespace of_matmul_mode {
constexpr int arithmetic = 1500;
}
namespace of_matmul {
constexpr int a = 1520, b = 1521, c = 1522, mode = 1523, rows = 1525, cols = 1526, inner = 1527;
}
namespace of_reduction_mode {
constexpr int function = 1600, arithmetic = 1601;
}
namespace of_reduction {
constexpr int x = 1610, y = 1611, mode = 1612;
}
namespace of_reshape {
constexpr int x = 2200, y = 2201;
}
// The attributes of the three convolutions follow each other: alpha, beta, the mode, and three tensors.
struct convolution_attributes {
  int alpha, beta, mode, x, w, y;
};
constexpr convolution_attributes attributes_of(descriptor_kind which) noexcept {
  if (which == convolution_forward) return {700, 701, 702, 704, 703, 705};
  if (which == convolution_data_gradient) return {706, 707, 708, 710, 709, 711};
  return {712, 713, 714, 716, 715, 717};
}

}  // namespace sg::cuda::dnn
