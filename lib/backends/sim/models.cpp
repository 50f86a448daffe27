// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "failure.hpp"

namespace sg::sim {

namespace {

constexpr off_t most_file_bytes = 1 << 20;

class file {
 public:
  // O_NONBLOCK: opening a named pipe must not block.
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
  for (const auto &models : {built_in_models(), other_models()})
    for (const built_in_model &model : models) {
      if (wanted == model.name) return model.json;
      known += std::string(known.empty() ? "" : ", ") + model.name;
    }
  throw failure(SG_STATUS_NO_DEVICE, "no simulated device \"%.100s\"; there are %s, and paths of model files",
                wanted.c_str(), known.c_str());
}

using nlohmann::json;

std::string json_text(const std::string &text) {
  std::string out = "\"";
  for (const char c : text) {
    char control[8];
    std::snprintf(control, sizeof control, "\\u%04x", static_cast<unsigned char>(c));
    if (static_cast<unsigned char>(c) < 0x20)
      out += control;
    else if (c == '"' || c == '\\')
      out.append(1, '\\').append(1, c);
    else
      out += c;
  }
  return out + '"';
}

// Copies a model while parsing it, with another memory size if requested, and extracts the properties that a simulation
// needs. The parser's own tree is avoided: it allocates in destructors, which abort the process on failure.
class model_copier final : public nlohmann::json_sax<json> {
 public:
  // memory 0: the model's own.
  explicit model_copier(std::uint64_t memory) : memory_(memory) {}

  // A device of a machine: its model, and the number of such devices.
  struct device_row {
    std::size_t begin = 0, end = 0;  // in the copy
    std::uint64_t count = 1;
  };

  bool is_object() const noexcept { return is_object_; }
  bool is_machine() const noexcept { return is_machine_; }
  const std::vector<device_row> &rows() const noexcept { return rows_; }
  bool is_unified() const noexcept { return is_unified_; }
  std::string take() { return std::move(out_); }

  bool null() override { return put("null"); }
  bool boolean(bool value) override {
    if (at("unified_memory")) is_unified_ = value;
    return put(value ? "true" : "false");
  }
  bool number_integer(number_integer_t value) override { return put(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (in_row("count")) rows_.back().count = value;
    return put(std::to_string(value));
  }
  bool number_float(number_float_t, const string_t &as_given) override { return put(as_given); }
  bool string(string_t &value) override {
    if (!in_row("model")) return put(json_text(value));
    rows_.back().begin = out_.size();
    put(built_in(value));
    rows_.back().end = out_.size();
    return true;
  }
  bool binary(binary_t &) override { return false; }  // never in text
  bool start_object(std::size_t) override {
    is_object_ |= depth_ == 0;
    const bool is_model = in_row("model");
    if (depth_ == 2 && key_ == "devices") rows_.emplace_back();
    if (is_model) rows_.back().begin = out_.size();
    return open('{');
  }
  bool start_array(std::size_t) override { return open('['); }
  bool key(string_t &name) override {
    if (depth_ == 1) {
      key_ = name;
      has_memory_ |= at("memory_bytes");
      is_machine_ |= at("devices");
    }
    if (depth_ == 3) row_key_ = name;
    separate();
    out_ += json_text(name) + ": ";
    first_ = true;  // no comma between a key and its value
    return true;
  }
  bool end_object() override {
    if (depth_ == 1 && memory_ > 0 && !has_memory_) {
      string_t name = "memory_bytes";
      key(name);
      put("");
    }
    close('}');
    if (in_row("model")) rows_.back().end = out_.size();
    return true;
  }
  bool end_array() override { return close(']'); }
  bool parse_error(std::size_t, const std::string &, const json::exception &) override { return is_object_ = false; }

 private:
  bool at(const char *name) const { return depth_ == 1 && key_ == name; }
  // At the value of that key of an object in the array "devices".
  bool in_row(const char *name) const { return depth_ == 3 && key_ == "devices" && row_key_ == name && !rows_.empty(); }

  void separate() {
    if (!first_) out_ += ",\n ";
    first_ = false;
  }

  bool put(const std::string &value) {
    separate();
    out_ += memory_ > 0 && at("memory_bytes") ? std::to_string(memory_) : value;
    return true;
  }

  bool open(char bracket) {
    separate();
    out_ += bracket;
    first_ = true;
    ++depth_;
    return true;
  }

  bool close(char bracket) {
    out_ += bracket;
    first_ = false;
    --depth_;
    return true;
  }

  const std::uint64_t memory_;
  std::string out_, key_, row_key_;  // the current member of the root, and of an object two levels below
  std::vector<device_row> rows_;
  int depth_ = 0;
  bool first_ = true, is_object_ = false, is_unified_ = false, is_machine_ = false, has_memory_ = false;
};

std::string device_text(const std::string &text, const device_name &name) {
  // The core's parser validates the model; here only the properties of a simulation are checked.
  model_copier copier(name.memory);
  json::sax_parse(text, &copier);
  if (!copier.is_object())
    throw failure(SG_STATUS_INVALID_ARGUMENT, "device model \"%.200s\" is not a JSON object", name.model.c_str());
  if (copier.is_unified())
    throw failure(
        SG_STATUS_INVALID_ARGUMENT,
        "device model \"%.200s\": a simulated device has memory of its own, so 'unified_memory' must be false",
        name.model.c_str());
  return name.memory == 0 ? text : copier.take();
}

}  // namespace

namespace {

std::string text_of(const device_name &name) { return name.is_file() ? read_file(name.model) : built_in(name.model); }

}  // namespace

std::size_t devices_of(const device_name &name) {
  model_copier whole(0);
  json::sax_parse(text_of(name), &whole);
  std::uint64_t count = 0;
  for (const model_copier::device_row &row : whole.rows()) count += std::min<std::uint64_t>(row.count, 256);
  return whole.is_machine() ? static_cast<std::size_t>(count) : 0;
}

model_texts models_of(const device_name &name) {
  const std::string text = text_of(name);
  model_copier whole(0);
  json::sax_parse(text, &whole);
  if (!whole.is_machine()) {
    if (name.index >= 0)
      throw failure(SG_STATUS_NO_DEVICE, "\"%.200s\" is one device, and has none of index %lld", name.model.c_str(),
                    static_cast<long long>(name.index));
    return {device_text(text, name), ""};
  }
  const std::vector<model_copier::device_row> rows = whole.rows();
  const std::string machine = whole.take();
  std::uint64_t before = 0;
  const auto index = static_cast<std::uint64_t>(std::max<std::int64_t>(0, name.index));
  for (const model_copier::device_row &row : rows) {
    if (index - before < row.count) return {device_text(machine.substr(row.begin, row.end - row.begin), name), machine};
    before += row.count;
  }
  throw failure(SG_STATUS_NO_DEVICE, "machine \"%.200s\" has %llu devices, and none of index %llu", name.model.c_str(),
                static_cast<unsigned long long>(before), static_cast<unsigned long long>(index));
}

}  // namespace sg::sim
