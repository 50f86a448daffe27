// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/row_reduce.h>

#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

namespace {

const char *strategy_of(sg_reduction reduction) noexcept {
  switch (reduction) {
    case SG_REDUCTION_SUM: return "sums of rows";
    case SG_REDUCTION_MEAN: return "means of rows";
    case SG_REDUCTION_MAX: return "maxima of rows";
    case SG_REDUCTION_MIN: return "minima of rows";
  }
  return nullptr;
}

}  // namespace

void submit(context &on, const sg_row_reduce_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand in = given_by_rows(name, "x", d.x), out = given_by_rows(name, "y", d.y);
  const char *const strategy = strategy_of(d.reduction);
  if (!strategy)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->reduction is %d, which is no reduction", name, int{d.reduction});
  check_view(in);
  check_view(out);
  require_layer_type(in);
  require_column(out, in);
  layer x(on, order);
  x.allows_in_place = false;
  const bool by_rows = x.by_rows = in.view.layout == SG_LAYOUT_ROW_MAJOR;
  x.set_operation(ops::row_reduce{by_rows, d.reduction}, strategy, double(in.view.cols), command_form::split::columns);
  if (in.view.cols > 0) add_matrix(x, in, ops::row_reduce::x, by_rows ? share::same : share::transposed);
  add_operand(x, out, ops::row_reduce::y);
  auto wanted = backend_command<sg_backend_row_reduce>();
  wanted.type = d.y.dtype;
  bind_layer(x, wanted.header, "reduction of rows");
  submit_layer(on, x, SG_OPERATION_ROW_REDUCE, d, name, order, out_job);
}

}  // namespace sg
