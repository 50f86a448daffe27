// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <new>

#include "backends/cpu/gemm/select.hpp"
#include "backends/cpu/threads/clock.hpp"
#include "backends/cpu/threads/cores.hpp"
#include "backends/cpu/worker/failure.hpp"
#include "operations.hpp"

namespace sg::cpu {
namespace {

// Rates of a core for one type, as a row of the model's "gemm" array.
int write_rate(char *to, std::size_t size, const char *name, sg_dtype type, bool first) noexcept {
  const double rate = rate_of(type);
  if (rate == 0) return 0;
  return std::snprintf(to, size, R"(%s{"dtype": "%s", "compute": "exact", "flops_per_second": %.3e})",
                       first ? "" : ", ", name, rate);
}

}  // namespace

device::device() noexcept : cores_(usable_cores()), process_(getpid()) {
  // Launch costs: a command's way through the queue to a sleeping worker and the notification of its completion,
  // measured. Memory rate: a round figure for each core.
  int length = std::snprintf(model_, sizeof model_,
                             R"({"name": "cpu", "unified_memory": true, "lanes_are_cores": true, )"
                             R"("memory_bytes": %lld, "compute_lanes": %d, "lane_depth_commands": 2, "kernels": {)"
                             R"("launch_latency_seconds": 5e-6, "launch_gap_seconds": 2e-7, "units": 1, )"
                             R"("tile_m_elements": 16, "tile_n_elements": 6, "split_k_elements": 0, )"
                             R"("memory_bytes_per_second": %.3e, "gemm": [)",
                             static_cast<long long>(usable_memory()), cores_, 15e9 * cores_);
  constexpr struct {
    const char *name;
    sg_dtype type;
  } types[] = {{"f64", SG_DTYPE_F64},   {"f32", SG_DTYPE_F32},         {"c64", SG_DTYPE_C64},
               {"c128", SG_DTYPE_C128}, {"f16", SG_DTYPE_F16},         {"bf16", SG_DTYPE_BF16},
               {"i8", SG_DTYPE_I8},     {"f8_e4m3", SG_DTYPE_F8_E4M3}, {"f8_e5m2", SG_DTYPE_F8_E5M2}};
  for (const auto &x : types)
    length += write_rate(model_ + length, sizeof model_ - static_cast<std::size_t>(length), x.name, x.type,
                         &x == std::begin(types));
  std::snprintf(model_ + length, sizeof model_ - static_cast<std::size_t>(length), "]}}");
}

sg_status device::create_stream(std::int32_t priority, stream **out) noexcept {
  auto *entry = new (std::nothrow) listed_stream{nullptr, nullptr};
  if (entry == nullptr) return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a stream");
  // Held throughout, so that drain() misses no stream.
  const std::lock_guard lock(mutex_);
  const sg_status status =
      draining() ? fail(SG_STATUS_SHUTDOWN, "the process is exiting") : stream::create(*this, priority, &entry->value);
  if (status != SG_STATUS_OK) {
    delete entry;
    return status;
  }
  entry->next = streams_;
  streams_ = entry;
  count_.fetch_add(1, std::memory_order_relaxed);
  *out = entry->value;
  return SG_STATUS_OK;
}

void device::destroy_stream(stream *which) noexcept {
  {
    const std::lock_guard lock(mutex_);
    for (listed_stream **link = &streams_; *link != nullptr; link = &(*link)->next)
      if ((*link)->value == which) {
        listed_stream *gone = *link;
        *link = gone->next;
        count_.fetch_sub(1, std::memory_order_relaxed);
        delete gone;
        break;
      }
  }
  delete which;
}

namespace {
thread_local bool t_computes = false;  // in run_here()
}  // namespace

sg_status device::run_here(const sg_backend_command *const *commands, std::int32_t count,
                           std::int64_t *out_busy_ns) noexcept {
  const sg_backend_command &what = *commands[0];
  const operation *const known = operation_of(what.kind);
  if (known == nullptr || what.struct_size < known->size || !known->supports(what))
    return fail(SG_STATUS_UNSUPPORTED, "the cpu does not support %s of these types", name_of(what.kind));
  workspace *const space = workspaces_.acquire();
  if (space == nullptr) return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a command");
  // Sequentially consistent with drain(): either it sees this thread inside, or this thread sees that it drains.
  callers_.fetch_add(1, std::memory_order_seq_cst);
  sg_status status = SG_STATUS_SHUTDOWN;
  if (!draining()) {
    const default_arithmetic as_on_a_worker;
    t_computes = true;
    status = run(*known, commands, count, *space, out_busy_ns);
    t_computes = false;
  }
  callers_.fetch_sub(1, std::memory_order_seq_cst);
  workspaces_.release(space);
  return status == SG_STATUS_OK ? status : fail(status, "%s", text_of(status));
}

sg_status device::run(const operation &known, const sg_backend_command *const *commands, std::int32_t count,
                      workspace &space, std::int64_t *out_busy_ns) noexcept {
  // If callers use all cores, helpers would only compete with them.
  const std::int32_t free_cores = cores_ - callers_.load(std::memory_order_relaxed);
  if (count > 1 && free_cores > 0)
    if (shared_calls::call *const call = calls_.open(known, commands, count, out_busy_ns != nullptr)) {
      wake_helpers(std::min(count - 1, free_cores));
      return calls_.finish(*call, space, out_busy_ns);
    }
  const std::int64_t start_ns = out_busy_ns != nullptr ? now_ns() : 0;
  sg_status first = SG_STATUS_OK;
  for (std::int32_t i = 0; i < count; ++i) {
    const sg_status status = known.run(*commands[i], space);
    if (first == SG_STATUS_OK) first = status;
  }
  if (out_busy_ns != nullptr) *out_busy_ns = now_ns() - start_ns;
  return first;
}

// Not under the list's lock: a drain holds it while it waits for callers.
void device::wake_helpers(std::int32_t wanted) noexcept {
  wanted -= polling_.load(std::memory_order_seq_cst);
  if (wanted <= 0) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (listed_stream *x = streams_; x != nullptr && wanted > 0; x = x->next)
    if (x->value->wake()) --wanted;
}

bool device::run_waiting(int32_t (*wanted)(const sg_backend_done *done, void *user), void *user) noexcept {
  stream *found = nullptr;
  {
    const std::lock_guard lock(mutex_);
    for (listed_stream *x = streams_; x != nullptr && found == nullptr; x = x->next)
      if (x->value->take_waiting(wanted, user)) found = x->value;
  }
  if (found == nullptr) return false;
  workspace *const space = workspaces_.acquire();
  if (space == nullptr) {
    found->leave_to_worker();
    return false;
  }
  {
    const default_arithmetic as_on_a_worker;
    found->run_taken(*space);
  }
  workspaces_.release(space);
  return true;
}

void device::drain() noexcept {
  if (getpid() != process_) return;
  const std::lock_guard lock(mutex_);
  draining_.store(true, std::memory_order_seq_cst);
  while (callers_.load(std::memory_order_seq_cst) != 0 && !t_computes) usleep(50);
  for (listed_stream *x = streams_; x != nullptr; x = x->next) x->value->wake();
  for (listed_stream *x = streams_; x != nullptr; x = x->next) x->value->wait_until_drained();
}

}  // namespace sg::cpu
