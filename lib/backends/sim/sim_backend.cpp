// SPDX-License-Identifier: Apache-2.0
#include "sim_backend.hpp"

#include <cstdint>
#include <new>

#include "device.hpp"
#include "failure.hpp"
#include "models.hpp"
#include "stream.hpp"

namespace sg::sim {

namespace {

// The calling thread's latest failure on any simulated device.
thread_local char t_message[SG_BACKEND_MESSAGE_SIZE];

// Runs `body`, which returns nothing, and converts its exceptions to a status and a text of SG_BACKEND_MESSAGE_SIZE
// bytes.
template <class Body>
sg_status guarded(char *message, Body &&body) noexcept {
  const auto say = [&](sg_status status, const char *text) {
    std::snprintf(message, SG_BACKEND_MESSAGE_SIZE, "%s", text);
    return status;
  };
  try {
    body();
    return SG_STATUS_OK;
  } catch (const failure &fault) {
    return say(fault.status(), fault.what());
  } catch (const std::bad_alloc &) {
    return say(SG_STATUS_OUT_OF_MEMORY, "no host memory");
  } catch (const std::exception &fault) {
    return say(SG_STATUS_INTERNAL, fault.what());
  }
}

template <class Body>
sg_status guarded(Body &&body) noexcept {
  return guarded(t_message, std::forward<Body>(body));
}

sg_status probe(char *, uint64_t) { return SG_STATUS_OK; }

int32_t device_count() { return static_cast<int32_t>(built_in_models().size()); }

sg_status device_name_of(int32_t index, char *name, uint64_t size) {
  if (index < 0 || index >= device_count()) return SG_STATUS_NO_DEVICE;
  std::snprintf(name, size, "%s", built_in_models()[static_cast<std::size_t>(index)].name);
  return SG_STATUS_OK;
}

sg_status device_open(const sg_backend_host *host, const char *name, sg_backend_device **out, char *message) {
  return guarded(message, [&] { *out = new sg_backend_device(host, name); });
}

void device_close(sg_backend_device *device) { delete device; }

const char *device_model(sg_backend_device *device) { return device->model_json(); }
const char *machine_model(sg_backend_device *device) { return device->machine_json(); }

const char *last_message(sg_backend_device *) { return t_message; }

sg_status mem_alloc(sg_backend_device *device, uint64_t bytes, void **out) {
  return guarded([&] {
    device->count_allocation();
    *out = device->memory().device_alloc(bytes);
  });
}

sg_status mem_free_bytes(sg_backend_device *device, uint64_t *out) {
  *out = device->memory().device_free_bytes();
  return SG_STATUS_OK;
}

void mem_free(sg_backend_device *device, void *memory) { device->memory().device_free(memory); }

sg_status host_alloc(sg_backend_device *device, uint64_t bytes, void **out) {
  return guarded([&] {
    device->count_allocation();
    *out = device->memory().pinned_alloc(bytes);
  });
}

void host_free(sg_backend_device *device, void *memory) { device->memory().pinned_free(memory); }

sg_status host_register(sg_backend_device *device, void *memory, uint64_t bytes) {
  return guarded([&] { device->memory().pin(memory, bytes); });
}

sg_status host_unregister(sg_backend_device *device, void *memory) {
  return guarded([&] { device->memory().unpin(memory); });
}

sg_backend_space memory_space(sg_backend_device *device, const void *memory, uint64_t bytes) {
  return device->space_of(memory, bytes);
}

// All streams run concurrently; priorities have no effect.
sg_status stream_create(sg_backend_device *device, int32_t, sg_backend_stream **out) {
  return guarded([&] { *out = new sg_backend_stream(*device); });
}

void stream_destroy(sg_backend_stream *stream) { delete stream; }

sg_status stream_wait(sg_backend_stream *stream, sg_backend_event *event) {
  return guarded([&] { stream->wait_for(*event); });
}

sg_status stream_begin_at(sg_backend_stream *stream, int64_t device_ns) {
  stream->begin_at(device_ns);
  return SG_STATUS_OK;
}

sg_status event_create(sg_backend_device *, sg_backend_event **out) {
  return guarded([&] { *out = new sg_backend_event; });
}

void event_destroy(sg_backend_event *event) { delete event; }

sg_status event_record(sg_backend_event *event, sg_backend_stream *stream) {
  return guarded([&] { stream->record(*event); });
}

int32_t supports(sg_backend_device *device, const sg_backend_command *command) { return device->supports(*command); }

sg_status enqueue(sg_backend_stream *stream, const sg_backend_command *const *commands, int32_t count, sg_status *,
                  sg_backend_done done) {
  return guarded([&] {
    if (count == 1)
      stream->enqueue(*commands[0], done);
    else
      stream->enqueue_batch(commands, count, done);
  });
}

int32_t takes_batches(sg_backend_device *) { return 1; }

void drain(sg_backend_device *device) {
  guarded([&] { device->drain(); });
}

int32_t compute_units(sg_backend_device *device) { return device->compute_units(); }

sg_status machine_device_name(const char *text, int32_t index, char *out, uint64_t size) {
  return guarded([&] {
    const sg::sim::device_name name = sg::sim::device_name::parse(text);
    if (name.index >= 0 || static_cast<std::size_t>(index) >= devices_of(name))
      throw failure(SG_STATUS_NO_DEVICE, "there is no such device of a machine");
    const std::string whole(text), options = whole.substr(std::min(whole.rfind('?'), whole.size()));
    std::snprintf(out, size, "%s/%d%s", name.model.c_str(), int{index}, options.c_str());
  });
}

int32_t device_index(sg_backend_device *device) { return device->index(); }

sg_status peer_connect(sg_backend_device *device, sg_backend_device *other, double bytes_per_second) {
  return guarded([&] { device->connect(*other, bytes_per_second); });
}

sg_status device_status(sg_backend_device *device) {
  return guarded([&] { device->require_usable(); });
}

constexpr sg_backend_ops table = {
    .abi_version = SG_BACKEND_ABI_VERSION,
    .struct_size = sizeof(sg_backend_ops),
    .name = "sim",
    .probe = probe,
    .device_count = device_count,
    .device_name = device_name_of,
    .device_open = device_open,
    .device_close = device_close,
    .device_model = device_model,
    .last_message = last_message,
    .mem_alloc = mem_alloc,
    .mem_free = mem_free,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .memory_space = memory_space,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_wrap = nullptr,
    .stream_wait = stream_wait,
    .stream_begin_at = stream_begin_at,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .supports = supports,
    .enqueue = enqueue,
    .drain = drain,
    .takes_batches = takes_batches,
    .poll = nullptr,
    .graph_create = nullptr,
    .graph_destroy = nullptr,
    .graph_launch = nullptr,
    .mem_free_bytes = mem_free_bytes,
    .compute_units = compute_units,
    .machine_model = machine_model,
    .machine_device_name = machine_device_name,
    .device_index = device_index,
    .peer_connect = peer_connect,
    .device_status = device_status,
};

}  // namespace

}  // namespace sg::sim

extern "C" const sg_backend_ops *sg_sim_backend(void) { return &sg::sim::table; }
