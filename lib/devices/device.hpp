// SPDX-License-Identifier: Apache-2.0
// An opened device: the C++ interface over a backend's table. Failures are thrown as sg::error with the backend's text.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_space.hpp"

namespace sg {

struct device_model;   // model/device_model.hpp
struct machine_model;  // model/machine_model.hpp

// A device's name in two parts: "sim:h200" is {"sim", "h200"}, "cpu" is {"cpu", ""}.
struct device_name {
  std::string backend, device;
  std::string text() const { return device.empty() ? backend : backend + ":" + device; }
};

// Resolves `name`. NULL, "" and "auto" mean the variable SG_DEVICE if set, otherwise "cuda:0" if available and else
// "cpu". A name that ends in a colon means the backend's first device. Throws SG_STATUS_INVALID_ARGUMENT for an invalid
// name, SG_STATUS_NO_DEVICE if its backend is unavailable.
device_name resolve_device(const char *name);
// The same for the name of several devices of one backend: "cuda:0,2", "cuda:0-3", "cuda:all", or a machine's
// ("sim:h200x2"). Lists are of devices that the backend counts, each once; a name with '/' or '?', or that ends in
// ".json", is one item.
std::vector<device_name> resolve_devices(const char *name);

inline constexpr sg_backend_command marker_command{sizeof(sg_backend_command), SG_BACKEND_MARKER};

class device {
 public:
  device(const sg_backend_ops &ops, const device_name &name);  // opens it
  ~device();
  device(const device &) = delete;
  device &operator=(const device &) = delete;

  const sg_backend_ops &ops() const noexcept { return ops_; }
  sg_backend_device *handle() const noexcept { return handle_; }
  const std::string &name() const noexcept { return name_; }  // "sim:h200"; of one opened by a UUID "cuda:0"
  std::string name_of(std::int32_t other) const;              // the backend's device with that index; "": none
  std::int32_t index() const noexcept;                        // by which other devices name its memory; -1: none
  const device_model &model() const noexcept { return *model_; }
  // The machine that the backend says the device is part of; nullptr: none.
  const machine_model *machine() const noexcept { return machine_.get(); }
  bool unified() const noexcept { return !ops_.memory_space; }  // host and device share memory
  // The device orders commands by itself, without the host.
  bool orders_commands() const noexcept { return !unified() && !ops_.stream_begin_at; }

  // Throws the error for a failed status of one of this device's functions; `what` names the attempt.
  void check(sg_status status, const char *what) const;

  bool supports(const sg_backend_command &what) const noexcept { return ops_.supports(handle_, &what) != 0; }
  // One command.
  sg_status enqueue(sg_backend_stream *in, const sg_backend_command &what, sg_backend_done done) const noexcept {
    const sg_backend_command *const one = &what;
    return ops_.enqueue(in, &one, 1, nullptr, done);
  }
  bool has_batches() const noexcept { return ops_.takes_batches && ops_.takes_batches(handle_) != 0; }

  // Required slots that return a resource, checked. Release it by the table's own function.
  void *mem_alloc(std::uint64_t bytes) const;
  void *host_alloc(std::uint64_t bytes, int node = -1) const;  // on a NUMA node, as in page_placement
  sg_backend_stream *stream_create(std::int32_t priority) const;
  sg_backend_event *event_create() const;

  // Optional slots, with a default if absent.
  void host_register(void *memory, std::uint64_t bytes) const;
  void host_unregister(void *memory) const;
  memory_space space_of(const void *memory, std::uint64_t bytes) const noexcept;  // unified: always the device's
  void begin_at(sg_backend_stream *stream, std::int64_t device_ns) const;
  void drain() const noexcept;
  // Prepares copies from the memory of another device, by a link of that rate or an unknown one (0). False: they cross
  // the links to the host; `reason` says why. Negative: they are to cross them.
  bool connect(const device &other, double bytes_per_second, std::string &reason) const;
  void time_commands(bool on) const noexcept {
    if (ops_.time_commands) ops_.time_commands(handle_, on);
  }
  sg_backend_facts facts() const noexcept;
  // SG_STATUS_OK, or why the device is lost, in last_message.
  sg_status status() const noexcept { return ops_.device_status ? ops_.device_status(handle_) : SG_STATUS_OK; }
  std::optional<std::uint64_t> free_memory() const noexcept;  // bytes on the device; empty: unknown
  std::uint64_t known_free_memory() const;                    // the same; throws why it is unknown

 private:
  const sg_backend_ops &ops_;
  std::string name_;
  sg_backend_device *handle_ = nullptr;
  std::unique_ptr<const device_model> model_;
  std::unique_ptr<const machine_model> machine_;
};

// Opens the devices of resolve_devices(name), or the one that it names. Throw as it does, and with the backend's
// reason.
std::vector<std::shared_ptr<device>> open_devices(const char *name);
std::shared_ptr<device> open_device(const char *name);

// The core's services for backends: the planner's device models and cost functions.
const sg_backend_host *host_services() noexcept;

}  // namespace sg
