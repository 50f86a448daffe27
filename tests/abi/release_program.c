/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of this release. freeze.py records it with the headers; compiled against them it must run with each later
 * library of the soname. It uses each struct that begins with its size. Of headers with SG_GROWN (grow.py), whose
 * structs have one more member, it also checks that a library without the member refuses it.
 */
#include <stddef.h>
#include <stdio.h>
#include <streamgemm/streamgemm.h>
#include <string.h>

static int failures;
static sg_context *context;

static void check(int holds, int line, const char *what) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "line %d: %s (%s)\n", line, what, sg_last_error_message());
}
#define CHECK(condition) check(condition, __LINE__, #condition)
#define CHECK_OK(call) check((call) == SG_STATUS_OK, __LINE__, #call)

#ifdef SG_GROWN
/* The offset of the member that the library does not know. */
#define GROWN_AT(variable) ((size_t)((char *)&(variable).grown - (char *)&(variable)))
/* A call with the member set is refused, and names its offset. */
#define CHECK_UNKNOWN(variable, call)                                                  \
  do {                                                                                 \
    char offset[64];                                                                   \
    sprintf(offset, "its byte %lu is 1:", (unsigned long)GROWN_AT(variable));          \
    (variable).grown = 1;                                                              \
    CHECK((call) == SG_STATUS_UNSUPPORTED && strstr(sg_last_error_message(), offset)); \
    (variable).grown = 0;                                                              \
  } while (0)
#else
#define CHECK_UNKNOWN(variable, call) (void)0
#endif

/* A struct that the call reads. */
#define GIVEN(variable, call)      \
  do {                             \
    CHECK_UNKNOWN(variable, call); \
    CHECK_OK(call);                \
  } while (0)

/* A struct that the call fills, through `out`, and not beyond its end. */
#define FILLED(type, initial, call)                                         \
  do {                                                                      \
    struct {                                                                \
      type known;                                                           \
      unsigned char behind[64];                                             \
    } room = {initial, {0}};                                                \
    type *const out = &room.known;                                          \
    size_t i;                                                               \
    memset(room.behind, 0xc3, sizeof room.behind);                          \
    CHECK_OK(call);                                                         \
    CHECK(out->struct_size == sizeof *out);                                 \
    for (i = 0; i < sizeof room.behind; ++i) CHECK(room.behind[i] == 0xc3); \
  } while (0)

/* The descriptor of an operation without operands: the operation is done, or refused for another reason than its size.
 */
#define DESCRIBED(number, type, initial)                                                                         \
  do {                                                                                                           \
    type desc = initial;                                                                                         \
    sg_operation_desc operation = SG_OPERATION_DESC_INIT;                                                        \
    operation.operation = number;                                                                                \
    operation.desc = &desc;                                                                                      \
    CHECK(sg_run(context, &operation, NULL) == SG_STATUS_OK || !strstr(sg_last_error_message(), "struct_size")); \
    CHECK_UNKNOWN(desc, sg_run(context, &operation, NULL));                                                      \
  } while (0)

static double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4];

static sg_matrix matrix_of(double *values) {
  sg_matrix matrix;
  memset(&matrix, 0, sizeof matrix);
  matrix.data = values;
  matrix.rows = matrix.cols = 2;
  matrix.dtype = SG_DTYPE_F64;
  matrix.layout = SG_LAYOUT_ROW_MAJOR;
  return matrix;
}

static sg_gemm_desc product(void) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = matrix_of(a);
  desc.b = matrix_of(b);
  desc.c = matrix_of(c);
  return desc;
}

static void check_product(void) {
  CHECK(c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50);
  memset(c, 0, sizeof c);
}

static void describe_operations(void) {
  DESCRIBED(SG_OPERATION_GEMM, sg_gemm_desc, SG_GEMM_DESC_INIT);
  DESCRIBED(SG_OPERATION_COPY, sg_copy_desc, SG_COPY_DESC_INIT);
  DESCRIBED(SG_OPERATION_AXPBY, sg_axpby_desc, SG_AXPBY_DESC_INIT);
  DESCRIBED(SG_OPERATION_ELEMENTWISE, sg_elementwise_desc, SG_ELEMENTWISE_DESC_INIT);
  DESCRIBED(SG_OPERATION_SOFTMAX, sg_softmax_desc, SG_SOFTMAX_DESC_INIT);
  DESCRIBED(SG_OPERATION_NORM, sg_norm_desc, SG_NORM_DESC_INIT);
  DESCRIBED(SG_OPERATION_DEQUANTIZE, sg_dequantize_desc, SG_DEQUANTIZE_DESC_INIT);
  DESCRIBED(SG_OPERATION_ROTARY, sg_rotary_desc, SG_ROTARY_DESC_INIT);
  DESCRIBED(SG_OPERATION_LINEAR_BACKWARD, sg_linear_backward_desc, SG_LINEAR_BACKWARD_DESC_INIT);
  DESCRIBED(SG_OPERATION_ATTENTION, sg_attention_desc, SG_ATTENTION_DESC_INIT);
  DESCRIBED(SG_OPERATION_CONVERT, sg_convert_desc, SG_CONVERT_DESC_INIT);
  DESCRIBED(SG_OPERATION_GATHER, sg_gather_desc, SG_GATHER_DESC_INIT);
  DESCRIBED(SG_OPERATION_CONV2D, sg_conv2d_desc, SG_CONV2D_DESC_INIT);
  DESCRIBED(SG_OPERATION_CONV2D_BACKWARD, sg_conv2d_backward_desc, SG_CONV2D_BACKWARD_DESC_INIT);
  DESCRIBED(SG_OPERATION_IM2COL, sg_im2col_desc, SG_IM2COL_DESC_INIT);
  DESCRIBED(SG_OPERATION_COL2IM, sg_col2im_desc, SG_COL2IM_DESC_INIT);
  DESCRIBED(SG_OPERATION_RECURRENT, sg_recurrent_desc, SG_RECURRENT_DESC_INIT);
  DESCRIBED(SG_OPERATION_RECURRENT_BACKWARD, sg_recurrent_backward_desc, SG_RECURRENT_BACKWARD_DESC_INIT);
  DESCRIBED(SG_OPERATION_ATTENTION_BACKWARD, sg_attention_backward_desc, SG_ATTENTION_BACKWARD_DESC_INIT);
  DESCRIBED(SG_OPERATION_CUSTOM, sg_custom_desc, SG_CUSTOM_DESC_INIT);
  DESCRIBED(SG_OPERATION_CLAMP, sg_clamp_desc, SG_CLAMP_DESC_INIT);
  DESCRIBED(SG_OPERATION_CLAMP_BACKWARD, sg_clamp_backward_desc, SG_CLAMP_BACKWARD_DESC_INIT);
  DESCRIBED(SG_OPERATION_ROW_DOT, sg_row_dot_desc, SG_ROW_DOT_DESC_INIT);
  DESCRIBED(SG_OPERATION_ROW_REDUCE, sg_row_reduce_desc, SG_ROW_REDUCE_DESC_INIT);
  DESCRIBED(SG_OPERATION_CROSS_ENTROPY, sg_cross_entropy_desc, SG_CROSS_ENTROPY_DESC_INIT);
  DESCRIBED(SG_OPERATION_CROSS_ENTROPY_BACKWARD, sg_cross_entropy_backward_desc, SG_CROSS_ENTROPY_BACKWARD_DESC_INIT);
  DESCRIBED(SG_OPERATION_SCATTER_ADD, sg_scatter_add_desc, SG_SCATTER_ADD_DESC_INIT);
  DESCRIBED(SG_OPERATION_POOL2D, sg_pool2d_desc, SG_POOL2D_DESC_INIT);
  DESCRIBED(SG_OPERATION_POOL2D_BACKWARD, sg_pool2d_backward_desc, SG_POOL2D_BACKWARD_DESC_INIT);
  DESCRIBED(SG_OPERATION_SOFTMAX_BACKWARD, sg_softmax_backward_desc, SG_SOFTMAX_BACKWARD_DESC_INIT);
  DESCRIBED(SG_OPERATION_NORM_BACKWARD, sg_norm_backward_desc, SG_NORM_BACKWARD_DESC_INIT);
  DESCRIBED(SG_OPERATION_ROTARY_BACKWARD, sg_rotary_backward_desc, SG_ROTARY_BACKWARD_DESC_INIT);
  DESCRIBED(SG_OPERATION_SGD, sg_sgd_desc, SG_SGD_DESC_INIT);
  DESCRIBED(SG_OPERATION_ADAM, sg_adam_desc, SG_ADAM_DESC_INIT);
  DESCRIBED(SG_OPERATION_TRIANGULAR, sg_triangular_desc, SG_TRIANGULAR_DESC_INIT);
  DESCRIBED(SG_OPERATION_SYMMETRIC, sg_symmetric_desc, SG_SYMMETRIC_DESC_INIT);
  DESCRIBED(SG_OPERATION_RANK_K, sg_rank_k_desc, SG_RANK_K_DESC_INIT);
  DESCRIBED(SG_OPERATION_ALL_REDUCE, sg_all_reduce_desc, SG_ALL_REDUCE_DESC_INIT);
  DESCRIBED(SG_OPERATION_FILL, sg_fill_desc, SG_FILL_DESC_INIT);
}

/* What sg_run does not take, or takes around a descriptor. */
static void describe_calls(void) {
  sg_gemm_desc desc = product();
  sg_linear_desc linear = SG_LINEAR_DESC_INIT;
  sg_operation_desc operation = SG_OPERATION_DESC_INIT;
  sg_submit submit = SG_SUBMIT_INIT;
  sg_plan_options planning = SG_PLAN_OPTIONS_INIT;
  sg_plan *plan = NULL;
  linear.x = matrix_of(a);
  linear.w = matrix_of(b);
  linear.y = matrix_of(c);
  GIVEN(linear, sg_linear(context, &linear, NULL));
  check_product();
  GIVEN(desc, sg_gemm(context, &desc, &submit));
  check_product();
  GIVEN(submit, sg_gemm(context, &desc, &submit));
  check_product();
  operation.operation = SG_OPERATION_GEMM;
  operation.desc = &desc;
  GIVEN(operation, sg_run(context, &operation, NULL));
  check_product();
  GIVEN(planning, sg_plan_create(context, &operation, &planning, &plan));
  FILLED(sg_plan_prediction, SG_PLAN_PREDICTION_INIT, sg_plan_get_prediction(plan, out));
  CHECK_OK(sg_plan_release(plan));
  submit.plan = &planning;
  GIVEN(planning, sg_gemm(context, &desc, &submit));
  check_product();
}

/* A job's way through a stream, a queue and a trace. */
static void follow_a_job(void) {
  sg_gemm_desc desc = product();
  sg_submit submit = SG_SUBMIT_INIT;
  sg_stream_options stream_options = SG_STREAM_OPTIONS_INIT;
  sg_queue_options queue_options = SG_QUEUE_OPTIONS_INIT;
  sg_trace_options trace_options = SG_TRACE_OPTIONS_INIT;
  sg_completion completions[2];
  sg_trace *trace = NULL;
  sg_job *job = NULL;
  int32_t count = 0;
  GIVEN(stream_options, sg_stream_create(context, &stream_options, &submit.stream));
  GIVEN(queue_options, sg_queue_create(context, &queue_options, &submit.queue));
  GIVEN(trace_options, sg_trace_start(&trace_options, &trace));
  submit.tag = 7;
  memset(completions, 0xc3, sizeof completions);
  CHECK_OK(sg_gemm_async(context, &desc, &submit, &job));
  CHECK_OK(sg_queue_next_batch(submit.queue, completions, sizeof(sg_completion), 1, SG_FOREVER, &count));
  CHECK(count == 1 && completions[0].tag == 7 && completions[0].status == SG_STATUS_OK);
  CHECK(((unsigned char *)&completions[1])[0] == 0xc3);
  check_product();
  FILLED(sg_job_statistics, SG_JOB_STATISTICS_INIT, sg_job_get_statistics(job, out));
  CHECK_OK(sg_trace_stop(trace));
  FILLED(sg_trace_metrics, SG_TRACE_METRICS_INIT, sg_trace_get_metrics(trace, context, out));
  CHECK_OK(sg_trace_release(trace));
  CHECK_OK(sg_job_release(job));
  CHECK_OK(sg_queue_release(submit.queue));
  CHECK_OK(sg_stream_release(submit.stream));
}

static sg_status add_one(const sg_custom_call *call, void *user) {
  double *const values = (double *)call->operands[0];
  int i;
  (void)user;
  for (i = 0; i < 4; ++i) values[i] += 1;
  return call->operand_count == 1 ? SG_STATUS_OK : SG_STATUS_INVALID_ARGUMENT;
}

static void call_back(void) {
  const sg_custom_call alone = SG_CUSTOM_CALL_INIT;
  sg_custom_operand operand;
  sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
  CHECK(alone.struct_size == sizeof alone && alone.operand_count == 0);
  memset(&operand, 0, sizeof operand);
  operand.data = c;
  operand.bytes = sizeof c;
  operand.access = SG_ACCESS_READ_WRITE;
  desc.function = add_one;
  desc.operands = &operand;
  desc.operand_count = 1;
  GIVEN(desc, sg_custom(context, &desc, NULL));
  CHECK(c[0] == 1 && c[3] == 1);
  memset(c, 0, sizeof c);
}

/* A pipeline of one stage, which multiplies a batch with B. */
static void run_a_pipeline(void) {
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  sg_stage stage = SG_STAGE_INIT;
  sg_weight weight;
  sg_submit record = SG_SUBMIT_INIT;
  sg_gemm_desc gemm = product();
  sg_pipeline *pipeline = NULL;
  options.input_bytes = sizeof a;
  GIVEN(options, sg_pipeline_create(context, &options, &pipeline));
  memset(&weight, 0, sizeof weight);
  weight.data = b;
  weight.bytes = sizeof b;
  desc.output_bytes = sizeof c;
  desc.weights = &weight;
  desc.weight_count = 1;
  GIVEN(desc, sg_pipeline_add_stage(pipeline, &desc, &stage));
  record.graph = stage.graph;
  gemm.a.data = (void *)stage.input;
  gemm.b.data = stage.weights[0];
  gemm.c.data = stage.output;
  CHECK_OK(sg_gemm_async(context, &gemm, &record, NULL));
  FILLED(sg_pipeline_info, SG_PIPELINE_INFO_INIT, sg_pipeline_prepare(pipeline, out));
  CHECK_OK(sg_pipeline_push(pipeline, a, c, NULL));
  check_product();
  CHECK_OK(sg_pipeline_release(pipeline));
}

int main(int argc, char **argv) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_buffer_options memory = SG_BUFFER_OPTIONS_INIT;
  sg_buffer *buffer = NULL;
  options.device = argc > 1 ? argv[1] : "cpu";
  GIVEN(options, sg_context_create(&options, &context));
  if (!context) return 1;
  FILLED(sg_backend_info, SG_BACKEND_INFO_INIT, sg_backend_get_info(0, out));
  FILLED(sg_device_info, SG_DEVICE_INFO_INIT, sg_context_get_device_info(context, 0, out));
  FILLED(sg_device_info, SG_DEVICE_INFO_INIT, sg_device_get_info(0, out));
  GIVEN(memory, sg_buffer_create(context, sizeof c, &memory, &buffer));
  CHECK_OK(sg_buffer_release(buffer));
  describe_operations();
  describe_calls();
  follow_a_job();
  call_back();
  run_a_pipeline();
  FILLED(sg_context_metrics, SG_CONTEXT_METRICS_INIT, sg_context_get_metrics(context, out));
  CHECK_OK(sg_context_release(context));
  return failures != 0;
}
