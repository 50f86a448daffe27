/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file metrics.h
 * @brief Counters of contexts, which run without a trace; and their text for a scraper.
 *
 * The counters begin when a context is created and never decrease, except for those named as present values. Each is read by
 * itself, so two of them may differ by jobs that complete meanwhile. For latencies and the causes of idle time, record a trace
 * (trace.h).
 */
#ifndef STREAMGEMM_METRICS_H
#define STREAMGEMM_METRICS_H

#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Counters of one context. Busy times are on the device's clock: the time in which at least one lane of that kind worked.
 * Of idle times in which a command turns out to have run, because it is reported late, the longest 16 are remembered: busy times
 * never exceed the time that has passed, and may miss some of it. GEMMs that a blocking call computes on its own thread are jobs, and no commands.
 */
typedef struct sg_context_metrics {
  size_t struct_size;            /**< sizeof(sg_context_metrics), set by SG_CONTEXT_METRICS_INIT. */
  uint64_t jobs_submitted;       /**< Jobs, with the children of graphs' runs, and the library's own that order others. */
  uint64_t jobs_completed;       /**< Of these, those that have completed. */
  uint64_t jobs_failed;          /**< Of the completed ones, those that failed. */
  uint64_t jobs_cancelled;       /**< Likewise, those that were cancelled, or whose deadline passed. */
  uint64_t jobs_in_flight;       /**< Present value: submitted and not completed. */
  uint64_t queued_high;          /**< Present value: jobs of high priority that are ready and wait for a lane, not counting those of
                                      streams with compute units of their own. */
  uint64_t queued_normal;        /**< Present value: of normal priority. */
  uint64_t queued_low;           /**< Present value: of low priority. */
  uint64_t commands;             /**< Commands that the device has run; a batch of small GEMMs is one. */
  uint64_t bytes_in;             /**< Bytes copied to the device. */
  uint64_t bytes_out;            /**< Bytes copied from the device. */
  double compute_seconds;        /**< Busy time of compute lanes. */
  double copy_in_seconds;        /**< Busy time of copies to the device. */
  double copy_out_seconds;       /**< Busy time of copies from the device. */
  double elapsed_seconds;        /**< Since the context was created, on CLOCK_MONOTONIC; on simulated devices up to the latest
                                      virtual time that the host has seen. */
  uint64_t device_bytes;         /**< Present value: device memory held by buffers, kept for new ones, and for schedules. */
  uint64_t pinned_bytes;         /**< Present value: pinned host memory of sg_host_alloc, and for staging. */
} sg_context_metrics;

/** Initial value of an sg_context_metrics. */
#define SG_CONTEXT_METRICS_INIT \
  {sizeof(sg_context_metrics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0, 0}

/**
 * The counters of a context now.
 * @param[in,out] out_metrics Its struct_size is read; the rest is written.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_context_get_metrics(sg_context *context, sg_context_metrics *out_metrics);

/**
 * The counters of all contexts of the process as OpenMetrics text, for Prometheus and others: an application's HTTP server
 * answers with it, as application/openmetrics-text; version=1.0.0; charset=utf-8. Metrics are named streamgemm_*; each has
 * the labels `context`, a number that no other context of the process has, and `device`: of a context with several devices all of
 * them, but of commands, busy times and transferred bytes each one.
 * @param[out] text Receives at most `size` bytes, with a NUL; may be NULL if size is 0.
 * @param[out] out_size Bytes that the whole text needs with its NUL; may be NULL. The next text may be longer: numbers
 * grow, and contexts appear.
 * @return SG_STATUS_OK (also if the text was truncated: compare *out_size), SG_STATUS_INVALID_ARGUMENT,
 * SG_STATUS_OUT_OF_MEMORY. May block, while a trace is written as the process exits. Any thread.
 */
SG_API sg_status sg_metrics_text(char *text, uint64_t size, uint64_t *out_size);

SG_END_DECLS

#endif /* STREAMGEMM_METRICS_H */
