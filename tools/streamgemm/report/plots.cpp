// SPDX-License-Identifier: Apache-2.0
#include "plots.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "../format.hpp"

namespace sg::cli {

std::string escaped(const std::string &text) {
  std::string all;
  for (const char c : text) {
    switch (c) {
      case '&': all += "&amp;"; break;
      case '<': all += "&lt;"; break;
      case '>': all += "&gt;"; break;
      case '"': all += "&quot;"; break;
      default: all += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
  }
  return all;
}

namespace {

class drawing {
 public:
  drawing(double width, double height, const std::string &label)
      : head_("<svg width=\"" + at(width) + "\" height=\"" + at(height) + "\" viewBox=\"0 0 " + at(width) + " " +
              at(height) + "\" role=\"img\" aria-label=\"" + escaped(label) + "\"><title>" + escaped(label) +
              "</title>") {}

  void line(double x1, double y1, double x2, double y2, const std::string &style) {
    body_ += "<line x1=\"" + at(x1) + "\" y1=\"" + at(y1) + "\" x2=\"" + at(x2) + "\" y2=\"" + at(y2) + class_of(style);
  }
  void box(double x, double y, double width, double height, const std::string &style) {
    body_ += "<rect x=\"" + at(x) + "\" y=\"" + at(y) + "\" width=\"" + at(std::max(width, 0.5)) + "\" height=\"" +
             at(height) + class_of(style);
  }
  void dot(double x, double y, double radius, const std::string &style, const std::string &hint = "") {
    body_ += "<circle cx=\"" + at(x) + "\" cy=\"" + at(y) + "\" r=\"" + at(radius) + "\" class=\"" + style + "\"";
    body_ += hint.empty() ? "/>" : "><title>" + escaped(hint) + "</title></circle>";
  }
  void path(const std::vector<std::pair<double, double>> &points, const std::string &style) {
    body_ += "<polyline points=\"";
    for (const auto &[x, y] : points) body_ += at(x) + "," + at(y) + " ";
    body_ += class_of(style);
  }
  void text(double x, double y, const std::string &text, const char *anchor, const std::string &style = "label") {
    body_ += "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\" text-anchor=\"" + anchor + "\" class=\"" + style + "\">" +
             escaped(text) + "</text>";
  }
  std::string done() const { return head_ + body_ + "</svg>"; }

 private:
  static std::string at(double value) {
    std::string text = format_fixed(value, 1);
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  }
  static std::string class_of(const std::string &style) { return "\" class=\"" + style + "\"/>"; }

  std::string head_, body_;
};

// A logarithmic axis of ratios.
struct ratio_axis {
  double least, most, left, width;

  double at(double ratio) const {
    const double share = std::log(std::clamp(ratio, least, most) / least) / std::log(most / least);
    return left + share * width;
  }
  // As many as fit without touching; 1 is always one of them.
  std::vector<double> ticks() const {
    std::vector<double> all = {1};
    const auto fits = [&](double ratio) {
      return ratio >= least && ratio <= most &&
             std::none_of(all.begin(), all.end(), [&](double x) { return std::abs(at(x) - at(ratio)) < 34; });
    };
    for (const double ratio : {10., .1,  100., .01, 1000., .001, 2., .5,   5.,  .2,   20., .05,  50.,
                               .02, 1.5, .7,   1.2, .8,    1.1,  .9, 1.05, .95, 1.02, .98, 1.01, .99})
      if (fits(ratio)) all.push_back(ratio);
    return all;
  }
};

std::string number_text(double ratio) {
  std::string text = format_fixed(ratio, 3);
  text.erase(text.find_last_not_of('0') + 1);
  return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

// About how wide a label of 12 pixels is.
double width_of(const std::string &text) { return 7.1 * double(text.size()); }

struct series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // number of streams, seconds
};

std::vector<series> series_of(const summary_case &one) {
  static const std::regex numbered("(.*?)([0-9]+) (stream|part|thread)s?(.*)");
  std::vector<series> all;
  for (const summary_row &x : one.rows) {
    std::smatch found;
    if (!std::regex_match(x.row.variant, found, numbered)) continue;
    const std::string name = found[1].str() + "N " + found[3].str() + "s" + found[4].str();
    auto its = std::find_if(all.begin(), all.end(), [&](const series &s) { return s.name == name; });
    if (its == all.end()) its = all.insert(its, {name, {}});
    its->points.emplace_back(std::stod(found[2]), x.row.seconds);
  }
  std::erase_if(all, [](const series &s) { return s.points.size() < 3; });
  for (series &s : all) std::sort(s.points.begin(), s.points.end());
  return all;
}

// Of an axis from 0: a round step of which two to five fit.
double step_of(double most) {
  const double power = std::pow(10, std::floor(std::log10(most)));
  for (const double step : {0.2, 0.5, 1.0, 2.0})
    if (most / (step * power) <= 5.5) return step * power;
  return 5 * power;
}

}  // namespace

std::string bar_plot(const summary_row &row, double longest, const std::string &style) {
  constexpr double width = 230, height = 18;
  const auto at = [&](double seconds) { return std::min(seconds / longest, 1.0) * (width - 2); };
  drawing plot(width, height,
               row.row.variant + ": " + format_seconds(row.row.seconds) + ", from " + format_seconds(row.row.min) +
                   " to " + format_seconds(row.row.max));
  plot.box(0, 3, at(row.row.seconds), height - 6, style);
  if (row.row.max > row.row.min) {
    plot.line(at(row.row.min), height / 2, at(row.row.max), height / 2, "spread");
    for (const double end : {row.row.min, row.row.max})
      plot.line(at(end), height / 2 - 3, at(end), height / 2 + 3, "spread");
  }
  if (row.row.bound_seconds > 0) plot.line(at(row.row.bound_seconds), 0, at(row.row.bound_seconds), height, "bound");
  return plot.done();
}

std::string streams_plot(const summary_case &one) {
  const std::vector<series> all = series_of(one);
  if (all.empty()) return "";
  struct level {
    std::string name, style;
    double seconds;
  };
  std::vector<level> levels;
  if (one.bound_seconds() > 0) levels.push_back({"bound", "bound", one.bound_seconds()});
  for (const summary_row &x : one.rows)
    if (x.row.variant == own_variant || x.row.variant == "streamgemm, one batch")
      levels.push_back({x.row.variant, x.row.variant == own_variant ? "own level" : "own level fine", x.row.seconds});

  constexpr double left = 70, top = 12, width = 360, height = 190, legend = left + width + 20;
  double most = 0, fewest = 1e9, streams = 1, longest = 0;
  for (const level &x : levels) most = std::max(most, x.seconds), longest = std::max(longest, width_of(x.name));
  for (const series &s : all) {
    longest = std::max(longest, width_of(s.name));
    for (const auto &[count, seconds] : s.points)
      most = std::max(most, seconds), fewest = std::min(fewest, count), streams = std::max(streams, count);
  }
  most *= 1.05;
  const auto x_of = [&](double count) {
    return left + 14 + (width - 28) * std::log2(count / fewest) / std::log2(streams / fewest);
  };
  const auto y_of = [&](double seconds) { return top + height * (1 - seconds / most); };

  drawing plot(legend + 34 + longest, top + height + 40, one.name + ": time over the number of streams");
  for (double tick = 0; tick <= most; tick += step_of(most)) {
    plot.line(left, y_of(tick), left + width, y_of(tick), "grid");
    plot.text(left - 8, y_of(tick) + 4, tick == 0 ? "0" : format_seconds(tick), "end");
  }
  std::map<double, bool> counts;
  for (const series &s : all)
    for (const auto &point : s.points) counts[point.first] = true;
  for (const auto &[count, used] : counts) plot.text(x_of(count), top + height + 16, format_fixed(count, 0), "middle");
  plot.text(left + width / 2, top + height + 34,
            "number of " + all.front().name.substr(all.front().name.find("N ") + 2, 7), "middle");
  double y = top + 8;
  const auto name_line = [&](const std::string &name, const std::string &style, bool dotted) {
    plot.line(legend, y, legend + 26, y, style);
    if (dotted) plot.dot(legend + 13, y, 3, style);
    plot.text(legend + 32, y + 4, name, "start");
    y += 19;
  };
  for (const level &x : levels) {
    plot.line(left, y_of(x.seconds), left + width, y_of(x.seconds), x.style);
    name_line(x.name, x.style, false);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string style = "series s" + std::to_string(i % 5);
    std::vector<std::pair<double, double>> points;
    for (const auto &[count, seconds] : all[i].points) points.emplace_back(x_of(count), y_of(seconds));
    plot.path(points, style + " path");
    for (std::size_t p = 0; p < points.size(); ++p)
      plot.dot(points[p].first, points[p].second, 3, style,
               format_fixed(all[i].points[p].first, 0) + ": " + format_seconds(all[i].points[p].second));
    name_line(all[i].name, style, true);
  }
  return plot.done();
}

std::string ratios_plot(const std::vector<ratio_group> &groups) {
  double least = 0.9, most = 1.1, left = 0;
  for (const ratio_group &group : groups) {
    left = std::max(left, width_of(group.name));
    for (const double ratio : group.ratios) least = std::min(least, ratio), most = std::max(most, ratio);
  }
  left += 10;
  constexpr double line = 20, width = 460;
  const double height = line * double(groups.size());
  const ratio_axis axis{least / 1.03, most * 1.03, left, width};
  drawing plot(left + width + 150, height + 30, "ratios");
  for (const double tick : axis.ticks()) {
    plot.line(axis.at(tick), 0, axis.at(tick), height, tick == 1 ? "one" : "grid");
    plot.text(axis.at(tick), height + 16, number_text(tick), "middle");
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const double y = line * (double(i) + 0.5), mean = groups[i].mean();
    plot.text(left - 10, y + 4, groups[i].name, "end");
    for (const double ratio : groups[i].ratios) plot.dot(axis.at(ratio), y, 3, "ratio", number_text(ratio));
    plot.line(axis.at(mean), y - 7, axis.at(mean), y + 7, "mean");
    plot.text(left + width + 8, y + 4,
              "mean " + format_fixed(mean, 3) + " of " + std::to_string(groups[i].ratios.size()), "start");
  }
  return plot.done();
}

std::string interval_plot(const compared_row &row, double most) {
  constexpr double width = 200, height = 18;
  const ratio_axis axis{1 / most, most, 4, width - 8};
  const std::string style = row.verdict == "slower" || row.verdict == "faster" ? row.verdict : "other";
  drawing plot(width, height, row.variant + ": ratio " + format_fixed(row.ratio, 3));
  plot.line(axis.at(1), 0, axis.at(1), height, "one");
  if (row.low > 0) plot.line(axis.at(row.low), height / 2, axis.at(row.high), height / 2, "interval " + style);
  plot.dot(axis.at(row.ratio), height / 2, 3.5, style);
  return plot.done();
}

}  // namespace sg::cli
