// SPDX-License-Identifier: Apache-2.0
#include "run/objects/event.hpp"

#include <streamgemm/event.h>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/wait.hpp"
#include "run/objects/stream.hpp"

namespace sg {
namespace {

ref<event> event_of(const sg_event *handle, const char *name = "event") {
  return object_of<event>(handle, object_type::event, name);
}

void call_event_callback(handle_bits handle, sg_status status, void *user, void *fn) {
  reinterpret_cast<sg_event_callback>(fn)(handle_of<sg_event>(handle), status, user);
}

ref<job> recorded_or_refuse(const event &which, const char *name) {
  if (which.wraps())
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s is a native event, whose time is not known here", name);
  ref<job> recorded = which.recorded();
  if (!recorded) throw error(SG_STATUS_INVALID_ARGUMENT, "@%s was never recorded", name);
  return recorded;
}

}  // namespace
}  // namespace sg

using sg::event_of;
using sg::guarded;
using sg::object_type;
using sg::ref;

sg_status sg_event_create(sg_context *context, sg_event **out_event) {
  if (out_event) *out_event = nullptr;
  return guarded([&] {
    auto on = sg::context_of(context);
    sg::require(out_event, "out_event");
    auto made = ref<sg::object>::adopt(new sg::event(on, on->lanes_of_events()));
    *out_event = sg::handle_of<sg_event>(sg::make_handle(std::move(made)));
  });
}

sg_status sg_event_wrap(sg_context *context, void *native, sg_event **out_event) {
  if (out_event) *out_event = nullptr;
  return guarded([&] {
    auto on = sg::context_of(context);
    sg::require(native, "native");
    sg::require(out_event, "out_event");
    auto made = ref<sg::object>::adopt(new sg::event(on, on->lanes_of_events(), native));
    *out_event = sg::handle_of<sg_event>(sg::make_handle(std::move(made)));
  });
}

sg_status sg_event_native(sg_event *event, void **out_native) {
  if (out_native) *out_native = nullptr;
  return guarded([&] {
    const auto which = event_of(event);
    sg::require(out_native, "out_native");
    *out_native = which->native();
  });
}

sg_status sg_event_retain(sg_event *event) { return sg::retain(event, object_type::event, "event"); }

sg_status sg_event_release(sg_event *event) { return sg::release(event, object_type::event, "event"); }

sg_status sg_event_record(sg_event *event, sg_stream *stream) {
  return guarded([&] {
    const auto which = event_of(event);
    const auto in = sg::object_of<sg::stream>(stream, object_type::stream, "stream");
    if (&which->owner() != &in->owner())
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@stream is %p, a stream of another context",
                      static_cast<void *>(stream));
    which->record(*in);
  });
}

sg_status sg_event_query(sg_event *event) {
  sg_status result = SG_STATUS_OK;
  const sg_status call = guarded([&] {
    if (!event_of(event)->happened()) result = SG_STATUS_NOT_READY;
  });
  return call == SG_STATUS_OK ? result : call;
}

sg_status sg_event_wait(sg_event *event, int64_t timeout_ns) {
  sg_status result = SG_STATUS_OK;
  const sg_status call = guarded([&] {
    const auto which = event_of(event);
    const auto until = sg::deadline_of(timeout_ns);
    const auto recorded = which->recorded();
    if (recorded && !sg::wait_for(*recorded, until)) result = SG_STATUS_TIMEOUT;
  });
  return call == SG_STATUS_OK ? result : call;
}

sg_status sg_event_elapsed(sg_event *start, sg_event *end, double *out_seconds) {
  if (out_seconds) *out_seconds = 0;
  sg_status result = SG_STATUS_OK;
  const sg_status call = guarded([&] {
    const auto first = event_of(start, "start"), last = event_of(end, "end");
    sg::require(out_seconds, "out_seconds");
    if (&first->owner() != &last->owner())
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@start and @end are events of different contexts");
    const auto from = sg::recorded_or_refuse(*first, "start"), to = sg::recorded_or_refuse(*last, "end");
    if (from->done() && to->done())
      *out_seconds = static_cast<double>(to->end_ns() - from->end_ns()) * 1e-9;
    else
      result = SG_STATUS_NOT_READY;
  });
  return call == SG_STATUS_OK ? result : call;
}

sg_status sg_event_on_complete(sg_event *event, sg_event_callback callback, void *user) {
  return guarded([&] {
    const auto which = event_of(event);
    sg::require(reinterpret_cast<void *>(callback), "callback");
    auto recorded = which->recorded();
    if (!recorded) recorded = which->happened_already();
    sg::request_callback(recorded, sg::bits_of(event), object_type::event, sg::call_event_callback,
                         reinterpret_cast<void *>(callback), user);
  });
}
