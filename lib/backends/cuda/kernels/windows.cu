// SPDX-License-Identifier: Apache-2.0
// Windows of images as a matrix, and the sums of windows: neighbouring threads access neighbouring elements of what is
// written.
#include <algorithm>
#include <cstdint>

#include "accesses.hpp"
#include "arithmetic.cuh"
#include "layers.hpp"

namespace sg::cuda {
inline namespace windows_cu {

constexpr int threads = 256;

// A complex element that is aligned to its parts only.
template <class Part>
struct two_parts {
  Part first, second;
};

// Divisions of 64 bits take several times as long.
inline __device__ std::int64_t quotient(std::int64_t a, std::int32_t b) {
  return a >> 31 == 0 ? std::int64_t(std::uint32_t(a) / std::uint32_t(b)) : a / b;
}

struct window {
  std::int64_t image;
  std::int32_t top, left;
};
inline __device__ window window_of(const sg_backend_windows &w, std::int64_t position) {
  const std::int64_t row = quotient(position, w.out_w), image = quotient(row, w.out_h);
  return {image, std::int32_t(row - image * w.out_h) * w.stride_h - w.pad_top,
          std::int32_t(position - row * w.out_w) * w.stride_w - w.pad_left};
}

inline __device__ std::int64_t column_of(const sg_backend_windows &w, std::int32_t channel, std::int32_t tap) {
  const std::int64_t taps = std::int64_t(w.kernel_h) * w.kernel_w;
  if (!w.channels_inner) return channel * taps + tap;
  const std::int32_t size = w.channels / w.groups, group = channel / size;
  return group * size * taps + std::int64_t(tap) * size + (channel - group * size);
}

// Positions are contiguous: a thread has one of them, in some channels.
template <class T>
__global__ void by_columns(sg_backend_windows w, const T *x, T *matrix) {
  for (std::int64_t p = std::int64_t(blockIdx.x) * threads + threadIdx.x; p < w.positions;
       p += std::int64_t(gridDim.x) * threads) {
    const window at = window_of(w, w.first_position + p);
    for (std::int32_t c = blockIdx.y; c < w.channels; c += gridDim.y) {
      const T *from = x + at.image * w.image + c * w.channel;
      std::int32_t tap = 0;
      for (std::int32_t kh = 0; kh < w.kernel_h; ++kh) {
        const std::int32_t ih = at.top + kh * w.dilation_h;
        for (std::int32_t kw = 0; kw < w.kernel_w; ++kw, ++tap) {
          const std::int32_t iw = at.left + kw * w.dilation_w;
          const bool inside = ih >= 0 && ih < w.height && iw >= 0 && iw < w.width;
          matrix[p + column_of(w, c, tap) * w.column] = inside ? from[ih * w.row + iw * w.pixel] : T{};
        }
      }
    }
  }
}

// The columns of a position are contiguous: a thread writes one of them for runs of positions, and within a run moves
// from one window to the next without a division. Blocks of few columns have several runs.
template <class T>
__global__ void by_positions(sg_backend_windows w, const T *x, T *matrix, std::int32_t run) {
  const std::int32_t taps = w.kernel_h * w.kernel_w, size = w.channels / w.groups;
  const std::int64_t columns = std::int64_t(w.channels) * taps;
  for (std::int64_t k = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; k < columns;
       k += std::int64_t(gridDim.x) * blockDim.x) {
    std::int32_t channel = std::int32_t(quotient(k, taps)), tap = std::int32_t(k - std::int64_t(channel) * taps);
    if (w.channels_inner) {
      const std::int32_t group = channel / size, in_group = std::int32_t(k - std::int64_t(group) * size * taps);
      tap = in_group / size;
      channel = group * size + (in_group - tap * size);
    }
    const std::int32_t down = tap / w.kernel_w, right = tap - down * w.kernel_w;
    const std::int32_t last_top = (w.out_h - 1) * w.stride_h - w.pad_top;
    const std::int32_t last_left = (w.out_w - 1) * w.stride_w - w.pad_left;
    for (std::int64_t first = (std::int64_t(blockIdx.y) * blockDim.y + threadIdx.y) * run; first < w.positions;
         first += std::int64_t(gridDim.y) * blockDim.y * run) {
      window at = window_of(w, w.first_position + first);
      const std::int64_t end = first + run < w.positions ? first + run : w.positions;
      for (std::int64_t p = first; p < end; ++p) {
        const std::int32_t ih = at.top + down * w.dilation_h, iw = at.left + right * w.dilation_w;
        const bool inside = ih >= 0 && ih < w.height && iw >= 0 && iw < w.width;
        matrix[k + p * w.position] =
            inside ? x[at.image * w.image + channel * w.channel + ih * w.row + iw * w.pixel] : T{};
        if (at.left < last_left) {
          at.left += w.stride_w;
          continue;
        }
        at.left = -w.pad_left;
        const bool goes_down = at.top < last_top;
        at.top = goes_down ? at.top + w.stride_h : -w.pad_top;
        at.image += !goes_down;
      }
    }
  }
}

unsigned limited(std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); }
std::int64_t blocks_of(std::int64_t elements) { return (elements + threads - 1) / threads; }

template <class T>
cudaError_t launch_unit(const sg_backend_im2col &what, cudaStream_t in) {
  const sg_backend_windows &w = what.of;
  const auto *x = static_cast<const T *>(what.x);
  auto *matrix = static_cast<T *>(what.matrix);
  if (w.position == 1) {
    const dim3 grid(limited(blocks_of(w.positions), 1 << 16), limited(w.channels, 4096));
    by_columns<T><<<grid, threads, 0, in>>>(w, x, matrix);
  } else {
    const std::int64_t columns = std::int64_t(w.channels) * w.kernel_h * w.kernel_w;
    dim3 block(threads, 1);
    while (block.x / 2 >= columns && block.x > 1) block.x /= 2, block.y *= 2;
    // Long runs where there are many elements: enough threads for any GPU are left.
    const auto run = std::int32_t(std::min<std::int64_t>(32, 1 + w.positions * columns / (1 << 20)));
    const std::int64_t of_block = std::int64_t(block.y) * run;
    const dim3 grid(limited(blocks_of(columns), 1 << 16), limited((w.positions + of_block - 1) / of_block, 32768));
    by_positions<T><<<grid, block, 0, in>>>(w, x, matrix, run);
  }
  return cudaGetLastError();
}

// A thread has an element of the images: of a row, in the order of memory. Rows [first_row, first_row + rows).
template <class From, class To>
__global__ void col2im_kernel(sg_backend_col2im what, std::int32_t first_row, std::int32_t rows) {
  using ops = arithmetic<To>;
  using sum_type = typename ops::sum;
  const sg_backend_windows &w = what.of;
  const bool channels_last = w.channel == 1 && w.channels > 1;
  const std::int64_t of_image = std::int64_t(w.out_h) * w.out_w, of_row = std::int64_t(w.channels) * w.width;
  const std::int64_t lines = w.images * rows;
  const auto *matrix = static_cast<const From *>(what.matrix);
  for (std::int64_t e = std::int64_t(blockIdx.x) * threads + threadIdx.x; e < of_row;
       e += std::int64_t(gridDim.x) * threads) {
    const std::int64_t slow = quotient(e, channels_last ? w.channels : w.width);
    const std::int32_t fast = std::int32_t(e - slow * (channels_last ? w.channels : w.width));
    const std::int32_t c = channels_last ? fast : std::int32_t(slow), iw = channels_last ? std::int32_t(slow) : fast;
    for (std::int64_t line = blockIdx.y; line < lines; line += gridDim.y) {
      const std::int64_t n = quotient(line, rows), first = n * of_image;
      const std::int32_t ih = first_row + std::int32_t(line - n * rows);
      sum_type sum = 0;
      for (std::int32_t kh = 0; kh < w.kernel_h; ++kh) {
        const std::int32_t above = ih + w.pad_top - kh * w.dilation_h, oh = above / w.stride_h;
        if (above < 0 || oh * w.stride_h != above || oh >= w.out_h) continue;
        for (std::int32_t kw = 0; kw < w.kernel_w; ++kw) {
          const std::int32_t left = iw + w.pad_left - kw * w.dilation_w, ow = left / w.stride_w;
          if (left < 0 || ow * w.stride_w != left || ow >= w.out_w) continue;
          const std::int64_t p = first + std::int64_t(oh) * w.out_w + ow - w.first_position;
          if (p < 0 || p >= w.positions) continue;
          const std::int64_t column = column_of(w, c, kh * w.kernel_w + kw);
          sum += arithmetic<From>::widened(matrix[p * w.position + column * w.column]);
        }
      }
      To *to = static_cast<To *>(what.x) + n * w.image + c * w.channel + ih * w.row + iw * w.pixel;
      *to = ops::rounded(what.accumulate ? sum + ops::widened(*to) : sum);
    }
  }
}

template <class From, class To>
cudaError_t launch_types(const sg_backend_col2im &what, cudaStream_t in) {
  const sg_backend_windows &w = what.of;
  std::int64_t first = 0, end = w.height;
  if (what.accumulate && w.images == 1) {  // the rows of the positions only
    const std::int64_t of_image = std::int64_t(w.out_h) * w.out_w;
    const std::int64_t lo = w.first_position < 0 ? 0 : w.first_position;
    const std::int64_t last = w.first_position + w.positions < of_image ? w.first_position + w.positions : of_image;
    if (lo >= last) return cudaSuccess;
    const std::int64_t top = lo / w.out_w * w.stride_h - w.pad_top;
    const std::int64_t bottom =
        (last - 1) / w.out_w * w.stride_h - w.pad_top + std::int64_t(w.kernel_h - 1) * w.dilation_h + 1;
    if (top > first) first = top;
    if (bottom < end) end = bottom;
    if (first >= end) return cudaSuccess;
  }
  const dim3 grid(limited(blocks_of(std::int64_t(w.channels) * w.width), 1 << 16),
                  limited(w.images * (end - first), 32768));
  col2im_kernel<From, To><<<grid, threads, 0, in>>>(what, std::int32_t(first), std::int32_t(end - first));
  return cudaGetLastError();
}

template <class To>
cudaError_t launch_short(const sg_backend_col2im &what, cudaStream_t in) {
  return what.matrix_type == SG_DTYPE_F32 ? launch_types<float, To>(what, in) : launch_types<To, To>(what, in);
}

}  // namespace windows_cu

cudaError_t launch_im2col(const sg_backend_im2col &given, cudaStream_t in) noexcept {
  const sg_backend_im2col what = widened(given);
  const bool whole = access_of(what) == what.element_bytes;
  switch (what.element_bytes) {
    case 1: return launch_unit<std::uint8_t>(what, in);
    case 2: return launch_unit<std::uint16_t>(what, in);
    case 4: return launch_unit<std::uint32_t>(what, in);
    case 8: return whole ? launch_unit<std::uint64_t>(what, in) : launch_unit<two_parts<std::uint32_t>>(what, in);
    case 16: return whole ? launch_unit<uint4>(what, in) : launch_unit<two_parts<std::uint64_t>>(what, in);
    default: return cudaErrorNotSupported;
  }
}

cudaError_t launch_col2im(const sg_backend_col2im &what, cudaStream_t in) noexcept {
  switch (what.type) {
    case SG_DTYPE_F64: return launch_types<double, double>(what, in);
    case SG_DTYPE_F32: return launch_types<float, float>(what, in);
    case SG_DTYPE_F16: return launch_short<__half>(what, in);
    case SG_DTYPE_BF16: return launch_short<__nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
