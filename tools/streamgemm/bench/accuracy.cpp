// SPDX-License-Identifier: Apache-2.0
// The suite `accuracy`: f32 GEMMs under each arithmetic that a caller may allow: their times and errors.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "../library.hpp"
#include "../verify.hpp"
#include "gpu_peers.hpp"
#include "suite.hpp"

namespace sg::cli {

namespace {

struct gemm_shape {
  std::int64_t m, n, k;
  std::string text() const { return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k); }
};

// Uniform in (-1, 1), or in (0, 1), where every sum grows and every truncation errs in the same direction.
enum class numbers { of_both_signs, positive };

std::vector<float> random_matrix(std::int64_t count, numbers which, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> all(static_cast<std::size_t>(count));
  for (float &each : all) {
    const auto unit = static_cast<float>((double(random() >> 40) + 0.5) * 0x1p-24);
    each = which == numbers::positive ? unit : 2 * unit - 1;
  }
  return all;
}

// Some elements of C, spread over it: expected values, and the sums of their products' magnitudes.
class sample {
 public:
  sample(const gemm_shape &of, const std::vector<float> &a, const std::vector<float> &b) : of_(of) {
    rows_ = spread(of.m), columns_ = spread(of.n);
    const auto gathered = [&](const std::vector<float> &from, std::int64_t first, std::int64_t step) {
      std::vector<double> line(static_cast<std::size_t>(of.k));
      for (std::size_t l = 0; l < line.size(); ++l)
        line[l] = from[static_cast<std::size_t>(first + std::int64_t(l) * step)];
      return line;
    };
    std::vector<std::vector<double>> lines;
    for (const std::int64_t j : columns_) lines.push_back(gathered(b, j * of.k, 1));
    for (const std::int64_t i : rows_) {
      const std::vector<double> row = gathered(a, i, of.m);
      for (const std::vector<double> &column : lines) {
        double sum = 0, magnitude = 0;
        for (std::size_t l = 0; l < row.size(); ++l) {
          sum += row[l] * column[l];
          magnitude += std::fabs(row[l] * column[l]);
        }
        wanted_.push_back({sum, magnitude});
      }
    }
  }

  void poison(sg_context *context, float *c) const {
    const std::vector<float> nothing(static_cast<std::size_t>(of_.m), std::numeric_limits<float>::quiet_NaN());
    for (const std::int64_t j : columns_)
      check(sg_copy(context, c + j * of_.m, nothing.data(), nothing.size() * sizeof(float), nullptr), "a copy");
  }

  struct errors {
    double largest = 0, rms = 0;  // relative to the product of the magnitudes
  };
  errors of(sg_context *context, const float *c) const {
    errors seen;
    std::vector<float> column(static_cast<std::size_t>(of_.m));
    for (std::size_t j = 0; j < columns_.size(); ++j) {
      check(sg_copy(context, column.data(), c + columns_[j] * of_.m, column.size() * sizeof(float), nullptr), "a copy");
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        const element &x = wanted_[i * columns_.size() + j];
        const double error = std::fabs(column[static_cast<std::size_t>(rows_[i])] - x.sum) / x.magnitude;
        if (!(error <= seen.largest))
          seen.largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
        seen.rms += error * error;
      }
    }
    seen.rms = std::sqrt(seen.rms / double(wanted_.size()));
    return seen;
  }

 private:
  struct element {
    double sum, magnitude;
  };
  static std::vector<std::int64_t> spread(std::int64_t extent) {
    constexpr std::int64_t most = 128;
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < std::min(extent, most); ++i)
      places.push_back(std::min(extent - 1, i * extent / std::min(extent, most) + i % 7));
    return places;
  }

  gemm_shape of_;
  std::vector<std::int64_t> rows_, columns_;
  std::vector<element> wanted_;
};

class accuracy_suite {
 public:
  accuracy_suite(const suite_request &request, suite_run &out)
      : out_(out),
        quick_(request.quick),
        peers_(load_gpu_peers(request.peers)),
        context_(open_context({.device = request.device.empty() ? "auto" : request.device})) {
    out_.note("device", device_of(context_.get()).name);
    if (peers_) note_gpu_facts(*peers_, out_);
  }

  void measure(const gemm_shape &of, numbers which) {
    const std::string name = "f32 " + of.text() + (which == numbers::positive ? ", positive" : ", of both signs");
    if (!out_.wants(name)) return;
    const std::vector<float> a = random_matrix(of.m * of.k, which, 1), b = random_matrix(of.k * of.n, which, 2);
    const buffer_handle on_device = made(a.size() + b.size() + std::size_t(of.m * of.n));
    void *memory = nullptr;
    check(sg_buffer_data(on_device.get(), &memory), "device memory");
    const operands x{of, static_cast<float *>(memory)};
    check(sg_copy(context_.get(), x.a(), a.data(), a.size() * sizeof(float), nullptr), "a copy of A");
    check(sg_copy(context_.get(), x.b(), b.data(), b.size() * sizeof(float), nullptr), "a copy of B");
    const sample seen(of, a, b);

    const double flops = 2.0 * double(of.m) * double(of.n) * double(of.k);
    bench_case what{name, flops, {}};
    const int times = quick_ ? 5 : int(std::clamp(0.02 / (flops / 5e13 + 5e-6), 1.0, 100.0));
    const auto add = [&](const std::string &variant, sg_compute compute, const std::function<double(int)> &run) {
      what.variants.push_back({variant, [=] { return run(times); },
                               [=, this, &seen] { return errors_of(seen, x, variant, compute, run); }});
    };
    const auto ours = [&](const std::string &variant, sg_compute compute) {
      add(variant, compute, [=, this](int count) { return in_a_row(x.desc(compute), count); });
    };
    ours(own_variant, SG_COMPUTE_3XTF32);
    ours("streamgemm, bf16x3", SG_COMPUTE_BF16X3);
    ours("streamgemm, tf32", SG_COMPUTE_TF32);
    ours("streamgemm, exact", SG_COMPUTE_EXACT);
    for (const auto &[variant, compute] :
         {std::pair{"cublasGemmEx", SG_COMPUTE_EXACT}, {"cublasGemmEx, tf32", SG_COMPUTE_TF32}}) {
      const gpu_gemm gemm = x.gemm(compute);
      if (!peers_ || peers_->resident(0, &gemm, 1) < 0) continue;
      add(variant, compute, [=, this](int count) { return peers_->resident(0, &gemm, count); });
    }
    out_.run(what);
  }

 private:
  // Column-major, one after another.
  struct operands {
    gemm_shape of;
    float *first;
    float *a() const { return first; }
    float *b() const { return first + of.m * of.k; }
    float *c() const { return b() + of.k * of.n; }
    sg_gemm_desc desc(sg_compute compute) const {
      sg_gemm_desc desc = SG_GEMM_DESC_INIT;
      desc.a = {a(), of.m, of.k, of.m, SG_DTYPE_F32, SG_LAYOUT_COLUMN_MAJOR};
      desc.b = {b(), of.k, of.n, of.k, SG_DTYPE_F32, SG_LAYOUT_COLUMN_MAJOR};
      desc.c = {c(), of.m, of.n, of.m, SG_DTYPE_F32, SG_LAYOUT_COLUMN_MAJOR};
      desc.compute = compute;
      return desc;
    }
    gpu_gemm gemm(sg_compute compute) const {
      return {of.m, of.n, of.k, SG_DTYPE_F32, compute, SG_TRANSPOSE_N, SG_TRANSPOSE_N, of.m, of.k, of.m, a(), b(), c()};
    }
  };

  buffer_handle made(std::size_t count) const {
    sg_buffer *fresh = nullptr;
    check(sg_buffer_create(context_.get(), count * sizeof(float), nullptr, &fresh), "device memory");
    return buffer_handle(fresh);
  }

  // Seconds of one; each overwrites the previous one's C, like calls on one stream.
  double in_a_row(const sg_gemm_desc &desc, int times) const {
    return timed([&] {
             for (int i = 0; i < times; ++i)
               check(sg_gemm_async(context_.get(), &desc, nullptr, nullptr), "sg_gemm_async");
             check(sg_context_synchronize(context_.get(), SG_FOREVER), "sg_context_synchronize");
           }) /
           times;
  }

  std::vector<std::pair<std::string, double>> errors_of(const sample &seen, const operands &x,
                                                        const std::string &variant, sg_compute compute,
                                                        const std::function<double(int)> &run) const {
    seen.poison(context_.get(), x.c());
    run(1);
    const sample::errors found = seen.of(context_.get(), x.c());
    const int pieces = int(x.of.k / 256) + 2;  // no device uses shorter ones
    const double allowed = error_bound_of_f32(compute, x.of.k, pieces);
    if (!(found.largest <= allowed)) {
      char text[96];
      std::snprintf(text, sizeof text, " is off by %.2e of the product of the magnitudes, %.2e is allowed, at ",
                    found.largest, allowed);
      throw failure(exit_code::verification, variant + text + x.of.text());
    }
    return {{"largest_error", found.largest}, {"rms_error", found.rms}};
  }

  suite_run &out_;
  const bool quick_;
  const gpu_peer_table *peers_;
  context_handle context_;
};

}  // namespace

void run_accuracy_suite(const suite_request &request, suite_run &run) {
  accuracy_suite suite(request, run);
  const std::vector<gemm_shape> shapes =
      request.quick ? std::vector<gemm_shape>{{128, 96, 300}}
                    : std::vector<gemm_shape>{{8192, 8192, 8192},  {4096, 4096, 4096}, {2048, 2048, 2048},
                                              {4096, 4096, 32768}, {8191, 4097, 5003}, {8192, 8192, 256}};
  for (const gemm_shape &of : shapes)
    for (const numbers which : {numbers::of_both_signs, numbers::positive}) suite.measure(of, which);
}

}  // namespace sg::cli
