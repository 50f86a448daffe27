// SPDX-License-Identifier: Apache-2.0
#include "ops/triangular.hpp"

#include <algorithm>

#include "ops/axpby.hpp"
#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::triangular;

access_mode access(const command &c, std::size_t view) {
  if (view == triangular::a) return access_mode::read;
  return c.as<triangular>()->alpha == scalar_role::zero ? access_mode::write : access_mode::read_write;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const triangular &what = *command.as<triangular>();
  const view &b = command.views[triangular::b], &a = command.views[triangular::a];
  if (!b.exists()) return "a triangular solve or product has a result";
  if (b.items != 1) return "a triangular solve or product has one item";
  if (a.exists() != (what.alpha != scalar_role::zero)) return "A of a triangular solve or product goes with a factor";
  if (!a.exists()) return nullptr;
  const std::int64_t order = what.side == SG_SIDE_LEFT ? b.rows : b.cols;
  if (a.rows != order || a.cols != order || a.items != 1) return "A of a triangular solve or product does not fit B";
  return type_of(buffers, a) == type_of(buffers, b) ? nullptr
                                                    : "A and B of a triangular solve or product differ in type";
}

// Half the multiplications of a GEMM.
kernel_cost kernel(const device_model &model, sg_side side, std::int64_t m, std::int64_t n, sg_dtype type) {
  gemm_shape shape;
  shape.m = m, shape.n = n, shape.k = ((side == SG_SIDE_LEFT ? m : n) + 1) / 2;
  shape.in_type = shape.out_type = type;
  return gemm_cost(model, shape);
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const view &b = command.views[triangular::b];
  if (!command.views[triangular::a].exists()) return memory_bound_cost(model, buffers, command);
  return cost_of_kernel(model, kernel(model, command.as<triangular>()->side, b.rows, b.cols, type_of(buffers, b)));
}

std::string describe(const buffer_list &, const command &c) {
  const triangular &what = *c.as<triangular>();
  return (what.kind == SG_TRIANGULAR_SOLVE ? "triangular solve of" : "triangular product of") +
         shape_text(c.views[triangular::b]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const triangular &from = *command.as<triangular>();
  const view &b = command.views[triangular::b], &a = command.views[triangular::a];
  void *const at = address_of(buffers, b, where, b.item);
  if (!a.exists()) {
    auto zero = backend_command<sg_backend_axpby>();
    zero.m = b.rows, zero.n = b.cols, zero.type = type_of(buffers, b), zero.c = at, zero.ldc = b.ld;
    out.add(zero);
    return;
  }
  auto made = backend_command<sg_backend_triangular>();
  made.m = b.rows, made.n = b.cols, made.type = type_of(buffers, b);
  made.kind = from.kind, made.side = from.side, made.triangle = from.triangle, made.op = from.op;
  made.diagonal = from.diagonal;
  made.alpha = value_of(from.alpha, where.scalars(command.group).alpha);
  made.a = address_of(buffers, a, where, a.item), made.lda = a.ld;
  made.b = at, made.ldb = b.ld;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_triangular>(command);
  return model.launch_gap + kernel(model, x.side, x.m, x.n, x.type).seconds;
}

}  // namespace

constinit const operation ops::triangular::entry{"triangular",          access, defect, cost, describe, lower,
                                                 SG_BACKEND_TRIANGULAR, seconds};

}  // namespace sg
