// SPDX-License-Identifier: Apache-2.0
// Measures the figures of a device model through the public interface: copies, GEMMs, their gaps. Times are those of
// the device's own clock, which on a simulated device is virtual.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "library.hpp"

namespace sg::cli {

// Bytes per second of a command, and its fixed cost in seconds.
struct copy_figures {
  double in = 0, out = 0, gap = 0;
};

class probe {
 public:
  // `context`: without coalescing. `tell` receives the name of each measurement.
  probe(sg_context *context, std::function<void(const std::string &)> tell);
  ~probe();
  probe(const probe &) = delete;
  probe &operator=(const probe &) = delete;

  // Contiguous pinned copies, one direction at a time, and the gap between queued ones.
  copy_figures one_way();
  // Seconds of a pinned copy of so many bytes that has the link to itself; at most 64 MiB.
  double copy_of(bool in, std::uint64_t bytes) { return alone(in, {bytes, 1, bytes}); }
  // Each direction while the other one is busy and the chip computes. `run_bytes` 0: contiguous; otherwise 2-D copies
  // with rows of so many bytes. `far_apart`: each row in another page of 64 KiB.
  copy_figures both_ways(double run_bytes, double gap, bool far_apart = false);
  // 2-D copies one direction at a time.
  copy_figures rows(double run_bytes, double gap, bool far_apart = false);
  // Copies of pageable memory, by the caller's clock.
  copy_figures pageable();
  // Bytes per second that so many host threads move from pageable memory to pinned memory, and others back.
  double staging(int packing, int unpacking);

  // Seconds between queued GEMMs of next to no work.
  double launch_gap();
  // Bytes read and written in a second by copies within the device's memory, one on each of `lanes` at a time.
  double memory_rate(int lanes, double gap);

  // Seconds of a cubic GEMM with each of `lanes` busy with one, and the prediction of the context's model for one on an
  // idle lane; both 0 when the device has no such GEMM.
  struct gemm_times {
    double measured = 0, predicted = 0;
  };
  gemm_times gemm(sg_dtype dtype, sg_compute compute, std::int64_t size, int lanes);

 private:
  struct timed_job {
    double start = 0, end = 0;
    double seconds() const { return end - start; }
  };
  // A copy of `rows` rows of `width` bytes; in host memory they are `pitch` bytes apart.
  struct copy_shape {
    std::uint64_t width, rows, pitch;
    double bytes() const { return double(width) * double(rows); }
  };
  copy_shape shape_of(double run_bytes, bool far_apart = false) const;

  job_handle copy(bool in, const copy_shape &shape, sg_stream *stream);
  timed_job ended(const job_handle &job) const;
  double alone(bool in, const copy_shape &shape);
  std::vector<job_handle> keep_busy(double seconds);
  job_handle multiply(const sg_gemm_desc &desc, sg_stream *stream);
  // Seconds of a cubic GEMM by the context's model; none when the device has no such GEMM.
  std::optional<double> predicted(sg_dtype dtype, sg_compute compute, std::int64_t size) const;

  sg_context *context_;
  std::function<void(const std::string &)> tell_;
  bool unified_ = false;
  void *host_in_ = nullptr, *host_out_ = nullptr;  // pinned
  buffer_handle device_in_, device_out_;
};

}  // namespace sg::cli
