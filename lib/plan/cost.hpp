// SPDX-License-Identifier: Apache-2.0
// What single commands cost on a device model, and the least time that a problem can take on it. Seconds throughout.
#pragma once

#include <cstdint>
#include <span>

#include "plan/device_model.hpp"
#include "plan/problem.hpp"
#include "plan/schedule.hpp"

namespace sg {

// `height` runs of `width` bytes. A pitch equal to the width on both sides makes them one run.
struct copy_shape {
  std::int64_t width = 0, height = 1;
  std::int64_t dst_pitch = 0, src_pitch = 0;
  bool to_device = true;
};

struct gemm_shape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  sg_dtype in_type = SG_DTYPE_F32, out_type = SG_DTYPE_F32;
  sg_compute compute = SG_COMPUTE_EXACT;
  bool reads_c = false;
  std::int32_t units = 0;     // multiprocessors that it may use; 0: all
  bool has_epilogue = false;  // a bias, an activation, or both
  bool in_group = false;      // others go out in the same call
};

struct reduce_shape {
  std::int64_t m = 0, n = 0, parts = 0;
  sg_dtype part_type = SG_DTYPE_F32, out_type = SG_DTYPE_F32;
  bool reads_c = false;
};

// What a kernel needs: the time it takes alone (without its launch), and its shares of chip and memory meanwhile.
struct kernel_cost {
  double seconds = 0;
  double chip_share = 0;
  double memory_share = 0;
};

// Whether a product's epilogue takes a kernel of its own.
bool ends_apart(const device_model &model, const gemm_shape &g);

// Waves that `full` chips' worth of equal tiles take. A last wave that is not full costs as much as a full one when
// there is nothing before it, and the less the more came before, because the units drift apart.
double waves_of(double full);

// Bytes per second of a copy.
double copy_rate(const device_model &model, const copy_shape &copy, bool both_ways);
// Time on its engine, the gap to the next queued copy included.
double copy_seconds(const device_model &model, const copy_shape &copy, bool both_ways);

// Peak rate of the most fitting arithmetic: the fastest one that is at least as accurate as `compute`. 0: there is
// none.
double gemm_rate_of(const device_model &model, sg_dtype in_type, sg_compute compute);

// Alone on the device, or on its core where lanes are cores. Throws SG_STATUS_UNSUPPORTED for a type without a rate.
kernel_cost gemm_cost(const device_model &model, const gemm_shape &gemm);
kernel_cost reduce_cost(const device_model &model, const reduce_shape &reduce);
// With the launch of a queued kernel.
double gemm_seconds(const device_model &model, const gemm_shape &gemm);
double reduce_seconds(const device_model &model, const reduce_shape &reduce);
// Independent products in one launch: side by side they fill chip and memory as far as each alone would.
double group_seconds(const device_model &model, std::span<const gemm_shape> products);
// How many such products must wait for one launch of all to be faster than each by itself, its depth shared by units
// that would idle. At least 1.
std::size_t least_company(const device_model &model, const gemm_shape &gemm);

// Bytes per second of all packing and unpacking together when `workers` are at it.
double staging_rate_of(const device_model &model, int workers);
// A pack or unpack of `bytes` by one of `workers` busy workers.
double staging_seconds(const device_model &model, double bytes, int workers);

// Bytes that must cross the link in each direction at least.
struct link_bytes {
  double in = 0, out = 0;
};
link_bytes bytes_over_link(const problem &p);

// What the link alone takes: max(bytes in / link in, bytes out / link out, all bytes / both).
double link_seconds(const device_model &model, const problem &p);

// max(bytes in / link in, bytes out / link out, all bytes / both, flops / rate) of one problem, or of several together.
double bound_seconds(const device_model &model, std::span<const problem> problems);

// The shapes of a schedule's commands.
copy_shape shape_of_copy(const schedule &s, const command &c);
gemm_shape shape_of_gemm(const schedule &s, const command &c);
gemm_shape shape_of_whole(const problem &p);  // of one command for all of it
reduce_shape shape_of_reduce(const schedule &s, const command &c);

}  // namespace sg
