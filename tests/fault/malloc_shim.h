/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests' interface to the preloaded shim: lets one allocation, or the start of one thread, of the whole process
 * fail. The test looks the functions up by name at run time, so that it can also say that it runs without the shim.
 */
#ifndef SG_TEST_MALLOC_SHIM_H
#define SG_TEST_MALLOC_SHIM_H

/** The request to refuse: the n-th, counted from 1 since the window was opened; 0: none, only count. */
struct shim_plan {
  long allocation;
  long thread;
  int all_from_there; /**< 1: every later allocation of the window fails too. */
};

/** Counters of a window. */
struct shim_report {
  long allocations; /**< Requested, refused ones included. */
  long threads;     /**< The same for threads. */
  long refused;     /**< Both kinds. */
};

/** Names: "shim_open", "shim_close", "shim_live". */
typedef void (*shim_open_fn)(struct shim_plan plan);
typedef struct shim_report (*shim_close_fn)(void);
/** Blocks allocated now. */
typedef long (*shim_live_fn)(void);

#endif
