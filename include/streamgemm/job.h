/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file job.h
 * @brief A submission and its outcome, and the options that every submission takes.
 *
 * Order: a submission on a stream runs after what was submitted to that stream before. A submission on no stream may run
 * at once, beside anything, except that jobs whose operands overlap in memory (read after write, write after read, write
 * after write) are ordered automatically, in submission order; `after` names further jobs. SG_SUBMIT_UNTRACKED switches
 * the tracking off for one submission. The order in which two threads submit is theirs to arrange. Contexts do not watch
 * each other's memory: between two of them only `after` orders.
 *
 * Memory: from the submission until the job has ended, the operands stay allocated, A and B unchanged, C untouched. The
 * descriptor, the options and the arrays in them are read during the call only.
 *
 * A job ends once, with one status. A failed or cancelled job may have written parts of C; its message says so. A tracked
 * job that reads what such a job was to write ends with SG_STATUS_DEPENDENCY_FAILED, also when it is submitted after the
 * failure, until one submission has been made that writes all of those bytes, or the program has been told: by the answer
 * of sg_job_wait, sg_job_poll, sg_job_wait_all, sg_job_wait_any or sg_job_message for the job, by its completion taken from
 * a queue, or by its callback. From then on the memory is taken to hold what the program wants. Being told of a job that
 * failed because of another counts for that one too. Freeing a buffer or pinned memory ends the matter; releasing a job
 * without asking, and synchronizing, do not. (Of failures that nobody asks for the latest 4096 are remembered.) Where the
 * device itself keeps the order (cuda), a job may be behind another on the device already when that one fails: it then
 * runs, ends with SG_STATUS_DEPENDENCY_FAILED, and its message says that what it wrote is not valid.
 *
 * Small products that are ready at the same time and wait for the device go out as one call, whoever submitted them; each
 * remains a job of its own. (Where only few of them have a long depth, these go one by one on a device, because idle
 * multiprocessors share a single product's depth but not a batch's.) Nothing waits for company: an idle device starts the
 * first at once. Those of high priority go ahead of all others, on a stream of the device that has priority there too.
 */
#ifndef STREAMGEMM_JOB_H
#define STREAMGEMM_JOB_H

#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Wait without end. */
#define SG_FOREVER INT64_C(-1)

/** How a problem is cut. */
typedef enum sg_split {
  SG_SPLIT_AUTO = 0,  /**< The planner's choice: the fastest by its device model, never one that it calls slower. */
  SG_SPLIT_NONE = 1,  /**< One command (one tile after another for host-resident operands). */
  SG_SPLIT_M = 2,     /**< Rows of C. */
  SG_SPLIT_N = 3,     /**< Columns of C. */
  SG_SPLIT_K = 4,     /**< The summed dimension: partial results, then a reduction in a fixed order. */
  SG_SPLIT_BATCH = 5  /**< Items of the batch. */
} sg_split;

/** What the planner may choose. All zero leaves it free. */
typedef struct sg_plan_options {
  size_t struct_size;    /**< sizeof(sg_plan_options), set by SG_PLAN_OPTIONS_INIT. */
  sg_split split;        /**< How to cut. */
  int32_t parts;         /**< Parts of the split; 0: the planner's choice. */
  int32_t streams;       /**< Compute streams to use at most; 0: what the context has. */
  uint64_t memory_limit; /**< Bytes of device memory that the job may use; 0: the context's limit. */
  int64_t tile_m;        /**< Rows of a tile of C when operands lie on the host; 0: the planner's choice. */
  int64_t tile_n;        /**< Columns of a tile of C; 0: the planner's choice. */
  int64_t tile_k;        /**< Depth of a panel; 0: the planner's choice. */
  sg_memory_kind place_a;/**< Where A lies; SG_MEMORY_AUTO: found out from the pointer. Plans without pointers say it here. */
  sg_memory_kind place_b;/**< The same for B. */
  sg_memory_kind place_c;/**< The same for C. */
} sg_plan_options;

/** Initial value of an sg_plan_options. */
#define SG_PLAN_OPTIONS_INIT                                                                                      \
  {sizeof(sg_plan_options), SG_SPLIT_AUTO, 0, 0, 0, 0, 0, 0, SG_MEMORY_AUTO, SG_MEMORY_AUTO, SG_MEMORY_AUTO}

/** Flags of a submission. */
typedef enum sg_submit_flags {
  SG_SUBMIT_DEFAULT = 0,  /**< None. */
  SG_SUBMIT_UNTRACKED = 1,/**< The caller promises that no job in flight conflicts with this one beyond stream and `after`. */
  SG_SUBMIT_WILL_WAIT = 2 /**< The caller waits for the job next. On the cpu a short GEMM that comes after no job, beside no
                               other work of the context, is then computed by the call itself, on the calling thread, which
                               saves waking a worker. Since 0.2. */
} sg_submit_flags;

/** Options of a submission. */
typedef struct sg_submit {
  size_t struct_size;     /**< sizeof(sg_submit), set by SG_SUBMIT_INIT. */
  sg_stream *stream;      /**< Run after what was submitted to this stream before; NULL: no stream. */
  sg_job *const *after;   /**< Run after these jobs; read during the call only. */
  int32_t after_count;    /**< Number of jobs in `after`. */
  int32_t priority;       /**< -1 low, 0 normal (or the stream's), 1 high: goes ahead of waiting work. */
  uint32_t flags;         /**< sg_submit_flags. */
  uint32_t reserved;      /**< 0. */
  sg_queue *queue;        /**< Post the completion here; NULL: nowhere. */
  uint64_t tag;           /**< Comes back with the completion. */
  const sg_plan_options *plan; /**< Narrows the planner's choice; NULL leaves it free. */
  sg_graph *graph;        /**< Record the submission there instead of running it (graph.h); `after` and `queue` are then not
                               allowed, and the call hands out no job. NULL: run it. */
  int64_t deadline_ns;    /**< Nanoseconds from the submission; 0: none. A job that has not begun by then is dropped, one that
                               runs is stopped as by sg_job_cancel; it then ends with SG_STATUS_DEADLINE_EXCEEDED, but not
                               before the jobs that it was ordered after. Not for what is recorded. Since 0.2. */
} sg_submit;

/** Initial value of an sg_submit. */
#define SG_SUBMIT_INIT {sizeof(sg_submit), NULL, NULL, 0, 0, 0, 0, NULL, 0, NULL, NULL, 0}

/**
 * What a finished job did. Times are on the device's clock (virtual on sim devices), in ns from an arbitrary zero. On a GPU
 * a copy, or a product of 0.3 ms and more, is timed by the device when it finds its stream empty and waits for no other,
 * but for a contiguous copy of some 2 to 16 MB to or from the host, which others may follow; otherwise the host reads the
 * time when it learns that a command has ended, mostly 10 to 100 us later.
 */
typedef struct sg_job_statistics {
  size_t struct_size;       /**< sizeof(sg_job_statistics), set by SG_JOB_STATISTICS_INIT. */
  int64_t start_ns;         /**< Start of the first command; 0 when none ran. */
  int64_t end_ns;           /**< End of the last command; 0 when none ran. */
  double busy_seconds;      /**< Sum of all commands' times; above (end - start) when they overlapped. */
  double predicted_seconds; /**< What the planner's model said. */
  double bound_seconds;     /**< The least time that the model's rates allow. */
  double flops;             /**< Floating-point (integer) operations of the product. */
  uint64_t bytes_in;        /**< Bytes copied to the device. */
  uint64_t bytes_out;       /**< Bytes copied from the device. */
  int32_t commands;         /**< Commands of the schedule. */
  int32_t commands_run;     /**< Commands that ran: fewer after a failure or a cancellation. */
  char strategy[64];        /**< The schedule's kind, in terms of column major: a row-major C is its transpose. */
  int32_t company;          /**< Jobs that went out in one call with this one, itself included: busy_seconds is its part of
                                 the call. 1 for a job by itself. */
  uint32_t reserved;        /**< 0. */
} sg_job_statistics;

/** Initial value of an sg_job_statistics. */
#define SG_JOB_STATISTICS_INIT {sizeof(sg_job_statistics), 0, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, "", 0, 0}

/**
 * Called once when a job has ended, on a thread of the library that runs one callback at a time. It may submit, release
 * any handle and call anything except a wait for its own job or sg_context_synchronize (SG_STATUS_DEADLOCK).
 */
typedef void (*sg_job_callback)(sg_job *job, sg_status status, void *user);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_retain(sg_job *job);

/**
 * Gives a reference back. The job itself runs on.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_release(sg_job *job);

/**
 * Waits until the job has ended.
 * @param timeout_ns Nanoseconds; 0 asks without waiting; SG_FOREVER waits without end.
 * @return The job's status; SG_STATUS_TIMEOUT; SG_STATUS_DEADLOCK from the job's own callback;
 * SG_STATUS_INVALID_HANDLE; SG_STATUS_INVALID_ARGUMENT (another negative timeout).
 * A failed job's message becomes this thread's sg_last_error_message. Blocks; on cuda devices it asks the device for
 * some milliseconds at most around the expected end before it sleeps, which saves the time that waking a thread takes. Any
 * thread.
 * Since 0.1.
 */
SG_API sg_status sg_job_wait(sg_job *job, int64_t timeout_ns);

/**
 * Asks whether the job has ended.
 * @return The job's status, SG_STATUS_NOT_READY, or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_poll(sg_job *job);

/**
 * Asks that the job end early. What has not started is dropped; a running command completes first, but a long GEMM on the
 * cpu stops within some 50 ms, with C partly written. A job that names it
 * in `after`, or reads what it would have written, ends with SG_STATUS_DEPENDENCY_FAILED; later jobs of its stream that
 * do neither run.
 * @return SG_STATUS_OK: the job will end as cancelled, or with success if its last command was already running;
 * SG_STATUS_BUSY: it had already ended; SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_cancel(sg_job *job);

/**
 * Calls `callback` once the job has ended; soon, when it already has.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE; SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_on_complete(sg_job *job, sg_job_callback callback, void *user);

/**
 * The text of a job's failure.
 * @param[out] text Receives at most `size` bytes with the NUL; "" when the job has not failed.
 * @return SG_STATUS_OK; SG_STATUS_NOT_READY; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_message(sg_job *job, char *text, uint64_t size);

/**
 * What a finished job did.
 * @param[in,out] out_statistics Its struct_size is read; the rest is written.
 * @return SG_STATUS_OK; SG_STATUS_NOT_READY; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_stats(sg_job *job, sg_job_statistics *out_statistics);

/**
 * Waits until all jobs have ended.
 * @param jobs `count` handles; count 0 returns at once.
 * @param timeout_ns For all together, as in sg_job_wait.
 * @return SG_STATUS_OK when all succeeded; else the status of the first in the array that failed; SG_STATUS_TIMEOUT;
 * SG_STATUS_DEADLOCK; SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT (none was waited for). Blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_wait_all(sg_job *const *jobs, int32_t count, int64_t timeout_ns);

/**
 * Waits until one of the jobs has ended.
 * @param jobs `count` >= 1 handles.
 * @param timeout_ns As in sg_job_wait.
 * @param[out] out_index Index of a job that has ended, the lowest of those seen; -1 otherwise.
 * @return That job's status; SG_STATUS_TIMEOUT; SG_STATUS_DEADLOCK; SG_STATUS_INVALID_ARGUMENT;
 * SG_STATUS_INVALID_HANDLE. `*out_index` tells a job's failure from the call's own. Blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_wait_any(sg_job *const *jobs, int32_t count, int64_t timeout_ns, int32_t *out_index);

SG_END_DECLS

#endif /* STREAMGEMM_JOB_H */
