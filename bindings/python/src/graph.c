/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: recorded submissions. Operands must live as long as a run may use them: each recording returns a keeper (a
 * job that was never submitted, which holds them), and a run's job holds the keepers that were current at its
 * submission. */
#include "submission.h"

PyObject *kept(PyObject *keeper, sg_status status, const char *operation, PyObject *more) {
  return status == SG_STATUS_OK ? Py_BuildValue("(OO)", keeper, more) : raise_call(status, operation);
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
    made = finish_operation(&in, &og, SG_CALL_NUMBER_graph_run, NULL, result);
  }
  call_done(&in);
  return made;
}
