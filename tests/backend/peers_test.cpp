// SPDX-License-Identifier: Apache-2.0
// Two devices of one machine: copies from each other's memory, events of each other, memory that one of them pinned.
// SG_TEST_SEVERAL names others than the simulated ones.
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "devices/peer_check.hpp"
#include "harness.hpp"

namespace sg::test::of_peers {
namespace {

class peers : public testing::Test {
 protected:
  peers() {
    const char *const named = std::getenv("SG_TEST_SEVERAL");
    all_ = open_devices(named ? named : "sim:h200x2");
    std::string reason;
    for (int from : {0, 1}) linked_[from] = all_.at(1 - from)->connect(*all_.at(from), named ? 0 : 392e9, reason);
  }

  static std::vector<char> counting(std::int64_t bytes, char first) {
    std::vector<char> data(static_cast<std::size_t>(bytes));
    std::iota(data.begin(), data.end(), first);
    return data;
  }
  const std::shared_ptr<device> &at(int index) const { return all_[static_cast<std::size_t>(index)]; }
  sg_backend_space as_peer(int index) const { return {SG_MEMORY_PEER, at(index)->index()}; }

  std::vector<std::shared_ptr<device>> all_;
  bool linked_[2] = {};
};

constexpr sg_backend_space own{SG_MEMORY_DEVICE, 0};

TEST_F(peers, name_each_other_s_memory) {
  for (const int of : {0, 1}) {
    memory there(at(of), 4096);
    EXPECT_EQ(memory_space(SG_MEMORY_DEVICE), at(of)->space_of(there.data(), 4096));
    const memory_space seen = at(1 - of)->space_of(there.data(), 4096);
    EXPECT_EQ(SG_MEMORY_PEER, seen.kind());
    EXPECT_EQ(at(of)->index(), seen.peer());
  }
}

TEST_F(peers, copy_from_and_to_each_other_in_every_shape) {
  constexpr struct {
    std::int64_t width, height, src_pitch, dst_pitch;
  } shapes[] = {{1, 1, 1, 1},    {1, 7, 1, 1},     {3, 5, 3, 8},          {3, 5, 8, 3},
                {64, 9, 64, 64}, {63, 17, 65, 70}, {4096, 3, 4097, 4096}, {100000, 4, 100000, 131072}};
  for (const int source : {0, 1})
    for (const bool pulls : {true, false})
      for (const auto &s : shapes) {
        stream there(at(source)), here(at(1 - source));
        const std::int64_t src_bytes = s.src_pitch * s.height, dst_bytes = s.dst_pitch * s.height;
        const std::vector<char> given = counting(src_bytes, 3);
        std::vector<char> back(static_cast<std::size_t>(dst_bytes));
        memory from(at(source), src_bytes), to(at(1 - source), dst_bytes);
        from.write(there, given.data());
        to.write(here, std::vector<char>(back.size(), '\xbb').data());
        sg_backend_copy move{{}, to.data(), from.data(), s.dst_pitch, s.src_pitch, s.width, s.height, own, own};
        (pulls ? move.src_space : move.dst_space) = as_peer(pulls ? source : 1 - source);
        complete(*at(pulls ? 1 - source : source), pulls ? here : there, move);
        to.read(here, back.data());
        for (std::int64_t i = 0; i < dst_bytes; ++i) {
          const std::int64_t row = i / s.dst_pitch, col = i % s.dst_pitch;
          const char expected = col < s.width ? given[static_cast<std::size_t>(row * s.src_pitch + col)] : '\xbb';
          ASSERT_EQ(expected, back[static_cast<std::size_t>(i)])
              << s.width << "x" << s.height << " at " << row << ", " << col << (pulls ? ", pulled" : ", pushed");
        }
      }
}

TEST_F(peers, wait_for_each_other_s_events) {
  constexpr std::int64_t bytes = 1 << 22;
  for (int round = 0; round < 8; ++round)
    for (const int source : {0, 1}) {
      stream there(at(source)), here(at(1 - source));
      const std::vector<char> given = counting(bytes, static_cast<char>(round));
      std::vector<char> back(given.size());
      memory from(at(source), bytes), to(at(1 - source), bytes);
      sg_backend_event *const written = at(source)->event_create();
      listener end;
      ASSERT_EQ(
          SG_STATUS_OK,
          enqueue(*at(source), there,
                  run_of_bytes(from.data(), given.data(), bytes, SG_MEMORY_DEVICE, SG_MEMORY_PAGEABLE), end.done()));
      ASSERT_EQ(SG_STATUS_OK, at(source)->ops().event_record(written, there.handle()));
      ASSERT_EQ(SG_STATUS_OK, at(source)->ops().stream_wait(here.handle(), written));
      sg_backend_copy pull = run_of_bytes(to.data(), from.data(), bytes, SG_MEMORY_DEVICE, SG_MEMORY_PEER);
      pull.src_space = as_peer(source);
      ASSERT_EQ(SG_STATUS_OK, enqueue(*at(1 - source), here, pull, end.done()));
      ASSERT_TRUE(end.wait(2));
      for (const listener::outcome &each : end.results()) EXPECT_EQ(SG_STATUS_OK, each.status) << each.message;
      to.read(here, back.data());
      EXPECT_EQ(given, back);
      at(source)->ops().event_destroy(written);
    }
}

TEST_F(peers, copy_pinned_memory_of_each_other) {
  constexpr std::int64_t bytes = 10000;
  const std::vector<char> given = counting(bytes, 7);
  for (const int pins : {0, 1}) {
    void *const pinned = at(pins)->host_alloc(bytes);
    std::memcpy(pinned, given.data(), bytes);
    stream in(at(1 - pins));
    memory to(at(1 - pins), bytes);
    complete(*at(1 - pins), in, run_of_bytes(to.data(), pinned, bytes, SG_MEMORY_DEVICE, SG_MEMORY_PINNED));
    std::vector<char> back(given.size());
    to.read(in, back.data());
    EXPECT_EQ(given, back);
    at(pins)->ops().host_free(at(pins)->handle(), pinned);
  }
}

TEST_F(peers, pass_the_check_of_their_links) {
  for (const int from : {0, 1}) {
    if (!linked_[from]) continue;
    std::string reason;
    EXPECT_EQ(arrival::right, check_copies(*at(from), *at(1 - from), reason)) << reason;
  }
}

TEST_F(peers, have_a_rate) {
  const bool is_h200x2 = !std::getenv("SG_TEST_SEVERAL");
  for (const int from : {0, 1}) {
    const double rate = rate_of_copies(*at(from), *at(1 - from));
    EXPECT_TRUE(rate > 0 && std::isfinite(rate)) << rate;
    if (is_h200x2) {
      EXPECT_NEAR(392e9, rate, 1e9);
    }
  }
}

TEST_F(peers, are_usable) {
  for (const auto &each : all_) EXPECT_EQ(SG_STATUS_OK, each->status());
}

TEST(peers_that_lie, are_noticed) {
  const auto both = open_devices("sim:h200x2?peer-drop=0:1");
  std::string reason;
  for (int from : {0, 1}) EXPECT_TRUE(both[std::size_t(1 - from)]->connect(*both[std::size_t(from)], 392e9, reason));
  EXPECT_EQ(arrival::wrong, check_copies(*both[0], *both[1], reason));
  EXPECT_EQ("copies from sim:h200x2/0?peer-drop=0:1 to sim:h200x2/1?peer-drop=0:1 report success and write nothing",
            reason);
  EXPECT_EQ(arrival::right, check_copies(*both[1], *both[0], reason));
  both[1]->connect(*both[0], -1, reason);
  EXPECT_EQ(arrival::right, check_copies(*both[0], *both[1], reason)) << "through the host's memory";
}

}  // namespace
}  // namespace sg::test::of_peers
