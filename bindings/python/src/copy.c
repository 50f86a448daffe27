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

static bool runs_of(const view *d, const view *s, sg_copy_desc *out) {
  bool same = d->ndim == s->ndim && d->dtype == s->dtype;
  for (int i = 0; same && i < d->ndim; ++i) same = d->shape[i] == s->shape[i];
  if (!same) {
    PyObject *const from = shape_text(s), *const to = shape_text(d);
    if (from && to)
      raise_argument("src has shape %R and type %s, dst has shape %R and type %s; they must be equal", from,
                     sg_dtype_name(s->dtype), to, sg_dtype_name(d->dtype));
    Py_XDECREF(from);
    Py_XDECREF(to);
    return false;
  }
  const int64_t bytes = tight_bytes(d);
  if (bytes >= 0 && tight_bytes(s) >= 0) {
    out->width = out->dst_pitch = out->src_pitch = (uint64_t)bytes;
    out->height = 1;
    return true;
  }
  const int item_ndim = d->ndim < 2 ? d->ndim : 2;
  sg_matrix into, from;
  if (!lay_out_view(d, item_ndim, ROW_VECTOR, &into)) return refuse_strides(d, item_ndim, "dst");
  if (!lay_out_view(s, item_ndim, ROW_VECTOR, &from)) return refuse_strides(s, item_ndim, "src");
  bool stack = false;
  for (int i = 0; i < d->ndim - 2; ++i) stack = stack || d->shape[i] != 1;
  if (stack || into.layout != from.layout)
    return raise_argument("src and dst differ in layout, or are stacks with gaps");
  const bool by_rows = into.layout == SG_LAYOUT_ROW_MAJOR;
  const uint64_t size = (uint64_t)sg_dtype_size(into.dtype), width = (uint64_t)(by_rows ? into.cols : into.rows) * size;
  out->width = width;
  out->height = (uint64_t)(by_rows ? into.rows : into.cols);
  out->dst_pitch = into.ld ? (uint64_t)into.ld * size : width;
  out->src_pitch = from.ld ? (uint64_t)from.ld * size : width;
  return true;
}

bool fill_copy(call *in, copy *c, PyObject *dst, PyObject *src) {
  view d, s;
  c->desc = (sg_copy_desc)SG_COPY_DESC_INIT;
  c->result = settled(in, dst, "dst");
  PyObject *from = c->result ? settled(in, src, "src") : NULL;
  if (!from || !see_array(in, c->result, "dst", true, &d) || !see_array(in, from, "src", false, &s) ||
      !runs_of(&d, &s, &c->desc))
    return false;
  c->desc.dst = d.data;
  c->desc.src = s.data;
  return true;
}

/* submit_copy(type or graph, target, dst, src, order): a Job whose result is dst, or (keeper, dst) of a recording. */
PyObject *submit_copy(PyObject *self, PyObject *args) {
  PyObject *type, *to, *dst, *src, *made = NULL;
  order_arguments og = {0};
  call in = {.operation = "copy", .in_order = true};
  copy c;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOO&", &type, &to, &dst, &src, order_of, &og)) return NULL;
  if (target_of(to, &in.to) && begin_operation(&in, type, &og) && fill_copy(&in, &c, dst, src))
    made = finish_operation(&in, &og, SG_CALL_NUMBER_copy, &c.desc, c.result);
  call_done(&in);
  return made;
}
