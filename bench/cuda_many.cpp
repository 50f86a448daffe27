// SPDX-License-Identifier: Apache-2.0
// Many resident GEMMs, sent in each of the ways that CUDA and cuBLAS offer.
#include <algorithm>
#include <exception>
#include <memory>
#include <tuple>
#include <vector>

#include "cuda_gpu.hpp"

namespace sg::cli {
namespace {

// Created once and never released: at process exit CUDA may be gone before.
lane &lane_at(std::size_t i) {
  static auto &all = *new std::vector<std::unique_ptr<lane>>;
  while (all.size() <= i) all.push_back(std::make_unique<lane>());
  return *all[i];
}

bool plain_scalars(const gpu_gemm &p) { return p.beta == 0 || p.beta == 1; }

class many {
 public:
  virtual ~many() = default;
  virtual double run() = 0;
};

class by_calls : public many {
 public:
  by_calls(std::vector<gpu_gemm> gemms, const types &t, int streams, bool wait_each)
      : gemms_(std::move(gemms)), types_(t), wait_each_(wait_each) {
    for (int i = 0; i < streams; ++i) lanes_.push_back(&lane_at(std::size_t(i)));
  }

  void send() {
    for (std::size_t i = 0; i < gemms_.size(); ++i) {
      const lane &on = *lanes_[i % lanes_.size()];
      call(on, gemms_[i], types_);
      if (wait_each_) CHECK(cudaStreamSynchronize(on.stream));
    }
  }
  double run() override {
    return timed([this] {
      send();
      if (!wait_each_)
        for (const lane *x : lanes_) CHECK(cudaStreamSynchronize(x->stream));
    });
  }
  const std::vector<lane *> &lanes() const { return lanes_; }

 private:
  const std::vector<gpu_gemm> gemms_;
  const types types_;
  const bool wait_each_;
  std::vector<lane *> lanes_;
};

class by_graph : public many {
 public:
  explicit by_graph(by_calls calls) {
    calls.run();  // cuBLAS loads modules at its first call, which cannot be captured
    lane &first = *calls.lanes().front();
    CHECK(cudaStreamBeginCapture(first.stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      record(calls, first);
    } catch (...) {
      cudaStreamEndCapture(first.stream, &graph);  // the stream can be used again
      throw;
    }
    CHECK(cudaStreamEndCapture(first.stream, &graph));
    const cudaError_t made = cudaGraphInstantiate(&ready_, graph, 0);
    cudaGraphDestroy(graph);
    CHECK(made);
    CHECK(cudaGraphUpload(ready_, stream_ = first.stream));
    CHECK(cudaStreamSynchronize(stream_));
  }
  ~by_graph() override { cudaGraphExecDestroy(ready_); }
  double run() override {
    return timed([this] {
      CHECK(cudaGraphLaunch(ready_, stream_));
      CHECK(cudaStreamSynchronize(stream_));
    });
  }

 private:
  // The other streams branch off the first and join it again.
  static void record(by_calls &calls, const lane &first) {
    CHECK(cudaEventRecord(first.event, first.stream));
    for (const lane *x : calls.lanes())
      if (x != &first) CHECK(cudaStreamWaitEvent(x->stream, first.event, 0));
    calls.send();
    for (const lane *x : calls.lanes())
      if (x != &first) {
        CHECK(cudaEventRecord(x->event, x->stream));
        CHECK(cudaStreamWaitEvent(first.stream, x->event, 0));
      }
  }

  cudaGraphExec_t ready_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

// One batched GEMM that equals all of them, if they are at a constant stride.
bool as_strided(const std::vector<gpu_gemm> &all, std::size_t size, gpu_gemm &one) {
  one = all.front();
  if (all.size() == 1) return true;
  const auto distance = [size](const void *from, const void *to) {
    return (static_cast<const char *>(to) - static_cast<const char *>(from)) / std::int64_t(size);
  };
  const auto shape = [](const gpu_gemm &p) {
    return std::tuple(p.m, p.n, p.k, p.op_a, p.op_b, p.lda, p.ldb, p.ldc, p.beta, p.batch);
  };
  one.batch = std::int64_t(all.size());
  one.stride_a = distance(one.a, all[1].a);
  one.stride_b = distance(one.b, all[1].b);
  one.stride_c = distance(one.c, all[1].c);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const gpu_gemm &p = all[i];
    const auto n = std::int64_t(i);
    if (p.batch != 1 || shape(p) != shape(all.front()) || distance(one.a, p.a) != n * one.stride_a ||
        distance(one.b, p.b) != n * one.stride_b || distance(one.c, p.c) != n * one.stride_c)
      return false;
  }
  return true;
}

// GEMMs sorted by shape, with the arrays that cuBLAS reads: pointer arrays on the device, the others here.
class by_arrays : public many {
 public:
  by_arrays(std::vector<gpu_gemm> all, const types &t, bool grouped) : types_(t), grouped_(grouped) {
    const auto shape = [](const gpu_gemm &p) { return std::tuple(p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.op_a, p.op_b); };
    std::stable_sort(all.begin(), all.end(), [&](const auto &x, const auto &y) { return shape(x) < shape(y); });
    std::vector<const void *> pointers;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const gpu_gemm &p = all[i];
      if (i > 0 && shape(p) == shape(all[i - 1])) {
        ++sizes_.back();
        continue;
      }
      sizes_.push_back(1);
      first_.push_back(p);
      op_a_.push_back(op_of(p.op_a)), op_b_.push_back(op_of(p.op_b));
      m_.push_back(p.m), n_.push_back(p.n), k_.push_back(p.k);
      lda_.push_back(p.lda), ldb_.push_back(p.ldb), ldc_.push_back(p.ldc);
      alpha32_.push_back(1), beta32_.push_back(float(p.beta));
      alpha64_.push_back(1), beta64_.push_back(p.beta);
    }
    for (const gpu_gemm &p : all) pointers.push_back(p.a);
    for (const gpu_gemm &p : all) pointers.push_back(p.b);
    for (const gpu_gemm &p : all) pointers.push_back(p.c);
    count_ = all.size();
    CHECK(cudaMalloc(&pointers_, pointers.size() * sizeof(void *)));
    CHECK(cudaMemcpy(pointers_, pointers.data(), pointers.size() * sizeof(void *), cudaMemcpyHostToDevice));
  }
  ~by_arrays() override { cudaFree(pointers_); }
  std::size_t shapes() const { return sizes_.size(); }

  double run() override {
    return timed([this] {
      const lane &on = lane_at(0);
      const void *const *a = pointers_, *const *b = a + count_;
      void *const *c = const_cast<void *const *>(b + count_);
      const bool wide = types_.size == 8;
      const gpu_gemm &p = first_.front();
      if (grouped_)
        CHECK(cublasGemmGroupedBatchedEx_64(
            on.blas, op_a_.data(), op_b_.data(), m_.data(), n_.data(), k_.data(),
            wide ? static_cast<const void *>(alpha64_.data()) : alpha32_.data(), a, types_.data, lda_.data(), b,
            types_.data, ldb_.data(), wide ? static_cast<const void *>(beta64_.data()) : beta32_.data(), c, types_.data,
            ldc_.data(), std::int64_t(sizes_.size()), sizes_.data(), types_.compute));
      else
        CHECK(cublasGemmBatchedEx_64(on.blas, op_a_[0], op_b_[0], p.m, p.n, p.k, constants.one(types_), a, types_.data,
                                     p.lda, b, types_.data, p.ldb, scalar(types_, p.beta), c, types_.data, p.ldc,
                                     std::int64_t(count_), types_.compute, CUBLAS_GEMM_DEFAULT));
      CHECK(cudaStreamSynchronize(on.stream));
    });
  }

 private:
  const types types_;
  const bool grouped_;
  std::size_t count_ = 0;
  std::vector<gpu_gemm> first_;  // of each shape
  std::vector<cublasOperation_t> op_a_, op_b_;
  std::vector<std::int64_t> m_, n_, k_, lda_, ldb_, ldc_, sizes_;
  std::vector<float> alpha32_, beta32_;
  std::vector<double> alpha64_, beta64_;
  const void **pointers_ = nullptr;
};

std::unique_ptr<many> prepare(gpu_way way, int streams, std::vector<gpu_gemm> all) {
  types t;
  if (all.empty() || streams < 1) return nullptr;
  for (const gpu_gemm &p : all)
    if (!types_of(p, t) || p.dtype != all.front().dtype || !plain_scalars(p)) return nullptr;
  the_gpu();  // selects the device
  const bool single = std::all_of(all.begin(), all.end(), [](const gpu_gemm &p) { return p.batch == 1; });
  gpu_gemm one{};
  switch (way) {
    case gpu_way::synchronous: return std::make_unique<by_calls>(std::move(all), t, 1, true);
    case gpu_way::streams: return std::make_unique<by_calls>(std::move(all), t, streams, false);
    case gpu_way::graph: return std::make_unique<by_graph>(by_calls(std::move(all), t, streams, false));
    case gpu_way::strided:
      if (!as_strided(all, t.size, one)) return nullptr;
      return std::make_unique<by_calls>(std::vector{one}, t, 1, false);
    case gpu_way::pointers: {
      if (!single) return nullptr;
      auto made = std::make_unique<by_arrays>(std::move(all), t, false);
      if (made->shapes() != 1) return nullptr;
      return made;
    }
    case gpu_way::grouped:
      if (!single) return nullptr;
      return std::make_unique<by_arrays>(std::move(all), t, true);
  }
  return nullptr;
}

}  // namespace

void *many_prepare(gpu_way way, std::int32_t streams, const gpu_gemm *gemms, std::int32_t count) {
  try {
    return prepare(way, streams, std::vector(gemms, gemms + count)).release();
  } catch (const std::exception &e) {
    tell_failure(e.what());
    return nullptr;
  }
}

double many_run(void *prepared) {
  try {
    return static_cast<many *>(prepared)->run();
  } catch (const std::exception &e) {
    tell_failure(e.what());
    return -1;
  }
}

void many_release(void *prepared) { delete static_cast<many *>(prepared); }

}  // namespace sg::cli
