// SPDX-License-Identifier: Apache-2.0
// Plugins: search paths, valid and defective ones, and hostile values of SG_PLUGIN_PATH.
#include <sys/stat.h>
#include <unistd.h>

#include "registry_process.hpp"

namespace sg::test {
namespace {

// Beside the library.
constexpr const char *own_folder = "streamgemm/backend-3";

TEST(Plugins, NoneIsNeeded) {
  const string text = report({});
  expect_in(text, "backend cpu|available|built in|\n");
  expect_in(text, "backend sim|available|built in|\n");
  expect_in(text, "backend cuda|missing||no such plugin in /");
}

TEST(Plugins, AValidOneWorks) {
  const string text = report({plugin_path(plugin("good"))}, {"tiny:a100", "tiny", "tiny:", "tiny:nothing"});
  expect_in(text, "backend tiny|available|" + plugin("good") + "|\n");
  expect_in(text, "device tiny:a100\ndevice tiny:h200\ndevice tiny:h200\n");
  expect_in(text, "SG_STATUS_NO_DEVICE device \"tiny:nothing\": no simulated device \"nothing\"");
  expect_in(text, "backend cuda|missing||SG_PLUGIN_PATH");
}

TEST(Plugins, AnOlderTableIsCompletedWithNull) {
  expect_in(report({plugin_path(plugin("short-but-sound"))}, {"tiny:a100"}), "device tiny:a100\n");
}

TEST(Plugins, DefectiveOnesAreRefusedWithAReason) {
  const struct {
    string variant, reason;
  } cases[] = {
      {"unwilling", "the bell\\x07 is out of order"},
      {"wrong-version", "version 4, this library works with version 3"},
      {"missing-slot", "required function \"event_record\" is missing"},
      {"half-a-pair", "only one of host_register and host_unregister"},
      {"too-short", "too short"},
      {"cut-off", "required function \"enqueue\" is missing"},
      {"nameless", "its name must be"},
      {"impostor", "it calls itself \"cpu\""},
      {"no-table", "it offers no table"},
      {"no-symbol", "no symbol sg_backend_entry_3"},
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

// Its code would run in this process.
TEST(Plugins, OneThatOthersCanWriteIsRefused) {
  const temporary_folder folder;
  const string path = folder / "libstreamgemm-good.so";
  fs::copy(plugin("good"), path);
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  expect_in(report({plugin_path(path)}, {"tiny"}), "every user can write to it");
  fs::permissions(path, fs::perms::others_write, fs::perm_options::remove);
  expect_in(report({plugin_path(path)}, {"tiny"}), "backend tiny|available|");
  if (chown(path.c_str(), 54321, 54321) != 0) GTEST_SKIP() << "only root gives a file to another user";
  expect_in(report({plugin_path(path)}, {"tiny"}), "it belongs to user 54321");
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
  fs::create_directories(folder / own_folder);
  fs::copy(plugin("good"), folder / own_folder / "libstreamgemm-good.so");
  expect_in(output_of(folder / "report", {}, {}), "backend tiny|available|" + (folder / own_folder).string());
  // A variable that names another folder replaces it.
  expect_not_in(output_of(folder / "report", {plugin_path("/nonexistent")}, {}), "backend tiny");
  // Another user may have made what is in it: as where the library's own folder is gone, and its name was taken.
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  expect_not_in(output_of(folder / "report", {}, {}), "backend tiny");
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  expect_in(output_of(folder / "report", {}, {}), "backend tiny|available|");
  if (chown(folder.path().c_str(), 54321, 54321) != 0) GTEST_SKIP() << "only root gives a folder to another user";
  expect_not_in(output_of(folder / "report", {}, {}), "backend tiny");
}

TEST(Plugins, ThoseOfOtherVersionsOfTheInterfaceAreNotSearched) {
  const temporary_folder folder;
  fs::copy(report_program, folder / "report");
  for (const char *other : {"streamgemm", "streamgemm/backend-2", "streamgemm/backend-4"}) {
    fs::create_directories(folder / other);
    fs::copy(plugin("good"), folder / other / "libstreamgemm-good.so");
  }
  expect_not_in(output_of(folder / "report", {}, {}), "backend tiny");
}

TEST(Plugins, AProgramLoadsItsOwn) {
  const string good = plugin("good"), older = plugin("short-but-sound");
  const string text = report({}, {"--load", good, "--load", good, "--load", older, "tiny:a100"});
  expect_in(text,
            "loaded " + good + "\nloaded " + good + "\nnot loaded path \"" + older + "\": it calls itself \"tiny\"");
  expect_in(text, "backend tiny|available|" + good + "|\n");
  expect_not_in(text, older + "|");
  expect_in(text, "device tiny:a100\n");
  expect_in(text, "backend cuda|missing||no such plugin in /");
  // By another path.
  const temporary_folder folder;
  fs::create_symlink(good, folder / "link.so");
  expect_in(report({plugin_path(good)}, {"--load", folder / "link.so"}), "loaded " + folder.path() + "/link.so\n");
}

TEST(Plugins, AnUnusableOneGivesWay) {
  const temporary_folder folder;
  fs::copy(plugin("unwilling"), folder / "libstreamgemm-tiny.so");
  const string text = report({plugin_path(folder.path())}, {"--load", plugin("good"), "tiny:a100"});
  expect_in(text, "backend tiny|missing|" + folder.path() + "/libstreamgemm-tiny.so|the bell");
  expect_in(text, "backend tiny|available|" + plugin("good") + "|\n");
  expect_in(text, "device tiny:a100\n");
  // Where there was no file, the first one takes its place in the list.
  const string cuda = report({}, {"--load", plugin("as-cuda"), "cuda:a100"});
  expect_in(cuda, "backend cuda|available|" + plugin("as-cuda") + "|\n");
  expect_not_in(cuda, "backend cuda|missing");
  expect_in(cuda, "device cuda:a100\n");
}

TEST(Plugins, WhatIsLoadedMustBeAPlugin) {
  const string missing = report(
      {}, {"--load", "/nonexistent/libstreamgemm-x.so", "--load", plugin("wrong-version"), "--load", "/dev/null"});
  expect_in(missing, "not loaded path \"/nonexistent/libstreamgemm-x.so\": No such file or directory");
  expect_not_in(missing, "backend x");
  expect_in(missing, "version 4, this library works with version 3");
  expect_in(missing, "not loaded path \"/dev/null\": ");
}

TEST(Plugins, TheCurrentFolderIsNeverSearched) {
  const temporary_folder folder;
  fs::copy(plugin("good"), folder / "libstreamgemm-cuda.so");
  fs::create_directories(folder / own_folder);
  fs::copy(plugin("good"), folder / own_folder / "libstreamgemm-cuda.so");
  for (const char *value : {"", ".", "./", "..", "libstreamgemm-cuda.so", own_folder, "./libstreamgemm-cuda.so"}) {
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
  fs::create_directories(folder / own_folder);
  fs::copy(plugin("good"), folder / own_folder / "libstreamgemm-good.so");
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

}  // namespace
}  // namespace sg::test
