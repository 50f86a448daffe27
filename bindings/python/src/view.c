/* SPDX-License-Identifier: Apache-2.0 */

#include "native.h"

/* Codes of the buffer protocol (PEP 3118) by type. Missing types have none, for instance bf16. */
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
  char room[SHOWN_SIZE];
  if (!PyErr_Occurred()) raise_argument("dtype is %s, which is no element type", shown(name, room));
  return -1;
}

void let_go(hold *held) {
  if (held->buffer.obj) PyBuffer_Release(&held->buffer); /* leaves obj NULL */
  Py_CLEAR(held->owner);
}

static PyObject *tuple_of(int count, const Py_ssize_t *values) {
  PyObject *made = PyTuple_New(count);
  for (int i = 0; made && i < count; ++i) {
    PyObject *value = PyLong_FromSsize_t(values[i]);
    if (!value)
      Py_CLEAR(made);
    else
      PyTuple_SET_ITEM(made, i, value);
  }
  return made;
}

PyObject *shape_text(const view *v) { return tuple_of(v->ndim, v->shape); }
PyObject *strides_text(const view *v) { return tuple_of(v->ndim, v->strides); }

bool sound(const view *v, const char *name) {
  Py_ssize_t count = 1, below = 0, above = sg_dtype_size(v->dtype);
  if (v->ndim < 0 || v->ndim > MAX_DIMENSIONS)
    return raise_argument("%s has %d dimensions; at most %d are possible", name, v->ndim, MAX_DIMENSIONS);
  for (int i = 0; i < v->ndim; ++i) {
    if (v->shape[i] < 0) return raise_argument("%s has the extent %zd in dimension %d", name, v->shape[i], i);
    if (v->shape[i] == 0) count = 0;
  }
  for (int i = 0; count != 0 && i < v->ndim; ++i) {
    Py_ssize_t reach;
    if (__builtin_mul_overflow(count, v->shape[i], &count) ||
        __builtin_mul_overflow(v->shape[i] - 1, v->strides[i], &reach) ||
        (reach < 0 ? __builtin_add_overflow(below, reach, &below) : __builtin_add_overflow(above, reach, &above)))
      return raise_argument("%s is too large in dimension %d", name, i);
  }
  uintptr_t edge;
  if (count != 0 && v->data &&
      (__builtin_add_overflow((uintptr_t)v->data, (uintptr_t)above, &edge) ||
       __builtin_sub_overflow((uintptr_t)v->data, (uintptr_t)0 - (uintptr_t)below, &edge)))
    return raise_argument("%s reaches beyond the address space", name);
  return true;
}

static bool view_of_matrix(matrix_object *m, const char *name, bool writable, view *out, hold *held) {
  if (writable && m->of.readonly) return raise_argument("%s is read-only, and the result is written to it", name);
  *out = m->of;
  held->owner = Py_NewRef((PyObject *)m);
  return true;
}

/* Objects without a buffer, and buffers of formats that the protocol cannot name, are read through a Matrix. */
static bool view_by_hook(PyObject *object, const char *name, bool writable, view *out, hold *held) {
  PyErr_Clear();
  PyObject *made = PyObject_CallFunction(hook.as_matrix, "Os", object, name);
  if (!made) return false;
  const bool seen = PyObject_TypeCheck(made, matrix_type)
                        ? view_of_matrix((matrix_object *)made, name, writable, out, held)
                        : raise_argument("%s is no array", name) != NULL;
  Py_DECREF(made);
  return seen;
}

/* A masked array is a buffer, too, but some of its values are invalid. */
static bool has_mask(PyObject *object) {
  static PyTypeObject *plain; /* the latest type without masks */
  if (Py_TYPE(object) == plain) return false;
  PyObject *masked = PyObject_CallOneArg(hook.is_masked, (PyObject *)Py_TYPE(object));
  const bool yes = !masked || PyObject_IsTrue(masked);
  Py_XDECREF(masked);
  if (!yes) Py_XSETREF(plain, (PyTypeObject *)Py_NewRef((PyObject *)Py_TYPE(object)));
  return yes;
}

static bool refuse_mask(PyObject *object, const char *name) {
  PyObject *const type = PyErr_Occurred() ? NULL : PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
  if (type)
    PyErr_Format(PyExc_TypeError, "%s is a %S, whose mask a GEMM would ignore: give %s.filled(0), or %s.data", name,
                 type, name, name);
  Py_XDECREF(type);
  return false;
}

bool view_of(PyObject *object, const char *name, bool writable, view *out, hold *held) {
  if (PyObject_TypeCheck(object, matrix_type))
    return view_of_matrix((matrix_object *)object, name, writable, out, held);
  if (has_mask(object)) return refuse_mask(object, name);
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
  if (b->suboffsets || (b->ndim > 0 && (!b->shape || !b->strides))) { /* ctypes' arrays have no strides */
    let_go(held);
    PyObject *made = matrix_from_buffer(matrix_type, object, (sg_dtype)0);
    const bool seen = made && view_of_matrix((matrix_object *)made, name, writable, out, held);
    Py_XDECREF(made);
    return seen;
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
  out->memory = SG_MEMORY_AUTO;
  return sound(out, name);
}
