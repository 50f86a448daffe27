// SPDX-License-Identifier: Apache-2.0
// The functions of the driver and the runtime that the plugin calls.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "contexts.hpp"
#include "gpu.hpp"
#include "machine.hpp"
#include "partitions.hpp"
#include "state.hpp"

#define API extern "C" __attribute__((visibility("default")))

using namespace emulated;

namespace {

// Access of each GPU to the memory of others.
struct peer_state {
  std::atomic<unsigned> enabled[most_gpus], in_pools_of[most_gpus];
  std::atomic<bool> drops{false};  // copies between GPUs report success and write nothing
} g_peers;

}  // namespace

// --- the driver ---

namespace {

CUresult retain(CUcontext *out, CUdevice device) {
  ++g_retained[device];
  *out = context_of(device);
  return CUDA_SUCCESS;
}
CUresult release(CUdevice device) { return --g_retained[device] >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }
thread_local int t_delay_ms = 0;
CUresult get_current(CUcontext *out) {
  std::this_thread::sleep_for(std::chrono::milliseconds(std::exchange(t_delay_ms, 0)));
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
CUresult fill(CUdeviceptr to, unsigned value, std::size_t count, CUstream in) {
  auto *const first = reinterpret_cast<unsigned *>(to);
  cudaError_t error = enter(call::command);
  if (error == cudaSuccess) error = reach(in, {first});
  if (error == cudaSuccess) error = enqueue(in, [=] { std::fill_n(first, count, value); });
  return static_cast<CUresult>(error);
}

}  // namespace

API cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **address, unsigned, unsigned long long,
                                                 cudaDriverEntryPointQueryResult *answer) {
  static const std::map<std::string, void *> functions = {
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void *>(retain)},
      {"cuDevicePrimaryCtxRelease", reinterpret_cast<void *>(release)},
      {"cuCtxGetCurrent", reinterpret_cast<void *>(get_current)},
      {"cuCtxPushCurrent", reinterpret_cast<void *>(push)},
      {"cuCtxPopCurrent", reinterpret_cast<void *>(pop)},
      {"cuThreadExchangeStreamCaptureMode", reinterpret_cast<void *>(exchange_capture_mode)},
      {"cuMemsetD32Async", reinterpret_cast<void *>(fill)}};
  *address = nullptr;
  for (const auto *some : {&functions, &partition_functions()})
    if (const auto found = some->find(name); found != some->end()) *address = found->second;
  *answer = *address ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

namespace {

template <class Object>
cudaError_t destroy(Object *object) {
  if (const cudaError_t error = enter(call::plain)) return error;
  drop(object);
  delete object;
  return cudaSuccess;
}

}  // namespace

API void emulated_gpu_delay_thread(int milliseconds) { t_delay_ms = milliseconds; }

// --- the device ---

API cudaError_t cudaGetLastError(void) { return std::exchange(t_latest, cudaSuccess); }

API const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorLaunchOutOfResources: return "too many resources requested for launch";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorMisalignedAddress: return "misaligned address";
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
API cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr name, int) {
  *out = name == cudaDevAttrClockRate ? 1000000 : name == cudaDevAttrMemoryClockRate ? 2000000 : 0;
  return cudaSuccess;
}
API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (const cudaError_t error = enter(call::plain)) return error;
  const int device = current_device();
  if (flags != 0 || !are_linked(device, peer)) return refuse(cudaErrorInvalidValue);
  const unsigned before = g_peers.enabled[device].fetch_or(1u << peer);
  return (before >> peer & 1) != 0 ? refuse(cudaErrorPeerAccessAlreadyEnabled) : cudaSuccess;
}
API cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (const cudaError_t error = enter(call::plain)) return error;
  const unsigned before = g_peers.enabled[current_device()].fetch_and(~(1u << peer));
  return (before >> peer & 1) != 0 ? cudaSuccess : refuse(cudaErrorPeerAccessNotEnabled);
}
API int emulated_gpu_peer_access(int device, int of) {
  return static_cast<int>(g_peers.enabled[device].load() >> of & g_peers.in_pools_of[of].load() >> device & 1);
}
API void emulated_gpu_drop_peer_copies(int drop) { g_peers.drops = drop != 0; }
API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

// --- streams ---

namespace {

cudaError_t create(cudaStream_t *out, CUgreenCtx within = nullptr) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  *out = new CUstream_st;
  (*out)->within = within;
  (*out)->device = current_device();
  keep(*out);
  const std::lock_guard lock(object_list::only().mutex);
  object_list::only().streams.insert(*out);
  return cudaSuccess;
}

}  // namespace

cudaError_t emulated::create_stream_within(CUgreenCtx context, cudaStream_t *out) { return create(out, context); }

// Flags of 0 would create a stream that synchronizes with the legacy default stream.
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
    object_list::only().streams.erase(stream);
  }
  if (stream->within != nullptr) --stream->within->streams;
  drop(stream);
  delete stream;
  return cudaSuccess;
}

API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = enter(call::plain)) return error;
  if (stream->captured_in) return refuse(cudaErrorStreamCaptureUnsupported);
  stream->synchronize();
  return enter(call::plain);
}

API cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t error = enter(call::plain)) return error;
  if (stream->captured_in) return refuse(cudaErrorStreamCaptureUnsupported);
  return stream->is_done() ? enter(call::plain) : refuse(cudaErrorNotReady);
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
  // A repaired device has no stream that waits for it.
  if (event->latest)
    stream->put([what = event->latest, device = g_breakage.device.load()] {
      what->wait([device] { return device == g_breakage.device.load(); });
    });
  return cudaSuccess;
}

// --- events ---

API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  *out = new CUevent_st{(flags & cudaEventDisableTiming) == 0, current_device(), {}, nullptr, nullptr, {}};
  keep(*out);
  return cudaSuccess;
}
API cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, cudaEventDefault); }

API cudaError_t cudaEventDestroy(cudaEvent_t event) { return destroy(event); }

API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = enter(call::command)) return error;
  if (event->device != stream->device) return refuse(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(event->mutex);
  event->captured_in = stream->captured_in;
  event->captured_after = stream->tails;
  event->latest = nullptr;
  if (stream->captured_in) return cudaSuccess;
  event->latest = std::make_shared<moment>();
  stream->put([what = event->latest, on = stream->device] {
    if (!g_breakage.is_mute(on)) what->happen();
  });
  return cudaSuccess;
}

namespace {

// The latest recording; an error for a captured event, which has no time.
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
  if (latest) latest->wait([on = event->device] { return !g_breakage.is_lost(on); });
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

API cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const cudaMemPoolProps *wanted) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  *out = new CUmemPoolHandle_st{wanted->location.id};
  keep(*out);
  return cudaSuccess;
}
API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *all, std::size_t count) {
  if (const cudaError_t error = enter(call::plain)) return error;
  for (std::size_t i = 0; i < count; ++i) {
    int can = 0;
    cudaDeviceCanAccessPeer(&can, all[i].location.id, pool->device);
    if (can == 0) return refuse(cudaErrorInvalidDevice);
    const unsigned bit = 1u << all[i].location.id;
    if (all[i].flags == cudaMemAccessFlagsProtReadWrite)
      g_peers.in_pools_of[pool->device].fetch_or(bit);
    else
      g_peers.in_pools_of[pool->device].fetch_and(~bit);
  }
  return cudaSuccess;
}
API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return destroy(pool); }
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
  *static_cast<std::uint64_t *>(out) = ranges::only().device_bytes;  // all reserved memory is used
  return cudaSuccess;
}

API cudaError_t cudaMallocFromPoolAsync(void **out, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  // A GPU allows it, and maps the memory at each launch: too slow for the plugin.
  if (stream->captured_in) return refuse(cudaErrorStreamCaptureUnsupported);
  if (bytes > memory_bytes) return refuse(cudaErrorMemoryAllocation);
  block memory = new_block(bytes);
  if (!memory) return refuse(cudaErrorMemoryAllocation);
  if (!ranges::only().add(memory.get(), bytes, cudaMemoryTypeDevice, pool->device, true))
    return refuse(cudaErrorMemoryAllocation);
  *out = memory.release();
  return cudaSuccess;
}
API cudaError_t cudaMalloc(void **out, std::size_t bytes) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  block memory = bytes > memory_bytes ? block() : new_block(bytes);
  if (!memory || !ranges::only().add(memory.get(), bytes, cudaMemoryTypeDevice, current_device()))
    return refuse(cudaErrorMemoryAllocation);
  *out = memory.release();
  return cudaSuccess;
}
API cudaError_t cudaFree(void *memory) {
  if (const cudaError_t error = enter(call::plain)) return error;
  if (!ranges::only().remove(memory, cudaMemoryTypeDevice)) return refuse(cudaErrorInvalidValue);
  freeing()(memory);
  return cudaSuccess;
}

API cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
  if (const cudaError_t error = enter(call::plain)) return error;
  if (stream->captured_in) return refuse(cudaErrorStreamCaptureUnsupported);
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

API void *emulated_gpu_peer_memory(std::size_t bytes, int device) {
  void *const memory = std::calloc(1, bytes);
  return ranges::only().add(memory, bytes, cudaMemoryTypeDevice, device) ? memory : nullptr;
}
API void emulated_gpu_free_peer_memory(void *memory) {
  if (ranges::only().remove(memory, cudaMemoryTypeDevice)) std::free(memory);
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
  out->device = known ? found->second.device : 0;
  return cudaSuccess;
}

// --- copies ---

namespace {

bool joins_devices(const void *dst, const void *src) {
  const std::lock_guard lock(ranges::only().mutex);
  const auto to = ranges::only().at(dst), from = ranges::only().at(src), end = ranges::only().all.end();
  return to != end && from != end && to->second.type == cudaMemoryTypeDevice &&
         from->second.type == cudaMemoryTypeDevice && to->second.device != from->second.device;
}

// A pool's memory is another GPU's only if the pool says so; without, the driver copies other memory through the host.
bool is_out_of_reach(const void *memory, int device) {
  const std::lock_guard lock(ranges::only().mutex);
  const auto found = ranges::only().at(memory);
  if (found == ranges::only().all.end() || !found->second.of_pool || found->second.device == device) return false;
  return (g_peers.in_pools_of[found->second.device].load() >> device & 1) == 0;
}

}  // namespace

API cudaError_t cudaMemcpy2DAsync(void *dst, std::size_t dst_pitch, const void *src, std::size_t src_pitch,
                                  std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t in) {
  if (const cudaError_t error = enter(call::command)) return error;
  constexpr std::size_t longest = 2147483647;
  if (width > dst_pitch || width > src_pitch || (height > 1 && (dst_pitch > longest || src_pitch > longest)))
    return refuse(cudaErrorInvalidPitchValue);
  if (kind == cudaMemcpyDeviceToDevice)
    if (const cudaError_t error = reach(in, {dst, src})) return error;
  if (is_out_of_reach(dst, in->device) || is_out_of_reach(src, in->device)) return refuse(cudaErrorInvalidValue);
  if (g_peers.drops && g_peers.enabled[in->device].load() != 0 && joins_devices(dst, src)) return enqueue(in, [] {});
  return enqueue(in, [=] {
    for (std::size_t i = 0; i < height; ++i)
      std::memcpy(static_cast<char *>(dst) + i * dst_pitch, static_cast<const char *>(src) + i * src_pitch, width);
  });
}
API cudaError_t cudaMemcpyAsync(void *dst, const void *src, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t in) {
  return cudaMemcpy2DAsync(dst, bytes, src, bytes, bytes, 1, kind, in);
}
API cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms *what, cudaStream_t in) {
  const auto device_at = [](const void *memory) {
    const std::lock_guard lock(ranges::only().mutex);
    const auto found = ranges::only().at(memory);
    return found == ranges::only().all.end() || found->second.type != cudaMemoryTypeDevice ? -1 : found->second.device;
  };
  if (what->srcDevice != device_at(what->srcPtr.ptr) || what->dstDevice != device_at(what->dstPtr.ptr))
    return refuse(cudaErrorInvalidValue);
  return cudaMemcpy2DAsync(what->dstPtr.ptr, what->dstPtr.pitch, what->srcPtr.ptr, what->srcPtr.pitch,
                           what->extent.width, what->extent.height, cudaMemcpyDefault, in);
}
API cudaError_t cudaMemsetAsync(void *dst, int value, std::size_t bytes, cudaStream_t in) {
  if (const cudaError_t error = enter(call::command)) return error;
  if (const cudaError_t error = reach(in, {dst})) return error;
  return enqueue(in, [=] { std::memset(dst, value, bytes); });
}
API cudaError_t cudaMemset2DAsync(void *dst, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                  cudaStream_t in) {
  if (const cudaError_t error = enter(call::command)) return error;
  if (pitch < width) return refuse(cudaErrorInvalidValue);
  if (const cudaError_t error = reach(in, {dst})) return error;
  return enqueue(in, [=] {
    for (std::size_t row = 0; row < height; ++row) std::memset(static_cast<char *>(dst) + row * pitch, value, width);
  });
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
  keep(*out);
  return cudaSuccess;
}

API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t error = enter(call::allocation)) return error;
  *out = new CUgraphExec_st{graph->nodes, 0};
  keep(*out);
  return cudaSuccess;
}
API cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return destroy(graph); }
API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return destroy(graph); }
API cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t in) {
  if (const cudaError_t error = enter(call::command)) return error;
  if (in->captured_in) return refuse(cudaErrorStreamCaptureUnsupported);
  if ((g_breakage.lost.load() & graph->nodes->devices) != 0) return refuse(g_breakage.error);
  in->put([nodes = graph->nodes, turn = graph->launches++] { nodes->run(turn); });
  return cudaSuccess;
}
