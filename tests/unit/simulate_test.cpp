// SPDX-License-Identifier: Apache-2.0
// Virtual time: the textbook case to the unit, and each kind of contention by itself.
#include "plan/schedule/simulate.hpp"

#include <gtest/gtest.h>

#include "plan/gemm/resident/cost.hpp"
#include "plan/schedule/describe.hpp"
#include "problems.hpp"

namespace sg::test {
namespace {

// Copies at one byte a second, GEMMs at one multiply-add a second, no latency.
device_model unit_model() {
  device_model m;
  m.name = "unit";
  m.memory_bytes = 1 << 20;
  m.compute_lanes = 2;
  m.link_in = m.link_out = m.link_in_both = m.link_out_both = 1;
  m.memory_rate = 1e18;
  m.staging = {{1, 1}, {2, 1.5}};
  m.staging_workers = 2;
  m.rates = {{SG_DTYPE_I8, SG_COMPUTE_EXACT, 2}};
  return m;
}

// A schedule written by hand: every command is one element.
class script {
 public:
  script() {
    s.buffers = {{buffer_kind::parameter, SG_DTYPE_I8, false, SG_MEMORY_PINNED, 1, 0, 64, 0},
                 {buffer_kind::parameter, SG_DTYPE_I8, false, SG_MEMORY_DEVICE, 1, 0, 64, 1},
                 {buffer_kind::parameter, SG_DTYPE_I8, false, SG_MEMORY_DEVICE, 1, 0, 64, 2}};
  }
  std::uint32_t add(payload what, lane where, std::vector<std::uint32_t> waits = {}, std::int64_t size = 1) {
    command c;
    if (auto *gemm = std::get_if<ops::gemm>(&what)) gemm->m = size, gemm->n = gemm->k = 1;
    c.what = what;
    c.where = where;
    for (const std::size_t i : {0, 1, 2}) c.views[i] = view{0, 0, 1, 0, size, size, 1};
    c.first_wait = std::uint32_t(s.waits.size());
    c.waits = std::uint32_t(waits.size());
    s.waits.insert(s.waits.end(), waits.begin(), waits.end());
    s.commands.push_back(c);
    return std::uint32_t(s.commands.size() - 1);
  }
  schedule s;
};

constexpr lane in{lane_kind::copy_in, 0}, out{lane_kind::copy_out, 0};
constexpr lane stream(int i) { return {lane_kind::compute, std::uint16_t(i)}; }
constexpr lane workers{lane_kind::staging, 0};

// Two equal batches of copy in, kernel, copy out. One stream: each command after the one before.
schedule textbook(int streams) {
  script t;
  std::uint32_t last = 0;
  for (int batch = 0; batch < 2; ++batch) {
    const bool first = batch == 0 || streams == 2;
    const std::uint32_t copy = t.add(ops::copy_in(), in, first ? std::vector<std::uint32_t>{} : std::vector{last});
    const std::uint32_t kernel = t.add(ops::gemm(), stream(streams == 2 ? batch : 0), {copy});
    last = t.add(ops::copy_out(), out, {kernel});
  }
  return t.s;
}

TEST(simulate, textbook_case) {
  const timeline sequence = simulate(textbook(1), unit_model());
  const timeline streams = simulate(textbook(2), unit_model());
  EXPECT_EQ(sequence.seconds, 6.0);
  EXPECT_EQ(streams.seconds, 4.0);
  EXPECT_EQ(sequence.seconds / streams.seconds, 1.5);
  EXPECT_EQ(sequence.overlap_efficiency, 0.0);
  EXPECT_EQ(streams.overlap_efficiency, 0.5);
  EXPECT_EQ(timeline_text(textbook(1), sequence, 1.0),
            "copy-in 0   |a..b..|\n"
            "copy-out 0  |..a..b|\n"
            "compute 0   |.a..b.|\n"
            "             6 slots of 1.000 s: 6.000 s\n");
  EXPECT_EQ(timeline_text(textbook(2), streams, 1.0),
            "copy-in 0   |ab..|\n"
            "copy-out 0  |..ab|\n"
            "compute 0   |.a..|\n"
            "compute 1   |..a.|\n"
            "             4 slots of 1.000 s: 4.000 s\n");
}

// Four chunks of copy in, kernel and copy out, each on a stream of its own, in the order of the calls: chunk by chunk,
// or grouped by kind; on one stream. Durations in units.
struct durations {
  std::int64_t in = 1, kernel = 1, out = 1;
};
enum class call_order { one_stream, interleaved, grouped };

schedule chunks(call_order order, durations of = {}) {
  constexpr int count = 4;
  script t;
  std::uint32_t copied[count], computed[count], last = 0;
  const auto bring = [&](int i) {
    const bool waits = order == call_order::one_stream && i > 0;
    copied[i] = t.add(ops::copy_in(), in, waits ? std::vector{last} : std::vector<std::uint32_t>{}, of.in);
  };
  const auto compute = [&](int i) {
    computed[i] = t.add(ops::gemm(), stream(order == call_order::one_stream ? 0 : i), {copied[i]}, of.kernel);
  };
  const auto return_result = [&](int i) { last = t.add(ops::copy_out(), out, {computed[i]}, of.out); };
  if (order == call_order::grouped) {
    for (int i = 0; i < count; ++i) bring(i);
    for (int i = 0; i < count; ++i) compute(i);
    for (int i = 0; i < count; ++i) return_result(i);
  } else {
    for (int i = 0; i < count; ++i) bring(i), compute(i), return_result(i);
  }
  return t.s;
}

device_model generation(int copy_engines, stream_queues queues) {
  device_model m = unit_model();
  m.copy_engines = copy_engines;
  m.queues = queues;
  return m;
}

// By generation of devices: one engine for copies and no concurrent kernels; two engines and shared queues; queues of
// their own.
TEST(simulate, the_order_of_calls_decides_on_devices_with_shared_queues) {
  const device_model tesla = generation(1, stream_queues::serial), fermi = generation(2, stream_queues::shared),
                     kepler = generation(2, stream_queues::own);
  const auto seconds = [](call_order order, const device_model &m, durations of = {}) {
    return simulate(chunks(order, of), m).seconds;
  };
  for (const device_model *m : {&tesla, &fermi, &kepler}) EXPECT_EQ(12.0, seconds(call_order::one_stream, *m));
  EXPECT_EQ(12.0, seconds(call_order::interleaved, tesla)) << "each copy in waits behind the copy out before it";
  EXPECT_EQ(8.0, seconds(call_order::grouped, tesla));
  EXPECT_EQ(6.0, seconds(call_order::interleaved, fermi));
  EXPECT_EQ(9.0, seconds(call_order::grouped, fermi)) << "copies out wait for all four kernels";
  EXPECT_EQ(6.0, seconds(call_order::interleaved, kepler));
  EXPECT_EQ(6.0, seconds(call_order::grouped, kepler));

  EXPECT_EQ(timeline_text(chunks(call_order::interleaved), simulate(chunks(call_order::interleaved), tesla), 1.0),
            "copy-in 0   |a..b..c..d..|\n"
            "copy-out 0  |..a..b..c..d|\n"
            "compute 0   |.a..........|\n"
            "compute 1   |....a.......|\n"
            "compute 2   |.......a....|\n"
            "compute 3   |..........a.|\n"
            "             12 slots of 1.000 s: 12.000 s\n");
  EXPECT_EQ(timeline_text(chunks(call_order::grouped), simulate(chunks(call_order::grouped), tesla), 1.0),
            "copy-in 0   |abcd....|\n"
            "copy-out 0  |....abcd|\n"
            "compute 0   |.a......|\n"
            "compute 1   |..a.....|\n"
            "compute 2   |...a....|\n"
            "compute 3   |....a...|\n"
            "             8 slots of 1.000 s: 8.000 s\n");
  EXPECT_EQ(timeline_text(chunks(call_order::interleaved), simulate(chunks(call_order::interleaved), fermi), 1.0),
            "copy-in 0   |abcd..|\n"
            "copy-out 0  |..abcd|\n"
            "compute 0   |.a....|\n"
            "compute 1   |..a...|\n"
            "compute 2   |...a..|\n"
            "compute 3   |....a.|\n"
            "             6 slots of 1.000 s: 6.000 s\n");
  EXPECT_EQ(timeline_text(chunks(call_order::grouped), simulate(chunks(call_order::grouped), fermi), 1.0),
            "copy-in 0   |abcd.....|\n"
            "copy-out 0  |.....abcd|\n"
            "compute 0   |.a.......|\n"
            "compute 1   |..a......|\n"
            "compute 2   |...a.....|\n"
            "compute 3   |....a....|\n"
            "             9 slots of 1.000 s: 9.000 s\n");

  // Long kernels hide the copies, except the first copy in and the copies out that wait for them.
  const durations long_kernels{1, 3, 1};
  EXPECT_EQ(20.0, seconds(call_order::interleaved, tesla, long_kernels));
  EXPECT_EQ(14.0, seconds(call_order::grouped, tesla, long_kernels));
  EXPECT_EQ(seconds(call_order::interleaved, kepler, long_kernels),
            seconds(call_order::interleaved, fermi, long_kernels));
  EXPECT_LT(seconds(call_order::interleaved, fermi, long_kernels), 15.0) << "kernels share the chip";
  EXPECT_EQ(17.0, seconds(call_order::grouped, fermi, long_kernels));
  // Where copies in are the bound, only the last copies out are exposed.
  const durations long_copies_in{3, 1, 1};
  EXPECT_EQ(14.0, seconds(call_order::interleaved, fermi, long_copies_in));
  EXPECT_EQ(17.0, seconds(call_order::grouped, fermi, long_copies_in));
  EXPECT_EQ(14.0, seconds(call_order::grouped, kepler, long_copies_in));
}

// The second job of the lane is ready first; within the third one the order of the schedule counts.
TEST(simulate, lanes_take_jobs_as_they_become_ready) {
  script t;
  const auto late = t.add(ops::copy_in(), in, {}, 4);
  t.add(ops::gemm(), stream(0), {late});
  t.add(ops::gemm(), stream(0));
  const auto soon = t.add(ops::copy_out(), out, {}, 2);
  t.add(ops::gemm(), stream(0), {soon});
  t.add(ops::gemm(), stream(0));
  machine_model machine;
  machine.devices = {unit_model()};
  const auto starts = [&](std::span<const std::uint32_t> jobs) {
    const timeline times = simulate(t.s, machine, jobs);
    return std::vector<double>{times.commands[1].start, times.commands[2].start, times.commands[4].start,
                               times.commands[5].start};
  };
  const std::vector<std::uint32_t> jobs = {0, 0, 1, 2, 2, 2};
  EXPECT_EQ((std::vector<double>{4, 0, 2, 3}), starts(jobs));
  EXPECT_EQ((std::vector<double>{4, 5, 6, 7}), starts({}));
}

TEST(simulate, one_copy_engine_serves_both_directions_in_turn) {
  device_model m = unit_model();
  m.copy_engines = 1;
  EXPECT_EQ(simulate(textbook(1), m).seconds, 6.0);
  script t;
  t.add(ops::copy_in(), in);
  t.add(ops::copy_out(), out);
  EXPECT_EQ(simulate(t.s, m).seconds, 2.0);
  EXPECT_EQ(simulate(t.s, unit_model()).seconds, 1.0);
}

TEST(simulate, both_directions_slow_each_other) {
  device_model m = unit_model();
  m.link_in_both = 0.5, m.link_out_both = 0.25;
  script t;
  t.add(ops::copy_in(), in, {}, 2);
  t.add(ops::copy_out(), out, {}, 2);
  // The copy in completes at 4 with both busy; of the copy out one byte is left, alone on the link.
  const timeline line = simulate(t.s, m);
  EXPECT_DOUBLE_EQ(line.commands[0].end, 4.0);
  EXPECT_DOUBLE_EQ(line.commands[1].end, 5.0);
}

TEST(simulate, kernels_share_the_chip_unless_lanes_are_cores) {
  script t;
  t.add(ops::gemm(), stream(0), {}, 3);
  t.add(ops::gemm(), stream(1), {}, 1);
  device_model m = unit_model();
  const timeline shared = simulate(t.s, m);
  EXPECT_DOUBLE_EQ(shared.commands[1].end, 2.0);
  EXPECT_DOUBLE_EQ(shared.commands[0].end, 4.0);
  m.lanes_are_cores = true;
  const timeline own = simulate(t.s, m);
  EXPECT_DOUBLE_EQ(own.commands[1].end, 1.0);
  EXPECT_DOUBLE_EQ(own.commands[0].end, 3.0);
}

TEST(simulate, kernels_that_leave_units_free_run_beside_each_other) {
  device_model m = unit_model();
  m.units = 4;  // each unit half a flop a second: one element is 4 seconds on one unit
  script t;
  for (int i = 0; i < 4; ++i) t.add(ops::gemm(), stream(i));
  EXPECT_DOUBLE_EQ(simulate(t.s, m).seconds, 4.0);
  t.add(ops::gemm(), stream(4));
  EXPECT_DOUBLE_EQ(simulate(t.s, m).seconds, 4 * waves_of(1.25));  // five on four units
}

TEST(simulate, workers_share_the_hosts_memory) {
  script t;
  t.add(ops::pack(), workers, {}, 3);
  EXPECT_DOUBLE_EQ(simulate(t.s, unit_model()).seconds, 3.0);
  t.add(ops::unpack(), workers, {}, 3);
  EXPECT_DOUBLE_EQ(simulate(t.s, unit_model()).seconds, 4.0);  // 1.5 bytes a second together
}

// Two workers: the third chunk goes to the first free worker, and a chunk that has to wait does not delay the next.
TEST(simulate, a_free_worker_takes_the_first_ready_command) {
  script t;
  t.add(ops::pack(), workers, {}, 3);
  t.add(ops::pack(), workers, {}, 1);
  const std::uint32_t copy = t.add(ops::copy_out(), out, {}, 9);
  const std::uint32_t late = t.add(ops::unpack(), workers, {copy}, 1);
  const std::uint32_t next = t.add(ops::pack(), workers, {}, 2);
  const timeline line = simulate(t.s, unit_model());
  EXPECT_EQ(line.commands[0].where.index, 0);
  EXPECT_EQ(line.commands[1].where.index, 1);
  EXPECT_EQ(line.commands[next].where.index, 1);
  EXPECT_EQ(line.commands[next].start, line.commands[1].end);
  EXPECT_EQ(line.commands[late].start, line.commands[copy].end);
  const std::string picture = timeline_text(t.s, line);
  EXPECT_NE(picture.find("staging 0"), std::string::npos);
  EXPECT_NE(picture.find("staging 1"), std::string::npos);
}

TEST(simulate, runs_of_a_panel_and_handing_over_cost_workers_time) {
  device_model m = unit_model();
  m.staging_run_bytes = 2;
  script t;
  t.add(ops::pack(), workers, {}, 3);
  EXPECT_DOUBLE_EQ(simulate(t.s, m).seconds, 3.0 + 2);
  for (accessed_view &each : t.s.commands[0].views) each = view{0, 0, 1, 0, 8, 1, 3};  // three columns with gaps
  EXPECT_DOUBLE_EQ(simulate(t.s, m).seconds, 3.0 + 3 * 2);
  t.s.commands[0].views[ops::pack::from].ld = 1;
  EXPECT_DOUBLE_EQ(simulate(t.s, m).seconds, 3.0 + 2);
  t.s.commands[0].what = ops::unpack();  // its host side is the other one
  EXPECT_DOUBLE_EQ(simulate(t.s, m).seconds, 3.0 + 3 * 2);
}

// Workers have all their commands from the begin; the host observes each copy of what they moved.
TEST(simulate, copies_of_slots_cost_the_host_time) {
  device_model m = unit_model();
  m.staging_gap = 10;
  script t;
  for (int i = 0; i < 3; ++i) t.add(ops::copy_in(), in, {}, 1);
  EXPECT_DOUBLE_EQ(simulate(t.s, m).seconds, 3.0);
  t.s.buffers[std::size_t(source_of(t.s.commands[0]).buffer)].kind = buffer_kind::staging;
  EXPECT_DOUBLE_EQ(simulate(t.s, m).seconds, 20.0 + 1);
}

TEST(simulate, latencies_count_once_and_gaps_between_queued_commands) {
  device_model m = unit_model();
  m.copy_latency = 0.5, m.copy_gap = 0.125, m.launch_latency = 0.25, m.launch_gap = 0.0625;
  script t;
  const std::uint32_t first = t.add(ops::copy_in(), in);
  const std::uint32_t second = t.add(ops::copy_in(), in);
  t.add(ops::gemm(), stream(0), {first});
  t.add(ops::gemm(), stream(0), {second});
  const timeline line = simulate(t.s, m);
  EXPECT_DOUBLE_EQ(line.commands[0].end, 1.5);
  EXPECT_DOUBLE_EQ(line.commands[1].end, 2.625);
  EXPECT_DOUBLE_EQ(line.commands[2].end, 1.5 + 0.25 + 1);
  EXPECT_DOUBLE_EQ(line.commands[3].end, 1.5 + 0.25 + 1 + 0.0625 + 1);
}

TEST(simulate, issuing_is_serial) {
  device_model m = unit_model();
  m.lanes_are_cores = true;
  m.launch_gap = 10;
  script t;
  for (int i = 0; i < 4; ++i) t.add(ops::gemm(), stream(i));
  // The fourth is issued at 30, starts a gap later, and takes one.
  EXPECT_DOUBLE_EQ(simulate(t.s, m).seconds, 41.0);
}

TEST(simulate, is_the_same_each_time_and_obeys_every_wait) {
  script t;
  for (std::uint32_t i = 0; i < 300; ++i) {
    std::vector<std::uint32_t> waits;
    if (i > 7) waits = {i * 7919 % i, i - 3};
    const int kind = int(i * 31 % 5);
    const lane where = kind == 0 ? in : kind == 1 ? out : kind == 2 ? workers : stream(i % 3);
    const payload kinds[] = {ops::copy_in(), ops::copy_out(), ops::pack(), ops::gemm(), ops::gemm()};
    t.add(kinds[kind], where, waits, 1 + i % 7);
  }
  device_model m = unit_model();
  m.copy_latency = 0.1, m.launch_latency = 0.3, m.launch_gap = 0.01, m.link_in_both = 0.7;
  const timeline once = simulate(t.s, m), again = simulate(t.s, m);
  EXPECT_EQ(once.seconds, again.seconds);
  for (std::uint32_t i = 0; i < t.s.commands.size(); ++i) {
    EXPECT_EQ(once.commands[i].start, again.commands[i].start);
    EXPECT_GT(once.commands[i].end, once.commands[i].start);
    const command &c = t.s.commands[i];
    for (std::uint32_t w = 0; w < c.waits; ++w)
      EXPECT_LE(once.commands[t.s.waits[c.first_wait + w]].end, once.commands[i].start);
    for (std::uint32_t j = 0; j < i; ++j)
      if (t.s.commands[j].where == c.where && in_order(c.where)) {
        EXPECT_LE(once.commands[j].end, once.commands[i].start);
      }
  }
}

TEST(simulate, empty_schedule_takes_no_time) {
  EXPECT_EQ(simulate(schedule{}, unit_model()).seconds, 0.0);
  EXPECT_EQ(timeline_text(schedule{}, timeline{}), "");
}

}  // namespace
}  // namespace sg::test
