/* SPDX-License-Identifier: Apache-2.0 */
#include "contents.h"

#include <errno.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/types.h>

#include "workers.h"

/* A chunk stays in a core's cache, and a matrix of a few MiB has some for each core. */
enum { CHUNK_BYTES = 256 * 1024, PROBES = 8, SAMPLES = 16, SAMPLE_BYTES = 4096 };

static size_t least(size_t one, size_t other) { return one < other ? one : other; }
static size_t quotient_up(size_t one, size_t other) { return (one + other - 1) / other; }

bool sg_blas_lines_overlap(const sg_blas_lines *one, const sg_blas_lines *other) {
  if (one->first > other->first) return sg_blas_lines_overlap(other, one);
  const size_t distance = (size_t)(other->first - one->first);
  if (distance >= sg_blas_span_of(one)) return false;
  if (one->pitch != other->pitch) return true;
  /* Where the other begins in a line of this one; from there it goes on to the end of the pitch and beyond. */
  const size_t line = distance / one->pitch, offset = distance % one->pitch;
  return offset < one->width || (offset + other->width > one->pitch && line + 1 < one->height);
}

/* Parts of a line: 1 if a chunk is whole lines. */
static size_t parts_of_line(const sg_blas_lines *of) { return quotient_up(of->width, CHUNK_BYTES); }
static size_t lines_of_chunk(const sg_blas_lines *of) { return of->width >= CHUNK_BYTES ? 1 : CHUNK_BYTES / of->width; }

size_t sg_blas_chunk_count(const sg_blas_lines *of) {
  return quotient_up(of->height, lines_of_chunk(of)) * parts_of_line(of);
}

/* The chunk's first line, and its first byte in it. */
static void place_of(const sg_blas_lines *of, size_t index, size_t *line, size_t *offset) {
  *line = index / parts_of_line(of) * lines_of_chunk(of);
  *offset = index % parts_of_line(of) * CHUNK_BYTES;
}

sg_blas_lines sg_blas_chunk(const sg_blas_lines *of, size_t index) {
  size_t line, offset;
  place_of(of, index, &line, &offset);
  const size_t width = parts_of_line(of) == 1 ? of->width : least(CHUNK_BYTES, of->width - offset);
  return (sg_blas_lines){of->first + line * of->pitch + offset, width, least(lines_of_chunk(of), of->height - line),
                         of->pitch, 0};
}

char *sg_blas_chunk_in_copy(const sg_blas_lines *of, size_t index, char *first, size_t pitch) {
  size_t line, offset;
  place_of(of, index, &line, &offset);
  return first + line * pitch + offset;
}

/* The process's secret, without which no contents with the hash of others can be made. */
static unsigned char secret[SG_BLAS_SECRET_BYTES];
static sg_blas_hash_function *hash; /* NULL: this build cannot, or the system gives no secret */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void) {
#ifdef SG_BLAS_HAS_HASH
  size_t have = 0;
  for (ssize_t more; have < sizeof secret; have += (size_t)more) {
    more = getrandom(secret + have, sizeof secret - have, 0);
    if (more <= 0 && errno != EINTR) return;
    if (more < 0) more = 0;
  }
#ifdef SG_BLAS_HAS_AVX2
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2"))
    hash = sg_blas_hash_avx2;
  else
#endif
    hash = sg_blas_hash_baseline;
#endif
}

bool sg_blas_can_hash(void) {
  pthread_once(&once, choose);
  return hash != NULL;
}

static sg_blas_hash hash_of(const sg_blas_lines *lines) {
  return hash(lines->first, lines->width, lines->height, lines->pitch, secret);
}

/* One comparison, or hashing without `known`. */
typedef struct comparison {
  const sg_blas_lines *of;
  const sg_blas_hash *known;
  sg_blas_hash *fresh;
  unsigned char *differs;
  size_t step, count, different; /* every `step`th chunk; different: atomic */
  bool of_marked;                /* only those with differs[i] */
} comparison;

static void look(size_t index, void *given) {
  comparison *const work = given;
  const size_t chunk = index * work->step;
  if (work->of_marked && !work->differs[chunk]) return;
  if (work->known != NULL && !work->of_marked && __atomic_load_n(&work->different, __ATOMIC_RELAXED) > work->count / 2)
    return;
  const sg_blas_lines part = sg_blas_chunk(work->of, chunk);
  work->fresh[chunk] = hash_of(&part);
  if (work->known == NULL) return;
  work->differs[chunk] = !sg_blas_hash_equal(work->fresh[chunk], work->known[chunk]);
  if (work->differs[chunk]) __atomic_add_fetch(&work->different, 1, __ATOMIC_RELAXED);
}

void sg_blas_hash_chunks(const sg_blas_lines *of, sg_blas_hash hashes[]) {
  comparison work = {of, NULL, hashes, NULL, 1, sg_blas_chunk_count(of), 0, false};
  sg_blas_for_each(work.count, look, &work);
}

size_t sg_blas_compare_chunks(const sg_blas_lines *of, const sg_blas_hash known[], sg_blas_hash fresh[],
                              unsigned char differs[]) {
  const size_t count = sg_blas_chunk_count(of);
  const size_t step = count / PROBES;
  if (step > 1) {
    comparison first = {of, known, fresh, differs, step, PROBES, 0, false};
    sg_blas_for_each(PROBES, look, &first);
    if (first.different > PROBES / 2) return count;
  }
  comparison all = {of, known, fresh, differs, 1, count, 0, false};
  sg_blas_for_each(count, look, &all);
  return all.different;
}

size_t sg_blas_compare_some(const sg_blas_lines *of, const sg_blas_hash known[], sg_blas_hash fresh[],
                            unsigned char differs[]) {
  comparison some = {of, known, fresh, differs, 1, sg_blas_chunk_count(of), 0, true};
  sg_blas_for_each(some.count, look, &some);
  return some.different;
}

void sg_blas_mark_chunks(const sg_blas_lines *of, const char *first, size_t bytes, unsigned char marks[]) {
  const size_t count = sg_blas_chunk_count(of);
  size_t low = 0; /* chunks before it end before the range */
  for (size_t high = count; low < high;) {
    const size_t middle = (low + high) / 2;
    const sg_blas_lines part = sg_blas_chunk(of, middle);
    if (part.first + sg_blas_span_of(&part) <= first)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < count; ++low) {
    if (sg_blas_chunk(of, low).first >= first + bytes) break;
    marks[low] = 1;
  }
}

sg_blas_hash sg_blas_sample(const sg_blas_lines *of) {
  sg_blas_hash sum = {0, 0};
  for (size_t i = 0; i < SAMPLES; ++i) {
    const size_t line = of->height * i / SAMPLES, offset = of->width / SAMPLES * i;
    const char *const first = of->first + line * of->pitch + offset;
    const sg_blas_lines part = {first, least(SAMPLE_BYTES, of->width - offset), 1, of->pitch, 0};
    const sg_blas_hash each = hash_of(&part);
    sum.low = sum.low * 3 + each.low;
    sum.high = sum.high * 3 + each.high;
  }
  return sum;
}
