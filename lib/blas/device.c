/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"
#include "operations.h"
#include "residency.h"

sg_blas_library_functions sg_blas_streamgemm;

enum { DEVICE_UNKNOWN, DEVICE_OPEN, DEVICE_CLOSED };
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static int device_state = DEVICE_UNKNOWN; /* atomic */
static bool was_touched;                  /* atomic */
static int failures;                      /* atomic */
static sg_context *context;
static char device_name[64];
static bool is_unified;
static uint64_t memory_limit;
enum { FAILURES_AT_MOST = 3 };

bool sg_blas_device_was_touched(void) { return __atomic_load_n(&was_touched, __ATOMIC_ACQUIRE); }
const char *sg_blas_device_name(void) { return device_name; }
uint64_t sg_blas_memory_limit(void) { return memory_limit; }
sg_context *sg_blas_context(void) { return context; }
bool sg_blas_device_is_cuda(void) { return strncmp(device_name, "cuda", 4) == 0; }

bool sg_blas_device_is_closed(void) { return __atomic_load_n(&device_state, __ATOMIC_ACQUIRE) == DEVICE_CLOSED; }

void sg_blas_device_after_fork(void) {
  pthread_mutex_init(&device_lock, NULL);
  sg_blas_residency_after_fork();
}

bool sg_blas_may_have_device(const sg_blas_settings *settings) {
  return settings->device[0] != '\0' || access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

static bool load_library(void) {
  void *const handle = dlopen("libstreamgemm.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return fprintf(stderr, "streamgemm-blas: %s; the CPU computes\n", dlerror()), false;
#define SG_BLAS_FIND(name)                                                 \
  if ((*(void **)&sg_blas_streamgemm.name = dlsym(handle, #name)) == NULL) \
    return fprintf(stderr, "streamgemm-blas: libstreamgemm.so.1 has no %s; the CPU computes\n", #name), false;
  SG_BLAS_LIBRARY_FUNCTIONS(SG_BLAS_FIND)
#undef SG_BLAS_FIND
  return true;
}

/* GPUs that CUDA shows this process. */
static int visible_gpus(void) {
  const char *const list = secure_getenv("CUDA_VISIBLE_DEVICES");
  int count = 0;
  if (list != NULL) {
    for (const char *at = list; *at != '\0'; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) ++count;
    return count;
  }
  DIR *const folder = opendir("/dev");
  if (folder == NULL) return 0;
  for (const struct dirent *each; (each = readdir(folder)) != NULL;)
    count += strncmp(each->d_name, "nvidia", 6) == 0 && each->d_name[6] >= '0' && each->d_name[6] <= '9';
  closedir(folder);
  return count;
}

/* Ranks of an MPI program that share a GPU; 1 outside of one. */
static int ranks_of_a_gpu(const sg_blas_settings *settings, int gpus) {
  if (settings->local_rank < 0) return 1;
  const int ranks = settings->local_ranks > 0 ? settings->local_ranks : 8;
  return gpus > 0 ? (ranks + gpus - 1) / gpus : ranks;
}

static bool create(const sg_blas_settings *settings) {
  const int gpus = settings->device[0] == '\0' && settings->local_rank >= 0 ? visible_gpus() : 0;
  char by_rank[32] = "";
  if (gpus > 1) snprintf(by_rank, sizeof by_rank, "cuda:%d", settings->local_rank % gpus);
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = settings->device[0] != '\0' ? settings->device : by_rank;
  sg_device_info info = SG_DEVICE_INFO_INIT;
  bool is_open = sg_blas_streamgemm.sg_context_create(&options, &context) == SG_STATUS_OK &&
                 sg_blas_streamgemm.sg_context_get_device_info(context, 0, &info) == SG_STATUS_OK;
  if (is_open && settings->device[0] == '\0' && info.unified_memory) { /* "auto" found no GPU */
    sg_blas_streamgemm.sg_context_release(context);
    return false;
  }
  const int ranks = ranks_of_a_gpu(settings, gpus);
  const double percent = settings->memory_percent > 0 ? settings->memory_percent : ranks > 1 ? 80 : 0;
  memory_limit = settings->memory_bytes;
  if (is_open && memory_limit == 0 && percent > 0 && !info.unified_memory)
    memory_limit = (uint64_t)((double)info.memory_bytes * percent / 100 / ranks);
  /* Copies of operands get half of the memory. Without a limit a job that finds too little frees them. */
  const bool has_copies = settings->residency != SG_BLAS_RESIDENCY_OFF;
  const uint64_t for_copies = !has_copies ? 0 : memory_limit > 0 ? memory_limit / 2 : info.memory_bytes / 2;
  if (is_open && memory_limit > 0) {
    sg_blas_streamgemm.sg_context_release(context);
    options.memory_limit = has_copies ? memory_limit - for_copies : memory_limit;
    is_open = sg_blas_streamgemm.sg_context_create(&options, &context) == SG_STATUS_OK;
  }
  if (!is_open)
    return fprintf(stderr, "streamgemm-blas: %s; the CPU computes\n", sg_blas_streamgemm.sg_last_error_message()),
           false;
  is_unified = info.unified_memory != 0;
  snprintf(device_name, sizeof device_name, "%s", info.name);
  sg_blas_residency_open(context, settings, is_unified, for_copies);
  return true;
}

bool sg_blas_open_device(const sg_blas_settings *settings) {
  if (__atomic_load_n(&device_state, __ATOMIC_ACQUIRE) == DEVICE_UNKNOWN) {
    pthread_mutex_lock(&device_lock);
    if (device_state == DEVICE_UNKNOWN) {
      __atomic_store_n(&was_touched, true, __ATOMIC_RELEASE);
      __atomic_store_n(&device_state, load_library() && create(settings) ? DEVICE_OPEN : DEVICE_CLOSED,
                       __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&device_lock);
  }
  return __atomic_load_n(&device_state, __ATOMIC_ACQUIRE) == DEVICE_OPEN;
}

bool sg_blas_reads_c(const sg_blas_call *call, const sg_blas_settings *settings) {
  sg_blas_operation operation;
  sg_blas_describe(call, settings, &operation);
  return operation.reads_c;
}

/* The bytes of a matrix. */
static sg_blas_lines lines_of(const sg_matrix *of) {
  const bool is_row_major = of->layout == SG_LAYOUT_ROW_MAJOR;
  const size_t size = sg_blas_size_of(of->dtype);
  return (sg_blas_lines){of->data, (size_t)(is_row_major ? of->cols : of->rows) * size,
                         (size_t)(is_row_major ? of->rows : of->cols), (size_t)of->ld * size, 0};
}

static sg_memory_kind kind_of(const void *first) {
  sg_memory_kind kind = SG_MEMORY_AUTO;
  return sg_blas_streamgemm.sg_context_memory_kind(context, first, 1, &kind) == SG_STATUS_OK ? kind : SG_MEMORY_AUTO;
}

static bool is_on_device(const void *first) {
  const sg_memory_kind kind = kind_of(first);
  return kind == SG_MEMORY_DEVICE || kind == SG_MEMORY_PEER;
}

double sg_blas_places_of(const sg_blas_call *call, const sg_blas_settings *settings, sg_blas_places *places) {
  sg_blas_operation operation;
  sg_blas_describe(call, settings, &operation);
  const sg_matrix *const matrices[3] = {operation.a, operation.b, operation.c};
  double checking = 0;
  memset(places, 0, sizeof *places);
  for (int i = 0; i < 3 && !is_unified; ++i) {
    if (matrices[i] == NULL) continue;
    sg_blas_lines lines = lines_of(matrices[i]);
    if (i == 0) lines.part = operation.part_of_a;
    sg_memory_kind kind = SG_MEMORY_AUTO;
    if (sg_blas_streamgemm.sg_context_memory_kind(context, lines.first, 1, &kind) == SG_STATUS_OK)
      places->kinds[i] = (char)kind;
    if (kind == SG_MEMORY_DEVICE || kind == SG_MEMORY_PEER) places->has_device_operand = true;
    double seconds;
    if (i < 2 && operation.count == 0 && kind == SG_MEMORY_PAGEABLE && sg_blas_is_resident(&lines, &seconds)) {
      places->kinds[i] = SG_MEMORY_DEVICE;
      places->is_resident[i] = true;
      checking += seconds;
    }
  }
  for (int32_t i = 1; i < operation.count && !is_unified; ++i) {
    const sg_gemm_desc *const each = &operation.descs[i];
    places->has_device_operand = places->has_device_operand || is_on_device(each->a.data) ||
                                 is_on_device(each->b.data) || is_on_device(each->c.data);
  }
  return checking;
}

void sg_blas_count_failure(const char *routine, const char *message) {
  const int now = __atomic_add_fetch(&failures, 1, __ATOMIC_ACQ_REL);
  if (now > FAILURES_AT_MOST) return;
  fprintf(stderr, "streamgemm-blas: %s on %s: %s; the CPU computes it%s\n", routine, device_name, message,
          now == FAILURES_AT_MOST ? ", and all calls from now on" : "");
  if (now == FAILURES_AT_MOST) __atomic_store_n(&device_state, DEVICE_CLOSED, __ATOMIC_RELEASE);
}

static bool are_same(const sg_blas_lines *one, const sg_blas_lines *other) {
  return one->first == other->first && one->width == other->width && one->height == other->height &&
         one->pitch == other->pitch && one->part == other->part;
}

static bool is_pageable(const sg_blas_lines *lines) {
  sg_memory_kind kind = SG_MEMORY_AUTO;
  return sg_blas_streamgemm.sg_context_memory_kind(context, lines->first, sg_blas_span_of(lines), &kind) ==
             SG_STATUS_OK &&
         (is_unified || kind == SG_MEMORY_PAGEABLE);
}

/* Has the operation read the device's copies of A and B, as far as there are some. */
static void borrow(sg_blas_operation *operation, sg_blas_loan loans[2]) {
  if (operation->count > 0) return;
  sg_matrix *const matrices[2] = {operation->a, operation->b};
  const sg_blas_lines c = lines_of(operation->c);
  sg_blas_lines lines[2];
  for (int i = 0; i < 2 && matrices[i] != NULL; ++i) {
    lines[i] = lines_of(matrices[i]);
    if (i == 0) lines[i].part = operation->part_of_a;
    const bool is_twice = i == 1 && are_same(&lines[0], &lines[1]);
    if (!is_twice && is_pageable(&lines[i]) && !sg_blas_lines_overlap(&lines[i], &c))
      sg_blas_borrow(&lines[i], &loans[i]);
    const sg_blas_loan *const loan = &loans[is_twice ? 0 : i];
    if (loan->data == NULL) continue;
    matrices[i]->data = loan->data;
    matrices[i]->ld = (int64_t)(loan->pitch / sg_blas_size_of(matrices[i]->dtype));
  }
}

/* Whether a job that failed has written nothing to C: nothing has run, or nothing was copied back to host memory. */
static bool is_untouched_by(const sg_job_statistics *job, const sg_blas_operation *of) {
  if (job->commands_run == 0) return true;
  bool is_copied = !is_unified;
  for (int32_t i = 0; i == 0 || i < of->count; ++i) {
    const sg_memory_kind kind = kind_of(i == 0 ? of->c->data : of->descs[i].c.data);
    is_copied = is_copied && (kind == SG_MEMORY_PAGEABLE || kind == SG_MEMORY_PINNED);
  }
  return is_copied && job->bytes_out == 0;
}

/* Submits an operation and waits for it. `is_untouched`: C is as before. */
static sg_status run(const sg_blas_operation *operation, const char *label, sg_blas_outcome *out, bool *is_untouched) {
  sg_submit submit = SG_SUBMIT_INIT;
  submit.flags = SG_SUBMIT_WILL_WAIT;
  submit.label = label;
  sg_job *job = NULL;
  *is_untouched = true;
  sg_status status = sg_blas_submit(operation, context, &submit, &job);
  if (status != SG_STATUS_OK) return status;
  status = sg_blas_streamgemm.sg_job_wait(job, SG_FOREVER, NULL);
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  const bool is_known = sg_blas_streamgemm.sg_job_get_statistics(job, &statistics) == SG_STATUS_OK;
  *is_untouched = is_known && is_untouched_by(&statistics, operation);
  out->bytes_in += statistics.bytes_in;
  out->bytes_out += statistics.bytes_out;
  out->job_seconds = 1e-9 * (double)(statistics.end_ns - statistics.start_ns);
  sg_blas_streamgemm.sg_job_release(job);
  return status;
}

/* The name, the letters and the sizes of a call. */
static void write_label(const sg_blas_call *call, char *text, size_t size) {
  char letters[6], *end = letters;
  for (const char *each = (const char[]){call->side, call->uplo, call->transa, call->transb, call->diag, 1}; *each != 1;
       ++each)
    if (*each != 0) *end++ = *each;
  *end = 0;
  snprintf(text, size, "%s %s %lldx%lldx%lld", call->entry->name, letters, (long long)call->m, (long long)call->n,
           (long long)call->k);
}

static bool compute(const sg_blas_call *call, const sg_blas_settings *settings, sg_blas_outcome *out) {
  char label[SG_LABEL_SIZE], message[512];
  write_label(call, label, sizeof label);
  sg_blas_operation operation;
  sg_status status;
  bool is_untouched, repeats = false;
  do {
    sg_blas_describe(call, settings, &operation);
    sg_blas_loan loans[2] = {{.of = NULL}, {.of = NULL}};
    if (!repeats && !call->reads_host_operands) borrow(&operation, loans);
    status = run(&operation, label, out, &is_untouched);
    if (status != SG_STATUS_OK) snprintf(message, sizeof message, "%s", sg_blas_streamgemm.sg_last_error_message());
    for (int i = 0; i < 2; ++i) {
      out->bytes_in += loans[i].upload_bytes;
      sg_blas_repay(&loans[i]);
    }
    repeats = !repeats && status == SG_STATUS_OUT_OF_MEMORY && is_untouched && sg_blas_drop_residents(NULL, 0);
  } while (repeats);
  if (status == SG_STATUS_OK) return true;
  if (operation.reads_c && !is_untouched) {
    fprintf(stderr,
            "streamgemm-blas: %s on %s: %s; C, which the call also reads, may be partly written: the process ends\n",
            call->entry->name, device_name, message);
    abort();
  }
  /* C overlaps A or B, or an address is not aligned: BLAS leaves these to the program, and no device is to blame. */
  const bool is_refused = is_untouched && (status == SG_STATUS_INVALID_ARGUMENT || status == SG_STATUS_UNSUPPORTED ||
                                           status == SG_STATUS_SHUTDOWN);
  if (!is_refused) sg_blas_count_failure(call->entry->name, message);
  return false;
}

static unsigned calls_begun, calls_running; /* atomic */

bool sg_blas_device_compute(const sg_blas_call *call, const sg_blas_settings *settings, sg_blas_outcome *out) {
  const unsigned number = __atomic_add_fetch(&calls_begun, 1, __ATOMIC_RELAXED);
  const bool began_alone = __atomic_add_fetch(&calls_running, 1, __ATOMIC_RELAXED) == 1;
  const bool is_computed = compute(call, settings, out);
  __atomic_sub_fetch(&calls_running, 1, __ATOMIC_RELAXED);
  if (!began_alone || __atomic_load_n(&calls_begun, __ATOMIC_RELAXED) != number) out->job_seconds = 0;
  return is_computed;
}

static double predict(sg_operation which, const void *desc, int32_t count, const sg_plan_options *options) {
  sg_plan *plan = NULL;
  sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
  const sg_operation_desc operation = {sizeof operation, which, count, desc};
  if (sg_blas_streamgemm.sg_plan_create(context, &operation, options, &plan) != SG_STATUS_OK) return 0;
  const bool is_known = sg_blas_streamgemm.sg_plan_get_prediction(plan, &prediction) == SG_STATUS_OK;
  sg_blas_streamgemm.sg_plan_release(plan);
  return is_known ? prediction.predicted_seconds : 0;
}

double sg_blas_predict(const sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places) {
  sg_blas_operation operation;
  sg_blas_describe(call, settings, &operation);
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  if (operation.count > 0) return predict(SG_OPERATION_GEMM, operation.descs, operation.count, &options);
  if (operation.which == SG_OPERATION_GEMM) { /* its matrices have addresses all or none */
    operation.a->data = operation.b->data = operation.c->data = NULL;
    options.place_a = (sg_memory_kind)places->kinds[0];
    options.place_b = (sg_memory_kind)places->kinds[1];
    options.place_c = (sg_memory_kind)places->kinds[2];
  } else { /* what has no address is in device memory */
    if (places->is_resident[0]) operation.a->data = NULL;
    if (places->is_resident[1]) operation.b->data = NULL;
  }
  return predict(operation.which, &operation.desc, 1, &options);
}

double sg_blas_predict_square(char type, int n) {
  const sg_matrix square = {NULL, n, n, n, sg_blas_type_of(type), SG_LAYOUT_COLUMN_MAJOR};
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = desc.b = desc.c = square;
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  if (!is_unified) options.place_a = options.place_b = options.place_c = SG_MEMORY_PAGEABLE;
  return predict(SG_OPERATION_GEMM, &desc, 1, &options);
}
