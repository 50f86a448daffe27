/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded before the library: stands in front of some of its functions and injects one defect, which the variable
 * PLANTED_DEFECT names. The tests must then fail; a test that does not detect its defect tests nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>
#include <string.h>

static int planted(const char *defect) {
  const char *chosen = getenv("PLANTED_DEFECT");
  return chosen && strcmp(chosen, defect) == 0;
}

/* The library's own function behind the one defined here. */
#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* -- GEMMs --------------------------------------------------------------------------------------------------------- */

static int on_host(sg_context *context) {
  sg_device_info info = SG_DEVICE_INFO_INIT;
  return REAL(sg_context_get_device_info)(context, 0, &info) == SG_STATUS_OK && info.unified_memory;
}

static int all_zero(const sg_matrix *m) {
  int64_t i;
  if (m->dtype != SG_DTYPE_F64 || m->ld != 0 || !m->data) return 0;
  for (i = 0; i < m->rows * m->cols; ++i) {
    if (((const double *)m->data)[i] != 0) return 0;
  }
  return 1;
}

/* Defects in the descriptor, before the GEMM runs. */
static void spoil_request(sg_gemm_desc *desc) {
  if (planted("reads-c") && desc->beta.re == 0 && desc->c.dtype == SG_DTYPE_F64) desc->beta.re = 1e-300;
  if (planted("reads-a") && desc->alpha.re == 0 && desc->a.data) *(volatile char *)desc->a.data;
  if (planted("skips-zeros") && all_zero(&desc->a)) desc->alpha.re = 0;
  if (planted("scales-wrongly") && desc->beta.re == -1) desc->beta.re = 1;
  if (planted("drops-conjugation") && desc->op_a == SG_TRANSPOSE_C) desc->op_a = SG_TRANSPOSE_T;
  if (planted("drops-an-item") && desc->batch > 1) --desc->batch;
}

/* Defects in the result, after the GEMM has completed. */
static void spoil_result(const sg_gemm_desc *desc) {
  const int64_t width = desc->c.layout == SG_LAYOUT_ROW_MAJOR ? desc->c.cols : desc->c.rows;
  unsigned char *c = (unsigned char *)desc->c.data;
  const int32_t size = sg_dtype_size(desc->c.dtype);
  if (c && planted("saturates") && desc->c.dtype == SG_DTYPE_I32 && *(int32_t *)(void *)c < 0)
    *(int32_t *)(void *)c = INT32_MAX;
  if (!c || desc->c.rows < 2 || desc->c.cols < 2) return;
  if (planted("writes-the-gap") && desc->c.ld > width) c[width * size] ^= 1;
  if (planted("inexact") && desc->c.dtype == SG_DTYPE_F64) ((double *)(void *)c)[0] *= 1 + 0x1p-40;
  if (planted("inexact-in-f32") && desc->c.dtype == SG_DTYPE_F32) ((float *)(void *)c)[0] *= 1 + 0x1p-14f;
}

sg_status sg_gemm_async(sg_context *context, const sg_gemm_desc *desc, const sg_submit *submit, sg_job **out_job) {
  sg_gemm_desc spoilt;
  sg_submit altered = SG_SUBMIT_INIT;
  sg_job *job = NULL;
  sg_status status;
  if (!desc || desc->struct_size != sizeof spoilt) return REAL(sg_gemm_async)(context, desc, submit, out_job);
  spoilt = *desc;
  if (submit) altered = *submit;
  spoil_request(&spoilt);
  if (planted("drops-data-order")) altered.flags |= SG_SUBMIT_UNTRACKED;
  if (planted("drops-stream")) altered.stream = NULL;
  if (planted("ignores-priorities")) {
    altered.priority = 0;
    altered.stream = NULL;
  }
  if (planted("drops-after")) altered.after_count = 0;
  if (planted("drops-tag")) altered.tag = 0;
  status = REAL(sg_gemm_async)(context, &spoilt, &altered, &job);
  if (status == SG_STATUS_OK && !desc->c_array && on_host(context) &&
      (planted("writes-the-gap") || planted("inexact") || planted("inexact-in-f32"))) {
    (void)REAL(sg_job_wait)(job, SG_FOREVER, NULL);
    spoil_result(&spoilt);
  }
  if (out_job)
    *out_job = job;
  else
    (void)REAL(sg_job_release)(job);
  return status;
}

sg_status sg_gemm(sg_context *context, const sg_gemm_desc *desc, const sg_submit *submit) {
  sg_gemm_desc spoilt;
  sg_status status;
  if (!desc || desc->struct_size != sizeof spoilt) return REAL(sg_gemm)(context, desc, submit);
  spoilt = *desc;
  spoil_request(&spoilt);
  status = REAL(sg_gemm)(context, &spoilt, submit);
  if (status == SG_STATUS_OK && on_host(context)) spoil_result(&spoilt);
  return status;
}

/* tf32 instead of f32; one bit that flips now and then. */
sg_status sg_sgemm_async(sg_context *context, sg_layout layout, sg_transpose op_a, sg_transpose op_b, int64_t m,
                         int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                         float beta, float *c, int64_t ldc, const sg_submit *submit, sg_job **out_job) {
  static float rounded[1 << 20];
  sg_status status;
  int64_t i;
  if (planted("tf32") && a) {
    for (i = 0; i < m * k; ++i) {
      uint32_t bits;
      memcpy(&bits, &a[i], sizeof bits);
      bits &= 0xffffe000u;
      memcpy(&rounded[i], &bits, sizeof bits);
    }
    a = rounded;
  }
  status =
      REAL(sg_sgemm_async)(context, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, submit, out_job);
  if (planted("flips-a-bit-sometimes") && status == SG_STATUS_OK && out_job) {
    static int calls;
    (void)REAL(sg_job_wait)(*out_job, SG_FOREVER, NULL);
    if (++calls % 3 == 0) ((unsigned char *)c)[0] ^= 1;
  }
  return status;
}

sg_status sg_gemm_grouped_async(sg_context *context, const sg_gemm_desc *descs, int32_t count, const sg_submit *submit,
                                sg_job **out_job) {
  if (planted("drops-a-member") && count > 1) --count;
  return REAL(sg_gemm_grouped_async)(context, descs, count, submit, out_job);
}

/* -- triangles ----------------------------------------------------------------------------------------------------- */

sg_status sg_rank_k(sg_context *context, const sg_rank_k_desc *desc, const sg_submit *submit) {
  const sg_status status = REAL(sg_rank_k)(context, desc, submit);
  if (planted("writes-the-other-triangle") && status == SG_STATUS_OK && desc->c.rows > 1 && on_host(context)) {
    const int below = desc->triangle == SG_TRIANGLE_UPPER, by_rows = desc->c.layout == SG_LAYOUT_ROW_MAJOR;
    const int64_t ld = desc->c.ld ? desc->c.ld : desc->c.rows;
    ((unsigned char *)desc->c.data)[(below == by_rows ? ld : 1) * sg_dtype_size(desc->c.dtype)] ^= 1;
  }
  return status;
}

sg_status sg_triangular(sg_context *context, const sg_triangular_desc *desc, const sg_submit *submit) {
  sg_triangular_desc spoilt = *desc;
  if (planted("takes-the-other-triangle")) spoilt.triangle = (sg_triangle)!desc->triangle;
  return REAL(sg_triangular)(context, &spoilt, submit);
}

/* -- sums over devices --------------------------------------------------------------------------------------------- */

sg_status sg_all_reduce_async(sg_context *context, const sg_all_reduce_desc *desc, const sg_submit *submit,
                              sg_job **out_job) {
  sg_all_reduce_desc spoilt = *desc;
  if (planted("leaves-a-vector-out") && desc->operand_count > 2) --spoilt.operand_count;
  return REAL(sg_all_reduce_async)(context, &spoilt, submit, out_job);
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

sg_status sg_copy_2d_async(sg_context *context, void *dst, uint64_t dst_pitch, const void *src, uint64_t src_pitch,
                           uint64_t width, uint64_t height, const sg_submit *submit, sg_job **out_job) {
  if (planted("copies-the-gaps") && dst_pitch == src_pitch) width = dst_pitch;
  if (planted("drops-last-run") && height > 1) --height;
  return REAL(sg_copy_2d_async)(context, dst, dst_pitch, src, src_pitch, width, height, submit, out_job);
}

sg_status sg_host_alloc(sg_context *context, uint64_t bytes, void **out_memory) {
  const sg_status status = REAL(sg_host_alloc)(context, bytes, out_memory);
  return planted("ignores-failed-allocation") && status == SG_STATUS_OUT_OF_MEMORY ? SG_STATUS_OK : status;
}

/* -- jobs ---------------------------------------------------------------------------------------------------------- */

sg_status sg_job_wait(sg_job *job, int64_t timeout_ns, sg_status *out_status) {
  sg_status status;
  if (planted("does-not-wait") && REAL(sg_job_query)(job, NULL) == SG_STATUS_NOT_READY) {
    if (out_status) *out_status = SG_STATUS_OK;
    return SG_STATUS_OK;
  }
  if (planted("times-out-early") && timeout_ns > 0) timeout_ns = 1;
  status = REAL(sg_job_wait)(job, timeout_ns, out_status);
  if (planted("mixes-statuses") && out_status && *out_status < 0) status = *out_status;
  if (planted("hides-failures") && out_status && *out_status < 0) *out_status = SG_STATUS_OK;
  return planted("hides-failures") && status < 0 && status != SG_STATUS_INVALID_HANDLE ? SG_STATUS_OK : status;
}

sg_status sg_job_cancel(sg_job *job) { return planted("does-not-cancel") ? SG_STATUS_OK : REAL(sg_job_cancel)(job); }

sg_status sg_job_wait_any(sg_job *const *jobs, int32_t count, int64_t timeout_ns, int32_t *out_index,
                          sg_status *out_status) {
  const sg_status status = REAL(sg_job_wait_any)(jobs, count, timeout_ns, out_index, out_status);
  if (planted("returns-wrong-index") && status == SG_STATUS_OK && count > 1) *out_index = (*out_index + 1) % count;
  return status;
}

sg_status sg_job_on_complete(sg_job *job, sg_job_callback callback, void *user) {
  if (planted("calls-back-twice") && callback) (void)REAL(sg_job_on_complete)(job, callback, user);
  return REAL(sg_job_on_complete)(job, callback, user);
}

/* -- events, queues, plans, handles, messages -----------------------------------------------------------------------
 */

sg_status sg_event_query(sg_event *event) {
  const sg_status status = REAL(sg_event_query)(event);
  return planted("event-completes-early") && status == SG_STATUS_NOT_READY ? SG_STATUS_OK : status;
}

sg_status sg_stream_wait_event(sg_stream *stream, sg_event *event) {
  return planted("does-not-wait-for-events") ? SG_STATUS_OK : REAL(sg_stream_wait_event)(stream, event);
}

sg_status sg_queue_next_batch(sg_queue *queue, sg_completion *out, uint64_t size, int32_t capacity, int64_t timeout_ns,
                              int32_t *count) {
  const sg_status status = REAL(sg_queue_next_batch)(queue, out, size, capacity, timeout_ns, count);
  if (planted("swaps-tags") && status == SG_STATUS_OK) out[0].tag ^= 1;
  return status;
}

sg_status sg_plan_get_prediction(sg_plan *plan, sg_plan_prediction *out) {
  const sg_status status = REAL(sg_plan_get_prediction)(plan, out);
  if (planted("predicts-too-fast") && status == SG_STATUS_OK) out->predicted_seconds *= 0.2;
  if (planted("predicts-too-slow") && status == SG_STATUS_OK) out->predicted_seconds *= 2;
  return status;
}

sg_status sg_stream_release(sg_stream *stream) {
  const sg_status status = planted("keeps-streams") ? SG_STATUS_OK : REAL(sg_stream_release)(stream);
  return planted("accepts-double-release") && status == SG_STATUS_INVALID_HANDLE ? SG_STATUS_OK : status;
}

sg_status sg_buffer_retain(sg_buffer *buffer) {
  return planted("skips-retain") ? SG_STATUS_OK : REAL(sg_buffer_retain)(buffer);
}

const char *sg_last_error_message(void) { return planted("empty-error-message") ? "" : REAL(sg_last_error_message)(); }
