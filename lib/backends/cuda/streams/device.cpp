// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/streams/device.hpp"

#include <new>
#include <string>
#include <thread>
#include <utility>

#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/process_end.hpp"
#include "backends/cuda/libraries/blas.hpp"
#include "backends/cuda/streams/stream.hpp"

namespace sg::cuda {

sg_status device::open(int ordinal, device **out) noexcept {
  *out = nullptr;
  auto *fresh = new (std::nothrow) device(ordinal);
  if (fresh == nullptr) return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a device");
  const sg_status status = fresh->start();
  if (status == SG_STATUS_OK)
    *out = fresh;
  else
    delete fresh;
  return status;
}

device::~device() {
  const process_end::freeing now;
  if (context() == nullptr || !now.allowed()) {
    executables_.abandon();
    return;
  }
  const current here(context());
  executables_.release();
}

sg_status device::tune() noexcept {
  if (!lt_is_loaded()) return SG_STATUS_OK;  // cuBLAS chooses kernels by itself
  try {
    std::string where = std::string(facts().name) + ", cublasLt " + std::to_string(lt().version());
    for (char &c : where)
      if (c == '\t' || c == '\n') c = ' ';
    tuned_ = std::make_unique<choices>(choices_path(), std::move(where));
    return SG_STATUS_OK;
  } catch (const std::bad_alloc &) {
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for the choices of kernels");
  }
}

void device::add(stream &x) noexcept {
  const std::lock_guard lock(streams_lock_);
  x.next_of_device = streams_;
  streams_ = &x;
}

void device::remove(stream &x) noexcept {
  const std::lock_guard lock(streams_lock_);
  for (stream **link = &streams_; *link != nullptr; link = &(*link)->next_of_device)
    if (*link == &x) {
      *link = x.next_of_device;
      return;
    }
}

namespace {
thread_local const device::enqueuing *innermost = nullptr;  // of this thread, which may be exiting in a call
}

device::enqueuing::enqueuing(device &on) noexcept : on_(on), around_(innermost) {
  innermost = this;
  on.enqueuing_.fetch_add(1);
}

device::enqueuing::~enqueuing() {
  on_.enqueuing_.fetch_sub(1);
  innermost = around_;
}

// The GPU's queue cannot be cancelled: it is completed, and later commands are refused. It waits without the lock: a
// completion that it waits for may create and destroy streams.
void device::drain() noexcept {
  refuse_commands();
  const auto are_at_rest = [this] {
    const std::lock_guard lock(streams_lock_);
    stream *x = streams_;
    while (x != nullptr && x->is_at_rest()) x = x->next_of_device;
    return x == nullptr;
  };
  const auto nap = [] { std::this_thread::sleep_for(std::chrono::microseconds(50)); };
  // A call may hold up exit only for so long: the function of a custom operation may wait for the thread that exits.
  const std::int64_t longest_ns = now_ns() + 5'000'000'000;
  std::int32_t own = 0;
  for (const enqueuing *each = innermost; each != nullptr; each = each->around_) own += &each->on_ == this;
  while (enqueuing_.load() > own && now_ns() < longest_ns) nap();
  while (!are_at_rest()) nap();
}

// Returns at once if a thread polls, this one too: a completion may start work, for which it creates streams, and may
// poll. Streams are added in front of those that are polled.
void device::poll() noexcept {
  polled_ns_.store(now_ns(), std::memory_order_relaxed);
  const std::unique_lock lock(streams_lock_, std::try_to_lock);
  if (!lock.owns_lock() || is_polled_ || usable() != SG_STATUS_OK) return;
  const current here(context());
  is_polled_ = true;
  for (stream *x = streams_; x != nullptr; x = x->next_of_device) x->poll();
  is_polled_ = false;
}

bool device::polled_within(std::chrono::nanoseconds time) const noexcept {
  return now_ns() - polled_ns_.load(std::memory_order_relaxed) < time.count();
}

}  // namespace sg::cuda
