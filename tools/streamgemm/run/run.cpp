// SPDX-License-Identifier: Apache-2.0
// streamgemm run: a program with the drop-in BLAS, and what its calls of level 3 did.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "../library.hpp"
#include "../usage.hpp"
#include "../verbs.hpp"
#include "blas_report.hpp"

extern char **environ;

namespace sg::cli {

namespace {

namespace fs = std::filesystem;

struct run_arguments {
  std::string device, report, min, residency;
  std::vector<std::string> command;
  bool json = false;
};

// libstreamgemm-blas.so.1, beside the library or, in a build folder, beside the library's folder.
fs::path preload_library() {
  const fs::path folder = library_folder();
  for (const fs::path &path :
       {folder / "libstreamgemm-blas.so.1", folder.parent_path() / "blas" / "libstreamgemm-blas.so.1"})
    if (fs::exists(path)) return path;
  throw failure(exit_code::failed, (folder / "libstreamgemm-blas.so.1").string() + " is not there");
}

// A folder for the reports of the processes, removed at the end.
class report_folder {
 public:
  report_folder() {
    std::string name = fs::temp_directory_path() / "streamgemm-run-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw failure(exit_code::failed, name + ": " + std::strerror(errno));
    path_ = name;
  }
  ~report_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  report_folder(const report_folder &) = delete;
  report_folder &operator=(const report_folder &) = delete;
  const fs::path &path() const { return path_; }

 private:
  fs::path path_;
};

void set_environment(const run_arguments &given, const fs::path &reports) {
  const char *const others = std::getenv("LD_PRELOAD");
  const std::string preload =
      preload_library().string() + (others != nullptr && *others != '\0' ? std::string(":") + others : "");
  setenv("LD_PRELOAD", preload.c_str(), 1);
  setenv("SG_BLAS_REPORT", (reports / "%p.json").c_str(), 1);
  if (!given.device.empty()) setenv("SG_DEVICE", given.device.c_str(), 1);
  if (!given.min.empty()) setenv("SG_BLAS_MIN", given.min.c_str(), 1);
  if (!given.residency.empty()) setenv("SG_BLAS_RESIDENCY", given.residency.c_str(), 1);
}

// Runs the command and waits for it; signals of the terminal are the command's. Its wait status.
int status_of(const std::vector<std::string> &command) {
  std::vector<char *> words;
  for (const std::string &word : command) words.push_back(const_cast<char *>(word.c_str()));
  words.push_back(nullptr);
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
  posix_spawnattr_t attributes;
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  sigaddset(&defaults, SIGQUIT);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, words[0], nullptr, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (problem != 0) throw failure(exit_code::usage, command[0] + ": " + std::strerror(problem));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      throw failure(exit_code::failed, std::string("waiting for the command: ") + std::strerror(errno));
  return status;
}

void write_report(const run_arguments &given, const json &merged) {
  const std::string text =
      given.json ? merged.dump(2, ' ', false, json::error_handler_t::replace) + "\n" : text_of_blas_report(merged);
  if (given.report.empty()) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    return;
  }
  std::ofstream file(given.report);
  if (!(file << text) || !file.flush()) throw failure(exit_code::failed, given.report + ": " + std::strerror(errno));
}

void run_command(const run_arguments &given) {
  const report_folder reports;
  set_environment(given, reports.path());
  const int status = status_of(given.command);
  write_report(given, merged_blas_reports(given.command[0], blas_reports_in(reports.path())));
  if (status != 0) throw command_exit{WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)};
}

}  // namespace

void add_run(CLI::App &app) {
  auto given = std::make_shared<run_arguments>();
  CLI::App *verb = app.add_subcommand("run", "Run a program whose large matrix products go to the device");
  verb->add_option("--device", given->device,
                   "Device of the calls (default: the first CUDA device; without one all calls stay on the CPU)");
  verb->add_option("--min", given->min,
                   "n: calls with m*n*k >= n^3 go to the device, whatever the model says (default auto)")
      ->check(CLI::Validator(
          [](std::string &value) {
            const bool is_fit = value == "auto" || (!value.empty() && value.size() < 10 &&
                                                    value.find_first_not_of("0123456789") == std::string::npos);
            return is_fit ? std::string() : value + " is neither auto nor a whole number";
          },
          ""));
  verb->add_option("--residency", given->residency,
                   "Which operands stay on the device between calls: auto, off, hash (all), track (all, the kernel "
                   "says what was "
                   "written), verify (all, and check)")
      ->check(CLI::IsMember({"auto", "off", "hash", "track", "verify"}));
  verb->add_option("--report", given->report, "Write the report here (default: to standard error)");
  verb->add_flag("--json", given->json, "Report in JSON");
  verb->add_option("CMD", given->command, "The program and its arguments, after --")->required();
  verb->footer(
      "Example: streamgemm run -- python3 script.py\n"
      "The exit code is the program's; 128 and the number of a signal that ended it. docs/blas.md says which calls are "
      "caught.");
  verb->callback([given] { run_command(*given); });
}

}  // namespace sg::cli
