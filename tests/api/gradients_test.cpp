// SPDX-License-Identifier: Apache-2.0
// The gradients of softmax, norms and rotary embeddings: drawn shapes of every type and layout, in place, refused
// calls. The references are the definitions in extended precision.
#include "support/layer_case.hpp"

namespace sg_test {
namespace {

class gradients : public layer_case {};

TEST_P(gradients, softmax) {
  for (int attempt = 0; attempt < 60; ++attempt) {
    const std::int64_t rows = any_size(), cols = any_size(1);
    const sg_dtype type = any_type();
    matrix y = values(type, rows, cols, any_form()), dy = values(type, rows, cols, any_form());
    matrix dx = result(context_, type, rows, cols, any_form());
    reals wanted, sizes;
    for (std::int64_t i = 0; i < rows; ++i) {
      long double sum = 0, size = 0;
      for (std::int64_t j = 0; j < cols; ++j)
        sum += y.get(i, j) * dy.get(i, j), size += std::fabs(y.get(i, j) * dy.get(i, j));
      for (std::int64_t j = 0; j < cols; ++j) {
        wanted.push_back(y.get(i, j) * (dy.get(i, j) - sum));
        sizes.push_back(std::fabs(y.get(i, j)) * (std::fabs(dy.get(i, j)) + size));
      }
    }
    matrix &out = below(3) == 0 ? y : below(2) ? dy : dx;
    sg_softmax_backward_desc desc = SG_SOFTMAX_BACKWARD_DESC_INIT;
    desc.y = y.view, desc.dy = dy.view, desc.dx = out.view;
    ASSERT_OK(sg_softmax_backward(context_, &desc, nullptr));
    expect_near(out, wanted, sizes, named("the gradient of a softmax", dx.view));
  }
}

TEST_P(gradients, norms) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::int64_t rows = any_size(), cols = any_size(1);
    if (attempt % 25 == 0) rows = 1000 + below(1000), cols = 300 + below(300);
    const sg_dtype type = any_type();
    const bool is_rms = below(2), has_gamma = below(3), wants_gamma = below(3), wants_beta = !is_rms && below(3);
    matrix dy = values(type, rows, cols, any_form()), x = values(type, rows, cols, any_form());
    matrix gamma = values(type, 1, cols, {}), dx = result(context_, type, rows, cols, any_form());
    matrix dgamma = result(context_, type, 1, cols, {}), dbeta = result(context_, type, 1, cols, {});
    const long double epsilon = 1e-3;
    reals wanted, sizes, of_gamma(std::size_t(cols), 0), gamma_sizes(of_gamma), of_beta(of_gamma), beta_sizes(of_gamma);
    reals of_columns;  // gamma
    for (std::int64_t j = 0; j < cols; ++j) of_columns.push_back(gamma.get(0, j));
    for (std::int64_t i = 0; i < rows; ++i) {
      long double mean = 0, squares = 0, sum = 0, products = 0, sizes_of_sum = 0, sizes_of_products = 0;
      reals normal, scaled;  // of this row: x normalized, and dy times gamma
      for (std::int64_t j = 0; j < cols; ++j) normal.push_back(x.get(i, j)), mean += normal.back() / cols;
      if (is_rms) mean = 0;
      for (const auto each : normal) squares += (each - mean) * (each - mean) / cols;
      const long double factor = 1 / std::sqrt(squares + static_cast<long double>(double(epsilon)));
      for (std::size_t j = 0; j < normal.size(); ++j) {
        const long double of_dy = dy.get(i, std::int64_t(j));
        normal[j] = (normal[j] - mean) * factor;
        scaled.push_back(of_dy * (has_gamma ? of_columns[j] : 1));
        sum += scaled[j] / cols, products += scaled[j] * normal[j] / cols;
        sizes_of_sum += std::fabs(scaled[j]) / cols;
        sizes_of_products += std::fabs(scaled[j]) * (std::fabs(normal[j]) + factor) / cols;
        of_gamma[j] += of_dy * normal[j];
        gamma_sizes[j] += std::fabs(of_dy) * (std::fabs(normal[j]) + factor);
        of_beta[j] += of_dy, beta_sizes[j] += std::fabs(of_dy);
      }
      if (is_rms) sum = 0;
      for (std::size_t j = 0; j < normal.size(); ++j) {
        wanted.push_back(factor * (scaled[j] - sum - normal[j] * products));
        // The factor's own error grows as the variance is small.
        sizes.push_back(factor *
                        (std::fabs(scaled[j]) + sizes_of_sum + (std::fabs(normal[j]) + factor) * sizes_of_products) *
                        (1 + factor));
      }
    }
    matrix &out = below(3) == 0 ? x : below(2) ? dy : dx;
    sg_norm_backward_desc desc = SG_NORM_BACKWARD_DESC_INIT;
    desc.dy = dy.view, desc.x = x.view, desc.dx = out.view, desc.epsilon = double(epsilon);
    desc.kind = is_rms ? SG_NORM_RMS : SG_NORM_LAYER;
    if (has_gamma) desc.gamma = gamma.view.data;
    if (wants_gamma) desc.dgamma = dgamma.view.data;
    if (wants_beta) desc.dbeta = dbeta.view.data;
    ASSERT_OK(sg_norm_backward(context_, &desc, nullptr)) << named("the gradients of a norm", dx.view);
    const std::string what = named(is_rms ? "the gradients of an RMS norm" : "the gradients of a layer norm", dx.view);
    expect_near(out, wanted, sizes, what + ": dx");
    if (wants_gamma) expect_near(dgamma, of_gamma, gamma_sizes, what + ": dgamma");
    if (wants_beta) expect_near(dbeta, of_beta, beta_sizes, what + ": dbeta");
  }
}

// Rows that are no whole groups, on several lanes of cores: each has a group at least.
TEST(gradients_on_lanes, rows_of_no_whole_groups) {
  for (const auto &[rows, cols] : {std::pair{255, 800}, {319, 2000}, {40, 9000}})
    for (const int lanes : {3, 4, 6}) {
      const context on = open_context("cpu", lanes);
      const std::size_t count = std::size_t(rows) * std::size_t(cols);
      std::vector<float> dy(count, 1), x(count), dx(count, NAN), dgamma(std::size_t(cols), NAN),
          dbeta(std::size_t(cols), NAN);
      for (std::size_t i = 0; i < count; ++i) x[i] = i % std::size_t(cols) % 2 ? 1.0f : -1.0f;
      const auto matrix = [&, rows = rows, cols = cols](std::vector<float> &of, sg_layout layout) {
        return sg_matrix{of.data(), rows, cols, 0, SG_DTYPE_F32, layout};
      };
      for (const sg_layout layout : {SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR}) {
        sg_norm_backward_desc desc = SG_NORM_BACKWARD_DESC_INIT;
        desc.dy = matrix(dy, layout), desc.x = matrix(x, layout), desc.dx = matrix(dx, layout), desc.epsilon = 0;
        desc.dgamma = dgamma.data(), desc.dbeta = dbeta.data();
        ASSERT_OK(sg_norm_backward(on, &desc, nullptr)) << rows << " x " << cols << " on " << lanes;
        if (layout == SG_LAYOUT_COLUMN_MAJOR) continue;  // X is another matrix then
        for (std::size_t j = 0; j < dbeta.size(); ++j) {
          ASSERT_EQ(float(rows), dbeta[j]) << rows << " x " << cols << " on " << lanes << ", " << j;
          ASSERT_EQ(float(j % 2 ? rows : -rows), dgamma[j]) << rows << " x " << cols << " on " << lanes << ", " << j;
        }
        for (const float each : dx) ASSERT_EQ(0, each);
      }
    }
}

// The gradient of a rotary embedding is the one with `inverse`, bit by bit.
TEST_P(gradients, rotary) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    const std::int64_t heads = 1 + below(3), size = 2 + 2 * below(8), rows = any_size();
    const sg_dtype type = any_type();
    matrix dy = values(type, rows, heads * size, any_form());
    matrix dx = result(context_, type, rows, heads * size, any_form()),
           other = result(context_, type, rows, heads * size, {});
    sg_rotary_desc rotary = SG_ROTARY_DESC_INIT;
    rotary.x = dy.view, rotary.y = other.view, rotary.head_size = size, rotary.first_position = below(9);
    rotary.sequence_length = below(2) ? 0 : 7, rotary.inverse = 1,
    rotary.pairs = static_cast<sg_rotary_pairs>(below(2));
    ASSERT_OK(sg_rotary(context_, &rotary, nullptr));
    sg_rotary_backward_desc desc = SG_ROTARY_BACKWARD_DESC_INIT;
    desc.dy = dy.view, desc.dx = dx.view, desc.head_size = size, desc.first_position = rotary.first_position;
    desc.sequence_length = rotary.sequence_length, desc.pairs = rotary.pairs;
    ASSERT_OK(sg_rotary_backward(context_, &desc, nullptr));
    other.fetch();
    reals wanted;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < heads * size; ++j) wanted.push_back(other.get(i, j));
    const std::vector<std::uint8_t> before = dx.gaps();
    dx.fetch();
    ASSERT_EQ(before, dx.gaps());
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < heads * size; ++j)
        ASSERT_EQ(wanted[std::size_t(i * heads * size + j)], dx.get(i, j)) << named("rotary", dx.view);
  }
}

TEST_P(gradients, refused) {
  matrix x = values(SG_DTYPE_F32, 4, 6, {}), y = values(SG_DTYPE_F32, 4, 6, {}),
         z = result(context_, SG_DTYPE_F32, 4, 6, {});
  sg_softmax_backward_desc softmax = SG_SOFTMAX_BACKWARD_DESC_INIT;
  softmax.y = x.view, softmax.dy = y.view, softmax.dx = z.view, softmax.dy.rows = 3;
  EXPECT_REFUSED(sg_softmax_backward(context_, &softmax, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->dy is 3 x 6");
  sg_norm_backward_desc good = SG_NORM_BACKWARD_DESC_INIT;
  good.dy = y.view, good.x = x.view, good.dx = z.view;
  sg_norm_backward_desc desc = good;
  desc.epsilon = -1;
  EXPECT_REFUSED(sg_norm_backward(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->epsilon is -1");
  desc = good, desc.kind = SG_NORM_RMS, desc.dbeta = z.view.data;
  EXPECT_REFUSED(sg_norm_backward(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->dbeta is given");
  desc = good, desc.dgamma = z.view.data;
  EXPECT_REFUSED(sg_norm_backward(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "overlap");
  desc = good, desc.x.dtype = SG_DTYPE_F64;
  EXPECT_REFUSED(sg_norm_backward(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->x.dtype is f64");
  sg_rotary_backward_desc rotary = SG_ROTARY_BACKWARD_DESC_INIT;
  rotary.dy = x.view, rotary.dx = z.view, rotary.head_size = 5;
  EXPECT_REFUSED(sg_rotary_backward(context_, &rotary, nullptr), SG_STATUS_INVALID_ARGUMENT, "6 columns of desc->dy");
}

ON_EACH_DEVICE(gradients);

}  // namespace
}  // namespace sg_test
