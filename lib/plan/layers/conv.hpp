// SPDX-License-Identifier: Apache-2.0
// A convolution and its gradients as one schedule each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/form/form.hpp"
#include "plan/layers/conv_build.hpp"

namespace sg {

// Y = activation(conv(X, W) + bias). All have elements, except for a missing bias, and for X and W of images without
// channels. by_device: by the device's own command for whole images.
schedule build_conv(const conv_form &f, const conv_cuts &cuts, const device_model &model, bool by_device = false);
// Bytes of copies in the order of a processor's library, which blocks channels: of the filters, and of one row of Y
// with its rows of X. NHWC images are taken as they are.
struct conv_scratch {
  std::int64_t filters = 0, row = 0;
};
conv_scratch conv_scratch_of(const conv_form &f);
// Whether X and Y have no gaps, as the device's convolution requires.
bool has_dense_images(const conv_form &f);

// The gradients with elements. Sums over the windows are kept in the accumulator's type. by_device: by the device's own
// commands for whole images, where it has them.
schedule build_conv_backward(const conv_form &f, const conv_cuts &cuts, const device_model &model,
                             bool by_device = false);

// The parts of form_of<conv_form>: the fastest of some cuts within the memory.
schedule plan_of(const conv_form &f, const plan_terms &terms);
std::uint64_t hash_of(const conv_form &f) noexcept;
std::string description_of(const conv_form &f);
std::vector<alternative> alternatives_to(const conv_form &f, const device_model &model, const plan_request &request);

}  // namespace sg
