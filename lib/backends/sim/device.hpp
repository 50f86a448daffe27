// SPDX-License-Identifier: Apache-2.0
// The simulated device.
#pragma once

#include <streamgemm/backend.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "address_space.hpp"
#include "device_name.hpp"
#include "models.hpp"
#include "shared_links.hpp"
#include "timeline.hpp"
#include "work_queue.hpp"

namespace sg::sim {

// A device whose memory another one copies.
struct peer {
  sg_backend_device *device = nullptr;
  double bytes_per_second = 0;  // of the link between them; 0: they copy over the host's links
};

}  // namespace sg::sim

struct sg_backend_device {
 public:
  // Throws sg::sim::failure.
  sg_backend_device(const sg_backend_host *host, const char *name);

  const char *model_json() const noexcept { return models_.device.c_str(); }
  const char *machine_json() const noexcept { return models_.machine.empty() ? nullptr : models_.machine.c_str(); }
  sg::sim::address_space &memory() noexcept { return *memory_; }
  std::int32_t compute_units() const { return host_->compute_units(model_.get()); }
  // Seconds of a command; negative: unsupported by the model.
  double seconds_of(const sg_backend_command &command, bool both_ways = false) const;
  bool supports(const sg_backend_command &command) const;
  void count_allocation();  // throws at the planned fault
  void drain();

  std::int32_t index() const noexcept { return index_; }
  // Before the first command of either.
  void connect(sg_backend_device &other, double bytes_per_second);
  // nullptr: it is not connected.
  const sg::sim::peer *peer_at(std::int32_t index) const noexcept;
  sg_backend_space space_of(const void *memory, std::uint64_t bytes) const noexcept;
  // Throws if the device is lost. `begins`: a command, which may lose it.
  void require_usable(bool begins = false);

 private:
  friend sg_backend_stream;
  struct model_deleter {
    const sg_backend_host *host;
    void operator()(sg_backend_model *model) const { host->model_free(model); }
  };

  bool inherited() const noexcept;  // by a child of fork, which lacks the threads

  const sg_backend_host *host_;
  sg::sim::device_name name_;
  sg::sim::model_texts models_;
  std::unique_ptr<sg_backend_model, model_deleter> model_;
  std::unique_ptr<sg::sim::address_space> memory_;
  const std::int32_t index_;
  std::vector<sg::sim::peer> peers_;
  std::shared_ptr<sg::sim::shared_links> links_;  // of the machine's devices that are connected; nullptr: none
  std::atomic<bool> lost_{false};
  const pid_t process_;

  std::mutex mutex_;  // guards the members below and the faults in name_
  std::unique_ptr<sg::sim::timeline> timeline_;
  std::vector<std::shared_ptr<sg::sim::work_queue>> queues_;
  bool draining_ = false;
};
