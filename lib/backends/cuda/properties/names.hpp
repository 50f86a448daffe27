// SPDX-License-Identifier: Apache-2.0
// Names of GPUs besides their numbers.
#pragma once

namespace sg::cuda {

// The number of the GPU that a name names, of `count` GPUs; -1: none.
//   "2"       its number
//   "GPU-..." its UUID, or "MIG-..." an instance's, as nvidia-smi prints it
//   "local"   the one for this process among those of a job on this host, by the number that MPI or the job's launcher
//             gives it (SG_LOCAL_RANK and others), modulo the number of GPUs
int ordinal_of(const char *name, int count) noexcept;

}  // namespace sg::cuda
