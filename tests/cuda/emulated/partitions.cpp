// SPDX-License-Identifier: Apache-2.0
// Green contexts. Groups of two multiprocessors can be reserved, except for the last four multiprocessors, which remain
// as on a GPU whose clusters are uneven.
#include "partitions.hpp"

#include <cuda.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpu.hpp"
#include "state.hpp"

namespace emulated {

namespace {

constexpr unsigned group_size = 2, group_count = (multiprocessors - 4) / group_size;

[[noreturn]] void give_up(const char *why) {
  std::fprintf(stderr, "%s\n", why);
  std::abort();
}

CUresult status_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return CUDA_SUCCESS;
    case cudaErrorMemoryAllocation: return CUDA_ERROR_OUT_OF_MEMORY;
    default: return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
}

CUdevResource resource_of(unsigned groups, unsigned units) {
  CUdevResource made{};
  made.type = CU_DEV_RESOURCE_TYPE_SM;
  made.sm = {units, group_size, group_size};
  std::memcpy(made._internal_padding, &groups, sizeof groups);
  return made;
}

CUresult get_resource(CUdevice, CUdevResource *out, CUdevResourceType type) {
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *out = resource_of(0, multiprocessors);
  return status_of(enter(call::anywhere));
}

CUresult split(CUdevResource *out, unsigned *count, const CUdevResource *from, CUdevResource *rest, unsigned flags,
               unsigned least) {
  if (from->sm.smCount != multiprocessors || flags != 0 || least != group_size) return CUDA_ERROR_INVALID_VALUE;
  *count = std::min(*count, group_count);
  for (unsigned i = 0; i < *count; ++i) out[i] = resource_of(1u << i, group_size);
  *rest = resource_of(0, multiprocessors - *count * group_size);
  return status_of(enter(call::anywhere));
}

// The groups themselves, for a pointer.
CUresult describe(CUdevResourceDesc *out, CUdevResource *held, unsigned count) {
  std::uintptr_t groups = 0;
  for (unsigned i = 0; i < count; ++i) {
    unsigned group = 0;
    std::memcpy(&group, held[i]._internal_padding, sizeof group);
    if (group == 0 || (groups & group) != 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    groups |= group;
  }
  *out = reinterpret_cast<CUdevResourceDesc>(groups);
  return status_of(enter(call::anywhere));
}

std::atomic<std::uintptr_t> g_held{0};
std::atomic<long> g_commands{0};

CUresult create_green_context(CUgreenCtx *out, CUdevResourceDesc groups, CUdevice, unsigned flags) {
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  if (const cudaError_t error = enter(call::allocation)) return status_of(error);
  const auto wanted = reinterpret_cast<std::uintptr_t>(groups);
  if ((g_held.fetch_or(wanted) & wanted) != 0) give_up("two partitions have a multiprocessor in common");
  *out = new CUgreenCtx_st{wanted};
  keep(*out);
  return CUDA_SUCCESS;
}

CUresult destroy(CUgreenCtx context) {
  if (const cudaError_t error = enter(call::plain)) return status_of(error);
  if (context->streams.load() != 0) give_up("a partition is destroyed before its streams");
  g_held.fetch_and(~context->groups);
  drop(context);
  delete context;
  return CUDA_SUCCESS;
}

CUresult create_stream(CUstream *out, CUgreenCtx context, unsigned flags, int priority) {
  if (flags != CU_STREAM_NON_BLOCKING || priority > 0 || priority < -5) return CUDA_ERROR_INVALID_VALUE;
  const cudaError_t error = create_stream_within(context, out);
  if (error == cudaSuccess) ++context->streams;
  return status_of(error);
}

}  // namespace

void command_within(const CUgreenCtx_st *context) {
  if (context != nullptr) g_commands.fetch_add(1, std::memory_order_relaxed);
}

void lose_partitions() { g_held.store(0); }

const std::map<std::string, void *> &partition_functions() {
  static const std::map<std::string, void *> functions = {
      {"cuDeviceGetDevResource", reinterpret_cast<void *>(get_resource)},
      {"cuDevSmResourceSplitByCount", reinterpret_cast<void *>(split)},
      {"cuDevResourceGenerateDesc", reinterpret_cast<void *>(describe)},
      {"cuGreenCtxCreate", reinterpret_cast<void *>(create_green_context)},
      {"cuGreenCtxDestroy", reinterpret_cast<void *>(destroy)},
      {"cuGreenCtxStreamCreate", reinterpret_cast<void *>(create_stream)}};
  return functions;
}

}  // namespace emulated

extern "C" __attribute__((visibility("default"))) long emulated_gpu_commands_within(void) {
  return emulated::g_commands.load();
}
