// SPDX-License-Identifier: Apache-2.0
// The verbs below `streamgemm bench`, and what they share with it.
#pragma once

#include "../verbs.hpp"

namespace sg::cli {

// `command`: the whole command line, for records.
void add_compare(CLI::App &bench, const std::string &command);

// Throws failure if the file cannot be written.
void write_json(const std::string &path, const json &value);

}  // namespace sg::cli
