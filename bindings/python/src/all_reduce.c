/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over devices. */
#include "submission.h"

/* Elements of an array without gaps in row-major order; -1 and an exception: it has gaps or another order. */
static int64_t elements_of(const view *v, const char *name) {
  int64_t count = 1;
  for (int i = 0; i < v->ndim; ++i)
    if (v->shape[i] == 0) return 0;
  for (int i = v->ndim - 1; i >= 0; --i) {
    if (v->shape[i] > 1 && v->strides[i] != count * sg_dtype_size(v->dtype)) {
      raise_argument("%s has gaps, or is not in row-major order", name);
      return -1;
    }
    count *= v->shape[i];
  }
  return count;
}

/* The addresses of arrays of one type and number of elements. `results`: a list, which receives the arrays. */
static bool fill_vectors(call *in, PyObject *given, sg_all_reduce_desc *desc, void **addresses, PyObject *results) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) {
    char name[32];
    view v;
    snprintf(name, sizeof name, "operands[%zd]", i);
    PyObject *const array = settled(in, PyTuple_GET_ITEM(given, i), name);
    if (!array || !see_array(in, array, name, true, &v)) return false;
    const int64_t elements = elements_of(&v, name);
    if (elements < 0) return false;
    if (i > 0 && (v.dtype != desc->dtype || elements != desc->elements))
      return raise_argument("%s has %lld elements of %s, and operands[0] has %lld of %s; they must be equal", name,
                            (long long)elements, sg_dtype_name(v.dtype), (long long)desc->elements,
                            sg_dtype_name(desc->dtype));
    desc->dtype = v.dtype;
    desc->elements = elements;
    addresses[i] = v.data;
    if (PyList_Append(results, array) != 0) return false;
  }
  return true;
}

/* submit_all_reduce(type or graph, target, (array, ...), order): a Job whose result is the list of the arrays. */
PyObject *submit_all_reduce(PyObject *self, PyObject *args) {
  PyObject *type, *to, *given, *made = NULL;
  order_arguments order = {0};
  call in = {.operation = "all_reduce", .in_order = true};
  sg_all_reduce_desc desc = SG_ALL_REDUCE_DESC_INIT;
  void *addresses[SG_MAX_ALL_REDUCE_OPERANDS];
  (void)self;
  if (!PyArg_ParseTuple(args, "OOO!O&", &type, &to, &PyTuple_Type, &given, order_of, &order)) return NULL;
  const Py_ssize_t count = PyTuple_GET_SIZE(given);
  if (count < 1 || count > SG_MAX_ALL_REDUCE_OPERANDS) {
    raise_argument("there are %zd operands; an all-reduce has from 1 to %d", count, SG_MAX_ALL_REDUCE_OPERANDS);
    return NULL;
  }
  desc.operands = addresses;
  desc.operand_count = (int32_t)count;
  PyObject *const results = PyList_New(0);
  if (results && target_of(to, &in.to) && begin_operation(&in, type, &order) &&
      fill_vectors(&in, given, &desc, addresses, results))
    made = finish_operation(&in, &order, SG_CALL_NUMBER_all_reduce, &desc, results);
  call_done(&in);
  Py_XDECREF(results);
  return made;
}
