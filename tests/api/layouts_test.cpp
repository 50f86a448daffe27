// SPDX-License-Identifier: Apache-2.0
// The layout of each matrix of a layer is its own: results of drawn layouts are those of row-major matrices.
// bit.
#include <functional>
#include <string>
#include <vector>

#include "support/strided_matrix.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t rows = 37, cols = 24;

class layouts : public on_each_device {
 protected:
  struct extent {
    std::int64_t rows, cols;
  };
  using call = std::function<sg_status(const std::vector<sg_matrix> &)>;

  // Calls with the matrices in row-major layout, then in drawn ones. The last matrix is the result.
  // `sums`: in another order, so that results differ by rounding.
  void check(const char *name, sg_dtype type, const std::vector<extent> &sizes, const call &run, bool sums = false) {
    SCOPED_TRACE(std::string(name) + " of type " + std::to_string(type));
    std::vector<strided_matrix> by_rows = make(type, sizes, false);
    for (strided_matrix &each : by_rows) fill(each);
    std::vector<sg_matrix> views = views_of(by_rows);
    ASSERT_OK(run(views));
    by_rows.back().fetch();
    for (int turn = 0; turn < 6; ++turn) {
      std::vector<strided_matrix> drawn = make(type, sizes, true);
      for (std::size_t i = 0; i < drawn.size(); ++i) copy(by_rows[i], drawn[i]);
      strided_matrix &result = drawn.back();
      fill(result);
      const std::vector<std::uint8_t> gaps = result.gaps();
      views = views_of(drawn);
      ASSERT_OK(run(views)) << sg_last_error_message();
      result.fetch();
      for (std::int64_t i = 0; i < result.view.rows; ++i)
        for (std::int64_t j = 0; j < result.view.cols; ++j)
          ASSERT_NEAR(by_rows.back().get(i, j), result.get(i, j), sums ? 1e-2 / (type == SG_DTYPE_F64 ? 1e10 : 1) : 0)
              << i << " " << j << " in turn " << turn;
      ASSERT_EQ(gaps, result.gaps());
    }
  }

 private:
  std::vector<strided_matrix> make(sg_dtype type, const std::vector<extent> &sizes, bool drawn) {
    std::vector<strided_matrix> made;
    for (const extent &size : sizes) {
      strided_matrix::form how;
      if (drawn) {
        how.layout = random_.below(3) > 0 ? SG_LAYOUT_COLUMN_MAJOR : SG_LAYOUT_ROW_MAJOR;
        how.gap = random_.below(4), how.offset = random_.below(4);
      }
      made.emplace_back(context_, type, size.rows, size.cols, how);
    }
    return made;
  }
  void fill(strided_matrix &x) {
    for (std::int64_t i = 0; i < x.view.rows; ++i)
      for (std::int64_t j = 0; j < x.view.cols; ++j) x.set(i, j, random_.real());
    x.send();
  }
  static void copy(strided_matrix &from, strided_matrix &to) {
    for (std::int64_t i = 0; i < to.view.rows; ++i)
      for (std::int64_t j = 0; j < to.view.cols; ++j) to.set(i, j, from.get(i, j));
    to.send();
  }
  static std::vector<sg_matrix> views_of(const std::vector<strided_matrix> &all) {
    std::vector<sg_matrix> views;
    for (const strided_matrix &each : all) views.push_back(each.view);
    return views;
  }

  random_source random_{11};
};

constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};

TEST_P(layouts, functions_of_elements_and_rows) {
  for (const sg_dtype type : types) {
    check("gelu", type, {{rows, cols}, {rows, cols}}, [&](const auto &m) {
      sg_elementwise_desc desc = SG_ELEMENTWISE_DESC_INIT;
      desc.a = m[0], desc.c = m[1], desc.function = SG_FUNCTION_GELU;
      return sg_elementwise(context_, &desc, nullptr);
    });
    check("product", type, {{rows, cols}, {rows, cols}, {rows, cols}}, [&](const auto &m) {
      sg_elementwise_desc desc = SG_ELEMENTWISE_DESC_INIT;
      desc.a = m[0], desc.b = m[1], desc.c = m[2], desc.function = SG_FUNCTION_MULTIPLY;
      return sg_elementwise(context_, &desc, nullptr);
    });
    check("softmax", type, {{rows, cols}, {rows, cols}}, [&](const auto &m) {
      sg_softmax_desc desc = SG_SOFTMAX_DESC_INIT;
      desc.x = m[0], desc.y = m[1], desc.mask = SG_MASK_CAUSAL, desc.mask_offset = 2;
      return sg_softmax(context_, &desc, nullptr);
    });
    check("layer norm", type, {{rows, cols}, {rows, cols}}, [&](const auto &m) {
      sg_norm_desc desc = SG_NORM_DESC_INIT;
      desc.x = m[0], desc.y = m[1], desc.kind = SG_NORM_LAYER;
      return sg_norm(context_, &desc, nullptr);
    });
    check("clamp", type, {{rows, cols}, {rows, cols}, {rows, cols}}, [&](const auto &m) {
      sg_clamp_backward_desc desc = SG_CLAMP_BACKWARD_DESC_INIT;
      desc.x = m[0], desc.dy = m[1], desc.dx = m[2], desc.low = -0.5, desc.high = 0.25;
      return sg_clamp_backward(context_, &desc, nullptr);
    });
    check(
        "row dot", type, {{rows, cols}, {rows, cols}, {rows, 1}},
        [&](const auto &m) {
          sg_row_dot_desc desc = SG_ROW_DOT_DESC_INIT;
          desc.a = m[0], desc.b = m[1], desc.y = m[2];
          return sg_row_dot(context_, &desc, nullptr);
        },
        true);
    check("sum", type, {{rows, cols}, {rows, cols}}, [&](const auto &m) {
      sg_axpby_desc desc = SG_AXPBY_DESC_INIT;
      desc.a = m[0], desc.c = m[1], desc.alpha.re = 2, desc.beta.re = 0;
      return sg_axpby(context_, &desc, nullptr);
    });
  }
}

TEST_P(layouts, tables) {
  for (const sg_dtype type : types) {
    check("rotary", type, {{rows, cols}, {rows, 4}, {rows, 4}, {rows, cols}}, [&](const auto &m) {
      sg_rotary_desc desc = SG_ROTARY_DESC_INIT;
      desc.x = m[0], desc.cos = m[1], desc.sin = m[2], desc.y = m[3], desc.head_size = 8;
      return sg_rotary(context_, &desc, nullptr);
    });
    const std::int32_t found[] = {5, 0, 8, 8, 3};
    buffer memory;
    void *indices = nullptr;
    ASSERT_OK(sg_buffer_create(context_, sizeof found, nullptr, memory.out()));
    ASSERT_OK(sg_buffer_data(memory, &indices));
    ASSERT_OK(sg_copy(context_, indices, found, sizeof found, nullptr));
    check("gather", type, {{9, cols}, {5, cols}}, [&](const auto &m) {
      sg_gather_desc desc = SG_GATHER_DESC_INIT;
      desc.table = m[0], desc.y = m[1], desc.indices = indices, desc.index_type = SG_INDEX_I32;
      return sg_gather(context_, &desc, nullptr);
    });
  }
}

// A result that is its operand's transpose, in the same memory.
TEST_P(layouts, transposed_in_place) {
  strided_matrix x(context_, SG_DTYPE_F32, 6, 6, {});
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) x.set(i, j, 10 * i + j - 30);
  x.send();
  sg_elementwise_desc desc = SG_ELEMENTWISE_DESC_INIT;
  desc.a = desc.c = x.view, desc.c.layout = SG_LAYOUT_COLUMN_MAJOR;
  desc.function = SG_FUNCTION_RELU;
  ASSERT_OK(sg_elementwise(context_, &desc, nullptr));
  x.fetch();
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) EXPECT_EQ(std::max(0, 10 * j + i - 30), x.get(i, j)) << i << " " << j;
}

TEST_P(layouts, large_matrices_are_transposed_in_parts) {
  const std::int64_t n = 1100;
  strided_matrix x(context_, SG_DTYPE_F32, n, n, {SG_LAYOUT_COLUMN_MAJOR, 3}), y(context_, SG_DTYPE_F32, n, n, {});
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) x.set(i, j, i - j);
  x.send(), y.send();
  sg_elementwise_desc desc = SG_ELEMENTWISE_DESC_INIT;
  desc.a = x.view, desc.c = y.view, desc.function = SG_FUNCTION_RELU;
  ASSERT_OK(sg_elementwise(context_, &desc, nullptr));
  y.fetch();
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) ASSERT_EQ(std::max<std::int64_t>(0, i - j), y.get(i, j)) << i << " " << j;
}

ON_EACH_DEVICE(layouts);

}  // namespace
}  // namespace sg_test
