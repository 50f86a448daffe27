/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "driver.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

unsigned test_seed = 0;

enum { SKIPPED = 77 };

/* Of one run: its wait status, whether it was killed at the limit, and the start of what it wrote to stderr. */
struct outcome {
  int status, late;
  size_t length;
  char said[4000];
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Reads until every process of the run has closed the pipe; 0 at the limit. */
static int listen_to(int from, double until, struct outcome *out) {
  for (;;) {
    char rest[512];
    struct pollfd wait = {-1, POLLIN, 0};
    const double left = until - now();
    const size_t room = sizeof out->said - 1 - out->length;
    ssize_t got;
    wait.fd = from;
    if (left <= 0) return 0;
    if (poll(&wait, 1, (int)(left * 1000) + 1) <= 0) continue;
    got = read(from, room ? out->said + out->length : rest, room ? room : sizeof rest);
    if (got <= 0) return 1;
    if (room) out->length += (size_t)got;
  }
}

static struct outcome run_once(const struct test_case *what, int (*result)(void), double seconds) {
  struct outcome out;
  int ends[2];
  pid_t child;
  memset(&out, 0, sizeof out);
  fflush(stdout);
  if (pipe(ends) != 0) abort();
  child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    dup2(nowhere, 1);
    dup2(ends[1], 2);
    close(nowhere);
    close(ends[0]);
    close(ends[1]);
    what->run();
    exit(result());
  }
  setpgid(child, child);
  close(ends[1]);
  out.late = !listen_to(ends[0], now() + seconds, &out);
  if (out.late) kill(-child, SIGKILL);
  if (waitpid(child, &out.status, 0) != child) abort();
  kill(-child, SIGKILL); /* what it has left behind */
  close(ends[0]);
  return out;
}

static void print_fault(const char *name, int run, double seconds, const struct outcome *out) {
  const char *line = out->said;
  printf("# %s, run %d: ", name, run);
  if (out->late)
    printf("did not end within %g s\n", seconds);
  else if (WIFSIGNALED(out->status))
    printf("killed by signal %d\n", WTERMSIG(out->status));
  else
    printf("ended with status %d\n", WEXITSTATUS(out->status));
  while (*line) {
    const size_t length = strcspn(line, "\n");
    printf("#   %.*s\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
}

/* Whether each run of a case was right; prints its line. */
static int run_case(const struct test_case *what, int number, int (*result)(void), long runs, double seconds) {
  const double begin = now();
  long run, right = 0;
  for (run = 0; run < runs; ++run) {
    struct outcome out;
    test_seed = (unsigned)run;
    out = run_once(what, result, seconds);
    if (!out.late && WIFEXITED(out.status) && WEXITSTATUS(out.status) == SKIPPED) {
      printf("ok %d - %s # SKIP\n", number, what->name);
      return 1;
    }
    if (!out.late && WIFEXITED(out.status) && WEXITSTATUS(out.status) == 0 && out.length == 0)
      ++right;
    else
      print_fault(what->name, (int)run, seconds, &out);
  }
  printf("%sok %d - %s: %ld of %ld runs were right, in %.1f s\n", right == runs ? "" : "not ", number, what->name,
         right, runs, now() - begin);
  return right == runs;
}

int run_cases(const struct test_case *cases, int count, int (*result)(void), char *const *wanted, int wanted_count,
              double seconds) {
  const char *const soak = getenv("SG_SOAK");
  const long factor = soak && strcmp(soak, "1") == 0 ? 60 : 1;
  int i, k, all_right = 1;
  printf("1..%d\n", wanted_count);
  for (i = 0; i < wanted_count; ++i) {
    const size_t length = strcspn(wanted[i], ":");
    const long runs = wanted[i][length] == ':' ? atol(wanted[i] + length + 1) : 0;
    for (k = 0; k < count; ++k) {
      if (strlen(cases[k].name) == length && strncmp(cases[k].name, wanted[i], length) == 0) break;
    }
    if (k == count || runs < 1) {
      printf("Bail out! no case and number of runs is '%s'\n", wanted[i]);
      return 2;
    }
    all_right &= run_case(&cases[k], i + 1, result, runs * factor, seconds);
  }
  return all_right ? 0 : 1;
}
