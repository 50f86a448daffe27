/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "script.h"

#include <stdio.h>
#include <streamgemm/streamgemm.h>
#include <string.h>

enum { N = 24 };

static struct script_outcome outcome;
static double a[N * N], b[N * N], c[N * N], d[N * N], e[N * N], back[N * N];
static volatile int callbacks;

/* Checks a status. 1: success. */
static int judge(sg_status status, const char *call, const char *message) {
  const int expected_failure = status == SG_STATUS_OUT_OF_MEMORY || status == SG_STATUS_DEPENDENCY_FAILED ||
                               (strstr(message, "thread") && status == SG_STATUS_BACKEND_FAILURE);
  if (status == SG_STATUS_OK) return 1;
  ++outcome.failed;
  snprintf(outcome.last_failure, sizeof outcome.last_failure, "%s: %s", call, message);
  if (expected_failure && message[0]) return 0;
  fprintf(stderr, "%s: %s (%s)\n", call, sg_status_name(status), message);
  ++outcome.wrong;
  return 0;
}
#define DO(call) judge(call, #call, sg_last_error_message())

static int end_of(sg_job *job, const char *what) {
  char text[300] = "";
  sg_status status;
  if (!job) return 0;
  status = sg_job_wait(job, INT64_C(300000000000), NULL);
  (void)sg_job_message(job, text, sizeof text, NULL);
  (void)sg_job_release(job);
  return judge(status, what, text);
}

static void expect(const double *result, double value, const char *what) {
  int i;
  for (i = 0; i < N * N; ++i) {
    if (result[i] == value) continue;
    fprintf(stderr, "%s: element %d is %g, not %g\n", what, i, result[i], value);
    ++outcome.wrong;
    return;
  }
}

static sg_gemm_desc make_gemm(double *x, double *y, double *z) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  sg_matrix view = {NULL, N, N, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  desc.a = desc.b = desc.c = view;
  desc.a.data = x;
  desc.b.data = y;
  desc.c.data = z;
  return desc;
}

static void on_job(sg_job *job, sg_status status, void *user) {
  (void)job;
  (void)status;
  (void)user;
  ++callbacks;
}
static void on_event(sg_event *event, sg_status status, void *user) {
  (void)event;
  (void)status;
  (void)user;
  ++callbacks;
}

/* GEMMs in every form: plain, split, tiled within little memory, grouped, and each reads another's result. */
static void gemms(sg_context *context, sg_stream *stream, sg_queue *queue) {
  sg_gemm_desc chain[2], group[2];
  sg_submit submit = SG_SUBMIT_INIT;
  sg_plan_options planning = SG_PLAN_OPTIONS_INIT;
  sg_job *jobs[3] = {NULL, NULL, NULL};
  sg_completion completions[4];
  int32_t posted = 0, count = 0;
  int accepted, done[3];
  chain[0] = make_gemm(a, b, c);
  chain[1] = make_gemm(c, b, d);
  group[0] = make_gemm(a, b, e);
  group[1] = make_gemm(a, b, back);
  submit.stream = stream;
  submit.queue = queue;
  submit.plan = &planning;
  planning.split = SG_SPLIT_K;
  planning.parts = 2;
  posted += accepted = DO(sg_gemm_async(context, &chain[0], &submit, &jobs[0]));
  planning.split = SG_SPLIT_AUTO;
  planning.parts = 0;
  planning.tile_m = 7;
  planning.memory_limit = 64 << 10;
  if (accepted) posted += DO(sg_gemm_async(context, &chain[1], &submit, &jobs[1]));
  submit.plan = NULL;
  posted += DO(sg_gemm_grouped_async(context, group, 2, &submit, &jobs[2]));
  if (jobs[0]) DO(sg_job_on_complete(jobs[0], on_job, NULL));
  done[0] = end_of(jobs[0], "a GEMM split over k");
  done[1] = end_of(jobs[1], "a GEMM in tiles");
  done[2] = end_of(jobs[2], "a group");
  if (done[0]) expect(c, 6 * N, "a GEMM split over k");
  if (done[0] && done[1]) expect(d, 6.0 * N * 3 * N, "a GEMM in tiles");
  if (done[2]) expect(e, 6 * N, "a group");
  if (!queue) return;
  while (posted > 0 &&
         DO(sg_queue_next_batch(queue, completions, sizeof(sg_completion), 4, INT64_C(300000000000), &count)))
    posted -= count;
}

static void copies(sg_context *context) {
  sg_buffer *buffer = NULL;
  void *device = NULL, *pinned = NULL;
  sg_job *in = NULL, *out = NULL;
  int done_in, done_out;
  if (DO(sg_host_alloc(context, sizeof back, &pinned))) {
    memset(pinned, 0, sizeof back);
    if (DO(sg_buffer_create(context, sizeof a, NULL, &buffer)) && DO(sg_buffer_data(buffer, &device)) &&
        DO(sg_copy_async(context, device, a, sizeof a, NULL, &in)))
      DO(sg_copy_2d_async(context, pinned, N * 8, device, N * 8, N * 8, N, NULL, &out));
    done_in = end_of(in, "a copy in");
    done_out = end_of(out, "a copy out");
    if (done_in && done_out) expect((double *)pinned, 2, "a copy");
    DO(sg_buffer_release(buffer));
    DO(sg_host_free(context, pinned));
  }
}

static void plans(sg_context *context) {
  const sg_gemm_desc desc = make_gemm(a, b, c);
  const sg_operation_desc gemm = {sizeof gemm, SG_OPERATION_GEMM, 1, &desc};
  sg_plan *plan = NULL;
  sg_job *job = NULL;
  char text[500];
  if (!DO(sg_plan_create(context, &gemm, NULL, &plan))) return;
  DO(sg_plan_describe(plan, SG_PLAN_FORMAT_TEXT, text, sizeof text, NULL));
  DO(sg_plan_describe(plan, SG_PLAN_FORMAT_JSON, text, sizeof text, NULL));
  DO(sg_plan_describe(plan, SG_PLAN_FORMAT_TIMELINE, text, sizeof text, NULL));
  if (DO(sg_plan_run_async(plan, &gemm, NULL, &job)) && end_of(job, "a plan's run")) expect(c, 6 * N, "a plan's run");
  DO(sg_plan_release(plan));
}

struct script_outcome run_script(const char *device) {
  const struct script_outcome none = {0, 0, ""};
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_context *context = NULL;
  sg_stream *stream = NULL;
  sg_event *event = NULL;
  sg_queue *queue = NULL, *shared = NULL;
  int32_t fd;
  int i;
  outcome = none;
  options.device = device;
  for (i = 0; i < N * N; ++i) {
    a[i] = 2;
    b[i] = 3;
    c[i] = d[i] = e[i] = -1;
  }
  if (!DO(sg_context_create(&options, &context))) return outcome;
  DO(sg_stream_create(context, NULL, &stream));
  DO(sg_queue_create(context, NULL, &queue));
  DO(sg_queue_create(NULL, NULL, &shared));
  if (queue) DO(sg_queue_fd(queue, &fd));
  gemms(context, stream, queue);
  copies(context);
  plans(context);
  if (stream && DO(sg_event_create(context, &event)) && DO(sg_event_record(event, stream))) {
    DO(sg_event_on_complete(event, on_event, NULL));
    DO(sg_stream_wait_event(stream, event));
    DO(sg_event_wait(event, INT64_C(300000000000)));
  }
  DO(sg_context_synchronize(context, SG_FOREVER));
  DO(sg_event_release(event));
  DO(sg_queue_release(queue));
  DO(sg_queue_release(shared));
  DO(sg_stream_release(stream));
  DO(sg_context_release(context));
  return outcome;
}
