// SPDX-License-Identifier: Apache-2.0
#include "isolate.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "run.hpp"

namespace sg_test::random_tests {

namespace {

constexpr unsigned most_seconds = 60;

// A fault serialized for a pipe.
struct message {
  char what[512] = "";
  int failed = 0, step = -1;
  std::int64_t item = -1, i = 0, j = 0;
  long double seen[2] = {}, wanted[2] = {}, bound = 0;
};

[[noreturn]] void child(const std::string &device, const test_case &t, int times, int to) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM}) std::signal(signal, SIG_DFL);
  alarm(most_seconds);
  message m;
  try {
    bench on(device.c_str(), t.check_hazards);
    refusals refused;
    for (int i = 0; i < times && !m.failed; ++i) {
      const auto wrong = run(on, t, refused);
      if (!wrong) continue;
      m.failed = 1;
      m.step = wrong->step;
      m.item = wrong->item, m.i = wrong->i, m.j = wrong->j;
      m.seen[0] = wrong->seen.real(), m.seen[1] = wrong->seen.imag();
      m.wanted[0] = wrong->wanted.real(), m.wanted[1] = wrong->wanted.imag();
      m.bound = wrong->bound;
      std::strncpy(m.what, wrong->what.c_str(), sizeof m.what - 1);
    }
  } catch (const std::exception &e) {
    m.failed = 1;
    std::strncpy(m.what, e.what(), sizeof m.what - 1);
  }
  const bool written = write(to, &m, sizeof m) == static_cast<ssize_t>(sizeof m);
  _exit(written ? 0 : 1);
}

}  // namespace

int devices_of(const std::string &device) {
  const pid_t pid = fork();
  if (pid == 0) {
    sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
    options.device = device.c_str();
    sg_context *opened = nullptr;
    std::int32_t count = 0;
    if (sg_context_create(&options, &opened) == SG_STATUS_OK) sg_context_device_count(opened, &count);
    _exit(count);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  const int count = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (count == 0) throw std::runtime_error(device + " cannot be opened");
  return count;
}

std::optional<fault> run_isolated(const std::string &device, const test_case &t, int times) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    child(device, t, times, ends[1]);
  }
  close(ends[1]);
  message m;
  const bool answered = read(ends[0], &m, sizeof m) == static_cast<ssize_t>(sizeof m);
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  fault f;
  if (!answered) {
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    f.what = signal == SIGALRM ? "does not end"
             : signal          ? std::string("crashes: ") + strsignal(signal)
                               : "ends the process";
    return f;
  }
  if (!m.failed) return {};
  f.what = m.what;
  f.step = m.step;
  f.item = m.item, f.i = m.i, f.j = m.j;
  f.seen = number(m.seen[0], m.seen[1]);
  f.wanted = number(m.wanted[0], m.wanted[1]);
  f.bound = m.bound;
  return f;
}

}  // namespace sg_test::random_tests
