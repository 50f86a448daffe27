// SPDX-License-Identifier: Apache-2.0
// Field numbers: protos/perfetto/trace of the Perfetto project, which keeps them for ever.
#include <bit>
#include <string>
#include <string_view>

#include "trace/exporters.hpp"

namespace sg::trace {

namespace {

// A protobuf message in the wire format.
class message {
 public:
  message &number(int field, std::uint64_t value) {
    tag(field, 0);
    varint(value);
    return *this;
  }
  message &fixed(int field, std::uint64_t value) {
    tag(field, 1);
    for (int byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(value >> (8 * byte));
    return *this;
  }
  message &real(int field, double value) { return fixed(field, std::bit_cast<std::uint64_t>(value)); }
  message &text(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  message &inner(int field, const message &value) { return text(field, value.bytes_); }

  std::string take() { return std::move(bytes_); }

 private:
  void tag(int field, unsigned type) { varint(static_cast<std::uint64_t>(field) << 3 | type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

namespace trace_field {
constexpr int packet = 1;
}
namespace packet_field {
constexpr int timestamp = 8, sequence = 10, track_event = 11, track_descriptor = 60;
}
namespace descriptor_field {
constexpr int uuid = 1, name = 2, process = 3, thread = 4, parent = 5, counter = 8;
}
namespace event_field {
constexpr int annotation = 4, type = 9, track = 11, category = 22, name = 23, double_value = 44, flow = 47,
              flow_end = 48;
}
namespace annotation_field {
constexpr int number = 3, text = 6, name = 10;
}
enum event_type : std::uint64_t { slice_begin = 1, slice_end = 2, counter_value = 4 };

constexpr std::uint64_t sequence_id = 1, process_uuids = 1'000'000, counter_uuids = 2'000'000;

class perfetto_writer {
 public:
  explicit perfetto_writer(const history &what) : what_(what) {}

  std::string write() {
    describe_processes();
    describe_tracks();
    for (const activity &each : what_.activities) add(each);
    add_counters();
    return all_.take();
  }

 private:
  void put(message &&packet) {
    packet.number(packet_field::sequence, sequence_id);
    all_.inner(trace_field::packet, packet);
  }
  static std::uint64_t track_uuid(std::size_t index) noexcept { return index + 1; }
  // The context's number is its process; 0: the threads.
  std::uint64_t process_of(const track &of) const noexcept {
    return of.context == no_context ? 0 : what_.contexts[of.context].number;
  }

  void describe_process(std::uint64_t number, const std::string &name) {
    message process, descriptor, packet;
    process.number(1, number + 1).text(6, name);
    descriptor.number(descriptor_field::uuid, process_uuids + number).inner(descriptor_field::process, process);
    put(std::move(packet.inner(packet_field::track_descriptor, descriptor)));
  }
  void describe_processes() {
    describe_process(0, "threads");
    for (const traced_context &each : what_.contexts) describe_process(each.number, title_of(each));
  }
  void describe_tracks() {
    for (std::size_t i = 0; i < what_.tracks.size(); ++i) {
      const track &of = what_.tracks[i];
      message thread, descriptor, packet;
      // Perfetto tells threads apart by pid and tid.
      thread.number(1, process_of(of) + 1).number(2, 100'000 + i).text(5, of.name);
      descriptor.number(descriptor_field::uuid, track_uuid(i))
          .number(descriptor_field::parent, process_uuids + process_of(of))
          .inner(descriptor_field::thread, thread);
      put(std::move(packet.inner(packet_field::track_descriptor, descriptor)));
    }
  }

  static void annotate(message &event, const char *name, std::uint64_t value) {
    message annotation;
    annotation.text(annotation_field::name, name).number(annotation_field::number, value);
    event.inner(event_field::annotation, annotation);
  }

  void put_event(std::int64_t at_ns, const message &event) {
    message packet;
    packet.number(packet_field::timestamp, static_cast<std::uint64_t>(at_ns)).inner(packet_field::track_event, event);
    put(std::move(packet));
  }

  void add(const activity &a) {
    const traced_job *job = what_.job(a.job);
    message begin, end;
    begin.number(event_field::type, slice_begin).number(event_field::track, track_uuid(a.track));
    begin.text(event_field::name, a.name()).text(event_field::category, "streamgemm");
    if (job) {
      const std::uint64_t shown = shown_number(what_, a.job);
      annotate(begin, "job", shown);
      if (!job->label.empty()) {
        message annotation;
        annotation.text(annotation_field::name, "label").text(annotation_field::text, job->label);
        begin.inner(event_field::annotation, annotation);
      }
      if (job->trace_id != 0) annotate(begin, "trace_id", job->trace_id);
      if (a.kind == event_kind::submission) begin.fixed(event_field::flow, shown);
      if (a.kind == event_kind::command && a.start_ns == job->started_ns) begin.fixed(event_field::flow_end, shown);
    }
    if (a.bytes != 0) annotate(begin, "bytes", a.bytes);
    if (a.m != 0) {
      annotate(begin, "m", a.m);
      annotate(begin, "n", a.n);
      annotate(begin, "k", a.k);
    }
    if (a.count > 1) annotate(begin, "batch_size", a.count);
    put_event(a.start_ns, begin);
    end.number(event_field::type, slice_end).number(event_field::track, track_uuid(a.track));
    put_event(a.end_ns, end);
  }

  void add_counters() {
    for (std::size_t i = 0; i < what_.counters.size(); ++i) {
      const counter &c = what_.counters[i];
      message unit, descriptor, packet;
      descriptor.number(descriptor_field::uuid, counter_uuids + i)
          .text(descriptor_field::name, c.name + " (" + c.unit + ")")
          .number(descriptor_field::parent, process_uuids + what_.contexts[c.context].number)
          .inner(descriptor_field::counter, unit);
      put(std::move(packet.inner(packet_field::track_descriptor, descriptor)));
      for (const sample &each : c.samples) {
        message event;
        event.number(event_field::type, counter_value).number(event_field::track, counter_uuids + i);
        event.real(event_field::double_value, each.value);
        put_event(each.at_ns, event);
      }
    }
  }

  const history &what_;
  message all_;
};

}  // namespace

std::string perfetto(const history &what) { return perfetto_writer(what).write(); }

}  // namespace sg::trace
