/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file status.h
 * @brief Result codes of calls and jobs, and the text of the latest failure.
 *
 * A call that fails stores a message for the calling thread. A job that fails has a status and a message of its own,
 * because it fails on another thread. Output handles are NULL after a failure. Values are never reused.
 */
#ifndef STREAMGEMM_STATUS_H
#define STREAMGEMM_STATUS_H

#include <stdint.h>

#include <streamgemm/export.h>

SG_BEGIN_DECLS

/** Result of a call or of a job. Negative values are failures; the two positive ones are answers, not failures. */
typedef enum sg_status SG_ENUM_INT {
  SG_STATUS_OK = 0,                 /**< Success. */
  SG_STATUS_NOT_READY = 1,          /**< Result of a query: the work has not completed yet. */
  SG_STATUS_TIMEOUT = 2,            /**< The timeout of a wait passed; the work goes on. */
  SG_STATUS_INVALID_ARGUMENT = -1,  /**< An argument is wrong; the message names it and its value. */
  SG_STATUS_INVALID_HANDLE = -2,    /**< A handle is stale, foreign, random, of another type, or from before a fork. */
  SG_STATUS_OUT_OF_MEMORY = -3,     /**< Host or device memory ran out; nothing was started. */
  SG_STATUS_NO_DEVICE = -4,         /**< The named device or its backend is not available; the message says why. */
  SG_STATUS_UNSUPPORTED = -5,       /**< The device does not support the requested combination. */
  SG_STATUS_BUSY = -6,              /**< The state of the object does not allow it now (too late to cancel, still in use). */
  SG_STATUS_CANCELLED = -7,         /**< The job was cancelled; or the queue is closed and empty. */
  SG_STATUS_DEADLOCK = -8,          /**< The wait could never end: a callback waits for its own job. */
  SG_STATUS_BACKEND_FAILURE = -9,   /**< The device, its library or the function of a custom operation failed; the message carries its text. */
  SG_STATUS_DEPENDENCY_FAILED = -10,/**< A predecessor failed: the job did not run, or its output is invalid. */
  SG_STATUS_SHUTDOWN = -11,         /**< The process is exiting; new work is refused. */
  SG_STATUS_INTERNAL = -12,         /**< A defect of the library. Please report it with its message. */
  SG_STATUS_DEADLINE_EXCEEDED = -13,/**< The job's deadline passed before it had completed. */
  SG_STATUS_IO_FAILURE = -14        /**< Writing a file failed, as on a full disk; the message has the system's reason. */
} sg_status;

/**
 * The name of a status, for instance "SG_STATUS_OUT_OF_MEMORY".
 * @return A static string, never NULL; "SG_STATUS_UNKNOWN" for a value that is not a status.
 * Never blocks. Any thread.
 */
SG_API const char *sg_status_name(sg_status status);

/**
 * Message of the latest failed call of the calling thread.
 * @return A string of the library, valid until the next failed call of this thread or its end; "" if no call of this
 * thread has failed. Successful calls do not change it.
 * Never blocks. Any thread.
 */
SG_API const char *sg_last_error_message(void);

/**
 * The status and the message of the latest failed call of the calling thread, copied: for a program whose calls may continue on
 * another thread, in the same step as the call.
 * @param[out] out_status The status; SG_STATUS_OK if no call of this thread has failed. May be NULL.
 * @param[out] text Receives at most `size` bytes with the NUL; may be NULL when size is 0.
 * @param[out] out_size Bytes that the whole text needs with its NUL; may be NULL.
 * @return SG_STATUS_OK (also if the text was truncated: compare *out_size) or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any
 * thread.
 */
SG_API sg_status sg_last_error(sg_status *out_status, char *text, uint64_t size, uint64_t *out_size);

/**
 * The same message for wrappers in languages that call arguments by other names: the byte 1 stands before each name of
 * an argument, and nowhere else, as in "\001desc->b.rows is 4". A name is a parameter with the path to a field:
 * letters, digits, `_`, `[i]`, `->` and `.` before a letter; or NULL. Values, such as a path or a label, have no marks.
 * @return A string of the library, valid until the next call of this function by this thread.
 * Never blocks. Any thread.
 */
SG_API const char *sg_last_error_marked(void);

SG_END_DECLS

#endif /* STREAMGEMM_STATUS_H */
