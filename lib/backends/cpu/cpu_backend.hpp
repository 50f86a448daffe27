// SPDX-License-Identifier: Apache-2.0
// The cpu backend: streams are worker threads, memory is one, products are a system library's.
#pragma once

#include <streamgemm/backend.h>

// Its table; lives as long as the process. Never NULL.
extern "C" const sg_backend_ops *sg_cpu_backend(void);
