// SPDX-License-Identifier: Apache-2.0
// streamgemm info: the library, its backends and its devices.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "format.hpp"
#include "library.hpp"
#include "verbs.hpp"

namespace sg::cli {

namespace {

// The measured figures that a context on the device would plan with, or why it would not; null if none are requested.
json calibration_of(sg_context *context) {
  return json::parse(model_of(context))["sources"].value("calibration", json());
}

const char *class_name(sg_link_class of) {
  switch (of) {
    case SG_LINK_HOST: return "host";
    case SG_LINK_PCIE: return "pcie";
    case SG_LINK_NVLINK: return "nvlink";
    case SG_LINK_UNKNOWN: break;
  }
  return "unknown";
}

json peers_of(const sg_device_info &info) {
  json list = json::array();
  for (std::int32_t i = 0; i < info.peer_count; ++i) {
    const sg_device_peer &peer = info.peers[i];
    list.push_back({{"name", peer.name},
                    {"index", peer.index},
                    {"class", class_name(peer.link_class)},
                    {"links", peer.links},
                    {"bytes_per_second", peer.bytes_per_second}});
  }
  return list;
}

// "cuda:1: 18 NVLinks, 478 GB/s"
std::string peer_text(const json &peer) {
  const std::string name = peer["name"], link_class = peer["class"];
  const int links = peer["links"];
  std::string text = name + ": ";
  if (link_class == "host")
    text += "through the host";
  else if (link_class == "nvlink")
    text += std::to_string(links) + (links == 1 ? " NVLink" : " NVLinks");
  else
    text += link_class == "pcie" ? "PCIe" : "direct";
  return peer["bytes_per_second"] > 0 ? text + ", " + format_rate(peer["bytes_per_second"], "B/s") : text;
}

// What can run at the same time.
const char *overlap_of(const sg_device_info &info) {
  if (info.unified_memory) return "no copies: the device computes in host memory";
  if (info.copy_engines <= 0) return "none: a copy and a GEMM run one after the other";
  return info.copy_engines == 1 ? "copies of one direction at a time beside GEMMs"
                                : "copies in both directions beside GEMMs";
}

json to_json(const sg_device_info &info) {
  return {{"name", info.name},
          {"uuid", info.uuid},
          {"description", info.description},
          {"memory_bytes", info.memory_bytes},
          {"unified_memory", info.unified_memory != 0},
          {"compute_units", info.compute_units},
          {"compute_lanes", info.compute_lanes},
          {"copy_engines", info.copy_engines},
          {"overlap", overlap_of(info)},
          {"priorities", info.priorities},
          {"link_in_bytes_per_second", info.link_in_bytes_per_second},
          {"link_out_bytes_per_second", info.link_out_bytes_per_second},
          {"memory_bytes_per_second", info.memory_bytes_per_second},
          {"mig", info.mig},
          {"nvlinks", info.nvlinks},
          {"nvlink_bytes_per_second", info.nvlink_bytes_per_second},
          {"peers", peers_of(info)}};
}

// Each device of a context.
json of_context(const std::string &name) {
  const context_handle context = open_context({.device = name});
  std::int32_t count = 0;
  check(sg_context_device_count(context.get(), &count), "the number of devices");
  json all = json::array();
  for (std::int32_t i = 0; i < count; ++i) {
    sg_device_info info = SG_DEVICE_INFO_INIT;
    check(sg_context_get_device_info(context.get(), i, &info), "device information");
    all.push_back(to_json(info));
  }
  if (const json calibration = calibration_of(context.get()); !calibration.is_null())
    all[0]["calibration"] = calibration;
  return all;
}

json backends() {
  std::int32_t count = 0;
  check(sg_backend_count(&count), "backends");
  json list = json::array();
  for (std::int32_t i = 0; i < count; ++i) {
    sg_backend_info info = SG_BACKEND_INFO_INIT;
    check(sg_backend_get_info(i, &info), "backend");
    list.push_back(
        {{"name", info.name}, {"available", info.available != 0}, {"reason", info.reason}, {"origin", info.origin}});
  }
  return list;
}

json devices() {
  std::int32_t count = 0;
  check(sg_device_count(&count), "devices");
  json list = json::array();
  for (std::int32_t i = 0; i < count; ++i) {
    sg_device_info info = SG_DEVICE_INFO_INIT;
    check(sg_device_get_info(i, &info), "device");
    list.push_back(std::getenv("SG_CALIBRATION") ? of_context(info.name)[0] : to_json(info));
  }
  return list;
}

void print_info_text(const json &all) {
  std::printf("StreamGEMM %s\n", all["version"].get<std::string>().c_str());
  for (const json &backend : all["backends"])
    std::printf("backend %-6s %s\n", backend["name"].get<std::string>().c_str(),
                backend["available"] ? backend["origin"].get<std::string>().c_str()
                                     : ("not available: " + backend["reason"].get<std::string>()).c_str());
  for (const json &device : all["devices"]) {
    std::printf("device  %-10s %s\n", device["name"].get<std::string>().c_str(),
                device["description"].get<std::string>().c_str());
    if (const std::string uuid = device["uuid"]; !uuid.empty()) std::printf("        %s\n", uuid.c_str());
    std::printf("        %s, %d compute units, %d lanes", format_bytes(device["memory_bytes"].get<double>()).c_str(),
                device["compute_units"].get<int>(), device["compute_lanes"].get<int>());
    if (!device["unified_memory"].get<bool>())
      std::printf(", %d copy engines, link in %s, out %s", device["copy_engines"].get<int>(),
                  format_rate(device["link_in_bytes_per_second"], "B/s").c_str(),
                  format_rate(device["link_out_bytes_per_second"], "B/s").c_str());
    std::printf("\n        overlap: %s\n", device["overlap"].get<std::string>().c_str());
    if (const std::string mig = device["mig"]; !mig.empty()) {
      const int links = device["nvlinks"];
      std::printf("        MIG %s, %s NVLinks", mig.c_str(), links < 0 ? "unknown" : std::to_string(links).c_str());
      if (device["nvlink_bytes_per_second"] > 0)
        std::printf(" of %s together", format_rate(device["nvlink_bytes_per_second"], "B/s").c_str());
      for (const json &peer : device["peers"]) std::printf("; %s", peer_text(peer).c_str());
      std::printf("\n");
    }
    if (device.contains("calibration"))
      std::printf("        calibration: %s\n", device["calibration"].get<std::string>().c_str());
  }
}

}  // namespace

void add_info(CLI::App &app) {
  struct options {
    std::string device;
    bool json = false, model = false;
  };
  auto given = std::make_shared<options>();
  CLI::App *verb = app.add_subcommand("info", "Show the library, its backends and its devices");
  verb->add_option("--device", given->device, "Only this device, or these, e.g. cpu, cuda:0, cuda:0,1, sim:h200x2");
  verb->add_flag("--json", given->json, "Print JSON");
  verb->add_flag("--model", given->model, "Only the model that a context on the device plans with, as JSON");
  verb->footer("Example: streamgemm info --device sim:h200");
  verb->callback([given] {
    if (given->model) {
      print_json(json::parse(model_of(open_context({.device = given->device.empty() ? "auto" : given->device}).get())));
      return;
    }
    json all = {{"version", sg_version_string()}, {"backends", backends()}};
    all["devices"] = given->device.empty() ? devices() : of_context(given->device);
    if (given->json)
      print_json(all);
    else
      print_info_text(all);
  });
}

}  // namespace sg::cli
