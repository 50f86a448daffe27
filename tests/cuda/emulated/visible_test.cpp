// SPDX-License-Identifier: Apache-2.0
// GPUs that the process sees only some of, as CUDA_VISIBLE_DEVICES says, instances of a partitioned GPU, and a server
// that refuses the process. Each test has a process of its own, because the runtime reads the environment once.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "faults.h"
#include "support/gemm_plan.h"
#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr const char *uuid_of_gpu[] = {
    "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0", "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1",
    "GPU-02122232-4252-6272-8292-a2b2c2d2e2f2", "GPU-03132333-4353-6373-8393-a3b3c3d3e3f3"};

bool succeeds(const char *test, const std::map<std::string, std::string> &variables) {
  const pid_t child = fork();
  if (child == 0) {
    for (const auto &[name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const std::string filter = std::string("--gtest_filter=emulated_visible.DISABLED_") + test;
    execl("/proc/self/exe", "emulated_tests", "--gtest_also_run_disabled_tests", filter.c_str(), nullptr);
    _exit(127);
  }
  int state = 0;
  return waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

std::string refusal_of(const char *device, sg_status expected) {
  context opened;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = device;
  EXPECT_STATUS(expected, sg_context_create(&options, opened.out())) << device;
  return sg_last_error_message();
}

std::vector<std::string> uuids_of(const char *device) {
  const context opened = open_context(device);
  std::int32_t count = 0;
  EXPECT_OK(sg_context_device_count(opened, &count));
  std::vector<std::string> all;
  for (std::int32_t i = 0; i < count; ++i) {
    sg_device_info info = SG_DEVICE_INFO_INIT;
    EXPECT_OK(sg_context_get_device_info(opened, i, &info));
    all.push_back(info.uuid);
    sg_device_info counted = SG_DEVICE_INFO_INIT;
    for (std::int32_t d = 0; sg_device_get_info(d, &counted) == SG_STATUS_OK; ++d)
      if (std::strcmp(counted.name, info.name) == 0) break;
    EXPECT_STREQ(info.uuid, counted.uuid) << info.name << " is the name of its index";
  }
  return all;
}

void expect_product(const char *device) {
  const context opened = open_context(device);
  const double a = 3, b = 4;
  double c = 0;
  const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1, 1, 1);
  EXPECT_OK(sg_gemm(opened, &desc, nullptr)) << device;
  EXPECT_EQ(12, c) << device;
}

std::string plan_on_both(sg_context *both, sg_plan_format format) {
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.device_count = 2;
  options.place_a = options.place_b = options.place_c = SG_MEMORY_PINNED;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = desc.b = desc.c = {nullptr, 1024, 1024, 1024, SG_DTYPE_F64, SG_LAYOUT_COLUMN_MAJOR};
  sg_plan *plan = nullptr;
  EXPECT_OK(create_gemm_plan(both, &desc, &options, &plan));
  std::string text(std::size_t{1} << 20, '\0');
  EXPECT_OK(sg_plan_describe(plan, format, text.data(), text.size(), nullptr));
  EXPECT_OK(sg_plan_release(plan));
  return text.c_str();
}

TEST(emulated_visible, DISABLED_all) {
  EXPECT_EQ((std::vector<std::string>(uuid_of_gpu, uuid_of_gpu + 4)), uuids_of("cuda:all"));
}

// "2,0,1": the first one is the machine's third.
TEST(emulated_visible, DISABLED_selection) {
  const std::vector<std::string> wanted = {uuid_of_gpu[2], uuid_of_gpu[0], uuid_of_gpu[1]};
  EXPECT_EQ(wanted, uuids_of("cuda:all"));
  EXPECT_EQ(wanted, uuids_of("cuda:0-2"));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(std::vector{wanted[i]}, uuids_of(("cuda:" + std::to_string(i)).c_str()));
    EXPECT_EQ(std::vector{wanted[i]}, uuids_of(("cuda:" + wanted[i]).c_str()));
    expect_product(("cuda:" + wanted[i]).c_str());
  }
  std::string text = refusal_of(("cuda:" + std::string(uuid_of_gpu[3])).c_str(), SG_STATUS_NO_DEVICE);
  EXPECT_NE(std::string::npos, text.find(std::string(uuid_of_gpu[3]) + "\": there is no such device")) << text;
  text = refusal_of("cuda:3", SG_STATUS_NO_DEVICE);
  EXPECT_NE(std::string::npos, text.find("cuda:0 to cuda:2 are there")) << text;
  text = refusal_of("cuda:0,3", SG_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(std::string::npos, text.find("\"3\" is no device that the backend counts")) << text;
}

TEST(emulated_visible, DISABLED_none) {
  sg_backend_info info = SG_BACKEND_INFO_INIT;
  for (std::int32_t i = 0; sg_backend_get_info(i, &info) == SG_STATUS_OK; ++i)
    if (std::strcmp(info.name, "cuda") == 0) break;
  EXPECT_STREQ("cuda", info.name);
  EXPECT_EQ(0, info.available);
  EXPECT_STRNE("", info.reason);
}

TEST(emulated_visible, CUDA_VISIBLE_DEVICES_selects_and_orders) {
  EXPECT_TRUE(succeeds("all", {}));
  EXPECT_TRUE(succeeds("selection", {{"CUDA_VISIBLE_DEVICES", "2,0,1"}}));
  EXPECT_TRUE(succeeds("selection", {{"CUDA_VISIBLE_DEVICES", std::string(uuid_of_gpu[2]) + ",GPU-001,GPU-011"}}));
  EXPECT_TRUE(succeeds("selection", {{"CUDA_VISIBLE_DEVICES", "2,0,1,-1,3"}})) << "the list ends at a wrong item";
  EXPECT_TRUE(succeeds("none", {{"CUDA_VISIBLE_DEVICES", ""}}));
}

// Two instances of one GPU, of three slices and of one.
TEST(emulated_visible, DISABLED_instances) {
  const context both = open_context("cuda:all");
  std::int32_t count = 0;
  ASSERT_OK(sg_context_device_count(both, &count));
  ASSERT_EQ(2, count);
  sg_device_info infos[2] = {SG_DEVICE_INFO_INIT, SG_DEVICE_INFO_INIT};
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(sg_context_get_device_info(both, i, &infos[i]));
    EXPECT_EQ(SG_LINK_HOST, infos[i].peers[0].link_class);
    EXPECT_EQ("MIG-" + std::string(uuid_of_gpu[i] + 4), infos[i].uuid);
    EXPECT_EQ(std::vector<std::string>{infos[i].uuid}, uuids_of((std::string("cuda:") + infos[i].uuid).c_str()));
    expect_product((std::string("cuda:") + infos[i].uuid).c_str());
  }
  EXPECT_STREQ("3g.71gb", infos[0].mig);
  EXPECT_STREQ("1g.18gb", infos[1].mig);
  EXPECT_EQ(3 * infos[1].compute_units, infos[0].compute_units) << "each has a model of its own";
  EXPECT_EQ(3 * infos[1].memory_bytes, infos[0].memory_bytes);
  EXPECT_EQ(0, emulated_gpu_peer_access(0, 1) + emulated_gpu_peer_access(1, 0));
  const std::string reason =
      "no peer path between cuda:0 and cuda:1: the driver gives cuda:0 no access to the memory of cuda:1";
  for (const sg_plan_format format : {SG_PLAN_FORMAT_TEXT, SG_PLAN_FORMAT_JSON}) {
    const std::string text = plan_on_both(both, format);
    EXPECT_NE(std::string::npos, text.find(reason)) << text;
  }
  // Memory of one in a GEMM on the other, through the host.
  void *memory[2] = {};
  buffer buffers[2];
  for (int i = 0; i < 2; ++i) {
    sg_buffer_options on = SG_BUFFER_OPTIONS_INIT;
    on.device = i;
    ASSERT_OK(sg_buffer_create(both, 4 * sizeof(double), &on, buffers[i].out()));
    ASSERT_OK(sg_buffer_data(buffers[i], &memory[i]));
  }
  const double given[4] = {1, 2, 3, 4};
  double seen[4] = {};
  ASSERT_OK(sg_copy(both, memory[0], given, sizeof given, nullptr));
  const double *const a = static_cast<const double *>(memory[0]);
  const sg_gemm_desc square = make_gemm(a, a, static_cast<double *>(memory[1]), 2, 2, 2);
  ASSERT_OK(sg_gemm(both, &square, nullptr));
  ASSERT_OK(sg_copy(both, seen, memory[1], sizeof seen, nullptr));
  EXPECT_EQ((std::vector<double>{7, 10, 15, 22}), std::vector<double>(seen, seen + 4));
}

TEST(emulated_visible, instances_are_devices_without_peers) {
  EXPECT_TRUE(succeeds("instances", {{"SG_EMULATED_MIG", "3g.71gb,1g.18gb"}}));
}

TEST(emulated_visible, plans_of_peers_name_no_missing_path) {
  EXPECT_EQ(std::string::npos, plan_on_both(open_context("cuda:0,1"), SG_PLAN_FORMAT_TEXT).find("no peer path"));
  // The last one is no peer of the others.
  const std::string text = plan_on_both(open_context("cuda:0,3"), SG_PLAN_FORMAT_TEXT);
  EXPECT_NE(std::string::npos, text.find("no peer path between cuda:0 and cuda:3: the driver gives cuda:0 no access"))
      << text;
}

// The server of MPS refuses a process when it first uses a GPU.
TEST(emulated_visible, DISABLED_refused) {
  const int error = std::atoi(std::getenv("SG_TEST_ERROR"));
  emulated_gpu_lose_with(error);
  emulated_gpu_break(EMULATED_LOST_AT_CALL, 1, 0);
  const std::string text = refusal_of("cuda:0", SG_STATUS_NO_DEVICE);
  const std::string expected = "cuda:0: MPS refuses this process: emulated CUDA error " + std::to_string(error);
  EXPECT_NE(std::string::npos, text.find(expected)) << text;
  emulated_gpu_break(EMULATED_NONE, 0, 0);
  expect_product("cuda:0");
}

TEST(emulated_visible, a_server_that_refuses_the_process_is_no_device) {
  for (const char *error : {"805", "806", "807", "808", "809"})
    EXPECT_TRUE(succeeds("refused", {{"SG_TEST_ERROR", error}})) << error;
}

// Later its errors lose the device, and 810 all of the process (emulated_lost).
TEST(emulated_visible, DISABLED_ended) {
  const int error = std::atoi(std::getenv("SG_TEST_ERROR"));
  context opened = open_context("cuda:0");
  void *memory = nullptr;
  emulated_gpu_lose_with(error);
  emulated_gpu_break(EMULATED_LOST_AT_CALL, 1, 0);
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_host_alloc(opened, 100, &memory));
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_context_device_status(opened, 0));
  const std::string seen = sg_last_error_message();
  EXPECT_NE(std::string::npos, seen.find("cuda:0 is lost: emulated CUDA error " + std::to_string(error))) << seen;
  const double a = 1, b = 2;
  double c = 0;
  const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1, 1, 1);
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_gemm(opened, &desc, nullptr));
}

TEST(emulated_visible, a_server_that_ends_later_loses_the_device) {
  for (const char *error : {"806", "807", "810"}) EXPECT_TRUE(succeeds("ended", {{"SG_TEST_ERROR", error}})) << error;
}

}  // namespace
}  // namespace sg_test
