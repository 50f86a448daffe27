// SPDX-License-Identifier: Apache-2.0
// Plans: create, predict, describe, run, and what a run must share with its plan.
#include <cstring>
#include <thread>

#include "support/gemm_plan.h"
#include "support/harness.hpp"

namespace sg_test {
namespace {

class plans : public on_each_device {
 protected:
  static constexpr int n = 20;
  plan make(double beta = 0, const sg_plan_options *options = nullptr) {
    sg_gemm_desc desc = make_gemm(nullptr, nullptr, nullptr, n, n, n);
    desc.beta.re = beta;
    plan result;
    EXPECT_OK(create_gemm_plan(context_, &desc, options, result.out()));
    return result;
  }
  static sg_plan_options on_the_host() {
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    options.place_a = options.place_b = options.place_c = SG_MEMORY_PAGEABLE;
    return options;
  }
  std::vector<double> a_ = std::vector<double>(n * n, 2), b_ = std::vector<double>(n * n, 3),
                      c_ = std::vector<double>(n * n, 1);
};

TEST_P(plans, predictions) {
  const plan p = make();
  sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
  ASSERT_OK(sg_plan_get_prediction(p, &prediction));
  EXPECT_EQ(2.0 * n * n * n, prediction.flops);
  EXPECT_GT(prediction.predicted_seconds, 0);
  EXPECT_GT(prediction.bound_seconds, 0);
  EXPECT_GE(prediction.predicted_seconds, prediction.bound_seconds * (1 - 1e-9)) << "the bound is a lower bound";
  EXPECT_GE(prediction.serial_seconds, prediction.predicted_seconds * (1 - 1e-9));
  EXPECT_GE(prediction.commands, 1);
  EXPECT_GE(prediction.compute_lanes, 1);
  EXPECT_EQ(0u, prediction.bytes_in) << "without pointers the operands count as device memory";
  EXPECT_STRNE("", prediction.strategy);
}

TEST_P(plans, descriptions) {
  const plan p = make();
  for (const sg_plan_format format :
       {SG_PLAN_FORMAT_TEXT, SG_PLAN_FORMAT_JSON, SG_PLAN_FORMAT_TIMELINE, SG_PLAN_FORMAT_HTML, SG_PLAN_FORMAT_SVG}) {
    std::uint64_t size = 0, again = 0;
    ASSERT_OK(sg_plan_describe(p, format, nullptr, 0, &size));
    ASSERT_GT(size, 20u);
    std::string whole(size, 'x'), cut(size, 'x');
    ASSERT_OK(sg_plan_describe(p, format, whole.data(), size, &again));
    EXPECT_EQ(size, again);
    EXPECT_EQ(size - 1, std::strlen(whole.c_str()));
    ASSERT_OK(sg_plan_describe(p, format, cut.data(), 10, nullptr));
    EXPECT_EQ(9u, std::strlen(cut.c_str()));
    EXPECT_EQ(0, std::memcmp(whole.data(), cut.data(), 9));
    EXPECT_EQ('x', cut[10]) << "written behind the end";
  }
  char json[20000];
  ASSERT_OK(sg_plan_describe(p, SG_PLAN_FORMAT_JSON, json, sizeof json, nullptr));
  EXPECT_EQ('{', json[0]);
  for (const char *key : {"predicted_seconds", "bound_seconds", "ratio", "strategy", "commands"})
    EXPECT_NE(nullptr, std::strstr(json, key)) << key;
}

TEST_P(plans, run_many_times) {
  const sg_plan_options options = on_the_host();
  const plan p = make(0.5, &options);
  sg_gemm_desc desc = make_gemm(a_.data(), b_.data(), c_.data(), n, n, n);
  double expected = 1;
  for (int i = 0; i < 20; ++i) {
    desc.alpha.re = i + 1;
    desc.beta.re = 0.5;
    expected = (i + 1) * 6.0 * n + 0.5 * expected;
    ASSERT_OK(run_gemm_plan(p, &desc, nullptr, nullptr));
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(std::vector<double>(n * n, expected), c_);
}

// Repeated runs are not checked again, but each has the commands of its own plan, and what differs from it is refused.
TEST_P(plans, of_one_form_run_in_turn) {
  sg_plan_options options[] = {on_the_host(), on_the_host()};
  options[1].split = SG_SPLIT_M, options[1].parts = 3;
  sg_gemm_desc desc = make_gemm(a_.data(), b_.data(), c_.data(), n, n, n);
  sg_gemm_desc other = desc;
  other.alpha.re = 0;
  for (int made = 0; made < 3; ++made) {  // later plans may have the addresses of earlier ones
    const plan each[] = {make(0, &options[made % 2]), make(0, &options[1 - made % 2])};
    const plan of_another_form = make(0.5, &options[0]);
    std::int64_t commands[2];
    for (int i = 0; i < 2; ++i) {
      sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
      ASSERT_OK(sg_plan_get_prediction(each[i], &prediction));
      commands[i] = prediction.commands;
    }
    ASSERT_NE(commands[0], commands[1]);
    for (int run = 0; run < 6; ++run) {
      job handle;
      ASSERT_OK(run_gemm_plan(each[run % 2], &desc, nullptr, handle.out()));
      ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
      sg_job_statistics did = SG_JOB_STATISTICS_INIT;
      ASSERT_OK(sg_job_get_statistics(handle, &did));
      EXPECT_EQ(commands[run % 2], did.commands) << made << ", " << run;
      EXPECT_EQ(std::vector<double>(n * n, 6.0 * n), c_);
      EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, run_gemm_plan(each[run % 2], &other, nullptr, nullptr));
      EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, run_gemm_plan(of_another_form, &desc, nullptr, nullptr));
    }
  }
}

// Where A and B are not read, their addresses do not determine the memory space of C.
TEST_P(plans, of_a_gemm_that_reads_neither_a_nor_b) {
  for (const bool without_depth : {true, false}) {
    double c[4] = {1, 2, 3, 4};
    sg_gemm_desc desc = make_gemm(nullptr, nullptr, c, 2, 2, without_depth ? 0 : 3);
    desc.alpha.re = without_depth ? 1 : 0;
    desc.beta.re = 2;
    plan p;
    ASSERT_OK(create_gemm_plan(context_, &desc, nullptr, p.out()));
    job handle;
    ASSERT_OK(run_gemm_plan(p, &desc, nullptr, handle.out()));
    EXPECT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    EXPECT_EQ(8, c[3]) << without_depth;
  }
}

TEST_P(plans, run_at_the_same_time_on_several_matrices) {
  const sg_plan_options options = on_the_host();
  const plan p = make(0, &options);
  std::vector<std::vector<double>> results(16, std::vector<double>(n * n));
  std::vector<std::thread> threads;
  for (auto &result : results)
    threads.emplace_back([&] {
      const sg_gemm_desc desc = make_gemm(a_.data(), b_.data(), result.data(), n, n, n);
      job handle;
      ASSERT_OK(run_gemm_plan(p, &desc, nullptr, handle.out()));
      EXPECT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    });
  for (std::thread &t : threads) t.join();
  for (const auto &result : results) EXPECT_EQ(std::vector<double>(n * n, 6.0 * n), result);
}

TEST_P(plans, run_on_device_memory) {
  const plan p = make();
  constexpr std::uint64_t bytes = n * n * sizeof(double);
  buffer device[3];
  void *data[3];
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(sg_buffer_create(context_, bytes, nullptr, device[i].out()));
    ASSERT_OK(sg_buffer_data(device[i], &data[i]));
  }
  ASSERT_OK(sg_copy(context_, data[0], a_.data(), bytes, nullptr));
  ASSERT_OK(sg_copy(context_, data[1], b_.data(), bytes, nullptr));
  const sg_gemm_desc desc = make_gemm(static_cast<double *>(data[0]), static_cast<double *>(data[1]),
                                      static_cast<double *>(data[2]), n, n, n);
  ASSERT_OK(run_gemm_plan(p, &desc, nullptr, nullptr));
  ASSERT_OK(sg_copy(context_, c_.data(), data[2], bytes, nullptr));
  EXPECT_EQ(std::vector<double>(n * n, 6.0 * n), c_);
}

TEST_P(plans, a_run_that_differs_from_its_plan_is_refused) {
  const sg_plan_options options = on_the_host();
  const plan p = make(0, &options);
  const sg_gemm_desc good = make_gemm(a_.data(), b_.data(), c_.data(), n, n, n);
  std::vector<sg_gemm_desc> wrong(8, good);
  wrong[0].beta.re = 1;
  wrong[1].alpha.re = 0;
  wrong[2].a.rows = wrong[2].c.rows = n - 1;
  wrong[3].a.ld = n + 1;
  wrong[4].op_a = SG_TRANSPOSE_T;
  wrong[5].a.dtype = wrong[5].b.dtype = wrong[5].c.dtype = SG_DTYPE_F32;
  wrong[6].a.data = nullptr;
  wrong[7].b.layout = SG_LAYOUT_COLUMN_MAJOR;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    sg_job *out = reinterpret_cast<sg_job *>(1);
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, run_gemm_plan(p, &wrong[i], nullptr, &out)) << i;
    EXPECT_EQ(nullptr, out);
  }
  EXPECT_EQ(std::vector<double>(n * n, 1.0), c_);
  ASSERT_OK(run_gemm_plan(p, &good, nullptr, nullptr));
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
}

// With alpha 0 and beta 1 there is nothing to compute; the plan was made for another beta.
TEST_P(plans, a_run_that_leaves_c_alone) {
  const sg_plan_options options = on_the_host();
  for (const bool by_pointers : {false, true}) {
    void *const a[] = {a_.data()}, *const b[] = {b_.data()}, *const c[] = {c_.data()};
    sg_gemm_desc desc = make_gemm(a_.data(), b_.data(), c_.data(), n, n, n);
    desc.alpha.re = 0;
    desc.beta.re = 0.5;
    if (by_pointers) desc.a_array = a, desc.b_array = b, desc.c_array = c;
    plan p;
    ASSERT_OK(create_gemm_plan(context_, &desc, &options, p.out()));
    const std::vector<double> before = c_;
    desc.beta.re = 1;
    job idle;
    ASSERT_OK(run_gemm_plan(p, &desc, nullptr, idle.out()));
    ASSERT_OK(sg_job_wait(idle, SG_FOREVER, nullptr));
    EXPECT_EQ(before, c_);
    sg_gemm_desc wrong = desc;
    wrong.c.rows = wrong.a.rows = n - 1;
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, run_gemm_plan(p, &wrong, nullptr, nullptr));
    desc.beta.re = 2;
    job scaled;
    ASSERT_OK(run_gemm_plan(p, &desc, nullptr, scaled.out()));
    ASSERT_OK(sg_job_wait(scaled, SG_FOREVER, nullptr));
    for (std::size_t i = 0; i < c_.size(); ++i) EXPECT_EQ(2 * before[i], c_[i]);
  }
}

TEST_P(plans, outlive_their_context_handle) {
  plan p = make();
  context_.reset();
  sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
  EXPECT_OK(sg_plan_get_prediction(p, &prediction));
}

ON_EACH_DEVICE(plans);

TEST(plans_on_a_model, matrices_must_lie_where_the_plan_has_them) {
  const context context = open_context("sim:h200");
  const sg_gemm_desc shape = make_gemm(nullptr, nullptr, nullptr, 2, 2, 2);
  plan p;
  ASSERT_OK(create_gemm_plan(context, &shape, nullptr, p.out()));
  double a[4] = {}, b[4] = {}, c[4] = {};
  const sg_gemm_desc on_host = make_gemm(a, b, c, 2, 2, 2);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, run_gemm_plan(p, &on_host, nullptr, nullptr));
}

// Of several devices of the context's machine.
TEST(plans_on_a_machine, of_two_devices) {
  const context machine = open_context("sim:h200x2");
  const std::int64_t n = 8192;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = desc.b = desc.c = {nullptr, n, n, 0, SG_DTYPE_F32, SG_LAYOUT_COLUMN_MAJOR};
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.place_a = options.place_b = options.place_c = SG_MEMORY_PINNED;
  const auto predict = [&](plan &made) {
    sg_plan_prediction p = SG_PLAN_PREDICTION_INIT;
    EXPECT_OK(create_gemm_plan(machine, &desc, &options, made.out()));
    EXPECT_OK(sg_plan_get_prediction(made, &p));
    return p;
  };
  plan alone, together, chosen;
  options.device_count = 1;
  const sg_plan_prediction one = predict(alone);
  EXPECT_EQ(1, one.devices);
  EXPECT_EQ(0u, one.bytes_peer);
  options.device_count = 2;
  const sg_plan_prediction two = predict(together);
  EXPECT_EQ(2, two.devices);
  EXPECT_EQ(std::uint64_t(n * n) * 4, two.bytes_peer) << "each device pulls half of A";
  EXPECT_EQ(one.bytes_in, two.bytes_in);
  EXPECT_EQ(one.bytes_out, two.bytes_out);
  EXPECT_LT(two.predicted_seconds, 0.6 * one.predicted_seconds);
  EXPECT_GE(two.predicted_seconds, two.bound_seconds);
  options.device_count = 0;
  options.devices = 3;
  EXPECT_EQ(two.predicted_seconds, predict(chosen).predicted_seconds) << "two are faster than one";
  options.devices = 0;
  EXPECT_EQ(two.predicted_seconds, predict(chosen).predicted_seconds) << "also without any restriction";

  char text[4096] = "";
  EXPECT_OK(sg_plan_describe(together, SG_PLAN_FORMAT_TEXT, text, sizeof text, nullptr));
  EXPECT_NE(nullptr, std::strstr(text, "devices    0 (h200, "));
  EXPECT_NE(nullptr, std::strstr(text, "peers      268.4 MB"));
  EXPECT_NE(nullptr, std::strstr(text, ": arithmetic\n")) << "the limit that binds: " << text;
  EXPECT_EQ(SG_STATUS_UNSUPPORTED, sg_plan_describe(together, SG_PLAN_FORMAT_HTML, text, sizeof text, nullptr));
  EXPECT_EQ(nullptr, std::strstr(text, "would take"));
}

std::string text_of_plan(sg_plan *plan, sg_plan_format format) {
  std::uint64_t size = 0;
  EXPECT_OK(sg_plan_describe(plan, format, nullptr, 0, &size));
  std::string text(size, '\0');
  EXPECT_OK(sg_plan_describe(plan, format, text.data(), size, nullptr));
  return text;
}

// A plan of one device says what more of them would take, where that is less.
TEST(plans_on_a_machine, of_one_device_name_the_time_on_more) {
  const context machine = open_context("sim:h200x4");
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.place_a = options.place_b = options.place_c = SG_MEMORY_PINNED;
  const auto plan_on = [&](std::uint64_t devices, std::int64_t n, plan &made) {
    options.devices = devices;
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.a = desc.b = desc.c = {nullptr, n, n, 0, SG_DTYPE_F32, SG_LAYOUT_COLUMN_MAJOR};
    EXPECT_OK(create_gemm_plan(machine, &desc, &options, made.out()));
    sg_plan_prediction p = SG_PLAN_PREDICTION_INIT;
    EXPECT_OK(sg_plan_get_prediction(made, &p));
    return p.predicted_seconds * 1e3;
  };
  plan two, four, made;
  char expected[80];
  std::snprintf(expected, sizeof expected, "advice     2 devices would take %.3f ms, 4 devices %.3f ms\n",
                plan_on(3, 8192, two), plan_on(15, 8192, four));
  for (const std::uint64_t device : {1, 4}) {
    plan_on(device, 8192, made);
    EXPECT_NE(std::string::npos, text_of_plan(made, SG_PLAN_FORMAT_TEXT).find(expected)) << expected;
    const std::string json = text_of_plan(made, SG_PLAN_FORMAT_JSON);
    EXPECT_NE(std::string::npos, json.find("\"devices\": 4,", json.find("\"on_more_devices\"")))
        << json.substr(0, 2000);
    const std::string page = text_of_plan(made, SG_PLAN_FORMAT_HTML);
    EXPECT_NE(std::string::npos, page.find("compute it on 4 devices (sg_plan_options.device_count)"));
  }
  EXPECT_EQ(std::string::npos, text_of_plan(two, SG_PLAN_FORMAT_TEXT).find("advice"));
  plan_on(1, 4096, made);
  std::string texts[3];
  std::vector<std::thread> threads;
  for (std::string &each : texts) threads.emplace_back([&] { each = text_of_plan(made, SG_PLAN_FORMAT_TEXT); });
  for (std::thread &each : threads) each.join();
  for (const std::string &each : texts) EXPECT_EQ(text_of_plan(made, SG_PLAN_FORMAT_TEXT), each);
  plan_on(1, 512, made);
  EXPECT_EQ(std::string::npos, text_of_plan(made, SG_PLAN_FORMAT_TEXT).find("advice")) << "less than a millisecond";
}

TEST(plans_on_a_machine, say_where_devices_have_no_peer_path) {
  for (const auto &[name, is_missing] :
       {std::pair{"sim:pcie4x2", true}, {"sim:h200x2", false}, {"sim:unequal2", false}}) {
    const context machine = open_context(name);
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    options.device_count = 2;
    options.place_a = options.place_b = options.place_c = SG_MEMORY_PINNED;
    const sg_gemm_desc desc = make_gemm(nullptr, nullptr, nullptr, 512, 512, 512);
    plan made;
    ASSERT_OK(create_gemm_plan(machine, &desc, &options, made.out()));
    const std::string path =
        std::string("no peer path between ") + name + "/0 and " + name + "/1: the model of the machine has no link";
    for (const sg_plan_format format : {SG_PLAN_FORMAT_TEXT, SG_PLAN_FORMAT_JSON})
      EXPECT_EQ(is_missing, text_of_plan(made, format).find(path) != std::string::npos) << text_of_plan(made, format);
    const std::string of_machine = [&] {
      std::string text(1 << 16, '\0');
      EXPECT_OK(sg_context_machine(machine, text.data(), text.size(), nullptr));
      return text;
    }();
    EXPECT_EQ(is_missing, of_machine.find(path) != std::string::npos) << of_machine;
  }
}

TEST(plans_on_a_machine, wrong_devices_are_refused_by_name) {
  const context machine = open_context("sim:h200x2");
  sg_gemm_desc desc = make_gemm(nullptr, nullptr, nullptr, 64, 64, 64);
  const auto refusal = [&](std::uint64_t devices, std::int32_t count, sg_memory_kind where = SG_MEMORY_PINNED) {
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    options.place_a = options.place_b = options.place_c = where;
    options.devices = devices;
    options.device_count = count;
    plan made;
    EXPECT_NE(SG_STATUS_OK, create_gemm_plan(machine, &desc, &options, made.out()));
    return std::string(sg_last_error_message());
  };
  EXPECT_NE(std::string::npos, refusal(0, 3).find("device_count is 3; it must be from 0 to 2")) << refusal(0, 3);
  EXPECT_NE(std::string::npos, refusal(0, -1).find("device_count")) << refusal(0, -1);
  EXPECT_NE(std::string::npos, refusal(4, 0).find("devices is 0x4, and the machine has 2")) << refusal(4, 0);
  EXPECT_NE(std::string::npos, refusal(0, 2, SG_MEMORY_DEVICE).find("cannot be computed by 2 devices"));
}

TEST(plans_on_a_model, eight_thousand_cubed_from_pinned_memory) {
  const context context = open_context("sim:h200");
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a.rows = desc.a.cols = desc.b.rows = desc.b.cols = desc.c.rows = desc.c.cols = 8192;
  desc.compute = SG_COMPUTE_TF32;
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.place_a = options.place_b = options.place_c = SG_MEMORY_PINNED;
  plan p;
  ASSERT_OK(create_gemm_plan(context, &desc, &options, p.out()));
  sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
  ASSERT_OK(sg_plan_get_prediction(p, &prediction));
  EXPECT_EQ(2u * 4 * 8192 * 8192, prediction.bytes_in);
  EXPECT_EQ(4u * 8192 * 8192, prediction.bytes_out);
  EXPECT_LE(prediction.predicted_seconds, 1.10 * prediction.bound_seconds);
  EXPECT_GE(prediction.predicted_seconds, prediction.bound_seconds);
  EXPECT_NEAR(9.76e-3, prediction.bound_seconds, 0.05e-3);
}

// The automatic choice is never one that the model itself rates slower than a forced one.
TEST(plans_on_a_model, the_automatic_choice_is_the_fastest) {
  const context context = open_context("sim:h200");
  for (const auto &[m, n, k] : {std::tuple{4096, 4096, 4096}, std::tuple{64, 64, 100000}, std::tuple{300, 20000, 500}})
    for (const sg_memory_kind place : {SG_MEMORY_DEVICE, SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE}) {
      double automatic = 0;
      for (const sg_split split : {SG_SPLIT_AUTO, SG_SPLIT_NONE, SG_SPLIT_M, SG_SPLIT_N, SG_SPLIT_K}) {
        const sg_gemm_desc desc = make_gemm(nullptr, nullptr, nullptr, m, n, k);
        sg_plan_options options = SG_PLAN_OPTIONS_INIT;
        options.split = split;
        options.place_a = options.place_b = options.place_c = place;
        plan p;
        ASSERT_OK(create_gemm_plan(context, &desc, &options, p.out()));
        sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
        ASSERT_OK(sg_plan_get_prediction(p, &prediction));
        if (split == SG_SPLIT_AUTO) automatic = prediction.predicted_seconds;
        EXPECT_LE(automatic, prediction.predicted_seconds * (1 + 1e-9)) << m << ' ' << split << ' ' << place;
      }
    }
}

}  // namespace
}  // namespace sg_test
