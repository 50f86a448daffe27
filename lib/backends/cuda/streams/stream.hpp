// SPDX-License-Identifier: Apache-2.0
// A GPU stream: it enqueues commands, with call resources of its own, and notifies of their completion.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

#include <memory>

#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/streams/commands.hpp"
#include "backends/cuda/streams/completions.hpp"
#include "backends/cuda/streams/device.hpp"
#include "backends/cuda/streams/partition.hpp"

namespace sg::cuda {

class stream {
 public:
  // priority: -1 low, 0 normal, 1 high.
  static sg_status create(device &owner, std::int32_t priority, stream **out) noexcept;
  // On reserved multiprocessors, at most `units`, which is set to their number.
  static sg_status create_on_partition(device &owner, std::int32_t priority, std::int32_t &units,
                                       stream **out) noexcept;
  // Wraps a stream of the caller, which stays the caller's.
  static sg_status wrap(device &owner, cudaStream_t native, stream **out) noexcept;
  ~stream();
  stream(const stream &) = delete;
  stream &operator=(const stream &) = delete;

  sg_status enqueue(const sg_backend_command &what, sg_backend_done done) noexcept;
  sg_status enqueue(const gemm_list &batch, sg_status *statuses, sg_backend_done done) noexcept;
  // `others`: GPUs besides its own on which the graph runs, bit i for ordinal i.
  sg_status launch(cudaGraphExec_t graph, std::uint64_t others, sg_backend_done done) noexcept;
  // Commands enqueued after this run after the event, which was recorded on `on`; `awaits`: other GPUs whose loss may
  // keep it from happening.
  sg_status wait(cudaEvent_t event, const device &on, std::uint64_t awaits) noexcept;
  // GPUs, bit i for ordinal i, whose loss may keep the present commands from completing.
  std::uint64_t awaits() const noexcept { return completions_.awaits(); }
  sg_status status() noexcept { return completions_.status(); }  // SG_STATUS_OK, or it is given up
  sg_status record(cudaEvent_t event) noexcept;
  // Whether all commands so far are notified, but for one that this thread notifies of.
  bool is_at_rest() noexcept { return completions_.is_at_rest(); }
  void poll() noexcept { completions_.poll(); }  // notifies of completed commands

  stream *next_of_device = nullptr;

 private:
  stream(device &owner, cudaStream_t native, bool own) noexcept
      : owner_(owner), native_(native), own_(own), completions_(owner, native), calls_(owner, native, false) {}
  static sg_status start(stream *fresh, stream **out) noexcept;
  static sg_status start_own(device &owner, cudaStream_t native, std::unique_ptr<partition> owner_partition,
                             stream **out) noexcept;
  // Timing of a command's end: exact, by an event, if it is alone in its stream and waits for no other; otherwise by
  // the host's observation, possibly together with the commands behind it.
  enum class timing { none, in_bunch, rough, exact };
  static timing timing_of(const sg_backend_gemm &what, const cudaDeviceProp &facts) noexcept;
  static timing timing_of(const sg_backend_copy &what) noexcept;
  static timing timing_of(const sg_backend_command &what, const cudaDeviceProp &facts) noexcept;
  template <class Enqueue>
  sg_status submit(sg_backend_done done, timing how, Enqueue &&enqueue) noexcept;

  device &owner_;
  cudaStream_t native_;
  const bool own_;
  std::unique_ptr<partition> partition_;  // owner of the native stream
  bool listed_ = false;                   // by the device
  completions completions_;
  bool waits_ = false;      // for another stream, before the next command
  char *reason_ = nullptr;  // the reason that GEMMs of the current group failed alone
  call_resources calls_;
};

}  // namespace sg::cuda
