/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file pipeline.h
 * @brief Pipelines: batches that pass through stages, beside their transfers and those of streamed weights.
 *
 * A stage is recorded once: sg_pipeline_add_stage returns addresses that stand for its input, its output, its workspace
 * and its weights, and a graph; the operations of the stage are recorded into the graph (sg_submit.graph) with these
 * addresses, and not with those of another stage. Each pushed batch runs the recorded operations with the addresses of its own buffers. A stage that is to
 * differ from batch to batch has a function instead, which is called for each batch.
 *
 * The input of the first stage is the batch's; that of another stage is the output of the stage before it. The output
 * of the last stage is the batch's result. In host memory, they are copied to and from the device beside the work of
 * other batches; in the stage's device's own memory, at addresses that are multiples of 64, they are used in place. With
 * unified memory (cpu) all memory is the device's own.
 *
 * Weights are resident (copied to the device once) or streamed: copied for every batch, into as many buffers as keep
 * the link busy while earlier stages compute. A stage may record the operation that expands them, such as a
 * dequantization into its workspace.
 *
 * Stages may run on several of the context's devices (sg_stage_desc.device). Each has its weights there, streamed over
 * its own device's link to the host, and the output of a stage is copied to the device of the next one. Stages that name
 * no device are placed when the pipeline is prepared, in contiguous groups on the devices that are not lost, so that the
 * simulated time of a batch is least: on one device if that promises less than a tenth of a millisecond, or if several
 * promise more than 0.97 of it. Stages with custom operations, with reserved compute units or with operands in a device's
 * memory other than their own buffers stay where they are recorded: where the stage before is, the first on device 0.
 *
 * With SG_REPLICAS_BATCHES, each of the context's devices has all stages instead, and batches go round the devices
 * (data parallel): each has the resident weights, of which a device copies a part from the host and the rest from the
 * other devices, if all are linked. A batch streams its weights over the link of its own device; batches that are pushed
 * at once (sg_pipeline_push_batches_async) share one stream of weights over all links, where the simulation says that this
 * is faster, and no stage has a function or writes memory of the application's, by which batches depend on each other.
 * The devices should be alike: each has as many batches, and as many resident weights as the one with the least memory.
 * Devices that are lost, or lack the memory or an operation, have no batches. If a device is lost, its batches fail, and
 * batches that share streamed weights with one of them; later ones run on the other devices.
 *
 * All orders follow from the memory that operations read and write (sg_gemm_async). When it is prepared, the batches of
 * a pipeline are simulated on the devices' models to choose its depth and its weight buffers, and the same submissions,
 * of batches that are pushed at once and of single ones, are proved free of races if the context has
 * SG_CONTEXT_CHECK_HAZARDS.
 *
 * Results are complete in the order of the batches, also of those on different devices. A batch that fails, or is
 * cancelled, does not stop the next one.
 *
 * Threads: several may push into a pipeline at once; each push is a batch of its own, in the order in which they take their
 * turns. Stages are added and recorded before the first push or sg_pipeline_prepare, which sees those that are complete.
 */
#ifndef STREAMGEMM_PIPELINE_H
#define STREAMGEMM_PIPELINE_H

#include <streamgemm/context.h>
#include <streamgemm/graph.h>
#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Replication of a pipeline. */
typedef enum sg_replicas SG_ENUM_INT {
  SG_REPLICAS_NONE = 0,   /**< Each stage is on one device. */
  SG_REPLICAS_BATCHES = 1 /**< Each device has all stages, and batches go round the devices. */
} sg_replicas;

/** Options of sg_pipeline_create. */
typedef struct sg_pipeline_options {
  size_t struct_size;    /**< sizeof(sg_pipeline_options), set by SG_PIPELINE_OPTIONS_INIT. */
  uint64_t input_bytes;  /**< Bytes of a batch's input; > 0. */
  uint64_t memory_limit; /**< Limit of the pipeline's memory on each device in bytes; 0: nine tenths of what the device
                              model's memory, or the context's limit, leaves beside the context's buffers. */
  int32_t depth;         /**< Batches that have buffers of their own; 0: chosen by simulation, at most 4. At most 64. With
                              replicas, of each. */
  int32_t weight_buffers;    /**< Buffers of streamed weights, each large enough for any stage; 0: chosen by simulation, at
                                  most 4. At most 64. With several devices, of each. */
  int32_t batches_in_flight; /**< Limit of batches that have been pushed and have not completed; 0: twice the depth,
                                  for each replica, plus 2. */
  sg_when_full when_full;    /**< What sg_pipeline_push_async does at that limit. Default: it waits. */
  sg_replicas replicas;      /**< Whether all devices of the context have all stages. Default: none. Batches: stages that
                                  name a device are refused, and those that cannot be on another device than that of their
                                  memory. */
  uint32_t reserved;         /**< 0. */
} sg_pipeline_options;

/** Initial value of an sg_pipeline_options. */
#define SG_PIPELINE_OPTIONS_INIT \
  { sizeof(sg_pipeline_options), 0, 0, 0, 0, 0, SG_WHEN_FULL_BLOCK, SG_REPLICAS_NONE, 0 }

/** Where the weights of a stage are while batches run. */
typedef enum sg_weights_place SG_ENUM_INT {
  SG_WEIGHTS_AUTO = 0, /**< Resident as far as the memory limit allows, spread over the stages; streamed otherwise. */
  SG_WEIGHTS_RESIDENT = 1, /**< Copied to the device when the pipeline is prepared. */
  SG_WEIGHTS_STREAMED = 2  /**< Copied for every batch. */
} sg_weights_place;

/** An array of weights. In the memory of the stage's device it is used in place. */
typedef struct sg_weight {
  const void *data;  /**< Its values; unchanged and valid until the pipeline is released and its batches have completed.
                       Ordinary memory is staged by host threads, pinned memory is copied directly. */
  uint64_t bytes;    /**< > 0. */
  uint64_t reserved; /**< 0. */
} sg_weight;

/** A stage, with the addresses that its operations use. */
typedef struct sg_stage {
  size_t struct_size;   /**< sizeof(sg_stage), set by SG_STAGE_INIT. */
  sg_graph *graph;      /**< Takes the operations. The pipeline's: not to be released or run; valid until it is prepared. */
  const void *input;    /**< The batch's input, or the output of the stage before. In a context of several
                             devices its address is another than that output's, also where no copy is needed. A multiple of 256, like all addresses here. */
  void *output;         /**< Of sg_stage_desc.output_bytes. */
  void *workspace;      /**< Of sg_stage_desc.workspace_bytes; its contents at the start are undefined. NULL: none. */
  void *const *weights; /**< The address of each weight; read only. NULL: none. Valid until the pipeline is released. */
  int64_t batch;        /**< In a function: the number of the batch, from 0, or -1 when the pipeline is prepared: what is
                             recorded then is only planned. In a recorded stage -1. */
  int32_t index;        /**< The number of the stage, from 0. */
  uint32_t reserved;    /**< 0. */
} sg_stage;

/** Initial value of an sg_stage. */
#define SG_STAGE_INIT \
  { sizeof(sg_stage), NULL, NULL, NULL, NULL, NULL, -1, 0, 0 }

/**
 * Records a stage's operations for one batch into stage->graph. It runs on the thread that pushes, one at a time. It may
 * neither use the pipeline, nor push into another whose function pushes into this one, nor leave by an exception or longjmp.
 * @param stage Valid during the call. The addresses are those of sg_pipeline_add_stage; the graph is another one for
 * each batch.
 * @param user sg_stage_desc.user.
 * @return SG_STATUS_OK, or the status with which the push fails; the batch is then not submitted.
 */
typedef sg_status (*sg_stage_function)(const sg_stage *stage, void *user);

/** Descriptor of a stage. */
typedef struct sg_stage_desc {
  size_t struct_size;         /**< sizeof(sg_stage_desc), set by SG_STAGE_DESC_INIT. */
  const char *name;           /**< In messages and labels; copied. NULL: "stage N". */
  uint64_t output_bytes;      /**< > 0. */
  uint64_t workspace_bytes;   /**< 0: none. Stages of one batch share the memory. */
  const sg_weight *weights;   /**< weight_count weights; read during the call only. */
  int32_t weight_count;       /**< >= 0. */
  sg_weights_place place;     /**< Default: automatic. */
  sg_stage_function function; /**< Called for each batch. NULL: the stage is recorded once. */
  void *user;                 /**< Passed to the function; the caller's, valid until the pipeline is released. */
  int32_t device;             /**< The context's device that runs the stage, with its weights, output and workspace in its
                                   memory; SG_DEVICE_ANY: the library places the stage. */
  uint32_t reserved;          /**< 0. */
  sg_release_callback release; /**< Called with `user` when the library will use neither it nor the weights again: after the
                                pipeline's release, and its batches; NULL: nothing is called. */
} sg_stage_desc;

/** Initial value of an sg_stage_desc. */
#define SG_STAGE_DESC_INIT \
  { sizeof(sg_stage_desc), NULL, 0, 0, NULL, 0, SG_WEIGHTS_AUTO, NULL, NULL, SG_DEVICE_ANY, 0, NULL }

/** A prepared pipeline: what was chosen, and what the simulation on the device's model predicts. */
typedef struct sg_pipeline_info {
  size_t struct_size;          /**< sizeof(sg_pipeline_info), set by SG_PIPELINE_INFO_INIT. */
  int32_t stages;              /**< Number of stages. */
  int32_t streamed_stages;     /**< Those with streamed weights. */
  int32_t depth;               /**< Batches with buffers of their own. */
  int32_t weight_buffers;      /**< Buffers of streamed weights, of each device that streams. */
  uint64_t device_bytes;       /**< Device memory of the pipeline, resident weights included; of all devices. */
  uint64_t resident_bytes;     /**< Of resident weights; of one replica. */
  uint64_t streamed_bytes;     /**< Of streamed weights: what each batch copies; with shares_weights, what one batch for
                                    each replica copy together. */
  double seconds_per_batch;    /**< Of successive batches, all overlaps included. With replicas: of batches that are pushed
                                    at once, one for each. */
  double transfer_in_seconds;  /**< Of one batch's input and streamed weights over the links. With replicas, this and the
                                    following are those of one batch for each, divided by their number. */
  double transfer_out_seconds; /**< Of one batch's result. */
  double work_seconds;         /**< Of one batch's operations, without transfers; on several devices beside those of others. */
  int32_t replicas;            /**< Devices that have all stages; 1 without SG_REPLICAS_BATCHES. */
  int32_t shares_weights;      /**< 1: batches that are pushed at once share streamed weights. */
  int32_t batches_in_flight;   /**< Limit of batches in flight, and of those that are pushed at once. */
  uint32_t reserved;           /**< 0. */
} sg_pipeline_info;

/** Initial value of an sg_pipeline_info. */
#define SG_PIPELINE_INFO_INIT \
  { sizeof(sg_pipeline_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * Creates a pipeline without stages.
 * @param options NULL is refused: input_bytes has no default.
 * @param[out] out_pipeline One reference, to be released by sg_pipeline_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread.
 */
SG_API sg_status sg_pipeline_create(sg_context *context, const sg_pipeline_options *options,
                                    sg_pipeline **out_pipeline);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_pipeline_retain(sg_pipeline *pipeline);

/**
 * Releases a reference. Batches in flight continue; the device memory is freed after them.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_pipeline_release(sg_pipeline *pipeline);

/**
 * Adds the next stage.
 * @param desc The stage; read during the call only.
 * @param[out] out_stage The stage's graph and addresses, valid for recording until the pipeline is prepared. The
 * addresses stand for those of each batch: they may be passed to operations and offset within their bytes, not
 * accessed. NULL only with a function.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_BUSY (the pipeline is
 * prepared), SG_STATUS_OUT_OF_MEMORY. Never blocks. Any thread.
 */
SG_API sg_status sg_pipeline_add_stage(sg_pipeline *pipeline, const sg_stage_desc *desc, sg_stage *out_stage);

/**
 * Chooses the depth and the weight buffers, allocates the device memory and copies resident weights to it. The first
 * push does it if this is not called. Writes a warning to the log (docs/logging.md) when weights are streamed that
 * would fit into the memory limit, and when their transfer takes longer than the work.
 * @param[out] out_info What was chosen and predicted. May be NULL.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (no stage, or one without operations),
 * SG_STATUS_OUT_OF_MEMORY (the limit is too low, with the bytes that are needed; or the device has less),
 * SG_STATUS_UNSUPPORTED, or the status of a function or of a failed copy: the pipeline is not prepared, and this may be
 * called again. Blocks while it plans, and until resident weights are on the device. Any thread.
 */
SG_API sg_status sg_pipeline_prepare(sg_pipeline *pipeline, sg_pipeline_info *out_info);

/**
 * Describes the prepared pipeline as text: stages, memory, predicted times, and by what factor batches would have to
 * grow for the work to hide the transfers, or how much of the work's time they leave; and what replicas on all devices would
 * take, if the stages can have them and that is less than 0.9 of the time of a batch.
 * @param[out] text At most size - 1 bytes and a NUL. May be NULL if size is 0.
 * @param[out] out_size The size that holds all of it. May be NULL.
 * @return As sg_pipeline_prepare, which it calls. Blocks while that plans. Any thread.
 */
SG_API sg_status sg_pipeline_describe(sg_pipeline *pipeline, char *text, uint64_t size, uint64_t *out_size);

/**
 * Pushes a batch and returns; its job completes when the result is complete.
 * @param input input_bytes of the options, unchanged until the job completes.
 * @param output The output_bytes of the last stage, used by nobody else until the job completes; it may not overlap the
 * input. If the batch fails, its contents are undefined.
 * @param submit Order, priority, completion queue, deadline; NULL for the defaults. Its plan and SG_SUBMIT_UNTRACKED are
 * ignored, its graph is NULL. A deadline is for the batch's completion, which is behind that of the batches before it.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return As sg_gemm_async and sg_pipeline_prepare; SG_STATUS_BUSY with SG_WHEN_FULL_REFUSE at the limit of batches;
 * SG_STATUS_DEADLOCK if a function or a callback would wait for a batch: nothing is submitted.
 * Blocks at the limit of batches in flight or of the context's jobs, while the first push prepares, and with a native
 * stream as sg_gemm_async. Any thread.
 */
SG_API sg_status sg_pipeline_push_async(sg_pipeline *pipeline, const void *input, void *output, const sg_submit *submit,
                                        sg_job **out_job);

/**
 * Pushes several batches at once and returns; the job completes when all their results are complete, and fails if a batch
 * fails. The batches do the same as by sg_pipeline_push_async in their order. With replicas, as many as there are run beside
 * each other, one on each device, and share one copy of each streamed weight from the host
 * (sg_pipeline_info.shares_weights).
 * @param count Number of batches: from 1 to the limit of batches in flight.
 * @param inputs count inputs.
 * @param outputs count outputs. A batch whose input or output overlaps the output of an earlier one waits for that one.
 * @param submit As of sg_pipeline_push_async, for all batches together.
 * @param[out] out_batches A job for each batch, which fails alone, with one reference to be released by sg_job_release;
 * NULL on failure. May be NULL.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return As sg_pipeline_push_async: all are pushed, or none. Blocks as sg_pipeline_push_async. Any thread.
 */
SG_API sg_status sg_pipeline_push_batches_async(sg_pipeline *pipeline, int32_t count, const void *const *inputs,
                                                void *const *outputs, const sg_submit *submit, sg_job **out_batches,
                                                sg_job **out_job);

/**
 * Pushes several batches at once and waits for them: sg_pipeline_push_batches_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread.
 */
SG_API sg_status sg_pipeline_push_batches(sg_pipeline *pipeline, int32_t count, const void *const *inputs,
                                          void *const *outputs, const sg_submit *submit);

/**
 * Pushes a batch and waits for it: sg_pipeline_push_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread.
 */
SG_API sg_status sg_pipeline_push(sg_pipeline *pipeline, const void *input, void *output, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_PIPELINE_H */
