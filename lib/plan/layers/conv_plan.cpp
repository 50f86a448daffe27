// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "plan/form/operand_alternatives.hpp"
#include "plan/gemm/resident/candidate.hpp"
#include "plan/layers/conv.hpp"

namespace sg {
namespace {

// Images that cross the link at once have as many bytes, unless there are few.
constexpr double least_bytes_of_part = 1 << 20;
constexpr std::int64_t most_tried_parts = 64;

bool is_streamed(const conv_form &f) {
  return std::ranges::any_of(f.operands, [](const operand &x) { return x.rows > 0 && on_host(x); });
}

// Builds schedules of fewer and fewer bytes until one fits.
class conv_search {
 public:
  conv_search(const conv_form &f, const plan_terms &terms) : f_(f), terms_(terms), best_(terms.model) {}

  bool offer(std::int64_t parts) {
    const conv_form &f = f_;
    const bool forward = !f.is_backward;
    // Images of single pixels are GEMMs, also on cores in the order NCHW, which oneDNN would first bring to its own. On
    // a GPU the bias and the activation of f16 and bf16 are in the GEMM of NHWC images only.
    const bool cores = terms_.model.lanes_are_cores, is_direct = f.is_direct() && f.of.groups == 1;
    const bool has_end = exists(f.at(conv_parameter::bias)) || f.activation != SG_ACTIVATION_NONE;
    const bool ends_apart = !f.of.channels_last && has_end && accumulator_of(f.type()) != f.type();
    const bool is_gemm = is_direct && (cores ? !f.of.channels_last : !ends_apart);
    // On a GPU images from the host are cut into many parts, and each would take the host's time of a call.
    const bool suits_device = f.by_device && (terms_.model.lanes_are_cores || !is_streamed(f));
    if (forward && suits_device && !is_gemm && f.of.channels > 0 && has_dense_images(f) && has_scratch(f)) {
      schedule made = build_conv(f, {parts, f.workspace, terms_.lanes}, terms_.model, true);
      const bool fits = made.device_bytes <= terms_.memory_limit;
      if (fits) best_.offer(std::move(made));
      // A matrix of windows is written and read beside all that the device's own command moves.
      if (fits && !cores) return true;
    }
    const bool by_device = f.by_device || f.dw_by_device;
    if (!forward && by_device && !terms_.model.lanes_are_cores && !is_streamed(f) && exists(f.at(conv_parameter::y))) {
      schedule made = build_conv_backward(f, {parts, f.workspace, terms_.lanes}, terms_.model, true);
      if (made.device_bytes <= terms_.memory_limit) best_.offer(std::move(made));
    }
    std::int64_t workspace = f.workspace > 0 ? f.workspace : usual_conv_workspace(terms_.model, terms_.lanes);
    while (workspace > 0) {
      const conv_cuts cuts{parts, workspace, terms_.lanes};
      schedule made;
      try {
        made = forward ? build_conv(f, cuts, terms_.model) : build_conv_backward(f, cuts, terms_.model);
      } catch (const error &e) {
        if (e.status() != SG_STATUS_OUT_OF_MEMORY) throw;
        if (least_ > 0 || !best_.empty()) return false;
        if (f.workspace > 0 || workspace >= terms_.memory_limit) throw;
        workspace = std::min(4 * workspace, terms_.memory_limit);  // the usual one is no limit
        continue;
      }
      least_ = least_ == 0 ? made.device_bytes : std::min(least_, made.device_bytes);
      if (made.device_bytes <= terms_.memory_limit) {
        best_.offer(std::move(made));
        return true;
      }
      workspace /= 4;
    }
    return false;
  }

  // Whether the workspace has room for a row of the images in the order of a processor's library.
  bool has_scratch(const conv_form &f) const {
    const std::int64_t workspace = f.workspace > 0 ? f.workspace : usual_conv_workspace(terms_.model, terms_.lanes);
    return !terms_.model.lanes_are_cores || conv_scratch_of(f).row <= workspace / terms_.lanes;
  }

  schedule take() {
    if (best_.empty())
      throw error(SG_STATUS_OUT_OF_MEMORY, "a convolution needs %lld bytes of device memory; the limit is %lld",
                  static_cast<long long>(least_), static_cast<long long>(terms_.memory_limit));
    return best_.take();
  }
  bool empty() const noexcept { return best_.empty(); }

 private:
  const conv_form &f_;
  const plan_terms &terms_;
  best_schedule best_;
  std::int64_t least_ = 0;  // bytes of a schedule that did not fit
};

// The least time that the model's rates allow, of a schedule made for them.
double bound_of(const conv_form &f, const schedule &made, const device_model &model) {
  const double rate = gemm_rate_of(model, f.type(), f.compute) * (model.lanes_are_cores ? model.compute_lanes : 1);
  double bound = rate > 0 ? made.flops / rate : 0;
  if (model.link_in > 0) bound = std::max(bound, made.bytes_in / model.link_in);
  if (model.link_out > 0) bound = std::max(bound, made.bytes_out / model.link_out);
  double bytes = 0;
  for (const operand &each : f.operands) bytes += bytes_of(each);
  return model.memory_rate > 0 ? std::max(bound, bytes / model.memory_rate) : bound;
}

}  // namespace

schedule plan_of(const conv_form &f, const plan_terms &terms) {
  if (gemm_rate_of(terms.model, f.type(), f.compute) <= 0)
    throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s GEMM", terms.model.name.c_str(), name_of(f.type()));
  const operand &images = f.at(conv_parameter::y);
  conv_search search(f, terms);
  search.offer(1);
  if (is_streamed(f)) {
    const double bytes = bytes_of(images) + bytes_of(f.at(conv_parameter::x));
    const auto worth = std::int64_t(bytes / least_bytes_of_part);
    for (std::int64_t parts = 2; parts <= images.cols; parts = std::min(2 * parts, std::max(images.cols, parts + 1)))
      if (search.empty() || (parts <= most_tried_parts && parts <= std::max<std::int64_t>(worth, 2)))
        search.offer(parts);
      else
        break;
  }
  schedule made = search.take();
  made.bound_seconds = bound_of(f, made, terms.model);
  return made;
}

std::uint64_t hash_of(const conv_form &f) noexcept {
  const ops::windows &w = f.of;
  hasher mixed;
  for (const operand &each : f.operands)
    if (exists(each)) mixed << each;
  mixed << w.kernel_h << w.kernel_w << w.stride_h << w.stride_w << w.dilation_h << w.pad_top << w.pad_left << w.out_h
        << w.groups << f.workspace << (std::int64_t{f.activation} | std::int64_t{f.compute} << 8);
  return mixed.value();
}

std::string description_of(const conv_form &f) {
  const ops::windows &w = f.of;
  return std::string(f.is_backward ? "the gradients of a convolution of " : "a convolution of ") +
         std::to_string(w.channels) + " channels and " + std::to_string(w.kernel_h) + " x " +
         std::to_string(w.kernel_w) + " windows";
}

std::vector<alternative> alternatives_to(const conv_form &f, const device_model &, const plan_request &request) {
  return alternatives_of_operands({f.operands.begin(), f.operands.end()},
                                  f.type() == SG_DTYPE_F32 && f.compute == SG_COMPUTE_EXACT, request,
                                  [&f](const std::vector<operand> &operands, std::optional<sg_compute> compute) {
                                    conv_form made = f;
                                    std::ranges::copy(operands, made.operands.begin());
                                    made.compute = compute.value_or(f.compute);
                                    return std::make_shared<const form_of<conv_form>>(std::move(made));
                                  });
}

}  // namespace sg
