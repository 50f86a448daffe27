// SPDX-License-Identifier: Apache-2.0
// NVIDIA's libraries, which the plugin opens by their names.
#pragma once

#include <cstddef>
#include <span>

namespace sg::cuda {

struct opened {
  void *handle = nullptr;  // NULL: there is no such library; stays open
  int major = 0;           // of its name
};

// libNAME.so.MAJOR for the first of `majors` that the process has already, as PyTorch's; else of those that the loader
// finds; else of those in the toolkit's folder /usr/local/cuda/lib64.
opened open_library(const char *name, std::span<const int> majors) noexcept;
// The first of them only.
opened library_of_process(const char *name, std::span<const int> majors) noexcept;
// Writes into `reason` why the loader cannot open the libraries.
void describe_load_failure(const char *name, std::span<const int> majors, char *reason, std::size_t size) noexcept;

}  // namespace sg::cuda
