// SPDX-License-Identifier: Apache-2.0
#include "api/operations/operations.hpp"

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/gemm/gemm.hpp"
#include "api/submission/cached_submission.hpp"
#include "api/wait.hpp"

namespace sg {

namespace {

// A submission that differs from a recent one in its addresses only is neither checked nor looked up again.
template <sg_operation operation, class Desc>
void submit_or_repeat(context &on, const Desc &given, const char *name, checked_submit &order, sg_job **out_job) {
  if (repeat_submission(on, operation, &given, sizeof given, order, out_job)) return;
  require_reserved_zero(given, name);
  submit(on, given, name, order, out_job);
}

template <sg_operation operation, class Desc>
sg_status submit_desc(sg_context *context, const Desc *desc, const sg_submit *submit, sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const borrowed<sg::context> on(context, object_type::context, "context");
    require(desc, "desc");
    checked_submit order(*on, submit);
    if (desc->struct_size == sizeof *desc) return submit_or_repeat<operation>(*on, *desc, "desc", order, out_job);
    submit_or_repeat<operation>(*on, options_of(desc, "desc"), "desc", order, out_job);
  });
}

// An operation with one descriptor.
template <sg_operation operation, class Desc>
void submit_one(context &on, const sg_operation_desc &given, const char *desc_name, checked_submit &order,
                sg_job **out_job) {
  require(given.desc, desc_name);
  if (given.count != 1) throw error(SG_STATUS_INVALID_ARGUMENT, "@operation->count is %d; it must be 1", given.count);
  submit_or_repeat<operation>(on, options_of(static_cast<const Desc *>(given.desc), desc_name), desc_name, order,
                              out_job);
}

void submit_marker(context &on, const sg_operation_desc &, const char *, checked_submit &order, sg_job **out_job) {
  order.go(on.new_job(), nullptr, 0, out_job);
}

void submit_gemms(context &on, const sg_operation_desc &given, const char *desc_name, checked_submit &order,
                  sg_job **out_job) {
  require(given.desc, desc_name);
  require_range(given.count, 1, 1 << 20, "operation->count");
  submit_group(on, static_cast<const sg_gemm_desc *>(given.desc), given.count, desc_name, order, out_job);
}

void submit_one_copy(context &on, const sg_operation_desc &given, const char *desc_name, checked_submit &order,
                     sg_job **out_job) {
  require(given.desc, desc_name);
  const sg_copy_desc d = options_of(static_cast<const sg_copy_desc *>(given.desc), desc_name);
  submit_copy(on, d.dst, d.dst_pitch, d.src, d.src_pitch, "width", d.width, d.height, order, out_job);
}

#define SG_TABLE_ENTRY(operation, OPERATION, article)                                                            \
  {SG_OPERATION_##OPERATION, article,                                                                            \
   [](context &on, const sg_operation_desc &given, const char *desc_name, checked_submit &order, sg_job **out) { \
     submit_one<SG_OPERATION_##OPERATION, sg_##operation##_desc>(on, given, desc_name, order, out);              \
   }},

constexpr operation_entry table[] = {{SG_OPERATION_MARKER, "a marker", submit_marker},
                                     {SG_OPERATION_GEMM, "a GEMM", submit_gemms},
                                     {SG_OPERATION_COPY, "a copy", submit_one_copy},
                                     SG_EACH_OPERATION(SG_TABLE_ENTRY)};

}  // namespace

const operation_entry &entry_of(sg_operation operation) {
  for (const operation_entry &each : table)
    if (each.operation == operation) return each;
  throw error(SG_STATUS_INVALID_ARGUMENT, "@operation->operation is %d, which is no operation", int{operation});
}

}  // namespace sg

sg_status sg_run_async(sg_context *context, const sg_operation_desc *operation, const sg_submit *submit,
                       sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return sg::guarded([&] {
    const auto on = sg::context_of(context);
    sg::require(operation, "operation");
    const sg_operation_desc given = sg::options_of(operation, "operation");
    sg::checked_submit order(*on, submit);
    sg::entry_of(given.operation).submit(*on, given, "operation->desc", order, out_job);
  });
}

sg_status sg_run(sg_context *context, const sg_operation_desc *operation, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) { return sg_run_async(context, operation, submit, out_job); });
}

sg_status sg_context_supports(sg_context *context, const sg_operation_desc *operation) {
  return sg::guarded([&] {
    const auto on = sg::context_of(context);
    sg::require(operation, "operation");
    const sg_operation_desc given = sg::options_of(operation, "operation");
    std::shared_ptr<const sg::program> unused;
    sg::checked_submit order(*on, nullptr, unused);
    sg::entry_of(given.operation).submit(*on, given, "operation->desc", order, nullptr);
  });
}

// The functions by name.
#define SG_DEFINE_FUNCTIONS(operation, OPERATION, article)                                                          \
  sg_status sg_##operation##_async(sg_context *context, const sg_##operation##_desc *desc, const sg_submit *submit, \
                                   sg_job **out_job) {                                                              \
    return sg::submit_desc<SG_OPERATION_##OPERATION>(context, desc, submit, out_job);                               \
  }                                                                                                                 \
  sg_status sg_##operation(sg_context *context, const sg_##operation##_desc *desc, const sg_submit *submit) {       \
    return sg::submit_and_wait(                                                                                     \
        [&](sg_job **out_job) { return sg_##operation##_async(context, desc, submit, out_job); });                  \
  }
SG_EACH_OPERATION(SG_DEFINE_FUNCTIONS)
