/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: arrays of (batch, heads, tokens, width), or of the last three or two of these. */
#include <string.h>

#include "submission.h"

typedef struct attention_arguments {
  PyObject *q, *k, *v, *out, *compute;
  double scale;
  int causal;
  long long mask_offset, workspace;
} attention_arguments;

/* An array with the sizes of all four dimensions; missing ones are 1. */
typedef struct heads_view {
  view of;
  int64_t batch, heads, tokens, width;
} heads_view;

static bool heads_of(const char *name, heads_view *v, sg_heads *to) {
  const view *of = &v->of;
  if (of->ndim < 2 || of->ndim > 4)
    return raise_argument("%s has %d dimensions; it has 2 to 4: batch, heads, tokens, width", name, of->ndim);
  const Py_ssize_t size = (Py_ssize_t)sg_dtype_size(of->dtype);
  int64_t extent[4] = {1, 1, 1, 1}, stride[4] = {0, 0, 0, 0};
  for (int i = 0; i < of->ndim; ++i) {
    const int at = 4 - of->ndim + i;
    extent[at] = of->shape[i];
    stride[at] = extent[at] > 1 ? of->strides[i] : at == 3 ? size : 0;
    if (stride[at] < 0 || stride[at] % size != 0)
      return raise_argument(
          "dimension %d of %s has a stride of %zd bytes; it must be a multiple of %zd, and not negative", i, name,
          of->strides[i], size);
    stride[at] /= size;
  }
  if (stride[3] != 1) return raise_argument("the elements of a token of %s do not follow each other in memory", name);
  *to = (sg_heads){of->data, stride[0], stride[1], stride[2]};
  if (extent[2] <= 1) to->token_stride = extent[3];
  v->batch = extent[0], v->heads = extent[1], v->tokens = extent[2], v->width = extent[3];
  return true;
}

static bool is_equal(const char *what, const char *a, int64_t of_a, const char *b, int64_t of_b) {
  if (of_a == of_b) return true;
  return raise_argument("%s has %s %lld and %s has %lld; they must be equal", a, what, (long long)of_a, b,
                        (long long)of_b);
}

static bool see_heads(call *in, PyObject *given, const char *name, const heads_view *q, heads_view *v, sg_heads *to) {
  if (!see(in, given, name, &v->of) || !heads_of(name, v, to)) return false;
  if (v->of.dtype != q->of.dtype)
    return raise_argument("%s is %s and q is %s; they must be equal", name, sg_dtype_name(v->of.dtype),
                          sg_dtype_name(q->of.dtype));
  return is_equal("batch", name, v->batch, "q", q->batch);
}

/* The array that is written: of q's dimensions, with v's width. */
static PyObject *result_of_attention(call *in, const attention_arguments *g, const heads_view *q, int64_t width) {
  if (g->out != Py_None) {
    PyObject *array = settled(in, g->out, "out");
    return array ? Py_NewRef(array) : NULL;
  }
  PyObject *like = settled(in, g->q, "q");
  gemm_shape shape = {.ndim = q->of.ndim};
  memcpy(shape.extent, q->of.shape, (size_t)q->of.ndim * sizeof *q->of.shape);
  shape.extent[q->of.ndim - 1] = width;
  return like ? new_result(like, q->of.dtype, &shape, false) : NULL;
}

static bool fill_attention(call *in, sg_attention_desc *d, PyObject **result, const attention_arguments *g) {
  heads_view q, k, v, o;
  *d = (sg_attention_desc)SG_ATTENTION_DESC_INIT;
  const int compute = enum_of(g->compute, hook.computes, "compute");
  if (PyErr_Occurred() || !see(in, g->q, "q", &q.of) || !heads_of("q", &q, &d->q) ||
      !see_heads(in, g->k, "k", &q, &k, &d->k) || !see_heads(in, g->v, "v", &q, &v, &d->v) ||
      !is_equal("heads", "v", v.heads, "k", k.heads) || !is_equal("tokens", "v", v.tokens, "k", k.tokens) ||
      !is_equal("width", "k", k.width, "q", q.width))
    return false;
  *result = result_of_attention(in, g, &q, v.width);
  if (!*result || !see_array(in, *result, "out", true, &o.of) || !heads_of("out", &o, &d->o) ||
      !is_equal("dimensions", "out", o.of.ndim, "q", q.of.ndim) || !is_equal("batch", "out", o.batch, "q", q.batch) ||
      !is_equal("heads", "out", o.heads, "q", q.heads) || !is_equal("tokens", "out", o.tokens, "q", q.tokens) ||
      !is_equal("width", "out", o.width, "v", v.width))
    return false;
  if (o.of.dtype != q.of.dtype)
    return raise_argument("out is %s and q is %s; they must be equal", sg_dtype_name(o.of.dtype),
                          sg_dtype_name(q.of.dtype));
  d->dtype = q.of.dtype;
  d->batch = q.batch, d->heads = q.heads, d->kv_heads = k.heads;
  d->queries = q.tokens, d->keys = k.tokens, d->width = q.width, d->value_width = v.width;
  d->mask = g->causal ? SG_MASK_CAUSAL : SG_MASK_NONE;
  d->mask_offset = g->mask_offset;
  d->scale = g->scale;
  d->workspace = (uint64_t)g->workspace;
  d->compute = (sg_compute)compute;
  return true;
}

static sg_status run_attention(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_attention_async(on, desc, submit, out);
}

/* submit_attention(type or graph, target, q, k, v, out, causal, mask_offset, scale, workspace, compute, order): a Job
 * whose result is out. */
PyObject *submit_attention(PyObject *self, PyObject *args) {
  PyObject *type, *to, *made = NULL, *result = NULL;
  attention_arguments g;
  order_arguments og = {0};
  call in = {.in_order = true};
  sg_attention_desc desc;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOpLdLOO&", &type, &to, &g.q, &g.k, &g.v, &g.out, &g.causal, &g.mask_offset,
                        &g.scale, &g.workspace, &g.compute, order_of, &og))
    return NULL;
  if (target_of(to, &in.to) && begin_operation(&in, type, &og) && fill_attention(&in, &desc, &result, &g))
    made = submit_operation(&in, &og, run_attention, &desc, result);
  call_done(&in);
  Py_CLEAR(result);
  return made;
}

typedef struct attention_gradients {
  PyObject *q, *k, *v, *d_out, *results,
      *compute; /* results: dq, dk, dv: arrays, None: new ones, False: not computed */
  double scale;
  int causal;
  long long mask_offset, workspace;
} attention_gradients;

/* dq, dk or dv, of the form of its operand; replaces what is given in `results`. */
static bool see_gradient(call *in, const attention_gradients *g, Py_ssize_t at, const char *name, PyObject *like,
                         const char *like_name, const heads_view *form, sg_heads *to) {
  PyObject *given = PyTuple_GET_ITEM(g->results, at), *array;
  heads_view v;
  if (given == Py_False) return PyTuple_SetItem(g->results, at, Py_NewRef(Py_None)) == 0;
  gemm_shape shape = {.ndim = form->of.ndim};
  memcpy(shape.extent, form->of.shape, (size_t)form->of.ndim * sizeof *form->of.shape);
  if (given == Py_None) {
    like = settled(in, like, like_name);
    array = like ? new_result(like, form->of.dtype, &shape, false) : NULL;
  } else {
    array = settled(in, given, name);
    Py_XINCREF(array);
  }
  if (!array) return false;
  PyTuple_SetItem(g->results, at, array);
  if (!see_array(in, array, name, true, &v.of) || !has_extents(&v.of, name, &shape) || !heads_of(name, &v, to))
    return false;
  if (v.of.dtype != form->of.dtype)
    return raise_argument("%s is %s and %s is %s; they must be equal", name, sg_dtype_name(v.of.dtype), like_name,
                          sg_dtype_name(form->of.dtype));
  return true;
}

static bool fill_attention_backward(call *in, sg_attention_backward_desc *d, const attention_gradients *g) {
  heads_view q, k, v, o;
  *d = (sg_attention_backward_desc)SG_ATTENTION_BACKWARD_DESC_INIT;
  const int compute = enum_of(g->compute, hook.computes, "compute");
  if (PyErr_Occurred() || !see(in, g->q, "q", &q.of) || !heads_of("q", &q, &d->q) ||
      !see_heads(in, g->k, "k", &q, &k, &d->k) || !see_heads(in, g->v, "v", &q, &v, &d->v) ||
      !see_heads(in, g->d_out, "d_out", &q, &o, &d->d_o) || !is_equal("heads", "v", v.heads, "k", k.heads) ||
      !is_equal("tokens", "v", v.tokens, "k", k.tokens) || !is_equal("width", "k", k.width, "q", q.width) ||
      !is_equal("heads", "d_out", o.heads, "q", q.heads) || !is_equal("tokens", "d_out", o.tokens, "q", q.tokens) ||
      !is_equal("width", "d_out", o.width, "v", v.width) || !see_gradient(in, g, 0, "dq", g->q, "q", &q, &d->dq) ||
      !see_gradient(in, g, 1, "dk", g->k, "k", &k, &d->dk) || !see_gradient(in, g, 2, "dv", g->v, "v", &v, &d->dv))
    return false;
  d->dtype = q.of.dtype;
  d->batch = q.batch, d->heads = q.heads, d->kv_heads = k.heads;
  d->queries = q.tokens, d->keys = k.tokens, d->width = q.width, d->value_width = v.width;
  d->mask = g->causal ? SG_MASK_CAUSAL : SG_MASK_NONE;
  d->mask_offset = g->mask_offset;
  d->scale = g->scale;
  d->workspace = (uint64_t)g->workspace;
  d->compute = (sg_compute)compute;
  return true;
}

static sg_status run_attention_backward(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_attention_backward_async(on, desc, submit, out);
}

/* submit_attention_backward(type or graph, target, q, k, v, d_out, dq, dk, dv, causal, mask_offset, scale, workspace,
 * compute, order): a Job whose result is the tuple of dq, dk and dv. */
PyObject *submit_attention_backward(PyObject *self, PyObject *args) {
  PyObject *type, *to, *made = NULL, *dq, *dk, *dv;
  attention_gradients g;
  order_arguments og = {0};
  call in = {.in_order = true};
  sg_attention_backward_desc desc;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOOOOpLdLOO&", &type, &to, &g.q, &g.k, &g.v, &g.d_out, &dq, &dk, &dv, &g.causal,
                        &g.mask_offset, &g.scale, &g.workspace, &g.compute, order_of, &og))
    return NULL;
  g.results = PyTuple_Pack(3, dq, dk, dv);
  if (g.results && target_of(to, &in.to) && begin_operation(&in, type, &og) && fill_attention_backward(&in, &desc, &g))
    made = submit_operation(&in, &og, run_attention_backward, &desc, g.results);
  call_done(&in);
  Py_XDECREF(g.results);
  return made;
}
