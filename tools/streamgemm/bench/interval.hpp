// SPDX-License-Identifier: Apache-2.0
// The ratio of two sets of samples, with a confidence interval that assumes no distribution.
#pragma once

#include <optional>
#include <vector>

namespace sg::cli {

struct ratio_interval {
  double low, high;
};

// The median of the ratios of each sample of b by each of a (Hodges and Lehmann 1963, of the logarithms).
double median_ratio(const std::vector<double> &a, const std::vector<double> &b);

// The interval of that ratio by the order statistics of the same ratios: it holds the true one with at least the given
// probability (Lehmann 1963: inversion of the rank sum test), if the samples are independent and the two distributions
// differ by a factor only. Nothing if there are too few samples: for 95% it takes 4 of each.
std::optional<ratio_interval> interval_of_ratio(const std::vector<double> &a, const std::vector<double> &b,
                                                double confidence);

// Whether the least and the largest of all ratios are such an interval; for records that kept no more than the
// extremes.
bool extremes_are_interval(int a_samples, int b_samples, double confidence);

}  // namespace sg::cli
