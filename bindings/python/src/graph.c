/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: recorded submissions. Operands must live as long as a run may use them: each recording returns a keeper (a
 * job that was never submitted, which holds them), and a run's job holds the keepers that were current at its
 * submission. */
#include "submission.h"

PyObject *kept(PyObject *keeper, sg_status status, const char *operation, PyObject *more) {
  return status == SG_STATUS_OK ? Py_BuildValue("(OO)", keeper, more) : raise_call(status, operation);
}

/* set_gemm(graph, index, target, (a, b, c, alpha, beta, op_a, op_b, compute, bias, activation)): (keeper, result). */
PyObject *set_gemm(PyObject *self, PyObject *args) {
  unsigned long long graph;
  int index;
  PyObject *to, *given, *made = NULL;
  gemm_arguments g;
  call in = {0};
  gemm_request p;
  (void)self;
  if (!PyArg_ParseTuple(args, "KiOO", &graph, &index, &to, &given)) return NULL;
  gemm_init(&p);
  if (target_of(to, &in.to) && parse_gemm(given, &g) && call_begin(&in, job_type) && fill_gemm(&in, &p, &g) &&
      has_items(&p)) {
    sg_status status;
    Py_BEGIN_ALLOW_THREADS
    const sg_operation_desc changed = {sizeof changed, SG_OPERATION_GEMM, 1, &p.desc};
    status = sg_graph_update((sg_graph *)(uintptr_t)graph, index, &changed);
    Py_END_ALLOW_THREADS
    made = kept(in.job, status, "gemm", p.result);
  }
  call_done(&in);
  gemm_done(&p);
  return made;
}

/* set_copy(graph, index, target, dst, src, form): (keeper, form). */
PyObject *set_copy(PyObject *self, PyObject *args) {
  unsigned long long graph, width, height, dst_pitch, src_pitch;
  int index;
  PyObject *to, *dst, *src, *form, *made = NULL;
  call in = {0};
  copy c;
  (void)self;
  if (!PyArg_ParseTuple(args, "KiOOOO!", &graph, &index, &to, &dst, &src, &PyTuple_Type, &form) ||
      !PyArg_ParseTuple(form, "KKKK", &width, &height, &dst_pitch, &src_pitch))
    return NULL;
  if (target_of(to, &in.to) && call_begin(&in, job_type) && fill_copy(&in, &c, dst, src)) {
    const sg_copy_desc *const d = &c.desc;
    if (d->width != width || d->height != height || d->dst_pitch != dst_pitch || d->src_pitch != src_pitch)
      raise_argument("src and dst differ in shape or strides from those that were recorded");
    else {
      const sg_operation_desc changed = {sizeof changed, SG_OPERATION_COPY, 1, d};
      made = kept(in.job, sg_graph_update((sg_graph *)(uintptr_t)graph, index, &changed), "copy", form);
    }
  }
  call_done(&in);
  return made;
}

/* submit_graph(type, graph, keepers, result, order): a Job. */
PyObject *submit_graph(PyObject *self, PyObject *args) {
  PyObject *type, *keepers, *result, *made = NULL;
  order_arguments og = {0};
  call in = {.in_order = true};
  (void)self;
  if (!PyArg_ParseTuple(args, "OKOOO&", &type, &in.to.handle, &keepers, &result, order_of, &og)) return NULL;
  if (begin_operation(&in, type, &og)) {
    job_hold(in.job)->owner = Py_NewRef(keepers);
    made = finish_operation(&in, &og, sg_call_graph_run, NULL, result);
  }
  call_done(&in);
  return made;
}
