/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file job.h
 * @brief A job: a submission and its outcome; and the options of submissions.
 *
 * Order. A job on a stream runs after the job submitted to that stream before it. A job without a stream may run at
 * once and concurrently with any other job. Jobs whose operands overlap in memory (read after write, write after read,
 * write after write) are ordered automatically, in submission order. `after` names further predecessors.
 * SG_SUBMIT_UNTRACKED disables the tracking for one submission. If two threads submit, the application must order them
 * if it matters. Contexts do not track each other's memory: between two contexts only `after` orders jobs.
 *
 * Memory. From the submission until the job has completed, the operands stay allocated, A and B are not changed, and C is
 * not accessed. The descriptor, the options and the arrays in them are read during the call only.
 *
 * Failure. A job completes once, with one status. A failed or cancelled job may have written parts of C; its message
 * says so. The message of a job with a label begins with it: job "LABEL": TEXT. A tracked job that reads memory which
 * such a job was to write fails with SG_STATUS_DEPENDENCY_FAILED, also if it is submitted after the failure. This ends
 * when a submission writes all of those bytes, when the memory (a buffer or pinned memory) is freed, or when the
 * application has observed the failure: by the result of sg_job_wait, sg_job_query, sg_job_wait_all, sg_job_wait_any or
 * sg_job_message for the job, by its completion taken from a queue (sg_queue_options.observes), or by its callback. From then on the content of the
 * memory is accepted. Observing a job that failed because of another counts for the other too. Releasing a job and
 * synchronizing do not count. Of unobserved failures the latest 4096 are remembered. If the device itself keeps the
 * order (cuda), a job may already be behind another one on the device when that one fails. It then runs, completes with
 * SG_STATUS_DEPENDENCY_FAILED, and its message says that its output is invalid. A job that has nothing to do (an empty result;
 * of a GEMM k = 0 or alpha = 0 with beta = 1) accesses no memory: it fails only if a job that it names in `after` fails. A job that fails
 * because of several others counts for all of them.
 *
 * Batching. Small GEMMs that are ready at the same time and wait for the device are sent to it as one batch, also if
 * different threads submitted them; each remains a job of its own. An idle device starts the first one at once. While
 * the device computes, GEMMs that no thread waits for may be held until a batch is worth a launch. A few GEMMs with a
 * long k dimension stay unbatched on a device, because idle multiprocessors can share the depth of a single GEMM but
 * not that of a batch. Jobs of high priority overtake all others and run in a device stream of high priority.
 */
#ifndef STREAMGEMM_JOB_H
#define STREAMGEMM_JOB_H

#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Timeout of a wait without a limit. */
#define SG_FOREVER INT64_C(-1)

/** How a GEMM is split. */
typedef enum sg_split SG_ENUM_INT {
  SG_SPLIT_AUTO = 0,  /**< The planner's choice: the fastest one by the device model. */
  SG_SPLIT_NONE = 1,  /**< One command (one tile after another for host-resident operands). */
  SG_SPLIT_M = 2,     /**< Rows of C. */
  SG_SPLIT_N = 3,     /**< Columns of C. */
  SG_SPLIT_K = 4,     /**< The k dimension: partial results, then a reduction in a fixed order. */
  SG_SPLIT_BATCH = 5  /**< Items of the batch. */
} sg_split;

/** Restrictions of the planner's choice. Zero in a field leaves it free. */
typedef struct sg_plan_options {
  size_t struct_size;    /**< sizeof(sg_plan_options), set by SG_PLAN_OPTIONS_INIT. */
  sg_split split;        /**< How to split. */
  int32_t parts;         /**< Parts of the split; 0: the planner's choice. */
  int32_t streams;       /**< Compute streams to use at most; 0: what the context has. */
  uint64_t memory_limit; /**< Bytes of device memory that the job may use; 0: the context's limit. */
  int64_t tile_m;        /**< Rows of a tile of C if operands are on the host; 0: the planner's choice. */
  int64_t tile_n;        /**< Columns of a tile of C; 0: the planner's choice. */
  int64_t tile_k;        /**< Depth of a panel; 0: the planner's choice. */
  sg_memory_kind place_a;/**< Memory kind of A; SG_MEMORY_AUTO: from the pointer. For plans without pointers. */
  sg_memory_kind place_b;/**< The same for B. */
  sg_memory_kind place_c;/**< The same for C. */
  uint64_t devices;      /**< The context's devices that may compute the GEMM, bit i for device i; several compute one with
                              operands in host memory together. 0: all. Since 0.2. */
  int32_t device_count;  /**< Exactly so many of them; 0: as many as are fastest. Since 0.2. */
  sg_memory_kind place;  /**< Memory kind of each operand of sg_plan_create that has no address (A, B and C of a GEMM: unless their own
                              field says it). SG_MEMORY_AUTO: device memory. Since 0.2. */
} sg_plan_options;

/** Initial value of an sg_plan_options. */
#define SG_PLAN_OPTIONS_INIT                                                                                      \
  {sizeof(sg_plan_options), SG_SPLIT_AUTO, 0, 0, 0, 0, 0, 0, SG_MEMORY_AUTO, SG_MEMORY_AUTO, SG_MEMORY_AUTO, 0, 0, SG_MEMORY_AUTO}

/** Flags of a submission. */
typedef enum sg_submit_flags SG_ENUM_INT {
  SG_SUBMIT_DEFAULT = 0,  /**< None. */
  SG_SUBMIT_UNTRACKED = 1,/**< The caller guarantees that the job conflicts with no job in flight, except by stream and
                               `after`. */
  SG_SUBMIT_WILL_WAIT = 2 /**< The caller waits for the job next. On the cpu a short GEMM without a predecessor, in a context
                               without other work in flight, is then computed by the call itself on the calling thread
                               and on idle workers. It may be split otherwise than without the flag. Since 0.2. */
} sg_submit_flags;

/** Room for the label of a job, in bytes, with its NUL. */
#define SG_LABEL_SIZE 64

/** Options of a submission. */
typedef struct sg_submit {
  size_t struct_size;     /**< sizeof(sg_submit), set by SG_SUBMIT_INIT. */
  sg_stream *stream;      /**< Run after the job submitted to this stream before; NULL: no stream. */
  sg_job *const *after;   /**< Run after these jobs; read during the call only. */
  int32_t after_count;    /**< Number of jobs in `after`. */
  int32_t priority;       /**< -1 low, 0 normal (or the stream's), 1 high: overtakes waiting jobs. */
  uint32_t flags;         /**< sg_submit_flags. */
  uint32_t reserved;      /**< 0. */
  sg_queue *queue;        /**< Queue that receives the completion; NULL: none. */
  uint64_t tag;           /**< Returned with the completion. */
  const sg_plan_options *plan; /**< Restricts the planner's choice; NULL leaves it free. */
  sg_graph *graph;        /**< Record the submission in this graph instead of running it (graph.h). `after` and `queue` are then
                               not allowed, and the call returns no job. NULL: run it. Since 0.2. */
  int64_t timeout_ns;    /**< Nanoseconds from the submission; 0: none. A job that has not started by then is dropped, one that
                               runs is stopped as by sg_job_cancel. It then completes with SG_STATUS_DEADLINE_EXCEEDED, but
                               not before its predecessors. Not allowed for recorded submissions. Since 0.2. */
  const char *label;      /**< A name for the job, UTF-8; NULL or "": none. It begins the message of the job's failure and
                               names the job in the log. Copied by the call, without allocating; of a text of SG_LABEL_SIZE
                               bytes or more the first SG_LABEL_SIZE - 1 are kept, or up to three fewer so that no character
                               is cut; '?' replaces bytes that are not UTF-8, U+FFFE and U+FFFF. Of a recorded submission, the name of its job in each run. Since 0.2. */
  uint64_t trace_id;      /**< An identifier of the application's request, 0 for none; it is in the trace and in the job's
                               statistics. A run of a graph and a pipeline's batch give theirs to each of their jobs that was
                               recorded without one. Since 0.2. */
} sg_submit;

/** Initial value of an sg_submit. */
#define SG_SUBMIT_INIT {sizeof(sg_submit), NULL, NULL, 0, 0, 0, 0, NULL, 0, NULL, NULL, 0, NULL, 0}

/**
 * Statistics of a completed job. Times are on the device's clock (virtual on sim devices), in ns from an arbitrary zero. A
 * GPU times a copy, or a GEMM of 0.3 ms and more, by itself if its stream was empty and it waits for no other stream;
 * contiguous copies of about 2 to 16 MB to or from the host are excluded, because others may follow. All other times are
 * read by the host when it learns that a command has completed, mostly 10 to 100 us later.
 */
typedef struct sg_job_statistics {
  size_t struct_size;       /**< sizeof(sg_job_statistics), set by SG_JOB_STATISTICS_INIT. */
  int64_t start_ns;         /**< Start of the first command; 0 if none ran. */
  int64_t end_ns;           /**< End of the last command; 0 if none ran. */
  double busy_seconds;      /**< Sum of the times of all commands; more than (end - start) if they overlapped. */
  double predicted_seconds; /**< Prediction of the device model. */
  double bound_seconds;     /**< The least time that the model's rates allow. */
  double flops;             /**< Floating-point (or integer) operations of the GEMM; of an operation of layers.h,
                                 convert.h, gather.h or conv.h one for each element and step: 1 elementwise, 5 softmax, 8 layer norm, 4 RMS
                                 norm, 2 dequantization, 3 rotary embedding, 0 cast, transposition, gather, im2col
                                 and col2im. */
  uint64_t bytes_in;        /**< Bytes copied to the device. */
  uint64_t bytes_out;       /**< Bytes copied from the device; of a failed job those that have, or may have, reached the operands,
                                 but of the run of a graph or of a batch of a pipeline always those of all its submissions. */
  int64_t commands;         /**< Commands of the schedule. */
  int64_t commands_run;     /**< Commands that ran; fewer after a failure or a cancellation. */
  char strategy[64];        /**< Kind of the schedule, in column-major terms: a row-major C is its transpose. */
  int32_t batch_size;       /**< Jobs in one call with this one, itself included; busy_seconds is its part of the
                                 call. 1: not batched. Since 0.2. */
  uint32_t reserved;        /**< 0. Since 0.2. */
  uint64_t trace_id;        /**< sg_submit.trace_id. Since 0.2. */
  uint64_t devices;         /**< The context's devices that ran commands, bit i for device i; 0: none. Since 0.2. */
  uint64_t bytes_peer;      /**< Bytes copied from device to device, not over the links to the host. Since 0.2. */
} sg_job_statistics;

/** Initial value of an sg_job_statistics. */
#define SG_JOB_STATISTICS_INIT {sizeof(sg_job_statistics), 0, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, "", 0, 0, 0, 0, 0}

/**
 * Called once when a job has completed, on a thread of the library that runs one callback at a time. It may submit,
 * release any handle and call any function, except sg_context_synchronize (SG_STATUS_DEADLOCK). A wait for the job itself,
 * which is complete, returns its status.
 */
typedef void (*sg_job_callback)(sg_job *job, sg_status status, void *user);

/**
 * Called once when the library will not use a `user` again that a call has taken; not if that call failed, and not once the
 * process exits. It runs where callbacks of jobs run, under the rules of sg_job_callback, and after those of the job. A
 * callback that is itself called once, such as sg_job_callback, needs none: it may release its `user`.
 * A form that waits returns the failure of a job, too, and has then taken `user`: a program that releases it itself after a
 * refusal calls the form with _async.
 */
typedef void (*sg_release_callback)(void *user);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_retain(sg_job *job);

/**
 * Releases a reference. The job itself continues.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_release(sg_job *job);

/**
 * Waits until the job has completed. This call and the other waits and tests of jobs tell apart what became of the call and what
 * became of the job, as waits for events, streams and queues do, which say nothing of the jobs.
 * @param timeout_ns Nanoseconds; 0 tests without waiting; SG_FOREVER waits without a limit.
 * @param[out] out_status The job's status; SG_STATUS_NOT_READY if the call did not find it completed. NULL: the call returns the
 * job's status in place of SG_STATUS_OK, for a program to which a failure is a failure.
 * @return SG_STATUS_OK: the job has completed; SG_STATUS_TIMEOUT; SG_STATUS_DEADLOCK within a function that a job consists of
 * (custom.h); SG_STATUS_INVALID_HANDLE; SG_STATUS_INVALID_ARGUMENT (another negative timeout).
 * The message of a failed job becomes this thread's sg_last_error_message, in both forms. Blocks. On cuda devices it polls for some
 * milliseconds at most around the predicted end before it sleeps, which saves the time of waking a thread. Any thread.
 * Since 0.1.
 */
SG_API sg_status sg_job_wait(sg_job *job, int64_t timeout_ns, sg_status *out_status);

/**
 * Tests whether the job has completed.
 * @param[out] out_status As in sg_job_wait.
 * @return SG_STATUS_OK: it has, or without `out_status` the job's status; SG_STATUS_NOT_READY; SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_job_query(sg_job *job, sg_status *out_status);

/**
 * Requests that the job stop early. Commands that have not started are dropped. A running command completes, except that a
 * long GEMM on the cpu stops within about 50 ms, with C partly written. A job that names the cancelled one in `after`, or
 * reads what it was to write, fails with SG_STATUS_DEPENDENCY_FAILED; other later jobs of its stream run.
 * @return SG_STATUS_OK: the job will complete as cancelled, or successfully if its last command was already running;
 * SG_STATUS_BUSY: it had already completed; SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_cancel(sg_job *job);

/**
 * Calls `callback` once, when the job has completed; soon, if it has already.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE; SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_on_complete(sg_job *job, sg_job_callback callback, void *user);

/**
 * The message of a failed job.
 * @param[out] text Receives at most `size` bytes with the NUL; "" if the job has not failed; may be NULL when size is 0.
 * @param[out] out_size Bytes that the whole text needs with its NUL; may be NULL.
 * @return SG_STATUS_OK; SG_STATUS_NOT_READY; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_message(sg_job *job, char *text, uint64_t size, uint64_t *out_size);

/**
 * The label that the job was submitted with (sg_submit.label), as it was kept.
 * @param[out] text Receives at most `size` bytes with the NUL; "" if the job has no label. SG_LABEL_SIZE bytes hold any
 * label. May be NULL when size is 0.
 * @param[out] out_size Bytes that the whole text needs with its NUL; may be NULL.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_job_label(sg_job *job, char *text, uint64_t size, uint64_t *out_size);

/**
 * Statistics of a completed job.
 * @param[in,out] out_statistics Its struct_size is read; the rest is written.
 * @return SG_STATUS_OK; SG_STATUS_NOT_READY; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE.
 * Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_job_get_statistics(sg_job *job, sg_job_statistics *out_statistics);

/**
 * Progress of a job.
 * @param[out] out_fraction Number of its commands that have completed, divided by the number of its commands; of a graph's run,
 * the same of its submissions, unless the device runs the graph as one command. 0 before it has started, 1 exactly if it has succeeded, below 1 if it has failed.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_job_progress(sg_job *job, double *out_fraction);

/**
 * Waits until all jobs have completed.
 * @param jobs `count` handles; count 0 returns at once.
 * @param timeout_ns Timeout for all jobs together, as in sg_job_wait.
 * @param[out] out_status As in sg_job_wait: SG_STATUS_OK if all succeeded; the status of the first one in the array that failed.
 * @return SG_STATUS_OK: all have completed, or without `out_status` that status; SG_STATUS_TIMEOUT; SG_STATUS_DEADLOCK; SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT (it did not wait for any). Blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_wait_all(sg_job *const *jobs, int32_t count, int64_t timeout_ns, sg_status *out_status);

/**
 * Waits until one of the jobs has completed.
 * @param jobs `count` >= 1 handles.
 * @param timeout_ns As in sg_job_wait.
 * @param[out] out_index Index of a completed job, the lowest one seen; -1 if none.
 * @param[out] out_status That job's status, as in sg_job_wait.
 * @return SG_STATUS_OK: one has completed, or without `out_status` its status; SG_STATUS_TIMEOUT; SG_STATUS_DEADLOCK;
 * SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE. Blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_job_wait_any(sg_job *const *jobs, int32_t count, int64_t timeout_ns, int32_t *out_index,
                                 sg_status *out_status);

SG_END_DECLS

#endif /* STREAMGEMM_JOB_H */
