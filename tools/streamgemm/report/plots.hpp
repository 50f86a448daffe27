// SPDX-License-Identifier: Apache-2.0
// Plots of a report as inline SVG. Their colours are classes of the page.
#pragma once

#include <string>
#include <vector>

#include "summary.hpp"

namespace sg::cli {

std::string escaped(const std::string &text);  // for HTML and SVG

// The time of a row as a bar from 0 to `longest`, its least and largest sample as a line, and the bound as a dashed
// one.
std::string bar_plot(const summary_row &row, double longest, const std::string &style);

// Times over the number of streams (or parts) in the names of variants; "" if there are fewer than three.
std::string streams_plot(const summary_case &one);

// A line of dots for each group, one a ratio, on a logarithmic axis, and a mark at their geometric mean.
std::string ratios_plot(const std::vector<ratio_group> &groups);

// A row's ratio and interval on a logarithmic axis from 1 / most to most.
std::string interval_plot(const compared_row &row, double most);

}  // namespace sg::cli
