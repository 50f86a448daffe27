// SPDX-License-Identifier: Apache-2.0
// cuDNN's graph interface on the emulated GPU, as far as the plugin calls it: an interpreter of operation graphs, in
// double precision. It is as strict as the plugin must expect: it proposes engines that the plugin does not use, has
// none for some shapes and for graphs that it does not know, and refuses operands that are not aligned.
#include <streamgemm/backend.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "backends/cuda/dnn/attributes.hpp"
#include "backends/sim/layers.hpp"
#include "gpu.hpp"

#define API extern "C" __attribute__((visibility("default")))

namespace dnn = sg::cuda::dnn;
using emulated::call;

namespace sg::cuda::dnn {
struct context {
  cudaStream_t stream = nullptr;
};
}  // namespace sg::cuda::dnn

namespace {

enum : dnn::status { success = 0, bad_param = 2000, not_supported = 3000, no_memory = 4004, execution_failed = 5000 };

dnn::status status_of(cudaError_t error) noexcept {
  if (error == cudaSuccess) return success;
  cudaGetLastError();  // cuDNN has its own runtime
  return error == cudaErrorMemoryAllocation ? no_memory : execution_failed;
}

using extent = std::array<std::int64_t, 4>;

struct object {
  int kind;
  bool is_final = false;
  std::map<int, std::vector<std::int64_t>> numbers;  // and enumerators, booleans, pointers
  std::map<int, std::vector<std::shared_ptr<const object>>> objects;
  int engine_index = -1;  // of engines and their configurations

  bool has(int attribute) const { return numbers.count(attribute) > 0 || objects.count(attribute) > 0; }
  std::int64_t number(int attribute, std::int64_t otherwise = 0) const {
    const auto found = numbers.find(attribute);
    return found == numbers.end() || found->second.empty() ? otherwise : found->second.front();
  }
  const object &of(int attribute) const { return *objects.at(attribute).front(); }
  extent sizes() const { return extent_of(dnn::of_tensor::sizes); }
  extent strides() const { return extent_of(dnn::of_tensor::strides); }
  extent extent_of(int attribute) const {
    extent made{};
    std::copy_n(numbers.at(attribute).begin(), made.size(), made.begin());
    return made;
  }
};
// What the plugin holds.
struct handle_of_object {
  std::shared_ptr<object> is;
};

std::int64_t count_of(const extent &x) { return x[0] * x[1] * x[2] * x[3]; }
std::int64_t index_of(const extent &sizes, const extent &at) {
  return ((at[0] * sizes[1] + at[1]) * sizes[2] + at[2]) * sizes[3] + at[3];
}
template <class Body>
void each_index(const extent &sizes, Body &&body) {
  extent at{};
  for (at[0] = 0; at[0] < sizes[0]; ++at[0])
    for (at[1] = 0; at[1] < sizes[1]; ++at[1])
      for (at[2] = 0; at[2] < sizes[2]; ++at[2])
        for (at[3] = 0; at[3] < sizes[3]; ++at[3]) body(at);
}
// Of a tensor whose dimensions have as many elements, or a divisor of it.
extent narrowed(const extent &at, const extent &sizes, const extent &to) {
  extent made{};
  for (std::size_t i = 0; i < at.size(); ++i) made[i] = at[i] * to[i] / sizes[i];
  return made;
}

sg_dtype type_of(std::int64_t type) noexcept {
  return type == dnn::f16 ? SG_DTYPE_F16 : type == dnn::bf16 ? SG_DTYPE_BF16 : SG_DTYPE_F32;
}
double rounded(double x, std::int64_t type) {
  if (type == dnn::i32 || type == dnn::boolean) return x;
  double made = x;
  sg::sim::with_layer_type(type_of(type), [&]<class Type>() { made = Type::load(Type::store(x)); });
  return made;
}

// One run of a graph.
class interpreter {
 public:
  explicit interpreter(std::map<std::int64_t, void *> addresses) : addresses_(std::move(addresses)) {}

  void run(const object &graph) {
    for (const auto &each : graph.objects.at(dnn::of_graph::operations)) run_operation(*each);
  }

 private:
  using values = std::vector<double>;

  const values &read(const object &tensor) {
    const std::int64_t number = tensor.number(dnn::of_tensor::number);
    const auto known = known_.find(number);
    if (known != known_.end()) return known->second;
    const extent sizes = tensor.sizes(), strides = tensor.strides();
    values made(std::size_t(count_of(sizes)));
    const void *from = addresses_.at(number);
    const std::int64_t type = tensor.number(dnn::of_tensor::type);
    each_index(sizes, [&](const extent &at) {
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * strides[i];
      double &to = made[std::size_t(index_of(sizes, at))];
      if (type == dnn::i32)
        to = static_cast<const std::int32_t *>(from)[offset];
      else
        sg::sim::with_layer_type(type_of(type), [&]<class Type>() {
          to = Type::load(static_cast<const typename Type::stored *>(from)[offset]);
        });
    });
    return known_.emplace(number, std::move(made)).first->second;
  }
  // A tensor's values and sizes.
  struct operand {
    const double *values;
    extent sizes;
    double at(const extent &where) const { return values[index_of(sizes, where)]; }
    // Of a larger tensor's index.
    double within(const extent &where, const extent &larger) const { return at(narrowed(where, larger, sizes)); }
  };
  operand operand_of(const object &tensor) { return {read(tensor).data(), tensor.sizes()}; }

  void write(const object &tensor, values made) {
    const std::int64_t number = tensor.number(dnn::of_tensor::number), type = tensor.number(dnn::of_tensor::type);
    for (double &each : made) each = rounded(each, type);
    const values &kept = known_[number] = std::move(made);
    if (tensor.number(dnn::of_tensor::is_virtual) != 0) return;
    const extent sizes = tensor.sizes(), strides = tensor.strides();
    void *to = addresses_.at(number);
    each_index(sizes, [&](const extent &at) {
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * strides[i];
      sg::sim::with_layer_type(type_of(type), [&]<class Type>() {
        static_cast<typename Type::stored *>(to)[offset] = Type::store(kept[std::size_t(index_of(sizes, at))]);
      });
    });
  }

  void run_operation(const object &x) {
    switch (x.kind) {
      case dnn::pointwise: return run_pointwise(x);
      case dnn::matmul: return run_matmul(x);
      case dnn::reduction: return run_reduction(x);
      case dnn::reshape: return run_reshape(x);
      default: return run_convolution(x);
    }
  }

  void run_pointwise(const object &x) {
    const object &mode = x.of(dnn::of_pointwise::mode), &from = x.of(dnn::of_pointwise::x);
    const object &to = x.of(dnn::of_pointwise::y);
    const auto f = static_cast<dnn::function>(mode.number(dnn::of_pointwise_mode::function));
    const auto axis = std::size_t(mode.number(dnn::of_pointwise_mode::axis));
    const bool keeps_nan = mode.number(dnn::of_pointwise_mode::nan) == dnn::propagate_nan;
    const bool has_b = x.has(dnn::of_pointwise::b), has_t = x.has(dnn::of_pointwise::t);
    const extent sizes = to.sizes();
    values made(std::size_t(count_of(sizes)));
    const operand of_x = f == dnn::index_along ? operand{} : operand_of(from);
    const operand of_b = has_b ? operand_of(x.of(dnn::of_pointwise::b)) : operand{};
    const operand of_t = has_t ? operand_of(x.of(dnn::of_pointwise::t)) : operand{};
    each_index(sizes, [&](const extent &at) {
      const double a = f == dnn::index_along ? 0 : of_x.within(at, sizes);
      const double b = has_b ? of_b.within(at, sizes) : 0, t = has_t ? of_t.within(at, sizes) : 0;
      double &y = made[std::size_t(index_of(sizes, at))];
      switch (f) {
        case dnn::add: y = a + b; break;
        case dnn::multiply: y = a * b; break;
        case dnn::divide: y = a / b; break;
        case dnn::subtract: y = a - b; break;
        case dnn::exponential: y = std::exp(a); break;
        case dnn::logarithm: y = std::log(a); break;
        case dnn::identity: y = a; break;
        case dnn::relu: y = a < 0 || (std::isnan(a) && !keeps_nan) ? 0 : a; break;
        case dnn::greater_or_equal: y = a >= b; break;
        case dnn::less: y = a < b; break;
        case dnn::logical_and: y = a != 0 && b != 0; break;
        case dnn::index_along: y = double(at[axis]); break;
        case dnn::select: y = t != 0 ? a : b; break;
      }
    });
    write(to, std::move(made));
  }

  void run_matmul(const object &x) {
    const object &c = x.of(dnn::of_matmul::c);
    const operand a = operand_of(x.of(dnn::of_matmul::a)), b = operand_of(x.of(dnn::of_matmul::b));
    const extent sizes = c.sizes();
    const auto length = [&](int which, const extent &at, std::int64_t whole) {
      return x.has(which) ? std::int64_t(operand_of(x.of(which)).at({at[0], 0, 0, 0})) : whole;
    };
    values made(std::size_t(count_of(sizes)));
    each_index(sizes, [&](const extent &at) {
      if (at[2] >= length(dnn::of_matmul::rows, at, sizes[2]) || at[3] >= length(dnn::of_matmul::cols, at, sizes[3]))
        return;
      const std::int64_t inner = length(dnn::of_matmul::inner, at, a.sizes[3]);
      double sum = 0;
      for (std::int64_t k = 0; k < inner; ++k)
        sum += a.at({at[0], at[1] * a.sizes[1] / sizes[1], at[2], k}) *
               b.at({at[0], at[1] * b.sizes[1] / sizes[1], k, at[3]});
      made[std::size_t(index_of(sizes, at))] = sum;
    });
    write(c, std::move(made));
  }

  void run_reduction(const object &x) {
    const object &from = x.of(dnn::of_reduction::x), &to = x.of(dnn::of_reduction::y);
    const bool adds = x.of(dnn::of_reduction::mode).number(dnn::of_reduction_mode::function) == dnn::sum;
    const extent sizes = from.sizes(), of_y = to.sizes();
    const operand of_x = operand_of(from);
    values made(std::size_t(count_of(of_y)), adds ? 0 : -INFINITY);
    each_index(sizes, [&](const extent &at) {
      double &y = made[std::size_t(index_of(of_y, narrowed(at, sizes, of_y)))];
      const double value = of_x.at(at);
      y = adds ? y + value : std::max(y, value);
    });
    write(to, std::move(made));
  }

  // With the last two dimensions exchanged.
  void run_reshape(const object &x) {
    const object &to = x.of(dnn::of_reshape::y);
    const operand of_x = operand_of(x.of(dnn::of_reshape::x));
    const extent sizes = to.sizes();
    values made(std::size_t(count_of(sizes)));
    each_index(sizes, [&](const extent &at) {
      made[std::size_t(index_of(sizes, at))] = of_x.at({at[0], at[1], at[3], at[2]});
    });
    write(to, std::move(made));
  }

  void run_convolution(const object &operation) {
    const auto kind = static_cast<dnn::descriptor_kind>(operation.kind);
    const dnn::convolution_attributes at = dnn::attributes_of(kind);
    const object &x = operation.of(at.x), &w = operation.of(at.w), &y = operation.of(at.y);
    const object &mode = operation.of(at.mode);
    const auto pair = [&](int attribute, int i) { return mode.numbers.at(attribute)[std::size_t(i)]; };
    const extent of_x = x.sizes(), of_w = w.sizes(), of_y = y.sizes();
    const std::int64_t groups = of_x[1] / of_w[1], outputs = of_w[0] / groups;
    const bool is_forward = kind == dnn::convolution_forward, is_of_x = kind == dnn::convolution_data_gradient;
    const operand from_x = is_of_x ? operand{} : operand_of(x);
    const operand from_w = is_forward || is_of_x ? operand_of(w) : operand{};
    const operand from_y = is_forward ? operand{} : operand_of(y);
    const object &result = kind == dnn::convolution_forward ? y : kind == dnn::convolution_data_gradient ? x : w;
    values made(std::size_t(count_of(result.sizes())));
    each_index(of_y, [&](const extent &p) {
      for (std::int64_t c = 0; c < of_w[1]; ++c)
        for (std::int64_t kh = 0; kh < of_w[2]; ++kh)
          for (std::int64_t kw = 0; kw < of_w[3]; ++kw) {
            const std::int64_t row = p[2] * pair(dnn::of_convolution_mode::strides, 0) -
                                     pair(dnn::of_convolution_mode::before, 0) +
                                     kh * pair(dnn::of_convolution_mode::dilations, 0);
            const std::int64_t col = p[3] * pair(dnn::of_convolution_mode::strides, 1) -
                                     pair(dnn::of_convolution_mode::before, 1) +
                                     kw * pair(dnn::of_convolution_mode::dilations, 1);
            if (row < 0 || row >= of_x[2] || col < 0 || col >= of_x[3]) continue;
            const extent in_x = {p[0], p[1] / outputs * of_w[1] + c, row, col}, in_w = {p[1], c, kh, kw};
            if (is_forward)
              made[std::size_t(index_of(of_y, p))] += from_x.at(in_x) * from_w.at(in_w);
            else if (is_of_x)
              made[std::size_t(index_of(of_x, in_x))] += from_y.at(p) * from_w.at(in_w);
            else
              made[std::size_t(index_of(of_w, in_w))] += from_y.at(p) * from_x.at(in_x);
          }
    });
    write(result, std::move(made));
  }

  std::map<std::int64_t, void *> addresses_;
  std::map<std::int64_t, values> known_;  // by tensor
};

// Engines: one by Winograd's method, one that needs more memory than there is, and two others.
constexpr int engines = 4;
enum : int { by_winograd, large, medium, small };

bool is_convolution(const object &x) {
  return x.kind == dnn::convolution_forward || x.kind == dnn::convolution_data_gradient ||
         x.kind == dnn::convolution_filter_gradient;
}

bool has_engine(const object &graph, int index) {
  const auto &operations = graph.objects.at(dnn::of_graph::operations);
  const object &first = *operations.front();
  if (!is_convolution(first)) return index == small;  // an attention
  const dnn::convolution_attributes at = dnn::attributes_of(static_cast<dnn::descriptor_kind>(first.kind));
  const extent x = first.of(at.x).sizes(), w = first.of(at.w).sizes();
  if (w[2] == 7) return false;  // none for windows of seven rows
  const bool is_fused = operations.size() > 1, has_groups = x[1] != w[1];
  if (is_fused && (has_groups || first.of(at.x).number(dnn::of_tensor::type) == dnn::f32)) return false;
  return index == small || (index != by_winograd && w[2] != 2);
}

std::int64_t workspace_of(const object &graph, int index) {
  const object &first = *graph.objects.at(dnn::of_graph::operations).front();
  if (!is_convolution(first)) return 512;
  const dnn::convolution_attributes at = dnn::attributes_of(static_cast<dnn::descriptor_kind>(first.kind));
  const std::int64_t images = first.of(at.x).sizes()[0];
  return index == large ? std::int64_t{1} << 40 : index == medium ? 4096 * images : 0;
}

bool is_valid(const object &x) {
  if (x.kind != dnn::tensor_descriptor) return true;
  for (const int each : {dnn::of_tensor::sizes, dnn::of_tensor::strides})
    if (x.numbers.count(each) == 0 || x.numbers.at(each).size() != 4 ||
        std::any_of(x.numbers.at(each).begin(), x.numbers.at(each).end(), [](auto value) { return value <= 0; }))
      return false;
  return true;
}

object &of(dnn::descriptor x) { return *static_cast<handle_of_object *>(x)->is; }

}  // namespace

API std::size_t cudnnGetVersion() {
  const char *wanted = std::getenv("SG_EMULATED_CUDNN");
  return wanted == nullptr ? 91900 : std::size_t(std::atoi(wanted));
}
API const char *cudnnGetErrorString(dnn::status status) {
  switch (status) {
    case no_memory: return "the resource allocation of the emulated cuDNN failed";
    case execution_failed: return "the emulated cuDNN failed to launch";
    default: return "another status of the emulated cuDNN";
  }
}
API dnn::status cudnnCreate(dnn::handle *out) {
  if (const dnn::status status = status_of(emulated::enter(call::allocation))) return status;
  *out = new dnn::context{};
  emulated::keep(*out);
  return success;
}
API dnn::status cudnnDestroy(dnn::handle x) {
  emulated::drop(x);
  delete x;
  return success;
}
API dnn::status cudnnSetStream(dnn::handle x, cudaStream_t stream) {
  x->stream = stream;
  return success;
}

API dnn::status cudnnBackendCreateDescriptor(int kind, dnn::descriptor *out) {
  auto *fresh = new handle_of_object{std::make_shared<object>()};
  fresh->is->kind = kind;
  emulated::keep(fresh);
  *out = fresh;
  return success;
}
API dnn::status cudnnBackendDestroyDescriptor(dnn::descriptor x) {
  auto *gone = static_cast<handle_of_object *>(x);
  emulated::drop(gone);
  delete gone;
  return success;
}
API dnn::status cudnnBackendSetAttribute(dnn::descriptor x, int attribute, int type, std::int64_t count,
                                         const void *value) {
  object &to = of(x);
  if (to.is_final) return bad_param;
  if (type == dnn::type_descriptor) {
    auto &all = to.objects[attribute];
    all.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      const object &each = of(static_cast<const dnn::descriptor *>(value)[i]);
      if (!each.is_final) return bad_param;
      all.push_back(static_cast<const handle_of_object *>(static_cast<const dnn::descriptor *>(value)[i])->is);
    }
    return success;
  }
  auto &all = to.numbers[attribute];
  all.clear();
  for (std::int64_t i = 0; i < count; ++i) switch (type) {
      case dnn::type_i64:
      case dnn::type_pointer:
      case dnn::type_handle: all.push_back(static_cast<const std::int64_t *>(value)[i]); break;
      case dnn::type_boolean: all.push_back(static_cast<const bool *>(value)[i]); break;
      case dnn::type_f32: all.push_back(std::int64_t(static_cast<const float *>(value)[i])); break;
      default: all.push_back(static_cast<const int *>(value)[i]);
    }
  return success;
}
API dnn::status cudnnBackendFinalize(dnn::descriptor x) {
  object &made = of(x);
  if (made.is_final || !is_valid(made)) return bad_param;
  if (made.kind == dnn::execution_plan) {
    const object &configuration = made.of(dnn::of_plan::configuration);
    if (!has_engine(configuration.of(dnn::of_heuristics::graph), configuration.engine_index)) return not_supported;
  }
  made.is_final = true;
  return success;
}
API dnn::status cudnnBackendGetAttribute(dnn::descriptor x, int attribute, int, std::int64_t room, std::int64_t *count,
                                         void *out) {
  const object &from = of(x);
  if (from.kind == dnn::engine_heuristics && attribute == dnn::of_heuristics::results) {
    *count = out == nullptr ? engines : std::min<std::int64_t>(room, engines);
    if (out == nullptr) return success;
    for (std::int64_t i = 0; i < *count; ++i) {
      object &to = of(static_cast<dnn::descriptor *>(out)[i]);
      to.objects[dnn::of_heuristics::graph] = from.objects.at(dnn::of_heuristics::graph);
      to.engine_index = int(i);
      to.is_final = true;
    }
    return success;
  }
  *count = 1;
  if (from.kind == dnn::engine_configuration && attribute == dnn::of_configuration::engine) {
    object &to = of(*static_cast<dnn::descriptor *>(out));
    to.engine_index = from.engine_index;
    to.is_final = true;
    return success;
  }
  if (from.kind == dnn::engine && attribute == dnn::of_engine::notes) {
    *count = from.engine_index == by_winograd ? 1 : 0;
    if (*count > 0) *static_cast<int *>(out) = dnn::uses_winograd;
    return success;
  }
  if (from.kind == dnn::execution_plan && attribute == dnn::of_plan::workspace) {
    const object &configuration = from.of(dnn::of_plan::configuration);
    *static_cast<std::int64_t *>(out) =
        workspace_of(configuration.of(dnn::of_heuristics::graph), configuration.engine_index);
    return success;
  }
  return bad_param;
}

API dnn::status cudnnBackendExecute(dnn::handle handle, dnn::descriptor plan, dnn::descriptor pack) {
  if (const dnn::status status = status_of(emulated::enter(call::command))) return status;
  const std::shared_ptr<const object> made = static_cast<handle_of_object *>(plan)->is;
  const object &bound = of(pack), &configuration = made->of(dnn::of_plan::configuration);
  const object &graph = configuration.of(dnn::of_heuristics::graph);
  if (!made->is_final || !bound.is_final) return bad_param;
  const auto &numbers = bound.numbers.at(dnn::of_pack::numbers), &addresses = bound.numbers.at(dnn::of_pack::addresses);
  std::map<std::int64_t, void *> all;
  for (std::size_t i = 0; i < numbers.size(); ++i) all[numbers[i]] = reinterpret_cast<void *>(addresses[i]);

  // Values are read now, and the others must be reachable and aligned.
  std::map<std::int64_t, std::int64_t> values;
  for (const auto &operation : graph.objects.at(dnn::of_graph::operations))
    for (const auto &[attribute, tensors] : operation->objects)
      for (const auto &tensor : tensors) {
        if (tensor->kind != dnn::tensor_descriptor || tensor->number(dnn::of_tensor::is_virtual) != 0) continue;
        const std::int64_t number = tensor->number(dnn::of_tensor::number);
        if (all.count(number) == 0 || all[number] == nullptr) return bad_param;
        if (tensor->number(dnn::of_tensor::is_value) != 0) {
          if (values.count(number) == 0) std::memcpy(&values[number], all[number], sizeof(std::int32_t));
          continue;
        }
        if (reinterpret_cast<std::uintptr_t>(all[number]) % 16 != 0) return bad_param;
        if (const dnn::status status = status_of(emulated::reach(handle->stream, {all[number]}))) return status;
      }
  void *const workspace = reinterpret_cast<void *>(bound.number(dnn::of_pack::workspace));
  const std::int64_t bytes = workspace_of(graph, configuration.engine_index);
  if (bytes > 0 && workspace == nullptr) return bad_param;
  if (const dnn::status status = status_of(emulated::reach(handle->stream, {workspace}))) return status;
  return status_of(emulated::enqueue(handle->stream, [=]() mutable {
    if (bytes > 0) std::memset(workspace, 0x5a, std::size_t(bytes));
    for (auto &[number, value] : values) all[number] = &value;
    interpreter(all).run(made->of(dnn::of_plan::configuration).of(dnn::of_heuristics::graph));
  }));
}
