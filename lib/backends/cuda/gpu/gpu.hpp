// SPDX-License-Identifier: Apache-2.0
// An open GPU: its primary context, memory pool, clock, and state (usable or lost).
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace sg::cuda {

std::int64_t now_ns() noexcept;  // CLOCK_MONOTONIC

class gpu {
 public:
  explicit gpu(int ordinal) noexcept : ordinal_(ordinal) {}
  // Called once, before all other functions. SG_STATUS_NO_DEVICE: also if MPS refuses the process.
  sg_status start() noexcept;
  ~gpu();
  gpu(const gpu &) = delete;
  gpu &operator=(const gpu &) = delete;

  int ordinal() const noexcept { return ordinal_; }
  CUdevice driver_device() const noexcept { return driver_device_; }
  CUcontext context() const noexcept { return context_; }
  cudaMemPool_t pool() const noexcept { return pool_; }
  const char *model() const noexcept { return model_.c_str(); }
  const cudaDeviceProp &facts() const noexcept { return facts_; }
  bool timed() const noexcept { return timed_; }
  // Each command is to be timed by events, for a trace. Any thread.
  void time_commands(bool on) noexcept { times_commands_.store(on, std::memory_order_relaxed); }
  bool times_commands() const noexcept { return timed_ && times_commands_.load(std::memory_order_relaxed); }

  void refuse_commands() noexcept { draining_.store(true); }  // the process exits
  // SG_STATUS_OK, or why commands are refused: the device is lost, or the process exits.
  sg_status usable() noexcept;
  // The status of a CUDA result; stores the text, and the first error that loses the device.
  sg_status check(cudaError_t error, const char *what) noexcept;

  sg_status mem_alloc(std::uint64_t bytes, void **out) noexcept;
  sg_status mem_free_bytes(std::uint64_t *out) noexcept;
  void mem_free(void *memory) noexcept;
  sg_status host_alloc(std::uint64_t bytes, void **out) noexcept;
  void host_free(void *memory) noexcept;
  sg_status host_register(void *memory, std::uint64_t bytes) noexcept;
  sg_status host_unregister(void *memory) noexcept;
  sg_backend_space memory_space(const void *memory, std::uint64_t bytes) noexcept;
  // Lets this GPU copy from the memory of another by the links between them. SG_STATUS_UNSUPPORTED: there is no such
  // way.
  sg_status connect(gpu &other) noexcept;
  void disconnect(gpu &other) noexcept;  // copies cross the host's links
  // SG_STATUS_OK, or SG_STATUS_BACKEND_FAILURE: it is lost.
  sg_status loss() noexcept;
  // When the first of these GPUs (bit i: ordinal i) was lost, as now_ns(); 0: none is. `ordinal` receives it.
  static std::int64_t lost_ns(std::uint64_t ordinals, int &ordinal) noexcept;
  // Asks those of these GPUs that are open whether they are lost: one without commands in flight tells by itself
  // nothing.
  static void look_at(std::uint64_t ordinals) noexcept;
  // A stream that waits for a lost GPU is given up: calls that wait for all streams would not return. Such calls are
  // left out, and the memory stays.
  void has_stuck_stream() noexcept;
  bool is_stuck() const noexcept { return stuck_.load(std::memory_order_acquire); }
  // The ordinal of a GPU of the process with such a stream, whose commands may still write memory of the host and of
  // all GPUs; -1: there is none.
  static int stuck_ordinal() noexcept;

  // The time of an event that has happened, on CLOCK_MONOTONIC, in ns. 0: unknown.
  std::int64_t time_of(cudaEvent_t event) noexcept;

 private:
  sg_status open() noexcept;
  bool is_of_another(cudaError_t error) noexcept;
  void lose(cudaError_t error, const char *what) noexcept;
  sg_status share_with_this(const gpu &other) noexcept;
  sg_status alloc_unpooled(std::uint64_t bytes, void **out) noexcept;
  sg_status make_pool() noexcept;
  sg_status set_clock() noexcept;
  sg_status warm_up() noexcept;

  const int ordinal_;
  bool started_ = false;
  CUdevice driver_device_ = 0;
  CUcontext context_ = nullptr;
  cudaDeviceProp facts_{};
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t memory_stream_ = nullptr;  // allocations and frees; only this class waits for it
  std::string model_;
  bool timed_ = true;

  std::atomic<bool> dead_{false}, draining_{false}, times_commands_{false}, stuck_{false};
  // Whether memory comes from the pool: not once another GPU of a context has no access to it, because the driver
  // copies other memory only through the host.
  std::atomic<bool> pools_{true};
  std::mutex lock_;  // guards the members below
  char death_[SG_BACKEND_MESSAGE_SIZE] = "";
  std::map<void *, std::uint64_t> mapped_;  // mapped and registered host memory
  std::set<void *> unpooled_;               // device memory

  std::mutex clock_lock_;
  cudaEvent_t clock_event_ = nullptr;  // happened at clock_ns_
  std::int64_t clock_ns_ = 0;
};

}  // namespace sg::cuda
