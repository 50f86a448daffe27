// SPDX-License-Identifier: Apache-2.0
#include "api/gemm/problem_of.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "api/entry.hpp"
#include "api/gemm/accesses.hpp"
#include "api/operands/given_operand.hpp"
#include "api/operands/operand_bytes.hpp"
#include "base/dtype.hpp"

namespace sg {

namespace {

using long_long = long long;

bool is_one(const sg_scalar &s) { return s.re == 1 && s.im == 0; }

void check_epilogue(const device &on, const sg_gemm_desc &d, const char *desc) {
  if (d.bias_shape != SG_BIAS_PER_COLUMN && d.bias_shape != SG_BIAS_PER_ROW)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->bias_shape is %d, which is no shape of a bias", desc,
                int{d.bias_shape});
  if (d.activation < SG_ACTIVATION_NONE || d.activation > SG_ACTIVATION_GELU)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->activation is %d, which is no activation", desc, int{d.activation});
  const bool integer = d.c.dtype == SG_DTYPE_I32;
  if (d.activation != SG_ACTIVATION_NONE && (is_complex(d.c.dtype) || (integer && d.activation == SG_ACTIVATION_GELU)))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->activation is %s, which %s results do not have", desc,
                d.activation == SG_ACTIVATION_RELU ? "relu" : "gelu", name_of(d.c.dtype));
  if (!d.bias && !d.activation) return;
  auto gemm = backend_command<sg_backend_gemm>();
  gemm.m = gemm.n = gemm.k = gemm.batch = gemm.lda = gemm.ldb = gemm.ldc = 1;
  gemm.in_type = d.a.dtype;
  gemm.out_type = d.c.dtype;
  gemm.compute = d.compute;
  gemm.alpha = {1, 0};
  gemm.bias = d.bias;
  gemm.activation = d.activation;
  if (!on.supports(gemm.header))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->%s is given; this device has no such epilogue", desc,
                d.bias ? "bias" : "activation");
}

// A value for each row or column of the caller's C, as a matrix of one column or one row.
sg_matrix view_of_bias(const sg_gemm_desc &d) {
  const bool per_row = d.bias_shape == SG_BIAS_PER_ROW;
  return {const_cast<void *>(d.bias), per_row ? d.c.rows : 1, per_row ? 1 : d.c.cols, 0, d.c.dtype, d.c.layout};
}

// Whether every operand that a run reads or writes has an address.
bool gives_all_pointers(const sg_gemm_desc &d, bool reads_a_and_b) {
  const auto given = [](const sg_matrix &x, const void *const *array) { return has_address(x.data) || array; };
  return given(d.c, d.c_array) && (!reads_a_and_b || (given(d.a, d.a_array) && given(d.b, d.b_array)));
}

void require_size_that_fits(const given_operand &x, const operand &o, std::int64_t batch) {
  try {
    total_bytes(o, batch, "its size");
  } catch (const error &overflow) {
    throw error(overflow.status(), "@%s->%s: %s", x.desc, x.name, overflow.what());
  }
}

}  // namespace

checked_gemm check_gemm(const memory_kinds &kinds, const sg_gemm_desc &d, const operand_spaces &known,
                        bool pointers_required, const char *name, const gemm_names &names) {
  given_operand a{name, names.a, d.a, d.a_array, d.stride_a};
  given_operand b{name, names.b, d.b, d.b_array, d.stride_b};
  const given_operand c{name, names.c, d.c, d.c_array, d.stride_c};
  check_view(a);
  check_view(b);
  check_view(c);
  require_reserved_zero(d, name);
  if (d.batch < 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->batch is %lld; it must not be negative", name, long_long{d.batch});
  if (d.a.dtype != d.b.dtype)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.dtype is %s and @%s->%s.dtype is %s; they must be equal", name,
                names.a, name_of(d.a.dtype), name, names.b, name_of(d.b.dtype));
  if (!is_gemm_type(d.a.dtype, d.c.dtype))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.dtype is %s, which is no result type of %s operands", name,
                names.c, name_of(d.c.dtype), name_of(d.a.dtype));
  if (d.compute < SG_COMPUTE_EXACT || d.compute > SG_COMPUTE_F8)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->compute is %d, which is no compute", name, int{d.compute});
  if (!is_compute_of(d.a.dtype, d.compute))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->compute is %s, which is for %s operands; these are %s", name,
                name_of(d.compute), d.compute == SG_COMPUTE_F8 ? "f8" : "f32", name_of(d.a.dtype));
  const sg_scalar alpha = checked_scalar(name, "alpha", d.alpha, d.c.dtype);
  const sg_scalar beta = checked_scalar(name, "beta", d.beta, d.c.dtype);
  if (d.bias || d.bias_shape || d.activation) check_epilogue(kinds.on(), d, name);

  checked_gemm g;
  problem &p = g.shape;
  p.batch = d.batch == 0 ? 1 : d.batch;
  p.compute = d.compute;
  const auto op_rows = [](const given_operand &x, sg_transpose op) {
    return op == SG_TRANSPOSE_N ? x.view.rows : x.view.cols;
  };
  const auto op_cols = [](const given_operand &x, sg_transpose op) {
    return op == SG_TRANSPOSE_N ? x.view.cols : x.view.rows;
  };
  sg_transpose op_a = op_on_stored(a, d.op_a, d.c.layout), op_b = op_on_stored(b, d.op_b, d.c.layout);
  const std::int64_t m = op_rows(a, d.op_a), k = op_cols(a, d.op_a), n = op_cols(b, d.op_b);
  if (op_rows(b, d.op_b) != k)
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "op(a) is %lld x %lld and op(b) is %lld x %lld; k does not agree (@%s->b.%s)", long_long{m},
                long_long{k}, long_long{op_rows(b, d.op_b)}, long_long{n}, name,
                d.op_b == SG_TRANSPOSE_N ? "rows" : "cols");
  if (d.c.rows != m || d.c.cols != n)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->c is %lld x %lld; op(a) * op(b) is %lld x %lld", name,
                long_long{d.c.rows}, long_long{d.c.cols}, long_long{m}, long_long{n});
  p.a = stored(a, p.batch);
  p.b = stored(b, p.batch);
  p.c = stored(c, p.batch);
  check_stride(a, p.a, p.batch, false);
  check_stride(b, p.b, p.batch, false);
  check_stride(c, p.c, p.batch, true);
  require_size_that_fits(a, p.a, p.batch);
  require_size_that_fits(b, p.b, p.batch);
  require_size_that_fits(c, p.c, p.batch);
  const sg_matrix bias_view = view_of_bias(d);
  const given_operand bias{name, "bias", bias_view, nullptr, d.stride_bias, ""};
  if (d.bias) {
    p.bias = stored(bias, p.batch);
    check_stride(bias, p.bias, p.batch, false);
    require_size_that_fits(bias, p.bias, p.batch);
  }
  p.activation = d.activation;
  // A row-major C is the transpose of a column-major one, op(B)^T * op(A)^T: the operands are swapped.
  const bool by_rows = d.c.layout == SG_LAYOUT_ROW_MAJOR;
  if (by_rows) {
    std::swap(p.a, p.b);
    std::swap(op_a, op_b);
  }
  p.op_a = op_a;
  p.op_b = op_b;
  p.m = by_rows ? n : m;
  p.n = by_rows ? m : n;
  p.k = k;
  p.no_multiply = k == 0 || is_zero(alpha);
  p.beta_zero = is_zero(beta);
  g.nothing_to_do = m == 0 || n == 0 || (p.no_multiply && is_one(beta) && !p.has_epilogue());
  g.where.scalars.alpha = alpha;
  g.where.scalars.beta = beta;

  const bool pointers_given = pointers_required || gives_all_pointers(d, !p.no_multiply);
  const given_operand &first = by_rows ? b : a, &second = by_rows ? a : b;
  if (pointers_given && (d.a_array || d.b_array || d.c_array)) g.pointers.reserve(3);
  if (!g.nothing_to_do) {
    // A bias is recognised by its address, which in a plan made ahead may be SG_PLAN_ADDRESS.
    const bool bias_given = pointers_required || has_address(d.bias);
    if (d.bias && bias_given) bind_operand(bias, p.bias, p.batch, true, g.where.parameters[3], g.pointers);
    if (pointers_given) {
      bind_operand(first, p.a, p.batch, !p.no_multiply, g.where.parameters[0], g.pointers);
      bind_operand(second, p.b, p.batch, !p.no_multiply, g.where.parameters[1], g.pointers);
      bind_operand(c, p.c, p.batch, true, g.where.parameters[2], g.pointers);
      check_overlap(g, name, by_rows, names);
    }
    const auto resolved_space = [&](const given_operand &x, const operand &o, const parameter_address &where,
                                    sg_memory_kind said) {
      const bool unread = &x != &c && p.no_multiply;
      const sg_memory_kind wanted = !pointers_given && said == SG_MEMORY_AUTO ? known.absent : said;
      return unread ? memory_space() : space_of(kinds, x, o, p.batch, where, wanted, pointers_given);
    };
    p.a.space = resolved_space(first, p.a, g.where.parameters[0], by_rows ? known.b : known.a);
    p.b.space = resolved_space(second, p.b, g.where.parameters[1], by_rows ? known.a : known.b);
    p.c.space = resolved_space(c, p.c, g.where.parameters[2], known.c);
    if (d.bias)
      p.bias.space = space_of(kinds, bias, p.bias, p.batch, g.where.parameters[3],
                              bias_given ? known.bias : known.absent, bias_given);
  }
  return g;
}

plan_request request_for(const sg_gemm_desc &desc, const problem &shape, plan_request r) {
  if (shape.no_multiply) r.split = split_kind::automatic;  // legal for any alpha: there is nothing to split
  if (desc.c.layout == SG_LAYOUT_COLUMN_MAJOR) return r;
  std::swap(r.tile_m, r.tile_n);
  r.by_rows = true;
  if (r.split == split_kind::m)
    r.split = split_kind::n;
  else if (r.split == split_kind::n)
    r.split = split_kind::m;
  return r;
}

}  // namespace sg
