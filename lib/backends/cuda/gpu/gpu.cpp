// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/gpu/gpu.hpp"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/process_end.hpp"
#include "backends/cuda/libraries/blas.hpp"
#include "backends/cuda/properties/model.hpp"

namespace sg::cuda {

std::int64_t now_ns() noexcept {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

namespace {

// When GPU i of the process was lost; 0: it is not.
std::atomic<std::int64_t> g_lost_ns[64];
// Those that are open; never destroyed, because threads outlive exit().
struct open_gpus {
  std::mutex lock;
  std::set<gpu *> all;
};
open_gpus &gpus() {
  static auto *const made = new open_gpus;
  return *made;
}
// The GPU that lost all of the process's; -1: none.
std::atomic<int> g_lost_with{-1};
// A GPU with a stuck stream; -1: none. Its commands stay until the process ends.
std::atomic<int> g_stuck{-1};

bool timing_is_disabled() noexcept {
  const char *value = secure_getenv("SG_CUDA_TIMING");
  return value != nullptr && std::strcmp(value, "0") == 0;
}

}  // namespace

sg_status gpu::start() noexcept {
  if (const sg_status status = open()) return status;
  try {
    const std::lock_guard lock(gpus().lock);
    gpus().all.insert(this);
  } catch (const std::bad_alloc &) {
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a device");
  }
  started_ = true;
  return SG_STATUS_OK;
}

sg_status gpu::open() noexcept {
  char reason[400];
  if (load_blas(reason, sizeof reason) == nullptr || !load_driver(reason, sizeof reason))
    return fail(SG_STATUS_NO_DEVICE, "%s", reason);
  if (const sg_status status = check(cudaGetDeviceProperties(&facts_, ordinal_), "reading the device's properties"))
    return status;
  // The runtime's ordinals are the driver's: CUDA_VISIBLE_DEVICES is applied below both.
  driver_device_ = ordinal_;
  if (driver().retain(&context_, driver_device_) != CUDA_SUCCESS) {
    context_ = nullptr;
    return fail(SG_STATUS_BACKEND_FAILURE, "the primary context of CUDA device %d cannot be made", ordinal_);
  }
  const current here(context_);
  timed_ = !timing_is_disabled();
  if (const sg_status status =
          check(cudaStreamCreateWithFlags(&memory_stream_, cudaStreamNonBlocking), "creating a stream"))
    return status;
  if (const sg_status status = make_pool()) return status;
  if (const sg_status status = set_clock()) return status;
  if (const sg_status status = warm_up()) return status;
  process_end::watch();
  try {
    model_ = model_of(ordinal_, facts_);
  } catch (const std::exception &) {
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for the device's model");
  }
  // It works, so that an earlier context was lost.
  if (ordinal_ < 64) g_lost_ns[ordinal_].store(0);
  g_lost_with.store(-1);
  return SG_STATUS_OK;
}

// cuBLAS registers exit handlers during its first GEMMs, and cublasLt at its first proposal; they must be registered
// before ours, which then runs first and lets commands in flight complete.
sg_status gpu::warm_up() noexcept {
  constexpr int n = 64;
  constexpr std::size_t bytes = 3 * n * n * sizeof(double);
  void *memory = nullptr;
  cublasHandle_t handle = nullptr;
  sg_status status = check(cudaMallocFromPoolAsync(&memory, bytes, pool_, memory_stream_), "allocating device memory");
  if (status == SG_STATUS_OK) status = check(cudaMemsetAsync(memory, 0, bytes, memory_stream_), "preparing cuBLAS");
  if (status == SG_STATUS_OK && blas().create(&handle) != CUBLAS_STATUS_SUCCESS)
    status = fail(SG_STATUS_BACKEND_FAILURE, "cuBLAS does not start on CUDA device %d", ordinal_);
  if (status == SG_STATUS_OK) {
    blas().set_stream(handle, memory_stream_);
    const double one = 1, none = 0;
    const float one_f32 = 1, none_f32 = 0;
    const struct {
      cudaDataType type;
      cublasComputeType_t compute;
    } kinds[] = {{CUDA_R_32F, CUBLAS_COMPUTE_32F}, {CUDA_R_64F, CUBLAS_COMPUTE_64F}, {CUDA_R_16F, CUBLAS_COMPUTE_32F}};
    auto *at = static_cast<double *>(memory);
    for (const auto &kind : kinds) {
      const bool f64 = kind.type == CUDA_R_64F;
      const void *alpha = f64 ? static_cast<const void *>(&one) : &one_f32;
      const void *beta = f64 ? static_cast<const void *>(&none) : &none_f32;
      if (blas().gemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, alpha, at, kind.type, n, at + n * n, kind.type, n,
                      beta, at + 2 * n * n, kind.type, n, kind.compute, CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS &&
          !f64)
        status = fail(SG_STATUS_BACKEND_FAILURE, "cuBLAS has no GEMM on CUDA device %d", ordinal_);
    }
    ask_lt_once(handle);
    const sg_status result = check(cudaStreamSynchronize(memory_stream_), "preparing cuBLAS");
    if (status == SG_STATUS_OK) status = result;
  }
  if (handle != nullptr) blas().destroy(handle);
  if (memory != nullptr) cudaFreeAsync(memory, memory_stream_);
  return status;
}

sg_status gpu::make_pool() noexcept {
  cudaMemPoolProps wanted{};
  wanted.allocType = cudaMemAllocationTypePinned;
  wanted.location = {cudaMemLocationTypeDevice, ordinal_};
  if (const sg_status status = check(cudaMemPoolCreate(&pool_, &wanted), "creating a memory pool")) return status;
  // Memory kept for the next allocation; more than this returns to the device when unused.
  std::uint64_t keep = std::min<std::uint64_t>(std::uint64_t{1} << 30, facts_.totalGlobalMem / 16);
  cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep);
  // Streams must not wait for each other because they reuse each other's memory.
  int no = 0;
  cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &no);
  return SG_STATUS_OK;
}

sg_status gpu::set_clock() noexcept {
  if (const sg_status status = check(cudaEventCreateWithFlags(&clock_event_, cudaEventBlockingSync), "an event"))
    return status;
  if (const sg_status status = check(cudaEventRecord(clock_event_, memory_stream_), "recording an event"))
    return status;
  const sg_status status = check(cudaEventSynchronize(clock_event_), "waiting for an event");
  clock_ns_ = now_ns();
  return status;
}

gpu::~gpu() {
  {
    const std::lock_guard lock(gpus().lock);
    gpus().all.erase(this);
  }
  const process_end::freeing now;
  if (context_ == nullptr || !now.allowed() || stuck_ordinal() >= 0) return;
  {
    const current here(context_);
    if (clock_event_ != nullptr) cudaEventDestroy(clock_event_);
    if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
    if (memory_stream_ != nullptr) cudaStreamDestroy(memory_stream_);
  }
  driver().release(driver_device_);
}

sg_status gpu::usable() noexcept {
  if (const sg_status status = loss()) return status;
  if (draining_.load() || process_end::has_begun()) return fail(SG_STATUS_SHUTDOWN, "the process is exiting");
  return SG_STATUS_OK;
}

sg_status gpu::loss() noexcept {
  if (dead_.load(std::memory_order_acquire)) return fail(SG_STATUS_BACKEND_FAILURE, "%s", death_);
  const int other = g_lost_with.load(std::memory_order_relaxed);
  if (other < 0 || !started_) return SG_STATUS_OK;
  return fail(SG_STATUS_BACKEND_FAILURE, "cuda:%d is lost with cuda:%d: the process must be started again", ordinal_,
              other);
}

sg_status gpu::check(cudaError_t error, const char *what) noexcept {
  if (error == cudaSuccess) return SG_STATUS_OK;
  cudaGetLastError();  // the failure is reported here; a later launch must not report it again
  if (!started_ && is_refused_by_mps(error))
    return fail(SG_STATUS_NO_DEVICE, "cuda:%d: MPS refuses this process: %s", ordinal_, cudaGetErrorString(error));
  if (!is_sticky(error) || is_of_another(error))
    return fail(status_of(error), "cuda:%d: %s: %s", ordinal_, what, cudaGetErrorString(error));
  lose(error, what);
  return fail(SG_STATUS_BACKEND_FAILURE, "%s", death_);
}

// Calls that involve another GPU return its error.
bool gpu::is_of_another(cudaError_t error) noexcept {
  if (!started_ || loses_process(error)) return false;
  {
    const std::lock_guard lock(gpus().lock);
    if (gpus().all.size() < 2) return false;
  }
  if (dead_.load(std::memory_order_acquire)) return false;
  {
    const current here(context_);
    if (is_sticky(state_of(memory_stream_))) return false;
  }
  look_at(ordinal_ < 64 ? ~(std::uint64_t{1} << ordinal_) : ~std::uint64_t{0});
  return true;
}

void gpu::lose(cudaError_t error, const char *what) noexcept {
  const std::lock_guard lock(lock_);
  if (dead_.load(std::memory_order_relaxed)) return;
  std::snprintf(death_, sizeof death_, "cuda:%d is lost: %s, seen while %s%s", ordinal_, cudaGetErrorString(error),
                what, loses_process(error) ? "; the process must be started again" : "");
  if (loses_process(error)) g_lost_with.store(ordinal_);
  dead_.store(true, std::memory_order_release);
  if (ordinal_ < 64) g_lost_ns[ordinal_].store(now_ns());
}

void gpu::has_stuck_stream() noexcept {
  stuck_.store(true, std::memory_order_release);
  g_stuck.store(ordinal_, std::memory_order_release);
}

int gpu::stuck_ordinal() noexcept { return g_stuck.load(std::memory_order_acquire); }

std::int64_t gpu::lost_ns(std::uint64_t ordinals, int &ordinal) noexcept {
  std::int64_t first = 0;
  for (; ordinals != 0; ordinals &= ordinals - 1) {
    const int each = std::countr_zero(ordinals);
    const std::int64_t lost = g_lost_ns[each].load(std::memory_order_relaxed);
    if (lost == 0 || (first != 0 && first <= lost)) continue;
    first = lost;
    ordinal = each;
  }
  return first;
}

void gpu::look_at(std::uint64_t ordinals) noexcept {
  const std::lock_guard lock(gpus().lock);
  for (gpu *each : gpus().all) {
    if (each->ordinal_ >= 64 || (ordinals >> each->ordinal_ & 1) == 0 || each->usable() != SG_STATUS_OK) continue;
    const current here(each->context_);
    if (const cudaError_t state = state_of(each->memory_stream_); is_sticky(state))
      each->lose(state, "asking for its state");
  }
}

// cudaEventElapsedTime returns a float of milliseconds, too coarse over long spans, so the clock's own event is
// renewed. The host observes that event some tens of microseconds late; an event with an end after the present shows by
// how much at least.
std::int64_t gpu::time_of(cudaEvent_t event) noexcept {
  const std::lock_guard lock(clock_lock_);
  float milliseconds = 0;
  if (cudaEventElapsedTime(&milliseconds, clock_event_, event) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  const auto since_ns = static_cast<std::int64_t>(double(milliseconds) * 1e6);
  clock_ns_ = std::min(clock_ns_, now_ns() - since_ns);
  const std::int64_t found = clock_ns_ + since_ns;
  if (milliseconds > 1000 && cudaEventRecord(clock_event_, memory_stream_) == cudaSuccess &&
      cudaEventSynchronize(clock_event_) == cudaSuccess)
    clock_ns_ = now_ns();
  return found;
}

}  // namespace sg::cuda
