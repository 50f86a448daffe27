/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "rates.h"
#include "residents.h"
#include "resolve.h"

/* Calls of one routine with sizes of the same class: each size is rounded up to a power of two. */
typedef struct row {
  const sg_blas_entry *entry;
  int64_t m, n, k;
  uint64_t calls[SG_BLAS_REASONS];
  double work, device_seconds, cpu_seconds, predicted_seconds;
  uint64_t cpu_ticks; /* of small calls, beside cpu_seconds */
  uint64_t bytes_in, bytes_out;
} row;

enum { ROWS = 1024 };
/* Held for a few nanoseconds, but by the report's writer: a small call pays for one atomic instruction. */
static int is_locked;
static row rows[ROWS];
static int row_count;
static uint64_t uncounted; /* calls of classes that found no row */

static const char *const reasons[SG_BLAS_REASONS] = {[SG_BLAS_ON_DEVICE] = "device",
                                                     [SG_BLAS_SMALL] = "below the floor",
                                                     [SG_BLAS_CPU_FASTER] = "the model says CPU",
                                                     [SG_BLAS_INVALID] = "invalid argument",
                                                     [SG_BLAS_EMPTY] = "nothing to do",
                                                     [SG_BLAS_VAST] = "vast sizes",
                                                     [SG_BLAS_SWITCHED_OFF] = "switched off",
                                                     [SG_BLAS_NO_DEVICE] = "no device",
                                                     [SG_BLAS_AFTER_FORK] = "child of fork",
                                                     [SG_BLAS_DEVICE_FAILED] = "device failed",
                                                     [SG_BLAS_UNSOLVED] = "no solution",
                                                     [SG_BLAS_NO_SOLVER] = "LAPACK not served"};

static void lock(void) {
  while (__atomic_exchange_n(&is_locked, 1, __ATOMIC_ACQUIRE) != 0) sched_yield();
}
static void unlock(void) { __atomic_store_n(&is_locked, 0, __ATOMIC_RELEASE); }

void sg_blas_report_after_fork(void) {
  is_locked = 0;
  memset(rows, 0, sizeof rows);
  row_count = 0;
  uncounted = 0;
}

static int64_t class_of(int64_t size) {
  return size <= 1              ? size > 0
         : size > INT64_MAX / 2 ? INT64_MAX
                                : (int64_t)1 << (64 - __builtin_clzll((unsigned long long)size - 1));
}

static row *row_of(const sg_blas_call *call) {
  const int64_t m = class_of(call->m), n = class_of(call->n), k = class_of(call->k);
  for (int i = 0; i < row_count; ++i)
    if (rows[i].entry == call->entry && rows[i].m == m && rows[i].n == n && rows[i].k == k) return &rows[i];
  if (row_count == ROWS) return NULL;
  rows[row_count] = (row){.entry = call->entry, .m = m, .n = n, .k = k};
  return &rows[row_count++];
}

void sg_blas_count(const sg_blas_call *call, double seconds, const sg_blas_outcome *outcome) {
  lock();
  row *const to = row_of(call);
  if (to == NULL) {
    ++uncounted;
  } else {
    ++to->calls[call->reason];
    if (call->reason != SG_BLAS_INVALID) to->work += call->work;
    to->predicted_seconds += call->device_seconds;
    *(outcome != NULL ? &to->device_seconds : &to->cpu_seconds) += seconds;
    if (outcome != NULL) to->bytes_in += outcome->bytes_in, to->bytes_out += outcome->bytes_out;
  }
  unlock();
}

void sg_blas_count_small(const sg_blas_call *call, uint64_t ticks) {
  lock();
  row *const to = row_of(call);
  if (to == NULL) {
    ++uncounted;
  } else {
    ++to->calls[call->reason];
    to->work += call->work;
    to->cpu_ticks += ticks;
  }
  unlock();
}

typedef struct writer {
  char *text;
  size_t size, used;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *to, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const bool has_room = to->used < to->size;
  const int length =
      vsnprintf(has_room ? to->text + to->used : NULL, has_room ? to->size - to->used : 0, format, arguments);
  va_end(arguments);
  if (length > 0) to->used += (size_t)length;
}

/* A string of JSON. Bytes that are not ASCII pass through. */
static void put_string(writer *to, const char *text) {
  put(to, "\"");
  for (; *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\')
      put(to, "\\%c", *text);
    else if ((unsigned char)*text < 0x20)
      put(to, "\\u%04x", *text);
    else
      put(to, "%c", *text);
  }
  put(to, "\"");
}

/* cpu_seconds has the same length each time: a tick is measured anew, and the text was measured before. */
static void put_row(writer *to, const row *each) {
  const sg_blas_call sizes = {.m = each->m, .n = each->n, .k = each->k};
  put(to, "{\"name\": \"%s\", \"routine\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"gflop\": %.9g, ",
      each->entry->name, each->entry->routine, (long long)each->m, (long long)each->n, (long long)each->k,
      each->work * (each->entry->type == 's' || each->entry->type == 'd' ? 2e-9 : 8e-9));
  put(to,
      "\"device_seconds\": %.6g, \"cpu_seconds\": %.6e, \"predicted_device_seconds\": %.6g, \"predicted_cpu_seconds\": "
      "%.6g, ",
      each->device_seconds, each->cpu_seconds + (double)each->cpu_ticks * sg_blas_tick(), each->predicted_seconds,
      each->work / sg_blas_rate_of(each->entry->type, sg_blas_least_size(&sizes) - 1));
  put(to, "\"bytes_in\": %llu, \"bytes_out\": %llu, \"calls\": {", (unsigned long long)each->bytes_in,
      (unsigned long long)each->bytes_out);
  const char *between = "";
  for (int i = 0; i < SG_BLAS_REASONS; ++i)
    if (each->calls[i] > 0)
      put(to, "%s\"%s\": %llu", between, reasons[i], (unsigned long long)each->calls[i]), between = ", ";
  put(to, "}}");
}

static void put_residency(writer *to, const sg_blas_settings *settings) {
  static const char *const modes[] = {"auto", "off", "hash", "track", "verify"};
  const sg_blas_residency_statistics of = sg_blas_residency_counts();
  put(to,
      ", \"residency\": {\"mode\": \"%s\", \"host_reads\": %llu, \"hits\": %llu, \"changes\": %llu, \"copies\": %llu, "
      "\"evictions\": %llu, \"guards\": %llu, \"unwritten\": %llu, \"bytes_avoided\": %llu, \"bytes_hashed\": %llu, "
      "\"bytes_verified\": %llu, "
      "\"bytes_kept\": %llu, \"bytes_limit\": %llu, \"hash_seconds\": %.6g}",
      modes[settings->residency], (unsigned long long)of.host_reads, (unsigned long long)of.hits,
      (unsigned long long)of.changes, (unsigned long long)of.copies, (unsigned long long)of.evictions,
      (unsigned long long)of.guards, (unsigned long long)of.unwritten, (unsigned long long)of.bytes_avoided,
      (unsigned long long)of.bytes_hashed, (unsigned long long)of.bytes_verified, (unsigned long long)of.bytes_kept,
      (unsigned long long)of.limit, of.hash_seconds);
}

size_t sg_blas_write_report(const sg_blas_settings *settings, char *text, size_t size) {
  writer to = {text, size, 0};
  lock();
  put(&to, "{\"program\": ");
  put_string(&to, program_invocation_short_name);
  put(&to, ", \"pid\": %ld, \"rank\": %d, \"device\": ", (long)getpid(), settings->local_rank);
  put_string(&to, sg_blas_device_name());
  put(&to, ", \"memory_limit\": %llu, \"blas_threads\": %d, \"cpu_blas\": {",
      (unsigned long long)sg_blas_memory_limit(), sg_blas_cpu_threads());
  const char *between = "";
  for (int i = 0; i < row_count; ++i) {
    const sg_blas_entry *const entry = rows[i].entry;
    bool is_first = true;
    for (int j = 0; j < i; ++j) is_first = is_first && rows[j].entry != entry;
    if (!is_first) continue;
    char path[4096];
    const sg_blas_entry *const used = __atomic_load_n(&entry->is_absent, __ATOMIC_ACQUIRE) ? entry->gemm : entry;
    sg_blas_describe_cpu(__atomic_load_n(&used->cpu, __ATOMIC_ACQUIRE), path, sizeof path);
    put(&to, "%s\"%s\": ", between, entry->name);
    put_string(&to, path);
    between = ", ";
  }
  put(&to, "}");
  put_residency(&to, settings);
  put(&to, ", \"uncounted_calls\": %llu, \"rows\": [", (unsigned long long)uncounted);
  for (int i = 0; i < row_count; ++i) {
    if (i > 0) put(&to, ", ");
    put_row(&to, &rows[i]);
  }
  put(&to, "]}");
  unlock();
  return to.used + 1;
}

/* The file of SG_BLAS_REPORT: %p is the number of the process, %r the local rank, %% a percent sign. */
static bool expand(const char *name, int rank, char *path, size_t size) {
  writer to = {path, size, 0};
  for (; *name != '\0'; ++name) {
    const char key = name[0] == '%' ? name[1] : '\0';
    if (key == 'p')
      put(&to, "%ld", (long)getpid());
    else if (key == 'r')
      put(&to, "%d", rank);
    else
      put(&to, "%c", *name);
    if (key == 'p' || key == 'r' || key == '%') ++name;
  }
  return to.used < size;
}

void sg_blas_save_report(const sg_blas_settings *settings) {
  char path[4096];
  const size_t size = sg_blas_write_report(settings, NULL, 0) + 1;
  char *const text = malloc(size);
  if (text == NULL) return;
  sg_blas_write_report(settings, text, size);
  strcat(text, "\n");
  const bool is_stderr = strcmp(settings->report, "-") == 0;
  int file = STDERR_FILENO;
  if (!is_stderr)
    file = expand(settings->report, settings->local_rank, path, sizeof path)
               ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
               : -1;
  const size_t length = strlen(text);
  size_t written = 0;
  for (ssize_t now = 1; file >= 0 && written < length && now > 0; written += now > 0 ? (size_t)now : 0)
    now = write(file, text + written, length - written);
  if (written < length)
    fprintf(stderr, "streamgemm-blas: SG_BLAS_REPORT=%s: %s\n", settings->report,
            file < 0 && errno == 0 ? "too long" : strerror(errno));
  if (file >= 0 && !is_stderr) close(file);
  free(text);
}
