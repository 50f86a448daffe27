// SPDX-License-Identifier: Apache-2.0
// streamgemm calibrate: measures a device, or several together, once, and writes the results as a model.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "device_figures.hpp"
#include "library.hpp"
#include "machine_figures.hpp"
#include "progress.hpp"
#include "verbs.hpp"

namespace sg::cli {

namespace {

struct calibrate_arguments {
  std::string device, output;
  bool json = false, quick = false;
};

// The file that the library reads when SG_CALIBRATION is 1 (docs/environment.md).
std::string usual_file(const std::vector<std::string> &devices) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::string folder = cache && cache[0] == '/' ? cache : home && home[0] == '/' ? std::string(home) + "/.cache" : "";
  if (folder.empty())
    throw failure(exit_code::usage, "neither XDG_CACHE_HOME nor HOME names a folder: say where by --output");
  std::string name;
  for (const std::string &each : devices) name += (name.empty() ? "" : ",") + without_options(each);
  name = name.substr(0, 100);
  for (char &c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-')) c = '-';
  return folder + "/streamgemm/" + name + ".json";
}

[[noreturn]] void cannot_write(const std::string &path) {
  throw failure(exit_code::failed, path + ": " + std::strerror(errno));
}

void make_folders(const std::string &path) {
  for (std::size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1))
    if (mkdir(path.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) cannot_write(path);
}

// For its owner only, and atomically: a concurrent reader finds the old file or the new one.
void write_private(const std::string &path, const std::string &text) {
  std::string fresh = path + ".XXXXXX";
  const int file = mkostemp(fresh.data(), O_CLOEXEC);  // of mode 0600
  if (file < 0) cannot_write(path);
  const bool written = ::write(file, text.data(), text.size()) == ssize_t(text.size()) && fsync(file) == 0;
  if (close(file) == 0 && written && rename(fresh.c_str(), path.c_str()) == 0) return;
  const int reason = errno;
  unlink(fresh.c_str());
  errno = reason;
  cannot_write(path);
}

// The devices of a context, by name.
std::vector<std::string> devices_of(sg_context *context) {
  std::int32_t count = 0;
  check(sg_context_device_count(context, &count), "the number of devices");
  std::vector<std::string> names;
  for (std::int32_t i = 0; i < count; ++i) {
    sg_device_info info = SG_DEVICE_INFO_INIT;
    check(sg_context_get_device_info(context, i, &info), "device information");
    names.emplace_back(info.name);
  }
  return names;
}

void write_model(const std::string &path, const json &model) { write_private(path, model.dump(2) + "\n"); }

json to_json(const device_figures &x, const std::string &path) {
  return {{"device", x.device}, {"file", path}, {"model", x.model}, {"copies", x.copies}, {"products", x.gemms}};
}

void print_file(const std::string &path) {
  std::printf("written to %s; contexts use it where SG_CALIBRATION is 1 or names this file\n", path.c_str());
}

void run(const calibrate_arguments &given) {
  const std::vector<std::string> devices = devices_of(open_context({.device = given.device}).get());
  const bool is_machine = devices.size() > 1;
  const std::string path = given.output.empty() ? usual_file(devices) : given.output;
  if (given.output.empty()) make_folders(path);
  progress line("measuring");
  std::vector<device_figures> all;
  for (const std::string &each : devices)
    all.push_back(figures_of(each, given.quick,
                             [&](const std::string &what) { line.doing(is_machine ? each + ": " + what : what); }));
  if (!is_machine) {
    write_model(path, all[0].model);
    line.clear();
    if (given.json) return print_json(to_json(all[0], path));
    print_figures(all[0]);
    return print_file(path);
  }
  // The name of a machine takes options, a list of devices does not.
  const bool takes_options = devices[0].starts_with(without_options(given.device) + "/");
  machine_figures together =
      figures_of_machine(takes_options ? timing_only(given.device) : given.device, devices[0].starts_with("sim:"),
                         [&](const std::string &what) { line.doing(what); });
  together.machine["devices"] = json::array();
  for (const device_figures &each : all) together.machine["devices"].push_back({{"model", each.model}, {"count", 1}});
  // Each device's own file too, for contexts over it alone or with others.
  const auto file_of = [&](const device_figures &x) { return given.output.empty() ? usual_file({x.device}) : path; };
  if (given.output.empty())
    for (const device_figures &each : all) write_model(file_of(each), each.model);
  write_model(path, together.machine);
  line.clear();
  if (given.json) {
    json rows = json::array();
    for (const device_figures &each : all) rows.push_back(to_json(each, file_of(each)));
    return print_json({{"file", path},
                       {"machine", together.machine},
                       {"devices", rows},
                       {"links", together.links},
                       {"peers", together.peers}});
  }
  for (const device_figures &each : all) {
    std::printf("%s\n", each.device.c_str());
    print_figures(each);
  }
  print_machine_figures(together, devices);
  print_file(path);
}

}  // namespace

void add_calibrate(CLI::App &app) {
  auto given = std::make_shared<calibrate_arguments>();
  CLI::App *verb = app.add_subcommand("calibrate", "Measure a device or several once, for plans that fit them");
  verb->add_option("--device", given->device, "What to measure, e.g. cuda:0, cuda:all (default auto)");
  verb->add_option("-o,--output", given->output, "Write the model here (default: the user's cache)");
  verb->add_flag("--quick", given->quick, "Copies only: GEMM rates stay as they are");
  verb->add_flag("--json", given->json, "Print JSON");
  verb->footer("Example: streamgemm calibrate --device cuda:0 && SG_CALIBRATION=1 streamgemm plan 4096x4096x4096");
  verb->callback([given] {
    if (given->device.empty()) given->device = "auto";
    run(*given);
  });
}

}  // namespace sg::cli
