// SPDX-License-Identifier: Apache-2.0
// Device names, hostile ones too, the registry across forks, and the wrapper of an opened device.
#include "devices/registry.hpp"

#include "base/error.hpp"
#include "devices/device.hpp"
#include "devices/environment.hpp"
#include "model/device_model.hpp"
#include "registry_process.hpp"

namespace sg::test {
namespace {

TEST(Names, TheVariableNamesTheDefault) {
  expect_in(report({"SG_DEVICE=sim:a100"}, {"", "auto", "sim:h200"}),
            "device sim:a100\ndevice sim:a100\ndevice sim:h200\n");
  expect_in(report({"SG_DEVICE=auto"}, {""}), "device cpu\n");
  expect_in(report({"SG_DEVICE="}, {""}), "device cpu\n");
  expect_in(report({}, {"", "cpu", "cpu:"}), "device cpu\ndevice cpu\ndevice cpu\n");
}

TEST(Names, CudaIsTheDefaultWhereItIs) {
  expect_in(report({plugin_path(plugin("as-cuda"))}, {"auto"}), "device \"cuda:0\"");  // no device has that name
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
      {"sim:../../../nonexistent.json", "SG_STATUS_NO_DEVICE"},
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

TEST(Names, ListsNameCountedDevicesOnce) {
  const auto names = [](const char *given) {
    string all;
    try {
      for (const device_name &each : resolve_devices(given)) all += each.text() + " ";
    } catch (const error &e) {
      all = e.what();
    }
    return all;
  };
  EXPECT_EQ(names("sim:a100"), "sim:a100 ");
  EXPECT_EQ(names("sim:a100,h200"), "sim:a100 sim:h200 ") << "in the order of the list";
  EXPECT_EQ(names("sim:all"), "sim:h200 sim:a100 sim:pcie3 ");
  EXPECT_EQ(names("sim:h200x2"), "sim:h200x2/0 sim:h200x2/1 ") << "the devices of a machine";
  EXPECT_EQ(names("sim:h200x2?memory=4MiB"), "sim:h200x2/0?memory=4MiB sim:h200x2/1?memory=4MiB ");
  EXPECT_EQ(names("sim:unequal2/1"), "sim:unequal2/1 ");
  EXPECT_EQ(names("sim:/a,b.json"), "sim:/a,b.json ") << "a path is one device";
  EXPECT_EQ(names("sim:x,y.json"), "sim:x,y.json ");
  EXPECT_EQ(names("sim:h200?memory=4MiB"), "sim:h200?memory=4MiB ");
  expect_in(names("sim:h200,h200"), "device \"sim:h200,h200\": \"h200\" is named twice");
  expect_in(names("sim:h200,k20"), "\"k20\" is no device that the backend counts");
  expect_in(names("sim:h200,"), "\"\" is no device that the backend counts");
  expect_in(names("sim:0-3"), "\"0\" is no device that the backend counts");
  expect_in(names("sim:3-0"), "\"3-0\" is no range");
  expect_in(names("sim:0-18446744073709551615"), "is no range");
  try {
    open_device("sim:h200,a100");
    ADD_FAILURE() << "two devices in one";
  } catch (const error &e) {
    EXPECT_EQ(SG_STATUS_UNSUPPORTED, e.status());
    expect_in(e.what(), "device \"sim:h200,a100\" names 2 devices, and one is needed");
  }
  const auto both = open_devices("sim:a100,h200");
  ASSERT_EQ(2u, both.size());
  EXPECT_EQ(1, both[0]->index()) << "its place among all, by which others name its memory";
  EXPECT_EQ(0, both[1]->index());
}

TEST(Processes, AChildUsesWhatItsParentLoaded) {
  const string text =
      output_of(report_program, {plugin_path(plugin("good"))}, {"--fork", "tiny:a100", "sim:h200", "cpu"});
  expect_in(text, "device tiny:a100\ndevice sim:h200\ndevice cpu\n");
}

TEST(Processes, AChildForkedWhileLoadingFindsAllBackends) {
  const string text = output_of(report_program, {plugin_path(plugin("slow"))}, {"--fork-while-loading", "tiny:a100"});
  expect_in(text, "device tiny:a100\n");
  expect_not_in(text, "exited with");
}

TEST(Processes, APluginMayForkWhileItIsLoaded) {
  expect_in(report({plugin_path(plugin("forking"))}, {"tiny:a100"}), "device tiny:a100\n");
}

TEST(Device, TheWrapperReportsErrorsOfTheTable) {
  const auto opened = open_device("sim:h200?memory=1MiB");
  EXPECT_EQ(opened->name(), "sim:h200?memory=1MiB");
  EXPECT_FALSE(opened->unified());
  EXPECT_EQ(opened->model().memory_bytes, 1 << 20);
  void *memory = opened->mem_alloc(1000);
  EXPECT_EQ(opened->space_of(memory, 1000), memory_space(SG_MEMORY_DEVICE));
  opened->ops().mem_free(opened->handle(), memory);
  try {
    opened->mem_alloc(2 << 20);
    ADD_FAILURE() << "more memory than there is";
  } catch (const error &fault) {
    EXPECT_EQ(fault.status(), SG_STATUS_OUT_OF_MEMORY);
    expect_in(fault.what(), "sim:h200?memory=1MiB: 2097152 bytes of device memory are wanted, 1048576 are free");
  }
  char plain[64];
  opened->host_register(plain, sizeof plain);
  EXPECT_EQ(opened->space_of(plain, 64), memory_space(SG_MEMORY_PINNED));
  EXPECT_THROW(opened->host_register(plain, 1), error);
  opened->host_unregister(plain);
  EXPECT_THROW(opened->host_unregister(plain), error);
  sg_backend_stream *stream = opened->stream_create(0);
  sg_backend_event *event = opened->event_create();
  opened->begin_at(stream, 5);
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
