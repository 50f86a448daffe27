// SPDX-License-Identifier: Apache-2.0
// Each wrong field of a GEMM descriptor, of submission options, and of plan options.
#include <limits>

#include "support/gemm_plan.h"
#include "support/wrong_calls.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t huge = std::int64_t{1} << 62;

class bad_gemm : public bad_input {
 protected:
  // A valid descriptor with one wrong field, through every function that takes one.
  void check_desc(const char *what, sg_status expected, std::vector<const char *> words,
                  const std::function<void(sg_gemm_desc &)> &spoil) {
    sg_gemm_desc desc = good();
    ASSERT_OK(sg_gemm(context_, &desc,
                      nullptr));  // must be detected although an equal valid descriptor has just been accepted
    spoil(desc);
    const std::vector<double> before(c_, c_ + 12);
    check({{what, expected, words,
            nulls<sg_job>([&](sg_job **out) { return sg_gemm_async(context_, &desc, nullptr, out); })},
           {what, expected, words, [&] { return sg_gemm(context_, &desc, nullptr); }},
           {what, expected, words,
            nulls<sg_job>([&](sg_job **out) { return sg_gemm_grouped_async(context_, &desc, 1, nullptr, out); })}});
    EXPECT_EQ(before, std::vector<double>(c_, c_ + 12)) << what << ": C was touched";
  }
  void check_submit(const char *what, sg_status expected, std::vector<const char *> words,
                    const std::function<void(sg_submit &)> &spoil) {
    sg_submit submit = SG_SUBMIT_INIT;
    spoil(submit);
    const sg_gemm_desc desc = good();
    check({{what, expected, words,
            nulls<sg_job>([&](sg_job **out) { return sg_gemm_async(context_, &desc, &submit, out); })},
           {what, expected, words, [&] { return sg_copy(context_, a_, b_, 8, &submit); }},
           {what, expected, words, nulls<sg_job>([&](sg_job **out) {
              return sg_dgemm_async(context_, SG_LAYOUT_ROW_MAJOR, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 2, 3, 4, 1, a_, 4,
                                    b_, 3, 0, c_, 3, &submit, out);
            })}});
  }
  void check_plan(const char *what, sg_status expected, std::vector<const char *> words,
                  const std::function<void(sg_plan_options &)> &spoil) {
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    spoil(options);
    const sg_gemm_desc desc = good();
    sg_submit submit = SG_SUBMIT_INIT;
    submit.plan = &options;
    check({{what, expected, words,
            nulls<sg_job>([&](sg_job **out) { return sg_gemm_async(context_, &desc, &submit, out); })},
           {what, expected, words,
            nulls<sg_plan>([&](sg_plan **out) { return create_gemm_plan(context_, &desc, &options, out); })}});
  }
};

TEST_P(bad_gemm, descriptors) {
  check({{"no desc", argument, {"desc"}, nulls<sg_job>([&](sg_job **out) {
            return sg_gemm_async(context_, nullptr, nullptr, out);
          })},
         {"no desc", argument, {"desc"}, [&] { return sg_gemm(context_, nullptr, nullptr); }},
         {"no descs", argument, {"descs"}, nulls<sg_job>([&](sg_job **o) {
            return sg_gemm_grouped_async(context_, nullptr, 1, nullptr, o);
          })},
         {"no desc", argument, {"desc"}, nulls<sg_plan>([&](sg_plan **out) {
            return create_gemm_plan(context_, nullptr, nullptr, out);
          })},
         {"no desc", argument, {"desc"}, nulls<sg_job>([&](sg_job **out) {
            return run_gemm_plan(plan_, nullptr, nullptr, out);
          })}});
  const sg_gemm_desc desc = good();
  for (const std::int32_t count : {0, -4})
    check({{"count", argument, {"count"}, nulls<sg_job>([&](sg_job **o) {
              return sg_gemm_grouped_async(context_, &desc, count, nullptr, o);
            })}});

  using d = sg_gemm_desc &;
  check_desc("struct_size", argument, {"struct_size"}, [](d x) { x.struct_size = 0; });
  check_desc("a.data", argument, {"a.data"}, [](d x) { x.a.data = nullptr; });
  check_desc("b.data", argument, {"b.data"}, [](d x) { x.b.data = nullptr; });
  check_desc("c.data", argument, {"c.data"}, [](d x) { x.c.data = nullptr; });
  check_desc("a.rows", argument, {"->a", "-1"}, [](d x) { x.a.rows = -1; });
  check_desc("a.cols", argument, {"->a", "-2"}, [](d x) { x.a.cols = -2; });
  check_desc("b.rows", argument, {"->b", "-3"}, [](d x) { x.b.rows = -3; });
  check_desc("c.cols", argument, {"->c", "-4"}, [](d x) { x.c.cols = -4; });
  check_desc("m", argument, {"2", "5"}, [](d x) { x.c.rows = 5; });
  check_desc("n", argument, {"3", "9"}, [](d x) { x.c.cols = 9; });
  check_desc("k", argument, {"4", "7"}, [](d x) { x.b.rows = 7; });
  check_desc("the op changes the sizes", argument, {}, [](d x) { x.op_a = SG_TRANSPOSE_T; });
  check_desc("a.ld", argument, {"a.ld", "3"}, [](d x) { x.a.ld = 3; });
  check_desc("b.ld", argument, {"b.ld", "-3"}, [](d x) { x.b.ld = -3; });
  check_desc("c.ld", argument, {"c.ld", "2"}, [](d x) { x.c.ld = 2; });
  check_desc("a.ld by columns", argument, {"a.ld", "1"}, [](d x) { x.a.layout = SG_LAYOUT_COLUMN_MAJOR, x.a.ld = 1; });
  check_desc("a.dtype", argument, {"a.dtype", "0"}, [](d x) { x.a.dtype = static_cast<sg_dtype>(0); });
  check_desc("b.dtype", argument, {"b.dtype", "99"}, [](d x) { x.b.dtype = static_cast<sg_dtype>(99); });
  check_desc("c.dtype", argument, {"c.dtype", "-1"}, [](d x) { x.c.dtype = static_cast<sg_dtype>(-1); });
  check_desc("a.layout", argument, {"a.layout", "2"}, [](d x) { x.a.layout = static_cast<sg_layout>(2); });
  check_desc("c.layout", argument, {"c.layout", "-1"}, [](d x) { x.c.layout = static_cast<sg_layout>(-1); });
  check_desc("op_a", argument, {"op_a", "3"}, [](d x) { x.op_a = static_cast<sg_transpose>(3); });
  check_desc("op_b", argument, {"op_b", "-1"}, [](d x) { x.op_b = static_cast<sg_transpose>(-1); });
  check_desc("compute", argument, {"compute", "6"}, [](d x) { x.compute = static_cast<sg_compute>(6); });
  check_desc("reserved", argument, {"reserved"}, [](d x) { x.reserved = 1; });
  check_desc("types of a and b", argument, {"f64", "f32"}, [](d x) { x.b.dtype = SG_DTYPE_F32; });
  check_desc("type of c", argument, {"f64", "f32"}, [](d x) { x.c.dtype = SG_DTYPE_F32; });
  check_desc("i32 operands", argument, {"i32"}, [](d x) { x.a.dtype = x.b.dtype = x.c.dtype = SG_DTYPE_I32; });
  check_desc("i8 result", argument, {"i8"}, [](d x) { x.a.dtype = x.b.dtype = x.c.dtype = SG_DTYPE_I8; });
  for (const sg_dtype f8 : {SG_DTYPE_F8_E4M3, SG_DTYPE_F8_E5M2}) {
    check_desc("f8 result", argument, {"c.dtype", sg_dtype_name(f8)},
               [=](d x) { x.a.dtype = x.b.dtype = x.c.dtype = f8; });
    check_desc("f64 result of f8", argument, {"c.dtype", "f64"}, [=](d x) { x.a.dtype = x.b.dtype = f8; });
    check_desc("tf32 compute of f8", argument, {"compute", "tf32", "f32"}, [=](d x) {
      x.a.dtype = x.b.dtype = f8, x.c.dtype = SG_DTYPE_F32;
      x.compute = SG_COMPUTE_TF32;
    });
  }
  check_desc("two f8 types", argument, {"f8_e4m3", "f8_e5m2", "equal"},
             [](d x) { x.a.dtype = SG_DTYPE_F8_E4M3, x.b.dtype = SG_DTYPE_F8_E5M2, x.c.dtype = SG_DTYPE_F32; });
  check_desc("f8 compute of others", argument, {"compute", "f8", "f64"}, [](d x) { x.compute = SG_COMPUTE_F8; });
  check_desc("half an alpha for integers", argument, {"alpha", "0.5"}, [](d x) {
    x.a.dtype = x.b.dtype = SG_DTYPE_I8;
    x.c.dtype = SG_DTYPE_I32;
    x.alpha.re = 0.5;
  });
  check_desc("a beta beyond integers", argument, {"beta"}, [](d x) {
    x.a.dtype = x.b.dtype = SG_DTYPE_I8;
    x.c.dtype = SG_DTYPE_I32;
    x.beta.re = std::numeric_limits<double>::quiet_NaN();
  });
  check_desc("unaligned", argument, {"a.data"}, [](d x) { x.a.data = static_cast<char *>(x.a.data) + 1; });
  check_desc("batch", argument, {"batch", "-1"}, [](d x) { x.batch = -1; });
  check_desc("stride_a", argument, {"stride_a", "-1"}, [](d x) { x.batch = 2, x.stride_a = -1, x.stride_c = 100; });
  check_desc("items of c overlap", argument, {"stride_c", "5"}, [](d x) { x.batch = 2, x.stride_c = 5; });
  check_desc("items of c in one place", argument, {"stride_c", "0"}, [](d x) { x.batch = 2; });
  check_desc("rows overflow", argument, {}, [](d x) { x.a.rows = x.c.rows = huge; });
  check_desc("ld overflows", argument, {"->a"}, [](d x) { x.a.ld = huge; });
  check_desc("batch overflows", argument, {}, [](d x) { x.batch = huge, x.stride_c = 6; });
  check_desc("stride overflows", argument, {"c"}, [](d x) { x.batch = 3, x.stride_c = huge; });
  check_desc("c is a", argument, {"overlap"}, [this](d x) { x.c.data = a_; });
  check_desc("c begins inside b", argument, {"overlap"}, [this](d x) { x.c.data = b_ + 11; });
  check_desc("bias_shape", argument, {"bias_shape", "2"}, [](d x) { x.bias_shape = static_cast<sg_bias>(2); });
  check_desc("activation", argument, {"activation", "3"}, [](d x) { x.activation = static_cast<sg_activation>(3); });
  check_desc("activation", argument, {"activation", "-1"}, [](d x) { x.activation = static_cast<sg_activation>(-1); });
  check_desc("gelu of integers", SG_STATUS_UNSUPPORTED, {"activation", "gelu", "i32"}, [](d x) {
    x.a.dtype = x.b.dtype = SG_DTYPE_I8;
    x.c.dtype = SG_DTYPE_I32;
    x.activation = SG_ACTIVATION_GELU;
  });
  check_desc("relu of complex numbers", SG_STATUS_UNSUPPORTED, {"activation", "relu", "c128"}, [](d x) {
    x.a.dtype = x.b.dtype = x.c.dtype = SG_DTYPE_C128;
    x.activation = SG_ACTIVATION_RELU;
  });
  check_desc("an unaligned bias", argument, {"bias", "aligned"},
             [this](d x) { x.bias = reinterpret_cast<const char *>(a_) + 1; });
  check_desc("stride_bias", argument, {"stride_bias", "-1"},
             [this](d x) { x.bias = a_, x.batch = 2, x.stride_bias = -1, x.stride_c = 6; });
  check_desc("stride_bias overflows", argument, {"bias"},
             [this](d x) { x.bias = a_, x.batch = 3, x.stride_bias = huge, x.stride_c = 6; });
  check_desc("c is the bias", argument, {"overlap", "bias"}, [this](d x) { x.bias = c_; });
  check_desc("the bias ends inside c", argument, {"overlap", "bias"}, [this](d x) { x.bias = c_ - 2; });
  check_desc("an item's bias ends inside c", argument, {"overlap", "bias"},
             [this](d x) { x.bias = c_ - 6, x.batch = 2, x.stride_bias = 5, x.stride_c = 6; });
  check_desc("the bias of nothing but beta * c", argument, {"overlap", "bias"},
             [this](d x) { x.bias = c_, x.alpha.re = 0; });
  check_desc("a begins inside c", argument, {"overlap"}, [this](d x) { x.a.data = c_ + 5; });
}

TEST_P(bad_gemm, pointer_arrays) {
  void *a[] = {a_, a_}, *b[] = {b_, b_}, *c[] = {c_, c_ + 6}, *hole[] = {a_, nullptr}, *same[] = {c_, c_},
       *crossed[] = {c_, a_ + 4};
  using d = sg_gemm_desc &;
  const auto arrays = [&](d x) {
    x.batch = 2;
    x.a_array = a;
    x.b_array = b;
    x.c_array = c;
  };
  check_desc("a hole in a", argument, {"a_array", "1"}, [&](d x) { arrays(x), x.a_array = hole; });
  check_desc("a hole in c", argument, {"c_array", "1"}, [&](d x) { arrays(x), x.c_array = hole; });
  check_desc("items of c in one place", argument, {"overlap", "c_array"}, [&](d x) { arrays(x), x.c_array = same; });
  check_desc("items of c in one place, only scaled", argument, {"overlap", "c_array"},
             [&](d x) { arrays(x), x.c_array = same, x.alpha.re = 0, x.beta.re = 2; });
  check_desc("an item of c inside a", argument, {"overlap", "->a"}, [&](d x) { arrays(x), x.c_array = crossed; });
}

TEST_P(bad_gemm, blas_shaped_calls) {
  struct arguments {
    sg_layout layout = SG_LAYOUT_ROW_MAJOR;
    sg_transpose op_a = SG_TRANSPOSE_N, op_b = SG_TRANSPOSE_N;
    std::int64_t m = 2, n = 3, k = 4, lda = 4, ldb = 3, ldc = 3;
  };
  const auto check_both = [&](std::vector<const char *> words, const std::function<void(arguments &)> &spoil) {
    arguments x;
    spoil(x);
    auto *a = reinterpret_cast<float *>(a_), *b = reinterpret_cast<float *>(b_), *c = reinterpret_cast<float *>(c_);
    check({{"dgemm", argument, words, nulls<sg_job>([&](sg_job **out) {
              return sg_dgemm_async(context_, x.layout, x.op_a, x.op_b, x.m, x.n, x.k, 1, a_, x.lda, b_, x.ldb, 0, c_,
                                    x.ldc, nullptr, out);
            })},
           {"sgemm", argument, words, nulls<sg_job>([&](sg_job **out) {
              return sg_sgemm_async(context_, x.layout, x.op_a, x.op_b, x.m, x.n, x.k, 1, a, x.lda, b, x.ldb, 0, c,
                                    x.ldc, nullptr, out);
            })}});
  };
  using a = arguments &;
  check_both({"layout", "2"}, [](a x) { x.layout = static_cast<sg_layout>(2); });
  check_both({"op_a", "7"}, [](a x) { x.op_a = static_cast<sg_transpose>(7); });
  check_both({"op_b", "7"}, [](a x) { x.op_b = static_cast<sg_transpose>(7); });
  check_both({"m", "-1"}, [](a x) { x.m = -1; });
  check_both({"n", "-1"}, [](a x) { x.n = -1; });
  check_both({"k", "-1"}, [](a x) { x.k = -1; });
  check_both({"lda", "0"}, [](a x) { x.lda = 0; });
  check_both({"lda", "3"}, [](a x) { x.lda = 3; });
  check_both({"ldb", "2"}, [](a x) { x.ldb = 2; });
  check_both({"ldc", "-9"}, [](a x) { x.ldc = -9; });
  check_both({"lda", "1"}, [](a x) { x.layout = SG_LAYOUT_COLUMN_MAJOR, x.lda = 1, x.ldb = 4, x.ldc = 2; });
  check_both({"lda", "1"}, [](a x) { x.op_a = SG_TRANSPOSE_T, x.lda = 1; });
}

TEST_P(bad_gemm, options_of_a_submission) {
  const context other = open_context(GetParam());
  stream foreign;
  ASSERT_OK(sg_stream_create(other, 0, foreign.out()));
  sg_job *const none[] = {job_, nullptr};
  using s = sg_submit &;
  check_submit("struct_size", argument, {"struct_size"}, [](s x) { x.struct_size = 0; });
  check_submit("stream", handle, {"stream"}, [this](s x) { x.stream = reinterpret_cast<sg_stream *>(event_.get()); });
  check_submit("another context's stream", argument, {"stream"}, [&](s x) { x.stream = foreign; });
  check_submit("after_count", argument, {"after_count", "-1"}, [&](s x) { x.after_count = -1; });
  check_submit("after", argument, {"after"}, [&](s x) { x.after_count = 1; });
  check_submit("a hole in after", handle, {"after", "1"}, [&](s x) { x.after = none, x.after_count = 2; });
  check_submit("priority", argument, {"priority", "2"}, [](s x) { x.priority = 2; });
  check_submit("priority", argument, {"priority", "-2"}, [](s x) { x.priority = -2; });
  check_submit("flags", argument, {"flags"}, [](s x) { x.flags = 4; });
  check_submit("reserved", argument, {"reserved"}, [](s x) { x.reserved = 1; });
  check_submit("queue", handle, {"queue"}, [this](s x) { x.queue = reinterpret_cast<sg_queue *>(job_.get()); });
}

TEST_P(bad_gemm, options_of_a_plan) {
  using p = sg_plan_options &;
  check_plan("struct_size", argument, {"struct_size"}, [](p x) { x.struct_size = 0; });
  check_plan("split", argument, {"split", "6"}, [](p x) { x.split = static_cast<sg_split>(6); });
  check_plan("split", argument, {"split"}, [](p x) { x.split = static_cast<sg_split>(-1); });
  check_plan("parts", argument, {"parts", "-1"}, [](p x) { x.parts = -1; });
  check_plan("streams", argument, {"streams", "-1"}, [](p x) { x.streams = -1; });
  check_plan("tile_m", argument, {"tile_m", "-1"}, [](p x) { x.tile_m = -1; });
  check_plan("tile_n", argument, {"tile_n", "-2"}, [](p x) { x.tile_n = -2; });
  check_plan("tile_k", argument, {"tile_k", "-3"}, [](p x) { x.tile_k = -3; });
  check_plan("place_a", argument, {"place_a", "5"}, [](p x) { x.place_a = static_cast<sg_memory_kind>(5); });
  check_plan("place_b", argument, {"place_b"}, [](p x) { x.place_b = static_cast<sg_memory_kind>(-1); });
  check_plan("place_c", argument, {"place_c", "9"}, [](p x) { x.place_c = static_cast<sg_memory_kind>(9); });
  check_plan("memory_limit", argument, {"memory_limit is 18446744073709551615"},
             [](p x) { x.memory_limit = UINT64_MAX; });
  check_plan("more parts than rows", SG_STATUS_UNSUPPORTED, {"cannot split m = "},
             [](p x) { x.split = SG_SPLIT_M, x.parts = 100; });
  check_plan("more parts than columns", SG_STATUS_UNSUPPORTED, {"cannot split n = "},
             [](p x) { x.split = SG_SPLIT_N, x.parts = 100; });
  check_plan("a batch split without a batch", SG_STATUS_UNSUPPORTED, {"split"},
             [](p x) { x.split = SG_SPLIT_BATCH, x.parts = 2; });
  sg_plan_prediction unsized = SG_PLAN_PREDICTION_INIT;
  unsized.struct_size = 0;
  check({{"struct_size", argument, {"struct_size"}, [&] { return sg_plan_get_prediction(plan_, &unsized); }},
         {"format", argument, {"format", "5"}, [&] {
            return sg_plan_describe(plan_, static_cast<sg_plan_format>(5), nullptr, 0, nullptr);
          }}});
}

ON_EACH_DEVICE(bad_gemm);

}  // namespace
}  // namespace sg_test
