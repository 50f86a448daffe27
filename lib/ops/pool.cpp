// SPDX-License-Identifier: Apache-2.0
#include "ops/pool.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::pool;

access_mode access(const command &, std::size_t view) {
  return view == pool::result ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const pool &w = *command.as<pool>();
  const view &result = command.views[pool::result], &x = command.views[pool::x], &dy = command.views[pool::dy];
  if (!result.exists()) return "a pooling has a result";
  const auto is_image = [&](const view &v, std::int64_t elements) {
    return v.items == 1 && v.rows == elements && v.cols == result.cols &&
           type_of(buffers, v) == type_of(buffers, result);
  };
  const bool is_gradient = dy.exists();
  if (!is_image(result, is_gradient ? w.span_of_image() : w.pooled())) return "the result of a pooling does not fit";
  if (is_gradient && !is_image(dy, w.pooled())) return "dY of a pooling does not fit";
  if (x.exists() != (!is_gradient || w.pooling == SG_POOLING_MAX))
    return "a pooling reads X unless it is an average's gradient";
  return !x.exists() || is_image(x, w.span_of_image()) ? nullptr : "X of a pooling does not fit";
}

double elements_of(const view &v) { return v.exists() ? double(v.rows) * double(v.cols) : 0; }

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  double elements = 0;
  for (const view &each : command.views) elements += elements_of(each);
  return memory_bound_cost(model, elements * double(size_of(type_of(buffers, command.views[pool::result]))));
}

std::string describe(const buffer_list &, const command &c) {
  return (c.views[pool::dy].exists() ? "pool gradient" : "pool") + shape_text(c.views[pool::result]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const pool &from = *command.as<pool>();
  const view &result = command.views[pool::result], &x = command.views[pool::x], &dy = command.views[pool::dy];
  const view &pooled = dy.exists() ? dy : result;
  auto made = backend_command<sg_backend_pool>();
  made.of = lower_images(from, x.exists() ? x : result);
  made.y_image = pooled.ld;
  made.y_channel = from.channels_last ? 1 : from.positions_of_image();
  made.y_pixel = from.channels_last ? from.channels : 1;
  made.y_row = made.y_pixel * from.out_w;
  if (x.exists()) made.x = address_of(buffers, x, where, x.item);
  void *const to = address_of(buffers, result, where, result.item);
  if (dy.exists()) {
    made.dy = address_of(buffers, dy, where, dy.item);
    made.dx = to;
    made.dx_image = result.ld;
  } else {
    made.y = to;
  }
  made.type = type_of(buffers, result);
  made.pooling = from.pooling;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_pool>(command);
  const sg_backend_windows &w = x.of;
  const double pixels = double(w.height) * w.width, pooled = double(w.out_h) * w.out_w;
  const double of_image = pixels * ((x.x ? 1 : 0) + (x.dx ? 1 : 0)) + pooled;
  const double bytes = double(w.images) * double(w.channels) * of_image * double(size_of(x.type));
  return model.launch_gap + memory_bound_kernel(model, bytes).seconds;
}

}  // namespace

constinit const operation ops::pool::entry{"pool", access, defect, cost, describe, lower, SG_BACKEND_POOL, seconds};

}  // namespace sg
