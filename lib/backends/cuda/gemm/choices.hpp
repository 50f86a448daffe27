// SPDX-License-Identifier: Apache-2.0
// Choices of kernels that were timed, kept between processes: a text file in the user's cache folder, a line for each
// choice.
//
// The file is read only when it belongs to this user and no other user may write to it, and a choice counts only for
// the same chip and the same version of cublasLt; what it says is checked again by cublasLt before it is used.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "backends/cuda/gemm/matmul_key.hpp"

namespace sg::cuda {

// What cublasLt's documentation calls trivially serializable, for one version of the library.
using kernel_choice = std::array<std::uint64_t, 8>;

class choices {
 public:
  // `path`: "" keeps them in memory only. `where`: chip and version. Throws std::bad_alloc.
  choices(std::string path, std::string where);

  std::optional<kernel_choice> find(const matmul_key &key) const noexcept;
  void keep(const matmul_key &key, const kernel_choice &choice) noexcept;  // what the file cannot take stays in memory

 private:
  void read();
  void append(const std::string &line) const noexcept;

  const std::string path_, where_;
  mutable std::mutex lock_;
  std::unordered_map<matmul_key, kernel_choice, matmul_key_hash> known_;
};

// $XDG_CACHE_HOME/streamgemm/cublaslt-choices, or the same below ~/.cache; "" where neither is there. Throws
// std::bad_alloc.
std::string choices_path();

}  // namespace sg::cuda
