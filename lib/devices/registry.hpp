// SPDX-License-Identifier: Apache-2.0
// The backends of this process, built in or from plugins.
#pragma once

#include <streamgemm/backend.h>

#include <string>
#include <vector>

#include "devices/device.hpp"

namespace sg {

// One backend, or the reason for its absence.
struct backend_entry {
  const sg_backend_ops *ops = nullptr;  // NULL: no usable table; lives as long as the process
  std::string name;                     // "cpu", "sim", "cuda"
  bool available = false;               // the table is valid and its probe succeeded
  std::string reason;                   // why not available, printable; "" if available
  std::string origin;                   // "built in", or the path of the plugin's file; "" if no file was found
};

// All backends: cpu, sim, then the plugins. There is always an entry "cuda". Loaded by the first call; what it returned
// stays as it is when a plugin is loaded later. Any thread, and in a child after fork too.
const std::vector<backend_entry> &backends();

// The entry of that name, a usable one if there is one; NULL: none.
const backend_entry *find_backend(const std::string &name);

// Adds the plugin of a file, once. Throws SG_STATUS_NO_DEVICE, and adds nothing, if it cannot be used.
void load_backend(const std::string &path);

}  // namespace sg
