// SPDX-License-Identifier: Apache-2.0
// Writes one JSON object as text, member by member. Allocates nothing but the text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sg {

class json_writer {
 public:
  // `value` is UTF-8.
  void member(std::string_view key, std::string_view value);
  void member(std::string_view key, std::int64_t value);
  // The shortest text that parses to the same number; null for NaN and infinities.
  void member(std::string_view key, double value);
  void member(std::string_view key, std::span<const std::uint32_t> values);
  void member_truth(std::string_view key, bool value);

  // Later members belong to an inner object, until end().
  void begin(std::string_view key);
  void end();

  // The objects of an array follow, each from begin_item() to end(), until end_list().
  void begin_list(std::string_view key);
  void begin_item();
  void end_list();

  // The complete object. All inner objects must be closed.
  std::string take();

 private:
  void open(char bracket);
  void close(char bracket);
  void put_separator();
  void put_key(std::string_view key);
  void put_quoted(std::string_view text);

  std::string out_ = "{";
  std::size_t depth_ = 1;
  bool first_ = true;  // the innermost object is empty so far
};

}  // namespace sg
