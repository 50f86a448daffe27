// SPDX-License-Identifier: Apache-2.0
// Reductions of rows, cross entropies, sums into rows, poolings, gradients of norms and steps of optimizers against
// their definitions in higher precision; gaps keep their bytes.
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/dtype.hpp"
#include "gemm_case.hpp"
#include "ops/cross_entropy.hpp"
#include "ops/norm_backward.hpp"
#include "ops/optimizer.hpp"
#include "ops/pool.hpp"
#include "ops/row_reduce.hpp"
#include "ops/scatter_add.hpp"

namespace sg::test {
namespace {

constexpr sg_dtype layer_types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};

class training : public conformance {
 protected:
  // A column is a row of the operation; with its copy on the device.
  struct operand : host_operand {
    operand(training &test, sg_dtype type, std::int64_t rows, std::int64_t cols, std::int64_t gap)
        : host_operand(type, cols, rows, gap, 1), of(test), at(test.dev(), std::int64_t(bytes.size())) {
      poison();
      randomise(test.random_);
      send();
    }
    void send() { at.write(of.stream_, bytes.data()); }
    void fetch() { at.read(of.stream_, bytes.data()); }
    real value(std::int64_t i, std::int64_t j) { return get(0, j, i).real(); }
    void put(std::int64_t i, std::int64_t j, real x) { set(0, j, i, x); }
    training &of;
    memory at;
  };
  static real unit(sg_dtype type) { return std::ldexp(1.0L, type == SG_DTYPE_F64 ? -53 : -24); }

  // Reads the result and compares it; `wanted(i, j)` and the magnitude that the arithmetic's error is relative to.
  template <class Wanted>
  void expect_near(operand &y, Wanted &&wanted, const std::string &what) {
    host_operand before = y;
    y.at.read(stream_, y.bytes.data());
    const precision p = precision_of(y.type, false);
    for (std::int64_t i = 0; i < y.cols; ++i)
      for (std::int64_t j = 0; j < y.rows; ++j) {
        const auto [value, magnitude] = wanted(i, j);
        const real limit = p.out * std::abs(value) + (1 + p.out) * 64 * unit(y.type) * magnitude + 3 * p.tiny;
        ASSERT_LE(std::abs(y.value(i, j) - value), limit)
            << what << " of " << name_of(y.type) << " at " << i << ", " << j << ": " << double(y.value(i, j))
            << " instead of " << double(value);
        before.set(0, j, i, y.get(0, j, i));
      }
    ASSERT_EQ(before.bytes, y.bytes) << what << ": a gap was written";
  }
  template <class Command>
  void run(Command &what) {
    ASSERT_TRUE(dev()->supports(what.header));
    complete(*dev(), stream_, what);
  }

  using pair = std::pair<real, real>;
  stream stream_{dev()};
  std::mt19937_64 random_{42};
};

TEST_P(training, reductions_of_rows) {
  for (const sg_dtype type : layer_types)
    for (const auto &[rows, cols] : {std::pair{1, 1}, {33, 9}, {5, 257}, {2, 1501}, {700, 3}, {1, 33001}})
      for (const int by_rows : {0, 1})
        for (int kind = 0; kind < 4; ++kind) {
          if (cols > 1000 && kind != int(type) % 4) continue;  // long rows, of one reduction each
          operand x(*this, type, by_rows ? rows : cols, by_rows ? cols : rows, 3), y(*this, type, rows, 1, 2);
          auto what = backend_command<sg_backend_row_reduce>();
          what.rows = rows, what.cols = cols, what.type = type, what.reduction = sg_reduction(kind);
          what.x = x.at.data(), what.x_row = by_rows ? x.ld : 1, what.x_col = by_rows ? 1 : x.ld;
          what.y = y.at.data(), what.y_row = y.ld;
          run(what);
          expect_near(
              y,
              [&, cols = cols](std::int64_t i, std::int64_t) {
                real sum = 0, size = 0, most = -2, least = 2;
                for (std::int64_t j = 0; j < cols; ++j) {
                  const real each = by_rows ? x.value(i, j) : x.value(j, i);
                  sum += each, size += std::abs(each), most = std::max(most, each), least = std::min(least, each);
                }
                if (kind == SG_REDUCTION_MEAN) sum /= cols, size /= cols;
                return kind == SG_REDUCTION_MAX   ? pair(most, 0)
                       : kind == SG_REDUCTION_MIN ? pair(least, 0)
                                                  : pair(sum, size);
              },
              "a reduction");
        }
}

TEST_P(training, cross_entropies) {
  for (const sg_dtype type : layer_types)
    for (const auto &[rows, cols] : {std::pair{1, 1}, {33, 9}, {5, 257}, {3, 1501}})
      for (const bool is_gradient : {false, true}) {
        operand x(*this, type, rows, cols, 3), result(*this, type, rows, is_gradient ? cols : 1, 2),
            dy(*this, type, rows, 1, 1);
        std::vector<std::int32_t> classes;
        for (std::int64_t i = 0; i < rows; ++i)
          classes.push_back(i == 2 ? -100 : std::int32_t(random_() % unsigned(cols)));
        std::vector<real> sums(std::size_t(rows), 0);
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < cols; ++j) sums[std::size_t(i)] += std::exp(x.value(i, j));
        memory indices(dev(), 4 * rows);
        indices.write(stream_, classes.data());
        auto what = backend_command<sg_backend_cross_entropy>();
        what.rows = rows, what.cols = cols, what.type = type, what.index_bytes = 4, what.scale = 0.5;
        what.x = x.at.data(), what.x_row = x.ld, what.indices = indices.data();
        (is_gradient ? what.dx : what.y) = result.at.data(), (is_gradient ? what.dx_row : what.y_row) = result.ld;
        if (is_gradient) what.dy = dy.at.data(), what.dy_row = dy.ld;
        run(what);
        expect_near(
            result,
            [&](std::int64_t i, std::int64_t j) {
              const std::int32_t index = classes[std::size_t(i)];
              const real sum = sums[std::size_t(i)];
              if (index < 0) return pair(0, 0);
              if (!is_gradient) return pair(std::log(sum) - x.value(i, index), 4 + std::log(sum));
              const real factor = 0.5L * dy.value(i, 0);
              return pair(factor * (std::exp(x.value(i, j)) / sum - (j == index)), std::abs(factor));
            },
            "a cross entropy");
      }
}

TEST_P(training, sums_into_rows) {
  for (const sg_dtype type : layer_types)
    for (const auto &[rows, cols, table_rows] : {std::array{1, 1, 1}, {50, 7, 5}, {9, 300, 40}, {300, 3, 11}}) {
      operand table(*this, type, table_rows, cols, 3), x(*this, type, rows, cols, 2);
      std::vector<std::int64_t> chosen;
      for (int i = 0; i < rows; ++i)
        chosen.push_back(std::int64_t(random_() % unsigned(2 * table_rows)) - table_rows / 2);
      memory indices(dev(), 8 * rows);
      indices.write(stream_, chosen.data());
      host_operand before = table;
      auto what = backend_command<sg_backend_scatter_add>();
      what.rows = rows, what.cols = cols, what.table_rows = table_rows, what.type = type, what.index_bytes = 8,
      what.from_end = 1;
      what.x = x.at.data(), what.x_row = x.ld, what.indices = indices.data();
      what.table = table.at.data(), what.table_row = table.ld;
      run(what);
      const std::int64_t all = table_rows;
      expect_near(
          table,
          [&](std::int64_t r, std::int64_t j) {
            real sum = before.get(0, j, r).real(), size = std::abs(sum);
            for (std::size_t i = 0; i < chosen.size(); ++i)
              if (chosen[i] == r || chosen[i] + all == r)
                sum += x.value(std::int64_t(i), j), size += std::abs(x.value(std::int64_t(i), j));
            return pair(sum, size);
          },
          "sums into rows");
    }
}

// Of windows of 3 x 2 pixels, 2 x 1 pixels apart, in images with a border.
TEST_P(training, poolings) {
  for (const sg_dtype type : layer_types)
    for (const bool channels_last : {false, true})
      for (const sg_pooling pooling : {SG_POOLING_MAX, SG_POOLING_AVERAGE, SG_POOLING_AVERAGE_INSIDE})
        for (const bool is_gradient : {false, true}) {
          constexpr int images = 2, channels = 3, height = 7, width = 6, out_h = 4, out_w = 6;
          operand x(*this, type, images, channels * height * width, 3),
              y(*this, type, images, channels * out_h * out_w, 1);
          operand dx(*this, type, images, channels * height * width, 2);
          auto what = backend_command<sg_backend_pool>();
          sg_backend_windows &w = what.of;
          w.images = images, w.image = x.ld, w.channels = channels, w.groups = 1, w.height = height, w.width = width;
          w.pixel = channels_last ? channels : 1, w.row = w.pixel * width,
          w.channel = channels_last ? 1 : height * width;
          w.kernel_h = 3, w.kernel_w = 2, w.stride_h = 2, w.stride_w = w.dilation_h = w.dilation_w = 1;
          w.pad_top = 1, w.pad_left = 1, w.out_h = out_h, w.out_w = out_w;
          what.y_image = y.ld, what.y_pixel = channels_last ? channels : 1, what.y_row = what.y_pixel * out_w;
          what.y_channel = channels_last ? 1 : out_h * out_w, what.type = type, what.pooling = pooling;
          if (!is_gradient || pooling == SG_POOLING_MAX) what.x = x.at.data();
          if (is_gradient)
            what.dy = y.at.data(), what.dx = dx.at.data(), what.dx_image = dx.ld;
          else
            what.y = y.at.data();
          run(what);
          std::vector<pair> pooled(std::size_t(images * channels * out_h * out_w)),
              gradients(std::size_t(images * channels * height * width));
          for (int n = 0; n < images; ++n)
            for (int c = 0; c < channels; ++c)
              for (int i = 0; i < out_h; ++i)
                for (int j = 0; j < out_w; ++j) {
                  const std::int64_t at = c * what.y_channel + i * what.y_row + j * what.y_pixel;
                  std::vector<std::int64_t> pixels;
                  for (int r = 0; r < 3; ++r)
                    for (int s = 0; s < 2; ++s)
                      if (const int h = 2 * i + r - 1, v = j + s - 1; h >= 0 && h < height && v >= 0 && v < width)
                        pixels.push_back(c * w.channel + h * w.row + v * w.pixel);
                  const real count = pooling == SG_POOLING_AVERAGE ? 6 : real(pixels.size());
                  std::int64_t chosen = pixels[0];
                  real sum = 0;
                  for (const std::int64_t each : pixels) {
                    sum += x.value(n, each);
                    if (x.value(n, each) > x.value(n, chosen)) chosen = each;
                  }
                  const bool is_max = pooling == SG_POOLING_MAX;
                  pooled[std::size_t(n * channels * out_h * out_w + at)] =
                      is_max ? pair(x.value(n, chosen), 0) : pair(sum / count, 1);
                  for (const std::int64_t each : pixels) {
                    if (is_max && each != chosen) continue;
                    pair &to = gradients[std::size_t(n * channels * height * width + each)];
                    to.first += y.value(n, at) / (is_max ? 1 : count), to.second += 1;
                  }
                }
          const std::vector<pair> &all = is_gradient ? gradients : pooled;
          expect_near(
              is_gradient ? dx : y,
              [&](std::int64_t n, std::int64_t at) {
                return all[std::size_t(n) * all.size() / images + std::size_t(at)];
              },
              "a pooling");
        }
}

TEST_P(training, gradients_of_norms) {
  for (const sg_dtype type : layer_types)
    for (const auto &sizes : {std::tuple{1, 2, 1},
                              {33, 9, 1},
                              {33, 8, 4},
                              {70, 96, 64},
                              {5, 257, 2},
                              {19, 1024, 16},
                              {2, 1501, 1},
                              {3, 2048, 2},
                              {2, 8200, 2}})
      for (const sg_norm_kind kind : {SG_NORM_LAYER, SG_NORM_RMS}) {
        const int rows = std::get<0>(sizes), cols = std::get<1>(sizes), group = std::get<2>(sizes);
        operand dy(*this, type, rows, cols, 3), x(*this, type, rows, cols, 2), gamma(*this, type, 1, cols, 0);
        const sg_dtype wide = type == SG_DTYPE_F64 ? type : SG_DTYPE_F32;
        const int groups = (rows + group - 1) / group;
        operand dx(*this, type, rows, cols, 1), products(*this, wide, groups, cols, 4),
            sums(*this, wide, groups, cols, 0);
        auto what = backend_command<sg_backend_norm_backward>();
        what.rows = rows, what.cols = cols, what.type = type, what.kind = kind, what.epsilon = 0.125;
        what.dy = dy.at.data(), what.dy_row = dy.ld, what.x = x.at.data(), what.x_row = x.ld,
        what.gamma = gamma.at.data();
        what.dx = dx.at.data(), what.dx_row = dx.ld, what.products = products.at.data(),
        what.products_row = products.ld;
        what.group_rows = group, what.dy_sums = sums.at.data(), what.dy_sums_row = sums.ld;
        run(what);
        struct row_values {
          real mean = 0, factor = 0, sum = 0, product = 0;
        };
        std::vector<row_values> of_rows;
        const auto normal = [&](std::int64_t i, std::int64_t j) {
          return (x.value(i, j) - of_rows[std::size_t(i)].mean) * of_rows[std::size_t(i)].factor;
        };
        const auto scaled = [&](std::int64_t i, std::int64_t j) { return dy.value(i, j) * gamma.value(0, j); };
        for (std::int64_t i = 0; i < rows; ++i) {
          row_values &row = of_rows.emplace_back();
          real squares = 0;
          for (std::int64_t j = 0; j < cols && kind == SG_NORM_LAYER; ++j) row.mean += x.value(i, j) / cols;
          for (std::int64_t j = 0; j < cols; ++j)
            squares += (x.value(i, j) - row.mean) * (x.value(i, j) - row.mean) / cols;
          row.factor = 1 / std::sqrt(squares + 0.125L);
          for (std::int64_t j = 0; j < cols; ++j) {
            row.sum += kind == SG_NORM_LAYER ? scaled(i, j) / cols : 0;
            row.product += scaled(i, j) * normal(i, j) / cols;
          }
        }
        expect_near(
            dx,
            [&](std::int64_t i, std::int64_t j) {
              const row_values &row = of_rows[std::size_t(i)];
              return pair(row.factor * (scaled(i, j) - row.sum - normal(i, j) * row.product), 16);
            },
            "a norm's gradient");
        const auto of_group = [&](std::int64_t g, auto &&value) {
          real sum = 0;
          for (std::int64_t i = g * group; i < std::min<std::int64_t>(rows, (g + 1) * group); ++i) sum += value(i);
          return pair(sum, 16 * group);
        };
        expect_near(
            products,
            [&](std::int64_t g, std::int64_t j) {
              return of_group(g, [&](std::int64_t i) { return dy.value(i, j) * normal(i, j); });
            },
            "products");
        expect_near(
            sums,
            [&](std::int64_t g, std::int64_t j) { return of_group(g, [&](std::int64_t i) { return dy.value(i, j); }); },
            "sums of dY");
      }
}

// In rows that are short, of a warp, of a block, and read again for each sum.
TEST_P(training, a_nan_or_an_infinite_variance_of_a_norm_s_row) {
  for (const int cols : {4, 300, 2000, 9000}) {
    operand dy(*this, SG_DTYPE_F32, 1, cols, 0), x(*this, SG_DTYPE_F32, 1, cols, 0),
        dx(*this, SG_DTYPE_F32, 1, cols, 0), products(*this, SG_DTYPE_F32, 1, cols, 0);
    auto what = backend_command<sg_backend_norm_backward>();
    what.rows = what.group_rows = 1, what.cols = cols, what.type = SG_DTYPE_F32, what.epsilon = 1e-5;
    what.dy = dy.at.data(), what.dy_row = dy.ld, what.x = x.at.data(), what.x_row = x.ld;
    what.dx = dx.at.data(), what.dx_row = dx.ld;
    what.products = products.at.data(), what.products_row = products.ld;
    for (std::int64_t j = 0; j < cols; ++j) x.put(0, j, j == 0 ? NAN : 1);
    x.send();
    what.kind = SG_NORM_RMS;
    run(what);
    products.fetch(), dx.fetch();
    for (std::int64_t j = 0; j < cols; ++j)
      ASSERT_TRUE(std::isnan(products.get(0, j, 0).real()) && std::isnan(dx.get(0, j, 0).real())) << cols << " " << j;
    for (std::int64_t j = 0; j < cols; ++j) x.put(0, j, j % 2 == 0 ? 1e30L : -2e30L);
    x.send();
    what.kind = SG_NORM_LAYER;
    run(what);
    products.fetch(), dx.fetch();
    for (std::int64_t j = 0; j < cols; ++j)
      ASSERT_TRUE(products.get(0, j, 0).real() == 0 && dx.get(0, j, 0).real() == 0) << cols << " " << j;
  }
}

TEST_P(training, steps_of_optimizers) {
  for (const sg_dtype type : layer_types)
    for (const int count : {1, 7, 2501})
      for (const bool is_adam : {false, true}) {
        const sg_dtype wide = type == SG_DTYPE_F64 ? type : SG_DTYPE_F32;
        operand p(*this, type, 1, count, 0), g(*this, type, 1, count, 0), m(*this, wide, 1, count, 0),
            v(*this, wide, 1, count, 0);
        for (std::int64_t i = 0; i < count; ++i) v.put(0, i, std::abs(v.value(0, i)) + 0.125L);
        v.send();
        host_operand p0 = p, m0 = m, v0 = v;
        auto what = backend_command<sg_backend_optimizer>();
        what.elements = count, what.type = type, what.is_adam = is_adam, what.nesterov = !is_adam;
        what.parameters = p.at.data(), what.gradient = g.at.data(), what.first = m.at.data();
        what.rate = 0.125, what.beta1 = 0.75, what.beta2 = 0.875, what.epsilon = 0.0625, what.weight_decay = 0.25;
        what.correction1 = 0.25, what.correction2 = 0.125;
        if (is_adam) what.second = v.at.data();
        run(what);
        const auto at = [](host_operand &x, std::int64_t i) { return x.get(0, i, 0).real(); };
        const auto slope = [&](std::int64_t i) { return g.value(0, i) + 0.25L * at(p0, i); };
        const auto first = [&](std::int64_t i) { return 0.75L * at(m0, i) + (is_adam ? 0.25L : 1) * slope(i); };
        const auto second = [&](std::int64_t i) { return 0.875L * at(v0, i) + 0.125L * slope(i) * slope(i); };
        expect_near(
            p,
            [&](std::int64_t, std::int64_t i) {
              const real change =
                  is_adam ? first(i) / 0.25L / (std::sqrt(second(i) / 0.125L) + 0.0625L) : slope(i) + 0.75L * first(i);
              return pair(at(p0, i) - 0.125L * change, 2);
            },
            "a step");
        expect_near(
            m, [&](std::int64_t, std::int64_t i) { return pair(first(i), 2); }, "the first moment");
        if (is_adam)
          expect_near(
              v, [&](std::int64_t, std::int64_t i) { return pair(second(i), 3); }, "the second moment");
      }
}

SG_CONFORMANCE(training);

}  // namespace
}  // namespace sg::test
