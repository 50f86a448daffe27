/* SPDX-License-Identifier: Apache-2.0 */
/* Every type of handle goes through one life: create, retain, release, and every wrong use of a released handle. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/gate.h"
#include "support/gemm_plan.h"

typedef sg_status (*verb)(void *handle);

/* One type of handle. `use` is a call that needs a live handle of the type and changes nothing. */
typedef struct handle_type {
  const char *name;
  sg_status (*create)(sg_context *context, void **out);
  verb retain, release, use;
} handle_type;

#define VERBS(type)                                                                      \
  static sg_status retain_##type(void *h) { return sg_##type##_retain((sg_##type *)h); } \
  static sg_status release_##type(void *h) { return sg_##type##_release((sg_##type *)h); }
VERBS(context)
VERBS(stream)
VERBS(event)
VERBS(buffer)
VERBS(job)
VERBS(queue)
VERBS(plan)

static const char *device_name;

static sg_status create_context(sg_context *parent, void **out) {
  sg_context *context = NULL;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_status status;
  (void)parent;
  options.device = device_name;
  status = sg_context_create(&options, &context);
  *out = context;
  return status;
}
static sg_status create_stream(sg_context *context, void **out) {
  return sg_stream_create(context, NULL, (sg_stream **)out);
}
static sg_status create_event(sg_context *context, void **out) { return sg_event_create(context, (sg_event **)out); }
static sg_status create_buffer(sg_context *context, void **out) {
  return sg_buffer_create(context, 64, NULL, (sg_buffer **)out);
}
static sg_status create_queue(sg_context *context, void **out) {
  return sg_queue_create(context, NULL, (sg_queue **)out);
}

static sg_gemm_desc small_gemm(double *a, double *b, double *c) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  sg_matrix view = {NULL, 2, 2, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  desc.a = desc.b = desc.c = view;
  desc.a.data = a;
  desc.b.data = b;
  desc.c.data = c;
  return desc;
}
static sg_status create_job(sg_context *context, void **out) {
  static double a[4], b[4], c[4];
  const sg_gemm_desc desc = small_gemm(a, b, c);
  return sg_gemm_async(context, &desc, NULL, (sg_job **)out);
}
static sg_status create_plan(sg_context *context, void **out) {
  const sg_gemm_desc desc = small_gemm(NULL, NULL, NULL);
  return create_gemm_plan(context, &desc, NULL, (sg_plan **)out);
}

static sg_status use_context(void *h) {
  sg_device_info info = SG_DEVICE_INFO_INIT;
  return sg_context_get_device_info((sg_context *)h, 0, &info);
}
static sg_status use_stream(void *h) {
  int32_t priority;
  return sg_stream_priority((sg_stream *)h, &priority);
}
static sg_status use_event(void *h) { return sg_event_query((sg_event *)h); }
static sg_status use_buffer(void *h) {
  uint64_t bytes;
  return sg_buffer_size((sg_buffer *)h, &bytes);
}
static sg_status use_job(void *h) { return sg_job_wait((sg_job *)h, SG_FOREVER, NULL); }
static sg_status use_queue(void *h) {
  sg_completion completion;
  int32_t count;
  const sg_status status = sg_queue_next_batch((sg_queue *)h, &completion, sizeof completion, 1, 0, &count);
  return status == SG_STATUS_TIMEOUT ? SG_STATUS_OK : status;
}
static sg_status use_plan(void *h) {
  sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
  return sg_plan_get_prediction((sg_plan *)h, &prediction);
}

#define TYPE(type) \
  { #type, create_##type, retain_##type, release_##type, use_##type }
static const handle_type types[] = {TYPE(context), TYPE(stream), TYPE(event), TYPE(buffer),
                                    TYPE(job),     TYPE(queue),  TYPE(plan)};
enum { TYPES = sizeof types / sizeof types[0] };

static sg_context *new_context(void) {
  void *context = NULL;
  REQUIRE_OK(create_context(NULL, &context));
  return (sg_context *)context;
}

/* A dead handle returns this status from every call, for ever. */
static void check_dead(const handle_type *type, void *handle) {
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, type->use(handle));
  CHECK(strstr(sg_last_error_message(), type->name) != NULL);
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, type->retain(handle));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, type->release(handle));
}

static void counting(const handle_type *type) {
  sg_context *context = new_context();
  void *handle = NULL;
  int i;
  REQUIRE_OK(type->create(context, &handle));
  CHECK(handle != NULL);
  CHECK_STATUS(SG_STATUS_OK, type->use(handle));
  for (i = 0; i < 5; ++i) CHECK_STATUS(SG_STATUS_OK, type->retain(handle));
  for (i = 0; i < 5; ++i) CHECK_STATUS(SG_STATUS_OK, type->release(handle));
  CHECK_STATUS(SG_STATUS_OK, type->use(handle));
  CHECK_STATUS(SG_STATUS_OK, type->release(handle));
  check_dead(type, handle);
  CHECK_STATUS(SG_STATUS_OK, type->retain(NULL));
  CHECK_STATUS(SG_STATUS_OK, type->release(NULL));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, type->use(NULL));
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
}

/* A reused slot does not bring a stale handle back to life. */
static void stale_after_reuse(const handle_type *type) {
  enum { ROUNDS = 300 };
  sg_context *context = new_context();
  void *stale[ROUNDS], *live = NULL;
  int i, j;
  for (i = 0; i < ROUNDS; ++i) {
    REQUIRE_OK(type->create(context, &stale[i]));
    CHECK_STATUS(SG_STATUS_OK, type->use(stale[i]));
    CHECK_STATUS(SG_STATUS_OK, type->release(stale[i]));
  }
  REQUIRE_OK(type->create(context, &live));
  for (i = 0; i < ROUNDS; ++i) {
    CHECK(stale[i] != live);
    for (j = i + 1; j < ROUNDS; ++j) CHECK(stale[i] != stale[j]);
    check_dead(type, stale[i]);
  }
  CHECK_STATUS(SG_STATUS_OK, type->use(live));
  CHECK_STATUS(SG_STATUS_OK, type->release(live));
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
}

/* Random bits, addresses, and live handles with one bit flipped: none is dereferenced, each is answered. */
static void random_bits(const handle_type *type) {
  sg_context *context = new_context();
  char memory[256];
  uint64_t state = 88172645463325252u;
  void *live = NULL;
  int i;
  memset(memory, 0x5a, sizeof memory);
  REQUIRE_OK(type->create(context, &live));
  CHECK_STATUS(SG_STATUS_OK, type->use(live));
  check_dead(type, memory);
  check_dead(type, (void *)(uintptr_t)1);
  check_dead(type, (void *)UINTPTR_MAX);
  for (i = 0; i < 2000; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    if ((void *)(uintptr_t)state != live) check_dead(type, (void *)(uintptr_t)state);
  }
  if (type->create != create_context) /* two of that type are alive here */
    for (i = 0; i < 64; ++i) check_dead(type, (void *)((uintptr_t)live ^ (uintptr_t)1 << i));
  CHECK_STATUS(SG_STATUS_OK, type->use(live));
  CHECK_STATUS(SG_STATUS_OK, type->release(live));
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
}

/* Every type's live handle with the type bits of another: the handle comes from the caller, the type from the object.
 */
static void relabelled(void) {
  sg_context *context = new_context();
  void *handles[TYPES];
  int i, j;
  for (i = 0; i < TYPES; ++i) REQUIRE_OK(types[i].create(context, &handles[i]));
  for (i = 0; i < TYPES; ++i) {
    for (j = 0; j < TYPES; ++j) {
      const uintptr_t top = (uintptr_t)15 << 60;
      void *const forged = (void *)(((uintptr_t)handles[i] & ~top) | ((uintptr_t)handles[j] & top));
      if (i != j) check_dead(&types[j], forged);
    }
  }
  for (i = 0; i < TYPES; ++i) CHECK_STATUS(SG_STATUS_OK, types[i].release(handles[i]));
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
}

/* Every type's live handle, passed to every other type's calls. */
static void foreign_types(void) {
  sg_context *context = new_context();
  void *handles[TYPES];
  int i, j;
  for (i = 0; i < TYPES; ++i) REQUIRE_OK(types[i].create(context, &handles[i]));
  for (i = 0; i < TYPES; ++i) {
    for (j = 0; j < TYPES; ++j) {
      if (i != j) check_dead(&types[i], handles[j]);
    }
  }
  for (i = 0; i < TYPES; ++i) {
    CHECK_STATUS(SG_STATUS_OK, types[i].use(handles[i]));
    CHECK_STATUS(SG_STATUS_OK, types[i].release(handles[i]));
  }
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
}

/* A child keeps its parent alive, whichever is released first. */
static void parent_released_first(const handle_type *type) {
  sg_context *context = new_context();
  void *child = NULL;
  REQUIRE_OK(type->create(context, &child));
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_context_release(context));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, use_context(context));
  CHECK_STATUS(SG_STATUS_OK, type->use(child));
  CHECK_STATUS(SG_STATUS_OK, type->release(child));
  check_dead(type, child);
}

/* Children of one context in every order of two: finalisers of garbage collectors run in any order. */
static void children_in_any_order(void) {
  int i, j;
  for (i = 1; i < TYPES; ++i) {
    for (j = 1; j < TYPES; ++j) {
      sg_context *context = new_context();
      void *first = NULL, *second = NULL;
      REQUIRE_OK(types[i].create(context, &first));
      REQUIRE_OK(types[j].create(context, &second));
      CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
      CHECK_STATUS(SG_STATUS_OK, types[i].release(first));
      CHECK_STATUS(SG_STATUS_OK, types[j].use(second));
      CHECK_STATUS(SG_STATUS_OK, types[j].release(second));
    }
  }
}

/* Everything is released while a job runs, another waits for it, and a plan runs after both; all jobs complete. */
static void released_with_work_in_flight(void) {
  gate *g = gate_new(4 * sizeof(double));
  double b[4] = {1, 0, 0, 1}, c[4] = {0}, d[4] = {0}, e[4] = {0};
  volatile double *last = e;
  double *content;
  sg_gemm_desc first, second, third;
  sg_context *context;
  sg_stream *stream = NULL;
  sg_event *event = NULL;
  sg_queue *queue = NULL;
  sg_plan *plan = NULL;
  sg_job *jobs[3] = {NULL, NULL, NULL};
  sg_submit submit = SG_SUBMIT_INIT;
  sg_plan_options where = SG_PLAN_OPTIONS_INIT;
  int i;
  if (!g) {
    fprintf(stderr, "released_with_work_in_flight: skipped, userfaultfd is not available\n");
    return;
  }
  content = (double *)gate_content(g);
  for (i = 0; i < 4; ++i) content[i] = i + 1;
  context = new_context();
  REQUIRE_OK(sg_stream_create(context, NULL, &stream));
  REQUIRE_OK(sg_event_create(context, &event));
  REQUIRE_OK(sg_queue_create(context, NULL, &queue));
  first = small_gemm((double *)gate_memory(g), b, c);
  second = small_gemm(c, b, d);
  third = small_gemm(d, b, e);
  where.place_a = where.place_b = where.place_c = SG_MEMORY_PAGEABLE;
  REQUIRE_OK(create_gemm_plan(context, &third, &where, &plan));
  submit.stream = stream;
  submit.queue = queue;
  REQUIRE_OK(sg_gemm_async(context, &first, &submit, &jobs[0]));
  REQUIRE_OK(sg_event_record(event, stream));
  REQUIRE_OK(sg_gemm_async(context, &second, NULL, &jobs[1]));
  REQUIRE_OK(run_gemm_plan(plan, &third, &submit, &jobs[2]));
  for (i = 0; i < 3; ++i) CHECK_STATUS(SG_STATUS_OK, sg_job_release(jobs[i]));
  CHECK_STATUS(SG_STATUS_OK, sg_plan_release(plan));
  CHECK_STATUS(SG_STATUS_OK, sg_queue_release(queue));
  CHECK_STATUS(SG_STATUS_OK, sg_event_release(event));
  CHECK_STATUS(SG_STATUS_OK, sg_stream_release(stream));
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
  for (i = 0; i < 3; ++i) CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_job_query(jobs[i], NULL));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, use_plan(plan));
  gate_open(g);
  for (i = 0; i < 30000 && last[3] != 4; ++i) {
    const struct timespec moment = {0, 10000000};
    nanosleep(&moment, NULL);
  }
  for (i = 0; i < 4; ++i) CHECK(last[i] == i + 1);
  gate_free(g);
}

int main(int argc, char **argv) {
  int i;
  if (argc != 2) return 2;
  device_name = argv[1];
  for (i = 0; i < TYPES; ++i) {
    counting(&types[i]);
    stale_after_reuse(&types[i]);
    random_bits(&types[i]);
    if (types[i].create != create_context) parent_released_first(&types[i]);
  }
  foreign_types();
  relabelled();
  children_in_any_order();
  released_with_work_in_flight();
  return check_result();
}
