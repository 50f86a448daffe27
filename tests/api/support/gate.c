/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

struct gate {
  int fd;
  int open;
  size_t bytes;
  char *memory;
  char *content;
};

static void *map(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

gate *gate_new(size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register range;
  gate *g = calloc(1, sizeof *g);
  if (!g) return NULL;
  g->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
  g->bytes = (bytes + page - 1) / page * page;
  if (g->fd < 0 || ioctl(g->fd, UFFDIO_API, &api) != 0) goto failed;
  g->memory = map(g->bytes);
  g->content = map(g->bytes);
  if (!g->memory || !g->content) goto failed;
  range.range.start = (uintptr_t)g->memory;
  range.range.len = g->bytes;
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (ioctl(g->fd, UFFDIO_REGISTER, &range) != 0) goto failed;
  return g;
failed:
  if (g->memory) munmap(g->memory, g->bytes);
  if (g->content) munmap(g->content, g->bytes);
  if (g->fd >= 0) close(g->fd);
  free(g);
  return NULL;
}

void *gate_memory(const gate *g) { return g->memory; }
void *gate_content(const gate *g) { return g->content; }

int gate_reached(gate *g, int timeout_ms) {
  struct pollfd wait = {.fd = g->fd, .events = POLLIN};
  int answer;
  do answer = poll(&wait, 1, timeout_ms);
  while (answer < 0);
  return answer > 0;
}

void gate_open(gate *g) {
  struct uffdio_copy fill = {.dst = (uintptr_t)g->memory, .src = (uintptr_t)g->content, .len = g->bytes, .mode = 0};
  if (g->open) return;
  g->open = 1;
  while (ioctl(g->fd, UFFDIO_COPY, &fill) != 0) {
    if (errno != EAGAIN) abort();
    if (fill.copy <= 0) continue;
    fill.dst += (uint64_t)fill.copy;
    fill.src += (uint64_t)fill.copy;
    fill.len -= (uint64_t)fill.copy;
  }
}

void gate_free(gate *g) {
  if (!g) return;
  gate_open(g);
  munmap(g->memory, g->bytes);
  munmap(g->content, g->bytes);
  close(g->fd);
  free(g);
}
