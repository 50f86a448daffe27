// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/resident/cost.hpp"

#include <algorithm>
#include <initializer_list>

#include "ops/gemm.hpp"

namespace sg {

link_bytes bytes_over_link(const problem &p) {
  const auto on_host = [](const operand &x) { return x.space != SG_MEMORY_DEVICE; };
  link_bytes bytes;
  if (!p.no_multiply && on_host(p.a)) bytes.in += problem::bytes(p.a, p.batch);
  if (!p.no_multiply && on_host(p.b)) bytes.in += problem::bytes(p.b, p.batch);
  if (p.has_bias() && on_host(p.bias)) bytes.in += problem::bytes(p.bias, p.batch);
  if (on_host(p.c)) {
    bytes.out += problem::bytes(p.c, p.batch);
    if (!p.beta_zero) bytes.in += problem::bytes(p.c, p.batch);
  }
  return bytes;
}

namespace {

time_bound longest(std::initializer_list<time_bound> all) {
  return std::max(all, [](const time_bound &x, const time_bound &y) { return x.seconds < y.seconds; });
}

time_bound bound_of_link(const device_model &model, const link_bytes &bytes) {
  if (model.unified_memory) return {};
  return longest({{bytes.in / model.link_in, "copies in"},
                  {bytes.out / model.link_out, "copies out"},
                  {(bytes.in + bytes.out) / (model.link_in_both + model.link_out_both), "copies in and out"}});
}

}  // namespace

double link_seconds(const device_model &model, const problem &p) {
  return bound_of_link(model, bytes_over_link(p)).seconds;
}

time_bound bound_and_limit(const device_model &model, std::span<const problem> problems) {
  link_bytes bytes;
  double arithmetic_seconds = 0, memory_bytes = 0;
  const double lanes = model.lanes_are_cores ? model.compute_lanes : 1;
  for (const problem &given : problems) {
    const problem p = given.as_on_device();
    const link_bytes own = bytes_over_link(p);
    bytes.in += own.in;
    bytes.out += own.out;
    if (!p.no_multiply) {
      const double rate = gemm_rate_of(model, p.a.type, p.compute) * lanes;
      if (rate > 0) arithmetic_seconds += p.flops() / rate;
      memory_bytes += problem::bytes(p.a, p.batch) + problem::bytes(p.b, p.batch);
    }
    memory_bytes += problem::bytes(p.c, p.batch) * (p.beta_zero ? 1 : 2);
  }
  return longest({{arithmetic_seconds, "arithmetic"},
                  {memory_bytes / model.memory_rate, "device memory"},
                  bound_of_link(model, bytes)});
}

double bound_seconds(const device_model &model, std::span<const problem> problems) {
  return bound_and_limit(model, problems).seconds;
}

gemm_shape shape_of_whole(const problem &p) {
  return {p.m, p.n, p.k, p.batch, p.a.type, p.c.type, p.compute, !p.beta_zero, 0, p.has_epilogue()};
}

}  // namespace sg
