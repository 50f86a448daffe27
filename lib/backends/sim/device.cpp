// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <unistd.h>

#include <algorithm>

#include "models.hpp"
#include "operations.hpp"

using namespace sg::common;
using namespace sg::sim;

namespace {

// Of a machine its own, otherwise among the counted models.
std::int32_t index_of(const sg::sim::device_name &name) noexcept {
  if (name.index >= 0) return static_cast<std::int32_t>(name.index);
  const auto all = built_in_models();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto &each) { return name.model == each.name; });
  return found == all.end() ? 0 : static_cast<std::int32_t>(found - all.begin());
}

}  // namespace

sg_backend_device::sg_backend_device(const sg_backend_host *host, const char *name)
    : host_(host),
      name_(sg::sim::device_name::parse(name)),
      models_(models_of(name_)),
      model_(nullptr, model_deleter{host}),
      index_(index_of(name_)),
      process_(getpid()) {
  char message[SG_BACKEND_MESSAGE_SIZE] = "";
  sg_backend_model *parsed = nullptr;
  const sg_status status = host->model_parse(models_.device.c_str(), &parsed, message);
  if (status != SG_STATUS_OK) throw failure(status, "%s", message);
  model_.reset(parsed);
  const std::uint64_t memory = host->memory_bytes(parsed);
  memory_ = std::make_unique<address_space>(memory - std::min(memory, name_.taken),
                                            name_.largest_piece > 0 ? name_.largest_piece : memory, !name_.timing_only);
  timeline_ = std::make_unique<timeline>(host->copy_engines(parsed), host->compute_units(parsed));
}

double sg_backend_device::seconds_of(const sg_backend_command &command, bool both_ways) const {
  return host_->command_seconds(model_.get(), &command, both_ways);
}

bool sg_backend_device::supports(const sg_backend_command &command) const {
  switch (command.kind) {
    case SG_BACKEND_MARKER:
    case SG_BACKEND_COPY: return true;
    case SG_BACKEND_GEMM: return is_supported(as<sg_backend_gemm>(command)) && seconds_of(command) >= 0;
    case SG_BACKEND_REDUCE: return is_supported(as<sg_backend_reduce>(command));
    case SG_BACKEND_ATTENTION: return suits_kernel(as<sg_backend_attention>(command), compute_units());
    default: {
      const operation *const other = operation_of(command.kind);
      return other && other->supports(command);
    }
  }
}

void sg_backend_device::connect(sg_backend_device &other, double bytes_per_second) {
  double rate = std::max(0.0, bytes_per_second);
  if (machine_json()) {
    if (!links_) links_ = other.links_ ? other.links_ : std::make_shared<shared_links>(host_, models_.machine);
    if (!other.links_) other.links_ = links_;
    if (rate > 0) rate = links_->peer_rate(other.index_, index_);  // a context may plan with another one
  }
  const auto known =
      std::find_if(peers_.begin(), peers_.end(), [&](const peer &each) { return each.device == &other; });
  if (known != peers_.end())
    known->bytes_per_second = rate;
  else
    peers_.push_back({&other, rate});
  if (bytes_per_second == 0)
    throw failure(SG_STATUS_UNSUPPORTED, "the model of the machine has no link of a known rate between them");
}

const peer *sg_backend_device::peer_at(std::int32_t index) const noexcept {
  const auto found =
      std::find_if(peers_.begin(), peers_.end(), [&](const peer &each) { return each.device->index_ == index; });
  return found == peers_.end() ? nullptr : &*found;
}

sg_backend_space sg_backend_device::space_of(const void *memory, std::uint64_t bytes) const noexcept {
  const sg_memory_kind own = memory_->kind_of(memory, bytes);
  if (own == SG_MEMORY_PAGEABLE)
    for (const peer &each : peers_)
      if (each.device->memory_->kind_of(memory, bytes) == SG_MEMORY_DEVICE)
        return {SG_MEMORY_PEER, each.device->index_};
  return {own, 0};
}

void sg_backend_device::require_usable(bool begins) {
  if (begins && name_.lost_at.nth() > 0) {
    std::lock_guard lock(mutex_);
    if (name_.lost_at.hit()) lost_.store(true);
  }
  if (lost_.load())
    throw failure(SG_STATUS_BACKEND_FAILURE, "device %d is lost: planned fault at command %lld", int{index_},
                  static_cast<long long>(name_.lost_at.nth()));
}

bool sg_backend_device::inherited() const noexcept { return getpid() != process_; }

void sg_backend_device::count_allocation() {
  require_usable();
  std::lock_guard lock(mutex_);
  if (name_.fail_alloc.hit())
    throw failure(SG_STATUS_OUT_OF_MEMORY, "planned fault: allocation %lld fails",
                  static_cast<long long>(name_.fail_alloc.nth()));
}

void sg_backend_device::drain() {
  if (inherited()) return;
  std::vector<std::shared_ptr<work_queue>> queues;
  {
    std::lock_guard lock(mutex_);
    draining_ = true;
    queues = queues_;
  }
  for (const auto &queue : queues) queue->refuse();
  for (const auto &queue : queues) queue->settle();
}
