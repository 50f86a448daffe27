// SPDX-License-Identifier: Apache-2.0
#include "api/submission/layer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/entry.hpp"
#include "api/operands/operand_bytes.hpp"

namespace sg {

bool layer::entry::meets(const entry &other) const noexcept {
  return std::ranges::any_of(accesses, [&](const access &mine) {
    return std::ranges::any_of(other.accesses, [&](const access &its) { return overlap(mine.bytes, its.bytes); });
  });
}

namespace {

// Whether an operand is the result itself.
bool is_same_matrix(const layer &x, std::size_t index) {
  const auto same = [](const access &one, const access &other) { return one.bytes == other.bytes; };
  const operand &stored = x.form.parameters[index].stored, &result = x.form.result();
  return std::ranges::equal(x.operands[index].accesses, x.operands[0].accesses, same) && stored.rows == result.rows &&
         (stored.ld == result.ld || stored.cols <= 1);
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

void add_operand(layer &to, const given_operand &given, std::size_t view, share needed) {
  to.operands[view].given = &given;
  command_form::parameter &made = to.form.parameters[view];
  made.given = true;
  made.needed = needed;
  made.stored = stored(given, 1);
  made.bytes = total_bytes(made.stored, 1, "the size of an operand");
}

void bind_layer(layer &x, const context &on, const sg_backend_command &wanted, const char *operation) {
  const layer::entry &result = x.operands[0];
  const operand &stored_result = x.form.result();
  x.is_empty = stored_result.rows == 0 || stored_result.cols == 0;
  if (x.is_empty) return;
  if (!on.on().supports(wanted))
    throw error(SG_STATUS_UNSUPPORTED, "device %.64s has no %s of %s", on.on().name().c_str(), operation,
                name_of(stored_result.type));
  std::vector<std::vector<char *>> unused;
  const auto bind = [&](std::size_t i) {
    layer::entry &each = x.operands[i];
    if (!each.given) return;
    operand &stored = x.form.parameters[i].stored;
    stored.space = SG_MEMORY_DEVICE;
    operand_address &at = x.where.first.operands[i];
    bind_operand(*each.given, stored, 1, true, at, unused);
    require_in_device_memory(on, *each.given, stored, at);
    each_footprint(each.set.run > 0 ? each.set : bytes_of(stored, 1, at.base), [&](const footprint &bytes, bool exact) {
      each.accesses.push_back({bytes, i == 0, i != 0, exact});
    });
  };
  for (std::size_t i = 1; i < x.operands.size(); ++i) bind(i);
  bind(0);
  for (std::size_t i = 1; i < x.operands.size(); ++i) {
    const layer::entry &each = x.operands[i];
    if (!each.given || !each.meets(result)) continue;
    const given_operand &given = *each.given, &written = *result.given;
    const bool may_be_result = x.allows_in_place && x.form.parameters[i].needed == share::same;
    if (!may_be_result || !is_same_matrix(x, i))
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s (%p) and %s->%s (%p) overlap%s", given.desc, given.name,
                  given.view.data, given.desc, written.name, written.view.data,
                  may_be_result ? "; they must be separate, or the same matrix with the same ld" : "");
    x.in_place = true;
  }
}

std::shared_ptr<const program> program_for(context &on, const form &what, const checked_submit &order) {
  plan_request request;
  request.streams = order.most_lanes();
  return on.plan_for(what, request);
}

void submit_layer(context &on, layer &x, sg_operation operation, const char *desc, checked_submit &order,
                  sg_job **out_job) {
  const form_of<command_form> what(x.form);
  if (order.records()) order.note(operation, what, desc);
  const auto plan = x.is_empty ? nullptr : program_for(on, what, order);
  ref<job> work = on.new_job();
  if (!plan) return order.go(std::move(work), nullptr, 0, out_job);
  const layer::entry &result = x.operands[0];
  std::vector<access> accesses = result.accesses;
  for (access &each : accesses) each.reads = x.in_place;
  for (std::size_t i = 1; i < x.operands.size(); ++i) {
    const layer::entry &each = x.operands[i];
    if (each.given && !each.meets(result)) accesses.insert(accesses.end(), each.accesses.begin(), each.accesses.end());
  }
  work->give_schedule(plan);
  work->operands.first = x.where.first;
  order.go(std::move(work), accesses.data(), accesses.size(), out_job);
}

}  // namespace sg
