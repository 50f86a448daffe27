// SPDX-License-Identifier: Apache-2.0
// Sums into rows of a table, in their arithmetic: the rows of an index in their order, then to the table.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/common/rows.hpp"
#include "layers.hpp"

namespace sg::sim {

// The command's own pointers are not used.
inline void run_scatter_add(const sg_backend_scatter_add &what, const std::byte *x, const std::byte *indices,
                            std::byte *table) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    std::vector<std::vector<real>> sums(static_cast<std::size_t>(what.table_rows));
    for (std::int64_t i = 0; i < what.rows; ++i) {
      std::int64_t index = index_at(indices, i, what.index_bytes);
      if (what.from_end && index < 0) index += what.table_rows;
      if (index < 0 || index >= what.table_rows) continue;
      std::vector<real> &sum = sums[static_cast<std::size_t>(index)];
      sum.resize(static_cast<std::size_t>(what.cols), -real(0));
      for (std::int64_t j = 0; j < what.cols; ++j)
        sum[static_cast<std::size_t>(j)] += static_cast<real>(Traits::load(stored_at<Traits>(x)[i * what.x_row + j]));
    }
    for (std::size_t r = 0; r < sums.size(); ++r)
      for (std::size_t j = 0; j < sums[r].size(); ++j) {
        auto &to = stored_at<Traits>(table)[std::int64_t(r) * what.table_row + std::int64_t(j)];
        to = Traits::store(static_cast<real>(Traits::load(to)) + sums[r][j]);
      }
  });
}

}  // namespace sg::sim
