// SPDX-License-Identifier: Apache-2.0
// The CBLAS library: loaded with the first device, so that a process without devices starts none of its threads; and
// called so that OpenBLAS's thread count stays as the rest of the process has set it.
#pragma once

#include <cblas.h>
#include <streamgemm/backend.h>

#include "backends/cpu/threads/fork_lock.hpp"

namespace sg::cpu {

// Its functions that are used, by type: X(NAME) for cblas_NAME.
#define SG_CBLAS_FUNCTIONS(X) \
  X(sgemm)                    \
  X(dgemm)                    \
  X(cgemm)                    \
  X(zgemm)                    \
  X(sgemv)                    \
  X(dgemv)                    \
  X(cgemv)                    \
  X(zgemv)                    \
  X(strsm)                    \
  X(dtrsm)                    \
  X(ctrsm)                    \
  X(ztrsm)                    \
  X(strmm)                    \
  X(dtrmm)                    \
  X(ctrmm)                    \
  X(ztrmm)                    \
  X(ssymm)                    \
  X(dsymm)                    \
  X(csymm)                    \
  X(zsymm)                    \
  X(chemm)                    \
  X(zhemm)                    \
  X(ssyrk)                    \
  X(dsyrk)                    \
  X(csyrk)                    \
  X(zsyrk)                    \
  X(cherk)                    \
  X(zherk)                    \
  X(ssyr2k)                   \
  X(dsyr2k)                   \
  X(csyr2k)                   \
  X(zsyr2k)                   \
  X(cher2k)                   \
  X(zher2k)

struct cblas_library {
#define SG_CBLAS_MEMBER(NAME) decltype(&::cblas_##NAME) NAME;
  SG_CBLAS_FUNCTIONS(SG_CBLAS_MEMBER)
#undef SG_CBLAS_MEMBER
  int (*get_num_threads)();      // OpenBLAS's; NULL: another implementation
  void (*set_num_threads)(int);  // likewise; NULL, too, where the number is 1 for good
};

// OK: loaded, now or before, or not installed. OUT_OF_MEMORY if OpenBLAS would fail while starting: it terminates the
// process when it cannot start its threads, and spins for ever when it cannot map their buffers.
sg_status load_cblas() noexcept;
// NULL: not loaded. Does not change once load_cblas() has returned OK.
const cblas_library *cblas() noexcept;

// One call of OpenBLAS, with one thread: OpenBLAS's thread count, which is global to the process, is 1 during such
// calls and the application's otherwise. A fork waits for the call's end.
class cblas_call {
 public:
  // `work`: multiply-adds. Small calls use one thread in any case.
  explicit cblas_call(double work) noexcept;
  ~cblas_call();
  cblas_call(const cblas_call &) = delete;
  cblas_call &operator=(const cblas_call &) = delete;

  // OUT_OF_MEMORY: OpenBLAS must not be called, since it may have no buffer for the call.
  sg_status status() const noexcept { return status_; }

 private:
  const fork_waits while_it_runs_;  // OpenBLAS takes locks
  // The drop-in BLAS computes nothing for this thread meanwhile: a CBLAS may call BLAS by its names.
  const std::int32_t was_enabled_;
  bool sets_threads_, counted_ = false;
  sg_status status_ = SG_STATUS_OK;
};

}  // namespace sg::cpu
