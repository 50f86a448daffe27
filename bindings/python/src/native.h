/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the Python wrapper that is written by hand: what a submission must do fast. SWIG wraps all the rest.
 *
 *   view.c     a Python operand as an address, a shape and strides; those as an sg_matrix
 *   matrix.c   Matrix: an operand that was looked at once
 *   dlpack.c   a Matrix of other libraries' tensors, and back
 *   producer.c   waiting for the stream that an operand is made on
 *   job.c      the C half of a Job: it holds the operands until its work has ended
 *   completions.c  the ends of jobs, as they come through the queue
 *   product.c, submit.c, copy.c, graph.c   submissions, at once and recorded
 *   hooks.c    what the Python side hands over when it is imported; errors
 */
#ifndef STREAMGEMM_PYTHON_NATIVE_H
#define STREAMGEMM_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <streamgemm/streamgemm.h>

enum { MAX_DIMENSIONS = 16 };

/* Device types of DLPack, which name the place of an operand here too. */
enum { ON_HOST = 1, ON_CUDA = 2, ON_CUDA_HOST = 3, ON_OTHER = 0 };

/* Somebody's array, borrowed. Strides are in bytes. */
typedef struct view {
  void *data;
  int ndim;
  const Py_ssize_t *shape;
  const Py_ssize_t *strides;
  sg_dtype dtype;
  bool readonly;
  int place;     /* ON_... */
  int device_id; /* of a CUDA device */
} view;

/* What keeps an operand alive and in its place: a buffer that is exported to us, or a Matrix. Zeroed: nothing. */
typedef struct hold {
  Py_buffer buffer; /* buffer.obj is NULL when it is a Matrix */
  PyObject *owner;  /* as the user gave it */
} hold;

typedef struct matrix_object {
  PyObject_HEAD view of;
  Py_ssize_t shape[MAX_DIMENSIONS];
  Py_ssize_t strides[MAX_DIMENSIONS];
  sg_memory_kind memory; /* of a placeholder, which has no data */
  hold held;
  void *managed; /* a DLManagedTensor, versioned or not */
  bool versioned;
} matrix_object;

typedef struct job_object {
  PyObject_HEAD sg_job *handle;
  int status; /* SG_STATUS_NOT_READY until it has ended */
  int hold_count;
  hold *holds;
  hold inline_holds[3];
  PyObject *result;
  PyObject *message;
  PyObject *condition; /* made when somebody waits or listens */
  PyObject *wake;      /* (loop, asyncio future) of the first that awaits it */
} job_object;

extern PyTypeObject *matrix_type;
extern PyTypeObject *job_type;

/* What the Python side registers by _raw.install(). Borrowed for the life of the process. */
typedef struct hooks {
  PyObject *error;          /* (status, message) -> an exception */
  PyObject *as_matrix;      /* (object) -> Matrix, for what has no buffer of a known format */
  PyObject *make_result;    /* (a, shape, dtype name) -> a new array like a */
  PyObject *make_condition; /* () -> threading.Condition */
  PyObject *no_condition;   /* the condition of jobs that have ended: it never blocks */
  PyObject *start;          /* () starts the thread that completes jobs */
  PyObject *ops;            /* {name: value} of sg_op, of sg_compute, of sg_activation */
  PyObject *computes;
  PyObject *activations;
} hooks;

extern hooks hook;
extern sg_queue *completion_queue; /* NULL until the thread runs */

/* hooks.c. Both raise and return NULL. */
PyObject *raise_status(sg_status status, const char *message);
PyObject *raise_argument(const char *format, ...);
/* The value of an enumerator given by name, number or None; -1 and an exception. */
int enum_of(PyObject *value, PyObject *table, const char *argument);
PyObject *install(PyObject *self, PyObject *given);

/* view.c */
sg_dtype dtype_of_code(const char *format, Py_ssize_t size); /* as in the buffer protocol; 0: none of ours */
int dtype_of_name(PyObject *name);                           /* "f32"; -1 and an exception */
/* Looks at an operand and holds it. `name` names it in errors. */
bool view_of(PyObject *object, const char *name, bool writable, view *out, hold *held);
void let_go(hold *held);
/* Which sides of a product a vector may stand for. */
typedef enum vector_role { NO_VECTOR, ROW_VECTOR, COLUMN_VECTOR } vector_role;
/* The matrix (or stack of matrices at one stride) in a view. */
bool matrix_of(const view *v, const char *name, vector_role vector, sg_matrix *out, int64_t *batch, int64_t *stride);
PyObject *shape_text(const view *v);

/* job.c */
PyObject *job_new(PyTypeObject *type, int holds);
hold *job_holds(PyObject *job);
void job_submitted(PyObject *job, sg_job *handle, PyObject *result);
sg_job *job_handle(PyObject *job);
void job_end(job_object *job, int status, PyObject *message);
bool native_add(PyObject *module); /* all of this to the module that SWIG makes */

/* completions.c; the last two are methods of the module */
bool completions_init(void);
void post_completion(sg_submit *submit, PyObject *job);   /* the job's end will come through the queue.. */
void unpost_completion(sg_submit *submit, PyObject *job); /* .. or not: it was not submitted */
PyObject *drain(PyObject *self, PyObject *queue);
PyObject *set_queue(PyObject *self, PyObject *handle);

/* submit.c, copy.c; methods of the module */
PyObject *submit_product(PyObject *self, PyObject *args);
PyObject *submit_group(PyObject *self, PyObject *args);
PyObject *submit_copy(PyObject *self, PyObject *args);
PyObject *make_plan(PyObject *self, PyObject *args);

/* graph.c; methods of the module */
PyObject *record_product(PyObject *self, PyObject *args);
PyObject *set_product(PyObject *self, PyObject *args);
PyObject *record_copy(PyObject *self, PyObject *args);
PyObject *set_copy(PyObject *self, PyObject *args);
PyObject *submit_graph(PyObject *self, PyObject *args);

/* dlpack.c */
bool take_capsule(matrix_object *m, PyObject *capsule); /* from here on its memory is the Matrix's to release */
void release_tensor(matrix_object *m);
PyObject *matrix_export(PyObject *self, PyObject *args); /* a method of Matrix: _export(versioned) */

/* producer.c; a method of the module */
PyObject *synchronize_producer(PyObject *self, PyObject *args);

#endif
