// SPDX-License-Identifier: Apache-2.0
#include "devices/device.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/error.hpp"
#include "base/numa.hpp"
#include "devices/environment.hpp"
#include "devices/registry.hpp"
#include "model/machine_model.hpp"

namespace sg {

namespace {

constexpr std::size_t most_name_bytes = 4096;  // may hold a path

// The backend of a device name; `source` is the origin of the name in messages.
const backend_entry &backend_of(const std::string &backend, const std::string &name, const char *source) {
  const backend_entry *entry = find_backend(backend);
  if (entry && entry->available) return *entry;
  const std::string shown = printable(name, 100);
  if (entry)
    throw error(SG_STATUS_NO_DEVICE, "%s \"%s\": backend %s is not available: %s", source, shown.c_str(),
                entry->name.c_str(), entry->reason.c_str());
  std::string known;
  for (const backend_entry &each : backends()) known += (known.empty() ? "" : ", ") + each.name;
  throw error(SG_STATUS_NO_DEVICE, "%s \"%s\": there is no such backend; there are %s", source, shown.c_str(),
              known.c_str());
}

device_name split_name(const std::string &name, const char *source) {
  const std::size_t colon = name.find(':');
  device_name parts{name.substr(0, colon), colon == name.npos ? "" : name.substr(colon + 1)};
  const backend_entry &entry = backend_of(parts.backend, name, source);
  if (parts.device.empty()) {
    char first[256] = "";
    if (entry.ops->device_count() < 1 || entry.ops->device_name(0, first, sizeof first) != SG_STATUS_OK)
      throw error(SG_STATUS_NO_DEVICE, "%s \"%s\": that backend has no device", source, printable(name, 100).c_str());
    first[sizeof first - 1] = '\0';
    parts.device = first;
  }
  return parts;
}

// "a-b" of whole numbers.
bool split_range(const std::string &item, std::uint64_t &first, std::uint64_t &last) {
  const std::size_t dash = item.find('-');
  if (dash == item.npos) return false;
  const auto number = [](const char *begin, const char *end, std::uint64_t &value) {
    const auto [stop, fault] = std::from_chars(begin, end, value);
    return fault == std::errc() && stop == end;
  };
  const char *const text = item.c_str();
  return number(text, text + dash, first) && number(text + dash + 1, text + item.size(), last);
}

// Expands a list into the names of counted devices.
class device_list {
 public:
  explicit device_list(const device_name &given) : given_(given) {
    const sg_backend_ops &ops = *find_backend(given.backend)->ops;
    for (std::int32_t i = 0; i < ops.device_count(); ++i) {
      char text[256] = "";
      if (ops.device_name(i, text, sizeof text) == SG_STATUS_OK) counted_.emplace_back(text);
    }
  }

  std::vector<device_name> expand() {
    const std::string &text = given_.device;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      const std::string item = text.substr(at, end - at);
      std::uint64_t first = 0, last = 0;
      if (item == "all") {
        for (const std::string &each : counted_) add(each);
      } else if (split_range(item, first, last)) {
        if (first > last || last - first >= most_devices) refuse(item, "is no range");
        for (; first <= last; ++first) add(std::to_string(first));
      } else {
        add(item);
      }
      at = end + 1;
    }
    return std::move(all_);
  }

 private:
  [[noreturn]] void refuse(const std::string &item, const char *why) const {
    throw error(SG_STATUS_INVALID_ARGUMENT, "device \"%s\": \"%s\" %s", printable(given_.text(), 100).c_str(),
                printable(item, 60).c_str(), why);
  }

  void add(const std::string &item) {
    if (std::find(counted_.begin(), counted_.end(), item) == counted_.end())
      refuse(item, "is no device that the backend counts");
    for (const device_name &each : all_)
      if (each.device == item) refuse(item, "is named twice");
    all_.push_back({given_.backend, item});
  }

  const device_name given_;
  std::vector<std::string> counted_;
  std::vector<device_name> all_;
};

// The devices of a machine that is named as a whole; the name itself if it is of one device.
std::vector<device_name> devices_of_machine(const device_name &given) {
  std::vector<device_name> all;
  const auto name_in_machine = find_backend(given.backend)->ops->machine_device_name;
  char text[most_name_bytes + 64] = "";
  while (name_in_machine && all.size() < most_devices &&
         name_in_machine(given.device.c_str(), static_cast<std::int32_t>(all.size()), text, sizeof text) ==
             SG_STATUS_OK)
    all.push_back({given.backend, text});
  if (all.empty()) all.push_back(given);
  return all;
}

std::shared_ptr<device> opened(const device_name &name) {
  return std::make_shared<device>(*find_backend(name.backend)->ops, name);
}

}  // namespace

std::vector<device_name> resolve_devices(const char *name) {
  const device_name given = resolve_device(name);
  const std::string &text = given.device;
  const bool is_path = text.find_first_of("/?") != text.npos || std::string_view(text).ends_with(".json");
  std::uint64_t first = 0, last = 0;
  const bool is_list = text == "all" || text.find(',') != text.npos || split_range(text, first, last);
  if (is_path || !is_list) return devices_of_machine(given);
  return device_list(given).expand();
}

device_name resolve_device(const char *name) {
  const std::string_view given(name ? name : "", name ? strnlen(name, most_name_bytes + 1) : 0);
  if (given.size() > most_name_bytes)
    throw error(SG_STATUS_INVALID_ARGUMENT, "the name of a device is longer than %zu bytes", most_name_bytes);
  if (!given.empty() && given != "auto") return split_name(std::string(given), "device");
  const std::string chosen = owner_variable("SG_DEVICE", most_name_bytes);
  if (!chosen.empty() && chosen != "auto") return split_name(chosen, "SG_DEVICE");
  const backend_entry *cuda = find_backend("cuda");
  return cuda && cuda->available ? device_name{"cuda", "0"} : split_name("cpu", "device");
}

device::device(const sg_backend_ops &ops, const device_name &name) : ops_(ops), name_(name.text()) {
  char message[SG_BACKEND_MESSAGE_SIZE] = "";
  const sg_status status = ops.device_open(host_services(), name.device.c_str(), &handle_, message);
  message[sizeof message - 1] = '\0';
  if (status != SG_STATUS_OK)
    throw error(status, "device \"%s\": %s", printable(name_, 100).c_str(), printable(message, 360).c_str());
  try {
    // Opened by its UUID, or by the process's rank: its name is that of its index. A backend with machines does not
    // count all of its devices.
    if (ops.device_index && !ops.machine_device_name)
      if (std::string counted = name_of(index()); !counted.empty()) name_ = std::move(counted);
    const char *model = ops.device_model(handle_);
    model_ = std::make_unique<const device_model>(parse_device_model(model ? model : ""));
    if (const char *machine = ops.machine_model ? ops.machine_model(handle_) : nullptr)
      machine_ = std::make_unique<const machine_model>(parse_machine_model(machine));
  } catch (...) {
    ops.device_close(handle_);
    throw;
  }
}

device::~device() { ops_.device_close(handle_); }

std::string device::name_of(std::int32_t other) const {
  char text[64] = "";
  if (other < 0 || other >= ops_.device_count() || ops_.device_name(other, text, sizeof text) != SG_STATUS_OK)
    return "";
  return device_name{ops_.name, text}.text();
}

std::int32_t device::index() const noexcept {
  if (ops_.device_index) return ops_.device_index(handle_);
  for (std::int32_t i = 0; i < ops_.device_count(); ++i)
    if (name_of(i) == name_) return i;
  return -1;
}

bool device::connect(const device &other, double bytes_per_second, std::string &reason) const {
  reason = "the backend has no such links";
  if (!ops_.peer_connect) return false;
  if (ops_.peer_connect(handle_, other.handle_, bytes_per_second) == SG_STATUS_OK) return true;
  const char *text = ops_.last_message(handle_);
  reason = printable(text ? text : "", 300);
  return false;
}

void device::check(sg_status status, const char *what) const {
  if (status == SG_STATUS_OK) return;
  const char *text = ops_.last_message(handle_);
  throw error(status, "%s: %s failed: %s", printable(name_, 80).c_str(), what,
              text && *text ? printable(text, 300).c_str() : "it gave no reason");
}

void *device::mem_alloc(std::uint64_t bytes) const {
  void *memory = nullptr;
  const sg_status status = ops_.mem_alloc(handle_, bytes, &memory);
  if (status != SG_STATUS_OUT_OF_MEMORY) {
    check(status, "allocating device memory");
    return memory;
  }
  const char *reason = ops_.last_message(handle_);
  const std::string shown = printable(reason ? reason : "", 240);  // before another call replaces it
  const auto free = free_memory();
  throw error(status, "%s: %llu bytes of device memory are wanted, %s are free: %s", printable(name_, 80).c_str(),
              static_cast<unsigned long long>(bytes), free ? std::to_string(*free).c_str() : "an unknown number",
              shown.c_str());
}

void *device::host_alloc(std::uint64_t bytes, int node) const {
  const page_placement placed(node);  // pinning touches the pages
  void *memory = nullptr;
  check(ops_.host_alloc(handle_, bytes, &memory), "allocating pinned memory");
  return memory;
}

sg_backend_stream *device::stream_create(std::int32_t priority) const {
  sg_backend_stream *stream = nullptr;
  check(ops_.stream_create(handle_, priority, &stream), "creating a stream");
  return stream;
}

sg_backend_event *device::event_create() const {
  sg_backend_event *event = nullptr;
  check(ops_.event_create(handle_, &event), "creating an event");
  return event;
}

void device::host_register(void *memory, std::uint64_t bytes) const {
  if (ops_.host_register) check(ops_.host_register(handle_, memory, bytes), "registering host memory");
}

void device::host_unregister(void *memory) const {
  if (ops_.host_unregister) check(ops_.host_unregister(handle_, memory), "unregistering host memory");
}

memory_space device::space_of(const void *memory, std::uint64_t bytes) const noexcept {
  if (!ops_.memory_space) return SG_MEMORY_DEVICE;
  const sg_backend_space found = ops_.memory_space(handle_, memory, bytes);
  const bool names_peer =
      found.kind == SG_MEMORY_PEER && found.device >= 0 && found.device < memory_space::unknown_peer;
  return names_peer ? memory_space::of_peer(static_cast<std::uint16_t>(found.device)) : memory_space(found.kind);
}

void device::begin_at(sg_backend_stream *stream, std::int64_t device_ns) const {
  if (ops_.stream_begin_at) check(ops_.stream_begin_at(stream, device_ns), "setting a stream's clock");
}

void device::drain() const noexcept {
  if (ops_.drain) ops_.drain(handle_);
}

sg_backend_facts device::facts() const noexcept {
  sg_backend_facts found{};
  found.struct_size = sizeof found;
  if (ops_.facts) ops_.facts(handle_, &found);
  found.mig[sizeof found.mig - 1] = '\0';
  found.uuid[sizeof found.uuid - 1] = '\0';
  found.peer_count = std::clamp(found.peer_count, 0, SG_MAX_PEERS);
  return found;
}

std::optional<std::uint64_t> device::free_memory() const noexcept {
  std::uint64_t bytes = 0;
  if (!ops_.mem_free_bytes || ops_.mem_free_bytes(handle_, &bytes) != SG_STATUS_OK) return std::nullopt;
  return bytes;
}

std::uint64_t device::known_free_memory() const {
  std::uint64_t bytes = 0;
  if (!ops_.mem_free_bytes)
    throw error(SG_STATUS_UNSUPPORTED, "device %.64s does not tell its free memory", name_.c_str());
  check(ops_.mem_free_bytes(handle_, &bytes), "asking for its free memory");
  return bytes;
}

std::vector<std::shared_ptr<device>> open_devices(const char *name) {
  std::vector<std::shared_ptr<device>> all;
  for (const device_name &each : resolve_devices(name)) all.push_back(opened(each));
  return all;
}

std::shared_ptr<device> open_device(const char *name) {
  const std::vector<device_name> resolved = resolve_devices(name);
  if (resolved.size() != 1)
    throw error(SG_STATUS_UNSUPPORTED, "device \"%s\" names %zu devices, and one is needed",
                printable(resolve_device(name).text(), 100).c_str(), resolved.size());
  return opened(resolved[0]);
}

}  // namespace sg
