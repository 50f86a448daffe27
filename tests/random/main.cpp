// SPDX-License-Identifier: Apache-2.0
// The random differential tester: draws submissions, runs them on one device, or several, and compares with a reference
// in higher precision. It stops at the first fault, shrinks the test while it fails, and prints a program.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <thread>

#include "draw.hpp"
#include "isolate.hpp"
#include "program.hpp"
#include "run.hpp"
#include "seeds.hpp"
#include "shares.hpp"

namespace sg_test::random_tests {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds most_time_of_a_test{120};

struct settings {
  std::string device = "cpu";
  double seconds = 10;
  std::optional<std::uint64_t> seed;
  bool isolated = false, prints = false, shrinks = true;
};

// Progress of the testing process; shared with the process that watches it.
struct progress {
  std::atomic<std::uint64_t> seed;
};

constexpr int found_a_fault = 3;

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: random_test [--device NAME] [--seconds N] [--seed N] [--isolated] [--as-drawn] [--program]\n"
               "  --device    cpu, sim:h200, cuda:0, sim:h200x2, ...\n"
               "  --seconds   how long; SG_SOAK=1 makes it 60 times as long\n"
               "  --seed      of the first test, the next has the next number; by default 1, a fresh one after half of "
               "the time\n"
               "  --isolated  the one test of the seed, in a process of its own; made smaller if it fails\n"
               "  --as-drawn  a test that fails is neither made smaller nor printed as a program\n"
               "  --program   prints the test of the seed as a program\n");
  std::exit(2);
}

settings settings_of(int count, char **arguments) {
  settings s;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const auto value = [&] { return i + 1 < count ? arguments[++i] : (usage(), ""); };
    if (name == "--device")
      s.device = value();
    else if (name == "--seconds")
      s.seconds = std::atof(value());
    else if (name == "--seed")
      s.seed = std::strtoull(value(), nullptr, 10);
    else if (name == "--isolated")
      s.isolated = true;
    else if (name == "--as-drawn")
      s.shrinks = false;
    else if (name == "--program")
      s.prints = true;
    else
      usage();
  }
  if (const char *soak = std::getenv("SG_SOAK"); soak && std::strcmp(soak, "1") == 0) s.seconds *= 60;
  if ((s.isolated || s.prints) && !s.seed) s.seed = fresh_seed();
  return s;
}

std::string text_of(const fault &f) {
  std::string text = f.what;
  if (f.step >= 0) text += " (submission " + std::to_string(f.step) + ")";
  if (f.item < 0) return text;
  char element[256];
  std::snprintf(element, sizeof element,
                ": item %lld, (%lld, %lld): (%.17Lg, %.17Lg) instead of (%.17Lg, %.17Lg), bound %.3Lg",
                static_cast<long long>(f.item), static_cast<long long>(f.i), static_cast<long long>(f.j), f.seen.real(),
                f.seen.imag(), f.wanted.real(), f.wanted.imag(), f.bound);
  return text + element;
}

int in_isolation(const settings &s) {
  test_case t = draw(*s.seed, devices_of(s.device));
  auto wrong = run_isolated(s.device, t);
  if (!wrong) wrong = run_isolated(s.device, t, 30);
  if (!wrong) {
    std::fprintf(stderr, "It does not fail by itself: it needs those before it, or fails now and then.\n");
    return 1;
  }
  t = shrink(s.device, t, *wrong, 60);
  std::fprintf(stderr, "seed %llu on %s: %s\n\n%s", static_cast<unsigned long long>(*s.seed), s.device.c_str(),
               text_of(*wrong).c_str(), program_of(s.device, t, *wrong).c_str());
  return 1;
}

bool is_on_several(const gemm_case &p) {
  std::set<int> devices;
  for (const operand_case *x : {&p.a, &p.b, &p.c, &p.bias})
    if (x->where == memory::device && (x != &p.bias || p.has_bias)) devices.insert(x->device);
  return devices.size() > 1;
}

void count(const test_case &t, int devices, shares &drawn) {
  drawn.note("untracked runs of graphs", t.untracked_run);
  for (const step_case &s : t.steps) {
    if (s.is_copy) continue;
    const gemm_case &p = s.gemm;
    const auto skewed = [&](const operand_case &x) { return p.complex() && x.half_an_element_on; };
    drawn.note("empty extents", p.m == 0 || p.n == 0 || p.k == 0);
    drawn.note("offsets of one component", skewed(p.a) || skewed(p.b) || skewed(p.c) || (p.has_bias && skewed(p.bias)));
    drawn.note("cancelling bias", p.bias_cancels);
    drawn.note("foreign memory", p.reads_foreign());
    drawn.note("results of earlier steps", p.a_from >= 0);
    if (devices > 1) drawn.note("several devices together", s.options.device_count > 1);
    if (devices > 1) drawn.note("memory of several devices", is_on_several(p));
  }
}

int search(const settings &s, progress &at) {
  bench checked(s.device.c_str(), true), unchecked(s.device.c_str(), false);
  refusals refused;
  shares drawn;
  const auto begin = clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(clock::now() - begin).count(); };
  seed_sequence seeds(s.seed);
  std::uint64_t done = 0;
  for (; seconds() < s.seconds; ++done) {
    const std::uint64_t seed = seeds.next(seconds() / s.seconds);
    at.seed = seed;
    const test_case t = draw(seed, checked.devices);
    count(t, checked.devices, drawn);
    const auto wrong = run(t.check_hazards ? checked : unchecked, t, refused);
    if (!wrong) continue;
    std::fprintf(stderr, "\n%s\n", text_of(*wrong).c_str());
    return found_a_fault;
  }
  std::printf("%llu tests in %.1f s", static_cast<unsigned long long>(done), seconds());
  for (const auto &[why, times] : refused) std::printf("; refused, %s: %ld", why.c_str(), times);
  std::printf("\n");
  drawn.print();
  return 0;
}

// How a process exited, or that it hung in one test and was killed; "": success.
std::string ending_of(pid_t process, const progress &at, int &code) {
  std::uint64_t seed = at.seed;
  auto since = clock::now();
  for (int status = 0;;) {
    if (waitpid(process, &status, WNOHANG) == process) {
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
      if (WIFSIGNALED(status)) return std::string("crashes: ") + strsignal(WTERMSIG(status));
      return code == found_a_fault ? "fails" : "";
    }
    if (seed != at.seed) seed = at.seed, since = clock::now();
    if (clock::now() - since > most_time_of_a_test) {
      kill(process, SIGKILL);
      waitpid(process, &status, 0);
      return "does not end";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// The tests run in a process of their own, so that a crash on any thread can be reproduced.
int watch(settings s) {
  std::printf("random tests on %s\n", s.device.c_str());
  std::fflush(stdout);
  void *const shared = mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto &at = *new (shared) progress{{s.seed.value_or(0)}};
  const pid_t process = fork();
  if (process == 0) {
    const int code = search(s, at);
    std::fflush(stdout);
    std::_Exit(code);
  }
  int code = 1;
  const std::string ending = ending_of(process, at, code);
  if (ending.empty()) return code;
  std::fprintf(stderr, "seed %llu on %s %s\n", static_cast<unsigned long long>(at.seed), s.device.c_str(),
               ending.c_str());
  s.seed = at.seed;
  return s.shrinks ? in_isolation(s) : 1;
}

// The program expects the element to have the value seen in the test.
int print(const settings &s) {
  const test_case t = draw(*s.seed, devices_of(s.device));
  bench on(s.device.c_str(), t.check_hazards);
  refusals refused;
  fault sample;
  if (const auto wrong = run(on, t, refused, &sample)) sample = *wrong;
  return std::fputs(program_of(s.device, t, sample).c_str(), stdout) < 0;
}

int main_of(int count, char **arguments) {
  const settings s = settings_of(count, arguments);
  if (s.prints) return print(s);
  return s.isolated ? in_isolation(s) : watch(s);
}

}  // namespace

}  // namespace sg_test::random_tests

int main(int count, char **arguments) {
  try {
    return sg_test::random_tests::main_of(count, arguments);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
