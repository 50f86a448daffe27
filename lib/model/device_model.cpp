// SPDX-License-Identifier: Apache-2.0
#include "model/device_model.hpp"

#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/json_tree.hpp"

namespace sg {
namespace {

constexpr std::size_t max_rows = 256;

// Reader of one JSON object; keys that are never read are reported as unknown.
class object_reader {
 public:
  object_reader(const json_tree &object, std::string path) : object_(object), path_(std::move(path)) {
    if (object.is != json_tree::kind::object)
      throw error(SG_STATUS_INVALID_ARGUMENT, "device model: '%.100s' must be an object",
                  path_.empty() ? "the whole text" : path_.c_str());
  }

  std::string path_of(const std::string &key) const { return path_.empty() ? key : path_ + "." + key; }

  const json_tree *find(const std::string &key) {
    taken_.insert(key);
    return object_.find(key);
  }

  const json_tree &need(const std::string &key) {
    if (const json_tree *value = find(key)) return *value;
    throw error(SG_STATUS_INVALID_ARGUMENT, "device model: '%.100s' is missing", path_of(key).c_str());
  }

  double number(const std::string &key, double least, double most) { return checked(need(key), key, least, most); }

  std::int64_t integer(const std::string &key, std::int64_t least, std::int64_t most) {
    const double value = number(key, double(least), double(most));
    if (value != std::floor(value))
      throw error(SG_STATUS_INVALID_ARGUMENT, "device model: '%.100s' must be a whole number", path_of(key).c_str());
    return std::int64_t(value);
  }

  std::int64_t integer_or(const std::string &key, std::int64_t least, std::int64_t most, std::int64_t otherwise) {
    return find(key) ? integer(key, least, most) : otherwise;
  }

  bool boolean(const std::string &key) {
    const json_tree &value = need(key);
    if (value.is != json_tree::kind::boolean)
      throw error(SG_STATUS_INVALID_ARGUMENT, "device model: '%.100s' must be true or false", path_of(key).c_str());
    return value.truth;
  }

  std::string text(const std::string &key, std::size_t most_bytes = 64) {
    const json_tree &value = need(key);
    if (value.is != json_tree::kind::text || value.text.size() > most_bytes)
      throw error(SG_STATUS_INVALID_ARGUMENT, "device model: '%.100s' must be a text of at most %zu bytes",
                  path_of(key).c_str(), most_bytes);
    return value.text;
  }

  // Calls row(reader) for each object of an array.
  template <class Row>
  void rows(const std::string &key, Row &&row) {
    const json_tree &array = need(key);
    if (array.is != json_tree::kind::array || array.items.size() > max_rows)
      throw error(SG_STATUS_INVALID_ARGUMENT, "device model: '%.100s' must be an array of at most %zu objects",
                  path_of(key).c_str(), max_rows);
    for (std::size_t i = 0; i < array.items.size(); ++i) {
      object_reader reader(array.items[i], path_of(key) + "[" + std::to_string(i) + "]");
      row(reader);
      reader.finish();
    }
  }

  void finish() const {
    for (const std::string &key : object_.keys)
      if (!taken_.count(key))
        throw error(SG_STATUS_INVALID_ARGUMENT, "device model: '%.100s' is not a known key", path_of(key).c_str());
  }

 private:
  double checked(const json_tree &value, const std::string &key, double least, double most) const {
    const double number = value.is == json_tree::kind::number ? value.number : std::nan("");
    if (!(number >= least && number <= most))
      throw error(SG_STATUS_INVALID_ARGUMENT, "device model: '%.100s' must be a number from %g to %g",
                  path_of(key).c_str(), least, most);
    return number;
  }

  const json_tree &object_;
  std::string path_;
  std::set<std::string> taken_;
};

template <class Name>
int enum_of(object_reader &row, const std::string &key, int first, int last, Name &&name) {
  const std::string text = row.text(key);
  for (int value = first; value <= last; ++value)
    if (text == name(value)) return value;
  throw error(SG_STATUS_INVALID_ARGUMENT, "device model: '%.100s' names nothing known: '%.40s'",
              row.path_of(key).c_str(), text.c_str());
}

constexpr double most_rate = 1e18, most_seconds = 10.0;

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
                      row.number("both_ways_bytes_per_second", 1, most_rate)});
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
    rate.type = sg_dtype(enum_of(row, "dtype", SG_DTYPE_F64, SG_DTYPE_F8_E5M2, [](int v) {
      return v == SG_DTYPE_I32 ? "" : name_of(sg_dtype(v));  // for results only
    }));
    rate.compute = sg_compute(
        enum_of(row, "compute", SG_COMPUTE_EXACT, SG_COMPUTE_F8, [](int v) { return name_of(sg_compute(v)); }));
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
  const auto number_or = [&](const char *key, double most, double otherwise) {
    return dispatch.find(key) ? dispatch.number(key, 0, most) : otherwise;
  };
  d.small_in_flight = std::int32_t(dispatch.integer_or("small_in_flight_commands", 1, 4096, d.small_in_flight));
  d.large_in_flight = std::int32_t(dispatch.integer_or("large_in_flight_commands", 1, 4096, d.large_in_flight));
  d.worth_a_launch = number_or("launch_fills", 1e6, d.worth_a_launch);
  d.worth_a_launch_seconds = number_or("launch_work_seconds", most_seconds, d.worth_a_launch_seconds);
  d.between_launches_seconds = number_or("between_launches_seconds", most_seconds, d.between_launches_seconds);
  d.beside_each_other_seconds = number_or("beside_each_other_seconds", most_seconds, d.beside_each_other_seconds);
  d.spared_units = std::int32_t(dispatch.integer_or("spared_units", 0, 1 << 20, d.spared_units));
  dispatch.finish();
}

}  // namespace

device_model parse_device_model(const std::string &text) {
  const json_tree value = parse_json(text, "device model");
  object_reader root(value, "");
  device_model m;
  m.name = root.text("name");
  m.unified_memory = root.boolean("unified_memory");
  m.lanes_are_cores = root.boolean("lanes_are_cores");
  m.memory_bytes = root.integer("memory_bytes", 1, std::int64_t(1) << 52);
  m.compute_lanes = std::int32_t(root.integer("compute_lanes", 1, 1024));
  m.lane_depth = std::int32_t(root.integer("lane_depth_commands", 1, 4096));
  read_kernels(object_reader(root.need("kernels"), "kernels"), m);
  if (!m.unified_memory) {
    m.copy_engines = std::int32_t(root.integer("copy_engines", 1, 2));
    m.staging_workers = std::int32_t(root.integer("staging_workers", 1, 256));
    read_link(object_reader(root.need("link"), "link"), m);
    root.rows("staging", [&](object_reader &row) {
      const std::int64_t before = m.staging.empty() ? 0 : m.staging.back().workers;
      m.staging.push_back(
          {std::int32_t(row.integer("workers", before + 1, 256)), row.number("bytes_per_second", 1, most_rate)});
    });
    if (m.staging.empty()) throw error(SG_STATUS_INVALID_ARGUMENT, "device model: 'staging' needs at least one row");
    if (root.find("staging_gap_seconds")) m.staging_gap = root.number("staging_gap_seconds", 0, most_seconds);
    if (root.find("staging_run_bytes")) m.staging_run_bytes = root.number("staging_run_bytes", 0, 1 << 20);
  }
  if (const json_tree *dispatch = root.find("dispatch")) read_dispatch(object_reader(*dispatch, "dispatch"), m);
  if (const json_tree *sources = root.find("sources")) {
    object_reader reader(*sources, "sources");
    for (const std::string &key : sources->keys) m.sources.emplace_back(key, reader.text(key, 1000));
  }
  if (const json_tree *calibrated = root.find("calibrated")) {
    object_reader reader(*calibrated, "calibrated");
    m.calibrated_device = reader.text("device", 4096);
    m.calibrated_date = reader.text("date");
    reader.finish();
  }
  root.finish();
  return m;
}

}  // namespace sg
