/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of the contents of memory: XXH3-128 with a secret of this process. */
#ifndef STREAMGEMM_BLAS_HASH_H
#define STREAMGEMM_BLAS_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sg_blas_hash {
  uint64_t low, high;
} sg_blas_hash;

/* The hash of `height` lines of `width` bytes, `pitch` bytes apart. The gaps between lines are not read. Any thread. */
typedef sg_blas_hash sg_blas_hash_function(const char *first, size_t width, size_t height, size_t pitch,
                                           const unsigned char *secret);
/* hash.c, once for each instruction set. */
sg_blas_hash_function sg_blas_hash_baseline, sg_blas_hash_avx2;

enum { SG_BLAS_SECRET_BYTES = 192 };

static inline bool sg_blas_hash_equal(sg_blas_hash one, sg_blas_hash other) {
  return one.low == other.low && one.high == other.high;
}

#endif
