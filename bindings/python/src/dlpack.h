/* SPDX-License-Identifier: Apache-2.0 */
/* The ABI of DLPack, versions 0 and 1: the protocol by which array libraries share memory. */
#ifndef STREAMGEMM_PYTHON_DLPACK_H
#define STREAMGEMM_PYTHON_DLPACK_H

#include <stdint.h>

enum dl_type_code {
  DL_INT = 0,
  DL_UINT = 1,
  DL_FLOAT = 2,
  DL_BFLOAT = 4,
  DL_COMPLEX = 5,
  DL_FLOAT8_E4M3FN = 10, /* since DLPack 1.1 */
  DL_FLOAT8_E5M2 = 12
};
enum { DL_MAJOR = 1, DL_MINOR = 0, DL_FLAG_READ_ONLY = 1 };

typedef struct dl_tensor {
  void *data;
  struct {
    int32_t type; /* ON_... of native.h */
    int32_t id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: row major without gaps */
  uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
  dl_tensor tensor;
  void *manager;
  void (*release)(struct dl_managed *);
} dl_managed;

typedef struct dl_managed_versioned {
  uint32_t major, minor;
  void *manager;
  void (*release)(struct dl_managed_versioned *);
  uint64_t flags;
  dl_tensor tensor;
} dl_managed_versioned;

#endif
