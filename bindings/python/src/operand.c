/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an operand: a Job's result, a list of matrices, an array; held by the call's job from then on. */
#include "submission.h"

bool run_after(call *in, PyObject *job) {
  sg_job *handle = ((job_object *)job)->handle;
  job_list *l = &in->after;
  if (!handle) return true; /* it completed at once */
  if (!l->handles) {
    l->handles = l->inline_handles;
    l->capacity = (int32_t)(sizeof l->inline_handles / sizeof *l->inline_handles);
  }
  if (l->count == l->capacity) {
    const bool was_inline = l->handles == l->inline_handles;
    sg_job **grown = PyMem_Realloc(was_inline ? NULL : l->handles, 2 * (size_t)l->capacity * sizeof *grown);
    if (!grown) return PyErr_NoMemory(), false;
    for (int32_t i = 0; was_inline && i < l->count; ++i) grown[i] = l->handles[i];
    l->handles = grown;
    l->capacity *= 2;
  }
  l->handles[l->count++] = handle;
  return true;
}

static PyObject *raise_failure(job_object *job, const char *name) {
  job_observe(job);
  PyObject *text = PyUnicode_FromFormat("%s is a Job that failed: %S", name, job->message ? job->message : Py_None);
  const char *message = text ? PyUnicode_AsUTF8(text) : NULL;
  if (message) raise_status(SG_STATUS_DEPENDENCY_FAILED, message);
  Py_XDECREF(text);
  return NULL;
}

PyObject *settled(call *in, PyObject *given, const char *name) {
  if (!PyObject_TypeCheck(given, job_type)) return given;
  job_object *job = (job_object *)given;
  if (job->status < 0) return raise_failure(job, name);
  if ((!in->in_order || in->copies) && job->status != SG_STATUS_OK && sg_job_query(job->handle, NULL) != SG_STATUS_OK)
    return raise_argument("%s is a Job that has not completed, %s: give its result()", name,
                          in->in_order ? "which copy=True would copy too early" : "and a graph records arrays");
  if (!job->result || job->result == Py_None) return raise_argument("%s is a Job without a result", name);
  return run_after(in, given) ? job->result : NULL;
}

static bool reachable(const call *in, const view *v, const char *name) {
  if (v->place == ON_CUDA && (v->device_id >= 64 || (in->to.cuda_devices >> v->device_id & 1) == 0))
    return raise_argument("%s lies on cuda:%d, which is no device of this context", name, v->device_id);
  if (v->place == ON_OTHER && v->device_id != in->to.context_id)
    return raise_argument("%s is in the device memory of another context", name);
  return true;
}

static const char *name_of_memory(sg_memory_kind kind) {
  return kind == SG_MEMORY_PAGEABLE ? "pageable" : kind == SG_MEMORY_PINNED ? "pinned" : "device";
}

bool see_array(call *in, PyObject *given, const char *name, bool writable, view *out) {
  hold *held = job_hold(in->job);
  if (!held || !view_of(given, name, writable, out, held) || !reachable(in, out, name)) return false;
  if (in->is_planned && out->memory != SG_MEMORY_AUTO && !out->data) {
    out->data = SG_PLAN_ADDRESS;
    if (in->places[3] == SG_MEMORY_AUTO) in->placed = name, in->places[3] = out->memory;
    if (!in->places_each && in->places[3] != out->memory)
      return raise_argument(
          "%s is a placeholder in %s memory, and %s one in %s memory; all of this operation lie in one", name,
          name_of_memory(out->memory), in->placed, name_of_memory(in->places[3]));
  }
  return true;
}

static bool copy_of(call *in, const operand *o, int item_ndim, view *v, sg_matrix *out) {
  hold *held = job_hold(in->job);
  matrix_object *copied = held ? gather(v, item_ndim, o->name) : NULL;
  if (!copied) return false;
  held->owner = (PyObject *)copied;
  *v = copied->of;
  return lay_out_view(v, item_ndim, o->role, out) || refuse_strides(v, item_ndim, o->name);
}

static bool see_matrix(call *in, operand *o, PyObject *given, view *v, sg_matrix *out) {
  given = settled(in, given, o->name);
  if (!given || !see_array(in, given, o->name, o->result != NULL, v)) return false;
  if (o->result) {
    if (!has_shape(o, v)) return false;
  } else {
    if (v->ndim < (o->list ? 2 : 1)) return raise_argument("%s has %d dimensions; a matrix has two", o->name, v->ndim);
    if (v->dtype == SG_DTYPE_I32)
      return raise_argument(
          "%s has elements of i32 (int32), which only results have; operands have f16, bf16, f32, f64, "
          "c64, c128, i8, f8_e4m3 or f8_e5m2",
          o->name);
    o->item_ndim = v->ndim < 2 ? 1 : 2;
  }
  if (lay_out_view(v, o->item_ndim, o->role, out)) return true;
  return in->copies && !o->result ? copy_of(in, o, o->item_ndim, v, out) : refuse_strides(v, o->item_ndim, o->name);
}

static bool alike(const view *x, const sg_matrix *m, const view *y, const sg_matrix *n) {
  if (x->ndim != y->ndim || m->rows != n->rows || m->cols != n->cols || m->dtype != n->dtype) return false;
  return m->ld == n->ld && m->layout == n->layout;
}

/* A list of matrices of one shape: an array of addresses. `tight`: copies each matrix that has gaps. */
static bool see_list(call *in, operand *o, bool tight) {
  for (Py_ssize_t i = 0; i < o->list_size; ++i) {
    view v;
    sg_matrix m;
    if (!see_matrix(in, o, PyTuple_GET_ITEM(o->list, i), &v, &m)) return false;
    const bool as_it_is = m.layout == SG_LAYOUT_ROW_MAJOR && m.ld <= m.cols;
    if (tight && !as_it_is && !copy_of(in, o, o->item_ndim, &v, &m)) return false;
    if (i == 0) {
      o->seen = v;
      o->matrix = m;
    }
    if (in->copies && !o->result && !tight && (m.ld != o->matrix.ld || m.layout != o->matrix.layout))
      return see_list(in, o, true);
    if (v.ndim != o->item_ndim || !alike(&v, &m, &o->seen, &o->matrix))
      return raise_argument(
          "%s[%zd] is not like %s[0]: the items of a list must share shape, dtype and strides (a group of "
          "different ones: gemm_grouped)",
          o->name, i, o->name);
    o->items[i] = m.data;
  }
  return true;
}

bool see_operand(call *in, operand *o, PyObject *given) {
  given = settled(in, given, o->name);
  if (!given) return false;
  if (!PyList_CheckExact(given) && !PyTuple_CheckExact(given)) return see_matrix(in, o, given, &o->seen, &o->matrix);
  o->list = PySequence_Tuple(given); /* reading an item may run any code, which may change the list */
  if (!o->list) return false;
  o->list_size = PyTuple_GET_SIZE(o->list);
  if (o->list_size == 0) return raise_argument("%s is an empty list", o->name);
  o->items = PyMem_Malloc((size_t)o->list_size * sizeof *o->items);
  if (!o->items) return PyErr_NoMemory(), false;
  return see_list(in, o, false);
}

void operand_done(operand *o) {
  PyMem_Free(o->items);
  Py_CLEAR(o->list);
}
