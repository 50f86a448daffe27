/* SPDX-License-Identifier: Apache-2.0 */
/* New arrays for results. NumPy's, which are the most frequent, are made without a call into the package. */
#include "submission.h"

enum { DTYPES = 16 };

static struct {
  PyTypeObject *array;          /* numpy.ndarray; NULL until one was seen */
  PyObject *empty, *by_columns; /* numpy.empty; "F" */
  PyObject *dtypes[DTYPES];     /* by sg_dtype; NULL: NumPy has none by itself */
} numpy;

/* _remember_numpy(ndarray, empty, {sg_dtype: numpy.dtype}). */
PyObject *remember_numpy(PyObject *self, PyObject *args) {
  PyObject *array, *empty, *dtypes, *key, *value;
  Py_ssize_t at = 0;
  (void)self;
  if (!PyArg_ParseTuple(args, "O!OO!", &PyType_Type, &array, &empty, &PyDict_Type, &dtypes)) return NULL;
  while (PyDict_Next(dtypes, &at, &key, &value)) {
    const long d = PyLong_AsLong(key);
    if (d < 0 || d >= DTYPES) return raise_argument("%R is no element type", key);
    Py_XSETREF(numpy.dtypes[d], Py_NewRef(value));
  }
  Py_XSETREF(numpy.empty, Py_NewRef(empty));
  if (!numpy.by_columns && !(numpy.by_columns = PyUnicode_InternFromString("F"))) return NULL;
  Py_XSETREF(numpy.array, (PyTypeObject *)Py_NewRef(array));
  Py_RETURN_NONE;
}

sg_dtype product_dtype(sg_dtype of_operands) {
  switch (of_operands) {
    case SG_DTYPE_I8: return SG_DTYPE_I32;
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: return SG_DTYPE_F32;
    default: return of_operands;
  }
}

static PyObject *one(PyObject *like, PyObject *extents, sg_dtype dtype, bool by_columns, const char *name) {
  PyObject *made = NULL;
  for (int turn = 0; turn < 2; ++turn) {
    if (Py_IS_TYPE(like, numpy.array) && (unsigned)dtype < DTYPES && numpy.dtypes[dtype]) {
      PyObject *const args[] = {extents, numpy.dtypes[dtype], by_columns ? numpy.by_columns : NULL};
      Py_XSETREF(made, PyObject_Vectorcall(numpy.empty, args, by_columns ? 3 : 2, NULL));
      return made;
    }
    if (made) break;
    made = PyObject_CallFunction(hook.make_result, "OOss", like, extents, sg_dtype_name(dtype), name);
    if (!made || !by_columns) break; /* otherwise NumPy's arrays may be known now */
  }
  return made;
}

PyObject *new_result(PyObject *like, sg_dtype dtype, const gemm_shape *shape, bool listed, bool by_columns,
                     const char *name) {
  PyObject *extents = shape_tuple(shape, listed);
  PyObject *made = !extents ? NULL : listed ? PyList_New(shape->count) : one(like, extents, dtype, by_columns, name);
  for (Py_ssize_t i = 0; made && listed && i < shape->count; ++i) {
    PyObject *item = one(like, extents, dtype, by_columns, name);
    if (item)
      PyList_SET_ITEM(made, i, item);
    else
      Py_CLEAR(made);
  }
  Py_XDECREF(extents);
  return made;
}
