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

/* push_batch(type, pipeline, target, (form of x, form of out), keepers, x, out, order): a Job whose result is out; None
 * makes a new array like x. */
PyObject *push_batch(PyObject *self, PyObject *args) {
  unsigned long long pipeline;
  PyObject *type, *to, *form_x, *form_out, *keepers, *x_given, *out_given, *result = NULL, *made = NULL;
  order_arguments og = {0};
  call in = {.in_order = true};
  view wanted_x, wanted_out, x, out;
  hold held[2];
  (void)self;
  memset(held, 0, sizeof held);
  if (!PyArg_ParseTuple(args, "OKO(OO)OOOO&", &type, &pipeline, &to, &form_x, &form_out, &keepers, &x_given, &out_given,
                        order_of, &og))
    return NULL;
  bool ready = target_of(to, &in.to) && begin_operation(&in, type, &og) &&
               view_of(form_x, "x", false, &wanted_x, &held[0]) &&
               view_of(form_out, "out", false, &wanted_out, &held[1]);
  PyObject *const array = ready ? settled(&in, x_given, "x") : NULL;
  ready = array && see_array(&in, array, "x", false, &x) && has_form(&x, "x", &wanted_x);
  if (ready && out_given == Py_None) {
    gemm_shape shape = {.ndim = wanted_out.ndim};
    memcpy(shape.extent, wanted_out.shape, (size_t)wanted_out.ndim * sizeof *wanted_out.shape);
    result = new_result(array, wanted_out.dtype, &shape, false, false, "out");
  } else if (ready) {
    result = settled(&in, out_given, "out");
    Py_XINCREF(result);
  }
  ready = result && see_array(&in, result, "out", true, &out) && has_form(&out, "out", &wanted_out);
  hold *const kept_operands = ready ? job_hold(in.job) : NULL;
  if (kept_operands) {
    const int64_t ends[2] = {(int64_t)(intptr_t)x.data, (int64_t)(intptr_t)out.data};
    kept_operands->owner = Py_NewRef(keepers);
    in.to.handle = pipeline;
    made = finish_operation(&in, &og, SG_CALL_NUMBER_pipeline_push, ends, result);
  }
  call_done(&in);
  let_go(&held[0]);
  let_go(&held[1]);
  Py_XDECREF(result);
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
