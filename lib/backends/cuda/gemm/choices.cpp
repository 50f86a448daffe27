// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/gemm/choices.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <sstream>

namespace sg::cuda {
namespace {

constexpr off_t most_bytes = 4 << 20;
constexpr char first_line[] = "streamgemm cublasLt choices 2\n";

class descriptor {
 public:
  descriptor(const char *path, int flags) noexcept
      : value_(open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600)) {}
  ~descriptor() {
    if (value_ >= 0) close(value_);
  }
  descriptor(const descriptor &) = delete;
  descriptor &operator=(const descriptor &) = delete;
  int get() const noexcept { return value_; }
  // The size of a file that only this user can have written; -1: any other file.
  off_t own_size() const noexcept {
    struct stat facts;
    if (value_ < 0 || fstat(value_, &facts) != 0 || !S_ISREG(facts.st_mode)) return -1;
    if (facts.st_uid != geteuid() || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) return -1;
    return facts.st_size;
  }

 private:
  const int value_;
};

std::string read_all(int from, off_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = read(from, text.data() + got, text.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

}  // namespace

choices::choices(std::string path, std::string where) : path_(std::move(path)), where_(std::move(where)) {
  if (!path_.empty()) read();
}

// A line: the chip and version, a tab, the key's numbers, the choice's in hexadecimal, separated by blanks. Malformed
// lines are ignored.
void choices::read() {
  const descriptor file(path_.c_str(), O_RDONLY);
  const off_t size = file.own_size();
  if (size <= 0 || size > most_bytes) return;
  std::istringstream text(read_all(file.get(), size));
  std::string line;
  if (!std::getline(text, line) || line + '\n' != first_line) return;
  while (std::getline(text, line)) {
    const std::size_t tab = line.find('\t');
    // The last line may be truncated.
    if (text.eof() || tab == line.npos || line.compare(0, tab, where_) != 0) continue;
    std::istringstream numbers(line.substr(tab + 1));
    std::array<std::int64_t, matmul_key::fields> key{};
    kernel_choice choice{};
    for (std::int64_t &x : key) numbers >> x;
    numbers >> std::hex;
    for (std::uint64_t &x : choice) numbers >> x;
    if (numbers && (numbers >> std::ws).eof()) known_[matmul_key::of(key)] = choice;
  }
}

std::optional<kernel_choice> choices::find(const matmul_key &key) const noexcept {
  const std::lock_guard lock(lock_);
  const auto found = known_.find(key);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void choices::keep(const matmul_key &key, const kernel_choice &choice) noexcept {
  try {
    {
      const std::lock_guard lock(lock_);
      known_[key] = choice;
    }
    std::ostringstream line;
    line << where_ << '\t';
    for (const std::int64_t x : key.all()) line << x << ' ';
    line << std::hex;
    for (std::size_t i = 0; i < choice.size(); ++i) line << (i == 0 ? "" : " ") << choice[i];
    line << '\n';
    if (!path_.empty()) append(line.str());
  } catch (const std::bad_alloc &) {
  }
}

// One write for each line, so that concurrent processes do not mix lines.
void choices::append(const std::string &line) const noexcept {
  try {
    const std::size_t slash = path_.rfind('/');
    const std::string folder = path_.substr(0, slash), above = folder.substr(0, folder.rfind('/'));
    if (!above.empty()) mkdir(above.c_str(), 0700);
    mkdir(folder.c_str(), 0700);
    const descriptor file(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT);
    const off_t size = file.own_size();
    if (size < 0 || size > most_bytes - static_cast<off_t>(line.size())) return;
    const std::string text = size == 0 ? first_line + line : line;
    while (write(file.get(), text.data(), text.size()) < 0 && errno == EINTR) {
    }
  } catch (const std::bad_alloc &) {
  }
}

std::string choices_path() {
  const auto folder = [](const char *name) {
    const char *value = secure_getenv(name);
    return std::string(value != nullptr && value[0] == '/' ? value : "");
  };
  std::string cache = folder("XDG_CACHE_HOME");
  if (cache.empty() && !(cache = folder("HOME")).empty()) cache += "/.cache";
  return cache.empty() ? "" : cache + "/streamgemm/cublaslt-choices";
}

}  // namespace sg::cuda
