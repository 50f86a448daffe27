// SPDX-License-Identifier: Apache-2.0
// An open GPU with what its streams share: their list, timed choices of kernels, cuDNN's executables.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "backends/cuda/dnn/executables.hpp"
#include "backends/cuda/gemm/choices.hpp"
#include "backends/cuda/gpu/gpu.hpp"

namespace sg::cuda {

class stream;

class device : public gpu {
 public:
  // On failure it sets this thread's text.
  static sg_status open(int ordinal, device **out) noexcept;
  ~device();

  // Turns on the timing of kernels, once for each shape. Call before the first command.
  sg_status tune() noexcept;
  const std::unique_ptr<choices> &tuned() const noexcept { return tuned_; }  // empty: kernels are not timed
  dnn::executable_cache &executables() noexcept { return executables_; }

  void add(stream &x) noexcept;
  void remove(stream &x) noexcept;
  // Waits until the commands of all streams are notified, and threads have left the calls that enqueue them; later ones
  // are refused.
  void drain() noexcept;
  // Around a call that enqueues: CUDA's libraries may not be called once exit has destroyed their objects.
  class enqueuing {
   public:
    explicit enqueuing(device &on) noexcept;
    ~enqueuing();
    enqueuing(const enqueuing &) = delete;
    enqueuing &operator=(const enqueuing &) = delete;

   private:
    friend class device;
    device &on_;
    const enqueuing *const around_;  // of this thread
  };
  void poll() noexcept;
  bool polled_within(std::chrono::nanoseconds time) const noexcept;

 private:
  explicit device(int ordinal) noexcept : gpu(ordinal) {}

  std::unique_ptr<choices> tuned_;
  dnn::executable_cache executables_;
  std::atomic<std::int64_t> polled_ns_{0};
  std::atomic<std::int32_t> enqueuing_{0};  // threads
  std::recursive_mutex streams_lock_;       // of the list and is_polled_
  bool is_polled_ = false;
  stream *streams_ = nullptr;
};

}  // namespace sg::cuda
