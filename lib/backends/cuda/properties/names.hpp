// SPDX-License-Identifier: Apache-2.0
// Names of GPUs besides their numbers.
#pragma once

#include <cuda_runtime_api.h>

namespace sg::cuda {

// The number of the GPU that a name names, of `count` GPUs; -1: none.
//   "2"       its number
//   "GPU-..." its UUID, or "MIG-..." an instance's, as nvidia-smi prints it
//   "local"   the one for this process among those of a job on this host, by the number that MPI or the job's launcher
//             gives it (SG_LOCAL_RANK and others), modulo the number of GPUs
int ordinal_of(const char *name, int count) noexcept;

// "GPU-...", or "MIG-..." of an instance, as nvidia-smi prints it.
void print_uuid(const cudaDeviceProp &of, char (&text)[48]) noexcept;

// The runtime's name of an instance ends with its profile: "NVIDIA H200 MIG 1g.18gb". nullptr: it is none.
const char *profile_in(const char *name) noexcept;

}  // namespace sg::cuda
