/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of images as a matrix, and their sums. */
#include "images.h"

typedef struct windows_arguments {
  PyObject *from, *out, *shape; /* shape: of new images; None without */
  sg_windows windows;
  long long first, used; /* channels; used 0: all */
  int image_layout, columns, accumulate;
} windows_arguments;

/* What both descriptors have beside their operands. */
#define SET_WINDOWS(d, g, x)                                                                 \
  do {                                                                                       \
    (d)->images = (x)->n, (d)->channels = (x)->c, (d)->height = (x)->h, (d)->width = (x)->w; \
    (d)->first_channel = (g)->first, (d)->used_channels = (g)->used;                         \
    (d)->windows = (g)->windows;                                                             \
    (d)->image_layout = (sg_image_layout)(g)->image_layout;                                  \
    (d)->columns = (sg_filter_layout)(g)->columns;                                           \
  } while (0)

/* The shape of the matrix of windows. */
static bool shape_of_windows(const windows_arguments *g, const sizes *x, gemm_shape *to) {
  if (g->first < 0 || g->used < 0 || g->first > x->c - g->used)
    return raise_argument("channels is (%lld, %lld) and x has %lld channels", g->first, g->used, (long long)x->c);
  const sizes window = {1, g->used != 0 ? g->used : x->c, g->windows.kernel_h, g->windows.kernel_w};
  const sizes windows = convolved(x, &window, &g->windows);
  Py_ssize_t rows, columns;
  if (__builtin_mul_overflow(windows.n * windows.h, windows.w, &rows) ||
      __builtin_mul_overflow(window.h * window.w, window.c, &columns))
    return raise_argument("the matrix of windows has too many elements");
  *to = (gemm_shape){.ndim = 2, .extent = {rows, columns}};
  return true;
}

static bool fill_im2col(call *in, sg_im2col_desc *d, PyObject **result, const windows_arguments *g) {
  view x, out;
  sizes of_x;
  gemm_shape shape;
  *d = (sg_im2col_desc)SG_IM2COL_DESC_INIT;
  if (!see(in, g->from, "x", &x) || !read_sizes(&x, "x", has_channels_last(g->image_layout), &of_x) ||
      !images_of(&x, "x", &d->x) || !shape_of_windows(g, &of_x, &shape))
    return false;
  SET_WINDOWS(d, g, &of_x);
  PyObject *like = settled(in, g->from, "x");
  *result = like ? given_or_new(in, g->out, "out", like, x.dtype, &shape) : NULL;
  if (!*result || !see_rows(in, *result, "out", true, &out, &d->matrix) || !has_extents(&out, "out", &shape))
    return false;
  if (out.dtype == x.dtype) return true;
  return raise_argument("out is %s and x is %s; they must be equal", sg_dtype_name(out.dtype), sg_dtype_name(x.dtype));
}

/* The shape of new images, from a tuple of four integers. */
static bool shape_of_images(const windows_arguments *g, gemm_shape *to) {
  if (g->shape == Py_None) return raise_argument("shape is None; without out it must be that of the images");
  if (g->used != 0) return raise_argument("out is None; of a range of channels it must be given");
  *to = (gemm_shape){.ndim = 4};
  for (int i = 0; i < 4; ++i) {
    to->extent[i] = PyLong_AsSsize_t(PyTuple_GetItem(g->shape, i));
    if (PyErr_Occurred()) return false;
  }
  return true;
}

static bool fill_col2im(call *in, sg_col2im_desc *d, PyObject **result, const windows_arguments *g) {
  view matrix, out;
  sizes of_x;
  gemm_shape images, shape;
  *d = (sg_col2im_desc)SG_COL2IM_DESC_INIT;
  if (!see_rows(in, g->from, "matrix", false, &matrix, &d->matrix)) return false;
  if (g->out == Py_None) {
    if (g->accumulate) return raise_argument("out is None; accumulate is True, so it is read: it must be given");
    if (!shape_of_images(g, &images)) return false;
  }
  PyObject *like = settled(in, g->from, "matrix");
  *result = like ? given_or_new(in, g->out, "out", like, matrix.dtype, &images) : NULL;
  if (!*result || !see_array(in, *result, "out", true, &out) ||
      !read_sizes(&out, "out", has_channels_last(g->image_layout), &of_x) || !images_of(&out, "out", &d->x) ||
      !shape_of_windows(g, &of_x, &shape) || !has_extents(&matrix, "matrix", &shape))
    return false;
  SET_WINDOWS(d, g, &of_x);
  d->accumulate = g->accumulate;
  if (out.dtype == matrix.dtype) return true;
  return raise_argument("out is %s and matrix is %s; they must be equal", sg_dtype_name(out.dtype),
                        sg_dtype_name(matrix.dtype));
}

static sg_status run_im2col(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_im2col_async(on, desc, submit, out);
}

static sg_status run_col2im(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_col2im_async(on, desc, submit, out);
}

/* submit_windows(type or graph, target, sums, x or matrix, out, shape, kernel, windows, image layout, columns,
 * channels, accumulate, order): a Job whose result is out: images if it
 * sums. */
PyObject *submit_windows(PyObject *self, PyObject *args) {
  PyObject *type, *to, *made = NULL, *result = NULL;
  windows_arguments g;
  order_arguments order = {0};
  call in = {.in_order = true};
  int sums;
  long long n[10];
  (void)self;
  if (!PyArg_ParseTuple(args, "OOpOOO(LL)(LLLLLLLL)ii(LL)pO&", &type, &to, &sums, &g.from, &g.out, &g.shape, &n[0],
                        &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7], &n[8], &n[9], &g.image_layout, &g.columns,
                        &g.first, &g.used, &g.accumulate, order_of, &order))
    return NULL;
  g.windows = (sg_windows){n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]};
  if (target_of(to, &in.to) && begin_operation(&in, type, &order)) {
    sg_im2col_desc windows;
    sg_col2im_desc images;
    if (sums ? fill_col2im(&in, &images, &result, &g) : fill_im2col(&in, &windows, &result, &g))
      made = submit_operation(&in, &order, sums ? run_col2im : run_im2col, sums ? (void *)&images : (void *)&windows,
                              result);
  }
  call_done(&in);
  Py_CLEAR(result);
  return made;
}
