// SPDX-License-Identifier: Apache-2.0
// Virtual time of copies of a machine's devices, which share limits.
#include <array>

#include "sim_device.hpp"

namespace sg::test {
namespace {

constexpr double unit_rate = unit_bytes * 1000.0;  // of each device's link

// Two devices of unit_model() whose links to the host share a limit.
std::string machine(const std::string &limits) {
  return R"({"name": "two", "devices": [{"model": )" + unit_model() + R"(, "count": 2}],
    "shared": [{"name": "host", "devices": [0, 1], )" +
         limits + "}]}";
}
std::string limit(const char *kind, double units) {
  return "\"" + std::string(kind) + "\": " + std::to_string(units * unit_rate);
}

class two_devices {
 public:
  explicit two_devices(const std::string &limits)
      : file_(machine(limits)), of_{member(file_.path() + "/0"), member(file_.path() + "/1")} {
    for (const int i : {0, 1})
      EXPECT_EQ(SG_STATUS_UNSUPPORTED, ops.peer_connect(of_[1 - i].device.handle(), of_[i].device.handle(), 0));
  }

  struct started {
    completion end;
    std::int64_t wait() { return end.wait().end_ns; }
  };
  void in(int device, started &copy) {
    enqueue(device, copy_in(of_[device].memory.get(), host_[device], unit_bytes), copy);
  }
  void out(int device, started &copy) {
    enqueue(device, copy_out(host_[device] + unit_bytes, of_[device].memory.at(unit_bytes), unit_bytes), copy);
  }
  void peer(int to, started &copy) {
    sg_backend_copy pull =
        copy_in(of_[to].memory.at(2 * unit_bytes), of_[1 - to].memory.at(3 * unit_bytes), unit_bytes);
    pull.src_space = {SG_MEMORY_PEER, 1 - to};
    enqueue(to, pull, copy);
  }
  void within_the_host(int device, started &copy) {
    sg_backend_copy move = copy_out(host_[device], host_[device] + unit_bytes, unit_bytes);
    move.src_space = {SG_MEMORY_PAGEABLE, 0};
    enqueue(device, move, copy);
  }

 private:
  struct member {
    explicit member(const std::string &name) : device(name), memory(device, 4 * unit_bytes), stream(device) {}
    sim_device device;
    sim_memory memory;
    sim_stream stream;
  };

  void enqueue(int device, const sg_backend_copy &what, started &copy) {
    EXPECT_EQ(SG_STATUS_OK, of_[device].stream.enqueue(what.header, copy.end.done()));
  }

  const temporary_file file_;
  std::array<member, 2> of_;
  char host_[2][2 * unit_bytes] = {};  // of each device: their copies may be at the same time
};

TEST(SimLinks, ALimitThatHoldsNothingBackChangesNothing) {
  two_devices both(limit("in", 2) + ", " + limit("sum", 4));
  two_devices::started in[2], out[2];
  for (const int i : {0, 1}) both.in(i, in[i]), both.out(i, out[i]);
  for (const int i : {0, 1}) {
    EXPECT_EQ(unit_ns, in[i].wait());
    EXPECT_EQ(2 * unit_ns, out[i].wait());  // in one stream
  }
}

TEST(SimLinks, ALaterCopyGetsWhatIsLeft) {
  two_devices both(limit("in", 1.25));
  two_devices::started first, second;
  both.in(0, first);
  both.in(1, second);
  EXPECT_EQ(unit_ns, first.wait());
  // A quarter in the first unit, and half of the limit from then on: the other device's copies could go on.
  EXPECT_EQ(unit_ns + unit_ns * 3 / 4 * 8 / 5, second.wait());
}

TEST(SimLinks, NoDirectionTakesTheOthersLimit) {
  two_devices both(limit("in", 1));
  two_devices::started in, out;
  both.in(0, in);
  both.out(1, out);
  EXPECT_EQ(unit_ns, in.wait());
  EXPECT_EQ(unit_ns, out.wait());
}

TEST(SimLinks, ManyCopiesReachTheLimitAndNoMore) {
  for (const char *kind : {"in", "sum"}) {
    two_devices both(limit(kind, 1.5));
    constexpr int count = 40;
    std::array<std::array<two_devices::started, count>, 2> copies;
    for (int n = 0; n < count; ++n)
      for (const int device : {0, 1})
        if (kind[0] == 's' && device == 1)
          both.out(device, copies[1][std::size_t(n)]);
        else
          both.in(device, copies[std::size_t(device)][std::size_t(n)]);
    std::int64_t last = 0;
    for (auto &of_device : copies) last = std::max(last, of_device.back().wait());
    const double reached = 2.0 * count * unit_ns / double(last);  // units of bytes in a unit of time
    EXPECT_LE(reached, 1.5 + 1e-6) << kind;
    EXPECT_GE(reached, 1.5 * 0.96) << kind;
  }
}

TEST(SimLinks, ADeviceFarAheadKeepsItsPart) {
  two_devices both(limit("in", 1.25));
  constexpr int count = 1000;
  std::array<std::vector<two_devices::started>, 2> copies;
  for (const int device : {0, 1}) {
    copies[std::size_t(device)] = std::vector<two_devices::started>(count);
    for (auto &each : copies[std::size_t(device)]) both.in(device, each);
  }
  std::int64_t last = 0;
  for (auto &of_device : copies) last = std::max(last, of_device.back().wait());
  EXPECT_LE(2.0 * count * unit_ns / double(last), 1.25 + 1e-6);
}

TEST(SimLinks, APeerCopyThroughTheHostCrossesBothLinks) {
  two_devices both(limit("sum", 1.25));
  two_devices::started peer, later;
  both.peer(1, peer);
  EXPECT_EQ(unit_ns * 8 / 5, peer.wait());  // its bytes cross the limit twice
  two_devices wide(limit("sum", 8));
  two_devices::started out;
  wide.out(0, out);
  wide.peer(1, later);
  EXPECT_EQ(unit_ns, out.wait());
  // The link out of the other device is taken for one unit.
  EXPECT_EQ(unit_ns + unit_ns * 2, later.wait());
}

TEST(SimLinks, ACopyWithinTheHostTakesNone) {
  two_devices both(limit("sum", 0.5));
  two_devices::started copy;
  both.within_the_host(0, copy);
  EXPECT_EQ(unit_ns, copy.wait());
}

}  // namespace
}  // namespace sg::test
