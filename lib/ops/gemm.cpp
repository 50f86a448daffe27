// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm.hpp"

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::gemm;

access_mode access(const command &c, std::size_t view) {
  if (view != gemm::c) return access_mode::read;
  return c.as<gemm>()->beta == scalar_role::zero ? access_mode::write : access_mode::read_write;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const gemm &g = *command.as<gemm>();
  const view &c = command.views[gemm::c], &a = command.views[gemm::a], &b = command.views[gemm::b];
  const view &bias = command.views[gemm::bias];
  if (!c.exists() || !a.exists() || !b.exists()) return "a GEMM has A, B and C";
  const auto is_shaped = [](const view &v, sg_transpose op, std::int64_t rows, std::int64_t cols) {
    return op == SG_TRANSPOSE_N ? v.rows == rows && v.cols == cols : v.rows == cols && v.cols == rows;
  };
  if (!is_shaped(a, g.op_a, g.m, g.k) || !is_shaped(b, g.op_b, g.k, g.n) || !is_shaped(c, SG_TRANSPOSE_N, g.m, g.n))
    return "the shapes of a GEMM do not fit";
  if ((a.items != 1 && a.items != c.items) || (b.items != 1 && b.items != c.items))
    return "the items of a GEMM do not fit";
  return bias.exists() ? defect_of_bias(buffers, bias, c) : nullptr;
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &c) {
  const gemm_shape shape = shape_of_gemm(buffers, c);
  const kernel_cost kernel = gemm_cost(model, shape);
  const double epilogue = has_separate_epilogue(model, shape) ? model.launch_gap : 0;
  command_cost cost;
  cost.amount = kernel.seconds;
  cost.chip_share = kernel.chip_share;
  cost.memory_share = kernel.memory_share;
  cost.delay_idle = std::max(model.launch_latency, model.launch_gap) + epilogue;
  cost.delay_queued = model.launch_gap + epilogue;
  return cost;
}

std::string describe(const buffer_list &, const command &c) {
  const gemm &g = *c.as<gemm>();
  const std::int64_t items = c.views[gemm::c].items;
  return "gemm " + std::to_string(g.m) + " x " + std::to_string(g.n) + " x " + std::to_string(g.k) +
         (items > 1 ? " x " + std::to_string(items) + " items" : "");
}

// From the most to the least accurate.
constexpr int rank_of(sg_compute compute) noexcept {
  switch (compute) {
    case SG_COMPUTE_EXACT: return 0;
    case SG_COMPUTE_3XTF32: return 1;
    case SG_COMPUTE_BF16X3: return 2;
    case SG_COMPUTE_TF32: return 3;
    case SG_COMPUTE_BF16: return 4;
    case SG_COMPUTE_F8: return 5;  // its operands' only type besides exact
  }
  return 0;
}

// Kernels without split-k in general (split_k 0) use it if few units would have a tile: on an H200 64x64x16384 takes
// 10.4 us in tf32 and 9.6 in bf16, where one multiprocessor would take 85 and 43 (resident_quick_card.json). i8 has
// other kernels.
constexpr double few_tiles = 32;  // for each unit
constexpr std::int64_t least_deep_piece = 2048;
// Batched kernels never split k, and a unit stalls on memory unless it has several small tiles. On an H200, 2 to 32
// GEMMs of 32x32, 64x64 or 128x128 as one batch took about 11 us, and for each 1000 of depth 18 us in f32, 9 in f64,
// 5.5 in tf32, 1.5 in bf16 (no record is kept): between a tenth and a half of a unit's rate.
constexpr double lone_tile_efficiency = 0.4;

// Seconds of arithmetic, and the share of the chip in use, with the best tile shape: smaller tiles fill more units but
// reuse their operands less.
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

// The fastest row that is at least as accurate as requested; nullptr: none.
const gemm_rate *best_rate(const device_model &model, sg_dtype in_type, sg_compute compute) {
  const gemm_rate *best = nullptr;
  for (const gemm_rate &rate : model.rates)
    if (rate.type == in_type && rank_of(rate.compute) <= rank_of(compute) && rate.flops_per_second > 0 &&
        (!best || rate.flops_per_second > best->flops_per_second))
      best = &rate;
  return best;
}

// Split-precision GEMMs only where they are faster, like the cuda backend (gemm_split.cpp); otherwise in f32.
sg_compute computed_as(const gemm_shape &g) noexcept {
  const bool in_parts = g.compute == SG_COMPUTE_3XTF32 || g.compute == SG_COMPUTE_BF16X3;
  const bool pays = g.batch == 1 && g.m % 8 == 0 && g.n % 8 == 0 && g.k >= 128 && double(g.m) * double(g.n) >= 1 << 20;
  return in_parts && !pays ? SG_COMPUTE_EXACT : g.compute;
}

// The items' pointer array if there is one; otherwise the first address and the stride.
template <class Pointer, class Array>
void lower_operand(const buffer_list &buffers, const view &v, const binding &where, std::vector<void *> &scratch,
                   Pointer &first, Array &array, std::int64_t &stride) {
  const buffer &b = buffer_of(buffers, v);
  first = address_of(buffers, v, where, v.item);
  array = nullptr;
  stride = v.items == 1 ? 0 : b.item_stride / size_of(b.type);  // one item for a full batch is shared
  if (!b.pointer_array || v.items == 1) return;
  scratch.resize(static_cast<std::size_t>(v.items));
  for (std::int64_t i = 0; i < v.items; ++i)
    scratch[static_cast<std::size_t>(i)] = address_of(buffers, v, where, v.item + i);
  array = scratch.data();
}

void lower(const buffer_list &buffers, const command &c, const binding &where, backend_commands &out) {
  out.add(lower_gemm(buffers, c, where, out.pointers));
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  return gemm_seconds(model, shape_of_gemm(as_backend<sg_backend_gemm>(command)));
}

}  // namespace

constinit const operation ops::gemm::entry{"gemm", access, defect, cost, describe, lower, SG_BACKEND_GEMM, seconds};

bool has_pointer_arrays(const buffer_list &buffers, const command &c) noexcept {
  const auto by_pointers = [&](std::size_t view) { return buffer_of(buffers, c.views[view]).pointer_array; };
  return by_pointers(gemm::a) || by_pointers(gemm::b) || by_pointers(gemm::c);
}

gemm_shape shape_of_gemm(const buffer_list &buffers, const command &c) {
  const gemm &g = *c.as<gemm>();
  return {g.m,
          g.n,
          g.k,
          c.views[gemm::c].items,
          type_of(buffers, c.views[gemm::a]),
          type_of(buffers, c.views[gemm::c]),
          g.compute,
          g.beta != scalar_role::zero,
          0,
          c.views[gemm::bias].exists() || g.activation != SG_ACTIVATION_NONE};
}

gemm_shape shape_of_gemm(const sg_backend_gemm &g) {
  return {g.m,
          g.n,
          g.k,
          g.batch,
          g.in_type,
          g.out_type,
          g.compute,
          g.beta.re != 0 || g.beta.im != 0,
          g.compute_units,
          g.bias != nullptr || g.activation != SG_ACTIVATION_NONE};
}

kernel_cost with_memory(const device_model &model, kernel_cost cost, double bytes) {
  const double memory_seconds = bytes / model.memory_rate;
  cost.seconds = std::max(cost.seconds, memory_seconds * (model.lanes_are_cores ? model.compute_lanes : 1));
  cost.memory_share = cost.seconds > 0 ? memory_seconds / cost.seconds : 0;
  if (model.lanes_are_cores) cost.chip_share = 0;
  return cost;
}

// It reads and writes the sums again, of 32 bits at least. On cores they are in cache. A GPU's libraries have it in
// their GEMMs of 16 bits for tensor cores.
bool has_separate_epilogue(const device_model &model, const gemm_shape &g) {
  const bool is_short = g.in_type == SG_DTYPE_F16 || g.in_type == SG_DTYPE_BF16;
  const bool is_fused = is_short && g.batch == 1 && !g.reads_c && (g.m | g.n | g.k) % 8 == 0;
  return g.has_epilogue && !model.lanes_are_cores && !is_fused;
}

double waves_of(double full) { return full + (std::ceil(full) - full) / std::max(1.0, full); }

double gemm_rate_of(const device_model &model, sg_dtype in_type, sg_compute compute) {
  const gemm_rate *best = best_rate(model, in_type, compute);
  return best ? best->flops_per_second : 0;
}

kernel_cost gemm_cost(const device_model &model, const gemm_shape &g) {
  const gemm_rate *rate = best_rate(model, g.in_type, computed_as(g));
  if (!rate) rate = best_rate(model, g.in_type, g.compute);
  if (!rate)
    throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s GEMM", model.name.c_str(), name_of(g.in_type));
  const double m = double(g.m), n = double(g.n), k = double(g.k);
  const double bytes = double(g.batch) * (double(size_of(g.in_type)) * (m * k + k * n) +
                                          double(size_of(g.out_type)) * m * n * (g.reads_c ? 2 : 1));
  kernel_cost cost = arithmetic(model, g, *rate);
  // Adding to C does not overlap with the arithmetic: every tile ends with it. (On cores a tile's C stays in cache.)
  if (g.reads_c && !model.lanes_are_cores)
    cost.seconds += double(g.batch) * 2 * double(size_of(g.out_type)) * m * n / model.memory_rate;
  if (has_separate_epilogue(model, g))
    cost.seconds +=
        double(g.batch) * 2 * double(std::max<std::int64_t>(4, size_of(g.out_type))) * m * n / model.memory_rate;
  return with_memory(model, cost, bytes);
}

double gemm_seconds(const device_model &model, const gemm_shape &g) {
  return model.launch_gap * (has_separate_epilogue(model, g) ? 2 : 1) + gemm_cost(model, g).seconds;
}

namespace {

// Seconds of one GEMM of a batch.
double seconds_in_group(const device_model &model, gemm_shape gemm) {
  gemm.in_group = true;
  return gemm_cost(model, gemm).seconds;
}

}  // namespace

double group_seconds(const device_model &model, std::span<const gemm_shape> shapes) {
  double longest = 0, chip = 0, memory = 0;
  int kernels = 1;
  for (const gemm_shape &g : shapes) {
    if (has_separate_epilogue(model, g)) kernels = 2;  // one for all of them
    const kernel_cost cost = gemm_cost(model, g);
    longest = std::max(longest, shapes.size() > 1 ? seconds_in_group(model, g) : cost.seconds);
    chip += cost.seconds * (model.lanes_are_cores ? 1 : cost.chip_share);
    memory += cost.seconds * cost.memory_share;
  }
  return model.launch_gap * kernels + std::max({longest, chip, memory});
}

std::size_t min_batch_size(const device_model &model, const gemm_shape &gemm) {
  if (model.lanes_are_cores) return 1;
  const double unbatched_seconds = std::max({model.launch_gap, gemm_cost(model, gemm).seconds, 1e-12});
  return std::size_t(std::clamp(seconds_in_group(model, gemm) / unbatched_seconds, 1.0, 1e9));
}

sg_backend_gemm lower_gemm(const buffer_list &buffers, const command &command, const binding &where,
                           pointer_scratch &scratch) {
  const gemm &from = *command.as<gemm>();
  const view &a = command.views[gemm::a], &b = command.views[gemm::b], &c = command.views[gemm::c];
  const view &bias = command.views[gemm::bias];
  const scalar_pair &own = where.scalars(command.group);
  auto g = backend_command<sg_backend_gemm>();
  g.m = from.m;
  g.n = from.n;
  g.k = from.k;
  g.batch = c.items;
  g.op_a = from.op_a;
  g.op_b = from.op_b;
  g.in_type = type_of(buffers, a);
  g.out_type = type_of(buffers, c);
  g.compute = from.compute;
  g.alpha = value_of(from.alpha, own.alpha);
  g.beta = value_of(from.beta, own.beta);
  g.lda = a.ld;
  g.ldb = b.ld;
  g.ldc = c.ld;
  lower_operand(buffers, a, where, scratch.a, g.a, g.a_array, g.stride_a);
  lower_operand(buffers, b, where, scratch.b, g.b, g.b_array, g.stride_b);
  lower_operand(buffers, c, where, scratch.c, g.c, g.c_array, g.stride_c);
  g.activation = from.activation;
  if (!bias.exists()) return g;
  g.bias = address_of(buffers, bias, where, bias.item);
  g.bias_per_row = is_per_row(bias, c);
  if (bias.items > 1) g.stride_bias = buffer_of(buffers, bias).item_stride / size_of(g.out_type);
  return g;
}

}  // namespace sg
