// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/collective.h>

#include <bit>
#include <string>
#include <vector>

#include "api/entry.hpp"
#include "api/operands/given_operand.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/submit_operands.hpp"
#include "ops/backend_commands.hpp"
#include "ops/reduce.hpp"
#include "plan/layers/all_reduce.hpp"

namespace sg {

namespace {

void check_all_reduce(const context &on, const sg_all_reduce_desc &d, const std::string &name) {
  require_range(d.elements, 0, INT64_MAX / 64, (name + "->elements").c_str());
  if (!is_dtype(d.dtype))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->dtype is %d, which is no type", name.c_str(), int{d.dtype});
  if (size_of(d.dtype) == 1)
    throw error(SG_STATUS_UNSUPPORTED, "@%s->dtype is %s; it must be f64, f32, f16, bf16, c64, c128 or i32",
                name.c_str(), name_of(d.dtype));
  require_range(d.operand_count, 1, SG_MAX_ALL_REDUCE_OPERANDS, (name + "->operand_count").c_str());
  require(d.operands, (name + "->operands").c_str());
  auto wanted = backend_command<sg_backend_reduce>();
  wanted.part_type = d.dtype;
  wanted.out_type = accumulator_of(d.dtype);
  wanted.parts_count = d.operand_count;
  if (!on.on().supports(wanted.header))
    throw error(SG_STATUS_UNSUPPORTED, "device %.64s has no sums of %s", on.on().name().c_str(), name_of(d.dtype));
}

// The device of each vector.
std::vector<device_index> places_of(const operand_set &operands) {
  std::vector<device_index> places;
  for (const operand_set::bound &each : operands.operands()) {
    if (each.space != SG_MEMORY_DEVICE)
      throw error(SG_STATUS_INVALID_ARGUMENT,
                  "@%s->%s (%p) is in %s memory; a vector of an all-reduce is in device memory", each.desc, each.name,
                  each.given, name_of(each.space.kind()));
    places.push_back(each.space.device());
  }
  return places;
}

// Of several devices; 0 for one, or none.
std::uint64_t several_devices(const std::vector<device_index> &places) {
  constexpr std::size_t most = 64;
  std::uint64_t devices = 0;
  for (const device_index each : places) {
    if (number_of(each) >= most)
      throw error(SG_STATUS_UNSUPPORTED, "a vector is on device %zu; an all-reduce is of the first %zu devices",
                  number_of(each), most);
    devices |= std::uint64_t{1} << number_of(each);
  }
  return std::has_single_bit(devices) ? 0 : devices;
}

}  // namespace

void submit(context &on, const sg_all_reduce_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  check_all_reduce(on, d, name);
  operand_set operands(on, order.place_of_absent());
  std::vector<std::string> fields(static_cast<std::size_t>(d.operand_count));
  const bool does_nothing = d.operand_count == 1 || d.elements == 0;
  for (std::size_t i = 0; i < fields.size() && d.elements > 0; ++i) {
    fields[i] = "operands[" + std::to_string(i) + "]";
    const given_operand given = given_values(name, fields[i].c_str(), d.operands[i], d.elements, 1, d.dtype);
    operand vector = stored(given, 1);
    operand_set::rules rules;
    rules.mode = access_mode::read_write;
    operands.add(i, given, vector, rules);
  }
  const std::vector<device_index> places = places_of(operands);
  require_device_of_stream(operands, order);
  plan_request request = usual_request(order);
  request.devices = several_devices(places);
  request.device_count = std::popcount(request.devices);
  submit_operands(on, operands, d, name,
                  {SG_OPERATION_ALL_REDUCE, all_reduce_form(d.dtype, d.elements, places), does_nothing}, request, order,
                  out_job);
}

}  // namespace sg
