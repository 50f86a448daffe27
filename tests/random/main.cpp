// SPDX-License-Identifier: Apache-2.0
// The random differential tester: draws submissions, runs them on one device and compares with a reference in higher
// precision. It stops at the first fault, makes the test smaller for as long as it fails, and prints a program.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "draw.hpp"
#include "isolate.hpp"
#include "program.hpp"
#include "run.hpp"

namespace sg_test::random_tests {

namespace {

using clock = std::chrono::steady_clock;

constexpr unsigned most_seconds_of_a_test = 120;

struct settings {
  std::string device = "cpu";
  double seconds = 10;
  std::uint64_t seed = 0, count = 0;  // 0 of them: for as long as there is time
  bool has_seed = false, isolated = false, prints = false;
};

// For the signal handler.
char device_name[256], seed_text[32], message[512];

void say(const char *text) {
  if (write(2, text, std::strlen(text)) < 0) _exit(1);
}

// A crash or a hang: another process finds out with less.
void on_fatal_signal(int number) {
  say(message);
  say(number == SIGALRM ? "does not end\n" : "crashes\n");
  const char *const arguments[] = {"random_test", "--device", device_name, "--isolated", "--seed", seed_text, nullptr};
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv("/proc/self/exe", const_cast<char *const *>(arguments));
  _exit(1);
}

void note_current(std::uint64_t seed) {
  std::snprintf(seed_text, sizeof seed_text, "%llu", static_cast<unsigned long long>(seed));
  std::snprintf(message, sizeof message, "\nseed %s on %s ", seed_text, device_name);
  alarm(most_seconds_of_a_test);
}

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: random_test [--device NAME] [--seconds N] [--count N] [--seed N] [--isolated] [--program]\n"
               "  --device    cpu, sim:h200, cuda:0, ...\n"
               "  --seconds   how long; SG_SOAK=1 makes it 60 times as long\n"
               "  --count     how many tests, whatever time that takes\n"
               "  --seed      of the first test; the next one has the next number\n"
               "  --isolated  the one test of the seed, in a process of its own; made smaller if it fails\n"
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
    else if (name == "--count")
      s.count = std::strtoull(value(), nullptr, 10);
    else if (name == "--seed")
      s.seed = std::strtoull(value(), nullptr, 10), s.has_seed = true;
    else if (name == "--isolated")
      s.isolated = true;
    else if (name == "--program")
      s.prints = true;
    else
      usage();
  }
  if (const char *soak = std::getenv("SG_SOAK"); soak && std::strcmp(soak, "1") == 0) s.seconds *= 60;
  if (!s.has_seed) {
    std::random_device fresh;
    s.seed = (static_cast<std::uint64_t>(fresh()) << 32 | fresh()) >> 1;
  }
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
  test_case t = draw(s.seed);
  auto wrong = run_isolated(s.device, t);
  if (!wrong) wrong = run_isolated(s.device, t, 30);
  if (!wrong) {
    std::fprintf(stderr, "It does not fail by itself: it needs those before it.\n");
    return 1;
  }
  t = shrink(s.device, t, *wrong, 60);
  std::fprintf(stderr, "seed %llu on %s: %s\n\n%s", static_cast<unsigned long long>(s.seed), s.device.c_str(),
               text_of(*wrong).c_str(), program_of(s.device, t, *wrong).c_str());
  return 1;
}

int search(const settings &s) {
  std::printf("random tests on %s, seed %llu\n", s.device.c_str(), static_cast<unsigned long long>(s.seed));
  std::fflush(stdout);
  std::snprintf(device_name, sizeof device_name, "%s", s.device.c_str());
  struct sigaction action = {};
  action.sa_handler = on_fatal_signal;
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM}) sigaction(number, &action, nullptr);
  note_current(s.seed);

  bench checked(s.device.c_str(), true), unchecked(s.device.c_str(), false);
  refusals refused;
  const auto begin = clock::now();
  std::uint64_t done = 0;
  for (; s.count ? done < s.count : std::chrono::duration<double>(clock::now() - begin).count() < s.seconds; ++done) {
    const std::uint64_t seed = s.seed + done;
    note_current(seed);
    const test_case t = draw(seed);
    const auto wrong = run(t.check_hazards ? checked : unchecked, t, refused);
    if (!wrong) continue;
    std::fprintf(stderr, "\nseed %s on %s, test %llu from seed %llu: %s\n", seed_text, s.device.c_str(),
                 static_cast<unsigned long long>(done), static_cast<unsigned long long>(s.seed),
                 text_of(*wrong).c_str());
    const char *const arguments[] = {"random_test", "--device", device_name, "--isolated",
                                     "--seed",      seed_text,  nullptr};
    alarm(0);
    execv("/proc/self/exe", const_cast<char *const *>(arguments));
    return 1;
  }
  alarm(0);
  std::printf("%llu tests in %.1f s", static_cast<unsigned long long>(done),
              std::chrono::duration<double>(clock::now() - begin).count());
  for (const auto &[why, times] : refused) std::printf("; refused, %s: %ld", why.c_str(), times);
  std::printf("\n");
  return 0;
}

// The program expects of an element what the test has given.
int print(const settings &s) {
  const test_case t = draw(s.seed);
  bench on(s.device.c_str(), t.check_hazards);
  refusals refused;
  fault sample;
  if (const auto wrong = run(on, t, refused, &sample)) sample = *wrong;
  return std::fputs(program_of(s.device, t, sample).c_str(), stdout) < 0;
}

int main_of(int count, char **arguments) {
  const settings s = settings_of(count, arguments);
  if (s.prints) return print(s);
  return s.isolated ? in_isolation(s) : search(s);
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
