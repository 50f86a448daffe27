// SPDX-License-Identifier: Apache-2.0
#include "ops/launch.hpp"

#include "ops/operation.hpp"

namespace sg {

namespace {

access_mode access(const command &, std::size_t) { return access_mode::none; }
const char *defect(const buffer_list &, const command &) { return nullptr; }
command_cost cost(const device_model &, const buffer_list &, const command &) { return {}; }
std::string describe(const buffer_list &, const command &c) { return operation_of(c).name; }

void lower_marker(const buffer_list &, const command &, const binding &, backend_commands &out) {
  out.add(sg_backend_command{sizeof(sg_backend_command), SG_BACKEND_MARKER});
}

}  // namespace

constinit const operation ops::marker::entry{"marker",          access, defect, cost, describe, lower_marker,
                                             SG_BACKEND_MARKER, nullptr};
// The launcher launches it: no backend command does.
constinit const operation ops::graph::entry{"graph",           access, defect, cost, describe, nullptr,
                                            SG_BACKEND_MARKER, nullptr};

}  // namespace sg
