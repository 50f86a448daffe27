/* SPDX-License-Identifier: Apache-2.0 */
/* Images: arrays of four dimensions in the order of an image layout. */
#ifndef STREAMGEMM_PYTHON_IMAGES_H
#define STREAMGEMM_PYTHON_IMAGES_H

#include "submission.h"

/* The sizes of images, or of filters: n is the number of filters, c their channels. */
typedef struct sizes {
  int64_t n, c, h, w;
} sizes;

/* Of images and of filters. */
static inline bool has_channels_last(int layout) { return layout != 0; }

bool read_sizes(const view *v, const char *name, bool channels_last, sizes *to);
gemm_shape shape_of_sizes(const sizes *s, bool channels_last);
/* The memory of images, if the elements of each follow each other. */
bool images_of(const view *v, const char *name, sg_images *to);
/* The sizes of the result of a convolution; with a window's rows and columns as the sizes of the filter. */
sizes convolved(const sizes *x, const sizes *filter, const sg_windows *w);

#endif /* STREAMGEMM_PYTHON_IMAGES_H */
