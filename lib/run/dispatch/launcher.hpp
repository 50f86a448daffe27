// SPDX-License-Identifier: Apache-2.0
// Makes backend calls for commands. Used by one thread at a time.
#pragma once

#include <cstddef>

#include "devices/device.hpp"
#include "ops/backend_commands.hpp"
#include "ops/command.hpp"
#include "run/dispatch/batch.hpp"
#include "run/job/job.hpp"
#include "run/program/inflight_command.hpp"
#include "run/program/program_run.hpp"

namespace sg {

class launcher {
 public:
  explicit launcher(const device &on) noexcept : device_(on), ops_(on.ops()) {}

  // Enqueues a job's copy, or the command `c` of its schedule, in the lane of `f`. `units`: limit of multiprocessors;
  // 0: all. Sets `f.backend_calls` to the number of calls plus one for the caller. False: a call failed, and the job
  // has failed.
  bool launch(inflight_command &f, const command &c, std::int32_t units) noexcept;
  // Enqueues a batch as one call: of its members, or of its GEMMs if they are set. False: not enqueued, and the
  // callback is not called. Throws std::bad_alloc.
  bool launch(batch &b, sg_backend_done done);
  // The backend's form of a GEMM of the job's schedule without pointer arrays.
  static sg_backend_gemm gemm_of(const job &owner, std::uint32_t command) noexcept;
  // Callback of launch(); `user` is the inflight_command.
  static void completed(void *user, const sg_backend_result *result);

 private:
  template <class Enqueue>
  bool enqueue(inflight_command &f, std::size_t calls, Enqueue &&enqueue_one) noexcept;
  void name_peers(const job_home &home) noexcept;  // copies name the machine's devices; the backend has other indices
  sg_status launch_scattered(batch &b, sg_backend_done done);
  sg_status launch_each(batch &b, sg_backend_done done);

  const device &device_;
  const sg_backend_ops &ops_;
  backend_commands commands_;
};

}  // namespace sg
