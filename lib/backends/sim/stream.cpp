// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "element.hpp"
#include "operations.hpp"

using namespace sg::common;
using namespace sg::sim;

namespace {

// Longer than the slowest conceivable command; sums of many such still fit.
constexpr double most_seconds = 1e8;

std::int64_t nanoseconds(double seconds) { return std::llround(std::clamp(seconds, 0.0, most_seconds) * 1e9); }

// Bytes from the first to the last element of `items` matrices, column major; saturated on overflow.
std::uint64_t extent(std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t items, std::int64_t stride,
                     std::int64_t element_bytes) {
  using wide = unsigned __int128;
  const wide elements = wide(cols - 1) * wide(ld) + wide(rows) + wide(items - 1) * wide(stride);
  const wide bytes = elements * wide(element_bytes);
  return bytes > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(bytes);
}

std::uint64_t extent(std::int64_t width, std::int64_t height, std::int64_t pitch) {
  return extent(width, height, pitch, 1, 0, 1);
}

// A GEMM's operand, at `first`, or item by item at `pointers`.
struct operand {
  const char *what;
  const void *first;
  const void *const *pointers;
  std::int64_t rows, cols, ld, stride;
  sg_dtype type;
};

item_list locate(const address_space &memory, const operand &x, std::int64_t batch) {
  const std::int64_t element = element_size(x.type);
  item_list items;
  if (!x.pointers) {
    items.first = memory.device_bytes(x.first, extent(x.rows, x.cols, x.ld, batch, x.stride, element), x.what);
    items.stride_bytes = x.stride * element;
    return items;
  }
  items.pointers.reserve(static_cast<std::size_t>(batch));
  for (std::int64_t i = 0; i < batch; ++i)
    items.pointers.push_back(memory.device_bytes(x.pointers[i], extent(x.rows, x.cols, x.ld, 1, 0, element), x.what));
  return items;
}

void move_bytes(const sg_backend_copy &copy, const std::byte *from, std::byte *to) {
  if (copy.dst_pitch == copy.width && copy.src_pitch == copy.width) {
    std::memcpy(to, from, static_cast<std::size_t>(copy.width * copy.height));
    return;
  }
  for (std::int64_t run = 0; run < copy.height; ++run)
    std::memcpy(to + run * copy.dst_pitch, from + run * copy.src_pitch, static_cast<std::size_t>(copy.width));
}

}  // namespace

sg_backend_stream::sg_backend_stream(sg_backend_device &device)
    : device_(device), queue_(std::make_shared<work_queue>()) {
  std::lock_guard lock(device.mutex_);
  if (device.draining_) throw failure(SG_STATUS_SHUTDOWN, "the process is exiting");
  device.queues_.push_back(queue_);
}

sg_backend_stream::~sg_backend_stream() {
  if (device_.inherited()) return;
  {
    std::lock_guard lock(device_.mutex_);
    std::erase(device_.queues_, queue_);
  }
  queue_->stop();
}

void sg_backend_stream::wait_for(sg_backend_event &event) {
  device_.require_usable();
  std::shared_ptr<work_queue> other;
  work_queue::ticket ticket;
  {
    std::lock_guard lock(event.mutex);
    other = event.queue;
    ticket = event.ticket;
    ready_ = std::max(ready_, event.time);
  }
  if (!other || other == queue_ || other->has_completed(ticket)) return;
  std::list<task> one(1);
  one.front().work = [other, ticket] { other->wait(ticket); };
  queue_->push(one);
}

void sg_backend_stream::record(sg_backend_event &event) {
  device_.require_usable();
  const work_queue::ticket ticket = queue_->last();
  std::lock_guard lock(event.mutex);
  event.queue = queue_;
  event.ticket = ticket;
  event.time = ready_;
}

void sg_backend_stream::begin_at(std::int64_t time) noexcept { ready_ = time; }

void sg_backend_stream::other(const sg_backend_command &command, sg_backend_done done) {
  const operation *const what = operation_of(command.kind);
  if (!what) throw failure(SG_STATUS_UNSUPPORTED, "there is no command of kind %d", int{command.kind});
  if (!what->supports(command))
    throw failure(SG_STATUS_UNSUPPORTED, "the device does not support %s of these types", name_of(command.kind));
  const std::int32_t units = command.kind == SG_BACKEND_CUSTOM ? as<sg_backend_custom>(command).compute_units : 0;
  launch(name_of(command.kind), device_.seconds_of(command), units, what->run(*device_.memory_, command), done);
}

void sg_backend_stream::enqueue(const sg_backend_command &command, sg_backend_done done) {
  device_.require_usable(true);
  switch (command.kind) {
    case SG_BACKEND_MARKER: return marker(done);
    case SG_BACKEND_COPY: return copy(as<sg_backend_copy>(command), done);
    case SG_BACKEND_GEMM: return gemm(as<sg_backend_gemm>(command), done);
    case SG_BACKEND_REDUCE: return reduce(as<sg_backend_reduce>(command), done);
    default: return other(command, done);
  }
}

auto sg_backend_stream::end_of_copy(sg_backend_space space, const void *at, std::uint64_t bytes, const char *what) const
    -> copy_end {
  if (space.kind == SG_MEMORY_DEVICE) return {device_.memory_->device_bytes(at, bytes, what)};
  if (space.kind == SG_MEMORY_PEER)
    if (const peer *const other = device_.peer_at(space.device))
      return {other->device->memory_->device_bytes(at, bytes, what), other};
  for (const peer &each : device_.peers_) each.device->memory_->host_bytes(at, bytes, what);
  return {device_.memory_->host_bytes(at, bytes, what)};
}

void sg_backend_stream::copy(const sg_backend_copy &copy, sg_backend_done done) {
  const bool to_device = copy.dst_space.kind == SG_MEMORY_DEVICE, from_device = copy.src_space.kind == SG_MEMORY_DEVICE;
  const auto [from, from_peer] =
      end_of_copy(copy.src_space, copy.src, extent(copy.width, copy.height, copy.src_pitch), "source of a copy");
  const auto [to, to_peer] =
      end_of_copy(copy.dst_space, copy.dst, extent(copy.width, copy.height, copy.dst_pitch), "destination of a copy");
  const peer *const other = from_peer ? from_peer : to_peer;
  const bool over_peer_link = other && other->bytes_per_second > 0;
  const bool drops = over_peer_link && from_peer && from_peer->device->index_ == device_.name_.drops_from;
  shared_links *const links = device_.links_.get();
  const shared_links::transfer ends{from_peer     ? from_peer->device->index_
                                    : from_device ? device_.index_
                                                  : -1,
                                    to_peer     ? to_peer->device->index_
                                    : to_device ? device_.index_
                                                : -1,
                                    double(copy.width) * double(copy.height)};
  const double over_links = over_peer_link   ? ends.bytes / other->bytes_per_second
                            : other && links ? ends.bytes / links->peer_rate(ends.from, ends.to)
                                             : 0;
  const auto seconds = [&](bool both_ways) {
    return over_peer_link ? over_links : std::max(over_links, device_.seconds_of(copy.header, both_ways));
  };
  const std::int64_t alone = nanoseconds(seconds(false)), both_ways = nanoseconds(seconds(true));

  std::list<task> one(1);
  task &todo = one.front();
  todo.done = done;
  {
    std::lock_guard lock(device_.mutex_);
    sg::sim::device_name &faults = device_.name_;
    if (faults.refuse_copy.hit())
      throw failure(SG_STATUS_BACKEND_FAILURE, "planned fault: copy %lld is refused",
                    static_cast<long long>(faults.refuse_copy.nth()));
    const std::int64_t late = faults.late_copy.hit() ? faults.late_microseconds : 0;
    todo.work = [copy, from = from, to = to, late, stores = !faults.timing_only && !drops,
                 fails = faults.fail_copy.hit(), nth = faults.fail_copy.nth()] {
      if (late) std::this_thread::sleep_for(std::chrono::microseconds(late));
      if (fails)
        throw failure(SG_STATUS_BACKEND_FAILURE, "planned fault: copy %lld fails", static_cast<long long>(nth));
      if (stores) move_bytes(copy, from, to);
    };
    const std::int64_t extra = late * 1000;
    if (to_device && from_device) {  // the chip copies within its own memory
      todo.time = device_.timeline_->schedule_compute(ready_, alone + extra);
    } else {
      std::unique_lock<std::mutex> sharing;
      timeline::sharing shared;
      if (links) {
        sharing = std::unique_lock(links->mutex());
        shared = [&](std::int64_t start, std::int64_t duration) { return links->duration(ends, start, duration); };
      }
      todo.time = over_peer_link ? device_.timeline_->schedule_peer_copy(ready_, alone + extra, shared)
                                 : device_.timeline_->schedule_copy(
                                       from_device ? timeline::direction::out : timeline::direction::in, ready_,
                                       alone + extra, both_ways + extra, shared);
      if (links) links->take();
    }
  }
  const std::int64_t end = todo.time.end;
  queue_->push(one);
  ready_ = end;
}

// A GEMM with the stored locations of its operands.
struct sg_backend_stream::located_gemm {
  sg_backend_gemm gemm;
  item_list a, b, c, bias;

  void multiply() const { sg::sim::multiply(gemm, a, b, c, bias); }
};

sg_backend_stream::located_gemm sg_backend_stream::located(const sg_backend_gemm &gemm) const {
  if (!is_supported(gemm))
    throw failure(SG_STATUS_UNSUPPORTED, "there is no such GEMM (types %d and %d)", gemm.in_type, gemm.out_type);
  const address_space &memory = *device_.memory_;
  const bool a_as_is = gemm.op_a == SG_TRANSPOSE_N, b_as_is = gemm.op_b == SG_TRANSPOSE_N;
  const operand a{"A of a GEMM", gemm.a,        gemm.a_array, a_as_is ? gemm.m : gemm.k, a_as_is ? gemm.k : gemm.m,
                  gemm.lda,      gemm.stride_a, gemm.in_type};
  const operand b{"B of a GEMM", gemm.b,        gemm.b_array, b_as_is ? gemm.k : gemm.n, b_as_is ? gemm.n : gemm.k,
                  gemm.ldb,      gemm.stride_b, gemm.in_type};
  const operand c{"C of a GEMM", gemm.c, gemm.c_array, gemm.m, gemm.n, gemm.ldc, gemm.stride_c, gemm.out_type};
  const std::int64_t values = gemm.bias_per_row ? gemm.m : gemm.n;
  const operand bias{"bias of a GEMM", gemm.bias, nullptr, values, 1, values, gemm.stride_bias, gemm.out_type};
  return {gemm, locate(memory, a, gemm.batch), locate(memory, b, gemm.batch), locate(memory, c, gemm.batch),
          gemm.bias ? locate(memory, bias, gemm.batch) : item_list{}};
}

void sg_backend_stream::gemm(const sg_backend_gemm &gemm, sg_backend_done done) {
  const double seconds = device_.seconds_of(gemm.header);
  if (seconds < 0)
    throw failure(SG_STATUS_UNSUPPORTED, "this device model has no such GEMM (types %d and %d)", gemm.in_type,
                  gemm.out_type);
  launch(
      name_of(SG_BACKEND_GEMM), seconds, gemm.compute_units, [operands = located(gemm)] { operands.multiply(); }, done);
}

void sg_backend_stream::enqueue_batch(const sg_backend_command *const *gemms, std::int32_t count,
                                      sg_backend_done done) {
  device_.require_usable(true);
  const auto &first = as<sg_backend_gemm>(*gemms[0]);
  const double seconds = device_.host_->batch_seconds(device_.model_.get(), gemms, count);
  if (seconds < 0)
    throw failure(SG_STATUS_UNSUPPORTED, "this device model has no such GEMM (types %d and %d)", first.in_type,
                  first.out_type);
  std::vector<located_gemm> located_gemms;
  located_gemms.reserve(static_cast<std::size_t>(count));
  for (std::int32_t i = 0; i < count; ++i) located_gemms.push_back(located(as<sg_backend_gemm>(*gemms[i])));
  launch(
      "a group of GEMMs", seconds, first.compute_units,
      [located_gemms = std::move(located_gemms)] {  // in reverse order, like items of a batch
        std::for_each(located_gemms.rbegin(), located_gemms.rend(), [](const located_gemm &each) { each.multiply(); });
      },
      done);
}

void sg_backend_stream::reduce(const sg_backend_reduce &reduce, sg_backend_done done) {
  if (!is_supported(reduce))
    throw failure(SG_STATUS_UNSUPPORTED, "no reduction of type %d into type %d", reduce.part_type, reduce.out_type);
  const address_space &memory = *device_.memory_;
  std::byte *parts = nullptr;
  if (reduce.parts_count > 0)
    parts = memory.device_bytes(reduce.parts,
                                extent(reduce.m, reduce.n, reduce.part_ld, reduce.parts_count, reduce.part_stride,
                                       element_size(reduce.part_type)),
                                "parts of a reduction");
  std::byte *c = memory.device_bytes(
      reduce.c, extent(reduce.m, reduce.n, reduce.ldc, 1, 0, element_size(reduce.out_type)), "C of a reduction");
  const std::byte *bias = nullptr;
  if (reduce.bias)
    bias = memory.device_bytes(
        reduce.bias, extent(reduce.bias_per_row ? reduce.m : reduce.n, 1, 1, 1, 0, element_size(reduce.out_type)),
        "bias of a reduction");
  launch(
      name_of(SG_BACKEND_REDUCE), device_.seconds_of(reduce.header), 0,
      [reduce, parts, c, bias] { add_parts(reduce, parts, c, bias); }, done);
}

void sg_backend_stream::launch(const char *what, double seconds, std::int32_t units, std::function<void()> work,
                               sg_backend_done done) {
  std::list<task> one(1);
  task &todo = one.front();
  todo.done = done;
  {
    std::lock_guard lock(device_.mutex_);
    sg::sim::device_name &faults = device_.name_;
    if (faults.refuse_launch.hit())
      throw failure(SG_STATUS_BACKEND_FAILURE, "planned fault: launch %lld, %s, is refused",
                    static_cast<long long>(faults.refuse_launch.nth()), what);
    if (faults.fail_launch.hit())
      todo.work = [what, nth = faults.fail_launch.nth()] {
        throw failure(SG_STATUS_BACKEND_FAILURE, "planned fault: launch %lld, %s, fails", static_cast<long long>(nth),
                      what);
      };
    else if (!faults.timing_only)
      todo.work = std::move(work);
    todo.time = device_.timeline_->schedule_compute(ready_, nanoseconds(seconds), units);
  }
  const std::int64_t end = todo.time.end;
  queue_->push(one);
  ready_ = end;
}

void sg_backend_stream::marker(sg_backend_done done) {
  std::list<task> one(1);
  one.front().done = done;
  one.front().time = {ready_, ready_};
  queue_->push(one);
}
