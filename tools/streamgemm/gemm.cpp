// SPDX-License-Identifier: Apache-2.0
// streamgemm gemm: multiplies two .npy files.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "choices.hpp"
#include "format.hpp"
#include "library.hpp"
#include "npy.hpp"
#include "prediction.hpp"
#include "progress.hpp"
#include "verbs.hpp"
#include "verify.hpp"

namespace sg::cli {

namespace {

struct gemm_arguments {
  std::string a, b, bias, output;
  context_request where;
  sg_dtype dtype = {};  // 0: that of the files
  sg_compute compute = SG_COMPUTE_EXACT;
  sg_transpose op_a = SG_TRANSPOSE_N, op_b = SG_TRANSPOSE_N;
  sg_activation activation = SG_ACTIVATION_NONE;
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  bool pinned = false, verify = false, json = false;
};

// Pins a matrix's memory while it lives.
class pinning {
 public:
  pinning(sg_context *context, matrix &x) : context_(context), memory_(x.bytes.data()) {
    if (x.bytes.empty()) memory_ = nullptr;
    if (memory_) check(sg_host_register(context, memory_, x.bytes.size()), "pinning a matrix");
  }
  ~pinning() {
    if (memory_) sg_host_unregister(context_, memory_);
  }
  pinning(const pinning &) = delete;
  pinning &operator=(const pinning &) = delete;

 private:
  sg_context *context_;
  void *memory_;
};

struct outcome {
  sg_job_statistics statistics;
  double seconds;  // of the submitting thread, from the submission to the return of the wait
};

std::string shape_of(const matrix &x, sg_transpose op) {
  const auto [rows, cols] = op == SG_TRANSPOSE_N ? std::pair(x.rows, x.cols) : std::pair(x.cols, x.rows);
  return std::to_string(rows) + " x " + std::to_string(cols);
}

// Waits in steps, so that the user sees progress.
void wait(sg_job *job) {
  progress line("multiplying");
  constexpr std::int64_t step_ns = 200'000'000;
  sg_status status;
  while ((status = sg_job_wait(job, step_ns, nullptr)) == SG_STATUS_TIMEOUT) line.elapsed();
  check(status, "GEMM");
}

// A bias in C's type; one value for each column of C, or for each row.
matrix load_bias(const std::string &path, const matrix &c) {
  matrix bias = load_npy_vector(path);
  if (bias.dtype != c.dtype && !is_complex(bias.dtype) && (c.dtype == SG_DTYPE_F32 || c.dtype == SG_DTYPE_F64))
    bias = convert(bias, c.dtype);
  if (bias.dtype != c.dtype)
    throw failure(exit_code::usage,
                  path + " is " + sg_dtype_name(bias.dtype) + ", the result is " + sg_dtype_name(c.dtype));
  if (!(bias.rows == 1 && bias.cols == c.cols) && !(bias.rows == c.rows && bias.cols == 1))
    throw failure(exit_code::usage, path + " is " + shape_of(bias, SG_TRANSPOSE_N) + "; a bias of " +
                                        shape_of(c, SG_TRANSPOSE_N) +
                                        " has a value for each column, or in a column one for each row");
  return bias;
}

outcome multiply(sg_context *context, const gemm_arguments &given, matrix &a, matrix &b, matrix &c,
                 const matrix *bias) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = a.view();
  desc.b = b.view();
  desc.c = c.view();
  desc.op_a = given.op_a;
  desc.op_b = given.op_b;
  desc.compute = given.compute;
  desc.activation = given.activation;
  if (bias) {
    desc.bias = bias->bytes.data();
    desc.bias_shape = bias->rows == 1 && bias->cols == c.cols ? SG_BIAS_PER_COLUMN : SG_BIAS_PER_ROW;
  }
  sg_submit submit = SG_SUBMIT_INIT;
  submit.plan = &given.options;

  const auto start = std::chrono::steady_clock::now();
  sg_job *raw = nullptr;
  check(sg_gemm_async(context, &desc, &submit, &raw), "GEMM");
  const job_handle job(raw);
  wait(raw);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return {statistics_of(raw), took.count()};
}

json to_json(const gemm_arguments &given, const sg_device_info &device, const matrix &a, const matrix &c,
             std::int64_t k, const outcome &result) {
  const auto &did = result.statistics;
  const double span = double(did.end_ns - did.start_ns) * 1e-9;
  return {{"device", device.name},
          {"m", c.rows},
          {"n", c.cols},
          {"k", k},
          {"dtype", sg_dtype_name(a.dtype)},
          {"out_dtype", sg_dtype_name(c.dtype)},
          {"compute", name_of(computes, given.compute)},
          {"bias", given.bias.empty() ? json() : json(given.bias)},
          {"activation", name_of(activations, given.activation)},
          {"strategy", did.strategy},
          {"seconds", result.seconds},
          {"device_seconds", span},
          {"predicted_seconds", did.predicted_seconds},
          {"prediction_ratio", prediction_ratio(span, did.predicted_seconds)},
          {"bound_seconds", did.bound_seconds},
          {"overlap", span > 0 ? json(did.busy_seconds / span) : json()},
          {"flops", did.flops},
          {"bytes_in", did.bytes_in},
          {"bytes_out", did.bytes_out},
          {"commands", did.commands},
          {"output", given.output.empty() ? json() : json(given.output)}};
}

void print_gemm_text(const json &all) {
  const double seconds = all["device_seconds"];
  std::printf("%lld x %lld x %lld %s -> %s on %s: %s (%s), %s, overlap %s\n", all["m"].get<long long>(),
              all["n"].get<long long>(), all["k"].get<long long>(), all["dtype"].get<std::string>().c_str(),
              all["out_dtype"].get<std::string>().c_str(), all["device"].get<std::string>().c_str(),
              format_seconds(seconds).c_str(),
              seconds > 0 ? format_rate(all["flops"].get<double>() / seconds, "flop/s").c_str() : "nothing to do",
              all["strategy"].get<std::string>().c_str(),
              all["overlap"].is_null() ? "none" : format_fixed(all["overlap"], 2).c_str());
  std::printf("%s\n", compared(all["predicted_seconds"], seconds).c_str());
  if (all.contains("verify")) {
    const json &verify = all["verify"];
    std::printf("verify: %lld elements, %lld wrong, largest error %s of its bound\n",
                verify["elements"].get<long long>(), verify["wrong"].get<long long>(),
                verify["worst"].is_null() ? "beyond any part" : format_fixed(verify["worst"], 3).c_str());
  }
}

void run(const gemm_arguments &given) {
  const context_handle context = open_context(given.where);
  matrix a = load_npy(given.a), b = load_npy(given.b);
  if (given.dtype) a = convert(a, given.dtype), b = convert(b, given.dtype);
  if (a.dtype != b.dtype)
    throw failure(exit_code::usage, given.a + " is " + sg_dtype_name(a.dtype) + ", " + given.b + " is " +
                                        sg_dtype_name(b.dtype) + "; they must agree (see --dtype)");
  const std::int64_t m = given.op_a == SG_TRANSPOSE_N ? a.rows : a.cols,
                     k = given.op_a == SG_TRANSPOSE_N ? a.cols : a.rows;
  const std::int64_t n = given.op_b == SG_TRANSPOSE_N ? b.cols : b.rows;
  if ((given.op_b == SG_TRANSPOSE_N ? b.rows : b.cols) != k)
    throw failure(exit_code::usage,
                  "shapes do not fit: " + shape_of(a, given.op_a) + " times " + shape_of(b, given.op_b));

  // .npy has no bf16, so its results are kept in f32.
  const sg_dtype out = a.dtype == SG_DTYPE_BF16 ? SG_DTYPE_F32 : natural_output(a.dtype);
  matrix c = make_matrix(out, SG_LAYOUT_ROW_MAJOR, m, n);
  matrix bias;
  if (!given.bias.empty()) bias = load_bias(given.bias, c);
  const epilogue end{given.bias.empty() ? nullptr : &bias, given.activation};
  std::vector<std::unique_ptr<pinning>> pins;
  if (given.pinned)
    for (matrix *x : {&a, &b, &c}) pins.push_back(std::make_unique<pinning>(context.get(), *x));
  if (given.where.flags & SG_CONTEXT_TUNE) multiply(context.get(), given, a, b, c, end.bias);
  const outcome result = multiply(context.get(), given, a, b, c, end.bias);
  pins.clear();
  json all = to_json(given, device_of(context.get()), a, c, k, result);

  bool right = true;
  if (given.verify) {
    progress line("verifying");
    const verification check =
        verify_gemm(a, given.op_a, b, given.op_b, c, end, given.compute,
                    int(std::max<std::int64_t>(1, result.statistics.commands)), [&](double f) { line.fraction(f); });
    right = check.passed();
    all["verify"] = {{"passed", right},
                     {"elements", check.elements},
                     {"wrong", check.wrong},
                     {"worst", std::isfinite(check.worst) ? json(check.worst) : json()}};
    if (!right) all["verify"]["worst_at"] = {check.worst_row, check.worst_col};
  }
  if (!given.output.empty()) save_npy(given.output, c);
  if (given.json)
    print_json(all);
  else
    print_gemm_text(all);
  if (!right) throw failure(exit_code::verification, "the result is wrong");
}

}  // namespace

void add_gemm(CLI::App &app) {
  auto given = std::make_shared<gemm_arguments>();
  CLI::App *verb = app.add_subcommand("gemm", "Multiply two matrices in .npy files");
  verb->add_option("A", given->a, "Left operand, .npy")->required();
  verb->add_option("B", given->b, "Right operand, .npy")->required();
  verb->add_option("-o,--output", given->output, "Write the result here, .npy");
  verb->add_option("--device", given->where.device, "Where to multiply (default auto)");
  add_choice(*verb, "--dtype", given->dtype, input_types, "Convert A and B first (to f32, f64, bf16 or f8)");
  add_choice(*verb, "--compute", given->compute, computes, "Least accurate arithmetic allowed (default exact)");
  add_choice(*verb, "--ta", given->op_a, ops, "Operation on A (default N)");
  add_choice(*verb, "--tb", given->op_b, ops, "Operation on B (default N)");
  verb->add_option("--bias", given->bias, "Add this, .npy: a value for each column, or in a column one for each row");
  add_choice(*verb, "--activation", given->activation, activations, "Apply this to each element last (default none)");
  add_choice(*verb, "--split", given->options.split, splits, "How to split the GEMM (default auto)");
  verb->add_option("--streams", given->options.streams, "Compute streams")->check(whole_number(0));
  verb->add_option("--memory-limit", given->where.memory_limit, "Device memory to use, e.g. 4GiB")
      ->transform(size_in_bytes());
  verb->add_flag("--pinned", given->pinned, "Pin the matrices' memory first: no threads stage them then");
  verb->add_flag_callback(
      "--tune", [given] { given->where.flags |= SG_CONTEXT_TUNE; },
      "Multiply once to time the device's kernels, and then with the fastest");
  verb->add_flag("--verify", given->verify, "Check every element against a reference of this program's own");
  verb->add_flag("--json", given->json, "Print JSON");
  verb->footer("Example: streamgemm gemm a.npy b.npy -o c.npy --device cuda:0 --verify");
  verb->callback([given] {
    given->where.compute_lanes = given->options.streams;
    run(*given);
  });
}

}  // namespace sg::cli
