// SPDX-License-Identifier: Apache-2.0
#include "ops/score_mask.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::score_mask;

access_mode access(const command &, std::size_t view) {
  return view == score_mask::scores ? access_mode::read_write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &scores = command.views[score_mask::scores], &bias = command.views[score_mask::bias];
  if (!scores.exists() || scores.items != 1) return "a mask of scores has scores of one item";
  const sg_dtype type = type_of(buffers, scores);
  if (bias.exists() && accumulator_of(type_of(buffers, bias)) != type)
    return "the type of a bias does not fit the scores";
  const view &visible = command.views[score_mask::visible];
  if (visible.exists() && type_of(buffers, visible) != SG_DTYPE_I8) return "visible keys are bytes";
  for (const std::size_t lengths : {score_mask::query_lengths, score_mask::key_lengths}) {
    const view &each = command.views[lengths];
    if (each.exists() && type_of(buffers, each) != SG_DTYPE_I32) return "the lengths of sequences are i32";
  }
  const score_mask &what = *command.as<score_mask>();
  return what.item_rows > 0 && scores.cols % what.item_rows == 0 ? nullptr
                                                                 : "the rows of scores are not those of their items";
}

// The scores are read and written; of a bias and of the visible keys as many elements are read.
double bytes(double elements, sg_dtype type, sg_dtype bias, bool has_visible) {
  return elements * (2 * double(size_of(type)) + (bias != 0 ? double(size_of(bias)) : 0) + (has_visible ? 1 : 0));
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const view &scores = command.views[score_mask::scores], &bias = command.views[score_mask::bias];
  return memory_bound_cost(
      model, bytes(double(scores.rows) * double(scores.cols), type_of(buffers, scores),
                   bias.exists() ? type_of(buffers, bias) : sg_dtype{}, command.views[score_mask::visible].exists()));
}

std::string describe(const buffer_list &, const command &c) {
  return "mask of scores" + shape_text(c.views[score_mask::scores]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const score_mask &from = *command.as<score_mask>();
  const view &scores = command.views[score_mask::scores], &bias = command.views[score_mask::bias];
  const auto address = [&](std::size_t index) {
    const view &v = command.views[index];
    return v.exists() ? address_of(buffers, v, where, v.item) : nullptr;
  };
  const auto heads = [&](std::size_t index, const head_strides &x) {
    return sg_backend_heads{address(index), x.batch, x.head, x.token};
  };
  auto made = backend_command<sg_backend_score_mask>();
  made.rows = scores.cols, made.cols = scores.rows;
  made.type = type_of(buffers, scores);
  made.bias_type = bias.exists() ? type_of(buffers, bias) : made.type;
  made.scores = address(score_mask::scores), made.scores_row = scores.ld;
  made.item_rows = from.item_rows, made.first_item = from.first_item, made.first_row = from.first_row;
  made.first_head = from.first_head, made.first_key = from.first_key;
  made.heads = from.heads, made.kv_heads = from.kv_heads, made.queries = from.queries, made.keys = from.keys;
  made.bias = heads(score_mask::bias, from.of_bias), made.visible = heads(score_mask::visible, from.of_visible);
  made.query_lengths = reinterpret_cast<const std::int32_t *>(address(score_mask::query_lengths));
  made.key_lengths = reinterpret_cast<const std::int32_t *>(address(score_mask::key_lengths));
  made.mask = from.mask, made.mask_offset = from.mask_offset, made.window = from.window;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_score_mask>(command);
  const double moved =
      bytes(double(x.rows) * double(x.cols), x.type, x.bias.data ? x.bias_type : sg_dtype{}, x.visible.data != nullptr);
  return model.launch_gap + memory_bound_kernel(model, moved).seconds;
}

}  // namespace

constinit const operation ops::score_mask::entry{"mask of scores",      access, defect, cost, describe, lower,
                                                 SG_BACKEND_SCORE_MASK, seconds};

}  // namespace sg
