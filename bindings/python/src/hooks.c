/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "native.h"

hooks hook;

PyObject *install(PyObject *self, PyObject *args) {
  hooks given;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOOOOOOO", &given.error, &given.as_matrix, &given.make_result, &given.is_masked,
                        &given.make_condition, &given.no_condition, &given.start, &given.ops, &given.computes,
                        &given.activations, &given.enums, &given.brief))
    return NULL;
  PyObject **all = (PyObject **)&given;
  for (size_t i = 0; i < sizeof given / sizeof *all; ++i) Py_INCREF(all[i]); /* for the life of the process */
  hook = given;
  Py_RETURN_NONE;
}

PyObject *raise_status(sg_status status, const char *message) {
  if (!hook.error) return PyErr_Format(PyExc_RuntimeError, "%s: %s", sg_status_name(status), message);
  PyObject *error = PyObject_CallFunction(hook.error, "is", (int)status, message);
  if (!error) return NULL;
  PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_DECREF(error);
  return NULL;
}

PyObject *raise_call(sg_status status, const char *operation) {
  const char *const message = sg_last_error_marked();
  if (status == SG_STATUS_SHUTDOWN &&
      ends_with_interpreter()) { /* silently, as the interpreter would end it a moment later */
    PyErr_SetNone(PyExc_SystemExit);
    return NULL;
  }
  if (!hook.error) return raise_status(status, message);
  PyObject *error = PyObject_CallFunction(hook.error, "iss", (int)status, message, operation ? operation : "");
  if (!error) return NULL;
  PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_DECREF(error);
  return NULL;
}

PyObject *raise_argument(const char *format, ...) {
  va_list values;
  va_start(values, format);
  PyObject *text = PyUnicode_FromFormatV(format, values);
  va_end(values);
  if (!text) return NULL;
  const char *message = PyUnicode_AsUTF8(text);
  if (message) raise_status(SG_STATUS_INVALID_ARGUMENT, message);
  Py_DECREF(text);
  return NULL;
}

const char *shown(PyObject *value, char *text) {
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace); /* may be the reason for the message */
  PyObject *const made = PyObject_CallOneArg(hook.brief, value);
  const char *const brief = made ? PyUnicode_AsUTF8(made) : NULL;
  snprintf(text, SHOWN_SIZE, "%s", brief ? brief : "an object that has no text");
  Py_XDECREF(made);
  PyErr_Restore(type, error, trace);
  return text;
}

const char *text_of(PyObject *value, const char *argument) {
  Py_ssize_t size;
  char room[SHOWN_SIZE];
  if (!PyUnicode_Check(value)) {
    PyErr_Format(PyExc_TypeError, "%s is %s, which is no string", argument, shown(value, room));
    return NULL;
  }
  const char *text = PyUnicode_AsUTF8AndSize(value, &size);
  if (text && strlen(text) != (size_t)size) {
    raise_argument("%s is %R, which holds a NUL", argument, value);
    return NULL;
  }
  return text;
}

int enum_of(PyObject *value, PyObject *table, const char *argument) {
  /* A plain number is no name: of row_reduce(x, 0) it would be a dimension. */
  if (PyLong_Check(value) && !PyLong_CheckExact(value) && !PyBool_Check(value)) return (int)PyLong_AsLong(value);
  PyObject *found = PyUnicode_Check(value) ? PyDict_GetItemWithError(table, value) : NULL;
  if (found) return (int)PyLong_AsLong(found);
  if (PyErr_Occurred()) return -1;
  char room[SHOWN_SIZE];
  PyObject *names = PyDict_Keys(table);
  if (names) raise_argument("%s is %s, which is none of %R", argument, shown(value, room), names);
  Py_XDECREF(names);
  return -1;
}
