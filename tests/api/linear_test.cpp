// SPDX-License-Identifier: Apache-2.0
// A linear layer and its gradients: every type, layout and memory kind against sums in extended precision, central
// differences, order, failures, graphs, refused calls.
#include <cmath>
#include <cstring>
#include <functional>

#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {
namespace {

using long_double = long double;

// A matrix in memory of some kind, with gaps; its elements are read and written in a copy on the host.
class placed_matrix {
 public:
  placed_matrix() = default;
  placed_matrix(sg_context *on, random_source &random, std::int64_t rows, std::int64_t cols, sg_dtype type,
                sg_memory_kind kind)
      : on_(on), kind_(kind) {
    view_.rows = rows, view_.cols = cols, view_.dtype = type;
    view_.layout = random.below(2) ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR;
    const std::int64_t run = by_rows() ? cols : rows, runs = by_rows() ? rows : cols;
    view_.ld = std::max<std::int64_t>(1, run + (random.below(2) ? random.below(5) : 0));
    image_.assign(static_cast<std::size_t>(std::max<std::int64_t>(1, view_.ld * runs) * size()), 0x5a);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) set(i, j, random.real());
    switch (kind) {
      case SG_MEMORY_DEVICE:
        EXPECT_OK(sg_buffer_create(on, image_.size(), nullptr, memory_.out()));
        EXPECT_OK(sg_buffer_data(memory_, &view_.data));
        break;
      case SG_MEMORY_PINNED: EXPECT_OK(sg_host_alloc(on, image_.size(), &view_.data)); break;
      default: pageable_.resize(image_.size()), view_.data = pageable_.data();
    }
    EXPECT_OK(sg_copy(on, view_.data, image_.data(), image_.size(), nullptr));
  }
  placed_matrix(placed_matrix &&other) noexcept { swap(other); }
  placed_matrix &operator=(placed_matrix &&other) noexcept {
    swap(other);
    return *this;
  }
  ~placed_matrix() {
    if (kind_ == SG_MEMORY_PINNED) sg_host_free(on_, view_.data);
  }

  const sg_matrix &view() const { return view_; }
  long_double at(std::int64_t i, std::int64_t j) const { return load(view_.dtype, address(i, j)).real(); }
  void set(std::int64_t i, std::int64_t j, long_double value) {
    store(view_.dtype, const_cast<unsigned char *>(address(i, j)), value);
  }
  // What the device has now; the gaps must be as before.
  placed_matrix fetched() const {
    placed_matrix now;
    now.view_ = view_;
    now.view_.data = nullptr;
    now.image_.resize(image_.size());
    EXPECT_OK(sg_copy(on_, now.image_.data(), view_.data, image_.size(), nullptr));
    std::vector<unsigned char> gaps = now.image_;
    for (std::int64_t i = 0; i < view_.rows; ++i)
      for (std::int64_t j = 0; j < view_.cols; ++j) {
        const auto offset = static_cast<std::size_t>(address(i, j) - image_.data());
        std::copy_n(image_.begin() + std::ptrdiff_t(offset), size(), gaps.begin() + std::ptrdiff_t(offset));
      }
    EXPECT_EQ(image_, gaps) << "a gap was written";
    return now;
  }

 private:
  bool by_rows() const { return view_.layout == SG_LAYOUT_ROW_MAJOR; }
  std::int64_t size() const { return static_cast<std::int64_t>(sg_dtype_size(view_.dtype)); }
  const unsigned char *address(std::int64_t i, std::int64_t j) const {
    return image_.data() + (by_rows() ? i * view_.ld + j : i + j * view_.ld) * size();
  }
  void swap(placed_matrix &other) noexcept {
    std::swap(on_, other.on_);
    std::swap(view_, other.view_);
    std::swap(kind_, other.kind_);
    std::swap(memory_, other.memory_);
    std::swap(pageable_, other.pageable_);
    std::swap(image_, other.image_);
  }

  sg_context *on_ = nullptr;
  sg_matrix view_ = {};
  sg_memory_kind kind_ = SG_MEMORY_PAGEABLE;
  buffer memory_;
  std::vector<unsigned char> pageable_, image_;
};

class linear : public on_each_device {
 protected:
  struct types {
    sg_dtype in, out;
  };
  static constexpr types all_types[] = {{SG_DTYPE_F64, SG_DTYPE_F64},   {SG_DTYPE_F32, SG_DTYPE_F32},
                                        {SG_DTYPE_F16, SG_DTYPE_F16},   {SG_DTYPE_F16, SG_DTYPE_F32},
                                        {SG_DTYPE_BF16, SG_DTYPE_BF16}, {SG_DTYPE_BF16, SG_DTYPE_F32}};

  sg_memory_kind any_kind() { return memory_kinds[random_.below(3)]; }
  std::int64_t any_size() { return random_.below(4) == 0 ? random_.below(3) : 1 + random_.below(90); }
  placed_matrix matrix(std::int64_t rows, std::int64_t cols, sg_dtype type) {
    return {context_, random_, rows, cols, type, any_kind()};
  }
  // Values that follow each other.
  placed_matrix vector(std::int64_t count, sg_dtype type) {
    for (;;) {
      placed_matrix made = matrix(count, 1, type);
      if (made.view().layout == SG_LAYOUT_COLUMN_MAJOR || made.view().ld == 1) return made;
    }
  }

  // Compares with a sum of `count` terms, each of them known exactly; `term(i, j, l)`, and what was there before.
  void expect_sums(const placed_matrix &before, std::int64_t count, bool adds, sg_dtype in,
                   const std::function<long_double(std::int64_t, std::int64_t, std::int64_t)> &term) {
    const placed_matrix now = before.fetched();
    const sg_dtype out = before.view().dtype;
    const long_double accumulator = unit_of(in == SG_DTYPE_F64 ? SG_DTYPE_F64 : SG_DTYPE_F32);
    for (std::int64_t i = 0; i < before.view().rows; ++i)
      for (std::int64_t j = 0; j < before.view().cols; ++j) {
        long_double sum = adds ? before.at(i, j) : 0, magnitude = std::abs(sum);
        for (std::int64_t l = 0; l < count; ++l) {
          const long_double each = term(i, j, l);
          sum += each, magnitude += std::abs(each);
        }
        const long_double bound = unit_of(out) * std::abs(sum) * 1.01L +
                                  static_cast<long_double>(count + 3) * accumulator * magnitude + 1e-7L * unit_of(out);
        ASSERT_LE(std::abs(now.at(i, j) - sum), bound) << i << ", " << j << " is " << now.at(i, j) << ", not " << sum;
      }
  }

  random_source random_{5};
};

TEST_P(linear, forward_in_every_type_layout_and_memory) {
  for (int turn = 0; turn < 90; ++turn) {
    const types t = all_types[turn % std::size(all_types)];
    const std::int64_t rows = any_size(), in = any_size(), out = any_size();
    const bool transposed = random_.below(2), has_bias = random_.below(2), relu = random_.below(2);
    SCOPED_TRACE(testing::Message() << turn << ": " << rows << " x " << in << " x " << out << " op " << transposed);
    const placed_matrix x = matrix(rows, in, t.in), w = matrix(transposed ? out : in, transposed ? in : out, t.in),
                        y = matrix(rows, out, t.out), bias = vector(out, t.out);
    sg_linear_desc desc = SG_LINEAR_DESC_INIT;
    desc.x = x.view(), desc.w = w.view(), desc.y = y.view();
    desc.op_w = transposed ? SG_TRANSPOSE_T : SG_TRANSPOSE_N;
    desc.bias = has_bias ? bias.view().data : nullptr;
    desc.activation = relu ? SG_ACTIVATION_RELU : SG_ACTIVATION_NONE;
    ASSERT_OK(sg_linear(context_, &desc, nullptr));
    const placed_matrix now = y.fetched();
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < out; ++j) {
        long_double sum = has_bias ? bias.at(j, 0) : 0, magnitude = std::abs(sum);
        for (std::int64_t l = 0; l < in; ++l) {
          const long_double each = x.at(i, l) * (transposed ? w.at(j, l) : w.at(l, j));
          sum += each, magnitude += std::abs(each);
        }
        const long_double wanted = relu ? std::max<long_double>(sum, 0) : sum;
        const long_double accumulator = unit_of(t.in == SG_DTYPE_F64 ? SG_DTYPE_F64 : SG_DTYPE_F32);
        const long_double bound = unit_of(t.out) * std::abs(wanted) * 1.01L +
                                  static_cast<long_double>(in + 3) * accumulator * magnitude + 1e-7L * unit_of(t.out);
        ASSERT_LE(std::abs(now.at(i, j) - wanted), bound) << i << ", " << j;
      }
  }
}

TEST_P(linear, gradients_in_every_type_layout_and_memory) {
  for (int turn = 0; turn < 180; ++turn) {
    const types t = all_types[turn % std::size(all_types)];
    const std::int64_t rows = turn % 7 == 0 ? 130 + any_size() : any_size(), in = any_size(), out = any_size();
    const bool transposed = random_.below(2), adds = random_.below(2);
    const int results = 1 + random_.below(7);
    SCOPED_TRACE(testing::Message() << turn << ": " << rows << " x " << in << " x " << out << " op " << transposed
                                    << " results " << results << " adds " << adds << " type " << t.in);
    const std::int64_t w_rows = transposed ? out : in, w_cols = transposed ? in : out;
    const placed_matrix dy = matrix(rows, out, t.in), x = matrix(rows, in, t.in), w = matrix(w_rows, w_cols, t.in),
                        dx = matrix(rows, in, t.out), dw = matrix(w_rows, w_cols, t.out), dbias = vector(out, t.out);
    sg_linear_backward_desc desc = SG_LINEAR_BACKWARD_DESC_INIT;
    desc.dy = dy.view(), desc.x = x.view(), desc.w = w.view();
    if (results & 1) desc.dx = dx.view();
    if (results & 2) desc.dw = dw.view();
    if (results & 4) desc.dbias = dbias.view().data, desc.dbias_dtype = t.out;
    if (!(results & 1)) desc.w.data = nullptr;
    if (!(results & 2)) desc.x.data = nullptr;
    desc.op_w = transposed ? SG_TRANSPOSE_T : SG_TRANSPOSE_N;
    desc.accumulate = adds;
    ASSERT_OK(sg_linear_backward(context_, &desc, nullptr));
    if (results & 1)
      expect_sums(dx, out, false, t.in, [&](std::int64_t i, std::int64_t j, std::int64_t l) {
        return dy.at(i, l) * (transposed ? w.at(l, j) : w.at(j, l));
      });
    if (results & 2)
      expect_sums(dw, rows, adds, t.in, [&](std::int64_t i, std::int64_t j, std::int64_t l) {
        return transposed ? dy.at(l, i) * x.at(l, j) : x.at(l, i) * dy.at(l, j);
      });
    if (results & 4)
      expect_sums(dbias, rows, adds, t.in, [&](std::int64_t i, std::int64_t, std::int64_t l) { return dy.at(l, i); });
    if (HasFailure()) return;
  }
}

// Large enough for several blocks from the host, and for several workers on cores.
TEST_P(linear, large_gradients) {
  for (const sg_memory_kind kind : memory_kinds) {
    constexpr std::int64_t rows = 600, in = 300, out = 280;
    const auto made = [&](std::int64_t r, std::int64_t c) {
      return placed_matrix(context_, random_, r, c, SG_DTYPE_F32, kind);
    };
    const placed_matrix dy = made(rows, out), x = made(rows, in), w = made(in, out), dx = made(rows, in),
                        dw = made(in, out);
    placed_matrix dbias = vector(out, SG_DTYPE_F32);
    sg_linear_backward_desc desc = SG_LINEAR_BACKWARD_DESC_INIT;
    desc.dy = dy.view(), desc.x = x.view(), desc.w = w.view(), desc.dx = dx.view(), desc.dw = dw.view();
    desc.dbias = dbias.view().data;
    ASSERT_OK(sg_linear_backward(context_, &desc, nullptr));
    const placed_matrix gx = dx.fetched(), gw = dw.fetched(), gb = dbias.fetched();
    for (int probe = 0; probe < 500; ++probe) {
      const std::int64_t i = random_.below(rows), j = random_.below(in), k = random_.below(out);
      long_double of_x = 0, of_w = 0, of_b = 0;
      for (std::int64_t l = 0; l < out; ++l) of_x += dy.at(i, l) * w.at(j, l);
      for (std::int64_t l = 0; l < rows; ++l) of_w += x.at(l, j) * dy.at(l, k), of_b += dy.at(l, k);
      ASSERT_NEAR(double(of_x), double(gx.at(i, j)), 1e-4);
      ASSERT_NEAR(double(of_w), double(gw.at(j, k)), 1e-4);
      ASSERT_NEAR(double(of_b), double(gb.at(k, 0)), 1e-4);
    }
  }
}

// The loss is the sum of Y times fixed weights, which are dY.
TEST_P(linear, gradients_are_those_of_central_differences) {
  constexpr std::int64_t rows = 4, in = 3, out = 5;
  const auto numbers = [&](std::int64_t count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double &each : values) each = random_.real();
    return values;
  };
  std::vector<double> x = numbers(rows * in), w = numbers(in * out), bias = numbers(out);
  const std::vector<double> dy = numbers(rows * out);
  const auto view = [](const std::vector<double> &values, std::int64_t r, std::int64_t c) {
    return sg_matrix{const_cast<double *>(values.data()), r, c, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  };
  const auto loss = [&] {
    std::vector<double> y(static_cast<std::size_t>(rows * out));
    sg_linear_desc desc = SG_LINEAR_DESC_INIT;
    desc.x = view(x, rows, in), desc.w = view(w, in, out), desc.y = view(y, rows, out), desc.bias = bias.data();
    EXPECT_OK(sg_linear(context_, &desc, nullptr));
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  std::vector<double> dx(x.size()), dw(w.size()), dbias(bias.size());
  sg_linear_backward_desc desc = SG_LINEAR_BACKWARD_DESC_INIT;
  desc.dy = view(dy, rows, out), desc.x = view(x, rows, in), desc.w = view(w, in, out);
  desc.dx = view(dx, rows, in), desc.dw = view(dw, in, out), desc.dbias = dbias.data(), desc.dbias_dtype = SG_DTYPE_F64;
  ASSERT_OK(sg_linear_backward(context_, &desc, nullptr));
  const auto compare = [&](std::vector<double> &values, const std::vector<double> &gradient) {
    constexpr double step = 1e-4;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double was = values[i];
      values[i] = was + step;
      const double above = loss();
      values[i] = was - step;
      const double below = loss();
      values[i] = was;
      EXPECT_NEAR((above - below) / (2 * step), gradient[i], 1e-9) << i;
    }
  };
  compare(x, dx);
  compare(w, dw);
  compare(bias, dbias);
}

// Small f64 matrices in pageable memory.
class small_linear : public linear {
 protected:
  static constexpr std::int64_t n = 2;
  sg_matrix view(double *data, std::int64_t rows = n, std::int64_t cols = n) {
    return {data, rows, cols, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  }
  sg_linear_backward_desc gradients() {
    sg_linear_backward_desc desc = SG_LINEAR_BACKWARD_DESC_INIT;
    desc.dy = view(dy_), desc.x = view(x_), desc.w = view(w_), desc.dx = view(dx_), desc.dw = view(dw_);
    desc.dbias = dbias_, desc.dbias_dtype = SG_DTYPE_F64;
    return desc;
  }
  using values = std::vector<double>;
  static values of(const double *x, std::size_t count = n * n) { return {x, x + count}; }

  double dy_[n * n] = {1, 2, 3, 4}, x_[n * n] = {1, 0, 2, 1}, w_[n * n] = {1, 1, 0, 2}, dx_[n * n] = {9, 9, 9, 9},
                 dw_[n * n] = {9, 9, 9, 9}, dbias_[n] = {9, 9};
};

TEST_P(small_linear, one_job_computes_all_and_is_ordered_by_its_operands) {
  sg_linear_backward_desc desc = gradients();
  double ones[n * n] = {1, 0, 0, 1}, copy[n * n] = {};
  const sg_gemm_desc before = make_gemm(ones, dx_, dy_, n, n, n), after = make_gemm(dx_, ones, copy, n, n, n);
  ASSERT_OK(sg_gemm_async(context_, &before, nullptr, nullptr));  // dY = 9 everywhere
  job handle, last;
  ASSERT_OK(sg_linear_backward_async(context_, &desc, nullptr, handle.out()));
  ASSERT_OK(sg_gemm_async(context_, &after, nullptr, last.out()));
  ASSERT_OK(sg_job_wait(last, SG_FOREVER, nullptr));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  EXPECT_EQ((values{18, 18, 18, 18}), of(copy));
  EXPECT_EQ((values{27, 27, 9, 9}), of(dw_));
  EXPECT_EQ((values{18, 18}), of(dbias_, n));
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(handle, &statistics));
  EXPECT_EQ(0, std::strncmp("linear backward", statistics.strategy, 15)) << statistics.strategy;
  EXPECT_EQ(2 * 2 * n * n * n, statistics.flops);
  EXPECT_LT(0, statistics.predicted_seconds);
  EXPECT_LT(0, statistics.bound_seconds);
}

TEST_P(small_linear, is_cancelled_as_one_job) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit behind = SG_SUBMIT_INIT;
  behind.after = &first, behind.after_count = 1;
  const sg_linear_backward_desc desc = gradients();
  job handle;
  ASSERT_OK(sg_linear_backward_async(context_, &desc, &behind, handle.out()));
  ASSERT_OK(sg_job_cancel(handle));
  gated.open();
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(handle, SG_FOREVER, nullptr));
  EXPECT_EQ((values{9, 9, 9, 9}), of(dx_));
  EXPECT_EQ((values{9, 9, 9, 9}), of(dw_));
  ASSERT_OK(sg_linear_backward(context_, &desc, nullptr));
  EXPECT_EQ((values{3, 4, 7, 8}), of(dx_));
}

TEST_P(small_linear, fails_with_the_job_that_was_to_write_an_operand) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit behind = SG_SUBMIT_INIT;
  behind.after = &first, behind.after_count = 1;
  double other[n * n] = {1, 1, 1, 1};
  const sg_gemm_desc writes_x = make_gemm(other, other, x_, n, n, n), reads_dx = make_gemm(dx_, other, w_, n, n, n);
  const sg_linear_backward_desc desc = gradients();
  job writer, handle, reader;
  ASSERT_OK(sg_gemm_async(context_, &writes_x, &behind, writer.out()));
  ASSERT_OK(sg_linear_backward_async(context_, &desc, nullptr, handle.out()));
  ASSERT_OK(sg_gemm_async(context_, &reads_dx, nullptr, reader.out()));
  ASSERT_OK(sg_job_cancel(writer));
  gated.open();
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(handle, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(reader, SG_FOREVER, nullptr));
}

TEST_P(small_linear, is_recorded_in_a_graph_and_updated) {
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  double y[n * n] = {};
  sg_linear_desc forward = SG_LINEAR_DESC_INIT;
  forward.x = view(x_), forward.w = view(w_), forward.y = view(y);
  sg_linear_backward_desc desc = gradients();
  desc.dy = view(y);
  ASSERT_OK(sg_linear_async(context_, &forward, &record, nullptr));
  ASSERT_OK(sg_linear_backward_async(context_, &desc, &record, nullptr));
  const auto run = [&] {
    job handle;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  };
  run();  // Y = {1, 1, 2, 4}
  EXPECT_EQ((values{2, 2, 6, 8}), of(dx_));
  EXPECT_EQ((values{5, 9, 2, 4}), of(dw_));
  EXPECT_EQ((values{3, 5}), of(dbias_, n));
  double other[n * n] = {};
  desc.dx.data = other;
  desc.accumulate = 1;
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_LINEAR_BACKWARD, update.desc = &desc;
  ASSERT_OK(sg_graph_update(graph, 1, &update));
  run();
  EXPECT_EQ((values{2, 2, 6, 8}), of(other));
  EXPECT_EQ((values{10, 18, 4, 8}), of(dw_));
  desc.dw.data = nullptr;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 1, &update));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "operation->desc differs from submission 1"))
      << sg_last_error_message();
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "a GEMM and not the gradients of a linear layer"))
      << sg_last_error_message();
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(small_linear, empty_matrices_and_no_results_succeed) {
  sg_linear_backward_desc desc = gradients();
  desc.dx.data = desc.dw.data = desc.dbias = nullptr;
  EXPECT_OK(sg_linear_backward(context_, &desc, nullptr));
  desc = gradients();
  desc.dy = view(nullptr, 0, n), desc.x = view(nullptr, 0, n), desc.dx = view(dx_, 0, n);
  desc.accumulate = 1;
  EXPECT_OK(sg_linear_backward(context_, &desc, nullptr));
  EXPECT_EQ((values{9, 9, 9, 9}), of(dw_));
  desc.accumulate = 0;  // sums of nothing
  EXPECT_OK(sg_linear_backward(context_, &desc, nullptr));
  EXPECT_EQ((values{0, 0, 0, 0}), of(dw_));
  EXPECT_EQ((values{0, 0}), of(dbias_, n));
  EXPECT_EQ((values{9, 9, 9, 9}), of(dx_));
  desc = gradients();
  desc.dy = view(nullptr, n, 0), desc.w = view(nullptr, n, 0), desc.dw = view(dw_, n, 0);
  EXPECT_OK(sg_linear_backward(context_, &desc, nullptr));
  EXPECT_EQ((values{0, 0, 0, 0}), of(dx_));
}

TEST_P(small_linear, wrong_calls_name_the_field) {
  const auto check = [&](sg_status wanted, const char *part, sg_status found) {
    EXPECT_STATUS(wanted, found);
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message() << " without " << part;
  };
  using d = sg_linear_backward_desc;
  const auto bad = [&](sg_status wanted, const char *part, const std::function<void(d &)> &spoil) {
    d desc = gradients();
    spoil(desc);
    check(wanted, part, sg_linear_backward(context_, &desc, nullptr));
  };
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT;
  bad(invalid, "desc->struct_size", [](d &x) { x.struct_size = 8; });
  bad(invalid, "desc->dx is 3 x 2; with this dy it must be 2 x 2", [](d &x) { x.dx.rows = 3; });
  bad(invalid, "desc->w is 2 x 1; with this dy, dx and op of w it must be 2 x 2", [](d &x) { x.w.cols = 1; });
  bad(invalid, "desc->x is 1 x 2; with this dy it must be 2 x 2", [](d &x) { x.x.rows = 1; });
  bad(invalid, "desc->dw is 2 x 1; with this x, dy and op of w it must be 2 x 2", [](d &x) { x.dw.cols = 1; });
  bad(invalid, "desc->w is 2 x 3; with this dy, dx and op of w it must be 3 x 2",
      [](d &x) { x.op_w = SG_TRANSPOSE_N, x.w.cols = x.dx.cols = 3; });
  bad(invalid, "desc->x.dtype is f32 and desc->dy.dtype is f64", [](d &x) { x.x.dtype = SG_DTYPE_F32; });
  bad(invalid, "desc->dw.dtype is f32, which is no result type of f64", [](d &x) { x.dw.dtype = SG_DTYPE_F32; });
  bad(invalid, "desc->dbias_dtype is f32", [](d &x) { x.dbias_dtype = SG_DTYPE_F32; });
  bad(invalid, "desc->op_w is 7", [](d &x) { x.op_w = sg_transpose(7); });
  bad(invalid, "desc->accumulate is 2", [](d &x) { x.accumulate = 2; });
  bad(invalid, "desc->compute is 1", [](d &x) { x.compute = sg_compute(1); });
  bad(invalid, "desc->dy.ld is 1", [](d &x) { x.dy.ld = 1; });
  bad(invalid, "desc->dy.data is NULL", [](d &x) { x.dy.data = nullptr; });
  bad(invalid, "desc->x.data is NULL", [](d &x) { x.x.data = nullptr; });
  bad(invalid, "which is not aligned", [&](d &x) { x.dbias = reinterpret_cast<char *>(dbias_) + 4; });
  bad(invalid, "desc->w (", [&](d &x) { x.dx.data = w_; });
  bad(invalid, "desc->dw (", [&](d &x) { x.dbias = dw_ + 1; });
  bad(invalid, "overlap", [&](d &x) { x.dx.data = dy_; });
  bad(SG_STATUS_UNSUPPORTED, "desc->dy.dtype is c64", [](d &x) { x.dy.dtype = SG_DTYPE_C64; });
  EXPECT_EQ((values{9, 9, 9, 9}), of(dx_));
  EXPECT_EQ((values{9, 9, 9, 9}), of(dw_));
  const auto bad_forward = [&](const char *part, const std::function<void(sg_linear_desc &)> &spoil) {
    sg_linear_desc desc = SG_LINEAR_DESC_INIT;
    desc.x = view(x_), desc.w = view(w_), desc.y = view(dx_);
    spoil(desc);
    check(invalid, part, sg_linear(context_, &desc, nullptr));
  };
  using f = sg_linear_desc;
  bad_forward("desc->y is 1 x 2; with this x it must be 2 x 2", [](f &x) { x.y.rows = 1; });
  bad_forward("desc->w is 3 x 2", [](f &x) { x.w.rows = 3; });
  bad_forward("desc->x.dtype is f64 and desc->w.dtype is f32", [](f &x) { x.w.dtype = SG_DTYPE_F32; });
  bad_forward("desc->y.dtype is f32, which", [](f &x) { x.y.dtype = SG_DTYPE_F32; });
  bad_forward("desc->y overlaps desc->x", [&](f &x) { x.y.data = x_; });
  bad_forward("desc->w.data is NULL", [](f &x) { x.w.data = nullptr; });
  bad_forward("desc->reserved is 1", [](f &x) { x.reserved = 1; });
  bad_forward("desc->activation is 9", [](f &x) { x.activation = sg_activation(9); });
  const d desc = gradients();
  EXPECT_STATUS(invalid, sg_linear_backward(context_, nullptr, nullptr));
  EXPECT_STATUS(invalid, sg_linear(context_, nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_linear_backward(reinterpret_cast<sg_context *>(1), &desc, nullptr));
}

// Whichever copy or launch fails, the job fails as a whole, and the same call then succeeds.
TEST(linear_faults, a_failing_part_fails_the_job) {
  constexpr std::int64_t rows = 200, in = 40, out = 30;
  std::vector<double> dy(rows * out, 1), x(rows * in, 1), w(in * out, 1), dx(rows * in), dw(in * out), dbias(out);
  const auto view = [](std::vector<double> &values, std::int64_t r, std::int64_t c) {
    return sg_matrix{values.data(), r, c, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  };
  sg_linear_backward_desc desc = SG_LINEAR_BACKWARD_DESC_INIT;
  desc.dy = view(dy, rows, out), desc.x = view(x, rows, in), desc.w = view(w, in, out);
  desc.dx = view(dx, rows, in), desc.dw = view(dw, in, out), desc.dbias = dbias.data();
  desc.dbias_dtype = SG_DTYPE_F64;
  for (const char *fault : {"fail-copy=", "fail-launch=", "refuse-copy=", "refuse-launch="}) {
    int failures = 0;
    for (int n = 1;; ++n) {
      ASSERT_LT(n, 200) << fault;
      const context on = open_context(("sim:h200?" + (fault + std::to_string(n))).c_str());
      const sg_status status = sg_linear_backward(on, &desc, nullptr);
      if (status == SG_STATUS_OK) break;
      ++failures;
      EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, status);
      ASSERT_OK(sg_linear_backward(on, &desc, nullptr)) << fault << n;
      EXPECT_EQ(std::vector<double>(rows * in, out), dx);
      EXPECT_EQ(std::vector<double>(in * out, rows), dw);
      EXPECT_EQ(std::vector<double>(out, rows), dbias);
    }
    EXPECT_LE(3, failures) << fault;
  }
}

// Planned for all of the device's memory, of which another buffer has most: planned again for the rest.
TEST(linear_faults, is_planned_again_for_the_free_memory) {
  constexpr std::int64_t n = 160;
  const context on = open_context("sim:h200?memory=1MiB");
  std::vector<double> dy(n * n, 1), x(n * n, 1), w(n * n, 2), dx(n * n), dw(n * n), dbias(n);
  const auto view = [](std::vector<double> &values) {
    return sg_matrix{values.data(), n, n, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  };
  sg_linear_backward_desc desc = SG_LINEAR_BACKWARD_DESC_INIT;
  desc.dy = view(dy), desc.x = view(x), desc.w = view(w), desc.dx = view(dx), desc.dw = view(dw);
  desc.dbias = dbias.data(), desc.dbias_dtype = SG_DTYPE_F64;
  for (const std::uint64_t taken : {400 << 10, 600 << 10}) {
    buffer other;
    ASSERT_OK(sg_buffer_create(on, taken, nullptr, other.out()));
    std::fill(dx.begin(), dx.end(), 0.0), std::fill(dw.begin(), dw.end(), 0.0),
        std::fill(dbias.begin(), dbias.end(), 0.0);
    ASSERT_OK(sg_linear_backward(on, &desc, nullptr));
    EXPECT_EQ(std::vector<double>(n * n, 2 * n), dx);
    EXPECT_EQ(std::vector<double>(n * n, n), dw);
    EXPECT_EQ(std::vector<double>(n, n), dbias);
  }
}

// With less device memory than for whole matrices the results come from tiles; with none there is no plan.
TEST_P(small_linear, a_memory_limit_applies) {
  if (std::strcmp(GetParam(), "cpu") == 0) GTEST_SKIP() << "the cpu has no memory of its own";
  constexpr std::int64_t size = 256;
  std::vector<double> dy(size * size, 1), x(size * size, 1), w(size * size, 2), dx(size * size), dw(size * size);
  const auto square = [&](std::vector<double> &values) { return view(values.data(), size, size); };
  sg_linear_backward_desc desc = SG_LINEAR_BACKWARD_DESC_INIT;
  desc.dy = square(dy), desc.x = square(x), desc.w = square(w), desc.dx = square(dx), desc.dw = square(dw);
  sg_plan_options plan = SG_PLAN_OPTIONS_INIT;
  sg_submit submit = SG_SUBMIT_INIT;
  submit.plan = &plan;
  plan.memory_limit = size * size * sizeof(double) / 2;
  ASSERT_OK(sg_linear_backward(context_, &desc, &submit));
  EXPECT_EQ(values(size * size, 2 * size), dx);
  EXPECT_EQ(values(size * size, size), dw);
  plan.memory_limit = 64;
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_linear_backward(context_, &desc, &submit));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "bytes")) << sg_last_error_message();
}

ON_EACH_DEVICE(linear);
ON_EACH_DEVICE(small_linear);

}  // namespace
}  // namespace sg_test
