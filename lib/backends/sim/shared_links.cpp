// SPDX-License-Identifier: Apache-2.0
#include "shared_links.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "failure.hpp"

namespace sg::sim {

namespace {

constexpr std::size_t remembered_pieces = 512;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

}  // namespace

shared_links::shared_links(const sg_backend_host *host, const std::string &machine)
    : host_(host), machine_(nullptr, machine_deleter{host}) {
  char message[SG_BACKEND_MESSAGE_SIZE] = "";
  sg_backend_machine *parsed = nullptr;
  const sg_status status = host->machine_parse(machine.c_str(), &parsed, message);
  if (status != SG_STATUS_OK) throw failure(status, "%s", message);
  machine_.reset(parsed);
}

const shared_links::path &shared_links::path_between(std::int32_t from, std::int32_t to) {
  const auto [known, is_new] = paths_.try_emplace({from, to});
  for (std::int32_t limit = 0; is_new && limit < host_->limit_count(machine_.get()); ++limit)
    if (const std::int32_t times = host_->limit_crossings(machine_.get(), limit, from, to); times > 0)
      known->second.push_back({host_->limit_rate(machine_.get(), limit) * 1e-9, limit, times});
  return known->second;
}

// `window`: other copies within so many nanoseconds count as concurrent ones, which will go on.
double shared_links::rate_at(const path &own, std::int64_t time, std::int64_t window) const {
  double rate = HUGE_VAL;
  for (const crossing &c : own) {
    double used = 0;
    std::map<const path *, double> beside;  // what others use of the limit, each at its latest rate
    std::int32_t crossings = c.times;
    for (const piece &each : taken_) {
      if (each.end <= time - window || each.start >= time + window) continue;
      const auto shared =
          std::find_if(each.over->begin(), each.over->end(), [&](const crossing &x) { return x.limit == c.limit; });
      if (shared == each.over->end()) continue;
      const double uses = each.bytes_per_ns * shared->times;
      if (each.start <= time && time < each.end) used += uses;
      if (each.over == &own) continue;
      if (beside.insert_or_assign(each.over, uses).second) crossings += shared->times;
    }
    double needed = 0;
    for (const auto &[over, uses] : beside) needed += uses;
    const double fair = std::max(c.bytes_per_ns / crossings, (c.bytes_per_ns - needed) / c.times);
    rate = std::min({rate, (c.bytes_per_ns - used) / c.times, fair});
  }
  return std::max(0.0, rate);
}

std::int64_t shared_links::next_change(std::int64_t time) const {
  std::int64_t next = never;
  for (const piece &each : taken_)
    for (const std::int64_t edge : {each.start, each.end})
      if (edge > time) next = std::min(next, edge);
  return next;
}

std::int64_t shared_links::duration(const transfer &copy, std::int64_t start, std::int64_t alone) {
  const path &own = path_between(copy.from, copy.to);
  latest_.clear();
  if (alone <= 0 || copy.bytes <= 0) return alone;
  const double ceiling = copy.bytes / double(alone);
  double left = copy.bytes;
  for (std::int64_t now = start;;) {
    const double rate = std::min(ceiling, rate_at(own, now, alone));
    const std::int64_t change = next_change(now);
    const double needed = rate > 0 ? std::ceil(left / rate * (1 - 1e-12)) : HUGE_VAL;
    const std::int64_t end = change == never || needed <= double(change - now) ? now + std::int64_t(needed) : change;
    if (!latest_.empty() && latest_.back().bytes_per_ns == rate)
      latest_.back().end = end;
    else
      latest_.push_back({now, end, &own, rate});
    if (end != change || needed <= double(change - now)) return end - start;
    left -= rate * double(end - now);
    now = end;
  }
}

void shared_links::take() {
  // The oldest are over, as far as the devices' times are close to each other.
  if (taken_.size() > remembered_pieces) taken_.erase(taken_.begin(), taken_.begin() + remembered_pieces / 2);
  // Copies one after the other at one rate are one piece, so that a device may be far ahead of another.
  for (const piece &each : latest_) {
    const auto before =
        std::find_if(taken_.rbegin(), taken_.rend(), [&](const piece &x) { return x.over == each.over; });
    if (before != taken_.rend() && before->end == each.start && before->bytes_per_ns == each.bytes_per_ns)
      before->end = each.end;
    else
      taken_.push_back(each);
  }
}

}  // namespace sg::sim
