// SPDX-License-Identifier: Apache-2.0
#include "senders.hpp"

#include <algorithm>
#include <barrier>
#include <exception>
#include <map>
#include <thread>
#include <tuple>

namespace sg::cli {

namespace {

void submit(sg_context *context, const sg_gemm_desc &desc, const sg_submit *options = nullptr) {
  check(sg_gemm_async(context, &desc, options, nullptr), "sg_gemm_async");
}

void wait_for_all(sg_context *context) { check(sg_context_synchronize(context, SG_FOREVER), "sg_context_synchronize"); }

// Threads that wait for the next round; they start and finish it together.
class crew {
 public:
  crew(int size, std::function<void(int)> work)
      : work_(std::move(work)), start_(size + 1), end_(size + 1), failures_(std::size_t(size)) {
    for (int i = 0; i < size; ++i) threads_.emplace_back([this, i] { serve(i); });
  }
  ~crew() {
    leaving_ = true;
    start_.arrive_and_wait();
    for (std::thread &thread : threads_) thread.join();
  }
  crew(const crew &) = delete;
  crew &operator=(const crew &) = delete;

  void round() {
    start_.arrive_and_wait();
    end_.arrive_and_wait();
    for (std::exception_ptr &failed : failures_)
      if (failed) std::rethrow_exception(std::exchange(failed, nullptr));
  }

 private:
  void serve(int i) {
    for (;;) {
      start_.arrive_and_wait();
      if (leaving_) return;
      try {
        work_(i);
      } catch (...) {
        failures_[std::size_t(i)] = std::current_exception();
      }
      end_.arrive_and_wait();
    }
  }

  std::function<void(int)> work_;
  std::barrier<> start_, end_;
  std::vector<std::exception_ptr> failures_;
  bool leaving_ = false;  // written before a start, read after it
  std::vector<std::thread> threads_;
};

}  // namespace

round_fn send_one_by_one(sg_context *context, submissions all, std::uint32_t flags) {
  return [context, flags, all = std::move(all)] {
    return timed([&] {
      sg_submit options = SG_SUBMIT_INIT;
      options.flags = flags;
      for (const sg_gemm_desc &desc : all) submit(context, desc, &options);
      wait_for_all(context);
    });
  };
}

round_fn send_grouped(sg_context *context, submissions all) {
  return [context, all = std::move(all)] {
    return timed([&] {
      check(sg_gemm_grouped_async(context, all.data(), std::int32_t(all.size()), nullptr, nullptr),
            "sg_gemm_grouped_async");
      wait_for_all(context);
    });
  };
}

round_fn send_pointer_batch(sg_context *context, const submissions &all) {
  struct scattered_batch {
    std::vector<void *> a, b, c;
    sg_gemm_desc desc;
  };
  const auto batch = std::make_shared<scattered_batch>();
  for (const sg_gemm_desc &desc : all) {
    batch->a.push_back(desc.a.data);
    batch->b.push_back(desc.b.data);
    batch->c.push_back(desc.c.data);
  }
  batch->desc = all.front();
  batch->desc.batch = std::int64_t(all.size());
  batch->desc.a_array = batch->a.data();
  batch->desc.b_array = batch->b.data();
  batch->desc.c_array = batch->c.data();
  return [context, batch] {
    return timed([&] {
      submit(context, batch->desc);
      wait_for_all(context);
    });
  };
}

round_fn send_recorded(sg_context *context, const submissions &all) {
  sg_graph *made = nullptr;
  check(sg_graph_create(context, &made), "sg_graph_create");
  const std::shared_ptr<sg_graph> graph(made, sg_graph_release);
  sg_submit options = SG_SUBMIT_INIT;
  options.graph = made;
  for (const sg_gemm_desc &desc : all) submit(context, desc, &options);
  return [context, graph] {
    return timed([&] {
      check(sg_graph_run_async(graph.get(), nullptr, nullptr), "sg_graph_run_async");
      wait_for_all(context);
    });
  };
}

round_fn send_over_streams(sg_context *context, submissions all, int streams) {
  const auto held = std::make_shared<std::vector<stream_handle>>();
  for (int i = 0; i < streams; ++i) {
    sg_stream *made = nullptr;
    check(sg_stream_create(context, nullptr, &made), "sg_stream_create");
    held->emplace_back(made);
  }
  return [context, held, all = std::move(all)] {
    return timed([&] {
      sg_submit options = SG_SUBMIT_INIT;
      for (std::size_t i = 0; i < all.size(); ++i) {
        options.stream = (*held)[i % held->size()].get();
        submit(context, all[i], &options);
      }
      wait_for_all(context);
    });
  };
}

round_fn send_by_threads(sg_context *context, submissions all, int threads) {
  const auto team = std::make_shared<crew>(threads, [context, threads, all = std::move(all)](int t) {
    const std::size_t n = all.size();
    for (std::size_t i = n * t / threads; i < n * (t + 1) / threads; ++i) submit(context, all[i]);
  });
  return [context, team] {
    return timed([&] {
      team->round();
      wait_for_all(context);
    });
  };
}

std::function<std::vector<double>()> time_submissions_by_threads(sg_context *context, submissions all, int threads) {
  const auto seconds = std::make_shared<std::vector<std::vector<double>>>(threads);
  const auto team = std::make_shared<crew>(threads, [context, threads, seconds, all = std::move(all)](int t) {
    const std::size_t n = all.size(), from = n * t / threads, to = n * (t + 1) / threads;
    (*seconds)[std::size_t(t)] = timed_calls(int(to - from), [&](int i) { submit(context, all[from + i]); });
  });
  return [context, seconds, team] {
    team->round();
    wait_for_all(context);
    std::vector<double> of_all;
    for (const auto &of_one : *seconds) of_all.insert(of_all.end(), of_one.begin(), of_one.end());
    return of_all;
  };
}

std::vector<gpu_gemm> gpu_gemms_of(const submissions &all) {
  std::vector<gpu_gemm> gemms;
  for (const sg_gemm_desc &desc : all) gemms.push_back(gpu_gemm_of(desc));
  return gemms;
}

round_fn send_to_gpu_peer(const gpu_peer_table &peers, gpu_way way, int streams, const submissions &all) {
  const std::vector<gpu_gemm> gemms = gpu_gemms_of(all);
  const std::shared_ptr<void> ready(peers.many_prepare(way, streams, gemms.data(), std::int32_t(gemms.size())),
                                    [&peers](void *many) { peers.many_release(many); });
  if (!ready) return {};
  return [&peers, ready] {
    const double seconds = peers.many_run(ready.get());
    if (seconds < 0) throw failure(exit_code::failed, "a peer failed");
    return seconds;
  };
}

round_fn send_to_cpu_peer(const peer &peer, int threads, const submissions &all) {
  struct call {
    const multiply_fn *multiply;
    const void *a, *b;
    void *c;
  };
  struct prepared {
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, multiply_fn> by_shape;
    std::vector<call> calls;
  };
  const auto ready = std::make_shared<prepared>();
  const peer_threads preparing(peer, threads);
  for (const sg_gemm_desc &desc : all) {
    const std::int64_t m = desc.c.rows, n = desc.c.cols, k = desc.a.cols;
    multiply_fn &multiply = ready->by_shape[{m, n, k}];
    if (!multiply) multiply = peer.prepare(m, n, k, desc.a.dtype, desc.op_b);
    if (!multiply) return {};
    const auto item = [](const sg_matrix &x, std::int64_t stride, std::int64_t i) {
      return static_cast<std::byte *>(x.data) + i * stride * sg_dtype_size(x.dtype);
    };
    for (std::int64_t i = 0; i < std::max<std::int64_t>(desc.batch, 1); ++i)
      ready->calls.push_back(
          {&multiply, item(desc.a, desc.stride_a, i), item(desc.b, desc.stride_b, i), item(desc.c, desc.stride_c, i)});
  }
  return [ready, peer, threads] {
    const peer_threads running(peer, threads);
    return timed([&] {
      for (const call &x : ready->calls) (*x.multiply)(x.a, x.b, x.c);
    });
  };
}

small_suite::small_suite(const suite_request &request, suite_run &out)
    : out_(out),
      quick_(request.quick),
      device_(request.device.empty() ? "auto" : request.device),
      gpu_(load_gpu_peers(request.peers)),
      context_(open_context({.device = device_})) {
  const sg_device_info info = device_of(context_.get());
  unified_ = info.unified_memory != 0;
  out_.note("device", info.name);
  out_.note("description", info.description);
  if (gpu_) note_gpu_facts(*gpu_, out_);
  if (unified_) cpu_ = load_cpu_peers().all;
  for (const peer &p : cpu_) out_.note(p.name, p.version);
}

sg_context *small_suite::without_coalescing() {
  if (!apart_) apart_ = open_context({.device = device_, .flags = SG_CONTEXT_NO_COALESCING});
  return apart_.get();
}

void small_suite::add(bench_case &to, gemm_set &set, const std::string &name, const round_fn &round) const {
  if (!round) return;
  set.reset();
  round();
  set.verify(name + " (" + to.name + ")");
  to.variants.push_back({name, [round] { return median_of_burst(round); }});
}

void small_suite::add_gpu_peer(bench_case &to, gemm_set &set, const std::string &name, gpu_way way, int streams,
                               const submissions &all) const {
  if (gpu_) add(to, set, name, send_to_gpu_peer(*gpu_, way, streams, all));
}

void small_suite::add_cpu_peers(bench_case &to, gemm_set &set, const submissions &all) const {
  const int cores = int(std::max(1u, std::thread::hardware_concurrency()));
  for (const peer &p : cpu_)
    for (const int threads : cores > 1 ? std::vector{cores, 1} : std::vector{1}) {
      const std::string name = p.name + " x" + std::to_string(threads);
      const round_fn round = send_to_cpu_peer(p, threads, all);
      if (round)
        add(to, set, name, round);
      else
        out_.leave_out(to.name, name);
    }
}

}  // namespace sg::cli
