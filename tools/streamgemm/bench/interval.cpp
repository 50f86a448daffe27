// SPDX-License-Identifier: Apache-2.0
#include "interval.hpp"

#include <algorithm>
#include <cmath>

#include "measure.hpp"

namespace sg::cli {

namespace {

// The number of ratios to leave out at each end: the largest k with P(U < k) <= share, where U is the rank sum
// statistic of n and m samples of one distribution.
std::size_t left_out_of(std::size_t n, std::size_t m, double share) {
  const std::size_t all = n * m;
  if (all > 10000) {  // the normal approximation
    const double middle = double(all) / 2, deviation = std::sqrt(double(all) * double(n + m + 1) / 12);
    double low = -10, high = 0;
    for (int i = 0; i < 60; ++i) {
      const double z = (low + high) / 2;
      (std::erfc(-z / std::sqrt(2.0)) / 2 <= share ? low : high) = z;
    }
    return std::size_t(std::max(0.0, std::floor(middle + low * deviation)));
  }
  // row[j][u]: P(U = u) for i and j samples; the largest of all is one of the i or one of the j.
  std::vector<std::vector<double>> row(m + 1, std::vector<double>(all + 1));
  for (auto &each : row) each[0] = 1;  // i = 0
  for (std::size_t i = 1; i <= n; ++i)
    for (std::size_t j = 1; j <= m; ++j) {
      const double own = double(i) / double(i + j);
      std::vector<double> &now = row[j];
      for (std::size_t u = i * j + 1; u-- > 0;) now[u] = own * (u >= j ? now[u - j] : 0) + (1 - own) * row[j - 1][u];
    }
  double sum = 0;
  std::size_t k = 0;
  while (k <= all && (sum += row[m][k]) <= share) ++k;
  return k;
}

std::vector<double> all_ratios(const std::vector<double> &a, const std::vector<double> &b) {
  std::vector<double> ratios;
  ratios.reserve(a.size() * b.size());
  for (const double x : a)
    for (const double y : b) ratios.push_back(y / x);
  return ratios;
}

}  // namespace

double median_ratio(const std::vector<double> &a, const std::vector<double> &b) { return median(all_ratios(a, b)); }

std::optional<ratio_interval> interval_of_ratio(const std::vector<double> &a, const std::vector<double> &b,
                                                double confidence) {
  if (a.empty() || b.empty()) return {};
  const std::size_t k = left_out_of(a.size(), b.size(), (1 - confidence) / 2);
  if (k == 0) return {};
  std::vector<double> ratios = all_ratios(a, b);
  std::sort(ratios.begin(), ratios.end());
  return ratio_interval{ratios[k - 1], ratios[ratios.size() - k]};
}

bool extremes_are_interval(int a_samples, int b_samples, double confidence) {
  constexpr int enough = 100;  // more make it no less sure
  if (a_samples < 1 || b_samples < 1) return false;
  return left_out_of(std::size_t(std::min(a_samples, enough)), std::size_t(std::min(b_samples, enough)),
                     (1 - confidence) / 2) > 0;
}

}  // namespace sg::cli
