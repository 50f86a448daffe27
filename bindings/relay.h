/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom operations of managed languages. A thread of the library hands the call of a function to a thread of the
 * language's runtime and waits for it: a native thread that has run managed code delays the exit of Mono, and blocks in
 * a JVM that exits. Addresses and handles are int64_t, as in calls.h.
 */
#ifndef STREAMGEMM_BINDINGS_RELAY_H
#define STREAMGEMM_BINDINGS_RELAY_H

#ifndef SWIG

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/custom.h>

#include "calls.h"

/* A call that a thread of the library waits for, on its stack. */
typedef struct sg_relay_call {
  const sg_custom_call *given;
  int64_t id, key;
  int is_taken, is_done;
  sg_status status;
  pthread_cond_t done;
  struct sg_relay_call *next;
} sg_relay_call;

typedef struct sg_relay {
  pthread_mutex_t lock;
  pthread_cond_t arrived, left;
  sg_relay_call *first; /* oldest first */
  int64_t latest_id;
  int is_ended;
} sg_relay;

/* What a function gets as its `user`. */
typedef struct sg_relay_operation {
  sg_relay *relay;
  int64_t key;
} sg_relay_operation;

/* With the lock. */
static inline void sg_relay_finish(sg_relay_call *call, sg_status status, const char *message) {
  if (message) snprintf(call->given->message, (size_t)call->given->message_size, "%s", message);
  call->status = status;
  call->is_done = 1;
  pthread_cond_signal(&call->done);
}

/* An sg_custom_function. */
static inline sg_status sg_relay_run(const sg_custom_call *given, void *user) {
  sg_relay *const relay = ((sg_relay_operation *)user)->relay;
  sg_relay_call call = {given, 0, ((sg_relay_operation *)user)->key, 0, 0, SG_STATUS_OK, PTHREAD_COND_INITIALIZER,
                        NULL};
  sg_relay_call **link = &relay->first;
  pthread_mutex_lock(&relay->lock);
  call.id = ++relay->latest_id;
  while (*link) link = &(*link)->next;
  *link = &call;
  if (relay->is_ended)
    sg_relay_finish(&call, SG_STATUS_SHUTDOWN, "the process is exiting");
  else
    pthread_cond_signal(&relay->arrived);
  while (!call.is_done) pthread_cond_wait(&call.done, &relay->lock);
  for (link = &relay->first; *link != &call;) link = &(*link)->next;
  *link = call.next;
  pthread_cond_broadcast(&relay->left);
  pthread_mutex_unlock(&relay->lock);
  pthread_cond_destroy(&call.done);
  return call.status;
}

#endif /* SWIG */

/* A relay, never freed: threads of the library may use it until the process ends. 0: no memory. */
static inline int64_t sg_relay_new(void) {
  sg_relay *made = (sg_relay *)calloc(1, sizeof *made);
  if (made) {
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->arrived, NULL);
    pthread_cond_init(&made->left, NULL);
  }
  return (int64_t)(intptr_t)made;
}

/* The address of the sg_custom_function of every relay's operations. */
static inline int64_t sg_relay_function(void) { return (int64_t)(intptr_t)sg_relay_run; }

/* The `user` of an operation whose calls carry a key; freed by sg_relay_operation_free. 0: no memory. */
static inline int64_t sg_relay_operation_new(int64_t relay, int64_t key) {
  sg_relay_operation *made = (sg_relay_operation *)malloc(sizeof *made);
  if (made) {
    made->relay = (sg_relay *)sg_at(relay);
    made->key = key;
  }
  return (int64_t)(intptr_t)made;
}

/* 0 is a no-op. */
static inline void sg_relay_operation_free(int64_t operation) { free(sg_at(operation)); }

/* Waits for a call. `to`: the address of eight numbers: the call's id, its operation's key, the native stream, the
 * number of operands, their addresses. Returns 0 when the relay has ended. */
static inline int32_t sg_relay_take(int64_t relay, int64_t to) {
  sg_relay *const from = (sg_relay *)sg_at(relay);
  int64_t *const numbers = (int64_t *)sg_at(to);
  sg_relay_call *call = NULL;
  pthread_mutex_lock(&from->lock);
  while (!from->is_ended) {
    for (call = from->first; call && (call->is_taken || call->is_done);) call = call->next;
    if (call) break;
    pthread_cond_wait(&from->arrived, &from->lock);
  }
  if (call) {
    call->is_taken = 1;
    numbers[0] = call->id;
    numbers[1] = call->key;
    numbers[2] = (int64_t)(intptr_t)call->given->native_stream;
    numbers[3] = call->given->operand_count;
    for (int32_t i = 0; i < call->given->operand_count && i < SG_MAX_CUSTOM_OPERANDS; ++i)
      numbers[4 + i] = (int64_t)(intptr_t)call->given->operands[i];
  }
  pthread_mutex_unlock(&from->lock);
  return call != NULL;
}

/* The call is done; nothing if the relay has ended and given it up. `message`: the address of a text, or 0. */
static inline void sg_relay_done(int64_t relay, int64_t id, int32_t status, int64_t message) {
  sg_relay *const of = (sg_relay *)sg_at(relay);
  sg_relay_call *call;
  pthread_mutex_lock(&of->lock);
  for (call = of->first; call && call->id != id;) call = call->next;
  if (call && !call->is_done) sg_relay_finish(call, (sg_status)status, (const char *)sg_at(message));
  pthread_mutex_unlock(&of->lock);
}

/* Calls that no thread has taken, and later ones, fail with SG_STATUS_SHUTDOWN. Those that run are waited for, or given
 * up: they fail, too. */
static inline void sg_relay_end(int64_t relay, int32_t waits) {
  sg_relay *const of = (sg_relay *)sg_at(relay);
  sg_relay_call *call;
  pthread_mutex_lock(&of->lock);
  of->is_ended = 1;
  pthread_cond_broadcast(&of->arrived);
  for (call = of->first; call; call = call->next)
    if (!call->is_done && !(waits && call->is_taken))
      sg_relay_finish(call, SG_STATUS_SHUTDOWN, "the process is exiting");
  while (of->first) pthread_cond_wait(&of->left, &of->lock);
  pthread_mutex_unlock(&of->lock);
}

#endif /* STREAMGEMM_BINDINGS_RELAY_H */
