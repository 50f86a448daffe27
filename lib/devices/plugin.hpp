// SPDX-License-Identifier: Apache-2.0
// Plugins: where their files are searched, and how their tables are loaded.
#pragma once

#include <streamgemm/backend.h>

#include <string>
#include <vector>

namespace sg {

// The files to load, in order, and for error messages the folders searched, or why there are none.
struct plugin_files {
  std::vector<std::string> paths;
  std::string note;
};

// With SG_PLUGIN_PATH: that file, or the files of that folder; it must be absolute. Otherwise the folder
// "streamgemm/backend-3" beside this library, 3 being the version of the plugins' interface; where that is unknown, and
// in a setuid program, the folder configured at build time. Never the current folder.
plugin_files find_plugins();

// The "cuda" of ".../libstreamgemm-cuda.so"; the file name if it does not have that form.
std::string plugin_name(const std::string &path);

// Loads a plugin for the rest of the process and returns its table. Throws SG_STATUS_NO_DEVICE with the loader's text.
const sg_backend_ops *load_plugin(const std::string &path);

// A copy of a table in this library's size: slots unknown to the backend are NULL. Throws SG_STATUS_NO_DEVICE for
// another version or an empty required slot; `table` may be NULL.
sg_backend_ops sound_table(const sg_backend_ops *table);

}  // namespace sg
