// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule/describe.hpp"

#include <algorithm>
#include <cmath>

#include "base/format.hpp"
#include "base/json_writer.hpp"
#include "ops/operation.hpp"
#include "plan/schedule/lanes.hpp"

namespace sg {
namespace {

const char *lane_name(lane_kind kind) {
  switch (kind) {
    case lane_kind::copy_in: return "copy-in";
    case lane_kind::copy_out: return "copy-out";
    case lane_kind::compute: return "compute";
    case lane_kind::staging: return "staging";
    case lane_kind::copy_peer: return "copy-peer";
  }
  return "unknown";
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return formatted("%.3f s", seconds);
  if (seconds >= 1e-3) return formatted("%.3f ms", seconds * 1e3);
  return formatted("%.2f us", seconds * 1e6);
}

struct tile {
  std::int64_t m = 0, n = 0, k = 0;
};

// The largest GEMM of a schedule; the others are remainders.
tile largest_tile(const schedule &s) {
  tile t;
  for (const command &c : s.commands) {
    const auto *gemm = c.as<ops::gemm>();
    if (gemm && double(gemm->m) * double(gemm->n) * double(gemm->k) > double(t.m) * double(t.n) * double(t.k))
      t = {gemm->m, gemm->n, gemm->k};
  }
  return t;
}

std::int64_t count_of(const schedule &s, const operation &of) {
  return std::count_if(s.commands.begin(), s.commands.end(), [&](const command &c) { return &operation_of(c) == &of; });
}

double ratio_of(const schedule &s) { return s.bound_seconds > 0 ? s.predicted_seconds / s.bound_seconds : 0; }

// Without a device number for the first device.
std::string lane_text(lane where) {
  const std::string name = formatted("%s %d", lane_name(where.kind), int(where.index));
  return where.device == first_device ? name : formatted("device %zu ", number_of(where.device)) + name;
}

// a..z, A..Z, 0..9, repeated, by the number of the command within its row.
char letter_of(std::size_t number) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return letters[number % (sizeof letters - 1)];
}

// The device, or the machine of several.
const std::string &name_of_place(const machine_model &machine, std::span<const device_index> devices) {
  const bool is_one = devices.size() <= 1 || machine.name.empty();
  return is_one ? machine.device(devices.empty() ? first_device : devices[0]).name : machine.name;
}

std::vector<std::string> missing_peer_paths(const machine_model &machine, std::span<const device_index> devices) {
  std::vector<std::string> all;
  for (const device_link &link : machine.links) {
    const auto has = [&](device_index end) { return std::find(devices.begin(), devices.end(), end) != devices.end(); };
    if (!link.reason.empty() && has(link.first) && has(link.second)) all.push_back(link.reason);
  }
  return all;
}

}  // namespace

std::string describe_left_out(const left_out_device &what, const machine_model &machine) {
  const std::string begin = formatted("%zu (%.64s): slow, its share of the work would be ", number_of(what.device),
                                      machine.device(what.device).name.c_str());
  if (what.share == 0) return begin + "less than a tile";
  return begin + formatted("%.1f %%, and all would take ", what.share * 100) + seconds_text(what.seconds);
}

std::string describe_more_devices(std::span<const time_on_devices> more) {
  std::string all;
  for (const time_on_devices &each : more)
    all += formatted(all.empty() ? "%d devices would take " : ", %d devices ", int(each.devices)) +
           seconds_text(each.seconds);
  return all;
}

std::string describe_text(const schedule &s, const machine_model &machine, std::span<const time_on_devices> more) {
  const timeline t = simulate(s, machine);
  const std::vector<device_index> devices = devices_of(s);
  std::string out = "strategy   " + s.strategy + " on " + name_of_place(machine, devices) + "\n";
  if (devices.size() > 1) {
    out += "devices   ";
    for (const device_index each : devices)
      out += formatted(" %zu (%s, %.1f MB)", number_of(each), machine.device(each).name.c_str(),
                       double(device_bytes_of(s, each)) / 1e6);
    out += "\n";
  }
  for (const left_out_device &each : s.left_out) out += "left out: " + describe_left_out(each, machine) + "\n";
  for (const std::string &each : missing_peer_paths(machine, devices)) out += each + "\n";
  const tile largest = largest_tile(s);
  if (largest.m > 0)
    out += formatted("tile       %lld x %lld x %lld (the largest GEMM)\n", static_cast<long long>(largest.m),
                     static_cast<long long>(largest.n), static_cast<long long>(largest.k));
  out += "lanes     ";
  for (int kind = 0; kind < lane_kinds; ++kind)
    if (s.lanes[kind] > 0) out += formatted(" %s %d", lane_name(lane_kind(kind)), int(s.lanes[kind]));
  out += formatted("\ncommands   %zu:", s.commands.size());
  for (const operation *each : operations())
    if (const std::int64_t count = count_of(s, *each))
      out += formatted(" %s %lld", each->name, static_cast<long long>(count));
  out += formatted("\nmemory     device %.1f MB, staging %.1f MB\n", double(s.device_bytes) / 1e6,
                   double(s.staging_bytes) / 1e6);
  out += formatted("link       in %.1f MB, out %.1f MB\n", s.bytes_in / 1e6, s.bytes_out / 1e6);
  if (devices.size() > 1) out += formatted("peers      %.1f MB\n", s.bytes_peer / 1e6);
  out += "predicted  " + seconds_text(s.predicted_seconds) + "\n";
  out += "bound      " + seconds_text(s.bound_seconds) + (*s.bound_limit ? ": " : "") + s.bound_limit + "\n";
  out += formatted("ratio      %.3f\n", ratio_of(s));
  out += formatted("overlap    %.0f %%\n", t.overlap_efficiency * 100);
  if (!more.empty()) out += "advice     " + describe_more_devices(more) + "\n";
  return out;
}

std::string describe_json(const schedule &s, const machine_model &machine, std::span<const time_on_devices> more) {
  const timeline t = simulate(s, machine);
  const std::vector<device_index> devices = devices_of(s);
  std::vector<std::uint32_t> indices;
  for (const device_index each : devices) indices.push_back(std::uint32_t(number_of(each)));
  const tile largest = largest_tile(s);
  json_writer json;
  json.member("strategy", s.strategy);
  json.member("device", name_of_place(machine, devices));
  json.member("devices", std::span<const std::uint32_t>(indices));
  json.begin_list("device_bytes_each");
  for (const device_index each : devices) {
    json.begin_item();
    json.member("device", std::int64_t(number_of(each)));
    json.member("bytes", device_bytes_of(s, each));
    json.end();
  }
  json.end_list();
  json.begin_list("left_out");
  for (const left_out_device &each : s.left_out) {
    json.begin_item();
    json.member("device", std::int64_t(number_of(each.device)));
    json.member("reason", std::string_view(describe_left_out(each, machine)));
    json.end();
  }
  json.end_list();
  json.begin_list("no_peer_paths");
  for (const std::string &each : missing_peer_paths(machine, devices)) {
    json.begin_item();
    json.member("reason", std::string_view(each));
    json.end();
  }
  json.end_list();
  json.begin_list("on_more_devices");
  for (const time_on_devices &each : more) {
    json.begin_item();
    json.member("devices", std::int64_t{each.devices});
    json.member("predicted_seconds", each.seconds);
    json.end();
  }
  json.end_list();
  json.begin("tiles");
  json.member("m", largest.m);
  json.member("n", largest.n);
  json.member("k", largest.k);
  json.end();
  json.begin("lanes");
  for (int kind = 0; kind < lane_kinds; ++kind) json.member(lane_name(lane_kind(kind)), std::int64_t{s.lanes[kind]});
  json.end();
  json.begin("commands");
  for (const operation *each : operations()) json.member(each->name, count_of(s, *each));
  json.end();
  json.member("device_bytes", s.device_bytes);
  json.member("staging_bytes", s.staging_bytes);
  json.member("flops", s.flops);
  json.member("bytes_in", s.bytes_in);
  json.member("bytes_out", s.bytes_out);
  json.member("bytes_peer", s.bytes_peer);
  json.member("predicted_seconds", s.predicted_seconds);
  json.member("bound_seconds", s.bound_seconds);
  json.member("bound_limit", std::string_view(s.bound_limit));
  json.member("ratio", ratio_of(s));
  json.member("overlap_efficiency", t.overlap_efficiency);
  json.begin_list("timeline");
  for (std::size_t i = 0; i < s.commands.size(); ++i) {
    const command &c = s.commands[i];
    json.begin_item();
    json.member("lane", lane_text(t.commands[i].where));
    json.member("action", operation_of(c).describe(s.buffers, c));
    json.member("start_seconds", t.commands[i].start);
    json.member("end_seconds", t.commands[i].end);
    json.member("after", std::span(s.waits).subspan(c.first_wait, c.waits));
    json.end();
  }
  json.end_list();
  return json.take();
}

std::string timeline_text(const schedule &s, const timeline &t, double slot_seconds, int columns) {
  if (s.commands.empty() || t.seconds <= 0) return "";
  const lane_numbers numbers(t.commands);
  columns = std::clamp(columns, 1, 1000);
  if (slot_seconds <= 0) slot_seconds = t.seconds / columns;
  // A slot as short as a rounding error is dropped.
  columns = int(std::clamp(std::ceil(t.seconds / slot_seconds - 1e-9), 1.0, 1000.0));
  std::vector<std::string> rows(std::size_t(numbers.count()), std::string(std::size_t(columns), '.'));
  std::vector<std::vector<double>> longest(rows.size(), std::vector<double>(std::size_t(columns), 0));
  std::vector<std::size_t> letters(rows.size(), 0);
  for (std::size_t i = 0; i < s.commands.size(); ++i) {
    const std::size_t row = std::size_t(numbers.of(t.commands[i].where));
    const char letter = letter_of(letters[row]++);
    const double start = t.commands[i].start / slot_seconds, end = t.commands[i].end / slot_seconds;
    for (int slot = std::max(0, int(start)); slot < std::min<double>(columns, end); ++slot) {
      // A slot shows the command that fills most of it.
      const double share = std::min(end, slot + 1.0) - std::max(start, double(slot));
      if (share > 1e-9 && share > longest[row][std::size_t(slot)]) {
        longest[row][std::size_t(slot)] = share;
        rows[row][std::size_t(slot)] = letter;
      }
    }
  }
  std::string out;
  int width = 12;
  for (std::size_t row = 0; row < rows.size(); ++row)
    width = std::max(width, int(lane_text(numbers.at(int(row))).size()) + 1);
  for (std::size_t row = 0; row < rows.size(); ++row)
    out += formatted("%-*s|", width, lane_text(numbers.at(int(row))).c_str()) + rows[row] + "|\n";
  out += formatted("%-*s %d slots of ", width, "", columns) + seconds_text(slot_seconds) + ": " +
         seconds_text(t.seconds) + "\n";
  return out;
}

}  // namespace sg
