// SPDX-License-Identifier: Apache-2.0
// Other GPUs of the machine: how they are connected. SG_EMULATED_GPUS=4, and the management library is fake_nvml.c's,
// or with SG_TEST_NVML=absent there is none.
#include <cstdlib>
#include <cstring>

#include "faults.h"
#include "support/gemm_plan.h"
#include "support/harness.hpp"

namespace sg_test {
namespace {

bool nvml_is_absent() {
  const char *asked = std::getenv("SG_TEST_NVML");
  return asked && std::strcmp(asked, "absent") == 0;
}

void expect_peer(const sg_device_info &info, int entry, sg_link_class link_class, int links, double bytes_per_second) {
  const sg_device_peer &peer = info.peers[entry];
  EXPECT_EQ("cuda:" + std::to_string(entry + 1), peer.name);
  EXPECT_EQ(link_class, peer.link_class) << peer.name;
  EXPECT_EQ(links, peer.links) << peer.name;
  EXPECT_DOUBLE_EQ(bytes_per_second, peer.bytes_per_second) << peer.name;
  for (const int reserved : peer.reserved) EXPECT_EQ(0, reserved);
}

TEST(emulated_peers, edges) {
  const context opened = open_context("cuda:0");
  sg_device_info info = SG_DEVICE_INFO_INIT;
  ASSERT_OK(sg_context_get_device_info(opened, 0, &info));
  ASSERT_EQ(3, info.peer_count);
  if (nvml_is_absent()) {
    expect_peer(info, 0, SG_LINK_UNKNOWN, 0, 0);
    expect_peer(info, 1, SG_LINK_UNKNOWN, 0, 0);
  } else {
    expect_peer(info, 0, SG_LINK_NVLINK, 18, 18 * 26562e6);
    expect_peer(info, 1, SG_LINK_PCIE, 1, 0);
  }
  expect_peer(info, 2, SG_LINK_HOST, 0, 0);
  std::int32_t devices = 0;
  ASSERT_OK(sg_device_count(&devices));
  for (int i = 0; i < info.peer_count; ++i) {
    EXPECT_LT(info.peers[i].index, devices);
    EXPECT_EQ(info.peers[0].index + i, info.peers[i].index);
  }
  EXPECT_EQ(0, info.peers[3].name[0]);
}

// Memory of another GPU, large enough for a square matrix.
class peer_matrix {
 public:
  static constexpr std::int64_t n = 48;
  static constexpr std::size_t bytes = sizeof(double) * n * n;
  peer_matrix() : data_(static_cast<double *>(emulated_gpu_peer_memory(bytes, 1))) {}
  ~peer_matrix() { emulated_gpu_free_peer_memory(data_); }
  peer_matrix(const peer_matrix &) = delete;
  double *data() const { return data_; }
  sg_matrix view() const { return {data_, n, n, n, SG_DTYPE_F64, SG_LAYOUT_COLUMN_MAJOR}; }

 private:
  double *const data_;
};

std::string latest_message() { return sg_last_error_message(); }

TEST(emulated_peers, copies_and_gemms_of_peer_memory) {
  const context opened = open_context("cuda:0");
  const peer_matrix a, c;
  std::vector<double> ones(peer_matrix::n * peer_matrix::n, 1), seen(ones.size(), -1);
  sg_job *job = nullptr;
  ASSERT_OK(sg_copy_async(opened, a.data(), ones.data(), peer_matrix::bytes, nullptr, &job));
  ASSERT_OK(sg_job_wait(job, SG_FOREVER, nullptr));
  ASSERT_OK(sg_job_release(job));
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = desc.b = a.view();
  desc.c = c.view();
  for (int again = 0; again < 3; ++again) ASSERT_OK(sg_gemm(opened, &desc, nullptr));
  ASSERT_OK(sg_copy_async(opened, seen.data(), c.data(), peer_matrix::bytes, nullptr, &job));
  ASSERT_OK(sg_job_wait(job, SG_FOREVER, nullptr));
  ASSERT_OK(sg_job_release(job));
  for (const double x : seen) ASSERT_EQ(double(peer_matrix::n), x);
  sg_axpby_desc add = SG_AXPBY_DESC_INIT;
  add.a = a.view();
  add.c = c.view();
  ASSERT_OK(sg_axpby(opened, &add, nullptr));
  ASSERT_OK(sg_copy(opened, seen.data(), c.data(), peer_matrix::bytes, nullptr));
  for (const double x : seen) ASSERT_EQ(double(peer_matrix::n + 1), x);
}

TEST(emulated_peers, messages_name_peer_memory) {
  const context opened = open_context("cuda:0");
  const peer_matrix a, c;
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.place_a = options.place_b = options.place_c = SG_MEMORY_DEVICE;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = desc.b = a.view();
  desc.c = c.view();
  sg_submit submit = SG_SUBMIT_INIT;
  submit.plan = &options;
  EXPECT_EQ(SG_STATUS_INVALID_ARGUMENT, sg_gemm(opened, &desc, &submit));
  EXPECT_NE(std::string::npos, latest_message().find("in peer memory, but the plan has it in device memory"))
      << latest_message();
}

TEST(emulated_peers, a_plan_says_what_it_copies_from_a_peer) {
  const context opened = open_context("cuda:0");
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.place_a = options.place_b = options.place_c = SG_MEMORY_PEER;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = desc.b = desc.c = {nullptr, 512, 512, 512, SG_DTYPE_F64, SG_LAYOUT_COLUMN_MAJOR};
  sg_plan *plan = nullptr;
  ASSERT_OK(create_gemm_plan(opened, &desc, &options, &plan));
  std::string text(std::size_t{1} << 20, '\0');
  EXPECT_OK(sg_plan_describe(plan, SG_PLAN_FORMAT_JSON, text.data(), text.size(), nullptr));
  EXPECT_NE(std::string::npos, text.find("A of a peer")) << text.c_str();
  EXPECT_OK(sg_plan_release(plan));
}

TEST(emulated_peers, contexts_of_several_reach_each_other_s_pools) {
  const context both = open_context("cuda:0,1");
  EXPECT_EQ(1, emulated_gpu_peer_access(0, 1));
  EXPECT_EQ(1, emulated_gpu_peer_access(1, 0));
  char text[1 << 16] = "";
  EXPECT_OK(sg_context_machine(both, text, sizeof text, nullptr));
  if (!nvml_is_absent()) {
    EXPECT_NE(nullptr, std::strstr(text, "nvlink")) << text;
  }
  // Known from the driver, or measured.
  constexpr const char *key = "\"bytes_per_second\":";
  const char *const peers = std::strstr(text, "\"peers\":");
  const char *const rate = peers ? std::strstr(peers, key) : nullptr;
  ASSERT_NE(nullptr, rate) << text;
  EXPECT_GT(std::strtod(rate + std::strlen(key), nullptr), 0) << peers;
}

TEST(emulated_peers, copies_that_write_nothing_are_noticed) {
  emulated_gpu_drop_peer_copies(1);
  char text[1 << 16] = "";
  {
    const context both = open_context("cuda:0,1");
    EXPECT_OK(sg_context_machine(both, text, sizeof text, nullptr));
    EXPECT_EQ(0, emulated_gpu_peer_access(0, 1) + emulated_gpu_peer_access(1, 0)) << "no copy takes the link";
  }
  emulated_gpu_drop_peer_copies(0);
  EXPECT_EQ(nullptr, std::strstr(text, "nvlink")) << text;
}

TEST(emulated_peers, have_names_besides_their_numbers) {
  context by_uuid, local;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "cuda:GPU-02122232-4252-6272-8292-a2b2c2d2e2f2";
  ASSERT_OK(sg_context_create(&options, by_uuid.out()));
  options.device = "cuda:local";
  EXPECT_EQ(SG_STATUS_NO_DEVICE, sg_context_create(&options, local.out()));
  EXPECT_NE(std::string::npos, latest_message().find("local rank")) << latest_message();
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "5", 1);
  EXPECT_OK(sg_context_create(&options, local.out()));
  unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
  options.device = "cuda:GPU-00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(SG_STATUS_NO_DEVICE, sg_context_create(&options, local.out()));
}

}  // namespace
}  // namespace sg_test
