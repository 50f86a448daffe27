// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/libraries/open.hpp"

#include <dlfcn.h>

#include <cstdio>

namespace sg::cuda {
namespace {

struct file_name {
  char text[80];
  file_name(const char *folder, const char *name, int major) noexcept {
    std::snprintf(text, sizeof text, "%slib%s.so.%d", folder, name, major);
  }
};

opened first_of(const char *folder, const char *name, std::span<const int> majors, int flags) noexcept {
  for (const int major : majors)
    if (void *const handle = dlopen(file_name(folder, name, major).text, RTLD_NOW | RTLD_LOCAL | flags))
      return {handle, major};
  return {};
}

}  // namespace

opened library_of_process(const char *name, std::span<const int> majors) noexcept {
  return first_of("", name, majors, RTLD_NOLOAD);
}

opened open_library(const char *name, std::span<const int> majors) noexcept {
  opened found = library_of_process(name, majors);
  if (found.handle == nullptr) found = first_of("", name, majors, 0);
  if (found.handle == nullptr) found = first_of("/usr/local/cuda/lib64/", name, majors, 0);
  return found;
}

void describe_load_failure(const char *name, std::span<const int> majors, char *reason, std::size_t size) noexcept {
  std::size_t used = 0;
  for (const int major : majors) {
    if (used >= size || dlopen(file_name("", name, major).text, RTLD_NOW | RTLD_LOCAL) != nullptr) continue;
    const int written = std::snprintf(reason + used, size - used, "%s%s", used == 0 ? "" : "; ", dlerror());
    used += written > 0 ? static_cast<std::size_t>(written) : 0;
  }
}

}  // namespace sg::cuda
