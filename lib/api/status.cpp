// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/status.h>
#include <streamgemm/types.h>
#include <streamgemm/version.h>

#include "base/dtype.hpp"
#include "base/error.hpp"

#define SG_TEXT_OF(x) #x
#define SG_TEXT(x) SG_TEXT_OF(x)

const char *sg_status_name(sg_status status) {
  switch (status) {
    case SG_STATUS_OK: return "SG_STATUS_OK";
    case SG_STATUS_NOT_READY: return "SG_STATUS_NOT_READY";
    case SG_STATUS_TIMEOUT: return "SG_STATUS_TIMEOUT";
    case SG_STATUS_INVALID_ARGUMENT: return "SG_STATUS_INVALID_ARGUMENT";
    case SG_STATUS_INVALID_HANDLE: return "SG_STATUS_INVALID_HANDLE";
    case SG_STATUS_OUT_OF_MEMORY: return "SG_STATUS_OUT_OF_MEMORY";
    case SG_STATUS_NO_DEVICE: return "SG_STATUS_NO_DEVICE";
    case SG_STATUS_UNSUPPORTED: return "SG_STATUS_UNSUPPORTED";
    case SG_STATUS_BUSY: return "SG_STATUS_BUSY";
    case SG_STATUS_CANCELLED: return "SG_STATUS_CANCELLED";
    case SG_STATUS_DEADLOCK: return "SG_STATUS_DEADLOCK";
    case SG_STATUS_BACKEND_FAILURE: return "SG_STATUS_BACKEND_FAILURE";
    case SG_STATUS_DEPENDENCY_FAILED: return "SG_STATUS_DEPENDENCY_FAILED";
    case SG_STATUS_SHUTDOWN: return "SG_STATUS_SHUTDOWN";
    case SG_STATUS_INTERNAL: return "SG_STATUS_INTERNAL";
    case SG_STATUS_DEADLINE_EXCEEDED: return "SG_STATUS_DEADLINE_EXCEEDED";
  }
  return "SG_STATUS_UNKNOWN";
}

const char *sg_last_error_message(void) { return sg::last_error(); }

int32_t sg_version(void) { return SG_VERSION; }

const char *sg_version_string(void) {
  return SG_TEXT(SG_VERSION_MAJOR) "." SG_TEXT(SG_VERSION_MINOR) "." SG_TEXT(SG_VERSION_PATCH);
}

int32_t sg_dtype_size(sg_dtype dtype) { return static_cast<int32_t>(sg::size_of(dtype)); }

const char *sg_dtype_name(sg_dtype dtype) { return sg::name_of(dtype); }
