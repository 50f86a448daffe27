/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled once for each instruction set, with SG_BLAS_HASH_NAME. */
#include "hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

sg_blas_hash SG_BLAS_HASH_NAME(const char *first, size_t width, size_t height, size_t pitch,
                               const unsigned char *secret) {
  XXH128_hash_t found;
  if (height == 1 || width == pitch) {
    found = XXH3_128bits_withSecret(first, width * height, secret, SG_BLAS_SECRET_BYTES);
  } else {
    XXH3_state_t state;
    XXH3_128bits_reset_withSecret(&state, secret, SG_BLAS_SECRET_BYTES);
    for (size_t i = 0; i < height; ++i) XXH3_128bits_update(&state, first + i * pitch, width);
    found = XXH3_128bits_digest(&state);
  }
  return (sg_blas_hash){found.low64, found.high64};
}
