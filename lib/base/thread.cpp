// SPDX-License-Identifier: Apache-2.0
#include "base/thread.hpp"

#include <csignal>
#include <cstring>
#include <initializer_list>
#include <memory>

#include "base/error.hpp"

namespace sg {

namespace {

// Linux's default size: application callbacks run on these threads.
constexpr std::size_t stack_bytes = std::size_t(8) << 20;

struct start {
  const char *name;
  std::function<void()> body;
};

void *main_of_thread(void *given) {
  const std::unique_ptr<start> own(static_cast<start *>(given));
  pthread_setname_np(pthread_self(), own->name);
  own->body();
  return nullptr;
}

}  // namespace

thread::thread(const char *name, std::function<void()> body) {
  auto given = std::make_unique<start>(start{name, std::move(body)});
  sigset_t all, before;
  sigfillset(&all);
  // The application handles faults: a blocked fault signal would terminate the process without its handler.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_attr_t attributes;
  int failed = pthread_attr_init(&attributes);
  if (failed == 0) {
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the new thread inherits the mask
    failed = pthread_create(&handle_, &attributes, main_of_thread, given.get());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
  }
  if (failed != 0) throw error(SG_STATUS_OUT_OF_MEMORY, "a thread could not be started: %s", std::strerror(failed));
  static_cast<void>(given.release());  // owned by the thread
  joinable_ = true;
}

void thread::join() noexcept {
  pthread_join(handle_, nullptr);
  joinable_ = false;
}

void thread::detach() noexcept {
  pthread_detach(handle_);
  joinable_ = false;
}

}  // namespace sg
