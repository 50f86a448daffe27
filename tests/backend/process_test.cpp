// SPDX-License-Identifier: Apache-2.0
// Process exit, fork, and a device of another name.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/error.hpp"
#include "gemm_case.hpp"
#include "support/gate.h"
#include "support/sanitizers.hpp"

namespace sg::test {
namespace {

class process : public conformance {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Both of the cpu's libraries are in use. The simulated device computes more slowly.
gemm_spec large(bool in_f64) {
  const bool is_simulated = conformance::GetParam().rfind("sim", 0) == 0;
  const std::int64_t n = (is_simulated ? 200 : 500) + (in_f64 ? 0 : is_simulated ? 80 : 200);
  const sg_dtype type = in_f64 ? SG_DTYPE_F64 : SG_DTYPE_F32;
  return {.types = {type, type}, .m = n, .n = n, .k = n};
}

// So many GEMMs are in flight; SG_TEST_IN_FLIGHT, where each takes long.
int in_flight() {
  const char *const given = std::getenv("SG_TEST_IN_FLIGHT");
  return given ? std::atoi(given) : 60;
}

// Many GEMMs in flight on a device's streams.
struct busy_device {
  explicit busy_device(const std::shared_ptr<device> &of) : on(of) {
    for (int i = 0; i < 2; ++i) {
      in.push_back(std::make_unique<stream>(on));
      gemm_case &own = data[i];
      for (host_operand *x : {&own.a, &own.b, &own.c}) {
        places.push_back(std::make_unique<memory>(on, static_cast<std::int64_t>(x->bytes.size())));
        places.back()->write(*in.back(), x->bytes.data());
      }
    }
  }
  int enqueue(int count, listener &done) {
    int accepted = 0;
    for (int i = 0; i < count; ++i) {
      const auto first = static_cast<std::size_t>(3 * (i % 2));
      const sg_backend_gemm x =
          data[i % 2].command(places[first]->data(), places[first + 1]->data(), places[first + 2]->data());
      accepted += test::enqueue(*on, *in[static_cast<std::size_t>(i % 2)], x, done.done()) == SG_STATUS_OK;
    }
    return accepted;
  }

  std::shared_ptr<device> on;
  gemm_case data[2] = {gemm_case(large(false)), gemm_case(large(true))};
  std::vector<std::unique_ptr<memory>> places;
  std::vector<std::unique_ptr<stream>> in;  // destroyed before the memory that they use
};

TEST_P(process, drain_completes_running_commands_and_drops_the_rest) {
  if (ops().drain == nullptr) GTEST_SKIP() << "needs no draining";
  // Commands handed to a GPU cannot be dropped; elsewhere the first stream is blocked at a gate until all are refused.
  const bool drops = GetParam().rfind("cuda", 0) != 0;
  const std::unique_ptr<gate, void (*)(gate *)> held(drops ? gate_new(8) : nullptr, gate_free);
  if (drops && !held) GTEST_SKIP() << "userfaultfd is not available here";
  listener done, first, refused;
  busy_device busy(dev());
  if (drops) {
    const sg_backend_copy slow =
        run_of_bytes(busy.places[0]->data(), gate_memory(held.get()), 8, SG_MEMORY_DEVICE, SG_MEMORY_PAGEABLE);
    ASSERT_EQ(enqueue(*dev(), *busy.in[0], slow, first.done()), SG_STATUS_OK);
    ASSERT_EQ(gate_reached(held.get(), 300000), 1);
  }
  const auto count = static_cast<std::size_t>(in_flight());
  EXPECT_EQ(busy.enqueue(in_flight(), done), in_flight());
  std::thread opener([&] {
    if (!drops) return;
    while (enqueue_marker(*dev(), *busy.in[0], refused.done()) == SG_STATUS_OK) std::this_thread::yield();
    gate_open(held.get());
  });
  ops().drain(handle());
  opener.join();
  ASSERT_TRUE(done.wait(count));
  ASSERT_EQ(done.results().size(), count);
  int completed = 0, dropped = 0;
  for (const listener::outcome &x : done.results()) {
    completed += x.status == SG_STATUS_OK;
    dropped += x.status == SG_STATUS_SHUTDOWN;
  }
  EXPECT_EQ(completed + dropped, in_flight());
  if (drops) {
    EXPECT_GE(dropped, 30) << "the contents of the gate";
    ASSERT_TRUE(first.wait(1));
    EXPECT_EQ(first.results()[0].status, SG_STATUS_OK) << "it ran";
  }
  EXPECT_EQ(busy.enqueue(2, done), 0);
}

std::shared_ptr<device> *exiting = nullptr;

[[noreturn]] void exit_while_busy(const std::shared_ptr<device> &on) {
  exiting = new std::shared_ptr<device>(on);
  std::atexit([] { (*exiting)->drain(); });
  auto *busy = new busy_device(on);
  busy->enqueue(in_flight(), *new listener);
  usleep(3000);
  std::exit(0);
}

TEST_P(process, exits_cleanly_with_work_in_flight) {
  for (int i = 0; i < 3; ++i) EXPECT_EXIT(exit_while_busy(dev()), testing::ExitedWithCode(0), "");
}

// The forked child of a busy process opens a device of its own.
TEST_P(process, a_child_of_fork_may_open_a_device) {
  if (!unified()) GTEST_SKIP() << "drivers of devices need not survive fork";
  if (sg_test::sanitized) GTEST_SKIP() << "a sanitizer's own locks do not survive fork beside other threads";
  listener done;
  busy_device busy(dev());
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(busy.enqueue(6, done), 6);
    // New shapes meanwhile, so that code is being generated during the fork.
    stream generating(dev());
    std::thread other([&] {
      for (std::int64_t n = 0; n < 5; ++n) {
        gemm_case x({.types = {SG_DTYPE_BF16, SG_DTYPE_F32}, .m = 20 + n, .n = 30 + round, .k = 10});
        EXPECT_EQ(x.run(dev(), generating), SG_STATUS_OK);
      }
    });
    const pid_t child = fork();
    if (child == 0) {
      alarm(600);
      for (const pair_of_types types : all_pairs) {
        const std::shared_ptr<device> own = open_device(GetParam().c_str());
        stream in(own);
        gemm_case x({.types = types, .m = 60, .n = 50, .k = 40});
        if (x.run(own, in) != SG_STATUS_OK) _exit(1);
        x.check();
        if (HasFatalFailure()) _exit(2);
      }
      _exit(0);
    }
    other.join();
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "round " << round << ": " << status;
  }
  ASSERT_TRUE(done.wait(60));
}

TEST_P(process, a_worker_takes_no_signal) {
  struct seen {
    listener end;
    bool blocked = false;
  } own;
  stream in(dev());
  ASSERT_EQ(enqueue_marker(*dev(), in,
                           {[](void *user, const sg_backend_result *result) {
                              auto &to = *static_cast<seen *>(user);
                              sigset_t mask;
                              pthread_sigmask(SIG_SETMASK, nullptr, &mask);
                              to.blocked = sigismember(&mask, SIGALRM) == 1 && sigismember(&mask, SIGINT) == 1;
                              to.end.done().fn(&to.end, result);
                            },
                            &own}),
            SG_STATUS_OK);
  ASSERT_TRUE(own.end.wait(1));
  EXPECT_TRUE(own.blocked);
}

TEST_P(process, a_device_of_another_name_is_refused) {
  const std::string backend = GetParam().substr(0, GetParam().find(':'));
  try {
    open_device((backend + ":no-such-device").c_str());
    FAIL() << "the gate was opened";
  } catch (const error &e) {
    EXPECT_LT(e.status(), 0);
    EXPECT_STRNE(e.what(), "");
  }
}

SG_CONFORMANCE(process);

}  // namespace
}  // namespace sg::test
