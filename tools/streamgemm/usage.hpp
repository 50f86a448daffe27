// SPDX-License-Identifier: Apache-2.0
// What options take, and what the program says of a wrong command line.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace sg::cli {

// The message for a command line that the app has refused: it names what is wrong, and the nearest word that is known.
std::string complaint_of(const CLI::App &app, const CLI::ParseError &refusal);

// "; did you mean gemm?", or "" if no word is near.
std::string hint_of(const std::string &given, const std::vector<std::string> &known);

// Checks of values, which say what they are and what they must be.
CLI::Validator whole_number(std::int64_t least);
CLI::Validator number_between(double least, double most);
CLI::Validator positive_number();
CLI::Validator size_in_bytes();                                // "4GiB" becomes its number of bytes
CLI::Validator one_of(const std::vector<std::string> &words);  // in any case; stores the word as it is listed

// The words of an option's type as help shows them, "row|column"; empty: it takes anything.
std::vector<std::string> words_of(const CLI::Option &option);
std::string joined(const std::vector<std::string> &words, const char *between);

}  // namespace sg::cli
