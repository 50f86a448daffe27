// SPDX-License-Identifier: Apache-2.0
// The cpu backend: streams are worker threads, there is one memory, GEMMs are computed by system libraries.
//
// Each stream has its own thread, which sleeps when idle: create no more computing streams than the model has
// compute_lanes. OpenBLAS is loaded with the first device and uses one thread during calls; the application's thread
// count is restored. On a processor newer than itself it may choose old kernels; its own variable OPENBLAS_CORETYPE
// (SKYLAKEX, ...) corrects it.
//
// oneDNN and libgomp do not survive every failed allocation of their own, nor OpenBLAS every limit of the process; they
// are called only after a probe of the free memory.
#pragma once

#include <streamgemm/backend.h>

// Its table; lives as long as the process. Never NULL.
extern "C" const sg_backend_ops *sg_cpu_backend(void);
