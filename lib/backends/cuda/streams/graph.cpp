// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/streams/graph.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/process_end.hpp"
#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/streams/commands.hpp"

namespace sg::cuda {
namespace {

constexpr std::int32_t most_branches = 8;

sg_status run_node(call_resources &in, const sg_backend_node &node, std::vector<sg_status> &statuses) {
  const auto count = static_cast<std::size_t>(node.command_count);
  if (count == 1) return run_command(in, *node.commands[0]);
  statuses.assign(count, SG_STATUS_OK);
  if (const sg_status status = run_group(in, {node.commands, count}, statuses.data())) return status;
  const auto failed = std::find_if(statuses.begin(), statuses.end(), [](sg_status x) { return x != SG_STATUS_OK; });
  return failed == statuses.end() ? SG_STATUS_OK : *failed;
}

}  // namespace

sg_status graph::create(device &owner, const sg_backend_node *nodes, std::int32_t count, graph **out) noexcept {
  *out = nullptr;
  const device::enqueuing begun(owner);
  if (const sg_status status = owner.usable()) return status;
  const current here(owner.context());
  try {
    std::unique_ptr<graph> fresh(new graph(owner));
    if (const sg_status status = fresh->build(nodes, count)) return status;
    *out = fresh.release();
    return SG_STATUS_OK;
  } catch (const std::bad_alloc &) {
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a graph");
  }
}

graph::~graph() {
  const process_end::freeing now;
  // Of a GPU that is lost, or has commands that wait for one, no CUDA object is freed.
  const auto may_free = [](device &on) { return on.usable() == SG_STATUS_OK && !on.is_stuck(); };
  if (executable_ != nullptr && may_free(owner_)) {
    const current here(owner_.context());
    cudaGraphExecDestroy(executable_);
  }
  for (const auto &each : branches_) {
    if (!may_free(each->on)) continue;
    const current here(each->on.context());
    for (cudaEvent_t event : each->events) cudaEventDestroy(event);
    each->calls.free();
    cudaStreamDestroy(each->calls.native());
  }
}

device &graph::device_of(const sg_backend_node &node) const noexcept {
  return node.device != nullptr ? *reinterpret_cast<device *>(node.device) : owner_;
}

sg_status graph::build(const sg_backend_node *nodes, std::int32_t count) {
  if (const sg_status status = open_branches(nodes, count)) return status;
  const cudaStream_t origin = branches_[0]->calls.native();
  // Relaxed capture: these calls do not affect other streams, so other threads' calls need not be forbidden.
  if (const sg_status status =
          owner_.check(cudaStreamBeginCapture(origin, cudaStreamCaptureModeRelaxed), "capturing a graph"))
    return status;
  const sg_status captured = capture(nodes, count);
  cudaGraph_t recorded = nullptr;
  const sg_status result = owner_.check(cudaStreamEndCapture(origin, &recorded), "capturing a graph");
  sg_status status = captured != SG_STATUS_OK ? captured : result;
  if (status == SG_STATUS_OK) status = owner_.check(cudaGraphInstantiate(&executable_, recorded, 0), "making a graph");
  if (recorded != nullptr) cudaGraphDestroy(recorded);
  return status;
}

sg_status graph::open_branch(device &on) {
  branches_.reserve(branches_.size() + 1);
  cudaStream_t native = nullptr;
  if (const sg_status status = on.check(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), "creating a stream"))
    return status;
  auto *fresh = new (std::nothrow) branch(on, native);
  if (fresh == nullptr) {
    cudaStreamDestroy(native);
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a graph");
  }
  branches_.emplace_back(fresh);
  return SG_STATUS_OK;
}

// Of its own GPU first, then of the others.
sg_status graph::open_branches(const sg_backend_node *nodes, std::int32_t count) {
  if (const sg_status status = open_branches(owner_, nodes, count)) return status;
  for (std::int32_t i = 0; i < count; ++i) {
    device &on = device_of(nodes[i]);
    if (std::any_of(ranges_.begin(), ranges_.end(), [&](const branch_range &x) { return x.on == &on; })) continue;
    if (on.ordinal() < 64) others_ |= std::uint64_t{1} << on.ordinal();
    if (const sg_status status = open_branches(on, nodes, count)) return status;
  }
  return SG_STATUS_OK;
}

// Creates as many streams as nodes run concurrently, with all resources, before the capture.
sg_status graph::open_branches(device &on, const sg_backend_node *nodes, std::int32_t count) {
  if (const sg_status status = on.usable()) return status;
  const current here(on.context());
  std::int32_t sources = 0;
  std::int64_t most_items = 0;
  bool uses_dnn = false;
  for (std::int32_t i = 0; i < count; ++i) {
    if (&device_of(nodes[i]) != &on) continue;
    const std::int32_t *const end = nodes[i].before + nodes[i].before_count;
    const auto is_on = [&](std::int32_t before) { return &device_of(nodes[before]) == &on; };
    sources += std::none_of(nodes[i].before, end, is_on);
    std::int64_t items = 0;
    for (std::int32_t c = 0; c < nodes[i].command_count; ++c) {
      const sg_backend_command &command = *nodes[i].commands[c];
      if (command.kind == SG_BACKEND_GEMM) items += as<sg_backend_gemm>(command).batch;
      uses_dnn = uses_dnn || command.kind == SG_BACKEND_CONV || command.kind == SG_BACKEND_ATTENTION ||
                 command.kind == SG_BACKEND_ATTENTION_BACKWARD;
    }
    most_items = std::max(most_items, items);
  }
  const std::int32_t wanted = std::clamp(sources, 1, most_branches);
  ranges_.push_back({&on, branches_.size(), static_cast<std::size_t>(wanted), branches_.size()});
  for (std::int32_t i = 0; i < wanted; ++i) {
    if (const sg_status status = open_branch(on)) return status;
    call_resources &calls = branches_.back()->calls;
    cublasHandle_t handle = nullptr;
    if (const sg_status status = calls.blas_handle(0, handle)) return status;
    dnn::handle dnn = nullptr;
    if (uses_dnn && dnn::load() != nullptr) calls.dnn.handle_of(calls.native(), dnn);  // a command that needs it fails
    void *pointers = nullptr;
    if (most_items > 1)
      if (const sg_status status = calls.pointer_memory(3 * most_items, &pointers)) return status;
    if (const sg_status status = on.check(cudaStreamSynchronize(calls.native()), "preparing a graph")) return status;
  }
  return SG_STATUS_OK;
}

// An event behind the branch's nodes so far.
sg_status graph::mark(std::size_t branch, cudaEvent_t *out) {
  auto &of = *branches_[branch];
  const current here(of.on.context());
  of.events.reserve(of.events.size() + 1);
  if (const sg_status status = of.on.check(cudaEventCreateWithFlags(out, cudaEventDisableTiming), "creating an event"))
    return status;
  of.events.push_back(*out);
  return of.on.check(cudaEventRecord(*out, of.calls.native()), "capturing a graph");
}

sg_status graph::wait(std::size_t branch, cudaEvent_t until) {
  auto &of = *branches_[branch];
  const current here(of.on.context());
  return of.on.check(cudaStreamWaitEvent(of.calls.native(), until, 0), "capturing a graph");
}

// A branch joins the capture by waiting for the origin's first event.
sg_status graph::enter(std::size_t branch, cudaEvent_t origin) {
  if (std::exchange(branches_[branch]->entered, true) || branch == 0) return SG_STATUS_OK;
  return wait(branch, origin);
}

sg_status graph::capture(const sg_backend_node *nodes, std::int32_t count) {
  cudaEvent_t origin = nullptr;
  if (const sg_status status = mark(0, &origin)) return status;
  std::vector<std::size_t> branch_of(static_cast<std::size_t>(count));
  std::vector<cudaEvent_t> ends(static_cast<std::size_t>(count), nullptr);
  std::vector<std::int32_t> latest(branches_.size(), -1);
  std::vector<sg_status> statuses;
  for (std::int32_t i = 0; i < count; ++i) {
    const sg_backend_node &node = nodes[i];
    device &on = device_of(node);
    branch_range &own = *std::find_if(ranges_.begin(), ranges_.end(), [&](const auto &x) { return x.on == &on; });
    // In the branch of a node that it waits for, if that node is still the branch's last.
    std::size_t branch = own.next;
    bool continues = false;
    for (std::int32_t b = 0; b < node.before_count && !continues; ++b) {
      const std::size_t earlier = branch_of[static_cast<std::size_t>(node.before[b])];
      continues = &branches_[earlier]->on == &on && latest[earlier] == node.before[b];
      if (continues) branch = earlier;
    }
    if (!continues) own.next = own.first + (own.next - own.first + 1) % own.count;
    if (const sg_status status = enter(branch, origin)) return status;
    for (std::int32_t b = 0; b < node.before_count; ++b) {
      const auto before = static_cast<std::size_t>(node.before[b]);
      if (branch_of[before] == branch) continue;  // stream order suffices
      if (const sg_status status = wait(branch, ends[before])) return status;
    }
    {
      const current here(on.context());
      if (const sg_status status = run_node(branches_[branch]->calls, node, statuses)) return status;
    }
    branch_of[static_cast<std::size_t>(i)] = branch;
    latest[branch] = i;
    if (branches_.size() > 1)
      if (const sg_status status = mark(branch, &ends[static_cast<std::size_t>(i)])) return status;
  }
  for (std::size_t branch = 1; branch < branches_.size(); ++branch)
    if (latest[branch] >= 0)
      if (const sg_status status = wait(0, ends[static_cast<std::size_t>(latest[branch])])) return status;
  return SG_STATUS_OK;
}

}  // namespace sg::cuda
