// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/failure.hpp"

#include <cstdarg>
#include <cstdio>

namespace sg::cuda {

char *failure_text() noexcept {
  thread_local char text[SG_BACKEND_MESSAGE_SIZE];
  return text;
}

sg_status fail(sg_status status, const char *format, ...) noexcept {
  va_list args;
  va_start(args, format);
  std::vsnprintf(failure_text(), SG_BACKEND_MESSAGE_SIZE, format, args);
  va_end(args);
  return status;
}

sg_status status_of(cudaError_t error) noexcept {
  switch (error) {
    case cudaSuccess: return SG_STATUS_OK;
    case cudaErrorMemoryAllocation: return SG_STATUS_OUT_OF_MEMORY;
    case cudaErrorHostMemoryAlreadyRegistered:
    case cudaErrorHostMemoryNotRegistered: return SG_STATUS_INVALID_ARGUMENT;
    case cudaErrorNotSupported: return SG_STATUS_UNSUPPORTED;
    default: return SG_STATUS_BACKEND_FAILURE;
  }
}

cudaError_t state_of(cudaEvent_t event) noexcept {
  const cudaError_t state = cudaEventQuery(event);
  if (state != cudaSuccess) cudaGetLastError();
  return state;
}

cudaError_t state_of(cudaStream_t stream) noexcept {
  const cudaError_t state = cudaStreamQuery(stream);
  if (state != cudaSuccess) cudaGetLastError();
  return state;
}

namespace {
constexpr int contained = 226, tensor_memory_leak = 721;  // not in the headers of CUDA 12.0
}

bool loses_process(cudaError_t error) noexcept {
  return int{error} == contained || error == cudaErrorMpsClientTerminated;
}

bool is_refused_by_mps(cudaError_t error) noexcept {
  return error == cudaErrorMpsConnectionFailed || error == cudaErrorMpsRpcFailure ||
         error == cudaErrorMpsServerNotReady || error == cudaErrorMpsMaxClientsReached ||
         error == cudaErrorMpsMaxConnectionsReached;
}

bool is_sticky(cudaError_t error) noexcept {
  switch (int{error}) {
    case contained:
    case tensor_memory_leak:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorExternalDevice:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsClientTerminated:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

}  // namespace sg::cuda
