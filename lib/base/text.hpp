// SPDX-License-Identifier: Apache-2.0
// Untrusted text that is shown: in messages, JSON, XML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sg {

// Copies at most size - 1 bytes and a NUL, without cutting a character; returns the length. '?' replaces each byte that
// is not UTF-8, and U+FFFE and U+FFFF, which XML does not have. size > 0.
std::size_t copy_utf8(char *out, std::size_t size, const char *text) noexcept;

// `text` with everything but printable ASCII escaped as \xNN, cut with "..." to `most` bytes.
std::string printable(std::string_view text, std::size_t most = 160);

}  // namespace sg
