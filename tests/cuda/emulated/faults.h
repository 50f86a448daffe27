/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong with the emulated GPU. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum emulated_fault {
  EMULATED_NONE,
  EMULATED_NO_MEMORY,    /* an allocation finds no memory, and so do the `more` after it */
  EMULATED_NO_LAUNCH,    /* a command cannot be enqueued, nor can the `more` after it */
  EMULATED_LOST,         /* a command that runs reads an illegal address: every call from then on fails */
  EMULATED_LOST_AT_CALL, /* a call of any kind finds the device lost */
} emulated_fault;

/* The `nth` from now on, counted from 1, of what can fail in that way. Mends what was broken before. */
void emulated_gpu_break(emulated_fault how, long nth, long more);
/* Whether it has come to that. */
int emulated_gpu_is_broken(void);
/* Objects of CUDA's that have not been destroyed: streams, green contexts, events, graphs, pools, handles, allocations,
   pinned ranges. */
long emulated_gpu_objects(void);
/* Commands that were enqueued in streams of green contexts. */
long emulated_gpu_commands_within(void);
/* Zeroed memory of another GPU, of that index; NULL: there is none. */
void *emulated_gpu_peer_memory(size_t bytes, int device);
void emulated_gpu_free_peer_memory(void *memory);

#ifdef __cplusplus
}
#endif
