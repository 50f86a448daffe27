// SPDX-License-Identifier: Apache-2.0
#include "base/json_tree.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.hpp"

namespace sg {
namespace {

using nlohmann::json;

constexpr std::size_t max_text_bytes = 1 << 20, max_depth = 9, max_values = 20000;

// Builds the tree from the parser's events.
class grower final : public nlohmann::json_sax<json> {
 public:
  grower(json_tree &root, const char *what) : root_(root), what_(what) {}

  bool null() override { return add(json_tree::kind::null), true; }
  bool boolean(bool value) override { return add(json_tree::kind::boolean).truth = value, true; }
  bool number_integer(number_integer_t value) override { return add_number(double(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add_number(double(value)); }
  bool number_float(number_float_t value, const string_t &) override { return add_number(value); }
  bool string(string_t &value) override { return add(json_tree::kind::text).text = std::move(value), true; }
  bool binary(binary_t &) override { return false; }  // never in text
  bool start_array(std::size_t) override { return open(json_tree::kind::array); }
  bool start_object(std::size_t) override { return open(json_tree::kind::object); }
  bool end_array() override { return open_.pop_back(), true; }

  bool key(string_t &name) override {
    open_.back()->keys.push_back(std::move(name));
    return true;
  }

  bool end_object() override {
    const auto &keys = open_.back()->keys;
    std::vector<std::string_view> sorted(keys.begin(), keys.end());
    std::sort(sorted.begin(), sorted.end());
    const auto twin = std::adjacent_find(sorted.begin(), sorted.end());
    if (twin != sorted.end())
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s: '%.100s' is given twice", what_, twin->data());
    open_.pop_back();
    return true;
  }

  bool parse_error(std::size_t, const std::string &, const json::exception &e) override {
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s: %.300s", what_, e.what());
  }

 private:
  json_tree &add(json_tree::kind kind) {
    if (++values_ > max_values) throw error(SG_STATUS_INVALID_ARGUMENT, "%s: more than %zu values", what_, max_values);
    json_tree &value = open_.empty() ? root_ : open_.back()->items.emplace_back();
    value.is = kind;
    return value;
  }

  bool add_number(double number) {
    add(json_tree::kind::number).number = number;
    return true;
  }

  bool open(json_tree::kind kind) {
    if (open_.size() >= max_depth)
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s: nested deeper than %zu", what_, max_depth);
    open_.push_back(&add(kind));
    return true;
  }

  json_tree &root_;
  const char *what_;
  std::vector<json_tree *> open_;  // from the root inwards; a container moves only if an earlier one in this list grows
  std::size_t values_ = 0;
};

}  // namespace

const json_tree *json_tree::find(const std::string &key) const {
  const auto at = std::find(keys.begin(), keys.end(), key);
  return at == keys.end() ? nullptr : &items[std::size_t(at - keys.begin())];
}

json_tree parse_json(const std::string &text, const char *what) {
  if (text.size() > max_text_bytes)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s: longer than %zu bytes", what, max_text_bytes);
  json_tree root;
  grower grow(root, what);
  json::sax_parse(text, &grow);
  return root;
}

}  // namespace sg
