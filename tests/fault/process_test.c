/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that end, fork, lose threads or receive signals while work is in flight. Each case is one short process;
 * the driver runs it with a time limit, as often as it takes to meet the rare moment.
 *
 *   process_test DEVICE CASE:RUNS...
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "support/check.h"

static const char *device;

static sg_context *open_device(const char *name) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_context *context = NULL;
  sg_status status;
  options.device = name;
  status = sg_context_create(&options, &context);
  if (status == SG_STATUS_NO_DEVICE && getenv("SG_TEST_SKIP_ABSENT")) exit(77);
  REQUIRE_OK(status);
  return context;
}

static void pause_us(long us) {
  const struct timespec time = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&time, NULL);
}

static sg_gemm_desc make_gemm(double *a, double *b, double *c, int64_t n) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  sg_matrix view = {NULL, 0, 0, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  view.rows = view.cols = n;
  desc.a = desc.b = desc.c = view;
  desc.a.data = a;
  desc.b.data = b;
  desc.c.data = c;
  return desc;
}

static double *matrix(int64_t n, double value) {
  double *memory = malloc((size_t)(n * n) * sizeof *memory);
  int64_t i;
  for (i = 0; i < n * n; ++i) memory[i] = value;
  return memory;
}

/* Work that outlasts the program: one large GEMM, or many small ones. */
static void keep_busy(sg_context *context) {
  const int64_t n = strncmp(device, "cpu", 3) == 0 ? 1500 : 300;
  const sg_gemm_desc desc = make_gemm(matrix(n, 1), matrix(n, 1), matrix(n, 0), n);
  REQUIRE_OK(sg_gemm_async(context, &desc, NULL, NULL));
}
static void keep_busy_with_many(sg_context *context) {
  const int64_t n = 40;
  double *a = matrix(n, 1), *b = matrix(n, 1);
  int i;
  for (i = 0; i < 3000; ++i) {
    const sg_gemm_desc desc = make_gemm(a, b, matrix(n, 0), n);
    REQUIRE_OK(sg_gemm_async(context, &desc, NULL, NULL));
  }
}

/* A GEMM of 32 x 32 matrices on a context, checked. */
static void multiply(sg_context *context) {
  enum { N = 32 };
  double *a = matrix(N, 2), *b = matrix(N, 3), *c = matrix(N, -1);
  const sg_gemm_desc desc = make_gemm(a, b, c, N);
  int i;
  CHECK_STATUS(SG_STATUS_OK, sg_gemm(context, &desc, NULL));
  for (i = 0; i < N * N; ++i) {
    if (c[i] != 6 * N) break;
  }
  CHECK(i == N * N);
  free(a);
  free(b);
  free(c);
}

/* -- exit ---------------------------------------------------------------------------------------------------------- */

static void exit_beside_a_large_gemm(void) {
  keep_busy(open_device(device));
  pause_us(test_seed * 7919 % 40000);
  exit(0);
}
static void exit_beside_many_small_ones(void) {
  keep_busy_with_many(open_device(device));
  pause_us(test_seed * 7919 % 5000);
  exit(0);
}
static void quick_exit_beside_work(void) {
  keep_busy(open_device(device));
  pause_us(test_seed * 7919 % 40000);
  _exit(0);
}
static void return_without_releasing(void) {
  sg_context *context = open_device(device);
  sg_stream *stream;
  sg_queue *queue;
  sg_buffer *buffer;
  REQUIRE_OK(sg_stream_create(context, NULL, &stream));
  REQUIRE_OK(sg_queue_create(context, NULL, &queue));
  REQUIRE_OK(sg_buffer_create(context, 1000, NULL, &buffer));
  multiply(context);
  keep_busy_with_many(context);
}

/* A released context's own threads release its remaining resources, concurrently with the exit of the process. */
static void exit_behind_release(void) {
  sg_context *context = open_device(device);
  multiply(context);
  keep_busy(context);
  REQUIRE_OK(sg_context_synchronize(context, SG_FOREVER));
  REQUIRE_OK(sg_context_release(context));
  pause_us(test_seed * 7919 % 2000);
  exit(0);
}

/* The jobs that exit drops are not told to a function whose data may be destroyed already. */
static void end_wrongly(sg_log_level level, const char *area, const char *message, void *user) {
  (void)level, (void)area, (void)message, (void)user;
  _exit(3);
}
static void exit_with_a_log_callback(void) {
  sg_context *context = open_device(device);
  keep_busy(context);
  REQUIRE_OK(sg_log_set(SG_LOG_ERROR, end_wrongly, NULL));
  exit(0);
}

/* A pipeline of a function that takes some time, if the device's functions compute on the host, and a layer with
 * streamed weights. Batches are pushed until the process ends. */
static sg_status slow_copy(const sg_custom_call *call, void *user) {
  if (call->native_stream) return SG_STATUS_OK;
  pause_us(200);
  memcpy(call->operands[1], call->operands[0], *(const size_t *)user);
  return SG_STATUS_OK;
}
static sg_pipeline *busy_pipeline(sg_context *context, int64_t n) {
  static size_t bytes;
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  sg_pipeline *pipeline;
  double *const w = matrix(n, 1);
  const sg_weight weight = {w, (uint64_t)(n * n) * sizeof *w};
  int i;
  bytes = weight.bytes;
  options.input_bytes = bytes;
  REQUIRE_OK(sg_pipeline_create(context, &options, &pipeline));
  for (i = 0; i < 2; ++i) {
    sg_stage_desc desc = SG_STAGE_DESC_INIT;
    sg_stage stage = SG_STAGE_INIT;
    sg_submit record = SG_SUBMIT_INIT;
    sg_custom_operand operands[2];
    sg_custom_desc custom = SG_CUSTOM_DESC_INIT;
    desc.output_bytes = bytes;
    if (i == 1) {
      desc.weights = &weight;
      desc.weight_count = 1;
      desc.place = SG_WEIGHTS_STREAMED;
    }
    REQUIRE_OK(sg_pipeline_add_stage(pipeline, &desc, &stage));
    record.graph = stage.graph;
    if (i == 1) {
      const sg_gemm_desc gemm = make_gemm((double *)stage.input, stage.weights[0], stage.output, n);
      REQUIRE_OK(sg_gemm_async(context, &gemm, &record, NULL));
      continue;
    }
    memset(operands, 0, sizeof operands);
    operands[0].data = (void *)stage.input;
    operands[1].data = stage.output;
    operands[0].bytes = operands[1].bytes = bytes;
    operands[0].access = SG_ACCESS_READ;
    operands[1].access = SG_ACCESS_WRITE;
    custom.function = slow_copy;
    custom.user = &bytes;
    custom.operands = operands;
    custom.operand_count = 2;
    REQUIRE_OK(sg_custom_async(context, &custom, &record, NULL));
  }
  return pipeline;
}
static void *push_on(void *user) {
  const int64_t n = 64;
  double *const x = matrix(n, 1), *const y = matrix(n, 0);
  while (sg_pipeline_push_async(user, x, y, NULL, NULL) == SG_STATUS_OK) continue;
  return NULL;
}
static void exit_beside_a_pipeline(void) {
  pthread_t pusher;
  sg_pipeline *const pipeline = busy_pipeline(open_device(device), 64);
  CHECK(pthread_create(&pusher, NULL, push_on, pipeline) == 0);
  pause_us(test_seed * 7919 % 30000);
  exit(0);
}

/* A completion, on the backend's thread, starts the context's first run over two devices, which makes streams. */
static void exit_beside_the_first_run_over_devices(void) {
  enum { BYTES = 20000 };
  sg_context *const context = open_device(device);
  sg_all_reduce_desc sum = SG_ALL_REDUCE_DESC_INIT;
  sg_buffer *memory;
  void *vectors[2], *pinned;
  int i;
  for (i = 0; i < 2; ++i) {
    sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
    options.device = i;
    REQUIRE_OK(sg_buffer_create(context, BYTES, &options, &memory));
    REQUIRE_OK(sg_buffer_data(memory, &vectors[i]));
  }
  REQUIRE_OK(sg_host_alloc(context, BYTES, &pinned));
  memset(pinned, 0, BYTES);
  for (i = 0; i < 40; ++i) REQUIRE_OK(sg_copy_async(context, vectors[0], pinned, BYTES, NULL, NULL));
  sum.operands = vectors;
  sum.operand_count = 2;
  sum.elements = BYTES / 4;
  REQUIRE_OK(sg_all_reduce_async(context, &sum, NULL, NULL));
  pause_us(test_seed * 7919 % 800);
  exit(0);
}

static sg_context *kept = NULL;
static void submit_while_exiting(void) {
  /* Runs after the library's own handler or before it: the status is then SHUTDOWN or OK, and nothing hangs. */
  static double a, b, c;
  sg_context *context = NULL;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_job *job = NULL;
  const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1);
  options.device = device;
  if (sg_gemm_async(kept, &desc, NULL, &job) == SG_STATUS_OK) (void)sg_job_wait(job, SG_FOREVER, NULL);
  if (sg_context_create(&options, &context) != SG_STATUS_OK) return;
  if (sg_gemm_async(context, &desc, NULL, &job) == SG_STATUS_OK) (void)sg_job_wait(job, SG_FOREVER, NULL);
}
static void a_handler_that_submits(void) {
  atexit(submit_while_exiting); /* registered first, so that it runs last */
  kept = open_device(device);
  multiply(kept);
  keep_busy(kept);
}

/* The library's thread-local caches are destroyed before other libraries' thread destructors run. */
static pthread_key_t at_the_end;
static void multiply_at_the_end(void *context) {
  multiply((sg_context *)context);
  multiply((sg_context *)context);
}
static void *multiply_and_leave(void *context) {
  multiply((sg_context *)context);
  CHECK(pthread_setspecific(at_the_end, context) == 0);
  return NULL;
}
static void thread_exit_after_gemms(void) {
  sg_context *context = open_device(device);
  int i;
  CHECK(pthread_key_create(&at_the_end, multiply_at_the_end) == 0);
  for (i = 0; i < 20; ++i) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, multiply_and_leave, context) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
  }
  REQUIRE_OK(sg_context_release(context));
}

static void *wait_for_ever(void *job) {
  (void)sg_job_wait((sg_job *)job, SG_FOREVER, NULL);
  return NULL;
}
/* Other threads are inside waits and submissions when main returns. */
static void *submit_until_shutdown(void *context) {
  double *a = matrix(16, 1), *b = matrix(16, 1), *c = matrix(16, 1);
  const sg_gemm_desc desc = make_gemm(a, b, c, 16);
  while (sg_gemm((sg_context *)context, &desc, NULL) == SG_STATUS_OK) continue;
  return NULL;
}
static void exit_beside_threads_in_calls(void) {
  sg_context *context = open_device(device);
  const int64_t n = 1200;
  const sg_gemm_desc desc = make_gemm(matrix(n, 1), matrix(n, 1), matrix(n, 0), n);
  sg_job *job = NULL;
  pthread_t thread;
  REQUIRE_OK(sg_gemm_async(context, &desc, NULL, &job));
  pthread_create(&thread, NULL, wait_for_ever, job);
  pthread_create(&thread, NULL, submit_until_shutdown, context);
  pthread_create(&thread, NULL, submit_until_shutdown, context);
  pause_us(test_seed * 7919 % 20000);
  exit(0);
}

/* Calls that several threads compute: one application thread with the workers' help. */
static void *multiply_in_parts_until_shutdown(void *context) {
  const int64_t n = 160;
  double *a = matrix(n, 1), *b = matrix(n, 1), *c = matrix(n, 1);
  const sg_gemm_desc desc = make_gemm(a, b, c, n);
  while (sg_gemm((sg_context *)context, &desc, NULL) == SG_STATUS_OK) CHECK(c[0] == n && c[n * n - 1] == n);
  return NULL;
}
static void exit_beside_calls_in_parts(void) {
  sg_context *context = open_device(device);
  pthread_t thread;
  pthread_create(&thread, NULL, multiply_in_parts_until_shutdown, context);
  pause_us(5000 + test_seed * 7919 % 20000);
  exit(check_result());
}

/* -- fork ---------------------------------------------------------------------------------------------------------- */

static void *submit_until_told(void *stop) {
  sg_context *context = open_device(device);
  while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE)) multiply(context);
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
  return NULL;
}

/* A handle stays dead in the child's child, and so on for more forks than its bits can count. */
static void nested_forks(void) {
  sg_context *context = open_device(device);
  int depth;
  for (depth = 0; depth < 130; ++depth) {
    int status = 0;
    const pid_t child = fork();
    if (child != 0) {
      CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
      if (depth > 0) exit(check_result());
      CHECK_STATUS(SG_STATUS_OK, sg_context_synchronize(context, SG_FOREVER));
      return;
    }
    CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_context_synchronize(context, SG_FOREVER));
  }
  exit(check_result());
}

/* Opening a device starts threads and initializes libraries that have locks of their own. */
static void *open_until_told(void *stop) {
  while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE))
    CHECK_STATUS(SG_STATUS_OK, sg_context_release(open_device(device)));
  return NULL;
}

/* In the child: inherited handles are dead, a context of its own works, and it can exit. */
static void in_the_child(sg_context *context, sg_stream *stream, sg_queue *queue, sg_queue *shared, sg_job *job) {
  static double a, b, c;
  const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1);
  sg_completion completion;
  sg_submit submit = SG_SUBMIT_INIT;
  sg_context *own;
  sg_queue *own_queue = NULL;
  int32_t count;
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_gemm_async(context, &desc, NULL, NULL));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_context_synchronize(context, SG_FOREVER));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_stream_query(stream));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE,
               sg_queue_next_batch(queue, &completion, sizeof(sg_completion), 1, SG_FOREVER, &count));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE,
               sg_queue_next_batch(shared, &completion, sizeof(sg_completion), 1, SG_FOREVER, &count));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_queue_release(shared));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_job_wait(job, SG_FOREVER, NULL));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_job_release(job));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_context_release(context));
  own = open_device("cpu");
  multiply(own);
  CHECK_STATUS(SG_STATUS_OK, sg_queue_create(NULL, NULL, &own_queue));
  submit.queue = own_queue;
  CHECK_STATUS(SG_STATUS_OK, sg_gemm_async(own, &desc, &submit, NULL));
  CHECK_STATUS(SG_STATUS_OK, sg_queue_next_batch(own_queue, &completion, sizeof(sg_completion), 1, SG_FOREVER, &count));
  CHECK_STATUS(SG_STATUS_OK, sg_queue_release(own_queue));
  CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_context_release(context)); /* also while a live context exists */
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(own));
  exit(check_result());
}

/* The child refuses the pipeline, and has one of its own; the parent's batches are complete and right. */
static void check_batch(sg_pipeline *pipeline) {
  const int64_t n = 64;
  double *const x = matrix(n, 2), *const y = matrix(n, 0);
  CHECK_STATUS(SG_STATUS_OK, sg_pipeline_push(pipeline, x, y, NULL));
  CHECK(y[0] == 2 * n && y[n * n - 1] == 2 * n);
  free(x);
  free(y);
}
static void fork_beside_a_pipeline(void) {
  enum { BATCHES = 12 };
  const int64_t n = 64;
  sg_context *const context = open_device(device);
  sg_pipeline *const pipeline = busy_pipeline(context, n);
  double *const x = matrix(n, 1), *results[BATCHES];
  sg_job *jobs[BATCHES];
  int i;
  check_batch(pipeline);
  for (i = 0; i < BATCHES; ++i) {
    results[i] = matrix(n, 0);
    CHECK_STATUS(SG_STATUS_OK, sg_pipeline_push_async(pipeline, x, results[i], NULL, &jobs[i]));
    if (i % 4 == 2) {
      int status = 0;
      pid_t child;
      pause_us(test_seed * 31 % 3000);
      child = fork();
      if (child == 0) {
        CHECK_STATUS(SG_STATUS_INVALID_HANDLE, sg_pipeline_push_async(pipeline, x, results[i], NULL, NULL));
        check_batch(busy_pipeline(open_device(strncmp(device, "cuda", 4) == 0 ? "cpu" : device), n));
        _exit(check_result());
      }
      CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
  }
  for (i = 0; i < BATCHES; ++i) {
    CHECK_STATUS(SG_STATUS_OK, sg_job_wait(jobs[i], SG_FOREVER, NULL));
    CHECK(results[i][0] == n && results[i][n * n - 1] == n);
  }
  CHECK_STATUS(SG_STATUS_OK, sg_pipeline_release(pipeline));
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
}

static void fork_beside_work(void) {
  sg_context *context = open_device(device);
  sg_stream *stream;
  sg_queue *queue, *shared;
  sg_submit submit = SG_SUBMIT_INIT;
  pthread_t others[2];
  int stop = 0, i;
  REQUIRE_OK(sg_stream_create(context, NULL, &stream));
  REQUIRE_OK(sg_queue_create(context, NULL, &queue));
  REQUIRE_OK(sg_queue_create(NULL, NULL, &shared));
  submit.queue = shared;
  for (i = 0; i < 2; ++i) pthread_create(&others[i], NULL, submit_until_told, &stop);
  for (i = 0; i < 4; ++i) {
    const int64_t n = 200;
    double *a = matrix(n, 1), *b = matrix(n, 1), *c = matrix(n, 0);
    const sg_gemm_desc desc = make_gemm(a, b, c, n);
    sg_job *job = NULL;
    pid_t child;
    int status = 0;
    REQUIRE_OK(sg_gemm_async(context, &desc, &submit, &job));
    pause_us(test_seed * 31 % 3000);
    child = fork();
    if (child == 0) in_the_child(context, stream, queue, shared, job);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_STATUS(SG_STATUS_OK, sg_job_wait(job, SG_FOREVER, NULL));
    CHECK(c[0] == n && c[n * n - 1] == n);
    CHECK_STATUS(SG_STATUS_OK, sg_job_release(job));
    free(a);
    free(b);
    free(c);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  for (i = 0; i < 2; ++i) pthread_join(others[i], NULL);
  multiply(context);
  for (i = 0; i < 4; ++i) { /* the parent's queue has lost nothing */
    sg_completion completion;
    int32_t count = 0;
    CHECK_STATUS(SG_STATUS_OK, sg_queue_next_batch(shared, &completion, sizeof(sg_completion), 1, SG_FOREVER, &count));
  }
}

struct calls {
  sg_context *context;
  int stop;
};
static void *multiply_in_parts_until_told(void *given) {
  struct calls *own = given;
  const int64_t n = 160;
  double *a = matrix(n, 1), *b = matrix(n, 1), *c = matrix(n, 1);
  const sg_gemm_desc desc = make_gemm(a, b, c, n);
  while (!__atomic_load_n(&own->stop, __ATOMIC_ACQUIRE)) {
    c[0] = c[n * n - 1] = -1;
    CHECK_STATUS(SG_STATUS_OK, sg_gemm(own->context, &desc, NULL));
    CHECK(c[0] == n && c[n * n - 1] == n);
  }
  return NULL;
}
/* The child has none of the threads that help with a call. */
static void fork_beside_calls_in_parts(void) {
  struct calls own = {open_device(device), 0};
  pthread_t other;
  int i;
  pthread_create(&other, NULL, multiply_in_parts_until_told, &own);
  for (i = 0; i < 10; ++i) {
    pid_t child;
    int status = 0;
    pause_us((test_seed + (unsigned)i) * 7919 % 3000);
    child = fork();
    if (child == 0) {
      struct calls fresh = {open_device(device), 0};
      pthread_t same;
      pthread_create(&same, NULL, multiply_in_parts_until_told, &fresh);
      pause_us(2000);
      __atomic_store_n(&fresh.stop, 1, __ATOMIC_RELEASE);
      pthread_join(same, NULL);
      exit(check_result());
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  __atomic_store_n(&own.stop, 1, __ATOMIC_RELEASE);
  pthread_join(other, NULL);
}

static void fork_beside_opening(void) {
  pthread_t others[2];
  int stop = 0, i;
  const int *const looks = dlsym(RTLD_DEFAULT, "sg_test_looks"); /* of slow_first_look.cpp, if it is preloaded */
  for (i = 0; i < 2; ++i) pthread_create(&others[i], NULL, open_until_told, &stop);
  while (looks && !__atomic_load_n(looks, __ATOMIC_ACQUIRE)) pause_us(100);
  for (i = 0; i < 30; ++i) {
    pid_t child;
    int status = 0;
    pause_us((test_seed + (unsigned)i) * 97 % 1000);
    child = fork();
    if (child == 0) {
      multiply(open_device("cpu"));
      exit(check_result());
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  for (i = 0; i < 2; ++i) pthread_join(others[i], NULL);
}

static pthread_t forking_thread;
static int forking = 0, stop_forking = 0;
static void *fork_until_told(void *unused) {
  while (!__atomic_load_n(&stop_forking, __ATOMIC_ACQUIRE)) {
    const pid_t child = fork();
    int status = 0;
    if (child == 0) _exit(0);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return unused;
}
static void end_forking(void) {
  __atomic_store_n(&stop_forking, 1, __ATOMIC_RELEASE);
  if (forking) pthread_join(forking_thread, NULL);
}
/* Neither exit nor fork delays the other beyond the work that both wait for. The forks stop when the library is idle,
 * before glibc removes the library's fork handlers: it does so without regard to a fork in progress. */
static void fork_beside_exit(void) {
  atexit(end_forking); /* registered first, so that it runs last */
  keep_busy(open_device(device));
  forking = pthread_create(&forking_thread, NULL, fork_until_told, NULL) == 0;
  pause_us(test_seed * 7919 % 20000);
  exit(0);
}

#ifdef __GLIBC__
/* Fork handlers installed from now on are counted. Replaces glibc's function, which pthread_atfork calls. */
static int fork_handlers = 0;
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library) {
  typedef int function(void (*)(void), void (*)(void), void (*)(void), void *);
  function *next;
  *(void **)&next = dlsym(RTLD_NEXT, "__register_atfork");
  ++fork_handlers;
  return next(prepare, parent, child, library);
}
/* Handlers installed with the first context would be too late for a concurrent fork. Libraries that a device loads
 * install theirs; later contexts install none. */
static void fork_handlers_come_with_the_library(void) {
  int before = fork_handlers;
  CHECK(before > 0);
  multiply(open_device(device));
  CHECK(strcmp(device, "cpu") == 0 || fork_handlers == before);
  before = fork_handlers;
  multiply(open_device(device));
  CHECK(fork_handlers == before);
}
#else
static void fork_handlers_come_with_the_library(void) { exit(77); }
#endif

/* -- signals ------------------------------------------------------------------------------------------------------- */

/* Threads that existed before the first context: the program's, and those that libraries start when they are loaded. */
enum { MOST_THREADS = 64 };
static long known_threads[MOST_THREADS];
static volatile sig_atomic_t known_count, alarms, strays;
static void remember_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  const struct dirent *task;
  while ((task = readdir(tasks)) && known_count < MOST_THREADS) known_threads[known_count++] = atol(task->d_name);
  closedir(tasks);
}
static void on_alarm(int signal) {
  const long self = syscall(SYS_gettid);
  int i;
  (void)signal;
  ++alarms;
  for (i = 0; i < known_count; ++i) {
    if (known_threads[i] == self) return;
  }
  ++strays;
}
static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* A timer of 0.5 ms whose handler interrupts every system call: results must not change. */
static void signals_while_waiting(void) {
  struct sigaction action;
  const struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  sg_context *context;
  sg_queue *queue = NULL;
  sg_submit submit = SG_SUBMIT_INIT;
  sg_completion completion;
  int32_t fd = -1, count = 0, i;
  double before;
  remember_threads();
  context = open_device(device);
  REQUIRE_OK(sg_queue_create(context, NULL, &queue));
  REQUIRE_OK(sg_queue_fd(queue, &fd));
  submit.queue = queue;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm; /* no SA_RESTART */
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &every, NULL);
  before = seconds();
  CHECK_STATUS(SG_STATUS_TIMEOUT, sg_queue_next_batch(queue, &completion, sizeof(sg_completion), 1, 100000000, &count));
  CHECK(seconds() - before > 0.0999);
  for (i = 0; i < 20 || alarms <= 50; ++i) { /* few where the machine is slow: then for longer */
    enum { N = 200 };
    static double a[N * N], b[N * N], c[N * N];
    const sg_gemm_desc desc = make_gemm(a, b, c, N);
    struct pollfd wait = {-1, POLLIN, 0};
    sg_job *job = NULL;
    int ready;
    wait.fd = fd;
    REQUIRE_OK(sg_gemm_async(context, &desc, &submit, &job));
    if (i % 4 == 0) CHECK_STATUS(SG_STATUS_OK, sg_job_wait(job, SG_FOREVER, NULL));
    if (i % 4 == 1) CHECK_STATUS(SG_STATUS_OK, sg_job_wait(job, INT64_C(300000000000), NULL));
    if (i % 4 == 2) CHECK_STATUS(SG_STATUS_OK, sg_context_synchronize(context, SG_FOREVER));
    if (i % 4 == 3) CHECK_STATUS(SG_STATUS_OK, sg_job_wait_all(&job, 1, SG_FOREVER, NULL));
    do ready = poll(&wait, 1, 300000);
    while (ready < 0 && errno == EINTR);
    CHECK(ready == 1);
    CHECK_STATUS(SG_STATUS_OK, sg_queue_next_batch(queue, &completion, sizeof(sg_completion), 1, SG_FOREVER, &count));
    CHECK_STATUS(SG_STATUS_OK, sg_job_release(job));
  }
  setitimer(ITIMER_REAL, &never, NULL);
  CHECK(strays == 0); /* the library's threads block signals */
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
}

/* -- threads and descriptors --------------------------------------------------------------------------------------- */

typedef struct submission {
  sg_context *context;
  sg_job *jobs[100];
  double c[100];
} submission;

static void *submit_and_leave(void *data) {
  static double a = 3, b = 7;
  submission *s = (submission *)data;
  int i;
  for (i = 0; i < 100; ++i) {
    const sg_gemm_desc desc = make_gemm(&a, &b, &s->c[i], 1);
    REQUIRE_OK(sg_gemm_async(s->context, &desc, NULL, &s->jobs[i]));
  }
  (void)sg_gemm_async(NULL, NULL, NULL, NULL); /* leaves an error message, which is freed at thread exit */
  return NULL;
}
static void the_submitting_thread_leaves(void) {
  int round, i;
  sg_context *context = open_device(device);
  for (round = 0; round < 20; ++round) {
    static submission s;
    pthread_t thread;
    memset(&s, 0, sizeof s);
    s.context = context;
    pthread_create(&thread, NULL, submit_and_leave, &s);
    pthread_join(thread, NULL);
    CHECK_STATUS(SG_STATUS_OK, sg_job_wait_all(s.jobs, 100, SG_FOREVER, NULL));
    for (i = 0; i < 100; ++i) {
      CHECK(s.c[i] == 21);
      CHECK_STATUS(SG_STATUS_OK, sg_job_release(s.jobs[i]));
    }
  }
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
}

/* With 0, 1 and 2 closed, the library's own descriptors may get these numbers. */
static void without_standard_streams(void) {
  sg_context *context;
  sg_queue *queue = NULL;
  sg_submit submit = SG_SUBMIT_INIT;
  sg_completion completion;
  double a = 2, b = 4, c = 0;
  const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1);
  struct pollfd wait = {-1, POLLIN, 0};
  int32_t fd = -1, count = 0;
  close(0);
  close(1);
  close(2);
  context = open_device(device);
  REQUIRE_OK(sg_queue_create(context, NULL, &queue));
  REQUIRE_OK(sg_queue_fd(queue, &fd));
  CHECK(fd >= 0);
  submit.queue = queue;
  submit.tag = 5;
  REQUIRE_OK(sg_gemm_async(context, &desc, &submit, NULL));
  wait.fd = fd;
  CHECK(poll(&wait, 1, 300000) == 1);
  CHECK_STATUS(SG_STATUS_OK, sg_queue_next_batch(queue, &completion, sizeof(sg_completion), 1, SG_FOREVER, &count));
  CHECK(count == 1 && completion.tag == 5 && c == 8);
  CHECK_STATUS(SG_STATUS_OK, sg_queue_release(queue));
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
}

#define CASE(name) \
  { #name, name }
static const struct test_case cases[] = {
    CASE(exit_beside_a_large_gemm),
    CASE(exit_beside_many_small_ones),
    CASE(exit_beside_a_pipeline),
    CASE(exit_beside_the_first_run_over_devices),
    CASE(fork_beside_a_pipeline),
    CASE(quick_exit_beside_work),
    CASE(return_without_releasing),
    CASE(exit_behind_release),
    CASE(exit_with_a_log_callback),
    CASE(a_handler_that_submits),
    CASE(thread_exit_after_gemms),
    CASE(exit_beside_threads_in_calls),
    CASE(exit_beside_calls_in_parts),
    CASE(fork_beside_calls_in_parts),
    CASE(fork_beside_work),
    CASE(fork_beside_opening),
    CASE(fork_beside_exit),
    CASE(nested_forks),
    CASE(fork_handlers_come_with_the_library),
    CASE(signals_while_waiting),
    CASE(the_submitting_thread_leaves),
    CASE(without_standard_streams),
};

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  device = argv[1];
  return run_cases(cases, sizeof cases / sizeof cases[0], check_result, argv + 2, argc - 2, 300);
}
