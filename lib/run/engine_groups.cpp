// SPDX-License-Identifier: Apache-2.0
// The engine's groups: small products that wait together go out as one call, and end one by one.
#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "run/context.hpp"
#include "run/engine.hpp"

namespace sg {

namespace {

constexpr std::size_t most_members = 1024;  // jobs
// Members whose records are on their way to this core while one of them ends.
constexpr std::size_t fetched_ahead = 3;

// Whether two small products may be one call.
bool alike(const compiled_plan &x, const compiled_plan &y) noexcept {
  return x.in_type == y.in_type && x.out_type == y.out_type && x.compute == y.compute;
}

// Moves those to the front that are faster each by itself, because too few have as long a depth as theirs, and returns
// how many they are.
std::size_t faster_apart(std::vector<job *> &members) noexcept {
  const auto least = [](const job *member) { return member->plan->least_company; };
  const auto needs_more = [&](const job *x, const job *y) { return least(x) > least(y); };
  const auto all_alike = [&](const job *member) { return least(member) == least(members.front()); };
  if (!std::all_of(members.begin(), members.end(), all_alike)) std::sort(members.begin(), members.end(), needs_more);
  std::size_t apart = 0;
  while (apart < members.size()) {
    std::size_t as_deep = apart;  // as members[apart] at least: all up to here
    while (as_deep < members.size() && least(members[as_deep]) == least(members[apart])) ++as_deep;
    if (least(members[apart]) <= as_deep) break;
    apart = as_deep;
  }
  return apart;
}

}  // namespace

// Sends `first` out with whatever else waits and may be one call with it.
void engine::gather(ready_jobs &from, job &first, lane_slot &slot) noexcept {
  job_group *group = nullptr;
  try {
    group = &groups_.take();
    group->members.push_back(&first);
  } catch (const std::bad_alloc &) {
    if (group) groups_.give_back(*group);
    return start_single(first, slot);
  }
  // On a core a group is to be worth its dispatch, and no more: the other lanes want some too.
  const auto lanes = static_cast<std::size_t>(lanes_.compute_lanes());
  const auto worthwhile =
      static_cast<std::size_t>(lane_set::worth_a_look_ns / 2 / std::max<std::int64_t>(1, first.plan->work_ns()));
  const std::size_t waiting = from.size() + 1;
  std::size_t most = std::min(most_members, std::max(from.size() / lanes, worthwhile) + 1);
  if (lanes_.device_ordered())  // when somebody waits, nothing more may come
    most = std::min(most_members, hurried_ ? waiting : lanes_.in_whole_waves(waiting, first.plan->share));
  double seconds = first.plan->work_seconds;
  std::int64_t items = first.plan->items;
  from.gather(
      most - 1,
      [&](const job &candidate) {
        return candidate.plan && candidate.plan->small && alike(*candidate.plan, *first.plan) &&
               candidate.units == first.units && (candidate.behind() == 0 || candidate.behind() == first.behind()) &&
               !candidate.cancel_requested() && !candidate.dependency_failed();
      },
      [&](job &member) {
        try {
          group->members.push_back(&member);
        } catch (const std::bad_alloc &) {
          from.push(member);
          return false;
        }
        seconds += member.plan->work_seconds;
        items += member.plan->items;
        return items < most_items && (lanes_.device_ordered() || seconds < core_group_seconds);
      });
  auto &members = group->members;
  const lane_bits behind = first.behind();
  std::size_t apart = faster_apart(members);
  if (members.size() - apart == 1) ++apart;
  if (apart > 0) start_single(*members[0], slot);
  for (std::size_t i = 1; i < apart; ++i) start_beside(*members[i], slot);
  members.erase(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(apart));
  if (members.empty())
    groups_.give_back(*group);
  else
    launch_group(*group, behind, slot);
}

// In the lane that is the least busy, else in the one that was found for all of them.
void engine::start_beside(job &ready, lane_slot &slot) noexcept {
  const compiled_plan &plan = *ready.plan;
  lane_slot *const other = lanes_.find({.priority = ready.priority,
                                        .share = plan.share,
                                        .seconds = plan.text->predicted_seconds,
                                        .behind = ready.behind()});
  start_single(ready, other ? *other : slot);
}

void engine::launch_group(job_group &group, lane_bits behind, lane_slot &slot) noexcept {
  group.home = this;
  group.lane = &slot;
  group.parts.store(2, std::memory_order_release);
  std::int64_t ready_ns = 0;
  for (job *member : group.members) {
    ready_ns = std::max(ready_ns, member->ready_ns());
    member->single.begin(*member, 0, &slot, 0);
    member->single.company = static_cast<std::int32_t>(group.members.size());
  }
  lanes_.entered(slot, 0);
  bool enqueued = false;
  try {
    lanes_.follow(slot, behind);
    device_.begin_at(slot.stream, ready_ns);
    enqueued = launcher_.launch(group, {group_told, &group});
  } catch (...) {
    status_of_current_exception();
  }
  if (enqueued) {
    if (lanes_.device_ordered()) {
      const std::int64_t end_ns = lanes_.expected_end(slot, group.members.front()->plan->text->predicted_seconds);
      for (job *member : group.members) {
        member->expect_end(end_ns);
        member->issued(bit_of_lane(slot.index));
      }
    }
    return part_of(group);
  }
  // One of them may be at fault; each by itself tells which.
  lanes_.left(slot, 0);
  for (job *member : group.members) start_single(*member, slot);
  groups_.give_back(group);
}

void engine::group_told(void *user, const sg_backend_result *result) {
  job_group &group = *static_cast<job_group *>(user);
  group.start_ns = result->start_ns;
  group.end_ns = result->end_ns;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    if (result->status != SG_STATUS_OK)
      group.members[i]->fail(result->status, result->message ? result->message : sg_status_name(result->status));
    else if (!group.statuses.empty() && group.statuses[i] != SG_STATUS_OK)
      group.members[i]->fail(group.statuses[i], sg_status_name(group.statuses[i]));
  }
  group.home->part_of(group);
}

// A group ends when the backend has told of it, and its members have been issued.
void engine::part_of(job_group &group) noexcept {
  if (group.parts.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto keep = ref<context>::share(&group.members.front()->owner());
  leave(*group.lane, 0);
  end_members(group, *keep);
  groups_.give_back(group);
  lane_is_told();
}

void engine::end_members(job_group &group, context &home) noexcept {
  const context::ends_together counted(home);
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    if (i + fetched_ahead < group.members.size()) group.members[i + fetched_ahead]->fetch();
    job &member = *group.members[i];
    member.single.start_ns = group.start_ns;
    member.single.end_ns = group.end_ns;
    member.ran(member.single);
    member.work_ended();
  }
}

}  // namespace sg
