// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/dnn/computation.hpp"

#include "backends/cuda/dnn/attributes.hpp"

namespace sg::cuda::dnn {
namespace {

constexpr std::int64_t alignment = 16;
constexpr std::size_t most_tensors = 24;

}  // namespace

status executable::run(handle by, const way &how, std::span<const bound> tensors, void *workspace) const noexcept {
  std::int64_t numbers[most_tensors];
  const void *addresses[most_tensors];
  const auto count = static_cast<std::int64_t>(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) numbers[i] = tensors[i].number, addresses[i] = tensors[i].at;
  const functions &dnn = library();
  const owned pack(variant_pack);
  constexpr status no_memory = 4003;
  if (!pack) return no_memory;
  status outcome = dnn.set(pack.get(), of_pack::numbers, type_i64, count, numbers);
  if (outcome == 0) outcome = dnn.set(pack.get(), of_pack::addresses, type_pointer, count, addresses);
  if (outcome == 0) outcome = dnn.set(pack.get(), of_pack::workspace, type_pointer, 1, &workspace);
  if (outcome == 0) outcome = dnn.finalize(pack.get());
  const std::lock_guard lock(lock_);
  return outcome == 0 ? dnn.execute(by, how.plan.get(), pack.get()) : outcome;
}

descriptor computation::made(int kind) {
  all_.emplace_back(kind);
  failed_ = failed_ || !all_.back();
  return all_.back().get();
}

void computation::set(descriptor of, int attribute, int type, std::int64_t count, const void *value) noexcept {
  failed_ = failed_ || library().set(of, attribute, type, count, value) != 0;
}

void computation::set_tensor(descriptor of, int attribute, tensor which) noexcept {
  if (which >= 0) set(of, attribute, type_descriptor, tensors_[static_cast<std::size_t>(which)]);
}

void computation::finalize(descriptor of) noexcept { failed_ = failed_ || library().finalize(of) != 0; }

void computation::add_operation(descriptor of) {
  finalize(of);
  operations_.push_back(of);
}

computation::tensor computation::add(std::int64_t number, const extent &of, data_type type, bool is_virtual,
                                     bool is_value) {
  const descriptor fresh = made(tensor_descriptor);
  set(fresh, of_tensor::type, type_data_type, type);
  set(fresh, of_tensor::sizes, type_i64, std::int64_t(of.sizes.size()), of.sizes.data());
  set(fresh, of_tensor::strides, type_i64, std::int64_t(of.strides.size()), of.strides.data());
  set(fresh, of_tensor::number, type_i64, number);
  set(fresh, of_tensor::alignment, type_i64, alignment);
  if (is_virtual) set(fresh, of_tensor::is_virtual, type_boolean, true);
  if (is_value) set(fresh, of_tensor::is_value, type_boolean, true);
  finalize(fresh);
  tensors_.push_back(fresh);
  return static_cast<tensor>(tensors_.size()) - 1;
}

void computation::apply(function f, data_type arithmetic, tensor y, tensor x, tensor b, tensor t, std::int64_t axis) {
  const descriptor mode = made(pointwise_mode), operation = made(pointwise);
  set(mode, of_pointwise_mode::function, type_function, f);
  set(mode, of_pointwise_mode::arithmetic, type_data_type, arithmetic);
  if (axis >= 0) set(mode, of_pointwise_mode::axis, type_i64, axis);
  if (f == relu) set(mode, of_pointwise_mode::nan, type_nan, propagate_nan);
  finalize(mode);
  set(operation, of_pointwise::mode, type_descriptor, mode);
  set_tensor(operation, of_pointwise::x, x);
  set_tensor(operation, of_pointwise::y, y);
  set_tensor(operation, of_pointwise::b, b);
  set_tensor(operation, of_pointwise::t, t);
  add_operation(operation);
}

void computation::multiply_matrices(tensor c, tensor a, tensor b, tensor rows, tensor cols, tensor inner) {
  const descriptor mode = made(matmul_mode), operation = made(matmul);
  set(mode, of_matmul_mode::arithmetic, type_data_type, f32);
  finalize(mode);
  set_tensor(operation, of_matmul::a, a);
  set_tensor(operation, of_matmul::b, b);
  set_tensor(operation, of_matmul::c, c);
  set(operation, of_matmul::mode, type_descriptor, mode);
  set_tensor(operation, of_matmul::rows, rows);
  set_tensor(operation, of_matmul::cols, cols);
  set_tensor(operation, of_matmul::inner, inner);
  add_operation(operation);
}

void computation::reduce(reduction_function f, tensor y, tensor x) {
  const descriptor mode = made(reduction_mode), operation = made(reduction);
  set(mode, of_reduction_mode::arithmetic, type_data_type, f32);
  set(mode, of_reduction_mode::function, type_reduction, f);
  finalize(mode);
  set(operation, of_reduction::mode, type_descriptor, mode);
  set_tensor(operation, of_reduction::x, x);
  set_tensor(operation, of_reduction::y, y);
  add_operation(operation);
}

void computation::reshape(tensor y, tensor x) {
  const descriptor operation = made(dnn::reshape);
  set_tensor(operation, of_reshape::x, x);
  set_tensor(operation, of_reshape::y, y);
  add_operation(operation);
}

void computation::convolve(descriptor_kind which, const convolution &how, tensor x, tensor w, tensor y) {
  const descriptor mode = made(convolution_mode), operation = made(which);
  const convolution_attributes at = attributes_of(which);
  constexpr std::int64_t dimensions = 2;
  set(mode, of_convolution_mode::arithmetic, type_data_type, f32);
  set(mode, of_convolution_mode::kind, type_convolution_kind, cross_correlation);
  set(mode, of_convolution_mode::dimensions, type_i64, dimensions);
  set(mode, of_convolution_mode::before, type_i64, dimensions, how.before.data());
  set(mode, of_convolution_mode::after, type_i64, dimensions, how.after.data());
  set(mode, of_convolution_mode::strides, type_i64, dimensions, how.strides.data());
  set(mode, of_convolution_mode::dilations, type_i64, dimensions, how.dilations.data());
  finalize(mode);
  set(operation, at.mode, type_descriptor, mode);
  set(operation, at.alpha, type_f32, 1.0f);
  set(operation, at.beta, type_f32, 0.0f);
  set_tensor(operation, at.x, x);
  set_tensor(operation, at.w, w);
  set_tensor(operation, at.y, y);
  add_operation(operation);
}

bool computation::suits(descriptor configuration, std::uint32_t refused_notes) const noexcept {
  const functions &dnn = library();
  const owned by(engine);
  std::int64_t count = 0;
  descriptor of_engine = by.get();
  if (!by || dnn.get(configuration, of_configuration::engine, type_descriptor, 1, &count, &of_engine) != 0)
    return false;
  int notes[numerical_notes] = {};
  if (dnn.get(by.get(), of_engine::notes, type_numerical_note, numerical_notes, &count, notes) != 0) return false;
  for (std::int64_t i = 0; i < count; ++i)
    if ((refused_notes >> notes[i] & 1) != 0) return false;
  return true;
}

std::unique_ptr<const executable> computation::finish(handle by, const limits &within) {
  const functions &dnn = library();
  const descriptor graph = made(operation_graph);
  set(graph, of_graph::operations, type_descriptor, std::int64_t(operations_.size()), operations_.data());
  set(graph, of_graph::handle, type_handle, by);
  if (failed_ || dnn.finalize(graph) != 0) return nullptr;
  std::vector<executable::way> ways;
  for (const int mode : {heuristics_a, heuristics_fallback}) {
    const owned heuristics(engine_heuristics);
    if (!heuristics || dnn.set(heuristics.get(), of_heuristics::graph, type_descriptor, 1, &graph) != 0 ||
        dnn.set(heuristics.get(), of_heuristics::mode, type_heuristics, 1, &mode) != 0 ||
        dnn.finalize(heuristics.get()) != 0)
      continue;
    std::int64_t count = 0;
    if (dnn.get(heuristics.get(), of_heuristics::results, type_descriptor, 0, &count, nullptr) != 0) continue;
    std::vector<owned> configurations;
    std::vector<descriptor> raw;
    for (std::int64_t i = 0; i < count; ++i) {
      configurations.emplace_back(engine_configuration);
      if (!configurations.back()) return nullptr;
      raw.push_back(configurations.back().get());
    }
    if (dnn.get(heuristics.get(), of_heuristics::results, type_descriptor, count, &count, raw.data()) != 0) continue;
    // Of those after the first that suits, only few are looked at for less memory: each may be compiled.
    int more = 4;
    for (std::int64_t i = 0; i < count && more > 0; ++i) {
      if (!ways.empty()) --more;
      const descriptor configuration = raw[static_cast<std::size_t>(i)];
      if (!suits(configuration, within.refused_notes)) continue;
      owned plan(execution_plan);
      std::int64_t workspace = 0, number = 0;
      if (!plan || dnn.set(plan.get(), of_plan::handle, type_handle, 1, &by) != 0 ||
          dnn.set(plan.get(), of_plan::configuration, type_descriptor, 1, &configuration) != 0 ||
          dnn.finalize(plan.get()) != 0 ||
          dnn.get(plan.get(), of_plan::workspace, type_i64, 1, &number, &workspace) != 0)
        continue;
      const auto bytes = static_cast<std::size_t>(workspace);
      if (bytes > within.workspace || (!ways.empty() && bytes >= ways.back().workspace)) continue;
      ways.push_back({std::move(plan), bytes});
      all_.push_back(std::move(configurations[static_cast<std::size_t>(i)]));
      if (ways.size() == within.ways || bytes == 0) break;
    }
    if (!ways.empty()) return std::make_unique<const executable>(std::move(ways), std::move(all_));
  }
  return nullptr;
}

}  // namespace sg::cuda::dnn
