// SPDX-License-Identifier: Apache-2.0
#include "completions.hpp"

#include <csignal>
#include <new>

#include "current.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "process_end.hpp"

namespace sg::cuda {

sg_status completions::begin() noexcept {
  // The thread inherits the mask: no signal of the process is ever handled on it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, nullptr, main, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return fail(SG_STATUS_OUT_OF_MEMORY, "no thread for a stream: error %d of pthread_create", error);
  started_ = true;
  return SG_STATUS_OK;
}

completions::~completions() {
  if (started_) {
    {
      const std::lock_guard lock(lock_);
      closing_ = true;
    }
    changed_.notify_one();
    pthread_join(thread_, nullptr);
  }
  const process_end::freeing now;
  if (owner_.usable() != SG_STATUS_OK) return;  // lost, or the process exits: nothing of CUDA's is freed
  const current here(owner_.context());
  while (free_ != nullptr) {
    completion *next = free_->next;
    destroy(free_);
    free_ = next;
  }
}

void completions::destroy(completion *x) noexcept {
  if (x->start != nullptr) cudaEventDestroy(x->start);
  if (x->end != nullptr) cudaEventDestroy(x->end);
  delete x;
}

completion *completions::take() noexcept {
  {
    const std::lock_guard lock(lock_);
    if (completion *x = free_) {
      free_ = x->next;
      return x;
    }
  }
  auto *x = new (std::nothrow) completion;
  if (x == nullptr) {
    fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a command");
    return nullptr;
  }
  const unsigned flags = cudaEventBlockingSync | (owner_.timed() ? 0 : cudaEventDisableTiming);
  cudaError_t error = cudaEventCreateWithFlags(&x->end, flags);
  if (error == cudaSuccess && owner_.timed()) error = cudaEventCreateWithFlags(&x->start, cudaEventDefault);
  if (owner_.check(error, "creating an event") == SG_STATUS_OK) return x;
  destroy(x);
  return nullptr;
}

void completions::unused(completion *x) noexcept {
  const std::lock_guard lock(lock_);
  x->next = free_;
  free_ = x;
}

void completions::put(completion *x) noexcept {
  x->next = nullptr;
  {
    const std::lock_guard lock(lock_);
    (first_ != nullptr ? last_->next : first_) = x;
    last_ = x;
  }
  changed_.notify_one();
}

bool completions::idle() noexcept {
  const std::lock_guard lock(lock_);
  return first_ == nullptr && !busy_;
}

void completions::finish() noexcept {
  if (!started_ || pthread_equal(thread_, pthread_self())) return;
  std::unique_lock lock(lock_);
  told_.wait(lock, [this] { return first_ == nullptr && !busy_; });
}

void *completions::main(void *self) {
  auto *own = static_cast<completions *>(self);
  pthread_setname_np(pthread_self(), "streamgemm-cuda");
  const current here(own->owner_.context());
  own->work();
  return nullptr;
}

void completions::work() noexcept {
  std::unique_lock lock(lock_);
  for (;;) {
    changed_.wait(lock, [this] { return first_ != nullptr || closing_; });
    if (first_ == nullptr) return;
    completion *x = first_;
    first_ = x->next;
    busy_ = true;
    lock.unlock();
    tell(*x);
    lock.lock();
    x->next = free_;
    free_ = x;
    busy_ = false;
    if (first_ == nullptr) told_.notify_all();
  }
}

void completions::tell(completion &x) noexcept {
  sg_backend_result result{};
  result.status = owner_.check(cudaEventSynchronize(x.end), "waiting for a command");
  if (result.status != SG_STATUS_OK) {
    result.message = failure_text();
  } else if (owner_.timed()) {
    result.end_ns = owner_.time_of(x.end);
    result.start_ns = x.has_start ? owner_.time_of(x.start) : latest_end_ns_;
    latest_end_ns_ = result.end_ns;
  }
  x.done.fn(x.done.user, &result);
}

}  // namespace sg::cuda
