// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/attention.hpp"

#include <streamgemm/attention.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/submission/layer.hpp"
#include "api/submission/submission.hpp"
#include "api/wait.hpp"
#include "run/order/strided_bytes.hpp"

namespace sg {

namespace {

// One operand of an attention.
struct given_heads {
  const char *name;
  const sg_heads &of;
  operand_name slot;  // see plan/layers/attention.hpp
  std::int64_t heads, tokens, width;

  head_strides strides() const noexcept { return {of.batch_stride, of.head_stride, of.token_stride}; }
};

template <class Desc>
void check_sizes(const Desc &d, const char *desc) {
  const struct {
    const char *name;
    std::int64_t value, least;
  } sizes[] = {
      {"batch", d.batch, 0}, {"heads", d.heads, 0}, {"kv_heads", d.kv_heads, 1},      {"queries", d.queries, 0},
      {"keys", d.keys, 0},   {"width", d.width, 0}, {"value_width", d.value_width, 0}};
  constexpr std::int64_t most = std::int64_t{1} << 40;  // products of two, and sums, do not overflow
  for (const auto &each : sizes)
    require_range(each.value, each.least, most, (std::string(desc) + "->" + each.name).c_str());
  if (d.heads % d.kv_heads != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->heads is %lld and %s->kv_heads is %lld, which does not divide it",
                desc, static_cast<long long>(d.heads), desc, static_cast<long long>(d.kv_heads));
}

template <class Desc>
void check_options(const Desc &d, const char *desc) {
  if (d.mask < SG_MASK_NONE || d.mask > SG_MASK_CAUSAL)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->mask is %d, which is no mask", desc, int{d.mask});
  const std::int64_t most_offset = d.mask == SG_MASK_NONE ? 0 : std::int64_t{1} << 60;
  require_range(d.mask_offset, -most_offset, most_offset, (std::string(desc) + "->mask_offset").c_str());
  if (!std::isfinite(d.scale))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->scale is %g; it must be finite", desc, d.scale);
  if (!is_layer_dtype(d.dtype))
    throw error(SG_STATUS_UNSUPPORTED, "%s->dtype is %s; it must be f64, f32, f16 or bf16", desc,
                is_dtype(d.dtype) ? name_of(d.dtype) : "no type");
  if (d.compute < SG_COMPUTE_EXACT || d.compute > SG_COMPUTE_F8 || !is_compute_of(d.dtype, d.compute))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->compute is %d, which is no compute of %s operands", desc,
                int{d.compute}, name_of(d.dtype));
  if (d.workspace > static_cast<std::uint64_t>(INT64_MAX))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->workspace is %llu; it must be at most %lld", desc,
                static_cast<unsigned long long>(d.workspace), static_cast<long long>(INT64_MAX));
  require_reserved_zero(d.reserved, desc);
}

void check_strides(const given_heads &x, const char *desc) {
  const std::pair<const char *, std::int64_t> strides[] = {
      {"batch_stride", x.of.batch_stride}, {"head_stride", x.of.head_stride}, {"token_stride", x.of.token_stride}};
  for (const auto &[name, stride] : strides)
    require_range(stride, 0, INT64_MAX, (std::string(desc) + "->" + x.name + "." + name).c_str());
  if (x.tokens > 1 && x.of.token_stride < x.width)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s.token_stride is %lld; a token has %lld elements", desc, x.name,
                static_cast<long long>(x.of.token_stride), static_cast<long long>(x.width));
}

// Each stride of a result steps over all that the smaller ones reach.
void require_separate_tokens(const given_heads &o, std::int64_t batch, const char *desc) {
  if (batch == 0 || o.heads == 0 || o.tokens == 0 || o.width == 0) return;
  std::array<std::pair<std::int64_t, std::int64_t>, 3> dimensions = {
      std::pair{o.of.batch_stride, batch}, {o.of.head_stride, o.heads}, {o.of.token_stride, o.tokens}};
  std::sort(dimensions.begin(), dimensions.end());
  std::int64_t reach = o.width;
  for (const auto &[stride, count] : dimensions) {
    if (count <= 1) continue;
    if (stride < reach)
      throw error(SG_STATUS_INVALID_ARGUMENT, "tokens of %s->%s overlap: a stride is %lld, and %lld elements are there",
                  desc, o.name, static_cast<long long>(stride), static_cast<long long>(reach));
    reach += (count - 1) * stride;
  }
}

template <class Desc>
attention_form sizes_of(const Desc &d) {
  const auto strides = [](const sg_heads &x) { return head_strides{x.batch_stride, x.head_stride, x.token_stride}; };
  attention_form f;
  f.batch = d.batch, f.heads = d.heads, f.kv_heads = d.kv_heads;
  f.queries = d.queries, f.keys = d.keys, f.width = d.width, f.value_width = d.value_width;
  f.q = strides(d.q), f.k = strides(d.k), f.v = strides(d.v);
  f.type = d.dtype, f.compute = d.compute;
  f.causal = d.mask == SG_MASK_CAUSAL, f.mask_offset = d.mask_offset;
  f.workspace = static_cast<std::int64_t>(d.workspace);
  if constexpr (std::is_same_v<Desc, sg_attention_desc>)
    f.o = strides(d.o);
  else
    f.d_o = strides(d.d_o), f.dq = strides(d.dq), f.dk = strides(d.dk), f.dv = strides(d.dv);
  return f;
}

template <class Desc>
double scale_of(const Desc &d) {
  return d.scale != 0 ? d.scale : d.width > 0 ? 1 / std::sqrt(static_cast<double>(d.width)) : 1;
}

void require_supported(const context &on, sg_dtype type, sg_mask mask, bool gradients, const char *desc) {
  auto softmax = backend_command<sg_backend_softmax>();
  softmax.type = type;
  softmax.mask = mask;
  if (accumulator_of(type) != type) softmax.x_type = accumulator_of(type);
  auto gradient = backend_command<sg_backend_softmax_backward>();
  gradient.type = type;
  gradient.dy_type = accumulator_of(type);
  if (!on.on().supports(softmax.header) || (gradients && !on.on().supports(gradient.header)))
    throw error(SG_STATUS_UNSUPPORTED, "%s->dtype is %s; device %.64s has no softmax of it", desc, name_of(type),
                on.on().name().c_str());
}

bool has_kernel(const context &on, const attention_form &f) {
  auto wanted = backend_command<sg_backend_attention>();
  wanted.type = f.type;
  wanted.width = f.width, wanted.value_width = f.value_width;
  return on.on().supports(wanted.header);
}

// Binds an operand in device memory; nothing if it has no elements.
void bind_heads(const context &on, const given_heads &x, const attention_form &f, const char *desc,
                problem_binding &where) {
  operand span;  // one column
  span.rows = head_bytes(f, x.strides(), x.heads, x.tokens, x.width) / size_of(f.type);
  span.cols = 1;
  span.ld = std::max<std::int64_t>(1, span.rows);
  span.type = f.type;
  if (span.rows == 0) return;
  const sg_matrix view{x.of.data, span.rows, 1, 0, f.type, SG_LAYOUT_COLUMN_MAJOR};
  const given_operand given{desc, x.name, view, nullptr, 0};
  operand_address &at = where.operands[static_cast<int>(x.slot)];
  std::vector<std::vector<char *>> unused;
  bind_operand(given, span, 1, true, at, unused);
  require_in_device_memory(on, given, span, at);
}

// The accesses of the operands, added one by one. Throws if what is written overlaps another operand.
class head_accesses {
 public:
  explicit head_accesses(const char *desc) : desc_(desc) {}

  void add(const given_heads &x, const attention_form &f, bool writes) {
    const std::int64_t size = size_of(f.type);
    const strided_bytes bytes{x.of.data,
                              x.width * size,
                              {{{f.batch, x.of.batch_stride * size},
                                {x.heads, x.of.head_stride * size},
                                {x.tokens, x.of.token_stride * size}}}};
    const std::size_t before = all_.size();
    each_footprint(bytes, [&](const footprint &each, bool exact) {
      for (std::size_t i = 0; i < before; ++i)
        if ((writes || all_[i].writes) && overlap(all_[i].bytes, each)) refuse(*owners_[i], x);
      all_.push_back({each, writes, !writes, exact});
      owners_.push_back(&x);
    });
  }
  const std::vector<access> &all() const noexcept { return all_; }

 private:
  [[noreturn]] void refuse(const given_heads &one, const given_heads &other) const {
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s (%p) and %s->%s (%p) overlap", desc_, one.name, one.of.data, desc_,
                other.name, other.of.data);
  }

  const char *desc_;
  std::vector<access> all_;
  std::vector<const given_heads *> owners_;  // of each
};

}  // namespace

void submit_attention(context &on, const sg_attention_desc &d, const char *name, checked_submit &order,
                      sg_job **out_job) {
  const given_heads all[] = {{"q", d.q, operand_name::b, d.heads, d.queries, d.width},
                             {"k", d.k, operand_name::a, d.kv_heads, d.keys, d.width},
                             {"v", d.v, operand_name::bias, d.kv_heads, d.keys, d.value_width},
                             {"o", d.o, operand_name::c, d.heads, d.queries, d.value_width}};
  const given_heads &o = all[3];
  check_sizes(d, name);
  check_options(d, name);
  for (const given_heads &each : all) check_strides(each, name);
  attention_form form = sizes_of(d);
  for (const given_heads &each : all) head_bytes(form, each.strides(), each.heads, each.tokens, each.width);
  require_separate_tokens(o, d.batch, name);
  require_supported(on, d.dtype, d.mask, false, name);
  problem_binding where;
  where.alpha.re = scale_of(d);
  const bool is_empty = d.batch == 0 || d.heads == 0 || d.queries == 0 || d.value_width == 0;
  std::shared_ptr<const program> plan;
  head_accesses accesses(name);
  if (!is_empty) {
    for (const given_heads &each : all) {
      bind_heads(on, each, form, name, where);
      accesses.add(each, form, &each == &o);
    }
    form.by_device = has_kernel(on, form);
    plan = program_for(on, form_of<attention_form>(form), order);
  }
  if (order.records()) order.note(SG_OPERATION_ATTENTION, form_of<attention_form>(form), name);
  ref<job> work = on.new_job();
  if (!plan) return order.go(std::move(work), nullptr, 0, out_job);
  work->give_schedule(plan);
  work->operands.first = where;
  order.go(std::move(work), accesses.all().data(), accesses.all().size(), out_job);
}

void submit_attention_backward(context &on, const sg_attention_backward_desc &d, const char *name,
                               checked_submit &order, sg_job **out_job) {
  const given_heads inputs[] = {{"q", d.q, operand_name::b, d.heads, d.queries, d.width},
                                {"k", d.k, operand_name::a, d.kv_heads, d.keys, d.width},
                                {"v", d.v, operand_name::bias, d.kv_heads, d.keys, d.value_width},
                                {"d_o", d.d_o, operand_name::c, d.heads, d.queries, d.value_width}};
  const given_heads results[] = {{"dq", d.dq, operand_name::b, d.heads, d.queries, d.width},
                                 {"dk", d.dk, operand_name::a, d.kv_heads, d.keys, d.width},
                                 {"dv", d.dv, operand_name::bias, d.kv_heads, d.keys, d.value_width}};
  check_sizes(d, name);
  check_options(d, name);
  require_supported(on, d.dtype, d.mask, true, name);
  attention_form form = sizes_of(d);
  const auto bytes_of = [&](const given_heads &x) { return head_bytes(form, x.strides(), x.heads, x.tokens, x.width); };
  bool *const computes[] = {&form.computes_dq, &form.computes_dk, &form.computes_dv};
  bool has_results = false;
  for (std::size_t i = 0; i < std::size(results); ++i) {
    if (!results[i].of.data) continue;
    check_strides(results[i], name);
    require_separate_tokens(results[i], d.batch, name);
    has_results |= *computes[i] = bytes_of(results[i]) > 0;
  }
  problem_binding where[attention_backward_problems];
  where[0].alpha.re = scale_of(d);
  std::shared_ptr<const program> plan;
  head_accesses accesses(name);
  if (has_results) {
    const auto add = [&](const given_heads &x, std::size_t group, bool writes) {
      bind_heads(on, x, form, name, where[group]);
      accesses.add(x, form, writes);
    };
    for (const given_heads &each : inputs) check_strides(each, name), add(each, 0, false);
    for (std::size_t i = 0; i < std::size(results); ++i)
      if (*computes[i]) add(results[i], 1, true);
    plan = program_for(on, form_of<attention_backward_form>({form}), order);
  }
  if (order.records()) order.note(SG_OPERATION_ATTENTION_BACKWARD, form_of<attention_backward_form>({form}), name);
  ref<job> work = on.new_job();
  if (!plan) return order.go(std::move(work), nullptr, 0, out_job);
  work->give_schedule(plan);
  work->operands.first = where[0];
  work->operands.others.assign(where + 1, where + attention_backward_problems);
  order.go(std::move(work), accesses.all().data(), accesses.all().size(), out_job);
}

}  // namespace sg

sg_status sg_attention_backward_async(sg_context *context, const sg_attention_backward_desc *desc,
                                      const sg_submit *submit, sg_job **out_job) {
  return sg::submit_desc(context, desc, sg_attention_backward_desc(SG_ATTENTION_BACKWARD_DESC_INIT), submit, out_job,
                         sg::submit_attention_backward);
}

sg_status sg_attention_backward(sg_context *context, const sg_attention_backward_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait(
      [&](sg_job **out_job) { return sg_attention_backward_async(context, desc, submit, out_job); });
}

sg_status sg_attention_async(sg_context *context, const sg_attention_desc *desc, const sg_submit *submit,
                             sg_job **out_job) {
  return sg::submit_desc(context, desc, sg_attention_desc(SG_ATTENTION_DESC_INIT), submit, out_job,
                         sg::submit_attention);
}

sg_status sg_attention(sg_context *context, const sg_attention_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) { return sg_attention_async(context, desc, submit, out_job); });
}
