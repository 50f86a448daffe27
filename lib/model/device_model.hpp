// SPDX-License-Identifier: Apache-2.0
// The planner's model of a device: sizes, rates and latencies. Read from JSON, see docs/device-model.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.hpp"

namespace sg {

// Bandwidth of a 2-D copy with rows of `run_bytes`, in bytes per second, each way.
struct run_rate {
  double run_bytes = 0;
  double one_way = 0;
  double both_ways = 0;  // each direction, while the other one is busy and the chip computes
  // Of these for rows that begin `far_pitch` apart in host memory, or farther.
  double far_factor = 1, far_both_ways_factor = 1;

  bool operator==(const run_rate &) const = default;
};

// The pages by which a GPU addresses host memory: from this pitch on each row is in another one.
inline constexpr double far_pitch = 65536;

// Bandwidth of `workers` host threads that pack pageable memory together, in bytes per second.
struct staging_rate {
  std::int32_t workers = 0;
  double bytes_per_second = 0;
  double unpacking = 0;  // where all of them unpack; 0: as fast
  double both_ways = 0;  // of all together, where half of them unpack; 0: the mean of both

  bool operator==(const staging_rate &) const = default;
};

// Peak rate of a GEMM in flops per second: of the chip, or of one lane where lanes are cores.
struct gemm_rate {
  sg_dtype type = SG_DTYPE_F32;
  sg_compute compute = SG_COMPUTE_EXACT;
  double flops_per_second = 0;
  std::int64_t tile_m = 0, tile_n = 0;  // of the kernels that reach it; 0: the device's
  std::int64_t split_k = -1;            // likewise; -1: the device's

  bool operator==(const gemm_rate &) const = default;
};

// How jobs are dispatched to a device with its own memory (docs/device-model.md, "dispatch").
struct dispatch_limits {
  // Commands in flight beyond which small GEMMs wait and are batched: with one the device idles until the host has
  // observed its completion; with many each GEMM costs a launch.
  std::int32_t small_in_flight = 3;
  std::int32_t large_in_flight = 2;  // GEMMs that fill the device: one runs, one is queued behind it
  // While the device computes, queued small GEMMs are launched, at the submitter's cost, once they fill it this many
  // times and have this predicted time, or this long after the latest launch.
  double worth_a_launch = 2;
  double worth_a_launch_seconds = 1.5e-6;
  double between_launches_seconds = 100e-6;
  // Shorter GEMMs that fill the device run in several streams.
  double beside_each_other_seconds = 1e-3;
  std::int32_t spared_units = 0;  // multiprocessors reserved for GEMMs of high priority

  bool operator==(const dispatch_limits &) const = default;
};

// How streams queue commands on the device. Before Hyper-Q they share one queue for each engine, in the order of the
// calls: a command that waits holds up all behind it.
enum class stream_queues : std::uint8_t {
  own,     // each stream by itself
  serial,  // shared, and kernels run one at a time
  shared,  // shared, and kernels run beside each other: copies wait for all kernels that are queued one behind the
           // other
};
const char *name_of(stream_queues queues) noexcept;
constexpr bool are_shared(stream_queues queues) noexcept { return queues != stream_queues::own; }

struct device_model {
  std::string name;
  bool unified_memory = false;   // host memory is device memory: no copies
  bool lanes_are_cores = false;  // each compute lane has rates of its own; otherwise lanes share the chip
  std::int64_t memory_bytes = 0;
  std::int64_t memory_limit = 0;   // a caller's, for all schedules together; 0: none
  std::int32_t compute_lanes = 1;  // streams worth using
  std::int32_t lane_depth = 2;     // commands in flight on a lane
  std::int32_t copy_engines = 2;   // 1: both directions share one
  stream_queues queues = stream_queues::own;
  std::int32_t staging_workers = 1;
  std::int32_t numa_node = -1;  // of the host, the closest to the device; -1: unknown

  // The link, in bytes per second and seconds. Zero rates with unified memory only.
  double link_in = 0, link_out = 0;            // contiguous, one way
  double link_in_both = 0, link_out_both = 0;  // contiguous, each direction while both are busy
  double pageable_in = 0, pageable_out = 0;    // the device's own copy of pageable memory, unstaged
  double copy_latency = 0;                     // before the first byte when the engine was idle
  double copy_gap = 0;                         // between queued copies
  std::vector<run_rate> runs;                  // 2-D copies, by growing run; beyond the last: contiguous
  std::vector<staging_rate> staging;           // by growing number of workers
  double staging_gap = 0;                      // host time of a staged copy: to observe workers and to call them
  double staging_run_bytes = 0;                // bytes that a worker could copy in the overhead of each row of a panel

  // Kernels.
  double launch_latency = 0;            // from an idle lane, or after a wait for another lane, to the first instruction
  double launch_gap = 0;                // host time of each command, and between queued kernels of a lane
  std::int32_t units = 1;               // multiprocessors that share the tiles; 1 for a core
  std::int64_t tile_m = 1, tile_n = 1;  // of one unit's piece of C
  std::int64_t split_k = 0;             // minimum depth of a piece when idle units share k; 0: k is never shared
  double memory_rate = 0;               // device memory, bytes per second
  std::vector<gemm_rate> rates;

  dispatch_limits dispatch;

  std::vector<std::pair<std::string, std::string>> sources;  // free texts: the origin of each figure
  std::string calibrated_device;                             // the device that its figures were measured on; "": none
  std::string calibrated_date;

  // Limit of bytes of schedules.
  std::int64_t usable_memory() const { return memory_limit > 0 ? std::min(memory_limit, memory_bytes) : memory_bytes; }

  bool operator==(const device_model &) const = default;
};

// Reads a model. Throws sg::error(SG_STATUS_INVALID_ARGUMENT) naming the key that is missing, unknown or out of range.
device_model parse_device_model(const std::string &json);

// The same from a JSON value, and its "staging".
class object_reader;  // model/object_reader.hpp
device_model read_device_model(object_reader root);
std::vector<staging_rate> read_staging(object_reader &from, std::int32_t most_workers);

// The model in the form that parse_device_model reads; without a caller's limit.
std::string model_text(const device_model &model);
// Its members alone, into an object that is open.
class json_writer;
void write_device_model(json_writer &json, const device_model &model);
void write_staging(json_writer &json, const std::vector<staging_rate> &rates);

}  // namespace sg
