// SPDX-License-Identifier: Apache-2.0
// Reader of one JSON object of a model; keys that are never read are reported as unknown.
#pragma once

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json_tree.hpp"

namespace sg {

class object_reader {
 public:
  static constexpr std::size_t most_rows = 256;
  static constexpr double most_rate = 1e18;  // bytes per second

  // `what`: the kind of text in messages, "device model".
  object_reader(const char *what, const json_tree &object, std::string path)
      : what_(what), object_(object), path_(std::move(path)) {
    if (object.is != json_tree::kind::object)
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s: '%.100s' must be an object", what_,
                  path_.empty() ? "the whole text" : path_.c_str());
  }

  std::string path_of(const std::string &key) const { return path_.empty() ? key : path_ + "." + key; }

  const json_tree *find(const std::string &key) {
    taken_.insert(key);
    return object_.find(key);
  }

  const json_tree &need(const std::string &key) {
    if (const json_tree *value = find(key)) return *value;
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s: '%.100s' is missing", what_, path_of(key).c_str());
  }

  object_reader object(const std::string &key) { return {what_, need(key), path_of(key)}; }

  double number(const std::string &key, double least, double most) { return checked(need(key), key, least, most); }
  double number_or(const std::string &key, double least, double most, double otherwise) {
    return find(key) ? number(key, least, most) : otherwise;
  }

  std::int64_t integer(const std::string &key, std::int64_t least, std::int64_t most) {
    return whole(number(key, double(least), double(most)), key);
  }
  std::int64_t integer_or(const std::string &key, std::int64_t least, std::int64_t most, std::int64_t otherwise) {
    return find(key) ? integer(key, least, most) : otherwise;
  }

  std::vector<std::int64_t> integers(const std::string &key, std::int64_t least, std::int64_t most) {
    const json_tree &array = need_array(key, "numbers");
    std::vector<std::int64_t> all;
    for (const json_tree &each : array.items)
      all.push_back(whole(checked(each, key, double(least), double(most)), key));
    return all;
  }

  bool boolean(const std::string &key) {
    const json_tree &value = need(key);
    if (value.is != json_tree::kind::boolean)
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s: '%.100s' must be true or false", what_, path_of(key).c_str());
    return value.truth;
  }

  std::string text(const std::string &key, std::size_t most_bytes = 64) {
    const json_tree &value = need(key);
    if (value.is != json_tree::kind::text || value.text.size() > most_bytes)
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s: '%.100s' must be a text of at most %zu bytes", what_,
                  path_of(key).c_str(), most_bytes);
    return value.text;
  }

  // The value from `first` to `last` with the text's name, name(value).
  template <class Name>
  int enumerator(const std::string &key, int first, int last, Name &&name) {
    const std::string given = text(key);
    for (int value = first; value <= last; ++value)
      if (given == name(value)) return value;
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s: '%.100s' names nothing known: '%.40s'", what_, path_of(key).c_str(),
                given.c_str());
  }

  // Calls row(reader) for each object of an array.
  template <class Row>
  void rows(const std::string &key, Row &&row) {
    const json_tree &array = need_array(key, "objects");
    for (std::size_t i = 0; i < array.items.size(); ++i) {
      object_reader reader(what_, array.items[i], path_of(key) + "[" + std::to_string(i) + "]");
      row(reader);
      reader.finish();
    }
  }

  void finish() const {
    for (const std::string &key : object_.keys)
      if (!taken_.count(key))
        throw error(SG_STATUS_INVALID_ARGUMENT, "%s: '%.100s' is not a known key", what_, path_of(key).c_str());
  }

 private:
  const json_tree &need_array(const std::string &key, const char *of) {
    const json_tree &array = need(key);
    if (array.is != json_tree::kind::array || array.items.size() > most_rows)
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s: '%.100s' must be an array of at most %zu %s", what_,
                  path_of(key).c_str(), most_rows, of);
    return array;
  }

  double checked(const json_tree &value, const std::string &key, double least, double most) const {
    const double number = value.is == json_tree::kind::number ? value.number : std::nan("");
    if (!(number >= least && number <= most))
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s: '%.100s' must be a number from %g to %g", what_,
                  path_of(key).c_str(), least, most);
    return number;
  }

  std::int64_t whole(double value, const std::string &key) const {
    if (value != std::floor(value))
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s: '%.100s' must be a whole number", what_, path_of(key).c_str());
    return std::int64_t(value);
  }

  const char *what_;
  const json_tree &object_;
  std::string path_;
  std::set<std::string> taken_;
};

}  // namespace sg
