// SPDX-License-Identifier: Apache-2.0
// Submissions like a recent one of their thread, which skip its checks: at other addresses, right and wrong ones, they
// do what the first submission of another thread does there, bit by bit and with the same message.
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr std::size_t slot_bytes = 4096, slots = 32;
constexpr std::int64_t side = 16;

// An operation with its operands at some addresses.
struct operation_case {
  const char *name;
  std::size_t operands;
  std::function<sg_status(sg_context *, const std::vector<char *> &)> run;
};

sg_matrix matrix_at(char *data, sg_dtype type = SG_DTYPE_F32) {
  return {data, side, side, 0, type, SG_LAYOUT_ROW_MAJOR};
}
sg_heads heads_at(char *data) { return {data, 2 * 8 * 8, 8 * 8, 8}; }

template <class Desc>
Desc attention_at(Desc d, const std::vector<char *> &at) {
  d.batch = 2, d.heads = d.kv_heads = 2, d.queries = d.keys = d.width = d.value_width = 8, d.dtype = SG_DTYPE_F32;
  d.q = heads_at(at[0]), d.k = heads_at(at[1]), d.v = heads_at(at[2]);
  return d;
}
template <class Desc>
Desc conv_at(Desc d) {
  d.images = 2, d.channels = d.out_channels = 4, d.height = d.width = 5, d.dtype = SG_DTYPE_F32;
  d.windows.kernel_h = d.windows.kernel_w = 3;
  d.windows.pad_top = d.windows.pad_left = d.windows.pad_bottom = d.windows.pad_right = 1;
  return d;
}

const std::vector<operation_case> &cases() {
  using addresses = const std::vector<char *> &;
  static const std::vector<operation_case> all = {
      {"add", 3,
       [](sg_context *on, addresses at) {
         sg_elementwise_desc d = SG_ELEMENTWISE_DESC_INIT;
         d.function = SG_FUNCTION_ADD;
         d.a = matrix_at(at[0]), d.b = matrix_at(at[1]), d.c = matrix_at(at[2]);
         return sg_elementwise(on, &d, nullptr);
       }},
      {"softmax", 2,
       [](sg_context *on, addresses at) {
         sg_softmax_desc d = SG_SOFTMAX_DESC_INIT;
         d.x = matrix_at(at[0]), d.y = matrix_at(at[1]);
         return sg_softmax(on, &d, nullptr);
       }},
      {"layer norm", 4,
       [](sg_context *on, addresses at) {
         sg_norm_desc d = SG_NORM_DESC_INIT;
         d.x = matrix_at(at[0]), d.y = matrix_at(at[1]), d.gamma = at[2], d.beta = at[3];
         return sg_norm(on, &d, nullptr);
       }},
      {"axpby", 2,
       [](sg_context *on, addresses at) {
         sg_axpby_desc d = SG_AXPBY_DESC_INIT;
         d.a = matrix_at(at[0]), d.c = matrix_at(at[1]), d.alpha.re = 2, d.beta.re = 3;
         return sg_axpby(on, &d, nullptr);
       }},
      {"triangular", 2,
       [](sg_context *on, addresses at) {
         sg_triangular_desc d = SG_TRIANGULAR_DESC_INIT;
         d.a = matrix_at(at[0]), d.b = matrix_at(at[1]), d.alpha.re = 2;
         d.kind = SG_TRIANGULAR_MULTIPLY;
         return sg_triangular(on, &d, nullptr);
       }},
      {"symmetric", 3,
       [](sg_context *on, addresses at) {
         sg_symmetric_desc d = SG_SYMMETRIC_DESC_INIT;
         d.a = matrix_at(at[0]), d.b = matrix_at(at[1]), d.c = matrix_at(at[2]), d.beta.re = 3;
         return sg_symmetric(on, &d, nullptr);
       }},
      {"rank k", 3,
       [](sg_context *on, addresses at) {
         sg_rank_k_desc d = SG_RANK_K_DESC_INIT;
         d.a = matrix_at(at[0]), d.b = matrix_at(at[1]), d.c = matrix_at(at[2]), d.alpha.re = 2;
         return sg_rank_k(on, &d, nullptr);
       }},
      {"convert", 2,
       [](sg_context *on, addresses at) {
         sg_convert_desc d = SG_CONVERT_DESC_INIT;
         d.a = matrix_at(at[0]), d.c = matrix_at(at[1], SG_DTYPE_F16);
         return sg_convert(on, &d, nullptr);
       }},
      {"attention", 4,
       [](sg_context *on, addresses at) {
         sg_attention_desc d = attention_at<sg_attention_desc>(SG_ATTENTION_DESC_INIT, at);
         d.o = heads_at(at[3]);
         return sg_attention(on, &d, nullptr);
       }},
      {"attention backward", 7,
       [](sg_context *on, addresses at) {
         sg_attention_backward_desc d = attention_at<sg_attention_backward_desc>(SG_ATTENTION_BACKWARD_DESC_INIT, at);
         d.dout = heads_at(at[3]), d.dq = heads_at(at[4]), d.dk = heads_at(at[5]), d.dv = heads_at(at[6]);
         return sg_attention_backward(on, &d, nullptr);
       }},
      {"linear backward", 6,
       [](sg_context *on, addresses at) {
         sg_linear_backward_desc d = SG_LINEAR_BACKWARD_DESC_INIT;
         d.dy = matrix_at(at[0]), d.x = matrix_at(at[1]), d.w = matrix_at(at[2]);
         d.dx = matrix_at(at[3]), d.dw = matrix_at(at[4]), d.dbias = at[5];
         d.dbias_dtype = SG_DTYPE_F32, d.accumulate = 1;
         return sg_linear_backward(on, &d, nullptr);
       }},
      {"lstm", 6,
       [](sg_context *on, addresses at) {
         sg_recurrent_desc d = SG_RECURRENT_DESC_INIT;
         d.cell = SG_CELL_LSTM, d.steps = 4, d.batch = 2, d.in = d.hidden = 4, d.state_stride = 4;
         d.dtype = SG_DTYPE_F32;
         d.x = {at[0], 8, 4}, d.y = {at[3], 8, 4};
         d.w_ih = at[1], d.w_hh = at[2], d.h0 = at[4], d.hn = at[5];
         return sg_recurrent(on, &d, nullptr);
       }},
      {"conv2d", 4,
       [](sg_context *on, addresses at) {
         sg_conv2d_desc d = conv_at<sg_conv2d_desc>(SG_CONV2D_DESC_INIT);
         d.x.data = at[0], d.w = at[1], d.bias = at[2], d.y.data = at[3];
         return sg_conv2d(on, &d, nullptr);
       }},
      {"conv2d backward", 6,
       [](sg_context *on, addresses at) {
         sg_conv2d_backward_desc d = conv_at<sg_conv2d_backward_desc>(SG_CONV2D_BACKWARD_DESC_INIT);
         d.dy.data = at[0], d.x.data = at[1], d.w = at[2];
         d.dx.data = at[3], d.dw = at[4], d.dbias = at[5];
         return sg_conv2d_backward(on, &d, nullptr);
       }},
      {"im2col", 2,
       [](sg_context *on, addresses at) {
         sg_im2col_desc d = SG_IM2COL_DESC_INIT;
         d.images = 2, d.channels = 4, d.height = d.width = 5, d.first_channel = 1, d.used_channels = 2;
         d.windows.kernel_h = d.windows.kernel_w = 3;
         d.x.data = at[0], d.matrix = {at[1], 18, 18, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
         return sg_im2col(on, &d, nullptr);
       }},
  };
  return all;
}

class repeated_layers : public on_each_device {
 protected:
  void SetUp() override {
    on_each_device::SetUp();
    ASSERT_OK(sg_buffer_create(context_, slots * slot_bytes, memory_.out()));
    void *data = nullptr;
    ASSERT_OK(sg_buffer_data(memory_, &data));
    data_ = static_cast<char *>(data);
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(i % 17) / 16 - 0.5f;
  }

  struct outcome {
    sg_status status = SG_STATUS_OK;
    std::string message;
    std::vector<float> memory, host;
    bool operator==(const outcome &) const = default;
  };
  outcome after(const operation_case &of, const std::vector<char *> &at) {
    outcome made;
    made.memory.resize(values_.size());
    std::fill(host_.begin(), host_.end(), 1.0f);
    EXPECT_OK(sg_copy(context_, data_, values_.data(), slots * slot_bytes, nullptr));
    made.status = of.run(context_, at);
    if (made.status != SG_STATUS_OK) made.message = sg_last_error_message();
    EXPECT_OK(sg_copy(context_, made.memory.data(), data_, slots * slot_bytes, nullptr));
    made.host = host_;
    return made;
  }
  // By a submission like the one before, and by the first one of a thread.
  void compare(const operation_case &of, const std::vector<char *> &at, const std::string &what) {
    const outcome repeated = after(of, at);
    outcome first;
    std::thread([&] { first = after(of, at); }).join();
    EXPECT_EQ(first.status, repeated.status) << of.name << ", " << what << ": " << repeated.message;
    EXPECT_EQ(first.message, repeated.message) << of.name << ", " << what;
    EXPECT_TRUE(first == repeated) << of.name << ", " << what;
  }

  buffer memory_;
  char *data_ = nullptr;
  std::vector<float> values_ = std::vector<float>(slots * slot_bytes / sizeof(float)), host_ = std::vector<float>(1024);
};

TEST_P(repeated_layers, at_other_addresses) {
  std::mt19937 random(11);
  for (const operation_case &of : cases()) {
    std::vector<std::size_t> order(slots);
    for (std::size_t i = 0; i < slots; ++i) order[i] = i;
    std::vector<char *> at(of.operands);
    const auto draw = [&] {
      std::shuffle(order.begin(), order.end(), random);
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = data_ + order[i] * slot_bytes;
    };
    draw();
    const outcome usual = after(of, at);
    ASSERT_OK(usual.status) << of.name << ": " << usual.message;
    EXPECT_NE(values_, usual.memory) << of.name;
    for (int turn = 0; turn < 4; ++turn) draw(), compare(of, at, "elsewhere");
    const std::vector<char *> good = at;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const auto attempt = [&](char *address, const char *what) {
        at = good;
        at[i] = address;
        compare(of, at, std::string(what) + " operand " + std::to_string(i));
        compare(of, good, "after that");
      };
      attempt(good[i] + 4, "one element behind");
      attempt(good[i] + 2, "misaligned");
      attempt(nullptr, "without");
      attempt(reinterpret_cast<char *>(host_.data()), "on the host");
      for (std::size_t j = 0; j < at.size(); ++j) {
        if (j == i) continue;
        attempt(good[j], "the same memory as");
        attempt(good[j] + 4, "partly the same memory as");
      }
    }
  }
}

ON_EACH_DEVICE(repeated_layers);

}  // namespace
}  // namespace sg_test
