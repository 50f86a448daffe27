// SPDX-License-Identifier: Apache-2.0
// Shared by the files that call oneDNN.
#pragma once

#include <cstdlib>
#include <mutex>
#include <new>

#include "backends/cpu/libraries/onednn_library.hpp"
#include "backends/cpu/threads/fork_lock.hpp"
#include "backends/cpu/worker/workspace.hpp"
// Behind the names of the loaded library.
#include <oneapi/dnnl/dnnl.hpp>

namespace sg::cpu {

inline sg_status status_of(dnnl_status_t status) noexcept {
  switch (status) {
    case dnnl_success: return SG_STATUS_OK;
    case dnnl_out_of_memory: return SG_STATUS_OUT_OF_MEMORY;
    case dnnl_unimplemented: return SG_STATUS_UNSUPPORTED;
    default: return SG_STATUS_BACKEND_FAILURE;
  }
}

// Some of these functions crash or abort when out of memory: they are called only if some is left.
inline bool memory_left(std::size_t bytes) noexcept {
  void *probe = std::malloc(bytes);
  std::free(probe);
  return probe != nullptr;
}

// oneDNN asks OpenMP for the thread limit of the calling thread: one, because the cores belong to the streams. libgomp
// allocates that setting and aborts the process if it cannot.
inline bool limit_openmp(workspace &space) noexcept {
  if (space.openmp_limited || onednn_functions.set_num_threads == nullptr) return true;
  if (!memory_left(4096)) return false;
  onednn_functions.set_num_threads(1);
  space.openmp_limited = true;
  return true;
}

// Sets that limit on a thread of the application, and restores the thread's own limit.
class openmp_limit {
 public:
  explicit openmp_limit(workspace &space) noexcept
      : of_caller_(space.of_caller && onednn_functions.set_num_threads != nullptr &&
                   onednn_functions.get_max_threads != nullptr) {
    if (!of_caller_) {
      limited_ = limit_openmp(space);
      return;
    }
    before_ = onednn_functions.get_max_threads();
    if (before_ == 1) return;
    limited_ = memory_left(4096);
    if (limited_) onednn_functions.set_num_threads(1);
  }
  ~openmp_limit() {
    if (of_caller_ && limited_ && before_ != 1) onednn_functions.set_num_threads(before_);
  }
  openmp_limit(const openmp_limit &) = delete;
  openmp_limit &operator=(const openmp_limit &) = delete;

  explicit operator bool() const noexcept { return limited_; }

 private:
  bool of_caller_, limited_ = true;
  int before_ = 1;
};

// Runs `body`, which returns oneDNN's status or throws oneDNN's exceptions.
template <class Body>
sg_status guarded(workspace &space, Body &&body) noexcept {
  const fork_waits while_it_runs;  // oneDNN's first calls initialize under its own locks
  const openmp_limit one_thread(space);
  if (!one_thread) return SG_STATUS_OUT_OF_MEMORY;
  try {
    return status_of(body());
  } catch (const dnnl::error &e) {
    return status_of(e.status);
  } catch (const std::bad_alloc &) {
    return SG_STATUS_OUT_OF_MEMORY;
  } catch (...) {
    return SG_STATUS_BACKEND_FAILURE;
  }
}

// oneDNN's engine for this processor, shared by workers; made by the warm-up. (Out of memory, making one crashes.)
inline const dnnl::engine &engine() {
  static const dnnl::engine shared(dnnl::engine::kind::cpu, 0);
  return shared;
}

// Whether the processor has these instructions and oneDNN may use them (ONEDNN_MAX_CPU_ISA). The values are bit sets.
inline bool has_isa(dnnl_cpu_isa_t wanted) noexcept { return (dnnl_get_effective_cpu_isa() & wanted) == wanted; }

}  // namespace sg::cpu
