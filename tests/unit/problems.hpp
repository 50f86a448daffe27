// SPDX-License-Identifier: Apache-2.0
// Problems and device models for the tests of the plan layer.
#pragma once

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "model/machine_model.hpp"
#include "plan/gemm/gemm_form.hpp"
#include "plan/planner.hpp"

namespace sg::test {

enum class batch_form { strided, gapped, interleaved, shared_a, shared_b, pointers };

// Epilogue of a problem. `own`: each item of a batch has its own bias, with gaps between them.
enum class ending { nothing, relu, row_bias, column_bias, own_row_bias_relu, own_column_bias_relu };
inline constexpr int endings = 6;

struct problem_form {
  std::int64_t m = 13, n = 11, k = 17, batch = 1;
  sg_transpose op_a = SG_TRANSPOSE_N, op_b = SG_TRANSPOSE_N;
  std::int64_t pad = 0;  // ld beyond tight
  sg_dtype in = SG_DTYPE_F32, out = SG_DTYPE_F32;
  bool beta_zero = true;
  bool no_multiply = false;
  batch_form batching = batch_form::strided;
  sg_memory_kind a = SG_MEMORY_DEVICE, b = SG_MEMORY_DEVICE, c = SG_MEMORY_DEVICE;
  ending end = ending::nothing;
  sg_memory_kind bias = SG_MEMORY_DEVICE;
};

inline void add_ending(problem &p, const problem_form &f) {
  const bool activated =
      f.end == ending::relu || f.end == ending::own_row_bias_relu || f.end == ending::own_column_bias_relu;
  if (activated && !is_complex(f.out)) p.activation = SG_ACTIVATION_RELU;
  if (f.end == ending::nothing || f.end == ending::relu) return;
  const bool per_row = f.end == ending::row_bias || f.end == ending::own_row_bias_relu;
  p.bias.rows = p.bias.ld = per_row ? f.m : 1;
  p.bias.cols = per_row ? 1 : f.n;
  p.bias.type = f.out, p.bias.space = f.bias;
  if (activated && f.batch > 1) p.bias.item_stride = (per_row ? f.m : f.n) + 5;
}

inline problem make(const problem_form &f) {
  problem p;
  p.m = f.m, p.n = f.n, p.k = f.k, p.batch = f.batch;
  p.op_a = f.op_a, p.op_b = f.op_b;
  p.beta_zero = f.beta_zero, p.no_multiply = f.no_multiply;
  const auto shape = [&](std::int64_t rows, std::int64_t cols, sg_dtype type, sg_memory_kind place) {
    operand x;
    x.rows = rows, x.cols = cols;
    x.ld = rows + f.pad;
    x.type = type, x.space = place;
    x.item_stride = x.ld * cols;
    if (f.batching == batch_form::gapped) x.item_stride += 7;
    if (f.batching == batch_form::interleaved) {
      x.item_stride = x.ld;
      x.ld *= f.batch;
    }
    if (f.batching == batch_form::pointers) {
      x.item_stride = 0;
      x.pointer_array = true;
    }
    return x;
  };
  p.a = f.op_a == SG_TRANSPOSE_N ? shape(f.m, f.k, f.in, f.a) : shape(f.k, f.m, f.in, f.a);
  p.b = f.op_b == SG_TRANSPOSE_N ? shape(f.k, f.n, f.in, f.b) : shape(f.n, f.k, f.in, f.b);
  p.c = shape(f.m, f.n, f.out, f.c);
  if (f.batching == batch_form::shared_a) p.a.item_stride = 0;
  if (f.batching == batch_form::shared_b) p.b.item_stride = 0;
  add_ending(p, f);
  return p;
}

inline std::string text(const problem_form &f) {
  std::ostringstream out;
  out << f.m << "x" << f.n << "x" << f.k << " batch " << f.batch << " form " << int(f.batching) << " ops "
      << name_of(f.op_a) << name_of(f.op_b) << " pad " << f.pad << " " << name_of(f.in) << "->" << name_of(f.out)
      << (f.beta_zero ? " beta 0" : "") << (f.no_multiply ? " no product" : "") << " A " << name_of(f.a) << " B "
      << name_of(f.b) << " C " << name_of(f.c) << " ending " << int(f.end) << " bias " << name_of(f.bias);
  return out.str();
}

// One of the models that ship with the sim backend.
inline device_model shipped_model(const std::string &name) {
  std::ifstream file(std::string(SG_MODELS_DIR) + "/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return parse_device_model(text.str());
}

// One of their machines.
inline machine_model shipped_machine(const std::string &name) {
  std::ifstream file(std::string(SG_MODELS_DIR) + "/" + name + ".json");
  nlohmann::json text = nlohmann::json::parse(file);
  for (nlohmann::json &each : text["devices"])
    each["model"] = nlohmann::json::parse(model_text(shipped_model(each["model"].get<std::string>())));
  return parse_machine_model(text.dump());
}

inline std::vector<device_index> first_devices(std::size_t count) {
  std::vector<device_index> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(device_index(i));
  return all;
}

// A device with few staging threads.
inline const device_model &h200() {
  static const device_model m = shipped_model("h200");
  return m;
}
inline const device_model &h200_with_three_staging_workers() {
  static const device_model m = [] {
    device_model x = shipped_model("h200");
    x.staging_workers = 3;
    return x;
  }();
  return m;
}

// Cores that share one memory, as the cpu backend describes itself.
inline device_model cores(int count) {
  device_model m;
  m.name = "cores";
  m.unified_memory = m.lanes_are_cores = true;
  m.memory_bytes = std::int64_t(1) << 36;
  m.compute_lanes = count;
  m.launch_latency = 5e-6;
  m.launch_gap = 1e-6;
  m.memory_rate = 40e9;
  for (int type = SG_DTYPE_F64; type <= SG_DTYPE_F8_E5M2; ++type)
    if (type != SG_DTYPE_I32)
      m.rates.push_back({sg_dtype(type), SG_COMPUTE_EXACT, type == SG_DTYPE_F64 ? 50e9 : 100e9});
  return m;
}

// The plan of a GEMM, or of a group.
template <class Model>
std::shared_ptr<const schedule> make_gemm_plan(const std::vector<problem> &problems, const Model &model,
                                               const plan_request &request) {
  return make_plan(gemm_form(std::span<const problem>(problems)), model, request);
}

}  // namespace sg::test
