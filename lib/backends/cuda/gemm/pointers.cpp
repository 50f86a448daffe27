// SPDX-License-Identifier: Apache-2.0
// Batches with pointer arrays.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/kernels/kernels.hpp"

namespace sg::cuda {
namespace {

const char *first_of(const void *base, const void *const *array, std::int64_t item, std::int64_t stride,
                     std::int64_t size) noexcept {
  return static_cast<const char *>(array != nullptr ? array[item] : base) +
         (array != nullptr ? 0 : item * stride * size);
}

}  // namespace

bool become_strided(sg_backend_gemm &g) noexcept {
  const std::int64_t sizes[3] = {element_size(g.in_type), element_size(g.in_type), element_size(g.out_type)};
  const item_bases first = bases_of(g, 0), second = bases_of(g, std::min<std::int64_t>(1, g.batch - 1));
  std::ptrdiff_t steps[3];
  for (int o = 0; o < 3; ++o) {
    steps[o] = second.of[o] - first.of[o];
    if (steps[o] < 0 || steps[o] % sizes[o] != 0) return false;
  }
  for (std::int64_t i = 2; i < g.batch; ++i) {
    const item_bases here = bases_of(g, i);
    for (int o = 0; o < 3; ++o)
      if (here.of[o] - first.of[o] != i * steps[o]) return false;
  }
  g.a = first.of[0];
  g.b = first.of[1];
  g.c = const_cast<char *>(first.of[2]);
  g.a_array = g.b_array = nullptr;
  g.c_array = nullptr;
  g.stride_a = steps[0] / sizes[0];
  g.stride_b = steps[1] / sizes[1];
  g.stride_c = steps[2] / sizes[2];
  return true;
}

item_bases bases_of(const sg_backend_gemm &g, std::int64_t item) noexcept {
  const std::int64_t in_bytes = element_size(g.in_type), out_bytes = element_size(g.out_type);
  return {{first_of(g.a, g.a_array, item, g.stride_a, in_bytes), first_of(g.b, g.b_array, item, g.stride_b, in_bytes),
           first_of(g.c, g.c_array, item, g.stride_c, out_bytes)}};
}

bool takes_pointers(const sg_backend_gemm &g) noexcept {
  constexpr std::uintptr_t vector = 16;
  const bool by_tensor_cores =
      element_size(g.in_type) <= 2 || (g.in_type == SG_DTYPE_F32 && g.compute != SG_COMPUTE_EXACT);
  if (!by_tensor_cores) return true;
  for (std::int64_t i = 0; i < g.batch; ++i)
    for (const char *start : bases_of(g, i).of)
      if (reinterpret_cast<std::uintptr_t>(start) % vector != 0) return false;
  return true;
}

sg_status prepare_operands(gemm_resources &in, sg_backend_gemm &what) noexcept {
  return !has_pointers(what) || become_strided(what) ? SG_STATUS_OK : upload_pointers(in, what);
}

sg_status upload_pointers(gemm_resources &in, sg_backend_gemm &g) noexcept {
  void *memory = nullptr;
  if (const sg_status status = in.pointer_memory(3 * g.batch, &memory)) return status;
  const auto there = static_cast<void **>(memory);
  sg_status status = SG_STATUS_OK;
  // More pointers are copied faster; but a graph would repeat the copy at each launch, from memory that it keeps.
  if (g.batch <= most_parameter_items * (in.is_captured() ? 8 : 1)) {
    item_bases bases[most_parameter_items];
    for (std::int64_t first = 0; first < g.batch && status == SG_STATUS_OK; first += most_parameter_items) {
      const auto here = static_cast<int>(std::min<std::int64_t>(most_parameter_items, g.batch - first));
      for (int i = 0; i < here; ++i) bases[i] = bases_of(g, first + i);
      status = in.owner().check(
          launch_pointer_fill({bases, here, first, g.batch, const_cast<const void **>(there)}, in.native()),
          "writing a batch's pointers");
    }
  } else {
    status = in.upload(3 * g.batch, memory, [&](const void **to) {
      for (std::int64_t i = 0; i < g.batch; ++i) {
        const item_bases here = bases_of(g, i);
        for (int o = 0; o < 3; ++o) to[o * g.batch + i] = here.of[o];
      }
    });
  }
  g.a_array = there;
  g.b_array = there + g.batch;
  g.c_array = there + 2 * g.batch;
  return status;
}

}  // namespace sg::cuda
