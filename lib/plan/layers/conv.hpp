// SPDX-License-Identifier: Apache-2.0
// A convolution and its gradients as one schedule each. Images are operands with a column for each image, filters have
// a column for each output channel, as stored.
#pragma once

#include <vector>

#include "plan/gemm/candidate.hpp"
#include "plan/layers/conv_build.hpp"

namespace sg {

// One problem: A is X, B is W, C is Y = activation(conv(X, W) + bias), the bias a column or missing. All have elements,
// except for X and W of images without channels.
// by_device: by the device's own command for whole images.
schedule build_conv(const problem &p, const conv_form &f, const conv_cuts &cuts, const device_model &model,
                    bool by_device = false);
// Bytes of copies in the order of a processor's library, which blocks channels: of the filters, and of one row of Y
// with its rows of X. NHWC images are taken as they are.
struct conv_scratch {
  std::int64_t filters = 0, row = 0;
};
conv_scratch conv_scratch_of(const problem &p, const conv_form &f);
// Has it X and Y without gaps, as that command takes them?
bool has_dense_images(const problem &p);

// The problems of gradients: C of each is the result, without elements if it is not computed. Of the first, A is X, B
// is W and the bias dY; of the last one, A is dY, for plan/layers/column_sums.hpp. Sums over the windows are kept in
// the accumulator's type.
enum conv_part : std::int32_t { conv_input_gradient, conv_filter_gradient, conv_bias_gradient };
inline constexpr std::size_t conv_parts = 3;
schedule build_conv_backward(const std::vector<problem> &problems, const conv_form &f, const conv_cuts &cuts,
                             const device_model &model);

// The fastest of some cuts within the memory. Throws SG_STATUS_OUT_OF_MEMORY with the requirement.
schedule plan_conv(const std::vector<problem> &problems, const plan_terms &terms);

// The least time that the model's rates allow, of a schedule made for them.
double conv_bound(const std::vector<problem> &problems, const schedule &made, const device_model &model);

}  // namespace sg
