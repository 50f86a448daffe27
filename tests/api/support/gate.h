/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gate: memory whose first use blocks the thread that touches it until the test opens the gate. An operand in a gate
 * holds a job in mid-flight for as long as a test wants, with no guess at how long any work takes.
 *
 * It is userfaultfd(2) on an anonymous mapping: a page that has not been filled blocks its reader or writer in user
 * mode.
 */
#ifndef SG_TEST_GATE_H
#define SG_TEST_GATE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gate gate;

/** A closed gate of at least `bytes` bytes. NULL when this kernel offers none: the test must then be skipped. */
gate *gate_new(size_t bytes);
/** The memory that blocks. */
void *gate_memory(const gate *g);
/** The contents of the memory once the gate is open; all zero unless filled beforehand. */
void *gate_content(const gate *g);
/** Waits until a thread blocks at the gate. 1: one does; 0: none came in time. */
int gate_reached(gate *g, int timeout_ms);
/** Unblocks all threads. Opening twice is harmless. */
void gate_open(gate *g);
/** Opens the gate and unmaps it; nothing may use the memory any more. */
void gate_free(gate *g);

/** Exit status by which a test tells Meson that it was skipped. */
enum { TEST_SKIPPED = 77 };

#ifdef __cplusplus
}
#endif

#endif
