// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/resident/resident_search.hpp"

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/gemm/resident/cost.hpp"
#include "plan/gemm/resident/direct.hpp"
#include "plan/gemm/resident/latency_parts.hpp"
#include "plan/gemm/resident/split.hpp"

namespace sg {
namespace {

// A core's command delays the process's exit and the commands queued behind it, so it is kept short.
constexpr double longest_core_command = 0.25;
// A smaller part is not worth occupying another core, which other jobs could use: GEMMs from about 512^3 are split, and
// those that are bound by memory, such as a matrix times a vector, from 16 MB: of either a core does a part in 0.5 ms.
constexpr double least_part_flops = 1.2e8, least_part_bytes = 8e6;
// On streams that share a chip a split must promise at least this gain. Smaller predicted gains do not come true: on an
// H200, GEMMs split over 2 to 16 streams took 0 to 12% longer than unsplit ones, because cuBLAS itself uses idle
// multiprocessors, and unsplit GEMMs follow each other without the host.
constexpr double least_gain_of_streams = 0.4;
// Limits the schedule of a long GEMM.
constexpr double most_pieces = 1 << 15;
// Short commands are made by splitting the depth, not C into blocks below this size.
constexpr std::int64_t least_block = 256;
// A piece of the depth of this length costs nothing extra: libraries process C once for every few hundred of depth
// anyway. An additional block has its rows of A or columns of B packed again: 4096^3 of f64 in halves of 3 pieces of
// the depth each, on two cores, took 0.87 of its time in halves of 5 blocks each (no record is kept).
constexpr std::int64_t least_depth = 1024;

kernel_cost cost_of(const problem &p, const device_model &model) {
  if (!p.no_multiply) return gemm_cost(model, shape_of_whole(p));
  return reduce_cost(model, {p.m, p.n * p.batch, 0, p.c.type, p.c.type, !p.beta_zero});
}

std::int64_t extent(const problem &p, split_kind kind) {
  switch (kind) {
    case split_kind::m: return p.m;
    case split_kind::n: return p.n;
    case split_kind::k: return p.no_multiply ? 0 : p.k;
    case split_kind::batch: return p.batch;
    case split_kind::automatic:
    case split_kind::none: break;
  }
  return 1;
}

class resident_search {
 public:
  resident_search(const problem &p, const plan_terms &terms) : p_(p), terms_(terms), best_(terms.model) {}

  schedule run() {
    const split_kind kind = terms_.request.split;
    const std::int64_t parts = terms_.request.parts;
    if (p_.no_multiply && p_.batch > most_asked_commands)
      best_.offer(scaled_at_once());
    else if (kind == split_kind::none || (kind == split_kind::automatic && parts == 1))
      best_.offer(build_direct(p_));
    else if (kind != split_kind::automatic)
      forced(kind);
    else if (parts > 1)
      any_kind(parts);
    else
      automatic();
    return best_.take();
  }

 private:
  void offer(split_kind kind, std::int64_t parts) {
    switch (kind) {
      case split_kind::m: best_.offer(build_grid_split(p_, {parts, 1, 1}, terms_.lanes)); break;
      case split_kind::n: best_.offer(build_grid_split(p_, {1, parts, 1}, terms_.lanes)); break;
      case split_kind::batch: best_.offer(build_batch_split(p_, parts, terms_.lanes)); break;
      case split_kind::k:
        best_.offer(build_depth_split(p_, parts, terms_.lanes, terms_.model.lanes_are_cores ? terms_.lanes : 1));
        break;
      case split_kind::automatic:
      case split_kind::none: break;
    }
  }

  bool possible(split_kind kind, std::int64_t parts) const {
    if (parts > extent(p_, kind)) return false;
    if (kind == split_kind::k)
      return p_.batch <= most_asked_commands && depth_split_bytes(p_, parts) <= terms_.memory_limit;
    return !p_.no_multiply || kind == split_kind::batch || double(p_.batch) * double(parts) <= double(most_commands);
  }

  // With that many items, C is scaled only if they are contiguous: otherwise each item needs a command.
  schedule scaled_at_once() const {
    if (direct_commands(p_) > 1) refuse_items("scale");
    return build_direct(p_);
  }

  [[noreturn]] void refuse_items(const char *verb) const {
    throw error(SG_STATUS_OUT_OF_MEMORY, "to %s %lld items a schedule would have more than %lld commands", verb,
                static_cast<long long>(p_.batch), static_cast<long long>(most_asked_commands));
  }

  void forced(split_kind kind) {
    const std::int64_t wanted = terms_.request.parts;
    const std::int64_t fewest = wanted > 0 ? wanted : 2, most = wanted > 0 ? wanted : std::max(2, terms_.lanes);
    if (fewest > extent(p_, kind))
      throw error(SG_STATUS_UNSUPPORTED, "cannot split %s = %lld into %lld parts", name_of_split(terms_.request),
                  static_cast<long long>(extent(p_, kind)), static_cast<long long>(fewest));
    if (!possible(kind, fewest) && depth_split_bytes(p_, fewest) <= terms_.memory_limit) refuse_items("split");
    if (!possible(kind, fewest))
      throw error(SG_STATUS_OUT_OF_MEMORY,
                  "a split of k into %lld parts needs %lld bytes of device memory, the limit is %lld",
                  static_cast<long long>(fewest), static_cast<long long>(depth_split_bytes(p_, fewest)),
                  static_cast<long long>(terms_.memory_limit));
    for (std::int64_t parts = fewest; parts <= most && possible(kind, parts); ++parts) offer(kind, parts);
  }

  // The kinds with the squarest parts first: of equally fast ones the first is kept.
  void any_kind(std::int64_t parts) {
    const bool rows_first = p_.m > p_.n;
    for (split_kind kind : {split_kind::batch, rows_first ? split_kind::m : split_kind::n,
                            rows_first ? split_kind::n : split_kind::m, split_kind::k})
      if (possible(kind, parts)) offer(kind, parts);
    if (best_.empty())
      throw error(SG_STATUS_UNSUPPORTED, "no dimension of this problem can be split into %lld parts",
                  static_cast<long long>(parts));
  }

  void automatic() {
    const kernel_cost cost = cost_of(p_, terms_.model);
    if (terms_.model.lanes_are_cores)
      over_cores(cost);
    else
      over_streams(cost);
  }

  void over_streams(const kernel_cost &cost) {
    best_.offer(build_direct(p_));
    // Lanes share the chip: a split gains nothing for a GEMM that fills it, or that completes before the next part is
    // issued.
    const double least = terms_.model.launch_latency + bound_seconds(terms_.model, {&p_, 1});
    if (best_.seconds() <= 1.002 * least || cost.seconds <= terms_.model.launch_gap) return;
    best_.require_margin(least_gain_of_streams);
    for (int parts = 2; parts <= terms_.lanes; ++parts)
      for (split_kind kind : {split_kind::batch, split_kind::n, split_kind::m, split_kind::k})
        if (possible(kind, parts)) offer(kind, parts);
    // A batch does not split its items' depth; a few deep items are faster one by one.
    gemm_shape item = shape_of_whole(p_);
    item.batch = 1;
    if (!p_.no_multiply && p_.batch > terms_.lanes && std::uint64_t(p_.batch) < min_batch_size(terms_.model, item) &&
        possible(split_kind::batch, p_.batch))
      offer(split_kind::batch, p_.batch);
  }

  void over_cores(const kernel_cost &cost) {
    const std::int64_t short_parts = terms_.request.latency ? latency_parts(p_, terms_.lanes) : 1;
    if (short_parts > 1 && cost.seconds / double(short_parts) <= longest_core_command) offer_latency(short_parts);
    if (!best_.empty()) return;
    if (cost.seconds <= longest_core_command)
      best_.offer(build_direct(p_));
    else
      offer_short_commands(cost);
    const double work = std::max(p_.flops() / least_part_flops, bytes_of_operands() / least_part_bytes);
    const std::int64_t worthwhile = p_.no_multiply ? 1 : std::int64_t(std::min(1e9, work));
    const std::int64_t parts = std::min<std::int64_t>(terms_.lanes, worthwhile);
    if (parts < 2 || cost.seconds / double(parts) > longest_core_command) return;
    if (possible(split_kind::batch, parts)) offer(split_kind::batch, parts);
    offer_squarest(parts, 1);
    any_kind_that_fits(parts);
  }

  double bytes_of_operands() const {
    return double(problem::bytes(p_.a, p_.batch)) + double(problem::bytes(p_.b, p_.batch)) +
           double(problem::bytes(p_.c, p_.batch));
  }

  // This number of parts, of a batch or of equal blocks of C with minimal edges; fewer if blocks would become too
  // small.
  void offer_latency(std::int64_t parts) {
    if (p_.batch >= terms_.lanes) return offer(split_kind::batch, std::min(parts, p_.batch));
    const auto most_of = [](std::int64_t side) { return std::max<std::int64_t>(1, side / grain); };
    for (; parts > 1; --parts) {
      grid_split best;
      double shortest = HUGE_VAL;
      for (std::int64_t rows = 1; rows <= parts; ++rows) {
        const std::int64_t cols = parts / rows;
        const double length = double(p_.m) / double(rows) + double(p_.n) / double(cols);
        if (parts % rows != 0 || rows > most_of(p_.m) || cols > most_of(p_.n) || length >= shortest) continue;
        shortest = length;
        best = {rows, cols, 1};
      }
      if (shortest == HUGE_VAL) continue;
      best_.offer(build_grid_split(p_, best, terms_.lanes));
      return;
    }
  }

  void any_kind_that_fits(std::int64_t parts) {
    for (split_kind kind : {split_kind::batch, split_kind::n, split_kind::m, split_kind::k})
      if (possible(kind, parts)) offer(kind, parts);
  }

  // Enough pieces that none exceeds the longest command: first the depth is split, then C into blocks, then the depth
  // again where blocks would become too small.
  void offer_short_commands(const kernel_cost &cost) {
    const auto pieces = std::int64_t(std::min(most_pieces, std::ceil(cost.seconds / longest_core_command)));
    const std::int64_t wanted = round_up(pieces, terms_.lanes);
    if (p_.batch >= wanted) return offer(split_kind::batch, wanted);
    const std::int64_t most_blocks =
        std::max<std::int64_t>(1, p_.m / least_block) * std::max<std::int64_t>(1, p_.n / least_block);
    const bool may_accumulate = !p_.no_multiply && accumulator_of(p_.c.type) == p_.c.type;
    if (may_accumulate) {
      const std::int64_t depths =
          std::min(std::max<std::int64_t>(1, p_.k / least_depth), ceil_div(wanted, terms_.lanes));
      const std::int64_t blocks = std::min(round_up(ceil_div(wanted, depths), terms_.lanes), most_blocks);
      offer_squarest(blocks, std::min(p_.k, ceil_div(wanted, blocks)));
    } else {
      // A GEMM's block has all items of the batch; items are scaled one by one.
      offer_squarest(p_.no_multiply ? ceil_div(wanted, p_.batch) : wanted, 1);
    }
  }

  // The grid of about `blocks` blocks with minimal edges: each block reads its rows of A and columns of B.
  void offer_squarest(std::int64_t blocks, std::int64_t depth_pieces) {
    grid_split best;
    double shortest = HUGE_VAL;
    for (std::int64_t rows = 1; rows <= std::min(blocks, p_.m); ++rows) {
      const std::int64_t cols = std::min(p_.n, ceil_div(blocks, rows));
      // The busiest lane decides: blocks beyond a multiple of the lanes cost another round.
      const double rounds = double(ceil_div(rows * cols, terms_.lanes)) / (double(rows * cols) / terms_.lanes);
      const double length = (double(p_.m) / double(rows) + double(p_.n) / double(cols)) * rounds * rounds;
      if (rows * cols >= std::min(blocks, p_.m * p_.n) && length < shortest) {
        shortest = length;
        best = {rows, cols, depth_pieces};
      }
    }
    best_.offer(build_grid_split(p_, best, terms_.lanes));
  }

  const problem &p_;
  const plan_terms &terms_;
  best_schedule best_;
};

}  // namespace

schedule plan_resident(const problem &p, const plan_terms &terms) { return resident_search(p, terms).run(); }

}  // namespace sg
