// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/recurrent.hpp"

#include <streamgemm/recurrent.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/submission/layer.hpp"
#include "api/submission/submission.hpp"
#include "api/wait.hpp"

namespace sg {

namespace {

using operand_of_layer = recurrent_operand;

// The operands of a layer or of its gradients: their checks, addresses and accesses.
class recurrent_operand_list {
 public:
  recurrent_operand_list(const context &on, const char *desc, std::size_t problems)
      : on_(on), desc_(desc), where_(problems) {}

  recurrent_form form;

  void check_form(sg_cell cell, sg_gate_order order, std::int32_t reverse, std::uint32_t reserved) {
    const auto range = [&](std::int64_t value, std::int64_t most, const char *name) {
      require_range(value, 0, most, (std::string(desc_) + "->" + name).c_str());
    };
    constexpr std::int64_t most = std::int64_t{1} << 40;  // products by a few do not overflow
    range(cell, SG_CELL_GRU_RESET_BEFORE, "cell");
    range(order, SG_GATE_ORDER_ONNX, "gate_order");
    range(form.steps, most, "steps"), range(form.batch, most, "batch");
    range(form.in, most, "in"), range(form.hidden, most, "hidden");
    range(reverse, 1, "reverse");
    range(form.state_stride, INT64_MAX, "state_stride");
    form.cell = cell, form.order = order, form.reverse = reverse != 0;
    if (!is_layer_dtype(form.type))
      throw error(SG_STATUS_UNSUPPORTED, "%s->dtype is %s; it must be f64, f32, f16 or bf16", desc_,
                  is_dtype(form.type) ? name_of(form.type) : "no type");
    if (form.compute < SG_COMPUTE_EXACT || form.compute > SG_COMPUTE_F8 || !is_compute_of(form.type, form.compute))
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s->compute is %d, which is no compute of %s operands", desc_,
                  int{form.compute}, name_of(form.type));
    require_reserved_zero(reserved, desc_);
    if (form.state_stride == 0) form.state_stride = form.hidden;
    if (form.batch > 1 && form.state_stride < form.hidden)
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s->state_stride is %lld; a state has %lld values", desc_,
                  static_cast<long long>(form.state_stride), static_cast<long long>(form.hidden));
  }

  sequence_strides check_sequence(const sg_sequence &x, const char *name, std::int64_t width, bool written) const {
    const bool has_elements = form.steps > 0 && form.batch > 0 && width > 0;
    const auto check = [&](std::int64_t stride, const char *field, std::int64_t count) {
      require_range(stride, 0, INT64_MAX, (std::string(desc_) + "->" + name + "." + field).c_str());
      if (has_elements && count > 1 && stride < width)
        throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s.%s is %lld; a step has %lld values", desc_, name, field,
                    static_cast<long long>(stride), static_cast<long long>(width));
    };
    check(x.step_stride, "step_stride", form.steps);
    check(x.batch_stride, "batch_stride", form.batch);
    const auto [inner, outer] = std::minmax({std::pair{x.step_stride, form.steps}, {x.batch_stride, form.batch}});
    if (written && form.steps > 1 && form.batch > 1 && outer.first < (inner.second - 1) * inner.first + width)
      throw error(SG_STATUS_INVALID_ARGUMENT, "steps of %s->%s overlap: its strides are %lld and %lld", desc_, name,
                  static_cast<long long>(x.step_stride), static_cast<long long>(x.batch_stride));
    return {x.step_stride, x.batch_stride};
  }

  // Of an LSTM only.
  void require_lstm(const void *data, const char *name) const {
    if (data && !form.is_lstm())
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s is given; a GRU has no state c", desc_, name);
  }

  // Adds an operand with bytes; its data is checked. `reads`, `writes`: what the job does.
  void add(operand_of_layer which, const char *name, const void *data, bool writes, bool reads,
           const char *field = "") {
    const std::int64_t bytes = bytes_of(form, which);
    if (bytes == 0) return;
    const sg_dtype type = type_of(form, which);
    operand span;  // one column
    span.rows = bytes / size_of(type), span.cols = 1, span.ld = span.rows, span.type = type;
    const sg_matrix view{const_cast<void *>(data), span.rows, 1, 0, type, SG_LAYOUT_COLUMN_MAJOR};
    const given_operand given{desc_, name, view, nullptr, 0, field};
    operand_address &at =
        where_[std::size_t(which) / operands_of_problem].operands[std::size_t(which) % operands_of_problem];
    std::vector<std::vector<char *>> unused;
    bind_operand(given, span, 1, true, at, unused);
    require_in_device_memory(on_, given, span, at);
    form.give(which);
    const std::size_t before = accesses_.size();
    bool updates = false;
    each_footprint(bytes_in(which, at.base, bytes), [&](const footprint &made, bool exact) {
      for (std::size_t i = 0; i < before && !updates; ++i) {
        access &other = accesses_[i];
        if (!(writes || other.writes) || !overlap(made, other.bytes)) continue;
        if (!is_update(owners_[i].which, which) || made != other.bytes)
          throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s (%p) and %s->%s (%p) overlap", desc_, owners_[i].name,
                      owners_[i].data, desc_, name, data);
        updates = other.writes = other.reads = true;
      }
      if (updates) return;
      accesses_.push_back({made, writes, reads, exact});
      owners_.push_back({which, name, data});
    });
  }
  void add_if(operand_of_layer which, const char *name, const void *data, bool writes, bool reads) {
    if (data) add(which, name, data, writes, reads);
  }
  void add_sequence(operand_of_layer which, const char *name, const sg_sequence &x, bool writes) {
    add(which, name, x.data, writes, !writes, ".data");
  }

  std::span<const access> accesses() const noexcept { return accesses_; }
  void bind(binding &made, bool accumulates) {
    for (problem_binding &each : where_) each.beta.re = accumulates;
    made.first = where_.front();
    made.others.assign(where_.begin() + 1, where_.end());
  }
  bool has_results() const noexcept {
    return std::ranges::any_of(accesses_, [](const access &each) { return each.writes; });
  }

 private:
  struct owner {
    operand_of_layer which;
    const char *name;
    const void *data;
  };

  // The state after the steps may replace that before them.
  static bool is_update(operand_of_layer before, operand_of_layer after) noexcept {
    return (before == operand_of_layer::h0 && after == operand_of_layer::hn) ||
           (before == operand_of_layer::c0 && after == operand_of_layer::cn);
  }

  strided_bytes bytes_in(operand_of_layer which, const char *base, std::int64_t bytes) const {
    using enum recurrent_operand;
    const std::int64_t size = size_of(form.type);
    switch (which) {
      case x:
      case y:
      case dx:
      case dy: {
        const sequence_strides &strides = strides_of(form, which);
        const std::int64_t width = which == x || which == dx ? form.in : form.hidden;
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

  const context &on_;
  const char *desc_;
  std::vector<problem_binding> where_;
  std::vector<access> accesses_;
  std::vector<owner> owners_;
};

template <class Command>
void require_cell(const context &on, const recurrent_form &form, const char *desc) {
  auto wanted = backend_command<Command>();
  wanted.type = form.type;
  wanted.cell = form.cell;
  if (!on.on().supports(wanted.header))
    throw error(SG_STATUS_UNSUPPORTED, "%s->dtype is %s; device %.64s has no recurrent cells of it", desc,
                name_of(form.type), on.on().name().c_str());
}

void submit_recurrent_plan(context &on, recurrent_operand_list &operands, const form &what, sg_operation operation,
                           const char *name, checked_submit &order, sg_job **out_job) {
  if (order.records()) order.note(operation, what, name);
  std::shared_ptr<const program> plan;
  if (operands.has_results()) {
    plan = program_for(on, what, order);
    if (plan->schedule->commands.empty()) plan = nullptr;
  }
  ref<job> work = on.new_job();
  if (!plan) return order.go(std::move(work), nullptr, 0, out_job);
  work->give_schedule(plan);
  operands.bind(work->operands, operands.form.accumulate);
  const auto accesses = operands.accesses();
  order.go(std::move(work), accesses.data(), accesses.size(), out_job);
}

}  // namespace

void submit_recurrent(context &on, const sg_recurrent_desc &d, const char *name, checked_submit &order,
                      sg_job **out_job) {
  recurrent_operand_list all(on, name, recurrent_problems);
  recurrent_form &f = all.form;
  f.steps = d.steps, f.batch = d.batch, f.in = d.in, f.hidden = d.hidden;
  f.state_stride = d.state_stride, f.type = f.gradient_type = d.dtype, f.compute = d.compute;
  all.check_form(d.cell, d.gate_order, d.reverse, d.reserved);
  all.require_lstm(d.c0, "c0"), all.require_lstm(d.cn, "cn");
  require_cell<sg_backend_cell>(on, f, name);
  using enum recurrent_operand;
  if (d.steps > 0 && d.batch > 0 && d.hidden > 0) {
    f.x = all.check_sequence(d.x, "x", d.in, false);
    f.y = all.check_sequence(d.y, "y", d.hidden, true);
    all.add_sequence(x, "x", d.x, false);
    all.add(w_ih, "w_ih", d.w_ih, false, true);
    all.add(w_hh, "w_hh", d.w_hh, false, true);
    all.add_if(bias_ih, "bias_ih", d.bias_ih, false, true);
    all.add_if(bias_hh, "bias_hh", d.bias_hh, false, true);
    all.add_sequence(y, "y", d.y, true);
    all.add_if(reserve, "reserve", d.reserve, true, false);
  }
  all.add_if(h0, "h0", d.h0, false, true);
  all.add_if(c0, "c0", d.c0, false, true);
  all.add_if(hn, "hn", d.hn, true, false);
  all.add_if(cn, "cn", d.cn, true, false);
  submit_recurrent_plan(on, all, form_of<recurrent_form>(all.form), SG_OPERATION_RECURRENT, name, order, out_job);
}

void submit_recurrent_backward(context &on, const sg_recurrent_backward_desc &d, const char *name,
                               checked_submit &order, sg_job **out_job) {
  recurrent_operand_list all(on, name, recurrent_backward_problems);
  recurrent_form &f = all.form;
  f.steps = d.steps, f.batch = d.batch, f.in = d.in, f.hidden = d.hidden;
  f.state_stride = d.state_stride, f.type = d.dtype, f.gradient_type = d.gradient_dtype, f.compute = d.compute;
  all.check_form(d.cell, d.gate_order, d.reverse, d.reserved);
  if (d.accumulate != 0 && d.accumulate != 1)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->accumulate is %d; it must be 0 or 1", name, d.accumulate);
  f.accumulate = d.accumulate != 0;
  if (d.cell == SG_CELL_GRU_RESET_BEFORE)
    throw error(SG_STATUS_UNSUPPORTED,
                "%s->cell is %d, a GRU with the reset before the product, which has no gradients", name, int{d.cell});
  if (!is_dtype(d.gradient_dtype) || !is_gemm_type(d.dtype, d.gradient_dtype))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->gradient_dtype is %s, which is no result type of %s operands", name,
                is_dtype(d.gradient_dtype) ? name_of(d.gradient_dtype) : "no type", name_of(d.dtype));
  const bool has_values = d.steps > 0 && d.batch > 0 && d.hidden > 0;
  if (d.dw_ih && has_values) f.x = all.check_sequence(d.x, "x", d.in, false);
  if (d.dw_hh && has_values) f.y = all.check_sequence(d.y, "y", d.hidden, false);
  if (d.dy.data) f.dy = all.check_sequence(d.dy, "dy", d.hidden, false);
  if (d.dx.data) f.dx = all.check_sequence(d.dx, "dx", d.in, true);
  all.require_lstm(d.dcn, "dcn"), all.require_lstm(d.dc0, "dc0");
  require_cell<sg_backend_cell_backward>(on, f, name);
  using enum recurrent_operand;
  const bool has_results = d.dx.data || d.dw_ih || d.dw_hh || d.dbias_ih || d.dbias_hh || d.dh0 || d.dc0;
  if (has_values && has_results) {
    all.add(w_hh, "w_hh", d.w_hh, false, true);
    all.add(reserve, "reserve", d.reserve, false, true);
    if (d.dw_ih) all.add_sequence(x, "x", d.x, false);
    if (d.dx.data) all.add(w_ih, "w_ih", d.w_ih, false, true);
    if (d.dw_hh) all.add_sequence(y, "y", d.y, false);
    if (d.dw_hh) all.add_if(h0, "h0", d.h0, false, true);
    if (d.dy.data) all.add_sequence(dy, "dy", d.dy, false);
  }
  all.add_if(dhn, "dhn", d.dhn, false, true);
  all.add_if(dcn, "dcn", d.dcn, false, true);
  if (d.dx.data) all.add_sequence(dx, "dx", d.dx, true);
  all.add_if(dw_ih, "dw_ih", d.dw_ih, true, f.accumulate);
  all.add_if(dw_hh, "dw_hh", d.dw_hh, true, f.accumulate);
  all.add_if(dbias_ih, "dbias_ih", d.dbias_ih, true, f.accumulate);
  all.add_if(dbias_hh, "dbias_hh", d.dbias_hh, true, f.accumulate);
  all.add_if(dh0, "dh0", d.dh0, true, false);
  all.add_if(dc0, "dc0", d.dc0, true, false);
  submit_recurrent_plan(on, all, form_of<recurrent_backward_form>(recurrent_backward_form{all.form}),
                        SG_OPERATION_RECURRENT_BACKWARD, name, order, out_job);
}

namespace {

std::uint64_t reserve_bytes(const sg_recurrent_desc &d, const char *name) {
  recurrent_form f;
  f.steps = d.steps, f.batch = d.batch, f.hidden = d.hidden, f.type = d.dtype;
  const std::pair<const char *, std::int64_t> sizes[] = {{"steps", d.steps}, {"batch", d.batch}, {"hidden", d.hidden}};
  for (const auto &[field, value] : sizes)
    require_range(value, 0, std::int64_t{1} << 40, (std::string(name) + "->" + field).c_str());
  if (!is_layer_dtype(f.type))
    throw error(SG_STATUS_UNSUPPORTED, "%s->dtype is %s; it must be f64, f32, f16 or bf16", name,
                is_dtype(f.type) ? name_of(f.type) : "no type");
  return static_cast<std::uint64_t>(bytes_of(f, recurrent_operand::reserve));
}

}  // namespace

}  // namespace sg

sg_status sg_recurrent_reserve_size(const sg_recurrent_desc *desc, uint64_t *out_bytes) {
  if (out_bytes) *out_bytes = 0;
  return sg::guarded([&] {
    sg::require(desc, "desc");
    sg::require(out_bytes, "out_bytes");
    *out_bytes = sg::reserve_bytes(sg::options_of(desc, SG_RECURRENT_DESC_INIT, "desc"), "desc");
  });
}

sg_status sg_recurrent_async(sg_context *context, const sg_recurrent_desc *desc, const sg_submit *submit,
                             sg_job **out_job) {
  return sg::submit_desc(context, desc, sg_recurrent_desc(SG_RECURRENT_DESC_INIT), submit, out_job,
                         sg::submit_recurrent);
}

sg_status sg_recurrent(sg_context *context, const sg_recurrent_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) { return sg_recurrent_async(context, desc, submit, out_job); });
}

sg_status sg_recurrent_backward_async(sg_context *context, const sg_recurrent_backward_desc *desc,
                                      const sg_submit *submit, sg_job **out_job) {
  return sg::submit_desc(context, desc, sg_recurrent_backward_desc(SG_RECURRENT_BACKWARD_DESC_INIT), submit, out_job,
                         sg::submit_recurrent_backward);
}

sg_status sg_recurrent_backward(sg_context *context, const sg_recurrent_backward_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait(
      [&](sg_job **out_job) { return sg_recurrent_backward_async(context, desc, submit, out_job); });
}
