// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/queue.h>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/wait.hpp"
#include "run/job/completion_queue.hpp"

namespace sg {
namespace {

ref<completion_queue> queue_of(const sg_queue *handle) {
  return object_of<completion_queue>(handle, object_type::queue, "queue");
}

}  // namespace
}  // namespace sg

using sg::guarded;
using sg::object_type;
using sg::queue_of;
using sg::ref;

sg_status sg_queue_create(sg_context *context, const sg_queue_options *options, sg_queue **out_queue) {
  if (out_queue) *out_queue = nullptr;
  return guarded([&] {
    ref<sg::context> on = context ? sg::context_of(context) : ref<sg::context>();
    sg::require(out_queue, "out_queue");
    const sg_queue_options given = sg::options_of(options, "options");
    sg::require_range(given.jobs, SG_QUEUE_JOBS_NONE, SG_QUEUE_JOBS_ALL, "options->jobs");
    sg::require_range(given.observes, 0, 1, "options->observes");
    auto made = ref<sg::object>::adopt(new sg::completion_queue(std::move(on), given.jobs, given.observes != 0));
    *out_queue = sg::handle_of<sg_queue>(sg::make_handle(std::move(made)));
  });
}

sg_status sg_queue_retain(sg_queue *queue) { return sg::retain(queue, object_type::queue, "queue"); }

sg_status sg_queue_release(sg_queue *queue) { return sg::release(queue, object_type::queue, "queue"); }

sg_status sg_queue_next_batch(sg_queue *queue, sg_completion *out_completions, uint64_t completion_size,
                              int32_t capacity, int64_t timeout_ns, int32_t *out_count) {
  if (out_count) *out_count = 0;
  sg_status result = SG_STATUS_OK;
  const sg_status call = guarded([&] {
    const auto from = queue_of(queue);
    sg::require(out_completions, "out_completions");
    sg::require(out_count, "out_count");
    if (!sg::is_size_of<sg_completion>(completion_size))
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@completion_size is %llu; it must be sizeof(sg_completion)",
                      static_cast<unsigned long long>(completion_size));
    sg::require_range(capacity, 1, INT32_MAX, "capacity");
    const sg::deadline until = sg::deadline_of(timeout_ns);
    result = from->next_batch({out_completions, completion_size, capacity},
                              sg::in_function_of_job() ? sg::deadline(0) : until, *out_count);
    if (result == SG_STATUS_TIMEOUT && !until.passed()) sg::require_may_wait();
    if (result == SG_STATUS_CANCELLED)
      sg::set_last_error(result, "the queue is closed, and its completions have been taken");
  });
  return call == SG_STATUS_OK ? result : call;
}

sg_status sg_queue_close(sg_queue *queue) {
  return guarded([&] { queue_of(queue)->close(); });
}

sg_status sg_queue_fd(sg_queue *queue, int32_t *out_fd) {
  if (out_fd) *out_fd = -1;
  return guarded([&] {
    const auto of = queue_of(queue);
    sg::require(out_fd, "out_fd");
    *out_fd = of->descriptor();
  });
}
