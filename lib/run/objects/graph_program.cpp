// SPDX-License-Identifier: Apache-2.0
#include "run/objects/graph_program.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "ops/backend_commands.hpp"
#include "run/program/batching.hpp"

namespace sg {

namespace {

// Graphs with more submissions are replayed: their order is not computed.
constexpr std::size_t most_works_of_device = 4096;
// Ranges of memory that cover all operands of a graph.
constexpr std::size_t most_ranges = 48;

bool conflict(const submission &earlier, const submission &later) noexcept {
  if (!earlier.tracked || !later.tracked) return false;
  for (const access &x : earlier.accesses)
    for (const access &y : later.accesses)
      if ((x.writes || y.writes) && overlap(x.bytes, y.bytes)) return true;
  return false;
}

}  // namespace

std::vector<std::vector<std::int32_t>> order_of(const std::vector<submission> &works) {
  const std::size_t count = works.size();
  std::vector<std::vector<bool>> after(count);  // transitively
  std::vector<std::vector<std::int32_t>> before(count);
  for (std::size_t i = 0; i < count; ++i) {
    after[i].resize(i);
    bool stream_found = works[i].stream < 0;
    for (std::size_t j = i; j-- > 0;) {
      const bool same_stream = !stream_found && works[j].stream == works[i].stream;
      stream_found = stream_found || same_stream;
      if (after[i][j] || !(same_stream || conflict(works[j], works[i]))) continue;
      before[i].push_back(static_cast<std::int32_t>(j));
      after[i][j] = true;
      for (std::size_t k = 0; k < j; ++k)
        if (after[j][k]) after[i][k] = true;
    }
  }
  return before;
}

namespace {

// Submissions that go to the device as one command.
struct step {
  std::vector<std::int32_t> works;
  std::vector<std::int32_t> before;  // steps
};

bool may_join(const submission &x, const submission &y) noexcept {
  return x.kind == work_kind::schedule && y.kind == work_kind::schedule && x.program->small && y.program->small &&
         x.units == y.units && x.program->in_type == y.program->in_type && x.program->out_type == y.program->out_type &&
         x.program->compute == y.program->compute;
}

// Of the batchable GEMMs, those to leave unbatched.
std::vector<bool> unbatched_of(const std::vector<submission> &works, const std::vector<std::int32_t> &rank) {
  std::vector<std::size_t> small;
  for (std::size_t i = 0; i < works.size(); ++i)
    if (works[i].kind == work_kind::schedule && works[i].program->small && works[i].units == 0) small.push_back(i);
  const auto kind = [&](std::size_t i) {
    const sg::program &program = *works[i].program;
    return std::tuple(rank[i], program.in_type, program.out_type, program.compute);
  };
  const auto least = [&](std::size_t i) { return works[i].program->min_batch_size; };
  std::vector<bool> unbatched(works.size());
  for (const std::size_t i : unbatched_items(std::move(small), kind, least)) unbatched[i] = true;
  return unbatched;
}

// Small GEMMs at the same depth of the dependency graph are one step. Steps are in a valid order of execution.
std::vector<step> steps_of(const std::vector<submission> &works, bool batches) {
  const auto before = order_of(works);
  std::vector<std::int32_t> rank(works.size(), 0), step_of(works.size());
  std::vector<std::int32_t> by_rank(works.size());
  for (std::size_t i = 0; i < works.size(); ++i) {
    by_rank[i] = static_cast<std::int32_t>(i);
    for (const std::int32_t j : before[i]) rank[i] = std::max(rank[i], rank[static_cast<std::size_t>(j)] + 1);
  }
  std::stable_sort(by_rank.begin(), by_rank.end(), [&](std::int32_t x, std::int32_t y) {
    return rank[static_cast<std::size_t>(x)] < rank[static_cast<std::size_t>(y)];
  });
  const std::vector<bool> unbatched = unbatched_of(works, rank);
  std::vector<step> steps;
  std::size_t first_of_rank = 0;
  std::int32_t present = 0;
  for (const std::int32_t index : by_rank) {
    const auto i = static_cast<std::size_t>(index);
    if (works[i].kind == work_kind::marker) {
      step_of[i] = -1;
      continue;
    }
    if (rank[i] != present) {
      present = rank[i];
      first_of_rank = steps.size();
    }
    const auto found =
        std::find_if(steps.begin() + static_cast<std::ptrdiff_t>(first_of_rank), steps.end(), [&](const step &s) {
          const auto first = static_cast<std::size_t>(s.works.front());
          return batches && !unbatched[i] && !unbatched[first] && may_join(works[first], works[i]);
        });
    step_of[i] = static_cast<std::int32_t>(found - steps.begin());
    if (found == steps.end()) steps.emplace_back();
    step &joined = steps[static_cast<std::size_t>(step_of[i])];
    joined.works.push_back(index);
    for (const std::int32_t j : before[i]) {
      const std::int32_t other = step_of[static_cast<std::size_t>(j)];
      if (other >= 0 && std::find(joined.before.begin(), joined.before.end(), other) == joined.before.end())
        joined.before.push_back(other);
    }
  }
  return steps;
}

footprint range(std::uintptr_t lo, std::uintptr_t hi) noexcept {
  const auto bytes = static_cast<std::int64_t>(hi - lo);
  return {lo, hi, bytes, bytes};
}

// Merges the accesses into few ranges, which may include more memory.
std::vector<access> in_few_ranges(const std::vector<submission> &works) {
  std::vector<access> result;
  for (const bool writes : {false, true}) {
    std::vector<footprint> all;
    for (const submission &work : works)
      for (const access &a : work.accesses)
        if (writes ? a.writes : a.reads) all.push_back(a.bytes);
    std::sort(all.begin(), all.end(), [](const footprint &x, const footprint &y) { return x.lo < y.lo; });
    for (std::uintptr_t gap = 0;; gap = gap * 4 + 4096) {
      std::vector<footprint> joined;
      for (const footprint &x : all) {
        if (!joined.empty() && x.lo <= joined.back().hi + gap)
          joined.back() = range(joined.back().lo, std::max(joined.back().hi, x.hi));
        else
          joined.push_back(range(x.lo, x.hi));
      }
      all = std::move(joined);
      if (all.size() <= most_ranges) break;
    }
    for (const footprint &x : all) result.push_back({x, writes, !writes, false});
  }
  return result;
}

}  // namespace

graph_program::graph_program(std::vector<submission> recorded) : works(std::move(recorded)) {
  auto alone = std::make_shared<recorded_graph>();
  alone->commands = static_cast<std::int32_t>(works.size());
  for (const submission &work : works) {
    if (work.kind == work_kind::copy) {
      const bool to_device = work.copy.dst_space.kind == SG_MEMORY_DEVICE;
      const bool from_device = work.copy.src_space.kind == SG_MEMORY_DEVICE;
      const auto bytes = static_cast<std::uint64_t>(work.copy.width) * static_cast<std::uint64_t>(work.copy.height);
      if (to_device != from_device) (to_device ? alone->bytes_in : alone->bytes_out) += bytes;
    } else if (work.program) {
      alone->flops += work.program->schedule->flops;
      alone->bytes_in += static_cast<std::uint64_t>(work.program->schedule->bytes_in);
      alone->bytes_out += static_cast<std::uint64_t>(work.program->schedule->bytes_out);
    }
  }
  commands = alone->commands;
  flops = alone->flops;
  bytes_in = alone->bytes_in;
  bytes_out = alone->bytes_out;
  totals = std::move(alone);
}

void graph_program::put_on(const sg::device &on) {
  const bool takes = on.ops().graph_create && works.size() <= most_works_of_device &&
                     std::all_of(works.begin(), works.end(), [](const submission &work) {
                       if (work.kind == work_kind::marker) return true;
                       return work.follows_on_device && !work.partition_stream &&
                              (!work.program || work.program->schedule->commands[0].is<ops::gemm>());
                     });
  if (!takes) {
    if (logs(log_level::info, log_area::fallback))
      log_message(log_level::info, log_area::fallback, "a graph of %zu submissions is replayed one by one: %s",
                  works.size(),
                  !on.ops().graph_create                ? "the device has no graphs"
                  : works.size() > most_works_of_device ? "there are too many for a graph of the device"
                                                        : "some are not one command on the device");
    return;
  }
  const std::vector<step> steps = steps_of(works, on.has_batches());
  if (steps.empty()) return;
  std::vector<std::vector<sg_backend_gemm>> gemms(steps.size());
  std::vector<std::vector<const sg_backend_command *>> calls(steps.size());
  std::vector<pointer_scratch> pointers(steps.size());
  std::vector<sg_backend_node> nodes(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    sg_backend_node &node = nodes[i];
    node.before = steps[i].before.data();
    node.before_count = static_cast<std::int32_t>(steps[i].before.size());
    const submission &first = works[static_cast<std::size_t>(steps[i].works.front())];
    if (first.kind == work_kind::copy) {
      calls[i].push_back(&first.copy.header);
      node.commands = calls[i].data();
      node.command_count = 1;
      continue;
    }
    for (const std::int32_t index : steps[i].works) {
      const submission &work = works[static_cast<std::size_t>(index)];
      const schedule &s = *work.program->schedule;
      gemms[i].push_back(lower_gemm(s.buffers, s.commands[0], work.operands, pointers[i]));
      gemms[i].back().compute_units = work.units;
    }
    for (const sg_backend_gemm &each : gemms[i]) calls[i].push_back(&each.header);
    node.commands = calls[i].data();
    node.command_count = static_cast<std::int32_t>(calls[i].size());
  }
  auto ranges = in_few_ranges(works);
  sg_backend_graph *made = nullptr;
  if (on.ops().graph_create(on.handle(), nodes.data(), static_cast<std::int32_t>(nodes.size()), &made) !=
      SG_STATUS_OK) {
    if (logs(log_level::info, log_area::fallback))
      log_message(log_level::info, log_area::fallback,
                  "a graph of %zu submissions is replayed one by one: %s refused it: %s", works.size(),
                  on.name().c_str(), on.ops().last_message(on.handle()));
    return;
  }
  try {
    device = std::make_unique<const device_graph>(on, made);
  } catch (...) {
    on.ops().graph_destroy(made);
    throw;
  }
  accesses = std::move(ranges);
}

}  // namespace sg
