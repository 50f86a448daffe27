// SPDX-License-Identifier: Apache-2.0
#include "drawn_cases.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace sg::cli {

namespace {

constexpr std::int64_t most_bytes = std::int64_t{4} << 30;  // of all operands

// The same numbers from a seed with every standard library, whose distributions differ.
class drawer {
 public:
  explicit drawer(std::uint64_t seed) : random_(seed) {}

  double between(double low, double high) { return low + (high - low) * double(random_() >> 11) * 0x1p-53; }
  std::int64_t whole(std::int64_t low, std::int64_t high) {
    return low + std::int64_t(random_() % std::uint64_t(high - low + 1));
  }
  bool one_in(int n) { return whole(1, n) == 1; }

 private:
  std::mt19937_64 random_;
};

struct sizes {
  std::int64_t m, n, k;
};

// About `volume` = m n k, as a cube, of odd sizes, thin (one size of at most 64), or a panel (one that is much larger).
sizes drawn_sizes(drawer &draw, double volume) {
  std::array<double, 3> size;
  const double side = std::cbrt(volume);
  size.fill(side);
  const auto which = std::size_t(draw.whole(0, 2));
  const auto others = [&](double of_one) {
    const double uneven = std::exp2(draw.between(-2, 2)), rest = std::sqrt(volume / of_one);
    size = {rest * uneven, rest * uneven, rest * uneven};
    size[(which + 1) % 3] = rest / uneven;
    size[which] = of_one;
  };
  const std::int64_t kind = draw.whole(0, 3);
  if (kind == 1) {
    const double x = std::exp2(draw.between(-2, 2)), y = std::exp2(draw.between(-2, 2));
    size = {side * x, side * y, side / x / y};
  } else if (kind == 2) {
    others(double(draw.whole(1, std::clamp(std::int64_t(side), std::int64_t{1}, std::int64_t{64}))));
  } else if (kind == 3) {
    others(side * std::exp2(draw.between(2, 4)));
  }
  const auto rounded = [&](double x) {
    const std::int64_t whole = std::max<std::int64_t>(1, std::llround(x));
    return kind == 1 ? whole | 1 : whole;
  };
  return {rounded(size[0]), rounded(size[1]), rounded(size[2])};
}

std::string label_of(const gpu_case &x) {
  const char *type = x.dtype == SG_DTYPE_F64   ? "f64 "
                     : x.dtype == SG_DTYPE_F32 ? "f32 "
                     : x.dtype == SG_DTYPE_F16 ? "f16 "
                                               : "bf16 ";
  return type + std::to_string(x.m) + "x" + std::to_string(x.n) + "x" + std::to_string(x.k) + " " +
         (x.op_a == SG_TRANSPOSE_N ? "N" : "T") + (x.op_b == SG_TRANSPOSE_N ? "N" : "T") +
         (x.pad > 0 ? " pad" + std::to_string(x.pad) : "");
}

gpu_case drawn_case(drawer &draw, double most_flops) {
  constexpr std::array types{SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
  while (true) {
    const sizes of = drawn_sizes(draw, std::pow(10.0, draw.between(6, std::log10(most_flops))) / 2);
    gpu_case made{"", of.m, of.n, of.k, types[std::size_t(draw.whole(0, 3))]};
    made.op_a = draw.one_in(2) ? SG_TRANSPOSE_N : SG_TRANSPOSE_T;
    made.op_b = draw.one_in(2) ? SG_TRANSPOSE_N : SG_TRANSPOSE_T;
    made.pad = draw.one_in(2) ? 0 : draw.whole(1, 40);
    made.pinned.fill(draw.one_in(2));
    if (draw.one_in(4))
      for (bool &each : made.pinned) each = draw.one_in(2);
    made.label = label_of(made);
    if (made.all_bytes() <= most_bytes) return made;
  }
}

// Sizes of layers: two widths that networks have, and 1 to 16384 rows, in eights in one case of two.
sizes sizes_of_a_layer(drawer &draw) {
  constexpr std::array<std::int64_t, 24> widths{64,   96,   128,  160,  192,  256,   320,   384,
                                                512,  576,  640,  768,  960,  1024,  1280,  1536,
                                                2048, 2304, 3072, 4096, 5120, 11008, 14336, 28672};
  const auto width = [&] { return widths[std::size_t(draw.whole(0, widths.size() - 1))]; };
  const auto rows = std::int64_t(std::exp2(draw.between(0, 14)));
  return {width(), draw.one_in(2) ? (rows + 7) / 8 * 8 : rows, width()};
}

struct ratios {
  std::vector<std::pair<double, std::string>> of_cases;

  void add(double ratio, const std::string &name) { of_cases.emplace_back(ratio, name); }
  nlohmann::ordered_json json() const {
    auto sorted = of_cases;
    std::sort(sorted.begin(), sorted.end());
    double logarithms = 0;
    for (const auto &[ratio, name] : sorted) logarithms += std::log(ratio);
    const std::size_t count = sorted.size();
    return {{"cases", count},
            {"mean", std::exp(logarithms / double(count))},
            {"p95", sorted[(count * 95 + 99) / 100 - 1].first},
            {"worst", sorted.back().first},
            {"worst_case", sorted.back().second}};
  }
};

}  // namespace

std::vector<gpu_case> drawn_cases(const suite_request &request) {
  drawer draw(request.seed);
  std::vector<gpu_case> cases;
  for (int i = 0; i < request.draw; ++i) cases.push_back(drawn_case(draw, request.most_flops));
  return cases;
}

std::vector<gpu_case> drawn_resident_cases(const suite_request &request) {
  drawer draw(request.seed);
  std::vector<gpu_case> cases;
  while (int(cases.size()) < request.draw) {
    gpu_case made = drawn_case(draw, request.most_flops);
    made.pinned = {};
    if (draw.one_in(2)) {
      const sizes of = sizes_of_a_layer(draw);
      made.m = of.m, made.n = of.n, made.k = of.k, made.pad = 0;
      if (made.flops() < 1e6 || made.flops() > request.most_flops || made.all_bytes() > most_bytes) continue;
      made.label = label_of(made);
    }
    cases.push_back(made);
  }
  return cases;
}

nlohmann::ordered_json drawn_summary(const nlohmann::ordered_json &rows, bool virtual_time, bool resident) {
  std::map<std::string, double> peers;  // the fastest one's seconds by case
  for (const auto &row : rows) {
    if (row["variant"].get<std::string>().starts_with(own_variant)) continue;
    double &fastest = peers.try_emplace(row["case"], HUGE_VAL).first->second;
    fastest = std::min(fastest, row["seconds"].get<double>());
  }
  std::map<std::string, std::map<std::string, ratios>> found;  // by memory, then by what the time is compared with
  for (const auto &row : rows) {
    if (row["variant"] != own_variant) continue;
    const std::string name = row["case"], placed = name.substr(0, name.find(", ")),
                      last = placed.substr(placed.rfind(' ') + 1);
    const std::string memory = resident ? "device" : last.find('/') == std::string::npos ? last : "mixed";
    const double seconds = row[virtual_time ? "device_seconds" : "seconds"];
    auto &of = found[memory];
    if (!row["bound_seconds"].is_null()) of["over_bound"].add(seconds / row["bound_seconds"].get<double>(), name);
    if (const auto peer = peers.find(name); peer != peers.end()) of["over_peer"].add(seconds / peer->second, name);
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const auto &[memory, of] : found)
    for (const auto &[key, each] : of) all[memory][key] = each.json();
  return all;
}

}  // namespace sg::cli
