/* SPDX-License-Identifier: Apache-2.0 */
/* What the exported functions, which routines.py generates, share with the rest of the dispatcher. */
#ifndef STREAMGEMM_BLAS_DISPATCHER_H
#define STREAMGEMM_BLAS_DISPATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "routines.h"

#define SG_BLAS_EXPORT __attribute__((visibility("default")))

typedef enum sg_blas_library { SG_BLAS_LIBRARY_PRELOAD, SG_BLAS_LIBRARY_LP64, SG_BLAS_LIBRARY_ILP64 } sg_blas_library;
/* Which of the three libraries this one is. */
extern const sg_blas_library sg_blas_this_library;

typedef struct sg_blas_call sg_blas_call;
struct sg_blas_batch;

/* One exported name of level 3 or of LAPACK. */
typedef struct sg_blas_entry {
  const char *name;    /* as exported: "cblas_dgemm64_" */
  const char *routine; /* "dgemm" */
  char type;           /* s, d, c or z */
  void *cpu;           /* the CPU BLAS's function; NULL: not yet found. Atomic. */
  /* Of level 3: */
  sg_blas_routine number;
  void (*call_cpu)(const sg_blas_call *call);
  struct sg_blas_entry *gemm; /* of the same type and form of names */
  void *checked; /* of a batch: the CPU BLAS's function whose integers are known to be as wide as the name says. Atomic.
                  */
  bool is_wide;  /* integers of 64 bits; of LAPACK and of batches */
  bool is_absent; /* of a batch: the CPU BLAS has none, its gemm computes it. Atomic. */
  /* Of LAPACK: */
  sg_blas_lapack_routine solver;
  const unsigned char *roles; /* of the arguments, SG_BLAS_ROLE_...; SG_BLAS_ROLES ends them */
} sg_blas_entry;

extern sg_blas_entry sg_blas_entries[];
extern const int sg_blas_entry_count;

/* The layouts of a call; SG_BLAS_NO_LAYOUT: the program passed an order that does not exist. */
typedef enum sg_blas_layout { SG_BLAS_COLUMN_MAJOR, SG_BLAS_ROW_MAJOR, SG_BLAS_NO_LAYOUT } sg_blas_layout;

/* Why a call was computed where it was. */
typedef enum sg_blas_reason {
  SG_BLAS_ON_DEVICE,     /* the device computed it */
  SG_BLAS_SMALL,         /* below the floor */
  SG_BLAS_CPU_FASTER,    /* the model says that the CPU is faster */
  SG_BLAS_INVALID,       /* an argument is not valid: the CPU BLAS reports it */
  SG_BLAS_EMPTY,         /* nothing to multiply */
  SG_BLAS_VAST,          /* a size or leading dimension beyond 31 bits */
  SG_BLAS_SWITCHED_OFF,  /* SG_BLAS=0, or SG_BLAS_ONLY does not name the program */
  SG_BLAS_NO_DEVICE,     /* there is none, or failures have closed it */
  SG_BLAS_AFTER_FORK,    /* the parent had used the device */
  SG_BLAS_DEVICE_FAILED, /* the device could not compute it */
  SG_BLAS_UNSOLVED,      /* LAPACK: the device found no solution, which the CPU library then reports */
  SG_BLAS_NO_SOLVER,     /* LAPACK: the device has no cuSOLVER, or SG_BLAS_LAPACK=0 */
  SG_BLAS_REASONS
} sg_blas_reason;

/* One call of level 3. A letter is upper-case; 0: the routine has no such argument; '?': the program passed no valid
 * one. */
struct sg_blas_call {
  sg_blas_entry *entry;
  double work; /* multiplications and additions, in pairs */
  sg_blas_layout layout;
  char side, uplo, transa, transb, diag;
  int64_t m, n, k, lda, ldb, ldc;
  const void *alpha, *beta, *a, *b;
  void *c;
  const struct sg_blas_batch *batch; /* of gemm_batch; the sizes and letters are then those of its first GEMM */
  sg_blas_reason reason;
  double device_seconds;    /* the device's predicted time, with checks of copies; 0: unknown */
  double predicted_seconds; /* of it, the job's */
  bool reads_host_operands; /* copies of A and B that the device keeps are not used */
  bool is_pageable;         /* an operand that the device's job reads or writes is in pageable memory */
};

/* The least of the sizes that the routine has. */
static inline double sg_blas_least_size(const sg_blas_call *call) {
  int64_t least = call->m > 0 ? call->m : call->n;
  if (call->n > 0 && call->n < least) least = call->n;
  if (call->k > 0 && call->k < least) least = call->k;
  return (double)least;
}

/* Calls with less work go to the CPU BLAS at once. Atomic. */
extern double sg_blas_gate;
static inline bool sg_blas_is_looked_at(double work) {
  double gate;
  __atomic_load(&sg_blas_gate, &gate, __ATOMIC_RELAXED);
  return work >= gate;
}

/* The block that PBLAS is to use for a type, the same for the whole life of the process; 0: its own. */
int sg_blas_pblas_block(char precision);

/* Computes a call, on the device or by the CPU BLAS. false: the caller passes it to the CPU BLAS as it is, untouched.
 */
bool sg_blas_compute(sg_blas_call *call);

/* The CPU BLAS's function of a name: NULL if there is none. Any thread. */
void *sg_blas_find(const char *name);
/* The same, which ends the process, with a message, if there is none. */
void *sg_blas_require(const char *name);
void *sg_blas_find_vector(size_t number); /* called by trampolines of levels 1 and 2 */
void *sg_blas_first_cpu_address(sg_blas_entry *entry);

static inline void *sg_blas_cpu_address(sg_blas_entry *entry) {
  void *const address = __atomic_load_n(&entry->cpu, __ATOMIC_ACQUIRE);
  return address != NULL ? address : sg_blas_first_cpu_address(entry);
}

static inline char sg_blas_upper(char letter) { return letter >= 'a' && letter <= 'z' ? (char)(letter - 32) : letter; }

/* The letter of a value of CBLAS's enums; '?' for other values. */
static inline char sg_blas_letter_of(int value) {
  switch (value) {
    case 111: return 'N';
    case 112: return 'T';
    case 113: return 'C';
    case 121: return 'U';
    case 122: return 'L';
    case 131: return 'N';
    case 132: return 'U';
    case 141: return 'L';
    case 142: return 'R';
    default: return '?';
  }
}

static inline int sg_blas_value_of_trans(char letter) {
  return letter == 'N' ? 111 : letter == 'T' ? 112 : letter == 'C' ? 113 : 0;
}
static inline int sg_blas_value_of_uplo(char letter) { return letter == 'U' ? 121 : 122; }
static inline int sg_blas_value_of_diag(char letter) { return letter == 'N' ? 131 : 132; }
static inline int sg_blas_value_of_side(char letter) { return letter == 'L' ? 141 : 142; }

static inline sg_blas_layout sg_blas_layout_of(int order) {
  return order == 101 ? SG_BLAS_ROW_MAJOR : order == 102 ? SG_BLAS_COLUMN_MAJOR : SG_BLAS_NO_LAYOUT;
}

#endif
