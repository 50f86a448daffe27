// SPDX-License-Identifier: Apache-2.0
#include "run/job/completion_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "run/job/job_home.hpp"

namespace sg {

namespace {

// The caller's handle of a job, for the reference that is given; nullptr without memory for it.
sg_job *handle_for_caller(ref<object> of) noexcept {
  try {
    return reinterpret_cast<sg_job *>(static_cast<std::uintptr_t>(make_handle(std::move(of))));
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

}  // namespace

completion_queue::completion_queue(ref<job_home> owner, sg_queue_jobs jobs, bool observes) noexcept
    : object(object_type::queue), owner_(std::move(owner)), jobs_(jobs), observes_(observes) {}

completion_queue::~completion_queue() {
  while (first_) {
    job *gone = first_;
    first_ = gone->next_completion;
    gone->drop_ref();
  }
  if (fd_ >= 0) ::close(fd_);
}

// Keeps the descriptor readable exactly while the queue holds a completion, or is closed.
void completion_queue::show_descriptor() noexcept {
  const bool readable = first_ != nullptr || closed_;
  if (fd_ < 0 || readable == fd_readable_) return;
  const int saved = errno;
  std::uint64_t count = 1;
  const ssize_t done = readable ? write(fd_, &count, sizeof count) : read(fd_, &count, sizeof count);
  if (done == sizeof count) fd_readable_ = readable;
  errno = saved;
}

void completion_queue::signal() noexcept {
  show_descriptor();
  changes_.fetch_add(1, std::memory_order_release);
  if (sleepers_ > 0) futex_wake_all(changes_);
}

void completion_queue::post(ref<job> completed) noexcept {
  const std::lock_guard lock(lock_);
  job *record = completed.release();
  record->next_completion = nullptr;
  (first_ ? last_->next_completion : first_) = record;
  last_ = record;
  signal();
}

sg_status completion_queue::next_batch(const receiver &to, const deadline &until, std::int32_t &count) noexcept {
  std::unique_lock lock(lock_);
  if (!first_ && !closed_ && owner_ && owner_->polls()) {
    lock.unlock();
    owner_->poll_until(
        [&] {
          const std::lock_guard look(lock_);
          return first_ || closed_ || until.passed();
        },
        job_home::short_poll_ns);
    lock.lock();
  }
  while (!first_) {
    if (closed_) return SG_STATUS_CANCELLED;
    if (until.passed()) return SG_STATUS_TIMEOUT;
    const std::uint32_t seen = changes_.load(std::memory_order_relaxed);
    ++sleepers_;
    lock.unlock();
    futex_wait(changes_, seen, until);
    lock.lock();
    --sleepers_;
  }
  job *taken = first_;
  job *last = nullptr;
  for (count = 0; first_ && count < to.capacity; ++count) {
    last = first_;
    first_ = last->next_completion;
  }
  last->next_completion = nullptr;
  show_descriptor();
  lock.unlock();
  auto *at = reinterpret_cast<char *>(to.first);
  for (; taken; at += to.stride) {  // outside the lock: the last reference to a job frees its members
    auto one = ref<job>::adopt(taken);
    taken = one->next_completion;
    one->owner().host_has_seen(one->end_ns());
    if (observes_) one->mark_observed();
    sg_completion completion = {one->tag, nullptr, one->status(), 0, ""};
    copy_text(completion.message, sizeof completion.message, one->message());
    if (jobs_ == SG_QUEUE_JOBS_ALL || (jobs_ == SG_QUEUE_JOBS_FAILED && completion.status != SG_STATUS_OK))
      completion.job = handle_for_caller(std::move(one));
    std::memset(at, 0, to.stride);
    std::memcpy(at, &completion, std::min<std::size_t>(to.stride, sizeof completion));
  }
  return SG_STATUS_OK;
}

void completion_queue::close() noexcept {
  const std::lock_guard lock(lock_);
  closed_ = true;
  signal();
}

int completion_queue::descriptor() {
  const std::lock_guard lock(lock_);
  if (fd_ < 0) {
    fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd_ < 0) throw error(SG_STATUS_BACKEND_FAILURE, "eventfd: %s", std::strerror(errno));
    show_descriptor();
  }
  return fd_;
}

}  // namespace sg
