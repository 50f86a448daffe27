/* SPDX-License-Identifier: Apache-2.0 */

#include "operation.h"

/* An array as a matrix: a vector is one row, and dimensions before the last are rows, evenly spaced. */
static bool matrix_of(const view *v, const char *name, sg_matrix *to) {
  view rows = *v;
  Py_ssize_t shape[2], strides[2];
  int64_t count, stride;
  if (v->ndim > 2) {
    shape[1] = v->shape[v->ndim - 1];
    strides[1] = v->strides[v->ndim - 1];
    if (!one_stride(v->ndim - 1, v->shape, v->strides, &count, &stride))
      return raise_argument("the rows of %s are not evenly spaced in memory", name);
    shape[0] = count;
    strides[0] = stride;
    rows.ndim = 2;
    rows.shape = shape;
    rows.strides = strides;
  }
  return lay_out_view(&rows, rows.ndim, ROW_VECTOR, to) || refuse_strides(v, v->ndim < 2 ? 1 : 2, name);
}

/* The dimension of an array that has dimension `at` of (image, channel, row, column). */
static int axis_of(const operation *o, operand_kind kind, int at) {
  const uint16_t layout = kind == OF_IMAGES ? o->of->image_layout : o->of->filter_layout;
  const bool last = FIELD(o, layout, int32_t) != 0; /* SG_IMAGE_NHWC, SG_FILTER_OHWI */
  return !last || at == 0 ? at : at == 1 ? 3 : at - 1;
}

/* The dimension of a sequence's array that has its steps, its batch or its values; -1: none. */
static int axis_of_sequence(const operation *o, int ndim, int at) {
  if (ndim == 2) return at == 1 ? -1 : at == 2 ? 1 : 0;
  return at == 2 ? 2 : o->batch_first ? 1 - at : at;
}

static bool is_transposed(const operation *o, int at) {
  const uint16_t op = o->of->operands[at].op_offset;
  return op != 0 && FIELD(o, op, sg_transpose) != SG_TRANSPOSE_N;
}

static bool has_ndim(const view *v, const char *name, int low, int high) {
  if (v->ndim >= low && v->ndim <= high) return true;
  if (low == 1 && high > 4) return raise_argument("%s has no dimensions; a row has one", name);
  if (low == high) return raise_argument("%s has %d dimensions; it must have %d", name, v->ndim, low);
  return raise_argument("%s has %d dimensions; it must have from %d to %d", name, v->ndim, low, high);
}

bool sizes_of(const operation *o, int at, int64_t *sizes, int *count) {
  const operand_rule *const rule = &o->of->operands[at];
  const view *const v = &o->seen[at];
  int dims = 0;
  while (dims < 4 && rule->dims[dims]) ++dims;
  *count = dims;
  switch (rule->kind) {
    case OF_ROWS:
      if (!has_ndim(v, rule->name, 1, 99)) return false;
      if (is_transposed(o, at) && !has_ndim(v, rule->name, 2, 2)) return false;
      sizes[0] = 1, sizes[1] = v->shape[v->ndim - 1];
      for (int i = 0; i < v->ndim - 1; ++i) sizes[0] *= v->shape[i];
      break;
    case OF_MATRIX:
      if (v->ndim != 2) return raise_argument("%s has %d dimensions; it must be a matrix", rule->name, v->ndim);
      sizes[0] = v->shape[0], sizes[1] = v->shape[1];
      break;
    case OF_VALUES: {
      const int gone = o->unbatched ? rule->batch_dim : -1, ndim = dims - (gone >= 0 ? 1 : 0);
      if (!has_ndim(v, rule->name, ndim, ndim)) return false;
      for (int i = 0; i < dims; ++i) sizes[i] = i == gone ? 1 : v->shape[gone >= 0 && i > gone ? i - 1 : i];
      break;
    }
    case OF_ELEMENTS:
      sizes[0] = 1;
      for (int i = 0; i < v->ndim; ++i) sizes[0] *= v->shape[i];
      break;
    case OF_HEADS:
      if (v->ndim < 2 || v->ndim > 4)
        return raise_argument("%s has %d dimensions; it has 2 to 4: batch, heads, tokens, width", rule->name, v->ndim);
      for (int i = 0; i < 4; ++i) sizes[i] = i < 4 - v->ndim ? 1 : v->shape[i - 4 + v->ndim];
      break;
    case OF_SCORES:
      if (!has_ndim(v, rule->name, 1, 4)) return false;
      for (int i = 0; i < 4; ++i) sizes[i] = i < 4 - v->ndim ? 1 : v->shape[i - 4 + v->ndim];
      break;
    case OF_SEQUENCE:
      if (v->ndim != 2 && v->ndim != 3)
        return raise_argument("%s has %d dimensions; it has 3, steps, batch and values, or 2 without a batch",
                              rule->name, v->ndim);
      for (int i = 0; i < 3; ++i) {
        const int axis = axis_of_sequence(o, v->ndim, i);
        sizes[i] = axis < 0 ? 1 : v->shape[axis];
      }
      break;
    case OF_IMAGES:
    case OF_FILTERS:
      if (v->ndim != 4) return raise_argument("%s has %d dimensions; it must have four", rule->name, v->ndim);
      for (int i = 0; i < 4; ++i) sizes[i] = v->shape[axis_of(o, rule->kind, i)];
      break;
    case OF_INDICES: {
      const Py_ssize_t words = FIELD(o, rule->type_offset, sg_index_type) == SG_INDEX_I64 ? 2 : 1;
      if (v->dtype != SG_DTYPE_I32)
        return raise_argument("%s has elements of %s; they must be i32 or i64", rule->name, sg_dtype_name(v->dtype));
      sizes[0] = 1;
      for (int i = 0; i < v->ndim; ++i) sizes[0] *= v->shape[i];
      if (words == 2 && v->ndim > 1 && v->shape[v->ndim - 1] != words)
        return raise_argument("the last dimension of %s is %zd; an index of i64 has two words of i32", rule->name,
                              v->shape[v->ndim - 1]);
      if (words == 2 && (v->ndim == 0 || v->shape[v->ndim - 1] % words != 0))
        return raise_argument("%s has %zd words of i32; an index of i64 has two", rule->name, sizes[0]);
      sizes[0] /= words;
    }
  }
  if (is_transposed(o, at)) {
    const int64_t first = sizes[0];
    sizes[0] = sizes[1], sizes[1] = first;
  }
  return true;
}

void shape_of_sizes(const operation *o, int at, const int64_t *sizes, int like, gemm_shape *to) {
  const operand_rule *const rule = &o->of->operands[at];
  int dims = 0;
  while (dims < 4 && rule->dims[dims]) ++dims;
  const int ndim = like >= 0 ? o->seen[like].ndim : dims;
  to->ndim = dims;
  for (int i = 0; i < dims; ++i) to->extent[i] = sizes[i];
  if (is_transposed(o, at)) {
    to->extent[0] = sizes[1], to->extent[1] = sizes[0];
  } else if (o->lead.ndim >= 0 && rule->kind == OF_ROWS && (has_leads(o, rule) || rule->op_offset != 0)) {
    to->ndim = o->lead.ndim + 1;
    memcpy(to->extent, o->lead.extent, (size_t)o->lead.ndim * sizeof *to->extent);
    to->extent[o->lead.ndim] = sizes[1];
  } else if (rule->kind == OF_HEADS) {
    to->ndim = ndim;
    for (int i = 0; i < ndim; ++i) to->extent[i] = sizes[4 - ndim + i];
  } else if (rule->kind == OF_SEQUENCE) {
    to->ndim = o->unbatched ? 2 : 3;
    for (int i = 0; i < 3; ++i)
      if (axis_of_sequence(o, to->ndim, i) >= 0) to->extent[axis_of_sequence(o, to->ndim, i)] = sizes[i];
  } else if (rule->kind == OF_IMAGES || rule->kind == OF_FILTERS) {
    for (int i = 0; i < 4; ++i) to->extent[axis_of(o, rule->kind, i)] = sizes[i];
  } else if (rule->kind == OF_VALUES && o->unbatched && rule->batch_dim >= 0) {
    for (int i = rule->batch_dim; i < dims - 1; ++i) to->extent[i] = sizes[i + 1];
    to->ndim = dims - 1;
  }
}

/* Whole elements from one to the next, not backwards; 0 along one element. */
static bool strides_in_elements(const view *v, const char *name, int64_t *strides) {
  const Py_ssize_t size = (Py_ssize_t)sg_dtype_size(v->dtype);
  for (int i = 0; i < v->ndim; ++i) {
    strides[i] = v->shape[i] > 1 ? v->strides[i] / size : 0;
    if (v->shape[i] > 1 && (v->strides[i] < 0 || v->strides[i] % size != 0))
      return raise_argument(
          "dimension %d of %s has a stride of %zd bytes; it must be a multiple of %zd, and not negative", i, name,
          v->strides[i], size);
  }
  return true;
}

static bool follow_each_other(const view *v, const char *name, int first) {
  int64_t expected = (int64_t)sg_dtype_size(v->dtype);
  for (int i = 0; i < v->ndim; ++i)
    if (v->shape[i] == 0) return true;
  for (int i = v->ndim - 1; i >= first; --i) {
    if (v->shape[i] > 1 && v->strides[i] != expected)
      return raise_argument("the elements of %s%s do not follow each other in memory", first > 0 ? "an image of " : "",
                            name);
    expected *= v->shape[i];
  }
  return true;
}

static bool heads_of(const view *v, const char *name, sg_heads *to) {
  int64_t given[4], strides[4] = {0};
  if (!strides_in_elements(v, name, given)) return false;
  memcpy(strides + 4 - v->ndim, given, (size_t)v->ndim * sizeof *given);
  if (v->shape[v->ndim - 1] > 1 && strides[3] != 1)
    return raise_argument("the elements of a token of %s do not follow each other in memory", name);
  *to = (sg_heads){v->data, strides[0], strides[1], strides[2]};
  if (v->shape[v->ndim - 2] <= 1) to->token_stride = v->shape[v->ndim - 1];
  return true;
}

static bool scores_of(const view *v, const char *name, sg_heads *to) {
  int64_t given[4], strides[4] = {0};
  if (!strides_in_elements(v, name, given)) return false;
  memcpy(strides + 4 - v->ndim, given, (size_t)v->ndim * sizeof *given);
  if (v->shape[v->ndim - 1] > 1 && strides[3] != 1)
    return raise_argument("the keys of a query of %s do not follow each other in memory", name);
  *to = (sg_heads){v->data, strides[0], strides[1], strides[2]};
  return true;
}

static bool sequence_of(const operation *o, const view *v, const char *name, sg_sequence *to) {
  int64_t strides[3];
  if (!strides_in_elements(v, name, strides)) return false;
  if (v->shape[v->ndim - 1] > 1 && strides[v->ndim - 1] != 1)
    return raise_argument("the values of a step of %s do not follow each other in memory", name);
  const int batch = axis_of_sequence(o, v->ndim, 1);
  *to = (sg_sequence){v->data, strides[axis_of_sequence(o, v->ndim, 0)], batch < 0 ? 0 : strides[batch]};
  return true;
}

static bool images_of(const view *v, const char *name, sg_images *to) {
  const int64_t size = (int64_t)sg_dtype_size(v->dtype), elements = v->shape[1] * v->shape[2] * v->shape[3];
  if (!follow_each_other(v, name, 1)) return false;
  *to = (sg_images){v->data, 0};
  if (v->shape[0] <= 1) return true;
  if (v->strides[0] < elements * size || v->strides[0] % size != 0)
    return raise_argument("the images of %s overlap or are not in the order of memory", name);
  to->stride = v->strides[0] / size;
  return true;
}

bool store_operand(operation *o, int at) {
  const operand_rule *const rule = &o->of->operands[at];
  const view *const v = &o->seen[at];
  void *const to = o->desc + rule->offset;
  switch (rule->kind) {
    case OF_ROWS:
    case OF_MATRIX: return matrix_of(v, rule->name, to);
    case OF_HEADS: return heads_of(v, rule->name, to);
    case OF_SCORES: return scores_of(v, rule->name, to);
    case OF_SEQUENCE: return sequence_of(o, v, rule->name, to);
    case OF_IMAGES: return images_of(v, rule->name, to);
    default: *(void **)to = v->data; return follow_each_other(v, rule->name, 0);
  }
}
