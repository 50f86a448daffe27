// SPDX-License-Identifier: Apache-2.0
#include "api/operations/operations.hpp"

#include "api/context_of.hpp"
#include "api/entry.hpp"

namespace sg {

namespace {

template <class Desc>
const Desc defaults;
template <>
const sg_axpby_desc defaults<sg_axpby_desc> = SG_AXPBY_DESC_INIT;
template <>
const sg_elementwise_desc defaults<sg_elementwise_desc> = SG_ELEMENTWISE_DESC_INIT;
template <>
const sg_softmax_desc defaults<sg_softmax_desc> = SG_SOFTMAX_DESC_INIT;
template <>
const sg_norm_desc defaults<sg_norm_desc> = SG_NORM_DESC_INIT;
template <>
const sg_dequantize_desc defaults<sg_dequantize_desc> = SG_DEQUANTIZE_DESC_INIT;
template <>
const sg_rotary_desc defaults<sg_rotary_desc> = SG_ROTARY_DESC_INIT;
template <>
const sg_linear_backward_desc defaults<sg_linear_backward_desc> = SG_LINEAR_BACKWARD_DESC_INIT;
template <>
const sg_attention_desc defaults<sg_attention_desc> = SG_ATTENTION_DESC_INIT;
template <>
const sg_convert_desc defaults<sg_convert_desc> = SG_CONVERT_DESC_INIT;
template <>
const sg_gather_desc defaults<sg_gather_desc> = SG_GATHER_DESC_INIT;
template <>
const sg_conv2d_desc defaults<sg_conv2d_desc> = SG_CONV2D_DESC_INIT;
template <>
const sg_conv2d_backward_desc defaults<sg_conv2d_backward_desc> = SG_CONV2D_BACKWARD_DESC_INIT;
template <>
const sg_im2col_desc defaults<sg_im2col_desc> = SG_IM2COL_DESC_INIT;
template <>
const sg_col2im_desc defaults<sg_col2im_desc> = SG_COL2IM_DESC_INIT;
template <>
const sg_recurrent_desc defaults<sg_recurrent_desc> = SG_RECURRENT_DESC_INIT;
template <>
const sg_recurrent_backward_desc defaults<sg_recurrent_backward_desc> = SG_RECURRENT_BACKWARD_DESC_INIT;
template <>
const sg_attention_backward_desc defaults<sg_attention_backward_desc> = SG_ATTENTION_BACKWARD_DESC_INIT;
template <>
const sg_custom_desc defaults<sg_custom_desc> = SG_CUSTOM_DESC_INIT;

// An operation with one descriptor and the default values of its fields.
template <class Desc, sg_operation operation,
          void (*submit)(context &, const Desc &, const char *, checked_submit &, sg_job **)>
constexpr operation_entry one(const char *name) {
  return {
      operation, name,
      [](context &on, const sg_operation_desc &given, const char *desc_name, checked_submit &order, sg_job **out_job) {
        require(given.desc, desc_name);
        if (given.count != 1)
          throw error(SG_STATUS_INVALID_ARGUMENT, "operation->count is %d; it must be 1", given.count);
        submit(on, options_of(static_cast<const Desc *>(given.desc), defaults<Desc>, desc_name), desc_name, order,
               out_job);
      }};
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
  const sg_copy_desc d = options_of(static_cast<const sg_copy_desc *>(given.desc), SG_COPY_DESC_INIT, desc_name);
  submit_copy(on, d.dst, d.dst_pitch, d.src, d.src_pitch, "width", d.width, d.height, order, out_job);
}

constexpr operation_entry table[] = {
    {SG_OPERATION_MARKER, "a marker", submit_marker},
    {SG_OPERATION_GEMM, "a GEMM", submit_gemms},
    {SG_OPERATION_COPY, "a copy", submit_one_copy},
    one<sg_axpby_desc, SG_OPERATION_AXPBY, submit_axpby>("a scale-and-add"),
    one<sg_elementwise_desc, SG_OPERATION_ELEMENTWISE, submit_elementwise>("an elementwise function"),
    one<sg_softmax_desc, SG_OPERATION_SOFTMAX, submit_softmax>("a softmax"),
    one<sg_norm_desc, SG_OPERATION_NORM, submit_norm>("a norm"),
    one<sg_dequantize_desc, SG_OPERATION_DEQUANTIZE, submit_dequantize>("a dequantization"),
    one<sg_rotary_desc, SG_OPERATION_ROTARY, submit_rotary>("a rotary embedding"),
    one<sg_linear_backward_desc, SG_OPERATION_LINEAR_BACKWARD, submit_linear_backward>(
        "the gradients of a linear layer"),
    one<sg_attention_desc, SG_OPERATION_ATTENTION, submit_attention>("an attention"),
    one<sg_convert_desc, SG_OPERATION_CONVERT, submit_convert>("a conversion"),
    one<sg_gather_desc, SG_OPERATION_GATHER, submit_gather>("a gather"),
    one<sg_conv2d_desc, SG_OPERATION_CONV2D, submit_conv2d>("a convolution"),
    one<sg_conv2d_backward_desc, SG_OPERATION_CONV2D_BACKWARD, submit_conv2d_backward>(
        "the gradients of a convolution"),
    one<sg_im2col_desc, SG_OPERATION_IM2COL, submit_im2col>("an im2col"),
    one<sg_col2im_desc, SG_OPERATION_COL2IM, submit_col2im>("a col2im"),
    one<sg_recurrent_desc, SG_OPERATION_RECURRENT, submit_recurrent>("a recurrent layer"),
    one<sg_recurrent_backward_desc, SG_OPERATION_RECURRENT_BACKWARD, submit_recurrent_backward>(
        "the gradients of a recurrent layer"),
    one<sg_attention_backward_desc, SG_OPERATION_ATTENTION_BACKWARD, submit_attention_backward>(
        "the gradients of an attention"),
    one<sg_custom_desc, SG_OPERATION_CUSTOM, submit_custom>("a custom operation"),
};

}  // namespace

const operation_entry &entry_of(sg_operation operation) {
  for (const operation_entry &each : table)
    if (each.operation == operation) return each;
  throw error(SG_STATUS_INVALID_ARGUMENT, "operation->operation is %d, which is no operation", int{operation});
}

}  // namespace sg

sg_status sg_operation_async(sg_context *context, const sg_operation_desc *operation, const sg_submit *submit,
                             sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return sg::guarded([&] {
    const auto on = sg::context_of(context);
    sg::require(operation, "operation");
    const sg_operation_desc given = sg::options_of(operation, SG_OPERATION_DESC_INIT, "operation");
    sg::checked_submit order(*on, submit);
    sg::entry_of(given.operation).submit(*on, given, "operation->desc", order, out_job);
  });
}
