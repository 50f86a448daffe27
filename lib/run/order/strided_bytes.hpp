// SPDX-License-Identifier: Apache-2.0
// The bytes of a strided array, as few footprints.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "run/order/footprint.hpp"

namespace sg {

// Runs of `run` bytes, repeated in up to three dimensions, in any order and possibly on the same bytes. Nothing if
// `run` or a count is 0.
struct strided_bytes {
  struct dimension {
    std::int64_t count = 1, pitch = 0;  // bytes from one to the next; >= 0
  };
  const void *start = nullptr;
  std::int64_t run = 0;
  std::array<dimension, 3> dimensions{};
};

// Beyond so many footprints, one that includes the gaps is used instead.
inline constexpr std::int64_t most_footprints = 1024;

// Calls `each(footprint, exact)`: with exactly the bytes, or once with all from the first to the last.
template <class Each>
void each_footprint(strided_bytes of, Each &&each) {
  std::array<strided_bytes::dimension, 3> rest{};
  std::size_t count = 0;
  if (of.run <= 0) return;
  for (const auto &d : of.dimensions) {
    if (d.count <= 0) return;
    if (d.count <= 1 || d.pitch <= 0) continue;
    std::size_t at = count++;  // sorted by pitch
    for (; at > 0 && rest[at - 1].pitch > d.pitch; --at) rest[at] = rest[at - 1];
    rest[at] = d;
  }
  const auto end = [&] { return rest.begin() + static_cast<std::ptrdiff_t>(count); };
  const auto remove = [&](std::size_t i) {
    std::copy(rest.begin() + static_cast<std::ptrdiff_t>(i) + 1, end(), rest.begin() + static_cast<std::ptrdiff_t>(i));
    --count;
  };
  while (count > 0 && rest[0].pitch <= of.run) {  // without gaps
    of.run += (rest[0].count - 1) * rest[0].pitch;
    remove(0);
  }
  for (std::size_t i = 0; i + 1 < count;) {  // evenly spaced together
    auto &inner = rest[i];
    const auto &outer = rest[i + 1];
    const std::int64_t steps = outer.pitch / inner.pitch;
    if (outer.pitch % inner.pitch != 0 || steps > inner.count) {
      ++i;
      continue;
    }
    inner.count += (outer.count - 1) * steps;
    remove(i + 1);
  }
  if (count == 0) return each(footprint::rectangle(of.start, of.run, 1, of.run), true);
  const auto longest =
      std::max_element(rest.begin(), end(), [](const auto &x, const auto &y) { return x.count < y.count; });
  const strided_bytes::dimension inside = *longest;
  remove(static_cast<std::size_t>(longest - rest.begin()));
  rest[count] = {};
  if (count < 2) rest[1] = {};
  if (rest[0].count > most_footprints / rest[1].count) {
    const std::int64_t bytes = of.run + (inside.count - 1) * inside.pitch + (rest[0].count - 1) * rest[0].pitch +
                               (rest[1].count - 1) * rest[1].pitch;
    return each(footprint::rectangle(of.start, bytes, 1, bytes), false);
  }
  for (std::int64_t i = 0; i < rest[1].count; ++i)
    for (std::int64_t j = 0; j < rest[0].count; ++j)
      each(footprint::rectangle(static_cast<const char *>(of.start) + i * rest[1].pitch + j * rest[0].pitch, of.run,
                                inside.count, inside.pitch),
           true);
}

}  // namespace sg
