/* SPDX-License-Identifier: Apache-2.0 */
/* Python's C API. With Py_LIMITED_API, for Python 3.12 and newer, its functions stand for the macros that it does not
 * have: an extension that is built so works with every later version. */
#ifndef STREAMGEMM_PYTHON_API_H
#define STREAMGEMM_PYTHON_API_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h> /* for SWIG's code */

#ifdef Py_LIMITED_API
#define PyTuple_GET_SIZE PyTuple_Size
#define PyTuple_GET_ITEM PyTuple_GetItem
#define PyTuple_SET_ITEM PyTuple_SetItem
#define PyList_GET_SIZE PyList_Size
#define PyList_GET_ITEM PyList_GetItem
#define PyList_SET_ITEM PyList_SetItem
#define PyBytes_AS_STRING PyBytes_AsString
#define PyFloat_AS_DOUBLE PyFloat_AsDouble
#define PyUnicode_AsUTF8(TEXT) PyUnicode_AsUTF8AndSize(TEXT, NULL)
#define PyObject_CallOneArg(FUNCTION, ARGUMENT) PyObject_CallFunctionObjArgs(FUNCTION, ARGUMENT, NULL)
#define Py_XSETREF(TO, VALUE)             \
  do {                                    \
    PyObject *const old = (PyObject *)TO; \
    TO = VALUE;                           \
    Py_XDECREF(old);                      \
  } while (0)
#endif

/* Defines guarded_NAME, which calls NAME under the package's lock. What is static in C, and a job, is read and written
 * under the GIL; where Python has none, under this lock, which, too, is released while a thread waits or other Python
 * code blocks. */
#ifdef Py_GIL_DISABLED
extern PyObject *package_lock;
#define SG_GUARDED(NAME, PARAMETERS, ARGUMENTS) \
  static PyObject *guarded_##NAME PARAMETERS {  \
    PyObject *made;                             \
    Py_BEGIN_CRITICAL_SECTION(package_lock);    \
    made = NAME ARGUMENTS;                      \
    Py_END_CRITICAL_SECTION();                  \
    return made;                                \
  }
#else
#define SG_GUARDED(NAME, PARAMETERS, ARGUMENTS) \
  static PyObject *guarded_##NAME PARAMETERS { return NAME ARGUMENTS; }
#endif

/* The items of a tuple, borrowed: `room` holds up to `capacity` of them where they cannot be read in place. */
static inline PyObject *const *items_of(PyObject *tuple, PyObject **room, int capacity) {
#ifdef Py_LIMITED_API
  const Py_ssize_t count = PyTuple_Size(tuple);
  for (Py_ssize_t i = 0; i < count && i < capacity; ++i) room[i] = PyTuple_GetItem(tuple, i);
  return room;
#else
  (void)room, (void)capacity;
  return &PyTuple_GET_ITEM(tuple, 0);
#endif
}

#endif
