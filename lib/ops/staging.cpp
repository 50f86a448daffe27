// SPDX-License-Identifier: Apache-2.0
#include "ops/staging.hpp"

#include <algorithm>
#include <utility>

#include "ops/binding.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

const ops::staging &part_of(const command &c) noexcept {
  if (const auto *pack = c.as<ops::pack>()) return *pack;
  return *c.as<ops::unpack>();
}

access_mode access(const command &, std::size_t view) {
  return view == ops::pack::to ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &c) {
  if (const char *found = defect_of_move(buffers, c)) return found;
  const sg_dtype from = type_of(buffers, source_of(c)), to = type_of(buffers, destination_of(c));
  const bool rounds = c.is<ops::pack>() && from == SG_DTYPE_F32 && to == SG_DTYPE_BF16;
  if (from != to && !rounds) return "staging changes the type";
  return rounds && part_of(c).accessed != stored_part::all ? "a triangle is rounded" : nullptr;
}

std::int64_t runs_of(const command &c, const view &v) noexcept {
  return v.ld == v.rows && part_of(c).accessed == stored_part::all ? 1 : v.cols;
}

// The bytes of the wider side, of a triangle as if it were all, and the overhead of each run of the pageable side.
command_cost cost_beside(const device_model &model, const buffer_list &buffers, const command &c,
                         const view &pageable) {
  const view &to = destination_of(c);
  const std::int64_t wider = std::max(size_of(type_of(buffers, source_of(c))), size_of(type_of(buffers, to)));
  command_cost cost;
  cost.amount = double(to.rows) * double(to.cols) * double(wider);
  cost.amount += double(runs_of(c, pageable)) * model.staging_run_bytes;
  return cost;
}

command_cost cost_of_pack(const device_model &model, const buffer_list &buffers, const command &c) {
  return cost_beside(model, buffers, c, source_of(c));
}
command_cost cost_of_unpack(const device_model &model, const buffer_list &buffers, const command &c) {
  return cost_beside(model, buffers, c, destination_of(c));
}

std::string describe_pack(const buffer_list &buffers, const command &c) {
  return describe_move(buffers, c, source_of(c));
}
std::string describe_unpack(const buffer_list &buffers, const command &c) {
  return describe_move(buffers, c, destination_of(c));
}

}  // namespace

constinit const operation ops::pack::entry{
    "pack", access, defect, cost_of_pack, describe_pack, nullptr, SG_BACKEND_MARKER, nullptr};
constinit const operation ops::unpack::entry{
    "unpack", access, defect, cost_of_unpack, describe_unpack, nullptr, SG_BACKEND_MARKER, nullptr};

namespace {

// Of the workers of a row, by the part of them that unpacks: linear between none, half and all.
double rate_of(const staging_rate &row, double unpacking) {
  const double pack = row.bytes_per_second, unpack = row.unpacking > 0 ? row.unpacking : pack;
  const double both = row.both_ways > 0 ? row.both_ways : pack + (unpack - pack) / 2;
  return unpacking <= 0.5 ? pack + (both - pack) * 2 * unpacking : both + (unpack - both) * (2 * unpacking - 1);
}

}  // namespace

double staging_rate_of(std::span<const staging_rate> rows, staging_load busy) {
  const int workers = std::max(1, busy.workers());
  const double unpacking = double(busy.unpacking) / workers;
  if (workers <= rows.front().workers) return rate_of(rows.front(), unpacking) * workers / rows.front().workers;
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (workers <= rows[i].workers) {
      const double t = double(workers - rows[i - 1].workers) / double(rows[i].workers - rows[i - 1].workers);
      return rate_of(rows[i - 1], unpacking) * (1 - t) + rate_of(rows[i], unpacking) * t;
    }
  return rate_of(rows.back(), unpacking);
}

staging_load load_of(const command &staging) noexcept {
  return staging.is<ops::pack>() ? staging_load{1, 0} : staging_load{0, 1};
}

double staging_rate_of(const device_model &model, staging_load busy) {
  return model.staging.empty() ? model.memory_rate / 2 : staging_rate_of(std::span(model.staging), busy);
}

std::optional<downcast> lower_downcast(const buffer_list &buffers, const command &c, const binding &where) {
  const view &to = destination_of(c), &from = source_of(c);
  if (type_of(buffers, from) == type_of(buffers, to)) return std::nullopt;
  downcast n;
  n.to = reinterpret_cast<std::uint16_t *>(address_of(buffers, to, where, to.item));
  n.from = address_of(buffers, from, where, from.item);
  n.count = from.rows;
  n.columns = from.cols;
  n.pitch = from.ld * size_of(type_of(buffers, from));
  if (from.ld == from.rows) n.count *= std::exchange(n.columns, 1);
  return n;
}

void lower_staging(const buffer_list &buffers, const command &c, const binding &where,
                   std::vector<sg_backend_copy> &out) {
  lower_copy(buffers, c, where, out);
  const ops::staging &part = part_of(c);
  if (part.accessed == stored_part::all) return;
  const view &to = destination_of(c), &from = source_of(c);
  const std::int64_t size = size_of(type_of(buffers, to));
  sg_backend_copy run = out.front();
  char *const to_first = static_cast<char *>(run.dst);
  const char *const from_first = static_cast<const char *>(run.src);
  out.clear();
  for (std::int64_t column = 0; column < to.cols; ++column) {
    const std::int64_t diagonal = std::clamp<std::int64_t>(part.diagonal + column, -1, to.rows);
    const bool is_lower = part.accessed == stored_part::lower;
    const std::int64_t first = is_lower ? std::max<std::int64_t>(diagonal, 0) : 0;
    const std::int64_t end = is_lower ? to.rows : std::min(diagonal + 1, to.rows);
    if (first >= end) continue;
    run.dst = to_first + (first + column * to.ld) * size, run.src = from_first + (first + column * from.ld) * size;
    run.width = run.dst_pitch = run.src_pitch = (end - first) * size;
    run.height = 1;
    out.push_back(run);
  }
}

}  // namespace sg
