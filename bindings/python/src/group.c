/* SPDX-License-Identifier: Apache-2.0 */
#include "submission.h"

/* Reads all of them; the descriptors of those that are not empty, one after another. -1: an exception. */
static int32_t fill_group(call *in, PyObject *items, gemm_request *requests, sg_gemm_desc *descs, PyObject *results) {
  int32_t used = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i) {
    gemm_arguments g;
    if (!parse_gemm(PyTuple_GET_ITEM(items, i), &g) || !fill_gemm(in, &requests[i], &g) ||
        PyList_Append(results, requests[i].result) < 0)
      return -1;
    if (!requests[i].empty) descs[used++] = requests[i].desc;
  }
  return used;
}

/* submit_group(type, target, ((a, b, c, alpha, beta, op_a, op_b, compute, bias, activation)...), stream,
 * after, priority, untracked, options, copies, timeout, label): one Job, whose result is the list of results. */
PyObject *submit_group(PyObject *self, PyObject *args) {
  PyObject *type, *to, *items, *made = NULL;
  order_arguments og = {0};
  int copies;
  call in = {.in_order = true};
  (void)self;
  if (!PyArg_ParseTuple(args, "OOO!pO&", &type, &to, &PyTuple_Type, &items, &copies, order_of, &og)) return NULL;
  const Py_ssize_t count = PyTuple_GET_SIZE(items);
  if (count == 0 || count > INT32_MAX) return raise_argument("a group has %zd products", count);
  in.copies = copies != 0;
  PyObject *results = PyList_New(0);
  gemm_request *requests = PyMem_Calloc((size_t)count, sizeof *requests);
  sg_gemm_desc *descs = PyMem_Calloc((size_t)count, sizeof *descs);
  if (!results || !requests || !descs)
    PyErr_NoMemory();
  else if (target_of(to, &in.to) && begin_operation(&in, type, &og)) {
    const int32_t used = fill_group(&in, items, requests, descs, results);
    const int64_t group[2] = {(int64_t)(intptr_t)descs, used};
    if (used >= 0) made = finish_operation(&in, &og, used > 0 ? sg_call_gemm_grouped : NULL, group, results);
  }
  for (Py_ssize_t i = 0; requests && i < count; ++i) gemm_done(&requests[i]);
  PyMem_Free(requests);
  PyMem_Free(descs);
  Py_XDECREF(results);
  call_done(&in);
  return made;
}
