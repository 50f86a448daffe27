// SPDX-License-Identifier: Apache-2.0
// The backends of this process: those built in, and those that plugins bring.
#pragma once

#include <streamgemm/backend.h>

#include <string>
#include <vector>

#include "backend/device.hpp"

namespace sg {

// One backend, or the account of why it is not there.
struct backend_entry {
  const sg_backend_ops *ops = nullptr;  // NULL when there is no table that could be used; lives as long as the process
  std::string name;                     // "cpu", "sim", "cuda"
  bool available = false;               // the table is sound and its probe said yes
  std::string reason;                   // why not available, printable; "" when it is
  std::string origin;                   // "built in", or the path of the plugin's file; "" when no file was found
};

// All of them: cpu, sim, then the plugins. There is always an entry "cuda". Loaded by the first call, the same ever
// after. Any thread, and in a child after fork too.
const std::vector<backend_entry> &backends();

// The entry of that name, or NULL.
const backend_entry *find_backend(const std::string &name);

}  // namespace sg
