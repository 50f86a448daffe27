/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the CPU BLAS's function for each exported name. */
#include "resolve.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatcher.h"

static pthread_mutex_t resolve_lock = PTHREAD_MUTEX_INITIALIZER;

void sg_blas_resolve_after_fork(void) { pthread_mutex_init(&resolve_lock, NULL); }

/* Whether the object at `base` defines the symbol itself. `handle`: of that object. */
static bool defines(void *handle, const void *base, const char *symbol) {
  Dl_info found;
  void *const address = dlsym(handle, symbol);
  return address != NULL && dladdr(address, &found) != 0 && found.dli_fbase == base;
}

/* Whether a function may be called as the CPU BLAS's: it is none of a dispatcher (this library or one of its kind,
   libblastrampoline, FlexiBLAS), whose functions may lead back here. */
static bool is_cpu_function(void *address) {
  Dl_info owner;
  struct link_map *map = NULL;
  if (address == NULL || dladdr1(address, &owner, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) return false;
  void *const handle = dlopen(map->l_name[0] == '\0' ? NULL : map->l_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return false;
  static const char *const marks[] = {"sg_blas_version", "lbt_get_config", "flexiblas_chain_dgemm_"};
  bool fits = true;
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; ++i)
    fits = fits && !defines(handle, owner.dli_fbase, marks[i]);
  dlclose(handle);
  return fits;
}

static void *from_handle(void *handle, const char *name) {
  void *const address = handle == NULL ? NULL : dlsym(handle, name);
  return is_cpu_function(address) ? address : NULL;
}

typedef struct object_list {
  char **names;
  size_t count;
} object_list;

static int add_object(struct dl_phdr_info *info, size_t size, void *to) {
  (void)size;
  object_list *const list = to;
  if (info->dlpi_name == NULL || info->dlpi_name[0] == '\0')
    return 0; /* the program, whose functions hide ours anyway */
  char **const grown = realloc(list->names, (list->count + 1) * sizeof *grown);
  if (grown == NULL) return 1;
  list->names = grown;
  if ((grown[list->count] = strdup(info->dlpi_name)) != NULL) ++list->count;
  return 0;
}

/* The first of the loaded objects that has the function: also those that dlopen has loaded for a plugin alone. */
static void *from_loaded_objects(const char *name) {
  object_list list = {NULL, 0};
  dl_iterate_phdr(add_object, &list); /* nothing may be opened in it */
  void *address = NULL;
  for (size_t i = 0; i < list.count; ++i) {
    if (address == NULL) {
      void *const handle = dlopen(list.names[i], RTLD_LAZY | RTLD_NOLOAD);
      address = from_handle(handle, name);
      if (handle != NULL) dlclose(handle);
    }
    free(list.names[i]);
  }
  free(list.names);
  return address;
}

/* Opens a library and keeps it, if it has the function. */
static void *from_library(const char *library, const char *name) {
  void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void *const address = from_handle(handle, name);
  if (address == NULL && handle != NULL) dlclose(handle);
  return address;
}

/* The reference BLAS of Debian, which shares its SONAME with this library's alternative: by its path, beside the C
 * library. */
static void *from_reference(const char *folder_and_file, const char *name) {
  Dl_info libc;
  char path[4096];
  const char *end;
  if (dladdr((void *)&strtol, &libc) == 0 || (end = strrchr(libc.dli_fname, '/')) == NULL) return NULL;
  const int length =
      snprintf(path, sizeof path, "%.*s/%s", (int)(end - libc.dli_fname), libc.dli_fname, folder_and_file);
  return length < 0 || (size_t)length >= sizeof path ? NULL : from_library(path, name);
}

/* The variable that names the CPU BLAS. */
static const char *variable(void) {
  return sg_blas_this_library == SG_BLAS_LIBRARY_ILP64 ? "SG_BLAS_CPU64" : "SG_BLAS_CPU";
}

static void *from_variable(const char *name) {
  const char *const path = secure_getenv(variable());
  if (path == NULL || path[0] == '\0') return NULL;
  static bool has_warned; /* under resolve_lock */
  void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL && !has_warned) {
    has_warned = true;
    fprintf(stderr, "streamgemm-blas: %s=%s: %s; another BLAS is looked for\n", variable(), path, dlerror());
  }
  return from_handle(handle, name);
}

/* Whether a name promises 32-bit integers and no prefix, as the system's libraries export them. */
static bool is_plain(const char *name) { return strncmp(name, "scipy_", 6) != 0 && strstr(name, "64_") == NULL; }

static void *find(const char *name) {
  void *address = from_variable(name);
  if (address != NULL) return address;
  if (sg_blas_this_library ==
      SG_BLAS_LIBRARY_ILP64) { /* its names say nothing of the width: only libraries that are known to have it */
    static const char *const wide[] = {"libopenblas64.so.0", "libblis64.so.4", "libblas64.so.3"};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0] && address == NULL; ++i) address = from_library(wide[i], name);
    return address != NULL ? address : from_reference("blas64/libblas64.so.3", name);
  }
  address = dlsym(RTLD_NEXT, name);
  if (is_cpu_function(address)) return address;
  address = from_loaded_objects(name);
  if (address != NULL || !is_plain(name)) return address;
  static const char *const narrow[] = {"libopenblas.so.0", "libblis.so.4", "libmkl_rt.so.2", "libblas.so.3",
                                       "libcblas.so.3"};
  for (size_t i = 0; i < sizeof narrow / sizeof narrow[0] && address == NULL; ++i)
    address = from_library(narrow[i], name);
  return address != NULL ? address : from_reference("blas/libblas.so.3", name);
}

static sg_blas_entry *entry_of(const char *name) {
  for (int i = 0; i < sg_blas_entry_count; ++i)
    if (strcmp(sg_blas_entries[i].name, name) == 0) return &sg_blas_entries[i];
  return NULL;
}

void *sg_blas_find(const char *name) {
  sg_blas_entry *const entry = entry_of(name);
  pthread_mutex_lock(&resolve_lock);
  void *address = entry == NULL ? NULL : __atomic_load_n(&entry->cpu, __ATOMIC_ACQUIRE);
  if (address == NULL) {
    address = find(name);
    if (entry != NULL && address != NULL) __atomic_store_n(&entry->cpu, address, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&resolve_lock);
  return address;
}

bool sg_blas_replace(const char *name, void *address) {
  sg_blas_entry *const entry = entry_of(name);
  if (entry == NULL) return false;
  __atomic_store_n(&entry->is_absent, false, __ATOMIC_RELEASE);
  __atomic_store_n(&entry->cpu, address, __ATOMIC_RELEASE);
  return true;
}

void *sg_blas_require(const char *name) {
  void *const address = sg_blas_find(name);
  if (address != NULL) return address;
  fprintf(stderr,
          "streamgemm-blas: no CPU BLAS has %s: set %s to the path of one, install one (Debian: libopenblas0-pthread), "
          "link the program to "
          "one, or run it without this library\n",
          name, variable());
  abort();
}

void *sg_blas_first_cpu_address(sg_blas_entry *entry) {
  const bool has_substitute = entry->gemm != NULL && entry->number >= SG_BLAS_GEMM_BATCH;
  if (!has_substitute) return sg_blas_require(entry->name);
  if (!__atomic_load_n(&entry->is_absent, __ATOMIC_ACQUIRE)) {
    void *const address = sg_blas_find(entry->name);
    if (address != NULL) return address;
    __atomic_store_n(&entry->is_absent, true, __ATOMIC_RELEASE);
  }
  return sg_blas_cpu_address(entry->gemm);
}

void sg_blas_describe_cpu(const void *address, char *text, size_t size) {
  Dl_info owner;
  snprintf(text, size, "%s",
           address != NULL && dladdr(address, &owner) != 0 && owner.dli_fname != NULL ? owner.dli_fname : "");
}
