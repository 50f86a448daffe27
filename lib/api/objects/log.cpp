// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <streamgemm/log.h>

#include "api/entry.hpp"

namespace sg {
namespace {

void relay(const log_receiver &to, log_level level, const char *area, const char *text) {
  reinterpret_cast<sg_log_callback>(to.callback)(static_cast<sg_log_level>(int(level) + 1), area, text, to.user);
}

}  // namespace
}  // namespace sg

sg_status sg_log_set(sg_log_level level, sg_log_callback callback, void *user) {
  return sg::guarded([&] {
    sg::require_range(level, SG_LOG_OFF, SG_LOG_DEBUG, "level");
    const sg::log_receiver to{callback ? sg::relay : nullptr, reinterpret_cast<void (*)()>(callback), user};
    if (!sg::set_log(level, to))
      throw sg::error(SG_STATUS_DEADLOCK, "the callback of the log sets another one, and would wait for its own end");
  });
}
