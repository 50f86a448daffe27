// SPDX-License-Identifier: Apache-2.0
// The verbs of the program. Each adds its subcommand, whose callback does the work: it prints results on stdout and
// throws failure.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace sg::cli {

using json = nlohmann::ordered_json;

void add_info(CLI::App &app);
void add_gemm(CLI::App &app);
void add_plan(CLI::App &app);
void add_bench(CLI::App &app, const std::string &command);  // the whole command, for the record
void add_calibrate(CLI::App &app);
void add_report(CLI::App &app);
void add_explain(CLI::App &app);
void add_demo(CLI::App &app);
void add_run(CLI::App &app);
void add_manual(CLI::App &app);

// Prints one JSON value on stdout; text that is no UTF-8 is repaired.
void print_json(const json &value);

}  // namespace sg::cli
