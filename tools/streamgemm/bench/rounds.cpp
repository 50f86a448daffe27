// SPDX-License-Identifier: Apache-2.0
#include "rounds.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

#include "measure.hpp"
#include "senders.hpp"

namespace sg::cli {

void device_round::gemm(const sg_gemm_desc &desc, sg_stream *stream) {
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = stream;
  check(sg_gemm_async(context_, &desc, &options, next_job()), "sg_gemm_async");
  keep();
}

void device_round::copy(void *dst, const void *src, std::int64_t bytes, sg_stream *stream) {
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = stream;
  check(sg_copy_async(context_, dst, src, std::uint64_t(bytes), &options, next_job()), "sg_copy_async");
  keep();
}

sg_job **device_round::next_job() { return virtual_time_ ? &latest_ : nullptr; }

void device_round::keep() {
  if (virtual_time_) jobs_.emplace_back(latest_);
}

void device_round::finish() const { check(sg_context_synchronize(context_, SG_FOREVER), "sg_context_synchronize"); }

double device_round::virtual_seconds() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  for (const job_handle &job : jobs_) {
    check(sg_job_wait(job.get(), SG_FOREVER, nullptr), "a job");
    const sg_job_statistics did = statistics_of(job.get());
    first = std::min(first, did.start_ns);
    last = std::max(last, did.end_ns);
  }
  return double(last - first) * 1e-9;
}

round_device::round_device(const suite_request &request, suite_run &out, int lanes)
    : out_(out),
      peers_(load_gpu_peers(request.peers)),
      context_(open_context({.device = request.device.empty() ? "auto" : request.device, .compute_lanes = lanes})) {
  const sg_device_info info = device_of(context_.get());
  const std::string_view device = info.name;
  virtual_time_ = device.starts_with("sim");
  computes_ = request.device.find("timing-only") == std::string::npos;
  if (!request.quick)
    size_ = virtual_time_ && computes_ ? case_size::simulated : info.unified_memory ? case_size::cpu : case_size::gpu;
  out_.note("device", info.name);
  out_.note("description", info.description);
  out_.note("compute_lanes", info.compute_lanes);
  if (virtual_time_) out_.note("clock", "virtual");
  if (!computes_) out_.note("results", "not computed");
  link_ = {info.link_in_bytes_per_second, info.link_out_bytes_per_second, 0};
  if (!peers_) return;
  note_gpu_facts(*peers_, out_);
  link_ = peers_->link();
  out_.note("link_in_bytes_per_second", link_.in);
  out_.note("link_out_bytes_per_second", link_.out);
  out_.note("link_both_bytes_per_second", link_.both);
}

std::shared_ptr<stream_set> round_device::streams(int count) const {
  auto all = std::make_shared<stream_set>();
  for (int i = 0; i < count; ++i) {
    sg_stream *made = nullptr;
    check(sg_stream_create(context(), nullptr, &made), "sg_stream_create");
    all->emplace_back(made);
  }
  return all;
}

double round_device::seconds_of(const round_work &work) const {
  device_round round(context(), virtual_time_);
  const double seconds = timed([&] {
    work(round);
    round.finish();
  });
  return virtual_time_ ? round.virtual_seconds() : seconds;
}

// Virtual time does not vary with the state of the host, so that no burst is needed.
std::function<double()> round_device::sampled(const round_work &work) const {
  if (virtual_time_) return [this, work] { return seconds_of(work); };
  return [this, work] { return median_of_burst([&] { return seconds_of(work); }); };
}

void round_device::add(bench_case &to, gemm_set &set, const std::string &name, const round_work &work) const {
  if (computes_) {
    set.reset();
    seconds_of(work);
    set.verify(name + " (" + to.name + ")");
  }
  to.variants.push_back({name, sampled(work)});
}

void round_device::add_part(bench_case &to, const std::string &name, bool has_flops, const round_work &work) const {
  to.variants.push_back({.name = name, .run = sampled(work), .part = true, .has_flops = has_flops});
}

void round_device::add_cublas(bench_case &to, gemm_set &set, int streams, const submissions &all) const {
  const round_fn round = peers_ ? send_to_gpu_peer(*peers_, gpu_way::streams, streams, all) : round_fn();
  if (!round) return;
  const std::string name = "cuBLAS, " + std::to_string(streams) + (streams == 1 ? " stream" : " streams");
  set.reset();
  round();
  set.verify(name + " (" + to.name + ")");
  to.variants.push_back({name, [round] { return median_of_burst(round); }});
}

double round_device::arithmetic(const sg_gemm_desc &desc, int count) const {
  // Several small GEMMs fill the device better than one does, whose measured time says nothing of them.
  if (peers_ && count == 1) {
    const gpu_gemm gemm = gpu_gemm_of(desc);
    const double measured = peers_->arithmetic(&gemm);
    if (measured > 0) return measured;
  }
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.place_a = options.place_b = options.place_c = SG_MEMORY_DEVICE;
  sg_gemm_desc anywhere = desc;
  anywhere.a.data = anywhere.b.data = anywhere.c.data = nullptr;
  sg_plan *made = nullptr;
  const sg_operation_desc gemm{sizeof gemm, SG_OPERATION_GEMM, 1, &anywhere};
  check(sg_plan_create(context(), &gemm, &options, &made), "sg_plan_create");
  const plan_handle plan(made);
  sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
  check(sg_plan_get_prediction(plan.get(), &prediction), "sg_plan_get_prediction");
  return prediction.bound_seconds * count;
}

double round_device::transfers(double bytes_in, double bytes_out) const {
  const auto at = [](double bytes, double rate) { return rate > 0 ? bytes / rate : 0; };
  return std::max({at(bytes_in, link_.in), at(bytes_out, link_.out), at(bytes_in + bytes_out, link_.both)});
}

}  // namespace sg::cli
