// SPDX-License-Identifier: Apache-2.0
// A computation described to cuDNN as a graph: tensors and operations on them, for which cuDNN makes one kernel or few.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "backends/cuda/libraries/dnn.hpp"

namespace sg::cuda::dnn {

// Owns a descriptor.
class owned {
 public:
  owned() noexcept = default;
  explicit owned(int kind) noexcept {
    if (library().make(kind, &of_) != 0) of_ = nullptr;
  }
  owned(owned &&other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
  owned &operator=(owned &&other) noexcept {
    std::swap(of_, other.of_);
    return *this;
  }
  ~owned() {
    if (of_ != nullptr) library().unmake(of_);
  }
  descriptor get() const noexcept { return of_; }
  explicit operator bool() const noexcept { return of_ != nullptr; }

 private:
  descriptor of_ = nullptr;
};

// Sizes and strides of four dimensions: images, channels, rows, columns; or batches, heads, rows, columns.
struct extent {
  std::array<std::int64_t, 4> sizes, strides;

  static extent dense(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) noexcept {
    return {{a, b, c, d}, {b * c * d, c * d, d, 1}};
  }
  extent transposed() const noexcept {  // of the last two dimensions
    return {{sizes[0], sizes[1], sizes[3], sizes[2]}, {strides[0], strides[1], strides[3], strides[2]}};
  }
};

// Execution plans of a computation, the one that cuDNN takes for the fastest first. Any thread.
class executable {
 public:
  struct way {
    owned plan;
    std::size_t workspace;  // bytes
  };
  // A tensor's number, and its address; of a value in host memory.
  struct bound {
    std::int64_t number;
    const void *at;
  };

  // `described`: what the plans were made from.
  executable(std::vector<way> ways, std::vector<owned> described) noexcept
      : described_(std::move(described)), ways_(std::move(ways)) {}
  const std::vector<way> &ways() const noexcept { return ways_; }
  status run(handle by, const way &how, std::span<const bound> tensors, void *workspace) const noexcept;

 private:
  std::vector<owned> described_;
  std::vector<way> ways_;
  mutable std::mutex lock_;  // two threads do not enqueue one plan at once
};

class computation {
 public:
  using tensor = std::int64_t;  // its place in this computation; negative: none

  // A tensor with an address at each run, aligned to 16 bytes; a value of host memory at each run; and a tensor that
  // exists within kernels. The first two have numbers of the caller's, below 64, by which a run binds them.
  tensor stored(std::int64_t number, const extent &of, data_type type) { return add(number, of, type, false, false); }
  tensor value(std::int64_t number, data_type type) {
    return add(number, extent::dense(1, 1, 1, 1), type, false, true);
  }
  tensor within(const extent &of, data_type type) {
    return add(64 + static_cast<std::int64_t>(tensors_.size()), of, type, true, false);
  }

  // y = f(x), f(x, b), or for `select` t ? x : b. The arithmetic has the given type. axis: of index_along.
  void apply(function f, data_type arithmetic, tensor y, tensor x, tensor b = -1, tensor t = -1,
             std::int64_t axis = -1);
  // c = a * b, of which the rows, columns and inner elements beyond these numbers do not count.
  void multiply_matrices(tensor c, tensor a, tensor b, tensor rows = -1, tensor cols = -1, tensor inner = -1);
  void reduce(reduction_function f, tensor y, tensor x);  // over the dimensions where y has one element
  void reshape(tensor y, tensor x);

  struct convolution {
    std::array<std::int64_t, 2> before, after, strides, dilations;  // of rows and columns; paddings before and after
  };
  void convolve(descriptor_kind which, const convolution &how, tensor x, tensor w, tensor y);

  struct limits {
    std::uint32_t refused_notes;  // bits of numerical_note
    std::size_t workspace;        // bytes
    std::size_t ways;             // that are enough
  };
  // nullptr: cuDNN has no kernel for it. The caller serializes calls with one handle. Called once, at last.
  std::unique_ptr<const executable> finish(handle by, const limits &within);

 private:
  tensor add(std::int64_t number, const extent &of, data_type type, bool is_virtual, bool is_value);
  descriptor made(int kind);
  void set(descriptor of, int attribute, int type, std::int64_t count, const void *value) noexcept;
  template <class T>
  void set(descriptor of, int attribute, int type, const T &value) noexcept {
    set(of, attribute, type, 1, &value);
  }
  void set_tensor(descriptor of, int attribute, tensor which) noexcept;
  void finalize(descriptor of) noexcept;
  void add_operation(descriptor of);
  bool suits(descriptor configuration, std::uint32_t refused_notes) const noexcept;

  std::vector<owned> all_;
  std::vector<descriptor> tensors_, operations_;
  bool failed_ = false;
};

}  // namespace sg::cuda::dnn
