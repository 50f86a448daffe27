// SPDX-License-Identifier: Apache-2.0
#include "run/objects/graph_program.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "ops/custom.hpp"
#include "run/objects/graph_nodes.hpp"
#include "run/order/predecessors.hpp"
#include "run/program/batching.hpp"

namespace sg {

namespace {

// Graphs with more submissions are replayed: their order is not computed.
constexpr std::size_t most_works_of_device = 4096;
// Memory that a graph keeps for the workspaces of its submissions; one that needs more is replayed.
constexpr std::int64_t most_arena_bytes = std::int64_t(1) << 30;
// Ranges of memory that cover all operands of a graph.
constexpr std::size_t most_ranges = 48;

}  // namespace

std::vector<std::vector<std::int32_t>> order_of(const std::vector<submission> &works) {
  std::vector<ordered_submission> ordered;
  ordered.reserve(works.size());
  for (const submission &each : works)
    ordered.push_back({each.tracked ? std::span(each.accesses) : std::span<const access>(), each.stream});
  return predecessors_of(ordered);
}

namespace {

// Submissions that go to the device as one command.
struct step {
  std::vector<std::int32_t> works;
  std::vector<std::int32_t> before;  // steps
};

bool may_join(const submission &x, const submission &y) noexcept {
  return x.program && y.program && x.program->small && y.program->small && x.units == y.units &&
         x.program->in_type == y.program->in_type && x.program->out_type == y.program->out_type &&
         x.program->compute == y.program->compute && x.program->device() == y.program->device();
}

// Of the batchable GEMMs, those to leave unbatched.
std::vector<bool> unbatched_of(const std::vector<submission> &works, const std::vector<std::int32_t> &rank) {
  std::vector<std::size_t> small;
  for (std::size_t i = 0; i < works.size(); ++i)
    if (works[i].program && works[i].program->small && works[i].units == 0) small.push_back(i);
  const auto kind = [&](std::size_t i) {
    const sg::program &program = *works[i].program;
    return std::tuple(rank[i], program.device(), program.in_type, program.out_type, program.compute);
  };
  const auto least = [&](std::size_t i) { return works[i].program->min_batch_size; };
  std::vector<bool> unbatched(works.size());
  for (const std::size_t i : unbatched_items(std::move(small), kind, least)) unbatched[i] = true;
  return unbatched;
}

// Small GEMMs at the same depth of the dependency graph are one step. Steps are in a valid order of execution.
std::vector<step> steps_of(const std::vector<submission> &works, bool batches) {
  const auto before = order_of(works);
  std::vector<std::int32_t> rank(works.size(), 0);
  std::vector<std::vector<std::int32_t>> ends(works.size());  // the step of a submission; of a marker those before it
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
    const auto add_ends = [&](std::vector<std::int32_t> &to) {
      for (const std::int32_t j : before[i])
        for (const std::int32_t each : ends[static_cast<std::size_t>(j)])
          if (std::find(to.begin(), to.end(), each) == to.end()) to.push_back(each);
    };
    if (!works[i].program) {
      add_ends(ends[i]);
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
    ends[i] = {static_cast<std::int32_t>(found - steps.begin())};
    if (found == steps.end()) steps.emplace_back();
    step &joined = steps[static_cast<std::size_t>(ends[i].front())];
    joined.works.push_back(index);
    add_ends(joined.before);
  }
  return steps;
}

footprint range(std::uintptr_t lo, std::uintptr_t hi) noexcept {
  const auto bytes = static_cast<std::int64_t>(hi - lo);
  return {lo, hi, bytes, bytes};
}

// Merges the accesses into few ranges, which may include more memory.
std::vector<access> merged_accesses(const std::vector<submission> &works) {
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
  for (const submission &work : works) {
    count(work.program.get());
    keep(work.kept);
  }
  keep_totals();
}

std::uint64_t graph_program::device_bits_of_all() const noexcept {
  std::uint64_t bits = 0;
  for (const submission &work : works)
    if (work.program) bits |= work.program->device_bits();
  return bits != 0 ? bits : 1;
}

namespace {

// Whether no command waits for the host or moves its memory.
bool runs_on_devices_alone(const schedule &s) noexcept {
  return std::all_of(s.commands.begin(), s.commands.end(), [](const command &c) {
    return c.where.kind == lane_kind::compute || c.where.kind == lane_kind::copy_peer;
  });
}

// Why the submissions cannot be a graph of devices like this one; nullptr: they can.
const char *reason_against(const std::vector<submission> &works, const sg::device &on) noexcept {
  if (!on.ops().graph_create) return "the device has no graphs";
  if (works.size() > most_works_of_device) return "there are too many for a graph of the device";
  const auto calls = [](const submission &work) {
    const auto is_custom = [](const command &c) { return c.is<ops::custom>(); };
    return work.program &&
           std::any_of(work.program->schedule->commands.begin(), work.program->schedule->commands.end(), is_custom);
  };
  if (std::any_of(works.begin(), works.end(), calls)) return "some are custom operations";
  const auto fits = [](const submission &work) {
    if (!work.program) return true;
    // Small GEMMs of one program are faster as the few calls of a replay.
    const bool fits =
        work.program->is_spread() ? runs_on_devices_alone(*work.program->schedule) : work.follows_on_device;
    return fits && !work.partition_stream && work.program->batchable.empty();
  };
  return std::all_of(works.begin(), works.end(), fits) ? nullptr : "some are not on the device alone";
}

std::int64_t bytes_on(const program &what, device_index device) noexcept {
  const auto found = std::find(what.devices.begin(), what.devices.end(), device);
  return found == what.devices.end() ? 0 : what.arenas[std::size_t(found - what.devices.begin())].device;
}

// Which part of a graph's arena on a device each step's program uses. Steps that run one after the other share memory.
struct arena_parts {
  arena_parts(const std::vector<step> &steps, const std::vector<submission> &works, device_index device)
      : offsets(steps.size(), 0) {
    struct part {
      std::size_t user;  // the latest step with it
      std::int64_t offset, bytes;
    };
    std::vector<part> parts;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const submission &work = works[static_cast<std::size_t>(steps[i].works.front())];
      const std::int64_t wanted = bytes_on(*work.program, device);
      if (wanted == 0) continue;
      const std::vector<bool> earlier = before(steps, i);
      auto found =
          std::find_if(parts.begin(), parts.end(), [&](const part &x) { return x.bytes >= wanted && earlier[x.user]; });
      if (found == parts.end()) {
        found = parts.insert(parts.end(), {i, bytes, (wanted + 255) / 256 * 256});
        bytes += found->bytes;
      }
      found->user = i;
      offsets[i] = found->offset;
    }
  }

  std::vector<std::int64_t> offsets;  // by step
  std::int64_t bytes = 0;

 private:
  // The steps after which this one runs.
  static std::vector<bool> before(const std::vector<step> &steps, std::size_t of) {
    std::vector<bool> found(steps.size(), false);
    std::vector<std::int32_t> open = steps[of].before;
    while (!open.empty()) {
      const auto next = static_cast<std::size_t>(open.back());
      open.pop_back();
      if (found[next]) continue;
      found[next] = true;
      open.insert(open.end(), steps[next].before.begin(), steps[next].before.end());
    }
    return found;
  }
};

// What a graph has on a device of the machine.
struct graph_memory {
  arena_parts parts;
  pooled_arena arena;
  const sg::device *on;
};

graph_nodes nodes_of(const std::vector<step> &steps, const std::vector<submission> &works,
                     const std::vector<std::optional<graph_memory>> &memory) {
  graph_nodes nodes;
  std::vector<graph_nodes::indices> ends(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    graph_nodes::indices before;
    for (const std::int32_t earlier : steps[i].before) {
      const graph_nodes::indices &of = ends[static_cast<std::size_t>(earlier)];
      before.insert(before.end(), of.begin(), of.end());
    }
    const submission &first = works[static_cast<std::size_t>(steps[i].works.front())];
    if (steps[i].works.size() == 1) {
      std::vector<graph_place> where(memory.size());
      for (std::size_t d = 0; d < memory.size(); ++d) {
        if (!memory[d]) continue;
        char *const arena = memory[d]->arena.get();
        where[d] = {memory[d]->on, arena ? arena + memory[d]->parts.offsets[i] : nullptr};
      }
      ends[i] = nodes.add_program(first, where, before);
    } else {
      std::vector<const submission *> batch;
      for (const std::int32_t work : steps[i].works) batch.push_back(&works[static_cast<std::size_t>(work)]);
      ends[i] = nodes.add_batch(batch, *memory[number_of(first.program->device())]->on, before);
    }
  }
  return nodes;
}

}  // namespace

void graph_program::put_on(const std::vector<arena_pool *> &memory) {
  std::vector<device_index> devices;
  for (const arena_pool *each : memory)
    if (each) devices.push_back(each->index());
  const sg::device &on = memory[number_of(devices.front())]->on();
  const auto replays = [&](const char *why) {
    if (logs(log_level::info, log_area::fallback))
      log_message(log_level::info, log_area::fallback, "a graph of %zu submissions is replayed one by one: %s",
                  works.size(), why);
  };
  if (const char *why = reason_against(works, on)) return replays(why);
  const std::vector<step> steps = steps_of(works, on.has_batches());
  if (steps.empty()) return;
  std::vector<std::optional<graph_memory>> parts(memory.size());
  std::vector<pooled_arena> arenas;
  for (const device_index each : devices) {
    arena_pool &pool = *memory[number_of(each)];
    arena_parts own(steps, works, each);
    if (own.bytes > most_arena_bytes) return replays("their workspaces would take too much memory at a time");
    try {
      pooled_arena arena(pool, own.bytes);
      parts[number_of(each)].emplace(graph_memory{std::move(own), std::move(arena), &pool.on()});
    } catch (const error &e) {
      return replays(e.what());
    }
  }
  graph_nodes nodes = nodes_of(steps, works, parts);
  const std::vector<sg_backend_node> &all = nodes.all();
  auto ranges = merged_accesses(works);
  sg_backend_graph *made = nullptr;
  if (on.ops().graph_create(on.handle(), all.data(), static_cast<std::int32_t>(all.size()), &made) != SG_STATUS_OK)
    return replays(on.ops().last_message(on.handle()));
  try {
    launch = program::of_command(ops::graph{made, commands}, "graph of the device", std::move(devices));
    for (auto &each : parts)
      if (each) arenas.push_back(std::move(each->arena));
    device = std::make_unique<const device_graph>(on, made, std::move(arenas));
  } catch (...) {
    on.ops().graph_destroy(made);
    throw;
  }
  accesses_of_all = std::move(ranges);
}

}  // namespace sg
