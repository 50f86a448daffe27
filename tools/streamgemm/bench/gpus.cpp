// SPDX-License-Identifier: Apache-2.0
// The suite `gpus`: one GEMM from host memory to host memory on 1, 2, ... of a context's devices, over the bound of the
// rates that the devices have together in this run; or drawn GEMMs on all of them, beside one.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "../library.hpp"
#include "drawn_cases.hpp"
#include "gpu_operands.hpp"
#include "suite.hpp"

namespace sg::cli {

namespace {

// Bytes per second of copies between pinned memory and all of the first devices at once.
struct link_sums {
  double in = HUGE_VAL, out = HUGE_VAL, both = HUGE_VAL;
};

// Host memory of a context.
class host_block {
 public:
  host_block(sg_context *context, std::int64_t bytes, bool pinned) : context_(pinned ? context : nullptr) {
    void *memory = nullptr;
    if (context_)
      check(sg_host_alloc(context_, std::uint64_t(bytes), &memory), "pinned memory");
    else
      memory = std::aligned_alloc(4096, std::size_t(gpu_case::padded(bytes)));
    if (!memory) throw failure(exit_code::failed, "no memory for the operands");
    data_ = static_cast<char *>(memory);
  }
  ~host_block() {
    if (context_)
      sg_host_free(context_, data_);
    else
      std::free(data_);
  }
  host_block(const host_block &) = delete;
  host_block &operator=(const host_block &) = delete;
  char *data() const { return data_; }

 private:
  sg_context *const context_;
  char *data_ = nullptr;
};

struct device_memory {
  device_memory(sg_context *context, std::int32_t device, std::uint64_t bytes) {
    sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
    options.device = device;
    sg_buffer *made = nullptr;
    check(sg_buffer_create(context, bytes, &options, &made), "device memory");
    buffer.reset(made);
    void *address = nullptr;
    check(sg_buffer_data(made, &address), "device memory");
    data = static_cast<char *>(address);
  }
  buffer_handle buffer;
  char *data = nullptr;
};

class gpus_suite {
 public:
  gpus_suite(const suite_request &request, suite_run &out)
      : request_(request),
        out_(out),
        peers_(load_gpu_peers(request.peers)),
        name_(request.device.empty() ? "cuda:all" : request.device),
        context_(open_context({.device = name_})),
        copied_bytes_(request.quick ? std::uint64_t{1} << 20 : std::uint64_t{256} << 20) {
    std::int32_t count = 0;
    check(sg_context_device_count(context_.get(), &count), "the number of devices");
    if (count < 2)
      throw failure(exit_code::usage, "the suite gpus needs a device of several, as cuda:0,1 or sim:h200x2");
    computes_ = name_.find("timing-only") == name_.npos;
    is_virtual_ = name_.starts_with("sim");
    out_.note("device", name_);
    out_.note("devices", count);
    if (is_virtual_) out_.note("clock", "virtual");
    for (std::int32_t devices = 1; devices < count; devices *= 2) counts_.push_back(devices);
    counts_.push_back(count);
    if (peers_) note_gpu_facts(*peers_, out_);
    for (std::int32_t i = 0; i < count; ++i)
      if (const auto number = number_of(i)) numbers_.push_back(*number);
    if (std::ssize(numbers_) == count)
      out_.note("device_numbers", numbers_);
    else if (peers_)
      throw failure(exit_code::usage, "peers need devices by their numbers, as cuda:0,1; they are " + name_);
    for (const std::int32_t devices : counts_) {
      const link_sums &rates = rates_[devices] = measured(devices);
      const std::string of = std::to_string(devices) + "_devices_bytes_per_second";
      out_.note("in_on_" + of, rates.in);
      out_.note("out_on_" + of, rates.out);
      out_.note("both_on_" + of, rates.both);
    }
  }

  void from_each_memory(gpu_case x) {
    for (const bool pinned : {true, false}) {
      x.pinned.fill(pinned);
      run(x, std::span(counts_).subspan(1));
    }
  }

  // On all devices.
  void drawn(const gpu_case &x) { run(x, std::span(counts_).last(1)); }

 private:
  void run(const gpu_case &x, std::span<const std::int32_t> counts) {
    bool is_wanted = false;
    for (const std::int32_t devices : counts) is_wanted = out_.wants(name_of(x, devices)) || is_wanted;
    if (!is_wanted) return;
    const auto in_use = [&](bool pinned) { return std::ranges::count(x.pinned, pinned) > 0 ? x.all_bytes() : 1; };
    const host_block pinned(context_.get(), in_use(true), true), pageable(context_.get(), in_use(false), false);
    const operands at(x, pinned.data(), pageable.data());
    if (computes_) {
      fill(x, at.a, x.bytes_a(), 1);
      fill(x, at.b, x.bytes_b(), 2);
    }
    for (const std::int32_t devices : counts)
      if (out_.wants(name_of(x, devices))) run(x, at, devices);
  }

  // As the backend counts its devices: 3 for "cuda:3", 1 for "sim:h200x2/1"; empty for a name by UUID.
  std::optional<std::int32_t> number_of(std::int32_t device) const {
    sg_device_info info = SG_DEVICE_INFO_INIT;
    check(sg_context_get_device_info(context_.get(), device, &info), "a device");
    const std::string name = info.name;
    const std::size_t first = name.find_last_of(":/") + 1;
    std::int32_t number = 0;
    const auto [end, fault] = std::from_chars(name.data() + first, name.data() + name.size(), number);
    return fault == std::errc() && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
  }

  static std::string text_of(std::int32_t devices) {
    return std::to_string(devices) + (devices == 1 ? " device" : " devices");
  }
  static std::string name_of(const gpu_case &x, std::int32_t devices) {
    return x.host_name() + ", " + text_of(devices);
  }

  void run(const gpu_case &x, const operands &at, std::int32_t devices) {
    const link_sums &rates = rates_[devices];
    bench_case what{name_of(x, devices), x.flops(), {}};
    what.bytes_in = double(x.bytes_a() + x.bytes_b());
    what.bytes_out = double(x.m * x.n * x.size());
    what.bound_seconds = std::max({what.bytes_in / rates.in, what.bytes_out / rates.out,
                                   (what.bytes_in + what.bytes_out) / rates.both, arithmetic(x, devices)});
    what.baseline = text_of(1);
    prediction latest;
    what.own = &latest;
    const auto seen = computes_ ? std::make_shared<seen_sample>(at) : nullptr;
    const auto add = [&](const std::string &name, std::int32_t count, std::uint64_t among, prediction *told) {
      what.variants.push_back({name, [=, this] {
                                 if (seen) seen->poison();
                                 const double seconds = timed_run(at, count, among, told);
                                 if (seen) seen->compare(name);
                                 return seconds;
                               }});
    };
    const std::uint64_t among = (std::uint64_t{1} << devices) - 1;
    add(own_variant, 0, among, &latest);  // the planner's choice
    if (request_.draw == 0) {
      if (!request_.quick) what.variants.back().more = [=, this] { return of_warm_runs(at, among); };
      add("streamgemm, " + text_of(devices), devices, among, nullptr);
    }
    add(text_of(1), 1, 1, nullptr);
    what.variants.back().more = [=, this]() -> std::vector<std::pair<std::string, double>> {
      prediction of_one;
      timed_run(at, 1, 1, &of_one);
      return {{"predicted_seconds", of_one.predicted_seconds}};
    };
    add_peers(what, at, devices, seen);
    out_.run(what);
  }

  void add_peers(bench_case &what, const operands &at, std::int32_t devices,
                 const std::shared_ptr<seen_sample> &seen) const {
    if (!peers_ || !seen) return;
    gpu_gemm gemm = at.gemm();
    gemm.devices = devices;
    gemm.device_numbers = numbers_.data();
    for (std::int32_t peer = 0; peer < peers_->host_count(); ++peer) {
      const std::string name = peers_->host_name(peer);
      if (name.ends_with("pinning") && at.of.all_pinned()) continue;
      if (peers_->host(peer, &gemm) < 0) continue;
      what.variants.push_back({name, [=, this] {
                                 seen->poison();
                                 const double seconds = peers_->host(peer, &gemm);
                                 seen->compare(name);
                                 return seconds;
                               }});
    }
  }

  std::vector<std::pair<std::string, double>> of_warm_runs(const operands &at, std::uint64_t among) const {
    std::vector<double> seconds;
    for (int i = 0; i < 100; ++i) seconds.push_back(timed_run(at, 0, among, nullptr));
    return {{"median_of_100_seconds", median(seconds)}, {"p99_of_100_seconds", percentile(seconds, 0.99)}};
  }

  double timed_run(const operands &at, std::int32_t count, std::uint64_t among, prediction *told) const {
    const sg_gemm_desc desc = at.desc();
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    options.device_count = count;
    options.devices = among;
    sg_submit submit = SG_SUBMIT_INIT;
    submit.plan = &options;
    sg_job_statistics did = SG_JOB_STATISTICS_INIT;
    const double seconds = timed([&] {
      sg_job *made = nullptr;
      check(sg_gemm_async(context_.get(), &desc, &submit, &made), "sg_gemm_async");
      const job_handle job(made);
      check(sg_job_wait(job.get(), SG_FOREVER, nullptr), "the GEMM");
      did = statistics_of(job.get());
    });
    const double on_device = double(did.end_ns - did.start_ns) * 1e-9;
    if (told) *told = {did.predicted_seconds, on_device, std::popcount(did.devices)};
    return is_virtual_ ? on_device : seconds;
  }

  // Of the case on so many devices: the whole on one, or one's share, whichever is faster for its size.
  double arithmetic(const gpu_case &x, std::int32_t devices) const {
    gpu_case share = x;
    share.n = (x.n + devices - 1) / devices;
    return std::min(resident(x) / devices, resident(share));
  }

  // Of a resident GEMM on one device: the best of some.
  double resident(const gpu_case &x) const {
    const device_memory memory(context_.get(), 0, std::uint64_t(x.all_bytes()));
    const operands at(x, memory.data);
    const sg_gemm_desc desc = at.desc();
    double best = HUGE_VAL;
    for (int i = 0; i < 3; ++i) {
      sg_job *made = nullptr;
      check(sg_gemm_async(context_.get(), &desc, nullptr, &made), "sg_gemm_async");
      const job_handle job(made);
      check(sg_job_wait(job.get(), SG_FOREVER, nullptr), "the GEMM");
      const sg_job_statistics did = statistics_of(job.get());
      best = std::min(best, double(did.end_ns - did.start_ns) * 1e-9);
    }
    return best;
  }

  // Of copies on the first devices at the same time, the best of some.
  link_sums measured(std::int32_t devices) const {
    const host_block in(context_.get(), std::int64_t(copied_bytes_) * devices, true);
    const host_block out(context_.get(), std::int64_t(copied_bytes_) * devices, true);
    std::vector<device_memory> to, from;
    for (std::int32_t i = 0; i < devices; ++i) {
      to.emplace_back(context_.get(), i, copied_bytes_);
      from.emplace_back(context_.get(), i, copied_bytes_);
    }
    const auto rate = [&](bool goes_in, bool goes_out) {
      double best = HUGE_VAL;
      for (int round = 0; round < 4; ++round) {
        std::vector<job_handle> jobs;
        const auto copy = [&](char *dst, const char *src) {
          sg_job *made = nullptr;
          check(sg_copy_async(context_.get(), dst, src, copied_bytes_, nullptr, &made), "sg_copy_async");
          jobs.emplace_back(made);
        };
        const double seconds = timed([&] {
          for (std::int32_t i = 0; i < devices; ++i) {
            const auto n = static_cast<std::size_t>(i);
            if (goes_in) copy(to[n].data, in.data() + n * copied_bytes_);
            if (goes_out) copy(out.data() + n * copied_bytes_, from[n].data);
          }
          for (const job_handle &each : jobs) check(sg_job_wait(each.get(), SG_FOREVER, nullptr), "a copy");
        });
        std::int64_t first = INT64_MAX, last = 0;
        for (const job_handle &each : jobs) {
          const sg_job_statistics did = statistics_of(each.get());
          first = std::min(first, did.start_ns), last = std::max(last, did.end_ns);
        }
        best = std::min(best, is_virtual_ ? double(last - first) * 1e-9 : seconds);
      }
      return double(copied_bytes_) * devices * (int(goes_in) + int(goes_out)) / best;
    };
    return {rate(true, false), rate(false, true), rate(true, true)};
  }

  const suite_request &request_;
  suite_run &out_;
  const gpu_peer_table *const peers_;
  const std::string name_;
  context_handle context_;
  std::vector<std::int32_t> numbers_;  // of its devices
  const std::uint64_t copied_bytes_;
  bool computes_ = true, is_virtual_ = false;
  std::vector<std::int32_t> counts_;
  std::map<std::int32_t, link_sums> rates_;
};

}  // namespace

void run_gpus_suite(const suite_request &request, suite_run &run) {
  std::vector<gpu_case> cases;
  if (request.quick) {
    cases = {{"f32 384^3", 384, 384, 384}};
  } else {
    cases = {{"f32 16384^3", 16384, 16384, 16384},
             {"f32 8192^3", 8192, 8192, 8192},
             {"bf16 16384^3", 16384, 16384, 16384, SG_DTYPE_BF16},
             {"f64 30000x30000x3000", 30000, 30000, 3000, SG_DTYPE_F64}};
  }
  gpus_suite suite(request, run);
  if (request.draw > 0)
    for (const gpu_case &each : drawn_cases(request)) suite.drawn(each);
  else
    for (const gpu_case &each : cases) suite.from_each_memory(each);
}

}  // namespace sg::cli
