// SPDX-License-Identifier: Apache-2.0
// Copies of complex operands that are aligned to their parts only, which cuBLAS does not take.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cuda/gemm/gemm_resources.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/kernels/layers.hpp"

namespace sg::cuda {

// Which elements of a matrix are accessed; the triangles have the diagonal.
enum class accessed_part { all, lower, upper };

// A matrix as stored, where cuBLAS takes it: where it is, or a copy without gaps. Of a triangle nothing else is copied,
// column by column.
class aligned_matrix {
 public:
  aligned_matrix(gemm_resources &in, sg_dtype type, accessed_part part = accessed_part::all) noexcept
      : in_(in), type_(type), part_(part) {}
  ~aligned_matrix() { in_.release(copy_); }
  aligned_matrix(const aligned_matrix &) = delete;
  aligned_matrix &operator=(const aligned_matrix &) = delete;

  sg_status take(const void *data, std::int64_t ld, std::int64_t rows, std::int64_t cols, bool reads) noexcept {
    given_ = const_cast<void *>(data), given_ld_ = ld, rows_ = rows, cols_ = cols;
    if (is_multiple(data, element_size(type_))) return SG_STATUS_OK;
    const std::int64_t elements = std::max<std::int64_t>(1, rows * cols);
    const auto bytes = static_cast<std::uint64_t>(elements * element_size(type_));
    if (const sg_status status = in_.acquire(bytes, &copy_)) return status;
    return reads ? move(copy_, this->ld(), given_, given_ld_) : SG_STATUS_OK;
  }
  sg_status bring_back() noexcept {
    return copy_ == nullptr ? SG_STATUS_OK : move(given_, given_ld_, copy_, this->ld());
  }
  void *data() const noexcept { return copy_ == nullptr ? given_ : copy_; }
  std::int64_t ld() const noexcept { return copy_ == nullptr ? given_ld_ : std::max<std::int64_t>(1, rows_); }

 private:
  sg_status move(void *to, std::int64_t to_ld, const void *from, std::int64_t from_ld) noexcept {
    if (part_ == accessed_part::all) return move(to, to_ld, from, from_ld, 0, rows_, 0, cols_);
    for (std::int64_t j = 0; j < cols_; ++j) {
      const bool is_lower = part_ == accessed_part::lower;
      const sg_status status = move(to, to_ld, from, from_ld, is_lower ? j : 0, is_lower ? rows_ - j : j + 1, j, 1);
      if (status != SG_STATUS_OK) return status;
    }
    return SG_STATUS_OK;
  }
  sg_status move(void *to, std::int64_t to_ld, const void *from, std::int64_t from_ld, std::int64_t row,
                 std::int64_t rows, std::int64_t col, std::int64_t cols) noexcept {
    if (rows * cols == 0) return SG_STATUS_OK;
    const std::int64_t size = element_size(type_);
    const sg_backend_axpby copy{{sizeof copy, SG_BACKEND_AXPBY},
                                rows,
                                cols,
                                type_,
                                SG_ACTIVATION_NONE,
                                {1, 0},
                                {0, 0},
                                static_cast<const char *>(from) + (row + col * from_ld) * size,
                                from_ld,
                                static_cast<char *>(to) + (row + col * to_ld) * size,
                                to_ld};
    return in_.owner().check(launch_axpby(copy, in_.native()), "starting to copy an operand");
  }

  gemm_resources &in_;
  const sg_dtype type_;
  const accessed_part part_;
  void *given_ = nullptr, *copy_ = nullptr;
  std::int64_t given_ld_ = 0, rows_ = 0, cols_ = 0;
};

}  // namespace sg::cuda
