// SPDX-License-Identifier: Apache-2.0
#include "run/objects/graph_nodes.hpp"

#include <algorithm>
#include <utility>

#include "ops/copy.hpp"
#include "ops/gemm.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

void add_each(graph_nodes::indices &to, const graph_nodes::indices &nodes) {
  for (const std::int32_t each : nodes)
    if (std::find(to.begin(), to.end(), each) == to.end()) to.push_back(each);
}

// Names the device of a source, which is one of the machine, as the backend does.
void name_peer(sg_backend_command &call, const std::vector<graph_place> &where) noexcept {
  std::int32_t &peer = reinterpret_cast<sg_backend_copy &>(call).src_space.device;
  peer = where[static_cast<std::size_t>(peer)].on->index();
}

}  // namespace

std::int32_t graph_nodes::add(indices before, std::vector<const sg_backend_command *> calls, const device &on) {
  nodes_.push_back({&on, std::move(before), std::move(calls)});
  return static_cast<std::int32_t>(nodes_.size() - 1);
}

graph_nodes::indices graph_nodes::add_batch(const std::vector<const submission *> &works, const device &on,
                                            const indices &before) {
  backend_commands &commands = lowered_.emplace_back();
  for (const submission *work : works) {
    const schedule &s = *work->program->schedule;
    sg_backend_gemm call = lower_gemm(s.buffers, s.commands[0], work->operands, commands.pointers);
    call.compute_units = work->units;
    commands.add(call);
  }
  std::vector<const sg_backend_command *> calls;
  for (std::size_t i = 0; i < commands.size(); ++i) calls.push_back(&commands.at(i));
  return {add(before, std::move(calls), on)};
}

// A command waits for those that it lists and for the one before it in its lane.
graph_nodes::indices graph_nodes::add_program(const submission &work, const std::vector<graph_place> &where,
                                              const indices &before) {
  const schedule &s = *work.program->schedule;
  binding operands = work.operands.copy();
  for (const graph_place &each : where) operands.by_device.push_back({each.arena, nullptr});
  std::vector<indices> ends(s.commands.size());  // by command
  std::vector<std::pair<lane, std::size_t>> latest;
  std::vector<bool> is_end(s.commands.size(), true);
  for (std::size_t i = 0; i < s.commands.size(); ++i) {
    const command &c = s.commands[i];
    indices waits;
    const auto wait_for = [&](std::size_t earlier) {
      add_each(waits, ends[earlier]);
      is_end[earlier] = false;
    };
    for (std::uint32_t w = 0; w < c.waits; ++w) wait_for(s.waits[c.first_wait + w]);
    const auto own = std::find_if(latest.begin(), latest.end(), [&](const auto &x) { return x.first == c.where; });
    if (own != latest.end())
      wait_for(std::exchange(own->second, i));
    else
      latest.emplace_back(c.where, i);
    if (waits.empty()) waits = before;
    backend_commands &commands = lowered_.emplace_back();
    operation_of(c).lower(s.buffers, c, operands, commands);
    for (std::size_t k = 0; k < commands.size(); ++k) {
      sg_backend_command &call = commands.at(k);
      if (call.kind == SG_BACKEND_GEMM) reinterpret_cast<sg_backend_gemm &>(call).compute_units = work.units;
      if (c.is<ops::copy_peer>()) name_peer(call, where);
      waits = {add(std::move(waits), {&call}, *where[number_of(c.where.device)].on)};
    }
    ends[i] = std::move(waits);
  }
  indices result;
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (is_end[i]) add_each(result, ends[i]);
  return result;
}

const std::vector<sg_backend_node> &graph_nodes::all() {
  all_.clear();
  for (const node &each : nodes_) {
    sg_backend_node made{};
    made.before = each.before.data();
    made.before_count = static_cast<std::int32_t>(each.before.size());
    made.commands = each.calls.data();
    made.command_count = static_cast<std::int32_t>(each.calls.size());
    made.device = each.on->handle();
    all_.push_back(made);
  }
  return all_;
}

}  // namespace sg
