// SPDX-License-Identifier: Apache-2.0
#include "plan/form/triangle_parts.hpp"

#include <cmath>

#include "base/dtype.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::symmetric;

struct columns {
  std::int64_t first, end;
};

// The first column of part `index`: a triangle of n columns has index / count of its elements before it.
std::int64_t first_column(bool is_lower, std::int64_t n, std::int64_t index, std::int64_t count) {
  const double share = double(index) / double(count);
  const double at = double(n) * (is_lower ? 1 - std::sqrt(1 - share) : std::sqrt(share));
  return index == count ? n : std::int64_t(at);
}

// The rows of op(A) that belong to some rows or columns of the result.
view rows_of(const view &a, sg_transpose op, columns which, std::int64_t size) {
  view v = a;
  v.offset += which.first * (op == SG_TRANSPOSE_N ? 1 : a.ld) * size;
  (op == SG_TRANSPOSE_N ? v.rows : v.cols) = which.end - which.first;
  return v;
}

view block_of(const view &c, columns rows, columns cols, std::int64_t size) {
  view v = c;
  v.offset += (rows.first + cols.first * c.ld) * size;
  v.rows = rows.end - rows.first, v.cols = cols.end - cols.first;
  return v;
}

}  // namespace

void add_triangle_part(const command &whole, sg_dtype type, std::int64_t index, std::int64_t count,
                       const std::function<void(const command &)> &add) {
  const symmetric &what = *whole.as<symmetric>();
  const view &c = whole.views[symmetric::c], &a = whole.views[symmetric::a], &b = whole.views[symmetric::b];
  const bool is_lower = what.triangle == SG_TRIANGLE_LOWER;
  const columns own = {first_column(is_lower, c.cols, index, count), first_column(is_lower, c.cols, index + 1, count)};
  const columns beside = is_lower ? columns{own.end, c.rows} : columns{0, own.first};
  if (own.first == own.end) return;
  const std::int64_t size = size_of(type);
  const lane where(lane_kind::compute, static_cast<std::uint16_t>(index));
  command diagonal = whole;
  diagonal.where = where;
  diagonal.views[symmetric::c] = block_of(c, own, own, size);
  if (a.exists()) diagonal.views[symmetric::a] = rows_of(a, what.op, own, size);
  if (b.exists()) diagonal.views[symmetric::b] = rows_of(b, what.op, own, size);
  add(diagonal);
  if (!a.exists() || beside.first == beside.end) return;
  // op(X) * op(Y)', of the rows beside the block and its columns.
  const auto add_product = [&](const view &x, const view &y, scalar_role alpha, scalar_role beta) {
    ops::gemm g;
    g.m = beside.end - beside.first, g.n = own.end - own.first, g.k = what.op == SG_TRANSPOSE_N ? a.cols : a.rows;
    g.op_a = what.op;
    g.op_b = what.op != SG_TRANSPOSE_N                ? SG_TRANSPOSE_N
             : what.symmetry == SG_SYMMETRY_HERMITIAN ? SG_TRANSPOSE_C
                                                      : SG_TRANSPOSE_T;
    g.alpha = alpha, g.beta = beta;
    command product;
    product.what = g;
    product.where = where;
    product.group = whole.group;
    product.views[ops::gemm::c] = block_of(c, beside, own, size);
    product.views[ops::gemm::a] = rows_of(x, what.op, beside, size);
    product.views[ops::gemm::b] = rows_of(y, what.op, own, size);
    set_access_modes(product);
    add(product);
  };
  add_product(a, b.exists() ? b : a, what.alpha, what.beta);
  if (!b.exists()) return;
  const bool is_hermitian = what.symmetry == SG_SYMMETRY_HERMITIAN;
  add_product(b, a, is_hermitian ? scalar_role::conjugate : what.alpha, scalar_role::one);
}

}  // namespace sg
