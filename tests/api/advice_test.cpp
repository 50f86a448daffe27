// SPDX-License-Identifier: Apache-2.0
// Advice of traces on the order of jobs: following it gains what it promises, in virtual time.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t n = 768;
constexpr std::size_t gemms = 8;

class advice_of_traces : public testing::Test {
 protected:
  void SetUp() override {
    open("sim:h200?timing-only");
    SKIP_WITHOUT_GATE(gated_job(context_));
  }
  void open(const char *device) {
    context_ = open_context(device);
    for (void *&each : host_) ASSERT_OK(sg_host_alloc(context_, bytes, &each));
    for (stream &each : streams_) ASSERT_OK(sg_stream_create(context_, nullptr, each.out()));
  }
  void TearDown() override { close(); }
  void close() {
    for (void *each : host_) EXPECT_OK(sg_host_free(context_, each));
  }

  // The span of what `run` does, in seconds. `at_once`: no job starts before the last one is submitted; otherwise early
  // ones may end before, and later ones get their memory.
  double record(const std::function<void()> &run, bool at_once) {
    std::optional<gated_job> gate;
    if (at_once) gate.emplace(context_);
    before_ = at_once ? gate->get() : nullptr;
    trace recorded;
    EXPECT_OK(sg_trace_start(nullptr, recorded.out()));
    run();
    if (gate) gate->open();
    EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
    kept_.clear();
    sg_trace_metrics m = SG_TRACE_METRICS_INIT;
    EXPECT_OK(sg_trace_get_metrics(recorded, context_, &m));
    std::uint64_t needed = 0;
    EXPECT_OK(sg_trace_export(recorded, SG_TRACE_FORMAT_JSON, nullptr, 0, &needed));
    exported_.assign(needed, '\0');
    EXPECT_OK(sg_trace_export(recorded, SG_TRACE_FORMAT_JSON, exported_.data(), needed, nullptr));
    return m.span_seconds;
  }
  // Gain that the latest recording promises for the advice whose title begins so; -1: it does not give it.
  double promised(const char *title) const {
    const std::size_t at = exported_.find(std::string("\"title\": \"") + title);
    if (at == std::string::npos) return -1;
    const char *const key = "\"gain_seconds\": ";
    return std::stod(exported_.substr(exported_.find(key, at) + std::strlen(key)));
  }
  void check(const char *title, const std::function<void()> &now, const std::function<void()> &better) {
    const double before = record(now, false);
    const double gain = promised(title);
    ASSERT_GT(gain, 0) << title << ": " << exported_.substr(exported_.find("\"advice\""), 2000);
    // How the library's threads meet decides how dense the virtual timeline is: the densest of some counts.
    double after = before;
    for (int i = 0; i < 20 && (before - after) / gain < 0.8; ++i) {
      const double again = record(better, true);
      if (again < after && promised(title) < 0) after = again;
    }
    EXPECT_NEAR(1, (before - after) / gain, 0.2) << title << ": " << before << " s, then " << after;
  }

  sg_submit submit_on(sg_stream *stream) const {
    sg_submit submit = SG_SUBMIT_INIT;
    submit.stream = stream;
    if (before_) {
      submit.after = &before_;
      submit.after_count = 1;
    }
    return submit;
  }
  // C = A * B of f32 in pinned memory.
  void gemm(std::size_t c, sg_stream *on) {
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.a = {host_[0], n, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    desc.b = {host_[1], n, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    desc.c = {host_[2 + c], n, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    const sg_submit submit = submit_on(on);
    kept_.emplace_back();
    ASSERT_OK(sg_gemm_async(context_, &desc, &submit, kept_.back().out()));
  }
  void gemms_side_by_side() {
    for (std::size_t i = 0; i < gemms; ++i) gemm(i, streams_[i]);
  }

  static constexpr std::uint64_t bytes = n * n * sizeof(float);
  context context_;
  void *host_[2 + gemms] = {};
  stream streams_[gemms];
  std::vector<job> kept_;
  sg_job *before_ = nullptr;  // all jobs run after it
  std::string exported_;
};

TEST_F(advice_of_traces, submit_several_jobs_before_waiting) {
  check(
      "submit several jobs",
      [&] {
        for (std::size_t i = 0; i < gemms; ++i) {
          gemm(i, nullptr);
          ASSERT_OK(sg_job_wait(kept_.back(), SG_FOREVER, nullptr));
        }
      },
      [&] { gemms_side_by_side(); });
}

// The device is slower than the model says: what is promised is scaled by what was measured.
TEST_F(advice_of_traces, several_jobs_on_a_device_that_is_slower_than_its_model) {
  const auto one_after_another = [&] {
    for (std::size_t i = 0; i < gemms; ++i) {
      gemm(i, nullptr);
      ASSERT_OK(sg_job_wait(kept_.back(), SG_FOREVER, nullptr));
    }
  };
  const double span = record(one_after_another, false), gain = promised("submit several jobs");
  std::string model(1 << 16, '\0');
  ASSERT_OK(sg_context_model(context_, model.data(), model.size(), nullptr));
  model.resize(std::strlen(model.c_str()));
  const std::string key = "_per_second\": ", name = "\"name\": \"h200\",";
  for (std::size_t at = model.find(key); at != std::string::npos; at = model.find(key, at + 1)) {
    std::size_t length = 0;
    const double faster = 4 * std::stod(model.substr(at + key.size()), &length);
    model.replace(at + key.size(), length, std::to_string(faster));
  }
  model.insert(model.find(name) + name.size(), "\"calibrated\": {\"device\": \"sim:h200\", \"date\": \"2020-01-01\"},");
  const std::string path = testing::TempDir() + "slower_than_its_model.json";
  std::ofstream(path) << model;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  ASSERT_EQ(0, setenv("SG_CALIBRATION", path.c_str(), 1));
  TearDown();
  SetUp();
  unsetenv("SG_CALIBRATION");
  char used[1 << 16];
  ASSERT_OK(sg_context_model(context_, used, sizeof used, nullptr));
  ASSERT_NE(nullptr, std::strstr(used, path.c_str())) << used;
  ASSERT_EQ(nullptr, std::strstr(used, "passed over")) << used;
  ASSERT_NEAR(span, record(one_after_another, false), 0.2 * span);  // the device is what it was
  EXPECT_LT(promised("submit several jobs"), 1.5 * gain);
  std::remove(path.c_str());
}

TEST_F(advice_of_traces, several_streams_instead_of_one) {
  check(
      "put jobs that do not need each other",
      [&] {
        for (std::size_t i = 0; i < gemms; ++i) gemm(i, streams_[0]);
      },
      [&] { gemms_side_by_side(); });
}

TEST_F(advice_of_traces, memory_of_its_own_for_each_stream) {
  check(
      "let the streams run side by side",
      [&] {
        for (std::size_t i = 0; i < gemms; ++i) gemm(0, streams_[i]);
      },
      [&] { gemms_side_by_side(); });
}

// A GEMM that its options keep on one device of a machine.
TEST_F(advice_of_traces, more_devices) {
  constexpr std::int64_t size = 4096;
  close();
  for (stream &old : streams_) old = stream();
  open("sim:h200x2?timing-only");
  void *pinned = nullptr;
  ASSERT_OK(sg_host_alloc(context_, 3 * size * size * sizeof(float), &pinned));
  auto *const data = static_cast<float *>(pinned);
  const auto run_on = [&](std::int32_t devices) {
    return [&, devices] {
      sg_gemm_desc desc = SG_GEMM_DESC_INIT;
      desc.a = {data, size, size, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
      desc.b = {data + size * size, size, size, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
      desc.c = {data + 2 * size * size, size, size, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
      sg_plan_options options = SG_PLAN_OPTIONS_INIT;
      options.device_count = devices;
      sg_submit submit = submit_on(nullptr);
      submit.plan = &options;
      ASSERT_OK(sg_gemm_async(context_, &desc, &submit, nullptr));
    };
  };
  check("compute it on 2 devices", run_on(1), run_on(2));
  EXPECT_OK(sg_host_free(context_, pinned));
}

// Every operation is planned again, not only GEMMs.
TEST_F(advice_of_traces, device_memory_for_operands_of_layers) {
  owned<sg_buffer, sg_buffer_release> buffer;
  ASSERT_OK(sg_buffer_create(context_, bytes, nullptr, buffer.out()));
  void *on_device = nullptr;
  ASSERT_OK(sg_buffer_data(buffer, &on_device));
  const auto run = [&](void *data) {
    for (std::size_t i = 0; i < gemms; ++i) {
      sg_softmax_desc desc = SG_SOFTMAX_DESC_INIT;
      desc.x = desc.y = {data, n, n, n, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
      const sg_submit submit = submit_on(nullptr);
      kept_.emplace_back();
      ASSERT_OK(sg_softmax_async(context_, &desc, &submit, kept_.back().out()));
    }
  };
  check(
      "keep the operands in device memory", [&] { run(host_[0]); }, [&] { run(on_device); });
}

TEST_F(advice_of_traces, larger_copies) {
  owned<sg_buffer, sg_buffer_release> buffer;
  ASSERT_OK(sg_buffer_create(context_, bytes, nullptr, buffer.out()));
  void *data = nullptr;
  ASSERT_OK(sg_buffer_data(buffer, &data));
  for (const bool in : {true, false}) {
    const auto copies = [&](std::uint64_t pieces) {
      return [&, pieces] {
        for (std::uint64_t i = 0; i < pieces; ++i) {
          char *const device = static_cast<char *>(data) + i * (bytes / pieces);
          char *const host = static_cast<char *>(host_[0]) + i * (bytes / pieces);
          const sg_submit submit = submit_on(nullptr);
          ASSERT_OK(sg_copy_async(context_, in ? device : host, in ? host : device, bytes / pieces, &submit, nullptr));
        }
      };
    };
    check("copy more at a time", copies(256), copies(1));
  }
}

// Chains of a copy to the device, a GEMM there and a copy back, on one stream and on two, as in the textbook. B is on
// the device.
TEST_F(advice_of_traces, chains_on_several_streams) {
  constexpr std::size_t chain_count = 2;
  constexpr std::int64_t size = 2048;  // so long that latencies do not count
  constexpr std::uint64_t large = size * size * sizeof(float);
  void *pinned = nullptr;
  ASSERT_OK(sg_host_alloc(context_, (1 + chain_count) * large, &pinned));
  char *const host = static_cast<char *>(pinned);
  std::vector<owned<sg_buffer, sg_buffer_release>> buffers(3 * chain_count);
  std::vector<void *> data(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    ASSERT_OK(sg_buffer_create(context_, large, nullptr, buffers[i].out()));
    ASSERT_OK(sg_buffer_data(buffers[i], &data[i]));
  }
  const auto chains = [&](bool one_stream) {
    return [&, one_stream] {
      for (std::size_t i = 0; i < chain_count; ++i) {
        const sg_submit submit = submit_on(streams_[one_stream ? 0 : i]);
        ASSERT_OK(sg_copy_async(context_, data[3 * i], host, large, &submit, nullptr));
        sg_gemm_desc desc = SG_GEMM_DESC_INIT;
        desc.a = {data[3 * i], size, size, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
        desc.b = {data[3 * i + 1], size, size, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
        desc.c = {data[3 * i + 2], size, size, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
        ASSERT_OK(sg_gemm_async(context_, &desc, &submit, nullptr));
        ASSERT_OK(sg_copy_async(context_, host + (1 + i) * large, data[3 * i + 2], large, &submit, nullptr));
      }
    };
  };
  check("put jobs that do not need each other", chains(true), chains(false));
  EXPECT_OK(sg_host_free(context_, pinned));
}

// Four chunks on four streams of a device whose streams share queues, in either order. The promise is the model's: the
// simulated device has each command when its dependencies have completed, in any order of the calls.
TEST_F(advice_of_traces, the_order_of_calls_where_streams_share_queues) {
  constexpr std::size_t chunk_count = 4;
  constexpr std::int64_t size = 1024;
  constexpr std::uint64_t large = size * size * sizeof(float);
  const struct {
    const char *device, *by_chunk, *by_kind;  // the advice, if submitted so; nullptr: none
  } cases[] = {{"sim:c1060?timing-only", "submit all copies to the device first", nullptr},
               {"sim:c2050?timing-only", nullptr, "submit what belongs together"},
               {"sim:k20?timing-only", nullptr, nullptr}};
  for (const auto &each : cases) {
    SCOPED_TRACE(each.device);
    close();
    for (stream &old : streams_) old = stream();
    open(each.device);
    void *pinned = nullptr;
    ASSERT_OK(sg_host_alloc(context_, 2 * chunk_count * large, &pinned));
    char *const host = static_cast<char *>(pinned);
    std::vector<owned<sg_buffer, sg_buffer_release>> buffers(3 * chunk_count);
    std::vector<void *> data(buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      ASSERT_OK(sg_buffer_create(context_, large, nullptr, buffers[i].out()));
      ASSERT_OK(sg_buffer_data(buffers[i], &data[i]));
    }
    const auto call = [&](std::size_t i, std::size_t step) {
      const sg_submit submit = submit_on(streams_[i]);
      sg_gemm_desc desc = SG_GEMM_DESC_INIT;
      desc.a = {data[3 * i], size, size, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
      desc.b = {data[3 * i + 1], size, size, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
      desc.c = {data[3 * i + 2], size, size, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
      if (step == 0) {
        ASSERT_OK(sg_copy_async(context_, data[3 * i], host + i * large, large, &submit, nullptr));
      }
      if (step == 1) {
        ASSERT_OK(sg_gemm_async(context_, &desc, &submit, nullptr));
      }
      if (step == 2) {
        ASSERT_OK(sg_copy_async(context_, host + (chunk_count + i) * large, data[3 * i + 2], large, &submit, nullptr));
      }
    };
    for (const bool by_kind : {false, true}) {
      record(
          [&] {
            for (std::size_t n = 0; n < 3 * chunk_count; ++n)
              by_kind ? call(n % chunk_count, n / chunk_count) : call(n / 3, n % 3);
          },
          true);
      const char *const expected = by_kind ? each.by_kind : each.by_chunk;
      for (const char *title : {"submit all copies to the device first", "submit what belongs together"}) {
        const bool is_given = expected && std::string(expected) == title;
        EXPECT_EQ(is_given, promised(title) > 0) << title << exported_.substr(exported_.find("\"advice\""), 1000);
      }
    }
    buffers.clear();
    EXPECT_OK(sg_host_free(context_, pinned));
  }
}

// What has no GEMM is not told how to multiply.
TEST_F(advice_of_traces, operations_without_a_gemm) {
  owned<sg_buffer, sg_buffer_release> buffer;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(context_, bytes, nullptr, buffer.out()));
  ASSERT_OK(sg_buffer_data(buffer, &data));
  sg_softmax_desc softmax = SG_SOFTMAX_DESC_INIT;
  softmax.x = softmax.y = {data, 64, 64, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  sg_norm_desc norm = SG_NORM_DESC_INIT;
  norm.x = norm.y = softmax.x;
  record(
      [&] {
        for (int i = 0; i < 5; ++i) {
          ASSERT_OK(sg_softmax_async(context_, &softmax, nullptr, nullptr));
          ASSERT_OK(sg_norm_async(context_, &norm, nullptr, nullptr));
        }
      },
      false);
  EXPECT_EQ(std::string::npos, exported_.find("tf32")) << exported_.substr(exported_.find("\"advice\""), 2000);
  EXPECT_EQ(std::string::npos, exported_.find("0 x 0 x 0"));
}

TEST_F(advice_of_traces, equal_jobs_are_one_row_and_gain_no_more_than_they_took) {
  sg_graph *graph = nullptr;
  double span = 0;
  {
    ASSERT_OK(sg_graph_create(context_, &graph));
    for (std::size_t i = 0; i < gemms; ++i) {
      sg_gemm_desc desc = SG_GEMM_DESC_INIT;
      desc.a = {host_[0], n, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
      desc.b = {host_[1], n, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
      desc.c = {host_[2 + i], n, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
      sg_submit into = SG_SUBMIT_INIT;
      into.graph = graph;
      ASSERT_OK(sg_gemm_async(context_, &desc, &into, nullptr));
    }
    span = record(
        [&] {
          for (int run = 0; run < 5; ++run) ASSERT_OK(sg_graph_run_async(graph, nullptr, nullptr));
        },
        false);
    EXPECT_OK(sg_graph_release(graph));
  }
  const std::string advice = exported_.substr(exported_.find("\"advice\""));
  const std::string title = "keep the operands in device memory";
  const std::size_t first = advice.find(title);
  ASSERT_NE(std::string::npos, first) << advice;
  EXPECT_EQ(std::string::npos, advice.find(title, first + 1)) << advice;
  EXPECT_LE(promised(title.c_str()), span);
  EXPECT_NE(std::string::npos, advice.find(std::to_string(5 * gemms) + " jobs of")) << advice;
}

}  // namespace
}  // namespace sg_test
