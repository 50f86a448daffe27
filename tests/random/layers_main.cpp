// SPDX-License-Identifier: Apache-2.0
// Random chains of the operations of layers.h, convert.h and gather.h, GEMMs, gradients of linear layers, attention
// with its gradients, convolutions and GRUs on overlapping views of a few matrices, submitted without waits between
// them or recorded in a graph: the result must be that of one after another. Overlap is refused exactly where it must
// be. In some chains operations fail, and those that read their results, until an operation has written all of them.
// Of a context over several devices, operations but GEMMs and copies are refused where their operands are in
// memory of different devices, or of another device than their stream.
// usage: random_layers_test --device NAME --seconds N [--seed N]
#include <streamgemm/streamgemm.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "../reference/functions.hpp"
#include "../reference/recurrent.hpp"
#include "../reference/softmax.hpp"
#include "arguments.hpp"
#include "foreign.hpp"
#include "shares.hpp"
#include "support/numbers.hpp"
#include "support/owned.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t side = 48, elements = side * side;
constexpr int matrices = 3;
// Device memory of a chain: matrices of f64, one of f32, and one of quantized values.
struct memory {
  double *of_f64[matrices];
  float *of_f32;
  std::int8_t *codes;
  void *written_by_failure, *scratch;
  // Of the matrices, of the one of f32 and of the quantized values; `anywhere`: host memory.
  int device_of_f64[matrices], device_of_f32, device_of_codes;
};
constexpr int anywhere = -1;
struct stream_of_device {
  sg_stream *handle;
  int device;
};
constexpr std::uint64_t scratch_bytes = 1 << 16;
constexpr double epsilon = 0.25;  // so large that errors of earlier steps do not grow

std::uint64_t current_seed = 0;
shares drawn;
foreign_memory foreign;

[[noreturn]] void stop(const std::string &why) {
  std::fprintf(stderr, "--seed %llu: %s (%s)\n", static_cast<unsigned long long>(current_seed), why.c_str(),
               sg_last_error_message());
  std::exit(1);
}
void require_ok(sg_status status, const char *what) {
  if (status != SG_STATUS_OK) stop(std::string(what) + ": " + sg_status_name(status));
}

// A part of one of the matrices, whose leading dimension it has. Columns of several heads may have gaps between heads.
struct part {
  int matrix;
  std::int64_t start, rows, cols;
  sg_layout layout;
  std::int64_t head_width = side, head_stride = side;

  std::int64_t at(std::int64_t i, std::int64_t j) const {
    j = j / head_width * head_stride + j % head_width;
    return start + (layout == SG_LAYOUT_ROW_MAJOR ? i * side + j : i + j * side);
  }
  bool operator==(const part &) const = default;
};

bool share(const part &x, const part &y) {
  if (x.matrix != y.matrix) return false;
  std::vector<bool> of_x(elements);
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.cols; ++j) of_x[std::size_t(x.at(i, j))] = true;
  for (std::int64_t i = 0; i < y.rows; ++i)
    for (std::int64_t j = 0; j < y.cols; ++j)
      if (of_x[std::size_t(y.at(i, j))]) return true;
  return false;
}

class chain {
 public:
  chain(sg_context *context, const std::vector<stream_of_device> &streams, const memory &given, bool fails,
        std::uint64_t seed)
      : context_(context), streams_(streams), memory_(given), data_(given.of_f64), random_(seed), fails_(fails) {}

  void run() {
    if (drawn.note("gradients of a recurrent layer", random_.below(8) == 0)) recurrent_gradients();
    std::vector<double> whole(elements);
    for (int m = 0; m < matrices; ++m) {
      for (double &each : whole) each = random_.real();
      host_.push_back(whole);
      require_ok(sg_copy(context_, data_[m], whole.data(), elements * sizeof(double), nullptr), "sg_copy");
    }
    for (float &each : floats_) each = static_cast<float>(random_.real());
    require_ok(sg_copy(context_, memory_.of_f32, floats_.data(), elements * sizeof(float), nullptr), "sg_copy");
    require_ok(sg_copy(context_, memory_.codes, codes_.data(), elements, nullptr), "sg_copy");
    const bool records = drawn.note("graphs", random_.below(4) == 0);
    const bool untracked = records && random_.below(3) == 0;
    if (records) drawn.note("untracked runs of graphs", untracked);
    may_fail_ = drawn.note("chains with failures", !records && fails_ && random_.below(3) == 0);
    if (records) log_ += untracked ? "an untracked graph\n" : "a graph\n";
    if (may_fail_) submit_failure();
    if (records) require_ok(sg_graph_create(context_, &submit_.graph), "sg_graph_create");
    for (int steps = 1 + random_.below(12); steps > 0; --steps) {
      const stream_of_device &chosen = streams_[std::size_t(random_.below(int(streams_.size())))];
      submit_.stream = chosen.handle;
      stream_device_ = chosen.device;
      must_be_apart_ = false;
      one_step();
    }
    check_statuses();
    if (records) {
      sg_submit run = SG_SUBMIT_INIT;
      if (untracked) require_ok(sg_context_synchronize(context_, SG_FOREVER), "sg_context_synchronize");
      if (untracked) run.flags = SG_SUBMIT_UNTRACKED;
      require_ok(sg_graph_run_async(submit_.graph, &run, nullptr), "sg_graph_run_async");
      if (untracked) require_ok(sg_context_synchronize(context_, SG_FOREVER), "sg_context_synchronize");
      require_ok(sg_graph_release(submit_.graph), "sg_graph_release");
    }
    for (int m = 0; m < matrices; ++m) {
      require_ok(sg_copy(context_, whole.data(), data_[m], elements * sizeof(double), nullptr), "sg_copy");
      for (std::size_t i = 0; i < whole.size(); ++i)
        if (const double wanted = host_[std::size_t(m)][i];
            !(std::fabs(whole[i] - wanted) <= 1e-9 * (1 + std::fabs(wanted))))
          stop(log_ + "element " + std::to_string(i) + " of matrix " + std::to_string(m) + " is " +
               std::to_string(whole[i]) + " instead of " + std::to_string(wanted));
    }
    std::vector<float> floats(elements);
    std::vector<std::int8_t> codes(elements);
    require_ok(sg_copy(context_, floats.data(), memory_.of_f32, elements * sizeof(float), nullptr), "sg_copy");
    require_ok(sg_copy(context_, codes.data(), memory_.codes, elements, nullptr), "sg_copy");
    if (codes != codes_) stop(log_ + "quantized values differ");
    for (std::size_t i = 0; i < floats.size(); ++i)
      if (floats[i] != floats_[i])
        stop(log_ + "element " + std::to_string(i) + " of f32 is " + std::to_string(floats[i]) + " instead of " +
             std::to_string(floats_[i]));
  }

 private:
  part any_part(std::int64_t rows, std::int64_t cols, sg_layout layout) {
    const bool by_rows = layout == SG_LAYOUT_ROW_MAJOR;
    const int outer = int(side - (by_rows ? rows : cols)), inner = int(side - (by_rows ? cols : rows));
    const std::int64_t start = random_.below(outer + 1) * side + random_.below(inner + 1);
    drawn.note("empty operands", rows == 0 || cols == 0);
    return {random_.below(matrices), std::min(start, elements - 1), rows, cols, layout};
  }
  std::int64_t upto(std::int64_t most) { return random_.below(24) ? 1 + random_.below(int(most)) : 0; }
  // Tokens of heads side by side in each row, perhaps with gaps between heads.
  part any_heads(std::int64_t tokens, std::int64_t heads, std::int64_t width) {
    const std::int64_t most = heads > 1 ? (side - heads * width) / (heads - 1) : 0;
    const std::int64_t gap = random_.below(2) ? random_.below(int(most) + 1) : 0;
    part made = any_part(tokens, heads * width + std::max<std::int64_t>(heads - 1, 0) * gap, SG_LAYOUT_ROW_MAJOR);
    drawn.note("gaps between heads", gap > 0);
    made.cols = heads * width;
    if (width > 0) made.head_width = width, made.head_stride = width + gap;
    return made;
  }
  sg_heads heads_of(const part &p) const { return {data_[p.matrix] + p.start, 0, p.head_stride, side}; }

  // What operations that failed were to write.
  struct unwritten {
    std::vector<bool> elements;  // of all matrices
    bool is_overwritten_in_part = false;
  };
  struct submitted {
    job handle;
    bool fails;
  };

  static sg_status fail(const sg_custom_call *, void *) { return SG_STATUS_UNSUPPORTED; }

  // A job that fails, to be named by later ones; unobserved until the end.
  void submit_failure() {
    sg_custom_operand operand = {memory_.written_by_failure, 8, SG_ACCESS_WRITE};
    sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
    desc.function = fail, desc.operands = &operand, desc.operand_count = 1;
    require_ok(sg_custom_async(context_, &desc, nullptr, failure_.out()), "sg_custom_async");
    after_ = failure_;
  }

  static std::vector<bool> elements_of(const std::vector<part> &parts) {
    std::vector<bool> made(matrices * elements);
    for (const part &p : parts)
      for (std::int64_t i = 0; i < p.rows; ++i)
        for (std::int64_t j = 0; j < p.cols; ++j) made[std::size_t(p.matrix * elements + p.at(i, j))] = true;
    return made;
  }
  static bool meet(const std::vector<bool> &x, const std::vector<bool> &y) {
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] && y[i]) return true;
    return false;
  }

  // Before an operation is submitted: decides whether it fails. False: nothing says what it does, as a part of what it
  // reads has been overwritten.
  bool begins(const std::vector<part> &reads, const std::vector<part> &writes) {
    submit_.after_count = 0;
    fails_now_ = false;
    must_be_apart_ = are_apart(reads, writes);
    if (!may_fail_) return true;
    const std::vector<bool> read = elements_of(reads);
    written_ = elements_of(writes);
    const bool accesses = std::find(written_.begin(), written_.end(), true) != written_.end();
    for (const unwritten &each : unwritten_)
      if (meet(each.elements, read)) {
        if (each.is_overwritten_in_part) return false;
        fails_now_ = fails_now_ || accesses;
      }
    if (drawn.note("operations after a failure", random_.below(8) == 0)) {
      submit_.after = &after_;
      submit_.after_count = 1;
      fails_now_ = true;
    }
    drawn.note("operations that fail", fails_now_);
    return true;
  }
  // Whether operands, none of which is empty, are in memory of different devices, or of another than the stream's.
  bool are_apart(const std::vector<part> &reads, const std::vector<part> &writes) const {
    std::set<int> devices{stream_device_};
    for (const auto *list : {&reads, &writes})
      for (const part &each : *list) {
        if (each.rows == 0 || each.cols == 0) return false;
        devices.insert(memory_.device_of_f64[each.matrix]);
      }
    devices.erase(anywhere);
    return devices.size() > 1;
  }
  // Whether any operands could be so.
  bool may_be_apart() const {
    std::set<int> devices(memory_.device_of_f64, memory_.device_of_f64 + matrices);
    devices.insert({memory_.device_of_f32, memory_.device_of_codes, stream_device_});
    devices.erase(anywhere);
    return devices.size() > 1;
  }
  sg_job **handle() {
    if (!may_fail_) return nullptr;
    jobs_.push_back({job(), fails_now_});
    return jobs_.back().handle.out();
  }
  // The operation has been submitted.
  void note_written() {
    for (auto each = unwritten_.begin(); each != unwritten_.end();) {
      bool all = true;
      for (std::size_t i = 0; i < written_.size(); ++i) all = all && (!each->elements[i] || written_[i]);
      each->is_overwritten_in_part = each->is_overwritten_in_part || meet(each->elements, written_);
      each = all ? unwritten_.erase(each) : std::next(each);
    }
    if (fails_now_) unwritten_.push_back({written_});
  }
  void check_statuses() {
    if (!may_fail_) return;
    require_ok(sg_context_synchronize(context_, SG_FOREVER), "sg_context_synchronize");  // observes nothing
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const sg_status status = sg_job_query(jobs_[i].handle, nullptr),
                      wanted = jobs_[i].fails ? SG_STATUS_DEPENDENCY_FAILED : SG_STATUS_OK;
      if (status != wanted)
        stop(log_ + "job " + std::to_string(i) + " has " + sg_status_name(status) + " instead of " +
             sg_status_name(wanted));
    }
    if (sg_job_wait(failure_, SG_FOREVER, nullptr) != SG_STATUS_UNSUPPORTED) stop("the job that fails");
  }
  sg_matrix view(const part &p) const {
    return {data_[p.matrix] + p.start, p.rows, p.cols, side, SG_DTYPE_F64, p.layout};
  }
  double &host(const part &p, std::int64_t i, std::int64_t j) {
    return host_[std::size_t(p.matrix)][std::size_t(p.at(i, j))];
  }
  std::vector<double> read(const part &p) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < p.rows; ++i)
      for (std::int64_t j = 0; j < p.cols; ++j) values.push_back(host(p, i, j));
    return values;
  }
  void write(const part &p, const std::vector<double> &values) {
    for (std::int64_t i = 0; i < p.rows; ++i)
      for (std::int64_t j = 0; j < p.cols; ++j) host(p, i, j) = values[std::size_t(i * p.cols + j)];
  }
  void note(const char *what, const part &out) {
    char line[120];
    std::snprintf(line, sizeof line, "%s to %lld x %lld at %lld of matrix %d\n", what, (long long)out.rows,
                  (long long)out.cols, (long long)out.start, out.matrix);
    log_ += line;
  }
  // Whether it was accepted, which `overlaps` must allow, and the devices that its operands are on.
  bool accepted(sg_status status, bool overlaps, bool on_one_device = true) {
    const bool is_apart = status == SG_STATUS_INVALID_ARGUMENT &&
                          std::strstr(sg_last_error_message(), "is in memory of device") != nullptr;
    if (on_one_device && drawn.note("operands of several devices refused", is_apart && may_be_apart())) {
      if (may_fail_) jobs_.pop_back();
      return false;
    }
    if (status == SG_STATUS_OK && on_one_device && must_be_apart_)
      stop(log_ + "an operation with operands of several devices is accepted");
    if (status == SG_STATUS_OK && !overlaps) {
      if (may_fail_) note_written();
      if (may_fail_)
        log_ += "  job " + std::to_string(jobs_.size() - 1) +
                (!fails_now_           ? "\n"
                 : submit_.after_count ? ", which follows the failure\n"
                                       : ", which fails\n");
      return !fails_now_;
    }
    if (status == SG_STATUS_INVALID_ARGUMENT && overlaps && std::strstr(sg_last_error_message(), "overlap")) {
      if (may_fail_) jobs_.pop_back();
      return false;
    }
    stop(log_ + "an operation that " + (overlaps ? "overlaps" : "does not overlap") + ": " + sg_status_name(status));
  }
  static bool bad(const part &in, const part &out) { return !(in == out) && share(in, out); }

  void one_step() {
    const sg_layout layout = random_.below(2) ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR;
    const std::int64_t rows = upto(side), cols = upto(side);
    const part out = any_part(rows, cols, layout), in = random_.below(3) ? any_part(rows, cols, layout) : out;
    if (may_fail_) switch (random_.below(8)) {
        case 0: return elementwise(in, out);
        case 1: return softmax(in, out);
        case 2: return norm(in, out);
        case 3: return gradients();
        case 4: return attention_gradients();
        case 5: return gemm(out);
        default: return attention();
      }
    switch (random_.below(24)) {
      case 0: return elementwise(in, out);
      case 1: return softmax(in, out);
      case 2: return norm(in, out);
      case 3: return dequantize();
      case 4: return rotary();
      case 5: return convert(out);
      case 6: return gather();
      case 7: return gradients();
      case 8: return attention();
      case 9: return recurrent();
      case 10: return attention_gradients();
      case 11: return conv();
      case 12: return clamp(in, out);
      case 13: return row_dot(in);
      case 14: return row_reduce(in);
      case 15: return softmax_gradient(in, out);
      case 16: return norm_gradient(in, out);
      case 17: return sgd();
      case 18: return symmetric(out);
      case 19: return rank_k();
      case 20: return triangular(out);
      case 21: return all_reduce();
      case 22: return fill(out);
      default: return gemm(out);
    }
  }

  void elementwise(const part &a, const part &c) {
    sg_elementwise_desc desc = SG_ELEMENTWISE_DESC_INIT;
    desc.function = sg_function(1 + random_.below(14));
    const bool two = desc.function >= SG_FUNCTION_ADD;
    const part b = random_.below(3) ? any_part(c.rows, c.cols, c.layout) : c;
    const std::vector<double> second = read(b);
    // Errors of earlier steps could change the sign of small values.
    const auto is_small = [](double value) { return std::fabs(value) < 1e-6; };
    if (desc.function == SG_FUNCTION_RELU_GRADIENT && std::any_of(second.begin(), second.end(), is_small))
      desc.function = SG_FUNCTION_SILU_GRADIENT;
    desc.a = view(a), desc.b = view(b), desc.c = view(c);
    if (drawn.note("elementwise of foreign memory", c.rows * c.cols > 0 && random_.below(8) == 0)) {
      sg_elementwise_desc theirs = desc;
      (random_.below(2) ? theirs.a : theirs.c).data = foreign.data();
      if (const sg_status status = sg_elementwise_async(context_, &theirs, &submit_, nullptr);
          !foreign_memory::is_refusal(status))
        stop(log_ + "memory of another context: " + sg_status_name(status));
    }
    if (!begins(two ? std::vector{a, b} : std::vector{a}, {c})) return;
    note("elementwise", c);
    if (!accepted(sg_elementwise_async(context_, &desc, &submit_, handle()), bad(a, c) || (two && bad(b, c)))) return;
    std::vector<double> values = read(a);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = double(sg_reference::value_of(desc.function, values[i], second[i]));
    write(c, values);
  }

  void fill(const part &y) {
    sg_fill_desc desc = SG_FILL_DESC_INIT;
    desc.y = view(y), desc.value.re = double(random_.below(9)) - 4;
    if (!begins({}, {y})) return;
    note("fill", y);
    if (!accepted(sg_fill_async(context_, &desc, &submit_, handle()), false)) return;
    write(y, std::vector<double>(read(y).size(), desc.value.re));
  }

  // A clamp of X, or the gradient of one at a third matrix. Limits between which values of earlier steps hardly are
  // keep their errors small.
  void clamp(const part &x, const part &y) {
    const part at = random_.below(3) ? any_part(y.rows, y.cols, y.layout) : y;
    const double low = random_.real() - 1, high = low + 1 + random_.real();
    const std::vector<double> points = read(at);
    const auto is_near = [&](double value) { return std::fabs(value - low) < 1e-6 || std::fabs(value - high) < 1e-6; };
    const bool is_gradient = random_.below(2) != 0 && std::none_of(points.begin(), points.end(), is_near);
    sg_clamp_desc forward = SG_CLAMP_DESC_INIT;
    forward.x = view(x), forward.y = view(y), forward.low = low, forward.high = high;
    sg_clamp_backward_desc backward = SG_CLAMP_BACKWARD_DESC_INIT;
    backward.dy = view(x), backward.x = view(at), backward.dx = view(y), backward.low = low, backward.high = high;
    if (!begins(is_gradient ? std::vector{x, at} : std::vector{x}, {y})) return;
    note(is_gradient ? "clamp gradient" : "clamp", y);
    const sg_status status = is_gradient ? sg_clamp_backward_async(context_, &backward, &submit_, handle())
                                         : sg_clamp_async(context_, &forward, &submit_, handle());
    if (!accepted(status, bad(x, y) || (is_gradient && bad(at, y)))) return;
    std::vector<double> values = read(x);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = !is_gradient                            ? std::min(std::max(values[i], low), high)
                  : low <= points[i] && points[i] <= high ? values[i]
                                                          : 0;
    write(y, values);
  }

  void row_dot(const part &a) {
    const part b = random_.below(3) ? any_part(a.rows, a.cols, a.layout) : a;
    const part y = any_part(a.rows, 1, random_.below(2) ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR);
    if (!is_small(a) || !is_small(b)) return;
    sg_row_dot_desc desc = SG_ROW_DOT_DESC_INIT;
    desc.a = view(a), desc.b = view(b), desc.y = view(y);
    if (!begins({a, b}, {y})) return;
    note("row dot", y);
    if (!accepted(sg_row_dot_async(context_, &desc, &submit_, handle()), share(a, y) || share(b, y))) return;
    const std::vector<double> first = read(a), second = read(b);
    std::vector<double> sums(static_cast<std::size_t>(a.rows));
    for (std::size_t i = 0; i < first.size(); ++i) sums[i / std::size_t(a.cols)] += first[i] * second[i];
    write(y, sums);
  }

  // Of contiguous parts, which must be in device memory, of any devices unless the stream has one.
  void all_reduce() {
    const bool is_row = random_.below(2) != 0;
    const std::int64_t rows = is_row ? 1 : upto(side), cols = is_row ? upto(side) : side;
    std::vector<part> parts;
    std::vector<void *> addresses;
    bool is_on_devices = true, overlaps = false;
    for (int count = 1 + random_.below(matrices); count > 0; --count) {
      const part made = any_part(rows, cols, SG_LAYOUT_ROW_MAJOR);
      if (!is_small(made)) return;
      for (const part &each : parts) overlaps = overlaps || share(each, made);
      sg_memory_kind kind{};
      require_ok(sg_context_memory_kind(context_, data_[made.matrix], elements * sizeof(double), &kind),
                 "sg_context_memory_kind");
      is_on_devices = is_on_devices && kind == SG_MEMORY_DEVICE;
      parts.push_back(made);
      addresses.push_back(data_[made.matrix] + made.start);
    }
    sg_all_reduce_desc desc = SG_ALL_REDUCE_DESC_INIT;
    desc.operands = addresses.data(), desc.operand_count = std::int32_t(addresses.size());
    desc.elements = rows * cols, desc.dtype = SG_DTYPE_F64;
    begins(parts, parts);
    must_be_apart_ = must_be_apart_ && stream_device_ != anywhere;
    note("all-reduce", parts.front());
    const sg_status status = sg_all_reduce_async(context_, &desc, &submit_, handle());
    if (drawn.note("all-reduces of host memory", !is_on_devices && !overlaps && desc.elements > 0)) {
      if (status != SG_STATUS_INVALID_ARGUMENT || !std::strstr(sg_last_error_message(), "is in device memory"))
        stop(log_ + "an all-reduce of host memory: " + sg_status_name(status));
      return;
    }
    if (!accepted(status, overlaps, stream_device_ != anywhere)) return;
    std::set<int> devices;
    for (const part &each : parts) devices.insert(memory_.device_of_f64[each.matrix]);
    drawn.note("all-reduces of several vectors", parts.size() > 1);
    devices.erase(anywhere);
    drawn.note("all-reduces over several devices", devices.size() > 1);
    std::vector<double> sums(static_cast<std::size_t>(desc.elements));
    for (const part &each : parts) std::ranges::transform(sums, read(each), sums.begin(), std::plus<>());
    for (const part &each : parts) write(each, sums);
  }

  sg_layout any_layout() { return random_.below(2) ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR; }
  static bool is_within(sg_triangle triangle, std::int64_t i, std::int64_t j) {
    return triangle == SG_TRIANGLE_LOWER ? i >= j : i <= j;
  }

  void symmetric(const part &c) {
    sg_symmetric_desc desc = SG_SYMMETRIC_DESC_INIT;
    desc.side = sg_side(random_.below(2)), desc.triangle = sg_triangle(random_.below(2));
    desc.alpha = {0.5, 0}, desc.beta = {0.25 * random_.below(2), 0};
    const bool is_left = desc.side == SG_SIDE_LEFT;
    const std::int64_t order = is_left ? c.rows : c.cols;
    const part a = any_part(order, order, any_layout()), b = any_part(c.rows, c.cols, any_layout());
    if (!is_small(a) || !is_small(b)) return;
    desc.a = view(a), desc.b = view(b), desc.c = view(c);
    if (!begins({a, b}, {c})) return;
    note("symmetric product", c);
    if (!accepted(sg_symmetric_async(context_, &desc, &submit_, handle()), share(a, c) || share(b, c))) return;
    const auto s = [&](std::int64_t i, std::int64_t j) {
      return is_within(desc.triangle, i, j) ? host(a, i, j) : host(a, j, i);
    };
    std::vector<double> values;
    for (std::int64_t i = 0; i < c.rows; ++i)
      for (std::int64_t j = 0; j < c.cols; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < order; ++l) sum += is_left ? s(i, l) * host(b, l, j) : host(b, i, l) * s(l, j);
        values.push_back(0.5 * sum + desc.beta.re * host(c, i, j));
      }
    write(c, values);
  }

  void rank_k() {
    sg_rank_k_desc desc = SG_RANK_K_DESC_INIT;
    desc.triangle = sg_triangle(random_.below(2)), desc.op_a = sg_transpose(random_.below(3));
    desc.alpha = {0.5, 0}, desc.beta = {0.25 * random_.below(2), 0};
    const std::int64_t n = upto(side), k = upto(8);
    const bool is_plain = desc.op_a == SG_TRANSPOSE_N;
    const part a = any_part(is_plain ? n : k, is_plain ? k : n, any_layout()), c = any_part(n, n, any_layout());
    if (!is_small(a)) return;
    desc.a = view(a), desc.c = view(c);
    if (!begins({a}, {c})) return;
    note("symmetric update", c);
    if (!accepted(sg_rank_k_async(context_, &desc, &submit_, handle()), k > 0 && share(a, c))) return;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        if (!is_within(desc.triangle, i, j)) continue;
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += is_plain ? host(a, i, l) * host(a, j, l) : host(a, l, i) * host(a, l, j);
        host(c, i, j) = 0.5 * sum + (desc.beta.re != 0 ? desc.beta.re * host(c, i, j) : 0);
      }
  }

  // Products, and the solves of few rows, whose errors stay small.
  void triangular(const part &b) {
    sg_triangular_desc desc = SG_TRIANGULAR_DESC_INIT;
    desc.triangle = sg_triangle(random_.below(2)), desc.op_a = sg_transpose(random_.below(3));
    desc.kind = b.rows <= 3 ? SG_TRIANGULAR_SOLVE : SG_TRIANGULAR_MULTIPLY;
    desc.diagonal = b.rows <= 3 ? SG_DIAGONAL_UNIT : sg_diagonal(random_.below(2)), desc.alpha = {0.5, 0};
    const part a = any_part(b.rows, b.rows, any_layout());
    if (!is_small(a) || !is_small(b)) return;
    desc.a = view(a), desc.b = view(b);
    if (!begins({a, b}, {b})) return;
    note("triangular", b);
    if (!accepted(sg_triangular_async(context_, &desc, &submit_, handle()), share(a, b))) return;
    const auto factor = [&](std::int64_t i, std::int64_t j) {
      if (i == j && desc.diagonal == SG_DIAGONAL_UNIT) return 1.0;
      if (desc.op_a != SG_TRANSPOSE_N) std::swap(i, j);
      return is_within(desc.triangle, i, j) ? host(a, i, j) : 0.0;
    };
    std::vector<double> x = read(b);
    const bool is_lower = (desc.triangle == SG_TRIANGLE_LOWER) == (desc.op_a == SG_TRANSPOSE_N);
    for (std::int64_t j = 0; j < b.cols; ++j)
      for (std::int64_t done = 0; done < b.rows; ++done) {
        const std::int64_t i = is_lower ? done : b.rows - 1 - done;
        double sum = 0;
        const auto at = [&](std::int64_t row) -> double & { return x[std::size_t(row * b.cols + j)]; };
        for (std::int64_t l = 0; l < b.rows; ++l)
          if (l != i) sum += factor(i, l) * (desc.kind == SG_TRIANGULAR_SOLVE ? at(l) : host(b, l, j));
        at(i) =
            desc.kind == SG_TRIANGULAR_SOLVE ? 0.5 * host(b, i, j) - sum : 0.5 * (sum + factor(i, i) * host(b, i, j));
      }
    write(b, x);
  }

  void row_reduce(const part &x) {
    if (x.cols == 0) return;  // a mean of nothing is NaN
    const part y = any_part(x.rows, 1, random_.below(2) ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR);
    sg_row_reduce_desc desc = SG_ROW_REDUCE_DESC_INIT;
    desc.x = view(x), desc.y = view(y), desc.reduction = random_.below(2) ? SG_REDUCTION_MEAN : SG_REDUCTION_MAX;
    if (!begins({x}, {y})) return;
    note("row reduce", y);
    if (!accepted(sg_row_reduce_async(context_, &desc, &submit_, handle()), share(x, y))) return;
    const std::vector<double> values = read(x);
    std::vector<double> reduced;
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const auto row = values.begin() + i * x.cols;
      const double sum = std::accumulate(row, row + x.cols, 0.0), most = *std::max_element(row, row + x.cols);
      reduced.push_back(desc.reduction == SG_REDUCTION_MEAN ? sum / double(x.cols) : most);
    }
    write(y, reduced);
  }

  // Of any Y, which need not be a softmax.
  void softmax_gradient(const part &y, const part &dx) {
    const part dy = random_.below(3) ? any_part(dx.rows, dx.cols, dx.layout) : dx;
    if (!is_small(y) || !is_small(dy)) return;
    sg_softmax_backward_desc desc = SG_SOFTMAX_BACKWARD_DESC_INIT;
    desc.y = view(y), desc.dy = view(dy), desc.dx = view(dx);
    if (!begins({y, dy}, {dx})) return;
    note("softmax gradient", dx);
    if (!accepted(sg_softmax_backward_async(context_, &desc, &submit_, handle()), bad(y, dx) || bad(dy, dx))) return;
    std::vector<double> weights = read(y);
    const std::vector<double> gradients = read(dy);
    for (std::size_t i = 0; i < weights.size(); i += std::size_t(y.cols)) {
      const double sum = std::inner_product(&weights[i], &weights[i] + y.cols, &gradients[i], 0.0);
      for (std::size_t j = i; j < i + std::size_t(y.cols); ++j) weights[j] *= gradients[j] - sum;
    }
    write(dx, weights);
  }

  void norm_gradient(const part &dy, const part &dx) {
    const part x = random_.below(3) ? any_part(dx.rows, dx.cols, dx.layout) : dx;
    const part gamma = any_part(1, x.cols, SG_LAYOUT_ROW_MAJOR), beta = any_part(1, x.cols, SG_LAYOUT_ROW_MAJOR);
    if (!is_small(dy) || !is_small(x)) return;
    sg_norm_backward_desc desc = SG_NORM_BACKWARD_DESC_INIT;
    desc.dy = view(dy), desc.x = view(x), desc.dx = view(dx), desc.epsilon = epsilon;
    desc.kind = random_.below(2) ? SG_NORM_LAYER : SG_NORM_RMS;
    const bool has_gamma = random_.below(2) != 0, has_beta = desc.kind == SG_NORM_LAYER && random_.below(2) != 0;
    if (has_gamma) desc.dgamma = view(gamma).data;
    if (has_beta) desc.dbeta = view(beta).data;
    std::vector<part> results = {dx};
    if (has_gamma) results.push_back(gamma);
    if (has_beta) results.push_back(beta);
    if (!begins({dy, x}, results)) return;
    note("norm gradient", dx);
    const auto meets = [&](const part &vector) { return share(vector, dy) || share(vector, x) || share(vector, dx); };
    const bool overlaps = bad(dy, dx) || bad(x, dx) || (has_gamma && meets(gamma)) || (has_beta && meets(beta)) ||
                          (has_gamma && has_beta && share(gamma, beta));
    if (!accepted(sg_norm_backward_async(context_, &desc, &submit_, handle()), overlaps)) return;
    const std::vector<double> given = read(dy), values = read(x);
    std::vector<double> result(given.size()), of_gamma(std::size_t(x.cols)), of_beta(std::size_t(x.cols));
    const double count = double(x.cols);
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const double *const g = given.data() + i * x.cols, *const row = values.data() + i * x.cols;
      double mean = 0, squares = 0, sum = 0, products = 0;
      const bool is_layer = desc.kind == SG_NORM_LAYER;
      for (std::int64_t j = 0; j < x.cols && is_layer; ++j) mean += row[j] / count;
      for (std::int64_t j = 0; j < x.cols; ++j) squares += (row[j] - mean) * (row[j] - mean) / count;
      const double factor = 1 / std::sqrt(squares + desc.epsilon);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        const double normal = (row[j] - mean) * factor;
        sum += is_layer ? g[j] / count : 0, products += g[j] * normal / count;
        of_gamma[std::size_t(j)] += g[j] * normal, of_beta[std::size_t(j)] += g[j];
      }
      for (std::int64_t j = 0; j < x.cols; ++j)
        result[std::size_t(i * x.cols + j)] = factor * (g[j] - sum - (row[j] - mean) * factor * products);
    }
    write(dx, result);
    if (has_gamma) write(gamma, of_gamma);
    if (has_beta) write(beta, of_beta);
  }

  void sgd() {
    const std::int64_t count = upto(side);
    const part parameters = any_part(1, count, SG_LAYOUT_ROW_MAJOR), gradient = any_part(1, count, SG_LAYOUT_ROW_MAJOR);
    const part momentum = any_part(1, count, SG_LAYOUT_ROW_MAJOR);
    if (!is_small(parameters) || !is_small(gradient) || !is_small(momentum)) return;
    sg_sgd_desc desc = SG_SGD_DESC_INIT;
    desc.parameters = view(parameters).data, desc.gradient = view(gradient).data, desc.elements = count;
    desc.momentum_buffer = view(momentum).data, desc.dtype = SG_DTYPE_F64;
    desc.rate = random_.real(), desc.momentum = 0.5, desc.nesterov = random_.below(2);
    if (!begins({gradient}, {parameters, momentum})) return;
    note("sgd", parameters);
    const bool overlaps = share(parameters, gradient) || share(parameters, momentum) || share(gradient, momentum);
    if (!accepted(sg_sgd_async(context_, &desc, &submit_, handle()), overlaps)) return;
    std::vector<double> p = read(parameters), m = read(momentum);
    const std::vector<double> g = read(gradient);
    for (std::size_t i = 0; i < p.size(); ++i) {
      m[i] = 0.5 * m[i] + g[i];
      p[i] -= desc.rate * (desc.nesterov ? g[i] + 0.5 * m[i] : m[i]);
    }
    write(parameters, p), write(momentum, m);
  }

  void softmax(const part &x, const part &y) {
    sg_softmax_desc desc = SG_SOFTMAX_DESC_INIT;
    desc.x = view(x), desc.y = view(y);
    if (random_.below(2)) desc.mask = SG_MASK_CAUSAL, desc.mask_offset = random_.below(20) - 10;
    if (!begins({x}, {y})) return;
    note("softmax", y);
    if (!accepted(sg_softmax_async(context_, &desc, &submit_, handle()), bad(x, y))) return;
    std::vector<double> values = read(x);
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const std::int64_t limit = i + desc.mask_offset + 1;
      const std::int64_t visible = desc.mask ? std::clamp<std::int64_t>(limit, 0, x.cols) : x.cols;
      sg_reference::softmax(values.data() + i * x.cols, x.cols, visible);
    }
    write(y, values);
  }

  void norm(const part &x, const part &y) {
    sg_norm_desc desc = SG_NORM_DESC_INIT;
    desc.x = view(x), desc.y = view(y), desc.epsilon = epsilon;
    desc.kind = random_.below(2) ? SG_NORM_LAYER : SG_NORM_RMS;
    const part gamma = any_part(1, x.cols, SG_LAYOUT_ROW_MAJOR), beta = any_part(1, x.cols, SG_LAYOUT_ROW_MAJOR);
    const bool has_gamma = random_.below(2) != 0, has_beta = desc.kind == SG_NORM_LAYER && random_.below(2) != 0;
    if (has_gamma) desc.gamma = view(gamma).data;
    if (has_beta) desc.beta = view(beta).data;
    std::vector<part> reads = {x};
    if (has_gamma) reads.push_back(gamma);
    if (has_beta) reads.push_back(beta);
    if (!begins(reads, {y})) return;
    note("norm", y);
    const bool overlaps = bad(x, y) || (has_gamma && share(gamma, y)) || (has_beta && share(beta, y));
    if (!accepted(sg_norm_async(context_, &desc, &submit_, handle()), overlaps)) return;
    std::vector<double> values = read(x);
    const std::vector<double> factors = read(gamma), addends = read(beta);
    for (std::int64_t i = 0; i < x.rows; ++i) {
      double *const row = values.data() + i * x.cols, mean = 0, squares = 0;
      for (std::int64_t j = 0; j < x.cols && desc.kind == SG_NORM_LAYER; ++j) mean += row[j] / double(x.cols);
      for (std::int64_t j = 0; j < x.cols; ++j) squares += (row[j] - mean) * (row[j] - mean) / double(x.cols);
      for (std::int64_t j = 0; j < x.cols; ++j)
        row[j] = (row[j] - mean) / std::sqrt(squares + epsilon) * (has_gamma ? factors[std::size_t(j)] : 1) +
                 (has_beta ? addends[std::size_t(j)] : 0);
    }
    write(y, values);
  }

  void rotary() {
    const std::int64_t rows = upto(side), head = 2 + 2 * random_.below(6), heads = upto(4);
    const std::int64_t rotated = 2 * (1 + random_.below(int(head / 2)));
    const part y = any_part(rows, heads * head, SG_LAYOUT_ROW_MAJOR);
    const part x = random_.below(3) ? any_part(rows, heads * head, SG_LAYOUT_ROW_MAJOR) : y;
    const part cos = any_part(side, rotated / 2, SG_LAYOUT_ROW_MAJOR), sin = any_part(side, rotated / 2, cos.layout);
    const bool has_tables = random_.below(2) != 0;
    sg_rotary_desc desc = SG_ROTARY_DESC_INIT;
    desc.x = view(x), desc.y = view(y), desc.head_size = head, desc.rotated_size = rotated;
    if (has_tables) desc.cos = view(cos), desc.sin = view(sin);
    desc.sequence_length = 1 + random_.below(std::max(int(rows), 1)), desc.inverse = random_.below(2);
    desc.first_position = random_.below(int(side - desc.sequence_length) + 1);
    desc.pairs = random_.below(2) ? SG_ROTARY_HALVES : SG_ROTARY_INTERLEAVED;
    note("rotary", y);
    const bool overlaps = bad(x, y) || (has_tables && (share(cos, y) || share(sin, y)));
    if (!accepted(sg_rotary_async(context_, &desc, &submit_, nullptr), overlaps)) return;
    const std::vector<double> before = read(x), cosines = read(cos), sines = read(sin);
    std::vector<double> values = before;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < heads * rotated / 2; ++j) {
        const std::int64_t start = i * x.cols + j / (rotated / 2) * head, pair = j % (rotated / 2);
        const std::int64_t p = desc.first_position + i % desc.sequence_length;
        const auto of_table = std::size_t(p * (rotated / 2) + pair);
        const double angle = double(p) * std::pow(10000.0, -double(2 * pair) / double(rotated));
        const double c = has_tables ? cosines[of_table] : std::cos(angle);
        const double s = (has_tables ? sines[of_table] : std::sin(angle)) * (desc.inverse ? -1 : 1);
        const bool halves = desc.pairs == SG_ROTARY_HALVES;
        const auto first = std::size_t(start + (halves ? pair : 2 * pair));
        const auto second = std::size_t(start + (halves ? pair + rotated / 2 : 2 * pair + 1));
        values[first] = before[first] * c - before[second] * s;
        values[second] = before[first] * s + before[second] * c;
      }
    write(y, values);
  }

  // From f64, or from small values of f32.
  void convert(const part &c) {
    const sg_transpose op = random_.below(2) ? SG_TRANSPOSE_N : SG_TRANSPOSE_T;
    const sg_layout layout = random_.below(2) ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR;
    const bool transposes = op == SG_TRANSPOSE_T;
    part a = any_part(transposes ? c.cols : c.rows, transposes ? c.rows : c.cols, layout);
    part beside = a;
    beside.matrix = c.matrix, beside.start = c.start;
    if (random_.below(3) == 0 && beside.at(a.rows - 1, a.cols - 1) < elements) a = beside;
    const bool from_f32 = random_.below(3) == 0;
    std::vector<double> values;
    for (std::int64_t i = 0; i < c.rows; ++i)
      for (std::int64_t j = 0; j < c.cols; ++j) {
        const std::int64_t row = transposes ? j : i, col = transposes ? i : j;
        values.push_back(from_f32 ? double(floats_[std::size_t(a.at(row, col))]) : host(a, row, col));
      }
    if (from_f32 && std::any_of(values.begin(), values.end(), [](double value) { return std::fabs(value) > 8; }))
      return;
    sg_convert_desc desc = SG_CONVERT_DESC_INIT;
    desc.a = view(a), desc.c = view(c), desc.op_a = op;
    if (from_f32) desc.a.data = memory_.of_f32 + a.start, desc.a.dtype = SG_DTYPE_F32;
    note(transposes ? "transpose" : "convert", c);
    bool stays = a.matrix == c.matrix;
    for (std::int64_t i = 0; i < c.rows; ++i)
      for (std::int64_t j = 0; j < c.cols; ++j) stays = stays && c.at(i, j) == (transposes ? a.at(j, i) : a.at(i, j));
    if (accepted(sg_convert_async(context_, &desc, &submit_, nullptr), !from_f32 && !stays && share(a, c)))
      write(c, values);
  }

  // Indices are four quantized values each: nearly all are out of range, unless the values are new and small.
  void gather() {
    const std::int64_t rows = upto(side / 4), cols = upto(side);
    const part y = any_part(rows, cols, SG_LAYOUT_ROW_MAJOR), table = any_part(side / 2, cols, SG_LAYOUT_ROW_MAJOR);
    const std::int64_t start = 4 * random_.below(int(elements / 4 - rows));
    if (random_.below(4)) {
      for (std::int64_t i = 0; i < elements; ++i)
        codes_[std::size_t(i)] = std::int8_t(i % 4 ? 0 : random_.below(int(side) * 3 / 4));
      send_codes();
    }
    sg_gather_desc desc = SG_GATHER_DESC_INIT;
    desc.table = view(table), desc.y = view(y), desc.indices = memory_.codes + start;
    desc.flags = random_.below(2) ? SG_GATHER_FROM_END : 0;
    note("gather", y);
    if (!accepted(sg_gather_async(context_, &desc, &submit_, nullptr), share(table, y))) return;
    std::vector<double> values;
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int32_t index = 0;
      std::memcpy(&index, codes_.data() + start + 4 * i, 4);
      const std::int64_t row = desc.flags && index < 0 ? index + table.rows : index;
      for (std::int64_t j = 0; j < cols; ++j) values.push_back(row >= 0 && row < table.rows ? host(table, row, j) : 0);
    }
    write(y, values);
  }

  // New values in all of them, which earlier steps have read.
  void replace_codes() {
    for (std::int8_t &each : codes_) each = static_cast<std::int8_t>(random_.below(256) - 128);
    send_codes();
  }
  void send_codes() {
    sent_.push_back(codes_);
    log_ += "new quantized values\n";
    require_ok(sg_copy_async(context_, memory_.codes, sent_.back().data(), elements, &submit_, nullptr),
               "sg_copy_async");
  }

  // From parts of the quantized values and scales among earlier results.
  void dequantize() {
    if (random_.below(2)) replace_codes();
    const bool four_bits = random_.below(2) != 0, has_zeros = random_.below(2) != 0;
    const std::int64_t rows = upto(side), blocks = upto(6), block = 2 + 2 * random_.below(4);
    const auto of_one = [&](std::int64_t cols) {
      part made = any_part(rows, cols, SG_LAYOUT_ROW_MAJOR);
      made.matrix = 0;
      return made;
    };
    const part x = of_one(four_bits ? blocks * block / 2 : blocks * block), zeros = of_one(blocks);
    const part scales = of_one(blocks), y = of_one(blocks * block);
    const auto bytes = [&](const part &p) {
      return sg_matrix{memory_.codes + p.start, p.rows, p.cols, side, SG_DTYPE_I8, p.layout};
    };
    const auto floats = [&](const part &p) {
      return sg_matrix{memory_.of_f32 + p.start, p.rows, p.cols, side, SG_DTYPE_F32, p.layout};
    };
    sg_dequantize_desc desc = SG_DEQUANTIZE_DESC_INIT;
    desc.quantization = four_bits ? SG_QUANTIZATION_I4 : SG_QUANTIZATION_I8, desc.block_size = block;
    desc.x = bytes(x), desc.scales = floats(scales), desc.y = floats(y);
    if (has_zeros) desc.zero_points = bytes(zeros);
    note("dequantize", y);
    if (!accepted(sg_dequantize_async(context_, &desc, &submit_, nullptr), share(scales, y))) return;
    const std::vector<float> before = floats_;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < y.cols; ++j) {
        int value = codes_[std::size_t(x.at(i, four_bits ? j / 2 : j))];
        if (four_bits) value = (((j % 2 == 0 ? value : value >> 4) & 15) ^ 8) - 8;
        if (has_zeros) value -= codes_[std::size_t(zeros.at(i, j / block))];
        floats_[std::size_t(y.at(i, j))] = float(value) * before[std::size_t(scales.at(i, j / block))];
      }
  }

  void gemm(const part &c) {
    const std::int64_t k = upto(side);
    const part a = any_part(c.rows, k, SG_LAYOUT_ROW_MAJOR), b = any_part(k, c.cols, SG_LAYOUT_COLUMN_MAJOR);
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.a = view(a), desc.b = view(b), desc.c = view(c), desc.alpha.re = 1.0 / double(std::max<std::int64_t>(k, 1));
    if (!begins({a, b}, {c})) return;
    note("gemm", c);
    if (!accepted(sg_gemm_async(context_, &desc, &submit_, handle()), share(a, c) || share(b, c), false)) return;
    std::vector<double> values;
    for (std::int64_t i = 0; i < c.rows; ++i)
      for (std::int64_t j = 0; j < c.cols; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l) sum += host(a, i, l) * host(b, l, j);
        values.push_back(sum * desc.alpha.re);
      }
    write(c, values);
  }

  part any_part(std::int64_t rows, std::int64_t cols) {
    return any_part(rows, cols, random_.below(2) ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR);
  }
  // Products of larger elements would grow from step to step.
  bool is_small(const part &p) {
    const std::vector<double> values = read(p);
    return std::all_of(values.begin(), values.end(), [](double x) { return std::fabs(x) < 4; });
  }

  void gradients() {
    const std::int64_t rows = upto(side), in = upto(side), out = upto(side);
    const bool transposed = random_.below(2) != 0;
    const std::int64_t w_rows = transposed ? out : in, w_cols = transposed ? in : out;
    const part dy = any_part(rows, out), x = any_part(rows, in), w = any_part(w_rows, w_cols);
    const part dx = any_part(rows, in), dw = any_part(w_rows, w_cols), dbias = any_part(1, out, SG_LAYOUT_ROW_MAJOR);
    if (!is_small(dy) || !is_small(x) || !is_small(w)) return;
    const int results = 1 + random_.below(7);
    sg_linear_backward_desc desc = SG_LINEAR_BACKWARD_DESC_INIT;
    desc.dy = view(dy), desc.op_w = transposed ? SG_TRANSPOSE_T : SG_TRANSPOSE_N, desc.accumulate = random_.below(2);
    std::vector<part> read_parts = {dy}, written;
    const bool adds_nothing = desc.accumulate && rows == 0;  // then sums over rows are not looked at
    if (results & 1) desc.w = view(w), desc.dx = view(dx), written.push_back(dx);
    if (results & 2) desc.x = view(x), desc.dw = view(dw);
    if (results & 2 && !adds_nothing) written.push_back(dw);
    // What an empty result does not need is not looked at.
    if (results & 1 && rows > 0) read_parts.push_back(w);
    if (results & 2 && out > 0) read_parts.push_back(x);
    if (results & 4) desc.dbias = view(dbias).data, desc.dbias_dtype = SG_DTYPE_F64;
    if (results & 4 && !adds_nothing) written.push_back(dbias);
    std::vector<part> used = read_parts;
    if (desc.accumulate && rows > 0 && results & 2) used.push_back(dw);
    if (desc.accumulate && rows > 0 && results & 4) used.push_back(dbias);
    if (!begins(used, written)) return;
    bool overlaps = false;
    for (std::size_t i = 0; i < written.size(); ++i) {
      note("gradients", written[i]);
      for (const part &each : read_parts) overlaps = overlaps || share(each, written[i]);
      for (std::size_t j = 0; j < i; ++j) overlaps = overlaps || share(written[j], written[i]);
    }
    if (!accepted(sg_linear_backward_async(context_, &desc, &submit_, handle()), overlaps)) return;
    for (std::int64_t i = 0; i < rows && results & 1; ++i)
      for (std::int64_t j = 0; j < in; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < out; ++l) sum += host(dy, i, l) * (transposed ? host(w, l, j) : host(w, j, l));
        host(dx, i, j) = sum;
      }
    for (std::int64_t j = 0; j < in && results & 2; ++j)
      for (std::int64_t l = 0; l < out; ++l) {
        double &to = transposed ? host(dw, l, j) : host(dw, j, l), sum = desc.accumulate ? to : 0;
        for (std::int64_t i = 0; i < rows; ++i) sum += host(x, i, j) * host(dy, i, l);
        to = sum;
      }
    for (std::int64_t l = 0; l < out && results & 4; ++l) {
      double sum = desc.accumulate ? host(dbias, 0, l) : 0;
      for (std::int64_t i = 0; i < rows; ++i) sum += host(dy, i, l);
      host(dbias, 0, l) = sum;
    }
  }

  // Masks of an attention of one batch: a bias of all heads, in a matrix; the quantized values as visible keys and as a
  // length, which is out of range mostly; a window; the end of the keys.
  struct masks {
    part bias{};
    bool has_bias = false;
    std::int64_t visible = -1, length = -1;  // in the quantized values; -1: none
  };
  template <class Desc>
  masks draw_masks(Desc &desc) {
    masks drawn_ones;
    if (random_.below(2)) desc.mask = SG_MASK_CAUSAL, desc.mask_offset = random_.below(20) - 10;
    if (drawn.note("masks of scores", desc.queries > 0 && desc.keys > 0 && random_.below(2))) {
      const bool repeats = random_.below(2);
      drawn_ones.bias = any_part(repeats ? 1 : desc.queries, desc.keys, SG_LAYOUT_ROW_MAJOR);
      drawn_ones.has_bias = random_.below(2) && is_small(drawn_ones.bias);
      if (drawn_ones.has_bias)
        desc.bias = {data_[drawn_ones.bias.matrix] + drawn_ones.bias.start, 0, 0, repeats ? 0 : side};
      if (random_.below(2)) {
        drawn_ones.visible = random_.below(int(elements - desc.keys));
        desc.visible = {memory_.codes + drawn_ones.visible, 0, 0, random_.below(2) ? 0 : desc.keys};
        if (drawn_ones.visible + desc.queries * desc.keys > elements) desc.visible.token_stride = 0;
      }
      if (random_.below(3) == 0) {
        drawn_ones.length = 4 * random_.below(int(elements / 4));
        desc.key_lengths = reinterpret_cast<const std::int32_t *>(memory_.codes + drawn_ones.length);
      }
      if (desc.mask && random_.below(2)) desc.window = 1 + random_.below(20);
      if (desc.mask && random_.below(2)) desc.mask = SG_MASK_CAUSAL_FROM_END;
    }
    return drawn_ones;
  }
  template <class Desc>
  std::vector<std::int64_t> keys_of(const Desc &desc, const masks &given, std::int64_t i) const {
    std::vector<std::int64_t> shown;
    std::int32_t length = std::int32_t(desc.keys);
    if (given.length >= 0) std::memcpy(&length, codes_.data() + given.length, 4);
    const std::int64_t keys = std::clamp<std::int64_t>(length, 0, desc.keys);
    const std::int64_t last = i + desc.mask_offset + (desc.mask == SG_MASK_CAUSAL_FROM_END ? keys - desc.queries : 0);
    for (std::int64_t j = 0; j < keys; ++j)
      if (!(desc.mask && (j > last || (desc.window > 0 && j <= last - desc.window))) &&
          (given.visible < 0 || codes_[std::size_t(given.visible + i * desc.visible.token_stride + j)] != 0))
        shown.push_back(j);
    return shown;
  }
  double bias_of(const masks &given, std::int64_t i, std::int64_t j) {
    return given.has_bias ? host(given.bias, given.bias.rows == 1 ? 0 : i, j) : 0;
  }
  static std::vector<part> with_bias(std::vector<part> inputs, const masks &given) {
    if (given.has_bias) inputs.push_back(given.bias);
    return inputs;
  }

  // Of one query head for each key head.
  void attention_gradients() {
    const std::int64_t heads = 1 + random_.below(3), width = upto(side / heads / 2);
    const std::int64_t queries = upto(side / 2), keys = upto(side / 2);
    const auto tokens = [&](std::int64_t count) { return any_heads(count, heads, width); };
    const part q = tokens(queries), k = tokens(keys), v = tokens(keys), dout = tokens(queries);
    const part dq = tokens(queries), dk = tokens(keys), dv = tokens(keys);
    if (!is_small(q) || !is_small(k) || !is_small(v) || !is_small(dout)) return;
    sg_attention_backward_desc desc = SG_ATTENTION_BACKWARD_DESC_INIT;
    desc.q = heads_of(q), desc.k = heads_of(k), desc.v = heads_of(v), desc.dout = heads_of(dout);
    desc.dq = heads_of(dq), desc.dk = heads_of(dk), desc.dv = heads_of(dv);
    desc.dtype = SG_DTYPE_F64, desc.heads = desc.kv_heads = heads, desc.queries = queries, desc.keys = keys;
    desc.width = desc.value_width = width;
    const masks given = draw_masks(desc);
    if (random_.below(2)) desc.workspace = std::uint64_t(1200 + random_.below(8000));
    const std::vector<part> inputs = with_bias({q, k, v, dout}, given);
    if (!begins(inputs, {dq, dk, dv})) return;
    note("attention backward", dq);
    bool overlaps = share(dq, dk) || share(dq, dv) || share(dk, dv);
    for (const part *result : {&dq, &dk, &dv})
      for (const part &input : inputs) overlaps |= share(*result, input);
    if (!accepted(sg_attention_backward_async(context_, &desc, &submit_, handle()), overlaps)) return;
    const double scale = 1 / std::sqrt(double(width));
    for (const part *result : {&dq, &dk, &dv})
      write(*result, std::vector<double>(std::size_t(result->rows * result->cols)));
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t first = h * width;
        const std::vector<std::int64_t> shown = keys_of(desc, given, i);
        const auto count = std::int64_t(shown.size());
        std::vector<double> weights, gradients;
        double mean = 0;
        for (const std::int64_t j : shown) {
          double score = 0, gradient = 0;
          for (std::int64_t d = first; d < first + width; ++d) {
            score += host(q, i, d) * host(k, j, d);
            gradient += host(dout, i, d) * host(v, j, d);
          }
          weights.push_back(scale * score + bias_of(given, i, j));
          gradients.push_back(gradient);
        }
        sg_reference::softmax(weights.data(), count, count);
        for (std::size_t n = 0; n < shown.size(); ++n) mean += weights[n] * gradients[n];
        for (std::size_t n = 0; n < shown.size(); ++n) {
          const std::int64_t j = shown[n];
          const double weight = weights[n], ds = scale * weight * (gradients[n] - mean);
          for (std::int64_t d = first; d < first + width; ++d) {
            host(dv, j, d) += weight * host(dout, i, d);
            host(dq, i, d) += ds * host(k, j, d);
            host(dk, j, d) += ds * host(q, i, d);
          }
        }
      }
  }

  // A GRU whose weights are consecutive values of a matrix. Rows are steps of one or more sequences.
  void recurrent() {
    const std::int64_t batch = upto(3), steps = upto(side / std::max<std::int64_t>(batch, 1));
    const std::int64_t in = upto(6), hidden = upto(6), weights = 3 * hidden * (in + hidden);
    const part x = any_part(steps * batch, in, SG_LAYOUT_ROW_MAJOR),
               y = any_part(steps * batch, hidden, SG_LAYOUT_ROW_MAJOR);
    const int w_matrix = random_.below(matrices);
    const std::int64_t w_start = random_.below(int(elements - weights));
    if (!is_small(x)) return;
    const bool batch_major = random_.below(2), reverse = random_.below(2);
    const auto sequence_of = [&](const part &p) {
      return sg_sequence{data_[p.matrix] + p.start, batch_major ? side : batch * side,
                         batch_major ? steps * side : side};
    };
    sg_recurrent_desc desc = SG_RECURRENT_DESC_INIT;
    desc.cell = SG_CELL_GRU, desc.dtype = SG_DTYPE_F64, desc.reverse = reverse;
    desc.steps = steps, desc.batch = batch, desc.inputs = in, desc.hidden = hidden;
    desc.x = sequence_of(x), desc.y = sequence_of(y);
    desc.w_ih = data_[w_matrix] + w_start, desc.w_hh = data_[w_matrix] + w_start + 3 * hidden * in;
    note("recurrent", y);
    bool overlaps = share(x, y);
    for (std::int64_t i = 0; i < y.rows && y.matrix == w_matrix; ++i)
      for (std::int64_t j = 0; j < hidden; ++j) overlaps |= y.at(i, j) >= w_start && y.at(i, j) < w_start + weights;
    const std::vector<double> w(host_[std::size_t(w_matrix)].begin() + w_start,
                                host_[std::size_t(w_matrix)].begin() + w_start + weights);
    if (std::any_of(w.begin(), w.end(), [](double each) { return !(std::fabs(each) < 8); })) return;
    if (!accepted(sg_recurrent_async(context_, &desc, &submit_, nullptr), overlaps)) return;
    const auto row_of = [&](std::int64_t t, std::int64_t b) { return batch_major ? b * steps + t : t * batch + b; };
    sg_reference::recurrent_values values;
    values.w_ih.assign(w.begin(), w.begin() + 3 * hidden * in),
        values.w_hh.assign(w.begin() + 3 * hidden * in, w.end());
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t i = 0; i < in; ++i) values.x.push_back(host(x, row_of(t, b), i));
    const auto wanted = sg_reference::run_recurrent({SG_CELL_GRU, desc.gate_order, steps, batch, in, hidden, reverse},
                                                    values, SG_DTYPE_F64, false);
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t k = 0; k < hidden; ++k)
          host(y, row_of(t, b), k) = double(wanted.y[std::size_t((t * batch + b) * hidden + k)]);
  }

  // Of any type and cell, by themselves. In f64 they are the derivative of the layer; all others are finite, and those
  // that are sums of nothing are zeros.
  void recurrent_gradients() {
    static constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
    const sg_dtype type = types[random_.below(4)];
    const auto few = [this] { return std::int64_t(random_.below(6) ? 1 + random_.below(6) : 0); };
    const std::int64_t steps = few(), batch = few(), in = few(), hidden = few();
    const bool lstm = random_.below(2);
    const std::int64_t gates = (lstm ? 4 : 3) * hidden, size = sg_dtype_size(type);
    drawn.note("recurrent layers without state values", hidden == 0);
    char *free = static_cast<char *>(memory_.scratch);
    const auto place = [&](std::int64_t bytes) { return std::exchange(free, free + (bytes + 7) / 8 * 8); };
    // The values of an operand, and where they are.
    struct operand {
      std::vector<double> values;
      char *at;
    };
    const auto send = [&](const operand &x, const std::vector<double> &values) {
      std::vector<std::uint8_t> bytes(values.size() * std::size_t(size) + 16);
      for (std::size_t i = 0; i < values.size(); ++i) store(type, bytes.data() + i * std::size_t(size), values[i]);
      require_ok(sg_copy(context_, x.at, bytes.data(), values.size() * std::size_t(size), nullptr), "sg_copy");
    };
    const auto values_at = [&](const char *at, std::int64_t count) {
      std::vector<std::uint8_t> bytes(std::size_t(count * size) + 16);
      require_ok(sg_copy(context_, bytes.data(), at, std::uint64_t(count * size), nullptr), "sg_copy");
      std::vector<double> values;
      for (std::int64_t i = 0; i < count; ++i) values.push_back(double(load(type, bytes.data() + i * size).real()));
      return values;
    };
    const auto some = [&](std::int64_t count) {
      operand made{std::vector<double>(std::size_t(count)), place(count * size)};
      for (double &each : made.values) each = random_.real();
      return made;
    };
    const std::vector<std::uint8_t> nan(scratch_bytes, 0xff);
    require_ok(sg_copy(context_, memory_.scratch, nan.data(), nan.size(), nullptr), "sg_copy");
    const std::int64_t tokens = steps * batch;
    operand x = some(tokens * in), w_ih = some(gates * in), w_hh = some(gates * hidden), dy = some(tokens * hidden);
    operand *const variables[] = {&x, &w_ih, &w_hh};
    send(dy, dy.values);
    char *const y = place(tokens * hidden * size), *const dx = place(tokens * in * size);
    char *const dw_ih = place(gates * in * size), *const dw_hh = place(gates * hidden * size);
    const auto sequence = [&](void *at, std::int64_t width) { return sg_sequence{at, batch * width, width}; };
    sg_recurrent_desc layer = SG_RECURRENT_DESC_INIT;
    layer.cell = lstm ? SG_CELL_LSTM : SG_CELL_GRU, layer.dtype = type, layer.reverse = random_.below(2);
    layer.steps = steps, layer.batch = batch, layer.inputs = in, layer.hidden = hidden;
    layer.x = sequence(x.at, in), layer.y = sequence(y, hidden), layer.w_ih = w_ih.at, layer.w_hh = w_hh.at;
    layer.reserve = free;
    std::vector<std::vector<double>> directions;
    for (operand *each : variables) {
      directions.emplace_back();
      for (std::size_t i = 0; i < each->values.size(); ++i) directions.back().push_back(random_.real());
    }
    // The sum of Y times dY at a distance in that direction.
    const auto loss = [&](double distance) {
      for (std::size_t v = 0; v < std::size(variables); ++v) {
        std::vector<double> values = variables[v]->values;
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += distance * directions[v][i];
        send(*variables[v], values);
      }
      require_ok(sg_recurrent(context_, &layer, nullptr), "sg_recurrent");
      const std::vector<double> seen = values_at(y, tokens * hidden);
      double sum = 0;
      for (std::size_t i = 0; i < seen.size(); ++i) sum += seen[i] * dy.values[i];
      return sum;
    };
    const double h = 1e-5, difference = type == SG_DTYPE_F64 ? (loss(h) - loss(-h)) / (2 * h) : 0;
    loss(0);
    sg_recurrent_backward_desc desc = SG_RECURRENT_BACKWARD_DESC_INIT;
    desc.cell = layer.cell, desc.dtype = desc.gradient_dtype = type, desc.reverse = layer.reverse;
    desc.steps = steps, desc.batch = batch, desc.inputs = in, desc.hidden = hidden;
    desc.x = layer.x, desc.y = layer.y, desc.w_ih = layer.w_ih, desc.w_hh = layer.w_hh, desc.reserve = layer.reserve;
    desc.dy = sequence(dy.at, hidden), desc.dx = sequence(dx, in), desc.dw_ih = dw_ih, desc.dw_hh = dw_hh;
    require_ok(sg_recurrent_backward(context_, &desc, nullptr), "sg_recurrent_backward");
    const std::vector<double> results[] = {values_at(dx, tokens * in), values_at(dw_ih, gates * in),
                                           values_at(dw_hh, gates * hidden)};
    double along = 0, total = 0;
    for (std::size_t v = 0; v < std::size(results); ++v)
      for (std::size_t i = 0; i < results[v].size(); ++i) {
        along += results[v][i] * directions[v][i], total += std::fabs(results[v][i]);
        if (!std::isfinite(results[v][i]) || (results[v][i] != 0 && (hidden == 0 || tokens == 0)))
          stop("gradient " + std::to_string(v) + " of a recurrent layer is " + std::to_string(results[v][i]));
      }
    if (type == SG_DTYPE_F64 && !(std::fabs(along - difference) <= 1e-6 * (1 + total)))
      stop("the derivative of a recurrent layer is " + std::to_string(along) + " instead of " +
           std::to_string(difference));
  }

  void attention() {
    const std::int64_t kv_heads = 1 + random_.below(3), heads = kv_heads * upto(2);
    const std::int64_t width = upto(side / std::max(heads, kv_heads)), queries = upto(side);
    const std::int64_t keys = upto(side);
    const part q = any_heads(queries, heads, width), k = any_heads(keys, kv_heads, width),
               v = any_heads(keys, kv_heads, width), o = any_heads(queries, heads, width);
    if (!is_small(q) || !is_small(k)) return;
    sg_attention_desc desc = SG_ATTENTION_DESC_INIT;
    desc.q = heads_of(q), desc.k = heads_of(k), desc.v = heads_of(v), desc.o = heads_of(o);
    desc.dtype = SG_DTYPE_F64, desc.heads = heads, desc.kv_heads = kv_heads, desc.queries = queries, desc.keys = keys;
    desc.width = desc.value_width = width;
    const masks given = draw_masks(desc);
    if (random_.below(2)) desc.workspace = std::uint64_t(600 + random_.below(8000));
    const std::vector<part> inputs = with_bias({q, k, v}, given);
    if (!begins(inputs, {o})) return;
    note("attention", o);
    bool overlaps = false;
    for (const part &input : inputs) overlaps |= share(input, o);
    if (!accepted(sg_attention_async(context_, &desc, &submit_, handle()), overlaps)) return;
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t first = h / (heads / kv_heads) * width;
        const std::vector<std::int64_t> shown = keys_of(desc, given, i);
        const auto count = std::int64_t(shown.size());
        std::vector<double> weights;
        for (const std::int64_t j : shown) {
          double product = 0;
          for (std::int64_t d = 0; d < width; ++d) product += host(q, i, h * width + d) * host(k, j, first + d);
          weights.push_back(product / std::sqrt(double(width)) + bias_of(given, i, j));
        }
        sg_reference::softmax(weights.data(), count, count);
        for (std::int64_t d = 0; d < width; ++d) {
          double mean = 0;
          for (std::size_t n = 0; n < shown.size(); ++n) mean += weights[n] * host(v, shown[n], first + d);
          host(o, i, h * width + d) = mean;
        }
      }
  }

  // An image is a row of a part; filters and biases are rows of their own.
  void conv() {
    const auto some = [this](std::int64_t n) { return 1 + std::int64_t(random_.below(int(n))); };
    const std::int64_t images = upto(8), groups = some(2), inputs = upto(2), outputs = upto(2), kernel = some(3);
    const std::int64_t channels = groups * inputs, filters = groups * outputs, pad = random_.below(2), step = some(2);
    const std::int64_t rows = std::max(kernel, some(4)), cols = std::max(kernel, some(3));
    const std::int64_t out_h = (rows + 2 * pad - kernel) / step + 1, out_w = (cols + 2 * pad - kernel) / step + 1;
    const std::int64_t of_x = channels * rows * cols, of_y = filters * out_h * out_w;
    const std::int64_t of_w = filters * inputs * kernel * kernel;
    if (std::max({of_x, of_y, of_w}) > side) return;
    const part x = any_part(images, of_x, SG_LAYOUT_ROW_MAJOR), y = any_part(images, of_y, SG_LAYOUT_ROW_MAJOR);
    const part w = any_part(1, of_w, SG_LAYOUT_ROW_MAJOR), bias = any_part(1, filters, SG_LAYOUT_ROW_MAJOR);
    if (!is_small(x) || !is_small(y) || !is_small(w)) return;
    const bool last = random_.below(2), inner = random_.below(2), gradients = random_.below(2);
    const auto images_of = [&](const part &p) { return sg_images{data_[p.matrix] + p.start, side}; };
    const auto describe = [&](auto &desc) {
      desc.x = images_of(x), desc.images = images, desc.channels = channels, desc.out_channels = filters;
      desc.height = rows, desc.width = cols, desc.groups = groups, desc.dtype = SG_DTYPE_F64;
      desc.windows = {kernel, kernel, step, step, 1, 1, pad, pad, pad, pad};
      desc.image_layout = last ? SG_IMAGE_NHWC : SG_IMAGE_NCHW;
      desc.filter_layout = inner ? SG_FILTER_OHWI : SG_FILTER_OIHW;
      if (random_.below(2)) desc.workspace = std::uint64_t(40000 + random_.below(40000));
    };
    // each(element of x's row, of w, of y's row), for each product of an image.
    const auto each_product = [&](auto &&each) {
      for (std::int64_t o = 0; o < filters; ++o)
        for (std::int64_t i = 0; i < out_h * out_w; ++i)
          for (std::int64_t c = 0; c < inputs; ++c)
            for (std::int64_t tap = 0; tap < kernel * kernel; ++tap) {
              const std::int64_t h = i / out_w * step - pad + tap / kernel, v = i % out_w * step - pad + tap % kernel;
              const std::int64_t channel = o / outputs * inputs + c;
              if (h < 0 || h >= rows || v < 0 || v >= cols) continue;
              each(last ? (h * cols + v) * channels + channel : (channel * rows + h) * cols + v,
                   o * inputs * kernel * kernel + (inner ? tap * inputs + c : c * kernel * kernel + tap),
                   last ? i * filters + o : o * out_h * out_w + i);
            }
    };
    if (!gradients) {
      sg_conv2d_desc desc = SG_CONV2D_DESC_INIT;
      describe(desc);
      desc.y = images_of(y), desc.w = view(w).data, desc.bias = view(bias).data;
      note("convolution", y);
      if (!accepted(sg_conv2d_async(context_, &desc, &submit_, nullptr), share(x, y) || share(w, y) || share(bias, y)))
        return;
      std::vector<double> values(static_cast<std::size_t>(images * of_y));
      for (std::int64_t n = 0; n < images; ++n) {
        for (std::int64_t i = 0; i < of_y; ++i)
          values[std::size_t(n * of_y + i)] = host(bias, 0, last ? i % filters : i / (out_h * out_w));
        each_product([&](std::int64_t a, std::int64_t b, std::int64_t to) {
          values[std::size_t(n * of_y + to)] += host(x, n, a) * host(w, 0, b);
        });
      }
      return write(y, values);
    }
    const part dx = any_part(images, of_x, SG_LAYOUT_ROW_MAJOR), dw = any_part(1, of_w, SG_LAYOUT_ROW_MAJOR);
    sg_conv2d_backward_desc desc = SG_CONV2D_BACKWARD_DESC_INIT;
    describe(desc);
    desc.dy = images_of(y), desc.w = view(w).data, desc.dx = images_of(dx), desc.dw = view(dw).data;
    desc.accumulate = random_.below(2);
    note("gradients of a convolution", dx);
    bool overlaps = share(dx, dw);
    for (const part *read : {&x, &y, &w}) {
      if (read == &x ? of_w == 0 : read == &w && images * of_x == 0) continue;  // the result that needs it is empty
      overlaps = overlaps || share(*read, dx) || share(*read, dw);
    }
    if (!accepted(sg_conv2d_backward_async(context_, &desc, &submit_, nullptr), overlaps)) return;
    std::vector<double> of_images(static_cast<std::size_t>(images * of_x)), of_filters = read(dw);
    if (!desc.accumulate) of_filters.assign(of_filters.size(), 0);
    for (std::int64_t n = 0; n < images; ++n)
      each_product([&](std::int64_t a, std::int64_t b, std::int64_t from) {
        of_images[std::size_t(n * of_x + a)] += host(w, 0, b) * host(y, n, from);
        of_filters[std::size_t(b)] += host(x, n, a) * host(y, n, from);
      });
    write(dx, of_images);
    write(dw, of_filters);
  }

  sg_context *context_;
  const std::vector<stream_of_device> &streams_;
  const memory &memory_;
  double *const *data_;
  random_source random_;
  std::vector<std::vector<double>> host_;
  std::vector<float> floats_ = std::vector<float>(elements);
  std::vector<std::int8_t> codes_ = std::vector<std::int8_t>(elements);
  std::list<std::vector<std::int8_t>> sent_;  // sources of copies in flight
  sg_submit submit_ = SG_SUBMIT_INIT;
  std::string log_;
  const bool fails_;
  bool may_fail_ = false, fails_now_ = false;
  int stream_device_ = anywhere;
  bool must_be_apart_ = false;
  job failure_;
  sg_job *after_ = nullptr;  // the same
  std::list<unwritten> unwritten_;
  std::vector<submitted> jobs_;
  std::vector<bool> written_;  // by the operation that is being submitted
};

int run_all(const char *device, random_rounds &rounds) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = device;
  options.flags = SG_CONTEXT_CHECK_HAZARDS;
  sg_context *context = nullptr;
  require_ok(sg_context_create(&options, &context), device);
  std::int32_t devices = 0;
  require_ok(sg_context_device_count(context, &devices), "sg_context_device_count");
  std::vector<stream_of_device> streams(4, {nullptr, anywhere});  // the first stays NULL
  for (std::size_t i = 1; i < streams.size(); ++i)
    require_ok(sg_stream_create(context, nullptr, &streams[i].handle), "sg_stream_create");
  for (int device = 0; device < devices && devices > 1; ++device) {
    sg_stream_options of_device = SG_STREAM_OPTIONS_INIT;
    of_device.device = device;
    streams.push_back({nullptr, device});
    require_ok(sg_stream_create(context, &of_device, &streams.back().handle), "sg_stream_create");
  }
  std::vector<sg_buffer *> buffers;
  std::vector<void *> pinned;
  std::vector<std::unique_ptr<char[]>> pageable;
  // On the host, pinned and pageable, and on each device.
  struct places {
    std::array<void *, 2> host;
    std::vector<void *> on;
  };
  const auto allocate = [&](std::size_t bytes) {
    places all;
    for (int device = 0; device < devices; ++device) {
      buffers.push_back(nullptr);
      all.on.push_back(nullptr);
      sg_buffer_options of_device = SG_BUFFER_OPTIONS_INIT;
      of_device.device = device;
      require_ok(sg_buffer_create(context, bytes, &of_device, &buffers.back()), "sg_buffer_create");
      require_ok(sg_buffer_data(buffers.back(), &all.on.back()), "sg_buffer_data");
    }
    require_ok(sg_host_alloc(context, bytes, &all.host[0]), "sg_host_alloc");
    pinned.push_back(all.host[0]);
    pageable.push_back(std::make_unique<char[]>(bytes));
    all.host[1] = pageable.back().get();
    return all;
  };
  std::array<places, matrices> of_f64;
  for (auto &each : of_f64) each = allocate(elements * sizeof(double));
  const auto of_f32 = allocate(elements * sizeof(float)), codes = allocate(elements), written = allocate(8),
             scratch = allocate(scratch_bytes);
  const bool calls_functions = std::strncmp(device, "cuda", 4) != 0;  // on the host: not on a GPU
  while (const auto seed = rounds.next()) {
    current_seed = *seed;
    random_source draws(*seed);
    const bool all_on_device = draws.below(2) == 0;
    const int home = devices > 1 ? draws.below(devices) : 0;
    const bool mixes = devices > 1 && drawn.note("memory of several devices", draws.below(3) == 0);
    const auto place = [&](const places &all, auto *&address) {
      const int kind = all_on_device ? 0 : draws.below(3), device = mixes ? draws.below(devices) : home;
      void *const chosen = kind > 0 ? all.host[std::size_t(kind - 1)] : all.on[std::size_t(device)];
      address = static_cast<std::remove_reference_t<decltype(address)>>(chosen);
      return kind > 0 ? anywhere : device;
    };
    memory chosen;
    for (std::size_t i = 0; i < of_f64.size(); ++i) chosen.device_of_f64[i] = place(of_f64[i], chosen.of_f64[i]);
    chosen.device_of_f32 = place(of_f32, chosen.of_f32);
    chosen.device_of_codes = place(codes, chosen.codes);
    place(written, chosen.written_by_failure);
    place(scratch, chosen.scratch);
    std::vector<stream_of_device> usual = streams;
    if (!mixes) std::erase_if(usual, [&](const auto &each) { return each.device != anywhere && each.device != home; });
    chain(context, usual, chosen, calls_functions, *seed).run();
  }
  std::printf("%ld chains\n", rounds.count());
  drawn.print();
  for (sg_buffer *each : buffers) sg_buffer_release(each);
  for (void *each : pinned) sg_host_free(context, each);
  for (const stream_of_device &each : streams) sg_stream_release(each.handle);
  sg_context_release(context);
  return 0;
}

}  // namespace
}  // namespace sg_test

int main(int count, char **arguments) { return sg_test::run_with_arguments(count, arguments, sg_test::run_all); }
