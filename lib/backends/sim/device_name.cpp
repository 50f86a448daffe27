// SPDX-License-Identifier: Apache-2.0
#include "device_name.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "failure.hpp"

namespace sg::sim {

namespace {

constexpr const char *known_options =
    "timing-only, memory=SIZE, taken=SIZE, largest-piece=SIZE, fail-alloc=N, fail-copy=N, fail-launch=N, "
    "refuse-copy=N, refuse-launch=N, lost-at=N, "
    "late-copy=N:MICROSECONDS, peer-drop=FROM:TO, and dI.OPTION for device I of a machine";

[[noreturn]] void refuse(std::string_view option, const char *why) {
  throw failure(SG_STATUS_INVALID_ARGUMENT, "option \"%.*s\" of a simulated device: %s",
                static_cast<int>(option.size()), option.data(), why);
}

std::int64_t positive(std::string_view digits, std::string_view option) {
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (fault != std::errc() || end != digits.data() + digits.size() || value < 1)
    refuse(option, "a whole number from 1 up is needed");
  return value;
}

std::int64_t index_in(std::string_view digits, std::string_view option) {
  return digits == "0" ? 0 : positive(digits, option);
}

// "4GiB", "512MiB", or plain bytes.
std::uint64_t size_in_bytes(std::string_view text, std::string_view option) {
  constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB"};
  int shift = 0;
  for (int unit = 0; unit < 4; ++unit)
    if (text.ends_with(units[unit])) {
      shift = 10 * (unit + 1);
      text.remove_suffix(units[unit].size());
      break;
    }
  const std::int64_t count = positive(text, option);
  if (count > INT64_MAX >> shift) refuse(option, "the size does not fit 63 bits");
  return static_cast<std::uint64_t>(count) << shift;
}

// "I." of "dI.OPTION"; -1: the option is of all devices.
std::int64_t split_device(std::string_view &option) {
  const std::size_t dot = option.find('.');
  std::int64_t index = -1;
  if (dot == option.npos || dot < 2 || option[0] != 'd') return -1;
  const auto [end, fault] = std::from_chars(option.data() + 1, option.data() + dot, index);
  if (fault != std::errc() || end != option.data() + dot || index < 0) return -1;
  option.remove_prefix(dot + 1);
  return index;
}

void apply(device_name &all, std::string_view option) {
  const std::string_view whole = option;
  const std::int64_t only = split_device(option), own = std::max<std::int64_t>(0, all.index);
  device_name others = all;  // an option of another device is checked, too
  device_name &name = only >= 0 && only != own ? others : all;
  const std::size_t equals = option.find('=');
  const std::string_view key = option.substr(0, equals);
  const std::string_view value = equals == option.npos ? std::string_view() : option.substr(equals + 1);
  const auto nth = [&] { return planned_fault(positive(value, option)); };

  if (option == "timing-only") {
    name.timing_only = true;
  } else if (key == "memory") {
    name.memory = size_in_bytes(value, option);
  } else if (key == "taken") {
    name.taken = size_in_bytes(value, option);
  } else if (key == "largest-piece") {
    name.largest_piece = size_in_bytes(value, option);
  } else if (key == "fail-alloc") {
    name.fail_alloc = nth();
  } else if (key == "fail-copy") {
    name.fail_copy = nth();
  } else if (key == "fail-launch") {
    name.fail_launch = nth();
  } else if (key == "refuse-copy") {
    name.refuse_copy = nth();
  } else if (key == "refuse-launch") {
    name.refuse_launch = nth();
  } else if (key == "lost-at") {
    name.lost_at = nth();
  } else if (key == "peer-drop") {
    const std::size_t colon = value.find(':');
    if (colon == value.npos) refuse(option, "FROM:TO is needed");
    const std::int64_t from = index_in(value.substr(0, colon), option), to = index_in(value.substr(colon + 1), option);
    if (to == own) name.drops_from = from;
  } else if (key == "late-copy") {
    const std::size_t colon = value.find(':');
    if (colon == value.npos) refuse(option, "N:MICROSECONDS is needed");
    name.late_copy = planned_fault(positive(value.substr(0, colon), option));
    name.late_microseconds = positive(value.substr(colon + 1), option);
    if (name.late_microseconds > 60'000'000) refuse(option, "a minute is the most");
  } else {
    throw failure(SG_STATUS_INVALID_ARGUMENT, "a simulated device has no option \"%.*s\"; it has: %s",
                  static_cast<int>(whole.size()), whole.data(), known_options);
  }
}

}  // namespace

bool device_name::is_file() const {
  return model.find('/') != model.npos || std::string_view(model).ends_with(".json");
}

// "/INDEX" follows the name of a built-in machine, or a path that ends in ".json".
void device_name::split_index() {
  const std::size_t slash = model.rfind('/');
  if (slash == model.npos) return;
  const std::string_view rest = std::string_view(model).substr(slash + 1), before(model.data(), slash);
  if (before.find('/') != before.npos && !before.ends_with(".json")) return;
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (fault != std::errc() || end != rest.data() + rest.size() || value < 0) return;
  index = value;
  model.resize(slash);
}

device_name device_name::parse(const std::string &text) {
  device_name name;
  const std::size_t mark = text.rfind('?');
  name.model = text.substr(0, mark);
  name.split_index();
  if (mark == text.npos) return name;
  for (std::size_t at = mark + 1;;) {
    const std::size_t end = text.find('&', at);
    apply(name, std::string_view(text).substr(at, end == text.npos ? end : end - at));
    if (end == text.npos) return name;
    at = end + 1;
  }
}

}  // namespace sg::sim
