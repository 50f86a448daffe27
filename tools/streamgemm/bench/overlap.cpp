// SPDX-License-Identifier: Apache-2.0
// The suite `overlap`: GEMMs from pinned memory to pinned memory, each a copy in, a GEMM on the device and a copy out,
// which the caller submits in various orders over various streams.
#include <algorithm>
#include <array>

#include "rounds.hpp"

namespace sg::cli {

namespace {

constexpr const char *in_sequence = "streamgemm, in sequence on 1 stream";

// One GEMM with its copies.
struct transferred_gemm {
  struct copy {
    void *dst;
    const void *src;
    std::int64_t bytes;
  };
  std::array<copy, 2> in;  // A and B
  sg_gemm_desc gemm;
  copy out;

  void copy_in(device_round &round, sg_stream *stream) const {
    for (const copy &x : in) round.copy(x.dst, x.src, x.bytes, stream);
  }
  void copy_out(device_round &round, sg_stream *stream) const { round.copy(out.dst, out.src, out.bytes, stream); }
};

// The GEMMs of a set in pinned memory, with memory for all operands on the device.
class transfer_list {
 public:
  transfer_list(sg_context *context, const gemm_set &set) {
    sg_buffer *made = nullptr;
    check(sg_buffer_create(context, std::uint64_t(set.bytes()), nullptr, &made), "device memory");
    buffer_.reset(made);
    void *memory = nullptr;
    check(sg_buffer_data(made, &memory), "device memory");
    // Never a number: a GEMM before its copies in is found.
    const std::vector<std::byte> poison(static_cast<std::size_t>(set.bytes()), std::byte{0xff});
    check(sg_copy(context, memory, poison.data(), poison.size(), nullptr), "copy of the operands");
    const auto mirror = [&](sg_matrix x) {
      x.data = static_cast<std::byte *>(memory) + (static_cast<std::byte *>(x.data) - set.data());
      return x;
    };
    const auto bytes = [](const sg_matrix &x) { return x.rows * x.ld * sg_dtype_size(x.dtype); };
    for (const sg_gemm_desc &host : set.one_by_one()) {
      sg_gemm_desc here = host;
      here.a = mirror(host.a), here.b = mirror(host.b), here.c = mirror(host.c);
      all.push_back({.in = {{{here.a.data, host.a.data, bytes(host.a)}, {here.b.data, host.b.data, bytes(host.b)}}},
                     .gemm = here,
                     .out = {host.c.data, here.c.data, bytes(host.c)}});
      bytes_in += double(bytes(host.a) + bytes(host.b));
      bytes_out += double(bytes(host.c));
    }
  }

  std::vector<transferred_gemm> all;
  double bytes_in = 0, bytes_out = 0;

 private:
  buffer_handle buffer_;
};

using transfers = std::shared_ptr<const transfer_list>;

// Copy in, GEMM, copy out, then those of the next GEMM on the next stream.
round_work gemm_by_gemm(const transfers &list, const std::shared_ptr<stream_set> &streams) {
  return [=](device_round &round) {
    for (std::size_t i = 0; i < list->all.size(); ++i) {
      sg_stream *const stream = (*streams)[i % streams->size()].get();
      list->all[i].copy_in(round, stream);
      round.gemm(list->all[i].gemm, stream);
      list->all[i].copy_out(round, stream);
    }
  };
}

// All copies in, all GEMMs, all copies out; GEMM number i and its copies on stream i, cyclically.
round_work by_kind(const transfers &list, const std::shared_ptr<stream_set> &streams) {
  return [=](device_round &round) {
    const auto stream = [&](std::size_t i) { return (*streams)[i % streams->size()].get(); };
    for (std::size_t i = 0; i < list->all.size(); ++i) list->all[i].copy_in(round, stream(i));
    for (std::size_t i = 0; i < list->all.size(); ++i) round.gemm(list->all[i].gemm, stream(i));
    for (std::size_t i = 0; i < list->all.size(); ++i) list->all[i].copy_out(round, stream(i));
  };
}

// The same order with a stream for each kind, and an event between each GEMM and its copies.
round_work by_kind_with_events(sg_context *context, const transfers &list, const std::shared_ptr<stream_set> &streams) {
  const auto events = std::make_shared<std::vector<event_handle>>();
  for (std::size_t i = 0; i < 2 * list->all.size(); ++i) {
    sg_event *made = nullptr;
    check(sg_event_create(context, &made), "sg_event_create");
    events->emplace_back(made);
  }
  return [=](device_round &round) {
    const std::size_t count = list->all.size();
    sg_stream *const in = (*streams)[0].get(), *const compute = (*streams)[1].get(), *const out = (*streams)[2].get();
    for (std::size_t i = 0; i < count; ++i) {
      list->all[i].copy_in(round, in);
      check(sg_event_record((*events)[i].get(), in), "sg_event_record");
    }
    for (std::size_t i = 0; i < count; ++i) {
      check(sg_stream_wait_event(compute, (*events)[i].get()), "sg_stream_wait_event");
      round.gemm(list->all[i].gemm, compute);
      check(sg_event_record((*events)[count + i].get(), compute), "sg_event_record");
    }
    for (std::size_t i = 0; i < count; ++i) {
      check(sg_stream_wait_event(out, (*events)[count + i].get()), "sg_stream_wait_event");
      list->all[i].copy_out(round, out);
    }
  };
}

void measure_overlap(round_device &device, const shape &size, int gemms) {
  const std::string name = std::to_string(gemms) + " gemm f32 " + size.text() + ", copied in and out";
  if (!device.wants(name)) return;
  gemm_set set(device.context(), std::vector(std::size_t(gemms), size), {.pinned = true});
  const auto list = std::make_shared<const transfer_list>(device.context(), set);
  bench_case what{name, set.flops(), {}};
  what.products = gemms;
  what.bytes_in = list->bytes_in;
  what.bytes_out = list->bytes_out;
  what.baseline = in_sequence;

  device.add(what, set, own_variant, [all = set.one_by_one()](device_round &round) {
    for (const sg_gemm_desc &desc : all) round.gemm(desc);
  });
  device.add(what, set, in_sequence, gemm_by_gemm(list, device.streams(1)));
  constexpr int counts[] = {2, 4, 8};
  for (const int count : counts)
    device.add(what, set, "streamgemm, GEMM by GEMM, " + std::to_string(count) + " streams",
               gemm_by_gemm(list, device.streams(count)));
  for (const int count : counts)
    device.add(what, set, "streamgemm, grouped by kind, " + std::to_string(count) + " streams",
               by_kind(list, device.streams(count)));
  device.add(what, set, "streamgemm, grouped by kind, a stream each",
             by_kind_with_events(device.context(), list, device.streams(3)));

  device.add_part(what, "copies in alone", false, [list](device_round &round) {
    for (const transferred_gemm &x : list->all) x.copy_in(round, nullptr);
  });
  device.add_part(what, "GEMMs alone", true, [list](device_round &round) {
    for (const transferred_gemm &x : list->all) round.gemm(x.gemm);
  });
  device.add_part(what, "copies out alone", false, [list](device_round &round) {
    for (const transferred_gemm &x : list->all) x.copy_out(round, nullptr);
  });
  device.run(what);
}

}  // namespace

void run_overlap_suite(const suite_request &request, suite_run &run) {
  round_device device(request, run, 0);
  const auto cases = [&]() -> std::vector<std::pair<shape, int>> {
    switch (device.size()) {
      case case_size::quick: return {{{128, 128, 128}, 4}};
      case case_size::simulated: return {{{256, 256, 256}, 8}, {{128, 128, 128}, 16}};
      case case_size::cpu: return {{{1024, 1024, 1024}, 4}, {{512, 512, 512}, 8}, {{128, 128, 128}, 32}};
      default: return {{{4096, 4096, 4096}, 8}, {{2048, 2048, 2048}, 16}, {{512, 512, 512}, 64}};
    }
  }();
  for (const auto &[size, gemms] : cases) measure_overlap(device, size, gemms);
}

}  // namespace sg::cli
