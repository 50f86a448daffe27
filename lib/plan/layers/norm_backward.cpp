// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/norm_backward.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/layers/column_sums.hpp"
#include "plan/schedule/schedule_builder.hpp"

namespace sg {

namespace {

using which = norm_backward_form;

// Bytes of a block's products: on cores they stay in a core's cache.
constexpr std::int64_t product_bytes = 64 << 20, core_product_bytes = 512 << 10;

class norm_backward_plan {
 public:
  // `blocks`: of rows, at least. sum_rows: whose products one row of sums has.
  norm_backward_plan(const norm_backward_form &f, int lanes, std::int64_t blocks, std::int64_t sum_rows, bool on_gpu)
      : f_(f), sum_rows_(sum_rows), on_gpu_(on_gpu) {
    for (std::size_t i = 0; i < which::parameters; ++i) {
      const operand &x = f.operands[i];
      buffer made{buffer_kind::parameter, x.type, false, SG_MEMORY_DEVICE, 0, 0, 0, static_cast<std::int32_t>(i)};
      if (exists(x)) made.space = x.space, made.bytes = reach_of(x);
      matrices_[i] = {builder_.add_placed_buffer(made), x.ld};
    }
    stored_ = matrices_;
    for (const std::size_t i : {which::dy, which::x, which::dx}) {
      if (!f.is_column_major[i] || f.rows == 0) continue;
      const std::int64_t bytes = checked_mul(checked_mul(f.rows, f.columns, "a matrix"), size_of(type()), "a matrix");
      matrices_[i] = {builder_.add_device_buffer(type(), bytes), f.columns};
    }
    add_gradients(lanes, blocks);
  }

  schedule finish(const plan_terms &terms) {
    schedule made = builder_.finish(f_.kind == SG_NORM_RMS ? "rms norm gradients" : "layer norm gradients");
    const double elements = double(f_.rows) * double(f_.columns);
    made.flops = 12 * elements;
    made.bound_seconds = 3 * elements * double(size_of(type())) / terms.model.memory_rate;
    return made;
  }

 private:
  struct matrix {
    std::int32_t buffer = -1;
    std::int64_t ld = 0;  // elements from row to row
  };

  sg_dtype type() const noexcept { return f_.operands[which::dx].type; }
  bool has(std::size_t i) const noexcept { return exists(f_.operands[i]); }
  // Rows whose sums are a group of column_sums.
  std::int64_t group() const noexcept { return rows_of_group(f_.rows / sum_rows_) * sum_rows_; }
  std::int64_t sums_of(std::int64_t rows) const noexcept { return ceil_div(rows, sum_rows_); }

  view rows_of(const matrix &m, sg_dtype of, const range &rows, std::int64_t from) const noexcept {
    return {m.buffer, 0, 1, (rows.first - from) * m.ld * size_of(of), m.ld, f_.columns, rows.size};
  }

  // Transposes a matrix that is column major; returns the command.
  std::uint32_t transpose(const matrix &from, const matrix &to, bool to_rows, std::span<const std::uint32_t> waits) {
    command c;
    c.what = ops::convert{SG_TRANSPOSE_T};
    const view by_columns{to_rows ? from.buffer : to.buffer, 0, 1, 0, to_rows ? from.ld : to.ld, f_.rows, f_.columns};
    const view by_rows{to_rows ? to.buffer : from.buffer, 0, 1, 0, f_.columns, f_.columns, f_.rows};
    c.views[ops::convert::a] = to_rows ? by_columns : by_rows;
    c.views[ops::convert::c] = to_rows ? by_rows : by_columns;
    return builder_.add(c, waits);
  }

  // A matrix of `rows` rows with groups of them as items.
  std::int32_t in_groups(const matrix &m, sg_dtype of, std::int64_t rows) {
    return builder_.add_alias(m.buffer, of, stride_of_groups(true, rows, m.ld) * size_of(of));
  }

  // A result = the sum of `count` rows, the items of a buffer.
  void add_at_once(std::size_t result, std::int32_t rows, std::int64_t count, std::span<const std::uint32_t> waits) {
    const view to{stored_[result].buffer, 0, 1, 0, f_.columns, f_.columns, 1};
    command c = builder_.scale(to, scalar_role::zero, 0);
    c.views[ops::reduce::parts] = view{rows, 0, count, 0, f_.columns, f_.columns, 1};
    builder_.add(c, waits);
  }

  // Parts of whole groups of rows, of which each lane's first has one at least; rows of no group are with the last.
  std::vector<range> rows_in_groups(std::int64_t count) const {
    if (f_.rows == 0) return {};
    std::vector<range> parts = cut(f_.rows / group(), count);
    for (range &each : parts) each = {each.first * group(), each.size * group()};
    parts.back().size = f_.rows - parts.back().first;
    return parts;
  }

  void add_gradients(int lanes, std::int64_t blocks) {
    const sg_dtype wide = accumulator_of(type());
    const std::vector<range> parts = rows_in_groups(std::max<std::int64_t>(lanes, blocks));
    const int used = std::clamp<int>(int(parts.size()), 1, lanes);
    std::int64_t longest = 0;
    for (const range &each : parts) longest = std::max(longest, each.size);
    // Few sums are added by one command for each result.
    constexpr std::int64_t few_sums = 2048;
    const std::int64_t sums_in_all = sums_of(f_.rows);
    const bool adds_at_once = on_gpu_ && parts.size() == 1 && sums_in_all <= few_sums;
    const auto all_sums = [&](sg_dtype of, std::int64_t rows) {
      return column_sums(builder_, {rows, f_.columns, true, of, type()}, {0, f_.columns}, std::int64_t(parts.size()), 0,
                         used);
    };
    // Sums of groups of rows by lane, and dY itself where each row is a group.
    const bool adds_dy = sum_rows_ > 1 || adds_at_once;
    std::vector<matrix> products, dy_sums;
    std::vector<std::int32_t> products_in_groups, dy_in_groups;
    const auto make_room = [&](std::vector<matrix> &sums, std::vector<std::int32_t> &groups) {
      const std::int64_t elements = checked_mul(sums_of(longest), f_.columns, "products");
      for (int i = 0; i < used && f_.rows > 0; ++i) {
        sums.push_back(
            {builder_.add_device_buffer(wide, checked_mul(elements, size_of(wide), "products")), f_.columns});
        groups.push_back(adds_at_once ? builder_.add_alias(sums.back().buffer, wide, f_.columns * size_of(wide))
                                      : in_groups(sums.back(), wide, sums_in_all));
      }
    };
    std::optional<column_sums> gamma, beta;
    if (has(which::dgamma)) {
      if (!adds_at_once) gamma.emplace(all_sums(wide, sums_in_all));
      make_room(products, products_in_groups);
    }
    if (has(which::dbeta)) {
      if (!adds_at_once) beta.emplace(all_sums(adds_dy ? wide : type(), sums_in_all));
      if (adds_dy)
        make_room(dy_sums, dy_in_groups);
      else if (f_.rows > 0)
        dy_in_groups.push_back(in_groups(matrices_[which::dy], type(), f_.rows));
    }
    std::vector<std::uint32_t> ready, computed;
    for (const std::size_t i : {which::dy, which::x})
      if (!parts.empty() && f_.is_column_major[i]) builder_.merge(ready, transpose(stored_[i], matrices_[i], true, {}));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const int lane = int(i) % used;
      // dX may be dY itself, whose rows are summed before.
      if (beta && !adds_dy)
        beta->add(dy_in_groups.front(), parts[i].first * matrices_[which::dy].ld * size_of(type()),
                  matrices_[which::dy].ld, parts[i].size, ready, lane);
      command c;
      c.what = ops::norm_backward{f_.kind, f_.epsilon, sum_rows_};
      c.where = {lane_kind::compute, std::uint16_t(lane)};
      for (const auto &[index, from] : {std::pair{ops::norm_backward::dx, which::dx},
                                        {ops::norm_backward::dy, which::dy},
                                        {ops::norm_backward::x, which::x}})
        c.views[index] = rows_of(matrices_[from], type(), parts[i], 0);
      if (has(which::gamma))
        c.views[ops::norm_backward::gamma] = view{matrices_[which::gamma].buffer, 0, 1, 0, f_.columns, f_.columns, 1};
      const range sums{0, sums_of(parts[i].size)};
      if (has(which::dgamma))
        c.views[ops::norm_backward::products] = rows_of(products[std::size_t(lane)], wide, sums, 0);
      if (has(which::dbeta) && adds_dy)
        c.views[ops::norm_backward::dy_sums] = rows_of(dy_sums[std::size_t(lane)], wide, sums, 0);
      builder_.merge(computed, builder_.add(c, ready));
      if (gamma) gamma->add(products_in_groups[std::size_t(lane)], 0, f_.columns, sums.size, {}, lane);
      if (beta && adds_dy) beta->add(dy_in_groups[std::size_t(lane)], 0, f_.columns, sums.size, {}, lane);
    }
    if (adds_at_once) {
      if (has(which::dgamma)) add_at_once(which::dgamma, products_in_groups.front(), sums_in_all, computed);
      if (has(which::dbeta)) add_at_once(which::dbeta, dy_in_groups.front(), sums_in_all, computed);
    }
    if (gamma) gamma->finish(stored_[which::dgamma].buffer, 0, {});
    if (beta) beta->finish(stored_[which::dbeta].buffer, 0, {});
    if (!parts.empty() && f_.is_column_major[which::dx])
      transpose(matrices_[which::dx], stored_[which::dx], false, computed);
  }

  const norm_backward_form &f_;
  const std::int64_t sum_rows_;
  const bool on_gpu_;
  schedule_builder builder_;
  std::array<matrix, which::parameters> stored_{}, matrices_{};
};

// On a GPU the kernel adds the products of a power of two of rows: of at least four, if that leaves groups for all
// multiprocessors, and of so many that each has at most eight groups.
std::int64_t rows_of_sum(const norm_backward_form &f, const device_model &model) {
  const std::int64_t units = std::max(1, model.units), most = std::clamp(f.rows / 4, 2 * units, 8 * units);
  std::int64_t made = 1;
  while (ceil_div(f.rows, made) > most) made *= 2;
  return made;
}

}  // namespace

schedule plan_of(const norm_backward_form &f, const plan_terms &terms) {
  const bool cores = terms.model.lanes_are_cores;
  const std::int64_t sum_rows = cores ? 1 : rows_of_sum(f, terms.model);
  const std::int64_t group = rows_of_group(f.rows / sum_rows) * sum_rows;
  const std::int64_t most = std::max<std::int64_t>(1, f.rows / std::max<std::int64_t>(1, group));
  const sg_dtype wide = accumulator_of(f.operands[norm_backward_form::dx].type);
  const double bytes = double(f.rows / sum_rows) * double(f.columns) * double(size_of(wide));
  // On cores, less is not worth another worker.
  const int lanes = cores ? int(std::clamp<std::int64_t>(std::int64_t(bytes / double(256 << 10)), 1, terms.lanes)) : 1;
  const double of_block = double(cores ? core_product_bytes : product_bytes);
  std::int64_t blocks = std::clamp(std::int64_t(bytes / of_block) + 1, std::int64_t{1}, most), needed = INT64_MAX;
  for (;; blocks = std::min(most, 2 * blocks)) {
    schedule made =
        norm_backward_plan(f, std::min<int>(lanes, int(std::min<std::int64_t>(most, lanes))), blocks, sum_rows, !cores)
            .finish(terms);
    if (made.device_bytes <= terms.memory_limit) return made;
    // Smaller blocks do not make transposed operands smaller.
    if (blocks == most || made.device_bytes >= needed || blocks > most_commands / 4)
      throw error(SG_STATUS_OUT_OF_MEMORY,
                  "the gradients of a norm need %lld bytes of device memory; the limit is %lld",
                  static_cast<long long>(made.device_bytes), static_cast<long long>(terms.memory_limit));
    needed = made.device_bytes - made.device_bytes / 8;
  }
}

void visit_operands(norm_backward_form &f, const operand_visitor &visit) {
  for (std::size_t i = 0; i < which::parameters; ++i) {
    operand &x = f.operands[i];
    if (!exists(x)) continue;
    const bool is_result = i == which::dx || i == which::dgamma || i == which::dbeta;
    visit({static_cast<std::int32_t>(i),
           x.type,
           is_result ? access_mode::write : access_mode::read,
           x.rows,
           {{{x.cols, x.ld, &x.ld}, {}, {}}}},
          x.space);
  }
}

std::uint64_t hash_of(const norm_backward_form &f) noexcept {
  hasher mixed;
  mixed << f.rows << f.columns << std::int64_t{f.kind};
  for (const operand &each : f.operands)
    if (exists(each)) mixed << each;
  return mixed.value();
}

std::string description_of(const norm_backward_form &f) {
  return std::string(f.kind == SG_NORM_RMS ? "rms norm" : "layer norm") + " gradients of " + std::to_string(f.rows) +
         " x " + std::to_string(f.columns) + ", " + name_of(f.operands[which::dx].type);
}

}  // namespace sg
