// SPDX-License-Identifier: Apache-2.0
// The plugin's table: each function finds its object and delegates.
#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/log.hpp"
#include "backends/cuda/driver/process_end.hpp"
#include "backends/cuda/libraries/blas.hpp"
#include "backends/cuda/properties/facts.hpp"
#include "backends/cuda/properties/names.hpp"
#include "backends/cuda/streams/device.hpp"
#include "backends/cuda/streams/graph.hpp"
#include "backends/cuda/streams/stream.hpp"

namespace sg::cuda {
namespace {

device &of(sg_backend_device *x) noexcept { return *reinterpret_cast<device *>(x); }
stream &of(sg_backend_stream *x) noexcept { return *reinterpret_cast<stream *>(x); }

// Stores its device, because destroying it needs the device's context.
struct event {
  device *owner;
  cudaEvent_t native;
  bool own;
  // As last recorded: other GPUs whose loss may keep it from happening, bit i for ordinal i.
  std::atomic<std::uint64_t> awaits{0};
};
event &of(sg_backend_event *x) noexcept { return *reinterpret_cast<event *>(x); }

int count_devices(cudaError_t &error) noexcept {
  int count = 0;
  error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  return error == cudaSuccess ? count : 0;
}

sg_status probe(char *reason, std::uint64_t size) noexcept {
  cudaError_t error;
  const int count = count_devices(error);
  int driver_version = 0;
  cudaDriverGetVersion(&driver_version);
  if (driver_version == 0) {
    std::snprintf(reason, size, "no NVIDIA driver is installed, or none that this process may use");
  } else if (error == cudaErrorInsufficientDriver) {
    std::snprintf(reason, size, "the NVIDIA driver is too old: it offers CUDA %d.%d, this plugin needs %d.%d",
                  driver_version / 1000, driver_version % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  } else if (error != cudaSuccess || count == 0) {
    std::snprintf(reason, size, "%s", error == cudaSuccess ? "no GPU" : cudaGetErrorString(error));
  } else if (load_driver(reason, size) && load_blas(reason, size) != nullptr) {
    return SG_STATUS_OK;
  }
  return SG_STATUS_NO_DEVICE;
}

std::int32_t device_count() noexcept {
  cudaError_t error;
  return count_devices(error);
}

sg_status device_name(std::int32_t index, char *name, std::uint64_t size) noexcept {
  std::snprintf(name, size, "%d", index);
  return SG_STATUS_OK;
}

sg_status device_open(const sg_backend_host *host, const char *name, sg_backend_device **out, char *message) noexcept {
  *out = nullptr;
  use_log_of(host);
  const std::int32_t count = device_count();
  const int ordinal = ordinal_of(name, count);
  if (ordinal < 0) {
    std::snprintf(message, SG_BACKEND_MESSAGE_SIZE, "there is no such device; cuda:0 to cuda:%d are there%s", count - 1,
                  std::strcmp(name, "local") == 0 ? ", and no variable gives this process a local rank" : "");
    return SG_STATUS_NO_DEVICE;
  }
  device *opened = nullptr;
  const sg_status status = device::open(ordinal, &opened);
  if (status != SG_STATUS_OK) std::snprintf(message, SG_BACKEND_MESSAGE_SIZE, "%s", failure_text());
  *out = reinterpret_cast<sg_backend_device *>(opened);
  return status;
}

void device_close(sg_backend_device *x) noexcept { delete &of(x); }
const char *device_model(sg_backend_device *x) noexcept { return of(x).model(); }
const char *last_message(sg_backend_device *) noexcept { return failure_text(); }

sg_status mem_alloc(sg_backend_device *x, std::uint64_t bytes, void **out) noexcept {
  return of(x).mem_alloc(bytes, out);
}
void mem_free(sg_backend_device *x, void *memory) noexcept { of(x).mem_free(memory); }
sg_status host_alloc(sg_backend_device *x, std::uint64_t bytes, void **out) noexcept {
  return of(x).host_alloc(bytes, out);
}
void host_free(sg_backend_device *x, void *memory) noexcept { of(x).host_free(memory); }
sg_status host_register(sg_backend_device *x, void *memory, std::uint64_t bytes) noexcept {
  return of(x).host_register(memory, bytes);
}
sg_status host_unregister(sg_backend_device *x, void *memory) noexcept { return of(x).host_unregister(memory); }
sg_backend_space memory_space(sg_backend_device *x, const void *memory, std::uint64_t bytes) noexcept {
  return of(x).memory_space(memory, bytes);
}

sg_status hand_out(sg_status status, stream *made, sg_backend_stream **out) noexcept {
  *out = reinterpret_cast<sg_backend_stream *>(made);
  return status;
}
sg_status stream_create(sg_backend_device *x, std::int32_t priority, sg_backend_stream **out) noexcept {
  stream *made = nullptr;
  const sg_status status = stream::create(of(x), priority, &made);
  return hand_out(status, made, out);
}
sg_status stream_create_within(sg_backend_device *x, std::int32_t priority, std::int32_t *units,
                               sg_backend_stream **out) noexcept {
  stream *made = nullptr;
  const sg_status status = stream::create_on_partition(of(x), priority, *units, &made);
  return hand_out(status, made, out);
}
sg_status stream_wrap(sg_backend_device *x, void *native, sg_backend_stream **out) noexcept {
  stream *made = nullptr;
  const sg_status status = stream::wrap(of(x), static_cast<cudaStream_t>(native), &made);
  return hand_out(status, made, out);
}
void stream_destroy(sg_backend_stream *x) noexcept { delete &of(x); }
sg_status stream_wait(sg_backend_stream *x, sg_backend_event *what) noexcept {
  const event &awaited = of(what);
  return of(x).wait(awaited.native, *awaited.owner, awaited.awaits.load(std::memory_order_relaxed));
}

sg_status event_create(sg_backend_device *x, sg_backend_event **out) noexcept {
  *out = nullptr;
  device &owner = of(x);
  if (const sg_status status = owner.usable()) return status;
  auto *fresh = new (std::nothrow) event{&owner, nullptr, true};
  if (fresh == nullptr) return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for an event");
  const current here(owner.context());
  const sg_status status =
      owner.check(cudaEventCreateWithFlags(&fresh->native, cudaEventDisableTiming), "creating an event");
  if (status == SG_STATUS_OK)
    *out = reinterpret_cast<sg_backend_event *>(fresh);
  else
    delete fresh;
  return status;
}

void event_destroy(sg_backend_event *x) noexcept {
  event &gone = of(x);
  const process_end::freeing now;
  if (gone.own && gone.owner->usable() == SG_STATUS_OK) {
    const current here(gone.owner->context());
    cudaEventDestroy(gone.native);
  }
  delete &gone;
}

sg_status event_record(sg_backend_event *x, sg_backend_stream *in) noexcept {
  of(x).awaits.store(of(in).awaits(), std::memory_order_relaxed);
  return of(in).record(of(x).native);
}

sg_status event_wrap(sg_backend_device *x, void *native, sg_backend_event **out) noexcept {
  *out = nullptr;
  device &owner = of(x);
  if (const sg_status status = owner.usable()) return status;
  const current here(owner.context());
  const auto given = static_cast<cudaEvent_t>(native);
  const cudaError_t state = state_of(given);
  if (state == cudaErrorInvalidResourceHandle || state == cudaErrorInvalidValue || state == cudaErrorCapturedEvent)
    return fail(SG_STATUS_INVALID_ARGUMENT, "cuda:%d: %p is no event that can be used: %s", owner.ordinal(), native,
                cudaGetErrorString(state));
  if (state != cudaSuccess && state != cudaErrorNotReady) return owner.check(state, "asking for an event");
  auto *fresh = new (std::nothrow) event{&owner, given, false};
  *out = reinterpret_cast<sg_backend_event *>(fresh);
  return fresh != nullptr ? SG_STATUS_OK : fail(SG_STATUS_OUT_OF_MEMORY, "no memory for an event");
}

void *event_native(sg_backend_event *x) noexcept { return of(x).native; }

sg_status event_query(sg_backend_event *x) noexcept {
  device &owner = *of(x).owner;
  if (const sg_status status = owner.usable()) return status;
  const current here(owner.context());
  const cudaError_t state = state_of(of(x).native);
  return state == cudaErrorNotReady ? SG_STATUS_NOT_READY : owner.check(state, "asking for an event");
}

std::int32_t supports(sg_backend_device *x, const sg_backend_command *what) noexcept {
  return sg::cuda::supports(of(x), *what);
}
sg_status enqueue(sg_backend_stream *x, const sg_backend_command *const *commands, std::int32_t count,
                  sg_status *statuses, sg_backend_done done) noexcept {
  return count == 1 ? of(x).enqueue(*commands[0], done)
                    : of(x).enqueue(gemm_list(commands, static_cast<std::size_t>(count)), statuses, done);
}
std::int32_t takes_batches(sg_backend_device *) noexcept { return 1; }

sg_status mem_free_bytes(sg_backend_device *x, std::uint64_t *out) noexcept { return of(x).mem_free_bytes(out); }
void drain(sg_backend_device *x) noexcept { of(x).drain(); }
void poll(sg_backend_device *x) noexcept { of(x).poll(); }
sg_status graph_create(sg_backend_device *x, const sg_backend_node *nodes, std::int32_t count,
                       sg_backend_graph **out) noexcept {
  return graph::create(of(x), nodes, count, reinterpret_cast<graph **>(out));
}
void graph_destroy(sg_backend_graph *x) noexcept { delete reinterpret_cast<graph *>(x); }
sg_status graph_launch(sg_backend_stream *x, sg_backend_graph *what, sg_backend_done done) noexcept {
  const graph &launched = *reinterpret_cast<graph *>(what);
  return of(x).launch(launched.executable(), launched.others(), done);
}

void facts(sg_backend_device *x, sg_backend_facts *out) noexcept {
  sg_backend_facts found{};
  const current here(of(x).context());
  describe(of(x).ordinal(), of(x).facts(), found);
  found.struct_size = std::min<std::uint32_t>(out->struct_size, sizeof found);
  std::memcpy(out, &found, found.struct_size);
}

std::int32_t compute_units(sg_backend_device *x) noexcept { return of(x).facts().multiProcessorCount; }
sg_status tune(sg_backend_device *x) noexcept { return of(x).tune(); }
void time_commands(sg_backend_device *x, std::int32_t on) noexcept { of(x).time_commands(on != 0); }

std::int32_t device_index(sg_backend_device *x) noexcept { return of(x).ordinal(); }
sg_status peer_connect(sg_backend_device *x, sg_backend_device *other, double bytes_per_second) noexcept {
  if (bytes_per_second >= 0) return of(x).connect(of(other));
  of(x).disconnect(of(other));
  return SG_STATUS_OK;
}
sg_status device_status(sg_backend_device *x) noexcept { return of(x).loss(); }
sg_status stream_status(sg_backend_stream *x) noexcept { return of(x).status(); }

constexpr sg_backend_ops table = {
    .abi_version = SG_BACKEND_ABI_VERSION,
    .struct_size = sizeof(sg_backend_ops),
    .name = "cuda",
    .probe = probe,
    .device_count = device_count,
    .device_name = device_name,
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
    .stream_wrap = stream_wrap,
    .stream_wait = stream_wait,
    .stream_begin_at = nullptr,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .supports = supports,
    .enqueue = enqueue,
    .drain = drain,
    .takes_batches = takes_batches,
    .poll = poll,
    .graph_create = graph_create,
    .graph_destroy = graph_destroy,
    .graph_launch = graph_launch,
    .mem_free_bytes = mem_free_bytes,
    .compute_units = compute_units,
    .tune = tune,
    .event_wrap = event_wrap,
    .event_native = event_native,
    .event_query = event_query,
    .facts = facts,
    .stream_create_within = stream_create_within,
    .time_commands = time_commands,
    .device_index = device_index,
    .peer_connect = peer_connect,
    .device_status = device_status,
    .stream_status = stream_status,
};

}  // namespace
}  // namespace sg::cuda

extern "C" __attribute__((visibility("default"))) const sg_backend_ops *sg_backend_entry_3(void) {
  return &sg::cuda::table;
}
