// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/launcher.hpp"

#include <algorithm>
#include <new>

#include "ops/operation.hpp"
#include "run/dispatch/engine.hpp"
#include "run/job/job_home.hpp"
#include "run/program/device_graph.hpp"

namespace sg {

namespace {

// Whether two single GEMMs differ in the addresses of A, B and C only. Not if they add to C: after a partial failure
// the whole call is repeated.
bool differ_in_addresses(const job &x, const job &y) noexcept {
  const auto *const known = x.program->call_of(0);
  if (x.program != y.program || !known || known->has_bias || known->form.batch != 1) return false;
  const auto beta_is_zero = [&](const job &z) {
    const sg_scalar &beta = known->own_beta ? z.operands.first.scalars.beta : known->form.beta;
    return beta.re == 0 && beta.im == 0;
  };
  const sg_scalar &of_x = x.operands.first.scalars.alpha, &of_y = y.operands.first.scalars.alpha;
  return beta_is_zero(x) && beta_is_zero(y) && (!known->own_alpha || (of_x.re == of_y.re && of_x.im == of_y.im));
}

}  // namespace

void launcher::completed(void *user, const sg_backend_result *result) {
  inflight_command &f = *static_cast<inflight_command *>(user);
  f.home->complete_calls(f, result->status, result->message, result->start_ns, result->end_ns, 1);
}

// A failure completes the calls that were not enqueued.
template <class Enqueue>
bool launcher::enqueue(inflight_command &f, std::size_t calls, Enqueue &&enqueue_one) noexcept {
  const auto count = static_cast<std::int32_t>(calls);
  f.backend_calls.store(count + 1, std::memory_order_release);
  for (std::int32_t i = 0; i < count; ++i) {
    const sg_status status = enqueue_one(static_cast<std::size_t>(i), sg_backend_done{completed, &f});
    if (status == SG_STATUS_OK) continue;
    f.home->complete_calls(f, status, ops_.last_message(device_.handle()), 0, 0, count - i);
    return false;
  }
  return true;
}

bool launcher::launch(inflight_command &f, const command &c, std::int32_t units) noexcept {
  sg_backend_stream *stream = f.lane->stream;
  const job &owner = *f.owner;
  try {
    if (const auto *const graph = c.as<ops::graph>())
      return enqueue(
          f, 1, [&](std::size_t, sg_backend_done done) { return ops_.graph_launch(stream, graph->launched, done); });
    commands_.clear();
    operation_of(c).lower(owner.program->schedule->buffers, c, owner.operands, commands_);
    if (c.is<ops::copy_peer>()) name_peers(owner.owner());
    for (std::size_t i = 0; i < commands_.size(); ++i)
      if (commands_.at(i).kind == SG_BACKEND_GEMM)
        reinterpret_cast<sg_backend_gemm &>(commands_.at(i)).compute_units = units;
    return enqueue(f, commands_.size(), [&](std::size_t i, sg_backend_done done) {
      sg_status status = owner.awaited ? ops_.stream_wait(stream, owner.awaited) : SG_STATUS_OK;
      if (status == SG_STATUS_OK && owner.recorded) status = ops_.event_record(owner.recorded, stream);
      return status == SG_STATUS_OK ? device_.enqueue(stream, commands_.at(i), done) : status;
    });
  } catch (const std::bad_alloc &) {
    f.backend_calls.store(2, std::memory_order_release);
    f.home->complete_calls(f, SG_STATUS_OUT_OF_MEMORY, "out of host memory while the command was prepared", 0, 0, 1);
  }
  return false;
}

void launcher::name_peers(const job_home &home) noexcept {
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    std::int32_t &peer = reinterpret_cast<sg_backend_copy &>(commands_.at(i)).src_space.device;
    peer = home.on(device_index(peer)).index();
  }
}

sg_backend_gemm launcher::gemm_of(const job &owner, std::uint32_t index) noexcept {
  sg_backend_gemm call;
  if (const auto *known = owner.program->call_of(index)) {
    const binding &own = owner.operands;
    const scalar_pair &scalars = own.scalars(known->group);
    call = known->form;
    call.a = own.parameter(known->parameters[0]).base;
    call.b = own.parameter(known->parameters[1]).base;
    call.c = own.parameter(known->parameters[2]).base;
    if (known->has_bias) call.bias = own.parameter(known->parameters[3]).base;
    if (known->own_alpha) call.alpha = scalars.alpha;
    if (known->own_beta) call.beta = scalars.beta;
  } else {
    pointer_scratch unused;
    call =
        lower_gemm(owner.program->schedule->buffers, owner.program->schedule->commands[index], owner.operands, unused);
  }
  call.compute_units = owner.units;
  return call;
}

bool launcher::launch(batch &b, sg_backend_done done) {
  const auto differs_in_addresses = [&](const job *member) { return differ_in_addresses(*b.members.front(), *member); };
  const bool is_uniform = b.gemms.empty() && std::all_of(b.members.begin(), b.members.end(), differs_in_addresses);
  return (is_uniform ? launch_scattered(b, done) : launch_each(b, done)) == SG_STATUS_OK;
}

sg_status launcher::launch_scattered(batch &b, sg_backend_done done) {
  sg_backend_gemm all = gemm_of(*b.members.front(), 0);
  const auto &places = b.members.front()->program->call_of(0)->parameters;
  for (const job *member : b.members) {
    const auto &parameters = member->operands.first.parameters;
    b.a.push_back(parameters[places[0]].base);
    b.b.push_back(parameters[places[1]].base);
    b.c.push_back(parameters[places[2]].base);
  }
  all.batch = static_cast<std::int64_t>(b.members.size());
  all.a_array = b.a.data();
  all.b_array = b.b.data();
  all.c_array = b.c.data();
  return device_.enqueue(b.inflight.lane->stream, all.header, done);
}

sg_status launcher::launch_each(batch &b, sg_backend_done done) {
  for (const job *member : b.members) b.gemms.push_back(gemm_of(*member, 0));
  b.statuses.assign(b.gemms.size(), SG_STATUS_OK);
  b.calls.reserve(b.gemms.size());
  for (const sg_backend_gemm &each : b.gemms) b.calls.push_back(&each.header);
  return ops_.enqueue(b.inflight.lane->stream, b.calls.data(), static_cast<std::int32_t>(b.calls.size()),
                      b.statuses.data(), done);
}

}  // namespace sg
