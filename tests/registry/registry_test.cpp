// SPDX-License-Identifier: Apache-2.0
// The registry: plugins sound and spoilt, hostile variables, names of devices. It is loaded once in a process, so each
// case asks registry_report, a process of its own.
#include "backend/registry.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "backend/environment.hpp"
#include "base/error.hpp"
#include "plan/device_model.hpp"

namespace sg::test {
namespace {

using std::string;
using strings = std::vector<string>;
namespace fs = std::filesystem;

const fs::path report_program = REPORT_PROGRAM;
const fs::path built_plugins = PLUGIN_FOLDER;

// Runs a program with exactly these variables, in `folder`; what it printed.
string output_of(const fs::path &program, strings variables, strings arguments, const fs::path &folder = "/") {
  for (const char *passed : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"})
    if (const char *value = getenv(passed)) variables.push_back(string(passed) + "=" + value);
  arguments.insert(arguments.begin(), program.string());
  const auto pointers = [](strings &texts) {
    std::vector<char *> list;
    for (string &text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  };
  const auto argv = pointers(arguments), envp = pointers(variables);
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    if (chdir(folder.c_str()) != 0) _exit(126);
    execve(program.c_str(), argv.data(), envp.data());
    _exit(127);
  }
  close(ends[1]);
  string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) text += "ended with status " + std::to_string(status);
  return text;
}

string report(const strings &variables, const strings &devices = {}, const fs::path &folder = "/") {
  return output_of(report_program, variables, devices, folder);
}

void expect_in(const string &text, const string &part) {
  EXPECT_NE(text.find(part), string::npos) << "\"" << part << "\" is not in:\n" << text;
}
void expect_not_in(const string &text, const string &part) {
  EXPECT_EQ(text.find(part), string::npos) << "\"" << part << "\" is in:\n" << text;
}
void expect_printable(const string &text) {
  for (const char c : text) ASSERT_TRUE(c == '\n' || (c >= ' ' && c < 0x7f)) << "unprintable in:\n" << text;
}

string plugin(const string &variant) { return (built_plugins / ("libstreamgemm-" + variant + ".so")).string(); }
string plugin_path(const string &value) { return "SG_PLUGIN_PATH=" + value; }

// A folder that is gone when the test is.
class temporary_folder {
 public:
  temporary_folder() {
    if (!mkdtemp(path_.data())) throw std::runtime_error("no temporary folder");
  }
  ~temporary_folder() { fs::remove_all(path_); }
  temporary_folder(const temporary_folder &) = delete;
  temporary_folder &operator=(const temporary_folder &) = delete;
  fs::path operator/(const string &name) const { return fs::path(path_) / name; }
  const string &path() const { return path_; }

 private:
  string path_ = "/tmp/sg-registry-XXXXXX";
};

TEST(Plugins, NoneIsNeeded) {
  const string text = report({});
  expect_in(text, "backend cpu|available|built in|\n");
  expect_in(text, "backend sim|available|built in|\n");
  expect_in(text, "backend cuda|missing||no such plugin in /");
}

TEST(Plugins, AGoodOneWorks) {
  const string text = report({plugin_path(plugin("good"))}, {"tiny:a100", "tiny", "tiny:", "tiny:nothing"});
  expect_in(text, "backend tiny|available|" + plugin("good") + "|\n");
  expect_in(text, "device tiny:a100\ndevice tiny:h200\ndevice tiny:h200\n");
  expect_in(text, "SG_STATUS_NO_DEVICE device \"tiny:nothing\": no simulated device \"nothing\"");
  expect_in(text, "backend cuda|missing||SG_PLUGIN_PATH");
}

TEST(Plugins, AnOlderTableIsCompletedWithNull) {
  expect_in(report({plugin_path(plugin("short-but-sound"))}, {"tiny:a100"}), "device tiny:a100\n");
}

TEST(Plugins, SpoiltOnesAreRefusedWithAReason) {
  const struct {
    string variant, reason;
  } cases[] = {
      {"unwilling", "the bell\\x07 is out of order"},
      {"wrong-version", "version 2, this library works with version 1"},
      {"missing-slot", "required function \"event_record\" is missing"},
      {"half-a-pair", "only one of host_register and host_unregister"},
      {"too-short", "too short"},
      {"cut-off", "required function \"gemm\" is missing"},
      {"nameless", "its name must be"},
      {"impostor", "it calls itself \"cpu\""},
      {"no-table", "it offers no table"},
      {"no-symbol", "no symbol sg_backend_entry_1"},
  };
  for (const auto &spoilt : cases) {
    const string text = report({plugin_path(plugin(spoilt.variant))}, {"tiny", "sim:a100"});
    expect_in(text, "|missing|" + plugin(spoilt.variant) + "|");
    expect_in(text, spoilt.reason);
    expect_in(text, "SG_STATUS_NO_DEVICE");
    expect_in(text, "device sim:a100\n");
    expect_in(text, "backend cpu|available|built in|");
    expect_printable(text);
  }
}

TEST(Plugins, AFolderIsLoadedInTheOrderOfNames) {
  const temporary_folder folder;
  fs::copy(plugin("wrong-version"), folder / "libstreamgemm-a.so");
  fs::copy(plugin("good"), folder / "libstreamgemm-b.so");
  fs::copy(plugin("short-but-sound"), folder / "libstreamgemm-c.so");
  fs::copy(plugin("good"), folder / "other.so");
  fs::create_directory(folder / "libstreamgemm-d.so");
  const string text = report({plugin_path(folder.path())}, {"tiny"});
  expect_in(text, "backend a|missing|");
  expect_in(text, "backend tiny|available|" + folder.path() + "/libstreamgemm-b.so|");
  expect_in(text, "backend c|missing|");
  expect_in(text, "there is a backend of that name");
  expect_in(text, "backend d|missing|");
  expect_not_in(text, "other");
}

TEST(Plugins, TheFolderBesideTheLibraryIsSearched) {
  const temporary_folder folder;
  fs::copy(report_program, folder / "report");
  fs::create_directory(folder / "streamgemm");
  fs::copy(plugin("good"), folder / "streamgemm/libstreamgemm-good.so");
  expect_in(output_of(folder / "report", {}, {}), "backend tiny|available|" + folder.path() + "/streamgemm/");
  // A variable that names something else takes its place.
  expect_not_in(output_of(folder / "report", {plugin_path("/nonexistent")}, {}), "backend tiny");
}

TEST(Plugins, TheCurrentFolderIsNeverSearched) {
  const temporary_folder folder;
  fs::copy(plugin("good"), folder / "libstreamgemm-cuda.so");
  fs::create_directory(folder / "streamgemm");
  fs::copy(plugin("good"), folder / "streamgemm/libstreamgemm-cuda.so");
  for (const char *value : {"", ".", "./", "..", "libstreamgemm-cuda.so", "streamgemm", "./libstreamgemm-cuda.so"}) {
    const string text = report({plugin_path(value)}, {}, folder.path());
    expect_not_in(text, "tiny");
    expect_in(text, "backend cuda|missing||");
  }
  expect_not_in(report({"LD_LIBRARY_PATH=."}, {}, folder.path()), "tiny");
}

TEST(Plugins, HostileVariablesOnlyGiveReasons) {
  const temporary_folder folder;
  const string text_file = (folder / "libstreamgemm-text.so").string(), pipe_file = (folder / "pipe").string();
  FILE *file = fopen(text_file.c_str(), "w");
  fputs(string(5000, 'x').c_str(), file);
  fclose(file);
  ASSERT_EQ(mkfifo(pipe_file.c_str(), 0600), 0);
  const struct {
    string value, reason;
  } cases[] = {
      {"relative/path", "not an absolute path"},
      {"\x1b[2J\nbackend cuda|available", "\\x1b[2J\\x0abackend cuda|available\" is not an absolute path"},
      {"/\xff\x01", "\\xff\\x01"},
      {"/nonexistent", "No such file or directory"},
      {string(100000, '/'), "longer than 4096 bytes"},
      {"/" + string(4095, 'x'), "File name too long"},
      {text_file, "invalid ELF header"},
      {pipe_file, "holds no such plugin"},
      {"/dev/null", "holds no such plugin"},
      {"/proc/self/mem", ""},
  };
  for (const auto &hostile : cases) {
    const string text = report({plugin_path(hostile.value)}, {"sim:h200"});
    expect_in(text, hostile.reason);
    expect_in(text, "backend cuda|missing|");
    expect_in(text, "device sim:h200\n");
    expect_printable(text);
  }
}

TEST(Plugins, ASetuidProgramIgnoresTheVariables) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a setuid program of another user";
  const temporary_folder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  const fs::path program = folder / "report";
  fs::copy(report_program, program);
  fs::create_directory(folder / "streamgemm");
  fs::copy(plugin("good"), folder / "streamgemm/libstreamgemm-good.so");
  const strings variables{plugin_path(plugin("good")), "SG_DEVICE=sim:a100"};
  const string before = output_of(program, variables, {""});
  expect_in(before, "backend tiny|available|" + plugin("good"));
  expect_in(before, "device sim:a100\n");
  constexpr uid_t nobody = 65534;
  ASSERT_EQ(chown(program.c_str(), nobody, nobody), 0);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  const string after = output_of(program, variables, {""});
  if (after.find("secure 1") == string::npos) GTEST_SKIP() << "this file system or sandbox honours no setuid bit";
  expect_in(after, "backend sim|available|");
  expect_not_in(after, "backend tiny");
  expect_not_in(after, "device sim:a100");
}

TEST(Names, TheVariableNamesTheDefault) {
  expect_in(report({"SG_DEVICE=sim:a100"}, {"", "auto", "sim:h200"}),
            "device sim:a100\ndevice sim:a100\ndevice sim:h200\n");
  expect_in(report({"SG_DEVICE=auto"}, {""}), "device cpu\n");
  expect_in(report({"SG_DEVICE="}, {""}), "device cpu\n");
  expect_in(report({}, {"", "cpu", "cpu:"}), "device cpu\ndevice cpu\ndevice cpu\n");
}

TEST(Names, CudaIsTheDefaultWhereItIs) {
  expect_in(report({plugin_path(plugin("as-cuda"))}, {"auto"}), "device \"cuda:0\"");  // it has no device of that name
}

TEST(Names, HostileOnesAreRefused) {
  const struct {
    string name, answer;
  } cases[] = {
      {"nope", "SG_STATUS_NO_DEVICE device \"nope\": there is no such backend; there are cpu, sim, cuda"},
      {":", "SG_STATUS_NO_DEVICE device \":\""},
      {":::", "SG_STATUS_NO_DEVICE device \":::\""},
      {"cpu:7", "SG_STATUS_NO_DEVICE device \"cpu:7\""},
      {"CPU", "SG_STATUS_NO_DEVICE"},
      {"cuda:0", "SG_STATUS_NO_DEVICE device \"cuda:0\": backend cuda is not available: no such plugin in /"},
      {"sim:h200?fail-alloc=-1", "SG_STATUS_INVALID_ARGUMENT device \"sim:h200?fail-alloc=-1\""},
      {"sim:../../../nonexistent.json", "SG_STATUS_INVALID_ARGUMENT"},
      {"sim:\x1b[31mred", "SG_STATUS_NO_DEVICE device \"sim:\\x1b[31mred\""},
      {"\xf0\x9f\x92\xa9", "SG_STATUS_NO_DEVICE device \"\\xf0\\x9f\\x92\\xa9\""},
      {"%s%n%s", "SG_STATUS_NO_DEVICE device \"%s%n%s\""},
      {string(4097, 'x'), "SG_STATUS_INVALID_ARGUMENT the name of a device is longer than 4096 bytes"},
      {string(4096, 'x'), "SG_STATUS_NO_DEVICE device \"xxx"},
  };
  for (const auto &hostile : cases) {
    const string asked = report({}, {hostile.name});
    expect_in(asked, hostile.answer);
    expect_printable(asked);
    const string set = report({"SG_DEVICE=" + hostile.name}, {""});
    expect_printable(set);
    if (hostile.name.size() > 4096)
      expect_in(set, "SG_STATUS_INVALID_ARGUMENT the variable SG_DEVICE is longer than 4096 bytes");
    else
      expect_in(set, hostile.answer.substr(0, hostile.answer.find(' ')));
  }
  expect_in(report({"SG_DEVICE=nope"}, {""}), "SG_STATUS_NO_DEVICE SG_DEVICE \"nope\"");
}

TEST(Processes, AChildUsesWhatItsParentLoaded) {
  const string text =
      output_of(report_program, {plugin_path(plugin("good"))}, {"--fork", "tiny:a100", "sim:h200", "cpu"});
  expect_in(text, "device tiny:a100\ndevice sim:h200\ndevice cpu\n");
}

TEST(Processes, AChildMadeWhileLoadingFindsTheRegistryWhole) {
  const string text = output_of(report_program, {plugin_path(plugin("slow"))}, {"--fork-while-loading", "tiny:a100"});
  expect_in(text, "device tiny:a100\n");
  expect_not_in(text, "ended with");
}

TEST(Processes, APluginMayForkWhileItIsLoaded) {
  expect_in(report({plugin_path(plugin("forking"))}, {"tiny:a100"}), "device tiny:a100\n");
}

TEST(Device, TheFaceChecksWhatTheTableSays) {
  const auto opened = open_device("sim:h200?memory=1MiB");
  EXPECT_EQ(opened->name(), "sim:h200?memory=1MiB");
  EXPECT_FALSE(opened->unified());
  EXPECT_EQ(opened->model().memory_bytes, 1 << 20);
  void *memory = opened->mem_alloc(1000);
  EXPECT_EQ(opened->memory_kind(memory, 1000), SG_MEMORY_DEVICE);
  opened->ops().mem_free(opened->handle(), memory);
  try {
    opened->mem_alloc(2 << 20);
    ADD_FAILURE() << "more memory than there is";
  } catch (const error &fault) {
    EXPECT_EQ(fault.status(), SG_STATUS_OUT_OF_MEMORY);
    expect_in(fault.what(), "sim:h200?memory=1MiB: allocating device memory failed: 2097152 bytes");
  }
  char plain[64];
  opened->host_register(plain, sizeof plain);
  EXPECT_EQ(opened->memory_kind(plain, 64), SG_MEMORY_PINNED);
  EXPECT_THROW(opened->host_register(plain, 1), error);
  opened->host_unregister(plain);
  EXPECT_THROW(opened->host_unregister(plain), error);
  sg_backend_stream *stream = opened->stream_create(0);
  sg_backend_event *event = opened->event_create();
  opened->not_before(stream, 5);
  opened->ops().event_destroy(event);
  opened->ops().stream_destroy(stream);
  EXPECT_TRUE(open_device("cpu")->unified());
}

TEST(Text, IsMadePrintable) {
  EXPECT_EQ(printable("plain text"), "plain text");
  EXPECT_EQ(printable(string("a\0b\x7f", 4)), "a\\x00b\\x7f");
  EXPECT_EQ(printable("12345678", 8), "12345678");
  EXPECT_EQ(printable("123456789", 8), "12345678...");
  EXPECT_EQ(printable("12345\n", 8), "12345...");
}

}  // namespace
}  // namespace sg::test
