// SPDX-License-Identifier: Apache-2.0
// Recorded problems planned again in other ways.
#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "plan/planner.hpp"
#include "trace/advice.hpp"
#include "trace/interval_set.hpp"

namespace sg::trace {

namespace {

constexpr std::size_t most_schedules_examined = 64;  // each is planned some times, which may take 10 ms

// Jobs with equal schedules.
struct group {
  const recorded_schedule *first = nullptr;
  std::vector<time_interval> times;  // of each
};

struct alternative {
  const char *title;
  std::vector<problem> problems;
  plan_request request;
};

template <class Change>
std::vector<problem> changed(const std::vector<problem> &problems, Change &&change) {
  std::vector<problem> made = problems;
  for (problem &each : made) {
    each.downcast_to_bf16 = false;  // the planner's own
    change(each);
  }
  return made;
}

template <class Condition>
bool any_operand(const std::vector<problem> &problems, Condition &&holds) {
  return std::any_of(problems.begin(), problems.end(), [&](const problem &p) {
    return holds(p.a) || holds(p.b) || holds(p.c) || (p.has_bias() && holds(p.bias));
  });
}

// Without gaps between the columns of operands on the host.
bool has_gaps(const operand &x) noexcept { return x.space.kind() != SG_MEMORY_DEVICE && x.cols > 1 && x.ld > x.rows; }
void close_gaps(problem &p) noexcept {
  for (operand *each : {&p.a, &p.b, &p.c})
    if (has_gaps(*each)) each->ld = each->rows;
}

// The problem with another m and n.
problem resized(problem p, std::int64_t m, std::int64_t n) noexcept {
  (p.op_a == SG_OP_N ? p.a.rows : p.a.cols) = m;
  (p.op_b == SG_OP_N ? p.b.cols : p.b.rows) = n;
  if (p.has_bias()) (p.bias.rows == p.m ? p.bias.rows : p.bias.cols) = p.bias.rows == p.m ? m : n;
  p.m = p.c.rows = m;
  p.n = p.c.cols = n;
  return p;
}

// The size without a last tile that is mostly empty.
std::int64_t in_whole_tiles(std::int64_t size, std::int64_t tile) noexcept {
  const std::int64_t rest = size % tile;
  return size > tile && rest != 0 && 4 * rest <= tile ? size - rest : size;
}

void place(problem &p, sg_memory_kind from, memory_space to) {
  for (operand *each : {&p.a, &p.b, &p.c, &p.bias})
    if (each->space.kind() == from || (from == SG_MEMORY_AUTO && each->space.kind() != SG_MEMORY_DEVICE))
      each->space = to;
}

bool is_restricted(const plan_request &request) noexcept {
  plan_request free;
  free.device = request.device;
  free.latency = request.latency;
  free.by_rows = request.by_rows;
  free.memory_limit = request.memory_limit;
  free.layer = request.layer;
  free.conv = request.conv;
  free.form = request.form;
  std::copy_n(request.dy_is_a, std::size(free.dy_is_a), free.dy_is_a);
  return !(request == free);
}

std::vector<alternative> alternatives_to(const recorded_schedule &now) {
  std::vector<alternative> all;
  if (is_restricted(now.request)) {
    plan_request free = now.request;
    free.split = split_kind::automatic;
    free.parts = free.streams = 0;
    free.tile_m = free.tile_n = free.tile_k = 0;
    all.push_back({"leave the split and the tiles to the planner", changed(now.problems, [](problem &) {}), free});
  }
  if (any_operand(now.problems, [](const operand &x) { return x.space == SG_MEMORY_PAGEABLE; }))
    all.push_back({"pin the operands (sg_host_alloc, sg_host_register)",
                   changed(now.problems, [](problem &p) { place(p, SG_MEMORY_PAGEABLE, SG_MEMORY_PINNED); }),
                   now.request});
  if (any_operand(now.problems, has_gaps))
    all.push_back({"store the operands without gaps between their rows, or columns", changed(now.problems, close_gaps),
                   now.request});
  // The sizes of a layer's problems depend on each other.
  if (!now.model->lanes_are_cores && now.request.layer == layer_kind::none) {
    const auto shrink = [&](problem &p) {
      p = resized(p, in_whole_tiles(p.m, now.model->tile_m), in_whole_tiles(p.n, now.model->tile_n));
    };
    std::vector<problem> smaller = changed(now.problems, shrink);
    if (smaller != changed(now.problems, [](problem &) {}))
      all.push_back({"choose sizes that are multiples of the device's tiles: the last tiles are mostly empty",
                     std::move(smaller), now.request});
  }
  const bool is_exact_f32 = std::all_of(now.problems.begin(), now.problems.end(), [](const problem &p) {
    return p.a.type == SG_DTYPE_F32 && p.compute == SG_COMPUTE_EXACT;
  });
  if (is_exact_f32) {
    all.push_back({"allow tf32, if 3 decimal digits are enough (SG_COMPUTE_TF32)",
                   changed(now.problems, [](problem &p) { p.compute = SG_COMPUTE_TF32; }), now.request});
    all.push_back({"allow 3xtf32, with the accuracy of f32 (SG_COMPUTE_3XTF32)",
                   changed(now.problems, [](problem &p) { p.compute = SG_COMPUTE_3XTF32; }), now.request});
  }
  if (any_operand(now.problems, [](const operand &x) { return x.space.kind() != SG_MEMORY_DEVICE; }))
    all.push_back({"keep the operands in device memory between jobs (sg_buffer_create)",
                   changed(now.problems, [](problem &p) { place(p, SG_MEMORY_AUTO, SG_MEMORY_DEVICE); }), now.request});
  return all;
}

// Whether the problem says what is computed. Those of layers with a form of their own do not, nor of single operations.
bool is_known(const problem &p) noexcept { return p.m > 0 && p.n > 0; }

std::string shape_text(const recorded_schedule &of) {
  const problem &p = *std::find_if(of.problems.begin(), of.problems.end(), is_known);
  char text[160];
  const bool swaps = of.request.by_rows;
  std::snprintf(text, sizeof text, "%lld x %lld x %lld%s, %s", static_cast<long long>(swaps ? p.n : p.m),
                static_cast<long long>(swaps ? p.m : p.n), static_cast<long long>(p.k),
                of.problems.size() > 1 ? " and others" : "", of.runs->strategy.c_str());
  return text;
}

// A part of the time that the jobs took, those that overlapped together: so much as the prediction becomes shorter.
void add_advice(std::vector<advice> &to, const group &jobs) {
  const recorded_schedule &now = *jobs.first;
  const double now_seconds = now.runs->predicted_seconds;
  const std::int64_t measured_ns = interval_set(jobs.times).length_ns();
  for (const alternative &each : alternatives_to(now)) {
    double seconds = 0;
    try {
      seconds = make_plan(each.problems, *now.model, each.request)->predicted_seconds;
    } catch (const error &) {
      continue;  // the device cannot do that
    }
    if (now_seconds - seconds < min_gain * now_seconds) continue;
    char evidence[400];
    std::snprintf(evidence, sizeof evidence, "%zu job%s of %s took %s, predicted %s each; %s each then",
                  jobs.times.size(), jobs.times.size() == 1 ? "" : "s", shape_text(now).c_str(),
                  ns_text(measured_ns).c_str(), ns_text(static_cast<std::int64_t>(now_seconds * 1e9)).c_str(),
                  ns_text(static_cast<std::int64_t>(seconds * 1e9)).c_str());
    to.push_back({each.title, evidence, (now_seconds - seconds) / now_seconds * double(measured_ns) * 1e-9});
  }
}

}  // namespace

std::vector<advice> advice_by_plan(const recording &from, const history &measured) {
  std::vector<group> groups;
  std::map<std::pair<std::uint32_t, const schedule *>, std::size_t> group_of;
  const auto is_equal = [](const recorded_schedule &x, const recorded_schedule &y) {
    return x.context == y.context && x.request == y.request && x.problems == y.problems &&
           x.runs->strategy == y.runs->strategy;
  };
  for (const recorded_schedule &each : from.schedules) {
    const traced_job *job = measured.job(each.job);
    const bool says_what =
        each.request.layer != layer_kind::own && std::any_of(each.problems.begin(), each.problems.end(), is_known);
    if (!says_what || !job || job->ended_ns < 0) continue;
    const auto [known, is_new] = group_of.emplace(std::pair{each.context, each.runs.get()}, groups.size());
    if (is_new) {
      const auto equal =
          std::find_if(groups.begin(), groups.end(), [&](const group &one) { return is_equal(*one.first, each); });
      known->second = static_cast<std::size_t>(equal - groups.begin());
      if (equal == groups.end() && groups.size() >= most_schedules_examined) {
        group_of.erase(known);
        continue;
      }
      if (equal == groups.end()) groups.push_back({&each, {}});
    }
    groups[known->second].times.push_back({job->started_ns, job->ended_ns});
  }
  std::vector<advice> made;
  for (const group &jobs : groups) add_advice(made, jobs);
  return made;
}

}  // namespace sg::trace
