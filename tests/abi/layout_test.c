/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs that grow at their end: a program compiled against an older header (its structs end earlier) and one compiled
 * against a newer header (its structs go on) both work with this library.
 */
#include <stddef.h>
#include <string.h>

#include "support/check.h"
#include "support/gemm_plan.h"

/* The first `end` bytes are the struct of an older release; the bytes behind them are not ours. */
#define FIRST_FIELD_IS_SIZE(type) \
  CHECK(offsetof(type, struct_size) == 0 && sizeof(((type *)0)->struct_size) == sizeof(size_t))
#define UP_TO(type, field) offsetof(type, field)

static sg_context *context;

static void enums_are_32_bits_wide(void) {
  CHECK(sizeof(sg_status) == 4 && sizeof(sg_dtype) == 4 && sizeof(sg_transpose) == 4 && sizeof(sg_operation) == 4);
  CHECK(sizeof(sg_memory_kind) == 4 && sizeof(sg_plan_format) == 4 && sizeof(sg_log_level) == 4);
}

static void the_first_field_is_the_size(void) {
  FIRST_FIELD_IS_SIZE(sg_device_info);
  FIRST_FIELD_IS_SIZE(sg_backend_info);
  FIRST_FIELD_IS_SIZE(sg_context_options);
  FIRST_FIELD_IS_SIZE(sg_gemm_desc);
  FIRST_FIELD_IS_SIZE(sg_submit);
  FIRST_FIELD_IS_SIZE(sg_plan_options);
  FIRST_FIELD_IS_SIZE(sg_plan_prediction);
  FIRST_FIELD_IS_SIZE(sg_job_statistics);
  FIRST_FIELD_IS_SIZE(sg_stream_options);
  FIRST_FIELD_IS_SIZE(sg_buffer_options);
}

/* Calls `fill` with a result struct that ends at `end`, and checks that it is filled to there and no further. */
static void check_result_struct(const char *what, size_t size, size_t end, sg_status (*fill)(void *)) {
  unsigned char whole[2048], older[2048], newer[2048];
  size_t longer = size + 64, i;
  memset(whole, 0, sizeof whole);
  memset(older, 0xc3, sizeof older);
  memset(newer, 0xc3, sizeof newer);
  memcpy(whole, &size, sizeof size);
  memcpy(older, &end, sizeof end);
  memcpy(newer, &longer, sizeof longer);
  CHECK_STATUS(SG_STATUS_OK, fill(whole));
  CHECK_STATUS(SG_STATUS_OK, fill(older));
  CHECK_STATUS(SG_STATUS_OK, fill(newer));
  for (i = sizeof(size_t); i < end; ++i) {
    if (older[i] != whole[i]) break;
  }
  if (i < end) fprintf(stderr, "%s: byte %lu of an older struct differs\n", what, (unsigned long)i);
  CHECK(i >= end);
  for (i = end; i < sizeof older; ++i) {
    if (older[i] != 0xc3) break;
  }
  if (i < sizeof older) fprintf(stderr, "%s: byte %lu behind an older struct was written\n", what, (unsigned long)i);
  CHECK(i == sizeof older);
  CHECK(memcmp(newer + sizeof(size_t), whole + sizeof(size_t), size - sizeof(size_t)) == 0);
  for (i = longer; i < sizeof newer; ++i) CHECK(newer[i] == 0xc3);
  memcpy(&i, older, sizeof i);
  CHECK(i == end); /* the size stays the caller's */
}

static sg_job *job;
static sg_plan *plan;
static sg_status fill_device(void *p) { return sg_context_get_device_info(context, 0, (sg_device_info *)p); }
static sg_status fill_device_by_index(void *p) { return sg_device_get_info(0, (sg_device_info *)p); }
static sg_status fill_backend(void *p) { return sg_backend_get_info(0, (sg_backend_info *)p); }
static sg_status fill_statistics(void *p) { return sg_job_get_statistics(job, (sg_job_statistics *)p); }
static sg_status fill_prediction(void *p) { return sg_plan_get_prediction(plan, (sg_plan_prediction *)p); }

static double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4];

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

/* The bytes behind an older struct are noise; a call that read them would fail. */
#define OLDER(type, variable, last_field, noise)                                  \
  do {                                                                            \
    const size_t older_end = UP_TO(type, last_field);                             \
    memset((char *)&(variable) + older_end, noise, sizeof(variable) - older_end); \
    (variable).struct_size = older_end;                                           \
  } while (0)

static void older_inputs(void) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_context *other = NULL;
  sg_gemm_desc desc = good();
  sg_submit submit = SG_SUBMIT_INIT;
  sg_plan_options planning = SG_PLAN_OPTIONS_INIT;
  options.device = "cpu";
  OLDER(sg_context_options, options, commands_in_flight, 0xff);
  CHECK_STATUS(SG_STATUS_OK, sg_context_create(&options, &other));
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(other));
  OLDER(sg_gemm_desc, desc, bias, 0xff);
  CHECK_STATUS(SG_STATUS_OK, sg_gemm(context, &desc, NULL));
  check_gemm();
  desc = good();
  OLDER(sg_submit, submit, graph, 0xff);
  CHECK_STATUS(SG_STATUS_OK, sg_gemm(context, &desc, &submit));
  check_gemm();
  OLDER(sg_plan_options, planning, devices, 0xff);
  submit.plan = &planning;
  CHECK_STATUS(SG_STATUS_OK, sg_gemm(context, &desc, &submit));
  check_gemm();
}

/* Sizes that no release's struct has had are refused, with a message. */
static void sizes_of_no_release(void) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_context *other = NULL;
  sg_gemm_desc desc = good();
  sg_submit submit = SG_SUBMIT_INIT;
  sg_plan_options planning = SG_PLAN_OPTIONS_INIT;
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  size_t size;
  for (size = 0; size < UP_TO(sg_gemm_desc, bias); ++size) {
    desc.struct_size = size;
    CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context, &desc, NULL));
    CHECK(strstr(sg_last_error_message(), "desc->struct_size is ") != NULL);
  }
  desc = good();
  for (size = 0; size < UP_TO(sg_submit, graph); ++size) {
    submit.struct_size = size;
    CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context, &desc, &submit));
  }
  submit.struct_size = sizeof submit;
  submit.plan = &planning;
  for (size = 0; size < UP_TO(sg_plan_options, devices); ++size) {
    planning.struct_size = size;
    CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context, &desc, &submit));
  }
  for (size = 0; size < UP_TO(sg_context_options, commands_in_flight); ++size) {
    options.struct_size = size;
    CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_create(&options, &other));
  }
  for (size = 0; size < UP_TO(sg_job_statistics, batch_size); ++size) {
    statistics.struct_size = size;
    CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_job_get_statistics(job, &statistics));
  }
}

/* A size that ends within a field. */
static void sizes_within_fields(void) {
  sg_gemm_desc desc = good();
  desc.struct_size -= 4;
  CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context, &desc, NULL));
  CHECK(strstr(sg_last_error_message(), "it must be a multiple of 8 from ") != NULL);
}

/* A newer program's descriptor. */
typedef struct longer_desc {
  sg_gemm_desc known;
  char tail[64];
} longer_desc;

/* A newer program's structs are longer than this library's; fields left at zero request nothing. */
static void newer_inputs(void) {
  longer_desc desc = {good(), {0}}, pair[2];
  struct {
    sg_submit known;
    char tail[64];
  } submit = {SG_SUBMIT_INIT, {0}};
  double other[4];
  sg_job *grouped = NULL;
  desc.known.struct_size = sizeof desc;
  submit.known.struct_size = sizeof submit;
  CHECK_STATUS(SG_STATUS_OK, sg_gemm(context, &desc.known, &submit.known));
  check_gemm();
  /* In an array the next element stands where the caller's struct ends. */
  pair[0] = pair[1] = desc;
  pair[1].known.c.data = other;
  CHECK_STATUS(SG_STATUS_OK, sg_gemm_grouped_async(context, &pair[0].known, 2, NULL, &grouped));
  CHECK_STATUS(SG_STATUS_OK, sg_job_wait(grouped, SG_FOREVER, NULL));
  CHECK(memcmp(other, c, sizeof c) == 0);
  check_gemm();
  CHECK_STATUS(SG_STATUS_OK, sg_job_release(grouped));
}

/* A field that this library does not know is never ignored, wherever the struct is given. */
static void unknown_inputs(void) {
  longer_desc desc = {good(), {0}}, pair[2];
  struct {
    sg_submit known;
    char tail[8];
  } submit = {SG_SUBMIT_INIT, {0}};
  struct {
    sg_plan_options known;
    char tail[8];
  } planning = {SG_PLAN_OPTIONS_INIT, {0}};
  struct {
    sg_context_options known;
    char tail[8];
  } options = {SG_CONTEXT_OPTIONS_INIT, {0}};
  struct {
    sg_softmax_desc known;
    char tail[8];
  } softmax = {SG_SOFTMAX_DESC_INIT, {0}};
  sg_operation_desc operation = SG_OPERATION_DESC_INIT;
  sg_context *other = NULL;
  sg_job *refused = NULL;
  char expected[64];
  size_t i;
  desc.known.struct_size = sizeof desc;
  for (i = 0; i < sizeof desc.tail; ++i) {
    desc.tail[i] = 1;
    CHECK_STATUS(SG_STATUS_UNSUPPORTED, sg_gemm(context, &desc.known, NULL));
    sprintf(expected, "its byte %u is 1", (unsigned)(sizeof desc.known + i));
    CHECK(strstr(sg_last_error_message(), expected) != NULL);
    desc.tail[i] = 0;
  }
  pair[0] = pair[1] = desc;
  pair[1].tail[63] = 1;
  CHECK_STATUS(SG_STATUS_UNSUPPORTED, sg_gemm_grouped_async(context, &pair[0].known, 2, NULL, &refused));
  CHECK(strstr(sg_last_error_message(), "descs[1]->struct_size is ") != NULL);
  submit.known.struct_size = sizeof submit;
  submit.tail[0] = 1;
  CHECK_STATUS(SG_STATUS_UNSUPPORTED, sg_gemm(context, &desc.known, &submit.known));
  submit.tail[0] = 0;
  submit.known.plan = &planning.known;
  planning.known.struct_size = sizeof planning;
  CHECK_STATUS(SG_STATUS_OK, sg_gemm(context, &desc.known, &submit.known));
  check_gemm();
  planning.tail[7] = 1;
  CHECK_STATUS(SG_STATUS_UNSUPPORTED, sg_gemm(context, &desc.known, &submit.known));
  softmax.known.struct_size = sizeof softmax;
  softmax.tail[0] = 1;
  CHECK_STATUS(SG_STATUS_UNSUPPORTED, sg_softmax(context, &softmax.known, NULL));
  operation.operation = SG_OPERATION_SOFTMAX;
  operation.desc = &softmax;
  CHECK_STATUS(SG_STATUS_UNSUPPORTED, sg_run_async(context, &operation, NULL, &refused));
  options.known.device = "cpu";
  options.known.struct_size = sizeof options;
  options.tail[0] = 1;
  CHECK_STATUS(SG_STATUS_UNSUPPORTED, sg_context_create(&options.known, &other));
  CHECK(refused == NULL && other == NULL && c[0] == 0);
}

int main(void) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_gemm_desc desc = good();
  options.device = "cpu";
  enums_are_32_bits_wide();
  the_first_field_is_the_size();
  REQUIRE_OK(sg_context_create(&options, &context));
  REQUIRE_OK(sg_gemm_async(context, &desc, NULL, &job));
  REQUIRE_OK(sg_job_wait(job, SG_FOREVER, NULL));
  check_gemm();
  REQUIRE_OK(create_gemm_plan(context, &desc, NULL, &plan));
  check_result_struct("sg_device_info", sizeof(sg_device_info), UP_TO(sg_device_info, nvlink_bytes_per_second),
                      fill_device);
  check_result_struct("sg_device_info", sizeof(sg_device_info), UP_TO(sg_device_info, nvlink_bytes_per_second),
                      fill_device_by_index);
  check_result_struct("sg_backend_info", sizeof(sg_backend_info), sizeof(sg_backend_info), fill_backend);
  check_result_struct("sg_job_statistics", sizeof(sg_job_statistics), UP_TO(sg_job_statistics, batch_size),
                      fill_statistics);
  check_result_struct("sg_plan_prediction", sizeof(sg_plan_prediction), sizeof(sg_plan_prediction), fill_prediction);
  older_inputs();
  sizes_of_no_release();
  sizes_within_fields();
  newer_inputs();
  unknown_inputs();
  CHECK_STATUS(SG_STATUS_OK, sg_plan_release(plan));
  CHECK_STATUS(SG_STATUS_OK, sg_job_release(job));
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
  return check_result();
}
