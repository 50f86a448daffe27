// SPDX-License-Identifier: Apache-2.0
#include "base/copy_past_caches.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace sg {

#if defined(__SSE2__)

void copy_past_caches(void *to, const void *from, std::size_t bytes) noexcept {
  constexpr std::size_t line = 64, step = sizeof(__m128i);
  auto *out = static_cast<char *>(to);
  const auto *in = static_cast<const char *>(from);
  const std::size_t head = std::min(bytes, (line - reinterpret_cast<std::uintptr_t>(out) % line) % line);
  std::memcpy(out, in, head);
  std::size_t at = head;
  for (; at + line <= bytes; at += line)
    for (std::size_t i = 0; i < line; i += step)
      _mm_stream_si128(reinterpret_cast<__m128i *>(out + at + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i *>(in + at + i)));
  std::memcpy(out + at, in + at, bytes - at);
  _mm_sfence();  // orders the streaming stores before the notification of another thread
}

#else

void copy_past_caches(void *to, const void *from, std::size_t bytes) noexcept { std::memcpy(to, from, bytes); }

#endif

}  // namespace sg
