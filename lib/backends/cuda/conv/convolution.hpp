// SPDX-License-Identifier: Apache-2.0
// Convolutions of whole images by cuDNN: the descriptors and algorithms of a shape, found once and cached by the
// device. Without cuDNN, and for the shapes that it does not have, the core uses im2col and GEMMs.
#pragma once

#include <streamgemm/backend.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/libraries/dnn.hpp"

namespace sg::cuda {

class call_stream;
class gpu;

// A shape; any thread.
class convolution {
 public:
  struct way {
    dnn::algorithm by;
    std::size_t workspace;
  };

  convolution() noexcept = default;
  ~convolution();
  convolution(const convolution &) = delete;
  convolution &operator=(const convolution &) = delete;

  // False: cuDNN has no algorithm for it.
  bool describe(dnn::handle handle, const sg_backend_conv &what);
  // The fastest first, then those with less workspace.
  const std::vector<way> &ways() const noexcept { return ways_; }
  // Y = conv(X, W).
  dnn::status run(dnn::handle handle, const way &how, void *workspace, const sg_backend_conv &what) const noexcept;
  // Y = activation(conv(X, W) + bias); the activation is relu or none.
  dnn::status run_fused(dnn::handle handle, const way &how, void *workspace,
                        const sg_backend_conv &what) const noexcept;
  bool fuses(const way &how, const sg_backend_conv &what) const noexcept;

 private:
  bool make_descriptors(const sg_backend_conv &what) noexcept;
  bool find_ways(dnn::handle handle, bool is_f32);

  dnn::tensor x_ = nullptr, y_ = nullptr, bias_ = nullptr;
  dnn::filter w_ = nullptr;
  dnn::convolution how_ = nullptr;
  dnn::activation relu_ = nullptr, none_ = nullptr;
  std::vector<way> ways_;
};

// Of a device. Any thread.
class convolution_cache {
 public:
  // nullptr: cuDNN is not used for it. The device's context is current.
  std::shared_ptr<const convolution> find(gpu &owner, const sg_backend_conv &what) noexcept;
  void release() noexcept;  // the handle, while the device's context is current

 private:
  using shape = std::array<std::int64_t, 18>;
  static shape shape_of(const sg_backend_conv &what) noexcept;

  std::mutex lock_;
  dnn::handle handle_ = nullptr;  // for questions
  std::map<shape, std::shared_ptr<const convolution>> known_;
};

// What the convolutions of one stream use: a cuDNN handle, and the shapes that its device knows.
class conv_resources {
 public:
  explicit conv_resources(convolution_cache &known) noexcept : known_(known) {}
  conv_resources(const conv_resources &) = delete;
  conv_resources &operator=(const conv_resources &) = delete;
  void free() noexcept;  // the handle, while the GPU is usable and its context is current; no destructor does

  convolution_cache &known() const noexcept { return known_; }
  // Made by the first call; all calls are for one native stream.
  sg_status dnn_handle(cudaStream_t native, dnn::handle &out) noexcept;

 private:
  convolution_cache &known_;
  dnn::handle dnn_ = nullptr;
};

// Whether the images are NHWC.
inline bool has_channels_last(const sg_backend_windows &w) noexcept { return w.channel == 1 && w.pixel == w.channels; }
bool supports_conv(gpu &on, convolution_cache &known, const sg_backend_conv &what) noexcept;
sg_status run_conv(call_stream &in, conv_resources &by, const sg_backend_conv &what) noexcept;
// The status of a failure of cuDNN's, and its text.
sg_status dnn_failure(dnn::status status, const char *what) noexcept;

}  // namespace sg::cuda
