/* SPDX-License-Identifier: Apache-2.0 */
/* Python's operands as a product: an sg_gemm_desc. */
#include "submission.h"

static bool scalar_of(PyObject *value, const char *name, sg_scalar *out) {
  out->im = 0;
  if (PyFloat_CheckExact(value)) {
    out->re = PyFloat_AS_DOUBLE(value);
    return true;
  }
  if (PyFloat_Check(value) || PyLong_Check(value)) {
    out->re = PyFloat_AsDouble(value);
    return !PyErr_Occurred();
  }
  const Py_complex z = PyComplex_AsCComplex(value); /* takes whatever has __complex__, __float__ or __index__ */
  if (PyErr_Occurred()) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s is %R, which is no number", name, value);
    return false;
  }
  out->re = z.real;
  out->im = z.imag;
  return true;
}

bool reachable(const view *v, const char *name, const target *to) {
  if (v->place == ON_CUDA && v->device_id != to->cuda_device)
    return raise_argument("%s lies on cuda:%d, which is not the device of this context", name, v->device_id);
  if (v->place == ON_OTHER && v->device_id != to->context_id)
    return raise_argument("%s lies in the device memory of another context", name);
  return true;
}

static bool see_matrix(PyObject *object, operand *o, bool writable, vector_role vector, const target *to, hold *held,
                       sg_matrix *out, int64_t *batch, int64_t *stride) {
  return view_of(object, o->name, writable, &o->seen, held) && reachable(&o->seen, o->name, to) &&
         matrix_of(&o->seen, o->name, vector, out, batch, stride);
}

/* A list of matrices of one shape: an array of addresses. */
static bool see_list(PyObject *list, operand *o, bool writable, const target *to, hold *holds, sg_matrix *out) {
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  o->items = PyMem_Malloc((count ? count : 1) * sizeof *o->items);
  if (!o->items) return PyErr_NoMemory(), false;
  if (count == 0) return raise_argument("%s is an empty list", o->name);
  for (Py_ssize_t i = 0; i < count; ++i) {
    sg_matrix here;
    int64_t batch, stride;
    if (!see_matrix(PySequence_Fast_GET_ITEM(list, i), o, writable, NO_VECTOR, to, &holds[i], &here, &batch, &stride))
      return false;
    if (i == 0) *out = here;
    if (o->seen.ndim != 2 || here.rows != out->rows || here.cols != out->cols || here.ld != out->ld ||
        here.layout != out->layout || here.dtype != out->dtype)
      return raise_argument(
          "%s[%zd] is not like %s[0]: the matrices of a list share shape, dtype and strides (a group of "
          "different ones: gemm_grouped)",
          o->name, i, o->name);
    o->items[i] = here.data;
  }
  o->item_count = count;
  return true;
}

static int holds_of(PyObject *object) {
  return PyList_CheckExact(object) || PyTuple_CheckExact(object) ? (int)PySequence_Fast_GET_SIZE(object) : 1;
}

static bool see_operand(PyObject *object, operand *o, bool writable, vector_role vector, const target *to, hold *holds,
                        sg_matrix *out, int64_t *batch, int64_t *stride) {
  if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object))
    return see_matrix(object, o, writable, vector, to, holds, out, batch, stride);
  if (!see_list(object, o, writable, to, holds, out)) return false;
  *batch = o->item_count;
  *stride = 0;
  return true;
}

/* What C = op(A) op(B) is: its shape, as NumPy's matmul has it (a vector loses its dimension). */
typedef struct result_shape {
  int ndim;
  Py_ssize_t extent[MAX_DIMENSIONS];
  Py_ssize_t batch;
} result_shape;

static bool result_of(const operand *a, const operand *b, const sg_gemm_desc *d, int64_t batch_a, int64_t batch_b,
                      result_shape *out) {
  const int64_t m = d->op_a == SG_OP_N ? d->a.rows : d->a.cols, k = d->op_a == SG_OP_N ? d->a.cols : d->a.rows;
  const int64_t inner = d->op_b == SG_OP_N ? d->b.rows : d->b.cols, n = d->op_b == SG_OP_N ? d->b.cols : d->b.rows;
  PyObject *shape_a = NULL, *shape_b = NULL;
  if (k != inner || (batch_a != batch_b && batch_a != 1 && batch_b != 1)) goto mismatch;
  const operand *leading = batch_a != 1 || a->seen.ndim >= b->seen.ndim ? a : b;
  const operand *other = leading == a ? b : a;
  out->ndim = 0;
  out->batch = leading == a ? batch_a : batch_b;
  if (leading->items || other->items) {
    out->batch = batch_a > batch_b ? batch_a : batch_b;
  } else {
    for (int i = 0; i < leading->seen.ndim - 2; ++i) out->extent[out->ndim++] = leading->seen.shape[i];
    if (other->seen.ndim > 2 && batch_a == batch_b && batch_a != 1) {
      if (other->seen.ndim != leading->seen.ndim) goto mismatch;
      for (int i = 0; i < out->ndim; ++i)
        if (other->seen.shape[i] != out->extent[i]) goto mismatch;
    }
  }
  if (a->items || a->seen.ndim != 1) out->extent[out->ndim++] = m;
  if (b->items || b->seen.ndim != 1) out->extent[out->ndim++] = n;
  return true;
mismatch:
  shape_a = shape_text(&a->seen);
  shape_b = shape_text(&b->seen);
  if (shape_a && shape_b)
    raise_argument("%s of shape %R%s%s and %s of shape %R%s%s cannot be multiplied", a->name, shape_a,
                   a->items ? " (each)" : "", d->op_a == SG_OP_N ? "" : ", transposed", b->name, shape_b,
                   b->items ? " (each)" : "", d->op_b == SG_OP_N ? "" : ", transposed");
  Py_XDECREF(shape_a);
  Py_XDECREF(shape_b);
  return false;
}

static PyObject *tuple_of(const result_shape *s) {
  const view as_view = {.ndim = s->ndim, .shape = s->extent};
  return shape_text(&as_view);
}

static bool agrees(const operand *c, const result_shape *wanted, int64_t batch_c) {
  bool same = c->items ? wanted->batch == batch_c && wanted->ndim == 2 && c->seen.shape[0] == wanted->extent[0] &&
                             c->seen.shape[1] == wanted->extent[1]
                       : c->seen.ndim == wanted->ndim && wanted->batch == batch_c;
  for (int i = 0; same && !c->items && i < wanted->ndim; ++i) same = c->seen.shape[i] == wanted->extent[i];
  if (same) return true;
  PyObject *is = shape_text(&c->seen), *should = tuple_of(wanted);
  if (is && should) raise_argument("%s has shape %R; the result has shape %R", c->name, is, should);
  Py_XDECREF(is);
  Py_XDECREF(should);
  return false;
}

static sg_dtype natural_result(sg_dtype of_operands) {
  switch (of_operands) {
    case SG_DTYPE_I8: return SG_DTYPE_I32;
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: return SG_DTYPE_F32;
    default: return of_operands;
  }
}

/* An array, or a list of arrays, for a result that the caller gave no room for. */
static PyObject *new_result(PyObject *a, const operand *first, const result_shape *shape, bool listed) {
  const sg_dtype dtype = natural_result(first->seen.dtype);
  PyObject *like = first->items ? PySequence_Fast_GET_ITEM(a, 0) : a, *made = NULL;
  PyObject *extents = tuple_of(shape);
  if (!extents) return NULL;
  if (!listed) {
    made = PyObject_CallFunction(hook.make_result, "OOs", like, extents, sg_dtype_name(dtype));
  } else {
    made = PyList_New(shape->batch);
    for (Py_ssize_t i = 0; made && i < shape->batch; ++i) {
      PyObject *item = PyObject_CallFunction(hook.make_result, "OOs", like, extents, sg_dtype_name(dtype));
      if (item)
        PyList_SET_ITEM(made, i, item);
      else
        Py_CLEAR(made);
    }
  }
  Py_DECREF(extents);
  return made;
}

void product_done(product *p) {
  PyMem_Free(p->a.items);
  PyMem_Free(p->b.items);
  PyMem_Free(p->c.items);
  Py_CLEAR(p->result);
}

int holds_of_product(const product_arguments *g) {
  const int a = holds_of(g->a), b = holds_of(g->b), c = g->c == Py_None ? (a > b ? a : b) : holds_of(g->c);
  return a + b + c + (g->bias != Py_None);
}

/* The bias as NumPy would broadcast it: a vector has a value for each column of the result (for each element of a result
 * that is a vector), m x 1 one for each row; dimensions before those are the batch's. */
static bool see_bias(PyObject *object, const operand *c, vector_role c_role, const target *to, hold *held, sg_gemm_desc *d) {
  operand bias = {.name = "bias"};
  sg_matrix values;
  int64_t batch;
  const vector_role role = c_role == COLUMN_VECTOR ? COLUMN_VECTOR : ROW_VECTOR;
  if (!see_matrix(object, &bias, false, role, to, held, &values, &batch, &d->stride_bias)) return false;
  const bool per_column = values.rows == 1 && values.cols == d->c.cols;
  if ((!per_column && !(values.rows == d->c.rows && values.cols == 1)) || (batch != 1 && batch != d->batch)) {
    PyObject *is = shape_text(&bias.seen), *of = shape_text(&c->seen);
    if (is && of)
      raise_argument("bias has shape %R, which is neither a value for each column nor one for each row (m, 1) of a result of "
                     "shape %R", is, of);
    Py_XDECREF(is);
    Py_XDECREF(of);
    return false;
  }
  if (values.dtype != d->c.dtype)
    return raise_argument("bias is %s and the result is %s; they must be equal", sg_dtype_name(values.dtype),
                          sg_dtype_name(d->c.dtype));
  const int64_t count = per_column ? values.cols : values.rows;
  const bool by_rows = values.layout == SG_LAYOUT_ROW_MAJOR;
  if (count > 1 && by_rows != per_column && values.ld != 1)
    return raise_argument("the values of bias do not follow each other in memory");
  if (!values.data && count > 0) return raise_argument("bias has no memory");
  d->bias = values.data;
  d->bias_shape = per_column ? SG_BIAS_PER_COLUMN : SG_BIAS_PER_ROW;
  if (batch == 1) d->stride_bias = 0;
  return true;
}

bool fill_product(product *p, const product_arguments *g, const target *to, hold *holds) {
  sg_gemm_desc *d = &p->desc;
  int64_t batch_a, batch_b, batch_c;
  const int a_holds = holds_of(g->a), b_holds = holds_of(g->b);
  const int op_a = enum_of(g->op_a, hook.ops, "op_a"), op_b = enum_of(g->op_b, hook.ops, "op_b");
  const int compute = enum_of(g->compute, hook.computes, "compute");
  const int activation = g->activation == Py_None ? 0 : enum_of(g->activation, hook.activations, "activation");
  if (PyErr_Occurred()) return false;
  *d = (sg_gemm_desc)SG_GEMM_DESC_INIT;
  d->op_a = (sg_op)op_a;
  d->op_b = (sg_op)op_b;
  d->compute = (sg_compute)compute;
  d->activation = (sg_activation)activation;
  p->a.name = "a";
  p->b.name = "b";
  p->c.name = "c";
  if (!scalar_of(g->alpha, "alpha", &d->alpha) || !scalar_of(g->beta, "beta", &d->beta)) return false;
  if (!see_operand(g->a, &p->a, false, ROW_VECTOR, to, holds, &d->a, &batch_a, &d->stride_a)) return false;
  if (!see_operand(g->b, &p->b, false, COLUMN_VECTOR, to, holds + a_holds, &d->b, &batch_b, &d->stride_b)) return false;
  result_shape wanted;
  if (!result_of(&p->a, &p->b, d, batch_a, batch_b, &wanted)) return false;
  if (g->c != Py_None) {
    p->result = Py_NewRef(g->c);
  } else if (d->beta.re != 0 || d->beta.im != 0) {
    return raise_argument("beta is not 0, so c is read: it must be given");
  } else {
    p->result = new_result(g->a, &p->a, &wanted, p->a.items || p->b.items);
    if (!p->result) return false;
  }
  const vector_role c_role = p->a.seen.ndim == 1 && !p->a.items   ? ROW_VECTOR
                             : p->b.seen.ndim == 1 && !p->b.items ? COLUMN_VECTOR
                                                                  : NO_VECTOR;
  if (!see_operand(p->result, &p->c, true, c_role, to, holds + a_holds + b_holds, &d->c, &batch_c, &d->stride_c))
    return false;
  if (!agrees(&p->c, &wanted, batch_c)) return false;
  d->a_array = p->a.items;
  d->b_array = p->b.items;
  d->c_array = p->c.items;
  d->batch = wanted.batch;
  if (g->bias != Py_None &&
      !see_bias(g->bias, &p->c, c_role, to, holds + a_holds + b_holds + holds_of(p->result), d))
    return false;
  p->empty = wanted.batch == 0;
  return true;
}

bool parse_product(PyObject *given, product_arguments *g) {
  return PyArg_ParseTuple(given, "OOOOOOOOOO", &g->a, &g->b, &g->c, &g->alpha, &g->beta, &g->op_a, &g->op_b,
                          &g->compute, &g->bias, &g->activation);
}
