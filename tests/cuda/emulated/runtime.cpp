// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "faults.h"
#include "gpu.hpp"

#define API extern "C" __attribute__((visibility("default")))

using emulated::call;
using emulated::enqueue;
using emulated::enter;
using emulated::refuse;

namespace {

constexpr std::size_t memory_bytes = std::size_t{8} << 30;
constexpr std::align_val_t alignment{256};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One recording of an event.
class moment {
 public:
  void happen() {
    {
      const std::lock_guard lock(mutex_);
      ns_ = now_ns();
    }
    changed_.notify_all();
  }
  std::int64_t ns() {  // 0: it has not happened
    const std::lock_guard lock(mutex_);
    return ns_;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ns_ != 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t ns_ = 0;
};

struct freeing {
  void operator()(void *memory) const { ::operator delete(memory, alignment); }
};
using block = std::unique_ptr<void, freeing>;

block new_block(std::size_t bytes) {
  block made(::operator new(bytes, alignment, std::nothrow));
  if (made) std::memset(made.get(), 0xa5, std::min<std::size_t>(bytes, 4096));  // nobody may count on zeros
  return made;
}

// Nodes of a graph, and what each comes after. They run in another order than they were captured in, where they may.
struct node_list {
  struct node {
    std::function<void()> work;
    std::set<std::size_t> after;
  };
  std::vector<node> nodes;
  struct sized_block {
    block memory;
    std::size_t bytes;
  };
  std::vector<sized_block> memory;

  bool has(const void *address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return std::any_of(memory.begin(), memory.end(), [&](const sized_block &x) {
      const auto first = reinterpret_cast<std::uintptr_t>(x.memory.get());
      return at >= first && at - first < x.bytes;
    });
  }
  bool leads_to(std::size_t from, const std::set<std::size_t> &ends) const {
    std::set<std::size_t> reached = ends;
    for (std::size_t i = nodes.size(); i-- > 0;)
      if (reached.count(i)) reached.insert(nodes[i].after.begin(), nodes[i].after.end());
    return reached.count(from) != 0;
  }
  // One of those that wait for nothing first, in turn, then always the latest that may run.
  void run(unsigned turn) const {
    std::vector<std::size_t> sources;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].after.empty()) sources.push_back(i);
    std::vector<bool> over(nodes.size());
    const auto may_run = [&](std::size_t i) {
      const auto &after = nodes[i].after;
      return !over[i] && std::all_of(after.begin(), after.end(), [&](std::size_t x) { return over[x]; });
    };
    for (std::size_t left = nodes.size(); left > 0; --left) {
      std::size_t next = left == nodes.size() ? sources[turn % sources.size()] : nodes.size() - 1;
      while (!may_run(next)) --next;
      nodes[next].work();
      over[next] = true;
    }
  }
};

// A capture that goes on: the graph that it makes, and the streams that have joined it.
struct capture {
  bool over = false;
  std::shared_ptr<node_list> into = std::make_shared<node_list>();
  std::vector<CUstream_st *> streams;
};

// How it is broken. Counting orders nothing: the sanitizers are to see the plugin's order.
struct breakage {
  std::atomic<emulated_fault> how{EMULATED_NONE};
  std::atomic<long> left{0}, more{0};
  std::atomic<bool> happened{false}, lost{false};
  std::atomic<int> device{0};  // the how manieth: what was enqueued to a lost one never runs
  std::shared_mutex running;   // shared by commands that run; when the device is lost none does

  void lose() {
    const std::unique_lock none_runs(running);
    lost.store(true);
  }

  bool strikes(emulated_fault kind) {
    if (how.load(std::memory_order_relaxed) != kind) return false;
    const long at = left.fetch_sub(1, std::memory_order_relaxed);
    if (at > 1 || at < 1 - more.load(std::memory_order_relaxed)) return false;
    happened.store(true, std::memory_order_relaxed);
    return true;
  }
};
breakage g_breakage;

// Never destroyed, like all that is shared here: threads outlive exit().
struct object_list {
  std::mutex mutex;
  std::set<void *> all;

  static object_list &only() {
    static object_list *const made = new object_list;
    return *made;
  }
};

thread_local cudaError_t t_latest = cudaSuccess;
// Not a vector: the library may need it at the thread's end, after whose destructors it would be read.
struct context_stack {
  CUcontext all[16];
  int size;
  CUcontext current() const { return size == 0 ? nullptr : all[size - 1]; }
};
thread_local constinit context_stack t_contexts{};
std::atomic<long> g_retained{0};
char g_context;
const auto the_context = reinterpret_cast<CUcontext>(&g_context);

// Allocations of the device and pinned ranges of the host, by their addresses.
struct ranges {
  struct range {
    std::size_t bytes;
    cudaMemoryType type;
  };
  std::mutex mutex;
  std::map<std::uintptr_t, range> all;
  std::size_t device_bytes = 0;

  static ranges &only() {
    static ranges *const made = new ranges;
    return *made;
  }
  // With the lock: that which holds the address, or end().
  std::map<std::uintptr_t, range>::iterator at(const void *address) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    auto found = all.upper_bound(wanted);
    if (found == all.begin()) return all.end();
    --found;
    return wanted - found->first < found->second.bytes ? found : all.end();
  }
  bool add(const void *first, std::size_t bytes, cudaMemoryType type) {
    const std::lock_guard lock(mutex);
    const auto begin = reinterpret_cast<std::uintptr_t>(first);
    if (begin + bytes < begin) return false;
    const auto next = all.lower_bound(begin);
    if (at(first) != all.end() || (next != all.end() && next->first < begin + bytes)) return false;
    if (type == cudaMemoryTypeDevice) {
      if (device_bytes + bytes > memory_bytes) return false;
      device_bytes += bytes;
    }
    all.emplace(begin, range{bytes, type});
    return true;
  }
  // What a lost device knew is gone with it.
  void replace_device() {
    const std::lock_guard lock(mutex);
    for (const auto &[address, x] : all)
      if (x.type == cudaMemoryTypeDevice) freeing()(reinterpret_cast<void *>(address));
    all.clear();
    device_bytes = 0;
  }
  bool remove(const void *first, cudaMemoryType type) {
    const std::lock_guard lock(mutex);
    const auto found = all.find(reinterpret_cast<std::uintptr_t>(first));
    if (found == all.end() || found->second.type != type) return false;
    if (type == cudaMemoryTypeDevice) device_bytes -= found->second.bytes;
    all.erase(found);
    return true;
  }
};

}  // namespace

struct CUmemPoolHandle_st {};

struct CUgraph_st {
  std::shared_ptr<const node_list> nodes;
};
struct CUgraphExec_st {
  std::shared_ptr<const node_list> nodes;
  unsigned launches = 0;  // by one thread at a time
};

struct CUevent_st {
  bool timed;
  std::mutex mutex;
  std::shared_ptr<moment> latest;  // nullptr: it was never recorded
  std::shared_ptr<capture> captured_in;
  std::set<std::size_t> captured_after;
};

struct CUstream_st {
  std::shared_ptr<capture> captured_in;
  std::set<std::size_t> tails;  // in the capture: what the next command comes after
  bool is_origin = false;

  CUstream_st() : thread_([this] { work(); }) {}
  ~CUstream_st() { stop(); }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void put(std::function<void()> command) {
    {
      std::unique_lock lock(mutex_);
      if (closing_) {  // its device was lost
        lock.unlock();
        return command();
      }
      commands_.push_back(std::move(command));
      ++put_;
    }
    changed_.notify_all();
  }
  void synchronize() {
    std::unique_lock lock(mutex_);
    const auto all = put_;
    changed_.wait(lock, [&] { return done_ >= all; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return closing_ || !commands_.empty(); });
      if (commands_.empty()) return;
      const std::function<void()> next = std::move(commands_.front());
      commands_.pop_front();
      lock.unlock();
      next();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> commands_;
  std::uint64_t put_ = 0, done_ = 0;
  bool closing_ = false;
  std::thread thread_;
};

namespace {
// With the object list's lock.
std::set<CUstream_st *> &streams_of_device() {
  static auto *const made = new std::set<CUstream_st *>;
  return *made;
}
}  // namespace

namespace emulated {

cudaError_t refuse(cudaError_t error) noexcept { return t_latest = error; }

cudaError_t enter(call kind) noexcept {
  if (kind != call::anywhere && (t_contexts.current() != the_context || g_retained.load() == 0))
    return refuse(cudaErrorDeviceUninitialized);
  if (g_breakage.strikes(EMULATED_LOST_AT_CALL)) g_breakage.lose();
  if (g_breakage.lost.load()) return refuse(cudaErrorIllegalAddress);
  if (kind == call::allocation && g_breakage.strikes(EMULATED_NO_MEMORY)) return refuse(cudaErrorMemoryAllocation);
  if (kind == call::command && g_breakage.strikes(EMULATED_NO_LAUNCH)) return refuse(cudaErrorLaunchOutOfResources);
  return cudaSuccess;
}

void keep(void *object) {
  const std::lock_guard lock(object_list::only().mutex);
  object_list::only().all.insert(object);
}
void drop(void *object) {
  const std::lock_guard lock(object_list::only().mutex);
  if (object_list::only().all.erase(object) == 1) return;
  std::fprintf(stderr, "an object of CUDA's is destroyed that is not there\n");
  std::abort();
}

cudaError_t reach(cudaStream_t in, std::initializer_list<const void *> memory) {
  const auto known = [&](const void *address) {
    if (address == nullptr || (in->captured_in && in->captured_in->into->has(address))) return true;
    const std::lock_guard lock(ranges::only().mutex);
    return ranges::only().at(address) != ranges::only().all.end();
  };
  if (std::all_of(memory.begin(), memory.end(), known)) return cudaSuccess;
  std::fprintf(stderr, "a command uses memory that the emulated GPU does not reach\n");
  g_breakage.lose();
  return refuse(cudaErrorIllegalAddress);
}

cudaError_t enqueue(cudaStream_t in, std::function<void()> work) {
  auto guarded = [work = std::move(work), device = g_breakage.device.load()] {
    if (g_breakage.strikes(EMULATED_LOST)) g_breakage.lose();
    const std::shared_lock runs(g_breakage.running);
    if (device == g_breakage.device.load() && !g_breakage.lost.load()) work();
  };
  if (in->captured_in) {
    auto &nodes = in->captured_in->into->nodes;
    nodes.push_back({std::move(guarded), std::exchange(in->tails, {})});
    in->tails.insert(nodes.size() - 1);
  } else {
    in->put(std::move(guarded));
  }
  return cudaSuccess;
}

}  // namespace emulated

// --- how it is broken ---

API void emulated_gpu_break(emulated_fault how, long nth, long more) {
  g_breakage.how.store(EMULATED_NONE);
  g_breakage.left.store(nth);
  g_breakage.more.store(more);
  g_breakage.happened.store(false);
  if (g_breakage.lost) {
    {
      const std::unique_lock none_runs(g_breakage.running);
      ++g_breakage.device;
      ranges::only().replace_device();
    }
    std::set<CUstream_st *> streams;
    {
      const std::lock_guard lock(object_list::only().mutex);
      streams.swap(streams_of_device());
    }
    for (CUstream_st *each : streams) each->stop();
  }
  g_breakage.lost.store(false);
  g_breakage.how.store(how);
}
API int emulated_gpu_is_broken(void) { return g_breakage.happened.load(); }
API long emulated_gpu_objects(void) {
  const std::scoped_lock lock(object_list::only().mutex, ranges::only().mutex);
  return static_cast<long>(object_list::only().all.size() + ranges::only().all.size());
}

// --- the driver ---

namespace {

CUresult retain(CUcontext *out, CUdevice) {
  ++g_retained;
  *out = the_context;
  return CUDA_SUCCESS;
}
CUresult release(CUdevice) { return --g_retained >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }
CUresult get_current(CUcontext *out) {
  *out = t_contexts.current();
  return CUDA_SUCCESS;
}
CUresult push(CUcontext context) {
  if (t_contexts.size == int(std::size(t_contexts.all))) return CUDA_ERROR_OUT_OF_MEMORY;
  t_contexts.all[t_contexts.size++] = context;
  return CUDA_SUCCESS;
}
CUresult pop(CUcontext *out) {
  if (t_contexts.size == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *out = t_contexts.all[--t_contexts.size];
  return CUDA_SUCCESS;
}
CUresult exchange_capture_mode(CUstreamCaptureMode *) { return CUDA_SUCCESS; }  // no capture forbids anything here

}  // namespace

API cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **address, unsigned, unsigned long long,
                                                 cudaDriverEntryPointQueryResult *answer) {
  static const std::map<std::string, void *> functions = {
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void *>(retain)},
      {"cuDevicePrimaryCtxRelease", reinterpret_cast<void *>(release)},
      {"cuCtxGetCurrent", reinterpret_cast<void *>(get_current)},
      {"cuCtxPushCurrent", reinterpret_cast<void *>(push)},
      {"cuCtxPopCurrent", reinterpret_cast<void *>(pop)},
      {"cuThreadExchangeStreamCaptureMode", reinterpret_cast<void *>(exchange_capture_mode)}};
  const auto found = functions.find(name);
  *address = found == functions.end() ? nullptr : found->second;
  *answer = found == functions.end() ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

// --- the device ---

API cudaError_t cudaGetLastError(void) { return std::exchange(t_latest, cudaSuccess); }

API const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorLaunchOutOfResources: return "too many resources requested for launch";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    default: {
      thread_local char text[40];
      std::snprintf(text, sizeof text, "emulated CUDA error %d", static_cast<int>(error));
      return text;
    }
  }
}

API cudaError_t cudaDriverGetVersion(int *out) {
  *out = CUDART_VERSION;
  return cudaSuccess;
}
API cudaError_t cudaGetDeviceCount(int *out) {
  *out = 1;
  return cudaSuccess;
}

API cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device) {
  if (const cudaError_t error = enter(call::anywhere)) return error;
  if (device != 0) return refuse(cudaErrorInvalidDevice);
  *out = {};
  std::snprintf(out->name, sizeof out->name, "an emulated GPU");
  out->totalGlobalMem = memory_bytes;
  out->major = 9;
  out->multiProcessorCount = 16;
  out->asyncEngineCount = 3;
  out->memoryBusWidth = 5120;
  out->memPitch = 2147483647;
  out->pciDomainID = 0xffff;  // there is no such device below /sys
  return cudaSuccess;
}

API cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr name, int) {
  *out = name == cudaDevAttrClockRate ? 1000000 : name == cudaDevAttrMemoryClockRate ? 2000000 : 0;
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int) {
  std::snprintf(out, static_cast<std::size_t>(size), "ffff:00:00.0");
  return cudaSuccess;
}
API cudaError_t cudaDeviceCanAccessPeer(int *out, int, int) {
  *out = 0;
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

// --- streams ---

namespace {

cudaError_t create(cudaStream_t *out) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  *out = new CUstream_st;
  emulated::keep(*out);
  const std::lock_guard lock(object_list::only().mutex);
  streams_of_device().insert(*out);
  return cudaSuccess;
}

}  // namespace

// Flags of 0 would make a stream that waits for the legacy default stream, and it for that one.
API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  return flags == cudaStreamNonBlocking ? create(out) : refuse(cudaErrorInvalidValue);
}
API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
  return flags == cudaStreamNonBlocking && priority <= 0 && priority >= -5 ? create(out)
                                                                           : refuse(cudaErrorInvalidValue);
}

API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (const cudaError_t error = enter(call::plain)) return error;
  {
    const std::lock_guard lock(object_list::only().mutex);
    streams_of_device().erase(stream);
  }
  emulated::drop(stream);
  delete stream;
  return cudaSuccess;
}

API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = enter(call::plain)) return error;
  if (stream->captured_in) return refuse(cudaErrorStreamCaptureUnsupported);
  stream->synchronize();
  return enter(call::plain);
}

API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = enter(call::command)) return error;
  const std::lock_guard lock(event->mutex);
  if (event->captured_in && event->captured_in->over) return refuse(cudaErrorCapturedEvent);
  if (event->captured_in) {
    if (!stream->captured_in) {
      stream->captured_in = event->captured_in;
      stream->captured_in->streams.push_back(stream);
    }
    if (stream->captured_in != event->captured_in) return refuse(cudaErrorStreamCaptureMerge);
    stream->tails.insert(event->captured_after.begin(), event->captured_after.end());
    return cudaSuccess;
  }
  if (stream->captured_in) return refuse(cudaErrorStreamCaptureIsolation);
  if (event->latest) stream->put([what = event->latest] { what->wait(); });
  return cudaSuccess;
}

// --- events ---

API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  *out = new CUevent_st{(flags & cudaEventDisableTiming) == 0, {}, nullptr, nullptr, {}};
  emulated::keep(*out);
  return cudaSuccess;
}
API cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, cudaEventDefault); }

API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (const cudaError_t error = enter(call::plain)) return error;
  emulated::drop(event);
  delete event;
  return cudaSuccess;
}

API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = enter(call::command)) return error;
  const std::lock_guard lock(event->mutex);
  event->captured_in = stream->captured_in;
  event->captured_after = stream->tails;
  event->latest = nullptr;
  if (stream->captured_in) return cudaSuccess;
  event->latest = std::make_shared<moment>();
  stream->put([what = event->latest] { what->happen(); });
  return cudaSuccess;
}

namespace {

// The latest recording; an error for what is captured, which has no time.
cudaError_t latest_of(cudaEvent_t event, std::shared_ptr<moment> &out) {
  const std::lock_guard lock(event->mutex);
  if (event->captured_in) return refuse(cudaErrorCapturedEvent);
  out = event->latest;
  return cudaSuccess;
}

}  // namespace

API cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = enter(call::plain)) return error;
  std::shared_ptr<moment> latest;
  if (const cudaError_t error = latest_of(event, latest)) return error;
  return !latest || latest->ns() != 0 ? enter(call::plain) : refuse(cudaErrorNotReady);
}

API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = enter(call::plain)) return error;
  std::shared_ptr<moment> latest;
  if (const cudaError_t error = latest_of(event, latest)) return error;
  if (latest) latest->wait();
  return enter(call::plain);
}

API cudaError_t cudaEventElapsedTime(float *out, cudaEvent_t start, cudaEvent_t end) {
  if (const cudaError_t error = enter(call::plain)) return error;
  std::shared_ptr<moment> from, to;
  if (const cudaError_t error = latest_of(start, from)) return error;
  if (const cudaError_t error = latest_of(end, to)) return error;
  if (!from || !to || !start->timed || !end->timed) return refuse(cudaErrorInvalidResourceHandle);
  if (from->ns() == 0 || to->ns() == 0) return refuse(cudaErrorNotReady);
  *out = static_cast<float>(static_cast<double>(to->ns() - from->ns()) * 1e-6);
  return cudaSuccess;
}

// --- memory ---

API cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const cudaMemPoolProps *) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  *out = new CUmemPoolHandle_st;
  emulated::keep(*out);
  return cudaSuccess;
}
API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  if (const cudaError_t error = enter(call::plain)) return error;
  emulated::drop(pool);
  delete pool;
  return cudaSuccess;
}
API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) { return enter(call::plain); }
API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return enter(call::plain); }

API cudaError_t cudaMemGetInfo(std::size_t *free, std::size_t *total) {
  if (const cudaError_t error = enter(call::plain)) return error;
  const std::lock_guard lock(ranges::only().mutex);
  *free = memory_bytes - ranges::only().device_bytes;
  *total = memory_bytes;
  return cudaSuccess;
}
API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *out) {
  if (const cudaError_t error = enter(call::plain)) return error;
  const std::lock_guard lock(ranges::only().mutex);
  *static_cast<std::uint64_t *>(out) = ranges::only().device_bytes;  // reserved is what is used
  return cudaSuccess;
}

API cudaError_t cudaMallocFromPoolAsync(void **out, std::size_t bytes, cudaMemPool_t, cudaStream_t stream) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  if (bytes > memory_bytes) return refuse(cudaErrorMemoryAllocation);
  block memory = new_block(bytes);
  if (!memory) return refuse(cudaErrorMemoryAllocation);
  if (stream->captured_in) {  // it is the graph's
    *out = memory.get();
    stream->captured_in->into->memory.push_back({std::move(memory), bytes});
    return cudaSuccess;
  }
  if (!ranges::only().add(memory.get(), bytes, cudaMemoryTypeDevice)) return refuse(cudaErrorMemoryAllocation);
  *out = memory.release();
  return cudaSuccess;
}

API cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
  if (const cudaError_t error = enter(call::plain)) return error;
  if (stream->captured_in)
    return stream->captured_in->into->has(memory) ? cudaSuccess : refuse(cudaErrorStreamCaptureUnsupported);
  if (!ranges::only().remove(memory, cudaMemoryTypeDevice)) return refuse(cudaErrorInvalidValue);
  stream->put([memory] { freeing()(memory); });
  return cudaSuccess;
}

API cudaError_t cudaHostRegister(void *memory, std::size_t bytes, unsigned) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  return ranges::only().add(memory, bytes, cudaMemoryTypeHost) ? cudaSuccess
                                                               : refuse(cudaErrorHostMemoryAlreadyRegistered);
}
API cudaError_t cudaHostUnregister(void *memory) {
  if (const cudaError_t error = enter(call::plain)) return error;
  return ranges::only().remove(memory, cudaMemoryTypeHost) ? cudaSuccess : refuse(cudaErrorHostMemoryNotRegistered);
}

API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *address) {
  if (const cudaError_t error = enter(call::plain)) return error;
  const std::lock_guard lock(ranges::only().mutex);
  const auto found = ranges::only().at(address);
  const bool known = found != ranges::only().all.end();
  *out = {};
  out->type = known ? found->second.type : cudaMemoryTypeUnregistered;
  out->hostPointer = !known || out->type == cudaMemoryTypeHost ? const_cast<void *>(address) : nullptr;
  out->devicePointer = known ? const_cast<void *>(address) : nullptr;
  return cudaSuccess;
}

// --- copies ---

API cudaError_t cudaMemcpy2DAsync(void *dst, std::size_t dst_pitch, const void *src, std::size_t src_pitch,
                                  std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t in) {
  if (const cudaError_t error = enter(call::command)) return error;
  constexpr std::size_t longest = 2147483647;
  if (width > dst_pitch || width > src_pitch || (height > 1 && (dst_pitch > longest || src_pitch > longest)))
    return refuse(cudaErrorInvalidPitchValue);
  if (kind == cudaMemcpyDeviceToDevice)
    if (const cudaError_t error = emulated::reach(in, {dst, src})) return error;
  return enqueue(in, [=] {
    for (std::size_t i = 0; i < height; ++i)
      std::memcpy(static_cast<char *>(dst) + i * dst_pitch, static_cast<const char *>(src) + i * src_pitch, width);
  });
}
API cudaError_t cudaMemcpyAsync(void *dst, const void *src, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t in) {
  return cudaMemcpy2DAsync(dst, bytes, src, bytes, bytes, 1, kind, in);
}
API cudaError_t cudaMemsetAsync(void *dst, int value, std::size_t bytes, cudaStream_t in) {
  if (const cudaError_t error = enter(call::command)) return error;
  if (const cudaError_t error = emulated::reach(in, {dst})) return error;
  return enqueue(in, [=] { std::memset(dst, value, bytes); });
}

// --- graphs ---

API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (const cudaError_t error = enter(call::plain)) return error;
  if (stream->captured_in) return refuse(cudaErrorIllegalState);
  stream->captured_in = std::make_shared<capture>();
  stream->captured_in->streams.push_back(stream);
  stream->is_origin = true;
  return cudaSuccess;
}

API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
  *out = nullptr;
  if (!stream->captured_in || !stream->is_origin) return refuse(cudaErrorIllegalState);
  const std::shared_ptr<capture> made = stream->captured_in;
  const std::set<std::size_t> ends = stream->tails;
  bool joined = true;
  for (CUstream_st *each : made->streams) {
    for (const std::size_t tail : each->tails) joined = joined && made->into->leads_to(tail, ends);
    each->captured_in = nullptr;
    each->tails.clear();
  }
  stream->is_origin = false;
  made->over = true;
  if (const cudaError_t error = enter(call::plain)) return error;
  if (!joined) return refuse(cudaErrorStreamCaptureUnjoined);
  *out = new CUgraph_st{made->into};
  emulated::keep(*out);
  return cudaSuccess;
}

API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  *out = new CUgraphExec_st{graph->nodes, 0};
  emulated::keep(*out);
  return cudaSuccess;
}
API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (const cudaError_t error = enter(call::plain)) return error;
  emulated::drop(graph);
  delete graph;
  return cudaSuccess;
}
API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  if (const cudaError_t error = enter(call::plain)) return error;
  emulated::drop(graph);
  delete graph;
  return cudaSuccess;
}
API cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t in) {
  if (const cudaError_t error = enter(call::command)) return error;
  if (in->captured_in) return refuse(cudaErrorStreamCaptureUnsupported);
  in->put([nodes = graph->nodes, turn = graph->launches++] { nodes->run(turn); });
  return cudaSuccess;
}
