// SPDX-License-Identifier: Apache-2.0
// A GPU stream with its own handles of cuBLAS and cuDNN, and a workspace.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

#include <memory>
#include <vector>

#include "backends/cuda/conv/dnn.hpp"
#include "backends/cuda/device.hpp"
#include "backends/cuda/gemm/matmul.hpp"
#include "backends/cuda/streams/commands.hpp"
#include "backends/cuda/streams/completions.hpp"
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
  // For capturing a graph: notifies of nothing, keeps temporary memory and the pinned sources of pointer copies.
  static sg_status create_for_capture(device &owner, stream **out) noexcept;
  ~stream();
  stream(const stream &) = delete;
  stream &operator=(const stream &) = delete;

  sg_status enqueue(const sg_backend_command &what, sg_backend_done done) noexcept;
  sg_status enqueue(const gemm_list &batch, sg_status *statuses, sg_backend_done done) noexcept;
  sg_status launch(cudaGraphExec_t graph, sg_backend_done done) noexcept;
  sg_status wait(cudaEvent_t event) noexcept;
  sg_status record(cudaEvent_t event) noexcept;
  void finish() noexcept { completions_.finish(); }  // waits until all commands so far are notified
  void poll() noexcept { completions_.poll(); }      // notifies of completed commands

  // For the routines of commands, between submit's begin and end.
  device &owner() const noexcept { return owner_; }
  cudaStream_t native() const noexcept { return native_; }
  bool is_captured() const noexcept { return captured_; }
  // `units`: limit of multiprocessors for its calls; 0: all.
  sg_status blas_handle(std::int32_t units, cublasHandle_t &out) noexcept;
  sg_status dnn_handle(dnn::handle &out) noexcept;
  sg_status take_workspace() noexcept;
  // By cublasLt; CUBLAS_STATUS_NOT_SUPPORTED: it has no such GEMM.
  sg_status run_matmul(const sg_backend_gemm &what, cublasStatus_t &outcome) noexcept;
  // Device memory, valid from here to its release in stream order.
  sg_status acquire(std::uint64_t bytes, void **out) noexcept;
  void release(void *memory) noexcept;
  // Copies `count` pointers to device memory; write(pinned) writes them first.
  template <class Write>
  sg_status upload(std::int64_t count, void *to, Write &&write) noexcept {
    const pointer_room *room = nullptr;
    if (const sg_status status = find_room(count, room)) return status;
    write(const_cast<const void **>(room->memory));
    return copy_pointers(*room, count, to);
  }
  // Device memory for `count` pointers, for the stream's next GEMM only.
  sg_status pointer_memory(std::int64_t count, void **out) noexcept;

  stream *next_of_device = nullptr;

 private:
  stream(device &owner, cudaStream_t native, bool own) noexcept
      : owner_(owner), native_(native), own_(own), completions_(owner, native) {}
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

  // Pinned sources of pointer copies; reusable once the event has happened.
  struct pointer_room {
    void **memory = nullptr;
    std::int64_t capacity = 0;
    cudaEvent_t copied = nullptr;
  };
  sg_status find_room(std::int64_t count, const pointer_room *&out) noexcept;
  // Temporary memory of captured commands, which run in stream order and so may reuse it.
  struct kept_memory {
    void *start;
    std::uint64_t bytes;
    bool in_use;
  };
  sg_status acquire_kept(std::uint64_t bytes, void **out) noexcept;
  sg_status copy_pointers(const pointer_room &from, std::int64_t count, void *to) noexcept;

  device &owner_;
  cudaStream_t native_;
  const bool own_;
  std::unique_ptr<partition> partition_;  // owner of the native stream
  bool listed_ = false;                   // by the device
  bool captured_ = false;                 // into a graph
  completions completions_;
  bool waits_ = false;      // for another stream, before the next command
  char *reason_ = nullptr;  // the reason that GEMMs of the current group failed alone
  cublasHandle_t blas_ = nullptr;
  dnn::handle dnn_ = nullptr;
  std::int32_t units_ = 0;  // of blas_
  matmul_cache matmuls_;
  void *workspace_ = nullptr;
  std::uint64_t workspace_bytes_ = 0;
  void *pointers_ = nullptr;
  std::int64_t pointer_room_ = 0;
  std::vector<pointer_room> rooms_;
  std::vector<kept_memory> kept_;
};

}  // namespace sg::cuda
