/* SPDX-License-Identifier: Apache-2.0 */
/* The bias, broadcast as NumPy does it: one value for each column, for each row, or for all. */
#include <math.h>

#include "submission.h"

bool scalar_of(PyObject *value, const char *name, sg_scalar *out) {
  out->im = 0;
  if (PyFloat_CheckExact(value)) {
    out->re = PyFloat_AS_DOUBLE(value);
    return true;
  }
  if (PyFloat_Check(value) || PyLong_Check(value)) {
    out->re = PyFloat_AsDouble(value);
    return !PyErr_Occurred();
  }
  /* Of any object with __complex__, __float__ or __index__. */
  PyObject *const z =
      PyUnicode_Check(value) ? NULL : PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, value, NULL);
  if (!z) {
    PyErr_Clear();
    char room[SHOWN_SIZE];
    PyErr_Format(PyExc_TypeError, "%s is %s, which is no number", name, shown(value, room));
    return false;
  }
  out->re = PyComplex_RealAsDouble(z);
  out->im = PyComplex_ImagAsDouble(z);
  Py_DECREF(z);
  return true;
}

/* To nearest, ties to even; -1: a number that is too large. */
static int f16_bits(double value) {
  const int sign = signbit(value) ? 0x8000 : 0;
  const double size = fabs(value);
  int exponent;
  if (!isfinite(value)) return sign | (isnan(value) ? 0x7e00 : 0x7c00);
  if (size < 0x1p-14) return sign | (int)rint(size * 0x1p24); /* subnormal, or the least that is not */
  const int bits = (int)rint(frexp(size, &exponent) * 0x1p11);
  const int rounded = (exponent + 13) * 1024 + bits;
  return exponent > 16 || rounded >= 0x7c00 ? -1 : sign | rounded;
}

static bool put(sg_scalar value, sg_dtype type, char *to) {
  if (value.im != 0 && type != SG_DTYPE_C64 && type != SG_DTYPE_C128)
    return raise_argument("bias is complex and the result is %s", sg_dtype_name(type));
  const float single[2] = {(float)value.re, (float)value.im};
  switch (type) {
    case SG_DTYPE_F16: {
      const int bits = f16_bits(value.re);
      const uint16_t half = (uint16_t)bits;
      if (bits < 0) return raise_argument("bias is too large a number for a result of f16");
      return memcpy(to, &half, sizeof half), true;
    }
    case SG_DTYPE_C64: return memcpy(to, single, sizeof single), true;
    case SG_DTYPE_F32: return memcpy(to, single, sizeof *single), true;
    case SG_DTYPE_C128: return memcpy(to, &value, sizeof value), true;
    case SG_DTYPE_F64: return memcpy(to, &value.re, sizeof value.re), true;
    case SG_DTYPE_BF16: {
      uint32_t bits;
      memcpy(&bits, single, sizeof bits);
      bits = isnan(single[0]) ? bits | 0x400000 : bits + 0x7fff + ((bits >> 16) & 1); /* to nearest, ties to even */
      const uint16_t half = (uint16_t)(bits >> 16);
      return memcpy(to, &half, sizeof half), true;
    }
    case SG_DTYPE_I32: {
      const int32_t integer = fabs(value.re) <= INT32_MAX ? (int32_t)value.re : 0;
      if (integer != value.re) return raise_argument("bias is no integer of 32 bits, and the result is i32");
      return memcpy(to, &integer, sizeof integer), true;
    }
    default: return raise_argument("bias is a number, and the result is %s", sg_dtype_name(type));
  }
}

/* A number is a value for each column. */
static bool number_as_bias(call *in, sg_gemm_desc *d, PyObject *given) {
  sg_scalar value;
  hold *held = job_hold(in->job);
  const Py_ssize_t size = sg_dtype_size(d->c.dtype), count = d->c.cols;
  if (!held || !scalar_of(given, "bias", &value)) return false;
  held->owner = PyBytes_FromStringAndSize(NULL, size * (count ? count : 1));
  if (!held->owner) return false;
  char *const first = PyBytes_AS_STRING(held->owner);
  if (!put(value, d->c.dtype, first)) return false;
  for (Py_ssize_t i = 1; i < count; ++i) memcpy(first + i * size, first, (size_t)size);
  d->bias = first;
  d->bias_shape = SG_BIAS_PER_COLUMN;
  return true;
}

/* Whether it is a number, including NumPy's and arrays without dimensions. -1: an exception. */
static int is_number(PyObject *given) {
  if (PyFloat_Check(given) || PyLong_Check(given) || PyComplex_Check(given)) return 1;
  PyObject *shape = PyObject_GetAttrString(given, "shape");
  if (!shape) return PyErr_Clear(), 0;
  const int none = PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) == 0;
  Py_DECREF(shape);
  return none;
}

static bool refuse(const view *v, const gemm_shape *s) {
  PyObject *is = shape_text(v), *of = shape_tuple(s, false);
  if (is && of)
    raise_argument(
        "bias has shape %R, which is neither a value for each column nor one for each row (m, 1) of a result of "
        "shape %R",
        is, of);
  Py_XDECREF(is);
  Py_XDECREF(of);
  return false;
}

/* A bias over the batch and its values: the last dimension is that of the values. */
typedef struct bias_view {
  view of;
  Py_ssize_t shape[MAX_DIMENSIONS + 1], strides[MAX_DIMENSIONS + 1];
  bool per_row, one_value;
} bias_view;

static bool broadcast_bias(const view *v, const gemm_request *p, bias_view *out) {
  const gemm_shape *s = &p->shape;
  Py_ssize_t extent[2] = {1, 1}, stride[2] = {0, 0}; /* of rows, of columns */
  const int missing = s->ndim - v->ndim;
  if (missing < 0) return refuse(v, s);
  for (int i = 0; i < s->ndim; ++i) {
    const bool repeats = i < missing || v->shape[i - missing] == 1;
    const Py_ssize_t here = repeats ? 1 : v->shape[i - missing], step = repeats ? 0 : v->strides[i - missing];
    if (here != 1 && here != s->extent[i]) return refuse(v, s);
    if (i < s->batch_ndim) {
      out->shape[i] = s->extent[i];
      out->strides[i] = step;
    } else {
      const int which = i > s->batch_ndim || p->a.item_ndim == 1;
      extent[which] = here;
      stride[which] = step;
    }
  }
  if (extent[0] != 1 && extent[1] != 1) return refuse(v, s);
  const bool per_column = extent[0] == 1 && extent[1] == s->n;
  out->per_row = !per_column && extent[0] == s->m && extent[1] == 1;
  out->one_value = !per_column && !out->per_row;
  out->shape[s->batch_ndim] = out->per_row ? s->m : s->n;
  out->strides[s->batch_ndim] = stride[!out->per_row];
  out->of = *v;
  out->of.ndim = s->batch_ndim + 1;
  out->of.shape = out->shape;
  out->of.strides = out->strides;
  return true;
}

static bool values_follow(const bias_view *b, int64_t *stride) {
  const Py_ssize_t size = sg_dtype_size(b->of.dtype);
  const int batch = b->of.ndim - 1;
  int64_t count;
  if ((b->shape[batch] > 1 && b->strides[batch] != size) || !one_stride(batch, b->shape, b->strides, &count, stride))
    return false;
  if (*stride % size != 0) return false;
  *stride /= size;
  return true;
}

static bool copy_bias(call *in, bias_view *b) {
  hold *held = job_hold(in->job);
  bool shared = true; /* by the whole batch */
  for (int i = 0; i < b->of.ndim - 1; ++i) shared = shared && b->strides[i] == 0;
  matrix_object *copied = held ? gather(&b->of, shared ? 1 : b->of.ndim, "bias") : NULL;
  if (!copied) return false;
  held->owner = (PyObject *)copied;
  memcpy(b->strides, copied->strides, (size_t)b->of.ndim * sizeof *b->strides);
  b->of.data = copied->of.data;
  return true;
}

bool see_bias(call *in, gemm_request *p, PyObject *given) {
  sg_gemm_desc *d = &p->desc;
  view v;
  bias_view b;
  PyObject *array = settled(in, given, "bias");
  if (!array) return false;
  if (is_number(array)) return number_as_bias(in, d, array);
  if (!see_array(in, array, "bias", false, &v) || !broadcast_bias(&v, p, &b)) return false;
  if (v.dtype != d->c.dtype)
    return raise_argument("bias is %s and the result is %s; they must be equal", sg_dtype_name(v.dtype),
                          sg_dtype_name(d->c.dtype));
  if (p->shape.count == 0 || p->shape.m == 0 || p->shape.n == 0) return true; /* C is empty */
  if (!values_follow(&b, &d->stride_bias)) {
    if (!in->copies && !b.one_value)
      return b.shape[b.of.ndim - 1] > 1 && b.strides[b.of.ndim - 1] != sg_dtype_size(v.dtype)
                 ? raise_argument("the values of bias do not follow each other in memory; copy=True copies it")
                 : raise_argument("the items of bias are not evenly spaced in memory; copy=True copies it");
    if (array != given && sg_job_query(((job_object *)given)->handle, NULL) == SG_STATUS_NOT_READY)
      return raise_argument("bias is a Job that has not completed, and its one value is read now: give its result()");
    if (!copy_bias(in, &b) || !values_follow(&b, &d->stride_bias)) return false;
  }
  if (!b.of.data && b.shape[b.of.ndim - 1] > 0) return raise_argument("bias has no memory");
  d->bias = b.of.data;
  d->bias_shape = b.per_row ? SG_BIAS_PER_ROW : SG_BIAS_PER_COLUMN;
  return true;
}
