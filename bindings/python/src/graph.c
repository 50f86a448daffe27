/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: recorded submissions. Operands must live as long as a run may use them: each recording returns a keeper (a
 * job that was never submitted, which holds them), and a run's job holds the keepers that were current at its
 * submission. */
#include "submission.h"

/* The keeper of a GEMM and the request itself. */
static PyObject *keep_gemm(PyObject *to, PyObject *given, call *in, gemm_request *p) {
  gemm_arguments g;
  gemm_init(p);
  if (target_of(to, &in->to) && parse_gemm(given, &g) && call_begin(in, job_type) && fill_gemm(in, p, &g) && p->empty)
    raise_argument("a graph records no empty batch");
  if (PyErr_Occurred()) Py_CLEAR(in->job);
  PyObject *keeper = in->job;
  in->job = NULL;
  call_done(in);
  return keeper;
}

/* (keeper, more), or the exception of a refused recording. Takes the keeper. */
PyObject *kept(PyObject *keeper, sg_status status, PyObject *more) {
  PyObject *both =
      status == SG_STATUS_OK ? Py_BuildValue("(OO)", keeper, more) : raise_status(status, sg_last_error_message());
  Py_DECREF(keeper);
  return both;
}

/* A recorded submission runs after no job. */
bool order_recorded(const order_arguments *g, unsigned long long graph, sg_submit *submit) {
  call none = {0};
  const bool filled = fill_order(&none, g, submit);
  submit->graph = (sg_graph *)(uintptr_t)graph;
  call_done(&none);
  return filled;
}

/* record_gemm(graph, target, (a, b, c, alpha, beta, op_a, op_b, compute, bias, activation), order): (keeper, result).
 */
PyObject *record_gemm(PyObject *self, PyObject *args) {
  unsigned long long graph;
  PyObject *to_given, *given;
  order_arguments og = {0};
  sg_submit submit;
  call in = {0};
  gemm_request p;
  (void)self;
  if (!PyArg_ParseTuple(args, "KOOO&", &graph, &to_given, &given, order_of, &og) ||
      !order_recorded(&og, graph, &submit))
    return NULL;
  PyObject *keeper = keep_gemm(to_given, given, &in, &p);
  if (keeper) {
    sg_status status;
    Py_BEGIN_ALLOW_THREADS
    status = sg_gemm_async((sg_context *)(uintptr_t)in.to.handle, &p.desc, &submit, NULL);
    Py_END_ALLOW_THREADS
    keeper = kept(keeper, status, p.result);
  }
  gemm_done(&p);
  return keeper;
}

/* set_gemm(graph, index, target, (a, b, c, alpha, beta, op_a, op_b, compute, bias, activation)): (keeper, result).
 */
PyObject *set_gemm(PyObject *self, PyObject *args) {
  unsigned long long graph;
  int index;
  PyObject *to_given, *given;
  call in = {0};
  gemm_request p;
  (void)self;
  if (!PyArg_ParseTuple(args, "KiOO", &graph, &index, &to_given, &given)) return NULL;
  PyObject *keeper = keep_gemm(to_given, given, &in, &p);
  if (keeper) {
    sg_status status;
    Py_BEGIN_ALLOW_THREADS
    status = sg_graph_set_gemm((sg_graph *)(uintptr_t)graph, index, &p.desc);
    Py_END_ALLOW_THREADS
    keeper = kept(keeper, status, p.result);
  }
  gemm_done(&p);
  return keeper;
}

static PyObject *keep_copy(PyObject *to, PyObject *dst, PyObject *src, call *in, copy *c) {
  if (!target_of(to, &in->to) || !call_begin(in, job_type)) return NULL;
  PyObject *keeper = fill_copy(in, c, dst, src) ? Py_NewRef(in->job) : NULL;
  call_done(in);
  return keeper;
}

static PyObject *tuple_of_runs(const runs *r) {
  return Py_BuildValue("(KKKK)", r->width, r->height, r->dst_pitch, r->src_pitch);
}

/* record_copy(graph, target, dst, src, order): (keeper, form); later operands must
 * have that form. */
PyObject *record_copy(PyObject *self, PyObject *args) {
  unsigned long long graph;
  PyObject *to_given, *dst, *src;
  order_arguments og = {0};
  sg_submit submit;
  call in = {0};
  copy c;
  (void)self;
  if (!PyArg_ParseTuple(args, "KOOOO&", &graph, &to_given, &dst, &src, order_of, &og) ||
      !order_recorded(&og, graph, &submit))
    return NULL;
  PyObject *keeper = keep_copy(to_given, dst, src, &in, &c);
  PyObject *form = keeper ? tuple_of_runs(&c.in) : NULL;
  if (form)
    keeper = kept(keeper, run_copy(&in, &c, &submit, NULL), form);
  else
    Py_CLEAR(keeper);
  Py_XDECREF(form);
  return keeper;
}

/* set_copy(graph, index, target, dst, src, form): (keeper, form). */
PyObject *set_copy(PyObject *self, PyObject *args) {
  unsigned long long graph;
  int index;
  PyObject *to_given, *dst, *src;
  call in = {0};
  copy c;
  runs was;
  (void)self;
  if (!PyArg_ParseTuple(args, "KiOOO(KKKK)", &graph, &index, &to_given, &dst, &src, &was.width, &was.height,
                        &was.dst_pitch, &was.src_pitch))
    return NULL;
  PyObject *keeper = keep_copy(to_given, dst, src, &in, &c);
  if (!keeper) return NULL;
  PyObject *form = tuple_of_runs(&c.in);
  if (form && (c.in.width != was.width || c.in.height != was.height || c.in.dst_pitch != was.dst_pitch ||
               c.in.src_pitch != was.src_pitch))
    raise_argument("src and dst differ in shape or strides from those that were recorded");
  if (PyErr_Occurred())
    Py_CLEAR(keeper);
  else
    keeper = kept(keeper, sg_graph_set_copy((sg_graph *)(uintptr_t)graph, index, c.dst, c.src), form);
  Py_XDECREF(form);
  return keeper;
}

/* submit_graph(type, graph, keepers, result, order): a Job. */
PyObject *submit_graph(PyObject *self, PyObject *args) {
  PyTypeObject *type;
  unsigned long long graph;
  PyObject *keepers, *result;
  order_arguments og = {0};
  call in = {.in_order = true};
  sg_submit submit;
  PyObject *made = NULL;
  (void)self;
  if (!PyArg_ParseTuple(args, "OKOOO&", &type, &graph, &keepers, &result, order_of, &og)) return NULL;
  if (call_begin(&in, type) && fill_order(&in, &og, &submit) && ready_to_post()) {
    sg_job *handle = NULL;
    sg_status status;
    job_hold(in.job)->owner = Py_NewRef(keepers);
    post_completion(&submit, in.job);
    Py_BEGIN_ALLOW_THREADS
    status = sg_graph_run_async((sg_graph *)(uintptr_t)graph, &submit, &handle);
    Py_END_ALLOW_THREADS
    made = posted(&in, &submit, status, handle, result);
  }
  call_done(&in);
  return made;
}
