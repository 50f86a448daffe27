// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "trace/exporters.hpp"
#include "trace/metrics.hpp"

namespace sg::trace {

namespace {

constexpr double picture_width = 1200, margin = 8, label_width = 170, row_height = 22, bar_height = 16;
constexpr double time_width = picture_width - label_width - 2 * margin;
constexpr double least_text_width = 60, text_width_of_letter = 6.5;

__attribute__((format(printf, 2, 3))) void put(std::string &out, const char *format, ...) {
  char line[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  out += line;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) switch (letter) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
  return out;
}

const char *colour_of(const history &what, const activity &a) noexcept {
  switch (a.kind) {
    case event_kind::submission: return "#9aa5b1";
    case event_kind::wait: return "#e4e7eb";
    case event_kind::planning:
    case event_kind::replan: return "#b9a3e3";
    case event_kind::staging: return "#f0b429";
    default: break;
  }
  const track &where = what.tracks[a.track];
  const bool brings = where.lane == lane_kind::copy_in || where.lane == lane_kind::copy_peer;
  if (where.kind == track_kind::device_lane && brings) return "#3ebd93";
  if (where.kind == track_kind::device_lane && where.lane == lane_kind::copy_out) return "#f9703e";
  if (where.kind == track_kind::device_lane && where.lane == lane_kind::staging) return "#f0b429";
  return "#4098d7";
}

class picture {
 public:
  explicit picture(const history &what) : what_(what), metrics_(metrics_of(what)) {}

  std::string draw() {
    for (std::size_t context = 0; context < what_.contexts.size(); ++context) {
      heading(title_of(what_.contexts[context]));
      rows(context, metrics_[context].start_ns, metrics_[context].span_ns);
    }
    if (std::any_of(what_.tracks.begin(), what_.tracks.end(), [](const track &t) { return t.context == no_context; })) {
      heading("threads");
      rows(no_context, 0, what_.span_ns);
    }
    std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    put(out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        picture_width, y_ + margin, picture_width, y_ + margin);
    return out + body_ + "</svg>\n";
  }

 private:
  void heading(const std::string &title) {
    y_ += row_height;
    put(body_, "<text x=\"%.0f\" y=\"%.1f\" font-weight=\"bold\">", margin, y_ - 6);
    body_ += escaped(title) + "</text>\n";
  }

  void rows(std::size_t context, std::int64_t start_ns, std::int64_t span_ns) {
    if (span_ns <= 0) return;
    const double scale = time_width / double(span_ns);
    for (std::size_t i = 0; i < what_.tracks.size(); ++i) {
      if (what_.tracks[i].context != context) continue;
      put(body_, "<text x=\"%.0f\" y=\"%.1f\">", margin, y_ + 12);
      body_ += escaped(what_.tracks[i].name) + "</text>\n";
      put(body_, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" fill=\"#f5f7fa\"/>\n",
          margin + label_width, y_, time_width, bar_height);
      double drawn_to = -1;  // nothing is drawn twice in one pixel
      for (const activity &each : what_.of_track(i)) {
        const double x = double(each.start_ns - start_ns) * scale, width = double(each.end_ns - each.start_ns) * scale;
        if (x + width < drawn_to + 0.5) continue;
        drawn_to = x + width;
        bar(each, margin + label_width + x, std::max(width, 0.5));
      }
      y_ += row_height;
    }
    put(body_, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#616e7c\">0</text>", margin + label_width, y_ + 8);
    put(body_, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#616e7c\" text-anchor=\"end\">%s</text>\n",
        margin + label_width + time_width, y_ + 8, ns_text(span_ns).c_str());
    y_ += row_height / 2;
  }

  void bar(const activity &a, double x, double width) {
    const std::string name = a.name();
    const traced_job *job = what_.job(a.job);
    put(body_,
        "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.0f\" fill=\"%s\" stroke=\"#ffffff\" "
        "stroke-width=\"0.3\"><title>",
        x, y_, width, bar_height, colour_of(what_, a));
    body_ += escaped(name) + ", " + ns_text(a.end_ns - a.start_ns);
    if (job && !job->title().empty()) body_ += ", " + escaped(job->title());
    body_ += "</title></rect>\n";
    if (width < least_text_width) return;
    const auto letters = static_cast<std::size_t>(width / text_width_of_letter);
    put(body_, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#102a43\">", x + 3, y_ + 12);
    body_ += escaped(std::string_view(name).substr(0, letters)) + "</text>\n";
  }

  const history &what_;
  const std::vector<context_metrics> metrics_;
  std::string body_;
  double y_ = 0;
};

}  // namespace

std::string svg(const history &what) { return picture(what).draw(); }

}  // namespace sg::trace
