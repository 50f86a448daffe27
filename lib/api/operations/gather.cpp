// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/gather.h>

#include <algorithm>

#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

namespace {

// The bytes of a NaN, repeated; 0: the type has none.
std::uint64_t nan_of(sg_dtype type) noexcept {
  switch (type) {
    case SG_DTYPE_F64: return 0x7ff8000000000000;
    case SG_DTYPE_F32: return 0x7fc000007fc00000;
    case SG_DTYPE_F16: return 0x7e007e007e007e00;
    case SG_DTYPE_BF16: return 0x7fc07fc07fc07fc0;
    default: return 0;
  }
}

}  // namespace

void submit(context &on, const sg_gather_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  if ((d.flags & ~std::uint32_t{SG_GATHER_FROM_END | SG_GATHER_NAN}) != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->flags is %u, which has unknown bits", name, d.flags);
  const given_operand table = given_by_rows(name, "table", d.table), out = given_by_rows(name, "y", d.y);
  const given_operand indices = given_indices(name, d.indices, d.index_type, d.y.rows);
  check_view(out);
  check_view(table);
  require_extent(table, std::max<std::int64_t>(d.table.rows, 1), d.y.cols, out);
  if (d.table.dtype != d.y.dtype)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->table.dtype is %s and @%s->y.dtype is %s; they must be equal", name,
                name_of(d.table.dtype), name, name_of(d.y.dtype));
  ops::gather what;
  what.from_end = (d.flags & SG_GATHER_FROM_END) != 0;
  if ((d.flags & SG_GATHER_NAN) != 0 && (what.fill = nan_of(d.y.dtype)) == 0)
    throw error(SG_STATUS_UNSUPPORTED, "@%s->flags is %u, but %s has no NaN here", name, d.flags, name_of(d.y.dtype));
  layer x(on, order);
  x.set_operation(what, "gather", 0, command_form::split::columns);
  x.allows_in_place = false;
  add_matrix(x, table, ops::gather::table, share::some);
  add_indices(x, indices, ops::gather::indices);
  add_matrix(x, out, ops::gather::y);
  bind_layer(x, backend_command<sg_backend_gather>().header, "gather");
  submit_layer(on, x, SG_OPERATION_GATHER, d, name, order, out_job);
}

// A part of the table's columns, which are rows as stored, needs the same columns of X.
void submit(context &on, const sg_scatter_add_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand table = given_by_rows(name, "table", d.table), in = given_by_rows(name, "x", d.x);
  const given_operand indices = given_indices(name, d.indices, d.index_type, d.x.rows);
  if ((d.flags & ~std::uint32_t{SG_GATHER_FROM_END}) != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->flags is %u, which has unknown bits", name, d.flags);
  check_view(table);
  check_view(in);
  require_layer_type(table);
  require_extent(table, std::max<std::int64_t>(d.table.rows, 1), d.x.cols, in);
  if (d.table.dtype != d.x.dtype)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->table.dtype is %s and @%s->x.dtype is %s; they must be equal", name,
                name_of(d.table.dtype), name, name_of(d.x.dtype));
  layer x(on, order);
  x.set_operation(ops::scatter_add{(d.flags & SG_GATHER_FROM_END) != 0}, "scatter add", 0, command_form::split::rows);
  x.allows_in_place = false;
  add_matrix(x, in, ops::scatter_add::x);
  add_indices(x, indices, ops::scatter_add::indices);
  x.form.parameters[ops::scatter_add::indices].needed = share::whole;
  add_matrix(x, table, ops::scatter_add::table);
  x.is_empty = d.x.rows == 0;
  auto wanted = backend_command<sg_backend_scatter_add>();
  wanted.type = d.table.dtype;
  bind_layer(x, wanted.header, "scatter-add");
  submit_layer(on, x, SG_OPERATION_SCATTER_ADD, d, name, order, out_job);
}

}  // namespace sg
