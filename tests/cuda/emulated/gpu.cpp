// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "contexts.hpp"
#include "partitions.hpp"
#include "state.hpp"

#define API extern "C" __attribute__((visibility("default")))

namespace emulated {

cudaError_t refuse(cudaError_t error) noexcept { return t_latest = error; }

cudaError_t enter(call kind) noexcept {
  const int device = current_device();
  if (kind != call::anywhere && (device < 0 || g_retained[device].load() == 0))
    return refuse(cudaErrorDeviceUninitialized);
  const int used = device < 0 ? 0 : device;
  if (g_breakage.strikes(EMULATED_LOST_AT_CALL)) g_breakage.lose(used, g_breakage.how_lost);
  if (g_breakage.is_lost(used)) return refuse(g_breakage.error);
  if (kind == call::allocation && g_breakage.strikes(EMULATED_NO_MEMORY)) return refuse(cudaErrorMemoryAllocation);
  if (kind == call::command && g_breakage.strikes(EMULATED_NO_LAUNCH)) return refuse(cudaErrorLaunchOutOfResources);
  return cudaSuccess;
}

void keep(void *object) {
  const std::lock_guard lock(object_list::only().mutex);
  object_list::only().all.insert(object);
}
void drop(void *object) {
  const std::lock_guard lock(object_list::only().mutex);
  if (object_list::only().all.erase(object) == 1) return;
  std::fprintf(stderr, "an object of CUDA's is destroyed that is not there\n");
  std::abort();
}

cudaError_t reach(cudaStream_t in, std::initializer_list<const void *> memory) {
  const auto known = [&](const void *address) {
    if (address == nullptr) return true;
    const std::lock_guard lock(ranges::only().mutex);
    const auto found = ranges::only().at(address);
    if (found == ranges::only().all.end()) return false;
    return found->second.type == cudaMemoryTypeHost || found->second.device == in->device;  // only copies reach others
  };
  if (std::all_of(memory.begin(), memory.end(), known)) return cudaSuccess;
  std::fprintf(stderr, "a command uses memory that the emulated GPU does not reach\n");
  g_breakage.lose(in->device, cudaErrorIllegalAddress);
  return refuse(cudaErrorIllegalAddress);
}

cudaError_t misaligned(bool within_command) noexcept {
  std::fprintf(stderr, "a command accesses a misaligned address of the emulated GPU\n");
  if (within_command)
    g_breakage.lose_within_command(std::max(0, current_device()), cudaErrorMisalignedAddress);
  else
    g_breakage.lose(std::max(0, current_device()), cudaErrorMisalignedAddress);
  return refuse(cudaErrorMisalignedAddress);
}

cudaError_t enqueue(cudaStream_t in, std::function<void()> work) {
  if (in->device != current_device()) return refuse(cudaErrorInvalidResourceHandle);
  command_within(in->within);
  auto guarded = [work = std::move(work), device = g_breakage.device.load(), on = in->device,
                  is_node = in->captured_in != nullptr] {
    while (is_node && g_breakage.is_mute(on)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (g_breakage.strikes(EMULATED_LOST)) g_breakage.lose(on, g_breakage.how_lost);
    const std::shared_lock runs(g_breakage.running);
    if (device == g_breakage.device.load() && !g_breakage.is_lost(on)) work();
  };
  if (in->captured_in) {
    auto &nodes = in->captured_in->into->nodes;
    in->captured_in->into->devices |= 1u << in->device;
    nodes.push_back({std::move(guarded), std::exchange(in->tails, {})});
    in->tails.insert(nodes.size() - 1);
  } else {
    in->put(std::move(guarded));
  }
  return cudaSuccess;
}

}  // namespace emulated

using namespace emulated;

API void emulated_gpu_break(emulated_fault how, long nth, long more) {
  g_breakage.how.store(EMULATED_NONE);
  g_breakage.left.store(nth);
  g_breakage.more.store(more);
  g_breakage.happened.store(false);
  if (g_breakage.lost) {
    {
      const std::unique_lock none_runs(g_breakage.running);
      ++g_breakage.device;
      ranges::only().replace_device();
      lose_partitions();
    }
    std::set<CUstream_st *> streams;
    {
      const std::lock_guard lock(object_list::only().mutex);
      streams.swap(object_list::only().streams);
    }
    for (CUstream_st *each : streams) each->stop();
  }
  g_breakage.lost.store(0);
  g_breakage.how.store(how);
}
API void emulated_gpu_lose_with(int error) { g_breakage.how_lost.store(static_cast<cudaError_t>(error)); }
API void emulated_gpu_leave_stuck(int on) { g_breakage.leaves_stuck.store(on != 0); }
API int emulated_gpu_is_broken(void) { return g_breakage.happened.load(); }
API long emulated_gpu_objects(void) {
  const std::scoped_lock lock(object_list::only().mutex, ranges::only().mutex);
  return static_cast<long>(object_list::only().all.size() + ranges::only().all.size());
}
