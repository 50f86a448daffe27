// SPDX-License-Identifier: Apache-2.0
// Rounds of GEMMs and copies on the device of the suites `streams` and `overlap`. A round's seconds are the caller's,
// from the first submission to the last completion; on a simulated device they are those of its virtual clock.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../library.hpp"
#include "gemm_set.hpp"
#include "gpu_peers.hpp"
#include "suite.hpp"

namespace sg::cli {

// Submits the work of one round, and waits for it.
class device_round {
 public:
  // `virtual_time`: jobs are kept for their times on the device's clock.
  device_round(sg_context *context, bool virtual_time) : context_(context), virtual_time_(virtual_time) {}

  void gemm(const sg_gemm_desc &desc, sg_stream *stream = nullptr);
  void copy(void *dst, const void *src, std::int64_t bytes, sg_stream *stream = nullptr);
  void finish() const;
  double virtual_seconds() const;  // first start to last end of its jobs

 private:
  sg_job **next_job();
  void keep();

  sg_context *context_;
  bool virtual_time_;
  sg_job *latest_ = nullptr;
  std::vector<job_handle> jobs_;
};

using round_work = std::function<void(device_round &)>;
using stream_set = std::vector<stream_handle>;

// Sizes of the cases: for a functional test, for the arithmetic of simulated devices (which is slow), a CPU, a GPU.
enum class case_size { quick, simulated, cpu, gpu };

class round_device {
 public:
  // `lanes`: compute streams of the context; 0: the device model's number.
  round_device(const suite_request &request, suite_run &out, int lanes);

  sg_context *context() const { return context_.get(); }
  case_size size() const { return size_; }
  bool wants(const std::string &name) const { return out_.wants(name); }
  void run(const bench_case &what) { out_.run(what); }

  std::shared_ptr<stream_set> streams(int count) const;

  // Adds a variant, having verified one round by `set` (not on a simulated device that computes nothing).
  void add(bench_case &to, gemm_set &set, const std::string &name, const round_work &work) const;
  void add_part(bench_case &to, const std::string &name, bool has_flops, const round_work &work) const;
  // cuBLAS, with the GEMMs in turn on that many streams, if the module of the GPU's peers was given.
  void add_cublas(bench_case &to, gemm_set &set, int streams, const submissions &all) const;

  // The least seconds of GEMMs like this one, operands on the device, and of copies: as measured with the peers'
  // module, else by the device model.
  double arithmetic(const sg_gemm_desc &desc, int count) const;
  double transfers(double bytes_in, double bytes_out) const;

 private:
  double seconds_of(const round_work &work) const;
  std::function<double()> sampled(const round_work &work) const;

  suite_run &out_;
  const gpu_peer_table *peers_;
  context_handle context_;
  gpu_link_rates link_;
  bool virtual_time_ = false, computes_ = true;
  case_size size_ = case_size::quick;
};

}  // namespace sg::cli
