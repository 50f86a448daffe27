// SPDX-License-Identifier: Apache-2.0
// How the program exits: its exit codes, and the exception that carries one with its message.
#pragma once

#include <stdexcept>
#include <string>

namespace sg::cli {

// Documented in docs/cli.md; never renumbered.
enum class exit_code : int {
  ok = 0,
  failed = 1,        // a failure at run time: memory, a device, a file that cannot be written
  usage = 2,         // the command line or an input file is wrong
  no_device = 3,     // the requested device is not available
  verification = 4,  // a wrong result, found by --verify or by a suite's own check
};

class failure : public std::runtime_error {
 public:
  failure(exit_code code, const std::string &text) : std::runtime_error(text), code_(code) {}
  exit_code code() const noexcept { return code_; }

 private:
  exit_code code_;
};

// The program ends with the exit code of the command that it has run.
struct command_exit {
  int code;
};

}  // namespace sg::cli
