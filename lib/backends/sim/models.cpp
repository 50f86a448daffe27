// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "failure.hpp"

namespace sg::sim {

namespace {

constexpr off_t most_file_bytes = 1 << 20;

class file {
 public:
  // O_NONBLOCK: a name that turns out to be a pipe must not make anyone wait.
  explicit file(const std::string &path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~file() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  file(const file &) = delete;
  file &operator=(const file &) = delete;
  int descriptor() const noexcept { return descriptor_; }

 private:
  const int descriptor_;
};

[[noreturn]] void unreadable(const std::string &path, const char *why) {
  throw failure(SG_STATUS_NO_DEVICE, "device model \"%.200s\" cannot be read: %s", path.c_str(), why);
}

std::string read_file(const std::string &path) {
  const file source(path);
  struct stat facts;
  if (source.descriptor() < 0 || fstat(source.descriptor(), &facts) != 0) unreadable(path, std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) unreadable(path, "it is not a regular file");
  if (facts.st_size > most_file_bytes) unreadable(path, "it is larger than 1 MiB");
  std::string text(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = read(source.descriptor(), text.data() + got, text.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) unreadable(path, std::strerror(errno));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

std::string built_in(const std::string &wanted) {
  std::string known;
  for (const built_in_model &model : built_in_models()) {
    if (wanted == model.name) return model.json;
    known += std::string(known.empty() ? "" : ", ") + model.name;
  }
  throw failure(SG_STATUS_NO_DEVICE, "no simulated device \"%.100s\"; there are %s, and paths of model files",
                wanted.c_str(), known.c_str());
}

}  // namespace

std::string model_text(const device_name &name) {
  const std::string text = name.is_file() ? read_file(name.model) : built_in(name.model);
  // Whether it is a sound model is for the core's parser to say; here only what concerns a simulation.
  nlohmann::json model = nlohmann::json::parse(text, nullptr, false);
  if (!model.is_object())
    throw failure(SG_STATUS_INVALID_ARGUMENT, "device model \"%.200s\" is not a JSON object", name.model.c_str());
  if (model.value("unified_memory", nlohmann::json()) == true)
    throw failure(
        SG_STATUS_INVALID_ARGUMENT,
        "device model \"%.200s\": a simulated device has memory of its own, so 'unified_memory' must be false",
        name.model.c_str());
  if (name.memory == 0) return text;
  model["memory_bytes"] = name.memory;
  return model.dump(1);
}

}  // namespace sg::sim
