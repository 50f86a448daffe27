/* SPDX-License-Identifier: Apache-2.0 */
#include "submission.h"

void name_item(const char *list, Py_ssize_t index) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const bool is_ours = PyErr_GivenExceptionMatches(type, PyExc_ValueError) || type == PyExc_TypeError;
  PyObject *const text = is_ours ? PyUnicode_FromFormat("%s[%zd]: %S", list, index, value) : NULL;
  if (text) {
    PyErr_SetObject(type, text);
    Py_DECREF(text);
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
  } else {
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
  }
}

/* Reads all of them; a descriptor for each, of which those of empty batches do nothing. */
static bool fill_group(call *in, PyObject *items, gemm_request *requests, sg_gemm_desc *descs, PyObject *results) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i) {
    gemm_arguments g;
    if (!parse_gemm(PyTuple_GET_ITEM(items, i), &g) || !fill_gemm(in, &requests[i], &g) ||
        PyList_Append(results, requests[i].result) < 0)
      return name_item("products", i), false;
    descs[i] = requests[i].desc;
    if (requests[i].empty) descs[i] = (sg_gemm_desc)SG_GEMM_DESC_INIT;
  }
  return true;
}

/* submit_group(type, target, ((a, b, c, alpha, beta, op_a, op_b, compute, bias, activation)...), stream,
 * after, priority, untracked, options, copies, timeout, label): one Job, whose result is the list of results. */
PyObject *submit_group(PyObject *self, PyObject *args) {
  PyObject *type, *to, *items, *made = NULL;
  order_arguments og = {0};
  int copies;
  call in = {.operation = "gemm_grouped", .in_order = true};
  (void)self;
  if (!PyArg_ParseTuple(args, "OOO!pO&", &type, &to, &PyTuple_Type, &items, &copies, order_of, &og)) return NULL;
  const Py_ssize_t count = PyTuple_GET_SIZE(items);
  if (count == 0 || count > INT32_MAX)
    return raise_argument("products has %zd items; it must have from 1 to %d", count, INT32_MAX);
  in.copies = copies != 0;
  PyObject *results = PyList_New(0);
  gemm_request *requests = PyMem_Calloc((size_t)count, sizeof *requests);
  sg_gemm_desc *descs = PyMem_Calloc((size_t)count, sizeof *descs);
  if (!results || !requests || !descs)
    PyErr_NoMemory();
  else if (target_of(to, &in.to) && begin_operation(&in, type, &og)) {
    const int64_t group[2] = {(int64_t)(intptr_t)descs, count};
    if (fill_group(&in, items, requests, descs, results))
      made = finish_operation(&in, &og, SG_CALL_NUMBER_gemm_grouped, group, results);
  }
  for (Py_ssize_t i = 0; requests && i < count; ++i) gemm_done(&requests[i]);
  PyMem_Free(requests);
  PyMem_Free(descs);
  Py_XDECREF(results);
  call_done(&in);
  return made;
}
