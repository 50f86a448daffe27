// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <filesystem>

#include "../library.hpp"
#include "peers.hpp"

namespace sg::cli {

namespace fs = std::filesystem;

// The module is installed below the library's folder; in a build folder it is beside the program.
peer_lists load_cpu_peers() {
  for (const fs::path &folder : {library_folder() / "streamgemm", fs::read_symlink("/proc/self/exe").parent_path()}) {
    const fs::path path = folder / "libstreamgemm-bench-cpu.so";
    if (!fs::exists(path)) continue;
    void *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void *entry = module ? dlsym(module, "sg_bench_cpu_peers") : nullptr;
    if (!entry) throw failure(exit_code::failed, std::string("the peers of the CPU: ") + dlerror());
    return *reinterpret_cast<decltype(&sg_bench_cpu_peers)>(entry)();
  }
  return {};
}

}  // namespace sg::cli
