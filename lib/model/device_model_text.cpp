// SPDX-License-Identifier: Apache-2.0
// Writes a device model as text for parse_device_model.
#include "base/json_writer.hpp"
#include "model/device_model.hpp"

namespace sg {
namespace {

void write_link(json_writer &json, const device_model &m) {
  json.begin("link");
  json.member("in_bytes_per_second", m.link_in);
  json.member("out_bytes_per_second", m.link_out);
  json.member("both_ways_in_bytes_per_second", m.link_in_both);
  json.member("both_ways_out_bytes_per_second", m.link_out_both);
  json.member("pageable_in_bytes_per_second", m.pageable_in);
  json.member("pageable_out_bytes_per_second", m.pageable_out);
  json.member("copy_latency_seconds", m.copy_latency);
  json.member("copy_gap_seconds", m.copy_gap);
  json.begin_list("runs");
  for (const run_rate &row : m.runs) {
    json.begin_item();
    json.member("run_bytes", row.run_bytes);
    json.member("one_way_bytes_per_second", row.one_way);
    json.member("both_ways_bytes_per_second", row.both_ways);
    json.member("far_factor", row.far_factor);
    json.member("far_both_ways_factor", row.far_both_ways_factor);
    json.end();
  }
  json.end_list();
  json.end();
}

void write_kernels(json_writer &json, const device_model &m) {
  json.begin("kernels");
  json.member("launch_latency_seconds", m.launch_latency);
  json.member("launch_gap_seconds", m.launch_gap);
  json.member("units", std::int64_t{m.units});
  json.member("tile_m_elements", m.tile_m);
  json.member("tile_n_elements", m.tile_n);
  json.member("split_k_elements", m.split_k);
  json.member("memory_bytes_per_second", m.memory_rate);
  json.begin_list("gemm");
  for (const gemm_rate &row : m.rates) {
    json.begin_item();
    json.member("dtype", std::string_view(name_of(row.type)));
    json.member("compute", std::string_view(name_of(row.compute)));
    json.member("flops_per_second", row.flops_per_second);
    json.member("tile_m_elements", row.tile_m);
    json.member("tile_n_elements", row.tile_n);
    json.member("split_k_elements", row.split_k);
    json.end();
  }
  json.end_list();
  json.end();
}

void write_dispatch(json_writer &json, const dispatch_limits &d) {
  json.begin("dispatch");
  json.member("small_in_flight_commands", std::int64_t{d.small_in_flight});
  json.member("large_in_flight_commands", std::int64_t{d.large_in_flight});
  json.member("launch_fills", d.worth_a_launch);
  json.member("launch_work_seconds", d.worth_a_launch_seconds);
  json.member("between_launches_seconds", d.between_launches_seconds);
  json.member("beside_each_other_seconds", d.beside_each_other_seconds);
  json.member("spared_units", std::int64_t{d.spared_units});
  json.end();
}

}  // namespace

const char *name_of(stream_queues queues) noexcept {
  switch (queues) {
    case stream_queues::serial: return "serial";
    case stream_queues::shared: return "shared";
    case stream_queues::own: break;
  }
  return "own";
}

void write_staging(json_writer &json, const std::vector<staging_rate> &rates) {
  json.begin_list("staging");
  for (const staging_rate &row : rates) {
    json.begin_item();
    json.member("workers", std::int64_t{row.workers});
    json.member("bytes_per_second", row.bytes_per_second);
    if (row.unpacking > 0) json.member("unpack_bytes_per_second", row.unpacking);
    if (row.both_ways > 0) json.member("both_ways_bytes_per_second", row.both_ways);
    json.end();
  }
  json.end_list();
}

void write_device_model(json_writer &json, const device_model &m) {
  json.member("name", std::string_view(m.name));
  json.member_truth("unified_memory", m.unified_memory);
  json.member_truth("lanes_are_cores", m.lanes_are_cores);
  json.member("memory_bytes", m.memory_bytes);
  json.member("compute_lanes", std::int64_t{m.compute_lanes});
  json.member("lane_depth_commands", std::int64_t{m.lane_depth});
  write_kernels(json, m);
  if (!m.unified_memory) {
    json.member("copy_engines", std::int64_t{m.copy_engines});
    json.member("stream_queues", std::string_view(name_of(m.queues)));
    json.member("staging_workers", std::int64_t{m.staging_workers});
    if (m.numa_node >= 0) json.member("numa_node", std::int64_t{m.numa_node});
    write_link(json, m);
    write_staging(json, m.staging);
    json.member("staging_gap_seconds", m.staging_gap);
    json.member("staging_run_bytes", m.staging_run_bytes);
    write_dispatch(json, m.dispatch);
  }
  json.begin("sources");
  for (const auto &[key, text] : m.sources) json.member(key, std::string_view(text));
  json.end();
  if (!m.calibrated_device.empty()) {
    json.begin("calibrated");
    json.member("device", std::string_view(m.calibrated_device));
    json.member("date", std::string_view(m.calibrated_date));
    json.end();
  }
}

std::string model_text(const device_model &m) {
  json_writer json;
  write_device_model(json, m);
  return json.take();
}

}  // namespace sg
