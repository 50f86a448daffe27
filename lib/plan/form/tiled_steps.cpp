// SPDX-License-Identifier: Apache-2.0
#include "plan/form/tiled_steps.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.hpp"

namespace sg {

namespace {

using ops::symmetric;
using ops::triangular;

// An operation's two dimensions: the order of its square matrix, and the other one: the columns or rows of a result
// that the matrix is a factor of, or the depth of an update.
struct extents {
  std::int64_t order = 0, other = 0;
};

bool is_update(const command_form &f) noexcept {
  const auto *what = std::get_if<symmetric>(&f.what);
  return what && what->kind != SG_BACKEND_SYMMETRIC_MULTIPLY;
}

sg_side side_of(const command_form &f) noexcept {
  const auto *what = std::get_if<symmetric>(&f.what);
  return what ? what->side : std::get<triangular>(f.what).side;
}

extents extents_of(const command_form &f) noexcept {
  const operand &c = f.result(), &a = f.parameters[1].stored;
  if (is_update(f)) {
    const bool is_plain = std::get<symmetric>(f.what).op == SG_TRANSPOSE_N;
    return {c.rows, !f.parameters[1].given ? 1 : is_plain ? a.cols : a.rows};
  }
  return side_of(f) == SG_SIDE_LEFT ? extents{c.rows, c.cols} : extents{c.cols, c.rows};
}

std::int32_t count_of(const std::vector<range> &all) noexcept { return static_cast<std::int32_t>(all.size()); }

class steps_of_form {
 public:
  steps_of_form(const command_form &f, std::int64_t edge, std::int64_t group)
      : group_(static_cast<std::int32_t>(group)), has_a_(f.parameters[1].given), is_left_(side_of(f) == SG_SIDE_LEFT) {
    const extents all = extents_of(f);
    order_ = cut(all.order, ceil_div(all.order, edge), grain);
    other_ = cut(all.other, ceil_div(all.other, edge), grain);
    made_.sweep = group;
    if (const auto *what = std::get_if<triangular>(&f.what)) {
      made_.grids[triangular::b] = of_result();
      made_.grids[triangular::a] = {order_, order_};
      add_triangular(*what);
      return;
    }
    const auto &what = std::get<symmetric>(f.what);
    made_.sweep = group * group;
    if (what.kind == SG_BACKEND_SYMMETRIC_MULTIPLY) {
      made_.grids[symmetric::c] = made_.grids[symmetric::b] = of_result();
      made_.grids[symmetric::a] = {order_, order_};
      add_products(what);
    } else {
      const bool is_plain = what.op == SG_TRANSPOSE_N;
      made_.grids[symmetric::c] = {order_, order_};
      made_.grids[symmetric::a] = made_.grids[symmetric::b] = {is_plain ? order_ : other_, is_plain ? other_ : order_};
      add_updates(what, f.parameters[symmetric::b].given);
    }
  }

  tiling take() { return std::move(made_); }

 private:
  // A tile of an operand, and the op that a GEMM applies to it.
  struct factor {
    tile_index tile;
    sg_transpose op = SG_TRANSPOSE_N;
  };

  tiling::grid of_result() const { return is_left_ ? tiling::grid{order_, other_} : tiling::grid{other_, order_}; }
  // The tile of an operand with the result's shape.
  tile_index in_result(std::size_t parameter, std::int32_t order, std::int32_t other) const {
    return {static_cast<std::int32_t>(parameter), is_left_ ? order : other, is_left_ ? other : order};
  }
  static tile_index tile(std::size_t parameter, std::int32_t row, std::int32_t col) {
    return {static_cast<std::int32_t>(parameter), row, col};
  }

  const tiling::grid &grid_of(const tile_index &t) const { return made_.grids[static_cast<std::size_t>(t.parameter)]; }
  std::int64_t rows_of(const tile_index &t) const { return grid_of(t).rows[static_cast<std::size_t>(t.row)].size; }
  std::int64_t cols_of(const tile_index &t) const { return grid_of(t).cols[static_cast<std::size_t>(t.col)].size; }

  void add(const payload &what, const tile_index &result, const tile_index &a = {}, const tile_index &b = {}) {
    made_.steps.push_back({what, {result, a, b}});
  }
  void add_gemm(const tile_index &c, const factor &a, const factor &b, scalar_role alpha, scalar_role beta) {
    ops::gemm g;
    g.m = rows_of(c), g.n = cols_of(c), g.k = a.op == SG_TRANSPOSE_N ? cols_of(a.tile) : rows_of(a.tile);
    g.op_a = a.op, g.op_b = b.op;
    g.alpha = alpha, g.beta = beta;
    add(g, c, a.tile, b.tile);
  }
  // A product with the square matrix's tile on its side.
  void add_gemm_beside(const tile_index &c, const factor &square, const tile_index &x, scalar_role alpha,
                       scalar_role beta) {
    is_left_ ? add_gemm(c, square, {x}, alpha, beta) : add_gemm(c, {x}, square, alpha, beta);
  }

  template <class Each>
  void each_group(std::int32_t count, const Each &each) const {
    for (std::int32_t first = 0; first < count; first += group_) each(first, std::min(first + group_, count));
  }

  // Tile (i, k) of op(A), or (k, i) on the right.
  factor of_triangle(const triangular &what, std::int32_t i, std::int32_t k) const {
    if (!is_left_) std::swap(i, k);
    if (what.op != SG_TRANSPOSE_N) std::swap(i, k);
    return {tile(triangular::a, i, k), what.op};
  }

  // Panels of the result, of which tile i depends on those before it, or behind it. A solve takes them from the one
  // that depends on no other, a product from the one on which none depends.
  void add_triangular(const triangular &what) {
    const std::int32_t count = count_of(order_);
    const bool is_lower = (what.triangle == SG_TRIANGLE_LOWER) == (what.op == SG_TRANSPOSE_N);
    const bool solves = what.kind == SG_TRIANGULAR_SOLVE;
    const auto at = [&](std::int32_t i) { return is_lower == is_left_ ? i : count - 1 - i; };
    const auto result = [&](std::int32_t i, std::int32_t j) { return in_result(triangular::b, at(i), j); };
    each_group(count_of(other_), [&](std::int32_t first, std::int32_t end) {
      for (std::int32_t turn = 0; turn < count; ++turn) {
        const std::int32_t i = solves ? turn : count - 1 - turn;
        const auto on_diagonal = [&](scalar_role alpha) {
          triangular block = what;
          block.alpha = alpha;
          for (std::int32_t j = first; j < end; ++j)
            add(block, result(i, j), has_a_ ? tile(triangular::a, at(i), at(i)) : tile_index());
        };
        if (!solves || !has_a_) on_diagonal(what.alpha);
        for (std::int32_t k = 0; k < i && has_a_; ++k)
          for (std::int32_t j = first; j < end; ++j)
            add_gemm_beside(result(i, j), of_triangle(what, at(i), at(k)), result(k, j),
                            solves ? scalar_role::minus_one : what.alpha,
                            solves && k == 0 ? scalar_role::job : scalar_role::one);
        if (solves && has_a_) on_diagonal(i == 0 ? what.alpha : scalar_role::one);
      }
    });
  }

  void add_products(const symmetric &what) {
    const std::int32_t count = count_of(order_), others = count_of(other_);
    // Tile (i, k) of A, on the right (k, i): as stored, or its mirror image's.
    const auto of_a = [&](std::int32_t i, std::int32_t k) -> factor {
      if (!is_left_) std::swap(i, k);
      if (i == k || (i > k) == (what.triangle == SG_TRIANGLE_LOWER)) return {tile(symmetric::a, i, k)};
      return {tile(symmetric::a, k, i), what.symmetry == SG_SYMMETRY_HERMITIAN ? SG_TRANSPOSE_C : SG_TRANSPOSE_T};
    };
    const auto add_tile = [&](std::int32_t i, std::int32_t j, std::int32_t k) {
      const tile_index c = in_result(symmetric::c, i, j);
      const scalar_role beta = k == 0 ? what.beta : scalar_role::one;
      symmetric block = what;
      block.beta = beta;
      if (!has_a_) return add(block, c);
      const tile_index b = in_result(symmetric::b, k, j);
      i == k ? add(block, c, of_a(i, i).tile, b) : add_gemm_beside(c, of_a(i, k), b, what.alpha, beta);
    };
    each_group(count, [&](std::int32_t first_i, std::int32_t end_i) {
      each_group(others, [&](std::int32_t first_j, std::int32_t end_j) {
        for (std::int32_t k = 0; k < (has_a_ ? count : 1); ++k)
          for (std::int32_t i = first_i; i < end_i; ++i)
            for (std::int32_t j = first_j; j < end_j; ++j) add_tile(i, j, k);
      });
    });
  }

  void add_updates(const symmetric &what, bool has_b) {
    const std::int32_t count = count_of(order_);
    const bool is_lower = what.triangle == SG_TRIANGLE_LOWER, is_hermitian = what.symmetry == SG_SYMMETRY_HERMITIAN;
    const sg_transpose turned = is_hermitian ? SG_TRANSPOSE_C : SG_TRANSPOSE_T;
    const auto stored = [&](std::size_t x, std::int32_t i, std::int32_t k) {
      return what.op == SG_TRANSPOSE_N ? tile(x, i, k) : tile(x, k, i);
    };
    const auto add_tile = [&](std::int32_t i, std::int32_t j, std::int32_t k) {
      const tile_index c = tile(symmetric::c, i, j);
      const scalar_role beta = k == 0 ? what.beta : scalar_role::one;
      const auto a = [&](std::int32_t row) { return has_a_ ? stored(symmetric::a, row, k) : tile_index(); };
      const auto b = [&](std::int32_t row) { return has_b ? stored(symmetric::b, row, k) : tile_index(); };
      if (i == j) {
        symmetric block = what;
        block.beta = beta;
        return add(block, c, a(i), b(i));
      }
      if (!has_a_) return add(ops::axpby{scalar_role::zero, beta}, c);
      const sg_transpose op_b = what.op == SG_TRANSPOSE_N ? turned : SG_TRANSPOSE_N;
      add_gemm(c, {a(i), what.op}, {has_b ? b(j) : a(j), op_b}, what.alpha, beta);
      if (has_b)
        add_gemm(c, {b(i), what.op}, {a(j), op_b}, is_hermitian ? scalar_role::conjugate : what.alpha,
                 scalar_role::one);
    };
    each_group(count, [&](std::int32_t first_i, std::int32_t end_i) {
      each_group(count, [&](std::int32_t first_j, std::int32_t end_j) {
        if (first_i != first_j && (first_i > first_j) != is_lower) return;
        for (std::int32_t k = 0; k < count_of(other_); ++k)
          for (std::int32_t i = first_i; i < end_i; ++i)
            for (std::int32_t j = first_j; j < end_j; ++j)
              if (i == j || (i > j) == is_lower) add_tile(i, j, k);
      });
    });
  }

  const std::int32_t group_;
  const bool has_a_, is_left_;
  std::vector<range> order_, other_;
  tiling made_;
};

double parts_of(std::int64_t extent, std::int64_t edge) { return double(ceil_div(extent, edge)); }

}  // namespace

bool has_tiles(const command_form &f) noexcept {
  return std::holds_alternative<triangular>(f.what) || std::holds_alternative<symmetric>(f.what);
}

double steps_of(const command_form &f, std::int64_t edge) {
  const extents all = extents_of(f);
  const double order = parts_of(all.order, edge), others = parts_of(all.other, edge);
  const double products = f.parameters[1].given ? order * order * others : order * (is_update(f) ? order : others);
  if (std::holds_alternative<triangular>(f.what)) return (products + order * others) / 2;
  if (!is_update(f)) return products;
  return f.parameters[symmetric::b].given ? products : products / 2;
}

std::int64_t group_within(const command_form &f, std::int64_t edge, std::int64_t tiles) {
  const extents all = extents_of(f);
  const std::int64_t order = ceil_div(all.order, edge), others = ceil_div(all.other, edge);
  constexpr std::int64_t ahead = 2;  // tiles of a factor: in use, and next
  if (std::holds_alternative<triangular>(f.what))
    return std::clamp<std::int64_t>((tiles - 2 * ahead) / order, 1, others);
  const std::int64_t most = is_update(f) ? order : std::max(order, others);
  const std::int64_t factors = ahead * (is_update(f) && f.parameters[symmetric::b].given ? 4 : 2);
  // group^2 + factors * group <= tiles
  const double half = double(factors) / 2;
  return std::clamp<std::int64_t>(std::int64_t(std::sqrt(half * half + double(tiles)) - half), 1, most);
}

tiling tiles_of(const command_form &f, std::int64_t edge, std::int64_t group) {
  return steps_of_form(f, edge, group).take();
}

}  // namespace sg
