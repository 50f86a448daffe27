// SPDX-License-Identifier: Apache-2.0
#include "api/submission.hpp"

#include <cstdio>

#include "api/entry.hpp"
#include "run/schedule_run.hpp"

namespace sg {

checked_submit::checked_submit(context &to, const sg_submit *given) : to_(to) {
  if (!given) return;
  const sg_submit s = options_of(given, SG_SUBMIT_INIT, "submit");
  if (s.flags & ~static_cast<std::uint32_t>(SG_SUBMIT_UNTRACKED))
    throw error(SG_STATUS_INVALID_ARGUMENT, "submit->flags is 0x%x, which has unknown bits", s.flags);
  require_reserved(s.reserved, "submit->reserved");
  require_range(s.priority, -1, 1, "submit->priority");
  require_range(s.after_count, 0, INT32_MAX, "submit->after_count");
  if (s.after_count > 0) require(s.after, "submit->after");
  untracked_ = (s.flags & SG_SUBMIT_UNTRACKED) != 0;
  priority_ = static_cast<std::int8_t>(s.priority);
  tag_ = s.tag;
  plan_ = s.plan;
  if (s.stream) {
    stream_ = object_of<stream>(s.stream, object_type::stream, "submit->stream");
    if (&stream_->owner() != &to)
      throw error(SG_STATUS_INVALID_ARGUMENT, "submit->stream is %p, a stream of another context",
                  static_cast<void *>(s.stream));
    if (priority_ == 0) priority_ = static_cast<std::int8_t>(stream_->priority());
  }
  if (s.queue) queue_ = object_of<completion_queue>(s.queue, object_type::queue, "submit->queue");
  after_.reserve(static_cast<std::size_t>(s.after_count));
  for (std::int32_t i = 0; i < s.after_count; ++i) {
    char name[40];
    std::snprintf(name, sizeof name, "submit->after[%d]", i);
    after_.push_back(object_of<job>(s.after[i], object_type::job, name));
  }
}

void checked_submit::go(const ref<job> &work, const access *accesses, std::size_t access_count, sg_job **out_job) {
  work->priority = priority_;
  work->tag = tag_;
  work->queue = queue_;
  submission order;
  order.on = stream_.get();
  order.after = after_.data();
  order.after_count = after_.size();
  order.untracked = untracked_;
  handle_bits handle = 0;
  if (out_job) handle = make_handle(ref<object>::share(work.get()));
  try {
    to_.submit(work, order, accesses, access_count);
  } catch (...) {
    if (out_job) release_handle(handle, object_type::job);
    throw;
  }
  if (out_job) *out_job = handle_of<sg_job>(handle);
}

void submit_product(context &to, checked_gemm &&product, std::shared_ptr<const compiled_plan> plan,
                    checked_submit &order, sg_job **out_job) {
  ref<job> work = to.new_job();
  work->kind = work_kind::schedule;
  work->plan = std::move(plan);
  if (!work->plan->is_single()) work->run = std::make_unique<schedule_run>(*work->plan);
  work->operands.first = product.where;
  const bool scattered = !product.pointers.empty();
  work->operands.pointers = std::move(product.pointers);
  if (!scattered) {
    access accesses[3];
    return order.go(work, accesses, list_accesses(product, accesses), out_job);
  }
  if (product.shape.c.pointer_array) check_items_apart(product, "items of desc->c_array");
  std::vector<access> accesses;
  list_accesses(product, accesses);
  order.go(work, accesses.data(), accesses.size(), out_job);
}

}  // namespace sg
