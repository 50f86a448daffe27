/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: recorded submissions. What is recorded needs its operands for as long as a run may use them: each recording
 * gives a keeper (a job that was never submitted, which holds them), and a run's job holds the keepers of its time. */
#include "submission.h"

static bool parse_target(PyObject *given, target *to) {
  return PyArg_ParseTuple(given, "Kiip", &to->handle, &to->cuda_device, &to->context_id, &to->waits);
}

/* The keeper of a product and the product itself. */
static PyObject *keep_product(PyObject *to_given, PyObject *given, target *to, product *p) {
  product_arguments g;
  if (!parse_target(to_given, to) || !parse_product(given, &g)) return NULL;
  PyObject *keeper = job_new(job_type, holds_of_product(&g));
  if (keeper && fill_product(p, &g, to, job_holds(keeper)) && p->empty)
    raise_argument("a graph records no empty batch");
  if (PyErr_Occurred()) Py_CLEAR(keeper);
  return keeper;
}

/* (keeper, more), or the exception of a refused recording. */
static PyObject *kept(PyObject *keeper, sg_status status, PyObject *more) {
  PyObject *both =
      status == SG_STATUS_OK ? Py_BuildValue("(OO)", keeper, more) : raise_status(status, sg_last_error_message());
  Py_DECREF(keeper);
  return both;
}

/* record_product(graph, target, (a, b, c, alpha, beta, op_a, op_b, compute, bias, activation), stream, priority, flags, options):
 * (keeper, result). */
PyObject *record_product(PyObject *self, PyObject *args) {
  unsigned long long graph, stream, options;
  PyObject *to_given, *given;
  sg_submit submit = SG_SUBMIT_INIT;
  target to;
  product p = {0};
  (void)self;
  if (!PyArg_ParseTuple(args, "KOOKiIK", &graph, &to_given, &given, &stream, &submit.priority, &submit.flags, &options))
    return NULL;
  submit.graph = (sg_graph *)(uintptr_t)graph;
  submit.stream = (sg_stream *)(uintptr_t)stream;
  submit.plan = (const sg_plan_options *)(uintptr_t)options;
  PyObject *keeper = keep_product(to_given, given, &to, &p);
  if (keeper) {
    sg_status status;
    Py_BEGIN_ALLOW_THREADS
    status = sg_gemm_async((sg_context *)(uintptr_t)to.handle, &p.desc, &submit, NULL);
    Py_END_ALLOW_THREADS
    keeper = kept(keeper, status, p.result);
  }
  product_done(&p);
  return keeper;
}

/* set_product(graph, index, target, (a, b, c, alpha, beta, op_a, op_b, compute, bias, activation)): (keeper, result). */
PyObject *set_product(PyObject *self, PyObject *args) {
  unsigned long long graph;
  int index;
  PyObject *to_given, *given;
  target to;
  product p = {0};
  (void)self;
  if (!PyArg_ParseTuple(args, "KiOO", &graph, &index, &to_given, &given)) return NULL;
  PyObject *keeper = keep_product(to_given, given, &to, &p);
  if (keeper) {
    sg_status status;
    Py_BEGIN_ALLOW_THREADS
    status = sg_graph_set_gemm((sg_graph *)(uintptr_t)graph, index, &p.desc);
    Py_END_ALLOW_THREADS
    keeper = kept(keeper, status, p.result);
  }
  product_done(&p);
  return keeper;
}

static PyObject *keep_copy(PyObject *to_given, PyObject *dst, PyObject *src, target *to, copy *c) {
  if (!parse_target(to_given, to)) return NULL;
  PyObject *keeper = job_new(job_type, 2);
  if (keeper && !fill_copy(c, to, job_holds(keeper), dst, src)) Py_CLEAR(keeper);
  return keeper;
}

static PyObject *tuple_of_runs(const runs *r) {
  return Py_BuildValue("(KKKK)", r->width, r->height, r->dst_pitch, r->src_pitch);
}

/* record_copy(graph, target, dst, src, stream, priority, flags): (keeper, form), the form being what must stay. */
PyObject *record_copy(PyObject *self, PyObject *args) {
  unsigned long long graph, stream;
  PyObject *to_given, *dst, *src;
  sg_submit submit = SG_SUBMIT_INIT;
  target to;
  copy c;
  (void)self;
  if (!PyArg_ParseTuple(args, "KOOOKiI", &graph, &to_given, &dst, &src, &stream, &submit.priority, &submit.flags))
    return NULL;
  submit.graph = (sg_graph *)(uintptr_t)graph;
  submit.stream = (sg_stream *)(uintptr_t)stream;
  PyObject *keeper = keep_copy(to_given, dst, src, &to, &c);
  PyObject *form = keeper ? tuple_of_runs(&c.in) : NULL;
  if (form)
    keeper = kept(keeper, run_copy(&to, &c, &submit, NULL), form);
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
  target to;
  copy c;
  runs was;
  (void)self;
  if (!PyArg_ParseTuple(args, "KiOOO(KKKK)", &graph, &index, &to_given, &dst, &src, &was.width, &was.height,
                        &was.dst_pitch, &was.src_pitch))
    return NULL;
  PyObject *keeper = keep_copy(to_given, dst, src, &to, &c);
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

/* submit_graph(type, graph, keepers, result, stream, after, priority, flags): a Job. */
PyObject *submit_graph(PyObject *self, PyObject *args) {
  PyTypeObject *type;
  unsigned long long graph;
  PyObject *keepers, *result;
  order_arguments og = {0};
  order o = {0};
  (void)self;
  if (!PyArg_ParseTuple(args, "OKOOKOiI", &type, &graph, &keepers, &result, &og.stream, &og.after, &og.priority,
                        &og.flags))
    return NULL;
  PyObject *job = job_new(type, 1);
  if (!job) return NULL;
  job_holds(job)->owner = Py_NewRef(keepers);
  if (!fill_order(&o, &og) || !ready_to_post()) {
    Py_CLEAR(job);
  } else {
    sg_job *handle = NULL;
    sg_status status;
    post_completion(&o.submit, job);
    Py_BEGIN_ALLOW_THREADS
    status = sg_graph_run_async((sg_graph *)(uintptr_t)graph, &o.submit, &handle);
    Py_END_ALLOW_THREADS
    job = posted(job, &o, status, handle, result);
  }
  order_done(&o);
  return job;
}
