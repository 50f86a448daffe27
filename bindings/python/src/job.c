/* SPDX-License-Identifier: Apache-2.0 */
/* The C half of a Job. The Python half (streamgemm/_job.py) makes a concurrent.futures.Future of it.
 *
 * From its submission until its completion was taken from the queue, a job has one more reference, held by the tag of
 * the submission: whatever the user drops, the operands stay. A job completes once, under the package's lock
 * (python_api.h). A job without listeners (it has no condition yet) completes in a few stores; the others are handed to
 * Python.
 *
 * Taking a completion from the queue is not the application's observation of a failure (sg_queue_options.observes):
 * that is made by job_observe, when the application asks, however far the package's thread is. */
#include "native.h"

enum { MESSAGE_SIZE = 4096 };

PyTypeObject *job_type;
#ifdef Py_GIL_DISABLED
PyObject *package_lock;
#endif

PyObject *job_new(PyTypeObject *type) {
  job_object *job = (job_object *)PyType_GenericAlloc(type, 0);
  if (job) job->status = SG_STATUS_NOT_READY;
  return (PyObject *)job;
}

hold *job_hold(PyObject *self) {
  job_object *job = (job_object *)self;
  const int own = (int)(sizeof job->holds / sizeof *job->holds);
  if (job->hold_count < own) return &job->holds[job->hold_count++];
  if (!job->more || job->more->used == job->more->capacity) {
    const int capacity = job->more ? 2 * job->more->capacity : 4 * own;
    hold_block *block = PyMem_Calloc(1, sizeof *block + (size_t)capacity * sizeof *block->holds);
    if (!block) return (hold *)PyErr_NoMemory();
    block->capacity = capacity;
    block->next = job->more;
    job->more = block;
  }
  return &job->more->holds[job->more->used++];
}

void job_submitted(PyObject *self, sg_job *handle, PyObject *result) {
  job_object *job = (job_object *)self;
  job->handle = handle;
  job->result = Py_XNewRef(result);
  if (!handle) job->status = SG_STATUS_OK; /* there was nothing to submit */
}

static void drop_operands(job_object *job) {
  for (int i = 0; i < job->hold_count; ++i) let_go(&job->holds[i]);
  for (hold_block *block = job->more; block; block = block->next)
    for (int i = 0; i < block->used; ++i) let_go(&block->holds[i]);
}

void job_end(job_object *job, int status, PyObject *message) {
  job->status = status;
  job->message = Py_XNewRef(message);
  drop_operands(job);
}

void job_observe(job_object *job) {
  char text[MESSAGE_SIZE];
  if (job->status >= 0 || job->observed || !job->handle) return;
  job->observed = true;
  if (sg_job_message(job->handle, text, sizeof text, NULL) != SG_STATUS_OK || !text[0])
    return; /* it is from before a fork */
  PyObject *whole = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
  if (whole)
    Py_XSETREF(job->message, whole);
  else
    PyErr_Clear(); /* no memory: the completion's text stays */
}

/* _observe(): the message of the complete job, "" of one that succeeded. */
static PyObject *observe(PyObject *self, PyObject *unused) {
  job_object *job = (job_object *)self;
  (void)unused;
  job_observe(job);
  return job->message ? Py_NewRef(job->message) : PyUnicode_FromString("");
}

/* _end(status, message): completes a job that has listeners; the caller holds its condition. False: it was complete. */
static PyObject *end_listened(PyObject *self, PyObject *args) {
  job_object *job = (job_object *)self;
  int status;
  PyObject *message;
  if (!PyArg_ParseTuple(args, "iO", &status, &message)) return NULL;
  const bool first = job->status == SG_STATUS_NOT_READY;
  if (first) job_end(job, status, message);
  return PyBool_FromLong(first);
}

/* _wait(ns): waits in the library, which is faster than waiting for the completing thread. The job's outcome as
 * (status, message), for _end; None: it is not complete, or it already was. */
static PyObject *job_wait(PyObject *self, PyObject *args) {
  job_object *job = (job_object *)self;
  long long ns;
  sg_status call, status;
  if (!PyArg_ParseTuple(args, "L", &ns)) return NULL;
  if (job->status != SG_STATUS_NOT_READY) Py_RETURN_NONE;
  Py_BEGIN_ALLOW_THREADS
  call = sg_job_wait(job->handle, ns, &status);
  Py_END_ALLOW_THREADS
  if (call == SG_STATUS_TIMEOUT || job->status != SG_STATUS_NOT_READY) Py_RETURN_NONE;
  if (call != SG_STATUS_OK) return raise_call(call, NULL);
  if (status == SG_STATUS_OK && !job->condition && !job->wake) {
    job_end(job, status, NULL);
    Py_RETURN_NONE;
  }
  return Py_BuildValue("(is)", (int)status, status == SG_STATUS_OK ? "" : sg_last_error_message());
}

/* _poll(): the status in the library, which may know of the completion before the completing thread has notified the
 * listeners. An observation, as sg_job_query is. */
static PyObject *job_poll(PyObject *self, PyObject *unused) {
  job_object *job = (job_object *)self;
  (void)unused;
  job_observe(job);
  if (job->status != SG_STATUS_NOT_READY) return PyLong_FromLong(job->status);
  sg_status status; /* SG_STATUS_NOT_READY also where the call fails: the job is from before a fork */
  sg_job_query(job->handle, &status);
  if (status == SG_STATUS_OK && !job->condition && !job->wake) job_end(job, status, NULL);
  return PyLong_FromLong(status);
}

static PyObject *get_condition(PyObject *self, void *unused) {
  job_object *job = (job_object *)self;
  (void)unused;
  if (!job->condition) {
    if (job->status != SG_STATUS_NOT_READY) return Py_NewRef(hook.no_condition);
    PyObject *made = PyObject_CallNoArgs(hook.make_condition);
    if (!made) return NULL;
    /* Another thread may have run meanwhile: it made one too, or the job has completed. */
    if (!job->condition && job->status == SG_STATUS_NOT_READY) job->condition = Py_NewRef(made);
    Py_DECREF(made);
    if (!job->condition) return Py_NewRef(hook.no_condition);
  }
  return Py_NewRef(job->condition);
}

/* _sleep(wake): stores the future to wake at completion. False: the job is complete, or there is a future already. */
static PyObject *job_sleep(PyObject *self, PyObject *wake) {
  job_object *job = (job_object *)self;
  if (job->wake || job->status != SG_STATUS_NOT_READY) Py_RETURN_FALSE;
  job->wake = Py_NewRef(wake);
  Py_RETURN_TRUE;
}

static PyObject *get_wake(PyObject *self, void *unused) {
  PyObject *wake = ((job_object *)self)->wake;
  return (void)unused, Py_NewRef(wake ? wake : Py_None);
}

static PyObject *get_status(PyObject *self, void *unused) {
  return (void)unused, PyLong_FromLong(((job_object *)self)->status);
}

static PyObject *get_result(PyObject *self, void *unused) {
  PyObject *result = ((job_object *)self)->result;
  return (void)unused, Py_NewRef(result ? result : Py_None);
}

static PyObject *get_handle(PyObject *self, void *unused) {
  return (void)unused, PyLong_FromUnsignedLongLong((uintptr_t)((job_object *)self)->handle);
}

static int visit_holds(const hold *holds, int count, visitproc visit, void *arg) {
  for (int i = 0; i < count; ++i) {
    Py_VISIT(holds[i].owner);
    Py_VISIT(holds[i].buffer.obj);
  }
  return 0;
}

static int job_traverse(PyObject *self, visitproc visit, void *arg) {
  job_object *job = (job_object *)self;
  Py_VISIT(Py_TYPE(self));
  int stop = visit_holds(job->holds, job->hold_count, visit, arg);
  for (hold_block *block = job->more; block && !stop; block = block->next)
    stop = visit_holds(block->holds, block->used, visit, arg);
  if (stop) return stop;
  Py_VISIT(job->result);
  Py_VISIT(job->condition);
  Py_VISIT(job->wake);
  return 0;
}

static int job_clear(PyObject *self) { /* never while it is in flight: its tag is a reference */
  job_object *job = (job_object *)self;
  drop_operands(job);
  Py_CLEAR(job->result);
  Py_CLEAR(job->message);
  Py_CLEAR(job->condition);
  Py_CLEAR(job->wake);
  return 0;
}

static void job_dealloc(PyObject *self) {
  job_object *job = (job_object *)self;
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  job_clear(self);
  if (job->handle) sg_job_release(job->handle);
  for (hold_block *block = job->more; block;) {
    hold_block *next = block->next;
    PyMem_Free(block);
    block = next;
  }
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

#define SG_JOB_METHODS(X)             \
  X(end_listened, _end, METH_VARARGS) \
  X(job_wait, _wait, METH_VARARGS)    \
  X(job_poll, _poll, METH_NOARGS) X(observe, _observe, METH_NOARGS) X(job_sleep, _sleep, METH_O)
#define SG_JOB_ATTRIBUTES(X) \
  X(get_condition, _condition) X(get_wake, _wake) X(get_status, _status) X(get_result, _result) X(get_handle, _handle)

#define SG_GUARD(FUNCTION, ...) SG_GUARDED(FUNCTION, (PyObject * self, void *given), (self, given))
#define SG_GUARD_METHOD(FUNCTION, ...) SG_GUARDED(FUNCTION, (PyObject * self, PyObject * given), (self, given))
SG_JOB_METHODS(SG_GUARD_METHOD)
SG_JOB_ATTRIBUTES(SG_GUARD)

static PyMethodDef job_methods[] = {
#define SG_ENTRY(FUNCTION, NAME, HOW) {#NAME, guarded_##FUNCTION, HOW, NULL},
    SG_JOB_METHODS(SG_ENTRY)
#undef SG_ENTRY
        {NULL, NULL, 0, NULL},
};

static PyGetSetDef job_getset[] = {
#define SG_ENTRY(FUNCTION, NAME) {#NAME, guarded_##FUNCTION, NULL, NULL, NULL},
    SG_JOB_ATTRIBUTES(SG_ENTRY)
#undef SG_ENTRY
        {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot job_slots[] = {
    {Py_tp_traverse, job_traverse}, {Py_tp_clear, job_clear},   {Py_tp_dealloc, job_dealloc},
    {Py_tp_methods, job_methods},   {Py_tp_getset, job_getset}, {0, NULL},
};

static PyType_Spec job_spec = {
    "streamgemm._native.JobBase", sizeof(job_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, job_slots};

extern PyType_Spec matrix_spec;

/* The package's state is the process's, and its threads enter the main interpreter. */
static bool in_main_interpreter(void) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return true;
  PyErr_SetString(PyExc_ImportError, "streamgemm runs in the main interpreter only, not in a sub-interpreter");
  return false;
}

/* require_main_interpreter(): an import in a second interpreter may copy the module without its initialisation. */
static PyObject *require_main_interpreter(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return in_main_interpreter() ? Py_NewRef(Py_None) : NULL;
}

#define SG_GUARD_FAST(NAME) \
  SG_GUARDED(NAME, (PyObject * self, PyObject *const *args, Py_ssize_t count), (self, args, count))
SG_GUARD_FAST(submit_gemm)
SG_GUARD_FAST(submit_operation)
SG_METHODS(SG_GUARD_METHOD)

static PyMethodDef functions[] = {
    {"require_main_interpreter", require_main_interpreter, METH_NOARGS, NULL},
    {"submit_gemm", (PyCFunction)(void (*)(void))guarded_submit_gemm, METH_FASTCALL, NULL},
    {"submit_operation", (PyCFunction)(void (*)(void))guarded_submit_operation, METH_FASTCALL, NULL},
#define SG_ENTRY(NAME, HOW) {#NAME, guarded_##NAME, HOW, NULL},
    SG_METHODS(SG_ENTRY)
#undef SG_ENTRY
        {NULL, NULL, 0, NULL},
};

bool native_add(PyObject *module) {
  if (!in_main_interpreter()) return false;
#ifdef Py_GIL_DISABLED
  if (!(package_lock = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type))) return false;
#endif
  matrix_type = (PyTypeObject *)PyType_FromSpec(&matrix_spec);
  job_type = (PyTypeObject *)PyType_FromSpec(&job_spec);
  return matrix_type && job_type && completions_init() &&
         PyModule_AddObjectRef(module, "MatrixBase", (PyObject *)matrix_type) == 0 &&
         PyModule_AddObjectRef(module, "JobBase", (PyObject *)job_type) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}
