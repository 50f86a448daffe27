// SPDX-License-Identifier: Apache-2.0
// The cpu backend when memory runs out: each allocation of a round fails in turn, on whatever thread, and the result is
// a status; afterwards the same round succeeds.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "backends/cpu/cpu_backend.hpp"

namespace {

constexpr sg_backend_command marker = {sizeof marker, SG_BACKEND_MARKER};
constexpr const sg_backend_command *one_marker = &marker;

std::atomic<bool> armed = false;
std::atomic<int> allocations = 0, failing = 0;

// While armed, the failing-th allocation fails, on any thread. Allocations inside oneDNN, libgomp and the dynamic
// loader never fail: oneDNN would crash, and the others end the process by their own policy.
bool fails(const void *caller) {
  if (!armed.load()) return false;
  Dl_info where;
  if (dladdr(caller, &where) != 0 && where.dli_fname != nullptr)
    for (const char *library : {"libgomp", "libdnnl", "ld-linux"})
      if (std::strstr(where.dli_fname, library) != nullptr) return false;
  return ++allocations == failing.load();
}

}  // namespace

extern "C" {
void *__libc_malloc(std::size_t);
void *__libc_calloc(std::size_t, std::size_t);
void *__libc_memalign(std::size_t, std::size_t);

void *malloc(std::size_t bytes) { return fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(bytes); }
void *calloc(std::size_t count, std::size_t bytes) {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, bytes);
}
void *aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void **out, std::size_t alignment, std::size_t bytes) {
  if (fails(__builtin_return_address(0))) return ENOMEM;
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
}

namespace {

const sg_backend_ops &ops = *sg_cpu_backend();

// Passes one status to one waiting thread, without allocating.
struct outcome {
  std::mutex mutex;
  std::condition_variable changed;
  bool notified = false;
  sg_status status = SG_STATUS_OK;

  sg_backend_done done() {
    return {[](void *self, const sg_backend_result *result) {
              auto &own = *static_cast<outcome *>(self);
              const std::lock_guard lock(own.mutex);
              own.notified = true;
              own.status = result->status;
              own.changed.notify_all();
            },
            this};
  }
  sg_status wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return notified; });
    return status;
  }
};

struct round_of_work {
  sg_dtype in, out;
  sg_scalar alpha;
};

constexpr std::int64_t n = 40;

// A stream, an event, memory, a batch by pointers on a new stream: everything that allocates. OK, or the first failure.
sg_status run(sg_backend_device *device, const round_of_work &work) {
  static char a[n * n * 16], b[n * n * 16], c[n * n * 16];
  sg_backend_stream *stream = nullptr;
  sg_backend_event *event = nullptr;
  void *memory = nullptr;
  sg_status status = ops.stream_create(device, 0, &stream);
  if (status != SG_STATUS_OK) return status;
  status = ops.event_create(device, &event);
  if (status == SG_STATUS_OK) {
    status = ops.mem_alloc(device, 5000, &memory);
    const void *array_a[] = {a, a}, *array_b[] = {b, b};
    void *array_c[] = {c};
    sg_backend_gemm gemm = {};
    gemm.header = {sizeof gemm, SG_BACKEND_GEMM};
    gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = n;
    gemm.batch = 1;
    gemm.in_type = work.in, gemm.out_type = work.out, gemm.alpha = work.alpha;
    gemm.a_array = array_a, gemm.b_array = array_b, gemm.c_array = array_c;
    for (int i = 0; status == SG_STATUS_OK && i < 70; ++i)
      status = ops.enqueue(stream, &one_marker, 1, nullptr, {nullptr, nullptr});
    if (status == SG_STATUS_OK) {
      outcome end;
      const sg_backend_command *const one = &gemm.header;
      status = ops.enqueue(stream, &one, 1, nullptr, end.done());
      if (status == SG_STATUS_OK) status = end.wait();
    }
    if (status == SG_STATUS_OK) status = ops.event_record(event, stream);
    ops.mem_free(device, memory);
    ops.event_destroy(event);
  }
  outcome end;
  while (ops.enqueue(stream, &one_marker, 1, nullptr, end.done()) != SG_STATUS_OK) {
  }
  end.wait();
  ops.stream_destroy(stream);
  return status;
}

TEST(cpu_memory_faults, each_failed_allocation_is_a_status) {
  sg_backend_device *device = nullptr;
  char message[SG_BACKEND_MESSAGE_SIZE];
  ASSERT_EQ(ops.device_open(nullptr, "", &device, message), SG_STATUS_OK) << message;
  const round_of_work rounds[] = {{SG_DTYPE_F32, SG_DTYPE_F32, {1, 0}},   {SG_DTYPE_F64, SG_DTYPE_F64, {1, 0}},
                                  {SG_DTYPE_C128, SG_DTYPE_C128, {1, 1}}, {SG_DTYPE_F16, SG_DTYPE_F16, {1, 0}},
                                  {SG_DTYPE_BF16, SG_DTYPE_F32, {1, 0}},  {SG_DTYPE_BF16, SG_DTYPE_BF16, {2, 0}},
                                  {SG_DTYPE_I8, SG_DTYPE_I32, {1, 0}},    {SG_DTYPE_I8, SG_DTYPE_I32, {3, 0}}};
  for (const round_of_work &work : rounds) {
    ASSERT_EQ(run(device, work), SG_STATUS_OK);
    int failed = 0;
    for (int nth = 1;; ++nth) {
      allocations = 0;
      failing = nth;
      armed = true;
      const sg_status status = run(device, work);
      armed = false;
      if (allocations.load() < nth) break;  // the whole round ran without another allocation to fail
      failed += status != SG_STATUS_OK;
      ASSERT_TRUE(status == SG_STATUS_OK || status == SG_STATUS_OUT_OF_MEMORY)
          << "allocation " << nth << ": " << status;
    }
    EXPECT_GE(failed, 5);
    EXPECT_EQ(run(device, work), SG_STATUS_OK);
  }
  ops.device_close(device);
}

}  // namespace
