// SPDX-License-Identifier: Apache-2.0
#include "plan/cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace sg {
namespace {

// From the most to the least accurate.
constexpr int rank_of(sg_compute compute) noexcept {
  switch (compute) {
    case SG_COMPUTE_EXACT: return 0;
    case SG_COMPUTE_3XTF32: return 1;
    case SG_COMPUTE_BF16X3: return 2;
    case SG_COMPUTE_TF32: return 3;
    case SG_COMPUTE_BF16: return 4;
    case SG_COMPUTE_F8: return 5;  // beside exact the only one of its operands
  }
  return 0;
}

double pick(const run_rate &row, bool both_ways) { return both_ways ? row.both_ways : row.one_way; }

double pitched_rate(const device_model &model, double run, bool both_ways, double contiguous) {
  const auto &rows = model.runs;
  if (rows.empty()) return contiguous;
  if (run <= rows.front().run_bytes) return pick(rows.front(), both_ways) * run / rows.front().run_bytes;
  if (run >= rows.back().run_bytes) return std::min(contiguous, pick(rows.back(), both_ways));
  const auto above = std::find_if(rows.begin(), rows.end(), [&](const run_rate &r) { return r.run_bytes >= run; });
  const auto below = above - 1;
  const double t = std::log(run / below->run_bytes) / std::log(above->run_bytes / below->run_bytes);
  return std::min(contiguous, pick(*below, both_ways) * (1 - t) + pick(*above, both_ways) * t);
}

// Kernels that leave the depth whole (split_k 0) share it all the same where hardly any unit would have a tile: on an
// H200 64x64x16384 takes 10.4 us in tf32 and 9.6 in bf16, where one multiprocessor would take 85 and 43
// (resident_quick_card.json). i8 has other kernels.
constexpr double few_tiles = 32;  // units for each
constexpr std::int64_t least_deep_piece = 2048;
// Kernels for batches never share the depth, and a unit waits for its memory unless it has some small tiles to turn to.
// On an H200, 2 to 32 products of 32x32, 64x64 or 128x128 as one batch took about 11 us and for each 1000 of depth 18
// us in f32, 9 in f64, 5.5 in tf32, 1.5 in bf16 (no record is kept): between a tenth and a half of a unit's rate.
constexpr double lone_tile_efficiency = 0.4;

// Seconds of arithmetic, and the share of the chip that works meanwhile, with the tile shape that suits best: smaller
// tiles fill more units but reuse their operands less.
kernel_cost arithmetic(const device_model &model, const gemm_shape &g, const gemm_rate &rate) {
  struct shape {
    int divisor;
    double efficiency;
  };
  constexpr shape shapes[] = {{1, 1.0}, {2, 0.8}, {4, 0.5}};
  const double per_mac = flops_per_mac(g.in_type);
  const double units = g.units > 0 ? std::min(g.units, model.units) : model.units;
  const double unit_rate = rate.flops_per_second / model.units;
  const std::int64_t whole_m = rate.tile_m > 0 ? rate.tile_m : model.tile_m;
  const std::int64_t whole_n = rate.tile_n > 0 ? rate.tile_n : model.tile_n;
  const std::int64_t split_k = rate.split_k >= 0 ? rate.split_k : model.split_k;
  const bool is_batch = !model.lanes_are_cores && (g.batch > 1 || g.in_group);
  kernel_cost best{HUGE_VAL, 1, 0};
  for (const shape &s : shapes) {
    const std::int64_t tile_m = std::max<std::int64_t>(1, whole_m / s.divisor);
    const std::int64_t tile_n = std::max<std::int64_t>(1, whole_n / s.divisor);
    double tiles = double(ceil_div(g.m, tile_m)) * double(ceil_div(g.n, tile_n)) * double(g.batch);
    double depth = double(g.k);
    std::int64_t piece = split_k;
    if (piece == 0 && g.in_type != SG_DTYPE_I8 && tiles * few_tiles <= units) piece = least_deep_piece;
    double efficiency = s.efficiency;
    if (is_batch && s.divisor > 1 && g.in_type != SG_DTYPE_I8)
      efficiency *= std::clamp(lone_tile_efficiency * tiles / units, lone_tile_efficiency, 1.0);
    if (!is_batch && piece > 0 && tiles < units) {
      const double pieces = std::clamp(std::floor(depth / double(piece)), 1.0, std::floor(units / tiles));
      tiles *= pieces;
      depth /= pieces;
    }
    const double tile_seconds = per_mac * double(tile_m) * double(tile_n) * depth / (unit_rate * efficiency);
    const double seconds = waves_of(tiles / units) * tile_seconds;
    if (seconds < best.seconds) best = {seconds, std::min(units, tiles) / model.units, 0};
  }
  return best;
}

// The share of the memory bandwidth that `bytes` in `seconds` take. No core draws more than its part of it.
kernel_cost with_memory(const device_model &model, kernel_cost cost, double bytes) {
  const double memory_seconds = bytes / model.memory_rate;
  cost.seconds = std::max(cost.seconds, memory_seconds * (model.lanes_are_cores ? model.compute_lanes : 1));
  cost.memory_share = cost.seconds > 0 ? memory_seconds / cost.seconds : 0;
  if (model.lanes_are_cores) cost.chip_share = 0;
  return cost;
}

// The fastest row that is at least as accurate as asked; nullptr when there is none.
const gemm_rate *best_rate(const device_model &model, sg_dtype in_type, sg_compute compute) {
  const gemm_rate *best = nullptr;
  for (const gemm_rate &rate : model.rates)
    if (rate.type == in_type && rank_of(rate.compute) <= rank_of(compute) && rate.flops_per_second > 0 &&
        (!best || rate.flops_per_second > best->flops_per_second))
      best = &rate;
  return best;
}

// Products in parts are formed where that pays, as the cuda backend does it (gemm_split.cpp); others in f32.
sg_compute computed_as(const gemm_shape &g) noexcept {
  const bool in_parts = g.compute == SG_COMPUTE_3XTF32 || g.compute == SG_COMPUTE_BF16X3;
  const bool pays = g.batch == 1 && g.m % 8 == 0 && g.n % 8 == 0 && g.k >= 128 && double(g.m) * double(g.n) >= 1 << 20;
  return in_parts && !pays ? SG_COMPUTE_EXACT : g.compute;
}

}  // namespace

// It goes over the sums once more, which are of 32 bits at least. On cores they are in cache.
bool ends_apart(const device_model &model, const gemm_shape &g) { return g.has_epilogue && !model.lanes_are_cores; }

double waves_of(double full) { return full + (std::ceil(full) - full) / std::max(1.0, full); }

double copy_rate(const device_model &model, const copy_shape &copy, bool both_ways) {
  const double contiguous = copy.to_device ? (both_ways ? model.link_in_both : model.link_in)
                                           : (both_ways ? model.link_out_both : model.link_out);
  const bool one_run = copy.height <= 1 || (copy.dst_pitch == copy.width && copy.src_pitch == copy.width);
  return one_run ? contiguous : pitched_rate(model, double(copy.width), both_ways, contiguous);
}

double copy_seconds(const device_model &model, const copy_shape &copy, bool both_ways) {
  return model.copy_gap + double(copy.width) * double(copy.height) / copy_rate(model, copy, both_ways);
}

double gemm_rate_of(const device_model &model, sg_dtype in_type, sg_compute compute) {
  const gemm_rate *best = best_rate(model, in_type, compute);
  return best ? best->flops_per_second : 0;
}

kernel_cost gemm_cost(const device_model &model, const gemm_shape &g) {
  const gemm_rate *rate = best_rate(model, g.in_type, computed_as(g));
  if (!rate) rate = best_rate(model, g.in_type, g.compute);
  if (!rate)
    throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s product", model.name.c_str(), name_of(g.in_type));
  const double m = double(g.m), n = double(g.n), k = double(g.k);
  const double bytes = double(g.batch) * (double(size_of(g.in_type)) * (m * k + k * n) +
                                          double(size_of(g.out_type)) * m * n * (g.reads_c ? 2 : 1));
  kernel_cost cost = arithmetic(model, g, *rate);
  // Adding to C does not overlap with the arithmetic: every tile ends with it. (On cores a tile's C stays in cache.)
  if (g.reads_c && !model.lanes_are_cores)
    cost.seconds += double(g.batch) * 2 * double(size_of(g.out_type)) * m * n / model.memory_rate;
  if (ends_apart(model, g))
    cost.seconds +=
        double(g.batch) * 2 * double(std::max<std::int64_t>(4, size_of(g.out_type))) * m * n / model.memory_rate;
  return with_memory(model, cost, bytes);
}

kernel_cost reduce_cost(const device_model &model, const reduce_shape &r) {
  const double bytes =
      double(r.m) * double(r.n) *
      (double(r.parts) * double(size_of(r.part_type)) + double(size_of(r.out_type)) * (r.reads_c ? 2 : 1));
  return with_memory(model, {0, 1, 0}, bytes);
}

double gemm_seconds(const device_model &model, const gemm_shape &g) {
  return model.launch_gap * (ends_apart(model, g) ? 2 : 1) + gemm_cost(model, g).seconds;
}

double reduce_seconds(const device_model &model, const reduce_shape &r) {
  return model.launch_gap + reduce_cost(model, r).seconds;
}

namespace {

// What one of a group's products takes.
double seconds_in_group(const device_model &model, gemm_shape gemm) {
  gemm.in_group = true;
  return gemm_cost(model, gemm).seconds;
}

}  // namespace

double group_seconds(const device_model &model, std::span<const gemm_shape> products) {
  double longest = 0, chip = 0, memory = 0;
  int kernels = 1;
  for (const gemm_shape &g : products) {
    if (ends_apart(model, g)) kernels = 2;  // one for all of them
    const kernel_cost cost = gemm_cost(model, g);
    longest = std::max(longest, products.size() > 1 ? seconds_in_group(model, g) : cost.seconds);
    chip += cost.seconds * (model.lanes_are_cores ? 1 : cost.chip_share);
    memory += cost.seconds * cost.memory_share;
  }
  return model.launch_gap * kernels + std::max({longest, chip, memory});
}

std::size_t least_company(const device_model &model, const gemm_shape &gemm) {
  if (model.lanes_are_cores) return 1;
  const double apart = std::max({model.launch_gap, gemm_cost(model, gemm).seconds, 1e-12});
  return std::size_t(std::clamp(seconds_in_group(model, gemm) / apart, 1.0, 1e9));
}

double staging_rate_of(const device_model &model, int workers) {
  const auto &rows = model.staging;
  if (rows.empty()) return model.memory_rate / 2;
  if (workers <= rows.front().workers) return rows.front().bytes_per_second * workers / rows.front().workers;
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (workers <= rows[i].workers) {
      const double t = double(workers - rows[i - 1].workers) / double(rows[i].workers - rows[i - 1].workers);
      return rows[i - 1].bytes_per_second * (1 - t) + rows[i].bytes_per_second * t;
    }
  return rows.back().bytes_per_second;
}

double staging_seconds(const device_model &model, double bytes, int workers) {
  return bytes * workers / staging_rate_of(model, workers);
}

link_bytes bytes_over_link(const problem &p) {
  const auto on_host = [](const operand &x) { return x.place != SG_MEMORY_DEVICE; };
  link_bytes bytes;
  if (!p.no_product && on_host(p.a)) bytes.in += problem::bytes(p.a, p.batch);
  if (!p.no_product && on_host(p.b)) bytes.in += problem::bytes(p.b, p.batch);
  if (p.has_bias() && on_host(p.bias)) bytes.in += problem::bytes(p.bias, p.batch);
  if (on_host(p.c)) {
    bytes.out += problem::bytes(p.c, p.batch);
    if (!p.beta_zero) bytes.in += problem::bytes(p.c, p.batch);
  }
  return bytes;
}

namespace {

double seconds_over_link(const device_model &model, const link_bytes &bytes) {
  if (model.unified_memory) return 0;
  return std::max({bytes.in / model.link_in, bytes.out / model.link_out,
                   (bytes.in + bytes.out) / (model.link_in_both + model.link_out_both)});
}

}  // namespace

double link_seconds(const device_model &model, const problem &p) {
  return seconds_over_link(model, bytes_over_link(p));
}

double bound_seconds(const device_model &model, std::span<const problem> problems) {
  link_bytes bytes;
  double arithmetic_seconds = 0, memory_bytes = 0;
  const double lanes = model.lanes_are_cores ? model.compute_lanes : 1;
  for (const problem &given : problems) {
    const problem p = given.as_on_device();
    const link_bytes own = bytes_over_link(p);
    bytes.in += own.in;
    bytes.out += own.out;
    if (!p.no_product) {
      const double rate = gemm_rate_of(model, p.a.type, p.compute) * lanes;
      if (rate > 0) arithmetic_seconds += p.flops() / rate;
      memory_bytes += problem::bytes(p.a, p.batch) + problem::bytes(p.b, p.batch);
    }
    memory_bytes += problem::bytes(p.c, p.batch) * (p.beta_zero ? 1 : 2);
  }
  return std::max({arithmetic_seconds, memory_bytes / model.memory_rate, seconds_over_link(model, bytes)});
}

copy_shape shape_of_copy(const schedule &s, const command &c) {
  const std::int64_t size = size_of(s.buffers[c.out.buffer].type);
  return {c.out.rows * size, c.out.cols, c.out.ld * size, c.in0.ld * size, c.kind == command_kind::copy_in};
}

gemm_shape shape_of_gemm(const schedule &s, const command &c) {
  return {c.m,
          c.n,
          c.k,
          c.out.items,
          s.buffers[c.in0.buffer].type,
          s.buffers[c.out.buffer].type,
          c.compute,
          c.beta != scalar_role::zero,
          0,
          c.bias.buffer >= 0 || c.activation != SG_ACTIVATION_NONE};
}

gemm_shape shape_of_whole(const problem &p) {
  return {p.m, p.n, p.k, p.batch, p.a.type, p.c.type, p.compute, !p.beta_zero, 0, p.has_epilogue()};
}

reduce_shape shape_of_reduce(const schedule &s, const command &c) {
  const bool scale_only = c.in0.buffer < 0;
  const sg_dtype out = s.buffers[c.out.buffer].type;
  return {c.out.rows,
          c.out.cols,
          scale_only ? 0 : c.in0.items,
          scale_only ? out : s.buffers[c.in0.buffer].type,
          out,
          c.beta != scalar_role::zero};
}

}  // namespace sg
