/* SPDX-License-Identifier: Apache-2.0 */
#include "submission.h"

bool fill_order(order *o, const order_arguments *g) {
  o->after = NULL;
  o->submit = (sg_submit)SG_SUBMIT_INIT;
  o->submit.stream = (sg_stream *)(uintptr_t)g->stream;
  o->submit.priority = g->priority;
  o->submit.flags = g->flags;
  o->submit.plan = (const sg_plan_options *)(uintptr_t)g->options;
  if (PyTuple_CheckExact(g->after) && PyTuple_GET_SIZE(g->after) == 0) return true;
  PyObject *jobs = PySequence_Fast(g->after, "after must be a sequence of jobs");
  if (!jobs) return false;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(jobs);
  o->after = PyMem_Malloc((count ? count : 1) * sizeof *o->after);
  for (Py_ssize_t i = 0; o->after && i < count; ++i) {
    PyObject *job = PySequence_Fast_GET_ITEM(jobs, i);
    if (!PyObject_TypeCheck(job, job_type)) {
      PyErr_Format(PyExc_TypeError, "after[%zd] is %R, which is no job", i, job);
      break;
    }
    sg_job *handle = job_handle(job);
    if (handle) o->after[o->submit.after_count++] = handle; /* without one it ended at once */
  }
  if (!o->after) PyErr_NoMemory();
  Py_DECREF(jobs);
  o->submit.after = o->after;
  return !PyErr_Occurred();
}

void order_done(order *o) { PyMem_Free(o->after); }

/* Small submissions keep the GIL: handing it over would cost more than they do. */
static bool is_small(const sg_gemm_desc *d) {
  return (double)d->c.rows * (double)d->c.cols * (double)(d->a.rows + d->a.cols) * (double)(d->batch + 1) < 4e6;
}

bool ready_to_post(void) {
  if (completion_queue) return true;
  PyObject *started = PyObject_CallNoArgs(hook.start);
  Py_XDECREF(started);
  return started != NULL;
}

PyObject *posted(PyObject *job, order *o, sg_status status, sg_job *handle, PyObject *result) {
  if (status == SG_STATUS_OK) {
    job_submitted(job, handle, result);
    return job;
  }
  unpost_completion(&o->submit, job);
  Py_DECREF(job);
  return raise_status(status, sg_last_error_message());
}

typedef enum product_mode { ASYNC, PLANNED, BLOCKING } product_mode;

static sg_status run_product(product_mode mode, const target *to, const sg_gemm_desc *d, const sg_submit *s,
                             sg_job **handle) {
  void *on = (void *)(uintptr_t)to->handle;
  if (mode == ASYNC) return sg_gemm_async(on, d, s, handle);
  if (mode == PLANNED) return sg_plan_run_async(on, d, s, handle);
  return sg_gemm(on, d, s);
}

/* submit_product(mode, type, target, a, b, c, alpha, beta, op_a, op_b, compute, bias, activation, stream,
 * after, priority, flags, options): a Job, or the result where the mode is BLOCKING. */
PyObject *submit_product(PyObject *self, PyObject *args) {
  int mode;
  PyTypeObject *type;
  target to;
  product_arguments g;
  order_arguments og;
  (void)self;
  if (!PyArg_ParseTuple(args, "iO(Kiip)OOOOOOOOOOKOiIK", &mode, &type, &to.handle, &to.cuda_device, &to.context_id,
                        &to.waits, &g.a, &g.b, &g.c, &g.alpha, &g.beta, &g.op_a, &g.op_b, &g.compute, &g.bias,
                        &g.activation, &og.stream, &og.after, &og.priority, &og.flags, &og.options))
    return NULL;
  product p = {0};
  order o = {0};
  PyObject *job = job_new(type, holds_of_product(&g));
  if (!job) return NULL;
  if (!fill_product(&p, &g, &to, job_holds(job)) || !fill_order(&o, &og) || (mode != BLOCKING && !ready_to_post())) {
    Py_CLEAR(job);
  } else if (p.empty) {
    job_submitted(job, NULL, p.result);
  } else {
    sg_job *handle = NULL;
    sg_status status;
    if (mode != BLOCKING) post_completion(&o.submit, job);
    if (mode != BLOCKING && is_small(&p.desc) && !to.waits) {
      status = run_product((product_mode)mode, &to, &p.desc, &o.submit, &handle);
    } else {
      Py_BEGIN_ALLOW_THREADS
      status = run_product((product_mode)mode, &to, &p.desc, &o.submit, &handle);
      Py_END_ALLOW_THREADS
    }
    job = posted(job, &o, status, handle, p.result);
  }
  if (mode == BLOCKING && job) Py_SETREF(job, Py_NewRef(p.result));
  order_done(&o);
  product_done(&p);
  return job;
}

/* submit_group(type, target, [(a, b, c, alpha, beta, op_a, op_b, compute, bias, activation)...], stream,
 * after, priority, flags, options): one Job, whose result is the list of results. */
PyObject *submit_group(PyObject *self, PyObject *args) {
  PyTypeObject *type;
  target to;
  PyObject *items;
  order_arguments og;
  (void)self;
  if (!PyArg_ParseTuple(args, "O(Kiip)O!KOiIK", &type, &to.handle, &to.cuda_device, &to.context_id, &to.waits,
                        &PyList_Type, &items, &og.stream, &og.after, &og.priority, &og.flags, &og.options))
    return NULL;
  const Py_ssize_t count = PyList_GET_SIZE(items);
  if (count == 0 || count > INT32_MAX) return raise_argument("a group has %zd products", count);
  int holds = 0;
  product_arguments g;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!parse_product(PyList_GET_ITEM(items, i), &g)) return NULL;
    holds += holds_of_product(&g);
  }
  PyObject *job = job_new(type, holds), *results = PyList_New(0);
  product *products = PyMem_Calloc(count, sizeof *products);
  sg_gemm_desc *descs = PyMem_Calloc(count, sizeof *descs);
  order o = {0};
  int32_t used = 0;
  bool fine = job && results && products && descs && fill_order(&o, &og) && ready_to_post();
  hold *next = fine ? job_holds(job) : NULL;
  for (Py_ssize_t i = 0; fine && i < count; ++i) {
    parse_product(PyList_GET_ITEM(items, i), &g);
    fine = fill_product(&products[i], &g, &to, next) && PyList_Append(results, products[i].result) == 0;
    next += holds_of_product(&g);
    if (fine && !products[i].empty) descs[used++] = products[i].desc;
  }
  if (!fine) {
    Py_CLEAR(job);
    if (!PyErr_Occurred()) PyErr_NoMemory();
  } else if (used == 0) {
    job_submitted(job, NULL, results);
  } else {
    sg_job *handle = NULL;
    sg_status status;
    post_completion(&o.submit, job);
    Py_BEGIN_ALLOW_THREADS
    status = sg_gemm_grouped_async((sg_context *)(uintptr_t)to.handle, descs, used, &o.submit, &handle);
    Py_END_ALLOW_THREADS
    job = posted(job, &o, status, handle, results);
  }
  for (Py_ssize_t i = 0; products && i < count; ++i) product_done(&products[i]);
  PyMem_Free(products);
  PyMem_Free(descs);
  Py_XDECREF(results);
  order_done(&o);
  return job;
}

/* make_plan(target, a, b, c, alpha, beta, op_a, op_b, compute, bias, activation, options): the plan's
 * handle. */
PyObject *make_plan(PyObject *self, PyObject *args) {
  target to;
  product_arguments g;
  unsigned long long options;
  (void)self;
  if (!PyArg_ParseTuple(args, "(Kiip)OOOOOOOOOOK", &to.handle, &to.cuda_device, &to.context_id, &to.waits, &g.a, &g.b,
                        &g.c, &g.alpha, &g.beta, &g.op_a, &g.op_b, &g.compute, &g.bias, &g.activation, &options))
    return NULL;
  product p = {0};
  PyObject *made = NULL, *keeper = job_new(job_type, holds_of_product(&g));
  if (keeper && fill_product(&p, &g, &to, job_holds(keeper))) {
    sg_plan_options chosen = SG_PLAN_OPTIONS_INIT;
    if (options) chosen = *(const sg_plan_options *)(uintptr_t)options;
    const struct {
      const PyObject *object;
      sg_memory_kind *place;
    } placed[] = {{g.a, &chosen.place_a}, {g.b, &chosen.place_b}, {p.result, &chosen.place_c}};
    for (int i = 0; i < 3; ++i)
      if (PyObject_TypeCheck((PyObject *)placed[i].object, matrix_type) && *placed[i].place == SG_MEMORY_AUTO)
        *placed[i].place = ((const matrix_object *)placed[i].object)->memory;
    sg_plan *plan = NULL;
    sg_status status;
    Py_BEGIN_ALLOW_THREADS
    status = sg_plan_create((sg_context *)(uintptr_t)to.handle, &p.desc, &chosen, &plan);
    Py_END_ALLOW_THREADS
    made = status == SG_STATUS_OK ? PyLong_FromUnsignedLongLong((uintptr_t)plan)
                                  : raise_status(status, sg_last_error_message());
  }
  Py_XDECREF(keeper);
  product_done(&p);
  return made;
}
