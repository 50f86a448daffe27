/* SPDX-License-Identifier: Apache-2.0 */
/* The inquiry of ScaLAPACK's PBLAS for its logical block: the depth of the GEMMs that each rank computes. */
#include <dlfcn.h>

#include "dispatcher.h"

typedef int32_t inquiry(const void *context, const char *precision, size_t length);

/* Replaces ScaLAPACK's function in programs that preload this library or are linked with it first. The result is one
   for programs with integers of 64 bits, too. */
SG_BLAS_EXPORT int64_t pilaenv_(const void *context, const char *precision) {
  const int block = sg_blas_pblas_block(*precision);
  if (block > 0) return block;
  inquiry *const own = (inquiry *)dlsym(RTLD_NEXT, "pilaenv_");
  return own != NULL ? own(context, precision, 1) : 32;
}
