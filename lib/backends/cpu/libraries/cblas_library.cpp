// SPDX-License-Identifier: Apache-2.0
#include "cblas_library.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "backends/cpu/threads/fork_lock.hpp"
#include "backends/cpu/threads/futex.hpp"

namespace sg::cpu {
namespace {

cblas_library functions;
// OpenBLAS stops its threads in a fork handler, which a fork in progress does not call if the handler is new, and after
// which a call may have started them again. The child would wait for them at exit. NULL: another implementation.
int (*end_threads)() = nullptr;
std::atomic<bool> loaded{false};
// The drop-in BLAS (libstreamgemm-blas.so) in front of the process's BLAS: switches it off for the calling thread, or
// on, and returns what it was. NULL: there is none.
std::int32_t (*enable_dispatcher)(std::int32_t) = nullptr;
bool memory_is_limited = false;  // set before `loaded`

// Memory that OpenBLAS maps for each of its threads and each concurrent call (memory.c: BUFFER_SIZE of x86-64, and a
// page).
constexpr std::size_t buffer_bytes = (std::size_t{32} << 22) + 4096;

// Whether `count` more buffers of that size can be mapped, and as many stacks of new threads.
bool can_map(int count, std::size_t bytes) noexcept {
  struct mapping {
    mapping *next;
  } *first = nullptr;
  bool all = true;
  for (int i = 0; i < count && all; ++i) {
    void *const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    all = memory != MAP_FAILED;
    if (all) first = new (memory) mapping{first};
  }
  while (first != nullptr) {
    mapping *const next = first->next;
    munmap(first, bytes);
    first = next;
  }
  return all;
}

// Whether `count` more threads can be started, with stacks of the default size.
bool can_start_threads(int count) noexcept {
  static std::atomic<std::uint32_t> closing;
  closing.store(0);
  pthread_t threads[1024];
  int started = 0;
  for (; started < count; ++started)
    if (pthread_create(
            &threads[started], nullptr,
            [](void *) -> void * {
              while (closing.load() == 0) futex_wait(closing, 0);
              return nullptr;
            },
            nullptr) != 0)
      break;
  closing.store(1);
  futex_wake_all(closing);
  for (int i = 0; i < started; ++i) pthread_join(threads[i], nullptr);
  return started == count;
}

// Maximum number of threads that OpenBLAS starts when loaded.
int threads_at_start() noexcept {
  int count = std::min(get_nprocs(), 1024);
  for (const char *name : {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char *const value = std::getenv(name);
    const int wanted = value == nullptr ? 0 : std::atoi(value);
    if (wanted > 0) return std::min(count, wanted) - 1;
  }
  return count - 1;
}

bool is_limited(int resource) noexcept {
  rlimit limit;
  return getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

template <class Function>
bool find(void *library, const char *name, Function &out) noexcept {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

// The CPU BLAS behind the drop-in BLAS that `scope` has; NULL: neither, or the functions by their names are the CPU
// BLAS's. By their names they would lead back to the drop-in BLAS, and from there to this device.
void *behind_dispatcher(void *scope) noexcept {
  void *(*cpu_function)(const char *) = nullptr;
  Dl_info owner;
  if (!find(scope, "sg_blas_cpu_function", cpu_function)) return nullptr;
  void *const function = cpu_function("cblas_sgemm");
  return function != nullptr && dladdr(function, &owner) != 0
             ? dlopen(owner.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)
             : nullptr;
}

template <class Function>
bool find_after(const char *prefix, void *library, const char *name, Function &out) noexcept {
  char whole[64];
  std::snprintf(whole, sizeof whole, "%s%s", prefix, name);
  return find(library, whole, out);
}

bool find_functions(void *library) noexcept {
  // All names of PyPI's OpenBLAS begin so, which keeps them apart from any other BLAS in the process.
  const char *const prefix = dlsym(library, "scipy_cblas_sgemm") != nullptr ? "scipy_" : "";
  find_after(prefix, library, "openblas_get_num_threads", functions.get_num_threads);
  find_after(prefix, library, "openblas_set_num_threads", functions.set_num_threads);
  find_after(prefix, library, "blas_thread_shutdown_", end_threads);
#define SG_CBLAS_FIND(NAME) find_after(prefix, library, "cblas_" #NAME, functions.NAME) &&
  return SG_CBLAS_FUNCTIONS(SG_CBLAS_FIND) true;
#undef SG_CBLAS_FIND
}

// Each of OpenBLAS's threads maps its buffer when it starts, and retries for ever: it must succeed before this process
// allocates more. All have their buffers once they have worked on a GEMM together.
void wait_for_buffers_of_threads(int threads) noexcept {
  if (threads <= 0) return;
  const int n = std::max(128, 32 * (threads + 1));
  auto *const zeros = static_cast<double *>(std::calloc(std::size_t(n) * std::size_t(n), 2 * sizeof(double)));
  if (zeros == nullptr) return;
  functions.dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, zeros, n, zeros, n, 0, zeros + n * n, n);
  std::free(zeros);
}

sg_status open_library(const char *name) noexcept {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  const bool was_loaded = library != nullptr;
  const int threads = threads_at_start();
  if (!was_loaded) {
    if (memory_is_limited && !can_map(threads + 2, buffer_bytes)) return SG_STATUS_OUT_OF_MEMORY;
    if (!can_start_threads(threads)) return SG_STATUS_OUT_OF_MEMORY;
  }
  find(RTLD_DEFAULT, "sg_blas_enable", enable_dispatcher);
  if (void *const cpu_blas = behind_dispatcher(RTLD_DEFAULT); cpu_blas != nullptr)
    library = cpu_blas;
  else if (!was_loaded)
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr && dlsym(library, "sg_blas_version") != nullptr) library = behind_dispatcher(library);
  // Never closed: its threads and handlers remain.
  if (library == nullptr || !find_functions(library)) return SG_STATUS_OK;
  if (memory_is_limited && !was_loaded) wait_for_buffers_of_threads(threads);
  loaded.store(true, std::memory_order_release);
  return SG_STATUS_OK;
}

#ifdef SG_CPU_CBLAS_OF_WHEEL
// OpenBLAS has as many threads as the thread that loads it has processors: here one, which is that thread itself. So it
// starts none, which a child of a fork in progress would wait for at its exit. NULL: not loaded.
void *open_with_one_thread(const char *name) noexcept {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return nullptr;  // more processors than cpu_set_t has
  int cpu = 0;
  while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &allowed)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  struct request {
    const char *name;
    void *library;
  } opened{name, nullptr};
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0) return nullptr;
  const bool started = pthread_attr_setaffinity_np(&attributes, sizeof one, &one) == 0 &&
                       pthread_create(
                           &thread, &attributes,
                           [](void *argument) -> void * {
                             auto *const what = static_cast<request *>(argument);
                             what->library = dlopen(what->name, RTLD_NOW | RTLD_LOCAL);
                             return nullptr;
                           },
                           &opened) == 0;
  pthread_attr_destroy(&attributes);
  if (started) pthread_join(thread, nullptr);
  return opened.library;
}

// With one thread, unless another package sets more. Its names have a prefix, so that no drop-in BLAS is in front.
sg_status open_own(const char *path) noexcept {
  if (memory_is_limited && !can_map(2, buffer_bytes)) return SG_STATUS_OUT_OF_MEMORY;
  if (!can_start_threads(1)) return SG_STATUS_OUT_OF_MEMORY;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);  // by another package, which has set its threads
  if (library == nullptr) library = open_with_one_thread(path);
  if (library == nullptr || !find_functions(library)) return SG_STATUS_OK;
  loaded.store(true, std::memory_order_release);
  return SG_STATUS_OK;
}

// The OpenBLAS that wheels depend on (PyPI: scipy-openblas32), beside the Python package that this code is in.
bool find_beside(char (&path)[PATH_MAX]) noexcept {
  Dl_info self;
  if (dladdr(reinterpret_cast<void *>(&load_cblas), &self) == 0 || self.dli_fname[0] != '/') return false;
  const char *const slash = std::strrchr(self.dli_fname, '/');
  if (slash == nullptr) return false;
  const int folder = static_cast<int>(slash - self.dli_fname);
  const int length =
      std::snprintf(path, sizeof path, "%.*s/../scipy_openblas32/lib/libscipy_openblas.so", folder, self.dli_fname);
  return length < static_cast<int>(sizeof path) && access(path, R_OK) == 0;
}
#endif

sg_status open_first() noexcept {
  constexpr const char *names[] = {SG_CPU_CBLAS_NAMES};
  sg_status status = SG_STATUS_OK;
#ifdef SG_CPU_CBLAS_OF_WHEEL
  char beside[PATH_MAX];
  if (find_beside(beside)) status = open_own(beside);
#endif
  for (const char *name : names)
    if (status == SG_STATUS_OK && !loaded.load()) status = open_library(name);
  return status;
}

// Number of calls that rely on one thread, and the application's thread count before the first of them.
std::mutex threads_lock;
int callers = 0, threads_before = 1;

// Concurrent calls, and OpenBLAS's buffers mapped by now. Not counted if memory is not limited.
std::atomic<int> calls{0};
std::mutex buffers_lock;
std::atomic<int> buffers{0};

// A fork waits for calls, with a time limit.
void drop_threads_after_fork() {
  new (&threads_lock) std::mutex;
  new (&buffers_lock) std::mutex;
  callers = 0;
  calls.store(0);
}

}  // namespace

sg_status load_cblas() noexcept {
  {
    const std::lock_guard lock(fork_lock());  // so that a child does not get a half-loaded library
    if (loaded.load()) return SG_STATUS_OK;
    memory_is_limited = is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA);
    const sg_status status = open_first();
    if (status != SG_STATUS_OK || !loaded.load()) return status;
    if (end_threads != nullptr) call_before_each_fork([]() noexcept { end_threads(); });
  }
  return pthread_atfork(nullptr, nullptr, drop_threads_after_fork) == 0 ? SG_STATUS_OK : SG_STATUS_OUT_OF_MEMORY;
}

const cblas_library *cblas() noexcept { return loaded.load(std::memory_order_acquire) ? &functions : nullptr; }

cblas_call::cblas_call(double work) noexcept
    // The minimum work for which OpenBLAS uses several threads (interface/zgemv.c; gemm.c and gemv.c have larger
    // limits).
    : was_enabled_(enable_dispatcher == nullptr ? 0 : enable_dispatcher(0)),
      sets_threads_(work >= 4096 && functions.set_num_threads != nullptr && functions.get_num_threads != nullptr) {
  if (sets_threads_) {
    const std::lock_guard lock(threads_lock);
    if (callers++ == 0) {
      threads_before = functions.get_num_threads();
      if (threads_before != 1) functions.set_num_threads(1);
    }
  }
  if (!memory_is_limited) return;
  counted_ = true;
  const int now = calls.fetch_add(1) + 1;
  if (now <= buffers.load()) return;
  const std::lock_guard lock(buffers_lock);
  if (now <= buffers.load()) return;
  if (can_map(now - buffers.load(), buffer_bytes))
    buffers.store(now);
  else
    status_ = SG_STATUS_OUT_OF_MEMORY;
}

cblas_call::~cblas_call() {
  if (enable_dispatcher != nullptr) enable_dispatcher(was_enabled_);
  if (counted_) calls.fetch_sub(1);
  if (!sets_threads_) return;
  const std::lock_guard lock(threads_lock);
  // If the application has set another number meanwhile, that stays.
  if (--callers == 0 && threads_before != 1 && functions.get_num_threads() == 1)
    functions.set_num_threads(threads_before);
}

}  // namespace sg::cpu
