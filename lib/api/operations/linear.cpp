// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/linear.hpp"

#include <streamgemm/linear.h>

#include <span>
#include <utility>
#include <vector>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/gemm/submit_gemm.hpp"
#include "api/operands/operand_bytes.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"
#include "api/wait.hpp"
#include "plan/gemm/gemm_form.hpp"
#include "plan/layers/column_sums.hpp"

namespace sg {

namespace {

using long_long = long long;

void require_shape(const given_operand &x, std::int64_t rows, std::int64_t cols, const char *why) {
  if (x.view.rows != rows || x.view.cols != cols)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is %lld x %lld; with this %s it must be %lld x %lld", x.desc,
                x.name, long_long{x.view.rows}, long_long{x.view.cols}, why, long_long{rows}, long_long{cols});
}

void check_op_w(sg_transpose op, const char *desc) {
  if (op != SG_TRANSPOSE_N && op != SG_TRANSPOSE_T)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->op_w is %d; it must be %d (N) or %d (T)", desc, int{op},
                SG_TRANSPOSE_N, SG_TRANSPOSE_T);
}

void require_weight_shape(const given_operand &w, std::int64_t in, std::int64_t out, sg_transpose op, const char *why) {
  require_shape(w, op == SG_TRANSPOSE_N ? in : out, op == SG_TRANSPOSE_N ? out : in, why);
}

sg_gemm_desc gemm_of(const sg_linear_desc &d, const char *desc) {
  const given_operand x{desc, "x", d.x, nullptr, 0}, w{desc, "w", d.w, nullptr, 0}, y{desc, "y", d.y, nullptr, 0};
  for (const given_operand *each : {&x, &w, &y}) check_view(*each);
  check_op_w(d.op_w, desc);
  require_shape(y, d.x.rows, d.y.cols, "x");
  require_weight_shape(w, d.x.cols, d.y.cols, d.op_w, "x, y and op of w");
  sg_gemm_desc gemm = SG_GEMM_DESC_INIT;
  gemm.a = d.x;
  gemm.b = d.w;
  gemm.c = d.y;
  gemm.op_b = d.op_w;
  gemm.compute = d.compute;
  gemm.bias = d.bias;
  gemm.activation = d.activation;
  return gemm;
}

void submit_linear(sg_context *handle, const sg_linear_desc *desc, const sg_submit *submit, sg_job **out_job,
                   ref<job> *pending) {
  const borrowed<context> on(handle, object_type::context, "context");
  require(desc, "desc");
  const sg_gemm_desc gemm = gemm_of(options_of(desc, "desc"), "desc");
  submit_gemm(*on, gemm, {"x", "w", "y"}, submit, out_job, pending);
}

// The gradients that a descriptor asks for.
class checked_backward {
 public:
  checked_backward(const context &on, const checked_submit &order, const sg_linear_backward_desc &d, const char *desc)
      : on_(on),
        d_(d),
        desc_(desc),
        dy_(given_matrix(desc, "dy", d.dy)),
        x_(given_matrix(desc, "x", d.x)),
        w_(given_matrix(desc, "w", d.w)),
        dx_(given_matrix(desc, "dx", d.dx)),
        dw_(given_matrix(desc, "dw", d.dw)),
        dbias_(given_values(desc, "dbias", d.dbias, d.dy.cols, 1, d.dbias_dtype)),
        forms_(linear_parts),
        operands_(on, order.place_of_absent()) {
    check();
    add_dx();
    add_dw();
    add_dbias();
    operands_.where().more_scalars.assign(linear_parts - 1, {{1, 0}, {static_cast<double>(d.accumulate), 0}});
  }

  bool is_empty() const noexcept { return operands_.operands().empty(); }
  const linear_problems &planned() const noexcept { return planned_; }
  // The same as they are without `accumulate`, which an update may change: a sum over no rows that is added is no
  // problem.
  const std::vector<problem> &forms() const noexcept { return forms_; }
  operand_set &operands() noexcept { return operands_; }
  plan_request request(const plan_request &wanted) const noexcept {
    plan_request made;
    made.streams = wanted.streams;
    made.memory_limit = wanted.memory_limit;
    return made;
  }

 private:
  std::int64_t rows() const noexcept { return d_.dy.rows; }
  std::int64_t outputs() const noexcept { return d_.dy.cols; }
  static bool is_zero_sized(const sg_matrix &x) noexcept { return x.rows == 0 || x.cols == 0; }
  static bool is_row_major(const sg_matrix &x) noexcept { return x.layout == SG_LAYOUT_ROW_MAJOR; }

  void require_type(const given_operand &x) const {
    if (x.view.dtype != d_.dy.dtype)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.dtype is %s and @%s->dy.dtype is %s; they must be equal", desc_,
                  x.name, name_of(x.view.dtype), desc_, name_of(d_.dy.dtype));
  }
  void require_result_type(const char *field, sg_dtype type) const {
    if (!is_dtype(type) || !is_gemm_type(d_.dy.dtype, type))
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is %s, which is no result type of %s operands", desc_, field,
                  type_text(type).c_str(), name_of(d_.dy.dtype));
  }

  void check() const {
    check_view(dy_);
    require_layer_type(dy_);
    check_op_w(d_.op_w, desc_);
    if (d_.compute < SG_COMPUTE_EXACT || d_.compute > SG_COMPUTE_F8 || !is_compute_of(d_.dy.dtype, d_.compute))
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->compute is %d, which is no compute of %s operands", desc_,
                  int{d_.compute}, name_of(d_.dy.dtype));
    if (d_.accumulate != 0 && d_.accumulate != 1)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->accumulate is %d; it must be 0 or 1", desc_, d_.accumulate);
    if (d_.dx.data) {
      check_view(dx_);
      check_view(w_);
      require_type(w_);
      require_result_type("dx.dtype", d_.dx.dtype);
      require_shape(dx_, rows(), d_.dx.cols, "dy");
      require_weight_shape(w_, d_.dx.cols, outputs(), d_.op_w, "dy, dx and op of w");
    }
    if (d_.dw.data) {
      check_view(dw_);
      check_view(x_);
      require_type(x_);
      require_result_type("dw.dtype", d_.dw.dtype);
      require_shape(x_, rows(), d_.x.cols, "dy");
      require_weight_shape(dw_, d_.x.cols, outputs(), d_.op_w, "x, dy and op of w");
    }
    if (d_.dbias) require_result_type("dbias_dtype", d_.dbias_dtype);
  }

  // Binds an operand of a problem, or the same one again; with mode none it is not accessed.
  void bind(const given_operand &given, linear_part part, operand_name name, operand &stored, access_mode mode) {
    total_bytes(stored, 1, given.name);
    if (mode == access_mode::none) return;
    const auto parameter = static_cast<std::size_t>(parameter_of(static_cast<std::int32_t>(part), name));
    for (const operand_set::bound &each : operands_.operands())
      if (each.field == given.field) {
        stored.space = each.space;
        return operands_.add_again(each, parameter);
      }
    operand_set::rules rules;
    rules.mode = mode;
    operands_.add(parameter, given, stored, rules);
  }

  // C = op_a(A) * op_b(B), as a column-major problem; a row-major C swaps A and B.
  void add_product(linear_part part, const given_operand &a, sg_transpose op_a, const given_operand &b,
                   sg_transpose op_b, const given_operand &c, bool accumulates, bool computes) {
    const bool by_rows = is_row_major(c.view);
    const given_operand &first = by_rows ? b : a, &second = by_rows ? a : b;
    problem &p = planned_.all[part];
    p.op_a = op_on_stored(first, by_rows ? op_b : op_a, c.view.layout);
    p.op_b = op_on_stored(second, by_rows ? op_a : op_b, c.view.layout);
    p.a = stored(first, 1);
    p.b = stored(second, 1);
    p.c = stored(c, 1);
    p.m = p.c.rows;
    p.n = p.c.cols;
    p.k = p.op_a == SG_TRANSPOSE_N ? p.a.cols : p.a.rows;
    p.compute = d_.compute;
    p.no_multiply = p.k == 0;
    p.beta_zero = !accumulates;
    forms_[part] = fixed_in_updates(p);
    if (!computes) {
      p = {};
      return;
    }
    const access_mode read = p.no_multiply ? access_mode::none : access_mode::read;
    bind(first, part, operand_name::a, p.a, read);
    bind(second, part, operand_name::b, p.b, read);
    bind(c, part, operand_name::c, p.c, accumulates ? access_mode::read_write : access_mode::write);
    planned_.dy_is_a[part] = &first == &dy_;
  }

  void add_dx() {
    if (!d_.dx.data || is_zero_sized(d_.dx)) return;
    add_product(input_gradient, dy_, SG_TRANSPOSE_N, w_, d_.op_w == SG_TRANSPOSE_N ? SG_TRANSPOSE_T : SG_TRANSPOSE_N,
                dx_, false, true);
  }

  void add_dw() {
    const bool computes = rows() > 0 || !d_.accumulate;
    if (!d_.dw.data || is_zero_sized(d_.dw)) return;
    if (d_.op_w == SG_TRANSPOSE_N)
      add_product(weight_gradient, x_, SG_TRANSPOSE_T, dy_, SG_TRANSPOSE_N, dw_, d_.accumulate, computes);
    else
      add_product(weight_gradient, dy_, SG_TRANSPOSE_T, x_, SG_TRANSPOSE_N, dw_, d_.accumulate, computes);
  }

  // The problem of plan/layers/column_sums.hpp; it has dY in any case.
  void add_dbias() {
    problem &p = planned_.all[bias_gradient_part];
    const bool has_result = d_.dbias && outputs() > 0, computes = has_result && (rows() > 0 || !d_.accumulate);
    p.no_multiply = true;
    p.m = outputs();
    p.n = 1;
    p.k = rows();
    p.op_a = is_row_major(d_.dy) ? SG_TRANSPOSE_N : SG_TRANSPOSE_T;
    p.a = stored(dy_, 1);
    total_bytes(p.a, 1, "dy");  // before its multiples are computed
    p.a.item_stride = stride_of_groups(p.op_a == SG_TRANSPOSE_N, p.k, p.a.ld);
    p.beta_zero = !d_.accumulate;
    bind(dy_, bias_gradient_part, operand_name::a, p.a,
         p.k > 0 && p.m > 0 && (computes || !is_empty()) ? access_mode::read : access_mode::none);
    forms_[bias_gradient_part] = fixed_in_updates(p);
    if (has_result) forms_[bias_gradient_part].c = stored(dbias_, 1);
    if (!computes) return;
    p.c = stored(dbias_, 1);
    bind(dbias_, bias_gradient_part, operand_name::c, p.c,
         d_.accumulate ? access_mode::read_write : access_mode::write);
    auto sums = backend_command<sg_backend_reduce>();
    sums.part_type = d_.dy.dtype;
    sums.out_type = accumulator_of(d_.dy.dtype);
    sums.parts_count = 1;
    if (!on_.on().supports(sums.header))
      throw error(SG_STATUS_UNSUPPORTED, "@%s->dbias is given; device %.64s has no sums of %s", desc_,
                  on_.on().name().c_str(), name_of(d_.dy.dtype));
  }

  const context &on_;
  const sg_linear_backward_desc &d_;
  const char *desc_;
  const given_operand dy_, x_, w_, dx_, dw_, dbias_;
  linear_problems planned_{std::vector<problem>(linear_parts)};
  std::vector<problem> forms_;
  operand_set operands_;
};

}  // namespace

void submit(context &on, const sg_linear_backward_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  checked_backward gradients(on, order, d, name);
  operand_spaces unused;
  const plan_request request = gradients.request(order.wanted(unused));
  const gemm_form fixed(std::span<const problem>(gradients.forms()));
  submit_operands(
      on, gradients.operands(), d, name,
      {SG_OPERATION_LINEAR_BACKWARD, form_of<linear_problems>(gradients.planned()), gradients.is_empty(), &fixed},
      request, order, out_job);
}

}  // namespace sg

sg_status sg_linear_async(sg_context *context, const sg_linear_desc *desc, const sg_submit *submit, sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return sg::guarded([&] { sg::submit_linear(context, desc, submit, out_job, nullptr); });
}

sg_status sg_linear(sg_context *context, const sg_linear_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait_here(
      [&](sg::ref<sg::job> *pending) { sg::submit_linear(context, desc, submit, nullptr, pending); });
}
