/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of convert.h and gather.h: rows are along the last dimension of an array. */
#include <string.h>

#include "submission.h"

typedef struct dequantize_arguments {
  PyObject *x, *scales, *zero_points, *out, *dtype; /* zero_points, out and dtype: None: there is none */
  int quantization;
} dequantize_arguments;

/* A shape like that of x with rows of `cols` elements. */
static gemm_shape shape_with(const view *x, Py_ssize_t cols) {
  gemm_shape shape = {.ndim = x->ndim};
  memcpy(shape.extent, x->shape, (size_t)x->ndim * sizeof *x->shape);
  shape.extent[x->ndim - 1] = cols;
  return shape;
}

static bool require_shape(const view *v, const char *name, const gemm_shape *wanted) {
  bool same = v->ndim == wanted->ndim;
  for (int i = 0; same && i < v->ndim; ++i) same = v->shape[i] == wanted->extent[i];
  if (same) return true;
  PyObject *is = shape_text(v), *should = shape_tuple(wanted, false);
  if (is && should) raise_argument("%s has shape %R; it must be %R", name, is, should);
  Py_XDECREF(is);
  Py_XDECREF(should);
  return false;
}

/* The array that is written: the caller's, or a new one of that type. */
static PyObject *converted_result(call *in, PyObject *given, PyObject *like, sg_dtype dtype, const gemm_shape *shape) {
  if (given != Py_None) {
    PyObject *array = settled(in, given, "out");
    return array ? Py_NewRef(array) : NULL;
  }
  like = settled(in, like, "the operand");
  return like ? new_result(like, dtype, shape, false) : NULL;
}

static bool fill_dequantize(call *in, sg_dequantize_desc *d, PyObject **result, const dequantize_arguments *g) {
  view x, scales, zero_points, out;
  *d = (sg_dequantize_desc)SG_DEQUANTIZE_DESC_INIT;
  d->quantization = (sg_quantization)g->quantization;
  if (!see_rows(in, g->x, "x", false, &x, &d->x) || !see_rows(in, g->scales, "scales", false, &scales, &d->scales))
    return false;
  const Py_ssize_t values = x.shape[x.ndim - 1] * (d->quantization == SG_QUANTIZATION_I4 ? 2 : 1);
  const Py_ssize_t blocks = scales.shape[scales.ndim - 1];
  const gemm_shape of_scales = shape_with(&x, blocks), of_result = shape_with(&x, values);
  if (!require_shape(&scales, "scales", &of_scales)) return false;
  if (blocks > 0 ? values % blocks != 0 : values > 0)
    return raise_argument("scales has %zd blocks in a row; the %zd values of a row of x do not divide into them",
                          blocks, values);
  if (blocks > 0 && values > 0) d->block_size = values / blocks;
  if (g->zero_points != Py_None &&
      (!see_rows(in, g->zero_points, "zero_points", false, &zero_points, &d->zero_points) ||
       !require_shape(&zero_points, "zero_points", &of_scales)))
    return false;
  const int dtype = g->dtype == Py_None ? (int)scales.dtype : dtype_of_name(g->dtype);
  if (dtype < 0) return false;
  *result = converted_result(in, g->out, g->x, (sg_dtype)dtype, &of_result);
  return *result && see_rows(in, *result, "out", true, &out, &d->y) && require_shape(&out, "out", &of_result);
}

static sg_status run_dequantize(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_dequantize_async(on, desc, submit, out);
}

/* submit_dequantize(type or graph, target, x, scales, zero_points, out, quantization, dtype, order): a Job whose result
 * is out. */
PyObject *submit_dequantize(PyObject *self, PyObject *args) {
  PyObject *type, *to, *made = NULL, *result = NULL;
  dequantize_arguments g;
  order_arguments order = {0};
  call in = {.in_order = true};
  sg_dequantize_desc desc;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOiOO&", &type, &to, &g.x, &g.scales, &g.zero_points, &g.out, &g.quantization,
                        &g.dtype, order_of, &order))
    return NULL;
  if (target_of(to, &in.to) && begin_operation(&in, type, &order) && fill_dequantize(&in, &desc, &result, &g))
    made = submit_operation(&in, &order, run_dequantize, &desc, result);
  call_done(&in);
  Py_CLEAR(result);
  return made;
}

static bool fill_convert(call *in, sg_convert_desc *d, PyObject **result, PyObject *const operands[3]) {
  view a, out;
  if (!see_rows(in, operands[0], "a", false, &a, &d->a)) return false;
  gemm_shape shape = shape_with(&a, a.shape[a.ndim - 1]);
  if (d->op_a != SG_OP_N) {
    if (a.ndim != 2) return raise_argument("a has %d dimensions; only a matrix is transposed", a.ndim);
    shape.extent[0] = a.shape[1];
    shape.extent[1] = a.shape[0];
  }
  const int dtype = operands[2] == Py_None ? (int)a.dtype : dtype_of_name(operands[2]);
  if (dtype < 0) return false;
  *result = converted_result(in, operands[1], operands[0], (sg_dtype)dtype, &shape);
  return *result && see_rows(in, *result, "out", true, &out, &d->c) && require_shape(&out, "out", &shape);
}

static sg_status run_convert(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_convert_async(on, desc, submit, out);
}

/* submit_convert(type or graph, target, a, out, dtype, op, order): a Job
 * whose result is out. */
PyObject *submit_convert(PyObject *self, PyObject *args) {
  PyObject *type, *to, *operands[3], *made = NULL, *result = NULL;
  order_arguments order = {0};
  call in = {.in_order = true};
  sg_convert_desc desc = SG_CONVERT_DESC_INIT;
  int op;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOiO&", &type, &to, &operands[0], &operands[1], &operands[2], &op, order_of, &order))
    return NULL;
  desc.op_a = (sg_op)op;
  if (target_of(to, &in.to) && begin_operation(&in, type, &order) && fill_convert(&in, &desc, &result, operands))
    made = submit_operation(&in, &order, run_convert, &desc, result);
  call_done(&in);
  Py_CLEAR(result);
  return made;
}

/* Indices are i32, or i64 as two i32 each. */
static bool see_indices(call *in, PyObject *given, sg_gather_desc *d, Py_ssize_t *count) {
  const Py_ssize_t words = d->index_type == SG_INDEX_I64 ? 2 : 1;
  view v;
  given = settled(in, given, "indices");
  if (!given || !see_array(in, given, "indices", false, &v)) return false;
  if (v.ndim != 1) return raise_argument("indices has %d dimensions; it has one", v.ndim);
  if (v.dtype != SG_DTYPE_I32)
    return raise_argument("indices has elements of %s; they must be i32 or i64", sg_dtype_name(v.dtype));
  if (v.shape[0] > 1 && v.strides[0] != 4) return raise_argument("indices do not follow each other in memory");
  if (v.shape[0] % words != 0)
    return raise_argument("indices has %zd words of i32; an index of i64 has two", v.shape[0]);
  *count = v.shape[0] / words;
  d->indices = v.data;
  return true;
}

static bool fill_gather(call *in, sg_gather_desc *d, PyObject **result, PyObject *const operands[3]) {
  view table, out;
  Py_ssize_t count = 0;
  if (!see_rows(in, operands[0], "table", false, &table, &d->table) || !see_indices(in, operands[1], d, &count))
    return false;
  if (table.ndim != 2) return raise_argument("table has %d dimensions; it has two", table.ndim);
  gemm_shape shape = shape_with(&table, table.shape[1]);
  shape.extent[0] = count;
  *result = converted_result(in, operands[2], operands[0], table.dtype, &shape);
  return *result && see_rows(in, *result, "out", true, &out, &d->y) && require_shape(&out, "out", &shape);
}

static sg_status run_gather(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_gather_async(on, desc, submit, out);
}

/* submit_gather(type or graph, target, table, indices, out, index_type, flags, order): a Job whose result is out. */
PyObject *submit_gather(PyObject *self, PyObject *args) {
  PyObject *type, *to, *operands[3], *made = NULL, *result = NULL;
  order_arguments order = {0};
  call in = {.in_order = true};
  sg_gather_desc desc = SG_GATHER_DESC_INIT;
  int index_type, flags;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOiiO&", &type, &to, &operands[0], &operands[1], &operands[2], &index_type, &flags,
                        order_of, &order))
    return NULL;
  desc.index_type = (sg_index_type)index_type;
  desc.flags = (uint32_t)flags;
  if (target_of(to, &in.to) && begin_operation(&in, type, &order) && fill_gather(&in, &desc, &result, operands))
    made = submit_operation(&in, &order, run_gather, &desc, result);
  call_done(&in);
  Py_CLEAR(result);
  return made;
}
