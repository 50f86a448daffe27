/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines: a batch is an array of the pipeline's shape without gaps, and so is its result. */

#include "submission.h"

/* Whether an array has the shape, type and strides of `form`, another one; an exception if not. */
static bool has_form(const view *v, const char *name, const view *form) {
  bool same = v->ndim == form->ndim;
  for (int i = 0; same && i < v->ndim; ++i) same = v->shape[i] == form->shape[i];
  if (!same) {
    PyObject *is = shape_text(v), *should = shape_text(form);
    if (is && should) raise_argument("%s has shape %R; the pipeline's has %R", name, is, should);
    Py_XDECREF(is);
    Py_XDECREF(should);
    return false;
  }
  if (v->dtype != form->dtype)
    return raise_argument("%s is %s; the pipeline's is %s", name, sg_dtype_name(v->dtype), sg_dtype_name(form->dtype));
  for (int i = 0; i < v->ndim; ++i)
    if (v->shape[i] > 1 && v->strides[i] != form->strides[i])
      return raise_argument("%s has gaps, or another order: it must be contiguous and row major", name);
  return true;
}

/* A pipeline, and the forms of its batches. */
typedef struct {
  unsigned long long handle;
  PyObject *type, *target, *form_x, *form_out, *keepers;
  view x, out;
  hold held[2];
} batch_target;

static bool begin_batches(batch_target *to, call *in, order_arguments *og) {
  return target_of(to->target, &in->to) && begin_operation(in, to->type, og) &&
         view_of(to->form_x, "x", false, &to->x, &to->held[0]) &&
         view_of(to->form_out, "out", false, &to->out, &to->held[1]);
}

/* The addresses of a batch's ends, and its result, a new reference; None makes a new array like x. NULL and an
 * exception if they are wrong, and in *of the name of the wrong one. */
static PyObject *see_batch(batch_target *to, call *in, PyObject *x_given, PyObject *out_given, int64_t ends[2],
                           const char **of) {
  view x, out;
  *of = "x";
  PyObject *const array = settled(in, x_given, "x");
  if (!array || !see_array(in, array, "x", false, &x) || !has_form(&x, "x", &to->x)) return NULL;
  PyObject *result = NULL;
  *of = "out";
  if (out_given == Py_None) {
    gemm_shape shape = {.ndim = to->out.ndim};
    memcpy(shape.extent, to->out.shape, (size_t)to->out.ndim * sizeof *to->out.shape);
    result = new_result(array, to->out.dtype, &shape, false, false, "out");
  } else {
    result = settled(in, out_given, "out");
    Py_XINCREF(result);
  }
  if (!result || !see_array(in, result, "out", true, &out) || !has_form(&out, "out", &to->out)) {
    Py_XDECREF(result);
    return NULL;
  }
  ends[0] = (int64_t)(intptr_t)x.data;
  ends[1] = (int64_t)(intptr_t)out.data;
  return result;
}

/* Submits what was seen; NULL and an exception if `result` is NULL. */
static PyObject *finish_batches(batch_target *to, call *in, order_arguments *og, int number, const int64_t *desc,
                                PyObject *result) {
  PyObject *made = NULL;
  hold *const kept_operands = result ? job_hold(in->job) : NULL;
  if (kept_operands) {
    kept_operands->owner = Py_NewRef(to->keepers);
    in->to.handle = to->handle;
    made = finish_operation(in, og, number, desc, result);
  }
  call_done(in);
  let_go(&to->held[0]);
  let_go(&to->held[1]);
  Py_XDECREF(result);
  return made;
}

/* push_batch(type, pipeline, target, (form of x, form of out), keepers, x, out, order): a Job whose result is out; None
 * makes a new array like x. */
PyObject *push_batch(PyObject *self, PyObject *args) {
  PyObject *x_given, *out_given;
  order_arguments og = {0};
  call in = {.in_order = true};
  batch_target to = {0};
  int64_t ends[2];
  (void)self;
  if (!PyArg_ParseTuple(args, "OKO(OO)OOOO&", &to.type, &to.handle, &to.target, &to.form_x, &to.form_out, &to.keepers,
                        &x_given, &out_given, order_of, &og))
    return NULL;
  const char *of;
  PyObject *const result = begin_batches(&to, &in, &og) ? see_batch(&to, &in, x_given, out_given, ends, &of) : NULL;
  return finish_batches(&to, &in, &og, SG_CALL_NUMBER_pipeline_push, ends, result);
}

/* push_batches(type, pipeline, target, (form of x, form of out), keepers, (x...), (out...), order): a Job whose result
 * is the list of the results. */
PyObject *push_batches(PyObject *self, PyObject *args) {
  PyObject *xs, *outs, *results = NULL;
  order_arguments og = {0};
  call in = {.in_order = true};
  batch_target to = {0};
  (void)self;
  if (!PyArg_ParseTuple(args, "OKO(OO)OO!O!O&", &to.type, &to.handle, &to.target, &to.form_x, &to.form_out, &to.keepers,
                        &PyTuple_Type, &xs, &PyTuple_Type, &outs, order_of, &og))
    return NULL;
  const Py_ssize_t count = PyTuple_GET_SIZE(xs);
  if (count == 0 || count > INT32_MAX)
    return raise_argument("x has %zd items; it must have from 1 to %d", count, INT32_MAX);
  if (PyTuple_GET_SIZE(outs) != count)
    return raise_argument("out has %zd items, and x has %zd", PyTuple_GET_SIZE(outs), count);
  int64_t *const inputs = PyMem_Calloc(2 * (size_t)count, sizeof *inputs), *const outputs = inputs + count;
  if (!inputs)
    PyErr_NoMemory();
  else if (begin_batches(&to, &in, &og))
    results = PyList_New(0);
  for (Py_ssize_t i = 0; results && i < count; ++i) {
    int64_t ends[2] = {0, 0};
    const char *of = "x";
    PyObject *const result = see_batch(&to, &in, PyTuple_GET_ITEM(xs, i), PyTuple_GET_ITEM(outs, i), ends, &of);
    if (!result) name_item(of, i);
    if (!result || PyList_Append(results, result) < 0) Py_CLEAR(results);
    Py_XDECREF(result);
    inputs[i] = ends[0];
    outputs[i] = ends[1];
  }
  const int64_t desc[3] = {(int64_t)(intptr_t)inputs, (int64_t)(intptr_t)outputs, count};
  PyObject *const made = finish_batches(&to, &in, &og, SG_CALL_NUMBER_pipeline_push_batches, desc, results);
  PyMem_Free(inputs);
  return made;
}

/* What functions of stages have raised in this thread's call of the library. */
static _Thread_local PyObject *raised;

/* take_raised(): the exception, or None; the caller raises it. */
PyObject *take_raised(PyObject *self, PyObject *unused) {
  PyObject *const taken = raised;
  (void)self, (void)unused;
  raised = NULL;
  return taken ? taken : Py_NewRef(Py_None);
}

static void keep_raised(void) {
  PyObject *type, *traceback;
  Py_XDECREF(raised);
  PyErr_Fetch(&type, &raised, &traceback);
  PyErr_NormalizeException(&type, &raised, &traceback);
  if (traceback) PyException_SetTraceback(raised, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
}

/* `user`: a callable of a graph's handle and a batch, that records. The thread is one of Python's that pushes or
 * prepares, a daemon perhaps, which the library may still be in when the interpreter has ended. */
static sg_status record_in_python(const sg_stage *stage, void *user) {
  PyGILState_STATE state;
  if (!enter_python(&state)) return SG_STATUS_SHUTDOWN;
  PyObject *returned = PyObject_CallFunction((PyObject *)user, "KL", (unsigned long long)(uintptr_t)stage->graph,
                                             (long long)stage->batch);
  const sg_status status = returned ? SG_STATUS_OK : SG_STATUS_BACKEND_FAILURE;
  if (!returned) keep_raised();
  Py_XDECREF(returned);
  leave_python(state);
  return status;
}

static PyObject *addresses_of(const sg_stage *stage, int32_t count) {
  PyObject *addresses = PyList_New(0);
  for (int32_t i = 0; addresses && i < count; ++i) {
    PyObject *address = PyLong_FromVoidPtr(stage->weights[i]);
    if (!address || PyList_Append(addresses, address) != 0) Py_CLEAR(addresses);
    Py_XDECREF(address);
  }
  return addresses;
}

/* add_stage(pipeline, callable or None, name or None, output_bytes, workspace_bytes, weights, weight_count, place,
 * device), where weights is the address of weight_count sg_weight: (graph, input, output, workspace, [weights], index).
 */
PyObject *add_stage(PyObject *self, PyObject *args) {
  unsigned long long pipeline, output_bytes, workspace_bytes, weights;
  PyObject *function, *name;
  int place, device;
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  sg_stage stage = SG_STAGE_INIT;
  (void)self;
  if (!PyArg_ParseTuple(args, "KOOKKKiii", &pipeline, &function, &name, &output_bytes, &workspace_bytes, &weights,
                        &desc.weight_count, &place, &device) ||
      (name != Py_None && !(desc.name = text_of(name, "name"))))
    return NULL;
  desc.output_bytes = output_bytes;
  desc.workspace_bytes = workspace_bytes;
  desc.weights = (const sg_weight *)(uintptr_t)weights;
  desc.place = (sg_weights_place)place;
  desc.device = device;
  if (function != Py_None) {
    desc.function = record_in_python;
    desc.user = function;
  }
  const sg_status status = sg_pipeline_add_stage((sg_pipeline *)(uintptr_t)pipeline, &desc, &stage);
  if (status != SG_STATUS_OK) return raise_call(status, NULL);
  PyObject *addresses = addresses_of(&stage, desc.weight_count);
  if (!addresses) return NULL;
  return Py_BuildValue("KKKKNi", (unsigned long long)(uintptr_t)stage.graph, (unsigned long long)(uintptr_t)stage.input,
                       (unsigned long long)(uintptr_t)stage.output, (unsigned long long)(uintptr_t)stage.workspace,
                       addresses, (int)stage.index);
}
