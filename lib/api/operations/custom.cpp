// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/custom.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/application_function.hpp"
#include "api/submission/layer.hpp"
#include "api/submission/submission.hpp"
#include "api/wait.hpp"

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

// A descriptor's operands, checked.
struct custom_operands {
  std::vector<footprint> bytes;
  std::vector<access> accesses;
  problem_binding where;
  command_form form;
};

access_mode mode_of(sg_access access) noexcept {
  return access == SG_ACCESS_READ    ? access_mode::read
         : access == SG_ACCESS_WRITE ? access_mode::write
                                     : access_mode::read_write;
}

void add(custom_operands &to, const context &on, const sg_custom_operand &given, const std::string &name) {
  constexpr std::uint64_t most_bytes = static_cast<std::uint64_t>(INT64_MAX) / 4;
  require(given.data, (name + ".data").c_str());
  if (given.bytes == 0 || given.bytes > most_bytes)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s.bytes is %llu; it must be from 1 to 2^61 - 1", name.c_str(),
                static_cast<unsigned long long>(given.bytes));
  require_range(given.access, SG_ACCESS_READ, SG_ACCESS_READ_WRITE, (name + ".access").c_str());
  if (given.reserved != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s.reserved is %u; it must be 0", name.c_str(), given.reserved);
  const memory_space space = on.memory().usable(given.data, given.bytes, (name + ".data").c_str());
  if (space != SG_MEMORY_DEVICE && space != SG_MEMORY_PINNED)
    throw error(SG_STATUS_UNSUPPORTED, "%s.data (%p) is in %s memory; device %.64s needs it in device or pinned memory",
                name.c_str(), given.data, space == SG_MEMORY_PEER ? "peer" : "pageable", on.on().name().c_str());
  const auto bytes = static_cast<std::int64_t>(given.bytes);
  const footprint range = footprint::rectangle(given.data, bytes, 1, bytes);
  for (std::size_t i = 0; i < to.bytes.size(); ++i)
    if (overlap(range, to.bytes[i]) && (given.access != SG_ACCESS_READ || to.accesses[i].writes))
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s.data (%p) overlaps operand %zu of the operation, and one is written",
                  name.c_str(), given.data, i);
  const auto index = static_cast<std::int32_t>(to.bytes.size());
  to.bytes.push_back(range);
  to.accesses.push_back({range, given.access != SG_ACCESS_READ, given.access != SG_ACCESS_WRITE});
  to.where.operands[index].base = static_cast<char *>(given.data);
  operand stored;
  stored.rows = stored.ld = bytes, stored.cols = 1;
  stored.type = SG_DTYPE_I8, stored.space = space;
  to.form.parameters[static_cast<std::size_t>(index)] = {true, share::whole, stored, bytes};
}

}  // namespace

void submit_custom(context &on, const sg_custom_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  if (!d.function) throw error(SG_STATUS_INVALID_ARGUMENT, "%s->function is NULL", name);
  require_range(d.operand_count, 1, SG_MAX_CUSTOM_OPERANDS, (std::string(name) + "->operand_count").c_str());
  require(d.operands, (std::string(name) + "->operands").c_str());
  require_range(d.compute_units, -1, INT32_MAX, (std::string(name) + "->compute_units").c_str());
  if (!(d.seconds >= 0 && d.seconds <= 1e6))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->seconds is %g; it must be from 0 to 1e6", name, d.seconds);
  custom_operands own;
  ops::custom what{call_function, reinterpret_cast<void (*)()>(d.function), d.user, d.seconds, d.compute_units, {}};
  for (std::int32_t i = 0; i < d.operand_count; ++i)
    what.modes[static_cast<std::size_t>(i)] = mode_of(d.operands[i].access);
  own.form.what = what, own.form.strategy = "custom", own.form.splits = command_form::split::none;
  for (std::int32_t i = 0; i < d.operand_count; ++i)
    add(own, on, d.operands[i], std::string(name) + "->operands[" + std::to_string(i) + "]");
  const form_of<command_form> planned(own.form);
  if (order.records()) order.note(SG_OPERATION_CUSTOM, planned, name);
  ref<job> work = on.new_job();
  work->give_schedule(program_for(on, planned, order));
  work->operands.first = own.where;
  order.go(std::move(work), own.accesses.data(), own.accesses.size(), out_job);
}

}  // namespace sg

sg_status sg_custom_async(sg_context *context, const sg_custom_desc *desc, const sg_submit *submit, sg_job **out_job) {
  return sg::submit_desc<sg_custom_desc>(context, desc, SG_CUSTOM_DESC_INIT, submit, out_job, sg::submit_custom);
}

sg_status sg_custom(sg_context *context, const sg_custom_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) { return sg_custom_async(context, desc, submit, out_job); });
}
