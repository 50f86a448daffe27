// SPDX-License-Identifier: Apache-2.0
// sg_scatter_add: drawn tables, rows and indices of every type, repeated and missing indices, the order of sums,
// refused calls.
#include "support/layer_case.hpp"

namespace sg_test {
namespace {

class scatter_add : public layer_case {};

TEST_P(scatter_add, drawn_tables) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::int64_t table_rows = any_size(1), rows = any_size(),
                       cols = attempt % 25 == 0 ? 2000 + below(9000) : any_size();
    const sg_dtype type = any_type();
    matrix table = values(type, table_rows, cols, any_form()), x = values(type, rows, cols, any_form());
    const bool from_end = below(2), is_long = below(2);
    std::vector<std::int64_t> chosen;
    for (std::int64_t i = 0; i < rows; ++i)
      chosen.push_back(below(9) ? below(2 * table_rows) - table_rows / 2 : below(2) ? table_rows : INT32_MIN);
    const std::vector<std::int32_t> narrow(chosen.begin(), chosen.end());
    operand_memory indices(context_, chosen.size() * 8 + 8);
    const void *const from = is_long ? static_cast<const void *>(chosen.data()) : narrow.data();
    if (rows > 0) {
      ASSERT_OK(sg_copy(context_, indices.data(), from, chosen.size() * (is_long ? 8 : 4), nullptr));
    }
    reals wanted, magnitude;
    for (std::int64_t r = 0; r < table_rows; ++r)
      for (std::int64_t j = 0; j < cols; ++j) {
        long double sum = table.get(r, j), size = std::fabs(sum);
        for (std::int64_t i = 0; i < rows; ++i) {
          const std::int64_t index = chosen[std::size_t(i)];
          if (index != r && !(from_end && index + table_rows == r)) continue;
          sum += x.get(i, j), size += std::fabs(x.get(i, j));
        }
        wanted.push_back(sum), magnitude.push_back(size);
      }
    sg_scatter_add_desc desc = SG_SCATTER_ADD_DESC_INIT;
    desc.table = table.view, desc.x = x.view, desc.indices = indices.data();
    desc.index_type = is_long ? SG_INDEX_I64 : SG_INDEX_I32;
    desc.flags = from_end ? SG_GATHER_FROM_END : 0;
    ASSERT_OK(sg_scatter_add(context_, &desc, nullptr)) << named("sums into rows", x.view);
    expect_near(table, wanted, magnitude, named("sums into rows", x.view));
  }
}

// 2^24 + 1 - 2^24 is 0 in f32, in this order only; and the small sum of the rows is not lost in the large table.
TEST_P(scatter_add, rows_of_an_index_are_added_in_order_and_then_to_the_table) {
  matrix x(context_, SG_DTYPE_F32, 4, 1, {}), table(context_, SG_DTYPE_F32, 2, 1, {});
  const long double rows[] = {0x1p24L, 1, 1, -0x1p24L};
  for (int i = 0; i < 4; ++i) x.set(i, 0, rows[i]);
  table.set(0, 0, 8), table.set(1, 0, 5);
  x.send(), table.send();
  operand_memory indices(context_, 16);
  const std::int32_t zeros[4] = {};
  ASSERT_OK(sg_copy(context_, indices.data(), zeros, sizeof zeros, nullptr));
  sg_scatter_add_desc desc = SG_SCATTER_ADD_DESC_INIT;
  desc.table = table.view, desc.x = x.view, desc.indices = indices.data();
  ASSERT_OK(sg_scatter_add(context_, &desc, nullptr));
  table.fetch();
  EXPECT_EQ(8, table.get(0, 0));
  EXPECT_EQ(5, table.get(1, 0));
}

TEST_P(scatter_add, refused) {
  matrix table = values(SG_DTYPE_F32, 4, 3, {}), x = values(SG_DTYPE_F32, 2, 3, {});
  operand_memory indices(context_, 64);
  sg_scatter_add_desc good = SG_SCATTER_ADD_DESC_INIT;
  good.table = table.view, good.x = x.view, good.indices = indices.data();
  sg_scatter_add_desc desc = good;
  desc.flags = SG_GATHER_NAN;
  EXPECT_REFUSED(sg_scatter_add(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->flags is 2");
  desc = good, desc.table.cols = 2;
  EXPECT_REFUSED(sg_scatter_add(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->table is 4 x 2");
  desc = good, desc.x.dtype = SG_DTYPE_F64;
  EXPECT_REFUSED(sg_scatter_add(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->table.dtype is f32");
  desc = good, desc.x.data = table.view.data;
  EXPECT_REFUSED(sg_scatter_add(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "overlap");
  desc = good, desc.table.dtype = desc.x.dtype = SG_DTYPE_I32;
  EXPECT_REFUSED(sg_scatter_add(context_, &desc, nullptr), SG_STATUS_UNSUPPORTED, "desc->table.dtype is i32");
}

ON_EACH_DEVICE(scatter_add);

}  // namespace
}  // namespace sg_test
