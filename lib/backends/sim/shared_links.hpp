// SPDX-License-Identifier: Apache-2.0
// The limits that copies of a machine's devices share, in virtual time. A copy gets what earlier calls have left of
// them, so that no limit is ever exceeded; and beside other devices' copies no more than its part, as far as these need
// theirs.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace sg::sim {

class shared_links {
 public:
  // Throws failure.
  shared_links(const sg_backend_host *host, const std::string &machine);

  struct transfer {
    std::int32_t from = -1, to = -1;  // devices; -1: the host
    double bytes = 0;
  };

  // Bytes per second of a copy from one device's memory to another's, alone.
  double peer_rate(std::int32_t from, std::int32_t to) const { return host_->peer_rate(machine_.get(), from, to); }

  std::mutex &mutex() noexcept { return mutex_; }  // held by callers of the others
  // Nanoseconds of a copy that starts then, and takes `alone` if it shares nothing.
  std::int64_t duration(const transfer &copy, std::int64_t start, std::int64_t alone);
  // Schedules the copy of the latest duration().
  void take();

 private:
  struct machine_deleter {
    const sg_backend_host *host;
    void operator()(sg_backend_machine *machine) const { host->machine_free(machine); }
  };
  struct crossing {
    double bytes_per_ns;  // of the limit
    std::int32_t limit;   // its number
    std::int32_t times;   // as often as the bytes cross it
  };
  using path = std::vector<crossing>;
  // A time in which a copy has one rate.
  struct piece {
    std::int64_t start, end;
    const path *over;  // one for each pair of ends
    double bytes_per_ns;
  };

  const path &path_between(std::int32_t from, std::int32_t to);
  double rate_at(const path &own, std::int64_t time, std::int64_t window) const;
  std::int64_t next_change(std::int64_t time) const;

  const sg_backend_host *const host_;
  std::unique_ptr<sg_backend_machine, machine_deleter> machine_;
  std::mutex mutex_;
  std::map<std::pair<std::int32_t, std::int32_t>, path> paths_;  // by both ends
  std::vector<piece> taken_, latest_;
};

}  // namespace sg::sim
