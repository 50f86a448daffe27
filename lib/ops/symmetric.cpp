// SPDX-License-Identifier: Apache-2.0
#include "ops/symmetric.hpp"

#include <algorithm>

#include "ops/axpby.hpp"
#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::symmetric;

access_mode access(const command &c, std::size_t view) {
  if (view != symmetric::c) return access_mode::read;
  return c.as<symmetric>()->beta == scalar_role::zero ? access_mode::write : access_mode::read_write;
}

bool is_product(const symmetric &what) noexcept { return what.kind == SG_BACKEND_SYMMETRIC_MULTIPLY; }
// Columns of op(A) of an update.
std::int64_t depth(const command &c) noexcept {
  const view &a = c.views[symmetric::a];
  return !a.exists() ? 0 : c.as<symmetric>()->op == SG_TRANSPOSE_N ? a.cols : a.rows;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const symmetric &what = *command.as<symmetric>();
  const view &c = command.views[symmetric::c], &a = command.views[symmetric::a], &b = command.views[symmetric::b];
  if (!c.exists()) return "a symmetric product or update has a result";
  if (c.items != 1) return "a symmetric product or update has one item";
  if (!is_product(what) && c.rows != c.cols) return "C of a symmetric update is not square";
  if (a.exists() != (what.alpha != scalar_role::zero)) return "A of a symmetric product or update goes with a factor";
  if (b.exists() != (a.exists() && what.kind != SG_BACKEND_SYMMETRIC_RANK_K))
    return "B of a symmetric product or update goes with A";
  if (!a.exists()) return nullptr;
  const auto is_shaped = [](const view &v, std::int64_t rows, std::int64_t cols) {
    return v.rows == rows && v.cols == cols && v.items == 1;
  };
  const std::int64_t order = what.side == SG_SIDE_LEFT ? c.rows : c.cols, k = depth(command);
  const bool fit = is_product(what)
                       ? is_shaped(a, order, order) && is_shaped(b, c.rows, c.cols)
                       : is_shaped(a, what.op == SG_TRANSPOSE_N ? c.rows : k, what.op == SG_TRANSPOSE_N ? k : c.rows) &&
                             (!b.exists() || is_shaped(b, a.rows, a.cols));
  if (!fit) return "the operands of a symmetric product or update do not fit C";
  const bool same =
      type_of(buffers, a) == type_of(buffers, c) && (!b.exists() || type_of(buffers, b) == type_of(buffers, c));
  return same ? nullptr : "the operands of a symmetric product or update differ in type";
}

// A product is a GEMM; an update is half of one, or with B of two.
kernel_cost kernel(const device_model &model, sg_backend_symmetric_kind kind, sg_side side, std::int64_t m,
                   std::int64_t n, std::int64_t k, sg_dtype type, bool reads_c) {
  gemm_shape shape;
  shape.m = m, shape.n = n, shape.in_type = shape.out_type = type, shape.reads_c = reads_c;
  if (kind == SG_BACKEND_SYMMETRIC_MULTIPLY)
    shape.k = side == SG_SIDE_LEFT ? m : n;
  else
    shape.n = (n + 1) / 2, shape.k = kind == SG_BACKEND_SYMMETRIC_RANK_2K ? 2 * k : k;
  return shape.k > 0 ? gemm_cost(model, shape)
                     : memory_bound_kernel(model, double(m) * double(n) * double(size_of(type)));
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const symmetric &what = *command.as<symmetric>();
  const view &c = command.views[symmetric::c];
  if (!command.views[symmetric::a].exists()) return memory_bound_cost(model, buffers, command);
  return cost_of_kernel(model, kernel(model, what.kind, what.side, c.rows, c.cols, depth(command), type_of(buffers, c),
                                      what.beta != scalar_role::zero));
}

std::string describe(const buffer_list &, const command &c) {
  const view &result = c.views[symmetric::c];
  if (is_product(*c.as<symmetric>())) return "symmetric product of" + shape_text(result);
  return "symmetric update of rank " + std::to_string(depth(c)) + " of" + shape_text(result);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const symmetric &from = *command.as<symmetric>();
  const view &c = command.views[symmetric::c], &a = command.views[symmetric::a], &b = command.views[symmetric::b];
  const scalar_pair &own = where.scalars(command.group);
  void *const at = address_of(buffers, c, where, c.item);
  const sg_scalar beta = value_of(from.beta, own.beta);
  if (is_product(from) && !a.exists()) {
    auto scaled = backend_command<sg_backend_axpby>();
    scaled.m = c.rows, scaled.n = c.cols, scaled.type = type_of(buffers, c), scaled.beta = beta;
    scaled.c = at, scaled.ldc = c.ld;
    out.add(scaled);
    return;
  }
  auto made = backend_command<sg_backend_symmetric>();
  made.kind = from.kind, made.m = c.rows, made.n = c.cols, made.k = is_product(from) ? 0 : depth(command);
  made.type = type_of(buffers, c), made.symmetry = from.symmetry, made.triangle = from.triangle;
  made.side = from.side, made.op = from.op;
  made.beta = beta;
  if (a.exists()) {
    made.alpha = value_of(from.alpha, own.alpha);
    made.a = address_of(buffers, a, where, a.item), made.lda = a.ld;
  }
  if (b.exists()) made.b = address_of(buffers, b, where, b.item), made.ldb = b.ld;
  made.c = at, made.ldc = c.ld;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_symmetric>(command);
  return model.launch_gap +
         kernel(model, x.kind, x.side, x.m, x.n, x.k, x.type, x.beta.re != 0 || x.beta.im != 0).seconds;
}

}  // namespace

constinit const operation ops::symmetric::entry{"symmetric",          access, defect, cost, describe, lower,
                                                SG_BACKEND_SYMMETRIC, seconds};

}  // namespace sg
