// SPDX-License-Identifier: Apache-2.0
// Writes one JSON object as text, member by member. What it allocates is the text alone.
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
  // The shortest text that reads as the same number; null for what JSON has no number for.
  void member(std::string_view key, double value);
  void member(std::string_view key, std::span<const std::uint32_t> values);
  void member_truth(std::string_view key, bool value);

  // What follows belongs to an object inside, until its end.
  void begin(std::string_view key);
  void end();

  // What follows are the objects of an array, each from begin_item() to end(), until end_list().
  void begin_list(std::string_view key);
  void begin_item();
  void end_list();

  // The whole object. All objects inside have ended.
  std::string take();

 private:
  void open(char bracket);
  void close(char bracket);
  void put_separator();
  void put_key(std::string_view key);
  void put_quoted(std::string_view text);

  std::string out_ = "{";
  std::size_t depth_ = 1;
  bool first_ = true;  // nothing is in the innermost object yet
};

}  // namespace sg
