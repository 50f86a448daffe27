// SPDX-License-Identifier: Apache-2.0
// sg_row_reduce: every reduction, type and layout, drawn shapes, special values, refused calls.
#include "support/layer_case.hpp"

namespace sg_test {
namespace {

class row_reduce : public layer_case {
 protected:
  static constexpr sg_reduction reductions[] = {SG_REDUCTION_SUM, SG_REDUCTION_MEAN, SG_REDUCTION_MAX,
                                                SG_REDUCTION_MIN};
  static sg_row_reduce_desc desc_of(const sg_matrix &x, const sg_matrix &y, sg_reduction reduction) {
    sg_row_reduce_desc desc = SG_ROW_REDUCE_DESC_INIT;
    desc.x = x, desc.y = y, desc.reduction = reduction;
    return desc;
  }
};

TEST_P(row_reduce, drawn_shapes) {
  for (int attempt = 0; attempt < 120; ++attempt) {
    std::int64_t rows = any_size(), cols = any_size(1);
    if (attempt % 40 == 0) rows = 1 + below(3), cols = 5000 + below(40000);
    if (attempt % 40 == 1) rows = 5000 + below(9000), cols = 1 + below(4);
    const sg_dtype type = any_type();
    matrix x = values(type, rows, cols, any_form()), y = result(context_, type, rows, 1, any_form());
    const sg_reduction reduction = reductions[below(4)];
    const sg_row_reduce_desc desc = desc_of(x.view, y.view, reduction);
    ASSERT_OK(sg_row_reduce(context_, &desc, nullptr));
    reals wanted, magnitude;
    for (std::int64_t i = 0; i < rows; ++i) {
      long double sum = 0, size = 0, most = -infinite, least = infinite;
      for (std::int64_t j = 0; j < cols; ++j) {
        const long double each = x.get(i, j);
        sum += each, size += std::fabs(each), most = std::max(most, each), least = std::min(least, each);
      }
      const bool means = reduction == SG_REDUCTION_MEAN;
      if (means) sum /= cols, size /= cols;
      wanted.push_back(reduction == SG_REDUCTION_MAX ? most : reduction == SG_REDUCTION_MIN ? least : sum);
      magnitude.push_back(reduction == SG_REDUCTION_MAX || reduction == SG_REDUCTION_MIN ? 0 : size);
    }
    expect_near(y, wanted, magnitude, named("a reduction", x.view) + ", " + std::to_string(reduction));
  }
}

TEST_P(row_reduce, special_values) {
  for (const sg_dtype type : types)
    for (const std::int64_t cols : {3, 50})
      for (const sg_layout layout : {SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR}) {
        const long double rows[][5] = {{not_a_number, not_a_number, not_a_number, not_a_number, not_a_number},
                                       {infinite, infinite, infinite, infinite, 0.5L},
                                       {-infinite, -infinite, -infinite, 0.5L, -infinite}};
        for (int which = 0; which < 4; ++which) {
          matrix x(context_, type, 3, cols, {layout, 2}), y = result(context_, type, 3, 1, {});
          for (std::int64_t i = 0; i < 3; ++i)
            for (std::int64_t j = 0; j < cols; ++j) x.set(i, j, j == cols - 2 ? rows[i][0] : 0.5L);
          x.send();
          const sg_row_reduce_desc desc = desc_of(x.view, y.view, reductions[which]);
          ASSERT_OK(sg_row_reduce(context_, &desc, nullptr));
          expect_near(y, {rows[0][which + 1], rows[1][which + 1], rows[2][which + 1]}, {0, 0, 0},
                      named("a reduction", x.view) + ", " + std::to_string(which));
        }
      }
}

TEST_P(row_reduce, rows_without_columns) {
  const long double of_nothing[] = {0, not_a_number, -infinite, infinite};
  for (const sg_dtype type : types)
    for (int which = 0; which < 4; ++which) {
      matrix y = result(context_, type, 2, 1, {});
      const sg_matrix none = {nullptr, 2, 0, 0, type, SG_LAYOUT_ROW_MAJOR};
      const sg_row_reduce_desc desc = desc_of(none, y.view, reductions[which]);
      ASSERT_OK(sg_row_reduce(context_, &desc, nullptr));
      expect_near(y, {of_nothing[which], of_nothing[which]}, {0, 0}, "a reduction of nothing");
    }
}

TEST_P(row_reduce, refused) {
  matrix x = values(SG_DTYPE_F32, 4, 3, {}), y = result(context_, SG_DTYPE_F32, 4, 1, {});
  sg_row_reduce_desc desc = desc_of(x.view, y.view, static_cast<sg_reduction>(7));
  EXPECT_REFUSED(sg_row_reduce(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->reduction is 7");
  desc = desc_of(x.view, y.view, SG_REDUCTION_SUM);
  desc.y.rows = 3;
  EXPECT_REFUSED(sg_row_reduce(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->y is 3 x 1");
  desc = desc_of(x.view, y.view, SG_REDUCTION_SUM);
  desc.y.dtype = SG_DTYPE_F64;
  EXPECT_REFUSED(sg_row_reduce(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->y.dtype is f64");
  desc = desc_of(x.view, y.view, SG_REDUCTION_SUM);
  desc.y.data = x.view.data;
  EXPECT_REFUSED(sg_row_reduce(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "overlap");
  desc = desc_of(x.view, y.view, SG_REDUCTION_SUM);
  desc.reserved = 1;
  EXPECT_REFUSED(sg_row_reduce(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->reserved is 1");
}

ON_EACH_DEVICE(row_reduce);

}  // namespace
}  // namespace sg_test
