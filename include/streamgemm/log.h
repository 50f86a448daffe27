/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file log.h
 * @brief The log (docs/logging.md) from the program: its level, and a function that receives its messages.
 */
#ifndef STREAMGEMM_LOG_H
#define STREAMGEMM_LOG_H

#include <streamgemm/status.h>

SG_BEGIN_DECLS

/** Level of a message, and the least important one that is logged. */
typedef enum sg_log_level SG_ENUM_INT {
  SG_LOG_OFF = 0,   /**< No message. */
  SG_LOG_ERROR = 1, /**< Jobs that fail. */
  SG_LOG_WARN = 2,  /**< Work that goes on otherwise than planned. */
  SG_LOG_INFO = 3,  /**< Choices. */
  SG_LOG_DEBUG = 4  /**< Candidates of plans, allocations. */
} sg_log_level;

/**
 * Receives one message. It runs on any thread, of the library and of the program, on several at a time, and within calls: it
 * returns soon, throws nothing and calls no function of the library. What it logs itself through such a call is dropped. Once exit has
 * come to the library it is not called.
 * @param level Not SG_LOG_OFF.
 * @param area "plan", "plugin", "memory", "fallback" or "job".
 * @param message The text in one line of UTF-8, with control characters as a backslash, x and two digits; valid during the call.
 * @param user As given to sg_log_set.
 */
typedef void (*sg_log_callback)(sg_log_level level, const char *area, const char *message, void *user);

/**
 * Sets what is logged, of all areas, and where; the variable SG_LOG has no effect then.
 * @param level The least important level; SG_LOG_OFF: none.
 * @param callback Receives the messages; NULL: lines on standard error.
 * @param user Given to the callback; the caller keeps it valid until the next sg_log_set has returned: then no thread is in
 * the former callback.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_ARGUMENT; SG_STATUS_DEADLOCK from the callback.
 * Blocks until former callbacks have returned. Any thread.
 */
SG_API sg_status sg_log_set(sg_log_level level, sg_log_callback callback, void *user);

SG_END_DECLS

#endif /* STREAMGEMM_LOG_H */
