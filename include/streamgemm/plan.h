/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file plan.h
 * @brief Plans: the schedule of an operation, created without running it: to inspect, to predict, to run many times.
 *
 * A plan is computed from a device model, so a context on "sim:h200" predicts an H200 on any machine.
 */
#ifndef STREAMGEMM_PLAN_H
#define STREAMGEMM_PLAN_H

#include <streamgemm/job.h>
#include <streamgemm/operation.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Prediction of the device model for a plan; of several devices, of their machine (docs/device-model.md). bound = max(bytes in / link in, bytes out / link out, all bytes / both, flops /
 *  rate): no schedule can be faster at these rates. */
typedef struct sg_plan_prediction {
  size_t struct_size;       /**< sizeof(sg_plan_prediction), set by SG_PLAN_PREDICTION_INIT. */
  double predicted_seconds; /**< Length of the simulated timeline. */
  double bound_seconds;     /**< The bound. */
  double serial_seconds;    /**< Sum of the commands' times, as if nothing overlapped. */
  double flops;             /**< Floating-point operations. */
  uint64_t bytes_in;        /**< Bytes copied to the device. */
  uint64_t bytes_out;       /**< Bytes copied from the device. */
  uint64_t device_bytes;    /**< Device memory that a run uses; of several devices, on the one that uses most. */
  uint64_t staging_bytes;   /**< Pinned host memory that a run uses; of several devices, for the one that uses most. */
  int64_t commands;         /**< Commands of the schedule. */
  int32_t compute_lanes;    /**< Compute streams used. */
  char strategy[64];        /**< Kind of the schedule, in column-major terms: a row-major C is its transpose. */
  int32_t devices;          /**< Devices that compute it. */
  uint64_t bytes_peer;      /**< Bytes copied from device to device. */
} sg_plan_prediction;

/** Initial value of an sg_plan_prediction. */
#define SG_PLAN_PREDICTION_INIT {sizeof(sg_plan_prediction), 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, "", 0, 0}

/** Format of a plan's description. */
typedef enum sg_plan_format SG_ENUM_INT {
  SG_PLAN_FORMAT_TEXT = 0,    /**< A few lines: strategy, tiles, lanes, prediction, bound, ratio; the time on more devices where that is less. */
  SG_PLAN_FORMAT_JSON = 1,    /**< One JSON object with the same, and with every command, its start and its end. */
  SG_PLAN_FORMAT_TIMELINE = 2,/**< A row for each lane and host worker, a column for each time slot. */
  SG_PLAN_FORMAT_HTML = 3,    /**< The simulated timeline as a page without other files, like SG_TRACE_FORMAT_HTML. */
  SG_PLAN_FORMAT_SVG = 4      /**< The same as a picture. */
} sg_plan_format;

/** The address of an operand of sg_plan_create that has none, but is there: for operands that NULL leaves out, such as a bias. */
#define SG_PLAN_ADDRESS ((void *)(intptr_t)-4096)

/**
 * Creates a plan for an operation on the context's devices.
 * @param operation The operation. Operands may have no address: NULL, or SG_PLAN_ADDRESS where NULL leaves the operand out; then
 * `options` gives their memory kind (default: device memory), of device 0 where the context has several. Of a GEMM, A, B
 * and C have addresses all or none; those of a custom operation are required. Read during the call only.
 * @param options Restricts the planner's choice; NULL leaves it free. Its `devices` and `device_count` choose among the
 * context's devices, for GEMMs with operands in host memory. Of all other operations only streams, memory_limit and place apply.
 * @param[out] out_plan One reference, to be released by sg_plan_release; NULL on failure.
 * @return As the operation's own function, whose errors name the descriptor operation->desc; SG_STATUS_INVALID_ARGUMENT
 * also for an operation that leaves nothing to do, such as a marker; SG_STATUS_OUT_OF_MEMORY also if no tile and no workspace fits the memory limit.
 * Never blocks; takes microseconds to some ten milliseconds. Any thread.
 */
SG_API sg_status sg_plan_create(sg_context *context, const sg_operation_desc *operation, const sg_plan_options *options,
                                sg_plan **out_plan);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_plan_retain(sg_plan *plan);

/**
 * Releases a reference. Its runs in flight continue.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_plan_release(sg_plan *plan);

/**
 * The prediction of the device model for the plan.
 * @param[in,out] out_prediction Its struct_size is read; the rest is written.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_plan_get_prediction(sg_plan *plan, sg_plan_prediction *out_prediction);

/**
 * Device memory that a run of the plan uses on one of the context's devices.
 * @param device An index of the context's devices.
 * @param[out] out_bytes The bytes; 0 on a device that does not compute it.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_plan_device_size(sg_plan *plan, int32_t device, uint64_t *out_bytes);

/**
 * Describes the plan as text. A plan of one device of several is compared with plans of more of them, which takes as long as making these.
 * @param[out] text Receives at most `size` bytes with the NUL; may be NULL when size is 0.
 * @param[out] out_size Bytes that the whole text needs with its NUL; may be NULL.
 * @return SG_STATUS_OK (also if the text was truncated: compare *out_size), SG_STATUS_INVALID_HANDLE,
 * SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY. Never blocks. Any thread.
 */
SG_API sg_status sg_plan_describe(sg_plan *plan, sg_plan_format format, char *text, uint64_t size, uint64_t *out_size);

/**
 * Runs the plan on operands of its shapes.
 * @param operation As given to sg_plan_create, with the addresses and scalars of this run. All that the plan depends on
 * must be as planned (SG_STATUS_INVALID_ARGUMENT): sizes, types, strides, memory kinds (of one GEMM host memory may be pinned or
 * pageable), which operands are there, a custom operation's function and user; of a GEMM and of sg_axpby zero or non-zero alpha and beta.
 * One GEMM with alpha 0, beta 1, no bias and no activation does nothing.
 * @param submit,out_job As in sg_gemm_async; submit->plan is not used.
 * @return As sg_gemm_async. Never blocks on work in flight, unless the context has a job limit. Any thread.
 */
SG_API sg_status sg_plan_run_async(sg_plan *plan, const sg_operation_desc *operation, const sg_submit *submit,
                                   sg_job **out_job);

/**
 * Runs the plan and waits: sg_plan_run_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread.
 */
SG_API sg_status sg_plan_run(sg_plan *plan, const sg_operation_desc *operation, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_PLAN_H */
