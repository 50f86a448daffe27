/* SPDX-License-Identifier: Apache-2.0 */
#include "submission.h"

/* Bytes of an array without gaps in row-major order; -1: it has gaps or another order. */
static int64_t tight_bytes(const view *v) {
  int64_t bytes = sg_dtype_size(v->dtype);
  for (int i = v->ndim - 1; i >= 0; --i) {
    if (v->shape[i] != 1 && v->strides[i] != bytes) return -1;
    bytes *= v->shape[i];
  }
  return bytes;
}

static bool runs_of(const operand *dst, const operand *src, runs *out) {
  const view *d = &dst->seen, *s = &src->seen;
  bool same = d->ndim == s->ndim && d->dtype == s->dtype;
  for (int i = 0; same && i < d->ndim; ++i) same = d->shape[i] == s->shape[i];
  if (!same) return raise_argument("src and dst differ in shape or dtype");
  const int64_t bytes = tight_bytes(d);
  if (bytes >= 0 && tight_bytes(s) >= 0) {
    *out = (runs){bytes, 1, bytes, bytes};
    return true;
  }
  sg_matrix into, from;
  int64_t batch, stride;
  if (!matrix_of(d, dst->name, ROW_VECTOR, &into, &batch, &stride) ||
      !matrix_of(s, src->name, ROW_VECTOR, &from, &batch, &stride))
    return false;
  if (batch != 1 || into.layout != from.layout)
    return raise_argument("src and dst differ in layout, or are stacks with gaps");
  const bool by_rows = into.layout == SG_LAYOUT_ROW_MAJOR;
  const uint64_t size = (uint64_t)sg_dtype_size(into.dtype), width = (uint64_t)(by_rows ? into.cols : into.rows) * size;
  *out = (runs){width, (uint64_t)(by_rows ? into.rows : into.cols), into.ld ? (uint64_t)into.ld * size : width,
                from.ld ? (uint64_t)from.ld * size : width};
  return true;
}

bool fill_copy(copy *c, const target *to, hold *holds, PyObject *dst, PyObject *src) {
  operand d = {.name = "dst"}, s = {.name = "src"};
  if (!view_of(dst, d.name, true, &d.seen, &holds[0]) || !view_of(src, s.name, false, &s.seen, &holds[1]) ||
      !reachable(&d.seen, d.name, to) || !reachable(&s.seen, s.name, to) || !runs_of(&d, &s, &c->in))
    return false;
  c->dst = d.seen.data;
  c->src = s.seen.data;
  return true;
}

sg_status run_copy(const target *to, const copy *c, const sg_submit *submit, sg_job **out) {
  return sg_copy_2d_async((sg_context *)(uintptr_t)to->handle, c->dst, c->in.dst_pitch, c->src, c->in.src_pitch,
                          c->in.width, c->in.height, submit, out);
}

/* submit_copy(type, target, dst, src, stream, after, priority, flags): a Job whose result is dst. */
PyObject *submit_copy(PyObject *self, PyObject *args) {
  PyTypeObject *type;
  target to;
  PyObject *dst, *src;
  order_arguments og = {0};
  (void)self;
  if (!PyArg_ParseTuple(args, "O(Kiip)OOKOiI", &type, &to.handle, &to.cuda_device, &to.context_id, &to.waits, &dst,
                        &src, &og.stream, &og.after, &og.priority, &og.flags))
    return NULL;
  copy c;
  order o = {0};
  PyObject *job = job_new(type, 2);
  if (!job) return NULL;
  if (!fill_copy(&c, &to, job_holds(job), dst, src) || !fill_order(&o, &og) || !ready_to_post()) {
    order_done(&o);
    Py_DECREF(job);
    return NULL;
  }
  sg_job *handle = NULL;
  sg_status status;
  post_completion(&o.submit, job);
  Py_BEGIN_ALLOW_THREADS
  status = run_copy(&to, &c, &o.submit, &handle);
  Py_END_ALLOW_THREADS
  job = posted(job, &o, status, handle, dst);
  order_done(&o);
  return job;
}
