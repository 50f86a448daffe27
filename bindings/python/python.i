/* SPDX-License-Identifier: Apache-2.0 */
/* streamgemm._raw: the C API unchanged, handles as integers, and the functions of native.h, all of the extension streamgemm._native, whose structs
 * are classes here. Internal: streamgemm is the package. */
%module _raw
%include <typemaps.i>

%{
#include "native.h"
%}

/* A call keeps the GIL when its documentation says that it never blocks. */
%nothread;
%define SG_BLOCKS(FUNCTION)
%thread FUNCTION;
%enddef

%typemap(in) void *SG_ADDRESS {
  uint64_t address = PyLong_AsUnsignedLongLong($input);
  if (address == (uint64_t)-1 && PyErr_Occurred()) SWIG_fail;
  $1 = ($1_ltype)(uintptr_t)address;
}
%typemap(out) void *SG_ADDRESS "$result = PyLong_FromUnsignedLongLong((uintptr_t)$1);"
%typemap(in, numinputs=0) sg_status *out_status "$1 = NULL;" /* the result is the status of the job */
%typemap(in, numinputs=0) void **SG_OUT_ADDRESS (void *address) "address = NULL; $1 = ($1_ltype)&address;"
%typemap(argout) void **SG_OUT_ADDRESS {
  %append_output(PyLong_FromUnsignedLongLong((uintptr_t)*(void **)$1));
}

/* A string has no NUL inside, where C would end it. */
%typemap(in) const char * {
  $1 = NULL;
  if ($input != Py_None && !($1 = ($1_ltype)text_of($input, "$1_name"))) SWIG_fail;
}
%typemap(freearg) const char * ""

/* Outputs are the return value; OK without outputs is None, another status such as SG_STATUS_NOT_READY its number. An output
 * replaces NULL with every SWIG, and None only with those before 4.3. */
%typemap(out) sg_status {
  if ((int)$1 < 0) {
    raise_call($1, NULL);
    SWIG_fail;
  }
  $result = (int)$1 > 0 ? PyLong_FromLong((long)$1) : NULL;
}
%typemap(ret) sg_status "if (!$result) $result = SWIG_Py_Void();"

/* Replaced by plan_text below, for text of any length. */
%ignore sg_plan_describe;
%ignore sg_trace_export; /* trace_bytes below */
%ignore sg_pipeline_describe; /* pipeline_text below */
%ignore sg_metrics_text; /* metrics_text below */
%ignore sg_job_message; /* a Job keeps its message */
%ignore sg_job_label; /* job_label below */
%ignore sg_context_model; /* printed by `streamgemm info --model` */

%include "streamgemm.i"

%{
/* A text, or bytes, that CALL writes to (data, size) and whose size it stores in `needed`: the next one may be longer. */
#define SG_CONTENT(DECLARATION, MAKE, CALL)                                                            \
  static PyObject *DECLARATION {                                                                       \
    char *data = NULL;                                                                                 \
    uint64_t size = 0, needed = 0;                                                                     \
    sg_status status = CALL;                                                                           \
    for (; status == SG_STATUS_OK && needed > size; status = CALL) {                                   \
      char *const larger = (char *)realloc(data, size = needed);                                       \
      if (!larger) return free(data), PyErr_NoMemory();                                                \
      data = larger;                                                                                   \
    }                                                                                                  \
    PyObject *const made = status == SG_STATUS_OK ? MAKE : raise_call(status, NULL); \
    free(data);                                                                                        \
    return made;                                                                                       \
  }
SG_CONTENT(plan_text(sg_plan *plan, sg_plan_format format), PyUnicode_FromString(data), sg_plan_describe(plan, format, data, size, &needed))
SG_CONTENT(pipeline_text(sg_pipeline *pipeline), PyUnicode_FromString(data), sg_pipeline_describe(pipeline, data, size, &needed))
SG_CONTENT(trace_bytes(sg_trace *trace, sg_trace_format format), PyBytes_FromStringAndSize(data, (Py_ssize_t)needed),
           sg_trace_export(trace, format, data, size, &needed))
SG_CONTENT(metrics_text(void), PyUnicode_FromString(data), sg_metrics_text(data, size, &needed))

static PyObject *job_label(sg_job *job) {
  char text[SG_LABEL_SIZE];
  const sg_status status = sg_job_label(job, text, sizeof text, NULL);
  if (status != SG_STATUS_OK) return raise_call(status, NULL);
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* A callback would run under locks of the library, and wait for the GIL there. */
static sg_status log_set(sg_log_level level) { return sg_log_set(level, NULL, NULL); }
%}
sg_status log_set(sg_log_level level);
PyObject *metrics_text(void);
PyObject *job_label(sg_job *job);
PyObject *plan_text(sg_plan *plan, sg_plan_format format);
PyObject *pipeline_text(sg_pipeline *pipeline);
PyObject *trace_bytes(sg_trace *trace, sg_trace_format format);

%init %{
#if SWIG_VERSION < 0x040400
  if (!native_add(m)) return NULL;
#else /* a phase of several */
  if (!native_add(m)) return -1;
#endif
%}

%pythoncode %{
from ._native import *  # functions without another call around them
%}
