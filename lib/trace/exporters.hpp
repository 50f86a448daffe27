// SPDX-License-Identifier: Apache-2.0
// A history in the formats that people open.
#pragma once

#include <string>

#include "trace/history.hpp"

namespace sg::trace {

// The Trace Event Format: chrome://tracing, ui.perfetto.dev. Times in us.
std::string chrome_json(const history &what);
// Perfetto's own protobuf (perfetto.protos.Trace).
std::string perfetto(const history &what);
// A picture: one row for each track.
std::string svg(const history &what);
// Rows of characters: a command is shown by a letter, idle time by a dot; then the figures of each context.
std::string text(const history &what, int columns = 96);
// One page without any other file: the timeline, with zoom, pan and search, figures, and a table of commands.
// `predicted`: nullptr, or the simulated timeline to lay over it.
std::string html(const history &what, const history *predicted = nullptr);

// The number of a job as the exports show it: 1, 2, ...; 0: none.
std::size_t shown_number(const history &what, std::uint64_t job) noexcept;
std::string title_of(const traced_context &context);  // "sim:h200 (virtual time)", "cpu, AMD EPYC"

}  // namespace sg::trace
