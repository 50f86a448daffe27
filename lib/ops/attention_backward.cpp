// SPDX-License-Identifier: Apache-2.0
#include "ops/attention_backward.hpp"

#include <algorithm>
#include <span>

#include "base/checked.hpp"
#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::attention_backward;

// Of the rate of large GEMMs; the attention is computed again, and its gradients are five GEMMs instead of two.
constexpr double share_of_gemm_rate = 0.4, gemms = 7, gemms_of_attention = 2;

access_mode access(const command &, std::size_t view) {
  return view <= attention_backward::scratch ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const sg_dtype type = type_of(buffers, command.views[attention_backward::q]);
  for (std::size_t i = 0; i < attention_backward::operands; ++i) {
    const view &each = command.views[i];
    if (i < attention_backward::scratch && !each.exists()) continue;
    if (!each.exists() || each.items != 1 || each.cols != 1 ||
        (i != attention_backward::scratch && type_of(buffers, each) != type))
      return "gradients of an attention have operands of one type and scratch memory, each as one column";
  }
  return nullptr;
}

kernel_cost kernel_of(const device_model &model, const ops::attention &what, sg_dtype type, double bytes) {
  const double flops = ops::flops_of(what) * gemms / gemms_of_attention;
  return with_memory(model, {flops / (gemm_rate_of(model, type, SG_COMPUTE_EXACT) * share_of_gemm_rate), 1, 0}, bytes);
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  double bytes = 0;
  for (const view &each : std::span<const accessed_view>(command.views).first(attention_backward::operands))
    if (each.exists()) bytes += double(each.rows) * double(size_of(type_of(buffers, each)));
  return cost_of_kernel(model, kernel_of(model, *command.as<attention_backward>(),
                                         type_of(buffers, command.views[attention_backward::q]), bytes));
}

std::string describe(const buffer_list &, const command &c) {
  return text_of(*c.as<attention_backward>(), "attention backward");
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const attention_backward &from = *command.as<attention_backward>();
  auto made = backend_command<sg_backend_attention_backward>();
  const auto heads = [&](std::size_t index, const head_strides &x) {
    const view &v = command.views[index];
    return v.exists() ? sg_backend_heads{address_of(buffers, v, where, v.item), x.batch, x.head, x.token}
                      : sg_backend_heads{};
  };
  made.batch = from.batch, made.heads = from.heads, made.kv_heads = from.kv_heads;
  made.queries = from.queries, made.keys = from.keys, made.width = from.width, made.value_width = from.value_width;
  made.mask_offset = from.mask_offset;
  made.mask = from.causal ? SG_MASK_CAUSAL : SG_MASK_NONE;
  made.type = type_of(buffers, command.views[attention_backward::q]);
  made.scale = where.scalars(command.group).alpha.re;
  made.q = heads(attention_backward::q, from.of_q), made.k = heads(attention_backward::k, from.of_k);
  made.v = heads(attention_backward::v, from.of_v), made.dout = heads(attention_backward::dout, from.of_o);
  made.dq = heads(attention_backward::dq, from.of_dq), made.dk = heads(attention_backward::dk, from.of_dk);
  made.dv = heads(attention_backward::dv, from.of_dv);
  const view &scratch = command.views[attention_backward::scratch];
  made.scratch = address_of(buffers, scratch, where, scratch.item);
  made.scratch_bytes = scratch.rows * size_of(type_of(buffers, scratch));
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_attention_backward>(command);
  ops::attention what;
  what.batch = x.batch, what.heads = x.heads, what.kv_heads = x.kv_heads;
  what.queries = x.queries, what.keys = x.keys, what.width = x.width, what.value_width = x.value_width;
  what.causal = x.mask == SG_MASK_CAUSAL, what.mask_offset = x.mask_offset;
  const double tokens = double(x.batch) * (double(x.heads) * double(x.queries) + double(x.kv_heads) * double(x.keys));
  const double bytes = 2 * tokens * double(x.width + x.value_width) * double(size_of(x.type)) + double(x.scratch_bytes);
  return model.launch_gap + kernel_of(model, what, x.type, bytes).seconds;
}

}  // namespace

std::int64_t ops::scratch_of(const attention_backward &what, sg_dtype type, const bool (&wants)[3]) {
  constexpr const char *name = "gradients of an attention";
  constexpr std::int64_t f32 = 4, statistics = 2;
  const std::int64_t size = size_of(type);
  const auto product = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
    return checked_mul(checked_mul(a, b, name), c, name);
  };
  const std::int64_t rows = product(what.batch, what.heads, what.queries);
  const std::int64_t columns = product(what.batch, what.kv_heads, what.keys);
  std::int64_t bytes = 0;
  const auto add = [&](std::int64_t some) { bytes = checked_add(bytes, round_up(some, 256), name); };
  add(product(rows, what.value_width, size));
  for (std::int64_t i = 0; i < statistics; ++i) add(product(rows, f32, 1));
  add(product(rows, what.width, f32));
  if (!wants[0]) add(product(rows, what.width, size));
  if (!wants[1]) add(product(columns, what.width, size));
  if (!wants[2]) add(product(columns, what.value_width, size));
  for (std::int64_t i = 0; i < 2; ++i) add(product(what.batch, f32, 1));
  return bytes;
}

constinit const operation ops::attention_backward::entry{
    "attention backward", access, defect, cost, describe, lower, SG_BACKEND_ATTENTION_BACKWARD, seconds};

}  // namespace sg
