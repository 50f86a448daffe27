// SPDX-License-Identifier: Apache-2.0
// A convolution and its gradients as one schedule each. Images are operands with a column for each image, filters have
// a column for each output channel, as stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/form/form.hpp"
#include "plan/gemm/problem.hpp"
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

// A convolution, of one problem, or its gradients, of conv_parts.
struct conv_problems {
  conv_form form;
  std::vector<problem> all;
  bool is_forward() const noexcept { return all.size() == 1; }
  bool operator==(const conv_problems &) const = default;
};
// The parts of form_of<conv_problems>: the fastest of some cuts within the memory.
schedule plan_of(const conv_problems &p, const plan_terms &terms);
std::uint64_t hash_of(const conv_problems &p) noexcept;
std::string description_of(const conv_problems &p);
std::vector<alternative> alternatives_to(const conv_problems &p, const device_model &model,
                                         const plan_request &request);

}  // namespace sg
