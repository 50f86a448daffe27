// SPDX-License-Identifier: Apache-2.0
#include "ops/attention.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::attention;

// Of the rate of large GEMMs: bench/results/layers.json has 0.22 to 0.28, with tokens of 64 elements.
constexpr double share_of_gemm_rate = 0.25;
constexpr double block_queries = 64;

access_mode access(const command &, std::size_t view) {
  return view == attention::o ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &o = command.views[attention::o];
  for (const view &each : std::span<const accessed_view>(command.views).first(attention::operands))
    if (!each.exists() || each.items != 1 || each.cols != 1 || type_of(buffers, each) != type_of(buffers, o))
      return "an attention has four operands of one type, each as one column";
  return nullptr;
}

kernel_cost kernel_of(const device_model &model, double flops, double blocks, sg_dtype type, double bytes) {
  const double share = std::min(1.0, blocks / double(std::max(1, model.units)));
  const double rate = gemm_rate_of(model, type, SG_COMPUTE_EXACT) * share_of_gemm_rate * share;
  return with_memory(model, {flops / rate, share, 0}, bytes);
}

double blocks_of(double batch, double heads, double queries) {
  return batch * heads * std::ceil(queries / block_queries);
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const attention &what = *command.as<attention>();
  double bytes = 0;
  for (const view &each : std::span<const accessed_view>(command.views).first(attention::operands))
    bytes += double(each.rows) * double(size_of(type_of(buffers, each)));
  return cost_of_kernel(
      model, kernel_of(model, flops_of(what), blocks_of(double(what.batch), double(what.heads), double(what.queries)),
                       type_of(buffers, command.views[attention::o]), bytes));
}

std::string describe(const buffer_list &, const command &c) { return text_of(*c.as<attention>(), "attention"); }

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const attention &from = *command.as<attention>();
  auto made = backend_command<sg_backend_attention>();
  const auto heads = [&](std::size_t index, const head_strides &x) {
    const view &v = command.views[index];
    return sg_backend_heads{address_of(buffers, v, where, v.item), x.batch, x.head, x.token};
  };
  made.batch = from.batch, made.heads = from.heads, made.kv_heads = from.kv_heads;
  made.queries = from.queries, made.keys = from.keys, made.width = from.width, made.value_width = from.value_width;
  made.mask_offset = from.mask_offset;
  made.mask = from.causal ? SG_MASK_CAUSAL : SG_MASK_NONE;
  made.type = type_of(buffers, command.views[attention::o]);
  made.scale = where.scalars(command.group).alpha.re;
  made.q = heads(attention::q, from.of_q), made.k = heads(attention::k, from.of_k);
  made.v = heads(attention::v, from.of_v), made.o = heads(attention::o, from.of_o);
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_attention>(command);
  attention what;
  what.batch = x.batch, what.heads = x.heads, what.kv_heads = x.kv_heads;
  what.queries = x.queries, what.keys = x.keys, what.width = x.width, what.value_width = x.value_width;
  what.causal = x.mask == SG_MASK_CAUSAL, what.mask_offset = x.mask_offset;
  const double tokens = double(x.batch) * (double(x.heads) * double(x.queries) + double(x.kv_heads) * double(x.keys));
  const double bytes = tokens * double(x.width + x.value_width) * double(size_of(x.type));
  return model.launch_gap +
         kernel_of(model, flops_of(what), blocks_of(double(x.batch), double(x.heads), double(x.queries)), x.type, bytes)
             .seconds;
}

}  // namespace

std::string ops::text_of(const attention &what, const char *name) {
  std::string text = name;
  if (what.causal) text += " causal";
  char separator = ' ';
  for (const std::int64_t each : {what.batch, what.heads, what.queries, what.keys}) {
    text += separator;
    text += std::to_string(each);
    separator = 'x';
  }
  return text;
}

double ops::flops_of(const attention &what) noexcept {
  double pairs = double(what.queries) * double(what.keys);
  if (what.causal) {
    // Query i has i + mask_offset + 1 keys, from none to all.
    const double before = std::clamp<double>(double(-what.mask_offset - 1), 0, double(what.queries));
    const double growing = std::clamp<double>(double(what.keys - what.mask_offset - 1), before, double(what.queries));
    const double first = std::max(0.0, before + double(what.mask_offset) + 1), rows = growing - before;
    pairs = rows * (first + (rows - 1) / 2) + (double(what.queries) - growing) * double(what.keys);
  }
  return 2 * double(what.batch) * double(what.heads) * std::max(0.0, pairs) * double(what.width + what.value_width);
}

constinit const operation ops::attention::entry{"attention",          access, defect, cost, describe, lower,
                                                SG_BACKEND_ATTENTION, seconds};

}  // namespace sg
