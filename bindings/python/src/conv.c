/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of images: arrays of four dimensions in the order of an image layout. */
#include "images.h"

typedef struct conv_options {
  sg_windows windows; /* but its kernel */
  int64_t groups, workspace;
  int image_layout, filter_layout;
  PyObject *compute;
} conv_options;

static bool filters_of(const view *v, const char *name, const void **to) {
  sg_images images = {0};
  if (!images_of(v, name, &images)) return false;
  if (images.stride != 0 && images.stride != v->shape[1] * v->shape[2] * v->shape[3])
    return raise_argument("the filters of %s do not follow each other in memory", name);
  *to = v->data;
  return true;
}

static bool same_type(const view *v, const char *name, const view *of, const char *of_name) {
  if (v->dtype == of->dtype) return true;
  return raise_argument("%s is %s and %s is %s; they must be equal", name, sg_dtype_name(v->dtype), of_name,
                        sg_dtype_name(of->dtype));
}

static bool fits_channels(int64_t channels, const char *name, const sizes *filter, int64_t groups) {
  if (channels == filter->c * groups) return true;
  return raise_argument("%s has %lld channels; the filters have %lld in each of %lld groups", name, (long long)channels,
                        (long long)filter->c, (long long)groups);
}

/* What the descriptors have in common. */
#define SET_CONV(d, g, x, filter)                                                            \
  do {                                                                                       \
    (d)->images = (x)->n, (d)->channels = (x)->c, (d)->height = (x)->h, (d)->width = (x)->w; \
    (d)->out_channels = (filter)->n, (d)->groups = (g)->groups, (d)->windows = (g)->windows; \
    (d)->windows.kernel_h = (filter)->h, (d)->windows.kernel_w = (filter)->w;                \
    (d)->workspace = (uint64_t)(g)->workspace;                                               \
    (d)->image_layout = (sg_image_layout)(g)->image_layout;                                  \
    (d)->filter_layout = (sg_filter_layout)(g)->filter_layout;                               \
  } while (0)

static bool compute_of(const conv_options *g, sg_compute *to) {
  const int compute = enum_of(g->compute, hook.computes, "compute");
  *to = (sg_compute)compute;
  return !PyErr_Occurred();
}

typedef struct conv_arguments {
  PyObject *x, *w, *bias, *out, *activation;
  conv_options o;
} conv_arguments;

static bool fill_conv(call *in, sg_conv2d_desc *d, PyObject **result, const conv_arguments *g) {
  view x, w, y;
  sizes of_x = {0}, of_w = {0};
  *d = (sg_conv2d_desc)SG_CONV2D_DESC_INIT;
  const bool last = has_channels_last(g->o.image_layout);
  const int activation = g->activation == Py_None ? 0 : enum_of(g->activation, hook.activations, "activation");
  if (PyErr_Occurred() || !compute_of(&g->o, &d->compute)) return false;
  d->activation = (sg_activation)activation;
  if (!see(in, g->x, "x", &x) || !read_sizes(&x, "x", last, &of_x) || !images_of(&x, "x", &d->x) ||
      !see(in, g->w, "w", &w) || !read_sizes(&w, "w", has_channels_last(g->o.filter_layout), &of_w) ||
      !filters_of(&w, "w", &d->w) || !same_type(&w, "w", &x, "x") || !fits_channels(of_x.c, "x", &of_w, g->o.groups))
    return false;
  SET_CONV(d, &g->o, &of_x, &of_w);
  d->dtype = x.dtype;
  const sizes of_y = convolved(&of_x, &of_w, &d->windows);
  const gemm_shape shape = shape_of_sizes(&of_y, last), channels = {.ndim = 1, .extent = {of_w.n}};
  PyObject *like = settled(in, g->x, "x");
  *result = like ? given_or_new(in, g->out, "out", like, product_dtype(x.dtype), &shape) : NULL;
  if (!*result || !see_array(in, *result, "out", true, &y) || !has_extents(&y, "out", &shape) ||
      !same_type(&y, "out", &x, "x") || !images_of(&y, "out", &d->y))
    return false;
  if (g->bias == Py_None) return true;
  view bias;
  if (!see(in, g->bias, "bias", &bias) || !has_extents(&bias, "bias", &channels) || !same_type(&bias, "bias", &x, "x"))
    return false;
  if (bias.shape[0] > 1 && bias.strides[0] != (Py_ssize_t)sg_dtype_size(bias.dtype))
    return raise_argument("the values of bias do not follow each other in memory");
  d->bias = bias.data;
  return true;
}

static sg_status run_conv2d(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_conv2d_async(on, desc, submit, out);
}

/* submit_conv2d(type or graph, target, x, w, bias, out, windows, groups, image layout, filter layout, activation,
 * workspace, compute, order): a Job whose result is out. */
PyObject *submit_conv2d(PyObject *self, PyObject *args) {
  PyObject *type, *to, *made = NULL, *result = NULL;
  conv_arguments g = {0};
  sg_windows *const w = &g.o.windows;
  order_arguments og = {0};
  call in = {.in_order = true};
  sg_conv2d_desc desc;
  long long numbers[10];
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOO(LLLLLLLL)LiiOLOO&", &type, &to, &g.x, &g.w, &g.bias, &g.out, &numbers[0],
                        &numbers[1], &numbers[2], &numbers[3], &numbers[4], &numbers[5], &numbers[6], &numbers[7],
                        &numbers[8], &g.o.image_layout, &g.o.filter_layout, &g.activation, &numbers[9], &g.o.compute,
                        order_of, &og))
    return NULL;
  *w = (sg_windows){1,          1,          numbers[0], numbers[1], numbers[2],
                    numbers[3], numbers[4], numbers[5], numbers[6], numbers[7]};
  g.o.groups = numbers[8], g.o.workspace = numbers[9];
  if (target_of(to, &in.to) && begin_operation(&in, type, &og) && fill_conv(&in, &desc, &result, &g))
    made = submit_operation(&in, &og, run_conv2d, &desc, result);
  call_done(&in);
  Py_CLEAR(result);
  return made;
}

typedef struct backward_conv_arguments {
  PyObject *dy, *x, *w, *dx, *dw, *dbias;
  long long height, width; /* of x and dx; negative: of the arrays */
  int accumulate;
  conv_options o;
} backward_conv_arguments;

/* The sizes of x: its own, those of dx, or as given. */
static bool size_of_x(call *in, const backward_conv_arguments *g, const view *x, sizes *to) {
  const bool last = has_channels_last(g->o.image_layout);
  if (g->x != Py_None) return read_sizes(x, "x", last, to);
  if (g->dx != Py_None) {
    view dx;
    return see(in, g->dx, "dx", &dx) && read_sizes(&dx, "dx", last, to);
  }
  if (g->height < 0) return raise_argument("size is None; without x and dx it must be the height and width of dx");
  to->h = g->height, to->w = g->width;
  return true;
}

static bool see_gradients(call *in, sg_conv2d_backward_desc *d, PyObject *results, const backward_conv_arguments *g,
                          PyObject *like, const view *dy, const sizes *of_x, const sizes *of_w) {
  const gemm_shape images = shape_of_sizes(of_x, has_channels_last(g->o.image_layout));
  const gemm_shape filters = shape_of_sizes(of_w, has_channels_last(g->o.filter_layout));
  const gemm_shape channels = {.ndim = 1, .extent = {of_w->n}};
  view dx, dw, dbias;
  const void *data = NULL;
  if (g->w != Py_None && (!see_result(in, results, 0, g->dx, "dx", like, dy->dtype, &images, &dx) ||
                          !same_type(&dx, "dx", dy, "dy") || !images_of(&dx, "dx", &d->dx)))
    return false;
  if (g->x != Py_None) {
    if (!see_result(in, results, 1, g->dw, "dw", like, dy->dtype, &filters, &dw) || !filters_of(&dw, "dw", &data))
      return false;
    d->dw = dw.data;
    d->gradient_dtype = dw.dtype;
  }
  if (g->dbias == Py_False) return true;
  if (!see_result(in, results, 2, g->dbias, "dbias", like, d->dw ? d->gradient_dtype : dy->dtype, &channels, &dbias))
    return false;
  if (dbias.shape[0] > 1 && dbias.strides[0] != (Py_ssize_t)sg_dtype_size(dbias.dtype))
    return raise_argument("the values of dbias do not follow each other in memory");
  if (d->dw && dbias.dtype != d->gradient_dtype)
    return raise_argument("dbias is %s and dw is %s; they must be equal", sg_dtype_name(dbias.dtype),
                          sg_dtype_name(d->gradient_dtype));
  d->dbias = dbias.data;
  d->gradient_dtype = dbias.dtype;
  return true;
}

static bool fill_conv_backward(call *in, sg_conv2d_backward_desc *d, PyObject *results,
                               const backward_conv_arguments *g) {
  view dy, x, w;
  sizes of_dy = {0}, of_x = {0}, of_w = {0};
  *d = (sg_conv2d_backward_desc)SG_CONV2D_BACKWARD_DESC_INIT;
  for (Py_ssize_t i = 0; i < 3; ++i) PyTuple_SET_ITEM(results, i, Py_NewRef(Py_None));
  const bool last = has_channels_last(g->o.image_layout), inner = has_channels_last(g->o.filter_layout);
  if (g->accumulate && ((g->x != Py_None && g->dw == Py_None) || g->dbias == Py_None))
    return raise_argument("accumulate is True, so dw and dbias are read: they must be given");
  if (!compute_of(&g->o, &d->compute)) return false;
  d->accumulate = g->accumulate;
  PyObject *like = settled(in, g->dy, "dy");
  if (!like || !see(in, g->dy, "dy", &dy) || !read_sizes(&dy, "dy", last, &of_dy) || !images_of(&dy, "dy", &d->dy))
    return false;
  d->dtype = dy.dtype;
  if (g->w != Py_None) {
    if (!see(in, g->w, "w", &w) || !read_sizes(&w, "w", inner, &of_w) || !filters_of(&w, "w", &d->w) ||
        !same_type(&w, "w", &dy, "dy"))
      return false;
  } else if (g->x != Py_None) {
    if (g->dw == Py_None) return raise_argument("dw is None; without w it must be given");
    if (!see(in, g->dw, "dw", &w) || !read_sizes(&w, "dw", inner, &of_w)) return false;
  } else {
    of_w = (sizes){of_dy.c, 0, 1, 1};
  }
  if (g->x != Py_None && (!see(in, g->x, "x", &x) || !images_of(&x, "x", &d->x) || !same_type(&x, "x", &dy, "dy")))
    return false;
  if (g->x == Py_None && g->w == Py_None) { /* the sums of dY alone, of any windows */
    of_x = (sizes){of_dy.n, 0, of_dy.h, of_dy.w};
    conv_options plain = g->o;
    plain.windows = (sg_windows)SG_WINDOWS_INIT;
    SET_CONV(d, &plain, &of_x, &of_w);
    d->groups = 1;
  } else {
    of_x = (sizes){of_dy.n, of_w.c * g->o.groups, 0, 0};
    if (!size_of_x(in, g, &x, &of_x) || !fits_channels(of_x.c, g->x != Py_None ? "x" : "dx", &of_w, g->o.groups))
      return false;
    SET_CONV(d, &g->o, &of_x, &of_w);
    const sizes wanted = convolved(&of_x, &of_w, &d->windows);
    const gemm_shape shape = shape_of_sizes(&wanted, last);
    if (!has_extents(&dy, "dy", &shape)) return false;
  }
  return see_gradients(in, d, results, g, like, &dy, &of_x, &of_w);
}

static sg_status run_conv2d_backward(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_conv2d_backward_async(on, desc, submit, out);
}

/* submit_conv2d_backward(type or graph, target, dy, x, w, dx, dw, dbias, height, width, windows, groups, image layout,
 * filter layout, accumulate, workspace, compute, order): a Job
 * whose result is the tuple of dx, dw and dbias. */
PyObject *submit_conv2d_backward(PyObject *self, PyObject *args) {
  PyObject *type, *to, *made = NULL;
  backward_conv_arguments g = {0};
  order_arguments og = {0};
  call in = {.in_order = true};
  sg_conv2d_backward_desc desc;
  long long numbers[10];
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOOOLL(LLLLLLLL)LiipLOO&", &type, &to, &g.dy, &g.x, &g.w, &g.dx, &g.dw, &g.dbias,
                        &g.height, &g.width, &numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4],
                        &numbers[5], &numbers[6], &numbers[7], &numbers[8], &g.o.image_layout, &g.o.filter_layout,
                        &g.accumulate, &numbers[9], &g.o.compute, order_of, &og))
    return NULL;
  g.o.windows = (sg_windows){1,          1,          numbers[0], numbers[1], numbers[2],
                             numbers[3], numbers[4], numbers[5], numbers[6], numbers[7]};
  g.o.groups = numbers[8], g.o.workspace = numbers[9];
  PyObject *results = PyTuple_New(3);
  if (results && target_of(to, &in.to) && begin_operation(&in, type, &og) &&
      fill_conv_backward(&in, &desc, results, &g))
    made = submit_operation(&in, &og, run_conv2d_backward, &desc, results);
  call_done(&in);
  Py_XDECREF(results);
  return made;
}
