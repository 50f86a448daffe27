/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of a GEMM, as in NumPy's matmul: a vector is a row on the left and a column on the right, and the
 * dimensions before the last two are broadcast. A list is a batch of one dimension. */
#include "submission.h"

static int batch_ndim(const operand *o) { return o->list ? 1 : o->seen.ndim - o->item_ndim; }

static const Py_ssize_t *batch_extents(const operand *o) { return o->list ? &o->list_size : o->seen.shape; }

/* The extent of an operand in one of `ndim` broadcast dimensions. */
static Py_ssize_t extent_in(const operand *o, int ndim, int i) {
  const int own = i - (ndim - batch_ndim(o));
  return own < 0 ? 1 : batch_extents(o)[own];
}

static bool broadcast(const operand *a, const operand *b, gemm_shape *out) {
  const int x = batch_ndim(a), y = batch_ndim(b);
  out->batch_ndim = x > y ? x : y;
  out->count = 1;
  bool empty = false;
  for (int i = 0; i < out->batch_ndim; ++i) {
    const Py_ssize_t of_a = extent_in(a, out->batch_ndim, i), of_b = extent_in(b, out->batch_ndim, i);
    if (of_a != of_b && of_a != 1 && of_b != 1) return false;
    out->extent[i] = of_a == 1 ? of_b : of_a;
    if (out->extent[i] == 0) empty = true;
  }
  for (int i = 0; !empty && i < out->batch_ndim; ++i)
    if (__builtin_mul_overflow(out->count, out->extent[i], &out->count)) return false;
  if (empty) out->count = 0;
  return true;
}

/* An operand as its caller sees it: "of shape (4, 5), transposed", "a list of 2 of shape (4, 5)". */
static PyObject *operand_text(const operand *o, sg_transpose op) {
  PyObject *const shape = shape_text(&o->seen), *text = NULL;
  const char *const how = op == SG_TRANSPOSE_N ? "" : ", transposed";
  if (shape && o->list)
    text = PyUnicode_FromFormat("%s, a list of %zd of shape %R%s,", o->name, o->list_size, shape, how);
  else if (shape)
    text = PyUnicode_FromFormat("%s of shape %R%s", o->name, shape, how);
  Py_XDECREF(shape);
  return text;
}

/* k, inner: the sizes that are multiplied, of a and b. */
static bool refuse_shapes(const operand *a, sg_transpose op_a, int64_t k, const operand *b, sg_transpose op_b,
                          int64_t inner) {
  PyObject *const text_a = operand_text(a, op_a), *const text_b = operand_text(b, op_b);
  if (text_a && text_b && k != inner)
    raise_argument("%U and %U cannot be multiplied: %lld columns of %s meet %lld rows of %s", text_a, text_b,
                   (long long)k, a->name, (long long)inner, b->name);
  else if (text_a && text_b)
    raise_argument("%U and %U cannot be multiplied: their batches must be equal, or 1", text_a, text_b);
  Py_XDECREF(text_a);
  Py_XDECREF(text_b);
  return false;
}

bool shape_of(const operand *a, sg_transpose op_a, const operand *b, sg_transpose op_b, gemm_shape *out) {
  const int64_t k = op_a == SG_TRANSPOSE_N ? a->matrix.cols : a->matrix.rows;
  const int64_t inner = op_b == SG_TRANSPOSE_N ? b->matrix.rows : b->matrix.cols;
  if (k != inner || !broadcast(a, b, out)) return refuse_shapes(a, op_a, k, b, op_b, inner);
  out->m = op_a == SG_TRANSPOSE_N ? a->matrix.rows : a->matrix.cols;
  out->n = op_b == SG_TRANSPOSE_N ? b->matrix.cols : b->matrix.rows;
  out->ndim = out->batch_ndim;
  if (a->item_ndim != 1) out->extent[out->ndim++] = out->m;
  if (b->item_ndim != 1) out->extent[out->ndim++] = out->n;
  return true;
}

PyObject *shape_tuple(const gemm_shape *s, bool of_an_item) {
  const int skipped = of_an_item ? s->batch_ndim : 0;
  const view as_view = {.ndim = s->ndim - skipped, .shape = s->extent + skipped};
  return shape_text(&as_view);
}

static bool refuse_result(const operand *c, const view *v) {
  PyObject *is = shape_text(v), *should = shape_tuple(c->result, false);
  if (is && should && c->list)
    raise_argument("%s is a list of %zd arrays of shape %R; the result has shape %R", c->name, c->list_size, is,
                   should);
  else if (is && should)
    raise_argument("%s has shape %R; the result has shape %R", c->name, is, should);
  Py_XDECREF(is);
  Py_XDECREF(should);
  return false;
}

bool has_shape(const operand *c, const view *v) {
  const gemm_shape *wanted = c->result;
  const int skipped = c->list ? wanted->batch_ndim : 0;
  bool same = v->ndim == wanted->ndim - skipped;
  for (int i = 0; same && i < v->ndim; ++i) same = v->shape[i] == wanted->extent[skipped + i];
  if (c->list && (wanted->batch_ndim != 1 || wanted->count != c->list_size)) same = false;
  return same || refuse_result(c, v);
}

/* The address of each item of the batch, in the order of its dimensions. */
static bool list_items(operand *o, const gemm_shape *over, const Py_ssize_t *strides) {
  void **all = PyMem_Malloc((size_t)over->count * sizeof *all);
  if (!all) return PyErr_NoMemory(), false;
  Py_ssize_t index[MAX_DIMENSIONS] = {0}, at = 0;
  for (Py_ssize_t n = 0; n < over->count; ++n) {
    all[n] = o->list ? o->items[at] : (char *)o->matrix.data + at;
    for (int i = over->batch_ndim - 1; i >= 0; --i) {
      at += strides[i];
      if (++index[i] < over->extent[i]) break;
      at -= strides[i] * over->extent[i];
      index[i] = 0;
    }
  }
  PyMem_Free(o->items);
  o->items = all;
  return true;
}

bool spread(operand *o, const gemm_shape *over, int64_t *stride) {
  *stride = 0;
  if (o->list && o->list_size == 1) { /* one matrix, shared by the batch */
    PyMem_Free(o->items);
    o->items = NULL;
    return true;
  }
  if (over->count <= 1 && !o->list) return true;
  if (o->list && over->batch_ndim == 1) return true; /* its addresses are the batch's */
  Py_ssize_t strides[MAX_DIMENSIONS];
  for (int i = 0; i < over->batch_ndim; ++i) {
    const int own = i - (over->batch_ndim - batch_ndim(o));
    const bool shared = own < 0 || batch_extents(o)[own] == 1;
    strides[i] = shared ? 0 : o->list ? 1 : o->seen.strides[own];
  }
  int64_t count;
  if (o->list || !one_stride(over->batch_ndim, over->extent, strides, &count, stride)) {
    *stride = 0;
    return list_items(o, over, strides);
  }
  *stride /= sg_dtype_size(o->seen.dtype);
  return true;
}
