/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/types.h>
#include <string.h>

static const char *value_of(const char *name) {
  const char *const value = secure_getenv(name);
  return value == NULL || value[0] == '\0' ? NULL : value;
}

static void complain(const char *name, const char *value, const char *rule) {
  fprintf(stderr, "streamgemm-blas: %s=%s: %s; the default is used\n", name, value, rule);
}

bool sg_blas_list_has(const char *list, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = list; *at != '\0';) {
    const size_t next = strcspn(at, ":");
    if (next == length && strncmp(at, word, length) == 0) return true;
    at += next + (at[next] == ':');
  }
  return false;
}

/* A whole number without a sign, with `*end` behind it. */
static bool parse_number(const char *text, uint64_t *out, const char **end) {
  char *stop;
  errno = 0;
  *out = strtoull(text, &stop, 10);
  *end = stop;
  return text[0] >= '0' && text[0] <= '9' && errno == 0;
}

/* "6442450944", "512MiB", "4GiB", or "80%". */
static bool parse_memory(const char *text, sg_blas_settings *out) {
  const char *end;
  uint64_t number;
  if (!parse_number(text, &number, &end) || number == 0) return false;
  if (strcmp(end, "%") == 0) return out->memory_percent = (double)number, number <= 100;
  const int shift = strcmp(end, "") == 0 ? 0 : strcmp(end, "MiB") == 0 ? 20 : strcmp(end, "GiB") == 0 ? 30 : -1;
  if (shift < 0 || number > (UINT64_MAX >> shift)) return false;
  out->memory_bytes = number << shift;
  return true;
}

/* The first variable that is set, as a number; `otherwise` if there is none. Launchers of MPI programs set them. */
static int first_of(const char *const *names, int otherwise) {
  for (; *names != NULL; ++names) {
    const char *const value = value_of(*names);
    const char *end;
    uint64_t number;
    if (value != NULL && parse_number(value, &number, &end) && number < 100000) return (int)number;
  }
  return otherwise;
}

typedef struct named_value {
  const char *name; /* NULL behind the last one */
  int value;
} named_value;

/* The value that a variable names; the first one without it. */
static int named(const char *variable, const named_value *known, const char *rule) {
  const char *const value = value_of(variable);
  for (const named_value *each = known; value != NULL && each->name != NULL; ++each)
    if (strcmp(value, each->name) == 0) return each->value;
  if (value != NULL) complain(variable, value, rule);
  return known->value;
}

void sg_blas_read_settings(sg_blas_settings *out) {
  *out = (sg_blas_settings){.report = NULL};
  static const named_value switches[] = {{"1", 1}, {"0", 0}, {NULL, 0}};
  const char *value;
  out->is_on = named("SG_BLAS", switches, "neither 0 nor 1");
  out->serves_lapack = named("SG_BLAS_LAPACK", switches, "neither 0 nor 1");
  if ((value = value_of("SG_BLAS_ONLY")) != NULL)
    out->is_on = out->is_on && sg_blas_list_has(value, program_invocation_short_name);
  if ((value = value_of("SG_BLAS_MIN")) != NULL && strcmp(value, "auto") != 0) {
    uint64_t n;
    const char *end;
    if (parse_number(value, &n, &end) && *end == '\0') {
      out->has_minimum = true;
      out->minimum = (double)n * (double)n * (double)n;
    } else {
      complain("SG_BLAS_MIN", value, "neither auto nor a whole number");
    }
  }
  if ((value = value_of("SG_DEVICE")) != NULL && strcmp(value, "auto") != 0) {
    if (strlen(value) < sizeof out->device)
      strcpy(out->device, value);
    else
      complain("SG_DEVICE", value, "longer than 63 bytes");
  }
  if ((value = value_of("SG_BLAS_MEMORY")) != NULL && !parse_memory(value, out)) {
    out->memory_percent = 0;
    complain("SG_BLAS_MEMORY", value, "neither bytes (512MiB, 4GiB) nor a percentage (80%)");
  }
  if ((value = value_of("SG_PBLAS_NB")) != NULL) {
    enum { most = 4096 };
    uint64_t block;
    const char *end;
    if (parse_number(value, &block, &end) && *end == '\0' && block >= 1 && block <= most)
      out->pblas_block = (int)block;
    else
      complain("SG_PBLAS_NB", value, "no whole number from 1 to 4096");
  }
  static const named_value computes[] = {{"exact", SG_COMPUTE_EXACT},   {"tf32", SG_COMPUTE_TF32},
                                         {"3xtf32", SG_COMPUTE_3XTF32}, {"bf16", SG_COMPUTE_BF16},
                                         {"bf16x3", SG_COMPUTE_BF16X3}, {NULL, 0}};
  static const named_value residencies[] = {{"auto", SG_BLAS_RESIDENCY_AUTO},     {"off", SG_BLAS_RESIDENCY_OFF},
                                            {"hash", SG_BLAS_RESIDENCY_HASH},     {"track", SG_BLAS_RESIDENCY_TRACK},
                                            {"verify", SG_BLAS_RESIDENCY_VERIFY}, {NULL, 0}};
  out->compute = named("SG_BLAS_COMPUTE", computes, "none of exact, tf32, 3xtf32, bf16, bf16x3");
  out->residency = (sg_blas_residency)named("SG_BLAS_RESIDENCY", residencies, "none of auto, off, hash, track, verify");
  out->report = value_of("SG_BLAS_REPORT");
  static const char *const rank[] = {"SG_LOCAL_RANK",
                                     "OMPI_COMM_WORLD_LOCAL_RANK",
                                     "MPI_LOCALRANKID",
                                     "SLURM_LOCALID",
                                     "PMI_LOCAL_RANK",
                                     "PALS_LOCAL_RANKID",
                                     "FLUX_TASK_LOCAL_ID",
                                     "MV2_COMM_WORLD_LOCAL_RANK",
                                     NULL};
  static const char *const ranks[] = {"SG_LOCAL_RANKS",
                                      "OMPI_COMM_WORLD_LOCAL_SIZE",
                                      "MPI_LOCALNRANKS",
                                      "SLURM_NTASKS_PER_NODE",
                                      "PMI_LOCAL_SIZE",
                                      "MV2_COMM_WORLD_LOCAL_SIZE",
                                      NULL};
  out->local_rank = first_of(rank, -1);
  out->local_ranks = first_of(ranks, 0);
}
