// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "plan/gemm/candidate.hpp"
#include "plan/gemm/cost.hpp"
#include "plan/gemm/gemm_form.hpp"
#include "plan/layers/conv.hpp"

namespace sg {
namespace {

// Images that cross the link at once have as many bytes, unless there are few.
constexpr double least_bytes_of_part = 1 << 20;
constexpr std::int64_t most_tried_parts = 64;

bool is_streamed(const std::vector<problem> &problems) {
  const auto streams = [](const operand &x) { return x.rows > 0 && on_host(x); };
  return std::any_of(problems.begin(), problems.end(),
                     [&](const problem &p) { return streams(p.a) || streams(p.b) || streams(p.c) || streams(p.bias); });
}

// Builds schedules of fewer and fewer bytes until one fits.
class conv_search {
 public:
  conv_search(const conv_problems &p, const plan_terms &terms)
      : p_(p), problems_(p.all), terms_(terms), best_(terms.model) {}

  bool offer(std::int64_t parts) {
    const conv_form &f = p_.form;
    const bool forward = p_.is_forward();
    // Images of single pixels are GEMMs, also on cores in the order NCHW, which oneDNN would first bring to its own.
    const bool is_gemm = f.is_direct() && f.of.groups == 1 && !(f.of.channels_last && terms_.model.lanes_are_cores);
    // On a GPU images from the host are cut into many parts, and each would take the host's time of a call.
    const bool suits_device = f.by_device && (terms_.model.lanes_are_cores || !is_streamed(problems_));
    if (forward && suits_device && !is_gemm && f.of.channels > 0 && has_dense_images(problems_[0]) && has_scratch(f)) {
      schedule made = build_conv(problems_[0], f, {parts, f.workspace, terms_.lanes}, terms_.model, true);
      if (made.device_bytes <= terms_.memory_limit) best_.offer(std::move(made));
    }
    std::int64_t workspace = f.workspace > 0 ? f.workspace : usual_conv_workspace(terms_.model, terms_.lanes);
    for (; workspace > 0; workspace /= 4) {
      const conv_cuts cuts{parts, workspace, terms_.lanes};
      schedule made;
      try {
        made = forward ? build_conv(problems_[0], f, cuts, terms_.model)
                       : build_conv_backward(problems_, f, cuts, terms_.model);
      } catch (const error &e) {
        if (e.status() != SG_STATUS_OUT_OF_MEMORY || (least_ == 0 && best_.empty())) throw;
        return false;
      }
      least_ = least_ == 0 ? made.device_bytes : std::min(least_, made.device_bytes);
      if (made.device_bytes > terms_.memory_limit) continue;
      best_.offer(std::move(made));
      return true;
    }
    return false;
  }

  // Whether the workspace has room for a row of the images in the order of a processor's library.
  bool has_scratch(const conv_form &f) const {
    const std::int64_t workspace = f.workspace > 0 ? f.workspace : usual_conv_workspace(terms_.model, terms_.lanes);
    return !terms_.model.lanes_are_cores || conv_scratch_of(problems_[0], f).row <= workspace / terms_.lanes;
  }

  schedule take() {
    if (best_.empty())
      throw error(SG_STATUS_OUT_OF_MEMORY, "a convolution needs %lld bytes of device memory; the limit is %lld",
                  static_cast<long long>(least_), static_cast<long long>(terms_.memory_limit));
    return best_.take();
  }
  bool empty() const noexcept { return best_.empty(); }

 private:
  const conv_problems &p_;
  const std::vector<problem> &problems_;
  const plan_terms &terms_;
  best_schedule best_;
  std::int64_t least_ = 0;  // bytes of a schedule that did not fit
};

// The least time that the model's rates allow, of a schedule made for them.
double bound_of(const std::vector<problem> &problems, const schedule &made, const device_model &model) {
  const problem &first = problems.front();
  const double rate =
      gemm_rate_of(model, first.a.type, first.compute) * (model.lanes_are_cores ? model.compute_lanes : 1);
  double bound = rate > 0 ? made.flops / rate : 0;
  if (model.link_in > 0) bound = std::max(bound, made.bytes_in / model.link_in);
  if (model.link_out > 0) bound = std::max(bound, made.bytes_out / model.link_out);
  double bytes = 0;
  for (const problem &p : problems)
    for (const operand *x : {&p.a, &p.b, &p.c}) bytes += problem::bytes(*x, 1);
  return model.memory_rate > 0 ? std::max(bound, bytes / model.memory_rate) : bound;
}

}  // namespace

schedule plan_of(const conv_problems &p, const plan_terms &terms) {
  const problem &first = p.all.front();
  if (gemm_rate_of(terms.model, first.a.type, first.compute) <= 0)
    throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s GEMM", terms.model.name.c_str(),
                name_of(first.a.type));
  const operand &images = p.is_forward() ? first.c : p.all[conv_bias_gradient].a;
  conv_search search(p, terms);
  search.offer(1);
  if (is_streamed(p.all)) {
    const double bytes = problem::bytes(images, 1) + problem::bytes(first.a, 1);
    const auto worth = std::int64_t(bytes / least_bytes_of_part);
    for (std::int64_t parts = 2; parts <= images.cols; parts = std::min(2 * parts, std::max(images.cols, parts + 1)))
      if (search.empty() || (parts <= most_tried_parts && parts <= std::max<std::int64_t>(worth, 2)))
        search.offer(parts);
      else
        break;
  }
  schedule made = search.take();
  made.bound_seconds = bound_of(p.all, made, terms.model);
  return made;
}

std::uint64_t hash_of(const conv_problems &p) noexcept {
  const ops::windows &w = p.form.of;
  hasher mixed;
  for (const problem &each : p.all) mixed << each;
  mixed << w.kernel_h << w.kernel_w << w.stride_h << w.stride_w << w.dilation_h << w.pad_top << w.pad_left << w.out_h
        << w.groups << p.form.workspace;
  return mixed.value();
}

std::string description_of(const conv_problems &p) {
  const ops::windows &w = p.form.of;
  return std::string(p.is_forward() ? "a convolution of " : "the gradients of a convolution of ") +
         std::to_string(w.channels) + " channels and " + std::to_string(w.kernel_h) + " x " +
         std::to_string(w.kernel_w) + " windows";
}

std::vector<alternative> alternatives_to(const conv_problems &p, const device_model &model,
                                         const plan_request &request) {
  return alternatives_to(p.all, model, request, false, [&p](std::vector<problem> changed) {
    conv_problems made{p.form, std::move(changed)};
    return std::make_shared<const form_of<conv_problems>>(std::move(made));
  });
}

}  // namespace sg
