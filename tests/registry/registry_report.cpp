// SPDX-License-Identifier: Apache-2.0
// Prints what the registry finds in its own process: one line for each backend, then one line for each device named in
// the arguments ("" is the default); before, each plugin that is named as --load PATH is loaded. With --fork first, all
// of it in a child forked after the registry was loaded; with
// --fork-while-loading, in a child forked while another thread loads it.
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>

#include "base/error.hpp"
#include "devices/registry.hpp"

namespace {

const char *name_of(sg_status status) {
  switch (status) {
    case SG_STATUS_NO_DEVICE: return "SG_STATUS_NO_DEVICE";
    case SG_STATUS_INVALID_ARGUMENT: return "SG_STATUS_INVALID_ARGUMENT";
    default: return "another status";
  }
}

void report(int count, char **names) {
  std::printf("secure %lu\n", getauxval(AT_SECURE));
  for (; count > 1 && names[0] == std::string_view("--load"); count -= 2, names += 2) try {
      sg::load_backend(names[1]);
      std::printf("loaded %s\n", names[1]);
    } catch (const sg::error &fault) {
      std::printf("not loaded %s\n", fault.what());
    }
  for (const sg::backend_entry &entry : sg::backends())
    std::printf("backend %s|%s|%s|%s\n", entry.name.c_str(), entry.available ? "available" : "missing",
                entry.origin.c_str(), entry.reason.c_str());
  for (int i = 0; i < count; ++i) try {
      const auto device = sg::open_device(names[i]);
      std::printf("device %s\n", device->name().c_str());
    } catch (const sg::error &fault) {
      std::printf("%s %s\n", name_of(fault.status()), fault.what());
    }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char **argv) {
  const std::string_view how = argc > 1 ? argv[1] : "";
  if (how == "--fork") {
    sg::backends();
  } else if (how == "--fork-while-loading") {
    std::thread([] { sg::backends(); }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } else {
    report(argc - 1, argv + 1);
    return 0;
  }
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
    report(argc - 2, argv + 2);
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  sg::backends();  // the parent must not exit before its thread has finished
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
