// SPDX-License-Identifier: Apache-2.0
// Traces: sets of time, figures, rows, exports and the recorder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "trace/exporters.hpp"
#include "trace/metrics.hpp"
#include "trace/recorder.hpp"
#include "trace/summary.hpp"
#include "trace/trace_file.hpp"

namespace sg::trace {
namespace {

constexpr std::int64_t second = 1'000'000'000;

interval_set random_set(std::mt19937 &random, std::vector<bool> &covered) {
  std::vector<time_interval> made;
  for (auto count = random() % 12; count > 0; --count) {
    const auto start = static_cast<std::int64_t>(random() % 60);
    const auto end = start + static_cast<std::int64_t>(random() % 15);
    made.push_back({start, end});
    for (auto at = start; at < end; ++at) covered[static_cast<std::size_t>(at)] = true;
  }
  return interval_set(std::move(made));
}

std::int64_t count_of_true(const std::vector<bool> &bits) { return std::count(bits.begin(), bits.end(), true); }

TEST(trace_interval_set, is_the_set_of_its_instants) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<bool> x(80), y(80), both(80), first_alone(80);
    const interval_set one = random_set(random, x), other = random_set(random, y);
    for (std::size_t i = 0; i < x.size(); ++i) {
      both[i] = x[i] && y[i];
      first_alone[i] = x[i] && !y[i];
    }
    ASSERT_EQ(count_of_true(x), one.length_ns());
    ASSERT_EQ(count_of_true(both), one.and_also(other).length_ns());
    ASSERT_EQ(count_of_true(first_alone), one.without(other).length_ns());
    for (std::size_t i = 1; i < one.intervals().size(); ++i)
      ASSERT_LT(one.intervals()[i - 1].end_ns, one.intervals()[i].start_ns) << "disjoint, in order, and not adjacent";
  }
}

// A recording made by hand; times in seconds after its start.
class scene {
 public:
  explicit scene(bool is_virtual = false) {
    made_.start_ns = 100 * second;
    made_.end_ns = 200 * second;
    event name(event_kind::context, 1, 0);
    std::snprintf(name.text, sizeof name.text, "device");
    name.detail = is_virtual ? virtual_clock_bit : 0;
    made_.events.push_back(name);
  }
  event &add(event_kind kind, std::uint64_t job, std::int64_t start, std::int64_t end) {
    event e(kind, 1, job);
    e.body.start_ns = made_.start_ns + start * second;
    e.body.end_ns = made_.start_ns + end * second;
    made_.events.push_back(e);
    return made_.events.back();
  }
  void command(std::uint64_t job, lane_kind lane, std::uint16_t number, std::int64_t start, std::int64_t end,
               std::uint64_t bytes = 0) {
    event &e = add(event_kind::command, job, start, end);
    const payload what = lane == lane_kind::copy_in    ? payload(ops::copy_in{})
                         : lane == lane_kind::copy_out ? payload(ops::copy_out{})
                                                       : payload(ops::gemm{});
    e.body.operation = static_cast<std::uint8_t>(what.index());
    e.body.lane_kind = static_cast<std::uint8_t>(lane);
    e.body.lane = number;
    e.body.value = bytes;
    if (lane == lane_kind::compute) e.body.m = e.body.n = e.body.k = 64;
  }
  void job(std::uint64_t number, std::int64_t submitted, std::int64_t completed, std::uint32_t stream = 0) {
    add(event_kind::submission, number, submitted, submitted).body.count = stream;
    add(event_kind::completion, number, 0, 0).body = {};
    made_.events.back().body.value = static_cast<std::uint64_t>(made_.start_ns + completed * second);
  }
  const recording &what() const { return made_; }
  recording &what() { return made_; }

 private:
  recording made_;
};

// Two batches of copy in, GEMM, copy out, one second each, on two streams: 4 seconds instead of 6.
scene textbook() {
  scene s;
  s.job(1, 0, 3, 1);
  s.job(2, 1, 4, 2);
  s.command(1, lane_kind::copy_in, 5, 0, 1, 1000);
  s.command(1, lane_kind::compute, 0, 1, 2);
  s.command(1, lane_kind::copy_out, 6, 2, 3, 500);
  s.command(2, lane_kind::copy_in, 5, 1, 2, 1000);
  s.command(2, lane_kind::compute, 0, 2, 3);
  s.command(2, lane_kind::copy_out, 6, 3, 4, 500);
  return s;
}

TEST(trace_metrics, of_the_textbook_case) {
  const history seen = history_of(textbook().what());
  ASSERT_EQ(1u, seen.contexts.size());
  const context_metrics m = metrics_of(seen)[0];
  EXPECT_EQ(4 * second, m.span_ns);
  EXPECT_EQ(4 * second, m.busy_ns);
  EXPECT_EQ(2 * second, m.compute_ns);
  EXPECT_EQ(2 * second, m.copy_in_ns);
  EXPECT_EQ(2 * second, m.copy_out_ns);
  EXPECT_EQ(4 * second, m.transfer_ns);
  EXPECT_EQ(2 * second, m.exposed_ns);
  EXPECT_DOUBLE_EQ(0.5, m.overlap_efficiency());
  EXPECT_DOUBLE_EQ(1.5, m.parallelism()) << "the speed-up of two streams";
  EXPECT_EQ(2000u, m.bytes_in);
  EXPECT_EQ(1000u, m.bytes_out);
  EXPECT_EQ(6u, m.commands);
  EXPECT_EQ(2u, m.jobs);
  EXPECT_EQ(3 * second, m.of_jobs.p50_ns);
  EXPECT_EQ(2 * second, m.idle_ns[static_cast<std::size_t>(idle_cause::link)]);
  EXPECT_EQ(2 * second, overlap_of_jobs_ns(seen, 1, 2));
  EXPECT_EQ(2 * second, overlap_of_streams_ns(seen, 0, 1));
  EXPECT_EQ(0, overlap_of_streams_ns(seen, 0, 7)) << "no such stream";
}

TEST(trace_metrics, each_idle_instant_has_one_cause) {
  scene s;
  s.job(1, 0, 30);
  s.job(2, 50, 60);
  s.command(1, lane_kind::copy_in, 1, 0, 4, 8);
  s.add(event_kind::staging, 1, 3, 6).body.operation = static_cast<std::uint8_t>(payload(ops::pack{}).index());
  s.command(1, lane_kind::compute, 0, 10, 12);
  s.add(event_kind::submission, 3, 20, 22);
  s.command(2, lane_kind::compute, 0, 55, 60);
  const context_metrics m = metrics_of(history_of(s.what()))[0];
  const auto idle = [&](idle_cause cause) { return m.idle_ns[static_cast<std::size_t>(cause)] / second; };
  EXPECT_EQ(4, idle(idle_cause::link));
  EXPECT_EQ(2, idle(idle_cause::staging)) << "the copy's time is the link's";
  EXPECT_EQ(2, idle(idle_cause::submission));
  EXPECT_EQ(4 + 16 + 5, idle(idle_cause::dispatch)) << "6 to 10, 12 to 30 but for the submission, 50 to 55";
  EXPECT_EQ(20, idle(idle_cause::no_work)) << "30 to 50";
  EXPECT_EQ(60 - 7, (m.span_ns - m.compute_ns) / second);
}

TEST(trace_metrics, idle_times_add_up_in_any_recording) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    scene s(round % 3 == 0);
    const auto within = [&](int limit) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit)); };
    for (auto count = random() % 20; count > 0; --count) {
      const std::int64_t start = within(80);
      const auto number = static_cast<std::uint64_t>(1 + within(5));
      switch (random() % 4) {
        case 0: s.job(number, start, start + within(20)); break;
        case 1: s.add(event_kind::staging, number, start, start + within(10)); break;
        case 2: s.add(event_kind::planning, number, start, start + within(10)); break;
        default:
          s.command(number, lane_kind(random() % 3), static_cast<std::uint16_t>(random() % 3), start,
                    start + within(10), 10);
      }
    }
    for (const context_metrics &m : metrics_of(history_of(s.what()))) {
      std::int64_t idle = 0;
      for (const std::int64_t each : m.idle_ns) idle += each;
      ASSERT_EQ(m.span_ns - m.compute_ns, idle) << "round " << round;
      ASSERT_LE(m.busy_ns, m.span_ns);
      ASSERT_LE(m.compute_ns, m.busy_ns);
      ASSERT_LE(m.exposed_ns, m.transfer_ns);
      ASSERT_LE(m.transfer_ns, m.busy_ns);
    }
  }
}

TEST(trace_history, no_row_shows_two_commands_at_a_time) {
  scene s;
  for (const auto &[start, end] : {std::pair{0, 10}, {2, 4}, {3, 12}, {4, 6}, {10, 11}, {12, 13}})
    s.command(1, lane_kind::compute, 0, start, end);
  const history seen = history_of(s.what());
  std::set<std::string> names;
  for (std::size_t i = 0; i < seen.tracks.size(); ++i) {
    names.insert(seen.tracks[i].name);
    std::int64_t end = -1;
    for (const activity &each : seen.of_track(i)) {
      EXPECT_GE(each.start_ns, end);
      end = each.end_ns;
    }
  }
  EXPECT_EQ((std::set<std::string>{"compute 0", "compute 0 +1", "compute 0 +2"}), names);
  EXPECT_EQ(6u, seen.activities.size());
}

TEST(trace_history, labels_of_two_events_are_joined) {
  const std::string label(63, 'x');
  scene s;
  event first(event_kind::label, 1, 9), second_part(event_kind::label, 1, 9);
  std::memset(first.text, 0, sizeof first.text);
  std::memset(second_part.text, 0, sizeof second_part.text);
  std::memcpy(first.text, label.data(), event_text_size);
  std::memcpy(second_part.text, label.data() + event_text_size, label.size() - event_text_size);
  s.what().events.push_back(first);
  s.what().events.push_back(second_part);
  const history seen = history_of(s.what());
  ASSERT_NE(nullptr, seen.job(9));
  EXPECT_EQ(label, seen.job(9)->label);
  EXPECT_EQ(nullptr, seen.job(8));
}

TEST(trace_history, long_names_of_devices_are_whole) {
  for (const std::uint8_t clock : {std::uint8_t{0}, virtual_clock_bit}) {
    start_recording(100);
    const std::string name = "sim:/" + std::string(70, 'd') + ".json";
    for (int times = 0; times < 2; ++times) record_text(event_kind::context, 3, 0, name.c_str(), clock);
    const auto found = stop_recording();
    ASSERT_TRUE(found);
    const history seen = history_of(*found);
    ASSERT_EQ(1u, seen.contexts.size());
    EXPECT_EQ(name, seen.contexts[0].device);
    EXPECT_EQ(clock != 0, seen.contexts[0].is_virtual);
  }
}

TEST(trace_exporters, json_has_every_activity_on_a_named_thread) {
  const history seen = history_of(textbook().what());
  const auto parsed = nlohmann::json::parse(chrome_json(seen));
  std::set<std::pair<int, int>> named;
  std::size_t slices = 0, starts = 0, ends = 0, counters = 0;
  for (const auto &each : parsed.at("traceEvents")) {
    const std::string phase = each.at("ph");
    const std::pair<int, int> where{each.at("pid"), each.at("tid")};
    if (phase == "M" && each.at("name") == "thread_name") {
      EXPECT_TRUE(named.insert(where).second);
    }
    if (phase == "X") {
      ++slices;
      EXPECT_TRUE(named.count(where)) << "metadata comes first";
      EXPECT_GE(each.at("ts").get<double>(), 0);
      EXPECT_GE(each.at("dur").get<double>(), 0);
    }
    starts += phase == "s" ? 1 : 0;
    ends += phase == "f" ? 1 : 0;
    counters += phase == "C" ? 1 : 0;
  }
  EXPECT_EQ(seen.activities.size(), slices);
  EXPECT_EQ(2u, starts);
  EXPECT_EQ(2u, ends);
  EXPECT_GT(counters, 0u);
  EXPECT_EQ(0, parsed.at("otherData").at("dropped_events"));
}

TEST(trace_exporters, text_shows_the_overlap) {
  const std::string shown = text(history_of(textbook().what()), 8);
  EXPECT_NE(std::string::npos, shown.find("copy in 5             |aabb....|")) << shown;
  EXPECT_NE(std::string::npos, shown.find("compute 0             |..aabb..|")) << shown;
  EXPECT_NE(std::string::npos, shown.find("copy out 6            |....aabb|")) << shown;
  EXPECT_NE(std::string::npos, shown.find("parallelism 1.50")) << shown;
  EXPECT_NE(std::string::npos, shown.find("overlap     0.500")) << shown;
}

TEST(trace_exporters, page_and_picture_hold_any_label) {
  scene s = textbook();
  event name(event_kind::label, 1, 1);
  std::memset(name.text, 0, sizeof name.text);
  std::snprintf(name.text, sizeof name.text, "</script><b>&\"\\ \x01");
  s.what().events.push_back(name);
  const history seen = history_of(s.what());
  const std::string page = html(seen, &seen), drawn = svg(seen);
  EXPECT_EQ(page.find("</script>"), page.rfind("</script>")) << "the label does not end the script";
  EXPECT_NE(std::string::npos, drawn.find("&lt;/script&gt;&lt;b&gt;&amp;&quot;"));
  for (const char *loads : {"src=", "href=", "@import", "url(", "fetch("})
    EXPECT_EQ(std::string::npos, page.find(loads)) << "the page needs nothing else";
}

TEST(trace_exporters, summary_has_what_took_the_time_the_limit_and_the_first_advice) {
  history seen = history_of(textbook().what());
  const auto say = [&] { return summary_of(seen, metrics_of(seen)); };
  const summary said = say();
  EXPECT_NE(std::string::npos, said.time.find("2 jobs took ")) << said.time;
  EXPECT_EQ(0u, said.limit.find("Copies limit: the compute lanes waited for copies 50.0% of the time")) << said.limit;
  EXPECT_EQ(0u, said.change.find("No advice")) << said.change;
  seen.advices = {{"pin the operands", "evidence", 2}, {"second", "", 1}};
  EXPECT_EQ(0u, say().change.find("To save about 2.000 s of 4.000 s, by the device's model: pin the operands."))
      << say().change;
  seen.contexts[0].is_virtual = true;
  EXPECT_NE(std::string::npos, say().change.find("on this simulated device, to be measured on a real one"));
  seen.prediction = {{"predicted", "4 us"}};
  EXPECT_EQ(0u, say().time.find("Predicted, not run: 6 commands")) << say().time;
  EXPECT_EQ(0u, say().change.find("To save a predicted ")) << say().change;
  seen.advices[0].gain_seconds = 0;
  EXPECT_EQ("As fast, and simpler: pin the operands.", say().change);
  const history nothing = history_of(recording{});
  EXPECT_EQ("No command ran on a device.", summary_of(nothing, metrics_of(nothing)).time);
  EXPECT_EQ("", summary_of(nothing, metrics_of(nothing)).limit);
}

TEST(trace_exporters, empty_recording) {
  const history seen = history_of(recording{});
  EXPECT_TRUE(nlohmann::json::parse(chrome_json(seen)).at("traceEvents").is_array());
  EXPECT_NE(std::string::npos, svg(seen).find("</svg>"));
  EXPECT_EQ("", text(seen));
  EXPECT_NE(std::string::npos, html(seen).find("\"tracks\":[]"));
}

TEST(trace_file, format_follows_from_the_name) {
  EXPECT_EQ(file_format::chrome_json, format_of_name("a.json"));
  EXPECT_EQ(file_format::perfetto, format_of_name("dir.html/a.pftrace"));
  EXPECT_EQ(file_format::text, format_of_name("x.txt"));
  EXPECT_THROW(format_of_name("trace"), error);
  EXPECT_THROW(format_of_name(".json"), error) << "a name is missing";
  EXPECT_THROW(write_file("/nowhere/at/all.txt", "x"), error);
  EXPECT_THROW(write_file("/dev/full", "x"), error);
}

// Events of many threads arrive, in each thread's order, or are counted as dropped.
TEST(trace_recorder, every_event_arrives_or_is_counted) {
  constexpr int threads = 8;
  constexpr std::uint64_t each = 30'000;
  start_recording(threads * each * 2);
  EXPECT_THROW(start_recording(1), error);
  const auto write = [](std::uint64_t thread_number) {
    for (std::uint64_t i = 0; i < each; ++i) {
      event e(event_kind::memory, thread_number, i + 1);
      e.body.start_ns = e.body.end_ns = monotonic_ns();
      record(e);
    }
  };
  std::vector<std::thread> all;
  for (std::uint64_t t = 0; t < threads; ++t) all.emplace_back(write, t);
  for (std::thread &t : all) t.join();
  const auto found = stop_recording();
  ASSERT_TRUE(found);
  EXPECT_EQ(nullptr, stop_recording());
  EXPECT_EQ(threads * each, found->events.size() + found->dropped);
  std::vector<std::uint64_t> latest(threads, 0);
  for (const event &e : found->events) {
    EXPECT_LT(latest[e.context], e.job);
    latest[e.context] = e.job;
  }
  EXPECT_LE(found->threads.size(), static_cast<std::size_t>(threads));
}

TEST(trace_recorder, a_full_recording_counts_what_it_drops) {
  start_recording(10);
  for (std::uint64_t i = 0; i < 25; ++i) record(event(event_kind::memory, 1, i));
  const auto found = stop_recording();
  ASSERT_TRUE(found);
  EXPECT_EQ(10u, found->events.size());
  EXPECT_EQ(15u, found->dropped);
}

TEST(trace_recorder, job_numbers_differ_between_threads) {
  std::set<std::uint64_t> seen;
  std::mutex lock;
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const std::uint64_t number = new_job_number();
        const std::lock_guard held(lock);
        EXPECT_TRUE(number != 0 && seen.insert(number).second);
      }
    });
  for (std::thread &t : all) t.join();
}

}  // namespace
}  // namespace sg::trace
