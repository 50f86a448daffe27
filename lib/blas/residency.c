/* SPDX-License-Identifier: Apache-2.0 */
#include "residency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "library.h"

typedef sg_blas_resident resident;

enum { BACK_OFF_AT_MOST = 64, PAYING_HITS = 2, COMPARISONS = 4, ALIGNMENT = 256, LONG_LINE = 4096 };
/* In mode auto, smaller operands are copied each time, which takes no longer than checking them. */
static const size_t least_bytes = 1 << 20;

static sg_context *context;
static sg_blas_residency mode = SG_BLAS_RESIDENCY_OFF; /* until the device is open */
static pthread_mutex_t rates_lock = PTHREAD_MUTEX_INITIALIZER;
/* Under rates_lock: bytes a second, an average. */
static double hash_rate;
static int comparisons;

void sg_blas_residency_open(sg_context *on, const sg_blas_settings *settings, bool is_unified, uint64_t limit) {
  const bool is_auto = settings->residency == SG_BLAS_RESIDENCY_AUTO;
  if (settings->residency == SG_BLAS_RESIDENCY_OFF || (is_auto && is_unified)) return;
  if (!sg_blas_can_hash()) {
    if (!is_auto)
      fprintf(stderr, "streamgemm-blas: SG_BLAS_RESIDENCY: this build has no hash; operands are copied each time\n");
    return;
  }
  if (settings->residency == SG_BLAS_RESIDENCY_TRACK && sg_blas_no_protection()[0] != '\0')
    fprintf(stderr, "streamgemm-blas: SG_BLAS_RESIDENCY=track: %s; contents are compared\n", sg_blas_no_protection());
  context = on;
  sg_blas_residents_open(limit);
  mode = settings->residency;
}

void sg_blas_residency_after_fork(void) {
  pthread_mutex_init(&rates_lock, NULL);
  mode = SG_BLAS_RESIDENCY_OFF;
  sg_blas_residents_after_fork();
}

static void measure_comparison(double bytes, double seconds) {
  if (bytes < (double)least_bytes || seconds <= 0) return;
  pthread_mutex_lock(&rates_lock);
  hash_rate = comparisons == 0 ? bytes / seconds : 0.75 * hash_rate + 0.25 * bytes / seconds;
  if (comparisons < COMPARISONS) ++comparisons;
  pthread_mutex_unlock(&rates_lock);
}

/* Copies lines to the device, as a job of the loan. */
static bool upload(sg_blas_loan *loan, const sg_blas_lines *lines, char *to, size_t pitch) {
  sg_job **const grown = realloc(loan->uploads, (loan->upload_count + 1) * sizeof *grown);
  if (grown == NULL) return false;
  loan->uploads = grown;
  if (sg_blas_streamgemm.sg_copy_2d_async(context, to, pitch, lines->first, lines->pitch, lines->width, lines->height,
                                          NULL, &grown[loan->upload_count]) != SG_STATUS_OK)
    return false;
  ++loan->upload_count;
  loan->upload_bytes += sg_blas_bytes_of(lines);
  return true;
}

static bool lend(resident *of, sg_blas_loan *loan) {
  if (sg_blas_streamgemm.sg_buffer_retain(of->buffer) != SG_STATUS_OK) return false;
  loan->buffer = of->buffer, loan->data = of->data, loan->pitch = of->pitch;
  loan->is_maker = of->is_unproven = loan->upload_count > 0;
  return true;
}

/* Copies the whole operand, and hashes it meanwhile. */
static bool fill(resident *of, sg_blas_loan *loan) {
  if (!upload(loan, &of->key, of->data, of->pitch)) return false;
  sg_blas_hash_chunks(&of->key, of->hashes);
  sg_blas_add_counts(&(sg_blas_residency_statistics){.copies = 1, .bytes_hashed = sg_blas_bytes_of(&of->key)});
  return lend(of, loan);
}

static void make_copy(resident *of, sg_blas_loan *loan) {
  /* Lines of the copy begin at addresses that the device's kernels prefer. */
  const size_t width = of->key.width,
               pitch = width < LONG_LINE ? width : (width + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (sg_blas_allocate_copy(of, context, pitch) && !fill(of, loan)) sg_blas_drop_copy(of);
}

/* Copies the chunks that differ, those that follow each other as one, and takes over their hashes. */
static bool refresh(resident *of, sg_blas_loan *loan, const sg_blas_hash fresh[], const unsigned char differs[]) {
  const size_t count = sg_blas_chunk_count(&of->key);
  for (size_t i = 0, next; i < count; i = next) {
    next = i + 1;
    if (!differs[i]) continue;
    of->hashes[i] = fresh[i];
    sg_blas_lines run = sg_blas_chunk(&of->key, i);
    for (; next < count && differs[next]; ++next) {
      const sg_blas_lines other = sg_blas_chunk(&of->key, next);
      if (other.width != run.width || other.first != run.first + run.height * run.pitch) break;
      run.height += other.height;
      of->hashes[next] = fresh[next];
    }
    if (!upload(loan, &run, sg_blas_chunk_in_copy(&of->key, i, of->data, of->pitch), of->pitch)) return false;
  }
  return true;
}

/* What a loan of an unchanged or refreshed copy was. */
static void count_hit(resident *of, const sg_blas_loan *loan, sg_blas_residency_statistics more) {
  more.hits = loan->data != NULL;
  if (loan->data != NULL) more.bytes_avoided = sg_blas_bytes_of(&of->key) - loan->upload_bytes, ++of->hits;
  sg_blas_add_counts(&more);
}

/* The operand has other contents for the most part. */
static void replace(resident *of, sg_blas_loan *loan) {
  if (of->hits >= PAYING_HITS) {
    of->back_off = of->hits = 0;
    of->guard_after = 1;
    fill(of, loan);
    return;
  }
  of->back_off = of->back_off == 0 ? 1 : of->back_off < BACK_OFF_AT_MOST ? 2 * of->back_off : BACK_OFF_AT_MOST;
  of->skip = of->back_off;
}

static void check_copy(resident *of, sg_blas_loan *loan) {
  const size_t count = sg_blas_chunk_count(&of->key), bytes = sg_blas_bytes_of(&of->key);
  sg_blas_hash *const fresh = malloc(count * (sizeof *fresh + 1));
  if (fresh == NULL) return;
  unsigned char *const differs = (unsigned char *)(fresh + count);
  const double started = sg_blas_now();
  const size_t different = sg_blas_compare_chunks(&of->key, of->hashes, fresh, differs);
  sg_blas_residency_statistics more = {.changes = different > 0, .hash_seconds = sg_blas_now() - started};
  if (different > count / 2) {
    sg_blas_add_counts(&more);
    sg_blas_guard_stop(&of->guard);
    replace(of, loan);
  } else {
    if (different == 0 || refresh(of, loan, fresh, differs)) lend(of, loan);
    measure_comparison((double)bytes, more.hash_seconds);
    more.bytes_hashed = bytes;
    count_hit(of, loan, more);
  }
  free(fresh);
}

/* Chunks of an operand that have been written. */
typedef struct marks {
  const sg_blas_lines *of;
  unsigned char *chunks;
} marks;

static void mark(const char *first, size_t bytes, void *to) {
  const marks *const of = to;
  sg_blas_mark_chunks(of->of, first, bytes, of->chunks);
}

/* Of a watched operand only the written chunks are compared. false: it must be compared whole. */
static bool check_writes(resident *of, sg_blas_loan *loan) {
  const size_t count = sg_blas_chunk_count(&of->key);
  sg_blas_hash *const fresh = calloc(count, sizeof *fresh + 1);
  if (fresh == NULL) return false;
  unsigned char *const differs = (unsigned char *)(fresh + count);
  const sg_blas_writes writes = sg_blas_guard_check(&of->guard, mark, &(marks){&of->key, differs});
  size_t written = 0, written_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    const sg_blas_lines part = sg_blas_chunk(&of->key, i);
    written += differs[i];
    written_bytes += differs[i] * sg_blas_bytes_of(&part);
  }
  const bool is_partial = writes != SG_BLAS_UNKNOWN && written <= count / 2;
  if (writes == SG_BLAS_WRITTEN && !is_partial) { /* its faults cost more than they tell */
    sg_blas_guard_stop(&of->guard);
    of->guard_after = of->hits + 2 * of->guard_after;
  }
  if (is_partial) {
    const size_t different = written > 0 ? sg_blas_compare_some(&of->key, of->hashes, fresh, differs) : 0;
    if (different == 0 || refresh(of, loan, fresh, differs)) lend(of, loan);
    count_hit(of, loan,
              (sg_blas_residency_statistics){
                  .changes = different > 0, .unwritten = written == 0, .bytes_hashed = written_bytes});
  }
  free(fresh);
  return is_partial;
}

static void use_copy(resident *of, sg_blas_loan *loan) {
  if (of->guard.first == NULL || !check_writes(of, loan)) {
    /* What is compared after the guard has started is what it watches. */
    if (mode == SG_BLAS_RESIDENCY_TRACK && of->guard.first == NULL && of->hits >= of->guard_after &&
        sg_blas_guard_start(&of->guard, of->key.first, sg_blas_span_of(&of->key)))
      sg_blas_add_counts(&(sg_blas_residency_statistics){.guards = 1});
    check_copy(of, loan);
  }
  if (loan->data == NULL) sg_blas_drop_copy(of);
}

/* Ends the process if a part of an unchanged copy, read back, differs from the operand. */
static void verify_chunk(const resident *of, size_t index, char *back) {
  const sg_blas_lines part = sg_blas_chunk(&of->key, index);
  char *const copy = sg_blas_chunk_in_copy(&of->key, index, of->data, of->pitch);
  sg_job *job = NULL;
  sg_status status = sg_blas_streamgemm.sg_copy_2d_async(context, back, part.width, copy, of->pitch, part.width,
                                                         part.height, NULL, &job);
  if (status == SG_STATUS_OK) status = sg_blas_streamgemm.sg_job_wait(job, SG_FOREVER, NULL);
  if (job != NULL) sg_blas_streamgemm.sg_job_release(job);
  if (status != SG_STATUS_OK) {
    fprintf(stderr, "streamgemm-blas: SG_BLAS_RESIDENCY=verify: the copy of an operand cannot be read back: %s\n",
            sg_blas_streamgemm.sg_last_error_message());
    return;
  }
  for (size_t line = 0; line < part.height; ++line) {
    const char *const wanted = part.first + line * part.pitch, *const found = back + line * part.width;
    if (memcmp(wanted, found, part.width) == 0) continue;
    size_t at = 0;
    while (wanted[at] == found[at]) ++at;
    fprintf(stderr,
            "streamgemm-blas: SG_BLAS_RESIDENCY=verify: the device's copy of %zu lines of %zu bytes at %p differs at "
            "%p: the process ends\n",
            of->key.height, of->key.width, (const void *)of->key.first, (const void *)(wanted + at));
    abort();
  }
  sg_blas_add_counts(&(sg_blas_residency_statistics){.bytes_verified = sg_blas_bytes_of(&part)});
}

static void verify(const resident *of) {
  const size_t count = sg_blas_chunk_count(&of->key);
  const sg_blas_lines largest = sg_blas_chunk(&of->key, 0);
  char *const back = malloc(sg_blas_bytes_of(&largest));
  for (size_t i = 0; back != NULL && i < count; ++i) verify_chunk(of, i, back);
  free(back);
}

static bool is_served(const sg_blas_lines *operand) {
  if (mode != SG_BLAS_RESIDENCY_AUTO) return mode != SG_BLAS_RESIDENCY_OFF;
  return sg_blas_bytes_of(operand) >= least_bytes;
}

void sg_blas_borrow(const sg_blas_lines *operand, sg_blas_loan *loan) {
  *loan = (sg_blas_loan){.of = NULL};
  if (!is_served(operand)) return;
  resident *const of = loan->of = sg_blas_find_resident(operand);
  if (of == NULL) return;
  pthread_mutex_lock(&of->lock);
  if (of->is_unproven) { /* by another thread's call: this one reads host memory */
  } else if (of->buffer != NULL) {
    use_copy(of, loan);
    if (mode == SG_BLAS_RESIDENCY_VERIFY && loan->data != NULL && operand->part == 0) verify(of);
  } else if (of->skip > 0) {
    --of->skip;
  } else {
    const sg_blas_hash sample = sg_blas_sample(operand);
    const bool is_same = of->has_sample && sg_blas_hash_equal(of->sample, sample);
    of->sample = sample;
    of->has_sample = true;
    if (is_same) make_copy(of, loan);
  }
  pthread_mutex_unlock(&of->lock);
}

/* Waits for the copies to the device; whether all succeeded. */
static bool finish_uploads(sg_blas_loan *loan) {
  bool is_copied = true;
  for (size_t i = 0; i < loan->upload_count; ++i) {
    is_copied = sg_blas_streamgemm.sg_job_wait(loan->uploads[i], SG_FOREVER, NULL) == SG_STATUS_OK && is_copied;
    sg_blas_streamgemm.sg_job_release(loan->uploads[i]);
  }
  free(loan->uploads);
  return is_copied;
}

void sg_blas_repay(sg_blas_loan *loan) {
  const bool is_copied = finish_uploads(loan);
  if (loan->buffer != NULL) sg_blas_streamgemm.sg_buffer_release(loan->buffer);
  if (loan->of == NULL) return;
  if (loan->is_maker) {
    pthread_mutex_lock(&loan->of->lock);
    loan->of->is_unproven = false;
    if (!is_copied || loan->of->is_unwanted) sg_blas_drop_copy(loan->of);
    pthread_mutex_unlock(&loan->of->lock);
  }
  sg_blas_leave_resident(loan->of);
}

bool sg_blas_is_resident(const sg_blas_lines *operand, double *seconds) {
  *seconds = 0;
  if (!is_served(operand) || !sg_blas_has_copy(operand)) return false;
  pthread_mutex_lock(&rates_lock);
  if (comparisons == COMPARISONS) *seconds = (double)sg_blas_bytes_of(operand) / hash_rate;
  pthread_mutex_unlock(&rates_lock);
  return true;
}
