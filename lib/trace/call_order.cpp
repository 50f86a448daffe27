// SPDX-License-Identifier: Apache-2.0
#include "trace/call_order.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "plan/schedule/merged.hpp"
#include "plan/schedule/simulate.hpp"
#include "trace/advice.hpp"

namespace sg::trace {

namespace {

struct chunked_call : device_call {
  std::size_t chunk = 0;  // of its stream
};

double seconds_in_order(const std::vector<chunked_call> &calls, std::size_t streams, const device_model &model) {
  merged_schedule all;
  std::vector<std::int64_t> last(streams, merged_schedule::nothing);
  for (const chunked_call &each : calls)
    last[each.stream] = all.append(*each.work, last[each.stream], static_cast<std::uint16_t>(each.stream));
  return simulate(all.whole(), model).seconds;
}

}  // namespace

std::optional<advice> better_call_order(std::vector<device_call> calls, const device_model &model) {
  std::vector<chunked_call> ordered;
  std::vector<chunked_call> latest;  // by stream
  for (device_call &each : calls) {
    chunked_call next{std::move(each)};
    if (next.stream >= latest.size())
      latest.resize(next.stream + 1);
    else
      next.chunk = latest[next.stream].chunk + (next.stage < latest[next.stream].stage);
    latest[next.stream] = next;
    ordered.push_back(std::move(next));
  }
  const std::size_t streams = latest.size();
  if (streams < 2) return std::nullopt;
  const double now = seconds_in_order(ordered, streams, model);
  std::stable_sort(ordered.begin(), ordered.end(), [](const chunked_call &x, const chunked_call &y) {
    return std::pair(x.chunk, x.stream) < std::pair(y.chunk, y.stream);
  });
  const double by_chunk = seconds_in_order(ordered, streams, model);
  std::stable_sort(ordered.begin(), ordered.end(), [](const chunked_call &x, const chunked_call &y) {
    return std::tuple(x.chunk, x.stage, x.stream) < std::tuple(y.chunk, y.stage, y.stream);
  });
  const double by_kind = seconds_in_order(ordered, streams, model);
  const double then = std::min(by_chunk, by_kind);
  if (now - then < min_gain * now) return std::nullopt;
  const auto shown = [](double seconds) { return ns_text(static_cast<std::int64_t>(seconds * 1e9)); };
  return advice{
      by_kind < by_chunk
          ? "submit all copies to the device first, then the kernels, then the copies back: streams share queues"
          : "submit what belongs together one after another, stream by stream: streams share queues",
      std::to_string(ordered.size()) + " jobs of " + std::to_string(streams) + " streams take " + shown(now) +
          " in the order of the calls, " + shown(by_chunk) + " stream by stream, " + shown(by_kind) + " by kind",
      now - then};
}

}  // namespace sg::trace
