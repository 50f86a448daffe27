// SPDX-License-Identifier: Apache-2.0
// The engine's groups: small products that wait together go out as one call, and end one by one.
#include <algorithm>
#include <array>
#include <functional>
#include <new>

#include "base/error.hpp"
#include "base/log.hpp"
#include "run/dispatch/engine.hpp"
#include "run/job/job_home.hpp"
#include "run/program/batching.hpp"

namespace sg {

namespace {

constexpr std::size_t most_members = 1024;  // jobs
// Members whose records are on their way to this core while one of them ends.
constexpr std::size_t fetched_ahead = 8;

// Whether two small products may be one call.
bool alike(const program &x, const program &y) noexcept {
  return x.in_type == y.in_type && x.out_type == y.out_type && x.compute == y.compute;
}

// Moves those to the front that go each by itself, and returns how many they are; both parts stay in order.
std::size_t partition_unbatched(std::vector<job *> &members) noexcept {
  // Few units have nobody to share a depth with.
  const auto least_of = [](const job *member) { return member->units > 0 ? 1 : member->program->min_batch_size; };
  const std::size_t first = least_of(members.front());
  if (std::all_of(members.begin(), members.end(), [&](const job *member) { return least_of(member) == first; }))
    return first > members.size() ? members.size() : 0;  // equals, as most are, need no sorting
  std::array<std::size_t, most_members> least;
  const auto end = std::transform(members.begin(), members.end(), least.begin(), least_of);
  std::sort(least.begin(), end, std::greater<>());
  const std::size_t unbatched = faster_unbatched(members.size(), [&](std::size_t i) { return least[i]; });
  if (unbatched > 0 && unbatched < members.size())  // the last unbatched one needs a larger batch than any in it
    std::stable_partition(members.begin(), members.end(),
                          [&](const job *member) { return least_of(member) >= least[unbatched - 1]; });
  return unbatched;
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
      static_cast<std::size_t>(lane_set::worth_a_look_ns / 2 / std::max<std::int64_t>(1, first.program->work_ns()));
  const std::size_t waiting = from.size() + 1;
  std::size_t most = std::min(most_members, std::max(from.size() / lanes, worthwhile) + 1);
  if (lanes_.device_ordered())  // when somebody waits, nothing more may come
    most = std::min(most_members, hurried_ ? waiting : lanes_.in_whole_waves(waiting, first.program->share));
  double seconds = first.program->work_seconds;
  std::int64_t items = first.program->items;
  from.gather(
      most - 1,
      [&](const job &candidate) {
        return candidate.program && candidate.program->small && alike(*candidate.program, *first.program) &&
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
        seconds += member.program->work_seconds;
        items += member.program->items;
        return items < most_items && (lanes_.device_ordered() || seconds < core_group_seconds);
      });
  if (group->members.size() == 1) {
    groups_.give_back(*group);
    return start_single(first, slot);
  }
  send_out(from, *group, slot);
}

// What goes in one call does; the others each by itself. It is the first one's turn.
void engine::send_out(ready_jobs &from, job_group &group, lane_slot &slot) noexcept {
  job &first = *group.members.front();
  const lane_bits behind = first.behind();
  const std::size_t unbatched = partition_unbatched(group.members);
  if (unbatched == 0) return launch_group(group, behind, slot);
  if (unbatched == group.members.size()) return start_unbatched(from, group, &slot);
  job_group *rest = nullptr;
  try {
    rest = &groups_.take();
    rest->members.assign(group.members.begin() + static_cast<std::ptrdiff_t>(unbatched), group.members.end());
    group.members.resize(unbatched);
  } catch (const std::bad_alloc &) {
    if (rest) groups_.give_back(*rest);
    return launch_group(group, behind, slot);
  }
  if (group.members.front() == &first) {
    start_single(first, slot);
    group.members.erase(group.members.begin());
  }
  // Then the short ones, which are over soon.
  if (rest->members.size() > 1) {
    launch_group(*rest, behind, slot);
  } else {
    start_single(*rest->members.front(), slot);
    groups_.give_back(*rest);
  }
  start_unbatched(from, group, nullptr);
}

// As many as lanes have room for, the first of them in the lane that was granted already, if one was. The others wait
// on, ahead of those who come later.
void engine::start_unbatched(ready_jobs &from, job_group &group, lane_slot *granted) noexcept {
  std::size_t next = 0;
  for (; next < group.members.size(); ++next) {
    job &member = *group.members[next];
    lane_slot *const slot = granted ? granted
                                    : lanes_.find({.priority = member.priority,
                                                   .share = member.program->share,
                                                   .seconds = member.program->schedule->predicted_seconds,
                                                   .behind = member.behind()});
    granted = nullptr;
    if (!slot) break;
    start_single(member, *slot);
  }
  for (std::size_t i = group.members.size(); i-- > next;) {
    if (group.members[i]->behind()) lane_full_.store(true, std::memory_order_relaxed);
    from.put_back(*group.members[i]);
  }
  groups_.give_back(group);
}

void engine::launch_group(job_group &group, lane_bits behind, lane_slot &slot) noexcept {
  group.home = this;
  group.lane = &slot;
  group.predicted_ns = 0;
  group.parts.store(2, std::memory_order_release);
  std::int64_t ready_ns = 0;
  for (const job *member : group.members) ready_ns = std::max(ready_ns, member->ready_ns());
  lanes_.entered(slot, 0);
  bool enqueued = false, threw = false;
  try {
    lanes_.follow(slot, behind);
    device_.begin_at(slot.stream, ready_ns);
    enqueued = launcher_.launch(group, {group_told, &group});
  } catch (...) {
    status_of_current_exception();
    threw = true;
  }
  if (enqueued) {
    if (lanes_.device_ordered()) {
      const std::int64_t predicted_ns = group.members.front()->program->predicted_ns();
      const std::int64_t end_ns = lanes_.expect(slot, predicted_ns);
      expected_end_ns_.store(end_ns, std::memory_order_relaxed);
      group.predicted_ns = predicted_ns;
      for (job *member : group.members) {
        member->expect_end(end_ns, predicted_ns);
        member->issued(bit_of_lane(slot.index));
      }
    }
    return part_of(group);
  }
  // One of them may be at fault; each by itself tells which.
  if (logs(log_level::info, log_area::fallback))
    log_message(log_level::info, log_area::fallback, "a batch of %zu GEMMs was refused and goes out one by one: %s",
                group.members.size(), threw ? last_error() : device_.ops().last_message(device_.handle()));
  lanes_.left(slot, 0, 0);
  for (job *member : group.members) start_single(*member, slot);
  groups_.give_back(group);
}

void engine::group_told(void *user, const sg_backend_result *result) {
  job_group &group = *static_cast<job_group *>(user);
  group.start_ns = result->start_ns;
  group.end_ns = result->end_ns;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const sg_status own = group.statuses.empty() ? SG_STATUS_OK : group.statuses[i];
    const sg_status status = result->status != SG_STATUS_OK ? result->status : own;
    if (status != SG_STATUS_OK) group.members[i]->fail(status, result->message ? result->message : name_of(status));
  }
  group.home->part_of(group);
}

// A group ends when the backend has told of it, and its members have been issued.
void engine::part_of(job_group &group) noexcept {
  if (group.parts.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto keep = ref<job_home>::share(&group.members.front()->owner());
  lanes_.awake(group.lane);
  lanes_.left(*group.lane, 0, group.predicted_ns);
  end_members(group, *keep);
  groups_.give_back(group);
  lane_is_told();
}

void engine::end_members(job_group &group, job_home &home) noexcept {
  const job_home::ends_together counted(home);
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    if (i + fetched_ahead < group.members.size()) group.members[i + fetched_ahead]->fetch_first_line();
    group.members[i]->group_ended(group.start_ns, group.end_ns, group.members.size());
  }
}

}  // namespace sg
