// SPDX-License-Identifier: Apache-2.0
// Large GEMMs of types for tensor cores whose sizes and addresses do not suit these: a GPU computes them from padded
// copies. Devices that copy nothing run smaller ones.
#include <cstdlib>
#include <cstring>

#include "gemm_case.hpp"

namespace sg::test {
namespace {

class padding : public conformance {
 protected:
  // The emulated GPU is an eighth of a real one, and copies smaller ones.
  gemm_spec shape(sg_dtype in, sg_dtype out, sg_compute compute = SG_COMPUTE_EXACT) const {
    const bool is_gpu = GetParam().rfind("cuda", 0) == 0;
    const char *plugin = std::getenv("SG_PLUGIN_PATH");
    const bool is_emulated = plugin != nullptr && std::strstr(plugin, "/emulated/") != nullptr;
    gemm_spec made{.types = {in, out}, .m = 45, .n = 43, .k = 51, .compute = compute};
    if (is_gpu) made.m = 613, made.n = 605, made.k = 779;
    if (is_gpu && !is_emulated) made.m = 1203, made.n = 1205, made.k = 1211;
    return made;
  }
  void expect_right(const gemm_spec &wanted) {
    gemm_case x(wanted, 5);
    ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK) << wanted.text();
    x.check(wanted.m > 600 ? 13 : 1);  // rows at every place in a pack of eight
  }

  stream stream_{dev()};
};

constexpr sg_transpose both[] = {SG_TRANSPOSE_N, SG_TRANSPOSE_T};

TEST_P(padding, every_transpose) {
  for (const sg_transpose op_a : both)
    for (const sg_transpose op_b : both) {
      gemm_spec wanted =
          shape(op_a == op_b ? SG_DTYPE_F16 : SG_DTYPE_BF16, op_a == op_b ? SG_DTYPE_F16 : SG_DTYPE_BF16);
      wanted.op_a = op_a, wanted.op_b = op_b;
      expect_right(wanted);
      if (HasFatalFailure()) return;
    }
}

// One of the sizes alone.
TEST_P(padding, one_size) {
  for (std::int64_t gemm_spec::*odd : {&gemm_spec::m, &gemm_spec::n, &gemm_spec::k}) {
    gemm_spec wanted = shape(SG_DTYPE_BF16, SG_DTYPE_F32);
    for (std::int64_t gemm_spec::*size : {&gemm_spec::m, &gemm_spec::n, &gemm_spec::k})
      if (size != odd) wanted.*size = wanted.*size / 8 * 8 + 8;
    wanted.op_b = odd == &gemm_spec::n ? SG_TRANSPOSE_T : SG_TRANSPOSE_N;
    expect_right(wanted);
    if (HasFatalFailure()) return;
  }
}

// C is read, the sums end in an activation, and what is between the columns stays.
TEST_P(padding, scalars_bias_activation_and_gaps) {
  for (const sg_dtype out : {SG_DTYPE_F16, SG_DTYPE_F32}) {
    gemm_spec wanted = shape(SG_DTYPE_F16, out);
    wanted.gap = 3;
    wanted.alpha = {-1.5, 0}, wanted.beta = {0.5, 0};
    wanted.bias = out == SG_DTYPE_F16 ? bias_form::per_row : bias_form::per_column;
    wanted.activation = SG_ACTIVATION_RELU;
    expect_right(wanted);
    if (HasFatalFailure()) return;
  }
}

TEST_P(padding, items_of_a_batch) {
  for (const batching form : {batching::shared_a, batching::scattered}) {
    gemm_spec wanted = shape(SG_DTYPE_BF16, SG_DTYPE_BF16);
    wanted.batch = 2;
    wanted.form = form;
    wanted.bias = bias_form::own_per_row;
    expect_right(wanted);
    if (HasFatalFailure()) return;
  }
}

TEST_P(padding, f32_of_less_accuracy) {
  for (const sg_compute compute : {SG_COMPUTE_TF32, SG_COMPUTE_3XTF32}) {
    gemm_spec wanted = shape(SG_DTYPE_F32, SG_DTYPE_F32, compute);
    wanted.op_a = SG_TRANSPOSE_T;
    if (compute != SG_COMPUTE_TF32 && wanted.m > 600) wanted.m = 1029, wanted.n = 1027, wanted.k = 1031;
    expect_right(wanted);
    if (HasFatalFailure()) return;
  }
}

SG_CONFORMANCE(padding);

}  // namespace
}  // namespace sg::test
