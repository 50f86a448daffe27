// SPDX-License-Identifier: Apache-2.0
#include "probe.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

#include "bench/measure.hpp"
#include "choices.hpp"
#include "placed.hpp"

namespace sg::cli {

namespace {

constexpr std::uint64_t far_pitch_bytes = 64 << 10;
constexpr std::uint64_t block_bytes = 64 << 20;  // of host and of device memory, each way
constexpr std::uint64_t small_bytes = 64 << 10;
constexpr int repeats = 5;

stream_handle create_stream(sg_context *context) {
  sg_stream *made = nullptr;
  check(sg_stream_create(context, nullptr, &made), "stream");
  return stream_handle(made);
}

buffer_handle allocate(sg_context *context, std::uint64_t bytes) {
  sg_buffer *made = nullptr;
  check(sg_buffer_create(context, bytes, nullptr, &made), "device memory");
  return buffer_handle(made);
}

char *address_of(const buffer_handle &buffer) {
  void *data = nullptr;
  check(sg_buffer_data(buffer.get(), &data), "device memory");
  return static_cast<char *>(data);
}

sg_gemm_desc cube(sg_dtype dtype, sg_compute compute, std::int64_t size, std::int64_t depth, char *a, char *b,
                  char *c) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = {a, size, depth, 0, dtype, SG_LAYOUT_COLUMN_MAJOR};
  desc.b = {b, depth, size, 0, dtype, SG_LAYOUT_COLUMN_MAJOR};
  desc.c = {c, size, size, 0, natural_output(dtype), SG_LAYOUT_COLUMN_MAJOR};
  desc.compute = compute;
  return desc;
}

sg_plan_options in_one_piece() {
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.split = SG_SPLIT_NONE;
  options.place_a = options.place_b = options.place_c = SG_MEMORY_DEVICE;
  return options;
}

}  // namespace

probe::probe(sg_context *context, std::function<void(const std::string &)> tell)
    : context_(context), tell_(std::move(tell)), unified_(device_of(context).unified_memory != 0) {
  device_in_ = allocate(context, block_bytes);
  device_out_ = allocate(context, block_bytes);
  check(sg_host_alloc(context, block_bytes, &host_in_), "pinned memory");
  check(sg_host_alloc(context, block_bytes, &host_out_), "pinned memory");
  std::memset(host_in_, 1, block_bytes);
  std::memset(host_out_, 1, block_bytes);
}

probe::~probe() {
  sg_context_synchronize(context_, SG_FOREVER);
  sg_host_free(context_, host_in_);
  sg_host_free(context_, host_out_);
}

probe::copy_shape probe::shape_of(double run_bytes, bool far_apart) const {
  if (run_bytes <= 0) return {block_bytes / 2, 1, block_bytes / 2};
  const auto width = static_cast<std::uint64_t>(run_bytes);
  const std::uint64_t pitch = std::max<std::uint64_t>(2 * width, far_apart ? far_pitch_bytes : 4096);
  return {width, std::max<std::uint64_t>(1, std::min(block_bytes / pitch, (std::uint64_t{16} << 20) / width)), pitch};
}

job_handle probe::copy(bool in, const copy_shape &shape, sg_stream *stream) {
  sg_submit submit = SG_SUBMIT_INIT;
  submit.stream = stream;
  submit.flags = SG_SUBMIT_UNTRACKED;
  sg_job *made = nullptr;
  const auto to = in ? address_of(device_in_) : static_cast<char *>(host_out_);
  const auto from = in ? static_cast<char *>(host_in_) : address_of(device_out_);
  check(sg_copy_2d_async(context_, to, in ? shape.width : shape.pitch, from, in ? shape.pitch : shape.width,
                         shape.width, shape.rows, &submit, &made),
        "copy");
  return job_handle(made);
}

probe::timed_job probe::ended(const job_handle &job) const {
  check(sg_job_wait(job.get(), SG_FOREVER, nullptr), "measurement");
  const sg_job_statistics did = statistics_of(job.get());
  if (did.end_ns <= did.start_ns)
    throw failure(exit_code::failed,
                  "the device does not time its commands (SG_CUDA_TIMING=0?), so nothing can be measured");
  return {double(did.start_ns) * 1e-9, double(did.end_ns) * 1e-9};
}

// The median time of a copy that has the link to itself; the first one is for warming up.
double probe::alone(bool in, const copy_shape &shape) {
  std::vector<double> seconds;
  for (int i = 0; i <= repeats; ++i) {
    const double took = ended(copy(in, shape, nullptr)).seconds();
    if (i > 0) seconds.push_back(took);
  }
  return median(seconds);
}

copy_figures probe::one_way() {
  tell_("pinned copies");
  const copy_shape large{block_bytes, 1, block_bytes}, half{block_bytes / 2, 1, block_bytes / 2};
  const copy_shape small{small_bytes, 1, small_bytes};
  copy_figures figures;
  // The difference of two sizes, so that the fixed cost of a copy cancels out.
  figures.in = (large.bytes() - half.bytes()) / (alone(true, large) - alone(true, half));
  figures.out = (large.bytes() - half.bytes()) / (alone(false, large) - alone(false, half));
  // Many in a row: the cost of each apart from its bytes.
  constexpr int count = 64;
  const stream_handle stream = create_stream(context_);
  std::vector<job_handle> jobs;
  for (int i = 0; i < count; ++i) jobs.push_back(copy(true, small, stream.get()));
  const double first = ended(jobs.front()).start, last = ended(jobs.back()).end;
  figures.gap = std::max(0.0, (last - first) / count - small.bytes() / figures.in);
  return figures;
}

// GEMMs that keep the chip busy for about so long, as far as a possibly wrong model can tell.
std::vector<job_handle> probe::keep_busy(double seconds) {
  constexpr std::int64_t size = 2048;
  constexpr std::uint64_t bytes = size * size * sizeof(float);
  std::vector<job_handle> jobs;
  if (unified_ || 3 * bytes > block_bytes) return jobs;
  // Results are written where copies neither read nor write: in the second half of the copy target.
  char *const base = address_of(device_in_) + block_bytes / 4;
  const sg_gemm_desc desc = cube(SG_DTYPE_F32, SG_COMPUTE_EXACT, size, size, base, base + bytes, base + 2 * bytes);
  const stream_handle stream = create_stream(context_);
  const double each = std::max(1e-6, predicted(SG_DTYPE_F32, SG_COMPUTE_EXACT, size).value_or(1));
  for (double planned = 0; planned < seconds && jobs.size() < 64; planned += each)
    jobs.push_back(multiply(desc, stream.get()));
  return jobs;
}

copy_figures probe::both_ways(double run_bytes, double gap, bool far_apart) {
  tell_(run_bytes > 0 ? "rows of " + std::to_string(static_cast<long long>(run_bytes)) +
                            (far_apart ? " bytes, far apart, both ways" : " bytes, both ways")
                      : "pinned copies, both ways");
  copy_shape shape = shape_of(run_bytes, far_apart);
  if (run_bytes <= 0) shape = {block_bytes / 4, 1, block_bytes / 4};
  constexpr int count = 6;
  const double alone_seconds = ended(copy(true, shape, nullptr)).seconds();
  // The other direction's copies are submitted first and are twice as many, so that each measured one has a concurrent
  // one; some have completed before, so that no slow wake-up of a thread delays them all. (A query, unlike a wait, does
  // not move a virtual clock.)
  const auto rate = [&](bool in) {
    const auto busy = keep_busy(3 * count * alone_seconds);
    std::vector<job_handle> others, own;
    for (int i = 0; i < 2 * count; ++i) others.push_back(copy(!in, shape, nullptr));
    while (sg_job_query(others[count / 2].get(), nullptr) == SG_STATUS_NOT_READY)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    for (int i = 0; i < count; ++i) own.push_back(copy(in, shape, nullptr));
    double first = HUGE_VAL, last = 0;
    for (const job_handle &job : others) {
      const timed_job x = ended(job);
      first = std::min(first, x.start);
      last = std::max(last, x.end);
    }
    std::vector<double> seconds, beside;
    for (const job_handle &job : own) {
      const timed_job x = ended(job);
      seconds.push_back(x.seconds());
      if (x.start >= first && x.end <= last) beside.push_back(x.seconds());
    }
    for (const job_handle &job : busy) check(sg_job_wait(job.get(), SG_FOREVER, nullptr), "GEMM");
    return shape.bytes() / std::max(1e-9, median(beside.empty() ? seconds : beside) - gap);
  };
  return {rate(true), rate(false), gap};
}

copy_figures probe::rows(double run_bytes, double gap, bool far_apart) {
  tell_("rows of " + std::to_string(static_cast<long long>(run_bytes)) + (far_apart ? " bytes, far apart" : " bytes"));
  const copy_shape shape = shape_of(run_bytes, far_apart);
  const copy_shape half{shape.width, shape.rows / 2, shape.pitch};
  // The difference of two heights, so that the fixed cost of a copy cancels out.
  const auto rate = [&](bool in) {
    if (half.rows == 0) return shape.bytes() / std::max(1e-9, alone(in, shape) - gap);
    return (shape.bytes() - half.bytes()) / std::max(1e-9, alone(in, shape) - alone(in, half));
  };
  return {rate(true), rate(false), gap};
}

copy_figures probe::pageable() {
  tell_("pageable copies");
  std::vector<char> memory(block_bytes, 1);
  copy_figures figures;
  for (const bool in : {true, false}) {
    std::vector<double> seconds;
    for (int i = 0; i <= repeats; ++i) {
      const double took = timed([&] {
        check(sg_copy(context_, in ? address_of(device_in_) : memory.data(),
                      in ? memory.data() : address_of(device_out_), block_bytes, nullptr),
              "copy");
      });
      if (i > 0) seconds.push_back(took);
    }
    (in ? figures.in : figures.out) = double(block_bytes) / median(seconds);
  }
  return figures;
}

double probe::staging(int packing, int unpacking) {
  const int threads = packing + unpacking;
  tell_(std::to_string(threads) + " staging threads");
  // Each fills its own slot repeatedly from memory that no cache holds, like the library's own threads.
  constexpr std::uint64_t slot = 4 << 20;
  const std::uint64_t part = block_bytes / static_cast<std::uint64_t>(threads) / 4096 * 4096;
  std::vector<char> memory(block_bytes, 1);
  std::vector<double> seconds;
  for (int round = 0; round <= repeats; ++round) {
    const double took = timed([&] {
      std::vector<std::thread> workers;
      for (int t = 0; t < threads; ++t)
        workers.emplace_back([&, t] {
          const std::uint64_t own = part * static_cast<std::uint64_t>(t);
          const bool packs = t < packing;
          const char *const from = (packs ? memory.data() : static_cast<char *>(host_in_)) + own;
          char *const to = (packs ? static_cast<char *>(host_in_) : memory.data()) + own;
          for (std::uint64_t at = 0; at < part; at += slot)
            std::memcpy(to, from + at, static_cast<std::size_t>(std::min(slot, part - at)));
        });
      for (std::thread &each : workers) each.join();
    });
    if (round > 0) seconds.push_back(took);
  }
  return double(part) * threads / median(seconds);
}

job_handle probe::multiply(const sg_gemm_desc &desc, sg_stream *stream) {
  const sg_plan_options options = in_one_piece();
  sg_submit submit = SG_SUBMIT_INIT;
  submit.stream = stream;
  submit.flags = SG_SUBMIT_UNTRACKED;
  submit.plan = &options;
  sg_job *made = nullptr;
  check(sg_gemm_async(context_, &desc, &submit, &made), "GEMM");
  return job_handle(made);
}

double probe::launch_gap() {
  tell_("launches");
  char *const base = address_of(device_in_);
  const stream_handle stream = create_stream(context_);
  const auto each = [&](std::int64_t depth) {
    const sg_gemm_desc desc = cube(SG_DTYPE_F32, SG_COMPUTE_EXACT, 16, depth, base, base + (1 << 20), base + (2 << 20));
    std::vector<double> seconds;
    for (int i = 0; i <= repeats; ++i) {
      constexpr int count = 64;
      std::vector<job_handle> jobs;
      for (int j = 0; j < count; ++j) jobs.push_back(multiply(desc, stream.get()));
      const double first = ended(jobs.front()).start, last = ended(jobs.back()).end;
      if (i > 0) seconds.push_back((last - first) / count);
    }
    return median(seconds);
  };
  constexpr std::int64_t shallow = 16, deep = 128;
  const double short_one = each(shallow), long_one = each(deep);
  const double work = std::max(0.0, (long_one - short_one) * shallow / (deep - shallow));
  return std::max(0.0, short_one - work);
}

double probe::memory_rate(int lanes, double gap) {
  tell_("device memory");
  const std::uint64_t bytes = block_bytes / static_cast<std::uint64_t>(lanes) / 4096 * 4096;
  std::vector<double> seconds;
  for (int i = 0; i <= repeats; ++i) {
    std::vector<job_handle> jobs;
    for (int lane = 0; lane < lanes; ++lane) {
      const std::uint64_t at = bytes * static_cast<std::uint64_t>(lane);
      sg_submit submit = SG_SUBMIT_INIT;
      submit.flags = SG_SUBMIT_UNTRACKED;
      sg_job *made = nullptr;
      check(sg_copy_async(context_, address_of(device_out_) + at, address_of(device_in_) + at, bytes, &submit, &made),
            "copy");
      jobs.emplace_back(made);
    }
    double first = HUGE_VAL, last = 0;
    for (const job_handle &job : jobs) {
      const timed_job x = ended(job);
      first = std::min(first, x.start);
      last = std::max(last, x.end);
    }
    if (i > 0) seconds.push_back(last - first);
  }
  return 2 * double(bytes) * lanes / std::max(1e-9, median(seconds) - gap);
}

std::optional<double> probe::predicted(sg_dtype dtype, sg_compute compute, std::int64_t size) const {
  const sg_gemm_desc shape = cube(dtype, compute, size, size, nullptr, nullptr, nullptr);
  const sg_plan_options options = in_one_piece();
  sg_plan *made = nullptr;
  const sg_operation_desc gemm{sizeof gemm, SG_OPERATION_GEMM, 1, &shape};
  const sg_status known = sg_plan_create(context_, &gemm, &options, &made);
  if (known == SG_STATUS_UNSUPPORTED) return std::nullopt;
  check(known, "plan");
  const plan_handle plan(made);
  sg_plan_prediction says = SG_PLAN_PREDICTION_INIT;
  check(sg_plan_get_prediction(made, &says), "prediction");
  return says.predicted_seconds;
}

probe::gemm_times probe::gemm(sg_dtype dtype, sg_compute compute, std::int64_t size, int lanes) {
  tell_(std::string(sg_dtype_name(dtype)) + " GEMMs");
  const auto expected = predicted(dtype, compute, size);
  if (!expected) return {};
  const auto padded = [](std::int64_t elements, sg_dtype of) {
    return std::uint64_t(elements * elements * sg_dtype_size(of) + 4095) / 4096 * 4096;
  };
  const std::uint64_t operand = padded(size, dtype), result = padded(size, natural_output(dtype));
  std::vector<std::unique_ptr<placed_memory>> memory;
  std::vector<stream_handle> streams;
  for (int lane = 0; lane < lanes; ++lane) {
    memory.push_back(std::make_unique<placed_memory>(context_, SG_MEMORY_DEVICE, 2 * operand + result, dtype));
    streams.push_back(create_stream(context_));
  }
  std::vector<double> seconds;
  for (int i = 0; i <= 3; ++i) {
    std::vector<job_handle> jobs;
    for (int lane = 0; lane < lanes; ++lane) {
      char *const at = memory[static_cast<std::size_t>(lane)]->data();
      jobs.push_back(multiply(cube(dtype, compute, size, size, at, at + operand, at + 2 * operand),
                              streams[static_cast<std::size_t>(lane)].get()));
    }
    for (const job_handle &job : jobs) {
      const double took = ended(job).seconds();
      if (i > 0) seconds.push_back(took);
    }
  }
  return {median(seconds), *expected};
}

}  // namespace sg::cli
