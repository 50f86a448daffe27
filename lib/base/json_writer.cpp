// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace sg {

void json_writer::member(std::string_view key, std::string_view value) {
  put_key(key);
  put_quoted(value);
}

void json_writer::member(std::string_view key, std::int64_t value) {
  put_key(key);
  out_ += std::to_string(value);
}

void json_writer::member(std::string_view key, double value) {
  put_key(key);
  if (!std::isfinite(value)) {
    out_ += "null";
    return;
  }
  char text[40];
  const auto written = std::to_chars(text, text + sizeof text, value);
  const std::string_view number(text, std::size_t(written.ptr - text));
  out_ += number;
  // So that typed readers see a floating-point number whatever its value.
  if (number.find_first_of(".e") == std::string_view::npos) out_ += ".0";
}

void json_writer::member(std::string_view key, std::span<const std::uint32_t> values) {
  put_key(key);
  out_ += '[';
  for (const std::uint32_t &value : values) {
    if (&value != values.data()) out_ += ", ";
    out_ += std::to_string(value);
  }
  out_ += ']';
}

void json_writer::member_truth(std::string_view key, bool value) {
  put_key(key);
  out_ += value ? "true" : "false";
}

void json_writer::begin(std::string_view key) {
  put_key(key);
  open('{');
}

void json_writer::end() { close('}'); }

void json_writer::begin_list(std::string_view key) {
  put_key(key);
  open('[');
}

void json_writer::begin_item() {
  put_separator();
  open('{');
}

void json_writer::end_list() { close(']'); }

void json_writer::open(char bracket) {
  out_ += bracket;
  ++depth_;
  first_ = true;
}

void json_writer::close(char bracket) {
  --depth_;
  if (!first_) out_.append(1, '\n').append(2 * depth_, ' ');
  out_ += bracket;
  first_ = false;
}

std::string json_writer::take() {
  end();
  return std::move(out_);
}

void json_writer::put_separator() {
  out_ += first_ ? "\n" : ",\n";
  first_ = false;
  out_.append(2 * depth_, ' ');
}

void json_writer::put_key(std::string_view key) {
  put_separator();
  put_quoted(key);
  out_ += ": ";
}

void json_writer::put_quoted(std::string_view text) {
  out_ += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out_.append(1, '\\').append(1, c);
    else if (static_cast<unsigned char>(c) >= 0x20)
      out_ += c;
    else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out_ += escaped;
    }
  }
  out_ += '"';
}

}  // namespace sg
