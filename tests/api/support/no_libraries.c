// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD: a system without libraries of arithmetic. The cpu backend finds neither a BLAS nor oneDNN.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static int hidden;

// A test whose program asked for no library would show nothing.
__attribute__((destructor)) static void check(void) {
  if (!hidden) _exit(3);
}

void *dlopen(const char *name, int flags) {
  static void *(*next)(const char *, int);
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
  const int is_hidden = name && (strstr(name, "blas") || strstr(name, "dnnl"));
  hidden += is_hidden;
  return next(is_hidden ? "no such library" : name, flags);
}
