// SPDX-License-Identifier: Apache-2.0
// An operand of an attention where cuDNN's kernels can access it: where it is, or a copy with the same strides.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>

#include "backends/common/types.hpp"
#include "backends/cuda/memory/call_stream.hpp"

namespace sg::cuda::dnn {

class aligned_heads {
 public:
  struct form {
    std::int64_t batch, heads, tokens, row_bytes, size;  // size: of an element
  };

  explicit aligned_heads(call_stream &in) noexcept : in_(in) {}
  ~aligned_heads() {
    if (copy_ != nullptr) in_.release(copy_);
  }
  aligned_heads(const aligned_heads &) = delete;
  aligned_heads &operator=(const aligned_heads &) = delete;

  static bool is_aligned(const sg_backend_heads &x) noexcept {
    return reinterpret_cast<std::uintptr_t>(x.data) % alignment == 0;
  }

  sg_status take(const sg_backend_heads &x, const form &of, bool reads) noexcept {
    given_ = x, form_ = of;
    if (is_aligned(x)) return SG_STATUS_OK;
    const std::int64_t span =
        ((of.batch - 1) * x.batch + (of.heads - 1) * x.head + (of.tokens - 1) * x.token) * of.size;
    const sg_status status = in_.acquire(static_cast<std::uint64_t>(span + of.row_bytes), &copy_);
    return status == SG_STATUS_OK && reads ? move(static_cast<char *>(copy_), static_cast<const char *>(x.data))
                                           : status;
  }
  void *data() const noexcept { return copy_ == nullptr ? given_.data : copy_; }
  sg_status bring_back() noexcept {
    return copy_ == nullptr ? SG_STATUS_OK : move(static_cast<char *>(given_.data), static_cast<const char *>(copy_));
  }

 private:
  static constexpr std::uintptr_t alignment = 16;

  // The elements of the tokens; nothing between them.
  sg_status move(char *to, const char *from) noexcept {
    const auto pitch = static_cast<std::size_t>(form_.tokens > 1 ? given_.token * form_.size : form_.row_bytes);
    for (std::int64_t b = 0; b < form_.batch; ++b)
      for (std::int64_t h = 0; h < form_.heads; ++h) {
        const std::int64_t at = (b * given_.batch + h * given_.head) * form_.size;
        const cudaError_t error =
            cudaMemcpy2DAsync(to + at, pitch, from + at, pitch, static_cast<std::size_t>(form_.row_bytes),
                              static_cast<std::size_t>(form_.tokens), cudaMemcpyDeviceToDevice, in_.native());
        if (const sg_status status = in_.owner().check(error, "copying an operand of an attention")) return status;
      }
    return SG_STATUS_OK;
  }

  call_stream &in_;
  sg_backend_heads given_{};
  form form_{};
  void *copy_ = nullptr;
};

}  // namespace sg::cuda::dnn
