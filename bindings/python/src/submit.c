/* SPDX-License-Identifier: Apache-2.0 */

#include "submission.h"

bool target_of(PyObject *given, target *to) {
  if (!PyTuple_CheckExact(given) || PyTuple_GET_SIZE(given) != 4) return raise_argument("this is closed");
  to->handle = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(given, 0));
  to->cuda_devices = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(given, 1));
  to->context_id = (int)PyLong_AsLong(PyTuple_GET_ITEM(given, 2));
  to->waits = PyTuple_GET_ITEM(given, 3) == Py_True;
  return !PyErr_Occurred();
}

bool call_begin(call *in, PyTypeObject *type) {
  in->job = job_new(type);
  return in->job != NULL;
}

/* The handle in a Stream, or the address in PlanOptions; None is NULL. */
static bool handle_in(PyObject *object, const char *argument, const char *kind, const char *getter, void *out) {
  char room[SHOWN_SIZE];
  uintptr_t handle = 0;
  if (object && object != Py_None) {
    PyObject *number = PyObject_CallMethod(object, getter, NULL);
    if (!number && PyErr_ExceptionMatches(PyExc_AttributeError))
      PyErr_Format(PyExc_TypeError, "%s is %s, which is no %s", argument, shown(object, room), kind);
    if (number) handle = (uintptr_t)PyLong_AsUnsignedLongLong(number);
    Py_XDECREF(number);
  }
  *(void **)out = (void *)handle;
  return !PyErr_Occurred();
}

/* Seconds from the submission; None: no deadline. */
static bool deadline_of(PyObject *timeout, int64_t *out) {
  char room[SHOWN_SIZE];
  *out = 0;
  if (!timeout || timeout == Py_None) return true;
  const double seconds = PyFloat_AsDouble(timeout);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "timeout is %s, which is no number of seconds", shown(timeout, room));
    return false;
  }
  if (!(seconds >= 0)) return raise_argument("timeout is %s; it must not be negative", shown(timeout, room));
  *out = seconds * 1e9 < 9e18 ? (int64_t)(seconds * 1e9) : INT64_MAX;
  if (*out == 0) *out = 1; /* 0 is none */
  return true;
}

/* The text belongs to the argument. */
static bool label_of(PyObject *label, const char **out) {
  *out = NULL;
  if (!label || label == Py_None) return true;
  *out = text_of(label, "label");
  return *out != NULL;
}

int order_of(PyObject *given, void *to) {
  order_arguments *const order = to;
  if (!PyTuple_CheckExact(given) || PyTuple_GET_SIZE(given) != ORDER_COUNT) {
    PyErr_Format(PyExc_TypeError, "a submission has %d options", ORDER_COUNT);
    return 0;
  }
  for (int i = 0; i < ORDER_COUNT; ++i) order->of[i] = PyTuple_GET_ITEM(given, i);
  return 1;
}

bool number_of(PyObject *given, const char *name, long long low, unsigned long long high, unsigned long long *to) {
  char room[SHOWN_SIZE];
  PyObject *const number = PyNumber_Index(given);
  if (!number) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s is %s, which is no integer", name, shown(given, room));
    return false;
  }
  const long long negative = low < 0 ? PyLong_AsLongLong(number) : 0;
  *to = low < 0 ? (unsigned long long)negative : PyLong_AsUnsignedLongLong(number);
  const bool fits = !PyErr_Occurred() && negative >= low && (negative < 0 || *to <= high);
  PyErr_Clear();
  Py_DECREF(number);
  return fits || raise_argument("%s is %s; it must be from %lld to %llu", name, shown(given, room), low, high);
}

static inline bool real_of(PyObject *given, const char *name, double *to) {
  *to = PyFloat_AsDouble(given);
  if (!PyErr_Occurred()) return true;
  PyErr_Clear();
  char room[SHOWN_SIZE];
  PyErr_Format(PyExc_TypeError, "%s is %s, which is no number", name, shown(given, room));
  return false;
}

bool fill_order(call *in, const order_arguments *g, sg_submit *submit) {
  PyObject *const after = g->of[ORDER_AFTER], *const untracked = g->of[ORDER_UNTRACKED];
  unsigned long long number;
  char room[SHOWN_SIZE];
  *submit = (sg_submit)SG_SUBMIT_INIT;
  if (!number_of(g->of[ORDER_PRIORITY], "priority", -1, 1, &number)) return false;
  submit->priority = (int32_t)number;
  submit->flags = untracked != Py_False && PyObject_IsTrue(untracked) > 0 ? SG_SUBMIT_UNTRACKED : 0;
  if (PyErr_Occurred() || !handle_in(g->of[ORDER_STREAM], "stream", "Stream", "_open_stream", &submit->stream) ||
      !handle_in(g->of[ORDER_OPTIONS], "options", "PlanOptions", "_open_options", &submit->plan) ||
      !deadline_of(g->of[ORDER_TIMEOUT], &submit->timeout_ns) || !label_of(g->of[ORDER_LABEL], &submit->label))
    return false;
#define SET_NUMBER(NAME, INDEX, LOW, HIGH)                               \
  if (!number_of(g->of[INDEX], #NAME, LOW, HIGH, &number)) return false; \
  submit->NAME = number;
  ORDER_NUMBERS(SET_NUMBER)
#undef SET_NUMBER
#define SET_REAL(NAME, INDEX) \
  if (!real_of(g->of[INDEX], #NAME, &submit->NAME)) return false;
  ORDER_REALS(SET_REAL)
#undef SET_REAL
  if (!PyTuple_CheckExact(after) || PyTuple_GET_SIZE(after) > 0) {
    PyObject *jobs = PySequence_Tuple(after);
    if (!jobs) {
      if (PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "after is %s; it must be a sequence of jobs", shown(after, room));
      return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(jobs) && !PyErr_Occurred(); ++i) {
      PyObject *job = PyTuple_GET_ITEM(jobs, i);
      if (!PyObject_TypeCheck(job, job_type))
        PyErr_Format(PyExc_TypeError, "after[%zd] is %s, which is no job", i, shown(job, room));
      else
        run_after(in, job);
    }
    Py_DECREF(jobs);
  }
  submit->graph = (sg_graph *)(uintptr_t)g->graph;
  submit->after = in->after.handles;
  submit->after_count = in->in_order ? in->after.count : 0; /* a recorded submission runs after no job */
  return !PyErr_Occurred();
}

void call_done(call *in) {
  if (in->after.handles != in->after.inline_handles) PyMem_Free(in->after.handles);
  Py_CLEAR(in->job);
}

/* Starts the thread that completes jobs. */
static bool ready_to_post(void) {
  if (completion_queue) return true;
  PyObject *started = PyObject_CallNoArgs(hook.start);
  Py_XDECREF(started);
  return started != NULL;
}

static bool begin_use(call *in, PyObject *how, order_arguments *order) {
  PyObject *first = NULL, *earlier = NULL, *type = (PyObject *)job_type;
  int use, index = 0;
  if (!PyArg_ParseTuple(how, "i|OiO", &use, &first, &index, &earlier)) return false;
  order->use = (operation_use)use, order->index = index;
  order->earlier = earlier && earlier != Py_None ? earlier : NULL;
  if (order->use == USE_RUN)
    type = first;
  else if (first)
    order->on = PyLong_AsUnsignedLongLong(first);
  in->in_order = order->use != USE_UPDATE;
  in->is_planned = order->use == USE_PLAN || order->use == USE_SUPPORTS;
  in->is_run_later = order->use == USE_PLAN;
  return !PyErr_Occurred() && call_begin(in, (PyTypeObject *)type);
}

bool begin_operation(call *in, PyObject *type, order_arguments *order) {
  if (PyTuple_CheckExact(type)) return begin_use(in, type, order);
  if (!PyLong_Check(type)) return call_begin(in, (PyTypeObject *)type);
  order->graph = PyLong_AsUnsignedLongLong(type);
  in->in_order = false;
  return !PyErr_Occurred() && call_begin(in, job_type);
}

bool is_described(const order_arguments *order) {
  return order->graph != 0 || (order->use != USE_NONE && order->use != USE_RUN);
}

static sg_plan_options options_of(const call *in, const order_arguments *order) {
  sg_plan_options chosen = SG_PLAN_OPTIONS_INIT;
  if (order->on) chosen = *(const sg_plan_options *)(uintptr_t)order->on;
  sg_memory_kind *const places[] = {&chosen.place_a, &chosen.place_b, &chosen.place_c, &chosen.place};
  for (int i = 0; i < 4; ++i)
    if (*places[i] == SG_MEMORY_AUTO) *places[i] = in->places[i];
  return chosen;
}

static PyObject *use_operation(call *in, const order_arguments *order, int32_t number, const void *desc,
                               PyObject *result) {
  sg_gemm_desc gemm;
  const sg_operation_desc operation = sg_operation_of(number, desc, &gemm);
  sg_context *const on = (sg_context *)(uintptr_t)in->to.handle;
  const sg_plan_options chosen = order->use == USE_PLAN ? options_of(in, order) : (sg_plan_options)SG_PLAN_OPTIONS_INIT;
  sg_plan *plan = NULL;
  sg_status status;
  Py_BEGIN_ALLOW_THREADS
  if (order->use == USE_PLAN)
    status = sg_plan_create(on, &operation, &chosen, &plan);
  else if (order->use == USE_SUPPORTS)
    status = sg_context_supports(on, &operation);
  else
    status = sg_graph_update((sg_graph *)(uintptr_t)order->on, order->index, &operation);
  Py_END_ALLOW_THREADS
  if (order->use == USE_UPDATE) return kept(in->job, status, in->operation, result);
  if (order->use == USE_SUPPORTS && (status == SG_STATUS_OK || status == SG_STATUS_UNSUPPORTED))
    return PyBool_FromLong(status == SG_STATUS_OK);
  if (status != SG_STATUS_OK) return raise_call(status, in->operation);
  PyObject *const keeper = ((job_object *)in->job)->function ? in->job : Py_None;
  return Py_BuildValue("(KO)", (unsigned long long)(uintptr_t)plan, keeper);
}

PyObject *finish_operation(call *in, const order_arguments *order, int32_t number, const void *desc, PyObject *result) {
  const bool records = order->graph != 0;
  sg_submit submit;
  sg_job *handle = NULL;
  sg_status status = SG_STATUS_OK;
  if (is_described(order) && !records) return use_operation(in, order, number, desc, result);
  if (!fill_order(in, order, &submit) || (!records && !ready_to_post())) return NULL;
  const int64_t planned[] = {number, (int64_t)(intptr_t)desc};
  if (order->use == USE_RUN && number != NO_CALL) number = SG_CALL_NUMBER_plan_run, desc = planned;
  if (number != NO_CALL) {
    if (!records) post_completion(&submit, in->job);
    PyThreadState *const state = in->is_small && !in->to.waits ? NULL : PyEval_SaveThread();
    status = sg_calls[number]((void *)(uintptr_t)in->to.handle, desc, &submit, records ? NULL : &handle);
    if (state) PyEval_RestoreThread(state);
  }
  if (records) return kept(in->job, status, in->operation, result);
  if (status != SG_STATUS_OK) {
    unpost_completion(&submit, in->job);
    return raise_call(status, in->operation);
  }
  PyObject *const job = in->job;
  in->job = NULL;
  job_submitted(job, handle, result);
  return job;
}

typedef enum run_mode { ASYNC, BLOCKING } run_mode; /* False and True */

static sg_status run_gemm_to_its_end(sg_context *on, const void *desc, const sg_submit *submit) {
  return sg_gemm(on, desc, submit);
}

static bool wait_for(call *in, const sg_gemm_desc *d, const sg_submit *submit) {
  const blocking_call c = {d,         run_gemm_to_its_end, sg_call_gemm,
                           d->c.rows, d->c.cols,           d->op_a == SG_TRANSPOSE_N ? d->a.cols : d->a.rows,
                           d->batch};
  return run_blocking(in, &c, submit);
}

static bool is_small(const sg_gemm_desc *d) {
  return (double)d->c.rows * (double)d->c.cols * (double)(d->a.rows + d->a.cols) * (double)(d->batch + 1) < 4e6;
}

static PyObject *run_gemm(call *in, run_mode mode, gemm_request *p, const gemm_arguments *g,
                          const order_arguments *og) {
  sg_submit submit;
  if (!fill_gemm(in, p, g)) return NULL;
  if (mode == BLOCKING) {
    if (!fill_order(in, og, &submit)) return NULL;
    return p->empty || wait_for(in, &p->desc, &submit) ? Py_NewRef(p->result) : NULL;
  }
  if ((is_described(og) || og->use == USE_RUN) && !has_items(p)) return NULL;
  const operand *const operands[] = {&p->a, &p->b, &p->c};
  for (int i = 0; i < 3; ++i) in->places[i] = operands[i]->seen.memory;
  in->is_small = og->graph == 0 && is_small(&p->desc);
  return finish_operation(in, og, p->empty ? NO_CALL : SG_CALL_NUMBER_gemm, &p->desc, p->result);
}

/* submit_gemm(type or graph, target, mode, method, a, b, c, alpha, beta, op_a, op_b, compute, bias, activation, copies,
 * each option of the order): a Job, (keeper, result) of a recording, or the result if the mode is BLOCKING. */
PyObject *submit_gemm(PyObject *self, PyObject *const *args, Py_ssize_t count) {
  (void)self;
  if (count != 15 + ORDER_COUNT)
    return PyErr_Format(PyExc_TypeError, "submit_gemm takes %d arguments (%zd given)", 15 + ORDER_COUNT, count);
  const run_mode mode = (run_mode)PyLong_AsLong(args[2]);
  const gemm_arguments g = {args[4], args[5],  args[6],  args[7],  args[8],
                            args[9], args[10], args[11], args[12], args[13]};
  order_arguments og = {0};
  memcpy(og.of, args + 15, sizeof og.of);
  call in = {.operation = PyUnicode_AsUTF8(args[3]),
             .in_order = true,
             .copies = PyObject_IsTrue(args[14]) > 0,
             .places_each = true};
  gemm_request p;
  PyObject *made = NULL;
  if (PyErr_Occurred()) return NULL;
  gemm_init(&p);
  if (target_of(args[1], &in.to) && begin_operation(&in, args[0], &og)) made = run_gemm(&in, mode, &p, &g, &og);
  call_done(&in);
  gemm_done(&p);
  return made;
}
