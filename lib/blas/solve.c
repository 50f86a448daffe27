/* SPDX-License-Identifier: Apache-2.0 */
#include "solve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cusolver.h"
#include "library.h"
#include "residents.h"

enum { ALIGNMENT = 256, BLOCK = 256 };

/* One call: its device memory and the jobs in flight. */
typedef struct work {
  const sg_blas_solver_call *of;
  sg_blas_outcome *out;
  sg_blas_cusolver_job job;
  size_t element, real;
  sg_buffer *operands, *workspace;
  char *base;    /* of operands */
  sg_job **jobs; /* as many as a call has at once */
  size_t job_count;
  char message[512]; /* of the device's first failure; "" also if there is too little memory */
} work;

static bool fail(work *w) {
  if (w->message[0] == '\0') snprintf(w->message, sizeof w->message, "%s", sg_blas_streamgemm.sg_last_error_message());
  return false;
}

/* Starts a copy between host and device memory. */
static bool copy(work *w, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height) {
  sg_job **const job = &w->jobs[w->job_count];
  if (sg_blas_streamgemm.sg_copy_2d_async(sg_blas_context(), to, to_pitch, from, from_pitch, width, height, NULL,
                                          job) != SG_STATUS_OK)
    return fail(w);
  ++w->job_count;
  *((char *)to >= w->base && (char *)to < w->base + w->job.info + ALIGNMENT ? &w->out->bytes_in : &w->out->bytes_out) +=
      width * height;
  return true;
}

static bool custom(work *w, sg_custom_function function, const sg_custom_operand *operands, int32_t count) {
  sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
  desc.function = function;
  desc.user = &w->job;
  desc.operands = operands;
  desc.operand_count = count;
  sg_submit submit = SG_SUBMIT_INIT;
  submit.label = w->of->call.entry->name;
  sg_job **const job = &w->jobs[w->job_count];
  if (sg_blas_streamgemm.sg_custom_async(sg_blas_context(), &desc, &submit, job) != SG_STATUS_OK) return fail(w);
  ++w->job_count;
  return true;
}

/* Waits for all jobs in flight, even after a failure: they read and write the program's memory. */
static bool finish(work *w) {
  bool succeeded = true;
  for (size_t i = 0; i < w->job_count; ++i) {
    if (sg_blas_streamgemm.sg_job_wait(w->jobs[i], SG_FOREVER, NULL) != SG_STATUS_OK) succeeded = fail(w);
    sg_blas_streamgemm.sg_job_release(w->jobs[i]);
  }
  w->job_count = 0;
  return succeeded;
}

/* Device memory; copies of operands go, if there is too little. */
static bool allocate(size_t bytes, sg_buffer **out) {
  sg_status status = sg_blas_streamgemm.sg_buffer_create(sg_blas_context(), bytes, NULL, out);
  if (status == SG_STATUS_OUT_OF_MEMORY && sg_blas_drop_residents(NULL, 0))
    status = sg_blas_streamgemm.sg_buffer_create(sg_blas_context(), bytes, NULL, out);
  return status == SG_STATUS_OK;
}

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static int64_t rows_of(const work *w) { return sg_blas_solver_rows(w->of); }
static int64_t pivots_of(const work *w) { return sg_blas_solver_rank(w->of); }
/* Reflectors that are written, or read. */
static size_t tau_bytes(const work *w) {
  return (size_t)(sg_blas_solver_forms_q(w->of) ? w->of->call.k : sg_blas_solver_rank(w->of)) * w->element;
}

static bool lay_out(work *w) {
  const sg_blas_call *const call = &w->of->call;
  const size_t pitch = aligned((size_t)rows_of(w) * w->element), pitch_b = aligned((size_t)call->n * w->element);
  w->job.lda = (int64_t)(pitch / w->element);
  w->job.ldb = (int64_t)(pitch_b / w->element);
  size_t end = pitch * (size_t)call->n;
  w->job.b = end, end += sg_blas_solver_has_b(w->of) ? pitch_b * (size_t)call->k : 0;
  w->job.ipiv = end, end += w->of->ipiv != NULL ? aligned((size_t)pivots_of(w) * sizeof(int64_t)) : 0;
  w->job.w = end, end += w->of->w != NULL ? aligned((size_t)call->n * w->real) : 0;
  w->job.tau = end, end += w->of->tau != NULL ? aligned(tau_bytes(w)) : 0;
  w->job.info = end, end += ALIGNMENT;
  void *base = NULL;
  if (!allocate(end, &w->operands) || sg_blas_streamgemm.sg_buffer_data(w->operands, &base) != SG_STATUS_OK)
    return false;
  w->base = base;
  return true;
}

static size_t pitch_of(const work *w, int64_t ld) { return (size_t)ld * w->element; }

static bool copy_in(work *w, int64_t *pivots) {
  const sg_blas_call *const call = &w->of->call;
  bool succeeded = copy(w, w->base + w->job.a, pitch_of(w, w->job.lda), call->a, pitch_of(w, call->lda),
                        (size_t)rows_of(w) * w->element, (size_t)call->n);
  if (sg_blas_solver_has_b(w->of))
    succeeded = succeeded && copy(w, w->base + w->job.b, pitch_of(w, w->job.ldb), call->b, pitch_of(w, call->ldb),
                                  (size_t)call->n * w->element, (size_t)call->k);
  if (sg_blas_solver_forms_q(w->of))
    succeeded = succeeded && copy(w, w->base + w->job.tau, tau_bytes(w), w->of->tau, tau_bytes(w), tau_bytes(w), 1);
  if (w->of->call.entry->solver != SG_BLAS_GETRS) return succeeded;
  for (int64_t i = 0; i < call->n; ++i)
    pivots[i] = w->of->call.entry->is_wide ? ((const int64_t *)w->of->ipiv)[i] : ((const int32_t *)w->of->ipiv)[i];
  const size_t bytes = (size_t)call->n * sizeof *pivots;
  return succeeded && copy(w, w->base + w->job.ipiv, bytes, pivots, bytes, bytes, 1);
}

static bool compute(work *w) {
  sg_custom_operand operands[2] = {{w->base + w->job.info, ALIGNMENT, SG_ACCESS_WRITE}, {NULL, 0, SG_ACCESS_READ}};
  if (!custom(w, sg_blas_cusolver_prepare, operands, 1) || !finish(w)) return false;
  const size_t bytes = w->job.device_bytes > 0 ? w->job.device_bytes : 1;
  void *workspace = NULL;
  w->job.host_workspace = malloc(w->job.host_bytes > 0 ? w->job.host_bytes : 1);
  if (w->job.host_workspace == NULL || !allocate(bytes, &w->workspace) ||
      sg_blas_streamgemm.sg_buffer_data(w->workspace, &workspace) != SG_STATUS_OK)
    return false;
  operands[0] = (sg_custom_operand){w->base, w->job.info + ALIGNMENT, SG_ACCESS_READ_WRITE};
  operands[1] = (sg_custom_operand){workspace, bytes, SG_ACCESS_READ_WRITE};
  return custom(w, sg_blas_cusolver_solve, operands, 2) && finish(w);
}

/* Copies A's triangle back. The other one is the program's, whose other threads may write it: only blocks on the
   diagonal, which have parts of both, go through `blocks`. */
static bool copy_triangle(work *w, char *blocks) {
  const sg_blas_call *const call = &w->of->call;
  const size_t pitch = pitch_of(w, w->job.lda), to_pitch = pitch_of(w, call->lda), e = w->element;
  char *const host = (char *)call->a, *const device = w->base + w->job.a;
  const size_t n = (size_t)call->n;
  bool succeeded = true;
  for (size_t first = 0; first < n && succeeded; first += BLOCK) {
    const size_t size = n - first < BLOCK ? n - first : BLOCK, row = call->uplo == 'L' ? first + size : 0,
                 height = call->uplo == 'L' ? n - row : first;
    succeeded =
        copy(w, blocks + first * BLOCK * e, size * e, device + first * pitch + first * e, pitch, size * e, size);
    if (height > 0)
      succeeded = succeeded && copy(w, host + first * to_pitch + row * e, to_pitch, device + first * pitch + row * e,
                                    pitch, height * e, size);
  }
  if (!finish(w) || !succeeded) return false;
  for (size_t first = 0; first < n; first += BLOCK) {
    const size_t size = n - first < BLOCK ? n - first : BLOCK;
    for (size_t column = 0; column < size; ++column) {
      const size_t begin = call->uplo == 'L' ? column : 0, end = call->uplo == 'L' ? size : column + 1;
      memcpy(host + (first + column) * to_pitch + (first + begin) * e,
             blocks + first * BLOCK * e + (column * size + begin) * e, (end - begin) * e);
    }
  }
  return true;
}

static bool copy_out(work *w, const int64_t *pivots, char *blocks) {
  const sg_blas_call *const call = &w->of->call;
  const bool has_new_a = w->of->w != NULL
                             ? w->of->jobz == 'V'
                             : w->of->call.entry->solver != SG_BLAS_GETRS && w->of->call.entry->solver != SG_BLAS_POTRS;
  bool succeeded = true;
  if (has_new_a && sg_blas_solver_is_cholesky(w->of))
    succeeded = copy_triangle(w, blocks);
  else if (has_new_a)
    succeeded = copy(w, (void *)call->a, pitch_of(w, call->lda), w->base + w->job.a, pitch_of(w, w->job.lda),
                     (size_t)rows_of(w) * w->element, (size_t)call->n);
  if (sg_blas_solver_has_b(w->of))
    succeeded = succeeded && copy(w, (void *)call->b, pitch_of(w, call->ldb), w->base + w->job.b,
                                  pitch_of(w, w->job.ldb), (size_t)call->n * w->element, (size_t)call->k);
  if (w->of->tau != NULL && !sg_blas_solver_forms_q(w->of))
    succeeded = succeeded && copy(w, w->of->tau, tau_bytes(w), w->base + w->job.tau, tau_bytes(w), tau_bytes(w), 1);
  const size_t bytes = (size_t)call->n * w->real;
  if (w->of->w != NULL) succeeded = succeeded && copy(w, w->of->w, bytes, w->base + w->job.w, bytes, bytes, 1);
  if (!finish(w) || !succeeded) return false;
  for (int64_t i = 0; w->of->ipiv != NULL && w->of->call.entry->solver != SG_BLAS_GETRS && i < pivots_of(w); ++i) {
    if (w->of->call.entry->is_wide)
      ((int64_t *)w->of->ipiv)[i] = pivots[i];
    else
      ((int32_t *)w->of->ipiv)[i] = (int32_t)pivots[i];
  }
  return true;
}

/* Until all results are known to be there nothing of the program's is written. */
static sg_blas_reason solve(work *w, int64_t *pivots, char *blocks) {
  if (!lay_out(w)) return SG_BLAS_DEVICE_FAILED; /* too large for the device: no failure of it */
  int info[2] = {0, 0};
  const bool has_pivots = w->of->ipiv != NULL && w->of->call.entry->solver != SG_BLAS_GETRS;
  const size_t bytes = (size_t)pivots_of(w) * sizeof *pivots;
  const bool is_eigen_or_factor =
      w->of->call.entry->solver != SG_BLAS_GETRS && w->of->call.entry->solver != SG_BLAS_POTRS;
  bool succeeded = copy_in(w, pivots) && compute(w);
  if (succeeded && is_eigen_or_factor)
    succeeded = copy(w, info, sizeof info[0], w->base + w->job.info, sizeof info[0], sizeof info[0], 1);
  if (succeeded && has_pivots) succeeded = copy(w, pivots, bytes, w->base + w->job.ipiv, bytes, bytes, 1);
  if (!finish(w) || !succeeded) {
    if (w->message[0] != '\0') sg_blas_count_failure(w->of->call.entry->name, w->message);
    return SG_BLAS_DEVICE_FAILED;
  }
  if (info[0] != 0) return SG_BLAS_UNSOLVED;
  if (!copy_out(w, pivots, blocks)) {
    fprintf(stderr, "streamgemm-blas: %s on %s: %s; its operands may be partly overwritten: the process ends\n",
            w->of->call.entry->name, sg_blas_device_name(), w->message);
    abort();
  }
  if (w->of->call.entry->is_wide)
    *(int64_t *)w->of->info = 0;
  else
    *(int32_t *)w->of->info = 0;
  return SG_BLAS_ON_DEVICE;
}

sg_blas_reason sg_blas_device_solve(const sg_blas_solver_call *solver, sg_blas_outcome *out) {
  const char type = solver->call.entry->type;
  work w = {.of = solver, .out = out, .job = {.of = solver}};
  w.real = type == 's' || type == 'c' ? 4 : 8;
  w.element = type == 'c' || type == 'z' ? 2 * w.real : w.real;
  const size_t n = (size_t)solver->call.n, blocks_bytes = (n + BLOCK - 1) / BLOCK * BLOCK * BLOCK * w.element;
  int64_t *const pivots = malloc(n * sizeof *pivots);
  char *const blocks = sg_blas_solver_is_cholesky(solver) ? malloc(blocks_bytes) : NULL;
  w.jobs = malloc((2 * (n / BLOCK + 1) + 8) * sizeof *w.jobs);
  const bool has_memory = pivots != NULL && w.jobs != NULL && (blocks != NULL || !sg_blas_solver_is_cholesky(solver));
  const sg_blas_reason reason = has_memory ? solve(&w, pivots, blocks) : SG_BLAS_DEVICE_FAILED;
  finish(&w);
  if (w.operands != NULL) sg_blas_streamgemm.sg_buffer_release(w.operands);
  if (w.workspace != NULL) sg_blas_streamgemm.sg_buffer_release(w.workspace);
  free(w.job.host_workspace);
  free(w.jobs);
  free(pivots);
  free(blocks);
  return reason;
}
