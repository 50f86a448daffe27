/* SPDX-License-Identifier: Apache-2.0 */
/* Custom operations: functions in Python, called on the library's threads. */
#include <stdatomic.h>
#include <time.h>

#include "submission.h"

/* Functions that the library has called and that run, and whether the interpreter exits: then none may enter it. */
static atomic_int calls_running;
static atomic_bool is_ending;
static unsigned long ending_thread;

bool enter_python(PyGILState_STATE *state) {
  atomic_fetch_add(&calls_running, 1);
  if (atomic_load(&is_ending)) {
    atomic_fetch_sub(&calls_running, 1);
    return false;
  }
  *state = PyGILState_Ensure();
  return true;
}

bool ends_with_interpreter(void) { return atomic_load(&is_ending) && PyThread_get_thread_ident() != ending_thread; }

void leave_python(PyGILState_STATE state) {
  PyGILState_Release(state);
  atomic_fetch_sub(&calls_running, 1);
}

static void set_message(const sg_custom_call *call, const char *text) {
  snprintf(call->message, (size_t)call->message_size, "%s", text);
}

/* The exception as a text for the job's message. */
static sg_status set_exception_message(const sg_custom_call *call) {
  const bool out_of_memory = PyErr_ExceptionMatches(PyExc_MemoryError);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject *const name = PyObject_GetAttrString(type, "__name__");
  PyObject *const text = name ? PyUnicode_FromFormat("%S: %S", name, value ? value : Py_None) : NULL;
  PyObject *const shown = text ? text : name; /* the exception has no text */
  const char *encoded = shown ? PyUnicode_AsUTF8(shown) : NULL;
  if (!encoded && name) PyErr_Clear(), encoded = PyUnicode_AsUTF8(name); /* the text is not Unicode */
  set_message(call, encoded ? encoded : "an exception");
  PyErr_Clear();
  Py_XDECREF(text);
  Py_XDECREF(name);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return out_of_memory ? SG_STATUS_OUT_OF_MEMORY : SG_STATUS_BACKEND_FAILURE;
}

/* `user`: a callable of the native stream and the addresses. */
static sg_status call_python(const sg_custom_call *call, void *user) {
  sg_status status = SG_STATUS_OK;
  PyGILState_STATE state;
  if (!enter_python(&state)) {
    set_message(call, "the interpreter is exiting");
    return SG_STATUS_SHUTDOWN;
  }
  PyObject *addresses = PyTuple_New(call->operand_count);
  for (int32_t i = 0; addresses && i < call->operand_count; ++i) {
    PyObject *address = PyLong_FromVoidPtr(call->operands[i]);
    if (address)
      PyTuple_SET_ITEM(addresses, i, address);
    else
      Py_CLEAR(addresses);
  }
  PyObject *returned = addresses ? PyObject_CallFunction((PyObject *)user, "KO",
                                                         (unsigned long long)(uintptr_t)call->native_stream, addresses)
                                 : NULL;
  if (!returned) status = set_exception_message(call);
  Py_XDECREF(returned);
  Py_XDECREF(addresses);
  leave_python(state);
  return status;
}

/* end_calls(): at interpreter exit; waits for the functions that run. Later ones fail their jobs, and pushes. */
PyObject *end_calls(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  ending_thread = PyThread_get_thread_ident();
  atomic_store(&is_ending, true);
  Py_BEGIN_ALLOW_THREADS
  while (atomic_load(&calls_running) > 0) nanosleep(&(struct timespec){0, 200000}, NULL);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

/* In a child of fork, which has none of the threads. */
PyObject *forget_calls(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  atomic_store(&calls_running, 0);
  Py_RETURN_NONE;
}

/* (shape, strides, dtype, readonly, CUDA device or -1), from which the function's operand is made. On the host what is
 * only read is read-only; DLPack before 1.0 exports no such device memory. */
static PyObject *form_of(const view *v, sg_access access) {
  const bool on_cuda = v->place == ON_CUDA, readonly = v->readonly || (access == SG_ACCESS_READ && !on_cuda);
  PyObject *shape = shape_text(v), *strides = strides_text(v);
  PyObject *form = shape && strides ? Py_BuildValue("(OOsii)", shape, strides, sg_dtype_name(v->dtype), readonly,
                                                    on_cuda ? v->device_id : -1)
                                    : NULL;
  Py_XDECREF(shape);
  Py_XDECREF(strides);
  return form;
}

/* Reads the operand's range of bytes: from its first element to the end of its last. */
static bool fill_range(const view *v, const char *name, sg_access access, sg_custom_operand *to) {
  uint64_t bytes = sg_dtype_size(v->dtype);
  for (int i = 0; i < v->ndim; ++i) {
    if (v->shape[i] == 0) return raise_argument("%s is empty", name);
    if (v->shape[i] > 1 && v->strides[i] < 0) return raise_argument("%s runs backwards", name);
    if (v->shape[i] > 1) bytes += (uint64_t)(v->shape[i] - 1) * (uint64_t)v->strides[i];
  }
  *to = (sg_custom_operand){v->data, bytes, access};
  return true;
}

/* Operands in the order of the function's parameters; forms becomes a list of theirs, and result what is written: an
 * array, or a tuple of several. */
static bool fill_operands(call *in, PyObject *given, sg_custom_operand *operands, PyObject *forms, PyObject **result) {
  PyObject *written = PyList_New(0);
  bool ready = written != NULL;
  for (Py_ssize_t i = 0; ready && i < PyTuple_GET_SIZE(given); ++i) {
    PyObject *array;
    const char *name;
    int access;
    view v;
    ready = PyArg_ParseTuple(PyTuple_GET_ITEM(given, i), "Ois", &array, &access, &name) &&
            (array = settled(in, array, name)) && see_array(in, array, name, access != SG_ACCESS_READ, &v) &&
            fill_range(&v, name, (sg_access)access, &operands[i]);
    PyObject *form = ready ? form_of(&v, (sg_access)access) : NULL;
    ready = form && PyList_Append(forms, form) == 0;
    Py_XDECREF(form);
    if (ready && access != SG_ACCESS_READ) ready = PyList_Append(written, array) == 0;
  }
  if (ready && PyList_GET_SIZE(written) == 1)
    *result = Py_NewRef(PyList_GET_ITEM(written, 0));
  else if (ready)
    *result = PyList_AsTuple(written);
  Py_XDECREF(written);
  return *result != NULL;
}

/* The function of what was planned or recorded, if it is the same and its operands look the same. */
static PyObject *same_function(PyObject *bound, PyObject *earlier) {
  PyObject *const known = ((job_object *)earlier)->function;
  static const char *const names[] = {"_function", "_forms"};
  int same = known != NULL;
  for (int i = 0; same > 0 && i < 2; ++i) {
    PyObject *const was = PyObject_GetAttrString(known, names[i]), *const is = PyObject_GetAttrString(bound, names[i]);
    same = was && is ? PyObject_RichCompareBool(was, is, Py_EQ) : -1;
    Py_XDECREF(was);
    Py_XDECREF(is);
  }
  if (same == 0)
    raise_argument("function is not the one that was planned or recorded, or its arrays have other shapes");
  Py_DECREF(bound);
  return same > 0 ? Py_NewRef(known) : NULL;
}

/* submit_custom(type or graph, target, bind, ((array, access, name), ...), seconds, compute_units, order): a Job whose
 * result is what is written. bind(forms) makes the callable that is called with the native stream and the addresses. */
PyObject *submit_custom(PyObject *self, PyObject *args) {
  PyObject *type, *to, *bind, *given, *made = NULL, *result = NULL, *bound = NULL;
  order_arguments order = {0};
  call in = {.operation = "custom", .in_order = true};
  sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
  sg_custom_operand operands[SG_MAX_CUSTOM_OPERANDS];
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOO!diO&", &type, &to, &bind, &PyTuple_Type, &given, &desc.seconds, &desc.compute_units,
                        order_of, &order))
    return NULL;
  const Py_ssize_t count = PyTuple_GET_SIZE(given);
  if (count < 1 || count > SG_MAX_CUSTOM_OPERANDS) {
    raise_argument("there are %zd operands; a custom operation has from 1 to %d", count, SG_MAX_CUSTOM_OPERANDS);
    return NULL;
  }
  PyObject *forms = PyList_New(0);
  if (forms && target_of(to, &in.to) && begin_operation(&in, type, &order) &&
      fill_operands(&in, given, operands, forms, &result) && (bound = PyObject_CallOneArg(bind, forms)) &&
      (!order.earlier || !((job_object *)order.earlier)->function || (bound = same_function(bound, order.earlier)))) {
    hold *const kept_function = job_hold(in.job);
    if (kept_function) {
      kept_function->owner = Py_NewRef(bound);
      ((job_object *)in.job)->function = bound;
      desc.function = call_python;
      desc.user = bound;
      desc.operands = operands;
      desc.operand_count = (int32_t)count;
      made = finish_operation(&in, &order, SG_CALL_NUMBER_custom, &desc, result);
    }
  }
  call_done(&in);
  Py_XDECREF(forms);
  Py_XDECREF(bound);
  Py_XDECREF(result);
  return made;
}
