// SPDX-License-Identifier: Apache-2.0
#include "api/submission/layer.hpp"

#include <cmath>
#include <limits>

#include "api/entry.hpp"
#include "api/operands/operand_bytes.hpp"

namespace sg {

void require_layer_type(const given_operand &result) {
  const sg_dtype type = result.view.dtype;
  if (!is_layer_dtype(type))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->%s.dtype is %s; it must be f64, f32, f16 or bf16", result.desc,
                result.name, name_of(type));
}

void require_layer_type(sg_dtype type, const char *desc) {
  if (!is_layer_dtype(type))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->dtype is %s; it must be f64, f32, f16 or bf16", desc,
                type_text(type).c_str());
}

void require_extent(const given_operand &x, std::int64_t rows, std::int64_t cols, const given_operand &result) {
  using long_long = long long;
  if (x.view.rows == rows && x.view.cols == cols) return;
  throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is %lld x %lld; with @%s->%s of %lld x %lld it must be %lld x %lld",
              x.desc, x.name, long_long{x.view.rows}, long_long{x.view.cols}, x.desc, result.name,
              long_long{result.view.rows}, long_long{result.view.cols}, long_long{rows}, long_long{cols});
}

void require_same_form(const given_operand &x, const given_operand &result) {
  const sg_matrix &a = x.view, &c = result.view;
  require_extent(x, c.rows, c.cols, result);
  if (a.dtype != c.dtype)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.dtype is %s and @%s->%s.dtype is %s; they must be equal", x.desc,
                x.name, name_of(a.dtype), x.desc, result.name, name_of(c.dtype));
}

void require_column(const given_operand &column, const given_operand &x) {
  require_extent(column, x.view.rows, 1, x);
  if (column.view.dtype != x.view.dtype)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.dtype is %s and @%s->%s.dtype is %s; they must be equal",
                column.desc, column.name, name_of(column.view.dtype), x.desc, x.name, name_of(x.view.dtype));
}

void require_some_columns(const given_operand &x) {
  if (x.view.rows > 0 && x.view.cols == 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.cols is 0; it must be at least 1", x.desc, x.name);
}

given_operand given_indices(const char *desc, const void *const &indices, sg_index_type type, std::int64_t count) {
  if (type != SG_INDEX_I32 && type != SG_INDEX_I64)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->index_type is %d, which is no type of an index", desc, int{type});
  const std::int64_t words = type == SG_INDEX_I64 ? 2 : 1;
  if (reinterpret_cast<std::uintptr_t>(indices) % static_cast<std::uintptr_t>(4 * words) != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->indices is %p, which is not aligned to %d bytes", desc, indices,
                static_cast<int>(4 * words));
  return given_values(desc, "indices", indices, words, count, SG_DTYPE_I32);
}

void add_indices(layer &to, const given_operand &indices, std::size_t view) {
  add_operand(to, indices, view);
  to.operands[view].alignment = 4 * indices.view.rows;
  to.operands[view].separate = true;
}

void require_norm(sg_norm_kind kind, double epsilon, const char *desc) {
  if (kind != SG_NORM_LAYER && kind != SG_NORM_RMS)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->kind is %d, which is no kind of a norm", desc, int{kind});
  if (!(epsilon >= 0) || !std::isfinite(epsilon))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->epsilon is %g; it must be finite and not negative", desc, epsilon);
}

void require_in_arithmetic(double value, sg_dtype type, const char *desc, const char *field) {
  if (type == SG_DTYPE_F64 || !std::isfinite(value)) return;
  if (std::fabs(value) > double(std::numeric_limits<float>::max()))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is %g; the arithmetic is in f32, whose largest number is %g", desc,
                field, value, double(std::numeric_limits<float>::max()));
}

void add_operand(layer &to, const given_operand &given, std::size_t view, share needed) {
  to.operands[view].given = &given;
  command_form::parameter &made = to.form.parameters[view];
  made.given = true;
  made.needed = needed;
  made.stored = stored(given, 1);
  total_bytes(made.stored, 1, "the size of an operand");
}

void add_matrix(layer &to, const given_operand &given, std::size_t view, share needed) {
  add_operand(to, given, view, needed);
  const sg_layout taken = to.by_rows ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR;
  if (given.view.layout == taken) return;
  auto wanted = backend_command<sg_backend_convert>();
  wanted.in_type = wanted.out_type = given.view.dtype;
  if (!is_layer_dtype(given.view.dtype) || !to.bound.on().on().supports(wanted.header))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->%s.layout is %d; of %s it must be %s", given.desc, given.name,
                int{given.view.layout}, name_of(given.view.dtype), name_of(taken));
  to.form.parameters[view].transposed = true;
}

void bind_layer(layer &x, const sg_backend_command &wanted, const char *operation) {
  const operand &result = x.form.result();
  x.is_empty = x.is_empty || result.rows == 0 || result.cols == 0;
  if (x.is_empty) return;
  const device &on = x.bound.on().on();
  if (!on.supports(wanted))
    throw error(SG_STATUS_UNSUPPORTED, "device %.64s has no %s of %s", on.name().c_str(), operation,
                name_of(result.type));
  const auto bind = [&](std::size_t i) {
    const layer::entry &each = x.operands[i];
    if (!each.given) return;
    operand_set::rules rules;
    rules.set = each.set;
    rules.alignment = each.alignment;
    rules.mode = x.form.mode_of(i);
    rules.exact = x.form.parameters[i].accessed == stored_part::all;
    if (i != 0 && x.allows_in_place && !each.separate && x.form.parameters[i].needed == share::same)
      rules.may_become = 0;
    x.bound.add(i, *each.given, x.form.parameters[i].stored, rules);
  };
  for (std::size_t i = 1; i < x.operands.size(); ++i) bind(i);
  bind(0);
}

}  // namespace sg
