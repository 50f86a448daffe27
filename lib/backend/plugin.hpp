// SPDX-License-Identifier: Apache-2.0
// Plugins: where their files are looked for, and how a backend's table is taken in.
#pragma once

#include <streamgemm/backend.h>

#include <string>
#include <vector>

namespace sg {

// The files to load, in order, and a note for error messages: which folders were searched, or why none.
struct plugin_files {
  std::vector<std::string> paths;
  std::string note;
};

// With SG_PLUGIN_PATH set by the process's owner: that file, or the files of that folder; it must be absolute.
// Otherwise the folder "streamgemm" beside this library and the one that the build configured, a file name of the first
// hiding the same one of the second. In a setuid program only the latter. Never the current folder.
plugin_files find_plugins();

// The "cuda" of ".../libstreamgemm-cuda.so"; the file's name when it does not have that form.
std::string plugin_name(const std::string &path);

// Loads a plugin for the rest of the process and returns its table. Throws SG_STATUS_NO_DEVICE with the loader's text.
const sg_backend_ops *load_plugin(const std::string &path);

// A copy of a table in this library's size: slots that the backend does not know are NULL. Throws SG_STATUS_NO_DEVICE
// when its version is another or a required slot is empty; `table` may be NULL.
sg_backend_ops sound_table(const sg_backend_ops *table);

}  // namespace sg
