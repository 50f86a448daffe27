// SPDX-License-Identifier: Apache-2.0
#include "run/program/calibration.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "devices/environment.hpp"
#include "model/calibration.hpp"

namespace sg {

namespace {

constexpr std::size_t most_path_bytes = 4096;
constexpr off_t most_bytes_of_device = 64 << 10;

[[noreturn]] void refuse(const char *why) { throw error(SG_STATUS_INVALID_ARGUMENT, "%s", why); }

class file {
 public:
  // O_NONBLOCK: opening a named pipe must not block.
  explicit file(const std::string &path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)) {
    if (descriptor_ < 0) refuse(std::strerror(errno));
  }
  ~file() { close(descriptor_); }
  file(const file &) = delete;
  file &operator=(const file &) = delete;
  int descriptor() const noexcept { return descriptor_; }

 private:
  const int descriptor_;
};

// Only a file that no other user can have written.
std::string read_own_file(const std::string &path, off_t most_bytes) {
  const file source(path);
  struct stat facts;
  if (fstat(source.descriptor(), &facts) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) refuse("it is not a regular file");
  if (facts.st_uid != geteuid() && facts.st_uid != 0) refuse("it belongs to another user");
  if (facts.st_mode & (S_IWGRP | S_IWOTH)) refuse("others may write to it");
  if (facts.st_size > most_bytes)
    throw error(SG_STATUS_INVALID_ARGUMENT, "it is larger than %d KiB", int(most_bytes >> 10));
  std::string text(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = read(source.descriptor(), text.data() + got, text.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(std::strerror(errno));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

}  // namespace

std::string calibration_file(std::span<const std::string> devices) {
  std::string folder = owner_variable("XDG_CACHE_HOME", most_path_bytes);
  if (folder.empty() || folder[0] != '/') {  // the XDG Base Directory Specification ignores relative paths
    folder = owner_variable("HOME", most_path_bytes);
    if (folder.empty() || folder[0] != '/') refuse("neither XDG_CACHE_HOME nor HOME names a folder");
    folder += "/.cache";
  }
  std::string name;
  for (const std::string &each : devices) {
    if (!name.empty()) name += ',';
    name += calibrated_name(each);
  }
  name.resize(std::min<std::size_t>(name.size(), 100));
  for (char &c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-')) c = '-';
  return folder + "/streamgemm/" + name + ".json";
}

namespace {

// A file of one device's model, or of a machine's.
void take_file(machine_model &own, std::span<const std::string> names, const std::string &path) {
  const std::string text = read_own_file(path, most_bytes_of_device * off_t(names.size()));
  if (names.size() == 1)
    own.devices[0] = with_measured(own.devices[0], parse_device_model(text), names[0]);
  else
    own = with_measured(own, parse_machine_model(text), names);
  for (device_model &each : own.devices)
    each.sources.emplace_back("calibration", printable(path + " of " + each.calibrated_date, 900));
}

void take_calibration(machine_model &own, std::span<const std::string> names) {
  std::string path;
  try {
    const std::string setting = owner_variable("SG_CALIBRATION", most_path_bytes);
    if (setting.empty() || setting == "0") return;
    if (setting != "1" && setting[0] != '/') refuse("SG_CALIBRATION is neither 0 nor 1 nor an absolute path");
    path = setting == "1" ? calibration_file(names) : setting;
    if (setting == "1" && names.size() > 1 && ::access(path.c_str(), F_OK) != 0) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        machine_model alone;
        alone.devices.push_back(std::move(own.devices[i]));
        take_calibration(alone, names.subspan(i, 1));
        own.devices[i] = std::move(alone.devices[0]);
      }
      return;
    }
    take_file(own, names, path);
  } catch (const error &e) {
    const std::string reason = (path.empty() ? "" : path + ": ") + e.what();
    std::string all;
    for (const std::string &each : names) {
      if (!all.empty()) all += ',';
      all += each;
    }
    if (logs(log_level::warn, log_area::fallback))
      log_message(log_level::warn, log_area::fallback, "%s plans with its own figures, not with SG_CALIBRATION's: %s",
                  all.c_str(), reason.c_str());
    for (device_model &each : own.devices)
      each.sources.emplace_back("calibration", printable("passed over: " + reason, 900));
  }
}

}  // namespace

machine_model calibrated(machine_model own, std::span<const std::shared_ptr<device>> devices) {
  std::vector<std::string> names;
  for (const auto &each : devices) names.push_back(each->name());
  take_calibration(own, names);
  return own;
}

}  // namespace sg
