// SPDX-License-Identifier: Apache-2.0
// sg_cross_entropy and its gradient: drawn shapes of every type and layout, classes that do not exist, special rows,
// refused calls. The reference is the definition in extended precision.
#include "support/layer_case.hpp"

namespace sg_test {
namespace {

class cross_entropy : public layer_case {
 protected:
  // Indices of one of the two types in memory for operands.
  struct classes {
    classes(sg_context *on, const std::vector<std::int64_t> &values, bool is_long)
        : type(is_long ? SG_INDEX_I64 : SG_INDEX_I32) {
      std::vector<std::int32_t> narrow(values.begin(), values.end());
      const void *const from = is_long ? static_cast<const void *>(values.data()) : narrow.data();
      const std::size_t bytes = values.size() * (is_long ? 8 : 4);
      memory = operand_memory(on, bytes + 8);
      if (bytes > 0) {
        EXPECT_OK(sg_copy(on, memory.data(), from, bytes, nullptr));
      }
    }
    sg_index_type type;
    operand_memory memory;
  };
  std::vector<std::int64_t> any_classes(std::int64_t rows, std::int64_t cols) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < rows; ++i) all.push_back(below(8) ? below(cols) : below(2) ? -100 : cols);
    return all;
  }
};

TEST_P(cross_entropy, drawn_shapes) {
  for (int attempt = 0; attempt < 80; ++attempt) {
    const std::int64_t rows = any_size(), cols = attempt % 40 == 0 ? 9000 + below(60000) : any_size(1);
    const sg_dtype type = any_type();
    const long double scale = below(3) ? 4 : 80;
    matrix x = values(type, rows, cols, any_form(), scale), y = result(context_, type, rows, 1, any_form());
    const std::vector<std::int64_t> chosen = any_classes(rows, cols);
    const classes indices(context_, chosen, below(2));
    sg_cross_entropy_desc desc = SG_CROSS_ENTROPY_DESC_INIT;
    desc.x = x.view, desc.y = y.view, desc.indices = indices.memory.data(), desc.index_type = indices.type;
    ASSERT_OK(sg_cross_entropy(context_, &desc, nullptr)) << named("a cross entropy", x.view);
    matrix dy = values(type, rows, 1, any_form());
    const bool in_place = below(3) == 0, has_dy = below(3) != 0;
    reals losses, magnitudes, gradients, of_gradients;
    const double factor = below(2) ? 1 : 1.0 / double(std::max<std::int64_t>(rows, 1));
    for (std::int64_t i = 0; i < rows; ++i) {
      const bool exists = chosen[std::size_t(i)] >= 0 && chosen[std::size_t(i)] < cols;
      long double most = -infinite, sum = 0;
      for (std::int64_t j = 0; j < cols; ++j) most = std::max(most, x.get(i, j));
      for (std::int64_t j = 0; j < cols; ++j) sum += std::exp(x.get(i, j) - most);
      losses.push_back(exists ? std::log(sum) + most - x.get(i, chosen[std::size_t(i)]) : 0);
      magnitudes.push_back(scale);
      const long double of_row = (has_dy ? dy.get(i, 0) : 1) * factor;
      for (std::int64_t j = 0; j < cols; ++j) {
        const long double weight = std::exp(x.get(i, j) - most) / sum;
        gradients.push_back(exists ? of_row * (weight - (j == chosen[std::size_t(i)] ? 1 : 0)) : 0);
        of_gradients.push_back(exists ? std::fabs(of_row) * (weight * scale + (j == chosen[std::size_t(i)] ? 1 : 0))
                                      : 0);
      }
    }
    expect_near(y, losses, magnitudes, named("a cross entropy", x.view));
    matrix dx = result(context_, type, rows, cols, any_form());
    sg_cross_entropy_backward_desc backward = SG_CROSS_ENTROPY_BACKWARD_DESC_INIT;
    backward.x = x.view, backward.dx = in_place ? x.view : dx.view, backward.scale = factor;
    backward.indices = indices.memory.data(), backward.index_type = indices.type;
    if (has_dy) backward.dy = dy.view;
    ASSERT_OK(sg_cross_entropy_backward(context_, &backward, nullptr)) << named("its gradient", x.view);
    expect_near(in_place ? x : dx, gradients, of_gradients, named("the gradient of a cross entropy", x.view));
  }
}

TEST_P(cross_entropy, special_rows) {
  for (const sg_dtype type : types) {
    matrix x(context_, type, 5, 3, {}), y = result(context_, type, 5, 1, {});
    const long double rows[5][3] = {{1, not_a_number, 1},
                                    {infinite, 1, 2},
                                    {-infinite, -infinite, -infinite},
                                    {-infinite, 1, 1},
                                    {not_a_number, 1, 1}};
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 3; ++j) x.set(i, j, rows[i][j]);
    x.send();
    const classes indices(context_, {0, 1, 0, 0, 7}, false);
    sg_cross_entropy_desc desc = SG_CROSS_ENTROPY_DESC_INIT;
    desc.x = x.view, desc.y = y.view, desc.indices = indices.memory.data();
    ASSERT_OK(sg_cross_entropy(context_, &desc, nullptr));
    expect_near(y, {not_a_number, not_a_number, not_a_number, infinite, 0}, reals(5, 0),
                named("a cross entropy", x.view));
  }
}

TEST_P(cross_entropy, refused) {
  matrix x = values(SG_DTYPE_F32, 4, 3, {}), y = result(context_, SG_DTYPE_F32, 4, 1, {});
  const classes indices(context_, {0, 1, 2, 0}, false);
  sg_cross_entropy_desc good = SG_CROSS_ENTROPY_DESC_INIT;
  good.x = x.view, good.y = y.view, good.indices = indices.memory.data();
  sg_cross_entropy_desc desc = good;
  desc.index_type = static_cast<sg_index_type>(9);
  EXPECT_REFUSED(sg_cross_entropy(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->index_type is 9");
  desc = good, desc.indices = nullptr;
  EXPECT_REFUSED(sg_cross_entropy(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->indices is NULL");
  desc = good, desc.indices = static_cast<const char *>(good.indices) + 1;
  EXPECT_REFUSED(sg_cross_entropy(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "not aligned to 4 bytes");
  desc = good, desc.x.cols = 0;
  EXPECT_REFUSED(sg_cross_entropy(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->x.cols is 0");
  desc = good, desc.y.rows = 2;
  EXPECT_REFUSED(sg_cross_entropy(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->y is 2 x 1");
  sg_cross_entropy_backward_desc backward = SG_CROSS_ENTROPY_BACKWARD_DESC_INIT;
  backward.x = backward.dx = x.view, backward.indices = good.indices, backward.scale = NAN;
  EXPECT_REFUSED(sg_cross_entropy_backward(context_, &backward, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->scale is");
  backward.scale = 1e39;
  EXPECT_REFUSED(sg_cross_entropy_backward(context_, &backward, nullptr), SG_STATUS_INVALID_ARGUMENT,
                 "desc->scale is 1e+39");
  sg_cross_entropy_backward_desc aliased = SG_CROSS_ENTROPY_BACKWARD_DESC_INIT;
  aliased.x = x.view, aliased.dx = y.view, aliased.x.cols = aliased.dx.cols = 1, aliased.indices = y.view.data;
  EXPECT_REFUSED(sg_cross_entropy_backward(context_, &aliased, nullptr), SG_STATUS_INVALID_ARGUMENT, "overlap");
  backward.scale = 1, backward.dy = y.view, backward.dy.data = x.view.data;
  EXPECT_REFUSED(sg_cross_entropy_backward(context_, &backward, nullptr), SG_STATUS_INVALID_ARGUMENT, "overlap");
}

ON_EACH_DEVICE(cross_entropy);

}  // namespace
}  // namespace sg_test
