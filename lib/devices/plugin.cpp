// SPDX-License-Identifier: Apache-2.0
#include "devices/plugin.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.hpp"
#include "devices/environment.hpp"

namespace sg {

namespace {

struct slot {
  const char *name;
  std::size_t offset;
};

#define SLOT(name) \
  { #name, offsetof(sg_backend_ops, name) }
constexpr slot required[] = {
    SLOT(probe),         SLOT(device_count),  SLOT(device_name),    SLOT(device_open), SLOT(device_close),
    SLOT(device_model),  SLOT(last_message),  SLOT(mem_alloc),      SLOT(mem_free),    SLOT(host_alloc),
    SLOT(host_free),     SLOT(stream_create), SLOT(stream_destroy), SLOT(stream_wait), SLOT(event_create),
    SLOT(event_destroy), SLOT(event_record),  SLOT(supports),       SLOT(enqueue),
};
#undef SLOT

bool is_empty(const sg_backend_ops &table, const slot &which) {
  void (*function)() = nullptr;
  std::memcpy(&function, reinterpret_cast<const char *>(&table) + which.offset, sizeof function);
  return !function;
}

// A backend's name is the part of a device's name before the colon.
bool is_backend_name(const char *name) {
  if (!name) return false;
  const std::string_view text(name, strnlen(name, 33));
  return !text.empty() && text.size() <= 32 && text != "auto" && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

}  // namespace

namespace {

// A plugin's code runs in this process, so that only its user and root may have written it.
void require_trusted(const std::string &path) {
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0) throw error(SG_STATUS_NO_DEVICE, "%s", std::strerror(errno));
  if (facts.st_uid != 0 && facts.st_uid != geteuid())
    throw error(SG_STATUS_NO_DEVICE, "it is not loaded: it belongs to user %lu, neither to root nor to this process's",
                static_cast<unsigned long>(facts.st_uid));
  if ((facts.st_mode & S_IWOTH) != 0)
    throw error(SG_STATUS_NO_DEVICE, "it is not loaded: every user can write to it (mode %o)",
                static_cast<unsigned>(facts.st_mode & 07777));
}

}  // namespace

const sg_backend_ops *load_plugin(const std::string &path) {
  require_trusted(path);
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw error(SG_STATUS_NO_DEVICE, "%s", printable(dlerror(), 400).c_str());
  void *entry = dlsym(library, SG_BACKEND_ENTRY_SYMBOL);
  if (!entry)
    throw error(SG_STATUS_NO_DEVICE, "it has no symbol %s, so it is no plugin for this version",
                SG_BACKEND_ENTRY_SYMBOL);
  // Never unloaded, even on failure: its constructors may have started threads and installed handlers.
  return reinterpret_cast<sg_backend_entry_fn>(entry)();
}

sg_backend_ops sound_table(const sg_backend_ops *table) {
  if (!table) throw error(SG_STATUS_NO_DEVICE, "it offers no table");
  if (table->abi_version != SG_BACKEND_ABI_VERSION)
    throw error(SG_STATUS_NO_DEVICE, "its table has version %u, this library works with version %u", table->abi_version,
                SG_BACKEND_ABI_VERSION);
  if (table->struct_size < offsetof(sg_backend_ops, probe))
    throw error(SG_STATUS_NO_DEVICE, "its table of %u bytes is too short", table->struct_size);
  sg_backend_ops own{};
  std::memcpy(&own, table, std::min<std::size_t>(table->struct_size, sizeof own));
  own.struct_size = sizeof own;
  if (!is_backend_name(own.name))
    throw error(SG_STATUS_NO_DEVICE, "its name must be 1 to 32 of a-z, 0-9, '-' and '_', and not \"auto\"");
  for (const slot &each : required)
    if (is_empty(own, each)) throw error(SG_STATUS_NO_DEVICE, "its required function \"%s\" is missing", each.name);
  if (!own.host_register != !own.host_unregister)
    throw error(SG_STATUS_NO_DEVICE, "it has only one of host_register and host_unregister");
  return own;
}

}  // namespace sg
