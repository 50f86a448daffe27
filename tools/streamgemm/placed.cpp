// SPDX-License-Identifier: Apache-2.0
#include "placed.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace sg::cli {

void fill_numbers(char *memory, std::uint64_t bytes, sg_dtype dtype) {
  std::uint64_t state = 88172645463325252u;
  for (std::uint64_t at = 0; at < bytes; at += sizeof state) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    std::uint64_t word = state;
    switch (dtype) {  // signs and mantissas at random, exponents of numbers from 0.5 to 2
      case SG_DTYPE_F64:
      case SG_DTYPE_C128: word = (word & 0x800fffffffffffffu) | 0x3fe0000000000000u; break;
      case SG_DTYPE_F32:
      case SG_DTYPE_C64: word = (word & 0x807fffff807fffffu) | 0x3f0000003f000000u; break;
      case SG_DTYPE_F16: word = (word & 0x83ff83ff83ff83ffu) | 0x3800380038003800u; break;
      case SG_DTYPE_BF16: word = (word & 0x807f807f807f807fu) | 0x3f003f003f003f00u; break;
      case SG_DTYPE_F8_E4M3: word = (word & 0x8787878787878787u) | 0x3030303030303030u; break;
      case SG_DTYPE_F8_E5M2: word = (word & 0x8383838383838383u) | 0x3838383838383838u; break;
      default: break;
    }
    std::memcpy(memory + at, &word, static_cast<std::size_t>(std::min<std::uint64_t>(sizeof word, bytes - at)));
  }
}

placed_memory::placed_memory(sg_context *context, sg_memory_kind kind, std::uint64_t bytes, sg_dtype dtype)
    : context_(context), kind_(device_of(context).unified_memory ? SG_MEMORY_PAGEABLE : kind) {
  void *memory = nullptr;
  if (kind_ == SG_MEMORY_DEVICE) {
    sg_buffer *made = nullptr;
    check(sg_buffer_create(context, bytes, nullptr, &made), "device memory");
    buffer_.reset(made);
    check(sg_buffer_data(made, &memory), "device memory");
    data_ = static_cast<char *>(memory);
    std::vector<char> numbers(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 8 << 20)));
    fill_numbers(numbers.data(), numbers.size(), dtype);
    for (std::uint64_t at = 0; at < bytes; at += numbers.size())
      check(sg_copy(context, data_ + at, numbers.data(), std::min<std::uint64_t>(numbers.size(), bytes - at), nullptr),
            "copy of the operands");
    return;
  }
  if (kind_ == SG_MEMORY_PINNED)
    check(sg_host_alloc(context, bytes, &memory), "pinned memory");
  else if (bytes > SIZE_MAX / 2 || !(memory = std::malloc(static_cast<std::size_t>(bytes))))
    throw failure(exit_code::failed, "no memory for the operands");
  data_ = static_cast<char *>(memory);
  fill_numbers(data_, bytes, dtype);
}

placed_memory::~placed_memory() {
  if (kind_ == SG_MEMORY_PINNED)
    sg_host_free(context_, data_);
  else if (kind_ == SG_MEMORY_PAGEABLE)
    std::free(data_);
}

}  // namespace sg::cli
