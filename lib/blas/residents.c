/* SPDX-License-Identifier: Apache-2.0 */
#include "residents.h"

#include <stdlib.h>
#include <string.h>

#include "library.h"

typedef sg_blas_resident resident;

enum { PLACES = 256 };
/* Protects keys, users, uses and `buffer` of all places (`buffer` also by the resident's lock). Taken with a resident's
 * lock held, never before one. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static resident table[PLACES];
static uint64_t uses;
static sg_blas_residency_statistics counts;

void sg_blas_residents_open(uint64_t limit) {
  for (int i = 0; i < PLACES; ++i) pthread_mutex_init(&table[i].lock, NULL);
  counts.limit = limit;
}

void sg_blas_residents_after_fork(void) {
  pthread_mutex_init(&table_lock, NULL);
  sg_blas_protection_after_fork();
  memset(table, 0, sizeof table);
  memset(&counts, 0, sizeof counts);
}

sg_blas_residency_statistics sg_blas_residency_counts(void) {
  pthread_mutex_lock(&table_lock);
  const sg_blas_residency_statistics copy = counts;
  pthread_mutex_unlock(&table_lock);
  return copy;
}

void sg_blas_add_counts(const sg_blas_residency_statistics *more) {
  pthread_mutex_lock(&table_lock);
  counts.hits += more->hits;
  counts.changes += more->changes;
  counts.copies += more->copies;
  counts.guards += more->guards;
  counts.unwritten += more->unwritten;
  counts.bytes_avoided += more->bytes_avoided;
  counts.bytes_hashed += more->bytes_hashed;
  counts.bytes_verified += more->bytes_verified;
  counts.hash_seconds += more->hash_seconds;
  counts.host_reads += more->host_reads;
  pthread_mutex_unlock(&table_lock);
}

static bool has_key(const resident *of, const sg_blas_lines *key) {
  return of->key.first == key->first && of->key.width == key->width && of->key.height == key->height &&
         of->key.pitch == key->pitch && of->key.part == key->part;
}

/* Under table_lock, and the resident's lock if it has users; so for the next ones. */
static void drop(resident *of) {
  if (of->buffer == NULL) return;
  sg_blas_guard_stop(&of->guard);
  sg_blas_streamgemm.sg_buffer_release(of->buffer);
  free(of->hashes);
  of->buffer = NULL;
  of->hashes = NULL;
  of->has_sample = of->is_unwanted = false;
  of->hits = 0;
  counts.bytes_kept -= of->bytes;
}

/* The place that has waited longest for a use, of all without users or of those with a copy that was used before
 * `limit`. */
static resident *oldest(bool has_copy, uint64_t limit) {
  resident *found = NULL;
  for (int i = 0; i < PLACES; ++i)
    if (table[i].users == 0 && table[i].last_use < limit && (!has_copy || table[i].buffer != NULL) &&
        (found == NULL || table[i].last_use < found->last_use))
      found = &table[i];
  return found;
}

static bool evict_before(uint64_t use) {
  resident *const victim = oldest(true, use);
  if (victim == NULL) return false;
  drop(victim);
  ++counts.evictions;
  return true;
}

resident *sg_blas_find_resident(const sg_blas_lines *key) {
  pthread_mutex_lock(&table_lock);
  resident *found = NULL;
  for (int i = 0; i < PLACES && found == NULL; ++i)
    if (has_key(&table[i], key)) found = &table[i];
  if (found == NULL && (found = oldest(false, UINT64_MAX)) != NULL) {
    if (found->buffer != NULL) ++counts.evictions;
    drop(found);
    found->key = *key;
    found->has_sample = false;
    found->skip = found->back_off = 0;
    found->guard_after = 1;
    found->last_use = 0;
  }
  if (found != NULL) {
    ++found->users;
    found->use_before = found->last_use;
    found->last_use = ++uses;
  }
  pthread_mutex_unlock(&table_lock);
  return found;
}

void sg_blas_leave_resident(resident *of) {
  pthread_mutex_lock(&table_lock);
  --of->users;
  pthread_mutex_unlock(&table_lock);
}

/* Counts `bytes` as kept if there is room for them. */
static bool reserve(size_t bytes, uint64_t use_before) {
  pthread_mutex_lock(&table_lock);
  bool fits = bytes <= counts.limit;
  while (fits && counts.bytes_kept + bytes > counts.limit) fits = evict_before(use_before);
  if (fits) counts.bytes_kept += bytes;
  pthread_mutex_unlock(&table_lock);
  return fits;
}

static bool evict_for(uint64_t use_before) {
  pthread_mutex_lock(&table_lock);
  const bool did = evict_before(use_before);
  pthread_mutex_unlock(&table_lock);
  return did;
}

bool sg_blas_allocate_copy(resident *of, sg_context *context, size_t pitch) {
  const size_t bytes = pitch * of->key.height;
  sg_blas_hash *const hashes = malloc(sg_blas_chunk_count(&of->key) * sizeof *hashes);
  if (hashes == NULL || !reserve(bytes, of->use_before)) return free(hashes), false;
  sg_buffer *buffer = NULL;
  void *data = NULL;
  sg_status status;
  do status = sg_blas_streamgemm.sg_buffer_create(context, bytes, NULL, &buffer);
  while (status == SG_STATUS_OUT_OF_MEMORY && evict_for(of->use_before));
  if (status == SG_STATUS_OK && (status = sg_blas_streamgemm.sg_buffer_data(buffer, &data)) != SG_STATUS_OK)
    sg_blas_streamgemm.sg_buffer_release(buffer);
  pthread_mutex_lock(&table_lock);
  if (status == SG_STATUS_OK) {
    of->buffer = buffer, of->data = data, of->hashes = hashes;
    of->pitch = pitch, of->bytes = bytes;
  } else {
    counts.bytes_kept -= bytes;
    free(hashes);
  }
  pthread_mutex_unlock(&table_lock);
  return status == SG_STATUS_OK;
}

void sg_blas_drop_copy(resident *of) {
  pthread_mutex_lock(&table_lock);
  drop(of);
  pthread_mutex_unlock(&table_lock);
}

bool sg_blas_has_copy(const sg_blas_lines *key) {
  bool found = false;
  pthread_mutex_lock(&table_lock);
  for (int i = 0; i < PLACES && !found; ++i) found = has_key(&table[i], key) && table[i].buffer != NULL;
  pthread_mutex_unlock(&table_lock);
  return found;
}

static bool is_touched_by(const resident *of, const char *first, size_t bytes) {
  if (of->key.first == NULL || first == NULL) return of->key.first != NULL;
  return of->key.first < first + bytes && first < of->key.first + sg_blas_span_of(&of->key);
}

bool sg_blas_drop_residents(const void *first, size_t bytes) {
  bool had_any = false;
  for (int i = 0; i < PLACES; ++i) {
    resident *const of = &table[i];
    pthread_mutex_lock(&table_lock);
    const bool is_touched = is_touched_by(of, first, bytes);
    if (is_touched) ++of->users;
    pthread_mutex_unlock(&table_lock);
    if (!is_touched) continue;
    pthread_mutex_lock(&of->lock);
    had_any = had_any || of->buffer != NULL;
    of->has_sample = false;
    if (of->is_unproven)
      of->is_unwanted = true;
    else
      sg_blas_drop_copy(of);
    pthread_mutex_unlock(&of->lock);
    sg_blas_leave_resident(of);
  }
  return had_any;
}
