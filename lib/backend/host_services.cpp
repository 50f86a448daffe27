// SPDX-License-Identifier: Apache-2.0
// The planner's device model and costs, as a backend may use them.
#include <algorithm>
#include <iterator>
#include <vector>

#include "backend/device.hpp"
#include "base/error.hpp"
#include "plan/cost.hpp"
#include "plan/model/device_model.hpp"

struct sg_backend_model {
  sg::device_model parsed;
};

namespace sg {

namespace {

sg_status model_parse(const char *json, sg_backend_model **out, char *message) {
  *out = nullptr;
  const sg_status status = guarded([&] { *out = new sg_backend_model{parse_device_model(json)}; });
  if (status != SG_STATUS_OK) copy_text(message, SG_BACKEND_MESSAGE_SIZE, last_error());
  return status;
}

void model_free(sg_backend_model *model) { delete model; }

// A cost that the model does not know is negative.
template <class Cost>
double known_cost(Cost &&cost) noexcept {
  double seconds = -1;
  guarded([&] { seconds = cost(); });
  return seconds;
}

double copy_time(const sg_backend_model *model, const sg_backend_copy *copy, int32_t both_ways) {
  const device_model &m = model->parsed;
  if (copy->to_device && copy->from_device)  // never crosses the link: each byte is read and written by the chip
    return m.launch_gap + 2.0 * double(copy->width) * double(copy->height) / m.memory_rate;
  const copy_shape shape{copy->width, copy->height, copy->dst_pitch, copy->src_pitch, copy->to_device != 0};
  return known_cost([&] { return copy_seconds(m, shape, both_ways != 0); });
}

gemm_shape shape_of(const sg_backend_gemm &g) {
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

double gemm_time(const sg_backend_model *model, const sg_backend_gemm *gemm) {
  return known_cost([&] { return gemm_seconds(model->parsed, shape_of(*gemm)); });
}

double group_time(const sg_backend_model *model, const sg_backend_gemm *items, int32_t count) {
  return known_cost([&] {
    std::vector<gemm_shape> shapes;
    shapes.reserve(static_cast<std::size_t>(count));
    std::transform(items, items + count, std::back_inserter(shapes), shape_of);
    return group_seconds(model->parsed, shapes);
  });
}

double reduce_time(const sg_backend_model *model, const sg_backend_reduce *reduce) {
  const reduce_shape shape{reduce->m,         reduce->n,        reduce->parts_count,
                           reduce->part_type, reduce->out_type, reduce->beta.re != 0 || reduce->beta.im != 0};
  return known_cost([&] { return reduce_seconds(model->parsed, shape); });
}

int32_t copy_engines(const sg_backend_model *model) { return model->parsed.copy_engines; }

uint64_t memory_bytes(const sg_backend_model *model) { return static_cast<uint64_t>(model->parsed.memory_bytes); }

int32_t compute_units(const sg_backend_model *model) { return model->parsed.units; }

constexpr sg_backend_host table = {
    .struct_size = sizeof(sg_backend_host),
    .model_parse = model_parse,
    .model_free = model_free,
    .copy_seconds = copy_time,
    .gemm_seconds = gemm_time,
    .reduce_seconds = reduce_time,
    .copy_engines = copy_engines,
    .memory_bytes = memory_bytes,
    .compute_units = compute_units,
    .group_seconds = group_time,
};

}  // namespace

const sg_backend_host *host_services() noexcept { return &table; }

}  // namespace sg
