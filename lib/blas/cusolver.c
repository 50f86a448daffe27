/* SPDX-License-Identifier: Apache-2.0 */
#include "cusolver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <streamgemm/blas.h>

/* Values of cuSOLVER's and CUDA's enums. */
enum { SUCCESS = 0, ALLOC_FAILED = 2 };
enum { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5 };
enum { OP_N = 0, OP_T = 1, OP_C = 2 };
enum { LOWER = 0, UPPER = 1 };
enum { NO_VECTORS = 0, VECTORS = 1 };

typedef void *handle;
/* Sizes of 32 bits, and workspace in elements. */
#define Q_SIZES (handle, int m, int n, int k, const void *a, int lda, const void *tau, int *elements)
#define Q_ARGUMENTS \
  (handle, int m, int n, int k, void *a, int lda, const void *tau, void *work, int elements, int *info)
#define Q_FUNCTIONS(each, name) each(name##_bufferSize, Q_SIZES) each(name, Q_ARGUMENTS)
typedef int sizes_of_q Q_SIZES;
typedef int forms_q Q_ARGUMENTS;
#define FUNCTIONS(each)                                                                                               \
  each(Create, (handle *)) each(CreateParams, (handle *)) each(SetStream, (handle, void *)) each(                     \
      Xgetrf_bufferSize, (handle, handle, int64_t m, int64_t n, int type, const void *a, int64_t lda, int compute,    \
                          size_t *device, size_t *host))                                                              \
      each(Xgetrf, (handle, handle, int64_t m, int64_t n, int type, void *a, int64_t lda, int64_t *ipiv, int compute, \
                    void *device, size_t device_bytes, void *host, size_t host_bytes, int *info))                     \
          each(Xgetrs, (handle, handle, int op, int64_t n, int64_t nrhs, int type, const void *a, int64_t lda,        \
                        const int64_t *ipiv, int type_b, void *b, int64_t ldb, int *info))                            \
              each(Xpotrf_bufferSize, (handle, handle, int uplo, int64_t n, int type, const void *a, int64_t lda,     \
                                       int compute, size_t *device, size_t *host))                                    \
                  each(Xpotrf, (handle, handle, int uplo, int64_t n, int type, void *a, int64_t lda, int compute,     \
                                void *device, size_t device_bytes, void *host, size_t host_bytes, int *info))         \
                      each(Xpotrs, (handle, handle, int uplo, int64_t n, int64_t nrhs, int type, const void *a,       \
                                    int64_t lda, int type_b, void *b, int64_t ldb, int *info))                        \
                          each(Xgeqrf_bufferSize,                                                                     \
                               (handle, handle, int64_t m, int64_t n, int type, const void *a, int64_t lda,           \
                                int type_tau, const void *tau, int compute, size_t *device, size_t *host))            \
                              each(Xgeqrf, (handle, handle, int64_t m, int64_t n, int type, void *a, int64_t lda,     \
                                            int type_tau, void *tau, int compute, void *device, size_t device_bytes,  \
                                            void *host, size_t host_bytes, int *info)) Q_FUNCTIONS(each, Sorgqr)      \
                                  Q_FUNCTIONS(each, Dorgqr) Q_FUNCTIONS(each, Cungqr) Q_FUNCTIONS(each, Zungqr) each( \
                                      Xsyevd_bufferSize, (handle, handle, int jobz, int uplo, int64_t n, int type,    \
                                                          const void *a, int64_t lda, int type_w, const void *w,      \
                                                          int compute, size_t *device, size_t *host))                 \
                                      each(Xsyevd, (handle, handle, int jobz, int uplo, int64_t n, int type, void *a, \
                                                    int64_t lda, int type_w, void *w, int compute, void *device,      \
                                                    size_t device_bytes, void *host, size_t host_bytes, int *info))

static struct {
#define POINTER(name, arguments) int(*name) arguments;
  FUNCTIONS(POINTER)
#undef POINTER
} cusolver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_there;
/* One call at a time is enqueued. */
static pthread_mutex_t handle_lock = PTHREAD_MUTEX_INITIALIZER;
static handle solver, params;

/* Of CUDA 13 and 12: the process's own library first, then those that the loader finds, then the toolkit's. */
static void *open_library(void) {
  static const char *const names[] = {"libcusolver.so.12", "libcusolver.so.11"};
  static const struct {
    const char *folder;
    int flags;
  } places[] = {{"", RTLD_NOLOAD}, {"", 0}, {"/usr/local/cuda/lib64/", 0}};
  void *found = NULL;
  for (int i = 0; i < 6 && found == NULL; ++i) {
    char file[64];
    snprintf(file, sizeof file, "%s%s", places[i / 2].folder, names[i % 2]);
    found = dlopen(file, RTLD_NOW | RTLD_LOCAL | places[i / 2].flags);
  }
  return found;
}

static void find_all(void) {
  void *const library = open_library();
  is_there = library != NULL;
#define FIND(name, arguments) \
  is_there = is_there && (*(void **)&cusolver.name = dlsym(library, "cusolverDn" #name)) != NULL;
  FUNCTIONS(FIND)
#undef FIND
}

bool sg_blas_has_cusolver(void) {
  pthread_once(&once, find_all);
  return is_there;
}

static sg_status status_of(int status, const char *function, const sg_custom_call *given) {
  if (status == SUCCESS) return SG_STATUS_OK;
  snprintf(given->message, given->message_size, "cusolverDn%s returned %d", function, status);
  return status == ALLOC_FAILED ? SG_STATUS_OUT_OF_MEMORY : SG_STATUS_BACKEND_FAILURE;
}

static int type_of(char type) { return type == 's' ? R_32F : type == 'd' ? R_64F : type == 'c' ? C_32F : C_64F; }
static int real_of(char type) { return type == 's' || type == 'c' ? R_32F : R_64F; }

/* With handle_lock. The device is current, as in every function of a custom operation. */
static sg_status use_stream(const sg_custom_call *given) {
  int status = SUCCESS;
  if (solver == NULL && (status = cusolver.Create(&solver)) != SUCCESS) return status_of(status, "Create", given);
  if (params == NULL && (status = cusolver.CreateParams(&params)) != SUCCESS)
    return status_of(status, "CreateParams", given);
  return status_of(cusolver.SetStream(solver, given->native_stream), "SetStream", given);
}

/* The kinds of the routines. */
static bool is_eigen(const sg_blas_solver_call *of) { return of->w != NULL; }
static bool factorizes(const sg_blas_solver_call *of) {
  return of->call.entry->solver != SG_BLAS_GETRS && of->call.entry->solver != SG_BLAS_POTRS && !is_eigen(of);
}

static sizes_of_q *q_sizes_of(char type) {
  return type == 's'   ? cusolver.Sorgqr_bufferSize
         : type == 'd' ? cusolver.Dorgqr_bufferSize
         : type == 'c' ? cusolver.Cungqr_bufferSize
                       : cusolver.Zungqr_bufferSize;
}
static forms_q *forms_q_of(char type) {
  return type == 's'   ? cusolver.Sorgqr
         : type == 'd' ? cusolver.Dorgqr
         : type == 'c' ? cusolver.Cungqr
                       : cusolver.Zungqr;
}

static sg_status find_sizes(sg_blas_cusolver_job *job, const sg_custom_call *given) {
  const sg_blas_call *const call = &job->of->call;
  const int type = type_of(call->entry->type), uplo = call->uplo == 'U' ? UPPER : LOWER;
  const int64_t rows = sg_blas_solver_rows(job->of);
  size_t *const device = &job->device_bytes, *const host = &job->host_bytes;
  const char *const operands = (const char *)given->operands[0] - job->info;
  const void *const a = operands + job->a, *const w = operands + job->w;
  *device = *host = 0;
  if (is_eigen(job->of))
    return status_of(
        cusolver.Xsyevd_bufferSize(solver, params, job->of->jobz == 'V' ? VECTORS : NO_VECTORS, uplo, call->n, type, a,
                                   job->lda, real_of(call->entry->type), w, type, device, host),
        "Xsyevd_bufferSize", given);
  if (sg_blas_solver_forms_q(job->of)) {
    int elements = 0;
    const int status = q_sizes_of(call->entry->type)(solver, (int)call->m, (int)call->n, (int)call->k, a, (int)job->lda,
                                                     operands + job->tau, &elements);
    *device = (size_t)elements * 16; /* of the largest type */
    return status_of(status, "orgqr_bufferSize", given);
  }
  if (job->of->tau != NULL)
    return status_of(cusolver.Xgeqrf_bufferSize(solver, params, rows, call->n, type, a, job->lda, type,
                                                operands + job->tau, type, device, host),
                     "Xgeqrf_bufferSize", given);
  if (!factorizes(job->of)) return SG_STATUS_OK;
  if (sg_blas_solver_is_cholesky(job->of))
    return status_of(cusolver.Xpotrf_bufferSize(solver, params, uplo, call->n, type, a, job->lda, type, device, host),
                     "Xpotrf_bufferSize", given);
  return status_of(cusolver.Xgetrf_bufferSize(solver, params, rows, call->n, type, a, job->lda, type, device, host),
                   "Xgetrf_bufferSize", given);
}

/* What cuSOLVER computes on the host must not come back to the device: this thread may be the one that serves it. */
static int32_t enter(void) {
  pthread_mutex_lock(&handle_lock);
  return sg_blas_enable(0);
}

static void leave(int32_t was_enabled) {
  sg_blas_enable(was_enabled);
  pthread_mutex_unlock(&handle_lock);
}

sg_status sg_blas_cusolver_prepare(const sg_custom_call *given, void *user) {
  const int32_t before = enter();
  sg_status status = use_stream(given);
  if (status == SG_STATUS_OK) status = find_sizes(user, given);
  leave(before);
  return status;
}

static sg_status enqueue(const sg_blas_cusolver_job *job, char *operands, void *workspace,
                         const sg_custom_call *given) {
  const sg_blas_call *const call = &job->of->call;
  const int type = type_of(call->entry->type), uplo = call->uplo == 'U' ? UPPER : LOWER;
  const int op = call->transa == 'T' ? OP_T : call->transa == 'C' ? OP_C : OP_N;
  void *const a = operands + job->a, *const b = operands + job->b, *const w = operands + job->w;
  int64_t *const ipiv = (int64_t *)(void *)(operands + job->ipiv);
  int *const info = (int *)(void *)(operands + job->info); /* of the factorization, and behind it of the solution */
  const int64_t rows = sg_blas_solver_rows(job->of);
  void *const tau = operands + job->tau;
  sg_status status = SG_STATUS_OK;
  if (sg_blas_solver_forms_q(job->of))
    return status_of(forms_q_of(call->entry->type)(solver, (int)call->m, (int)call->n, (int)call->k, a, (int)job->lda,
                                                   tau, workspace, (int)(job->device_bytes / 16), info),
                     "orgqr", given);
  if (job->of->tau != NULL)
    return status_of(cusolver.Xgeqrf(solver, params, rows, call->n, type, a, job->lda, type, tau, type, workspace,
                                     job->device_bytes, job->host_workspace, job->host_bytes, info),
                     "Xgeqrf", given);
  if (is_eigen(job->of))
    return status_of(cusolver.Xsyevd(solver, params, job->of->jobz == 'V' ? VECTORS : NO_VECTORS, uplo, call->n, type,
                                     a, job->lda, real_of(call->entry->type), w, type, workspace, job->device_bytes,
                                     job->host_workspace, job->host_bytes, info),
                     "Xsyevd", given);
  if (factorizes(job->of) && sg_blas_solver_is_cholesky(job->of))
    status = status_of(cusolver.Xpotrf(solver, params, uplo, call->n, type, a, job->lda, type, workspace,
                                       job->device_bytes, job->host_workspace, job->host_bytes, info),
                       "Xpotrf", given);
  else if (factorizes(job->of))
    status = status_of(cusolver.Xgetrf(solver, params, rows, call->n, type, a, job->lda, ipiv, type, workspace,
                                       job->device_bytes, job->host_workspace, job->host_bytes, info),
                       "Xgetrf", given);
  if (status != SG_STATUS_OK || job->of->call.entry->solver == SG_BLAS_GETRF ||
      job->of->call.entry->solver == SG_BLAS_POTRF)
    return status;
  if (sg_blas_solver_is_cholesky(job->of))
    return status_of(
        cusolver.Xpotrs(solver, params, uplo, call->n, call->k, type, a, job->lda, type, b, job->ldb, info + 1),
        "Xpotrs", given);
  return status_of(
      cusolver.Xgetrs(solver, params, op, call->n, call->k, type, a, job->lda, ipiv, type, b, job->ldb, info + 1),
      "Xgetrs", given);
}

sg_status sg_blas_cusolver_solve(const sg_custom_call *given, void *user) {
  const int32_t before = enter();
  sg_status status = use_stream(given);
  if (status == SG_STATUS_OK) status = enqueue(user, given->operands[0], given->operands[1], given);
  leave(before);
  return status;
}
