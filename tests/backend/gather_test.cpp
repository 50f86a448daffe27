// SPDX-License-Identifier: Apache-2.0
// Rows of a table by their indices, byte by byte; gaps keep their bytes.
#include "ops/gather.hpp"

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "harness.hpp"

namespace sg::test {
namespace {

struct gather_case {
  std::int64_t rows, row_bytes, table_rows, gap;
  std::int32_t component, index_bytes;
  bool from_end;
};

class gather : public conformance {
 protected:
  void attempt(const gather_case &f);

  stream stream_{dev()};
  std::mt19937_64 random_{42};
};

void gather::attempt(const gather_case &f) {
  const std::int64_t row = f.row_bytes + f.gap;
  std::vector<char> table(std::size_t(f.table_rows * row)), y(std::size_t(f.rows * row));
  for (char &each : table) each = char(random_());
  for (char &each : y) each = char(random_());
  const std::vector<char> before = y;
  constexpr std::int64_t most_32 = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t most_64 = std::numeric_limits<std::int64_t>::max();
  const std::int64_t most = f.index_bytes == 8 ? most_64 : most_32;
  const std::int64_t edges[] = {0,    f.table_rows - 1, f.table_rows, -1, -f.table_rows, -f.table_rows - 1,
                                most, -most - 1};
  std::vector<std::int64_t> wanted;
  std::vector<char> indices(std::size_t(f.rows * f.index_bytes));
  for (std::int64_t i = 0; i < f.rows; ++i) {
    const bool edge = random_() % 3 == 0;
    const std::int64_t index =
        edge ? edges[random_() % std::size(edges)] : std::int64_t(random_() % std::uint64_t(f.table_rows));
    const auto narrow = std::int32_t(index);
    char *const at = indices.data() + i * f.index_bytes;
    f.index_bytes == 8 ? std::memcpy(at, &index, 8) : std::memcpy(at, &narrow, 4);
    wanted.push_back(f.from_end && index < 0 ? index + f.table_rows : index);
  }
  memory at_table(dev(), std::int64_t(table.size())), at_indices(dev(), std::int64_t(indices.size()));
  memory at_y(dev(), std::int64_t(y.size()));
  at_table.write(stream_, table.data());
  at_indices.write(stream_, indices.data());
  at_y.write(stream_, y.data());
  auto what = backend_command<sg_backend_gather>();
  what.rows = f.rows, what.row_bytes = f.row_bytes, what.table_rows = f.table_rows;
  what.table_row = what.y_row = row;
  what.fill = 0x7e017e017e017e01;
  what.component_bytes = f.component, what.index_bytes = f.index_bytes, what.from_end = f.from_end;
  what.table = at_table.data(), what.indices = at_indices.data(), what.y = at_y.data();
  ASSERT_TRUE(dev()->supports(what.header));
  complete(*dev(), stream_, what);
  at_y.read(stream_, y.data());
  SCOPED_TRACE(testing::Message() << f.rows << " of " << f.table_rows << " rows of " << f.row_bytes << " bytes, gap "
                                  << f.gap << ", components of " << f.component << ", indices of " << f.index_bytes);
  for (std::int64_t i = 0; i < f.rows; ++i) {
    const std::int64_t from = wanted[std::size_t(i)];
    const char *const found = y.data() + i * row;
    if (from >= 0 && from < f.table_rows) {
      ASSERT_EQ(0, std::memcmp(table.data() + from * row, found, std::size_t(f.row_bytes)))
          << "row " << i << " of " << from;
    } else {
      for (std::int64_t b = 0; b < f.row_bytes; ++b)
        ASSERT_EQ((what.fill >> (b % 8 * 8)) & 0xff, std::uint64_t(static_cast<unsigned char>(found[b])))
            << i << ", " << b;
    }
    ASSERT_EQ(0, std::memcmp(before.data() + i * row + f.row_bytes, found + f.row_bytes, std::size_t(f.gap)))
        << "a gap was written";
  }
}

TEST_P(gather, rows_of_every_size_and_index) {
  sweep all;
  for (const std::int32_t component : {1, 2, 4, 8})
    for (const std::int32_t index_bytes : {4, 8})
      for (const bool from_end : {false, true})
        for (const std::int64_t cols : {1, 5, 16, 64, 4100})
          for (const std::int64_t gap : {0, 3, 16})
            for (const std::int64_t table_rows : {1, 50})
              if (all.tries_next())
                attempt({cols > 1000 ? 9 : 70, cols * component, table_rows, gap * component, component, index_bytes,
                         from_end});
}

SG_CONFORMANCE(gather);

}  // namespace
}  // namespace sg::test
