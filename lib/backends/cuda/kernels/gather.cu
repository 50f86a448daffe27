// SPDX-License-Identifier: Apache-2.0
// Rows of a table by their indices, moved in units of 16 bytes, or of an element's components where rows are not
// aligned to that.
#include <cstdint>

#include "accesses.hpp"
#include "layers.hpp"

namespace sg::cuda {
inline namespace gather_cu {

constexpr int threads = 256;

struct alignas(16) unit_16 {
  std::uint64_t low, high;
};
// Unit `at` of the repeated bytes.
template <class Unit>
__device__ Unit filled(std::uint64_t fill, std::int64_t at) {
  return Unit(fill >> (at * std::int64_t(sizeof(Unit)) % 8 * 8));
}
template <>
__device__ unit_16 filled<unit_16>(std::uint64_t fill, std::int64_t) {
  return {fill, fill};
}

template <class Unit, class Index>
__global__ void gather_kernel(sg_backend_gather what) {
  const std::int64_t units = what.row_bytes / std::int64_t(sizeof(Unit));
  for (std::int64_t i = std::int64_t(blockIdx.y) * blockDim.y + threadIdx.y; i < what.rows;
       i += std::int64_t(gridDim.y) * blockDim.y) {
    std::int64_t index = static_cast<const Index *>(what.indices)[i];
    if (what.from_end && index < 0) index += what.table_rows;
    const bool exists = index >= 0 && index < what.table_rows;
    const auto *from =
        reinterpret_cast<const Unit *>(static_cast<const char *>(what.table) + (exists ? index * what.table_row : 0));
    auto *to = reinterpret_cast<Unit *>(static_cast<char *>(what.y) + i * what.y_row);
    for (std::int64_t at = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < units;
         at += std::int64_t(gridDim.x) * blockDim.x)
      to[at] = exists ? from[at] : filled<Unit>(what.fill, at);
  }
}

template <class Unit>
cudaError_t launch_unit(const sg_backend_gather &what, cudaStream_t in) {
  // A block has as many rows as its threads have units for.
  const std::int64_t units = what.row_bytes / std::int64_t(sizeof(Unit));
  unsigned width = 8;
  while (width < unsigned(threads) && width < units) width *= 2;
  const dim3 block(width, threads / width);
  const std::int64_t columns = (units + width - 1) / width, rows = (what.rows + block.y - 1) / block.y;
  const dim3 grid(unsigned(columns < 1024 ? columns : 1024), unsigned(rows < 65535 ? rows : 65535));
  if (what.index_bytes == 8)
    gather_kernel<Unit, std::int64_t><<<grid, block, 0, in>>>(what);
  else
    gather_kernel<Unit, std::int32_t><<<grid, block, 0, in>>>(what);
  return cudaGetLastError();
}

}  // namespace gather_cu

cudaError_t launch_gather(const sg_backend_gather &what, cudaStream_t in) noexcept {
  switch (access_of(what)) {
    case 1: return launch_unit<std::uint8_t>(what, in);
    case 2: return launch_unit<std::uint16_t>(what, in);
    case 4: return launch_unit<std::uint32_t>(what, in);
    case 8: return launch_unit<std::uint64_t>(what, in);
    case 16: return launch_unit<unit_16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
