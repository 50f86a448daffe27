// SPDX-License-Identifier: Apache-2.0
// Calls of functions that the application gives: their statuses and exceptions as statuses of the library.
#pragma once

#include <cxxabi.h>
#include <streamgemm/status.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string_view>

#include "base/error.hpp"

namespace sg {

// Whether it is one that a function may fail with. Others are statuses of a call, or none.
inline bool is_failure(sg_status status) noexcept {
  return status < 0 && std::string_view(name_of(status)) != "SG_STATUS_UNKNOWN";
}

// Calls `function()`, which returns a status: SG_STATUS_OK, a failure, or else SG_STATUS_BACKEND_FAILURE, with a
// message "WHAT returned 77 (...): REASON". `reason()`: the text that the function has left.
template <class Function, class Reason>
sg_status call_application(const char *what, char *message, std::size_t size, Function &&function, Reason &&reason) {
  const auto fail = [&](sg_status status, const char *how, const char *why) {
    std::snprintf(message, size, "%s %s%s%s", what, how, why[0] != '\0' ? ": " : "", why);
    return status;
  };
  try {
    const sg_status status = function();
    if (status == SG_STATUS_OK) return status;
    char returned[64];
    std::snprintf(returned, sizeof returned, "returned %d (%s)", int{status}, name_of(status));
    return fail(is_failure(status) ? status : SG_STATUS_BACKEND_FAILURE, returned, reason());
  } catch (const std::bad_alloc &) {
    return fail(SG_STATUS_OUT_OF_MEMORY, "threw an exception", "out of memory");
  } catch (const std::exception &thrown) {
    return fail(SG_STATUS_BACKEND_FAILURE, "threw an exception", thrown.what());
  }
#ifdef __GLIBCXX__
  catch (const abi::__forced_unwind &) {  // the thread ends
    throw;
  }
#endif
  catch (...) {
    return fail(SG_STATUS_BACKEND_FAILURE, "threw an exception", "");
  }
}

}  // namespace sg
