// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/resident/grouped.hpp"

#include <algorithm>
#include <numeric>

#include "base/checked.hpp"
#include "plan/gemm/resident/cost.hpp"
#include "plan/gemm/resident/direct.hpp"
#include "plan/schedule/lanes.hpp"

namespace sg {
namespace {

// Schedules of a chain that own memory at a time: enough to overlap the end of one with the next ones.
constexpr std::int64_t most_generations = 4;

double cost_of(const device_model &model, const problem &p) {
  if (p.no_multiply) return reduce_seconds(model, {p.m, p.n * p.batch, 0, p.c.type, p.c.type, !p.beta_zero});
  return gemm_seconds(model, shape_of_whole(p));
}

class chain_builder {
 public:
  chain_builder(std::span<const problem> problems, std::span<const schedule *const> parts, std::int64_t memory_limit,
                int lanes)
      : parts_(parts), lanes_(lanes), builder_(problems), ends_(parts.size()) {
    std::int64_t workers = 0;
    for (const schedule *part : parts) {
      workers = std::max<std::int64_t>(workers, part->lanes[int(lane_kind::staging)]);
      device_stride_ = std::max(device_stride_, round_up(part->device_bytes, 256));
      staging_stride_ = std::max(staging_stride_, round_up(part->staging_bytes, 256));
    }
    generations_ = device_stride_ > 0 ? std::clamp<std::int64_t>(memory_limit / device_stride_, 1, most_generations)
                                      : most_generations;
    builder_.use_workers(workers);
  }

  schedule run() {
    for (std::size_t g = 0; g < parts_.size(); ++g) append(g);
    return builder_.finish("grouped x" + std::to_string(parts_.size()));
  }

 private:
  void append(std::size_t g) {
    const schedule &part = *parts_[g];
    const std::int64_t generation = std::int64_t(g) % generations_;
    std::vector<std::int32_t> buffers;
    for (std::size_t b = 0; b < part.buffers.size(); ++b) {
      buffer own = part.buffers[b];
      if (own.kind == buffer_kind::parameter) {
        const auto whole = std::int32_t(operands_of_problem * g) + own.parameter;
        buffers.push_back(own.parameter == std::int32_t(b) ? whole
                                                           : builder_.add_alias(whole, own.type, own.item_stride));
        continue;
      }
      own.offset += generation * (own.kind == buffer_kind::device ? device_stride_ : staging_stride_);
      buffers.push_back(builder_.add_placed_buffer(own));
    }
    const lane_numbers numbers(part);
    std::vector<bool> begun(std::size_t(numbers.count()), false);
    std::vector<std::uint32_t> renumbered;
    for (const command &old : part.commands) {
      command c = old;
      c.group = std::int32_t(g);
      if (c.where.kind == lane_kind::compute) c.where.index = std::uint16_t((c.where.index + g) % std::size_t(lanes_));
      for (view &v : c.views)
        if (v.exists()) v.buffer = buffers[v.buffer];
      std::vector<std::uint32_t> waits;
      for (std::uint32_t w = 0; w < old.waits; ++w) waits.push_back(renumbered[part.waits[old.first_wait + w]]);
      // The first command of each lane in memory that an earlier problem used waits for that problem's completion on
      // all lanes; on an unordered lane, so does each command without dependencies in its own problem.
      const std::size_t number = std::size_t(numbers.of(old.where));
      const bool enters = in_order(old.where) ? !begun[number] : old.waits == 0;
      if (enters && g >= std::size_t(generations_))
        waits.insert(waits.end(), ends_[g - generations_].begin(), ends_[g - generations_].end());
      begun[number] = true;
      renumbered.push_back(builder_.add(c, waits));
      // Dependencies of this command complete before it, and packs before the copy that follows.
      std::erase_if(ends_[g], [&](std::uint32_t end) {
        return !in_order(builder_.command_at(end).where) && std::find(waits.begin(), waits.end(), end) != waits.end();
      });
      if (!c.is<ops::pack>()) builder_.merge(ends_[g], renumbered.back());
    }
    // A problem without commands passes the waits on to the next problem in the same memory; further ones are added
    // later.
    if (part.commands.empty() && g >= std::size_t(generations_))
      for (std::uint32_t end : ends_[g - generations_]) builder_.merge(ends_[g], end);
  }

  std::span<const schedule *const> parts_;
  int lanes_;
  gemm_builder builder_;
  std::vector<std::vector<std::uint32_t>>
      ends_;  // of each problem: its last command on each lane, and its commands without dependents
  std::int64_t device_stride_ = 0, staging_stride_ = 0, generations_ = 1;
};

}  // namespace

schedule build_grouped(std::span<const problem> problems, const device_model &model, int lanes) {
  std::vector<double> costs;
  for (const problem &p : problems) costs.push_back(cost_of(model, p));
  std::vector<std::size_t> order(problems.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  // The longest first, each on the lane that is free first.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  gemm_builder builder(problems);
  std::vector<double> load(std::size_t(lanes), 0);
  for (std::size_t g : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += costs[g];
    add_direct(builder, std::int32_t(g), std::uint16_t(least - load.begin()));
  }
  return builder.finish("grouped x" + std::to_string(problems.size()));
}

schedule chain(std::span<const problem> problems, std::span<const schedule *const> parts, std::int64_t memory_limit,
               int lanes) {
  return chain_builder(problems, parts, memory_limit, lanes).run();
}

}  // namespace sg
