/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file status.h
 * @brief What every fallible call returns, and the text that goes with it.
 *
 * A call that fails stores a message for the calling thread; a job that fails carries its own status and message,
 * because it fails on a thread of the library. Output handles are NULL after a failure. Values are never reused.
 */
#ifndef STREAMGEMM_STATUS_H
#define STREAMGEMM_STATUS_H

#include <stdint.h>

#include <streamgemm/export.h>

SG_BEGIN_DECLS

/** Result of a call or of a job. Negative values are failures; the two positive ones are answers, not failures. */
typedef enum sg_status {
  SG_STATUS_OK = 0,                 /**< Done. */
  SG_STATUS_NOT_READY = 1,          /**< A query's answer: the work has not finished yet. */
  SG_STATUS_TIMEOUT = 2,            /**< The time given to a wait passed; the work goes on. */
  SG_STATUS_INVALID_ARGUMENT = -1,  /**< An argument is wrong; the message names it and its value. */
  SG_STATUS_INVALID_HANDLE = -2,    /**< A handle is stale, foreign, random, of another type, or from before a fork. */
  SG_STATUS_OUT_OF_MEMORY = -3,     /**< Host or device memory ran out; nothing was started. */
  SG_STATUS_NO_DEVICE = -4,         /**< The named device, or any backend for it, is not there; the message says why. */
  SG_STATUS_UNSUPPORTED = -5,       /**< The combination asked for does not exist on this device. */
  SG_STATUS_BUSY = -6,              /**< The object's state does not allow it now (too late to cancel, still in use). */
  SG_STATUS_CANCELLED = -7,         /**< The job was cancelled; or the queue is closed and empty. */
  SG_STATUS_DEADLOCK = -8,          /**< The wait could never end: a callback waits for its own job. */
  SG_STATUS_BACKEND_FAILURE = -9,   /**< The device or its library failed; the message carries its text. */
  SG_STATUS_DEPENDENCY_FAILED = -10,/**< A job that it was ordered after failed: it did not run, or wrote nothing valid. */
  SG_STATUS_SHUTDOWN = -11,         /**< The process is exiting; no new work is taken. */
  SG_STATUS_INTERNAL = -12,         /**< A fault of the library itself. Please report it with its message. */
  SG_STATUS_DEADLINE_EXCEEDED = -13 /**< The job's deadline passed before it had completed. Since 0.2. */
} sg_status;

/**
 * The name of a status, for instance "SG_STATUS_OUT_OF_MEMORY".
 * @return A static string, never NULL; "SG_STATUS_UNKNOWN" for a value that is not a status.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API const char *sg_status_name(sg_status status);

/**
 * What went wrong in this thread's latest failed call.
 * @return A string that belongs to the library and stays valid until this thread's next failing call or its end;
 * "" when no call of this thread has failed. Successful calls leave it as it is.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API const char *sg_last_error_message(void);

SG_END_DECLS

#endif /* STREAMGEMM_STATUS_H */
