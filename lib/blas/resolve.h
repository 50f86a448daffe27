/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the CPU BLAS's function for each exported name: by the variable SG_BLAS_CPU, as the next one in the program's
   order, in any loaded object, or by the usual names of libraries. */
#ifndef STREAMGEMM_BLAS_RESOLVE_H
#define STREAMGEMM_BLAS_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>

/* The program's own function for an exported name of level 3; false: no such name. NULL: found anew at the next call.
 */
bool sg_blas_replace(const char *name, void *address);
/* The path of the library that a function is in; "": unknown. */
void sg_blas_describe_cpu(const void *address, char *text, size_t size);
void sg_blas_resolve_after_fork(void);

#endif
