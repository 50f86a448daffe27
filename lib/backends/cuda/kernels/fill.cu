// SPDX-License-Identifier: Apache-2.0
// Y = the same bytes, repeated.
#include <cstdint>
#include <cstring>

#include "fill.hpp"
#include "layers.hpp"

namespace sg::cuda {
inline namespace fill_cu {

constexpr int fill_threads = 256;

struct alignas(16) fill_pattern {
  std::uint64_t at[2];
};

// Columns of `m` words. The words of a thread are a multiple of the pattern apart, and so equal.
template <class Word>
__global__ void fill_kernel(Word *y, std::int64_t m, std::int64_t n, std::int64_t ld, fill_pattern pattern) {
  Word word;
  const auto first = threadIdx.x % (sizeof pattern / sizeof word) * sizeof word;
  memcpy(&word, reinterpret_cast<const char *>(&pattern) + first, sizeof word);
  for (std::int64_t j = blockIdx.y; j < n; j += gridDim.y)
    for (std::int64_t i = std::int64_t(blockIdx.x) * fill_threads + threadIdx.x; i < m;
         i += std::int64_t(gridDim.x) * fill_threads)
      y[i + j * ld] = word;
}

template <class Word>
cudaError_t launch_words(const sg_backend_fill &what, cudaStream_t in) {
  const std::int64_t size = element_size(what.type), word = sizeof(Word), m = what.m * size / word;
  const auto blocks = [](std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); };
  const dim3 grid(blocks((m + fill_threads - 1) / fill_threads, 1 << 16), blocks(what.n, 4096));
  fill_kernel<<<grid, fill_threads, 0, in>>>(static_cast<Word *>(what.y), m, what.n,
                                             what.n > 1 ? what.ldy * size / word : 0,
                                             fill_pattern{{what.pattern[0], what.pattern[1]}});
  return cudaGetLastError();
}

}  // namespace fill_cu

cudaError_t launch_fill(const sg_backend_fill &given, cudaStream_t in) noexcept {
  const sg_backend_fill what = as_one_column(given);
  switch (word_of(what)) {
    case 16: return launch_words<uint4>(what, in);
    case 8: return launch_words<std::uint64_t>(what, in);
    case 4: return launch_words<std::uint32_t>(what, in);
    case 2: return launch_words<std::uint16_t>(what, in);
    default: return launch_words<std::uint8_t>(what, in);
  }
}

}  // namespace sg::cuda
