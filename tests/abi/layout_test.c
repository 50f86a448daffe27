/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of structs: those that no release has are refused, larger ones are a newer program's, also in arrays. Each
 * struct is tried by release_program.c, as an older and as a newer program.
 */
#include <stddef.h>
#include <string.h>

#include "support/check.h"
#include "support/gemm_plan.h"

static sg_context *context;
static double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4];

static void enums_are_32_bits_wide(void) {
  CHECK(sizeof(sg_status) == 4 && sizeof(sg_dtype) == 4 && sizeof(sg_transpose) == 4 && sizeof(sg_operation) == 4);
  CHECK(sizeof(sg_memory_kind) == 4 && sizeof(sg_plan_format) == 4 && sizeof(sg_log_level) == 4);
}

static sg_gemm_desc good(void) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  sg_matrix view = {NULL, 2, 2, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  desc.a = desc.b = desc.c = view;
  desc.a.data = a;
  desc.b.data = b;
  desc.c.data = c;
  return desc;
}

static void check_gemm(void) {
  CHECK(c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50);
  memset(c, 0, sizeof c);
}

/* Nothing, a pointer's size, an end within a field, no multiple of the alignment, and too much; with the names of the
 * arguments. */
static void sizes_of_no_release(void) {
  const size_t wrong[] = {0, 4, 8, 16, sizeof(sg_gemm_desc) - 4, sizeof(sg_gemm_desc) + 4, 65544};
  sg_gemm_desc desc = good();
  sg_submit submit = SG_SUBMIT_INIT;
  sg_plan_options planning = SG_PLAN_OPTIONS_INIT;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_device_info info = SG_DEVICE_INFO_INIT;
  sg_context *other = NULL;
  size_t i;
  submit.plan = &planning;
  for (i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    desc.struct_size = wrong[i];
    CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context, &desc, NULL));
    CHECK(strstr(sg_last_error_message(), "desc->struct_size is ") &&
          strstr(sg_last_error_message(), "which no release has"));
  }
  desc = good();
  for (i = 0; i < 4; ++i) {
    submit.struct_size = wrong[i];
    CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context, &desc, &submit));
    CHECK(strstr(sg_last_error_message(), "submit->struct_size is ") != NULL);
    submit.struct_size = sizeof submit;
    planning.struct_size = wrong[i];
    CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context, &desc, &submit));
    CHECK(strstr(sg_last_error_message(), "plan->struct_size is ") != NULL);
    planning.struct_size = sizeof planning;
    options.struct_size = wrong[i];
    CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_create(&options, &other));
    CHECK(strstr(sg_last_error_message(), "options->struct_size is ") != NULL);
    info.struct_size = wrong[i];
    CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_get_device_info(context, 0, &info));
    CHECK(strstr(sg_last_error_message(), "out_info->struct_size is ") != NULL);
  }
  CHECK(c[0] == 0 && other == NULL);
}

/* A newer program's descriptor. */
typedef struct longer_desc {
  sg_gemm_desc known;
  char tail[64];
} longer_desc;

/* In an array the next element stands where the caller's struct ends. Fields left at zero request nothing, others are
 * refused. */
static void arrays_of_a_newer_program(void) {
  longer_desc pair[2] = {{good(), {0}}, {good(), {0}}};
  double other[4];
  char expected[64];
  size_t i;
  pair[0].known.struct_size = pair[1].known.struct_size = sizeof pair[0];
  pair[1].known.c.data = other;
  CHECK_STATUS(SG_STATUS_OK, sg_gemm_grouped(context, &pair[0].known, 2, NULL));
  CHECK(memcmp(other, c, sizeof c) == 0);
  check_gemm();
  for (i = 0; i < sizeof pair[1].tail; ++i) {
    pair[1].tail[i] = 1;
    CHECK_STATUS(SG_STATUS_UNSUPPORTED, sg_gemm_grouped(context, &pair[0].known, 2, NULL));
    sprintf(expected, "its byte %u is 1", (unsigned)(sizeof(sg_gemm_desc) + i));
    CHECK(strstr(sg_last_error_message(), "descs[1]->struct_size is ") && strstr(sg_last_error_message(), expected));
    pair[1].tail[i] = 0;
  }
  CHECK(c[0] == 0);
}

int main(void) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_gemm_desc desc = good();
  options.device = "cpu";
  enums_are_32_bits_wide();
  REQUIRE_OK(sg_context_create(&options, &context));
  CHECK_STATUS(SG_STATUS_OK, sg_gemm(context, &desc, NULL));
  check_gemm();
  sizes_of_no_release();
  arrays_of_a_newer_program();
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
  return check_result();
}
