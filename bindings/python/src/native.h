/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-written part of the Python wrapper: the fast path of a submission. SWIG wraps the rest.
 *
 *   view.c      a Python object as an address, a shape and strides, all of them checked
 *   matrix.c    Matrix: an operand whose layout was checked once
 *   layout.c    the strides of a view as an sg_matrix; copies of views without one
 *   shape.c     the shape of a GEMM: NumPy's broadcasting, and the items of its batch
 *   dlpack.c    a Matrix of other libraries' tensors, and back
 *   producer.c  waiting for the stream that computes an operand
 *   job.c       the C half of a Job: it holds the operands until the job completes
 *   completions.c  completions, as they come through the queue
 *   operand.c, bias.c, result.c, gemm.c   the arguments of a GEMM as an sg_gemm_desc
 *   submit.c, blocking.c, group.c, copy.c, graph.c, pipeline.c   submissions: asynchronous, blocking, recorded
 *   all_reduce.c   sums over devices
 *   custom.c    functions in Python as operations, called on the library's threads
 *   operation.c, operands.c, symbols.c, operation_rules.c   all other operations, by the table operations.inc
 *   hooks.c     Python objects registered at import; errors
 */
#ifndef STREAMGEMM_PYTHON_NATIVE_H
#define STREAMGEMM_PYTHON_NATIVE_H

#include <stdbool.h>
#include <stdio.h>
#include <streamgemm/streamgemm.h>
#include <string.h>

#include "python_api.h"

enum { MAX_DIMENSIONS = PyBUF_MAX_NDIM };

/* Device types of DLPack, which also stand for the memory space of an operand here. */
enum { ON_HOST = 1, ON_CUDA = 2, ON_CUDA_HOST = 3, ON_OTHER = 0 };

/* An array, borrowed. Strides are in bytes. */
typedef struct view {
  void *data;
  int ndim;
  const Py_ssize_t *shape;
  const Py_ssize_t *strides;
  sg_dtype dtype;
  bool readonly;
  int place;             /* ON_... */
  int device_id;         /* of a CUDA device */
  sg_memory_kind memory; /* of a placeholder or a stage's matrix, which have no memory; else SG_MEMORY_AUTO */
} view;

/* Keeps an operand alive and in its place: an exported buffer, or a Matrix. Zeroed: nothing. */
typedef struct hold {
  Py_buffer buffer; /* buffer.obj is NULL when it is a Matrix */
  PyObject *owner;  /* as the user gave it */
} hold;

typedef struct matrix_object {
  PyObject_HEAD view of;
  Py_ssize_t shape[MAX_DIMENSIONS];
  Py_ssize_t strides[MAX_DIMENSIONS];
  hold held;
  void *managed; /* a DLManagedTensor, versioned or not */
  bool versioned;
} matrix_object;

/* Holds beyond those in the job itself. They never move: views point into their buffers. */
typedef struct hold_block {
  struct hold_block *next;
  int used, capacity;
  hold holds[];
} hold_block;

typedef struct job_object {
  PyObject_HEAD sg_job *handle;
  int status;     /* SG_STATUS_NOT_READY until it completes */
  int hold_count; /* of those in the job itself */
  hold holds[4];
  hold_block *more;
  PyObject *result;
  PyObject *message;   /* of its failure: as the completion has it, and the whole of it once it was observed */
  bool observed;       /* the application has asked for the outcome of the complete job */
  PyObject *function;  /* of a custom operation, which a hold has; or NULL */
  PyObject *condition; /* made when a thread waits or listens */
  PyObject *wake;      /* (loop, asyncio future) of the first task that awaits it */
} job_object;

extern PyTypeObject *matrix_type;
extern PyTypeObject *job_type;

/* Python objects registered by _raw.install(). Borrowed for the life of the process. */
typedef struct hooks {
  PyObject *error;          /* (status, message, operation of marked names) -> an exception */
  PyObject *as_matrix;      /* (object) -> Matrix, for objects without a buffer of a known format */
  PyObject *make_result;    /* (a, shape, dtype name, its argument's name) -> a new array like a */
  PyObject *is_masked;      /* (type) -> bool: whether its arrays have masks */
  PyObject *make_condition; /* () -> threading.Condition */
  PyObject *no_condition;   /* the condition of complete jobs: it never blocks */
  PyObject *start;          /* () starts the thread that completes jobs */
  PyObject *ops;            /* {name: value} of sg_transpose, of sg_compute, of sg_activation */
  PyObject *computes;
  PyObject *activations;
  PyObject *enums; /* {name of an enum: such a dict}, of all */
  PyObject *brief; /* (value) -> its text in a message */
} hooks;

extern hooks hook;
extern sg_queue *completion_queue; /* NULL until the thread runs */

/* custom.c. Of a function that the library calls: takes the interpreter's lock, until leave_python. False: the
 * interpreter exits. */
bool enter_python(PyGILState_STATE *state);
void leave_python(PyGILState_STATE state);
/* Whether the calling thread is another than the one that ends the interpreter. */
bool ends_with_interpreter(void);

/* hooks.c. All raise and return NULL. */
PyObject *raise_status(sg_status status, const char *message);
/* The failure of this thread's latest call of the library; `operation`: the method whose arguments it names; NULL:
 * none. */
PyObject *raise_call(sg_status status, const char *operation);
PyObject *raise_argument(const char *format, ...);
/* A value in a message, for %s: an array by its shape, others cut. Keeps the current exception. */
enum { SHOWN_SIZE = 420 };
const char *shown(PyObject *value, char *text);
/* The value of an enumerator given by name, number or None; -1 and an exception. */
int enum_of(PyObject *value, PyObject *table, const char *argument);
/* A string as UTF-8 that belongs to it; NULL and an exception if it is none, or holds a NUL. */
const char *text_of(PyObject *value, const char *argument);

/* view.c */
bool sound(const view *v,
           const char *name); /* extents, strides and span are possible; an exception where they are not */
sg_dtype dtype_of_code(const char *format, Py_ssize_t size); /* as in the buffer protocol; 0: not supported */
int dtype_of_name(PyObject *name);                           /* "f32"; -1 and an exception */
/* Reads an operand and holds it. `name` names it in errors. */
bool view_of(PyObject *object, const char *name, bool writable, view *out, hold *held);
void let_go(hold *held);
PyObject *shape_text(const view *v);
PyObject *strides_text(const view *v);

/* matrix.c */
matrix_object *matrix_alloc(PyTypeObject *type);
/* A Matrix of any exporter of a buffer; dtype 0: as its format says, and None for an unsupported format. */
PyObject *matrix_from_buffer(PyTypeObject *type, PyObject *object, sg_dtype dtype);

/* layout.c */
typedef enum vector_role { NO_VECTOR, ROW_VECTOR, COLUMN_VECTOR } vector_role; /* the meaning of one dimension */
/* The last dimensions of a view, two at most, as an sg_matrix. False without an exception: no layout has such strides.
 */
bool lay_out_view(const view *v, int item_ndim, vector_role vector, sg_matrix *out);
bool refuse_strides(const view *v, int item_ndim, const char *name); /* names the dimension */
/* Dimensions as one run of items at one stride in bytes; false: no single stride reaches them. */
bool one_stride(int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides, int64_t *count, int64_t *stride);
/* A copy without gaps of a host array; leading dimensions that repeat an item still do. A Matrix. */
matrix_object *gather(const view *v, int item_ndim, const char *name);

/* job.c */
PyObject *job_new(PyTypeObject *type);
hold *job_hold(PyObject *job); /* one more, zeroed; NULL: no memory, an exception */
void job_submitted(PyObject *job, sg_job *handle, PyObject *result);
void job_end(job_object *job, int status, PyObject *message);
/* The application asks for the outcome of a complete job: it has observed a failure (job.h). */
void job_observe(job_object *job);
bool native_add(PyObject *module); /* all of this to the module that SWIG makes */

/* completions.c */
bool completions_init(void);
void post_completion(sg_submit *submit, PyObject *job);   /* the completion will come through the queue.. */
void unpost_completion(sg_submit *submit, PyObject *job); /* .. or not: it was not submitted */
bool none_in_flight(void);                                /* of the posted jobs */

/* submit.c, operation.c; methods of the module */
PyObject *submit_operation(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *submit_gemm(PyObject *self, PyObject *const *args, Py_ssize_t count);

/* blocking.c */
void sweep_abandoned(void); /* completed jobs among those that a second signal left */

/* dlpack.c */
bool take_capsule(matrix_object *m, PyObject *capsule); /* from here on the Matrix releases its memory */
void release_tensor(matrix_object *m);
PyObject *matrix_export(PyObject *self, PyObject *args); /* a method of Matrix: _export(versioned) */

/* The other methods of the module, each in the file that submits, records or waits so. */
#define SG_METHODS(X)                \
  X(install, METH_VARARGS)           \
  X(remember_numpy, METH_VARARGS)    \
  X(submit_group, METH_VARARGS)      \
  X(submit_copy, METH_VARARGS)       \
  X(push_batch, METH_VARARGS)        \
  X(push_batches, METH_VARARGS)      \
  X(add_stage, METH_VARARGS)         \
  X(take_raised, METH_NOARGS)        \
  X(submit_custom, METH_VARARGS)     \
  X(submit_all_reduce, METH_VARARGS) \
  X(end_calls, METH_NOARGS)          \
  X(forget_calls, METH_NOARGS)       \
  X(submit_graph, METH_VARARGS) X(drain, METH_O) X(set_queue, METH_O) X(synchronize_producer, METH_VARARGS)
#define SG_DECLARATION(NAME, HOW) PyObject *NAME(PyObject *self, PyObject *given);
SG_METHODS(SG_DECLARATION)
#undef SG_DECLARATION

#endif
