/* SPDX-License-Identifier: Apache-2.0 */
#include "protection.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of <linux/userfaultfd.h> and <linux/fs.h> in Linux 6.7; those of the build may be older. */
#define FEATURE_WP_UNPOPULATED (1ull << 13)
#define FEATURE_WP_ASYNC (1ull << 15)
#define USER_MODE_ONLY 1
struct scan_region {
  uint64_t start, end, categories;
};
struct scan_argument {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted, category_mask,
      category_anyof_mask, return_mask;
};
#define SCAN _IOWR('f', 16, struct scan_argument)
enum { SCAN_PROTECT = 1, SCAN_REQUIRE_ASYNC = 2, PAGE_WRITTEN = 2 };
enum { PAGEABLE_MEMORY_ACCESS = 88 }; /* CU_DEVICE_ATTRIBUTE_... */
enum { REGIONS = 256, MAPPINGS = 32 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Never closed: a number that the program has closed may be someone else's. */
static int faults = -1, pagemap = -1;
static const char *reason = "";
static long registered_at_most;
static pthread_mutex_t guards_lock = PTHREAD_MUTEX_INITIALIZER; /* of all below, and around each scan */
static sg_blas_guard *guards;
static long registered;
static uintptr_t page_bytes;

void sg_blas_protection_after_fork(void) {
  pthread_mutex_init(&guards_lock, NULL);
  guards = NULL;
}

static long number_in(const char *path, const char *key) {
  char line[256];
  long value = -1;
  FILE *const file = fopen(path, "re");
  if (file == NULL) return -1;
  while (value < 0 && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, key, strlen(key)) == 0) value = atol(line + strlen(key));
  fclose(file);
  return value;
}

/* A GPU that accesses pageable memory (HMM, ATS) writes to pages behind the kernel's back. */
static bool gpus_write_pageable_memory(void) {
  void *const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (driver == NULL) return false;
  int (*count_of)(int *count), (*attribute_of)(int *value, int attribute, int device);
  *(void **)&count_of = dlsym(driver, "cuDeviceGetCount");
  *(void **)&attribute_of = dlsym(driver, "cuDeviceGetAttribute");
  int count = 0, value = 1;
  bool does = count_of == NULL || attribute_of == NULL || count_of(&count) != 0;
  for (int device = 0; device < count && !does; ++device)
    does = attribute_of(&value, PAGEABLE_MEMORY_ACCESS, device) != 0 || value != 0;
  dlclose(driver);
  return does;
}

static void start(void) {
  page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
  const long maps = number_in("/proc/sys/vm/max_map_count", "");
  registered_at_most = maps > 0 ? maps / 8 : 1024;
  if (gpus_write_pageable_memory()) {
    reason = "a GPU can write the process's pageable memory (HMM)";
    return;
  }
  faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
  struct uffdio_api api = {.api = UFFD_API, .features = FEATURE_WP_ASYNC | FEATURE_WP_UNPOPULATED};
  if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0)
    reason = "the kernel has no asynchronous write protection, or forbids it";
  else if ((pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) < 0)
    reason = "/proc/self/pagemap cannot be read";
}

const char *sg_blas_no_protection(void) {
  pthread_once(&once, start);
  return reason;
}

static uintptr_t page_of(const char *address) { return (uintptr_t)address / page_bytes * page_bytes; }
static uintptr_t page_behind(const char *address) {
  return ((uintptr_t)address + page_bytes - 1) / page_bytes * page_bytes;
}

/* Memory that devices or other kernels' parts write without the process's page tables: anything that is pinned for
 * long. */
static bool has_pinned_memory(void) { return number_in("/proc/self/status", "VmPin:") != 0; }

/* Devices that map or pin memory for themselves. */
static bool has_open_devices(void) {
  static const char *const names[] = {"/dev/infiniband/", "/dev/xpmem", "/dev/vfio",
                                      "/dev/hfi1",        "/dev/cxi",   "/dev/knem"};
  DIR *const folder = opendir("/proc/self/fd");
  bool found = folder == NULL;
  for (const struct dirent *each; folder != NULL && !found && (each = readdir(folder)) != NULL;) {
    char target[64] = "";
    if (readlinkat(dirfd(folder), each->d_name, target, sizeof target - 1) < 0) continue;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
      found = found || strncmp(target, names[i], strlen(names[i])) == 0;
  }
  if (folder != NULL) closedir(folder);
  return found;
}

typedef struct mapping {
  uintptr_t from, to;
} mapping;

/* The mappings that a range is in, each of them whole: their number; 0: there is a gap, or they are not all private,
   anonymous and no stack. */
static int find_mappings(uintptr_t from, uintptr_t to, mapping found[MAPPINGS]) {
  FILE *const file = fopen("/proc/self/maps", "re");
  int count = 0;
  char line[512];
  while (file != NULL && from < to && fgets(line, sizeof line, file) != NULL) {
    unsigned long first, last, offset, inode;
    char flags[8], device[16], name[64] = "";
    if (sscanf(line, "%lx-%lx %7s %lx %15s %lu %63s", &first, &last, flags, &offset, device, &inode, name) < 6)
      continue;
    if (last <= from) continue;
    const bool fits = flags[1] == 'w' && flags[3] == 'p' && inode == 0 && strncmp(name, "[stack", 6) != 0;
    if (first > from || !fits || count == MAPPINGS) break;
    found[count++] = (mapping){first, last};
    from = last;
  }
  if (file != NULL) fclose(file);
  return from < to ? 0 : count;
}

/* With guards_lock: looks at a range, and protects what was written in it if `protects`. -1: it is not all watched;
   else the number of runs of written pages. */
static long scan(uintptr_t from, uintptr_t to, bool protects, void (*report)(const char *, size_t, void *), void *of) {
  long written = 0;
  struct scan_region regions[REGIONS];
  while (from < to) {
    struct scan_argument given = {.size = sizeof given,
                                  .flags = SCAN_REQUIRE_ASYNC | (protects ? SCAN_PROTECT : 0),
                                  .start = from,
                                  .end = to,
                                  .vec = (uintptr_t)regions,
                                  .vec_len = REGIONS,
                                  .category_mask = PAGE_WRITTEN,
                                  .return_mask = PAGE_WRITTEN};
    const int count = ioctl(pagemap, SCAN, &given);
    if (count < 0) return -1;
    for (int i = 0; i < count; ++i) {
      const char *const first = (const char *)(uintptr_t)regions[i].start;
      const size_t bytes = (size_t)(regions[i].end - regions[i].start);
      for (sg_blas_guard *each = guards; each != NULL && protects; each = each->next)
        if (page_of(each->first) < regions[i].end && regions[i].start < page_behind(each->first + each->bytes))
          each->is_disturbed = true;
      if (report != NULL) report(first, bytes, of);
    }
    written += count;
    if (given.walk_end <= from) return -1;
    from = (uintptr_t)given.walk_end;
  }
  return written;
}

static long scan_guard(const sg_blas_guard *guard, bool protects, void (*report)(const char *, size_t, void *),
                       void *of) {
  return scan(page_of(guard->first), page_behind(guard->first + guard->bytes), protects, report, of);
}

/* With guards_lock. A mapping that replaced a watched range is not registered, which is how a scan knows it. So the
   guards of a range are scanned before the range is registered. */
static bool register_mapping(uintptr_t from, uintptr_t to) {
  if (registered >= registered_at_most) return false;
  for (sg_blas_guard *each = guards; each != NULL; each = each->next)
    if (page_of(each->first) < to && from < page_behind(each->first + each->bytes) &&
        scan_guard(each, false, NULL, NULL) < 0)
      each->is_lost = true;
  struct uffdio_register given = {.range = {from, to - from}, .mode = UFFDIO_REGISTER_MODE_WP};
  if (ioctl(faults, UFFDIO_REGISTER, &given) != 0) return false;
  ++registered;
  return true;
}

bool sg_blas_guard_start(sg_blas_guard *guard, const char *first, size_t bytes) {
  mapping mappings[MAPPINGS];
  if (sg_blas_no_protection()[0] != '\0' || has_pinned_memory() || has_open_devices()) return false;
  const int count = find_mappings(page_of(first), page_behind(first + bytes), mappings);
  if (count == 0) return false;
  *guard = (sg_blas_guard){.first = first, .bytes = bytes};
  pthread_mutex_lock(&guards_lock);
  bool is_watched = true;
  for (int i = 0; i < count && is_watched; ++i) {
    const uintptr_t from = mappings[i].from > page_of(first) ? mappings[i].from : page_of(first),
                    to = mappings[i].to < page_behind(first + bytes) ? mappings[i].to : page_behind(first + bytes);
    is_watched = scan(from, to, false, NULL, NULL) >= 0 || register_mapping(mappings[i].from, mappings[i].to);
  }
  is_watched = is_watched && scan_guard(guard, true, NULL, NULL) >= 0;
  if (is_watched) {
    guard->next = guards;
    guards = guard;
  } else {
    guard->first = NULL;
  }
  pthread_mutex_unlock(&guards_lock);
  return is_watched;
}

static void unlink_guard(sg_blas_guard *guard) { /* with guards_lock */
  for (sg_blas_guard **at = &guards; *at != NULL; at = &(*at)->next)
    if (*at == guard) {
      *at = guard->next;
      break;
    }
  guard->first = NULL;
}

sg_blas_writes sg_blas_guard_check(sg_blas_guard *guard, void (*report)(const char *first, size_t bytes, void *of),
                                   void *of) {
  const bool is_pinned = has_pinned_memory();
  pthread_mutex_lock(&guards_lock);
  const bool was_disturbed = guard->is_disturbed;
  long written = -1;
  if (!guard->is_lost && !is_pinned) written = scan_guard(guard, true, report, of);
  guard->is_disturbed = false;
  const bool is_unknown = written < 0 || was_disturbed;
  if (written < 0) unlink_guard(guard);
  pthread_mutex_unlock(&guards_lock);
  return is_unknown ? SG_BLAS_UNKNOWN : written > 0 ? SG_BLAS_WRITTEN : SG_BLAS_UNWRITTEN;
}

void sg_blas_guard_stop(sg_blas_guard *guard) {
  if (guard->first == NULL) return;
  pthread_mutex_lock(&guards_lock);
  const uintptr_t from = page_of(guard->first), to = page_behind(guard->first + guard->bytes);
  unlink_guard(guard);
  bool is_shared = false;
  for (const sg_blas_guard *each = guards; each != NULL; each = each->next)
    is_shared = is_shared || (page_of(each->first) < to && from < page_behind(each->first + each->bytes));
  struct uffdio_writeprotect given = {.range = {from, to - from}, .mode = 0};
  if (!is_shared) ioctl(faults, UFFDIO_WRITEPROTECT, &given);
  pthread_mutex_unlock(&guards_lock);
}
