// SPDX-License-Identifier: Apache-2.0
// cuDNN's executables by shape, and the handles of streams.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/dnn/computation.hpp"

namespace sg::cuda {

class gpu;

namespace dnn {

// Of a device. Any thread. An executable lives until release(): graphs that were captured from it use its kernels.
class executable_cache {
 public:
  using shape = std::vector<std::int64_t>;
  // Describes and finishes the computation; nullptr: cuDNN has no kernel for it.
  using maker = std::function<std::unique_ptr<const executable>(handle)>;

  // nullptr: cuDNN is not used for it. The device's context is current.
  const executable *find(gpu &owner, const shape &wanted, const maker &make) noexcept;
  void release() noexcept;  // all, while the device's context is current
  void abandon() noexcept;  // at process exit, when cuDNN may be gone

 private:
  std::mutex lock_;
  handle handle_ = nullptr;  // for questions
  std::map<shape, std::unique_ptr<const executable>> known_;
};

// What the calls of one stream use: a cuDNN handle, and the executables of its device.
class stream_resources {
 public:
  explicit stream_resources(executable_cache &known) noexcept : known_(known) {}
  stream_resources(const stream_resources &) = delete;
  stream_resources &operator=(const stream_resources &) = delete;
  void free() noexcept;  // the handle, while the GPU is usable and its context is current; no destructor does

  executable_cache &known() const noexcept { return known_; }
  // Made by the first call; all calls are for one native stream.
  sg_status handle_of(cudaStream_t native, handle &out) noexcept;

 private:
  executable_cache &known_;
  handle handle_ = nullptr;
};

// The status of a failure of cuDNN's, and its text.
sg_status failure(status of, const char *what) noexcept;

}  // namespace dnn
}  // namespace sg::cuda
