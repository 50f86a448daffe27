// SPDX-License-Identifier: Apache-2.0
// Descriptions of a schedule, as text and as JSON.
#include "plan/schedule/describe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "plan/planner.hpp"
#include "plan/schedule/lanes.hpp"
#include "problems.hpp"

namespace sg::test {
namespace {

struct described {
  device_model model = shipped_model("h200");
  schedule s;
  described() {
    problem_form f;
    f.m = 1500, f.n = 1400, f.k = 1300;
    f.a = f.b = f.c = SG_MEMORY_PAGEABLE;
    s = *make_gemm_plan({make(f)}, model, {});
  }
};

TEST(describe, json_matches_the_schedule) {
  const described d;
  const auto json = nlohmann::json::parse(describe_json(d.s, machine_model{.devices = {d.model}}));
  EXPECT_EQ(json["strategy"], d.s.strategy);
  EXPECT_EQ(json["device"], "h200");
  EXPECT_EQ(json["predicted_seconds"], d.s.predicted_seconds);
  EXPECT_EQ(json["bound_seconds"], d.s.bound_seconds);
  EXPECT_DOUBLE_EQ(json["ratio"], d.s.predicted_seconds / d.s.bound_seconds);
  EXPECT_EQ(json["device_bytes"], d.s.device_bytes);
  std::size_t commands = 0;
  for (const auto &count : json["commands"]) commands += count.get<std::size_t>();
  EXPECT_EQ(commands, d.s.commands.size());
  EXPECT_GT(json["tiles"]["m"].get<int>(), 0);
  EXPECT_GT(json["lanes"]["staging"].get<int>(), 0);
}

TEST(describe, json_escapes_names_and_numbers) {
  described d;
  d.model.name = "a \"b\" \\ \n\t\x01 \u00e9";
  d.s.flops = 3;
  d.s.bytes_in = 1e300;
  d.s.bytes_out = -1.0 / 3;
  d.s.bound_seconds = HUGE_VAL;
  const auto json = nlohmann::json::parse(describe_json(d.s, machine_model{.devices = {d.model}}));
  EXPECT_EQ(json["device"], d.model.name);
  EXPECT_TRUE(json["flops"].is_number_float());
  EXPECT_EQ(json["flops"], 3.0);
  EXPECT_EQ(json["bytes_in"], 1e300);
  EXPECT_EQ(json["bytes_out"], -1.0 / 3);
  EXPECT_TRUE(json["bound_seconds"].is_null());
}

TEST(describe, text_names_the_figures) {
  const described d;
  const std::string text = describe_text(d.s, machine_model{.devices = {d.model}});
  for (const char *word : {"strategy", "tile", "lanes", "commands", "memory", "predicted", "bound", "ratio", "h200"})
    EXPECT_NE(text.find(word), std::string::npos) << word;
}

TEST(describe, json_has_every_command_with_its_time_and_waits) {
  const described d;
  const auto commands = nlohmann::json::parse(describe_json(d.s, machine_model{.devices = {d.model}}))["timeline"];
  ASSERT_EQ(commands.size(), d.s.commands.size());
  double latest = 0;
  std::size_t waits = 0, gemms = 0;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    EXPECT_LE(commands[i]["start_seconds"], commands[i]["end_seconds"]);
    latest = std::max(latest, commands[i]["end_seconds"].get<double>());
    ASSERT_EQ(commands[i]["after"].size(), d.s.commands[i].waits);
    std::uint32_t next = d.s.commands[i].first_wait;
    for (const std::size_t before : commands[i]["after"]) {
      ASSERT_EQ(before, d.s.waits[next++]);
      EXPECT_GE(commands[i]["start_seconds"], commands[before]["end_seconds"]);
      ++waits;
    }
    if (commands[i]["lane"].get<std::string>().starts_with("compute"))
      gemms += commands[i]["action"].get<std::string>().starts_with("gemm");
  }
  EXPECT_EQ(latest, d.s.predicted_seconds);
  EXPECT_GT(waits, 0u);
  EXPECT_GT(gemms, 0u);
}

TEST(describe, timeline_has_a_row_for_each_lane_and_worker) {
  const described d;
  const timeline t = simulate(d.s, d.model);
  for (int columns : {1, 10, 72, 500}) {
    const std::string picture = timeline_text(d.s, t, 0, columns);
    const int lanes = lane_numbers(t.commands).count();
    EXPECT_GE(lanes, 4);
    EXPECT_EQ(std::count(picture.begin(), picture.end(), '\n'), lanes + 1);
    EXPECT_EQ(picture.find('\n'), std::size_t(columns) + 14);
  }
}

}  // namespace
}  // namespace sg::test
