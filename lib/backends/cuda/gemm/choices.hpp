// SPDX-License-Identifier: Apache-2.0
// Timed kernel choices, kept between processes: a text file in the user's cache folder, one line for each choice.
//
// The file is read only if it belongs to this user and no other user may write to it. A choice is valid only for the
// same chip and cublasLt version, and cublasLt checks it again before it is used.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "backends/cuda/gemm/matmul_key.hpp"

namespace sg::cuda {

// "Trivially serializable" according to cublasLt's documentation, for one version of the library.
using kernel_choice = std::array<std::uint64_t, 8>;

class choices {
 public:
  // `path`: "": in memory only. `where`: chip and version. Throws std::bad_alloc.
  choices(std::string path, std::string where);

  std::optional<kernel_choice> find(const matmul_key &key) const noexcept;
  // In memory only if the file cannot be written.
  void keep(const matmul_key &key, const kernel_choice &choice) noexcept;

 private:
  void read();
  void append(const std::string &line) const noexcept;

  const std::string path_, where_;
  mutable std::mutex lock_;
  std::unordered_map<matmul_key, kernel_choice, matmul_key_hash> known_;
};

// $XDG_CACHE_HOME/streamgemm/cublaslt-choices, or the same below ~/.cache; "" if neither exists. Throws std::bad_alloc.
std::string choices_path();

}  // namespace sg::cuda
