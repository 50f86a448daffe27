// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/all_reduce.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "model/rates.hpp"
#include "plan/schedule/schedule_builder.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {

namespace {

constexpr std::int64_t least_bytes_of_slice = 8 << 20, least_bytes_of_slice_on_core = 256 << 10;
constexpr std::int64_t most_slices = 64;
// A multiple of these elements is aligned for every kernel.
constexpr std::int64_t aligned_elements = 64;
// While one slice is summed the next one is gathered.
constexpr int slots_of_device = 2;

// A device's part of the elements.
struct reducing_device {
  device_index device{};
  int slots = 1;  // each with its compute lane
  std::int64_t wanted_slices = 1, memory_limit = 0;
  std::vector<std::size_t> own;  // its vectors
  range part;
  std::int64_t slice = 0;  // elements
  std::vector<std::int32_t> gathered, sums;
  std::vector<std::uint32_t> latest_gathered;  // the copies of the latest slice into its slot
  std::vector<std::uint32_t> ready;  // the command behind which each slice's result is in the first own vector

  std::int64_t slices() const noexcept { return slice > 0 ? ceil_div(part.size, slice) : 0; }
  range at(std::int64_t index) const noexcept {
    const std::int64_t first = part.first + index * slice;
    return {first, std::min(slice, part.end() - first)};
  }
  std::size_t slot(std::int64_t index) const noexcept { return static_cast<std::size_t>(index % slots); }
  lane compute(std::int64_t index) const noexcept {
    return lane(lane_kind::compute, static_cast<std::uint16_t>(index % slots), device);
  }
};

class all_reduce_builder {
 public:
  // `parts`: the number of devices that sum; the others pull the results.
  all_reduce_builder(sg_dtype type, std::int64_t elements, std::size_t vectors, std::int64_t parts,
                     std::vector<reducing_device> devices)
      : type_(type), elements_(elements), vectors_(std::int64_t(vectors)), devices_(std::move(devices)) {
    std::vector<device_index> place(vectors);
    for (const reducing_device &each : devices_)
      for (const std::size_t v : each.own) place[v] = each.device;
    for (std::size_t v = 0; v < vectors; ++v)
      builder_.add_placed_buffer({buffer_kind::parameter, type_, false, memory_space::of_device(place[v]), 0, 0,
                                  elements_ * size(), static_cast<std::int32_t>(v), "a vector"});
    const std::vector<range> ranges = cut(elements_, parts, aligned_elements);
    for (std::size_t i = 0; i < ranges.size(); ++i) devices_[i].part = ranges[i];
    for (reducing_device &each : devices_) reserve(each);
  }

  // Of the device that has the most.
  std::int64_t slices() const noexcept {
    std::int64_t most = 0;
    for (const reducing_device &each : devices_) most = std::max(most, each.slices());
    return most;
  }

  schedule run() {
    const std::int64_t steps = slices();
    // A device's next slice is gathered before the latest results are pulled.
    for (std::int64_t step = 0; step <= steps; ++step) {
      gather_slices(step);
      for (reducing_device &each : devices_)
        if (step < each.slices()) sum_slice(each, step);
      if (step > 0) spread_slices(step - 1);
    }
    builder_.add_flops(double(elements_) * double(vectors_ - 1) * (is_complex(type_) ? 2 : 1));
    return builder_.finish("all-reduce x" + std::to_string(vectors_));
  }

 private:
  std::int64_t size() const noexcept { return size_of(type_); }
  sg_dtype sum_type() const noexcept { return accumulator_of(type_); }
  bool converts() const noexcept { return sum_type() != type_; }

  std::int64_t bytes_of_slot(std::int64_t slice) const noexcept {
    return vectors_ * round_up(slice * size(), 256) + (converts() ? round_up(slice * size_of(sum_type()), 256) : 0);
  }

  // Slices as long as the device's memory allows, and the memory of its slots.
  void reserve(reducing_device &d) {
    if (d.part.size == 0) return;
    // More slots, as of many cores, have smaller slices.
    const std::int64_t most = std::clamp<std::int64_t>(most_slices * d.slots / slots_of_device, most_slices,
                                                       most_commands / (2 * vectors_ + 2));
    std::int64_t count = std::clamp<std::int64_t>(d.wanted_slices, 1, most);
    const auto slice_of = [&] { return round_up(ceil_div(d.part.size, count), aligned_elements); };
    const auto needed = [&] { return std::min<std::int64_t>(d.slots, count) * bytes_of_slot(slice_of()); };
    while (needed() > d.memory_limit && slice_of() > aligned_elements && count * (2 * vectors_ + 2) < most_commands)
      count *= 2;
    if (needed() > d.memory_limit)
      throw error(SG_STATUS_OUT_OF_MEMORY,
                  "the parts of %lld vectors of %lld elements need at least %lld bytes of device memory; the limit is "
                  "%lld",
                  static_cast<long long>(vectors_), static_cast<long long>(elements_), static_cast<long long>(needed()),
                  static_cast<long long>(d.memory_limit));
    d.slice = slice_of();
    d.slots = static_cast<int>(std::min<std::int64_t>(d.slots, count));
    std::int64_t offset = 0;
    const auto add = [&](sg_dtype type, std::int64_t items) {
      const std::int64_t stride = round_up(d.slice * size_of(type), 256), at = offset;
      offset += items * stride;
      return builder_.add_placed_buffer(
          {buffer_kind::device, type, false, memory_space::of_device(d.device), stride, at, items * stride});
    };
    for (int slot = 0; slot < d.slots; ++slot) {
      d.gathered.push_back(add(type_, vectors_));
      if (converts()) d.sums.push_back(add(sum_type(), 1));
    }
  }

  static view run_of(std::int32_t buffer, std::int64_t item, std::int64_t items, std::int64_t offset,
                     std::int64_t elements) {
    return {buffer, item, items, offset, elements, elements, 1};
  }
  view of_vector(std::size_t vector, range r) const {
    return run_of(std::int32_t(vector), 0, 1, r.first * size(), r.size);
  }

  template <class Copy>
  std::uint32_t copy(lane where, const view &to, const view &from, const std::vector<std::uint32_t> &waits) {
    command c;
    c.what = Copy();
    c.where = where;
    c.views[Copy::to] = to;
    c.views[Copy::from] = from;
    return builder_.add(c, waits);
  }
  std::uint32_t pull(device_index to_device, const view &to, const view &from,
                     const std::vector<std::uint32_t> &waits) {
    return copy<ops::copy_peer>(lane(lane_kind::copy_peer, 0, to_device), to, from, waits);
  }

  // From one of the device's vectors to its others.
  void copy_to_others(const reducing_device &d, lane where, range r, std::uint32_t after) {
    for (std::size_t i = 1; i < d.own.size(); ++i)
      copy<ops::copy>(where, of_vector(d.own[i], r), of_vector(d.own[0], r), {after});
  }

  // Each device begins with the vector behind its own, so that not all pull from one device at once. A copy of each
  // device in turn, since one thread issues them all.
  void gather_slices(std::int64_t index) {
    for (std::size_t i = 1; i <= static_cast<std::size_t>(vectors_); ++i)
      for (reducing_device &d : devices_) {
        if (index >= d.slices()) continue;
        if (i == 1) d.latest_gathered.clear();
        const range r = d.at(index);
        std::vector<std::uint32_t> is_free;
        if (index >= d.slots) is_free.push_back(d.ready[static_cast<std::size_t>(index - d.slots)]);
        const std::size_t v = (d.own[0] + i) % static_cast<std::size_t>(vectors_);
        const view to = run_of(d.gathered[d.slot(index)], std::int64_t(v), 1, 0, r.size), from = of_vector(v, r);
        const bool is_own = std::ranges::find(d.own, v) != d.own.end();
        d.latest_gathered.push_back(is_own ? copy<ops::copy>(d.compute(index), to, from, is_free)
                                           : pull(d.device, to, from, is_free));
      }
  }

  void sum_slice(reducing_device &d, std::int64_t index) {
    const range r = d.at(index);
    const std::size_t slot = d.slot(index);
    command sum;
    sum.what = ops::reduce();
    sum.where = d.compute(index);
    sum.views[ops::reduce::parts] = run_of(d.gathered[slot], 0, vectors_, 0, r.size);
    const view result = of_vector(d.own[0], r);
    const view wide = converts() ? run_of(d.sums[slot], 0, 1, 0, r.size) : result;
    sum.views[ops::reduce::c] = wide;
    std::uint32_t last = builder_.add(sum, d.latest_gathered);
    if (converts()) {
      command convert;
      convert.what = ops::convert();
      convert.where = d.compute(index);
      convert.views[ops::convert::c] = result;
      convert.views[ops::convert::a] = wide;
      last = builder_.add(convert, std::vector<std::uint32_t>{last});
    }
    d.ready.push_back(last);
    copy_to_others(d, d.compute(index), r, last);
  }

  // Each device pulls the others' results, beginning with the next device's.
  void spread_slices(std::int64_t index) {
    for (std::size_t step = 1; step < devices_.size(); ++step)
      for (std::size_t i = 0; i < devices_.size(); ++i) {
        const reducing_device &to = devices_[i], &from = devices_[(i + step) % devices_.size()];
        if (index >= from.slices()) continue;
        const range r = from.at(index);
        const std::uint32_t pulled = pull(to.device, of_vector(to.own[0], r), of_vector(from.own[0], r),
                                          {from.ready[static_cast<std::size_t>(index)]});
        copy_to_others(to, to.compute(index), r, pulled);
      }
  }

  const sg_dtype type_;
  const std::int64_t elements_, vectors_;
  std::vector<reducing_device> devices_;
  schedule_builder builder_;
};

// Each vector is read and written.
double bound_of_memory(double bytes, std::size_t vectors, double memory_rate) noexcept {
  return 2 * bytes * double(vectors) / memory_rate;
}

// The least time of the copies between devices: of those into each device, one after another, and of all that cross a
// limit.
double bound_of_links(const schedule &s, const machine_model &machine) {
  const machine_limits limits(machine);
  std::vector<double> crossing(limits.all().size(), 0), into(machine.devices.size(), 0);
  for (const command &c : s.commands) {
    if (!c.is<ops::copy_peer>()) continue;
    const device_index to = c.where.device, from = buffer_of(s.buffers, source_of(c)).space.device();
    const double bytes = bytes_of_copy(s.buffers, c), rate = limits.peer_rate(from, to);
    if (rate > 0) into[number_of(to)] += bytes / rate;
    for (const std::uint16_t limit : limits.peer(from, to)) crossing[limit] += bytes;
  }
  double seconds = *std::ranges::max_element(into);
  for (std::size_t i = 0; i < crossing.size(); ++i)
    if (const double rate = limits.all()[i].bytes_per_second; rate > 0) seconds = std::max(seconds, crossing[i] / rate);
  return seconds;
}

// Parts and slices overlap, but each of them costs commands, of all of which one thread issues each in some
// microseconds: as many as are predicted to be fastest, or more where these are as fast in less memory.
schedule fastest(sg_dtype type, std::int64_t elements, std::size_t vectors, std::vector<reducing_device> devices,
                 const machine_model &machine) {
  constexpr double as_fast = 1.02;
  std::vector<schedule> all;
  std::pair<std::int64_t, std::int64_t> latest;
  const auto attempt = [&](std::int64_t parts, std::int64_t slices) {
    for (reducing_device &each : devices) each.wanted_slices = slices;
    all_reduce_builder builder(type, elements, vectors, parts, devices);
    // The memory limit may allow none that are longer.
    if (latest == std::pair(parts, builder.slices())) return;
    latest = {parts, builder.slices()};
    all.push_back(builder.run());
    all.back().predicted_seconds = simulate(all.back(), machine).seconds;
  };
  const std::int64_t bytes = elements * size_of(type), parts = std::int64_t(devices.size());
  attempt(parts, 1);
  for (std::int64_t slices = 2; slices <= most_slices; slices *= 2)
    if (bytes / (parts * slices) >= least_bytes_of_slice) attempt(parts, slices);
  if (bytes <= least_bytes_of_slice) try {
      attempt(1, 1);
    } catch (const error &) {  // its memory is less than all have together
    }
  const double least = std::ranges::min_element(all, {}, &schedule::predicted_seconds)->predicted_seconds;
  std::erase_if(all, [&](const schedule &x) { return x.predicted_seconds > as_fast * least; });
  return std::move(*std::ranges::min_element(all, {}, &schedule::device_bytes));
}

}  // namespace

schedule all_reduce_form::plan(const plan_terms &terms) const {
  reducing_device only;
  only.memory_limit = terms.memory_limit;
  only.slots = terms.model.lanes_are_cores ? terms.lanes : slots_of_device;
  const std::int64_t least_bytes = terms.model.lanes_are_cores ? least_bytes_of_slice_on_core : least_bytes_of_slice;
  only.wanted_slices = elements_ * size_of(type_) / least_bytes;
  for (std::size_t v = 0; v < places_.size(); ++v) only.own.push_back(v);
  schedule made = all_reduce_builder(type_, elements_, places_.size(), 1, {only}).run();
  made.bound_seconds =
      bound_of_memory(double(elements_) * double(size_of(type_)), places_.size(), terms.model.memory_rate);
  return made;
}

std::optional<schedule> all_reduce_form::spread(const machine_model &machine, std::span<const device_index> devices,
                                                const plan_request &, std::span<const std::int64_t> limits) const {
  std::vector<reducing_device> all;
  double memory_rate = 0;
  for (const device_index each : devices) {
    reducing_device made;
    made.device = each;
    made.slots = slots_of_device;
    made.memory_limit = limits[number_of(each)];
    for (std::size_t v = 0; v < places_.size(); ++v)
      if (places_[v] == each) made.own.push_back(v);
    memory_rate += machine.device(each).memory_rate;
    all.push_back(std::move(made));
  }
  schedule made = fastest(type_, elements_, places_.size(), std::move(all), machine);
  const double memory = bound_of_memory(double(elements_) * double(size_of(type_)), places_.size(), memory_rate),
               links = bound_of_links(made, machine);
  made.bound_seconds = std::max(memory, links);
  made.bound_limit = links > memory ? "links between devices" : "device memory";
  return made;
}

std::uint64_t all_reduce_form::hash() const noexcept {
  hasher mixed;
  mixed << elements_ << std::int64_t{type_};
  for (const device_index each : places_) mixed << static_cast<std::int64_t>(each);
  return mixed.value();
}

std::string all_reduce_form::describe(const plan_request &) const {
  std::string text = "all-reduce of " + std::to_string(places_.size()) + " vectors of " + std::to_string(elements_) +
                     ", " + name_of(type_);
  const auto is_elsewhere = [](device_index place) { return place != first_device; };
  if (std::ranges::none_of(places_, is_elsewhere)) return text;
  text += ", on devices";
  for (const device_index each : places_) text += " " + std::to_string(number_of(each));
  return text;
}

bool all_reduce_form::equals(const form &other) const noexcept {
  const auto &its = static_cast<const all_reduce_form &>(other);
  return type_ == its.type_ && elements_ == its.elements_ && places_ == its.places_;
}

}  // namespace sg
