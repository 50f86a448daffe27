// SPDX-License-Identifier: Apache-2.0
// Each extent of each operation as 0: the call succeeds, and a result that has elements is that of empty sums.
#include <functional>
#include <list>
#include <optional>
#include <sstream>

#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {
namespace {

using extents = std::vector<std::int64_t>;

constexpr double unwritten = 7, addend = 2;  // exact in every type

// Contiguous elements of one value in device memory, in all at least one.
class filled {
 public:
  filled(sg_context *on, sg_dtype type, std::int64_t count, double value)
      : on_(on),
        type_(type),
        count_(count),
        image_(std::size_t(std::max<std::int64_t>(1, count)) * sg_dtype_size(type)) {
    for (std::size_t at = 0; at < image_.size(); at += sg_dtype_size(type)) store(type, image_.data() + at, value);
    EXPECT_OK(sg_buffer_create(on, image_.size(), nullptr, memory_.out()));
    EXPECT_OK(sg_buffer_data(memory_, &data_));
    EXPECT_OK(sg_copy(on, data_, image_.data(), image_.size(), nullptr));
  }
  void *data() const { return data_; }
  void expect(double value, const char *name) {
    EXPECT_OK(sg_copy(on_, image_.data(), data_, image_.size(), nullptr));
    for (std::int64_t i = 0; i < count_; ++i)
      ASSERT_EQ(value, double(load(type_, image_.data() + std::size_t(i) * sg_dtype_size(type_)).real()))
          << name << " " << i;
  }

 private:
  sg_context *on_;
  sg_dtype type_;
  std::int64_t count_;
  std::vector<unsigned char> image_;
  buffer memory_;
  void *data_ = nullptr;
};

// One call: its operands, and the values of its results that follow from an extent of 0.
class call {
 public:
  call(sg_context *on, sg_dtype type, const extents &e) : on(on), type(type), e(e) {}

  void *operand(std::int64_t count, double value = 1) { return operand_of(type, count, value); }
  void *operand_of(sg_dtype of, std::int64_t count, double value) {
    return memory_.emplace_back(on, of, count, value).data();
  }
  // `expected`: nothing if the result is no empty sum.
  void *result(const char *name, std::int64_t count, std::optional<double> expected, sg_dtype of = sg_dtype(0)) {
    filled &made = memory_.emplace_back(on, of == 0 ? type : of, count, unwritten);
    if (expected) checks_.push_back([=, &made] { made.expect(*expected, name); });
    return made.data();
  }
  sg_matrix matrix(void *data, std::int64_t rows, std::int64_t cols) const { return matrix(data, rows, cols, type); }
  static sg_matrix matrix(void *data, std::int64_t rows, std::int64_t cols, sg_dtype of) {
    return {data, rows, cols, 0, of, SG_LAYOUT_ROW_MAJOR};
  }
  void finish(sg_status status) {
    ASSERT_OK(status);
    for (const auto &check : checks_) check();
  }

  sg_context *const on;
  const sg_dtype type;
  const extents &e;

 private:
  std::list<filled> memory_;
  std::vector<std::function<void()>> checks_;
};

std::optional<double> if_empty(bool empty, double value) { return empty ? std::optional(value) : std::nullopt; }

class empty : public on_each_device {
 protected:
  // Each subset of the extents, and each type.
  void sweep(const extents &sizes, const std::vector<sg_dtype> &types, const std::function<void(call &)> &run) {
    for (const sg_dtype type : types)
      for (std::size_t zeros = 0; zeros < std::size_t{1} << sizes.size(); ++zeros) {
        extents e = sizes;
        std::ostringstream text;
        text << sg_dtype_name(type);
        for (std::size_t i = 0; i < e.size(); ++i) {
          if (zeros >> i & 1) e[i] = 0;
          text << " " << e[i];
        }
        SCOPED_TRACE(text.str());
        call one(context_, type, e);
        run(one);
        if (HasFatalFailure()) return;
      }
  }
  const std::vector<sg_dtype> reals = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
  const std::vector<sg_dtype> multiplied = {SG_DTYPE_F64, SG_DTYPE_F32,  SG_DTYPE_F16, SG_DTYPE_BF16,
                                            SG_DTYPE_C64, SG_DTYPE_C128, SG_DTYPE_I8,  SG_DTYPE_F8_E4M3};
};

TEST_P(empty, gemm) {
  for (const double beta : {0.0, 1.0})
    sweep({3, 5, 4}, multiplied, [beta](call &c) {
      const std::int64_t m = c.e[0], n = c.e[1], k = c.e[2];
      const sg_dtype out = natural_result(c.type);
      sg_gemm_desc desc = SG_GEMM_DESC_INIT;
      desc.a = c.matrix(c.operand(m * k), m, k), desc.b = c.matrix(c.operand(k * n), k, n);
      desc.c = call::matrix(c.result("c", m * n, if_empty(k == 0, beta * unwritten), out), m, n, out);
      desc.beta.re = beta;
      c.finish(sg_gemm(c.on, &desc, nullptr));
    });
}

TEST_P(empty, linear_and_gradients) {
  sweep({3, 5, 4}, reals, [](call &c) {
    const std::int64_t rows = c.e[0], in = c.e[1], out = c.e[2];
    sg_linear_desc desc = SG_LINEAR_DESC_INIT;
    desc.x = c.matrix(c.operand(rows * in), rows, in), desc.w = c.matrix(c.operand(in * out), in, out);
    desc.y = c.matrix(c.result("y", rows * out, if_empty(in == 0, addend)), rows, out);
    desc.bias = c.operand(out, addend);
    c.finish(sg_linear(c.on, &desc, nullptr));
  });
  for (const bool accumulates : {false, true})
    sweep({3, 5, 4}, reals, [accumulates](call &c) {
      const std::int64_t rows = c.e[0], in = c.e[1], out = c.e[2];
      const double before = accumulates ? unwritten : 0;
      sg_linear_backward_desc desc = SG_LINEAR_BACKWARD_DESC_INIT;
      desc.dy = c.matrix(c.operand(rows * out), rows, out), desc.x = c.matrix(c.operand(rows * in), rows, in);
      desc.w = c.matrix(c.operand(in * out), in, out);
      desc.dx = c.matrix(c.result("dx", rows * in, if_empty(out == 0, 0)), rows, in);
      desc.dw = c.matrix(c.result("dw", in * out, if_empty(rows == 0, before)), in, out);
      desc.dbias = c.result("dbias", out, if_empty(rows == 0, before));
      desc.dbias_dtype = c.type, desc.accumulate = accumulates;
      c.finish(sg_linear_backward(c.on, &desc, nullptr));
    });
}

TEST_P(empty, triangular_and_symmetric_matrices) {
  sweep({3, 5}, {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_C64, SG_DTYPE_C128}, [](call &c) {
    const std::int64_t m = c.e[0], n = c.e[1];
    const auto square = [&] { return c.matrix(c.operand(m * m), m, m); };
    const auto result = [&] { return c.matrix(c.result("result", m * n, {}), m, n); };
    sg_triangular_desc triangular = SG_TRIANGULAR_DESC_INIT;
    triangular.a = square(), triangular.b = result();
    c.finish(sg_triangular(c.on, &triangular, nullptr));
    sg_symmetric_desc symmetric = SG_SYMMETRIC_DESC_INIT;
    symmetric.a = square(), symmetric.b = c.matrix(c.operand(m * n), m, n), symmetric.c = result();
    c.finish(sg_symmetric(c.on, &symmetric, nullptr));
    sg_rank_k_desc rank_k = SG_RANK_K_DESC_INIT;
    rank_k.a = c.matrix(c.operand(m * n), m, n), rank_k.c = c.matrix(c.result("c", m * m, {}), m, m);
    c.finish(sg_rank_k(c.on, &rank_k, nullptr));
  });
}

TEST_P(empty, operations_on_rows) {
  const extents sizes = {3, 32};
  sweep(sizes, reals, [](call &c) {
    const std::int64_t rows = c.e[0], cols = c.e[1];
    const auto given = [&] { return c.matrix(c.operand(rows * cols), rows, cols); };
    const auto result = [&] { return c.matrix(c.result("result", rows * cols, {}), rows, cols); };
    sg_axpby_desc axpby = SG_AXPBY_DESC_INIT;
    axpby.a = given(), axpby.c = result();
    c.finish(sg_axpby(c.on, &axpby, nullptr));
    for (const sg_function function : {SG_FUNCTION_GELU, SG_FUNCTION_ADD, SG_FUNCTION_GELU_GRADIENT}) {
      sg_elementwise_desc elementwise = SG_ELEMENTWISE_DESC_INIT;
      elementwise.a = given(), elementwise.b = given(), elementwise.c = result(), elementwise.function = function;
      c.finish(sg_elementwise(c.on, &elementwise, nullptr));
    }
    sg_fill_desc fill = SG_FILL_DESC_INIT;
    fill.y = result();
    c.finish(sg_fill(c.on, &fill, nullptr));
    sg_clamp_desc clamp = SG_CLAMP_DESC_INIT;
    clamp.x = given(), clamp.y = result();
    c.finish(sg_clamp(c.on, &clamp, nullptr));
    sg_clamp_backward_desc clamp_backward = SG_CLAMP_BACKWARD_DESC_INIT;
    clamp_backward.dy = given(), clamp_backward.x = given(), clamp_backward.dx = result();
    c.finish(sg_clamp_backward(c.on, &clamp_backward, nullptr));
    sg_row_dot_desc row_dot = SG_ROW_DOT_DESC_INIT;
    row_dot.a = given(), row_dot.b = given();
    row_dot.y = c.matrix(c.result("y", rows, if_empty(cols == 0, 0)), rows, 1);
    c.finish(sg_row_dot(c.on, &row_dot, nullptr));
    sg_row_reduce_desc row_reduce = SG_ROW_REDUCE_DESC_INIT;
    row_reduce.x = given(), row_reduce.y = c.matrix(c.result("y", rows, if_empty(cols == 0, 0)), rows, 1);
    c.finish(sg_row_reduce(c.on, &row_reduce, nullptr));
    sg_softmax_desc softmax = SG_SOFTMAX_DESC_INIT;
    softmax.x = given(), softmax.y = result();
    c.finish(sg_softmax(c.on, &softmax, nullptr));
    sg_softmax_backward_desc softmax_backward = SG_SOFTMAX_BACKWARD_DESC_INIT;
    softmax_backward.y = given(), softmax_backward.dy = given(), softmax_backward.dx = result();
    c.finish(sg_softmax_backward(c.on, &softmax_backward, nullptr));
    sg_norm_backward_desc norm_backward = SG_NORM_BACKWARD_DESC_INIT;
    norm_backward.dy = given(), norm_backward.x = given(), norm_backward.dx = result();
    norm_backward.gamma = c.operand(cols), norm_backward.dgamma = c.result("dgamma", cols, if_empty(rows == 0, 0));
    norm_backward.dbeta = c.result("dbeta", cols, if_empty(rows == 0, 0));
    c.finish(sg_norm_backward(c.on, &norm_backward, nullptr));
    sg_sgd_desc sgd = SG_SGD_DESC_INIT;
    sgd.parameters = c.result("parameters", rows * cols, {}), sgd.gradient = c.operand(rows * cols);
    sgd.elements = rows * cols, sgd.dtype = c.type;
    c.finish(sg_sgd(c.on, &sgd, nullptr));
    sg_scatter_add_desc scatter_add = SG_SCATTER_ADD_DESC_INIT;
    scatter_add.table = c.matrix(c.result("table", 4 * cols, if_empty(rows == 0, unwritten)), 4, cols);
    scatter_add.x = given(), scatter_add.indices = c.operand_of(SG_DTYPE_I32, rows, 1);
    c.finish(sg_scatter_add(c.on, &scatter_add, nullptr));
    for (const sg_norm_kind kind : {SG_NORM_LAYER, SG_NORM_RMS}) {
      sg_norm_desc norm = SG_NORM_DESC_INIT;
      norm.x = given(), norm.y = result(), norm.gamma = c.operand(cols), norm.kind = kind;
      c.finish(sg_norm(c.on, &norm, nullptr));
    }
    sg_rotary_desc rotary = SG_ROTARY_DESC_INIT;
    rotary.x = given(), rotary.y = result();
    c.finish(sg_rotary(c.on, &rotary, nullptr));
    sg_convert_desc convert = SG_CONVERT_DESC_INIT;
    convert.a = given(), convert.op_a = SG_TRANSPOSE_T;
    convert.c = call::matrix(c.result("c", rows * cols, {}, SG_DTYPE_F32), cols, rows, SG_DTYPE_F32);
    c.finish(sg_convert(c.on, &convert, nullptr));
    sg_gather_desc gather = SG_GATHER_DESC_INIT;
    gather.table = c.matrix(c.operand(4 * cols), 4, cols), gather.y = result();
    gather.indices = c.operand_of(SG_DTYPE_I32, rows, 1);
    c.finish(sg_gather(c.on, &gather, nullptr));
    if (c.type == SG_DTYPE_F64) return;
    sg_dequantize_desc dequantize = SG_DEQUANTIZE_DESC_INIT;
    dequantize.x = call::matrix(c.operand_of(SG_DTYPE_I8, rows * cols, 1), rows, cols, SG_DTYPE_I8);
    dequantize.scales = c.matrix(c.operand(rows * cols / 32), rows, cols / 32);
    dequantize.y = result(), dequantize.quantization = SG_QUANTIZATION_I8;
    c.finish(sg_dequantize(c.on, &dequantize, nullptr));
  });
}

constexpr sg_windows three_by_three = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1};

TEST_P(empty, windows) {
  for (const sg_image_layout layout : {SG_IMAGE_NCHW, SG_IMAGE_NHWC})
    sweep({2, 3, 4, 5}, reals, [layout](call &c) {
      const std::int64_t images = c.e[0], channels = c.e[1], height = c.e[2], width = c.e[3];
      const std::int64_t positions = images * height * width, of_image = channels * height * width;
      sg_im2col_desc take = SG_IM2COL_DESC_INIT;
      take.x = {c.operand(images * of_image), of_image};
      take.matrix = c.matrix(c.result("matrix", positions * channels * 9, {}), positions, channels * 9);
      take.images = images, take.channels = channels, take.height = height, take.width = width;
      take.windows = three_by_three, take.image_layout = layout;
      c.finish(sg_im2col(c.on, &take, nullptr));
      sg_col2im_desc add = SG_COL2IM_DESC_INIT;
      add.matrix = c.matrix(c.operand(positions * channels * 9), positions, channels * 9);
      add.x = {c.result("x", images * of_image, {}), of_image};
      add.images = images, add.channels = channels, add.height = height, add.width = width;
      add.windows = three_by_three, add.image_layout = layout;
      c.finish(sg_col2im(c.on, &add, nullptr));
    });
}

TEST_P(empty, convolutions) {
  for (const sg_image_layout layout : {SG_IMAGE_NCHW, SG_IMAGE_NHWC})
    sweep({2, 3, 2, 2, 4}, reals, [=](call &c) {
      const std::int64_t images = c.e[0], channels = c.e[1], height = c.e[2], width = c.e[3], outs = c.e[4];
      const std::int64_t in = channels * height * width, out = outs * height * width;
      sg_conv2d_desc desc = SG_CONV2D_DESC_INIT;
      desc.windows = three_by_three, desc.image_layout = layout, desc.dtype = c.type;
      desc.images = images, desc.channels = channels, desc.height = height, desc.width = width;
      desc.out_channels = outs;
      desc.x = {c.operand(images * in), in}, desc.w = c.operand(outs * channels * 9);
      desc.bias = c.operand(outs, addend);
      desc.y = {c.result("y", images * out, if_empty(channels == 0, addend)), out};
      c.finish(sg_conv2d(c.on, &desc, nullptr));
      for (const bool accumulates : {false, true}) {
        const double before = accumulates ? unwritten : 0;
        const bool no_rows = images * height * width == 0;
        sg_conv2d_backward_desc back = SG_CONV2D_BACKWARD_DESC_INIT;
        back.windows = desc.windows, back.image_layout = layout, back.dtype = c.type;
        back.images = images, back.channels = channels, back.height = height, back.width = width;
        back.out_channels = outs, back.accumulate = accumulates;
        back.x = desc.x, back.w = desc.w, back.dy = {c.operand(images * out), out};
        back.dx = {c.result("dx", images * in, if_empty(outs == 0, 0)), in};
        back.dw = c.result("dw", outs * channels * 9, if_empty(no_rows, before));
        back.dbias = c.result("dbias", outs, if_empty(no_rows, before));
        c.finish(sg_conv2d_backward(c.on, &back, nullptr));
      }
    });
}

TEST_P(empty, attention) {
  for (const sg_mask mask : {SG_MASK_NONE, SG_MASK_CAUSAL})
    sweep({2, 4, 3, 5, 8, 16}, reals, [mask](call &c) {
      const std::int64_t batch = c.e[0], heads = c.e[1], queries = c.e[2], keys = c.e[3], width = c.e[4],
                         value_width = c.e[5], kv_heads = 2;
      const auto of = [&](void *data, std::int64_t all, std::int64_t tokens, std::int64_t size) {
        const auto one_at_least = [](std::int64_t count) { return std::max<std::int64_t>(1, count); };
        const std::int64_t token = one_at_least(size), head = one_at_least(tokens) * token;
        return sg_heads{data, one_at_least(all) * head, head, token};
      };
      const std::int64_t of_q = heads * queries, of_k = kv_heads * keys;
      sg_attention_desc desc = SG_ATTENTION_DESC_INIT;
      desc.dtype = c.type, desc.mask = mask, desc.batch = batch, desc.heads = heads, desc.kv_heads = kv_heads;
      desc.queries = queries, desc.keys = keys, desc.width = width, desc.value_width = value_width;
      desc.q = of(c.operand(batch * of_q * width), heads, queries, width);
      desc.k = of(c.operand(batch * of_k * width), kv_heads, keys, width);
      desc.v = of(c.operand(batch * of_k * value_width), kv_heads, keys, value_width);
      desc.o = of(c.result("o", batch * of_q * value_width, if_empty(keys == 0, 0)), heads, queries, value_width);
      c.finish(sg_attention(c.on, &desc, nullptr));
      sg_attention_backward_desc back = SG_ATTENTION_BACKWARD_DESC_INIT;
      back.dtype = c.type, back.mask = mask, back.batch = batch, back.heads = heads, back.kv_heads = kv_heads;
      back.queries = queries, back.keys = keys, back.width = width, back.value_width = value_width;
      back.q = desc.q, back.k = desc.k, back.v = desc.v;
      back.dout = of(c.operand(batch * of_q * value_width), heads, queries, value_width);
      const bool no_queries = heads == 0 || queries == 0, no_values = value_width == 0;
      back.dq = of(c.result("dq", batch * of_q * width, if_empty(keys == 0 || no_values, 0)), heads, queries, width);
      back.dk = of(c.result("dk", batch * of_k * width, if_empty(no_queries || no_values, 0)), kv_heads, keys, width);
      back.dv = of(c.result("dv", batch * of_k * value_width, if_empty(no_queries, 0)), kv_heads, keys, value_width);
      c.finish(sg_attention_backward(c.on, &back, nullptr));
    });
}

TEST_P(empty, recurrent) {
  for (const sg_cell cell : {SG_CELL_LSTM, SG_CELL_GRU})
    for (const bool accumulates : {false, true})
      sweep({3, 2, 5, 4}, reals, [=](call &c) {
        const std::int64_t steps = c.e[0], batch = c.e[1], in = c.e[2], hidden = c.e[3];
        const std::int64_t rows = (cell == SG_CELL_LSTM ? 4 : 3) * hidden, state = batch * hidden;
        const bool is_lstm = cell == SG_CELL_LSTM;
        const auto of = [&](void *data, std::int64_t width) { return sg_sequence{data, batch * width, width}; };
        sg_recurrent_desc desc = SG_RECURRENT_DESC_INIT;
        desc.cell = cell, desc.dtype = c.type;
        desc.steps = steps, desc.batch = batch, desc.inputs = in, desc.hidden = hidden;
        desc.x = of(c.operand(steps * batch * in), in), desc.y = of(c.result("y", steps * state, {}), hidden);
        desc.w_ih = c.operand(rows * in), desc.w_hh = c.operand(rows * hidden);
        desc.bias_ih = c.operand(rows), desc.bias_hh = c.operand(rows);
        desc.h0 = c.operand(state, addend), desc.hn = c.result("hn", state, if_empty(steps == 0, addend));
        if (is_lstm) desc.c0 = c.operand(state, addend), desc.cn = c.result("cn", state, if_empty(steps == 0, addend));
        std::uint64_t bytes = 0;
        EXPECT_OK(sg_recurrent_reserve_size(&desc, &bytes));
        desc.reserve = c.operand_of(SG_DTYPE_F64, std::int64_t(bytes / 8 + 1), 0);
        c.finish(sg_recurrent(c.on, &desc, nullptr));
        const bool no_rows = steps * batch == 0;
        const double before = accumulates ? unwritten : 0;
        sg_recurrent_backward_desc back = SG_RECURRENT_BACKWARD_DESC_INIT;
        back.cell = cell, back.dtype = c.type, back.gradient_dtype = c.type, back.accumulate = accumulates;
        back.steps = steps, back.batch = batch, back.inputs = in, back.hidden = hidden;
        back.x = desc.x, back.y = desc.y, back.w_ih = desc.w_ih, back.w_hh = desc.w_hh, back.h0 = desc.h0;
        back.reserve = desc.reserve, back.dy = of(c.operand(steps * state), hidden);
        back.dhn = c.operand(state, addend);
        back.dx = of(c.result("dx", steps * batch * in, if_empty(hidden == 0, 0)), in);
        back.dw_ih = c.result("dw_ih", rows * in, if_empty(no_rows, before));
        back.dw_hh = c.result("dw_hh", rows * hidden, if_empty(no_rows, before));
        back.dbias_ih = c.result("dbias_ih", rows, if_empty(no_rows, before));
        back.dbias_hh = c.result("dbias_hh", rows, if_empty(no_rows, before));
        back.dh0 = c.result("dh0", state, if_empty(steps == 0, addend));
        if (is_lstm)
          back.dcn = c.operand(state, addend), back.dc0 = c.result("dc0", state, if_empty(steps == 0, addend));
        c.finish(sg_recurrent_backward(c.on, &back, nullptr));
      });
}

ON_EACH_DEVICE(empty);

}  // namespace
}  // namespace sg_test
