// SPDX-License-Identifier: Apache-2.0
// The backend's table: each function finds its object and delegates.
#include "cpu_backend.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "backends/cpu/gemm/select.hpp"
#include "backends/cpu/streams/device.hpp"
#include "backends/cpu/streams/operations.hpp"
#include "backends/cpu/streams/stream.hpp"
#include "backends/cpu/threads/cores.hpp"
#include "backends/cpu/threads/event.hpp"
#include "backends/cpu/threads/fork_lock.hpp"
#include "backends/cpu/worker/failure.hpp"

namespace sg::cpu {
namespace {

device &of(sg_backend_device *x) noexcept { return *reinterpret_cast<device *>(x); }
stream &of(sg_backend_stream *x) noexcept { return *reinterpret_cast<stream *>(x); }
event &of(sg_backend_event *x) noexcept { return *reinterpret_cast<event *>(x); }

sg_status probe(char *reason, std::uint64_t size) noexcept {
  if (size > 0) reason[0] = '\0';
  return SG_STATUS_OK;
}

std::int32_t device_count() noexcept { return 1; }

sg_status device_name(std::int32_t, char *name, std::uint64_t size) noexcept {
  if (size > 0) name[0] = '\0';
  return SG_STATUS_OK;
}

sg_status device_open(const sg_backend_host *host, const char *name, sg_backend_device **out, char *message) noexcept {
  *out = nullptr;
  if (name[0] != '\0') {
    std::snprintf(message, SG_BACKEND_MESSAGE_SIZE, "there is one cpu device, without a name behind the colon");
    return SG_STATUS_NO_DEVICE;
  }
  if (const sg_status status = warm_up(); status != SG_STATUS_OK) {
    std::snprintf(message, SG_BACKEND_MESSAGE_SIZE,
                  status == SG_STATUS_OUT_OF_MEMORY
                      ? "no memory or no threads for the libraries: OpenBLAS maps 128 MiB for each of its threads"
                      : "the libraries do not start");
    return status;
  }
  if (host != nullptr && !has_cblas())
    host->log(
        SG_BACKEND_LOG_WARN, SG_BACKEND_LOG_FALLBACK,
        "cpu: no library with CBLAS was found: f64 and complex GEMMs run in a plain loop, and f32 without oneDNN too");
  if (host != nullptr && misses_onednn())
    host->log(SG_BACKEND_LOG_WARN, SG_BACKEND_LOG_FALLBACK,
              "cpu: oneDNN was not found: convolutions and GEMMs of bf16 and i8 are slower without it");
  const std::lock_guard lock(fork_lock());  // the first device chooses the kernels of all devices
  auto *fresh = new (std::nothrow) device;
  if (fresh == nullptr) {
    std::snprintf(message, SG_BACKEND_MESSAGE_SIZE, "no memory for a device");
    return SG_STATUS_OUT_OF_MEMORY;
  }
  *out = reinterpret_cast<sg_backend_device *>(fresh);
  return SG_STATUS_OK;
}

void device_close(sg_backend_device *x) noexcept { delete &of(x); }
const char *device_model(sg_backend_device *x) noexcept { return of(x).model(); }
const char *last_message(sg_backend_device *) noexcept { return failure_text(); }

sg_status allocate(std::uint64_t bytes, std::uint64_t alignment, void **out) noexcept {
  const std::uint64_t rounded = (std::max<std::uint64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  *out = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
  if (*out == nullptr)
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for %llu bytes", static_cast<unsigned long long>(bytes));
  return SG_STATUS_OK;
}

sg_status mem_alloc(sg_backend_device *, std::uint64_t bytes, void **out) noexcept { return allocate(bytes, 256, out); }
sg_status mem_free_bytes(sg_backend_device *, std::uint64_t *out) noexcept {
  const std::int64_t bytes = free_memory();
  if (bytes < 0) return fail(SG_STATUS_UNSUPPORTED, "the system does not tell its free memory");
  *out = static_cast<std::uint64_t>(bytes);
  return SG_STATUS_OK;
}
sg_status host_alloc(sg_backend_device *, std::uint64_t bytes, void **out) noexcept {
  return allocate(bytes, 4096, out);
}
void release(sg_backend_device *, void *memory) noexcept { std::free(memory); }

sg_status stream_create(sg_backend_device *x, std::int32_t priority, sg_backend_stream **out) noexcept {
  *out = nullptr;
  stream *fresh = nullptr;
  const sg_status status = of(x).create_stream(priority, &fresh);
  if (status == SG_STATUS_OK) *out = reinterpret_cast<sg_backend_stream *>(fresh);
  return status;
}

void stream_destroy(sg_backend_stream *x) noexcept { of(x).owner().destroy_stream(&of(x)); }
sg_status stream_wait(sg_backend_stream *x, sg_backend_event *what) noexcept { return of(x).wait(of(what)); }

sg_status event_create(sg_backend_device *, sg_backend_event **out) noexcept {
  auto *fresh = new (std::nothrow) event;
  *out = reinterpret_cast<sg_backend_event *>(fresh);
  return fresh != nullptr ? SG_STATUS_OK : fail(SG_STATUS_OUT_OF_MEMORY, "no memory for an event");
}

void event_destroy(sg_backend_event *x) noexcept { delete &of(x); }

sg_status event_record(sg_backend_event *x, sg_backend_stream *in) noexcept {
  of(in).record(of(x));
  return SG_STATUS_OK;
}

int32_t supports(sg_backend_device *, const sg_backend_command *what) noexcept {
  const operation *const known = operation_of(what->kind);
  return known != nullptr && known->supports(*what);
}
sg_status enqueue(sg_backend_stream *x, const sg_backend_command *const *commands, std::int32_t count,
                  sg_status *statuses, sg_backend_done done) noexcept {
  return count == 1 ? of(x).enqueue(*commands[0], done) : of(x).enqueue({commands, count, statuses}, done);
}
int32_t takes_batches(sg_backend_device *) noexcept { return 1; }
sg_status run_here(sg_backend_device *x, const sg_backend_command *const *commands, std::int32_t count,
                   std::int64_t *out_busy_ns) noexcept {
  return of(x).run_here(commands, count, out_busy_ns);
}
int32_t run_waiting(sg_backend_device *x, int32_t (*wanted)(const sg_backend_done *done, void *user),
                    void *user) noexcept {
  return of(x).run_waiting(wanted, user) ? 1 : 0;
}
void stop_when(sg_backend_device *x, int32_t (*stopped)(const sg_backend_done *done)) noexcept {
  of(x).stop_when(stopped);
}
void drain(sg_backend_device *x) noexcept { of(x).drain(); }

// Slots not listed are NULL: one memory, so no memory spaces and no registration; no native streams; real time.
constexpr sg_backend_ops table = {
    .abi_version = SG_BACKEND_ABI_VERSION,
    .struct_size = sizeof(sg_backend_ops),
    .name = "cpu",
    .probe = probe,
    .device_count = device_count,
    .device_name = device_name,
    .device_open = device_open,
    .device_close = device_close,
    .device_model = device_model,
    .last_message = last_message,
    .mem_alloc = mem_alloc,
    .mem_free = release,
    .host_alloc = host_alloc,
    .host_free = release,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_wait = stream_wait,
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
    .run_here = run_here,
    .run_waiting = run_waiting,
    .stop_when = stop_when,
};

}  // namespace
}  // namespace sg::cpu

extern "C" const sg_backend_ops *sg_cpu_backend(void) { return &sg::cpu::table; }
