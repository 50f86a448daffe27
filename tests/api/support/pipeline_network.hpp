// SPDX-License-Identifier: Apache-2.0
// A pipeline of layers with a reference, and batches in any memory.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "../../reference/dense.hpp"
#include "support/harness.hpp"

namespace sg_test {

using doubles = std::vector<double>;
using pipeline = owned<sg_pipeline, sg_pipeline_release>;

// Memory of one kind with doubles in it.
class placed {
 public:
  // `device`: of device memory.
  placed(sg_context *context, sg_memory_kind kind, const doubles &values, std::int32_t device = 0)
      : context_(context), kind_(kind), size_(values.size()), own_(values) {
    void *data = own_.data();
    if (kind == SG_MEMORY_PINNED) {
      EXPECT_OK(sg_host_alloc(context, size_ * sizeof(double), &data));
      std::memcpy(data, values.data(), size_ * sizeof(double));
    } else if (kind == SG_MEMORY_DEVICE) {
      sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
      options.device = device;
      EXPECT_OK(sg_buffer_create(context, bytes(), &options, memory_.out()));
      EXPECT_OK(sg_buffer_data(memory_, &data));
      EXPECT_OK(sg_copy(context, data, values.data(), size_ * sizeof(double), nullptr));
    }
    data_ = static_cast<double *>(data);
  }
  ~placed() {
    if (kind_ == SG_MEMORY_PINNED) {
      EXPECT_OK(sg_host_free(context_, data_));
    }
  }
  placed(const placed &) = delete;
  placed &operator=(const placed &) = delete;

  double *data() const { return data_; }
  std::uint64_t bytes() const { return size_ * sizeof(double); }
  doubles values() const {
    if (kind_ != SG_MEMORY_DEVICE) return doubles(data_, data_ + size_);
    doubles all(size_);
    EXPECT_OK(sg_copy(context_, all.data(), data_, bytes(), nullptr));
    return all;
  }

 private:
  sg_context *context_;
  sg_memory_kind kind_;
  std::size_t size_;
  doubles own_;
  buffer memory_;
  double *data_ = nullptr;
};

// Small integers, so that every sum is exact.
inline doubles integers(std::size_t count, unsigned seed) {
  std::mt19937 draw(seed);
  doubles all(count);
  for (double &each : all) each = static_cast<int>(draw() % 5) - 2;
  return all;
}

struct network_options {
  sg_pipeline_options pipeline = SG_PIPELINE_OPTIONS_INIT;
  std::vector<std::size_t> widths = {5, 7, 4, 6};
  std::size_t rows = 3;
  sg_memory_kind weights = SG_MEMORY_PAGEABLE;
  sg_weights_place place = SG_WEIGHTS_AUTO;
  std::vector<std::int32_t> devices = {SG_DEVICE_ANY};  // of the stages, again and again
  std::int32_t weights_device = 0;                      // of weights in device memory
  bool relu_apart = false;                              // by a second operation of the stage
};

// Layers relu(x W) as stages.
class network {
 public:
  network(sg_context *context, const network_options &given) : context_(context), given_(given) {
    sg_pipeline_options options = given.pipeline;
    options.input_bytes = given.rows * given.widths[0] * sizeof(double);
    EXPECT_OK(sg_pipeline_create(context, &options, pipeline_.out()));
    for (std::size_t l = 0; l + 1 < given.widths.size(); ++l) {
      const std::size_t in = given.widths[l], out = given.widths[l + 1];
      weights_.push_back(integers(in * out, static_cast<unsigned>(l) + 1));
      places_.push_back(std::make_unique<placed>(context, given.weights, weights_.back(), given.weights_device));
      const sg_weight weight = {places_.back()->data(), places_.back()->bytes()};
      sg_stage_desc desc = SG_STAGE_DESC_INIT;
      desc.output_bytes = given.rows * out * sizeof(double);
      desc.weights = &weight;
      desc.weight_count = 1;
      desc.place = given.place;
      desc.device = given.devices[l % given.devices.size()];
      sg_stage stage = SG_STAGE_INIT;
      EXPECT_OK(sg_pipeline_add_stage(pipeline_, &desc, &stage));
      EXPECT_EQ(static_cast<std::int32_t>(l), stage.index);
      record(stage, given.rows, in, out);
    }
  }
  void record(const sg_stage &stage, std::size_t rows, std::size_t in, std::size_t out) {
    sg_gemm_desc gemm = make_gemm(static_cast<const double *>(stage.input), static_cast<double *>(stage.weights[0]),
                                  static_cast<double *>(stage.output), static_cast<std::int64_t>(rows),
                                  static_cast<std::int64_t>(out), static_cast<std::int64_t>(in));
    gemm.activation = given_.relu_apart ? SG_ACTIVATION_NONE : SG_ACTIVATION_RELU;
    sg_submit submit = SG_SUBMIT_INIT;
    submit.graph = stage.graph;
    EXPECT_OK(sg_gemm_async(context_, &gemm, &submit, nullptr));
    if (!given_.relu_apart) return;
    sg_elementwise_desc relu = SG_ELEMENTWISE_DESC_INIT;
    relu.function = SG_FUNCTION_RELU;
    relu.a = relu.c = gemm.c;
    EXPECT_OK(sg_elementwise_async(context_, &relu, &submit, nullptr));
  }
  doubles input(unsigned seed) const { return integers(given_.rows * given_.widths[0], 100 + seed); }
  doubles expected(unsigned seed) const {
    doubles x = input(seed);
    for (std::size_t l = 0; l + 1 < given_.widths.size(); ++l)
      x = sg_reference::dense_relu(x, weights_[l], given_.rows, given_.widths[l], given_.widths[l + 1]);
    return x;
  }
  std::size_t result_size() const { return given_.rows * given_.widths.back(); }
  operator sg_pipeline *() const { return pipeline_; }
  pipeline &handle() { return pipeline_; }

 private:
  sg_context *context_;
  network_options given_;
  std::vector<doubles> weights_;
  std::vector<std::unique_ptr<placed>> places_;
  pipeline pipeline_;
};

}  // namespace sg_test
