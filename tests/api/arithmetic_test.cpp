// SPDX-License-Identifier: Apache-2.0
// Arithmetic in the type that the headers name, on each device: what overflows, underflows or is rounded twice in it.
#include <cmath>
#include <limits>

#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

class arithmetic : public on_each_device {
 protected:
  // Device memory with a copy of the values.
  template <class T>
  T *device(const std::vector<T> &values) {
    buffer &made = buffers_.emplace_back();
    void *data = nullptr;
    EXPECT_OK(sg_buffer_create(context_, values.size() * sizeof(T), nullptr, made.out()));
    EXPECT_OK(sg_buffer_data(made, &data));
    EXPECT_OK(sg_copy(context_, data, values.data(), values.size() * sizeof(T), nullptr));
    return static_cast<T *>(data);
  }
  template <class T>
  std::vector<T> host(const T *data, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_OK(sg_copy(context_, values.data(), data, count * sizeof(T), nullptr));
    return values;
  }
  static sg_matrix matrix(void *data, std::int64_t rows, std::int64_t cols, sg_dtype type = SG_DTYPE_F32) {
    return {data, rows, cols, 0, type, SG_LAYOUT_ROW_MAJOR};
  }
  std::vector<float> norm(const std::vector<float> &x, sg_norm_kind kind, double epsilon) {
    const auto cols = std::int64_t(x.size());
    float *const y = device(x);
    sg_norm_desc desc = SG_NORM_DESC_INIT;
    desc.x = matrix(device(x), 1, cols), desc.y = matrix(y, 1, cols), desc.kind = kind, desc.epsilon = epsilon;
    EXPECT_OK(sg_norm(context_, &desc, nullptr));
    return host(y, x.size());
  }

  std::vector<buffer> buffers_;
};

// "Sums of squares that exceed the arithmetic's range are infinite."
TEST_P(arithmetic, squares_of_a_norm_overflow_and_underflow) {
  for (const float each : norm({1e30f, -1e30f, 1, 2}, SG_NORM_RMS, 1e-5)) EXPECT_EQ(0, each);
  for (const float each : norm({1e30f, -1e30f, 1, 2}, SG_NORM_LAYER, 1e-5)) EXPECT_EQ(0, each);
  for (const float each : norm({1e-30f, 1e-30f, 1e-30f, 1e-30f}, SG_NORM_RMS, 0)) EXPECT_EQ(infinity, each);
}

TEST_P(arithmetic, products_beyond_f32_are_infinite) {
  float *const large = device<float>({1e30f}), *const c = device<float>({1e30f});
  sg_axpby_desc axpby = SG_AXPBY_DESC_INIT;
  axpby.a = matrix(large, 1, 1), axpby.c = matrix(c, 1, 1), axpby.alpha.re = 1e10, axpby.beta.re = -1e9;
  ASSERT_OK(sg_axpby(context_, &axpby, nullptr));
  EXPECT_FALSE(std::isfinite(host(c, 1)[0]));

  float *const row = device<float>({1e30f, 1e30f}), *const column = device<float>({1e30f, -1e30f});
  sg_gemm_desc gemm = SG_GEMM_DESC_INIT;
  gemm.a = matrix(row, 1, 2), gemm.b = matrix(column, 2, 1), gemm.c = matrix(c, 1, 1);
  ASSERT_OK(sg_gemm(context_, &gemm, nullptr));
  EXPECT_FALSE(std::isfinite(host(c, 1)[0]));
}

// Products near the middle of two numbers of the type become that middle in f32.
TEST_P(arithmetic, dequantized_values_are_rounded_twice) {
  for (const sg_dtype type : {SG_DTYPE_F16, SG_DTYPE_BF16}) {
    std::vector<std::int8_t> codes;
    std::vector<float> scales;
    for (int code = 3; code < 128; code += 2)
      for (int middle = 1; middle < 40; middle += 2) {
        const double target = 1 + std::ldexp(middle, type == SG_DTYPE_F16 ? -11 : -8);
        codes.insert(codes.end(), {std::int8_t(code), std::int8_t(code)}), scales.push_back(float(target / code));
      }
    const auto cols = std::int64_t(codes.size());
    auto *const y = device(std::vector<std::uint16_t>(codes.size()));
    sg_dequantize_desc desc = SG_DEQUANTIZE_DESC_INIT;
    desc.x = matrix(device(codes), 1, cols, SG_DTYPE_I8), desc.scales = matrix(device(scales), 1, cols / 2);
    desc.y = matrix(y, 1, cols, type), desc.block_size = 2, desc.quantization = SG_QUANTIZATION_I8;
    ASSERT_OK(sg_dequantize(context_, &desc, nullptr));
    const auto found = host(y, codes.size());
    int differs = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const auto &format = type == SG_DTYPE_F16 ? f16_format : bf16_format;
      const float product = float(codes[i]) * scales[i / 2];
      ASSERT_EQ(encode_16(format, product), found[i]) << int(codes[i]) << " * " << scales[i / 2];
      differs += encode_16(format, (long double)(codes[i]) * scales[i / 2]) != found[i];
    }
    EXPECT_GT(differs, 0);
  }
}

ON_EACH_DEVICE(arithmetic);

}  // namespace
}  // namespace sg_test
