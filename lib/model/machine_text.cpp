// SPDX-License-Identifier: Apache-2.0
// Reads and writes a machine model as text.
#include <algorithm>

#include "base/json_writer.hpp"
#include "model/machine_model.hpp"
#include "model/object_reader.hpp"

namespace sg {
namespace {

constexpr const char *kind_of_text = "machine model";
constexpr std::int32_t most_cores = 1 << 16;

const char *name_of_class(int value) {
  switch (value) {
    case SG_LINK_HOST: return "host";
    case SG_LINK_PCIE: return "pcie";
    case SG_LINK_NVLINK: return "nvlink";
    default: return "unknown";
  }
}

class machine_reader {
 public:
  explicit machine_reader(object_reader root) : root_(std::move(root)) {}

  machine_model read() {
    m_.name = root_.text("name");
    root_.rows("devices", [&](object_reader &row) { read_devices(row); });
    if (m_.devices.empty()) refuse("devices", "needs at least one device");
    if (root_.find("peers")) root_.rows("peers", [&](object_reader &row) { read_peer(row); });
    if (root_.find("shared")) root_.rows("shared", [&](object_reader &row) { read_shared(row); });
    if (root_.find("host")) read_host(root_.object("host"));
    root_.finish();
    return std::move(m_);
  }

 private:
  [[noreturn]] static void refuse(const std::string &path, const char *why) {
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s: '%.100s' %s", kind_of_text, path.c_str(), why);
  }

  void read_devices(object_reader &row) {
    const std::int64_t count = row.integer_or("count", 1, std::int64_t(most_devices), 1);
    const json_tree &model = row.need("model");
    if (model.is != json_tree::kind::object) refuse(row.path_of("model"), "must be a device model");
    if (m_.devices.size() + std::size_t(count) > most_devices) refuse("devices", "has more than 256 devices");
    m_.devices.insert(m_.devices.end(), std::size_t(count),
                      read_device_model(object_reader("device model", model, row.path_of("model"))));
  }

  // Ascending, at least two, each once.
  std::vector<device_index> devices_of(object_reader &row, const char *key, std::size_t least) {
    std::vector<device_index> all;
    for (const std::int64_t each : row.integers(key, 0, std::int64_t(m_.devices.size()) - 1))
      all.push_back(device_index(each));
    std::sort(all.begin(), all.end());
    if (all.size() < least || std::adjacent_find(all.begin(), all.end()) != all.end())
      refuse(row.path_of(key),
             least > 1 ? "must name at least two devices, each once" : "must name devices, each once");
    return all;
  }

  // "between": each pair of these devices.
  void read_peer(object_reader &row) {
    const std::vector<device_index> between = devices_of(row, "between", 2);
    device_link link;
    link.link_class = sg_link_class(row.enumerator("class", SG_LINK_UNKNOWN, SG_LINK_NVLINK, name_of_class));
    link.links = std::int32_t(row.integer_or("links", 0, 1024, 0));
    link.bytes_per_second = row.number("bytes_per_second", 0, object_reader::most_rate);
    if (row.find("reason")) link.reason = row.text("reason", 512);
    for (std::size_t i = 0; i < between.size(); ++i)
      for (std::size_t j = i + 1; j < between.size(); ++j) {
        link.first = between[i], link.second = between[j];
        if (m_.link_between(link.first, link.second)) refuse(row.path_of("between"), "names a pair for a second time");
        m_.links.push_back(link);
      }
  }

  void read_shared(object_reader &row) {
    shared_limit limit{row.text("name"), devices_of(row, "devices", 1)};
    const auto rate = [&](const char *key) { return row.number_or(key, 0, object_reader::most_rate, 0); };
    limit.in = rate("in"), limit.out = rate("out"), limit.sum = rate("sum");
    for (const shared_limit &other : m_.shared) {
      std::vector<device_index> both;
      std::set_intersection(limit.devices.begin(), limit.devices.end(), other.devices.begin(), other.devices.end(),
                            std::back_inserter(both));
      if (!both.empty() && both != limit.devices && both != other.devices)
        refuse(row.path_of("devices"), "overlaps another set; sets are nested or disjoint");
    }
    m_.shared.push_back(std::move(limit));
  }

  void read_host(object_reader host) {
    host.rows("nodes", [&](object_reader &row) {
      m_.nodes.push_back({std::int32_t(row.integer("cores", 1, most_cores)), devices_of(row, "devices", 0)});
    });
    if (host.find("staging")) m_.staging = read_staging(host, most_cores);
    host.finish();
  }

  object_reader root_;
  machine_model m_;
};

void write_devices(json_writer &json, const char *key, const std::vector<device_index> &devices) {
  std::vector<std::uint32_t> all;
  for (const device_index each : devices) all.push_back(std::uint32_t(number_of(each)));
  json.member(key, std::span<const std::uint32_t>(all));
}

}  // namespace

machine_model parse_machine_model(const std::string &text) {
  const json_tree value = parse_json(text, kind_of_text);
  return machine_reader(object_reader(kind_of_text, value, "")).read();
}

std::string machine_text(const machine_model &m) {
  json_writer json;
  json.member("name", std::string_view(m.name));
  json.begin_list("devices");
  for (std::size_t i = 0, next = 0; i < m.devices.size(); i = next) {
    for (next = i + 1; next < m.devices.size() && m.devices[next] == m.devices[i];) ++next;
    json.begin_item();
    json.begin("model");
    write_device_model(json, m.devices[i]);
    json.end();
    json.member("count", std::int64_t(next - i));
    json.end();
  }
  json.end_list();
  json.begin_list("peers");
  for (const device_link &link : m.links) {
    json.begin_item();
    write_devices(json, "between", {link.first, link.second});
    json.member("class", std::string_view(name_of_class(link.link_class)));
    json.member("links", std::int64_t{link.links});
    json.member("bytes_per_second", link.bytes_per_second);
    if (!link.reason.empty()) json.member("reason", std::string_view(link.reason));
    json.end();
  }
  json.end_list();
  json.begin_list("shared");
  for (const shared_limit &limit : m.shared) {
    json.begin_item();
    json.member("name", std::string_view(limit.name));
    write_devices(json, "devices", limit.devices);
    json.member("in", limit.in);
    json.member("out", limit.out);
    json.member("sum", limit.sum);
    json.end();
  }
  json.end_list();
  json.begin("host");
  json.begin_list("nodes");
  for (const host_node &node : m.nodes) {
    json.begin_item();
    json.member("cores", std::int64_t{node.cores});
    write_devices(json, "devices", node.devices);
    json.end();
  }
  json.end_list();
  write_staging(json, m.staging);
  json.end();
  return json.take();
}

}  // namespace sg
