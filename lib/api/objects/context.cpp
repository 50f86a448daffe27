// SPDX-License-Identifier: Apache-2.0
#include "run/context.hpp"

#include <streamgemm/context.h>

#include <algorithm>
#include <span>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/wait.hpp"
#include "base/text.hpp"
#include "devices/registry.hpp"
#include "run/job/service.hpp"

namespace sg {
namespace {

// Names of the devices of all available backends.
std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const backend_entry &backend : backends()) {
    if (!backend.available) continue;
    for (std::int32_t i = 0; i < backend.ops->device_count(); ++i) {
      char name[64] = "";
      if (backend.ops->device_name(i, name, sizeof name) != SG_STATUS_OK) continue;
      names.push_back(device_name{backend.name, name}.text());
    }
  }
  return names;
}

// The peers that can be opened by name.
void add_peers(const device &on, const sg_backend_facts &facts, sg_device_info &info) {
  if (facts.peer_count == 0) return;
  const std::vector<std::string> names = device_names();
  for (const sg_backend_peer &each : std::span(facts.peers, static_cast<std::size_t>(facts.peer_count))) {
    const std::string name = on.name_of(each.device);
    const auto found = std::find(names.begin(), names.end(), name);
    sg_device_peer &peer = info.peers[info.peer_count];
    if (found == names.end() || name.size() >= sizeof peer.name) continue;
    copy_text(peer.name, sizeof peer.name, name.c_str());
    peer.index = static_cast<std::int32_t>(found - names.begin());
    peer.link_class = each.link_class;
    peer.links = each.links;
    peer.bytes_per_second = each.bytes_per_second;
    ++info.peer_count;
  }
}

sg_device_info facts_of(const device &on) {
  const device_model &model = on.model();
  sg_device_info info = SG_DEVICE_INFO_INIT;
  copy_text(info.name, sizeof info.name, on.name().c_str());
  copy_text(info.description, sizeof info.description, model.name.c_str());
  info.memory_bytes = static_cast<std::uint64_t>(model.memory_bytes);
  info.unified_memory = on.unified();
  info.compute_units = model.lanes_are_cores ? model.compute_lanes : model.units;
  info.compute_lanes = model.compute_lanes;
  info.copy_engines = on.unified() ? 0 : model.copy_engines;
  info.priorities = 3;
  info.link_in_bytes_per_second = model.link_in;
  info.link_out_bytes_per_second = model.link_out;
  info.memory_bytes_per_second = model.memory_rate;
  const sg_backend_facts facts = on.facts();
  info.nvlink_bytes_per_second = facts.nvlink_bytes_per_second;
  info.nvlinks = facts.nvlinks;
  copy_text(info.mig, sizeof info.mig, facts.mig);
  copy_text(info.uuid, sizeof info.uuid, facts.uuid);
  add_peers(on, facts, info);
  return info;
}

context_settings settings_of(const sg_context_options *options) {
  const sg_context_options o = options_of(options, "options");
  require_range(o.compute_lanes, 0, 1024, "options->compute_lanes");
  require_range(o.staging_threads, 0, 1024, "options->staging_threads");
  if (o.memory_limit > INT64_MAX)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@options->memory_limit is %llu; it must be below 2^63",
                static_cast<unsigned long long>(o.memory_limit));
  if (o.flags & ~static_cast<std::uint32_t>(SG_CONTEXT_CHECK_HAZARDS | SG_CONTEXT_NO_COALESCING | SG_CONTEXT_TUNE))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@options->flags is 0x%x, which has unknown bits", o.flags);
  require_range(o.commands_in_flight, 0, 4096, "options->commands_in_flight");
  require_range(o.when_full, SG_WHEN_FULL_BLOCK, SG_WHEN_FULL_REFUSE, "options->when_full");
  if (o.job_limit > INT64_MAX)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@options->job_limit is %llu; it must be below 2^63",
                static_cast<unsigned long long>(o.job_limit));
  context_settings settings;
  if (o.device) settings.device = o.device;
  settings.compute_lanes = o.compute_lanes;
  settings.staging_threads = o.staging_threads;
  settings.memory_limit = static_cast<std::int64_t>(o.memory_limit);
  settings.check_hazards = (o.flags & SG_CONTEXT_CHECK_HAZARDS) != 0;
  settings.tune = (o.flags & SG_CONTEXT_TUNE) != 0;
  settings.dispatch = {o.commands_in_flight, (o.flags & SG_CONTEXT_NO_COALESCING) == 0};
  settings.job_limit = static_cast<std::int64_t>(o.job_limit);
  settings.refuse_when_full = o.when_full == SG_WHEN_FULL_REFUSE;
  return settings;
}

}  // namespace
}  // namespace sg

using sg::guarded;
using sg::object_type;
using sg::ref;

sg_status sg_backend_count(int32_t *out_count) {
  return guarded([&] {
    sg::require(out_count, "out_count");
    *out_count = static_cast<int32_t>(sg::backends().size());
  });
}

sg_status sg_backend_get_info(int32_t index, sg_backend_info *out_info) {
  return guarded([&] {
    sg::require(out_info, "out_info");
    const auto &all = sg::backends();
    sg::require_range(index, 0, static_cast<std::int64_t>(all.size()) - 1, "index");
    const sg::backend_entry &backend = all[static_cast<std::size_t>(index)];
    sg_backend_info info = SG_BACKEND_INFO_INIT;
    sg::copy_text(info.name, sizeof info.name, backend.name.c_str());
    sg::copy_text(info.reason, sizeof info.reason, backend.reason.c_str());
    sg::copy_text(info.origin, sizeof info.origin, backend.origin.c_str());
    info.available = backend.available;
    sg::write_out(out_info, info, "out_info");
  });
}

sg_status sg_backend_load(const char *path) {
  return guarded([&] {
    sg::require(path, "path");
    if (path[0] != '/')
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@path is \"%s\"; it must be an absolute path",
                      sg::printable(path, 200).c_str());
    sg::load_backend(path);
  });
}

sg_status sg_device_count(int32_t *out_count) {
  return guarded([&] {
    sg::require(out_count, "out_count");
    *out_count = static_cast<int32_t>(sg::device_names().size());
  });
}

sg_status sg_device_get_info(int32_t index, sg_device_info *out_info) {
  return guarded([&] {
    sg::require(out_info, "out_info");
    const auto names = sg::device_names();
    sg::require_range(index, 0, static_cast<std::int64_t>(names.size()) - 1, "index");
    sg::write_out(out_info, sg::facts_of(*sg::open_device(names[static_cast<std::size_t>(index)].c_str())), "out_info");
  });
}

sg_status sg_context_create(const sg_context_options *options, sg_context **out_context) {
  if (out_context) *out_context = nullptr;
  return guarded([&] {
    sg::require(out_context, "out_context");
    auto made = sg::context::create(sg::settings_of(options));
    *out_context = sg::handle_of<sg_context>(sg::make_handle(ref<sg::object>::adopt(made.release())));
  });
}

sg_status sg_context_retain(sg_context *context) { return sg::retain(context, object_type::context, "context"); }

sg_status sg_context_release(sg_context *context) { return sg::release(context, object_type::context, "context"); }

sg_status sg_context_synchronize(sg_context *handle, int64_t timeout_ns) {
  sg_status result = SG_STATUS_OK;
  const sg_status call = guarded([&] {
    const auto context = sg::context_of(handle);
    const auto until = sg::deadline_of(timeout_ns);
    sg::require_may_wait();
    if (sg::in_callback_of(*context))
      throw sg::error(SG_STATUS_DEADLOCK, "a callback of the context waits for all of its jobs");
    if (!context->synchronize(until)) result = SG_STATUS_TIMEOUT;
  });
  return call == SG_STATUS_OK ? result : call;
}

sg_status sg_context_device_count(sg_context *handle, int32_t *out_count) {
  return guarded([&] {
    const auto context = sg::context_of(handle);
    sg::require(out_count, "out_count");
    *out_count = static_cast<int32_t>(context->devices().size());
  });
}

sg_status sg_context_device_status(sg_context *handle, int32_t device) {
  return guarded([&] {
    const auto context = sg::context_of(handle);
    sg::require_device(*context, device, 0, "device");
    const sg::device &on = context->on(sg::device_index(device));
    on.check(on.status(), "its use");
  });
}

sg_status sg_context_machine(sg_context *handle, char *text, uint64_t size, uint64_t *out_size) {
  sg::clear_text(text, size, out_size);
  return guarded([&] {
    const auto context = sg::context_of(handle);
    sg::write_text(sg::machine_text(context->machine()).c_str(), text, size, out_size);
  });
}

sg_status sg_context_get_device_info(sg_context *handle, int32_t device, sg_device_info *out_info) {
  return guarded([&] {
    const auto context = sg::context_of(handle);
    sg::require_device(*context, device, 0, "device");
    const auto index = sg::device_index(device);
    sg_device_info info = sg::facts_of(context->on(index));
    const sg::device_model &model = context->model(index);
    info.compute_lanes = model.compute_lanes;
    if (model.lanes_are_cores) info.compute_units = model.compute_lanes;
    info.link_in_bytes_per_second = model.link_in;
    info.link_out_bytes_per_second = model.link_out;
    info.memory_bytes_per_second = model.memory_rate;
    sg::write_out(out_info, info, "out_info");
  });
}

sg_status sg_context_model(sg_context *handle, char *text, uint64_t size, uint64_t *out_size) {
  sg::clear_text(text, size, out_size);
  return guarded([&] {
    const auto context = sg::context_of(handle);
    sg::write_text(sg::model_text(context->model()).c_str(), text, size, out_size);
  });
}
