// SPDX-License-Identifier: Apache-2.0
#include "ops/copy.hpp"

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

// Measured on an H200 (driver 580): 4000 rows of 64 B to 32 KiB, 50 B apart, took as long as one run of all bytes.
constexpr double small_gap = 1.25;

// The rate of the row for rows so far apart: from twice the run on the time of a byte grows with the pitch.
double pick(const run_rate &row, double pitch, bool both_ways) {
  const double rate = both_ways ? row.both_ways : row.one_way, near = 2 * row.run_bytes;
  const double factor = both_ways ? row.far_both_ways_factor : row.far_factor;
  const double far = near < far_pitch ? std::clamp((pitch - near) / (far_pitch - near), 0.0, 1.0) : 0.0;
  return rate / (1 + far * (1 / factor - 1));
}

double pitched_rate(const device_model &model, double run, double pitch, bool both_ways, double contiguous) {
  const auto &rows = model.runs;
  if (rows.empty()) return contiguous;
  if (run <= rows.front().run_bytes) return pick(rows.front(), pitch, both_ways) * run / rows.front().run_bytes;
  if (run >= rows.back().run_bytes) return std::min(contiguous, pick(rows.back(), pitch, both_ways));
  const auto above = std::find_if(rows.begin(), rows.end(), [&](const run_rate &r) { return r.run_bytes >= run; });
  const auto below = above - 1;
  const double t = std::log(run / below->run_bytes) / std::log(above->run_bytes / below->run_bytes);
  return std::min(contiguous, pick(*below, pitch, both_ways) * (1 - t) + pick(*above, pitch, both_ways) * t);
}

access_mode access(const command &, std::size_t view) {
  return view == ops::copy_in::to ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &c) {
  if (const char *found = defect_of_move(buffers, c)) return found;
  return type_of(buffers, source_of(c)) == type_of(buffers, destination_of(c)) ? nullptr : "a copy changes the type";
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &c) {
  const copy_shape shape = shape_of_copy(buffers, c);
  command_cost cost;
  cost.amount = bytes_of_copy(buffers, c);
  cost.one_way = copy_rate(model, shape, false);
  cost.both_ways = copy_rate(model, shape, true);
  cost.delay_idle = std::max(model.copy_latency, model.copy_gap);
  cost.delay_queued = model.copy_gap;
  return cost;
}

// The chip, or a core, reads and writes each byte.
command_cost cost_within(const device_model &model, const buffer_list &buffers, const command &c) {
  return memory_bound_cost(model, 2 * bytes_of_copy(buffers, c));
}

std::string describe_in(const buffer_list &buffers, const command &c) {
  return describe_move(buffers, c, source_of(c));
}
std::string describe_out(const buffer_list &buffers, const command &c) {
  return describe_move(buffers, c, destination_of(c));
}

void lower(const buffer_list &buffers, const command &c, const binding &where, backend_commands &out) {
  lower_copy(buffers, c, where, out.copies);
  for (const sg_backend_copy &each : out.copies) out.add(each);
}

memory_space space_of(const buffer_list &buffers, const view &v) { return buffer_of(buffers, v).space; }

const char *defect_of_peer(const buffer_list &buffers, const command &c) {
  if (const char *found = defect(buffers, c)) return found;
  const memory_space to = space_of(buffers, destination_of(c)), from = space_of(buffers, source_of(c));
  if (to != SG_MEMORY_DEVICE || from != SG_MEMORY_DEVICE) return "a peer copy joins the memory of two devices";
  if (to.device() != c.where.device) return "a peer copy writes the memory of its lane's device";
  return from.device() == to.device() ? "a peer copy reads another device's memory" : nullptr;
}

std::string describe_peer(const buffer_list &buffers, const command &c) {
  return describe_move(buffers, c, destination_of(c)) + " of device " +
         std::to_string(number_of(space_of(buffers, source_of(c)).device()));
}

// The source is a peer of the lane's device, by its index in the machine.
void lower_peer(const buffer_list &buffers, const command &c, const binding &where, backend_commands &out) {
  lower_copy(buffers, c, where, out.copies);
  const auto peer = static_cast<std::uint16_t>(number_of(space_of(buffers, source_of(c)).device()));
  for (sg_backend_copy &each : out.copies) {
    each.src_space = backend_space_of(memory_space::of_peer(peer));
    out.add(each);
  }
}

// A copy within the device does not cross the link.
double seconds(const device_model &model, const sg_backend_command &command, bool both_ways) {
  const auto &copy = as_backend<sg_backend_copy>(command);
  const bool to_device = copy.dst_space.kind == SG_MEMORY_DEVICE;
  if (to_device && copy.src_space.kind == SG_MEMORY_DEVICE)
    return model.launch_gap + 2.0 * double(copy.width) * double(copy.height) / model.memory_rate;
  const bool between_devices = to_device && copy.src_space.kind == SG_MEMORY_PEER;
  return copy_seconds(model, {copy.width, copy.height, copy.dst_pitch, copy.src_pitch, to_device, between_devices},
                      both_ways);
}

}  // namespace

constinit const operation ops::copy_in::entry{"copy-in",   access, defect,          cost,
                                              describe_in, lower,  SG_BACKEND_COPY, seconds};
constinit const operation ops::copy_out::entry{"copy-out",   access, defect,          cost,
                                               describe_out, lower,  SG_BACKEND_COPY, seconds};
constinit const operation ops::copy_peer::entry{"copy-peer",   access,     defect_of_peer,  cost,
                                                describe_peer, lower_peer, SG_BACKEND_COPY, seconds};
constinit const operation ops::copy::entry{"copy",       access, defect,          cost_within,
                                           describe_out, lower,  SG_BACKEND_COPY, seconds};

bool is_copy(const command &c) noexcept {
  return c.is<ops::copy_in>() || c.is<ops::copy_out>() || c.is<ops::copy_peer>() || c.is<ops::copy>();
}

const accessed_view &destination_of(const command &move) noexcept { return move.views[ops::copy_in::to]; }
const accessed_view &source_of(const command &move) noexcept { return move.views[ops::copy_in::from]; }

const char *defect_of_move(const buffer_list &, const command &c) {
  const view &to = destination_of(c), &from = source_of(c);
  if (!to.exists() || !from.exists()) return "a copy has a source and a destination";
  if (from.rows != to.rows || from.cols != to.cols) return "source and destination differ in shape";
  return nullptr;
}

std::string describe_move(const buffer_list &buffers, const command &c, const view &host) {
  const memory_space space = buffer_of(buffers, host).space;
  std::string text = operation_of(c).name + shape_text(destination_of(c)) + operand_text(buffers, host);
  if (space == SG_MEMORY_PEER)
    text += space.peer() == memory_space::unknown_peer ? " of a peer" : " of peer " + std::to_string(space.peer());
  return text;
}

copy_shape shape_of_copy(const buffer_list &buffers, const command &c) {
  const view &to = destination_of(c), &from = source_of(c);
  const std::int64_t size = size_of(type_of(buffers, to));
  const std::int64_t width = to.rows * size;
  return {width,
          to.cols,
          step_bytes(to.ld, size, width),
          step_bytes(from.ld, size, width),
          c.is<ops::copy_in>() || c.is<ops::copy_peer>(),
          c.is<ops::copy_peer>()};
}

double bytes_of_copy(const buffer_list &buffers, const command &c) {
  const copy_shape shape = shape_of_copy(buffers, c);
  return double(shape.width) * double(shape.height);
}

bytes_moved bytes_moved_by(const buffer_list &buffers, const command &c) {
  const bool in = c.is<ops::copy_in>(), out = c.is<ops::copy_out>();
  if (!in && !out && !c.is<ops::copy_peer>()) return {};
  const double bytes = bytes_of_copy(buffers, c);
  const auto is_peer = [&](const view &end) { return buffer_of(buffers, end).space == SG_MEMORY_PEER; };
  if (in && !is_peer(source_of(c))) return {bytes, 0, 0};
  if (out && !is_peer(destination_of(c))) return {0, bytes, 0};
  return {0, 0, bytes};
}

bool copies_slot(const buffer_list &buffers, const command &c) {
  const auto is_slot = [&](const view &end) { return buffer_of(buffers, end).kind == buffer_kind::staging; };
  return (c.is<ops::copy_in>() && is_slot(source_of(c))) || (c.is<ops::copy_out>() && is_slot(destination_of(c)));
}

double copy_rate(const device_model &model, const copy_shape &copy, bool both_ways) {
  const double contiguous = copy.to_device ? (both_ways ? model.link_in_both : model.link_in)
                                           : (both_ways ? model.link_out_both : model.link_out);
  const bool one_run = copy.height <= 1 || (copy.dst_pitch == copy.width && copy.src_pitch == copy.width);
  if (one_run) return contiguous;
  const double host_pitch = copy.between_devices ? 0 : double(copy.to_device ? copy.src_pitch : copy.dst_pitch);
  const double pitched = pitched_rate(model, double(copy.width), host_pitch, both_ways, contiguous);
  // With small gaps it takes as long as one run with the gaps in it.
  const double width = double(copy.width), pitch = double(std::max(copy.dst_pitch, copy.src_pitch));
  return pitch <= small_gap * width ? std::max(pitched, contiguous * width / pitch) : pitched;
}

double copy_seconds(const device_model &model, const copy_shape &copy, bool both_ways) {
  return model.copy_gap + double(copy.width) * double(copy.height) / copy_rate(model, copy, both_ways);
}

sg_backend_space backend_space_of(memory_space space) noexcept {
  const bool names_peer = space == SG_MEMORY_PEER && space.peer() != memory_space::unknown_peer;
  return {space.kind(), names_peer ? space.peer() : space == SG_MEMORY_PEER ? -1 : 0};
}

void lower_copy(const buffer_list &buffers, const command &c, const binding &where, std::vector<sg_backend_copy> &out) {
  const view &to = destination_of(c), &from = source_of(c);
  const std::int64_t element = size_of(type_of(buffers, to));
  auto copy = backend_command<sg_backend_copy>();
  copy.dst_space = backend_space_of(buffer_of(buffers, to).space);
  copy.src_space = backend_space_of(buffer_of(buffers, from).space);
  copy.width = to.rows * element;
  copy.height = to.cols;
  copy.dst_pitch = step_bytes(to.ld, element, to.rows * element);
  copy.src_pitch = step_bytes(from.ld, element, to.rows * element);
  out.clear();
  for (std::int64_t i = 0; i < to.items; ++i) {
    copy.dst = address_of(buffers, to, where, to.item + i);
    copy.src = address_of(buffers, from, where, from.item + i);
    if (copy.width == copy.dst_pitch && copy.width == copy.src_pitch) {
      // Contiguous on both sides: one run, merged with the previous item's if adjacent.
      sg_backend_copy run = copy;
      run.width = copy.width * copy.height;
      run.dst_pitch = run.src_pitch = run.width;
      run.height = 1;
      if (!out.empty() && static_cast<char *>(out.back().dst) + out.back().width == run.dst &&
          static_cast<const char *>(out.back().src) + out.back().width == run.src) {
        out.back().width += run.width;
        out.back().dst_pitch = out.back().src_pitch = out.back().width;
      } else {
        out.push_back(run);
      }
    } else {
      out.push_back(copy);
    }
  }
}

}  // namespace sg
