// SPDX-License-Identifier: Apache-2.0
// Ready jobs that wait for a lane, of one priority and one class of work: a queue for each submitter and a fair share
// for each queue, so that a flood from one does not delay another. A queue's virtual time counts started jobs; members
// batched with the first job are free.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "run/job/job.hpp"

namespace sg {

class ready_jobs {
 public:
  bool empty() const noexcept { return occupied_ == 0; }
  std::size_t size() const noexcept { return size_; }

  void push(job &ready) noexcept {
    const std::uint32_t index = list_of(ready.submitter);
    // An empty queue earns no credit: its virtual time catches up.
    if (!lists_[index].first) lists_[index].virtual_time = std::max(lists_[index].virtual_time, virtual_time_);
    append(index, ready);
  }

  // Returns a job to the front of its submitter's queue: it was taken out and found no lane.
  void put_back(job &ready) noexcept {
    const std::uint32_t index = list_of(ready.submitter);
    job_list &list = lists_[index];
    ready.next = list.first;
    if (!list.first) list.last = &ready;
    list.first = &ready;
    occupied_ |= 1u << index;
    ++size_;
  }

  // The next job in fair order; there is one.
  job &front() const noexcept { return *lists_[next_submitter()].first; }
  // Removes the front job.
  void pop() noexcept {
    const std::uint32_t index = next_submitter();
    virtual_time_ = lists_[index].virtual_time++;
    take_first(index);
  }

  // Removes jobs that `wanted(job)` accepts, one from each queue in rotation, until `most` are removed or enough were
  // examined. `take(job)` receives each, and returns whether there is room for more.
  template <class Wanted, class Take>
  void gather(std::size_t most, Wanted &&wanted, Take &&take) noexcept {
    std::array<job *, submitters> before{};  // in each queue, the last job passed over
    std::uint32_t left = occupied_;
    for (std::size_t taken = 0, passed = 0; left && taken < most && passed < most_passed_over;) {
      const std::uint32_t now = next_of(left);
      next_giver_ = (now + 1) % submitters;
      job_list &list = lists_[now];
      job *candidate = before[now] ? before[now]->next : list.first;
      for (; candidate && !wanted(*candidate) && passed < most_passed_over; candidate = candidate->next, ++passed)
        before[now] = candidate;
      if (!candidate || passed == most_passed_over) {
        left &= ~(1u << now);
        continue;
      }
      job *following = candidate->next;
      if (following) following->fetch();
      (before[now] ? before[now]->next : list.first) = following;
      if (list.last == candidate) list.last = before[now];
      if (!list.first) occupied_ &= ~(1u << now);
      --size_;
      ++taken;
      if (!take(*candidate))
        left = 0;
      else if (!following)
        left &= ~(1u << now);
    }
  }

  // Removes the jobs for which `kept(job)` is false; it then owns them.
  template <class Kept>
  void keep(Kept &&kept) noexcept {
    for (std::uint32_t i = 0; i < submitters; ++i) {
      job *next = lists_[i].first;
      lists_[i].first = nullptr;
      occupied_ &= ~(1u << i);
      while (next) {
        job &one = *std::exchange(next, next->next);
        --size_;
        if (kept(one)) append(i, one);
      }
    }
  }

 private:
  static constexpr std::uint32_t submitters = 16;
  static constexpr std::size_t most_passed_over = 256;
  struct job_list {
    job *first = nullptr, *last = nullptr;
    std::uint32_t of = 0;            // the submitter, while not empty; with more submitters than queues some share one
    std::uint64_t virtual_time = 0;  // number of started jobs, or the front's while it was empty
  };

  // The queue of that submitter, or a free one.
  std::uint32_t list_of(std::uint32_t submitter) noexcept {
    const std::uint32_t usual = submitter % submitters;
    const auto is_its_own = [&](std::uint32_t index) {
      return (occupied_ & 1u << index) && lists_[index].of == submitter;
    };
    if (is_its_own(usual)) return usual;
    for (std::uint32_t left = occupied_; left; left &= left - 1)
      if (const auto index = static_cast<std::uint32_t>(std::countr_zero(left)); is_its_own(index)) return index;
    const auto free = static_cast<std::uint32_t>(std::countr_one(occupied_));
    const bool usual_is_free = !(occupied_ & 1u << usual);
    if (!usual_is_free && free >= submitters) return usual;
    const std::uint32_t found = usual_is_free ? usual : free;
    lists_[found].of = submitter;
    return found;
  }

  void append(std::uint32_t index, job &ready) noexcept {
    job_list &list = lists_[index];
    ready.next = nullptr;
    (list.first ? list.last->next : list.first) = &ready;
    list.last = &ready;
    occupied_ |= 1u << index;
    ++size_;
  }
  // The queue with the least virtual time.
  std::uint32_t next_submitter() const noexcept {
    auto fewest = static_cast<std::uint32_t>(std::countr_zero(occupied_));
    for (std::uint32_t left = occupied_ & (occupied_ - 1); left; left &= left - 1)
      if (const auto index = static_cast<std::uint32_t>(std::countr_zero(left));
          lists_[index].virtual_time < lists_[fewest].virtual_time)
        fewest = index;
    return fewest;
  }
  // Of a set of queues, not empty, the next one in rotation.
  std::uint32_t next_of(std::uint32_t lists) const noexcept {
    const std::uint32_t from_here = lists >> next_giver_;
    return from_here ? next_giver_ + static_cast<std::uint32_t>(std::countr_zero(from_here))
                     : static_cast<std::uint32_t>(std::countr_zero(lists));
  }
  job &take_first(std::uint32_t index) noexcept {
    job_list &list = lists_[index];
    job &taken = *list.first;
    list.first = taken.next;
    if (!list.first) occupied_ &= ~(1u << index);
    --size_;
    return taken;
  }

  std::array<job_list, submitters> lists_;
  std::uint32_t occupied_ = 0;  // set of queues that are not empty
  std::uint32_t next_giver_ = 0;
  std::uint64_t virtual_time_ = 0;  // virtual time of the front queue at the latest pop()
  std::size_t size_ = 0;
};

}  // namespace sg
