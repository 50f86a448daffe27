// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/recurrent.hpp"

#include <streamgemm/recurrent.h>

#include <algorithm>
#include <string>
#include <utility>

#include "api/entry.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

namespace {

// The operands of a layer or of its gradients.
class recurrent_operand_list {
 public:
  using which = recurrent_operand;

  recurrent_operand_list(const context &on, const checked_submit &order, const char *desc)
      : desc_(desc), operands_(on, order.place_of_absent()) {}

  recurrent_form form;

  void check_form(sg_cell cell, sg_gate_order order, std::int32_t reverse) {
    const auto range = [&](std::int64_t value, std::int64_t most, const char *name) {
      require_range(value, 0, most, (std::string(desc_) + "->" + name).c_str());
    };
    constexpr std::int64_t most = std::int64_t{1} << 40;  // products by a few do not overflow
    range(cell, SG_CELL_GRU_RESET_BEFORE, "cell");
    range(order, SG_GATE_ORDER_ONNX, "gate_order");
    range(form.steps, most, "steps"), range(form.batch, most, "batch");
    range(form.in, most, "inputs"), range(form.hidden, most, "hidden");
    range(reverse, 1, "reverse");
    range(form.state_stride, INT64_MAX, "state_stride");
    form.cell = cell, form.order = order, form.reverse = reverse != 0;
    if (!is_layer_dtype(form.type))
      throw error(SG_STATUS_UNSUPPORTED, "@%s->dtype is %s; it must be f64, f32, f16 or bf16", desc_,
                  type_text(form.type).c_str());
    if (form.compute < SG_COMPUTE_EXACT || form.compute > SG_COMPUTE_F8 || !is_compute_of(form.type, form.compute))
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->compute is %d, which is no compute of %s operands", desc_,
                  int{form.compute}, name_of(form.type));
    if (form.state_stride == 0) form.state_stride = form.hidden;
    if (form.batch > 1 && form.state_stride < form.hidden)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->state_stride is %lld; a state has %lld values", desc_,
                  static_cast<long long>(form.state_stride), static_cast<long long>(form.hidden));
  }

  sequence_strides check_sequence(const sg_sequence &x, const char *name, std::int64_t width, bool written) const {
    const bool has_elements = form.steps > 0 && form.batch > 0 && width > 0;
    const auto check = [&](std::int64_t stride, const char *field, std::int64_t count) {
      require_range(stride, 0, INT64_MAX, (std::string(desc_) + "->" + name + "." + field).c_str());
      if (has_elements && count > 1 && stride < width)
        throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.%s is %lld; a step has %lld values", desc_, name, field,
                    static_cast<long long>(stride), static_cast<long long>(width));
    };
    check(x.step_stride, "step_stride", form.steps);
    check(x.batch_stride, "batch_stride", form.batch);
    const auto [inner, outer] = std::minmax({std::pair{x.step_stride, form.steps}, {x.batch_stride, form.batch}});
    if (written && form.steps > 1 && form.batch > 1 && outer.first < (inner.second - 1) * inner.first + width)
      throw error(SG_STATUS_INVALID_ARGUMENT, "steps of @%s->%s overlap: its strides are %lld and %lld", desc_, name,
                  static_cast<long long>(x.step_stride), static_cast<long long>(x.batch_stride));
    return {x.step_stride, x.batch_stride};
  }

  // Of an LSTM only.
  void require_lstm(const void *data, const char *name) const {
    if (data && !form.is_lstm())
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is given; a GRU has no state c", desc_, name);
  }

  // Adds an operand with bytes.
  template <class Pointer>
  void add(which x, const char *name, const Pointer &data, access_mode mode, const char *field = "") {
    const std::int64_t bytes = bytes_of(form, x);
    if (bytes == 0) return;
    const sg_dtype type = type_of(form, x);
    given_operand given = given_values(desc_, name, data, bytes / size_of(type), 1, type);
    given.data = field;
    operand span = stored(given, 1);
    operand_set::rules rules;
    rules.mode = mode;
    rules.set = bytes_in(x, data, bytes);
    // The state after the steps may replace that before them.
    if (x == which::h0) rules.may_become = static_cast<std::size_t>(which::hn);
    if (x == which::c0) rules.may_become = static_cast<std::size_t>(which::cn);
    operands_.add(static_cast<std::size_t>(x), given, span, rules);
    form.give(x, span.space);
  }
  template <class Pointer>
  void add_if(which x, const char *name, const Pointer &data, access_mode mode) {
    if (data) add(x, name, data, mode);
  }
  void add_sequence(which x, const char *name, const sg_sequence &of, access_mode mode) {
    add(x, name, of.data, mode, ".data");
  }
  operand_set &operands() noexcept { return operands_; }

 private:
  strided_bytes bytes_in(which of, const void *base, std::int64_t bytes) const {
    using enum recurrent_operand;
    const std::int64_t size = size_of(form.type);
    switch (of) {
      case x:
      case y:
      case dx:
      case dy: {
        const sequence_strides &strides = strides_of(form, of);
        const std::int64_t width = of == x || of == dx ? form.in : form.hidden;
        return {base, width * size, {{{form.steps, strides.step * size}, {form.batch, strides.batch * size}, {}}}};
      }
      case h0:
      case c0:
      case hn:
      case cn:
      case dhn:
      case dcn:
      case dh0:
      case dc0: return {base, form.hidden * size, {{{form.batch, form.state_stride * size}, {}, {}}}};
      default: return {base, bytes};
    }
  }

  const char *desc_;
  operand_set operands_;
};

template <class Command>
void require_cell(const context &on, const recurrent_form &form, const char *desc) {
  auto wanted = backend_command<Command>();
  wanted.type = form.type;
  wanted.cell = form.cell;
  if (!on.on().supports(wanted.header))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->dtype is %s; device %.64s has no recurrent cells of it", desc,
                name_of(form.type), on.on().name().c_str());
}

}  // namespace

void submit(context &on, const sg_recurrent_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  recurrent_operand_list all(on, order, name);
  recurrent_form &f = all.form;
  f.steps = d.steps, f.batch = d.batch, f.in = d.inputs, f.hidden = d.hidden;
  f.state_stride = d.state_stride, f.type = f.gradient_type = d.dtype, f.compute = d.compute;
  all.check_form(d.cell, d.gate_order, d.reverse);
  all.require_lstm(d.c0, "c0"), all.require_lstm(d.cn, "cn");
  require_cell<sg_backend_cell>(on, f, name);
  using enum recurrent_operand;
  if (d.steps > 0 && d.batch > 0 && d.hidden > 0) {
    f.x = all.check_sequence(d.x, "x", d.inputs, false);
    f.y = all.check_sequence(d.y, "y", d.hidden, true);
    all.add_sequence(x, "x", d.x, access_mode::read);
    all.add(w_ih, "w_ih", d.w_ih, access_mode::read);
    all.add(w_hh, "w_hh", d.w_hh, access_mode::read);
    all.add_if(bias_ih, "bias_ih", d.bias_ih, access_mode::read);
    all.add_if(bias_hh, "bias_hh", d.bias_hh, access_mode::read);
    all.add_sequence(y, "y", d.y, access_mode::write);
    all.add_if(reserve, "reserve", d.reserve, access_mode::write);
  }
  all.add_if(h0, "h0", d.h0, access_mode::read);
  all.add_if(c0, "c0", d.c0, access_mode::read);
  all.add_if(hn, "hn", d.hn, access_mode::write);
  all.add_if(cn, "cn", d.cn, access_mode::write);
  submit_operands(on, all.operands(), d, name,
                  {SG_OPERATION_RECURRENT, form_of<recurrent_form>(f), !all.operands().writes()}, usual_request(order),
                  order, out_job);
}

void submit(context &on, const sg_recurrent_backward_desc &d, const char *name, checked_submit &order,
            sg_job **out_job) {
  recurrent_operand_list all(on, order, name);
  recurrent_form &f = all.form;
  f.steps = d.steps, f.batch = d.batch, f.in = d.inputs, f.hidden = d.hidden;
  f.state_stride = d.state_stride, f.type = d.dtype, f.gradient_type = d.gradient_dtype, f.compute = d.compute;
  all.check_form(d.cell, d.gate_order, d.reverse);
  if (d.accumulate != 0 && d.accumulate != 1)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->accumulate is %d; it must be 0 or 1", name, d.accumulate);
  f.accumulate = d.accumulate != 0;
  if (d.cell == SG_CELL_GRU_RESET_BEFORE)
    throw error(SG_STATUS_UNSUPPORTED,
                "@%s->cell is %d, a GRU with the reset before the product, which has no gradients", name, int{d.cell});
  if (!is_dtype(d.gradient_dtype) || !is_gemm_type(d.dtype, d.gradient_dtype))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->gradient_dtype is %s, which is no result type of %s operands", name,
                type_text(d.gradient_dtype).c_str(), name_of(d.dtype));
  const bool has_values = d.steps > 0 && d.batch > 0 && d.hidden > 0;
  const access_mode gradient = f.accumulate ? access_mode::read_write : access_mode::write;
  if (d.dw_ih && has_values) f.x = all.check_sequence(d.x, "x", d.inputs, false);
  if (d.dw_hh && has_values) f.y = all.check_sequence(d.y, "y", d.hidden, false);
  if (d.dy.data) f.dy = all.check_sequence(d.dy, "dy", d.hidden, false);
  if (d.dx.data) f.dx = all.check_sequence(d.dx, "dx", d.inputs, true);
  all.require_lstm(d.dcn, "dcn"), all.require_lstm(d.dc0, "dc0");
  require_cell<sg_backend_cell_backward>(on, f, name);
  using enum recurrent_operand;
  const bool has_results = d.dx.data || d.dw_ih || d.dw_hh || d.dbias_ih || d.dbias_hh || d.dh0 || d.dc0;
  if (has_values && has_results) {
    all.add(w_hh, "w_hh", d.w_hh, access_mode::read);
    all.add(reserve, "reserve", d.reserve, access_mode::read);
    if (d.dw_ih) all.add_sequence(x, "x", d.x, access_mode::read);
    if (d.dx.data) all.add(w_ih, "w_ih", d.w_ih, access_mode::read);
    if (d.dw_hh) all.add_sequence(y, "y", d.y, access_mode::read);
    if (d.dw_hh) all.add_if(h0, "h0", d.h0, access_mode::read);
    if (d.dy.data) all.add_sequence(dy, "dy", d.dy, access_mode::read);
  }
  all.add_if(dhn, "dhn", d.dhn, access_mode::read);
  all.add_if(dcn, "dcn", d.dcn, access_mode::read);
  if (d.dx.data) all.add_sequence(dx, "dx", d.dx, access_mode::write);
  all.add_if(dw_ih, "dw_ih", d.dw_ih, gradient);
  all.add_if(dw_hh, "dw_hh", d.dw_hh, gradient);
  all.add_if(dbias_ih, "dbias_ih", d.dbias_ih, gradient);
  all.add_if(dbias_hh, "dbias_hh", d.dbias_hh, gradient);
  all.add_if(dh0, "dh0", d.dh0, access_mode::write);
  all.add_if(dc0, "dc0", d.dc0, access_mode::write);
  all.operands().set_scalars(1, f.accumulate);
  submit_operands(on, all.operands(), d, name,
                  {SG_OPERATION_RECURRENT_BACKWARD, form_of<recurrent_backward_form>(recurrent_backward_form{f}),
                   !all.operands().writes()},
                  usual_request(order), order, out_job);
}

namespace {

std::uint64_t reserve_bytes(const sg_recurrent_desc &d, const char *name) {
  recurrent_form f;
  f.steps = d.steps, f.batch = d.batch, f.hidden = d.hidden, f.type = d.dtype;
  const std::pair<const char *, std::int64_t> sizes[] = {{"steps", d.steps}, {"batch", d.batch}, {"hidden", d.hidden}};
  for (const auto &[field, value] : sizes)
    require_range(value, 0, std::int64_t{1} << 40, (std::string(name) + "->" + field).c_str());
  if (!is_layer_dtype(f.type))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->dtype is %s; it must be f64, f32, f16 or bf16", name,
                type_text(f.type).c_str());
  return static_cast<std::uint64_t>(bytes_of(f, recurrent_operand::reserve));
}

}  // namespace

}  // namespace sg

sg_status sg_recurrent_reserve_size(const sg_recurrent_desc *desc, uint64_t *out_bytes) {
  if (out_bytes) *out_bytes = 0;
  return sg::guarded([&] {
    sg::require(desc, "desc");
    sg::require(out_bytes, "out_bytes");
    *out_bytes = sg::reserve_bytes(sg::options_of(desc, "desc"), "desc");
  });
}
