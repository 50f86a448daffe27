// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "base/format.hpp"
#include "trace/exporters.hpp"
#include "trace/metrics.hpp"

namespace sg::trace {

namespace {

constexpr std::size_t name_width = 22;

// One letter an activity, by its number within the row.
char letter_of_activity(std::size_t number) noexcept {
  static constexpr char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return letters[number % (sizeof letters - 1)];
}

std::string row_of(std::span<const activity> all, std::int64_t start_ns, double slot_ns, int columns) {
  std::string row(static_cast<std::size_t>(columns), '.');
  std::vector<double> longest(row.size(), 0);
  std::size_t number = 0;
  for (const activity &each : all) {
    const char letter = letter_of_activity(number++);
    const double start = double(each.start_ns - start_ns) / slot_ns, end = double(each.end_ns - start_ns) / slot_ns;
    for (int slot = std::max(0, int(start)); slot < std::min<double>(columns, end); ++slot) {
      const double share = std::min(end, slot + 1.0) - std::max(start, double(slot));
      auto &best = longest[static_cast<std::size_t>(slot)];
      if (share <= 1e-9 || share <= best) continue;  // the activity with the largest share of the slot is shown
      best = share;
      row[static_cast<std::size_t>(slot)] = letter;
    }
  }
  return row;
}

std::string percent(std::int64_t part_ns, std::int64_t of_ns) {
  return of_ns > 0 ? formatted("%.1f%%", 100 * double(part_ns) / double(of_ns)) : "-";
}

std::string figures_of(const context_metrics &m) {
  std::string out;
  const auto kind = [&](const char *name, std::int64_t ns, std::uint64_t bytes) {
    if (ns == 0) return;
    out += formatted("  %-12s%-14sbusy %s", name, ns_text(ns).c_str(), percent(ns, m.span_ns).c_str());
    if (bytes > 0) out += formatted(", %s at %.2f GB/s", bytes_text(bytes).c_str(), double(bytes) / double(ns));
    out += "\n";
  };
  out += formatted("  span        %s, %llu commands of %llu jobs\n", ns_text(m.span_ns).c_str(),
                   static_cast<unsigned long long>(m.commands), static_cast<unsigned long long>(m.jobs));
  kind("compute", m.compute_ns, 0);
  kind("copies in", m.copy_in_ns, m.bytes_in);
  kind("copies out", m.copy_out_ns, m.bytes_out);
  kind("staging", m.staging_ns, 0);
  if (m.transfer_ns > 0)
    out += formatted("  overlap     %.3f of the transfers' time is hidden behind arithmetic\n", m.overlap_efficiency());
  out += formatted("  parallelism %.2f commands at a time\n", m.parallelism());
  const std::int64_t idle_ns = m.span_ns - m.compute_ns;
  if (idle_ns > 0) {
    out += formatted("  idle        %s without arithmetic:", ns_text(idle_ns).c_str());
    for (std::size_t i = 0; i < idle_causes; ++i)
      if (m.idle_ns[i] > 0)
        out += formatted(" %s %s", name_of(static_cast<idle_cause>(i)), percent(m.idle_ns[i], idle_ns).c_str());
    out += "\n";
  }
  if (m.of_jobs.max_ns > 0)
    out += formatted("  latency     50%% %s, 90%% %s, 99%% %s, longest %s\n", ns_text(m.of_jobs.p50_ns).c_str(),
                     ns_text(m.of_jobs.p90_ns).c_str(), ns_text(m.of_jobs.p99_ns).c_str(),
                     ns_text(m.of_jobs.max_ns).c_str());
  return out;
}

// A lane's row begins with its context's first command, a thread's with the recording.
std::string rows_of(const history &what, std::size_t context, std::int64_t start_ns, std::int64_t span_ns,
                    int columns) {
  std::string out;
  const double slot_ns = std::max(1.0, double(span_ns) / columns);
  for (std::size_t i = 0; i < what.tracks.size(); ++i) {
    if (what.tracks[i].context != context) continue;
    std::string name = what.tracks[i].name.substr(0, name_width);
    name.resize(name_width, ' ');
    out += name + "|" + row_of(what.of_track(i), start_ns, slot_ns, columns) + "|\n";
  }
  if (!out.empty())
    out += formatted("%*s%d slots of %s\n", int(name_width) + 1, "", columns, ns_text(std::int64_t(slot_ns)).c_str());
  return out;
}

}  // namespace

std::string text(const history &what, int columns) {
  columns = std::clamp(columns, 1, 1000);
  const std::vector<context_metrics> metrics = metrics_of(what);
  std::string out;
  for (std::size_t context = 0; context < what.contexts.size(); ++context) {
    const context_metrics &m = metrics[context];
    out += title_of(what.contexts[context]) + "\n";
    out += rows_of(what, context, m.start_ns, m.span_ns, columns);
    out += figures_of(m);
  }
  const std::string threads = rows_of(what, no_context, 0, what.span_ns, columns);
  if (!threads.empty()) out += "threads\n" + threads;
  for (const advice &each : what.advices)
    out += formatted("advice: %s: %s less\n", each.title.c_str(),
                     ns_text(static_cast<std::int64_t>(each.gain_seconds * 1e9)).c_str()) +
           "  " + each.evidence + "\n";
  if (what.dropped > 0) out += formatted("%llu events were dropped\n", static_cast<unsigned long long>(what.dropped));
  return out;
}

}  // namespace sg::trace
