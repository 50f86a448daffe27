/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes and the memory of images. */
#include "images.h"

bool read_sizes(const view *v, const char *name, bool channels_last, sizes *to) {
  if (v->ndim != 4) return raise_argument("%s has %d dimensions; it must have 4", name, v->ndim);
  const int c = channels_last ? 3 : 1, h = channels_last ? 1 : 2;
  *to = (sizes){v->shape[0], v->shape[c], v->shape[h], v->shape[h + 1]};
  return true;
}

gemm_shape shape_of_sizes(const sizes *s, bool channels_last) {
  gemm_shape shape = {.ndim = 4, .extent = {s->n, s->c, s->h, s->w}};
  if (channels_last) shape.extent[1] = s->h, shape.extent[2] = s->w, shape.extent[3] = s->c;
  return shape;
}

bool images_of(const view *v, const char *name, sg_images *to) {
  const Py_ssize_t size = (Py_ssize_t)sg_dtype_size(v->dtype);
  Py_ssize_t step = size;
  for (int i = 3; i > 0; --i) {
    if (v->shape[i] > 1 && v->strides[i] != step)
      return raise_argument("the elements of an image of %s do not follow each other in memory", name);
    step *= v->shape[i];
  }
  const bool one = v->shape[0] <= 1 || step == 0;
  if (!one && (v->strides[0] < step || v->strides[0] % size != 0))
    return raise_argument("the images of %s overlap or are not in the order of memory", name);
  *to = (sg_images){v->data, one ? 0 : v->strides[0] / size};
  return true;
}

static int64_t windows_in(int64_t size, int64_t pads, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t room = size + pads - dilation * (kernel - 1) - 1;
  return stride <= 0 || size == 0 || room < 0 ? 0 : room / stride + 1;
}

sizes convolved(const sizes *x, const sizes *filter, const sg_windows *w) {
  return (sizes){x->n, filter->n, windows_in(x->h, w->pad_top + w->pad_bottom, filter->h, w->stride_h, w->dilation_h),
                 windows_in(x->w, w->pad_left + w->pad_right, filter->w, w->stride_w, w->dilation_w)};
}
