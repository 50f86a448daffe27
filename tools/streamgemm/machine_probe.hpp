// SPDX-License-Identifier: Apache-2.0
// Measures what several devices of a context reach together: copies between pinned memory and all of them, copies
// between their memories, and staging of pageable memory. Figures are bytes per second.
#pragma once

#include <cstdint>
#include <vector>

#include "library.hpp"

namespace sg::cli {

class machine_probe {
 public:
  explicit machine_probe(sg_context *context);
  ~machine_probe();
  machine_probe(const machine_probe &) = delete;
  machine_probe &operator=(const machine_probe &) = delete;

  std::int32_t devices() const noexcept { return std::int32_t(device_.size()); }
  // Of pinned copies to some devices at a time, from them, or both.
  double links(const std::vector<std::int32_t> &devices, bool in, bool out);
  // Of copies from one device's memory to another's.
  double peer(std::int32_t from, std::int32_t to);
  // Of so many host threads that fill pinned memory, which is copied to all devices in turn, and of others that empty
  // pinned memory, which is copied from all devices. By the caller's clock.
  double staging(int packing, int unpacking);

 private:
  struct memory_of_device {
    void *host_in = nullptr, *host_out = nullptr;  // pinned
    buffer_handle in, out;
  };
  // Copies one after the other, in a stream.
  struct flow {
    char *to;
    const char *from;
    stream_handle stream;
    int count = 0;
  };
  struct timed_copy {
    double start, end;  // in nanoseconds
  };
  using timed_flow = std::vector<timed_copy>;

  void allocate_host(void *&memory);
  buffer_handle allocate(std::int32_t device);
  flow flow_of(std::int32_t device, char *to, const char *from);
  static timed_flow run_of(const std::vector<job_handle> &jobs);
  double run(std::vector<flow> &flows) const;
  double rate_of(std::vector<flow> flows) const;

  sg_context *const context_;
  std::vector<memory_of_device> device_;
};

}  // namespace sg::cli
