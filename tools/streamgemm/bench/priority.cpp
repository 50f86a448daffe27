// SPDX-License-Identifier: Apache-2.0
// The suite `priority`: the latency of an urgent small GEMM beside a flood of large ones that fill the device and queue
// for it, with priority, with a share of the device for each, and without either, and the cost to the flood.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "senders.hpp"

namespace sg::cli {

namespace {

using std::chrono::steady_clock;

queue_handle make_queue(sg_context *context) {
  sg_queue *made = nullptr;
  check(sg_queue_create(context, &made), "sg_queue_create");
  return queue_handle(made);
}

// Completions up to now or within the time; none after it.
int next_completions(sg_queue *queue, std::vector<sg_completion> &done, std::int64_t timeout_ns) {
  std::int32_t count = 0;
  const sg_status status = sg_queue_next_batch(queue, done.data(), std::int32_t(done.size()), timeout_ns, &count);
  if (status == SG_STATUS_TIMEOUT) return 0;
  check(status, "sg_queue_next_batch");
  for (int i = 0; i < count; ++i)
    if (done[std::size_t(i)].status != SG_STATUS_OK) throw failure(exit_code::failed, done[std::size_t(i)].message);
  return count;
}

// GEMMs of normal priority, each submitted again as soon as it has completed: a constant number is always queued or
// running. `in`: their stream; nullptr: none.
class flood {
 public:
  flood(sg_context *context, sg_stream *in, const submissions &all)
      : context_(context), in_(in), all_(all), queue_(make_queue(context)), feeder_([this] { feed(); }) {}
  ~flood() { stop(); }
  flood(const flood &) = delete;
  flood &operator=(const flood &) = delete;

  std::int64_t ended() const { return ended_; }
  void stop() {  // waits for the last
    if (!feeder_.joinable()) return;
    stopping_ = true;
    feeder_.join();
  }
  void check_health() const {
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  void submit(std::size_t i) {
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = in_;
    options.queue = queue_.get();
    options.tag = i;
    check(sg_gemm_async(context_, &all_[i], &options, nullptr), "sg_gemm_async");
  }

  void feed() {
    try {
      for (std::size_t i = 0; i < all_.size(); ++i) submit(i);
      std::vector<sg_completion> done(all_.size());
      for (std::size_t left = all_.size(); left > 0;) {
        const int count = next_completions(queue_.get(), done, SG_FOREVER);
        ended_ += count;
        for (int i = 0; i < count; ++i) stopping_ ? void(--left) : submit(done[std::size_t(i)].tag);
      }
    } catch (...) {
      failed_ = std::current_exception();
    }
  }

  sg_context *context_;
  sg_stream *in_;
  const submissions &all_;
  queue_handle queue_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> ended_{0};
  std::exception_ptr failed_;
  std::thread feeder_;
};

// Submits one of the GEMMs every millisecond, whether the previous ones have completed or not, so that a slow one does
// not hide its effect on the next. Latencies from the submission to the completion's arrival.
std::vector<double> trickle(sg_context *context, sg_stream *in, const submissions &all, int priority, double seconds) {
  const queue_handle queue = make_queue(context);
  const auto count = std::size_t(std::max(10.0, seconds * 1e3));
  std::vector<steady_clock::time_point> submitted;
  std::vector<double> latencies;
  submitted.reserve(count);
  std::vector<sg_completion> done(64);
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = in;
  options.queue = queue.get();
  options.priority = priority;
  for (auto next = steady_clock::now(); latencies.size() < count;) {
    const auto now = steady_clock::now();
    if (submitted.size() < count && now >= next) {
      options.tag = submitted.size();
      submitted.push_back(now);
      check(sg_gemm_async(context, &all[options.tag % all.size()], &options, nullptr), "sg_gemm_async");
      next += std::chrono::milliseconds(1);
      continue;
    }
    const std::int64_t patience =
        submitted.size() < count ? std::chrono::nanoseconds(next - now).count() : std::int64_t{SG_FOREVER};
    const int ended = next_completions(queue.get(), done, patience);
    const auto arrival = steady_clock::now();
    for (int i = 0; i < ended; ++i)
      latencies.push_back(std::chrono::duration<double>(arrival - submitted[done[std::size_t(i)].tag]).count());
  }
  return latencies;
}

// An eighth of the device for the urgent GEMMs, the rest for the others.
struct shares {
  stream_handle urgent, large;
  std::int32_t urgent_units = 0, large_units = 0;

  explicit shares(sg_context *context) {
    sg_device_info device = SG_DEVICE_INFO_INIT;
    check(sg_context_get_device_info(context, 0, &device), "sg_context_device");
    urgent_units = std::max(1, device.compute_units / 8);
    large_units = std::max(1, device.compute_units - urgent_units);
    urgent = limited(context, urgent_units);
    large = limited(context, large_units);
  }
  std::string variant() const {
    std::int32_t is_partition[2] = {};
    check(sg_stream_is_partition(urgent.get(), &is_partition[0]), "sg_stream_is_partition");
    check(sg_stream_is_partition(large.get(), &is_partition[1]), "sg_stream_is_partition");
    return is_partition[0] && is_partition[1] ? "streamgemm, a partition each" : "streamgemm, a share each";
  }

 private:
  static stream_handle limited(sg_context *context, std::int32_t &units) {
    sg_stream *made = nullptr;
    check(sg_stream_create_limited(context, 0, units, &made), "sg_stream_create_limited");
    stream_handle owned(made);
    check(sg_stream_compute_units(made, &units), "sg_stream_compute_units");
    return owned;
  }
};

struct mode {
  std::string variant;
  bool flooded, trickling;
  int priority;
  bool by_peer = false;
  bool shared = false;  // each has its share of the device
};

std::vector<mode> modes_of(const small_suite &suite, const shares &parts) {
  std::vector<mode> modes = {{"streamgemm, alone", false, true, 1},
                             {own_variant, true, true, 1},
                             {parts.variant(), true, true, 0, false, true},
                             {"streamgemm, without priority", true, true, 0},
                             {"streamgemm, nothing beside it", true, false, 0}};
  if (suite.gpu_peers()) {
    modes.push_back({"cuBLAS, alone", false, true, 1, true});
    modes.push_back({"cuBLAS, a stream of high priority", true, true, 1, true});
    modes.push_back({"cuBLAS, an SM count target each", true, true, 0, true, true});
    modes.push_back({"cuBLAS, a stream of the same priority", true, true, 0, true});
  }
  return modes;
}

struct mode_outcome {
  std::vector<double> latencies;        // of the trickle
  std::vector<double> flood_intervals;  // seconds for each GEMM of the flood, one figure for each slice
};

// The operands, and the use of a slice of time.
struct scene {
  small_suite &suite;
  const submissions large, small;
  const shares &parts;
  double seconds;

  void own_slice(const mode &way, mode_outcome &to) const {
    sg_stream *const in_large = way.shared ? parts.large.get() : nullptr;
    sg_stream *const in_urgent = way.shared ? parts.urgent.get() : nullptr;
    std::unique_ptr<flood> beside;
    if (way.flooded) {
      beside = std::make_unique<flood>(suite.context(), in_large, large);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // until the queue is full
    }
    const std::int64_t before = beside ? beside->ended() : 0;
    const double elapsed = timed([&] {
      if (!way.trickling) return std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      const std::vector<double> latencies = trickle(suite.context(), in_urgent, small, way.priority, seconds);
      to.latencies.insert(to.latencies.end(), latencies.begin(), latencies.end());
    });
    if (!beside) return;
    const std::int64_t ended = beside->ended() - before;
    beside->stop();
    beside->check_health();
    to.flood_intervals.push_back(elapsed / double(std::max<std::int64_t>(ended, 1)));
  }

  void peer_slice(const mode &way, mode_outcome &to) const {
    const std::vector<gpu_gemm> urgent = gpu_gemms_of(small), flooding = gpu_gemms_of(large);
    const gpu_trickle how{.urgent = urgent.data(),
                          .large = flooding.data(),
                          .urgent_count = std::int32_t(urgent.size()),
                          .large_count = way.flooded ? std::int32_t(flooding.size()) : 0,
                          .high_priority = way.priority,
                          .urgent_units = way.shared ? parts.urgent_units : 0,
                          .large_units = way.shared ? parts.large_units : 0,
                          .seconds = seconds};
    std::vector<double> latencies(static_cast<std::size_t>(seconds * 1e3) + 10);
    std::int64_t ended = 0;
    const std::int32_t count =
        suite.gpu_peers()->trickle(&how, latencies.data(), std::int32_t(latencies.size()), &ended);
    if (count <= 0) throw failure(exit_code::failed, way.variant + " failed");
    to.latencies.insert(to.latencies.end(), latencies.begin(), latencies.begin() + count);
    if (way.flooded) to.flood_intervals.push_back(seconds / double(std::max<std::int64_t>(ended, 1)));
  }
};

bench_row row_of(const std::string &name, const std::string &variant, std::vector<double> seconds, double flops) {
  bench_row row{.name = name, .variant = variant, .seconds = percentile(seconds, 0.5), .samples = int(seconds.size())};
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  row.min = *least;
  row.max = *most;
  row.flops = flops;
  constexpr std::size_t most_kept = 200;  // in the record, evenly spread
  const std::size_t kept = std::min(seconds.size(), most_kept);
  for (std::size_t i = 0; i < kept; ++i) row.all.push_back(seconds[i * seconds.size() / kept]);
  return row;
}

// Urgent GEMMs beside a flood of large ones, cubes with so many rows.
void run_beside(small_suite &suite, const suite_request &request, sg_dtype type, std::int64_t n, std::int64_t urgent) {
  const shape large{n, n, n}, small{urgent, urgent, urgent};
  const std::string kind = std::string(" ") + sg_dtype_name(type);
  const std::string flood_name = "flood of gemm" + kind + " " + large.text();
  const std::string name = "gemm" + kind + " " + small.text() + " every ms, " + flood_name;
  if (!suite.wants(name)) return;

  constexpr int waiting = 16, in_turn = 64, slices = 5;
  gemm_set floods(suite.context(), std::vector(waiting, large), {type, type});
  gemm_set urgents(suite.context(), std::vector(in_turn, small), {type, type});
  const submissions all_large = floods.one_by_one(), all_small = urgents.one_by_one();
  for (const auto &[set, all] : {std::pair{&floods, &all_large}, {&urgents, &all_small}}) {
    set->reset();
    send_one_by_one(suite.context(), *all)();
    set->verify(own_variant);
  }

  const shares parts(suite.context());
  const std::vector<mode> modes = modes_of(suite, parts);
  const scene all{suite, all_large, all_small, parts,
                  (request.quick ? 1.0 : request.seconds) / double(slices * modes.size())};
  std::vector<mode_outcome> outcomes(modes.size());
  for (int i = 0; i < slices; ++i)
    for (std::size_t m = 0; m < modes.size(); ++m)
      modes[m].by_peer ? all.peer_slice(modes[m], outcomes[m]) : all.own_slice(modes[m], outcomes[m]);

  std::vector<bench_row> latencies, rates;
  for (std::size_t m = 0; m < modes.size(); ++m) {
    const mode_outcome &x = outcomes[m];
    if (modes[m].flooded) rates.push_back(row_of(flood_name, modes[m].variant, x.flood_intervals, large.flops()));
    if (!modes[m].trickling) continue;
    latencies.push_back(row_of(name, modes[m].variant, x.latencies, small.flops()));
    latencies.back().more = {{"p99", percentile(x.latencies, 0.99)}};
    if (modes[m].flooded) latencies.back().more.emplace_back("flood_flops", large.flops() / rates.back().seconds);
  }
  suite.add(latencies);
  suite.add(rates);
}

}  // namespace

void run_priority_suite(const suite_request &request, suite_run &run) {
  small_suite suite(request, run);
  if (suite.on_host()) return run_beside(suite, request, SG_DTYPE_F32, request.quick ? 256 : 512, 64);
  const std::int64_t urgent = request.quick ? 64 : 256;
  run_beside(suite, request, SG_DTYPE_BF16, request.quick ? 256 : 4096, urgent);
  run_beside(suite, request, SG_DTYPE_F64, request.quick ? 256 : 2048, urgent);
}

}  // namespace sg::cli
