// SPDX-License-Identifier: Apache-2.0
// Writing a recording to a file, and the recording that the variable SG_TRACE asks for.
#pragma once

#include <string>

#include "trace/recording.hpp"

namespace sg::trace {

enum class file_format { by_name, chrome_json, perfetto, html, svg, text };  // as sg_trace_format

// Throws sg::error where no format follows from the name.
file_format format_of_name(const std::string &path);

// `format`: not by_name.
std::string in_format(const recording &what, file_format format);

// Throws sg::error if the file cannot be opened for writing. It is left as it is.
void check_file(const std::string &path);

// Replaces the file. Throws sg::error.
void write_file(const std::string &path, const std::string &content);

// Begins the recording of SG_TRACE, once in a process, and writes it. Any thread.
void start_by_variable() noexcept;
void write_by_variable() noexcept;

}  // namespace sg::trace
