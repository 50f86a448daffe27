// SPDX-License-Identifier: Apache-2.0
// Makes a backend's calls for commands. Used by the engine's one thread at a time.
#pragma once

#include <cstddef>

#include "backend/device.hpp"
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

  // A job's copy, or the command `c` of its schedule, into the lane of `f`. `units`: multiprocessors to use; 0: all.
  // Its backend_calls are set to the number of calls and one, which is the caller's. False: a call failed, and the job
  // has failed.
  bool launch(inflight_command &f, const command *c, std::int32_t units) noexcept;
  // A batch as one call: of its members, or of its GEMMs, where it has them already. False: not enqueued, and the
  // callback is not called. Throws std::bad_alloc.
  bool launch(batch &b, sg_backend_done done);
  // A GEMM of the job's schedule as the backend takes it; it has no pointer arrays.
  static sg_backend_gemm gemm_of(const job &whose, std::uint32_t command) noexcept;
  // The callback of what launch() has enqueued; `user` is the inflight_command.
  static void completed(void *user, const sg_backend_result *result);

 private:
  template <class Enqueue>
  bool enqueue(inflight_command &f, std::size_t calls, Enqueue &&enqueue_one) noexcept;
  sg_status launch_scattered(batch &b, sg_backend_done done);
  sg_status launch_each(batch &b, sg_backend_done done);

  const device &device_;
  const sg_backend_ops &ops_;
  backend_commands commands_;
};

}  // namespace sg
