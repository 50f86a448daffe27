// SPDX-License-Identifier: Apache-2.0
// Copies rows too short for the copy engine by a few blocks, which saturate the link without filling the chip.
#include "accesses.hpp"
#include "kernels.hpp"

namespace sg::cuda {
inline namespace narrow_copy_cu {

constexpr int threads = 512;
constexpr int blocks = 8;
constexpr int runs_at_once = 4;  // of a thread: enough loads in flight to cover the link's latency

// A row of threads copies a run, `runs_at_once` runs at a time: all are read before the first is written.
template <class Word>
__global__ void narrow_copy_kernel(char *dst, const char *src, std::int64_t dst_pitch, std::int64_t src_pitch,
                                   std::int64_t words, std::int64_t height) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.y * runs_at_once;
  for (std::int64_t word = threadIdx.x; word < words; word += blockDim.x)
    for (std::int64_t run = (std::int64_t(blockIdx.x) * blockDim.y + threadIdx.y) * runs_at_once; run < height;
         run += step) {
      Word held[runs_at_once];
#pragma unroll
      for (int i = 0; i < runs_at_once; ++i)
        if (run + i < height) held[i] = reinterpret_cast<const Word *>(src + (run + i) * src_pitch)[word];
#pragma unroll
      for (int i = 0; i < runs_at_once; ++i)
        if (run + i < height) reinterpret_cast<Word *>(dst + (run + i) * dst_pitch)[word] = held[i];
    }
}

template <class Word>
cudaError_t launch(const sg_backend_copy &what, cudaStream_t in) {
  const std::int64_t words = what.width / std::int64_t(sizeof(Word));
  unsigned across = 1;
  while (across < words && across < threads) across *= 2;
  narrow_copy_kernel<Word><<<blocks, dim3(across, threads / across), 0, in>>>(
      static_cast<char *>(what.dst), static_cast<const char *>(what.src), what.dst_pitch, what.src_pitch, words,
      what.height);
  return cudaGetLastError();
}

}  // namespace narrow_copy_cu

cudaError_t launch_narrow_copy(const sg_backend_copy &what, cudaStream_t in) noexcept {
  switch (access_of(what)) {
    case 16: return launch<uint4>(what, in);
    case 8: return launch<uint2>(what, in);
    case 4: return launch<unsigned>(what, in);
    default: return launch<unsigned char>(what, in);
  }
}

}  // namespace sg::cuda
