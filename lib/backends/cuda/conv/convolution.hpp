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

#include "backends/cuda/conv/dnn.hpp"

namespace sg::cuda {

class device;
class stream;

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
  std::shared_ptr<const convolution> find(device &owner, const sg_backend_conv &what) noexcept;
  void release() noexcept;  // the handle, while the device's context is current

 private:
  using shape = std::array<std::int64_t, 18>;
  static shape shape_of(const sg_backend_conv &what) noexcept;

  std::mutex lock_;
  dnn::handle handle_ = nullptr;  // for questions
  std::map<shape, std::shared_ptr<const convolution>> known_;
};

// Whether the images are NHWC.
inline bool has_channels_last(const sg_backend_windows &w) noexcept { return w.channel == 1 && w.pixel == w.channels; }
bool supports_conv(device &on, const sg_backend_conv &what) noexcept;
sg_status run_conv(stream &in, const sg_backend_conv &what) noexcept;
// The status of a failure of cuDNN's, and its text.
sg_status dnn_failure(dnn::status status, const char *what) noexcept;

}  // namespace sg::cuda
