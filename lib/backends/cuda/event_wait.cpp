// SPDX-License-Identifier: Apache-2.0
#include "event_wait.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "device.hpp"
#include "process_end.hpp"

namespace sg::cuda {
namespace {

constexpr std::int64_t shortest_nap_ns = 10'000, longest_nap_ns = 50'000;
// What takes longer is worth an interrupt.
constexpr std::int64_t naps_for_ns = 1'000'000;

void nap(std::int64_t ns) noexcept {
  const timespec time{0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);
}

}  // namespace

cudaError_t event_wait::wait(cudaEvent_t event) noexcept {
  const std::int64_t begun_ns = now_ns();
  for (;;) {
    const cudaError_t state = cudaEventQuery(event);
    if (state != cudaErrorNotReady) return state;
    const std::int64_t waited_ns = now_ns() - begun_ns;
    if (waited_ns > naps_for_ns && make()) return sleep_on(event);
    nap(std::clamp(waited_ns / 4, shortest_nap_ns, longest_nap_ns));
  }
}

bool event_wait::make() noexcept {
  if (behind_ != nullptr && interrupts_ != nullptr) return true;
  const process_end::freeing now;
  if (!now.allowed()) return false;  // what is made while CUDA is taken down may crash
  if (behind_ == nullptr && cudaStreamCreateWithFlags(&behind_, cudaStreamNonBlocking) != cudaSuccess)
    behind_ = nullptr;
  if (interrupts_ == nullptr &&
      cudaEventCreateWithFlags(&interrupts_, cudaEventBlockingSync | cudaEventDisableTiming) != cudaSuccess)
    interrupts_ = nullptr;
  return behind_ != nullptr && interrupts_ != nullptr;
}

cudaError_t event_wait::sleep_on(cudaEvent_t event) noexcept {
  cudaError_t error = cudaStreamWaitEvent(behind_, event, 0);
  if (error == cudaSuccess) error = cudaEventRecord(interrupts_, behind_);
  return error == cudaSuccess ? cudaEventSynchronize(interrupts_) : error;
}

void event_wait::free() noexcept {
  if (interrupts_ != nullptr) cudaEventDestroy(interrupts_);
  if (behind_ != nullptr) cudaStreamDestroy(behind_);
  interrupts_ = nullptr;
  behind_ = nullptr;
}

}  // namespace sg::cuda
