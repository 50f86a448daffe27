/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers and their gradients: sequences of (steps, batch, values), (batch, steps, values) or (steps, values).
 */
#include <string.h>

#include "submission.h"

/* The arguments of both, as objects: None, or False of a result that is not wanted. */
typedef struct recurrent_arguments {
  int cell, gate_order, batch_first, reverse, accumulate;
  PyObject *compute, *inputs, *results;
} recurrent_arguments;

/* Sizes of the layer, by its x and w_hh, and what its arrays have in common. */
typedef struct recurrent_layer {
  call *in;
  PyObject *like; /* x */
  bool batch_first, is_lstm;
  int ndim; /* of sequences: 2 or 3 */
  sg_dtype dtype;
  int64_t steps, batch, width, hidden;
} recurrent_layer;

static bool has_dtype(const view *v, const char *name, sg_dtype dtype) {
  if (v->dtype == dtype) return true;
  return raise_argument("%s is %s; it must be %s", name, sg_dtype_name(v->dtype), sg_dtype_name(dtype));
}

static bool is_contiguous(const view *v, const char *name) {
  int64_t expected = (int64_t)sg_dtype_size(v->dtype);
  for (int i = v->ndim - 1; i >= 0; --i) {
    if (v->shape[i] > 1 && v->strides[i] != expected)
      return raise_argument("the elements of %s do not follow each other in memory", name);
    expected *= v->shape[i];
  }
  return true;
}

static gemm_shape shape_of_sequence(const recurrent_layer *l, int64_t width) {
  gemm_shape s = {.ndim = l->ndim};
  if (l->ndim == 3)
    s.extent[0] = l->batch_first ? l->batch : l->steps, s.extent[1] = l->batch_first ? l->steps : l->batch;
  if (l->ndim == 2) s.extent[0] = l->steps;
  s.extent[l->ndim - 1] = width;
  return s;
}
static gemm_shape shape_of_state(const recurrent_layer *l) {
  const gemm_shape s = {.ndim = l->ndim - 1, .extent = {l->ndim == 3 ? l->batch : l->hidden, l->hidden}};
  return s;
}
static int64_t gates_of(const recurrent_layer *l) { return (l->is_lstm ? 4 : 3) * l->hidden; }
static gemm_shape shape_of_weights(const recurrent_layer *l, int64_t cols) {
  const gemm_shape s = {.ndim = 2, .extent = {gates_of(l), cols}};
  return s;
}
static gemm_shape shape_of_bias(const recurrent_layer *l) {
  const gemm_shape s = {.ndim = 1, .extent = {gates_of(l)}};
  return s;
}

/* Strides of a checked sequence. */
static bool strides_of_sequence(const recurrent_layer *l, const view *v, const char *name, sg_sequence *to) {
  const Py_ssize_t size = (Py_ssize_t)sg_dtype_size(v->dtype), last = v->ndim - 1;
  for (int i = 0; i < v->ndim; ++i)
    if (v->shape[i] > 1 && (v->strides[i] < 0 || v->strides[i] % size != 0))
      return raise_argument(
          "dimension %d of %s has a stride of %zd bytes; it must be a multiple of %zd, and not negative", i, name,
          v->strides[i], size);
  if (v->shape[last] > 1 && v->strides[last] != size)
    return raise_argument("the values of a step of %s do not follow each other in memory", name);
  const int step = v->ndim == 3 && l->batch_first ? 1 : 0, batch = v->ndim == 3 ? 1 - step : -1;
  to->data = v->data;
  to->step_stride = v->shape[step] > 1 ? v->strides[step] / size : 0;
  to->batch_stride = batch >= 0 && v->shape[batch] > 1 ? v->strides[batch] / size : 0;
  return true;
}

static bool see_sequence(const recurrent_layer *l, PyObject *given, const char *name, int64_t width, sg_sequence *to) {
  view v;
  if (given == Py_None) return true;
  const gemm_shape s = shape_of_sequence(l, width);
  return see(l->in, given, name, &v) && has_dtype(&v, name, l->dtype) && has_extents(&v, name, &s) &&
         strides_of_sequence(l, &v, name, to);
}

static bool see_flat(const recurrent_layer *l, PyObject *given, const char *name, sg_dtype dtype, gemm_shape s,
                     const void **to) {
  view v;
  if (given == Py_None) return true;
  if (!see(l->in, given, name, &v) || !has_dtype(&v, name, dtype) || !has_extents(&v, name, &s) ||
      !is_contiguous(&v, name))
    return false;
  *to = v.data;
  return true;
}

/* A result: the caller's array, or a new one; replaces what is given in `results`. dtype 0: that of the array. */
static bool layer_result(const recurrent_layer *l, PyObject *results, Py_ssize_t at, const char *name, sg_dtype dtype,
                         const gemm_shape *s, view *v) {
  PyObject *given = PyTuple_GET_ITEM(results, at);
  PyObject *array = given == Py_None ? new_result(l->like, l->dtype, s, false) : settled(l->in, given, name);
  if (!array) return false;
  if (given != Py_None) Py_INCREF(array);
  PyTuple_SetItem(results, at, array);
  return see_array(l->in, array, name, true, v) && (dtype == 0 || has_dtype(v, name, dtype)) && has_extents(v, name, s);
}
static bool is_wanted(PyObject *results, Py_ssize_t at) {
  if (PyTuple_GET_ITEM(results, at) != Py_False) return true;
  PyTuple_SetItem(results, at, Py_NewRef(Py_None));
  return false;
}
static bool sequence_result(const recurrent_layer *l, PyObject *results, Py_ssize_t at, const char *name, int64_t width,
                            sg_sequence *to) {
  view v;
  const gemm_shape s = shape_of_sequence(l, width);
  return !is_wanted(results, at) ||
         (layer_result(l, results, at, name, l->dtype, &s, &v) && strides_of_sequence(l, &v, name, to));
}
static bool flat_result(const recurrent_layer *l, PyObject *results, Py_ssize_t at, const char *name, sg_dtype dtype,
                        gemm_shape s, void **to, sg_dtype *found) {
  view v;
  if (!is_wanted(results, at)) return true;
  if (!layer_result(l, results, at, name, dtype, &s, &v) || !is_contiguous(&v, name)) return false;
  *to = v.data;
  if (found && *found != 0 && *found != v.dtype)
    return raise_argument("%s is %s and another gradient of weights is %s; they must be equal", name,
                          sg_dtype_name(v.dtype), sg_dtype_name(*found));
  if (found) *found = v.dtype;
  return true;
}

/* The sizes, from x and w_hh. */
static bool see_layer(recurrent_layer *l, const recurrent_arguments *g, sg_sequence *x, const void **w_ih,
                      const void **w_hh) {
  view v, w;
  PyObject *of_x = PyTuple_GET_ITEM(g->inputs, 0), *of_w = PyTuple_GET_ITEM(g->inputs, 2);
  l->batch_first = g->batch_first, l->is_lstm = g->cell == SG_CELL_LSTM;
  l->like = settled(l->in, of_x, "x");
  if (!l->like || !see(l->in, of_x, "x", &v)) return false;
  if (v.ndim != 2 && v.ndim != 3)
    return raise_argument("x has %d dimensions; it has 3, steps, batch and values, or 2 without a batch", v.ndim);
  l->ndim = v.ndim, l->dtype = v.dtype;
  const int step = v.ndim == 3 && l->batch_first ? 1 : 0;
  l->steps = v.shape[step], l->batch = v.ndim == 3 ? v.shape[1 - step] : 1, l->width = v.shape[v.ndim - 1];
  if (!see(l->in, of_w, "w_hh", &w)) return false;
  if (w.ndim != 2) return raise_argument("w_hh has %d dimensions; it must be a matrix", w.ndim);
  l->hidden = w.shape[1];
  if (!has_dtype(&w, "w_hh", l->dtype) || !is_contiguous(&w, "w_hh")) return false;
  const gemm_shape of_weights = shape_of_weights(l, l->hidden);
  *w_hh = w.data;
  return has_extents(&w, "w_hh", &of_weights) && strides_of_sequence(l, &v, "x", x) &&
         see_flat(l, PyTuple_GET_ITEM(g->inputs, 1), "w_ih", l->dtype, shape_of_weights(l, l->width), w_ih);
}

static sg_dtype wide_of(sg_dtype dtype) { return dtype == SG_DTYPE_F64 ? SG_DTYPE_F64 : SG_DTYPE_F32; }

/* inputs: x, w_ih, w_hh, bias_ih, bias_hh, h0, c0, reserve; results: y, hn, cn. */
static bool fill_recurrent(call *in, sg_recurrent_desc *d, const recurrent_arguments *g) {
  recurrent_layer l = {.in = in};
  *d = (sg_recurrent_desc)SG_RECURRENT_DESC_INIT;
  const int compute = enum_of(g->compute, hook.computes, "compute");
  if (PyErr_Occurred() || !see_layer(&l, g, &d->x, &d->w_ih, &d->w_hh)) return false;
  PyObject *const *inputs = &PyTuple_GET_ITEM(g->inputs, 0);
  view reserve;
  gemm_shape of_reserve = shape_of_sequence(&l, 5 * l.hidden);
  if (l.ndim == 3) of_reserve.extent[0] = l.steps, of_reserve.extent[1] = l.batch;
  if (!see_flat(&l, inputs[3], "bias_ih", l.dtype, shape_of_bias(&l), &d->bias_ih) ||
      !see_flat(&l, inputs[4], "bias_hh", l.dtype, shape_of_bias(&l), &d->bias_hh) ||
      !see_flat(&l, inputs[5], "h0", l.dtype, shape_of_state(&l), &d->h0) ||
      !see_flat(&l, inputs[6], "c0", l.dtype, shape_of_state(&l), &d->c0) ||
      !sequence_result(&l, g->results, 0, "out", l.hidden, &d->y) ||
      !flat_result(&l, g->results, 1, "hn", l.dtype, shape_of_state(&l), &d->hn, NULL) ||
      !flat_result(&l, g->results, 2, "cn", l.dtype, shape_of_state(&l), &d->cn, NULL))
    return false;
  if (inputs[7] != Py_None) {
    if (!see_array(in, inputs[7], "reserve", true, &reserve) || !has_dtype(&reserve, "reserve", wide_of(l.dtype)) ||
        !has_extents(&reserve, "reserve", &of_reserve) || !is_contiguous(&reserve, "reserve"))
      return false;
    d->reserve = reserve.data;
  }
  d->cell = (sg_cell)g->cell, d->gate_order = (sg_gate_order)g->gate_order;
  d->steps = l.steps, d->batch = l.batch, d->in = l.width, d->hidden = l.hidden;
  d->dtype = l.dtype, d->compute = (sg_compute)compute, d->reverse = g->reverse;
  return true;
}

/* inputs: x, w_ih, w_hh, y, h0, reserve, dy, dhn, dcn; results: dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0, dc0. */
static bool fill_recurrent_backward(call *in, sg_recurrent_backward_desc *d, const recurrent_arguments *g) {
  recurrent_layer l = {.in = in};
  *d = (sg_recurrent_backward_desc)SG_RECURRENT_BACKWARD_DESC_INIT;
  const int compute = enum_of(g->compute, hook.computes, "compute");
  if (PyErr_Occurred() || !see_layer(&l, g, &d->x, &d->w_ih, &d->w_hh)) return false;
  static const char *const of_weights[] = {"dw_ih", "dw_hh", "dbias_ih", "dbias_hh"};
  for (int i = 0; g->accumulate && i < 4; ++i)
    if (PyTuple_GET_ITEM(g->results, 1 + i) == Py_None)
      return raise_argument("accumulate is True, so %s is read: it must be given, or False", of_weights[i]);
  PyObject *const *inputs = &PyTuple_GET_ITEM(g->inputs, 0);
  gemm_shape of_reserve = shape_of_sequence(&l, 5 * l.hidden);
  if (l.ndim == 3) of_reserve.extent[0] = l.steps, of_reserve.extent[1] = l.batch;
  sg_dtype of_gradients = 0;
  if (!see_sequence(&l, inputs[3], "y", l.hidden, &d->y) ||
      !see_flat(&l, inputs[4], "h0", l.dtype, shape_of_state(&l), &d->h0) ||
      !see_flat(&l, inputs[5], "reserve", wide_of(l.dtype), of_reserve, &d->reserve) ||
      !see_sequence(&l, inputs[6], "dy", l.hidden, &d->dy) ||
      !see_flat(&l, inputs[7], "dhn", l.dtype, shape_of_state(&l), &d->dhn) ||
      !see_flat(&l, inputs[8], "dcn", l.dtype, shape_of_state(&l), &d->dcn) ||
      !sequence_result(&l, g->results, 0, "dx", l.width, &d->dx) ||
      !flat_result(&l, g->results, 1, of_weights[0], 0, shape_of_weights(&l, l.width), &d->dw_ih, &of_gradients) ||
      !flat_result(&l, g->results, 2, of_weights[1], 0, shape_of_weights(&l, l.hidden), &d->dw_hh, &of_gradients) ||
      !flat_result(&l, g->results, 3, of_weights[2], 0, shape_of_bias(&l), &d->dbias_ih, &of_gradients) ||
      !flat_result(&l, g->results, 4, of_weights[3], 0, shape_of_bias(&l), &d->dbias_hh, &of_gradients) ||
      !flat_result(&l, g->results, 5, "dh0", l.dtype, shape_of_state(&l), &d->dh0, NULL) ||
      !flat_result(&l, g->results, 6, "dc0", l.dtype, shape_of_state(&l), &d->dc0, NULL))
    return false;
  d->cell = (sg_cell)g->cell, d->gate_order = (sg_gate_order)g->gate_order;
  d->steps = l.steps, d->batch = l.batch, d->in = l.width, d->hidden = l.hidden;
  d->dtype = l.dtype, d->gradient_dtype = of_gradients != 0 ? of_gradients : l.dtype;
  d->compute = (sg_compute)compute, d->reverse = g->reverse, d->accumulate = g->accumulate;
  return true;
}

/* The results without those of c, which come last, of a GRU. A new reference. */
static PyObject *results_of_cell(const recurrent_arguments *g) {
  const Py_ssize_t count = PyTuple_GET_SIZE(g->results);
  return PyTuple_GetSlice(g->results, 0, g->cell == SG_CELL_LSTM ? count : count - 1);
}

static sg_status run_recurrent(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_recurrent_async(on, desc, submit, out);
}
static sg_status run_recurrent_backward(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_recurrent_backward_async(on, desc, submit, out);
}

/* submit_recurrent(type or graph, target, backward, cell, gate_order, batch_first, reverse, accumulate, compute,
 * inputs, results, order): a Job whose result is the tuple of results. */
PyObject *submit_recurrent(PyObject *self, PyObject *args) {
  PyObject *type, *to, *made = NULL, *given;
  recurrent_arguments g;
  order_arguments og = {0};
  call in = {.in_order = true};
  int backward;
  sg_recurrent_desc layer;
  sg_recurrent_backward_desc gradients;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOpiipppOO!O!O&", &type, &to, &backward, &g.cell, &g.gate_order, &g.batch_first,
                        &g.reverse, &g.accumulate, &g.compute, &PyTuple_Type, &g.inputs, &PyTuple_Type, &given,
                        order_of, &og))
    return NULL;
  if (PyTuple_GET_SIZE(g.inputs) != (backward ? 9 : 8) || PyTuple_GET_SIZE(given) != (backward ? 7 : 3))
    return raise_argument("submit_recurrent has %zd inputs and %zd results", PyTuple_GET_SIZE(g.inputs),
                          PyTuple_GET_SIZE(given));
  g.results = PyTuple_New(PyTuple_GET_SIZE(given)); /* a copy, which is changed */
  for (Py_ssize_t i = 0; g.results && i < PyTuple_GET_SIZE(given); ++i)
    PyTuple_SET_ITEM(g.results, i, Py_NewRef(PyTuple_GET_ITEM(given, i)));
  if (g.results && target_of(to, &in.to) && begin_operation(&in, type, &og)) {
    const bool filled = backward ? fill_recurrent_backward(&in, &gradients, &g) : fill_recurrent(&in, &layer, &g);
    PyObject *results = filled ? results_of_cell(&g) : NULL;
    if (results && backward) made = submit_operation(&in, &og, run_recurrent_backward, &gradients, results);
    if (results && !backward) made = submit_operation(&in, &og, run_recurrent, &layer, results);
    Py_XDECREF(results);
  }
  call_done(&in);
  Py_XDECREF(g.results);
  return made;
}
