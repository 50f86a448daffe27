// SPDX-License-Identifier: Apache-2.0
// The form of a copy between any two memory spaces: one command or, staged, chunks through pinned slots that host
// workers fill or empty. A device's own copy of pageable memory is several times slower than a staged one, and blocks
// the thread that enqueues it.
#pragma once

#include <cstdint>
#include <string>

#include "base/memory_space.hpp"
#include "plan/form/form.hpp"

namespace sg {

// `height` rows of `width` bytes, both above 0.
struct copy_form {
  enum parameter : std::int32_t { to, from };

  std::int64_t width = 0, height = 1;
  std::int64_t to_pitch = 0, from_pitch = 0;  // the width, of one row
  memory_space to_space, from_space;
  bool staged = false;  // between pageable memory and the device's
  bool operator==(const copy_form &) const noexcept = default;
};
schedule plan_of(const copy_form &f, const plan_terms &terms);
std::uint64_t hash_of(const copy_form &f) noexcept;
std::string description_of(const copy_form &f);

}  // namespace sg
