// SPDX-License-Identifier: Apache-2.0
// The GPUs of the emulated machine. SG_EMULATED_GPUS: how many it has, at most most_gpus; their addresses are those of
// fake_nvml.c. SG_EMULATED_MIG="3g.71gb,1g.18gb": each is instead an instance of one GPU, of that profile.
// CUDA_VISIBLE_DEVICES selects some, in its order; an ordinal counts those.
#pragma once

namespace emulated {

int visible_gpus();
// Whether one may access the other's memory by a link.
bool are_linked(int ordinal, int other);

}  // namespace emulated
