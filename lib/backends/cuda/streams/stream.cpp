// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/streams/stream.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/process_end.hpp"
#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/memory/copy.hpp"

namespace sg::cuda {
namespace {

// CUDA's priority for one of sg_backend_ops.
int native_priority(std::int32_t priority) noexcept {
  int least = 0, greatest = 0;  // the greatest priority is the smallest number
  cudaDeviceGetStreamPriorityRange(&least, &greatest);
  return priority > 0 ? greatest : priority < 0 ? least : (least + greatest) / 2;
}

// Lower bound of a GEMM's time: by an H200's rates, in proportion to the multiprocessors, and the memory rate.
double least_seconds(const sg_backend_gemm &g, const cudaDeviceProp &facts) noexcept {
  const auto rate = [&] {
    switch (g.in_type) {
      case SG_DTYPE_F64:
      case SG_DTYPE_C128: return 6e13;
      case SG_DTYPE_F32:
      case SG_DTYPE_C64: return g.compute == SG_COMPUTE_EXACT ? 5e13 : 4e14;
      case SG_DTYPE_I8: return 1.6e15;
      case SG_DTYPE_F8_E4M3: return g.compute == SG_COMPUTE_F8 ? 1.6e15 : 8e14;
      default: return 8e14;
    }
  };
  const double m = double(g.m), n = double(g.n), k = double(g.k);
  const double flops = (is_complex(g.in_type) ? 8 : 2) * m * n * k;
  const double bytes = double(element_size(g.in_type)) * (m + n) * k + double(element_size(g.out_type)) * m * n;
  return double(g.batch) * std::max(flops / (rate() * facts.multiProcessorCount / 132), bytes / 4.8e12);
}

// Whether some GEMMs of a group failed, all for one reason, which is then the text of the latest failure.
bool fail_alike(const sg_status *statuses, std::int32_t count) noexcept {
  const sg_status *const end = statuses + count;
  const sg_status *const failed = std::find_if(statuses, end, [](sg_status x) { return x != SG_STATUS_OK; });
  return failed != end && failure_text()[0] != '\0' &&
         std::all_of(failed, end, [&](sg_status x) { return x == SG_STATUS_OK || x == *failed; });
}

}  // namespace

sg_status stream::create(device &owner, std::int32_t priority, stream **out) noexcept {
  *out = nullptr;
  if (const sg_status status = owner.usable()) return status;
  const current here(owner.context());
  cudaStream_t native = nullptr;
  if (const sg_status status = owner.check(
          cudaStreamCreateWithPriority(&native, cudaStreamNonBlocking, native_priority(priority)), "creating a stream"))
    return status;
  return start_own(owner, native, nullptr, out);
}

sg_status stream::create_on_partition(device &owner, std::int32_t priority, std::int32_t &units,
                                      stream **out) noexcept {
  *out = nullptr;
  const device::enqueuing begun(owner);
  if (const sg_status status = owner.usable()) return status;
  const current here(owner.context());
  partition *made = nullptr;
  if (const sg_status status = partition::create(owner, units, &made)) return status;
  std::unique_ptr<partition> owner_partition(made);
  units = owner_partition->units();
  cudaStream_t native = nullptr;
  if (const sg_status status = owner_partition->create_stream(native_priority(priority), &native)) return status;
  stream *fresh = nullptr;
  if (const sg_status status = start_own(owner, native, std::move(owner_partition), &fresh)) return status;
  // Creating the handle takes milliseconds, which the first GEMM should not wait for.
  cublasHandle_t handle = nullptr;
  if (const sg_status status = fresh->calls_.blas_handle(units, handle)) {
    delete fresh;
    return status;
  }
  *out = fresh;
  return SG_STATUS_OK;
}

sg_status stream::start_own(device &owner, cudaStream_t native, std::unique_ptr<partition> owner_partition,
                            stream **out) noexcept {
  auto *fresh = new (std::nothrow) stream(owner, native, true);
  if (fresh == nullptr) {
    cudaStreamDestroy(native);
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a stream");
  }
  fresh->partition_ = std::move(owner_partition);
  return start(fresh, out);
}

sg_status stream::wrap(device &owner, cudaStream_t native, stream **out) noexcept {
  *out = nullptr;
  if (const sg_status status = owner.usable()) return status;
  // Commands are enqueued, and their completion is observed, on any thread.
  if (native == cudaStreamPerThread)
    return fail(SG_STATUS_INVALID_ARGUMENT,
                "cuda:%d: native is cudaStreamPerThread, which is another stream in each thread; wrap a stream that "
                "cudaStreamCreate made, or the default stream",
                owner.ordinal());
  auto *fresh = new (std::nothrow) stream(owner, native, false);
  if (fresh == nullptr) return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a stream");
  return start(fresh, out);
}

sg_status stream::start(stream *fresh, stream **out) noexcept {
  const sg_status status = fresh->completions_.begin();
  if (status != SG_STATUS_OK) {
    delete fresh;
    return status;
  }
  fresh->owner_.add(*fresh);
  fresh->listed_ = true;
  *out = fresh;
  return SG_STATUS_OK;
}

stream::~stream() {
  if (listed_) owner_.remove(*this);
  completions_.finish();
  const process_end::freeing now;
  // Lost, given up, or the process exits: no CUDA object is freed.
  if (owner_.usable() != SG_STATUS_OK || completions_.status() != SG_STATUS_OK) {
    static_cast<void>(partition_.release());
    return;
  }
  const current here(owner_.context());
  calls_.free();
  if (own_) cudaStreamDestroy(native_);
  partition_.reset();
}

template <class Enqueue>
sg_status stream::submit(sg_backend_done done, timing how, Enqueue &&enqueue) noexcept {
  const device::enqueuing begun(owner_);
  if (const sg_status status = owner_.usable()) return status;
  if (const sg_status status = completions_.status()) return status;
  const current here(owner_.context());
  completion *pending = nullptr;
  if (done.fn != nullptr) {
    pending = completions_.acquire();
    if (pending == nullptr) return SG_STATUS_OUT_OF_MEMORY;
    pending->done = done;
    if (pending->alone && !waits_) completions_.awaits_none();
    // On a busy stream a command starts when the one before it ends, on an idle one at once; after a wait for another
    // stream, the waiter knows that stream's times. A timed event prevents the next command from starting before this
    // one ends: of copies both ways of 8 MiB each, measured on an H200, two events with each cost 3%, one 1.5%, and an
    // untimed one nothing (no record is kept).
    const bool traced = owner_.times_commands() && how != timing::none;
    if (traced && waits_) completions_.mark_begin(*pending);
    if (traced && how == timing::in_bunch) how = timing::rough;
    pending->timed = traced || (how == timing::exact && pending->alone && !waits_ && owner_.timed());
    pending->marked = how != timing::in_bunch;
    pending->start_ns = now_ns();
  }
  sg_status status = enqueue();
  if (pending != nullptr) pending->reason = std::exchange(reason_, nullptr);
  if (status == SG_STATUS_OK && pending != nullptr && pending->marked)
    status = owner_.check(cudaEventRecord(completions::end_of(*pending), native_), "recording an event");
  if (status == SG_STATUS_OK) {
    if (pending != nullptr) completions_.put(pending);
    if (how != timing::none) waits_ = false;
    return SG_STATUS_OK;
  }
  // A part may be enqueued: it must not outlive the memory, which the caller may free now.
  completions_.settle();
  if (pending != nullptr) completions_.unused(pending);
  return status;
}

// For a long command the 3 us of a timed event are negligible; for others the host's delay of 10 us is acceptable.
constexpr double short_seconds = 30e-6, long_seconds = 300e-6;

// The first of many copies over the link must not delay the next. The copy of a small run, for which the host's delay
// would be most of the time, hardly does; with many short rows the size does not predict the time.
stream::timing stream::timing_of(const sg_backend_copy &what) noexcept {
  constexpr double link_bytes_per_second = 55e9;
  if (is_within_device(what) || (what.height > 1 && !(what.width == what.dst_pitch && what.width == what.src_pitch)))
    return timing::exact;
  const double seconds = double(what.width) * double(what.height) / link_bytes_per_second;
  return seconds >= short_seconds && seconds < long_seconds ? timing::rough : timing::exact;
}

stream::timing stream::timing_of(const sg_backend_gemm &what, const cudaDeviceProp &facts) noexcept {
  const double seconds = least_seconds(what, facts);
  // Pointer arrays may combine GEMMs of many callers, each of which may wait for the completion.
  if (seconds < short_seconds && !has_pointers(what)) return timing::in_bunch;
  return seconds < long_seconds ? timing::rough : timing::exact;
}

stream::timing stream::timing_of(const sg_backend_command &what, const cudaDeviceProp &facts) noexcept {
  switch (what.kind) {
    case SG_BACKEND_MARKER: return timing::none;
    case SG_BACKEND_COPY: return timing_of(as<sg_backend_copy>(what));
    case SG_BACKEND_GEMM: return timing_of(as<sg_backend_gemm>(what), facts);
    default: return timing::exact;
  }
}

sg_status stream::enqueue(const sg_backend_command &what, sg_backend_done done) noexcept {
  return submit(done, timing_of(what, owner_.facts()), [&] { return run_command(calls_, what); });
}

sg_status stream::enqueue(const gemm_list &batch, sg_status *statuses, sg_backend_done done) noexcept {
  return submit(done, timing::rough, [&] {
    failure_text()[0] = '\0';
    const sg_status status = run_group(calls_, batch, statuses);
    if (done.fn != nullptr && status == SG_STATUS_OK && fail_alike(statuses, static_cast<std::int32_t>(batch.size())))
      reason_ = strdup(failure_text());
    return status;
  });
}

sg_status stream::launch(cudaGraphExec_t graph, std::uint64_t others, sg_backend_done done) noexcept {
  return submit(done, timing::exact, [&] {
    completions_.await(others);
    return owner_.check(cudaGraphLaunch(graph, native_), "starting a graph");
  });
}

sg_status stream::wait(cudaEvent_t event, const device &on, std::uint64_t awaits) noexcept {
  if (&on != &owner_ && on.ordinal() < 64) awaits |= std::uint64_t{1} << on.ordinal();
  completions_.await(awaits);
  waits_ = true;
  return submit({nullptr, nullptr}, timing::none,
                [&] { return owner_.check(cudaStreamWaitEvent(native_, event, 0), "waiting for an event"); });
}

sg_status stream::record(cudaEvent_t event) noexcept {
  return submit({nullptr, nullptr}, timing::none,
                [&] { return owner_.check(cudaEventRecord(event, native_), "recording an event"); });
}

}  // namespace sg::cuda
