// SPDX-License-Identifier: Apache-2.0
#include "model/device_model.hpp"

#include "model/object_reader.hpp"

namespace sg {
namespace {

constexpr double most_rate = object_reader::most_rate, most_seconds = 10.0;

void read_link(object_reader link, device_model &m) {
  m.link_in = link.number("in_bytes_per_second", 1, most_rate);
  m.link_out = link.number("out_bytes_per_second", 1, most_rate);
  m.link_in_both = link.number("both_ways_in_bytes_per_second", 1, most_rate);
  m.link_out_both = link.number("both_ways_out_bytes_per_second", 1, most_rate);
  m.pageable_in = link.number("pageable_in_bytes_per_second", 1, most_rate);
  m.pageable_out = link.number("pageable_out_bytes_per_second", 1, most_rate);
  m.copy_latency = link.number("copy_latency_seconds", 0, most_seconds);
  m.copy_gap = link.number("copy_gap_seconds", 0, most_seconds);
  link.rows("runs", [&](object_reader &row) {
    const double before = m.runs.empty() ? 0.0 : m.runs.back().run_bytes;
    m.runs.push_back({row.number("run_bytes", before + 1, 1e12), row.number("one_way_bytes_per_second", 1, most_rate),
                      row.number("both_ways_bytes_per_second", 1, most_rate), row.number_or("far_factor", 0.01, 1, 1),
                      row.number_or("far_both_ways_factor", 0.01, 1, 1)});
  });
  link.finish();
}

void read_kernels(object_reader kernels, device_model &m) {
  m.launch_latency = kernels.number("launch_latency_seconds", 0, most_seconds);
  m.launch_gap = kernels.number("launch_gap_seconds", 0, most_seconds);
  m.units = std::int32_t(kernels.integer("units", 1, 1 << 20));
  m.tile_m = kernels.integer("tile_m_elements", 1, 1 << 20);
  m.tile_n = kernels.integer("tile_n_elements", 1, 1 << 20);
  m.split_k = kernels.integer("split_k_elements", 0, 1 << 30);
  m.memory_rate = kernels.number("memory_bytes_per_second", 1, most_rate);
  kernels.rows("gemm", [&](object_reader &row) {
    gemm_rate rate;
    rate.type = sg_dtype(row.enumerator("dtype", SG_DTYPE_F64, SG_DTYPE_F8_E5M2, [](int v) {
      return v == SG_DTYPE_I32 ? "" : name_of(sg_dtype(v));  // for results only
    }));
    rate.compute = sg_compute(
        row.enumerator("compute", SG_COMPUTE_EXACT, SG_COMPUTE_F8, [](int v) { return name_of(sg_compute(v)); }));
    rate.flops_per_second = row.number("flops_per_second", 1, 1e21);
    rate.tile_m = row.integer_or("tile_m_elements", 1, 1 << 20, m.tile_m);
    rate.tile_n = row.integer_or("tile_n_elements", 1, 1 << 20, m.tile_n);
    rate.split_k = row.integer_or("split_k_elements", 0, 1 << 30, m.split_k);
    m.rates.push_back(rate);
  });
  kernels.finish();
}

void read_dispatch(object_reader dispatch, device_model &m) {
  dispatch_limits &d = m.dispatch;
  d.small_in_flight = std::int32_t(dispatch.integer_or("small_in_flight_commands", 1, 4096, d.small_in_flight));
  d.large_in_flight = std::int32_t(dispatch.integer_or("large_in_flight_commands", 1, 4096, d.large_in_flight));
  d.worth_a_launch = dispatch.number_or("launch_fills", 0, 1e6, d.worth_a_launch);
  d.worth_a_launch_seconds = dispatch.number_or("launch_work_seconds", 0, most_seconds, d.worth_a_launch_seconds);
  d.between_launches_seconds =
      dispatch.number_or("between_launches_seconds", 0, most_seconds, d.between_launches_seconds);
  d.beside_each_other_seconds =
      dispatch.number_or("beside_each_other_seconds", 0, most_seconds, d.beside_each_other_seconds);
  d.spared_units = std::int32_t(dispatch.integer_or("spared_units", 0, 1 << 20, d.spared_units));
  dispatch.finish();
}

}  // namespace

std::vector<staging_rate> read_staging(object_reader &from, std::int32_t most_workers) {
  std::vector<staging_rate> all;
  from.rows("staging", [&](object_reader &row) {
    const std::int64_t before = all.empty() ? 0 : all.back().workers;
    staging_rate &added = all.emplace_back();
    added.workers = std::int32_t(row.integer("workers", before + 1, most_workers));
    added.bytes_per_second = row.number("bytes_per_second", 1, most_rate);
    added.unpacking = row.number_or("unpack_bytes_per_second", 1, most_rate, 0);
    added.both_ways = row.number_or("both_ways_bytes_per_second", 1, most_rate, 0);
  });
  return all;
}

device_model read_device_model(object_reader root) {
  device_model m;
  m.name = root.text("name");
  m.unified_memory = root.boolean("unified_memory");
  m.lanes_are_cores = root.boolean("lanes_are_cores");
  m.memory_bytes = root.integer("memory_bytes", 1, std::int64_t(1) << 52);
  m.compute_lanes = std::int32_t(root.integer("compute_lanes", 1, 1024));
  m.lane_depth = std::int32_t(root.integer("lane_depth_commands", 1, 4096));
  read_kernels(root.object("kernels"), m);
  if (!m.unified_memory) {
    m.copy_engines = std::int32_t(root.integer("copy_engines", 1, 2));
    if (root.find("stream_queues"))
      m.queues = stream_queues(root.enumerator("stream_queues", 0, 2, [](int v) { return name_of(stream_queues(v)); }));
    m.staging_workers = std::int32_t(root.integer("staging_workers", 1, 256));
    m.numa_node = std::int32_t(root.integer_or("numa_node", -1, 1023, -1));
    read_link(root.object("link"), m);
    m.staging = read_staging(root, 256);
    if (m.staging.empty()) throw error(SG_STATUS_INVALID_ARGUMENT, "device model: 'staging' needs at least one row");
    m.staging_gap = root.number_or("staging_gap_seconds", 0, most_seconds, 0);
    m.staging_run_bytes = root.number_or("staging_run_bytes", 0, 1 << 20, 0);
  }
  if (root.find("dispatch")) read_dispatch(root.object("dispatch"), m);
  if (const json_tree *sources = root.find("sources")) {
    object_reader reader = root.object("sources");
    for (const std::string &key : sources->keys) m.sources.emplace_back(key, reader.text(key, 1000));
  }
  if (root.find("calibrated")) {
    object_reader reader = root.object("calibrated");
    m.calibrated_device = reader.text("device", 4096);
    m.calibrated_date = reader.text("date");
    reader.finish();
  }
  root.finish();
  return m;
}

device_model parse_device_model(const std::string &text) {
  const json_tree value = parse_json(text, "device model");
  return read_device_model(object_reader("device model", value, ""));
}

}  // namespace sg
