// SPDX-License-Identifier: Apache-2.0
#include "run/program/calibration.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "devices/environment.hpp"
#include "model/calibration.hpp"

namespace sg {

namespace {

constexpr std::size_t most_path_bytes = 4096;
constexpr off_t most_file_bytes = 64 << 10;

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
std::string read_own_file(const std::string &path) {
  const file source(path);
  struct stat facts;
  if (fstat(source.descriptor(), &facts) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) refuse("it is not a regular file");
  if (facts.st_uid != geteuid() && facts.st_uid != 0) refuse("it belongs to another user");
  if (facts.st_mode & (S_IWGRP | S_IWOTH)) refuse("others may write to it");
  if (facts.st_size > most_file_bytes) refuse("it is larger than 64 KiB");
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

std::string calibration_file(const std::string &device) {
  std::string folder = owner_variable("XDG_CACHE_HOME", most_path_bytes);
  if (folder.empty() || folder[0] != '/') {  // the XDG Base Directory Specification ignores relative paths
    folder = owner_variable("HOME", most_path_bytes);
    if (folder.empty() || folder[0] != '/') refuse("neither XDG_CACHE_HOME nor HOME names a folder");
    folder += "/.cache";
  }
  std::string name = calibrated_name(device).substr(0, 100);
  for (char &c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-')) c = '-';
  return folder + "/streamgemm/" + name + ".json";
}

device_model calibrated_model(const device &on) {
  const device_model &own = on.model();
  std::string setting, path;
  const auto passed_over = [&](const char *why) {
    if (logs(log_level::warn, log_area::fallback))
      log_message(log_level::warn, log_area::fallback,
                  "%s plans with its own figures, not with SG_CALIBRATION's: %s%s%s", on.name().c_str(), path.c_str(),
                  path.empty() ? "" : ": ", why);
    device_model model = own;
    model.sources.emplace_back("calibration",
                               printable("passed over: " + (path.empty() ? "" : path + ": ") + why, 900));
    return model;
  };
  try {
    setting = owner_variable("SG_CALIBRATION", most_path_bytes);
    if (setting.empty() || setting == "0") return own;
    if (setting != "1" && setting[0] != '/') refuse("SG_CALIBRATION is neither 0 nor 1 nor an absolute path");
    path = setting == "1" ? calibration_file(on.name()) : setting;
    device_model model = with_measured(own, parse_device_model(read_own_file(path)), on.name());
    model.sources.emplace_back("calibration", printable(path + " of " + model.calibrated_date, 900));
    return model;
  } catch (const error &e) {
    return passed_over(e.what());
  }
}

}  // namespace sg
