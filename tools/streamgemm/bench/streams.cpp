// SPDX-License-Identifier: Apache-2.0
// The suite `streams`: one GEMM that the caller cuts into panels, one for each of several streams, and equal GEMMs in
// turn on several streams; operands on the device and in pinned memory.
#include <algorithm>

#include "rounds.hpp"

namespace sg::cli {

namespace {

constexpr int stream_counts[] = {1, 2, 4, 8, 16};
constexpr int most_streams = 16;

std::string on_streams(int count) {
  return "streamgemm, " + std::to_string(count) + (count == 1 ? " stream" : " streams");
}

sg_matrix rows_of(const sg_matrix &x, std::int64_t first, std::int64_t end) {
  sg_matrix part = x;
  part.data = static_cast<std::byte *>(x.data) + first * x.ld * sg_dtype_size(x.dtype);
  part.rows = end - first;
  return part;
}

// A row-major GEMM cut into panels of rows of A and C, which are the columns of a column-major one; all read all of B.
submissions panels_of(const sg_gemm_desc &whole, int count) {
  submissions panels;
  for (int i = 0; i < count; ++i) {
    const std::int64_t first = whole.c.rows * i / count, end = whole.c.rows * (i + 1) / count;
    if (first == end) continue;
    sg_gemm_desc panel = whole;
    panel.a = rows_of(whole.a, first, end);
    panel.c = rows_of(whole.c, first, end);
    panels.push_back(panel);
  }
  return panels;
}

class streams_suite {
 public:
  streams_suite(const suite_request &request, suite_run &out) : device_(request, out, most_streams) {}

  void run() {
    const auto [one, few, many] = sizes();
    for (const bool pinned : {false, true})
      for (const sg_compute compute : {SG_COMPUTE_EXACT, SG_COMPUTE_TF32}) one_gemm(one, compute, pinned);
    for (const bool pinned : {false, true}) {
      equal_gemms(few.first, few.second, pinned);
      equal_gemms(many.first, many.second, pinned);
    }
  }

 private:
  struct case_sizes {
    shape one;
    std::pair<shape, int> few, many;  // and how many of them
  };
  case_sizes sizes() const {
    switch (device_.size()) {
      case case_size::quick: return {{256, 256, 256}, {{64, 64, 64}, 8}, {{32, 32, 32}, 16}};
      case case_size::simulated: return {{512, 512, 512}, {{256, 256, 256}, 8}, {{64, 64, 64}, 64}};
      case case_size::cpu: return {{2048, 2048, 2048}, {{512, 512, 512}, 16}, {{128, 128, 128}, 128}};
      default: return {{8192, 8192, 8192}, {{1024, 1024, 1024}, 32}, {{256, 256, 256}, 256}};
    }
  }

  static std::string place(bool pinned) { return pinned ? " pinned" : " resident"; }

  void set_bound(bench_case &what, const gemm_set &set, const sg_gemm_desc &first, bool pinned) const {
    what.bound_seconds = device_.arithmetic(first, set.count());
    if (!pinned) return;
    for (const sg_gemm_desc &x : set.one_by_one()) {
      what.bytes_in += double((x.a.rows * x.a.cols + x.b.rows * x.b.cols) * sg_dtype_size(x.a.dtype));
      what.bytes_out += double(x.c.rows * x.c.cols * sg_dtype_size(x.c.dtype));
    }
    what.bound_seconds = std::max(what.bound_seconds, device_.transfers(what.bytes_in, what.bytes_out));
  }

  void one_gemm(const shape &size, sg_compute compute, bool pinned) {
    const std::string name = std::string(compute == SG_COMPUTE_TF32 ? "tf32 " : "f32 ") + size.text() + place(pinned);
    if (!device_.wants(name)) return;
    gemm_set set(device_.context(), {size}, {.pinned = pinned});
    sg_gemm_desc whole = set.one_by_one().front();
    whole.compute = compute;
    bench_case what{name, set.flops(), {}};
    what.baseline = on_streams(1);
    set_bound(what, set, whole, pinned);
    device_.add(what, set, own_variant, [whole](device_round &round) { round.gemm(whole); });
    for (const int count : stream_counts)
      device_.add(what, set, on_streams(count), cyclic(panels_of(whole, count), count));
    if (pinned)
      for (const int count : stream_counts)
        device_.add(what, set, on_streams(count) + ", B copied once", shared_b(whole, count));
    else
      for (const int count : stream_counts) device_.add_cublas(what, set, count, panels_of(whole, count));
    device_.run(what);
  }

  void equal_gemms(const shape &size, int gemms, bool pinned) {
    const std::string name = std::to_string(gemms) + " gemm f32 " + size.text() + place(pinned);
    if (!device_.wants(name)) return;
    gemm_set set(device_.context(), std::vector(std::size_t(gemms), size), {.pinned = pinned});
    const submissions all = set.one_by_one();
    bench_case what{name, set.flops(), {}};
    what.products = gemms;
    what.baseline = on_streams(1);
    set_bound(what, set, all.front(), pinned);
    device_.add(what, set, own_variant, [all](device_round &round) {
      for (const sg_gemm_desc &desc : all) round.gemm(desc);
    });
    const sg_gemm_desc batch = set.batch(0, gemms);
    device_.add(what, set, "streamgemm, one batch", [batch](device_round &round) { round.gemm(batch); });
    for (const int count : stream_counts) device_.add(what, set, on_streams(count), cyclic(all, count));
    if (!pinned)
      for (const int count : stream_counts) device_.add_cublas(what, set, count, all);
    device_.run(what);
  }

  round_work cyclic(submissions all, int count) const {
    return [streams = device_.streams(count), all = std::move(all)](device_round &round) {
      for (std::size_t i = 0; i < all.size(); ++i) round.gemm(all[i], (*streams)[i % streams->size()].get());
    };
  }

  // The caller copies B to the device once; the streams of the panels wait for an event after the copy.
  round_work shared_b(const sg_gemm_desc &whole, int count) const {
    struct state {
      buffer_handle memory;
      event_handle copied;
      std::shared_ptr<stream_set> streams;
      submissions panels;
    };
    const auto held = std::make_shared<state>();
    const std::int64_t bytes = whole.b.rows * whole.b.ld * sg_dtype_size(whole.b.dtype);
    sg_buffer *buffer = nullptr;
    check(sg_buffer_create(device_.context(), std::uint64_t(bytes), nullptr, &buffer), "device memory");
    held->memory.reset(buffer);
    sg_event *event = nullptr;
    check(sg_event_create(device_.context(), &event), "sg_event_create");
    held->copied.reset(event);
    sg_gemm_desc on_device = whole;
    check(sg_buffer_data(buffer, &on_device.b.data), "device memory");
    held->panels = panels_of(on_device, count);
    held->streams = device_.streams(count);
    return [held, from = whole.b.data, to = on_device.b.data, bytes](device_round &round) {
      const stream_set &streams = *held->streams;
      round.copy(to, from, bytes, streams[0].get());
      check(sg_event_record(held->copied.get(), streams[0].get()), "sg_event_record");
      for (std::size_t i = 1; i < streams.size(); ++i)
        check(sg_stream_wait_event(streams[i].get(), held->copied.get()), "sg_stream_wait_event");
      for (std::size_t i = 0; i < held->panels.size(); ++i)
        round.gemm(held->panels[i], streams[i % streams.size()].get());
    };
  }

  round_device device_;
};

}  // namespace

void run_streams_suite(const suite_request &request, suite_run &run) { streams_suite(request, run).run(); }

}  // namespace sg::cli
