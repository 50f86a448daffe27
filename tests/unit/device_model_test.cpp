// SPDX-License-Identifier: Apache-2.0
// Shipped models are read; each error in a model is refused by name.
#include "model/device_model.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "problems.hpp"

namespace sg::test {
namespace {

using nlohmann::json;

std::string shipped_text(const std::string &name) {
  std::ifstream file(std::string(SG_MODELS_DIR) + "/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string refusal(const std::string &text) {
  try {
    parse_device_model(text);
  } catch (const error &e) {
    EXPECT_EQ(e.status(), SG_STATUS_INVALID_ARGUMENT);
    return e.what();
  }
  return "";
}

TEST(device_model, the_numa_node_is_known_or_not) {
  json text = json::parse(shipped_text("h200"));
  EXPECT_EQ(-1, parse_device_model(text.dump()).numa_node);
  text["numa_node"] = 1;
  const device_model near = parse_device_model(text.dump());
  EXPECT_EQ(1, near.numa_node);
  EXPECT_EQ(near, parse_device_model(model_text(near)));
  text["numa_node"] = 1024;
  EXPECT_THROW(parse_device_model(text.dump()), error);
}

TEST(device_model, shipped_models_are_read) {
  for (const char *name : {"h200", "a100", "pcie3", "c1060", "c2050", "k20"}) {
    const device_model m = shipped_model(name);
    EXPECT_EQ(m.name, name);
    EXPECT_FALSE(m.unified_memory);
    EXPECT_GT(m.memory_bytes, std::int64_t(2) << 30);
    EXPECT_FALSE(m.runs.empty());
    EXPECT_FALSE(m.staging.empty());
    EXPECT_TRUE(json::parse(shipped_text(name)).contains("sources"));
  }
  EXPECT_EQ(shipped_model("h200").link_in, 55.0e9);
  EXPECT_EQ(shipped_model("h200").queues, stream_queues::own);
  EXPECT_EQ(shipped_model("c1060").queues, stream_queues::serial);
  EXPECT_EQ(shipped_model("c2050").queues, stream_queues::shared);
}

TEST(device_model, written_as_it_is_read) {
  for (const char *name : {"h200", "a100", "pcie3", "c1060", "c2050"}) {
    device_model m = shipped_model(name);
    m.calibrated_device = "sim:\"x\"";
    m.calibrated_date = "2026-01-01";
    const device_model again = parse_device_model(model_text(m));
    // A row's own tiles are written out even if they equal the device's.
    EXPECT_EQ(again, m) << model_text(m);
  }
  device_model m = shipped_model("h200");
  m.link_in *= 1 + 1e-15;
  EXPECT_EQ(parse_device_model(model_text(m)).link_in, m.link_in) << "to the last digit";
}

TEST(device_model, unified_memory_needs_no_link) {
  const device_model m = parse_device_model(R"({"name": "cpu", "unified_memory": true, "lanes_are_cores": true,
      "memory_bytes": 1e9, "compute_lanes": 2, "lane_depth_commands": 2,
      "kernels": {"launch_latency_seconds": 1e-6, "launch_gap_seconds": 1e-6, "units": 1, "tile_m_elements": 1,
                  "tile_n_elements": 1, "split_k_elements": 0, "memory_bytes_per_second": 1e10,
                  "gemm": [{"dtype": "f64", "compute": "exact", "flops_per_second": 1e10}]}})");
  EXPECT_TRUE(m.unified_memory);
  EXPECT_TRUE(m.lanes_are_cores);
  EXPECT_EQ(m.compute_lanes, 2);
}

// Calls visit(path, owner, key) for every key of the model except the free texts of its sources.
template <class Visit>
void for_keys(json &value, const std::string &path, Visit &&visit) {
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) for_keys(value[i], path + "[" + std::to_string(i) + "]", visit);
  if (!value.is_object()) return;
  std::vector<std::string> keys;
  for (const auto &[key, inner] : value.items()) keys.push_back(key);
  for (const std::string &key : keys) {
    if (key == "sources") continue;
    const std::string inner = path.empty() ? key : path + "." + key;
    visit(inner, value, key);
    for_keys(value[key], inner, visit);
  }
}

// Optional keys: of a row of kernels.gemm, which then uses the device's own figure.
bool is_optional(const std::string &path) {
  if (path == "staging_gap_seconds" || path == "staging_run_bytes" || path.starts_with("dispatch") ||
      path.ends_with(".far_factor") || path.ends_with(".far_both_ways_factor"))
    return true;
  return path.starts_with("kernels.gemm[") &&
         (path.ends_with(".tile_m_elements") || path.ends_with(".tile_n_elements") ||
          path.ends_with(".split_k_elements"));
}

TEST(device_model, each_key_is_needed_and_checked) {
  json model = json::parse(shipped_text("h200"));
  int keys = 0;
  for_keys(model, "", [&](const std::string &path, json &owner, const std::string &key) {
    const json kept = owner[key];
    owner.erase(key);
    if (is_optional(path))
      EXPECT_EQ(refusal(model.dump()), "") << path;
    else
      EXPECT_NE(refusal(model.dump()).find("'" + path + "' is missing"), std::string::npos) << path;
    owner[key] = nullptr;
    EXPECT_NE(refusal(model.dump()).find(path), std::string::npos) << path;
    if (kept.is_number()) {
      owner[key] = -1;
      EXPECT_NE(refusal(model.dump()).find(path), std::string::npos) << path;
      owner[key] = 1e300;
      EXPECT_NE(refusal(model.dump()).find(path), std::string::npos) << path;
      owner[key] = "8";
      EXPECT_NE(refusal(model.dump()).find(path), std::string::npos) << path;
    }
    owner[key] = kept;
    owner["unheard_of"] = 1;
    EXPECT_NE(refusal(model.dump()).find("unheard_of' is not a known key"), std::string::npos) << path;
    owner.erase("unheard_of");
    ++keys;
  });
  EXPECT_GT(keys, 80);
  EXPECT_EQ(refusal(model.dump()), "");
}

TEST(device_model, hostile_texts_are_refused) {
  EXPECT_NE(refusal(""), "");
  EXPECT_NE(refusal("[]").find("must be an object"), std::string::npos);
  EXPECT_NE(refusal("{\"name\": \"x\""), "");
  EXPECT_NE(refusal("{\"name\": \"\xff\"}"), "");
  EXPECT_NE(refusal(std::string(100000, '[')).find("nested"), std::string::npos);
  EXPECT_NE(refusal(std::string(2 << 20, ' ')).find("longer"), std::string::npos);
  std::string many = "[0";
  for (int i = 0; i < 30000; ++i) many += ",0";
  EXPECT_NE(refusal(many + "]").find("more than 20000 values"), std::string::npos);
  EXPECT_NE(refusal(R"({"a": {"name": 1, "x": 2, "name": 1}})").find("'name' is given twice"), std::string::npos);
  EXPECT_NE(refusal(R"({"name": 1e400})"), "");
  json model = json::parse(shipped_text("h200"));
  model["name"] = std::string(1000, 'x');
  EXPECT_NE(refusal(model.dump()).find("name"), std::string::npos);
  model["name"] = "x";
  model["link"]["runs"] = json::array();
  for (int i = 1; i <= 300; ++i)
    model["link"]["runs"].push_back(
        {{"run_bytes", i}, {"one_way_bytes_per_second", 1}, {"both_ways_bytes_per_second", 1}});
  EXPECT_NE(refusal(model.dump()).find("link.runs"), std::string::npos);
  model["link"]["runs"] = {{{"run_bytes", 64}, {"one_way_bytes_per_second", 1}, {"both_ways_bytes_per_second", 1}},
                           {{"run_bytes", 64}, {"one_way_bytes_per_second", 1}, {"both_ways_bytes_per_second", 1}}};
  EXPECT_NE(refusal(model.dump()).find("link.runs[1].run_bytes"), std::string::npos);  // not growing
}

}  // namespace
}  // namespace sg::test
