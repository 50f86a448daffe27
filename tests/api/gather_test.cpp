// SPDX-License-Identifier: Apache-2.0
// sg_gather: indices in and out of range, types, order by memory, recording in graphs, refused calls.
// tests/backend/gather_test.cpp tries sizes and alignments.
#include <cmath>
#include <cstring>
#include <limits>

#include "support/numbers.hpp"
#include "support/placed_values.hpp"

namespace sg_test {
namespace {

class gather : public placed_values {
 protected:
  static sg_matrix view(void *data, std::int64_t rows, std::int64_t cols, std::int64_t ld = 0,
                        sg_dtype type = SG_DTYPE_F32) {
    return {data, rows, cols, ld, type, SG_LAYOUT_ROW_MAJOR};
  }
  static sg_gather_desc from(sg_matrix table, const std::int32_t *indices, sg_matrix y) {
    sg_gather_desc desc = SG_GATHER_DESC_INIT;
    desc.table = table, desc.indices = indices, desc.y = y;
    return desc;
  }
  static sg_gather_desc from(sg_matrix table, const std::int64_t *indices, sg_matrix y) {
    sg_gather_desc desc = SG_GATHER_DESC_INIT;
    desc.table = table, desc.indices = indices, desc.y = y, desc.index_type = SG_INDEX_I64;
    return desc;
  }
};
using floats = std::vector<float>;

TEST_P(gather, an_index_out_of_range_makes_a_row_of_zeros) {
  const auto table = place(floats{1, 2, 3, 4, 5, 6}), y = place(floats(21, 9.0f));
  const auto narrow = place(std::vector<std::int32_t>{2, 0, -1, 3, 1, -3, -4});
  sg_gather_desc desc = from(view(table, 3, 2), narrow, view(y, 7, 2, 3));
  ASSERT_OK(sg_gather(context_, &desc, nullptr));
  EXPECT_EQ((floats{5, 6, 9, 1, 2, 9, 0, 0, 9, 0, 0, 9, 3, 4, 9, 0, 0, 9, 0, 0, 9}), fetch(y, 21));
  desc.flags = SG_GATHER_FROM_END;
  ASSERT_OK(sg_gather(context_, &desc, nullptr));
  EXPECT_EQ((floats{5, 6, 9, 1, 2, 9, 5, 6, 9, 0, 0, 9, 3, 4, 9, 1, 2, 9, 0, 0, 9}), fetch(y, 21));
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto wide = place(std::vector<std::int64_t>{std::int64_t{1} << 32, most, -most - 1, 1});
  desc = from(view(table, 3, 2), wide, view(y, 4, 2, 3));
  desc.flags = SG_GATHER_FROM_END;
  ASSERT_OK(sg_gather(context_, &desc, nullptr));
  EXPECT_EQ((floats{0, 0, 9, 0, 0, 9, 0, 0, 9, 3, 4, 9}), fetch(y, 12));
}

TEST_P(gather, or_a_row_of_nan) {
  const auto indices = place(std::vector<std::int32_t>{5, 0});
  const auto wide = place(std::vector<double>{1, 2, 3, 4});
  sg_gather_desc desc = from(view(wide, 1, 2, 0, SG_DTYPE_F64), indices, view(wide.data + 2, 2, 1, 0, SG_DTYPE_F64));
  desc.table.cols = 1, desc.flags = SG_GATHER_NAN;
  ASSERT_OK(sg_gather(context_, &desc, nullptr));
  EXPECT_TRUE(std::isnan(fetch(wide, 4)[2]));
  EXPECT_EQ(1, fetch(wide, 4)[3]);
  for (const sg_dtype type : {SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16}) {
    const auto memory = place(std::vector<std::uint32_t>{0, 0, 0, 0});
    char *const data = reinterpret_cast<char *>(memory.data);
    desc = from(view(data, 1, 2, 0, type), indices, view(data + 8, 1, 2, 0, type));
    desc.flags = SG_GATHER_NAN;
    ASSERT_OK(sg_gather(context_, &desc, nullptr));
    const std::uint32_t found = fetch(memory, 4)[2];
    EXPECT_EQ(type == SG_DTYPE_F32 ? 0x7fc00000u : type == SG_DTYPE_F16 ? 0x7e007e00u : 0x7fc07fc0u, found);
  }
  desc = from(view(wide, 1, 2, 0, SG_DTYPE_I8), indices, view(wide.data + 2, 2, 2, 0, SG_DTYPE_I8));
  desc.flags = SG_GATHER_NAN;
  EXPECT_STATUS(SG_STATUS_UNSUPPORTED, sg_gather(context_, &desc, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "i8 has no NaN")) << sg_last_error_message();
}

// On cores, long operations are split between workers.
TEST_P(gather, large_tables_and_every_type) {
  constexpr std::int64_t bytes = 1024, entries = 300, count = 2000;
  std::vector<std::uint8_t> values(bytes * entries);
  random_source random(7);
  for (std::uint8_t &each : values) each = std::uint8_t(random.below(256));
  std::vector<std::int32_t> chosen(count);
  for (std::int32_t &each : chosen) each = random.below(int(entries) + 3) - 1;
  const auto table = place(values), y = place(std::vector<std::uint8_t>(bytes * count, 1));
  const auto indices = place(chosen);
  for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_C128, SG_DTYPE_C64, SG_DTYPE_F16, SG_DTYPE_I8,
                              SG_DTYPE_I32, SG_DTYPE_F8_E4M3}) {
    const std::int64_t cols = bytes / sg_dtype_size(type);
    const sg_gather_desc desc = from(view(table, entries, cols, 0, type), indices, view(y, count, cols, 0, type));
    ASSERT_OK(sg_gather(context_, &desc, nullptr));
    const std::vector<std::uint8_t> found = fetch(y, bytes * count);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t b = 0; b < bytes; ++b) {
        const bool exists = chosen[i] >= 0 && chosen[i] < entries;
        ASSERT_EQ(exists ? values[std::size_t(chosen[i]) * bytes + b] : 0, found[i * bytes + b]) << i << ", " << b;
      }
  }
}

// The order follows from the data: of the indices, of the table and of the result.
TEST_P(gather, follows_the_copies_of_its_operands) {
  const auto table = place(floats{0, 0, 0, 0}), y = place(floats(2));
  const auto indices = place(std::vector<std::int32_t>{0, 0});
  for (int turn = 0; turn < 50; ++turn) {
    const floats rows = {float(turn), float(turn + 1), float(turn + 2), float(turn + 3)};
    const std::vector<std::int32_t> chosen = {turn % 4, 3 - turn % 4};
    floats result(2);
    ASSERT_OK(sg_copy_async(context_, table, rows.data(), sizeof(float) * 4, nullptr, nullptr));
    ASSERT_OK(sg_copy_async(context_, indices, chosen.data(), 8, nullptr, nullptr));
    const sg_gather_desc desc = from(view(table, 4, 1), indices, view(y, 2, 1));
    ASSERT_OK(sg_gather_async(context_, &desc, nullptr, nullptr));
    job copied;
    ASSERT_OK(sg_copy_async(context_, result.data(), y, 8, nullptr, copied.out()));
    ASSERT_OK(sg_job_wait(copied, SG_FOREVER, nullptr));
    ASSERT_EQ((floats{rows[std::size_t(chosen[0])], rows[std::size_t(chosen[1])]}), result);
  }
}

TEST_P(gather, is_recorded_in_a_graph_and_updated) {
  const auto table = place(floats{1, 2, 3, 4}), y = place(floats(2));
  const auto indices = place(std::vector<std::int32_t>{0, 1});
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  sg_gather_desc desc = from(view(table, 2, 2), indices, view(y, 1, 2));
  ASSERT_OK(sg_gather_async(context_, &desc, &record, nullptr));
  const auto run = [&] {
    job handle;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  };
  run();
  EXPECT_EQ((floats{1, 2}), fetch(y, 2));
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_GATHER, update.desc = &desc;
  desc.indices = indices.data + 1;
  ASSERT_OK(sg_graph_update(graph, 0, &update));
  run();
  EXPECT_EQ((floats{3, 4}), fetch(y, 2));
  desc.flags = SG_GATHER_FROM_END;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "operation->desc differs")) << sg_last_error_message();
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(gather, wrong_calls_name_the_field) {
  const floats before(8, 7.0f);
  const auto table = place(floats(8)), y = place(before);
  const auto indices = place(std::vector<std::int64_t>(2));
  const auto bad = [&](sg_status status, const char *part, auto &&spoil) {
    sg_gather_desc desc = from(view(table, 4, 2), indices, view(y, 2, 2));
    spoil(desc);
    EXPECT_STATUS(status, sg_gather(context_, &desc, nullptr)) << part;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message();
  };
  using d = sg_gather_desc;
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT, unsupported = SG_STATUS_UNSUPPORTED;
  bad(invalid, "desc->index_type is 2", [](d &o) { o.index_type = sg_index_type(2); });
  bad(invalid, "desc->flags is 4", [](d &o) { o.flags = 4; });
  bad(invalid, "desc->indices is NULL", [](d &o) { o.indices = nullptr; });
  bad(invalid, "which is not aligned to 8 bytes",
      [&](d &o) { o.indices = reinterpret_cast<const char *>(indices.data) + 4; });
  bad(invalid, "desc->table is 4 x 1; with desc->y of 2 x 2 it must be 4 x 2", [](d &o) { o.table.cols = 1; });
  bad(invalid, "desc->table is 0 x 2; with desc->y of 2 x 2 it must be 1 x 2", [](d &o) { o.table.rows = 0; });
  bad(invalid, "desc->table.dtype is f64", [](d &o) { o.table.dtype = SG_DTYPE_F64; });
  bad(unsupported, "desc->table.layout is 1; of i32 it must be row-major",
      [](d &o) { o.table.layout = SG_LAYOUT_COLUMN_MAJOR, o.table.dtype = o.y.dtype = SG_DTYPE_I32; });
  bad(invalid, "desc->table (", [&](d &o) { o.y.data = table.data + 6, o.y.rows = 1; });
  bad(invalid, "desc->indices (", [&](d &o) { o.indices = reinterpret_cast<std::int64_t *>(y.data + 2); });
  EXPECT_EQ(before, fetch(y, 8));
  const sg_gather_desc empty = from(view(table, 4, 2), static_cast<std::int64_t *>(nullptr), view(nullptr, 0, 2));
  EXPECT_OK(sg_gather(context_, &empty, nullptr));
  EXPECT_STATUS(invalid, sg_gather(context_, nullptr, nullptr));
}

ON_EACH_DEVICE(gather);

}  // namespace
}  // namespace sg_test
