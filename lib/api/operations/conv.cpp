// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/conv.hpp"

#include <streamgemm/conv.h>

#include <algorithm>
#include <string>

#include "api/operands/operand_bytes.hpp"
#include "api/operands/windows_of.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"
#include "ops/conv.hpp"

namespace sg {

namespace {

using long_long = long long;

// What the descriptors of a convolution and of its gradients have in common.
template <class Desc>
checked_windows check_conv(const Desc &d, const char *desc) {
  if (d.filter_layout != SG_FILTER_OIHW && d.filter_layout != SG_FILTER_OHWI)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->filter_layout is %d, which is no order of a filter", desc,
                int{d.filter_layout});
  checked_windows w =
      check_windows({desc, d.images, d.channels, d.height, d.width, 0, 0, d.windows, d.image_layout, d.filter_layout});
  const auto field = [desc](const char *name) { return std::string(desc) + "->" + name; };
  constexpr std::int64_t most = (std::int64_t{1} << 29) - 1;
  require_range(d.out_channels, 0, most, field("out_channels").c_str());
  require_range(d.groups, 1, most, field("groups").c_str());
  for (const auto &[name, channels] : {std::pair{"channels", d.channels}, std::pair{"out_channels", d.out_channels}})
    if (channels % d.groups != 0)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is %lld and @%s->groups is %lld, which does not divide it", desc,
                  name, long_long{channels}, desc, long_long{d.groups});
  require_layer_type(d.dtype, desc);
  if (d.compute < SG_COMPUTE_EXACT || d.compute > SG_COMPUTE_F8 || !is_compute_of(d.dtype, d.compute))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->compute is %d, which is no compute of %s operands", desc,
                int{d.compute}, name_of(d.dtype));
  if (d.workspace > static_cast<std::uint64_t>(INT64_MAX))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->workspace is %llu; it must be at most %lld", desc,
                static_cast<unsigned long long>(d.workspace), long_long{INT64_MAX});
  w.of.groups = static_cast<std::int32_t>(d.groups);
  w.of.positions_are_rows = !w.of.channels_last;
  return w;
}

// The operands of a convolution, or of its gradients.
class conv_operands {
 public:
  template <class Desc>
  conv_operands(const context &on, const checked_submit &order, const Desc &d, const char *desc)
      : desc_(desc), windows_(check_conv(d, desc)), operands_(on, order.place_of_absent()) {
    form_.of = windows_.of;
    form_.out_channels = d.out_channels;
    form_.workspace = static_cast<std::int64_t>(d.workspace);
    form_.compute = d.compute;
    for (operand &each : form_.operands) each.type = d.dtype, each.space = SG_MEMORY_DEVICE;
  }

  conv_form &form() noexcept { return form_; }
  operand_set &operands() noexcept { return operands_; }
  std::int64_t positions() const noexcept { return windows_.positions(); }
  std::int64_t images() const noexcept { return windows_.images; }
  std::int64_t x_elements() const noexcept { return windows_.elements_of_image(); }
  std::int64_t y_elements() const { return checked_mul(form_.of.positions_of_image(), form_.out_channels, "an image"); }

  // Images, or contiguous values. Without elements it is no operand.
  void add_images(conv_parameter which, const char *name, const sg_images &x, std::int64_t elements, access_mode mode) {
    const std::int64_t stride = checked_stride(desc_, name, x, images(), elements);
    add(which,
        {desc_,
         name,
         {x.data, elements, images(), std::max<std::int64_t>(stride, elements), form_.at(which).type,
          SG_LAYOUT_COLUMN_MAJOR},
         nullptr,
         0,
         ".data",
         &x.data},
        mode);
  }
  template <class Pointer>
  void add_values(conv_parameter which, const char *name, const Pointer &values, std::int64_t rows, std::int64_t cols,
                  sg_dtype type, access_mode mode) {
    add(which, given_values(desc_, name, values, rows, cols, type), mode);
  }

  template <class Desc>
  void submit(context &on, const Desc &d, sg_operation operation, checked_submit &order, sg_job **out_job) {
    operand_spaces unused;
    const plan_request wanted = order.wanted(unused);
    plan_request request;
    request.streams = wanted.streams;
    request.memory_limit = wanted.memory_limit;
    submit_operands(on, operands_, d, desc_, {operation, form_of<conv_form>(form_), !operands_.writes()}, request,
                    order, out_job);
  }

  // Whether the device has commands of its own for it.
  void look_for_conv(const sg_conv2d_desc &d) {
    sg_backend_conv wanted = whole_images(d.dtype);
    wanted.bias = d.bias;
    wanted.activation = d.activation;
    form_.by_device = operands_.on().on().supports(wanted.header);
  }
  void look_for_gradients(sg_dtype type, sg_dtype gradient_type) {
    const auto is_dense = [](const operand &x) { return !exists(x) || x.cols <= 1 || x.ld == x.rows; };
    const device &on = operands_.on().on();
    sg_backend_conv wanted = whole_images(type);
    const bool suits = is_dense(form_.at(conv_parameter::y));
    if (exists(form_.at(conv_parameter::dx))) {
      wanted.gradient = SG_BACKEND_CONV_OF_X;
      form_.by_device = suits && is_dense(form_.at(conv_parameter::dx)) && on.supports(wanted.header);
    }
    if (exists(form_.at(conv_parameter::dw)) && !form_.accumulates) {
      wanted.gradient = SG_BACKEND_CONV_OF_W;
      if (gradient_type != type) wanted.w_type = gradient_type;
      form_.dw_by_device = suits && is_dense(form_.at(conv_parameter::x)) && on.supports(wanted.header);
    }
  }

  void require_supported(bool takes_windows, bool adds_windows) const {
    const device &on = operands_.on().on();
    auto take = backend_command<sg_backend_im2col>();
    take.element_bytes = static_cast<std::int32_t>(size_of(form_.type()));
    auto add = backend_command<sg_backend_col2im>();
    add.type = form_.type();
    add.matrix_type = accumulator_of(add.type);
    if ((takes_windows && !on.supports(take.header)) || (adds_windows && !on.supports(add.header)))
      throw error(SG_STATUS_UNSUPPORTED, "@%s->dtype is %s; device %.64s has no convolution of it", desc_,
                  name_of(add.type), on.name().c_str());
  }

 private:
  sg_backend_conv whole_images(sg_dtype type) const {
    auto made = backend_command<sg_backend_conv>();
    made.of = lower_images(form_.of, {0, 0, 1, 0, x_elements(), x_elements(), images()});
    made.y_image = y_elements();
    made.out_channels = static_cast<std::int32_t>(form_.out_channels);
    made.type = type;
    return made;
  }

  void add(conv_parameter which, const given_operand &x, access_mode mode) {
    operand made = stored(x, 1);
    total_bytes(made, 1, x.name);
    if (!exists(made)) return;
    operand_set::rules rules;
    rules.mode = mode;
    operands_.add(static_cast<std::size_t>(which), x, made, rules);
    form_.at(which) = made;
  }

  const char *desc_;
  checked_windows windows_;
  conv_form form_;
  operand_set operands_;
};

}  // namespace

void submit(context &on, const sg_conv2d_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  using enum conv_parameter;
  conv_operands all(on, order, d, name);
  conv_form &f = all.form();
  if (d.activation < SG_ACTIVATION_NONE || d.activation > SG_ACTIVATION_GELU)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->activation is %d, which is no activation", name, int{d.activation});
  f.activation = d.activation;
  all.add_images(y, "y", d.y, all.y_elements(), access_mode::write);
  if (all.positions() > 0 && d.out_channels > 0) {
    all.add_images(x, "x", d.x, all.x_elements(), access_mode::read);
    all.add_values(w, "w", d.w, f.columns_of_group(), d.out_channels, d.dtype, access_mode::read);
    if (d.bias) all.add_values(bias, "bias", d.bias, d.out_channels, 1, d.dtype, access_mode::read);
    all.require_supported(!f.is_direct() && f.of.channels > 0, false);
    all.look_for_conv(d);
  }
  all.submit(on, d, SG_OPERATION_CONV2D, order, out_job);
}

void submit(context &on, const sg_conv2d_backward_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  using which = conv_parameter;
  conv_operands all(on, order, d, name);
  conv_form &f = all.form();
  f.is_backward = true;
  const sg_dtype type = d.gradient_dtype != 0 ? d.gradient_dtype : d.dtype;
  if (!is_dtype(type) || !is_gemm_type(d.dtype, type))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->gradient_dtype is %s, which is no result type of %s operands", name,
                type_text(type).c_str(), name_of(d.dtype));
  require_range(d.accumulate, 0, 1, (std::string(name) + "->accumulate").c_str());
  const bool has_windows = all.positions() > 0 && d.out_channels > 0, adds = d.accumulate != 0;
  const bool dx = d.dx.data != nullptr && all.images() > 0 && all.x_elements() > 0;
  const bool dw = d.dw && f.of.columns() > 0 && d.out_channels > 0 && (has_windows || !adds);
  const bool dbias = d.dbias && d.out_channels > 0 && (has_windows || !adds);
  f.accumulates = adds;
  all.operands().set_scalars(1, d.accumulate);
  if (has_windows && (dx || dw || dbias)) all.add_images(which::y, "dy", d.dy, all.y_elements(), access_mode::read);
  if (dx) {
    all.add_images(which::dx, "dx", d.dx, all.x_elements(), access_mode::write);
    if (has_windows)
      all.add_values(which::w, "w", d.w, f.columns_of_group(), d.out_channels, d.dtype, access_mode::read);
  }
  const access_mode gradient = adds ? access_mode::read_write : access_mode::write;
  if (dw) {
    if (has_windows) all.add_images(which::x, "x", d.x, all.x_elements(), access_mode::read);
    all.add_values(which::dw, "dw", d.dw, f.columns_of_group(), d.out_channels, type, gradient);
  }
  if (dbias) all.add_values(which::dbias, "dbias", d.dbias, d.out_channels, 1, type, gradient);
  all.require_supported(has_windows && (dw || dx), has_windows && dx && !f.is_direct());
  if (has_windows && f.of.channels > 0) all.look_for_gradients(d.dtype, type);
  all.submit(on, d, SG_OPERATION_CONV2D_BACKWARD, order, out_job);
}

}  // namespace sg
