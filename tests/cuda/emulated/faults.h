/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of the emulated GPU. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum emulated_fault {
  EMULATED_NONE,
  EMULATED_NO_MEMORY,    /* an allocation fails, and so do the `more` after it */
  EMULATED_NO_LAUNCH,    /* a command cannot be enqueued, nor can the `more` after it */
  EMULATED_LOST,         /* a running command reads an illegal address: every later call fails */
  EMULATED_LOST_AT_CALL, /* a call of any kind finds the device lost */
} emulated_fault;

/* The `nth` operation from now on, counted from 1, that can fail in that way. Repairs earlier faults. */
void emulated_gpu_break(emulated_fault how, long nth, long more);
/* The CUDA error of a lost device from now on; at first that of an illegal address. */
void emulated_gpu_lose_with(int error);
/* Whether events of a GPU that is lost never happen, from now on, so that others wait for them until it is repaired. */
void emulated_gpu_leave_stuck(int on);
/* The next command that the calling thread enqueues is delayed on its way to the GPU. */
void emulated_gpu_delay_thread(int milliseconds);
/* Whether the fault has occurred. */
int emulated_gpu_is_broken(void);
/* CUDA objects that have not been destroyed: streams, green contexts, events, graphs, pools, handles, allocations,
 * pinned ranges. */
long emulated_gpu_objects(void);
/* Commands that were enqueued in streams of green contexts. */
long emulated_gpu_commands_within(void);
/* Zeroed memory of another GPU, of that index; NULL: there is none. */
void *emulated_gpu_peer_memory(size_t bytes, int device);
void emulated_gpu_free_peer_memory(void *memory);
/* Whether a GPU may copy from the pools of another by the links between them. */
int emulated_gpu_peer_access(int device, int of);
/* From now on copies between GPUs report success and write nothing, or no longer. */
void emulated_gpu_drop_peer_copies(int drop);

#ifdef __cplusplus
}
#endif
