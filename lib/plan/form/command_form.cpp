// SPDX-License-Identifier: Apache-2.0
#include "plan/form/command_form.hpp"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <variant>

#include "base/error.hpp"
#include "ops/operation.hpp"
#include "plan/form/tiled_plan.hpp"
#include "plan/form/tiled_steps.hpp"
#include "plan/form/triangle_parts.hpp"
#include "plan/schedule/schedule_builder.hpp"

namespace sg {

namespace {

// On cores, work on fewer bytes of an operand is not split: waking another worker costs about as much.
constexpr std::int64_t least_bytes_of_share = 256 << 10;
// Narrower GEMMs beside a triangle's blocks are slow.
constexpr std::int64_t least_columns_of_triangle = 16;

double elements_of(const operand &x) noexcept { return double(x.rows) * double(x.cols); }

bool is_split(const command_form &f, const command_form::parameter &x) noexcept {
  if (f.splits == command_form::split::triangle) return true;  // with the rows and columns of the result
  return x.needed == share::same || x.needed == share::transposed;
}

// The result, or an operand that is split with the result and larger.
const operand &largest(const command_form &f, double (*size)(const operand &)) {
  const operand *found = &f.result();
  for (const command_form::parameter &each : f.parameters)
    if (each.given && is_split(f, each) && size(each.stored) > size(*found)) found = &each.stored;
  return *found;
}

// Part `index` of `count` of the command, between columns or rows of the result as stored.
command part_of(const command &whole, const command_form &f, bool by_columns, std::int64_t index, std::int64_t count) {
  const std::int64_t size = by_columns ? f.result().cols : f.result().rows;
  const std::int64_t first = size * index / count, end = size * (index + 1) / count;
  command part = whole;
  for (std::size_t i = 0; i < f.parameters.size(); ++i) {
    const command_form::parameter &each = f.parameters[i];
    if (!each.given || !is_split(f, each)) continue;
    accessed_view &v = part.views[i];
    const bool columns = by_columns != (each.needed == share::transposed);
    v.offset = first * (columns ? v.ld : 1) * size_of(each.stored.type);
    (columns ? v.cols : v.rows) = end - first;
  }
  const auto begin = [first](auto &what) {
    if constexpr (requires { what.begin_at(first); }) what.begin_at(first);
  };
  std::visit(begin, part.what);
  part.where = lane(lane_kind::compute, static_cast<std::uint16_t>(index));
  return part;
}

std::int64_t parts_of(const command_form &f, const plan_terms &terms, bool &by_columns) {
  const operand &c = f.result();
  by_columns = f.splits == command_form::split::either ? c.cols >= c.rows || c.cols >= terms.model.compute_lanes
                                                       : f.splits != command_form::split::rows;
  if (!terms.model.lanes_are_cores || f.splits == command_form::split::none) return 1;
  const auto most = std::int64_t(bytes_of(largest(f, bytes_of)) / double(least_bytes_of_share));
  const std::int64_t least = f.splits == command_form::split::triangle ? least_columns_of_triangle : 1;
  return std::max<std::int64_t>(1, std::min({std::int64_t{terms.lanes}, (by_columns ? c.cols : c.rows) / least, most}));
}

// The command of a form whose buffers have these indices.
command command_of(const command_form &f, const std::array<std::int32_t, command::most_views> &buffers) {
  command whole;
  whole.what = f.what;
  for (std::size_t i = 0; i < f.parameters.size(); ++i) {
    const operand &x = f.parameters[i].stored;
    if (f.parameters[i].given) whole.views[i] = view{buffers[i], 0, 1, 0, x.ld, x.rows, x.cols};
  }
  set_access_modes(whole);
  return whole;
}

command_form transposition(const operand &from, const operand &to) {
  command_form f;
  f.what = ops::convert{SG_TRANSPOSE_T};
  f.splits = command_form::split::either;
  f.parameters[ops::convert::c] = {true, share::same, to};
  f.parameters[ops::convert::a] = {true, share::transposed, from};
  return f;
}

// The schedule of a form: transpositions of what the command reads, the command, transpositions of what it writes.
class command_plan {
 public:
  command_plan(const command_form &f, const plan_terms &terms) : terms_(terms), direct_(f) {
    std::array<std::int32_t, command::most_views> stored{};
    for (std::size_t i = 0; i < f.parameters.size(); ++i) {
      const operand &x = f.parameters[i].stored;
      buffer made{buffer_kind::parameter, x.type, false, SG_MEMORY_DEVICE, 0, 0, 0, static_cast<std::int32_t>(i)};
      if (f.parameters[i].given) made.space = x.space, made.bytes = reach_of(x);
      stored[i] = builder_.add_placed_buffer(made);
    }
    auto taken = stored;
    for (std::size_t i = 0; i < f.parameters.size(); ++i) {
      if (!f.parameters[i].transposed) continue;
      operand &x = direct_.parameters[i].stored;
      std::swap(x.rows, x.cols);
      x.ld = x.rows;
      taken[i] = builder_.add_device_buffer(x.type, reach_of(x));
    }
    const command whole = command_of(direct_, taken);
    std::vector<std::uint32_t> before, after;
    for (std::size_t i = 0; i < f.parameters.size(); ++i)
      if (f.parameters[i].transposed && reads(whole.views[i].mode))
        add(transposition(f.parameters[i].stored, direct_.parameters[i].stored), {taken[i], stored[i]}, {}, before);
    parts_ = add(direct_, taken, before, after);
    std::vector<std::uint32_t> last;
    for (std::size_t i = 0; i < f.parameters.size(); ++i)
      if (f.parameters[i].transposed && writes(whole.views[i].mode))
        add(transposition(direct_.parameters[i].stored, f.parameters[i].stored), {stored[i], taken[i]}, after, last);
  }

  schedule finish() {
    schedule made = builder_.finish(direct_.strategy);
    if (made.device_bytes > terms_.memory_limit)
      throw error(SG_STATUS_OUT_OF_MEMORY,
                  "the transposed operands need %lld bytes of device memory; the limit is %lld",
                  static_cast<long long>(made.device_bytes), static_cast<long long>(terms_.memory_limit));
    if (parts_ > 1) made.strategy += " x" + std::to_string(parts_);
    if (made.device_bytes > 0 || has_steps_) return made;  // several steps, which are simulated
    for (const command &c : made.commands) {
      const command_cost cost = operation_of(c).cost(terms_.model, made.buffers, c);
      made.predicted_seconds = std::max(made.predicted_seconds, cost.delay_idle + cost.amount);
    }
    return made;
  }

 private:
  // Adds a form's command, or its parts; returns their number.
  std::int64_t add(const command_form &f, const std::array<std::int32_t, command::most_views> &buffers,
                   const std::vector<std::uint32_t> &waits, std::vector<std::uint32_t> &added) {
    const command whole = command_of(f, buffers);
    bool by_columns = true;
    const std::int64_t parts = parts_of(f, terms_, by_columns);
    if (parts > 1 && f.splits == command_form::split::triangle) {
      has_steps_ = true;
      const auto each = [&](const command &part) { added.push_back(builder_.add(part, waits)); };
      for (std::int64_t i = 0; i < parts; ++i) add_triangle_part(whole, f.result().type, i, parts, each);
      return parts;
    }
    for (std::int64_t i = 0; i < parts; ++i)
      added.push_back(builder_.add(parts == 1 ? whole : part_of(whole, f, by_columns, i, parts), waits));
    return parts;
  }

  const plan_terms &terms_;
  command_form direct_;  // with the operands that the command takes
  schedule_builder builder_;
  std::int64_t parts_ = 1;
  bool has_steps_ = false;  // a part is several commands
};

}  // namespace

access_mode command_form::mode_of(std::size_t view) const noexcept {
  command whole;
  whole.what = what;
  return operation_of(whole).access(whole, view);
}

bool command_form::operator==(const command_form &other) const noexcept {
  const auto same = [&]<class Operation>(const Operation &mine) {
    if constexpr (std::equality_comparable<Operation>)
      return mine == std::get<Operation>(other.what);
    else
      return false;  // part of larger forms only
  };
  return what.index() == other.what.index() && splits == other.splits && parameters == other.parameters &&
         std::visit(same, what);
}

void visit_operands(command_form &f, const operand_visitor &visit) {
  const command whole = command_of(f, {});
  const bool takes_pinned = whole.is<ops::custom>();
  for (std::size_t i = 0; i < f.parameters.size(); ++i) {
    operand &x = f.parameters[i].stored;
    const bool as_it_is = !f.parameters[i].given || (takes_pinned && x.space == SG_MEMORY_PINNED);
    if (!as_it_is)
      visit({static_cast<std::int32_t>(i),
             x.type,
             whole.views[i].mode,
             x.rows,
             {{{x.cols, x.ld, &x.ld}, {}, {}}},
             f.parameters[i].accessed},
            x.space);
  }
}

schedule plan_of(const command_form &f, const plan_terms &terms) {
  schedule made = command_plan(f, terms).finish();
  made.flops = double(f.result().rows) * double(f.result().cols) * f.flops_per_element;
  made.bound_seconds = accessed_bytes(f) / terms.model.memory_rate;
  return made;
}

schedule plan_in_parts(const command_form &f, const plan_terms &terms, const std::function<schedule()> &whole) {
  return has_tiles(f) ? plan_in_tiles(f, terms, whole) : whole();
}

double accessed_bytes(const command_form &f) noexcept {
  double bytes = 0;
  for (const command_form::parameter &each : f.parameters) {
    if (!each.given) continue;
    const double elements = elements_of(each.stored) / (each.accessed == stored_part::all ? 1 : 2);
    bytes += (each.needed == share::some ? std::min(elements, elements_of(f.result())) : elements) *
             double(size_of(each.stored.type));
  }
  return bytes;
}

std::uint64_t hash_of(const command_form &f) noexcept {
  hasher mixed;
  mixed << static_cast<std::int64_t>(f.what.index());
  for (const command_form::parameter &each : f.parameters)
    if (each.given) mixed << each.stored;
  return mixed.value();
}

std::string description_of(const command_form &f) {
  const operand &shown = largest(f, elements_of);
  return std::string(f.strategy) + " of " + std::to_string(shown.rows) + " x " + std::to_string(shown.cols) + ", " +
         name_of(f.result().type);
}

}  // namespace sg
