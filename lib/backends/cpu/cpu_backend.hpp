// SPDX-License-Identifier: Apache-2.0
// The cpu backend: streams are worker threads, memory is one, products are a system library's.
//
// Each stream has a thread of its own, which sleeps when there is nothing to do: create no more streams that compute
// than the model has compute_lanes. OpenBLAS is loaded with the first device and uses one thread while
// a stream calls it; the count that the rest of the process has set is restored. On a processor newer than itself it
// may take old kernels; its own variable OPENBLAS_CORETYPE (SKYLAKEX, ...) corrects it.
//
// oneDNN and libgomp do not survive every failed allocation of their own, nor OpenBLAS every limit of the process; they
// are called only after a probe of the memory that is left.
#pragma once

#include <streamgemm/backend.h>

// Its table; lives as long as the process. Never NULL.
extern "C" const sg_backend_ops *sg_cpu_backend(void);
