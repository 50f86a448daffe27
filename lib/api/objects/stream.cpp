// SPDX-License-Identifier: Apache-2.0
#include "run/objects/stream.hpp"

#include <streamgemm/stream.h>

#include <algorithm>
#include <optional>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/wait.hpp"
#include "run/objects/event.hpp"

namespace sg {
namespace {

ref<stream> stream_of(const sg_stream *handle) { return object_of<stream>(handle, object_type::stream, "stream"); }

sg_stream *made_stream(const ref<context> &on, const sg_stream_options &o) {
  require_range(o.priority, -1, 1, "options->priority");
  require_range(o.compute_units, 0, INT32_MAX, "options->compute_units");
  require_device(*on, o.device, SG_DEVICE_ANY, "options->device");
  const auto device = device_index(std::max(0, o.device));
  if (o.compute_units > 0)
    return handle_of<sg_stream>(make_handle(
        ref<object>::adopt(new stream(on, o.priority, device, on->unit_partitions(device), o.compute_units))));
  const auto wanted = o.device == SG_DEVICE_ANY ? std::nullopt : std::optional(device);
  return handle_of<sg_stream>(make_handle(ref<object>::adopt(new stream(on, o.priority, wanted))));
}

}  // namespace
}  // namespace sg

using sg::guarded;
using sg::object_type;
using sg::ref;

sg_status sg_stream_create(sg_context *context, const sg_stream_options *options, sg_stream **out_stream) {
  if (out_stream) *out_stream = nullptr;
  return guarded([&] {
    const auto on = sg::context_of(context);
    sg::require(out_stream, "out_stream");
    const sg_stream_options given = sg::options_of(options, "options");
    *out_stream = sg::made_stream(on, given);
  });
}

sg_status sg_stream_device(sg_stream *stream, int32_t *out_device) {
  return guarded([&] {
    const auto found = sg::stream_of(stream);
    sg::require(out_device, "out_device");
    const auto device = found->device();
    *out_device = device ? static_cast<int32_t>(sg::number_of(*device)) : SG_DEVICE_ANY;
  });
}

sg_status sg_stream_compute_units(sg_stream *stream, int32_t *out_compute_units) {
  return guarded([&] {
    const auto found = sg::stream_of(stream);
    sg::require(out_compute_units, "out_compute_units");
    *out_compute_units = found->units();
  });
}

sg_status sg_stream_is_partition(sg_stream *stream, int32_t *out_is_partition) {
  return guarded([&] {
    const auto found = sg::stream_of(stream);
    sg::require(out_is_partition, "out_is_partition");
    *out_is_partition = found->partition_lane() ? 1 : 0;
  });
}

sg_status sg_stream_wrap(sg_context *context, void *native, sg_stream **out_stream) {
  if (out_stream) *out_stream = nullptr;
  return guarded([&] {
    auto on = sg::context_of(context);
    sg::require(out_stream, "out_stream");
    auto made = ref<sg::object>::adopt(new sg::stream(on, on->executor(), native));
    *out_stream = sg::handle_of<sg_stream>(sg::make_handle(std::move(made)));
  });
}

sg_status sg_stream_retain(sg_stream *stream) { return sg::retain(stream, object_type::stream, "stream"); }

sg_status sg_stream_release(sg_stream *stream) { return sg::release(stream, object_type::stream, "stream"); }

sg_status sg_stream_priority(sg_stream *stream, int32_t *out_priority) {
  return guarded([&] {
    const auto found = sg::stream_of(stream);
    sg::require(out_priority, "out_priority");
    *out_priority = found->priority();
  });
}

sg_status sg_stream_query(sg_stream *stream) {
  sg_status result = SG_STATUS_OK;
  const sg_status call = guarded([&] {
    const auto latest = sg::stream_of(stream)->latest();
    if (latest && !latest->done()) result = SG_STATUS_NOT_READY;
  });
  return call == SG_STATUS_OK ? result : call;
}

sg_status sg_stream_synchronize(sg_stream *stream, int64_t timeout_ns) {
  sg_status result = SG_STATUS_OK;
  const sg_status call = guarded([&] {
    const auto on = sg::stream_of(stream);
    const auto until = sg::deadline_of(timeout_ns);
    if (const auto latest = on->latest(); latest && !latest->done() && !until.passed()) sg::require_may_wait();
    const auto end = on->end();
    if (end && !sg::wait_for(*end, until)) result = SG_STATUS_TIMEOUT;
  });
  return call == SG_STATUS_OK ? result : call;
}

sg_status sg_stream_wait_event(sg_stream *stream, sg_event *event) {
  return guarded([&] {
    const auto waiting = sg::stream_of(stream);
    const auto happening = sg::object_of<sg::event>(event, object_type::event, "event");
    if (&waiting->owner() != &happening->owner())
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@event is %p, an event of another context",
                      static_cast<void *>(event));
    happening->block(*waiting);
  });
}
