// SPDX-License-Identifier: Apache-2.0
#include "machine_probe.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "bench/measure.hpp"

namespace sg::cli {

namespace {

constexpr std::uint64_t flow_block = 32 << 20;
constexpr double flow_nanoseconds = 30e6;  // of each flow
constexpr int repeated_runs = 3;

char *data_of(const buffer_handle &buffer) {
  void *data = nullptr;
  check(sg_buffer_data(buffer.get(), &data), "device memory");
  return static_cast<char *>(data);
}

job_handle copy(sg_context *context, char *to, const char *from, std::uint64_t bytes, sg_stream *stream) {
  sg_submit submit = SG_SUBMIT_INIT;
  submit.stream = stream;
  submit.flags = SG_SUBMIT_UNTRACKED;
  sg_job *made = nullptr;
  check(sg_copy_async(context, to, from, bytes, &submit, &made), "copy");
  return job_handle(made);
}

}  // namespace

machine_probe::machine_probe(sg_context *context) : context_(context) {
  std::int32_t count = 0;
  check(sg_context_device_count(context, &count), "the number of devices");
  device_.resize(std::size_t(count));
  for (std::int32_t i = 0; i < count; ++i) {
    memory_of_device &of = device_[std::size_t(i)];
    of.in = allocate(i), of.out = allocate(i);
    allocate_host(of.host_in), allocate_host(of.host_out);
  }
}

machine_probe::~machine_probe() {
  sg_context_synchronize(context_, SG_FOREVER);
  for (const memory_of_device &of : device_) sg_host_free(context_, of.host_in), sg_host_free(context_, of.host_out);
}

void machine_probe::allocate_host(void *&memory) {
  check(sg_host_alloc(context_, flow_block, &memory), "pinned memory");
  std::memset(memory, 1, flow_block);
}

buffer_handle machine_probe::allocate(std::int32_t device) {
  sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
  options.device = device;
  sg_buffer *made = nullptr;
  check(sg_buffer_create(context_, flow_block, &options, &made), "device memory");
  return buffer_handle(made);
}

machine_probe::flow machine_probe::flow_of(std::int32_t device, char *to, const char *from) {
  sg_stream_options options = SG_STREAM_OPTIONS_INIT;
  options.device = device;
  sg_stream *made = nullptr;
  check(sg_stream_create(context_, &options, &made), "stream");
  return {to, from, stream_handle(made)};
}

machine_probe::timed_flow machine_probe::run_of(const std::vector<job_handle> &jobs) {
  timed_flow copies;
  for (const job_handle &each : jobs) {
    check(sg_job_wait(each.get(), SG_FOREVER, nullptr), "a copy");
    const sg_job_statistics did = statistics_of(each.get());
    if (did.end_ns <= did.start_ns)
      throw failure(exit_code::failed,
                    "the devices do not time their commands (SG_CUDA_TIMING=0?), so nothing can be measured");
    copies.push_back({double(did.start_ns), double(did.end_ns)});
  }
  return copies;
}

// Bytes per second of all flows, while all of them run. Each flow gets as many copies as it makes in that time, for the
// next run.
double machine_probe::run(std::vector<flow> &flows) const {
  std::vector<std::vector<job_handle>> jobs(flows.size());
  int most = 0;
  for (const flow &each : flows) most = std::max(most, each.count);
  for (int round = 0; round < most; ++round)
    for (std::size_t i = 0; i < flows.size(); ++i)
      if (round < flows[i].count)
        jobs[i].push_back(copy(context_, flows[i].to, flows[i].from, flow_block, flows[i].stream.get()));
  std::vector<timed_flow> all;
  double first = 0, last = HUGE_VAL;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const timed_flow &copies = all.emplace_back(run_of(jobs[i]));
    const double begin = copies.front().start, end = copies.back().end;
    first = std::max(first, begin), last = std::min(last, end);
    const double wanted = double(flows[i].count) * flow_nanoseconds / (end - begin);
    flows[i].count = std::clamp(int(std::lround(wanted)), 4, 4096);
  }
  double copied = 0;  // of copies, those that begin before or end later in part
  for (const timed_flow &each : all)
    for (const timed_copy &x : each)
      copied += std::max(0.0, std::min(x.end, last) - std::max(x.start, first)) / (x.end - x.start);
  return copied * double(flow_block) / (std::max(1.0, last - first) * 1e-9);
}

double machine_probe::rate_of(std::vector<flow> flows) const {
  for (flow &each : flows) each.count = 4;
  for (int i = 0; i < 2; ++i) run(flows);
  std::vector<double> rates;
  for (int i = 0; i < repeated_runs; ++i) rates.push_back(run(flows));
  return median(rates);
}

double machine_probe::links(const std::vector<std::int32_t> &devices, bool in, bool out) {
  std::vector<flow> flows;
  for (const std::int32_t each : devices) {
    const memory_of_device &of = device_[std::size_t(each)];
    if (in) flows.push_back(flow_of(each, data_of(of.in), static_cast<char *>(of.host_in)));
    if (out) flows.push_back(flow_of(each, static_cast<char *>(of.host_out), data_of(of.out)));
  }
  return rate_of(std::move(flows));
}

double machine_probe::peer(std::int32_t from, std::int32_t to) {
  std::vector<flow> one;
  one.push_back(flow_of(to, data_of(device_[std::size_t(to)].in), data_of(device_[std::size_t(from)].out)));
  return rate_of(std::move(one));
}

double machine_probe::staging(int packing, int unpacking) {
  const int workers = packing + unpacking;
  constexpr std::uint64_t slot = 4 << 20, source = 32 << 20;
  constexpr std::chrono::milliseconds warming_up(40), measured(160);
  using clock = std::chrono::steady_clock;
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<int> working{0};
  std::exception_ptr fault;
  std::mutex mutex;
  const auto work = [&](int number) {
    const auto device = std::size_t(number) % device_.size();
    const bool packs = number < packing;
    std::vector<char> memory(source, 1);
    void *pinned = nullptr;
    check(sg_host_alloc(context_, 2 * slot, &pinned), "pinned memory");
    std::memset(pinned, 1, 2 * slot);
    std::array<job_handle, 2> in_flight;  // of each slot
    ++working;
    while (working < workers) std::this_thread::yield();
    const auto start = clock::now();
    for (std::uint64_t at = 0;; at += slot) {
      const auto now = clock::now() - start;
      if (now > warming_up + measured) break;
      job_handle &last = in_flight[at / slot % 2];
      if (last) check(sg_job_wait(last.get(), SG_FOREVER, nullptr), "a copy");
      char *const own = static_cast<char *>(pinned) + at % (2 * slot), *const pageable = memory.data() + at % source;
      const buffer_handle &buffer = packs ? device_[device].in : device_[device].out;
      char *const of_device = data_of(buffer) + at % (2 * slot);
      std::memcpy(packs ? own : pageable, packs ? pageable : own, slot);
      last = packs ? copy(context_, of_device, own, slot, nullptr) : copy(context_, own, of_device, slot, nullptr);
      if (now > warming_up) bytes += slot;
    }
    for (const job_handle &each : in_flight)
      if (each) check(sg_job_wait(each.get(), SG_FOREVER, nullptr), "a copy");
    sg_host_free(context_, pinned);
  };
  std::vector<std::thread> threads;
  const auto fail = [&] {
    const std::lock_guard lock(mutex);
    fault = std::current_exception();
    working = workers;  // the others wait for all
  };
  try {
    for (int i = 0; i < workers; ++i)
      threads.emplace_back([&, i] {
        try {
          work(i);
        } catch (...) {
          fail();
        }
      });
  } catch (...) {  // no more threads
    fail();
  }
  for (std::thread &each : threads) each.join();
  if (fault) std::rethrow_exception(fault);
  return double(bytes) / std::chrono::duration<double>(measured).count();
}

}  // namespace sg::cli
