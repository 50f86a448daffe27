/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that hash operands: started at the first need. */
#ifndef STREAMGEMM_BLAS_WORKERS_H
#define STREAMGEMM_BLAS_WORKERS_H

#include <stddef.h>

/* Calls task(i, of) for each i below `count`, on this thread and the workers, and returns when all calls have. A second
   caller at the same time works alone. Any thread. */
void sg_blas_for_each(size_t count, void (*task)(size_t index, void *of), void *of);
/* In a child of fork there are no workers. */
void sg_blas_workers_after_fork(void);

#endif
