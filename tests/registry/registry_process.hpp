// SPDX-License-Identifier: Apache-2.0
// Runs registry_report: a process loads the registry once, so each case needs its own process.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace sg::test {

using std::string;
using strings = std::vector<string>;
namespace fs = std::filesystem;

inline const fs::path report_program = REPORT_PROGRAM;
inline const fs::path built_plugins = PLUGIN_FOLDER;

// Runs a program with exactly these variables, in `folder`; returns its output.
inline string output_of(const fs::path &program, strings variables, strings arguments, const fs::path &folder = "/") {
  for (const char *passed : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"})
    if (const char *value = getenv(passed)) variables.push_back(string(passed) + "=" + value);
  arguments.insert(arguments.begin(), program.string());
  const auto pointers = [](strings &texts) {
    std::vector<char *> list;
    for (string &text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  };
  const auto argv = pointers(arguments), envp = pointers(variables);
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    if (chdir(folder.c_str()) != 0) _exit(126);
    execve(program.c_str(), argv.data(), envp.data());
    _exit(127);
  }
  close(ends[1]);
  string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) text += "exited with status " + std::to_string(status);
  return text;
}

inline string report(const strings &variables, const strings &devices = {}, const fs::path &folder = "/") {
  return output_of(report_program, variables, devices, folder);
}

inline void expect_in(const string &text, const string &part) {
  EXPECT_NE(text.find(part), string::npos) << "\"" << part << "\" is not in:\n" << text;
}
inline void expect_not_in(const string &text, const string &part) {
  EXPECT_EQ(text.find(part), string::npos) << "\"" << part << "\" is in:\n" << text;
}
inline void expect_printable(const string &text) {
  for (const char c : text) ASSERT_TRUE(c == '\n' || (c >= ' ' && c < 0x7f)) << "unprintable in:\n" << text;
}

inline string plugin(const string &variant) { return (built_plugins / ("libstreamgemm-" + variant + ".so")).string(); }
inline string plugin_path(const string &value) { return "SG_PLUGIN_PATH=" + value; }

// A folder that is removed after the test.
class temporary_folder {
 public:
  temporary_folder() {
    if (!mkdtemp(path_.data())) throw std::runtime_error("no temporary folder");
  }
  ~temporary_folder() { fs::remove_all(path_); }
  temporary_folder(const temporary_folder &) = delete;
  temporary_folder &operator=(const temporary_folder &) = delete;
  fs::path operator/(const string &name) const { return fs::path(path_) / name; }
  const string &path() const { return path_; }

 private:
  string path_ = "/tmp/sg-registry-XXXXXX";
};

}  // namespace sg::test
