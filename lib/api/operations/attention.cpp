// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/attention.hpp"

#include <streamgemm/attention.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "api/entry.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

namespace {

head_strides strides_of(const sg_heads &x) noexcept { return {x.batch_stride, x.head_stride, x.token_stride}; }

// One operand of an attention, or a mask, whose tokens are queries and whose elements are keys.
struct given_heads {
  const char *name;
  const sg_heads &of;
  attention_parameter which;
  std::int64_t heads, tokens, width;
  sg_dtype type;
  bool repeats = false;  // all of its tokens may be the same

  head_strides strides() const noexcept { return strides_of(of); }
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
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->heads is %lld and @%s->kv_heads is %lld, which does not divide it",
                desc, static_cast<long long>(d.heads), desc, static_cast<long long>(d.kv_heads));
}

template <class Desc>
void check_options(const Desc &d, const char *desc) {
  if (d.mask < SG_MASK_NONE || d.mask > SG_MASK_CAUSAL_FROM_END)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->mask is %d, which is no mask", desc, int{d.mask});
  const std::int64_t most_offset = d.mask == SG_MASK_NONE ? 0 : std::int64_t{1} << 60;
  require_range(d.mask_offset, -most_offset, most_offset, (std::string(desc) + "->mask_offset").c_str());
  require_range(d.window, 0, std::int64_t{1} << 60, (std::string(desc) + "->window").c_str());
  if (d.window > 0 && d.mask == SG_MASK_NONE)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->window is %lld and @%s->mask is none; a window needs a causal mask",
                desc, static_cast<long long>(d.window), desc);
  if (!std::isfinite(d.scale))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->scale is %g; it must be finite", desc, d.scale);
  if (!is_layer_dtype(d.dtype))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->dtype is %s; it must be f64, f32, f16 or bf16", desc,
                type_text(d.dtype).c_str());
  if (d.compute < SG_COMPUTE_EXACT || d.compute > SG_COMPUTE_F8 || !is_compute_of(d.dtype, d.compute))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->compute is %d, which is no compute of %s operands", desc,
                int{d.compute}, name_of(d.dtype));
  if (d.workspace > static_cast<std::uint64_t>(INT64_MAX))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->workspace is %llu; it must be at most %lld", desc,
                static_cast<unsigned long long>(d.workspace), static_cast<long long>(INT64_MAX));
}

void check_strides(const given_heads &x, const char *desc) {
  const std::pair<const char *, std::int64_t> strides[] = {
      {"batch_stride", x.of.batch_stride}, {"head_stride", x.of.head_stride}, {"token_stride", x.of.token_stride}};
  for (const auto &[name, stride] : strides)
    require_range(stride, 0, INT64_MAX, (std::string(desc) + "->" + x.name + "." + name).c_str());
  if (x.tokens > 1 && x.of.token_stride < x.width && !(x.repeats && x.of.token_stride == 0))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.token_stride is %lld; a %s has %lld %s", desc, x.name,
                static_cast<long long>(x.of.token_stride), x.repeats ? "query" : "token",
                static_cast<long long>(x.width), x.repeats ? "keys" : "elements");
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
      throw error(SG_STATUS_INVALID_ARGUMENT,
                  "tokens of @%s->%s overlap: a stride is %lld, and %lld elements are there", desc, o.name,
                  static_cast<long long>(stride), static_cast<long long>(reach));
    reach += (count - 1) * stride;
  }
}

// A causal limit from the end of the sequences is a known one if all of them have the descriptor's lengths.
template <class Desc>
void set_masks(attention_form &f, const Desc &d) {
  const bool has_lengths = d.query_lengths || d.key_lengths, from_end = d.mask == SG_MASK_CAUSAL_FROM_END;
  f.causal = d.mask == SG_MASK_CAUSAL || (from_end && !has_lengths);
  f.mask_offset = d.mask_offset + (from_end && !has_lengths ? d.keys - d.queries : 0);
  if (d.batch == 0 || d.heads == 0 || d.queries == 0 || d.keys == 0) return;
  attention_masks &m = f.masks;
  m.has_query_lengths = d.query_lengths, m.has_key_lengths = d.key_lengths;
  m.from_end = from_end && has_lengths, m.window = d.window;
  if ((m.has_bias = d.bias.data)) m.bias = strides_of(d.bias);
  if ((m.has_visible = d.visible.data)) m.visible = strides_of(d.visible);
}

template <class Desc>
attention_form sizes_of(const Desc &d) {
  attention_form f;
  f.batch = d.batch, f.heads = d.heads, f.kv_heads = d.kv_heads;
  f.queries = d.queries, f.keys = d.keys, f.width = d.width, f.value_width = d.value_width;
  f.q = strides_of(d.q), f.k = strides_of(d.k), f.v = strides_of(d.v);
  f.type = d.dtype, f.compute = d.compute;
  set_masks(f, d);
  f.workspace = static_cast<std::int64_t>(d.workspace);
  if constexpr (std::is_same_v<Desc, sg_attention_desc>)
    f.o = strides_of(d.o);
  else
    f.dout = strides_of(d.dout), f.dq = strides_of(d.dq), f.dk = strides_of(d.dk), f.dv = strides_of(d.dv);
  return f;
}

template <class Desc>
double scale_of(const Desc &d) {
  return d.scale != 0 ? d.scale : d.width > 0 ? 1 / std::sqrt(static_cast<double>(d.width)) : 1;
}

void require_supported(const context &on, const attention_form &f, bool gradients, const char *desc) {
  const sg_dtype type = f.type;
  auto softmax = backend_command<sg_backend_softmax>();
  softmax.type = type;
  softmax.mask = f.causal ? SG_MASK_CAUSAL : SG_MASK_NONE;
  if (accumulator_of(type) != type) softmax.x_type = accumulator_of(type);
  auto gradient = backend_command<sg_backend_softmax_backward>();
  gradient.type = type;
  gradient.dy_type = accumulator_of(type);
  if (!on.on().supports(softmax.header) || (gradients && !on.on().supports(gradient.header)))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->dtype is %s; device %.64s has no softmax of it", desc, name_of(type),
                on.on().name().c_str());
  auto mask = backend_command<sg_backend_score_mask>();
  mask.type = accumulator_of(type), mask.bias_type = type;
  if (f.masks.exist() && !on.on().supports(mask.header))
    throw error(SG_STATUS_UNSUPPORTED,
                "@%s has a bias, visible keys, lengths or a window, which device %.64s does not have", desc,
                on.on().name().c_str());
}

// The sizes and strides of a command, without addresses.
template <class Command>
Command command_of(const attention_form &f, const ops::attention &what, double scale) {
  auto made = backend_command<Command>();
  const auto heads = [](const head_strides &x) { return sg_backend_heads{nullptr, x.batch, x.head, x.token}; };
  made.batch = what.batch, made.heads = what.heads, made.kv_heads = what.kv_heads;
  made.queries = what.queries, made.keys = what.keys, made.width = what.width, made.value_width = what.value_width;
  made.mask_offset = what.mask_offset;
  made.mask = what.causal ? SG_MASK_CAUSAL : SG_MASK_NONE;
  made.type = f.type;
  made.scale = scale;
  made.q = heads(what.of_q), made.k = heads(what.of_k), made.v = heads(what.of_v);
  return made;
}

// The form as its command has it: operands of the host are copied to the device, without gaps.
template <class Form>
Form on_device(const Form &f) {
  Form made = f;
  host_operands moved;
  visit_operands(made, [&moved](const stored_array &x, memory_space &space) { moved.move(x, space); });
  return made;
}

// Commands have no masks but a causal one whose limit is known.
bool is_one_command(const context &on, const attention_form &given, double scale) {
  if (given.masks.exist()) return false;
  const attention_form f = on_device(given);
  auto wanted = command_of<sg_backend_attention>(f, fused(f), scale);
  wanted.o = {nullptr, f.o.batch, f.o.head, f.o.token};
  return on.on().supports(wanted.header);
}

bool is_one_command(const context &on, const attention_backward_form &given, const sg_attention_backward_desc &d,
                    double scale) {
  if (given.masks.exist()) return false;
  const attention_backward_form f = on_device(given);
  auto wanted = command_of<sg_backend_attention_backward>(f, fused(f), scale);
  const auto heads = [](const sg_heads &x, const head_strides &strides) {
    return sg_backend_heads{x.data, strides.batch, strides.head, strides.token};
  };
  wanted.dout = heads(d.dout, f.dout);
  if (f.computes_dq) wanted.dq = heads(d.dq, f.dq);
  if (f.computes_dk) wanted.dk = heads(d.dk, f.dk);
  if (f.computes_dv) wanted.dv = heads(d.dv, f.dv);
  return on.on().supports(wanted.header);
}

// Adds an operand; nothing if it has no elements.
void add_heads(operand_set &to, const given_heads &x, attention_form &f, const char *desc, access_mode mode) {
  const std::int64_t size = size_of(x.type);
  operand span;  // one column
  span.rows = head_elements(f, x.strides(), x.heads, x.tokens, x.width);
  span.cols = 1;
  span.ld = std::max<std::int64_t>(1, span.rows);
  span.type = x.type;
  if (span.rows == 0) return;
  const sg_matrix view{x.of.data, span.rows, 1, 0, x.type, SG_LAYOUT_COLUMN_MAJOR};
  operand_set::rules rules;
  rules.mode = mode;
  rules.set = {x.of.data,
               x.width * size,
               {{{f.batch, x.of.batch_stride * size},
                 {x.heads, x.of.head_stride * size},
                 {x.tokens, x.of.token_stride * size}}}};
  to.add(static_cast<std::size_t>(x.which), {desc, x.name, view, nullptr, 0, ".data", &x.of.data}, span, rules);
  f.spaces[static_cast<std::size_t>(x.which)] = span.space;
}

template <class Desc>
std::array<given_heads, 2> masks_of(const Desc &d) {
  return {{{"bias", d.bias, attention_parameter::bias, d.heads, d.queries, d.keys, d.dtype, true},
           {"visible", d.visible, attention_parameter::visible, d.heads, d.queries, d.keys, SG_DTYPE_I8, true}}};
}

template <class Desc>
void check_masks(const Desc &d, const char *desc) {
  for (const given_heads &each : masks_of(d))
    if (each.of.data) check_strides(each, desc);
}

// Of a descriptor with elements in a result.
template <class Desc>
void add_masks(operand_set &to, const Desc &d, attention_form &f, const char *desc) {
  for (const given_heads &each : masks_of(d))
    if (each.of.data) add_heads(to, each, f, desc, access_mode::read);
  const auto add_lengths = [&](const char *name, const std::int32_t *const &given, attention_parameter which) {
    const auto index = static_cast<std::size_t>(which);
    operand span{d.batch, 1, d.batch, 0, SG_DTYPE_I32, SG_MEMORY_DEVICE, false};
    to.add(index, given_values(desc, name, given, d.batch, 1, SG_DTYPE_I32), span, {});
    f.spaces[index] = span.space;
  };
  using enum attention_parameter;
  if (f.masks.has_query_lengths) add_lengths("query_lengths", d.query_lengths, query_lengths);
  if (f.masks.has_key_lengths) add_lengths("key_lengths", d.key_lengths, key_lengths);
}

}  // namespace

void submit(context &on, const sg_attention_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_heads all[] = {{"q", d.q, attention_parameter::q, d.heads, d.queries, d.width, d.dtype},
                             {"k", d.k, attention_parameter::k, d.kv_heads, d.keys, d.width, d.dtype},
                             {"v", d.v, attention_parameter::v, d.kv_heads, d.keys, d.value_width, d.dtype},
                             {"o", d.o, attention_parameter::o, d.heads, d.queries, d.value_width, d.dtype}};
  const given_heads &o = all[3];
  check_sizes(d, name);
  check_options(d, name);
  for (const given_heads &each : all) check_strides(each, name);
  check_masks(d, name);
  attention_form form = sizes_of(d);
  for (const given_heads &each : all) head_elements(form, each.strides(), each.heads, each.tokens, each.width);
  require_separate_tokens(o, d.batch, name);
  require_supported(on, form, false, name);
  const bool is_empty = d.batch == 0 || d.heads == 0 || d.queries == 0 || d.value_width == 0;
  operand_set operands(on, order.place_of_absent());
  operands.set_scalars(scale_of(d), 0);
  if (!is_empty) {
    for (const given_heads &each : all)
      add_heads(operands, each, form, name, &each == &o ? access_mode::write : access_mode::read);
    add_masks(operands, d, form, name);
  }
  form.by_device = !is_empty && form.keys > 0 && is_one_command(on, form, scale_of(d));
  // A device may have the command for one scale and not for another; an update may change the scale.
  attention_form fixed = form;
  fixed.by_device = false, fixed.mask_offset = 0;  // updates may change the offset
  const form_of<attention_form> kept(fixed);
  submit_operands(on, operands, d, name, {SG_OPERATION_ATTENTION, form_of<attention_form>(form), is_empty, &kept},
                  usual_request(order), order, out_job);
}

void submit(context &on, const sg_attention_backward_desc &d, const char *name, checked_submit &order,
            sg_job **out_job) {
  const given_heads inputs[] = {{"q", d.q, attention_parameter::q, d.heads, d.queries, d.width, d.dtype},
                                {"k", d.k, attention_parameter::k, d.kv_heads, d.keys, d.width, d.dtype},
                                {"v", d.v, attention_parameter::v, d.kv_heads, d.keys, d.value_width, d.dtype},
                                {"dout", d.dout, attention_parameter::o, d.heads, d.queries, d.value_width, d.dtype}};
  const given_heads results[] = {{"dq", d.dq, attention_parameter::dq, d.heads, d.queries, d.width, d.dtype},
                                 {"dk", d.dk, attention_parameter::dk, d.kv_heads, d.keys, d.width, d.dtype},
                                 {"dv", d.dv, attention_parameter::dv, d.kv_heads, d.keys, d.value_width, d.dtype}};
  check_sizes(d, name);
  check_options(d, name);
  attention_form form = sizes_of(d);
  require_supported(on, form, true, name);
  const auto elements_of = [&](const given_heads &x) {
    return head_elements(form, x.strides(), x.heads, x.tokens, x.width);
  };
  bool *const computes[] = {&form.computes_dq, &form.computes_dk, &form.computes_dv};
  bool has_results = false;
  for (std::size_t i = 0; i < std::size(results); ++i) {
    if (!results[i].of.data) continue;
    check_strides(results[i], name);
    require_separate_tokens(results[i], d.batch, name);
    has_results |= *computes[i] = elements_of(results[i]) > 0;
  }
  operand_set operands(on, order.place_of_absent());
  operands.set_scalars(scale_of(d), 0);
  check_masks(d, name);
  if (has_results) {
    for (const given_heads &each : inputs)
      check_strides(each, name), add_heads(operands, each, form, name, access_mode::read);
    for (std::size_t i = 0; i < std::size(results); ++i)
      if (*computes[i]) add_heads(operands, results[i], form, name, access_mode::write);
    add_masks(operands, d, form, name);
  }
  form.by_device = has_results && form.keys > 0 && form.queries > 0 &&
                   is_one_command(on, attention_backward_form{form}, d, scale_of(d));
  attention_backward_form fixed{form};
  fixed.by_device = false, fixed.mask_offset = 0;  // updates may change the offset
  const form_of<attention_backward_form> kept(fixed);
  submit_operands(on, operands, d, name,
                  {SG_OPERATION_ATTENTION_BACKWARD, form_of<attention_backward_form>({form}), !has_results, &kept},
                  usual_request(order), order, out_job);
}

}  // namespace sg
