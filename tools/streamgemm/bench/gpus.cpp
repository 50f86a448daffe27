// SPDX-License-Identifier: Apache-2.0
// The suite `gpus`: one GEMM from host memory to host memory on 1, 2, ... of a context's devices, over the bound of the
// rates that the devices have together in this run.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "../library.hpp"
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
    options.bytes = bytes;
    options.device = device;
    sg_buffer *made = nullptr;
    check(sg_buffer_create_with(context, &options, &made), "device memory");
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
      : out_(out),
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
    for (const std::int32_t devices : counts_) {
      const link_sums &rates = rates_[devices] = measured(devices);
      const std::string of = std::to_string(devices) + "_devices_bytes_per_second";
      out_.note("in_on_" + of, rates.in);
      out_.note("out_on_" + of, rates.out);
      out_.note("both_on_" + of, rates.both);
    }
  }

  void run(const gpu_case &given) {
    for (const bool pinned : {true, false}) {
      gpu_case x = given;
      x.pinned = {pinned, pinned, pinned};
      bool is_wanted = false;
      for (std::size_t i = 1; i < counts_.size(); ++i) is_wanted = out_.wants(name_of(x, counts_[i])) || is_wanted;
      if (!is_wanted) continue;
      const double alone = arithmetic(x);
      const host_block memory(context_.get(), x.all_bytes(), pinned);
      const operands at(x, memory.data());
      if (computes_) {
        fill(x, at.a, x.bytes_a(), 1);
        fill(x, at.b, x.bytes_b(), 2);
      }
      for (std::size_t i = 1; i < counts_.size(); ++i)
        if (out_.wants(name_of(x, counts_[i]))) run(x, at, counts_[i], alone);
    }
  }

 private:
  static std::string text_of(std::int32_t devices) {
    return std::to_string(devices) + (devices == 1 ? " device" : " devices");
  }
  static std::string name_of(const gpu_case &x, std::int32_t devices) {
    return x.host_name() + ", " + text_of(devices);
  }

  void run(const gpu_case &x, const operands &at, std::int32_t devices, double alone) {
    const link_sums &rates = rates_[devices];
    bench_case what{name_of(x, devices), x.flops(), {}};
    what.bytes_in = double(x.bytes_a() + x.bytes_b());
    what.bytes_out = double(x.m * x.n * x.size());
    what.bound_seconds = std::max({what.bytes_in / rates.in, what.bytes_out / rates.out,
                                   (what.bytes_in + what.bytes_out) / rates.both, alone / devices});
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
    add("streamgemm, " + text_of(devices), devices, among, nullptr);
    add(text_of(1), 1, 1, nullptr);
    out_.run(what);
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
      check(sg_job_wait(job.get(), SG_FOREVER), "the GEMM");
      did = statistics_of(job.get());
    });
    const double on_device = double(did.end_ns - did.start_ns) * 1e-9;
    if (told) *told = {did.predicted_seconds, on_device};
    return is_virtual_ ? on_device : seconds;
  }

  // Of a resident GEMM of the case on one device: the best of some.
  double arithmetic(const gpu_case &x) const {
    const device_memory memory(context_.get(), 0, std::uint64_t(x.all_bytes()));
    const operands at(x, memory.data);
    const sg_gemm_desc desc = at.desc();
    double best = HUGE_VAL;
    for (int i = 0; i < 3; ++i) {
      sg_job *made = nullptr;
      check(sg_gemm_async(context_.get(), &desc, nullptr, &made), "sg_gemm_async");
      const job_handle job(made);
      check(sg_job_wait(job.get(), SG_FOREVER), "the GEMM");
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
          for (const job_handle &each : jobs) check(sg_job_wait(each.get(), SG_FOREVER), "a copy");
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

  suite_run &out_;
  const std::string name_;
  context_handle context_;
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
  for (const gpu_case &each : cases) suite.run(each);
}

}  // namespace sg::cli
