/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "native.h"

/* Codes of the buffer protocol (PEP 3118) by type. What is not here has none, bf16 for one. */
static const struct {
  const char *code;
  Py_ssize_t size;
  sg_dtype dtype;
} codes[] = {
    {"f", 4, SG_DTYPE_F32},    {"d", 8, SG_DTYPE_F64},   {"e", 2, SG_DTYPE_F16}, {"Zf", 8, SG_DTYPE_C64},
    {"Zd", 16, SG_DTYPE_C128}, {"b", 1, SG_DTYPE_I8},    {"i", 4, SG_DTYPE_I32}, {"l", 4, SG_DTYPE_I32},
    {"F", 8, SG_DTYPE_C64},    {"D", 16, SG_DTYPE_C128},
};

sg_dtype dtype_of_code(const char *format, Py_ssize_t size) {
  if (!format) format = "B";
  if (*format == '@' || *format == '=' || (*format == '<' && PY_LITTLE_ENDIAN) || (*format == '>' && PY_BIG_ENDIAN))
    ++format;
  for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i)
    if (codes[i].size == size && strcmp(codes[i].code, format) == 0) return codes[i].dtype;
  return (sg_dtype)0;
}

int dtype_of_name(PyObject *name) {
  const char *wanted = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
  for (int d = 1; wanted && sg_dtype_size((sg_dtype)d) != 0; ++d)
    if (strcmp(sg_dtype_name((sg_dtype)d), wanted) == 0) return d;
  if (!PyErr_Occurred()) raise_argument("dtype is %R, which is no element type", name);
  return -1;
}

void let_go(hold *held) {
  if (held->buffer.obj) PyBuffer_Release(&held->buffer); /* leaves obj NULL */
  Py_CLEAR(held->owner);
}

PyObject *shape_text(const view *v) {
  PyObject *shape = PyTuple_New(v->ndim);
  for (int i = 0; shape && i < v->ndim; ++i) {
    PyObject *extent = PyLong_FromSsize_t(v->shape[i]);
    if (!extent)
      Py_CLEAR(shape);
    else
      PyTuple_SET_ITEM(shape, i, extent);
  }
  return shape;
}

static bool view_of_matrix(matrix_object *m, const char *name, bool writable, view *out, hold *held) {
  if (writable && m->of.readonly) return raise_argument("%s is read-only, and the result is written to it", name);
  *out = m->of;
  held->owner = Py_NewRef((PyObject *)m);
  return true;
}

/* Objects without a buffer, and buffers of formats that the protocol cannot name, go by way of a Matrix. */
static bool view_by_hook(PyObject *object, const char *name, bool writable, view *out, hold *held) {
  PyErr_Clear();
  PyObject *made = PyObject_CallFunction(hook.as_matrix, "Os", object, name);
  if (!made) return false;
  const bool seen = view_of_matrix((matrix_object *)made, name, writable, out, held);
  Py_DECREF(made);
  return seen;
}

bool view_of(PyObject *object, const char *name, bool writable, view *out, hold *held) {
  if (PyObject_TypeCheck(object, matrix_type))
    return view_of_matrix((matrix_object *)object, name, writable, out, held);
  Py_buffer *b = &held->buffer;
  if (!PyObject_CheckBuffer(object) || PyObject_GetBuffer(object, b, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
    b->obj = NULL;
    return view_by_hook(object, name, writable, out, held);
  }
  out->dtype = dtype_of_code(b->format, b->itemsize);
  if (out->dtype == 0) {
    let_go(held);
    return view_by_hook(object, name, writable, out, held);
  }
  if (writable && b->readonly) {
    let_go(held);
    return raise_argument("%s is read-only, and the result is written to it", name);
  }
  held->owner = Py_NewRef(object);
  out->data = b->buf;
  out->ndim = b->ndim;
  out->shape = b->shape;
  out->strides = b->strides;
  out->readonly = b->readonly != 0;
  out->place = ON_HOST;
  out->device_id = 0;
  return true;
}

/* Rows and columns at element strides as one of the two layouts; false when neither can express them. */
static bool lay_out(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, sg_matrix *out) {
  out->rows = rows;
  out->cols = cols;
  if (rows == 0 || cols == 0) {
    out->layout = SG_LAYOUT_ROW_MAJOR;
    out->ld = 0;
    return true;
  }
  if ((col_stride == 1 || cols == 1) && (row_stride >= cols || rows == 1)) {
    out->layout = SG_LAYOUT_ROW_MAJOR;
    out->ld = rows == 1 ? cols : row_stride;
    return true;
  }
  if ((row_stride == 1 || rows == 1) && (col_stride >= rows || cols == 1)) {
    out->layout = SG_LAYOUT_COLUMN_MAJOR;
    out->ld = cols == 1 ? rows : col_stride;
    return true;
  }
  return false;
}

static bool refuse_strides(const view *v, const char *name) {
  PyObject *shape = shape_text(v), *strides = PyTuple_New(v->ndim);
  for (int i = 0; strides && i < v->ndim; ++i) PyTuple_SET_ITEM(strides, i, PyLong_FromSsize_t(v->strides[i]));
  if (shape && strides)
    raise_argument(
        "%s has shape %R and strides %R in bytes; of a matrix's two dimensions one must be contiguous and the "
        "other's stride positive and not shorter than it (a copy is: numpy.ascontiguousarray)",
        name, shape, strides);
  Py_XDECREF(shape);
  Py_XDECREF(strides);
  return false;
}

bool matrix_of(const view *v, const char *name, vector_role vector, sg_matrix *out, int64_t *batch, int64_t *stride) {
  const int64_t size = sg_dtype_size(v->dtype);
  const int least = vector == NO_VECTOR ? 2 : 0;
  int64_t extent[2] = {1, 1}, step[2] = {0, 0};
  if (v->ndim < least) return raise_argument("%s has %d dimensions; a matrix has two", name, v->ndim);
  for (int i = 0; i < v->ndim; ++i)
    if (v->shape[i] > 1 && v->strides[i] % size != 0) return refuse_strides(v, name);
  if (v->ndim == 1) {
    const int along = vector == ROW_VECTOR ? 1 : 0;
    extent[along] = v->shape[0];
    step[along] = v->strides[0] / size;
  } else if (v->ndim >= 2) {
    for (int i = 0; i < 2; ++i) {
      extent[i] = v->shape[v->ndim - 2 + i];
      step[i] = v->strides[v->ndim - 2 + i] / size;
    }
  }
  out->data = v->data;
  out->dtype = v->dtype;
  if (!lay_out(extent[0], extent[1], step[0], step[1], out)) return refuse_strides(v, name);
  *batch = 1;
  *stride = 0;
  for (int i = v->ndim - 3; i >= 0; --i) { /* the dimensions before the last two must be one, at one stride */
    const int64_t here = v->strides[i] / size;
    if (v->shape[i] == 1) continue;
    if (*batch > 1 && here != *stride * *batch) return refuse_strides(v, name);
    if (*batch == 1) *stride = here;
    *batch *= v->shape[i];
  }
  if (*stride < 0) return refuse_strides(v, name);
  return true;
}
