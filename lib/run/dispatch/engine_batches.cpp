// SPDX-License-Identifier: Apache-2.0
// Products of one run of a schedule that go out as one call.
#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "run/dispatch/engine.hpp"
#include "run/program/batching.hpp"

namespace sg {

namespace {

// Whether two products may be one call.
bool alike(const sg_backend_gemm &x, const sg_backend_gemm &y) noexcept {
  return x.in_type == y.in_type && x.out_type == y.out_type && x.compute == y.compute;
}

}  // namespace

// How many of the run's next commands may be one call with this one, as far as their calls are prepared.
std::size_t engine::batchable_with(const job &running, std::uint32_t index) noexcept {
  const sg::program &program = *running.program;
  const auto *const first = program.call_of(index);
  std::size_t count = 0;
  for (std::size_t l = 0; first && l < running.run->lanes.size(); ++l) {
    const auto &list = program.lanes[l].commands;
    for (std::size_t at = running.run->lanes[l].next; at < list.size(); ++at, ++count) {
      const auto *const call = program.call_of(list[at]);
      if (!call || !alike(call->form, first->form)) break;
    }
  }
  return count;
}

// On cores one lane's products, worth their dispatch and no more; on a device, and of a plan that is one call, those of
// all lanes.
bool engine::issue_together(job &running, std::uint32_t index, lane_slot &slot) noexcept {
  program_run &run = *running.run;
  const sg::program &program = *running.program;
  product_batch *batch = nullptr;
  try {
    run.batches.push_back(std::make_unique<product_batch>());
    batch = run.batches.back().get();
    double seconds = 0;
    std::int64_t items = 0;
    const auto take = [&](std::uint32_t command) {
      if (program.batchable[command] == 0) return false;  // it may be no product at all
      const sg_backend_gemm product = launcher_.product_of(running, command);
      const bool room =
          program.one_call || (items < most_items && (lanes_.device_ordered() || seconds < core_group_seconds));
      const sg_backend_gemm &first = batch->products.empty() ? product : batch->products.front();
      if (!room || !alike(product, first)) return false;
      batch->commands.push_back(command);
      batch->products.push_back(product);
      seconds += program.batchable[command];
      items += product.batch;
      return true;
    };
    if (lanes_.device_ordered()) {
      const std::size_t most = std::min<std::size_t>(batchable_with(running, index), most_items);
      batch->commands.reserve(most);
      batch->products.reserve(most);
    }
    for (std::size_t l = 0; l < run.lanes.size(); ++l) {
      if (!lanes_.device_ordered() && !program.one_call && l != run.lane_of[index]) continue;
      const auto &list = program.lanes[l].commands;
      for (std::size_t at = run.lanes[l].next; at < list.size() && take(list[at]); ++at) {
      }
    }
    if (batch->commands.size() > 1) {
      batch->statuses.assign(batch->commands.size(), SG_STATUS_OK);
      batch->calls.reserve(batch->products.size());
      for (const sg_backend_gemm &each : batch->products) batch->calls.push_back(&each.header);
      if (!run.lanes[run.lane_of[index]].started) device_.begin_at(slot.stream, running.ready_ns());
    }
  } catch (...) {
    status_of_current_exception();
    if (!batch) return false;
    batch->commands.clear();
  }
  inflight_command &f = batch->whole;
  f.begin(this, running, index, &slot, 2);
  f.batch = batch;
  f.commands = static_cast<std::int32_t>(batch->commands.size());
  lanes_.entered_of_run(slot);
  if (batch->commands.size() < 2 || !launcher_.launch(*batch, {batch_told, batch})) {
    run.unbatched = run.unbatched || batch->commands.size() > 1;
    lanes_.left_of_run(slot);
    run.batches.pop_back();
    return false;
  }
  for (const std::uint32_t command : batch->commands) {
    run.goes_out(command);
    run.inflight[command].end_ns = 0;  // the batch's is no end of one of them
    run.lanes[run.lane_of[command]].started = true;
  }
  run.in_flight += f.commands;
  end_calls(f, SG_STATUS_OK, nullptr, 0, 0, 1);  // this one's own: the batch could not end before it was counted
  return true;
}

void engine::batch_told(void *user, const sg_backend_result *result) {
  product_batch &batch = *static_cast<product_batch *>(user);
  job &running = *batch.whole.about;
  for (const sg_status status : batch.statuses)
    if (status != SG_STATUS_OK && result->status == SG_STATUS_OK)
      running.fail(status, result->message ? result->message : name_of(status));
  batch.whole.home->end_calls(batch.whole, result->status, result->message, result->start_ns, result->end_ns, 1);
}

}  // namespace sg
