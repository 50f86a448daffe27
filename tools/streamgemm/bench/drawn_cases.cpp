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

gpu_case drawn_case(drawer &draw, double most_flops) {
  constexpr std::array<std::pair<sg_dtype, const char *>, 4> types{
      {{SG_DTYPE_F64, "f64"}, {SG_DTYPE_F32, "f32"}, {SG_DTYPE_F16, "f16"}, {SG_DTYPE_BF16, "bf16"}}};
  while (true) {
    const sizes of = drawn_sizes(draw, std::pow(10.0, draw.between(6, std::log10(most_flops))) / 2);
    const auto &[dtype, name] = types[std::size_t(draw.whole(0, 3))];
    gpu_case made{"", of.m, of.n, of.k, dtype};
    made.op_a = draw.one_in(2) ? SG_OP_N : SG_OP_T;
    made.op_b = draw.one_in(2) ? SG_OP_N : SG_OP_T;
    made.pad = draw.one_in(2) ? 0 : draw.whole(1, 40);
    made.pinned.fill(draw.one_in(2));
    if (draw.one_in(4))
      for (bool &each : made.pinned) each = draw.one_in(2);
    made.label = std::string(name) + " " + std::to_string(of.m) + "x" + std::to_string(of.n) + "x" +
                 std::to_string(of.k) + " " + (made.op_a == SG_OP_N ? "N" : "T") + (made.op_b == SG_OP_N ? "N" : "T") +
                 (made.pad > 0 ? " pad" + std::to_string(made.pad) : "");
    if (made.all_bytes() <= most_bytes) return made;
  }
}

struct ratios {
  double logarithms = 0, worst = 0;
  int count = 0;
  std::string worst_case;

  void add(double ratio, const std::string &name) {
    logarithms += std::log(ratio);
    ++count;
    if (ratio > worst) worst = ratio, worst_case = name;
  }
  nlohmann::ordered_json json() const {
    return {{"cases", count}, {"mean", std::exp(logarithms / count)}, {"worst", worst}, {"worst_case", worst_case}};
  }
};

}  // namespace

std::vector<gpu_case> drawn_cases(const suite_request &request) {
  drawer draw(request.seed);
  std::vector<gpu_case> cases;
  for (int i = 0; i < request.draw; ++i) cases.push_back(drawn_case(draw, request.most_flops));
  return cases;
}

nlohmann::ordered_json drawn_summary(const nlohmann::ordered_json &rows, bool virtual_time) {
  std::map<std::string, double> peers;  // the fastest one's seconds by case
  for (const auto &row : rows) {
    if (row["variant"] == own_variant) continue;
    double &fastest = peers.try_emplace(row["case"], HUGE_VAL).first->second;
    fastest = std::min(fastest, row["seconds"].get<double>());
  }
  std::map<std::string, std::map<std::string, ratios>> found;  // by memory, then by what the time is compared with
  for (const auto &row : rows) {
    if (row["variant"] != own_variant) continue;
    const std::string name = row["case"], memory = name.substr(name.rfind(' ') + 1);
    const double seconds = row[virtual_time ? "device_seconds" : "seconds"];
    auto &of = found[memory.find('/') == std::string::npos ? memory : "mixed"];
    if (!row["bound_seconds"].is_null()) of["over_bound"].add(seconds / row["bound_seconds"].get<double>(), name);
    if (const auto peer = peers.find(name); peer != peers.end()) of["over_peer"].add(seconds / peer->second, name);
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const auto &[memory, of] : found)
    for (const auto &[key, each] : of) all[memory][key] = each.json();
  return all;
}

}  // namespace sg::cli
