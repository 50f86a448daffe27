// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/batch_schedule.hpp"

#include <algorithm>
#include <iterator>

#include "base/checked.hpp"
#include "ops/operation.hpp"
#include "run/objects/graph_program.hpp"

namespace sg {

namespace {

constexpr std::int64_t alignment = 256;  // of buffers in an arena

// Disjoint ranges of addresses, each with a place in one arena.
class address_map {
 public:
  void cover(const footprint &bytes) { ranges_.push_back({bytes.lo, bytes.hi, 0}); }
  // Joins overlapping ranges, and gives each its place.
  void settle() {
    std::sort(ranges_.begin(), ranges_.end(), [](const range &x, const range &y) { return x.lo < y.lo; });
    std::vector<range> joined;
    for (const range &each : ranges_) {
      if (!joined.empty() && each.lo < joined.back().hi)
        joined.back().hi = std::max(joined.back().hi, each.hi);
      else
        joined.push_back(each);
    }
    ranges_ = std::move(joined);
    for (range &each : ranges_) {
      each.place = bytes_ + static_cast<std::int64_t>(each.lo % alignment);
      bytes_ = round_up(each.place + static_cast<std::int64_t>(each.hi - each.lo), alignment);
    }
  }
  // Negative: not covered.
  std::int64_t place_of(const char *address) const noexcept {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), wanted,
                                        [](std::uintptr_t lo, const range &each) { return lo < each.lo; });
    if (after == ranges_.begin()) return -1;
    const range &found = *std::prev(after);
    return wanted < found.hi ? found.place + static_cast<std::int64_t>(wanted - found.lo) : -1;
  }
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  struct range {
    std::uintptr_t lo, hi;
    std::int64_t place;
  };
  std::vector<range> ranges_;
  std::int64_t bytes_ = 0;
};

class joiner {
 public:
  // What is simulated has the machine's lanes and memory; both nullptr: it is checked.
  joiner(const std::vector<batch_list> &rounds, const machine_model *machine, const memory_kinds *memory,
         std::optional<batch_role> only = {})
      : machine_(machine), memory_(memory) {
    for (std::size_t r = 0, runs = 0; r < rounds.size(); runs += rounds[r++].runs())
      for (std::size_t i = 0; i < rounds[r].size(); ++i) {
        if (only && rounds[r].role(i) != *only) continue;
        works_.push_back(rounds[r].with_addresses(i));
        submission &added = works_.back();
        // A recorded stream orders submissions of one batch.
        if (added.stream >= 0) added.stream += static_cast<std::int64_t>(runs + rounds[r].run_of(i)) << 32;
        round_of_.push_back(r);
        for (const access &each : added.accesses) addresses_.cover(each.bytes);
      }
    addresses_.settle();
    made_.whole.device_bytes = addresses_.bytes();
  }

  batch_schedule join() {
    made_.whole.strategy = "batches of a pipeline";
    const auto before = order_of(works_);
    last_commands_.resize(works_.size());
    for (std::size_t i = 0; i < works_.size(); ++i) {
      waits_.clear();
      for (const std::int32_t each : before[i]) {
        const auto &last = last_commands_[static_cast<std::size_t>(each)];
        waits_.insert(waits_.end(), last.begin(), last.end());
      }
      std::sort(waits_.begin(), waits_.end());
      waits_.erase(std::unique(waits_.begin(), waits_.end()), waits_.end());
      add(i);
      if (i + 1 == works_.size() || round_of_[i + 1] != round_of_[i])
        made_.ends.push_back(static_cast<std::uint32_t>(made_.whole.commands.size()));
    }
    return std::move(made_);
  }

 private:
  bool is_checked() const noexcept { return !machine_; }

  void add(std::size_t index) {
    job_ = static_cast<std::uint32_t>(index);
    const submission &work = works_[index];
    if (work.operation == SG_OPERATION_COPY && is_checked())
      add_copy(index);
    else if (work.program)
      add_schedule(index);
    else
      last_commands_[index] = waits_;  // no work
  }

  // The index of a buffer with these bytes.
  std::int32_t buffer_at(std::int64_t place, std::int64_t bytes, std::int64_t item_stride, sg_dtype type,
                         device_index device = first_device) {
    buffer made;
    made.kind = buffer_kind::device;
    made.space = memory_space::of_device(device);
    made.type = type;
    made.item_stride = item_stride;
    made.offset = place / alignment * alignment;
    made.bytes = bytes + place % alignment;
    made_.whole.buffers.push_back(made);
    return static_cast<std::int32_t>(made_.whole.buffers.size() - 1);
  }

  std::uint16_t lane_of(lane_kind kind, std::uint16_t own, device_index device = first_device) {
    std::uint16_t &count = made_.whole.lanes[static_cast<int>(kind)];
    std::uint16_t chosen = own;
    if (is_checked())
      chosen = static_cast<std::uint16_t>(next_lane_[static_cast<int>(kind)] + own);
    else if (kind == lane_kind::compute)
      chosen = static_cast<std::uint16_t>(own % std::max(1, machine_->device(device).compute_lanes));
    count = std::max<std::uint16_t>(count, static_cast<std::uint16_t>(chosen + 1));
    return chosen;
  }
  void next_lanes() {
    if (is_checked()) std::copy(std::begin(made_.whole.lanes), std::end(made_.whole.lanes), std::begin(next_lane_));
  }

  void append(command &added, std::span<const std::uint32_t> waits) {
    schedule &whole = made_.whole;
    added.group = 0;
    added.first_wait = static_cast<std::uint32_t>(whole.waits.size());
    added.waits = static_cast<std::uint32_t>(waits.size());
    whole.waits.insert(whole.waits.end(), waits.begin(), waits.end());
    set_access_modes(added);
    whole.commands.push_back(added);
    made_.jobs.push_back(job_);
  }

  // As one command, also if it is staged.
  void add_copy(std::size_t index) {
    const submission &work = works_[index];
    command copy;
    copy.what = ops::copy();
    copy.where = lane(lane_kind::compute, lane_of(lane_kind::compute, 0));
    const auto view_of = [&](const footprint &bytes) {
      const std::int64_t place = addresses_.place_of(reinterpret_cast<const char *>(bytes.lo));
      view made;
      made.buffer = buffer_at(place, static_cast<std::int64_t>(bytes.hi - bytes.lo), 0, SG_DTYPE_I8);
      made.offset = place % alignment;
      made.rows = bytes.run;
      made.ld = bytes.pitch;
      made.cols = bytes.runs();
      return made;
    };
    view target = view_of(work.accesses[0].bytes), source = view_of(work.accesses[1].bytes);
    if (target.cols != source.cols) {  // rows of one side are contiguous
      view &joined = target.cols < source.cols ? target : source;
      const view &other = target.cols < source.cols ? source : target;
      joined.rows = joined.ld = other.rows;
      joined.cols = other.cols;
    }
    copy.views[ops::copy::to] = target;
    copy.views[ops::copy::from] = source;
    append(copy, waits_);
    last_commands_[index] = {static_cast<std::uint32_t>(made_.whole.commands.size() - 1)};
    next_lanes();
  }

  // The whole's buffer for one of the program's, and bytes to add to the offsets of its views.
  struct mapped_buffer {
    std::int32_t index;
    std::int64_t more;
  };
  mapped_buffer map(const submission &work, std::size_t number) {
    const schedule &own = *work.program->schedule;
    const buffer &from = own.buffers[number];
    schedule &whole = made_.whole;
    if (from.kind == buffer_kind::parameter && !from.pointer_array) {
      const char *base = work.operands.base_of(static_cast<std::size_t>(from.parameter));
      const std::int64_t place = base ? addresses_.place_of(base) : -1;
      if (place >= 0)
        return {buffer_at(place, std::max<std::int64_t>(from.bytes, 1), from.item_stride, from.type,
                          is_checked() ? first_device : device_of(from)),
                place % alignment};
    }
    buffer made = from;
    if (made.kind == buffer_kind::device) made.offset += device_before_;
    if (made.kind == buffer_kind::staging) made.offset += staging_before_;
    if (is_checked()) on_first_device(made, own);
    if (made.kind == buffer_kind::parameter) made.parameter = static_cast<std::int32_t>(whole.buffers.size());
    whole.buffers.push_back(made);
    return {static_cast<std::int32_t>(whole.buffers.size() - 1), 0};
  }

  // Whose memory a parameter is in; of host memory, any's.
  device_index device_of(const buffer &parameter) const noexcept {
    const memory_space space = memory_->in_machine(parameter.space);
    return space == SG_MEMORY_DEVICE ? space.device() : first_device;
  }
  // Whether it is a copy in from another device of the machine.
  bool is_peer_copy(const command &c, const schedule &own) const noexcept {
    return c.is<ops::copy_in>() && memory_->in_machine(buffer_of(own.buffers, source_of(c)).space) == SG_MEMORY_DEVICE;
  }

  // To be checked, all devices are one, whose arenas are the devices' one behind the other. The submission's own
  // schedule was checked as it is.
  static void on_first_device(buffer &b, const schedule &own) {
    const auto number = static_cast<std::int64_t>(number_of(b.space.device()));
    if (b.kind == buffer_kind::device) b.offset += number * round_up(own.device_bytes, alignment);
    if (b.kind == buffer_kind::staging) b.offset += number * round_up(own.staging_bytes, alignment);
    if (b.space == SG_MEMORY_DEVICE) b.space = memory_space::of_device(first_device);  // it was any device's
    if (b.kind == buffer_kind::staging) b.space = memory_space::staging_of(first_device);
  }
  static void on_first_device(command &c) {
    c.where.device = first_device;
    if (!c.is<ops::copy_peer>()) return;
    c.what = ops::copy();
    c.where.kind = lane_kind::compute;
  }
  std::int64_t arenas_of(const schedule &own) const {
    std::size_t last = 0;
    for (const buffer &each : own.buffers)
      if (is_checked() && each.kind != buffer_kind::parameter) last = std::max(last, number_of(each.space.device()));
    return static_cast<std::int64_t>(last) + 1;
  }

  void add_schedule(std::size_t index) {
    const submission &work = works_[index];
    const schedule &own = *work.program->schedule;
    schedule &whole = made_.whole;
    device_before_ = whole.device_bytes;
    staging_before_ = whole.staging_bytes;
    whole.device_bytes += arenas_of(own) * round_up(own.device_bytes, alignment);
    whole.staging_bytes += arenas_of(own) * round_up(own.staging_bytes, alignment);
    std::uint16_t &workers = whole.lanes[static_cast<int>(lane_kind::staging)];
    workers = std::max(workers, own.lanes[static_cast<int>(lane_kind::staging)]);
    std::vector<mapped_buffer> buffers;
    for (std::size_t i = 0; i < own.buffers.size(); ++i) buffers.push_back(map(work, i));
    const auto first = static_cast<std::uint32_t>(whole.commands.size());
    std::vector<bool> has_dependent(own.commands.size());
    for (const std::uint32_t each : own.waits) has_dependent[each] = true;
    std::vector<std::uint32_t> waits;
    for (std::size_t i = 0; i < own.commands.size(); ++i) {
      command each = own.commands[i];
      for (accessed_view &view : each.views) {
        if (!view.exists()) continue;
        const mapped_buffer &to = buffers[static_cast<std::size_t>(view.buffer)];
        view.buffer = to.index;
        view.offset += to.more;
      }
      if (is_checked()) {
        on_first_device(each);
      } else if (is_peer_copy(own.commands[i], own)) {
        each.what = ops::copy_peer();
        each.where.kind = lane_kind::copy_peer;
      }
      each.where.index = lane_of(each.where.kind, each.where.index, each.where.device);
      waits.clear();
      for (std::uint32_t w = 0; w < each.waits; ++w) waits.push_back(first + own.waits[each.first_wait + w]);
      if (waits.empty()) waits = waits_;
      append(each, waits);
    }
    for (std::uint32_t i = 0; i < own.commands.size(); ++i)
      if (!has_dependent[i]) last_commands_[index].push_back(first + i);
    next_lanes();
  }

  const machine_model *const machine_;  // nullptr: a lane for each submission
  const memory_kinds *const memory_;
  std::vector<submission> works_;
  std::vector<std::size_t> round_of_;
  address_map addresses_;
  batch_schedule made_;
  std::vector<std::vector<std::uint32_t>> last_commands_;  // of each submission
  std::vector<std::uint32_t> waits_;                       // of the submission that is added
  std::uint32_t job_ = 0;                                  // the number of that submission
  std::uint16_t next_lane_[lane_kinds] = {};
  std::int64_t device_before_ = 0, staging_before_ = 0;
};

}  // namespace

batch_schedule simulated_schedule(const std::vector<batch_list> &rounds, const machine_model &machine,
                                  const memory_kinds &memory, std::optional<batch_role> only) {
  return joiner(rounds, &machine, &memory, only).join();
}

batch_schedule checked_schedule(const std::vector<batch_list> &rounds) {
  return joiner(rounds, nullptr, nullptr).join();
}

}  // namespace sg
