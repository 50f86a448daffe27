// SPDX-License-Identifier: Apache-2.0
// The planner's device model and command costs as services for backends.
#include <algorithm>
#include <iterator>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "devices/device.hpp"
#include "model/device_model.hpp"
#include "model/rates.hpp"
#include "ops/operation.hpp"

struct sg_backend_model {
  sg::device_model parsed;
};

struct sg_backend_machine {
  explicit sg_backend_machine(const sg::machine_model &of) : limits(of) {}
  sg::machine_limits limits;
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

// An unknown cost is negative.
template <class Cost>
double known_cost(Cost &&cost) noexcept {
  double seconds = -1;
  guarded([&] { seconds = cost(); });
  return seconds;
}

double command_seconds(const sg_backend_model *model, const sg_backend_command *command, int32_t both_ways) {
  if (command->kind == SG_BACKEND_MARKER) return 0;
  return known_cost([&] {
    for (const operation *each : operations())
      if (each->seconds && each->lowered == command->kind)
        return each->seconds(model->parsed, *command, both_ways != 0);
    return -1.0;
  });
}

double batch_seconds(const sg_backend_model *model, const sg_backend_command *const *gemms, int32_t count) {
  return known_cost([&] {
    std::vector<gemm_shape> shapes;
    shapes.reserve(static_cast<std::size_t>(count));
    std::transform(gemms, gemms + count, std::back_inserter(shapes), [](const sg_backend_command *each) {
      return shape_of_gemm(reinterpret_cast<const sg_backend_gemm &>(*each));
    });
    return group_seconds(model->parsed, shapes);
  });
}

int32_t copy_engines(const sg_backend_model *model) { return model->parsed.copy_engines; }

uint64_t memory_bytes(const sg_backend_model *model) { return static_cast<uint64_t>(model->parsed.memory_bytes); }

int32_t compute_units(const sg_backend_model *model) { return model->parsed.units; }

sg_status machine_parse(const char *json, sg_backend_machine **out, char *message) {
  *out = nullptr;
  const sg_status status = guarded([&] { *out = new sg_backend_machine(parse_machine_model(json)); });
  if (status != SG_STATUS_OK) copy_text(message, SG_BACKEND_MESSAGE_SIZE, last_error());
  return status;
}

void machine_free(sg_backend_machine *machine) { delete machine; }

int32_t limit_count(const sg_backend_machine *machine) { return int32_t(machine->limits.all().size()); }

double limit_rate(const sg_backend_machine *machine, int32_t limit) {
  return machine->limits.all()[std::size_t(limit)].bytes_per_second;
}

int32_t limit_crossings(const sg_backend_machine *machine, int32_t limit, int32_t from, int32_t to) {
  const machine_limits &limits = machine->limits;
  if (from < 0 && to < 0) return 0;
  const machine_limits::path path = from < 0 ? limits.in(device_index(to))
                                    : to < 0 ? limits.out(device_index(from))
                                             : limits.peer(device_index(from), device_index(to));
  return int32_t(std::count(path.begin(), path.end(), limit));
}

double peer_rate(const sg_backend_machine *machine, int32_t from, int32_t to) {
  return machine->limits.peer_rate(device_index(from), device_index(to));
}

log_level level_of(sg_backend_log_level level) noexcept {
  switch (level) {
    case SG_BACKEND_LOG_ERROR: return log_level::error;
    case SG_BACKEND_LOG_WARN: return log_level::warn;
    case SG_BACKEND_LOG_INFO: return log_level::info;
    default: return log_level::debug;
  }
}

log_area area_of(sg_backend_log_area area) noexcept {
  switch (area) {
    case SG_BACKEND_LOG_PLUGIN: return log_area::plugin;
    case SG_BACKEND_LOG_MEMORY: return log_area::memory;
    default: return log_area::fallback;
  }
}

int32_t log_enabled(sg_backend_log_level level, sg_backend_log_area area) {
  return logs(level_of(level), area_of(area)) ? 1 : 0;
}

void log(sg_backend_log_level level, sg_backend_log_area area, const char *text) {
  if (text && logs(level_of(level), area_of(area))) log_message(level_of(level), area_of(area), "%s", text);
}

constexpr sg_backend_host table = {
    .struct_size = sizeof(sg_backend_host),
    .model_parse = model_parse,
    .model_free = model_free,
    .command_seconds = command_seconds,
    .copy_engines = copy_engines,
    .memory_bytes = memory_bytes,
    .compute_units = compute_units,
    .batch_seconds = batch_seconds,
    .log_enabled = log_enabled,
    .log = log,
    .machine_parse = machine_parse,
    .machine_free = machine_free,
    .limit_count = limit_count,
    .limit_rate = limit_rate,
    .limit_crossings = limit_crossings,
    .peer_rate = peer_rate,
};

}  // namespace

const sg_backend_host *host_services() noexcept { return &table; }

}  // namespace sg
