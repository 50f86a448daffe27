// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/custom.h>

#include <cstdint>
#include <string>
#include <vector>

#include "api/application_function.hpp"
#include "api/operands/operand_bytes.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/submit_operands.hpp"
#include "api/wait.hpp"
#include "plan/form/command_form.hpp"

namespace sg {

namespace {

static_assert(SG_MAX_CUSTOM_OPERANDS == ops::custom::most_operands);

// Calls the application's function.
sg_status call_function(const ops::custom &what, void *native_stream, void *const *operands, std::int32_t operand_count,
                        char *message) noexcept {
  char reason[SG_BACKEND_MESSAGE_SIZE - 100] = "";
  const sg_custom_call call{sizeof call, native_stream, operands, operand_count, 0, reason, sizeof reason};
  const function_of_job running;
  return call_application(
      "the function of a custom operation", message, SG_BACKEND_MESSAGE_SIZE,
      [&] { return reinterpret_cast<sg_custom_function>(what.function)(&call, what.user); },
      [&] {
        reason[sizeof reason - 1] = '\0';
        return reason;
      });
}

access_mode mode_of(sg_access access) noexcept {
  return access == SG_ACCESS_READ    ? access_mode::read
         : access == SG_ACCESS_WRITE ? access_mode::write
                                     : access_mode::read_write;
}

// Adds an operand. `field`: "operands[i].data", which outlives the set.
void add(operand_set &to, command_form &form, const sg_custom_operand &given, const char *desc, const char *field) {
  constexpr std::uint64_t most_bytes = static_cast<std::uint64_t>(INT64_MAX) / 4;
  const context &on = to.on();
  const std::string data = std::string(desc) + "->" + field;
  const std::string name = data.substr(0, data.rfind('.'));
  require_address(given.data, data.c_str());
  if (given.bytes == 0 || given.bytes > most_bytes)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s.bytes is %llu; it must be from 1 to 2^61 - 1", name.c_str(),
                static_cast<unsigned long long>(given.bytes));
  require_range(given.access, SG_ACCESS_READ, SG_ACCESS_READ_WRITE, (name + ".access").c_str());
  require_reserved_zero(given, name.c_str(), ".");
  const memory_space space = on.memory().usable(given.data, given.bytes, data.c_str());
  const auto bytes = static_cast<std::int64_t>(given.bytes);
  const std::size_t index = to.operands().size();
  for (std::size_t i = 0; i < index; ++i)
    if (const access &other = to.accesses()[i]; (given.access != SG_ACCESS_READ || other.writes) &&
                                                overlap(footprint::rectangle(given.data, bytes, 1, bytes), other.bytes))
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s (%p) overlaps operand %zu of the operation, and one is written",
                  data.c_str(), given.data, i);
  operand_set::bound one;
  one.desc = desc, one.name = field;
  one.space = space;
  one.parameter = index;
  one.given = given.data;
  one.bytes = bytes;
  to.add_bytes(one, {given.data, bytes}, mode_of(given.access));
  to.where().set_parameter(index).base = static_cast<char *>(given.data);
  operand stored;
  stored.rows = stored.ld = bytes, stored.cols = 1;
  stored.type = SG_DTYPE_I8, stored.space = space;
  form.parameters[index] = {true, share::some, stored};
}

}  // namespace

void submit(context &on, const sg_custom_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  if (!d.function) throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->function is @NULL", name);
  require_range(d.operand_count, 1, SG_MAX_CUSTOM_OPERANDS, (std::string(name) + "->operand_count").c_str());
  require(d.operands, (std::string(name) + "->operands").c_str());
  require_range(d.compute_units, -1, INT32_MAX, (std::string(name) + "->compute_units").c_str());
  if (!(d.seconds >= 0 && d.seconds <= 1e6))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->seconds is %g; it must be from 0 to 1e6", name, d.seconds);
  ops::custom what{call_function, reinterpret_cast<void (*)()>(d.function), d.user, d.seconds, d.compute_units, {}};
  for (std::int32_t i = 0; i < d.operand_count; ++i)
    what.modes[static_cast<std::size_t>(i)] = mode_of(d.operands[i].access);
  command_form form;
  form.what = what, form.strategy = "custom", form.splits = command_form::split::none;
  operand_set operands(on, order.place_of_absent());
  std::vector<std::string> fields;
  fields.reserve(static_cast<std::size_t>(d.operand_count));
  for (std::int32_t i = 0; i < d.operand_count; ++i) {
    fields.push_back("operands[" + std::to_string(i) + "].data");
    add(operands, form, d.operands[i], name, fields.back().c_str());
  }
  // An update names the recorded function and user, which the graph has already taken.
  const bool takes = !order.makes_plan() && !order.updates();
  const auto kept = takes ? user_release::make(on, d.release, d.user) : nullptr;
  order.keep(kept);
  submit_operands(on, operands, d, name, {SG_OPERATION_CUSTOM, form_of<command_form>(form)}, usual_request(order),
                  order, out_job);
  if (kept) kept->accept();
}

}  // namespace sg
