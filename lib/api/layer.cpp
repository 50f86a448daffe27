// SPDX-License-Identifier: Apache-2.0
#include "api/layer.hpp"

#include <algorithm>
#include <concepts>
#include <memory>
#include <utility>
#include <variant>

#include "api/entry.hpp"
#include "api/operand_bytes.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"
#include "plan/schedule/hazard.hpp"

namespace sg {

namespace {

constexpr operand_name all_operands[] = {operand_name::a, operand_name::b, operand_name::c, operand_name::bias};
// On cores, work on fewer bytes of the result is not split: waking another worker costs about as much.
constexpr std::int64_t least_bytes_of_part = 256 << 10;

// Part `index` of `count` of the command, between columns or rows of the result as stored.
command part_of(const command &whole, const layer &x, bool by_columns, std::int64_t index, std::int64_t count) {
  const operand &c = x.at(operand_name::c).stored;
  const std::int64_t size = by_columns ? c.cols : c.rows;
  const std::int64_t first = size * index / count, end = size * (index + 1) / count;
  command part = whole;
  for (const layer::entry &each : x.operands) {
    if (!each.given || each.needed == share::whole) continue;
    accessed_view &v = part.views[each.view];
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

std::int64_t parts_of(const layer &x, const device_model &model, std::int32_t most_lanes, bool &by_columns) {
  const operand &c = x.at(operand_name::c).stored;
  by_columns = x.splits_both ? c.cols >= c.rows || c.cols >= model.compute_lanes : x.splits_columns;
  if (!model.lanes_are_cores) return 1;
  const std::int64_t lanes = most_lanes > 0 ? std::min(most_lanes, model.compute_lanes) : model.compute_lanes;
  const std::int64_t bytes = c.rows * c.cols * size_of(c.type);
  return std::max<std::int64_t>(1, std::min({lanes, by_columns ? c.cols : c.rows, bytes / least_bytes_of_part}));
}

std::shared_ptr<schedule> schedule_of(const layer &x, const device_model &model, std::int32_t most_lanes) {
  auto made = std::make_shared<schedule>();
  made->strategy = x.strategy;
  const operand &c = x.at(operand_name::c).stored;
  command whole;
  whole.what = x.what;
  for (const operand_name name : all_operands) {
    const layer::entry &each = x.at(name);
    const int slot = static_cast<int>(name);
    made->buffers.push_back({buffer_kind::operand, each.stored.type, false, SG_MEMORY_DEVICE, 0, 0,
                             each.given ? total_bytes(each.stored, 1, "an operand") : 0});
    if (!each.given) continue;
    whole.views[each.view] = view{slot, 0, 1, 0, each.stored.ld, each.stored.rows, each.stored.cols};
  }
  set_access_modes(whole);
  bool by_columns = true;
  const std::int64_t parts = parts_of(x, model, most_lanes, by_columns);
  for (std::int64_t i = 0; i < parts; ++i) {
    made->commands.push_back(parts == 1 ? whole : part_of(whole, x, by_columns, i, parts));
    const command_cost cost = operation_of(whole).cost(model, made->buffers, made->commands.back());
    made->predicted_seconds = std::max(made->predicted_seconds, cost.delay_idle + cost.amount);
  }
  if (parts > 1) made->strategy += " x" + std::to_string(parts);
  made->flops = double(c.rows) * double(c.cols) * x.flops_per_element;
  made->bound_seconds = bytes_moved(made->buffers, whole) / model.memory_rate;
  made->lanes[int(lane_kind::compute)] = static_cast<std::uint16_t>(parts);
  return made;
}

bool same_views(const schedule &was, const schedule &now) {
  if (was.commands.size() != now.commands.size()) return false;
  for (std::size_t i = 0; i < now.commands.size(); ++i)
    for (std::size_t v = 0; v < command::most_views; ++v) {
      const view &a = was.commands[i].views[v], &b = now.commands[i].views[v];
      if (a.buffer != b.buffer || a.item != b.item || a.items != b.items || a.offset != b.offset || a.ld != b.ld ||
          a.rows != b.rows || a.cols != b.cols)
        return false;
      if (b.exists() && type_of(was.buffers, a) != type_of(now.buffers, b)) return false;
    }
  return true;
}

// Whether it is one operation with equal options. Those of a GEMM follow from its views.
bool same_options(const command &was, const command &now) {
  return std::visit(
      [&was]<class Operation>(const Operation &what) {
        const auto *other = was.as<Operation>();
        if constexpr (std::equality_comparable<Operation>)
          return other != nullptr && *other == what;
        else
          return other != nullptr;
      },
      now.what);
}

}  // namespace

void require_as_recorded(const checked_submit &order, const schedule *now, const char *desc) {
  const schedule *was = order.recorded_schedule();
  const char *what = nullptr;
  if (!was != !now || (now && !same_views(*was, *now)))
    what = "shape, type, leading dimensions or vectors";
  else if (now && !std::equal(was->commands.begin(), was->commands.end(), now->commands.begin(), same_options))
    what = "options or layout";
  if (what)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s differs from submission %d of the graph in its %s", desc,
                order.recorded_index(), what);
}

bool layer::entry::meets(const entry &other) const noexcept {
  return std::ranges::any_of(accesses, [&](const access &mine) {
    return std::ranges::any_of(other.accesses, [&](const access &its) { return overlap(mine.bytes, its.bytes); });
  });
}

namespace {

bool is_same_matrix(const layer::entry &x, const layer::entry &result) {
  const auto same = [](const access &one, const access &other) { return one.bytes == other.bytes; };
  return std::ranges::equal(x.accesses, result.accesses, same) && x.stored.rows == result.stored.rows &&
         (x.stored.ld == result.stored.ld || x.stored.cols <= 1);
}

}  // namespace

void require_layer_type(const given_operand &result) {
  const sg_dtype type = result.view.dtype;
  if (!is_layer_dtype(type))
    throw error(SG_STATUS_UNSUPPORTED, "%s->%s.dtype is %s; it must be f64, f32, f16 or bf16", result.desc, result.name,
                name_of(type));
}

void require_in_device_memory(const context &on, const given_operand &x, const operand &stored,
                              const operand_address &at) {
  const memory_space space = space_of(on.memory(), x, stored, 1, at, SG_MEMORY_AUTO, true);
  if (space != SG_MEMORY_DEVICE)
    throw error(SG_STATUS_UNSUPPORTED, "%s->%s is in %s memory; device %.64s needs it in device memory", x.desc, x.name,
                space == SG_MEMORY_PEER ? "peer" : "host", on.on().name().c_str());
}

void require_row_major(const given_operand &x) {
  if (x.view.layout != SG_LAYOUT_ROW_MAJOR)
    throw error(SG_STATUS_UNSUPPORTED, "%s->%s.layout is %d; it must be row major", x.desc, x.name, int{x.view.layout});
}

void require_extent(const given_operand &x, std::int64_t rows, std::int64_t cols, const given_operand &result) {
  using long_long = long long;
  if (x.view.rows == rows && x.view.cols == cols) return;
  throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s is %lld x %lld; with %s->%s of %lld x %lld it must be %lld x %lld",
              x.desc, x.name, long_long{x.view.rows}, long_long{x.view.cols}, x.desc, result.name,
              long_long{result.view.rows}, long_long{result.view.cols}, long_long{rows}, long_long{cols});
}

void require_same_form(const given_operand &x, const given_operand &result) {
  const sg_matrix &a = x.view, &c = result.view;
  require_extent(x, c.rows, c.cols, result);
  if (a.dtype != c.dtype)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s.dtype is %s and %s->%s.dtype is %s; they must be equal", x.desc,
                x.name, name_of(a.dtype), x.desc, result.name, name_of(c.dtype));
  if (a.layout != c.layout)
    throw error(SG_STATUS_UNSUPPORTED, "%s->%s.layout is %d and %s->%s.layout is %d; they must be equal", x.desc,
                x.name, int{a.layout}, x.desc, result.name, int{c.layout});
}

void require_reserved_zero(std::uint32_t reserved, const char *desc) {
  if (reserved != 0) throw error(SG_STATUS_INVALID_ARGUMENT, "%s->reserved is %u; it must be 0", desc, reserved);
}

void add_operand(layer &to, operand_name name, const given_operand &given, std::size_t view, share needed) {
  layer::entry &made = to.at(name);
  made.given = &given;
  made.view = view;
  made.needed = needed;
  made.stored = stored(given, 1);
  total_bytes(made.stored, 1, "the size of an operand");
}

void bind_layer(layer &x, const context &on, const sg_backend_command &wanted, const char *operation) {
  layer::entry &result = x.at(operand_name::c);
  x.is_empty = result.stored.rows == 0 || result.stored.cols == 0;
  if (x.is_empty) return;
  const char *device = on.on().name().c_str();
  if (!on.on().supports(wanted))
    throw error(SG_STATUS_UNSUPPORTED, "device %.64s has no %s of %s", device, operation, name_of(result.stored.type));
  std::vector<std::vector<char *>> unused;
  for (const operand_name name : all_operands) {
    layer::entry &each = x.at(name);
    if (!each.given) continue;
    const given_operand &given = *each.given;
    operand_address &at = x.where.operands[static_cast<int>(name)];
    bind_operand(given, each.stored, 1, true, at, unused);
    require_in_device_memory(on, given, each.stored, at);
    const strided_bytes set = each.set.run > 0 ? each.set : bytes_of(each.stored, 1, at.base);
    const bool writes = name == operand_name::c;
    each_footprint(set, [&](const footprint &bytes, bool exact) {
      each.accesses.push_back({bytes, writes, !writes, exact});
    });
  }
  for (const operand_name name : all_operands) {
    const layer::entry &each = x.at(name);
    if (!each.given || name == operand_name::c || !each.meets(result)) continue;
    const given_operand &given = *each.given, &written = *result.given;
    const bool may_be_result = x.allows_in_place && each.needed == share::same;
    if (!may_be_result || !is_same_matrix(each, result))
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s (%p) and %s->%s (%p) overlap%s", given.desc, given.name,
                  given.view.data, given.desc, written.name, written.view.data,
                  may_be_result ? "; they must be separate, or the same matrix with the same ld" : "");
    x.in_place = true;
  }
}

void submit_layer(context &on, layer &x, sg_operation operation, const char *desc, checked_submit &order,
                  sg_job **out_job) {
  if (order.records()) order.note_operation(operation);
  const std::shared_ptr<schedule> plan = x.is_empty ? nullptr : schedule_of(x, on.model(), order.most_lanes());
  if (order.updates()) require_as_recorded(order, plan.get(), desc);
  ref<job> work = on.new_job();
  if (!plan) return order.go(std::move(work), nullptr, 0, out_job);
  if (on.checks_hazards()) require_no_hazards(*plan);
  const layer::entry &result = x.at(operand_name::c);
  std::vector<access> accesses = result.accesses;
  for (access &each : accesses) each.reads = x.in_place;
  for (const operand_name name : all_operands) {
    const layer::entry &each = x.at(name);
    if (each.given && name != operand_name::c && !each.meets(result))
      accesses.insert(accesses.end(), each.accesses.begin(), each.accesses.end());
  }
  work->give_schedule(std::make_shared<program>(std::vector<problem>(1), plan_request(), plan, on.model()));
  work->operands.first = x.where;
  order.go(std::move(work), accesses.data(), accesses.size(), out_job);
}

}  // namespace sg
