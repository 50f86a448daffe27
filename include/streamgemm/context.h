/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file context.h
 * @brief Devices, and the context: one open device, or several of one machine, with all work on them.
 *
 * A context may have several devices of one backend: "cuda:0,1", "cuda:0-3", "cuda:all", "sim:h200x2". The devices have the
 * indices 0, 1, ... in the order of the name. Work goes where its memory is:
 *
 * - Operands in the memory of one device: the operation runs there.
 * - A GEMM or a copy with operands of several devices: it runs where the result is, and copies what the others have. Other
 *   operations refuse that (SG_STATUS_INVALID_ARGUMENT).
 * - All operands in host memory: a GEMM runs on as many devices as the planner finds worth it, never on several that are
 *   predicted to be slower than one; any other operation runs on the device with the earliest expected end.
 * - A stream of one device (sg_stream_options) keeps its work there; sg_plan_options.devices and device_count choose for
 *   one GEMM.
 *
 * Order, tracking, failures and synchronization are over the whole context, unlike those of one context a device.
 * memory_limit and compute_lanes are for each device; staging_threads is for all together. Wrapped native streams and
 * native events are of device 0; stages of pipelines that name no device are placed (pipeline.h).
 */
#ifndef STREAMGEMM_CONTEXT_H
#define STREAMGEMM_CONTEXT_H

#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Another device of the same backend, and the connection to it. */
typedef struct sg_device_peer {
  char name[32];            /**< The other device, as sg_context_create takes it: "cuda:1". */
  double bytes_per_second;  /**< Of all links of the connection together, in each direction; 0: unknown. */
  int32_t index;            /**< The other device, as sg_device_get_info takes it. */
  sg_link_class link_class; /**< Class of the connection. */
  int32_t links;            /**< Parallel links of the connection, NVLinks for instance; 0: unknown, or SG_LINK_HOST. */
  int32_t reserved[3];      /**< 0. */
} sg_device_peer;

/** Initial value of an sg_device_peer. */
#define SG_DEVICE_PEER_INIT {"", 0.0, 0, SG_LINK_UNKNOWN, 0, {0, 0, 0}}

/** Properties of a device. Bandwidths are those of the device model, measured or published (its "sources" say which). */
typedef struct sg_device_info {
  size_t struct_size;       /**< sizeof(sg_device_info), set by SG_DEVICE_INFO_INIT. */
  char name[64];            /**< As sg_context_create takes it: "cpu", "cuda:0", "sim:h200". */
  char description[128];    /**< Text for people. */
  uint64_t memory_bytes;    /**< Device memory; host memory for cpu. */
  int32_t unified_memory;   /**< 1: host memory is device memory, nothing is copied. */
  int32_t compute_units;    /**< Streaming multiprocessors, or cores; of a context's device the cores that the context uses. */
  int32_t compute_lanes;    /**< Compute streams that the library uses. */
  int32_t copy_engines;     /**< 2: both directions at once; 1: one at a time; 0: no copies are needed. */
  int32_t priorities;       /**< Distinct stream priorities. */
  double link_in_bytes_per_second;  /**< Pinned host to device, alone; 0 with unified memory. */
  double link_out_bytes_per_second; /**< Device to pinned host, alone; 0 with unified memory. */
  double memory_bytes_per_second;   /**< Device memory, read plus written; 0 when unknown. */
  double nvlink_bytes_per_second;   /**< Of all active NVLinks together, in each direction; 0: none, or unknown. */
  int32_t nvlinks;                  /**< Active NVLinks; -1: unknown, because NVML does not report it. */
  int32_t peer_count;               /**< Entries of `peers`; 0: no other device of this backend. */
  char mig[32];                     /**< MIG: "off", "on", or the profile of the instance that the device is ("1g.18gb");
                                         "unknown" without NVML; "" for devices without MIG. */
  sg_device_peer peers[SG_MAX_PEERS]; /**< The other devices of its backend and the connection to each, in the order of their
                                         indices; the first SG_MAX_PEERS, if there are more. */
  char uuid[48];            /**< CUDA: "GPU-...", or "MIG-..." of an instance, as nvidia-smi prints it; behind "cuda:" it names the
                                 device whatever CUDA_VISIBLE_DEVICES makes its index. "": none, of other backends. */
} sg_device_info;

/** Initial value of an sg_device_info. */
#define SG_DEVICE_INFO_INIT {sizeof(sg_device_info), "", "", 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, "", {SG_DEVICE_PEER_INIT}, ""}

/** A backend: one kind of device, built in or loaded as a plugin. */
typedef struct sg_backend_info {
  size_t struct_size; /**< sizeof(sg_backend_info), set by SG_BACKEND_INFO_INIT. */
  char name[32];      /**< "cpu", "sim", "cuda". */
  int32_t available;  /**< 1: its devices can be used. */
  char reason[256];   /**< Why it cannot be used; "" if it can. */
  char origin[256];   /**< "built in", or the plugin's path. */
} sg_backend_info;

/** Initial value of an sg_backend_info. */
#define SG_BACKEND_INFO_INIT {sizeof(sg_backend_info), "", 0, "", ""}

/** Flags of a context. */
typedef enum sg_context_flags SG_ENUM_INT {
  SG_CONTEXT_DEFAULT = 0,       /**< None. */
  SG_CONTEXT_CHECK_HAZARDS = 1, /**< Prove each schedule free of races before it runs (debugging; costs time). */
  SG_CONTEXT_NO_COALESCING = 2, /**< Never batch small GEMMs that wait at the same time. */
  SG_CONTEXT_TUNE = 4           /**< When a GEMM of a new shape first runs, time the device's kernels for it, on its
                                     operands, and use the fastest one from then on. The first GEMM takes the time of about
                                     eighty more, or 0.05 s if that is longer, and device memory for a second result.
                                     On cuda devices the choices are kept in
                                     $XDG_CACHE_HOME/streamgemm (or ~/.cache/streamgemm) for later contexts with
                                     this flag. No effect on devices without a choice. */
} sg_context_flags;

/** Behaviour of a submission when sg_context_options.job_limit jobs are in flight. */
typedef enum sg_when_full SG_ENUM_INT {
  SG_WHEN_FULL_BLOCK = 0, /**< Waits until a job has completed. */
  SG_WHEN_FULL_REFUSE = 1 /**< Returns SG_STATUS_BUSY. */
} sg_when_full;

/** Options of sg_context_create. */
typedef struct sg_context_options {
  size_t struct_size;    /**< sizeof(sg_context_options), set by SG_CONTEXT_OPTIONS_INIT. */
  const char *device;    /**< "cpu", "cuda:0", "sim:h200", "sim:/path/model.json", "auto"; NULL or "" is "auto": the
                              variable SG_DEVICE, else the first CUDA device, else the cpu. Several: "cuda:0,2",
                              "cuda:0-3", "cuda:all", or the name of a machine, "sim:h200x2". */
  int32_t compute_lanes; /**< Compute streams; 0: the device model's number. */
  int32_t staging_threads; /**< Threads that stage pageable memory; 0: the device model's number; of several devices 8 for each, at
                                most three quarters of the cores, and no fewer than one of them has. There is at least one for
                                each NUMA node of the devices, also if fewer are given. */
  uint64_t memory_limit; /**< Bytes of device memory that the schedules of this context may use; 0: all. */
  uint32_t flags;        /**< sg_context_flags. */
  uint32_t reserved;     /**< 0. */
  int32_t commands_in_flight; /**< Commands in flight on the device (on each worker on cpu). Not counted: commands of schedules
                              with several commands, commands that follow others on the device, and single GEMMs
                              that together do not fill the device. A small number lets small GEMMs form batches and
                              urgent ones overtake; 0: chosen by the shapes. */
  sg_when_full when_full; /**< Behaviour of a submission at the job limit. */
  uint64_t job_limit;    /**< Jobs that may be in flight (submitted, not completed); 0: no limit, the queue grows. */
} sg_context_options;

/** Initial value of an sg_context_options. */
#define SG_CONTEXT_OPTIONS_INIT {sizeof(sg_context_options), NULL, 0, 0, 0, 0, 0, 0, SG_WHEN_FULL_BLOCK, 0}

/**
 * Number of known backends, available or not.
 * @param[out] out_count Number of backends.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_ARGUMENT.
 * Blocks at the first call while plugins are loaded. Any thread.
 */
SG_API sg_status sg_backend_count(int32_t *out_count);

/**
 * Describes one backend, and why it cannot be used.
 * @param index 0 <= index < count.
 * @param[in,out] out_info Its struct_size is read; the rest is written.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_ARGUMENT. Blocks as sg_backend_count does. Any thread.
 */
SG_API sg_status sg_backend_get_info(int32_t index, sg_backend_info *out_info);

/**
 * Loads a plugin, so that contexts created later can open its devices: for a program that brings its own, besides those of
 * the library's plugin folder or of SG_PLUGIN_PATH, which are loaded first. It stays loaded. A backend of the same name that
 * cannot be used gives way to it.
 * @param path Absolute path of the file. It belongs to root or to the process's user, and not every user can write it.
 * @return SG_STATUS_OK, also if the file was loaded before; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_NO_DEVICE: it cannot be
 *         used, for the reason that the message tells: it is no plugin for this library, a usable backend has its name, or
 *         its devices do not work here. Nothing is changed then.
 * Blocks while plugins are loaded. Any thread.
 */
SG_API sg_status sg_backend_load(const char *path);

/**
 * Number of devices of all available backends.
 * @param[out] out_count Number of devices; at least 1, the cpu.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_ARGUMENT. Blocks as sg_backend_count does. Any thread.
 */
SG_API sg_status sg_device_count(int32_t *out_count);

/**
 * Describes one device.
 * @param index 0 <= index < count.
 * @param[in,out] out_info Its struct_size is read; the rest is written.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_ARGUMENT, or why the device could not be opened.
 * Blocks while the device is opened. Any thread.
 */
SG_API sg_status sg_device_get_info(int32_t index, sg_device_info *out_info);

/**
 * Opens a device, or several, and creates a context on them.
 * @param options Options; NULL for the defaults. Read during the call only.
 * @param[out] out_context One reference, to be released by sg_context_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_ARGUMENT (a malformed name), SG_STATUS_NO_DEVICE (with the reason),
 * SG_STATUS_OUT_OF_MEMORY, SG_STATUS_SHUTDOWN, or the backend's failure.
 * Blocks while the device is opened. Any thread, but not in a static constructor of a library that dlopen loads: a thread that
 * loads the device's libraries would wait for that dlopen, and this call for the thread.
 */
SG_API sg_status sg_context_create(const sg_context_options *options, sg_context **out_context);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_context_retain(sg_context *context);

/**
 * Releases a reference. The context is destroyed when its last reference and its last child (stream, event, buffer,
 * queue, plan, graph, job) are released and its last job has completed.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks on work in flight. Any thread.
 */
SG_API sg_status sg_context_release(sg_context *context);

/**
 * Waits until every job submitted to the context before this call has completed, successfully or not.
 * @param timeout_ns Nanoseconds to wait at most, SG_FOREVER or 0, as in sg_job_wait.
 * @return SG_STATUS_OK; SG_STATUS_TIMEOUT; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_DEADLOCK from a completion callback of this context. Failures of jobs are not reported here.
 * Blocks. Any thread.
 */
SG_API sg_status sg_context_synchronize(sg_context *context, int64_t timeout_ns);

/**
 * The number of the context's devices.
 * @param[out] out_count At least 1.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_context_device_count(sg_context *context, int32_t *out_count);

/**
 * Describes one of the context's devices.
 * @param device 0 <= device < sg_context_device_count.
 * @param[in,out] out_info Its struct_size is read; the rest is written.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_context_get_device_info(sg_context *context, int32_t device, sg_device_info *out_info);

/**
 * Tests whether a device can still be used. A device is lost after a fault that its driver does not recover from. Jobs with
 * commands there fail, and so does each later use of its memory; host-resident work goes on on the context's other devices.
 * @param device 0 <= device < sg_context_device_count.
 * @return SG_STATUS_OK; SG_STATUS_BACKEND_FAILURE: it is lost, and sg_last_error_message says why; SG_STATUS_INVALID_HANDLE,
 * SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_context_device_status(sg_context *context, int32_t device);

/**
 * The machine that the context plans with, as JSON (docs/device-model.md, "Machines"): the models of its devices, the links
 * between them, and the limits that their links to the host share.
 * @param[out] text Receives at most `size` bytes with the NUL; may be NULL when size is 0.
 * @param[out] out_size Bytes that the whole text needs with its NUL; may be NULL.
 * @return As sg_context_model. Never blocks. Any thread.
 */
SG_API sg_status sg_context_machine(sg_context *context, char *text, uint64_t size, uint64_t *out_size);

/**
 * The device model that the context plans with, as JSON (docs/device-model.md): the device's own, or, if the variable
 * SG_CALIBRATION requests it, with the figures that `streamgemm calibrate` measured; "calibration" in its "sources" then
 * names the file, or says why none was used.
 * @param[out] text Receives at most `size` bytes with the NUL; may be NULL when size is 0.
 * @param[out] out_size Bytes that the whole text needs with its NUL; may be NULL.
 * @return SG_STATUS_OK (also if the text was truncated: compare *out_size), SG_STATUS_INVALID_HANDLE,
 * SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY. Never blocks. Any thread.
 */
SG_API sg_status sg_context_model(sg_context *context, char *text, uint64_t size, uint64_t *out_size);

SG_END_DECLS

#endif /* STREAMGEMM_CONTEXT_H */
