/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of layers.h: rows are along the last dimension of an array. */
#include <string.h>

#include "submission.h"

enum { ELEMENTWISE, SOFTMAX, CAUSAL_SOFTMAX, LAYER_NORM, RMS_NORM };

/* The arguments beside those of every submission. */
typedef struct layer_arguments {
  int kind;
  PyObject *x, *second, *third, *out; /* second and third: b, or gamma and beta; None: there is none */
  double epsilon;
  long long number; /* the function, or the mask's offset */
} layer_arguments;

bool matrix_of(const view *v, const char *name, sg_matrix *to) {
  view rows = *v;
  Py_ssize_t shape[2], strides[2];
  int64_t count, stride;
  if (v->ndim == 0) return raise_argument("%s has no dimensions; a row has one", name);
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

static bool same_shape(const view *a, const char *name, const view *x, const char *other) {
  bool same = a->ndim == x->ndim;
  for (int i = 0; same && i < x->ndim; ++i) same = a->shape[i] == x->shape[i];
  if (same) return true;
  PyObject *is = shape_text(a), *should = shape_text(x);
  if (is && should) raise_argument("%s has shape %R and %s has shape %R; they must be equal", name, is, other, should);
  Py_XDECREF(is);
  Py_XDECREF(should);
  return false;
}

bool see(call *in, PyObject *given, const char *name, view *v) {
  PyObject *array = settled(in, given, name);
  return array && see_array(in, array, name, false, v);
}

bool see_values(call *in, PyObject *given, const char *name, const view *x, const char *of, const void **out) {
  view v;
  *out = NULL;
  if (given == Py_None) return true;
  if (!see(in, given, name, &v)) return false;
  const Py_ssize_t n = x->shape[x->ndim - 1], size = (Py_ssize_t)sg_dtype_size(v.dtype);
  if (v.ndim != 1 || v.shape[0] != n) {
    PyObject *is = shape_text(&v);
    if (is) raise_argument("%s has shape %R; %s has rows of %zd values", name, is, of, n);
    Py_XDECREF(is);
    return false;
  }
  if (v.dtype != x->dtype)
    return raise_argument("%s is %s and %s is %s; they must be equal", name, sg_dtype_name(v.dtype), of,
                          sg_dtype_name(x->dtype));
  if (n > 1 && v.strides[0] != size) return raise_argument("the values of %s do not follow each other in memory", name);
  *out = v.data;
  return true;
}

/* The array that is written: the caller's, or a new one like x. */
static PyObject *result_like(call *in, const layer_arguments *g, const view *x) {
  if (g->out != Py_None) {
    PyObject *array = settled(in, g->out, "out");
    return array ? Py_NewRef(array) : NULL;
  }
  PyObject *like = settled(in, g->x, "x");
  gemm_shape shape = {.ndim = x->ndim};
  memcpy(shape.extent, x->shape, (size_t)x->ndim * sizeof *x->shape);
  return like ? new_result(like, x->dtype, &shape, false) : NULL;
}

/* Only the descriptor of the kind is used. */
typedef struct layer_request {
  sg_elementwise_desc elementwise;
  sg_softmax_desc softmax;
  sg_norm_desc norm;
  PyObject *result; /* a new reference */
} layer_request;

static bool fill_layer(call *in, layer_request *p, const layer_arguments *g) {
  view x, out, second;
  sg_matrix from, to;
  const bool is_norm = g->kind == LAYER_NORM || g->kind == RMS_NORM;
  if (!see(in, g->x, "x", &x) || !matrix_of(&x, "x", &from)) return false;
  p->result = result_like(in, g, &x);
  if (!p->result || !see_array(in, p->result, "out", true, &out) || !same_shape(&out, "out", &x, "x") ||
      !matrix_of(&out, "out", &to))
    return false;
  p->elementwise = (sg_elementwise_desc)SG_ELEMENTWISE_DESC_INIT;
  p->softmax = (sg_softmax_desc)SG_SOFTMAX_DESC_INIT;
  p->norm = (sg_norm_desc)SG_NORM_DESC_INIT;
  p->elementwise.a = p->softmax.x = p->norm.x = from;
  p->elementwise.c = p->softmax.y = p->norm.y = to;
  p->elementwise.function = (sg_function)g->number;
  p->softmax.mask = g->kind == CAUSAL_SOFTMAX ? SG_MASK_CAUSAL : SG_MASK_NONE;
  p->softmax.mask_offset = g->number;
  if (g->kind == CAUSAL_SOFTMAX && x.ndim > 2) p->softmax.mask_rows = x.shape[x.ndim - 2];
  p->norm.kind = g->kind == RMS_NORM ? SG_NORM_RMS : SG_NORM_LAYER;
  p->norm.epsilon = g->epsilon;
  if (is_norm)
    return see_values(in, g->second, "gamma", &x, "x", &p->norm.gamma) &&
           see_values(in, g->third, "beta", &x, "x", &p->norm.beta);
  if (g->kind != ELEMENTWISE) return true;
  const bool two = g->number == SG_FUNCTION_ADD || g->number == SG_FUNCTION_MULTIPLY;
  if (two != (g->second != Py_None))
    return raise_argument("b is %R; this function has %s operand%s", g->second, two ? "a second" : "one",
                          two ? "" : " only");
  return !two || (see(in, g->second, "b", &second) && same_shape(&second, "b", &x, "x") &&
                  matrix_of(&second, "b", &p->elementwise.b));
}

static sg_status run_layer(const call *in, int kind, const layer_request *p, const sg_submit *submit, sg_job **out) {
  sg_context *const on = (sg_context *)(uintptr_t)in->to.handle;
  if (kind == ELEMENTWISE) return sg_elementwise_async(on, &p->elementwise, submit, out);
  if (kind == SOFTMAX || kind == CAUSAL_SOFTMAX) return sg_softmax_async(on, &p->softmax, submit, out);
  return sg_norm_async(on, &p->norm, submit, out);
}

/* submit_layer(type, target, kind, x, second, third, out, epsilon, number, stream, after, priority, untracked, timeout,
 * label): a Job whose result is out. */
PyObject *submit_layer(PyObject *self, PyObject *args) {
  PyTypeObject *type;
  PyObject *to, *made = NULL;
  layer_arguments g;
  order_arguments og = {0};
  call in = {.in_order = true};
  layer_request p;
  sg_submit submit;
  (void)self;
  p.result = NULL;
  if (!PyArg_ParseTuple(args, "OOiOOOOdLOOOOOO", &type, &to, &g.kind, &g.x, &g.second, &g.third, &g.out, &g.epsilon,
                        &g.number, &og.stream, &og.after, &og.priority, &og.untracked, &og.timeout, &og.label))
    return NULL;
  if (target_of(to, &in.to) && call_begin(&in, type) && fill_layer(&in, &p, &g) && fill_order(&in, &og, &submit) &&
      ready_to_post()) {
    sg_job *handle = NULL;
    sg_status status;
    post_completion(&submit, in.job);
    Py_BEGIN_ALLOW_THREADS
    status = run_layer(&in, g.kind, &p, &submit, &handle);
    Py_END_ALLOW_THREADS
    made = posted(&in, &submit, status, handle, p.result);
  }
  call_done(&in);
  Py_CLEAR(p.result);
  return made;
}
