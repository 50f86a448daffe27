// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/error.hpp"
#include "devices/environment.hpp"
#include "devices/plugin.hpp"

namespace sg {

namespace {

constexpr std::string_view prefix = "libstreamgemm-";
constexpr std::string_view suffix = ".so";

std::string file_name(const std::string &path) { return path.substr(path.rfind('/') + 1); }

bool is_plugin(std::string_view name) {
  return name.size() > prefix.size() + suffix.size() && name.starts_with(prefix) && name.ends_with(suffix);
}

bool is_mine(const struct stat &facts) { return facts.st_uid == 0 || facts.st_uid == geteuid(); }

// Whether only root and this process's user can have made what is there now. The folder that a library was loaded from
// may be gone, and its name in /tmp another user's.
bool is_trusted(const std::string &folder) {
  struct stat named, facts;
  return lstat(folder.c_str(), &named) == 0 && stat(folder.c_str(), &facts) == 0 && is_mine(named) && is_mine(facts) &&
         S_ISDIR(facts.st_mode) && (facts.st_mode & S_IWOTH) == 0;
}

// Beside this library. Where it was to be installed, if the loader does not know its absolute path or it may not be
// trusted: nowhere else, for a moved library does not fit the plugins of another one.
std::string own_folder() {
  static const char marker = 0;
  Dl_info facts;
  if (getauxval(AT_SECURE) || !dladdr(&marker, &facts) || !facts.dli_fname || facts.dli_fname[0] != '/')
    return SG_PLUGIN_FOLDER;
  const std::string path = facts.dli_fname, folder = path.substr(0, path.rfind('/') + 1);
  if (!is_trusted(folder.size() > 1 ? folder.substr(0, folder.size() - 1) : folder)) return SG_PLUGIN_FOLDER;
  return folder + "streamgemm/backend-" + std::to_string(SG_BACKEND_ABI_VERSION);
}

// Adds the plugins of a folder in order of name.
void add_folder(const std::string &folder, std::vector<std::string> &paths) {
  const std::unique_ptr<DIR, int (*)(DIR *)> open(opendir(folder.c_str()), closedir);
  if (!open) return;
  std::vector<std::string> found;
  while (const dirent *entry = readdir(open.get())) {
    if (is_plugin(entry->d_name)) found.push_back(folder + "/" + entry->d_name);
  }
  std::sort(found.begin(), found.end());
  paths.insert(paths.end(), found.begin(), found.end());
}

plugin_files chosen_by_owner(const std::string &path) {
  const std::string shown = "SG_PLUGIN_PATH \"" + printable(path) + "\"";
  if (path[0] != '/') return {{}, shown + " is not an absolute path"};
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0) return {{}, shown + ": " + std::strerror(errno)};
  if (S_ISREG(facts.st_mode)) return {{path}, shown + " is a single plugin"};
  plugin_files files{{}, shown + " holds no such plugin"};
  add_folder(path, files.paths);
  return files;
}

}  // namespace

plugin_files find_plugins() {
  try {
    const std::string chosen = owner_variable("SG_PLUGIN_PATH", PATH_MAX);
    if (!chosen.empty()) return chosen_by_owner(chosen);
  } catch (const error &fault) {
    return {{}, fault.what()};
  }
  const std::string own = own_folder();
  plugin_files files{{}, "no such plugin in " + printable(own)};
  add_folder(own, files.paths);
  return files;
}

std::string plugin_name(const std::string &path) {
  std::string name = file_name(path);
  return is_plugin(name) ? name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()) : name;
}

}  // namespace sg
