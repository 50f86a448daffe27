// SPDX-License-Identifier: Apache-2.0
// streamgemm demo: classifies handwritten digits by all-pairs nearest neighbours, as examples/07_nearest_neighbour.c
// does. |x - y|^2 = |x|^2 + |y|^2 - 2 x.y, and all the x.y are one product X * X^T: a job for each block of rows, whose
// digits are classified on the host while the next blocks are multiplied and copied.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <vector>

#include "digits.hpp"
#include "format.hpp"
#include "library.hpp"
#include "style.hpp"
#include "verbs.hpp"

namespace sg::cli {

namespace {

constexpr int block = 128, blocks = (digits + block - 1) / block;
constexpr int learned = digits * 9 / 10;  // of the split into what is learned and what is asked

struct data {
  std::vector<float> pixels, norms;
  std::vector<int> labels;
};

data load_digits() {
  data all;
  const char *at = digit_rows;
  for (int i = 0; i < digits; ++i) {
    float norm = 0;
    for (int p = 0; p < digit_pixels; ++p) {
      const auto value = static_cast<float>(*at++ - 'a');
      all.pixels.push_back(value);
      norm += value * value;
    }
    all.norms.push_back(norm);  // exact, as all distances are: integers below 2^24
    all.labels.push_back(*at++ - 'a');
  }
  return all;
}

// The commonest digit among the k nearest of the first `count` samples to sample i, itself excepted; the lowest of
// several. `products`: its dot products with all samples.
int classify(const data &of, int i, const float *products, int count, int k) {
  std::vector<std::pair<float, int>> nearest;
  for (int j = 0; j < count; ++j)
    if (j != i) nearest.emplace_back(of.norms[i] + of.norms[j] - 2 * products[j], j);
  std::partial_sort(nearest.begin(), nearest.begin() + k, nearest.end());
  std::array<int, digit_classes> votes{};
  for (int n = 0; n < k; ++n) ++votes[of.labels[nearest[n].second]];
  return static_cast<int>(std::max_element(votes.begin(), votes.end()) - votes.begin());
}

struct score {
  const char *name;
  double known;  // examples/data/README.md
  int right = 0, all = 0;

  void count(bool is_right) { right += is_right, ++all; }
  double accuracy() const { return double(right) / all; }
  bool is_known() const { return std::fabs(accuracy() - known) < 5e-7; }
};

struct demo_result {
  std::string device;
  double seconds, device_seconds, busy_seconds;
  std::array<score, 2> scores;
};

demo_result classify_on(const std::string &device) {
  const data all = load_digits();
  const context_handle context = open_context({.device = device});
  const std::uint64_t bytes = all.pixels.size() * sizeof(float);
  sg_buffer *made = nullptr;
  check(sg_buffer_create(context.get(), bytes, nullptr, &made), "device memory");
  const buffer_handle buffer(made);
  void *x = nullptr, *memory = nullptr;
  check(sg_buffer_data(made, &x), "device memory");
  check(sg_host_alloc(context.get(), sizeof(float) * digits * digits, &memory), "pinned memory");
  const auto release = [&](void *pinned) { sg_host_free(context.get(), pinned); };
  const std::unique_ptr<void, decltype(release)> kept(memory, release);
  auto *const products = static_cast<float *>(memory);

  demo_result out{
      device_of(context.get()).name,
      0,
      0,
      0,
      {score{"5 neighbours, first 90% against last 10%", 0.961111}, score{"1 neighbour, leave one out", 0.988314}}};
  const auto start = std::chrono::steady_clock::now();
  check(sg_copy(context.get(), x, all.pixels.data(), bytes, nullptr), "a copy");
  std::vector<job_handle> jobs;
  const auto rows_in = [](int b) { return std::min(block, digits - b * block); };
  for (int b = 0; b < blocks; ++b) {
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.a = {static_cast<float *>(x) + b * block * digit_pixels,
              rows_in(b),
              digit_pixels,
              0,
              SG_DTYPE_F32,
              SG_LAYOUT_ROW_MAJOR};
    desc.b = {x, digits, digit_pixels, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    desc.op_b = SG_TRANSPOSE_T;
    desc.c = {products + std::int64_t(b) * block * digits, rows_in(b), digits, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    sg_job *job = nullptr;
    check(sg_gemm_async(context.get(), &desc, nullptr, &job), "GEMM");
    jobs.emplace_back(job);
  }
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  for (int b = 0; b < blocks; ++b) {
    check(sg_job_wait(jobs[b].get(), SG_FOREVER, nullptr), "GEMM");
    for (int i = b * block; i < b * block + rows_in(b); ++i) {
      const float *const row = products + std::int64_t(i) * digits;
      if (i >= learned) out.scores[0].count(classify(all, i, row, learned, 5) == all.labels[i]);
      out.scores[1].count(classify(all, i, row, digits, 1) == all.labels[i]);
    }
    const sg_job_statistics did = statistics_of(jobs[b].get());
    out.busy_seconds += did.busy_seconds;
    first = std::min(first, did.start_ns);
    last = std::max(last, did.end_ns);
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  out.device_seconds = double(last - first) * 1e-9;
  return out;
}

void show_digits() {
  constexpr int shown = 8, width = 8;
  for (int row = 0; row < digit_pixels / width; ++row) {
    std::string line;
    for (int i = 0; i < shown; ++i) {
      for (int column = 0; column < width; ++column)
        line += " .:*#"[(digit_rows[i * (digit_pixels + 1) + row * width + column] - 'a' + 3) / 4];
      line += "  ";
    }
    std::printf("  %s\n", line.c_str());
  }
}

void run(const std::string &device, bool as_json) {
  const demo_result found = classify_on(device);
  bool right = true;
  json all = {{"device", found.device},
              {"digits", digits},
              {"jobs", blocks},
              {"seconds", found.seconds},
              {"device_seconds", found.device_seconds},
              {"overlap", found.busy_seconds / found.device_seconds},
              {"accuracies", json::array()}};
  for (const score &each : found.scores) {
    right = right && each.is_known();
    all["accuracies"].push_back({{"name", each.name},
                                 {"accuracy", each.accuracy()},
                                 {"right", each.right},
                                 {"of", each.all},
                                 {"known", each.known}});
  }
  if (as_json) {
    print_json(all);
  } else {
    std::printf("%s\n",
                heading("Which digit is it? Handwritten digits, each classified by its nearest neighbours:").c_str());
    show_digits();
    std::printf("%d digits, all pairs, on %s: %s; %d jobs of the device took %s, overlap %s\n", digits,
                found.device.c_str(), format_seconds(found.seconds).c_str(), blocks,
                format_seconds(found.device_seconds).c_str(),
                format_fixed(found.busy_seconds / found.device_seconds, 2).c_str());
    for (const score &each : found.scores)
      std::printf("%-42s %s (%d of %d), known %s\n", each.name, good(format_fixed(each.accuracy(), 6)).c_str(),
                  each.right, each.all, format_fixed(each.known, 6).c_str());
  }
  if (!right) throw failure(exit_code::verification, "the accuracies are not the known ones");
}

}  // namespace

void add_demo(CLI::App &app) {
  struct options {
    std::string device = "auto";
    bool json = false;
  };
  auto given = std::make_shared<options>();
  CLI::App *verb = app.add_subcommand("demo", "Classify 1797 handwritten digits, to see that all works");
  verb->add_option("--device", given->device, "Where to multiply (default auto)");
  verb->add_flag("--json", given->json, "Print JSON");
  verb->footer(
      "Example: streamgemm demo --device sim:h200 --trace digits.html\n"
      "The digits: E. Alpaydin, C. Kaynak, UCI Machine Learning Repository, CC BY 4.0.");
  verb->callback([given] { run(given->device, given->json); });
}

}  // namespace sg::cli
