// SPDX-License-Identifier: Apache-2.0
// Names of simulated devices, valid and invalid.
#include <sys/stat.h>

#include "sim_device.hpp"

namespace sg::test {
namespace {

using std::string;

TEST(SimNames, CountedDevicesOpen) {
  ASSERT_EQ(ops.device_count(), 3);
  const char *expected[] = {"h200", "a100", "pcie3"};
  for (int i = 0; i < 3; ++i) {
    char name[64];
    ASSERT_EQ(ops.device_name(i, name, sizeof name), SG_STATUS_OK);
    EXPECT_STREQ(name, expected[i]);
    sim_device device(name);
    ASSERT_EQ(device.status(), SG_STATUS_OK) << device.open_message();
    expect_text(ops.device_model(device.handle()), string("\"") + name + "\"");
  }
  char name[64];
  EXPECT_EQ(ops.device_name(3, name, sizeof name), SG_STATUS_NO_DEVICE);
  EXPECT_EQ(ops.device_name(-1, name, sizeof name), SG_STATUS_NO_DEVICE);
}

TEST(SimNames, ModelFileOpens) {
  const temporary_file model(unit_model());
  sim_device device(model.path() + "?memory=4MiB&timing-only");
  ASSERT_EQ(device.status(), SG_STATUS_OK) << device.open_message();
  expect_text(ops.device_model(device.handle()), "\"memory_bytes\": 4194304");
}

TEST(SimNames, DevicesOfAMachineOpen) {
  const struct {
    const char *name, *model;
  } cases[] = {{"h200x2", "\"h200\""}, {"unequal2/0", "\"h200\""}, {"unequal2/1?memory=4MiB", "\"a100\""}};
  for (const auto &each : cases) {
    sim_device device(each.name);
    ASSERT_EQ(device.status(), SG_STATUS_OK) << device.open_message();
    expect_text(ops.device_model(device.handle()), each.model);
    const char *machine = ops.machine_model(device.handle());
    ASSERT_NE(machine, nullptr);
    expect_text(machine, "\"shared\"");
    EXPECT_EQ(string(machine).find("\"model\": \"h200\""), string::npos) << "models are in the text, not named";
  }
  sim_device alone("h200");
  EXPECT_EQ(ops.machine_model(alone.handle()), nullptr);
  const temporary_file file("{\"name\": \"mine\", \"devices\": [{\"model\": \"a100\"}, {\"model\": " + unit_model() +
                            "}]}");
  sim_device second(file.path() + "/1");
  ASSERT_EQ(second.status(), SG_STATUS_OK) << second.open_message();
  EXPECT_EQ(string(ops.device_model(second.handle())).find("a100"), string::npos);
}

TEST(SimNames, OptionsOfOneDeviceOfAMachine) {
  sim_device first("h200x2/0?d1.memory=4MiB"), second("h200x2/1?d1.memory=4MiB&memory=8MiB");
  ASSERT_EQ(first.status(), SG_STATUS_OK) << first.open_message();
  ASSERT_EQ(second.status(), SG_STATUS_OK) << second.open_message();
  EXPECT_EQ(string(ops.device_model(first.handle())).find("\"memory_bytes\": 4194304"), string::npos);
  expect_text(ops.device_model(second.handle()), "\"memory_bytes\": 8388608");
  sim_device alone("h200x2/1?d1.memory=4MiB");
  expect_text(ops.device_model(alone.handle()), "\"memory_bytes\": 4194304");
}

TEST(SimNames, ALostDeviceStaysLost) {
  sim_device device("h200?lost-at=2");
  ASSERT_EQ(device.status(), SG_STATUS_OK) << device.open_message();
  EXPECT_EQ(ops.device_status(device.handle()), SG_STATUS_OK);
  sg_backend_stream *stream = nullptr;
  ASSERT_EQ(ops.stream_create(device.handle(), 0, &stream), SG_STATUS_OK);
  const sg_backend_command marker{sizeof marker, SG_BACKEND_MARKER}, *const one = &marker;
  EXPECT_EQ(ops.enqueue(stream, &one, 1, nullptr, {}), SG_STATUS_OK);
  EXPECT_EQ(ops.enqueue(stream, &one, 1, nullptr, {}), SG_STATUS_BACKEND_FAILURE);
  EXPECT_EQ(ops.device_status(device.handle()), SG_STATUS_BACKEND_FAILURE);
  expect_text(ops.last_message(device.handle()), "device 0 is lost");
  void *memory = nullptr;
  EXPECT_EQ(ops.mem_alloc(device.handle(), 16, &memory), SG_STATUS_BACKEND_FAILURE);
  EXPECT_EQ(ops.enqueue(stream, &one, 1, nullptr, {}), SG_STATUS_BACKEND_FAILURE);
  ops.stream_destroy(stream);
}

TEST(SimNames, InvalidOnesAreRefusedWithAReason) {
  const temporary_file broken("{"), array("[1]"), unknown(R"({"name": "x", "wheels": 4})");
  const temporary_file unified(R"({"unified_memory": true})");
  const string pipe = "/tmp/sg-pipe-" + std::to_string(getpid()) + ".json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const struct {
    string name;
    sg_status status;
    string reason;
  } cases[] = {
      {"h300", SG_STATUS_NO_DEVICE, "h200, a100, pcie3"},
      {"", SG_STATUS_NO_DEVICE, "h200"},
      {"h200?lost-at=0", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?peer-drop=1", SG_STATUS_INVALID_ARGUMENT, "FROM:TO"},
      {"h200x2?d1.fast", SG_STATUS_INVALID_ARGUMENT, "no option \"d1.fast\""},
      {"h200x2?d0.memory=x", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200x2/2", SG_STATUS_NO_DEVICE, "machine \"h200x2\" has 2 devices, and none of index 2"},
      {"h200/1", SG_STATUS_NO_DEVICE, "\"h200\" is one device, and has none of index 1"},
      {"h200?", SG_STATUS_INVALID_ARGUMENT, "no option \"\""},
      {"h200?fast", SG_STATUS_INVALID_ARGUMENT, "timing-only"},
      {"h200?timing-only=1", SG_STATUS_INVALID_ARGUMENT, "no option"},
      {"h200?fail-alloc", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?fail-alloc=0", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?fail-copy=-1", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?fail-launch=99999999999999999999", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?fail-launch=1x", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?late-copy=1", SG_STATUS_INVALID_ARGUMENT, "MICROSECONDS"},
      {"h200?late-copy=1:60000001", SG_STATUS_INVALID_ARGUMENT, "minute"},
      {"h200?taken=lots", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?largest-piece=0", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?memory=GiB", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?memory=9999999999TiB", SG_STATUS_INVALID_ARGUMENT, "63 bits"},
      {"h200?memory=8388607TiB", SG_STATUS_INVALID_ARGUMENT, "memory_bytes"},
      {"h200?timing-only&&", SG_STATUS_INVALID_ARGUMENT, "no option"},
      {"/nonexistent/model", SG_STATUS_NO_DEVICE, "No such file"},
      {"nonexistent.json", SG_STATUS_NO_DEVICE, "No such file"},
      {"/tmp/", SG_STATUS_NO_DEVICE, "regular file"},
      {"/dev/zero", SG_STATUS_NO_DEVICE, "regular file"},
      {pipe, SG_STATUS_NO_DEVICE, "regular file"},
      {broken.path(), SG_STATUS_INVALID_ARGUMENT, "not a JSON object"},
      {array.path(), SG_STATUS_INVALID_ARGUMENT, "not a JSON object"},
      {unknown.path(), SG_STATUS_INVALID_ARGUMENT, "missing"},
      {unified.path(), SG_STATUS_INVALID_ARGUMENT, "unified_memory"},
      {string(4000, 'x') + "/", SG_STATUS_NO_DEVICE, "cannot be read"},
  };
  for (const auto &wrong : cases) {
    sim_device device(wrong.name);
    EXPECT_EQ(device.status(), wrong.status) << wrong.name << ": " << device.open_message();
    EXPECT_FALSE(device.is_open());
    expect_text(device.open_message(), wrong.reason);
  }
  unlink(pipe.c_str());
}

}  // namespace
}  // namespace sg::test
