// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/conv.hpp"

#include <streamgemm/conv.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "api/operands/operand_bytes.hpp"
#include "api/operands/windows_of.hpp"
#include "api/submission/layer.hpp"
#include "api/submission/submission.hpp"
#include "api/wait.hpp"
#include "ops/conv.hpp"

namespace sg {

namespace {

using long_long = long long;

void check_dtype(sg_dtype type, const char *desc) {
  if (!is_layer_dtype(type))
    throw error(SG_STATUS_UNSUPPORTED, "%s->dtype is %s; it must be f64, f32, f16 or bf16", desc,
                is_dtype(type) ? name_of(type) : "no type");
}

// What the descriptors of a convolution and of its gradients have in common.
template <class Desc>
checked_windows check_conv(const Desc &d, const char *desc) {
  if (d.filter_layout != SG_FILTER_OIHW && d.filter_layout != SG_FILTER_OHWI)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->filter_layout is %d, which is no order of a filter", desc,
                int{d.filter_layout});
  checked_windows w =
      check_windows({desc, d.images, d.channels, d.height, d.width, 0, 0, d.windows, d.image_layout, d.filter_layout});
  const auto field = [desc](const char *name) { return std::string(desc) + "->" + name; };
  constexpr std::int64_t most = (std::int64_t{1} << 29) - 1;
  require_range(d.out_channels, 0, most, field("out_channels").c_str());
  require_range(d.groups, 1, most, field("groups").c_str());
  for (const auto &[name, channels] : {std::pair{"channels", d.channels}, std::pair{"out_channels", d.out_channels}})
    if (channels % d.groups != 0)
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s is %lld and %s->groups is %lld, which does not divide it", desc,
                  name, long_long{channels}, desc, long_long{d.groups});
  check_dtype(d.dtype, desc);
  if (d.compute < SG_COMPUTE_EXACT || d.compute > SG_COMPUTE_F8 || !is_compute_of(d.dtype, d.compute))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->compute is %d, which is no compute of %s operands", desc,
                int{d.compute}, name_of(d.dtype));
  if (d.workspace > static_cast<std::uint64_t>(INT64_MAX))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->workspace is %llu; it must be at most %lld", desc,
                static_cast<unsigned long long>(d.workspace), long_long{INT64_MAX});
  w.of.groups = static_cast<std::int32_t>(d.groups);
  w.of.positions_are_rows = !w.of.channels_last;
  return w;
}

// The operands of a convolution: their checks, addresses and accesses.
class conv_operands {
 public:
  template <class Desc>
  conv_operands(const context &on, const Desc &d, const char *desc, std::size_t problems)
      : on_(on), desc_(desc), windows_(check_conv(d, desc)), problems_(problems), where_(problems) {
    form_.of = windows_.of;
    form_.out_channels = d.out_channels;
    form_.workspace = static_cast<std::int64_t>(d.workspace);
    for (problem &each : problems_) {
      each.no_multiply = true;
      each.compute = d.compute;
      for (operand *x : {&each.a, &each.b, &each.c, &each.bias}) x->type = d.dtype, x->space = SG_MEMORY_DEVICE;
    }
  }

  const conv_form &form() const noexcept { return form_; }
  std::vector<problem> &problems() noexcept { return problems_; }
  std::vector<problem_binding> &where() noexcept { return where_; }
  std::int64_t positions() const noexcept { return windows_.positions(); }
  std::int64_t images() const noexcept { return windows_.images; }
  std::int64_t x_elements() const noexcept { return windows_.elements_of_image(); }
  std::int64_t y_elements() const { return checked_mul(form_.of.positions_of_image(), form_.out_channels, "an image"); }

  enum class use { read, write, add };
  // Binds `images` images, or contiguous values, to a slot of a problem. Without elements it is none.
  void bind_images(std::size_t part, operand_name slot, const char *name, const sg_images &x, std::int64_t elements,
                   use how) {
    const std::int64_t stride = checked_stride(desc_, name, x, images(), elements);
    bind(part, slot, name, ".data",
         {x.data, elements, images(), std::max<std::int64_t>(stride, elements), type_of(part, slot),
          SG_LAYOUT_COLUMN_MAJOR},
         how);
  }
  void bind_values(std::size_t part, operand_name slot, const char *name, const void *values, std::int64_t rows,
                   std::int64_t cols, sg_dtype type, use how) {
    bind(part, slot, name, "", {const_cast<void *>(values), rows, cols, 0, type, SG_LAYOUT_COLUMN_MAJOR}, how);
  }
  // The same operand in a slot of another problem.
  void bind_again(std::size_t part, operand_name slot, std::size_t known_part, operand_name known) {
    at(part, slot) = operand_of(problems_[known_part], known);
    where_[part].operands[static_cast<int>(slot)] = where_[known_part].operands[static_cast<int>(known)];
  }

  void require_disjoint() const {
    for (std::size_t i = 0; i < accesses_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if ((accesses_[i].writes || accesses_[j].writes) && overlap(accesses_[i].bytes, accesses_[j].bytes))
          throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s (%p) and %s->%s (%p) overlap", desc_, names_[j],
                      views_[j].data, desc_, names_[i], views_[i].data);
  }

  void submit(context &on, sg_operation operation, checked_submit &order, sg_job **out_job) {
    operand_spaces unused;
    const plan_request wanted = order.wanted(unused);
    plan_request request;
    request.streams = wanted.streams;
    request.memory_limit = wanted.memory_limit;
    const bool is_empty = std::none_of(accesses_.begin(), accesses_.end(), [](const access &x) { return x.writes; });
    for (problem &each : problems_) each.m = each.c.rows, each.n = each.c.cols;
    const form_of<conv_problems> what(conv_problems{form_, problems_});
    if (order.records()) {
      order.note_request(request);
      order.note(operation, what, desc_);
    }
    const auto plan = is_empty ? nullptr : on.plan_for(what, request);
    ref<job> work = on.new_job();
    if (!plan) return order.go(std::move(work), nullptr, 0, out_job);
    work->give_schedule(plan);
    work->operands.first = where_.front();
    work->operands.others.assign(where_.begin() + 1, where_.end());
    order.go(std::move(work), accesses_.data(), accesses_.size(), out_job);
  }

  // Whether the device has a command of its own for it.
  void look_for_conv(const sg_conv2d_desc &d) {
    auto wanted = backend_command<sg_backend_conv>();
    wanted.of = lower_images(form_.of, {0, 0, 1, 0, x_elements(), x_elements(), images()});
    wanted.y_image = y_elements();
    wanted.bias = d.bias;
    wanted.out_channels = static_cast<std::int32_t>(d.out_channels);
    wanted.type = d.dtype;
    wanted.activation = d.activation;
    form_.by_device = on_.on().supports(wanted.header);
  }

  void require_supported(bool takes_windows, bool adds_windows) const {
    auto take = backend_command<sg_backend_im2col>();
    take.element_bytes = static_cast<std::int32_t>(size_of(problems_.front().a.type));
    auto add = backend_command<sg_backend_col2im>();
    add.type = problems_.front().a.type;
    add.matrix_type = accumulator_of(add.type);
    if ((takes_windows && !on_.on().supports(take.header)) || (adds_windows && !on_.on().supports(add.header)))
      throw error(SG_STATUS_UNSUPPORTED, "%s->dtype is %s; device %.64s has no convolution of it", desc_,
                  name_of(add.type), on_.on().name().c_str());
  }

 private:
  operand &at(std::size_t part, operand_name slot) { return const_cast<operand &>(operand_of(problems_[part], slot)); }
  sg_dtype type_of(std::size_t part, operand_name slot) { return at(part, slot).type; }

  void bind(std::size_t part, operand_name slot, const char *name, const char *data, const sg_matrix &given, use how) {
    const given_operand x{desc_, name, views_.emplace_back(given), nullptr, 0, data};
    names_.push_back(name);
    operand &to = at(part, slot);
    const operand made = stored(x, 1);
    total_bytes(made, 1, name);
    if (made.rows == 0 || made.cols == 0) {
      views_.pop_back(), names_.pop_back();
      return;
    }
    to = made;
    operand_address &address = where_[part].operands[static_cast<int>(slot)];
    std::vector<std::vector<char *>> none;
    bind_operand(x, to, 1, true, address, none);
    to.space = space_of(on_.memory(), x, to, 1, address, SG_MEMORY_AUTO, true);
    accesses_.push_back({footprint_of(to, address), how != use::read, how != use::write});
  }

  const context &on_;
  const char *desc_;
  checked_windows windows_;
  conv_form form_;
  std::vector<problem> problems_;
  std::vector<problem_binding> where_;
  std::deque<sg_matrix> views_;  // by access
  std::vector<const char *> names_;
  std::vector<access> accesses_;
};

using use = conv_operands::use;

}  // namespace

void submit_conv2d(context &on, const sg_conv2d_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  conv_operands all(on, d, name, 1);
  const conv_form &f = all.form();
  if (d.activation < SG_ACTIVATION_NONE || d.activation > SG_ACTIVATION_GELU)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->activation is %d, which is no activation", name, int{d.activation});
  require_reserved_zero(d.reserved, name);
  all.problems().front().activation = d.activation;
  all.bind_images(0, operand_name::c, "y", d.y, all.y_elements(), use::write);
  if (all.positions() > 0 && d.out_channels > 0) {
    all.bind_images(0, operand_name::a, "x", d.x, all.x_elements(), use::read);
    all.bind_values(0, operand_name::b, "w", d.w, f.columns_of_group(), d.out_channels, d.dtype, use::read);
    if (d.bias) all.bind_values(0, operand_name::bias, "bias", d.bias, d.out_channels, 1, d.dtype, use::read);
    all.require_supported(!f.is_direct() && f.of.channels > 0, false);
    all.look_for_conv(d);
  }
  all.require_disjoint();
  all.submit(on, SG_OPERATION_CONV2D, order, out_job);
}

void submit_conv2d_backward(context &on, const sg_conv2d_backward_desc &d, const char *name, checked_submit &order,
                            sg_job **out_job) {
  conv_operands all(on, d, name, conv_parts);
  const conv_form &f = all.form();
  const sg_dtype type = d.gradient_dtype != 0 ? d.gradient_dtype : d.dtype;
  if (!is_dtype(type) || !is_gemm_type(d.dtype, type))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->gradient_dtype is %s, which is no result type of %s operands", name,
                is_dtype(type) ? name_of(type) : "no type", name_of(d.dtype));
  require_range(d.accumulate, 0, 1, (std::string(name) + "->accumulate").c_str());
  const bool has_windows = all.positions() > 0 && d.out_channels > 0, adds = d.accumulate != 0;
  const bool dx = d.dx.data != nullptr && all.images() > 0 && all.x_elements() > 0;
  const bool dw = d.dw && f.of.columns() > 0 && d.out_channels > 0 && (has_windows || !adds);
  const bool dbias = d.dbias && d.out_channels > 0 && (has_windows || !adds);
  if (has_windows && (dx || dw || dbias))
    all.bind_images(conv_bias_gradient, operand_name::a, "dy", d.dy, all.y_elements(), use::read);
  all.bind_again(conv_input_gradient, operand_name::bias, conv_bias_gradient, operand_name::a);
  if (dx) {
    all.bind_images(conv_input_gradient, operand_name::c, "dx", d.dx, all.x_elements(), use::write);
    if (has_windows)
      all.bind_values(conv_input_gradient, operand_name::b, "w", d.w, f.columns_of_group(), d.out_channels, d.dtype,
                      use::read);
  }
  const use gradient = adds ? use::add : use::write;
  for (const conv_part part : {conv_filter_gradient, conv_bias_gradient}) {
    all.problems()[part].beta_zero = !adds;
    all.where()[part].beta.re = d.accumulate;
  }
  if (dw) {
    if (has_windows) all.bind_images(conv_input_gradient, operand_name::a, "x", d.x, all.x_elements(), use::read);
    all.bind_values(conv_filter_gradient, operand_name::c, "dw", d.dw, f.columns_of_group(), d.out_channels, type,
                    gradient);
  }
  if (dbias) all.bind_values(conv_bias_gradient, operand_name::c, "dbias", d.dbias, d.out_channels, 1, type, gradient);
  all.require_supported(has_windows && (dw || dx), has_windows && dx && !f.is_direct());
  all.require_disjoint();
  all.submit(on, SG_OPERATION_CONV2D_BACKWARD, order, out_job);
}

}  // namespace sg

sg_status sg_conv2d_async(sg_context *context, const sg_conv2d_desc *desc, const sg_submit *submit, sg_job **out_job) {
  return sg::submit_desc<sg_conv2d_desc>(context, desc, SG_CONV2D_DESC_INIT, submit, out_job, sg::submit_conv2d);
}

sg_status sg_conv2d(sg_context *context, const sg_conv2d_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) { return sg_conv2d_async(context, desc, submit, out_job); });
}

sg_status sg_conv2d_backward_async(sg_context *context, const sg_conv2d_backward_desc *desc, const sg_submit *submit,
                                   sg_job **out_job) {
  return sg::submit_desc<sg_conv2d_backward_desc>(context, desc, SG_CONV2D_BACKWARD_DESC_INIT, submit, out_job,
                                                  sg::submit_conv2d_backward);
}

sg_status sg_conv2d_backward(sg_context *context, const sg_conv2d_backward_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait(
      [&](sg_job **out_job) { return sg_conv2d_backward_async(context, desc, submit, out_job); });
}
