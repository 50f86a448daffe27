// SPDX-License-Identifier: Apache-2.0
// Urgent GEMMs beside a flood of large ones, as a program would do it with streams of two priorities.
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "cuda_gpu.hpp"

namespace sg::cli {
namespace {

// Large GEMMs on one stream, as many at a time as there are.
class flood {
 public:
  flood(const gpu_gemm *all, std::int32_t count, const types &t, std::int32_t units)
      : all_(all, all + count), types_(t), ends_(all_.size()) {
    CHECK(cublasSetSmCountTarget(on_.blas, units));
    for (cudaEvent_t &end : ends_) CHECK(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
  }
  ~flood() {
    cudaStreamSynchronize(on_.stream);
    for (const cudaEvent_t end : ends_) cudaEventDestroy(end);
  }
  flood(const flood &) = delete;
  flood &operator=(const flood &) = delete;

  void top_up() {
    const std::size_t count = all_.size();
    while (ended_ < sent_ && cudaEventQuery(ends_[ended_ % count]) == cudaSuccess) ++ended_;
    for (; sent_ < ended_ + count; ++sent_) {
      call(on_, all_[sent_ % count], types_);
      CHECK(cudaEventRecord(ends_[sent_ % count], on_.stream));
    }
  }
  std::size_t ended() const { return ended_; }

 private:
  const std::vector<gpu_gemm> all_;
  const types types_;
  lane on_;
  std::vector<cudaEvent_t> ends_;
  std::size_t sent_ = 0, ended_ = 0;
};

}  // namespace

std::int32_t trickle(const gpu_trickle *how, double *latencies, std::int32_t capacity, std::int64_t *large_ended) {
  using std::chrono::steady_clock;
  try {
    types t;
    if (!types_of(*how->urgent, t)) return -1;
    the_gpu();  // selects the device
    int least = 0, most = 0;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &most));
    const lane urgent(how->high_priority ? most : least);
    CHECK(cublasSetSmCountTarget(urgent.blas, how->urgent_units));
    call(urgent, *how->urgent, t);  // a handle's first call takes longer
    CHECK(cudaStreamSynchronize(urgent.stream));
    flood beside(how->large, how->large_count, t, how->large_units);
    beside.top_up();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    beside.top_up();
    const std::size_t before = beside.ended();
    const auto start = steady_clock::now();
    std::int32_t count = 0;
    for (auto next = start;
         count < capacity && steady_clock::now() - start < std::chrono::duration<double>(how->seconds);
         next += std::chrono::milliseconds(1)) {
      std::this_thread::sleep_until(next);
      beside.top_up();
      const auto begin = steady_clock::now();
      call(urgent, how->urgent[count % how->urgent_count], t);
      CHECK(cudaStreamSynchronize(urgent.stream));
      latencies[count++] = std::chrono::duration<double>(steady_clock::now() - begin).count();
    }
    beside.top_up();
    *large_ended = std::int64_t(beside.ended() - before);
    return count;
  } catch (const std::exception &e) {
    tell_failure(e.what());
    return -1;
  }
}

}  // namespace sg::cli
