/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking GEMM, or linear layer, that a signal can interrupt. One that completes before a user could press a key is
 * one call; others are submitted and waited for in slices. A signal's exception cancels the job, and is raised when the
 * job has completed, because until then it uses the operands. */
#include "submission.h"

enum { SLICE_NS = 20 * 1000 * 1000 };

static int waiting;         /* blocking calls inside a slice */
static PyObject *abandoned; /* jobs left by a second signal during their cancellation; they hold their operands */

void sweep_abandoned(void) {
  for (Py_ssize_t i = abandoned ? PyList_GET_SIZE(abandoned) : 0; i-- > 0;) {
    const job_object *job = (job_object *)PyList_GET_ITEM(abandoned, i);
    if (sg_job_query(job->handle, NULL) != SG_STATUS_NOT_READY) PyList_SetSlice(abandoned, i, i + 1, NULL);
  }
}

static void abandon(PyObject *job) {
  if (!abandoned) abandoned = PyList_New(0);
  if (!abandoned || PyList_Append(abandoned, job) < 0) Py_INCREF(job); /* for ever, rather than too short */
}

/* Waits until it completes; false: a signal raised an exception. */
static bool wait_in_slices(sg_job *handle, sg_status *status) {
  for (;;) {
    Py_BEGIN_ALLOW_THREADS
    *status = sg_job_wait(handle, SLICE_NS, NULL);
    Py_END_ALLOW_THREADS
    if (*status != SG_STATUS_TIMEOUT) return true;
    if (PyErr_CheckSignals() < 0) return false;
  }
}

static void cancel(PyObject *job, sg_job *handle) {
  PyObject *type, *value, *trace;
  sg_status status;
  PyErr_Fetch(&type, &value, &trace);
  sg_job_cancel(handle);
  if (!wait_in_slices(handle, &status)) {
    PyErr_Clear(); /* the first is raised */
    abandon(job);
  }
  PyErr_Restore(type, value, trace);
}

/* Completes within a few milliseconds: nothing is in flight before it, and it is small. */
static bool is_soon_over(const blocking_call *c, const sg_submit *submit) {
  return (double)c->rows * (double)c->cols * ((double)c->depth + 8) * (double)c->batch < 16e6 && !submit->stream &&
         submit->after_count == 0 && waiting == 0 && none_in_flight();
}

bool run_blocking(call *in, const blocking_call *c, const sg_submit *submit) {
  sg_context *const on = (sg_context *)(uintptr_t)in->to.handle;
  sg_status status;
  if (is_soon_over(c, submit)) {
    Py_BEGIN_ALLOW_THREADS
    status = c->run(on, c->desc, submit);
    Py_END_ALLOW_THREADS
  } else {
    sg_submit waited_for = *submit;
    sg_job *handle = NULL;
    waited_for.flags |= SG_SUBMIT_WILL_WAIT; /* computed here at once if it takes a few milliseconds */
    sweep_abandoned();
    ++waiting;
    Py_BEGIN_ALLOW_THREADS
    status = c->start(on, c->desc, &waited_for, &handle);
    Py_END_ALLOW_THREADS
    job_submitted(in->job, handle, NULL);
    const bool ended = status != SG_STATUS_OK || wait_in_slices(handle, &status);
    if (!ended) cancel(in->job, handle);
    --waiting;
    if (!ended) return false;
  }
  return status == SG_STATUS_OK || raise_call(status, in->operation) != NULL;
}
