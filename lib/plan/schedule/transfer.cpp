// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule/transfer.hpp"

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"

namespace sg {
namespace {

// A slot is small enough to stay in the caches between the worker's write and the copy engine's read, and for short
// first and last chunks of a small GEMM; a large GEMM should have few chunks. H200, twelve workers, slots of 4 and of 2
// MiB, ms (no record is kept): f64 1000x1000x5000 4.6 and 3.7, tf32 8191x4097x5003 8.3 and 7.5, tf32 8192^3 13.6 and
// 13.8, f64 30000x30000x3000 168 and 182; slots of 1 MiB were slower by a fifth to a half.
constexpr std::int64_t least_slot_bytes = std::int64_t(2) << 20, most_slot_bytes = std::int64_t(4) << 20;
constexpr double few_chunks = 128;
// Workers share a chunk near the begin of all bytes, so that the link starts early, and near the end, so that the job
// ends early: a piece of a quarter of a slot for each.
constexpr std::int64_t pieces_of_slot = 4, least_piece_bytes = std::int64_t(1) << 19;
// A third slot, if slots are small, covers the time until a copy's completion is observed.
constexpr std::int64_t slots_per_worker(std::int64_t bytes) { return bytes < most_slot_bytes ? 3 : 2; }

struct chunk_size {
  std::int64_t rows, cols;
};

chunk_size chunk_shape(const view &rectangle, std::int64_t size, std::int64_t bytes) {
  const std::int64_t rows = std::min(rectangle.rows, bytes / size);
  return {rows, std::max<std::int64_t>(1, bytes / (rows * size))};
}

// Columns of a triangle's block on the diagonal, which crosses the link whole.
constexpr std::int64_t triangle_block = 256;

// The parts of a panel: blocks on the diagonal, with their triangle, and rectangles. Host workers have no access to a
// peer's memory, of which each column is a copy of its own.
template <class Each>
void for_parts(const operand &x, const panel &what, Each &&each) {
  if (what.accessed == stored_part::all) return each(what);
  const block &w = what.where;
  const auto add = [&](std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols, stored_part accessed) {
    if (rows > 0) each(panel{what.items, {w.row + row, w.col + col, rows, cols}, accessed});
  };
  for (std::int64_t j = 0; x.space == SG_MEMORY_PEER && j < w.cols; ++j)
    what.accessed == stored_part::lower ? add(j, w.rows - j, j, 1, stored_part::all)
                                        : add(0, j + 1, j, 1, stored_part::all);
  for (std::int64_t first = 0; x.space != SG_MEMORY_PEER && first < w.cols; first += triangle_block) {
    const std::int64_t cols = std::min(triangle_block, w.cols - first), end = first + cols;
    add(first, cols, first, cols, what.accessed);
    what.accessed == stored_part::lower ? add(end, w.rows - end, first, cols, stored_part::all)
                                        : add(0, first, first, cols, stored_part::all);
  }
}

// A part of memory, and the type of its elements.
struct side {
  view where;
  sg_dtype type;
};

double bytes_of_part(const view &rectangle, sg_dtype type) {
  return double(rectangle.rows) * double(rectangle.cols) * double(size_of(type));
}

// Calls chunk(host, other, diagonal) for each part of a rectangle of at most `bytes` on the host; the diagonal begins
// in row `diagonal` of the rectangle's first column, and in that row of the part's.
template <class Chunk>
void for_chunks(const side &on_host, const side &other, std::int64_t diagonal, std::int64_t bytes, Chunk &&chunk) {
  const view &host = on_host.where;
  for (std::int64_t c = 0, cols = 0; c < host.cols; c += cols)
    for (std::int64_t r = 0, rows = 0; r < host.rows; r += rows) {
      const chunk_size shape = chunk_shape(host, size_of(on_host.type), bytes);
      rows = std::min(shape.rows, host.rows - r);
      cols = rows < host.rows ? 1 : std::min(shape.cols, host.cols - c);
      const auto part = [&](const side &x) {
        view v = x.where;
        v.offset += (r + c * v.ld) * size_of(x.type);
        v.rows = rows;
        v.cols = cols;
        return v;
      };
      chunk(part(on_host), part(other), diagonal + c - r);
    }
}

template <class Operation>
command move(lane where, const view &from, const view &to, const Operation &what = {}) {
  command c;
  c.what = what;
  c.where = where;
  c.views[Operation::from] = from;
  c.views[Operation::to] = to;
  return c;
}

// A panel of full columns with the host's pitch on the device is copied as one run with its padding. Its views say so:
// the bytes of a copy follow from its views alone.
bool moves_with_padding(const parameter &of, const block &w, std::int64_t device_ld) {
  const operand &x = of.stored;
  return !of.is_result && copies_padding(x) && w.cols > 1 && w.rows == x.rows && device_ld == x.ld;
}

bool is_staged(const operand &x, stored_part accessed) noexcept {
  return x.space == SG_MEMORY_PAGEABLE || accessed != stored_part::all;
}

constexpr lane in_lane{lane_kind::copy_in, 0}, out_lane{lane_kind::copy_out, 0}, workers{lane_kind::staging, 0};

}  // namespace

bool copies_padding(const operand &x) {
  constexpr std::int64_t smallest_page = 4096;
  const std::int64_t padding = x.ld - x.rows;
  return x.space.is_copied_directly() && padding > 0 && padding <= x.rows / 8 &&
         padding * size_of(x.type) < smallest_page;
}

std::int64_t rectangles_of(const operand &x, const panel &what, std::int64_t ld) {
  const block &w = what.where;
  const bool run_on_host = w.cols == 1 || x.ld == w.rows;
  const bool run_on_device = w.cols == 1 || ld == w.rows;
  const bool is_disjoint = !x.pointer_array && x.item_stride >= w.rows * w.cols;
  return is_disjoint && run_on_host && run_on_device ? 1 : what.items.size;
}

std::int64_t chunks_of(const view &rectangle, std::int64_t element_bytes) {
  const auto [rows, cols] = chunk_shape(rectangle, element_bytes, least_slot_bytes);
  return ceil_div(rectangle.rows, rows) * ceil_div(rectangle.cols, cols);
}

staging_ring::staging_ring(schedule_builder &builder, std::int64_t workers, std::int64_t slots, std::int64_t slot_bytes,
                           double all_bytes)
    : builder_(builder), workers_(workers), slot_bytes_(slot_bytes), all_bytes_(all_bytes) {
  slots_.resize(std::size_t(slots));
  for (slot &s : slots_) s.buffers[SG_DTYPE_I8] = builder.add_staging_buffer(SG_DTYPE_I8, slot_bytes);
}

staging_ring::slot &staging_ring::next_slot(double chunk_bytes) {
  done_ += chunk_bytes;
  return slots_[std::size_t(chunks_++) % slots_.size()];
}

std::int64_t staging_ring::piece_bytes() const noexcept {
  const double near_an_end = double(workers_) * double(slot_bytes_) / 2;
  if (std::min(done_, all_bytes_ - done_) > near_an_end) return slot_bytes_;
  return std::max(slot_bytes_ / pieces_of_slot, least_piece_bytes);
}

std::int32_t staging_ring::buffer_of(slot &s, sg_dtype type) {
  const auto known = s.buffers.find(type);
  if (known != s.buffers.end()) return known->second;
  return s.buffers[type] = builder_.add_alias(s.buffers[SG_DTYPE_I8], type);
}

transfers::transfers(schedule_builder &builder, const device_model &model, pageable_bytes bytes) : builder_(builder) {
  if (bytes.in + bytes.out <= 0) return;
  builder.use_workers(model.staging_workers);
  for (const double amount : {bytes.in, bytes.out}) {
    const auto large = std::clamp(std::int64_t(amount / few_chunks), least_slot_bytes, most_slot_bytes);
    const std::int64_t slot_bytes = round_up(std::min(large, std::int64_t(amount) + 1), 256);
    // Panels smaller than a slot occupy one, too.
    const auto needed = std::int64_t(std::min(1e6, 2 * std::ceil(amount / double(slot_bytes))));
    const std::int64_t slots =
        std::clamp<std::int64_t>(needed, 1, bytes.ahead * slots_per_worker(slot_bytes) * model.staging_workers);
    rings_.emplace_back(builder, model.staging_workers, slots, slot_bytes, amount);
  }
}

double staged_bytes(const operand &x, const panel &what) {
  double elements = 0;
  for_parts(x, what, [&](const panel &part) {
    if (is_staged(x, part.accessed))
      elements += double(part.items.size) * double(part.where.rows) * double(part.where.cols);
  });
  return elements * double(size_of(x.type));
}

std::vector<transfers::rectangle> transfers::rectangles(std::int32_t parameter, const panel &what,
                                                        const device_location &location) const {
  std::vector<rectangle> all;
  const operand &x = builder_.operand_at(parameter);
  const std::int64_t size = size_of(x.type);
  for_parts(x, what, [&](const panel &part) {
    device_location to = location;
    to.offset += (part.where.row - what.where.row + (part.where.col - what.where.col) * location.ld) * size;
    add_rectangles(all, parameter, part, to);
  });
  return all;
}

void transfers::add_rectangles(std::vector<rectangle> &all, std::int32_t parameter, const panel &what,
                               const device_location &location) const {
  const operand &x = builder_.operand_at(parameter);
  const block &w = what.where;
  view host = builder_.part_of(parameter, {what.items.first, 1}, w);
  view device{location.buffer, location.item, 1, location.offset, location.ld, w.rows, w.cols};

  // Items that are contiguous on both sides are the columns of one rectangle.
  if (what.items.size > 1 && rectangles_of(x, what, location.ld) == 1) {
    host.rows = device.rows = w.rows * w.cols;
    host.cols = device.cols = what.items.size;
    host.ld = x.item_stride;
    device.ld = location.item_stride;
    all.push_back({host, device});
    return;
  }
  if (what.accessed == stored_part::all && moves_with_padding(builder_.parameter_at(parameter), w, location.ld)) {
    host.rows = device.rows = host.ld = device.ld = (w.cols - 1) * x.ld + w.rows;
    host.cols = device.cols = 1;
  }
  for (std::int64_t i = 0; i < what.items.size; ++i) {
    all.push_back({host, device, what.accessed});
    ++host.item;
    ++device.item;
  }
}

std::uint32_t transfers::in(std::int32_t parameter, const panel &what, const device_location &to,
                            std::span<const std::uint32_t> waits) {
  const operand &x = builder_.operand_at(parameter);
  const sg_dtype type = builder_.type_of(to.buffer);
  std::uint32_t last = 0;
  for (const rectangle &r : rectangles(parameter, what, to))
    last = is_staged(x, r.accessed) ? staged_in(r, x.type, type, waits)
                                    : builder_.add(move<ops::copy_in>(in_lane, r.host, r.device), waits);
  return last;
}

std::uint32_t transfers::out(std::int32_t parameter, const panel &what, const device_location &from,
                             std::span<const std::uint32_t> waits) {
  const operand &x = builder_.operand_at(parameter);
  std::uint32_t last = 0;
  for (const rectangle &r : rectangles(parameter, what, from))
    last = is_staged(x, r.accessed) ? staged_out(r, x.type, waits)
                                    : builder_.add(move<ops::copy_out>(out_lane, r.device, r.host), waits);
  return last;
}

std::uint32_t transfers::staged_in(const rectangle &r, sg_dtype from, sg_dtype type,
                                   std::span<const std::uint32_t> waits) {
  staging_ring &ring = rings_.at(0);
  std::uint32_t last = 0;
  const auto chunk = [&](const view &host, const view &device, std::int64_t diagonal) {
    staging_ring::slot &slot = ring.next_slot(bytes_of_part(host, from));
    const view staged{ring.buffer_of(slot, type), 0, 1, 0, host.rows, host.rows, host.cols};
    std::vector<std::uint32_t> before(waits.begin(), waits.end());
    const auto pack = [&](const view &piece, const view &place, std::int64_t at) {
      before.push_back(builder_.add(move<ops::pack>(workers, piece, place, {{r.accessed, at}}), slot.users));
    };
    for_chunks({host, from}, {staged, type}, diagonal, ring.piece_bytes(), pack);
    last = builder_.add(move<ops::copy_in>(in_lane, staged, device), before);
    slot.users = {last};
  };
  for_chunks({r.host, from}, {r.device, type}, 0, ring.slot_bytes(), chunk);
  return last;
}

std::uint32_t transfers::staged_out(const rectangle &r, sg_dtype type, std::span<const std::uint32_t> waits) {
  staging_ring &ring = rings_.at(1);
  std::uint32_t last = 0;
  const auto chunk = [&](const view &host, const view &device, std::int64_t diagonal) {
    staging_ring::slot &slot = ring.next_slot(bytes_of_part(host, type));
    const view staged{ring.buffer_of(slot, type), 0, 1, 0, host.rows, host.rows, host.cols};
    std::vector<std::uint32_t> before(waits.begin(), waits.end());
    before.insert(before.end(), slot.users.begin(), slot.users.end());
    last = builder_.add(move<ops::copy_out>(out_lane, device, staged), before);
    slot.users.clear();
    const auto unpack = [&](const view &piece, const view &place, std::int64_t at) {
      slot.users.push_back(builder_.add(move<ops::unpack>(workers, place, piece, {{r.accessed, at}}), {{last}}));
    };
    for_chunks({host, type}, {staged, type}, diagonal, ring.piece_bytes(), unpack);
  };
  for_chunks({r.host, type}, {r.device, type}, 0, ring.slot_bytes(), chunk);
  return last;
}

}  // namespace sg
