/* SPDX-License-Identifier: Apache-2.0 */
/* Completions come through one queue, which a Python thread drains. When submitters leave that thread too little of the
 * interpreter, they drain too, so that the queue stays bounded. */
#include "native.h"

enum {
  BATCH = 128,
  BACKLOG = 2048,   /* submissions beyond this many unsettled ones settle some.. */
  LEFT_OVER = 1024, /* .. but leave the thread so many: each wakes it, and it delivers the deferred ones */
};

sg_queue *completion_queue;

static uint64_t posted_jobs, settled_jobs;
/* Completions that need Python, deferred to the thread: [(job, status, message)...] and [(loop, future)...]. */
static PyObject *listened, *wakes;

bool completions_init(void) {
  listened = PyList_New(0);
  wakes = PyList_New(0);
  return listened && wakes;
}

static void settle_one(const sg_completion *c) {
  job_object *job = (job_object *)(uintptr_t)c->tag;
  const bool ended = job->status != SG_STATUS_NOT_READY; /* by a thread that waited for it */
  PyObject *message = NULL;
  if (c->status != SG_STATUS_OK)
    message = PyUnicode_DecodeUTF8(c->message, (Py_ssize_t)strnlen(c->message, sizeof c->message), "replace");
  if (!ended && !job->condition) {
    job_end(job, c->status, message);
  } else if (!ended) {
    PyObject *entry = Py_BuildValue("(OiO)", job, (int)c->status, message ? message : Py_None);
    if (entry) PyList_Append(listened, entry);
    Py_XDECREF(entry);
  }
  if (job->wake) PyList_Append(wakes, job->wake);
  Py_CLEAR(job->wake);
  Py_XDECREF(message);
  Py_DECREF(job); /* the tag's reference */
}

static void settle(const sg_completion *batch, int32_t count) {
  settled_jobs += (uint64_t)count;
  for (int32_t i = 0; i < count; ++i) settle_one(&batch[i]);
}

/* Completions beyond the queue's memory are settled by the submitting thread. */
static void settle_backlog(void) {
  sg_completion batch[BATCH];
  int32_t count = 1;
  while (count > 0 && posted_jobs - settled_jobs > BACKLOG) {
    const uint64_t spare = posted_jobs - settled_jobs - LEFT_OVER;
    const int32_t most = spare < BATCH ? (int32_t)spare : BATCH;
    if (sg_queue_next_batch(completion_queue, batch, sizeof *batch, most, 0, &count) != SG_STATUS_OK) return;
    settle(batch, count);
  }
}

/* Without a queue the interpreter is exiting: a waiter of the job waits in the library, and the reference stays. */
void post_completion(sg_submit *submit, PyObject *job) {
  if (completion_queue && posted_jobs - settled_jobs > BACKLOG) settle_backlog();
  ++posted_jobs;
  submit->queue = completion_queue;
  submit->tag = (uint64_t)(uintptr_t)Py_NewRef(job);
}

bool none_in_flight(void) { return posted_jobs == settled_jobs; }

void unpost_completion(sg_submit *submit, PyObject *job) {
  if (submit->tag == 0) return;
  --posted_jobs;
  Py_DECREF(job);
}

/* drain(queue): waits for completions and settles their jobs. ([(job, status, message)...], [(loop, future)...]): those
 * that need Python; None: the queue is closed and empty. */
PyObject *drain(PyObject *self, PyObject *queue) {
  static sg_completion batch[BATCH]; /* there is one such thread */
  int32_t count = 0;
  sg_status status;
  (void)self;
  sg_queue *from = (sg_queue *)(uintptr_t)PyLong_AsUnsignedLongLong(queue);
  if (PyErr_Occurred()) return NULL;
  Py_BEGIN_ALLOW_THREADS
  status = sg_queue_next_batch(from, batch, sizeof *batch, BATCH, SG_FOREVER, &count);
  Py_END_ALLOW_THREADS
  if (status == SG_STATUS_CANCELLED) Py_RETURN_NONE;
  if (status != SG_STATUS_OK) return raise_call(status, NULL);
  settle(batch, count);
  sweep_abandoned();
  PyObject *found = Py_BuildValue("(NN)", listened, wakes);
  if (!completions_init() || !found) {
    Py_XDECREF(found);
    return PyErr_NoMemory();
  }
  return found;
}

PyObject *set_queue(PyObject *self, PyObject *handle) {
  (void)self;
  completion_queue = (sg_queue *)(uintptr_t)PyLong_AsUnsignedLongLong(handle);
  if (PyErr_Occurred()) return NULL;
  posted_jobs = settled_jobs = 0;
  Py_RETURN_NONE;
}
