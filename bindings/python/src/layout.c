/* SPDX-License-Identifier: Apache-2.0 */
/* The strides of a view as an sg_matrix; the dimension that prevents one; copies that have one. */

#include "native.h"

typedef struct dimension {
  int64_t extent, stride; /* in elements */
} dimension;

/* Rows and columns as one of the two layouts; false when neither can express them. */
static bool lay_out(dimension row, dimension col, sg_matrix *out) {
  out->rows = row.extent;
  out->cols = col.extent;
  if ((col.stride == 1 || col.extent == 1) && (row.stride >= col.extent || row.extent == 1)) {
    out->layout = SG_LAYOUT_ROW_MAJOR;
    out->ld = row.extent == 1 ? col.extent : row.stride;
    return true;
  }
  if ((row.stride == 1 || row.extent == 1) && (col.stride >= row.extent || col.extent == 1)) {
    out->layout = SG_LAYOUT_COLUMN_MAJOR;
    out->ld = col.extent == 1 ? row.extent : col.stride;
    return true;
  }
  return false;
}

bool lay_out_view(const view *v, int item_ndim, vector_role vector, sg_matrix *out) {
  const Py_ssize_t size = sg_dtype_size(v->dtype);
  dimension of[2] = {{1, 0}, {1, 0}}; /* rows, columns */
  bool empty = false;
  for (int i = 0; i < v->ndim; ++i) empty = empty || v->shape[i] == 0;
  for (int i = 0; i < v->ndim && !empty; ++i)
    if (v->shape[i] > 1 && v->strides[i] % size != 0) return false;
  const int first = v->ndim - item_ndim;
  if (item_ndim == 1) of[vector == ROW_VECTOR] = (dimension){v->shape[first], v->strides[first] / size};
  for (int i = 0; i < 2 && item_ndim == 2; ++i) of[i] = (dimension){v->shape[first + i], v->strides[first + i] / size};
  *out = (sg_matrix){.data = v->data, .dtype = v->dtype, .layout = SG_LAYOUT_ROW_MAJOR};
  if (!empty) return lay_out(of[0], of[1], out);
  out->rows = of[0].extent; /* strides are not relevant */
  out->cols = of[1].extent;
  return true;
}

bool one_stride(int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides, int64_t *count, int64_t *stride) {
  *count = 1;
  *stride = 0;
  for (int i = ndim - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    int64_t next = strides[i];
    if (*count == 1)
      *stride = next;
    else if (__builtin_mul_overflow(*stride, *count, &next) || strides[i] != next)
      return false;
    *count *= shape[i];
  }
  return *stride >= 0;
}

/* The problem of one dimension, as text with its number; NULL: none by itself. */
static const char *wrong_with(const view *v, int item_ndim, int i) {
  if (v->shape[i] <= 1) return NULL;
  if (v->strides[i] % (Py_ssize_t)sg_dtype_size(v->dtype) != 0)
    return "dimension %d has a stride of %zd bytes, which is no multiple of the element size";
  if (i < v->ndim - item_ndim) return NULL;
  if (v->strides[i] < 0) return "dimension %d runs backwards (stride %zd)";
  if (v->strides[i] == 0) return "dimension %d repeats one element (stride %zd)";
  return NULL;
}

bool refuse_strides(const view *v, int item_ndim, const char *name) {
  PyObject *shape = shape_text(v), *strides = strides_text(v), *why = NULL;
  for (int i = v->ndim - 1; i >= 0 && !why && shape && strides; --i) {
    const char *wrong = wrong_with(v, item_ndim, i);
    if (wrong) why = PyUnicode_FromFormat(wrong, i, v->strides[i]);
  }
  const Py_ssize_t size = sg_dtype_size(v->dtype);
  if (!why && item_ndim == 2 && v->strides[v->ndim - 1] != size && v->strides[v->ndim - 2] != size)
    why = PyUnicode_FromFormat("dimensions %d and %d are both strided", v->ndim - 2, v->ndim - 1);
  if (!why) why = PyUnicode_FromFormat("the rows of its last two dimensions overlap");
  if (shape && strides && why)
    raise_argument(
        "%s has shape %R and strides %R in bytes: %U. Of a matrix's two dimensions one must be contiguous, and "
        "the other's stride at least as long as it; copy=True copies an operand, and so does "
        "numpy.ascontiguousarray",
        name, shape, strides, why);
  Py_XDECREF(shape);
  Py_XDECREF(strides);
  Py_XDECREF(why);
  return false;
}

static char *gather_into(char *to, const char *from, int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides,
                         size_t size) {
  if (ndim == 0) {
    memcpy(to, from, size);
    return to + size;
  }
  for (Py_ssize_t i = 0; i < shape[0]; ++i)
    to = gather_into(to, from + i * strides[0], ndim - 1, shape + 1, strides + 1, size);
  return to;
}

matrix_object *gather(const view *v, int item_ndim, const char *name) {
  if (v->place != ON_HOST || v->memory != SG_MEMORY_AUTO)
    return (matrix_object *)raise_argument("%s is not in host memory, from which alone an operand is copied", name);
  const Py_ssize_t size = sg_dtype_size(v->dtype);
  matrix_object *m = matrix_alloc(matrix_type);
  if (!m) return NULL;
  Py_ssize_t copied[MAX_DIMENSIONS], bytes = size;
  for (int i = v->ndim - 1; i >= 0; --i) {
    const bool repeats = v->strides[i] == 0 && v->shape[i] > 1 && i < v->ndim - item_ndim;
    copied[i] = repeats ? 1 : v->shape[i];
    m->shape[i] = v->shape[i];
    m->strides[i] = repeats ? 0 : bytes;
    if (__builtin_mul_overflow(bytes, copied[i], &bytes)) {
      Py_DECREF(m);
      return (matrix_object *)PyErr_NoMemory();
    }
  }
  m->of.dtype = v->dtype;
  m->of.ndim = v->ndim;
  m->of.readonly = true;
  m->held.owner = PyBytes_FromStringAndSize(NULL, bytes);
  if (!m->held.owner) {
    Py_DECREF(m);
    return NULL;
  }
  m->of.data = PyBytes_AS_STRING(m->held.owner);
  if (bytes > 0 && v->data) gather_into(m->of.data, v->data, v->ndim, copied, v->strides, (size_t)size);
  return m;
}
