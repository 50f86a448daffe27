// SPDX-License-Identifier: Apache-2.0
// A small JSON text as a tree of plain values. The parser's own tree allocates in its destructor and in noexcept
// copies, so a process out of memory would terminate there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sg {

struct json_tree {
  enum class kind : std::uint8_t { null, boolean, number, text, array, object };

  kind is = kind::null;
  bool truth = false;
  double number = 0;
  std::string text;
  std::vector<std::string> keys;  // of an object; no two are equal
  std::vector<json_tree> items;   // of an array; the values of an object, in the order of its keys

  // The value of an object's key; nullptr: none.
  const json_tree *find(const std::string &key) const;
};

// Throws sg::error(SG_STATUS_INVALID_ARGUMENT) whose message begins with `what` if the text is not JSON, longer than 1
// MiB, nested deeper than 6 or of more than 20000 values, or if an object has a key twice.
json_tree parse_json(const std::string &text, const char *what);

}  // namespace sg
