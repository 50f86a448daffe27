/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file trace.h
 * @brief Traces: what ran when, what overlapped, and why a device was idle.
 *
 * Recording. sg_trace_start begins a recording of all contexts of the process, sg_trace_stop ends it. Each thread writes its
 * events into a ring of its own, 64 bytes an event, without a lock and without allocating; a thread of the trace empties the
 * rings. Where a ring or the recording is full, events are dropped and counted. A process records one trace at a time. Nothing
 * is recorded while none is on.
 *
 * Any program. SG_TRACE=FILE in the environment records from the first context of a process on, and writes the file when the
 * process exits; %p in FILE is the number of the process. The format follows from the file's name, see sg_trace_format. A setuid program does not read it.
 *
 * Times. Submissions, waits and staging are timed on CLOCK_MONOTONIC. Commands of cpu and cuda devices are on that clock too;
 * those of a simulated device (sim) are in virtual time, which begins with the device's first command. A GPU times long
 * commands by itself, and of others the host's time of their completion is taken, as in sg_job_statistics: it may be 10 to
 * 100 us late. With SG_TRACE_DEVICE_TIMES, or SG_TRACE_DEVICE_TIMES=1 in the environment beside SG_TRACE, it times all.
 *
 * Advice. Exports say what to change and what that would gain: recorded GEMMs are planned again from pinned memory, from device
 * memory, in tf32 or 3xtf32, without gaps, without their restrictions, or on more devices of their context, on the model of the
 * machine; and jobs that ran one after another are simulated side by side. The schedules of the first 1024 jobs are kept for it.
 *
 * What is recorded. Jobs that were submitted while the trace was on: the call, the planning if a new schedule was planned,
 * each command with its lane, bytes and sizes, staging workers' copies, the job's completion; waits of threads; memory of
 * contexts; runs that were planned again for less memory.
 */
#ifndef STREAMGEMM_TRACE_H
#define STREAMGEMM_TRACE_H

#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Format of a written trace. */
typedef enum sg_trace_format SG_ENUM_INT {
  SG_TRACE_FORMAT_AUTO = 0,     /**< By the file's name: .json, .pftrace or .perfetto-trace, .html, .svg, .txt. */
  SG_TRACE_FORMAT_JSON = 1,     /**< Trace Event Format, for chrome://tracing and ui.perfetto.dev. Times in us. In otherData: the figures of
                              each context, and the advice. */
  SG_TRACE_FORMAT_PERFETTO = 2, /**< Perfetto's protobuf, for ui.perfetto.dev and trace_processor. */
  SG_TRACE_FORMAT_HTML = 3,     /**< One page without other files: timeline with zoom, pan and search, figures, advice, commands; the
                              simulated timeline of each schedule is laid over the measured one. */
  SG_TRACE_FORMAT_SVG = 4,      /**< A picture: one row for each lane and thread. */
  SG_TRACE_FORMAT_TEXT = 5      /**< Rows of characters, the figures of each context, and advice. */
} sg_trace_format;

/** What to record. */
typedef enum sg_trace_flags SG_ENUM_INT {
  SG_TRACE_DEFAULT = 0,     /**< None. */
  SG_TRACE_DEVICE_TIMES = 1 /**< A GPU times the start and the end of each command itself. Each then takes some us longer, and copies
                                 some percent. */
} sg_trace_flags;

/** How to record. */
typedef struct sg_trace_options {
  size_t struct_size;   /**< sizeof(sg_trace_options), set by SG_TRACE_OPTIONS_INIT. */
  uint64_t max_events;  /**< Events to keep at most, 64 bytes each; 0: 1,000,000. Later ones are dropped and counted. */
  uint32_t flags;       /**< sg_trace_flags. */
  uint32_t reserved;    /**< 0. */
} sg_trace_options;

/** Initial value of an sg_trace_options. */
#define SG_TRACE_OPTIONS_INIT {sizeof(sg_trace_options), 0, 0, 0}

/**
 * Figures of the trace of one context, or of one stream of it. Times of several lanes of one kind are those in which at least one of them worked, so
 * busy time never exceeds the span. The idle times add up to span_seconds - compute_seconds.
 */
typedef struct sg_trace_metrics {
  size_t struct_size;            /**< sizeof(sg_trace_metrics), set by SG_TRACE_METRICS_INIT. */
  uint64_t events;               /**< Events of the whole trace. */
  uint64_t dropped_events;       /**< Events that there was no room for. */
  uint64_t jobs;                 /**< Jobs that were submitted to the context. */
  uint64_t failed_jobs;          /**< Of these, those that did not succeed. */
  uint64_t commands;             /**< Commands that ran on its device. */
  uint64_t bytes_in;             /**< Bytes copied to the device. */
  uint64_t bytes_out;            /**< Bytes copied from the device. */
  double span_seconds;           /**< From the first command to the end of the last. */
  double busy_seconds;           /**< Any lane of the device worked. */
  double compute_seconds;        /**< A compute lane worked. */
  double copy_in_seconds;        /**< A copy to the device was under way. */
  double copy_out_seconds;       /**< A copy from the device was under way. */
  double staging_seconds;        /**< A staging worker worked. 0 for simulated devices. */
  double command_seconds;        /**< The times of all commands, added. Divided by the span: commands at a time. */
  double exposed_seconds;        /**< A copy was under way and no compute lane worked. */
  double overlap_efficiency;     /**< 1 - exposed / time with a copy under way; 1 if nothing was copied. */
  double idle_link_seconds;      /**< No compute lane worked, and a copy was under way. */
  double idle_staging_seconds;   /**< Otherwise: a staging worker worked. */
  double idle_submission_seconds;/**< Otherwise: a call was submitting or planning. */
  double idle_dispatch_seconds;  /**< Otherwise: jobs were in flight, and their next command had not begun. */
  double idle_no_work_seconds;   /**< Otherwise: no job was in flight. */
  double latency_p50_seconds;    /**< Median time from a job's submission to its completion on the host. */
  double latency_p90_seconds;    /**< 90 % of the jobs did not take longer. */
  double latency_p99_seconds;    /**< 99 %. */
  double latency_max_seconds;    /**< The longest. */
} sg_trace_metrics;

/** Initial value of an sg_trace_metrics. */
#define SG_TRACE_METRICS_INIT                                                                                       \
  {sizeof(sg_trace_metrics), 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, \
   0.0, 0.0, 0.0, 0.0}

/**
 * Begins a recording.
 * @param options NULL: the defaults.
 * @param[out] out_trace One reference, to be released by sg_trace_release; NULL on failure.
 * @return SG_STATUS_OK; SG_STATUS_BUSY: a trace is being recorded, by another handle or by SG_TRACE;
 * SG_STATUS_INVALID_ARGUMENT; SG_STATUS_OUT_OF_MEMORY. Never blocks. Any thread.
 */
SG_API sg_status sg_trace_start(const sg_trace_options *options, sg_trace **out_trace);

/**
 * Ends the recording. Jobs in flight go on, unrecorded. A trace that was stopped is left as it is.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Blocks for some milliseconds at most. Any thread.
 */
SG_API sg_status sg_trace_stop(sg_trace *trace);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_trace_retain(sg_trace *trace);

/**
 * Releases a reference. With the last one a recording that is on ends, and what was recorded is gone.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Blocks for some milliseconds at most. Any thread.
 */
SG_API sg_status sg_trace_release(sg_trace *trace);

/**
 * Writes a trace to a file, which is replaced. One that is still recording is stopped first.
 * @param path The file. If writing fails, it may be incomplete.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_ARGUMENT: `format` is invalid, no format follows from the name, or the file cannot be
 * opened; SG_STATUS_IO_FAILURE: writing failed, as on a full disk; SG_STATUS_OUT_OF_MEMORY; SG_STATUS_INVALID_HANDLE. Blocks. Any thread.
 */
SG_API sg_status sg_trace_write(sg_trace *trace, const char *path, sg_trace_format format);

/**
 * Checks a path and a format that sg_trace_write will be given, as before a long recording. The file is left as it is.
 * @param path The file.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_ARGUMENT: `format` is invalid, no format follows from the name, or the file cannot be
 * opened for writing. Blocks. Any thread.
 */
SG_API sg_status sg_trace_check_path(const char *path, sg_trace_format format);

/**
 * A trace as text in memory, in any format but SG_TRACE_FORMAT_AUTO. One that is still recording is stopped first.
 * @param[out] data Receives at most `size` bytes, without a NUL; may be NULL if size is 0.
 * @param[out] out_size NULL, or receives the number of bytes of the whole.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY, SG_STATUS_INVALID_HANDLE. Blocks. Any thread.
 */
SG_API sg_status sg_trace_export(sg_trace *trace, sg_trace_format format, void *data, uint64_t size, uint64_t *out_size);

/**
 * Figures of one context. A trace that is still recording is stopped first.
 * @param context A context that had jobs while the trace was on, or had none: then the figures are 0.
 * @param[in,out] out_metrics Its struct_size is read; the rest is written.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE; SG_STATUS_OUT_OF_MEMORY. Blocks. Any thread.
 */
SG_API sg_status sg_trace_get_metrics(sg_trace *trace, sg_context *context, sg_trace_metrics *out_metrics);

/**
 * Figures of the jobs of one stream. The span, and the idle times, are those in which the stream's own commands did not run.
 * @param[in,out] out_metrics As in sg_trace_get_metrics.
 * @return As sg_trace_get_metrics. Blocks. Any thread.
 */
SG_API sg_status sg_trace_get_stream_metrics(sg_trace *trace, sg_stream *stream, sg_trace_metrics *out_metrics);

/**
 * For how long two jobs ran side by side: the time in which commands of both ran, 0 if the trace saw none of them.
 * A trace that is still recording is stopped first.
 * @param[out] out_seconds 0 on failure.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE; SG_STATUS_OUT_OF_MEMORY. Blocks. Any thread.
 */
SG_API sg_status sg_trace_overlap_jobs(sg_trace *trace, sg_job *first, sg_job *second, double *out_seconds);

/**
 * For how long jobs of two streams ran side by side.
 * @param[out] out_seconds 0 on failure.
 * @return As sg_trace_overlap_jobs. Blocks. Any thread.
 */
SG_API sg_status sg_trace_overlap_streams(sg_trace *trace, sg_stream *first, sg_stream *second, double *out_seconds);

SG_END_DECLS

#endif /* STREAMGEMM_TRACE_H */
