// SPDX-License-Identifier: Apache-2.0
// The ways in which the suites of small GEMMs hand the same GEMMs to this library, the peers on a GPU, and those on the
// CPU.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gemm_set.hpp"
#include "gpu_peers.hpp"
#include "measure.hpp"
#include "peers.hpp"
#include "suite.hpp"

namespace sg::cli {

// One round: all GEMMs submitted and completed; returns its seconds.
using round_fn = std::function<double()>;

round_fn send_one_by_one(sg_context *context, submissions all, std::uint32_t flags = SG_SUBMIT_DEFAULT);
round_fn send_grouped(sg_context *context, submissions all);                    // all as one job
round_fn send_pointer_batch(sg_context *context, const submissions &all);       // one batch, by arrays of pointers
round_fn send_recorded(sg_context *context, const submissions &all);            // one run of a graph of them
round_fn send_over_streams(sg_context *context, submissions all, int streams);  // cyclically
round_fn send_by_threads(sg_context *context, submissions all, int threads);    // a share for each thread
// The seconds of each call of one round of that.
std::function<std::vector<double>()> time_submissions_by_threads(sg_context *context, submissions all, int threads);

std::vector<gpu_gemm> gpu_gemms_of(const submissions &all);

// Empty if the peer does not support it.
round_fn send_to_gpu_peer(const gpu_peer_table &peers, gpu_way way, int streams, const submissions &all);
round_fn send_to_cpu_peer(const peer &peer, int threads, const submissions &all);

// The device of a suite of small GEMMs and its peers.
class small_suite {
 public:
  small_suite(const suite_request &request, suite_run &out);

  sg_context *context() const { return context_.get(); }
  sg_context *without_coalescing();  // opened at first use
  bool on_host() const { return unified_; }
  bool quick() const { return quick_; }
  bool wants(const std::string &name) const { return out_.wants(name); }
  const gpu_peer_table *gpu_peers() const { return gpu_; }  // nullptr: none
  void run(const bench_case &what) { out_.run(what); }
  void add(const std::vector<bench_row> &rows) { out_.add(rows); }

  // Adds a variant whose sample is the median of a burst of rounds, having verified one round by `set`. Nothing is
  // added when `round` is empty.
  void add(bench_case &to, gemm_set &set, const std::string &name, const round_fn &round) const;
  void add_gpu_peer(bench_case &to, gemm_set &set, const std::string &name, gpu_way way, int streams,
                    const submissions &all) const;
  // Each library in a loop, with all cores and with one.
  void add_cpu_peers(bench_case &to, gemm_set &set, const submissions &all) const;

 private:
  suite_run &out_;
  const bool quick_;
  const std::string device_;
  const gpu_peer_table *gpu_;
  context_handle context_, apart_;
  bool unified_;
  std::vector<peer> cpu_;
};

}  // namespace sg::cli
