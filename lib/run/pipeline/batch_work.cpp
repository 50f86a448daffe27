// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/batch_work.hpp"

#include <utility>

#include "run/job/job_home.hpp"

namespace sg {

namespace {

// Calls each(address) for the parameters, then for the pointers of arrays.
template <class Each>
void each_address(binding &of, Each &&each) {
  of.each_parameter([&](parameter_address &one) { each(one.base); });
  for (std::vector<char *> &array : of.pointers)
    for (char *&one : array) each(one);
}

char *address_of(const char *offset, std::uint32_t buffer, const batch_addresses &at) noexcept {
  return reinterpret_cast<char *>(reinterpret_cast<std::uintptr_t>(at[buffer]) +
                                  reinterpret_cast<std::uintptr_t>(offset));
}

}  // namespace

batch_work::batch_work(submission recorded, std::span<const buffer_range> ranges) : recorded_(std::move(recorded)) {
  const auto place = [&](char *&address, std::vector<std::uint32_t> &buffers) {
    std::uint32_t found = any_memory;
    for (const buffer_range &each : ranges) {
      if (address < each.begin || address >= each.begin + each.bytes) continue;
      found = each.buffer;
      address = offset_of(address - each.begin);
      break;
    }
    buffers.push_back(found);
  };
  recorded_.operands = recorded_.operands.copy();
  each_address(recorded_.operands, [&](char *&address) {
    if (address)
      place(address, of_operands_);
    else
      of_operands_.push_back(no_buffer);
  });
  for (access &each : recorded_.accesses) {
    char *first = reinterpret_cast<char *>(each.bytes.lo);
    place(first, of_accesses_);
    each.bytes = each.bytes.at(first);
  }
}

batch_work::batch_work(submission made, std::initializer_list<std::uint32_t> parameters,
                       std::vector<std::uint32_t> accesses, batch_role in)
    : recorded_(std::move(made)), of_operands_(parameters), of_accesses_(std::move(accesses)), role_(in) {
  of_operands_.resize(binding::few, no_buffer);
}

std::shared_ptr<const batch_work> batch_work::on(device_index device, job_home &home) const {
  auto moved = std::make_shared<batch_work>(*this);
  submission &work = moved->recorded_;
  work.operands = recorded_.operands.copy();
  work.device = device;
  if (!work.program) return moved;
  plan_request request = work.program->request;
  request.device = device;
  const bool follows = work.follows_on_device || !work.program->may_follow;
  work.program = home.replan(*work.program, request);
  work.follows_on_device = follows && home.on(device).orders_commands() && work.program->may_follow;
  return moved;
}

binding batch_work::operands(const batch_addresses &at) const {
  binding made = recorded_.operands.copy();
  std::size_t index = 0;
  each_address(made, [&](char *&address) {
    const std::uint32_t buffer = of_operands_[index++];
    if (buffer != no_buffer) address = address_of(address, buffer, at);
  });
  return made;
}

std::span<const access> batch_work::accesses(const batch_addresses &at, std::vector<access> &room) const {
  room = recorded_.accesses;
  for (std::size_t i = 0; i < room.size(); ++i)
    room[i].bytes = room[i].bytes.at(address_of(reinterpret_cast<const char *>(room[i].bytes.lo), of_accesses_[i], at));
  return room;
}

submission batch_work::with(const batch_addresses &at) const {
  submission made = recorded_;
  made.operands = operands(at);
  std::vector<access> room;
  accesses(at, room);
  made.accesses = std::move(room);
  return made;
}

batch_program::batch_program(work_list made, std::vector<std::size_t> ends_of_stages)
    : works(std::move(made)), stage_ends(std::move(ends_of_stages)) {
  for (const std::shared_ptr<const batch_work> &each : works) {
    count(each->recorded().program.get());
    keep(each->recorded().kept);
  }
  keep_totals();
}

std::shared_ptr<const recorded_graph> batch_list::totals() const {
  auto made = std::make_shared<recorded_graph>();
  for (const place &each : order_) made->count(runs_[each.run].program->works[each.index]->recorded().program.get());
  made->keep_totals();
  return made;
}

void batch_list::add_round(std::vector<pipeline_batch> batches, bool last_are_weights) {
  const std::size_t stages = batches.front().program->stage_ends.size(), before = runs_.size(), count = batches.size();
  for (std::size_t s = 0; s < stages; ++s)
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t number = last_are_weights ? (i + count - 1) % count : i;
      const std::vector<std::size_t> &ends = batches[number].program->stage_ends;
      for (std::size_t w = s == 0 ? 0 : ends[s - 1]; w < ends[s]; ++w)
        order_.push_back({static_cast<std::uint32_t>(before + number), static_cast<std::uint32_t>(w)});
    }
  for (pipeline_batch &each : batches) runs_.push_back(std::move(each));
}

}  // namespace sg
