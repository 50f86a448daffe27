// SPDX-License-Identifier: Apache-2.0
// The C++ header as a program uses it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <future>
#include <numeric>
#include <span>
#include <streamgemm/streamgemm.hpp>
#include <thread>
#include <vector>

namespace sg = streamgemm;

namespace {

std::string device() {
  const char *const named = std::getenv("SG_TEST_DEVICE");
  return named ? named : "cpu";
}

struct header : testing::Test {
  sg::context context{device()};
  std::vector<double> a = numbers(12), b = numbers(12), c = std::vector<double>(9);

  static std::vector<double> numbers(std::size_t count) {
    std::vector<double> made(count);
    std::iota(made.begin(), made.end(), 1);
    return made;
  }
  sg::job submitted(const sg::submit &options = {}) {
    return context.gemm_async(sg::matrix(a, 3, 4), sg::matrix(b, 4, 3), sg::matrix(c, 3, 3), {}, options);
  }
  double first() const {  // of C
    double sum = 0;
    for (std::size_t k = 0; k < 4; ++k) sum += a[k] * b[3 * k];
    return sum;
  }
  // A job that fails with a text, by a function of the application.
  sg::job failing() {
    sg::custom_desc desc;
    static std::int64_t value;
    desc.function = [](const sg_custom_call *, void *) { return SG_STATUS_IO_FAILURE; };
    sg_custom_operand operand{};
    operand.data = &value, operand.bytes = sizeof value, operand.access = SG_ACCESS_WRITE;
    desc.operands = &operand, desc.operand_count = 1;
    return context.custom_async(desc, sg::submit().label("fails"));
  }
};

TEST_F(header, initial_values_are_those_of_c) {
  const sg_gemm_desc of_c = SG_GEMM_DESC_INIT;
  const sg::gemm_desc made;
  EXPECT_EQ(0, std::memcmp(&of_c, &made, sizeof of_c));
  sg::gemm_desc desc;
  desc.alpha = {2, 0};
  desc.a = sg::matrix(a, 3, 4), desc.b = sg::matrix(b, 4, 3), desc.c = sg::matrix(c, 3, 3);
  context.gemm(desc);
  EXPECT_EQ(2 * first(), c[0]);
}

TEST_F(header, a_job_is_waited_for_in_every_way) {
  sg::job job = submitted();
  job.wait();
  EXPECT_EQ(first(), c[0]);
  EXPECT_TRUE(job.done());
  EXPECT_EQ(SG_STATUS_OK, job.status());
  EXPECT_TRUE(job.wait_for(std::chrono::seconds(0)));
  EXPECT_GT(job.get_statistics().commands, 0);
  submitted().as_future().get();
  std::promise<sg_status> told;
  submitted().on_complete([&](sg_status status) { told.set_value(status); });
  EXPECT_EQ(SG_STATUS_OK, told.get_future().get());
  const std::vector<sg::job> jobs{submitted(), submitted()};
  EXPECT_TRUE(sg::wait_all(jobs));
  EXPECT_EQ(0, sg::wait_any(jobs));
}

TEST_F(header, failures_are_exceptions_with_their_text) {
  try {
    context.gemm(sg::matrix(a, 4, 3), sg::matrix(b, 4, 3), sg::matrix(c, 3, 3));
    FAIL() << "shapes that do not fit";
  } catch (const sg::error &refused) {
    EXPECT_EQ(SG_STATUS_INVALID_ARGUMENT, refused.status());
    EXPECT_NE(std::string(refused.what()).find("desc->"), std::string::npos) << refused.what();
  }
  for (const auto wait : {+[](const sg::job &job) { job.wait(); }, +[](const sg::job &job) { job.as_future().get(); }})
    try {
      wait(failing());
      FAIL() << "a failed job";
    } catch (const sg::error &failed) {
      EXPECT_EQ(SG_STATUS_IO_FAILURE, failed.status());
      EXPECT_NE(std::string(failed.what()).find("fails"), std::string::npos) << failed.what();
    }
  EXPECT_EQ(SG_STATUS_IO_FAILURE, [&] {
    sg::job job = failing();
    while (!job.done()) std::this_thread::yield();
    return job.status();
  }());
  EXPECT_THROW(sg::context("no such device"), sg::error);
}

struct coroutine {
  struct promise_type {
    std::promise<double> told;
    coroutine get_return_object() { return {told.get_future()}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_value(double value) { told.set_value(value); }
    void unhandled_exception() { told.set_exception(std::current_exception()); }
  };
  std::future<double> result;
};

TEST_F(header, coroutines_await_jobs) {
  const auto run = [&](bool fails) -> coroutine {
    co_await submitted();
    co_await submitted();
    if (fails) co_await failing();
    co_return c[0];
  };
  EXPECT_EQ(first(), run(false).result.get());
  EXPECT_THROW(run(true).result.get(), sg::error);
  const auto many = [&]() -> coroutine {
    for (int i = 0; i < 2000; ++i) co_await submitted();
    co_return c[0];
  };
  EXPECT_EQ(first(), many().result.get());
}

TEST_F(header, handles_are_references) {
  sg::job job = submitted(), copy = job, other;
  EXPECT_EQ(job, copy);
  EXPECT_FALSE(other);
  other = std::move(job);
  EXPECT_FALSE(job);
  copy = {};
  other.wait();
  EXPECT_EQ(SG_STATUS_INVALID_HANDLE, job.status());
  EXPECT_THROW(job.wait(), sg::error);
  sg_job *const raw = other.release();
  EXPECT_EQ(SG_STATUS_OK, sg_job_release(raw));
  sg::context held = context;
  context = sg::context(nullptr);
  sg::job(held.gemm_async(sg::matrix(a, 3, 4), sg::matrix(b, 4, 3), sg::matrix(c, 3, 3))).wait();
}

TEST_F(header, submissions_have_options) {
  const sg::stream stream = context.create_stream();
  const sg::job before = submitted(sg::submit().on(stream));
  sg::submit options = sg::submit().on(stream).after(before).label("second").trace_id(7).priority(1);
  const sg::submit same = options;  // has pointers of its own
  options = {};
  const sg::job job = submitted(same);
  job.wait();
  EXPECT_EQ("second", job.label());
  EXPECT_EQ(7u, job.get_statistics().trace_id);
  EXPECT_TRUE(stream.synchronize());
  EXPECT_TRUE(stream.query());
  const sg::event event = context.create_event();
  event.record(stream);
  std::promise<sg_status> told;
  event.on_complete([&](sg_status status) { told.set_value(status); });
  EXPECT_EQ(SG_STATUS_OK, told.get_future().get());
  EXPECT_TRUE(event.wait());

  const sg::queue queue = context.create_queue([] {
    sg::queue_options all;
    all.jobs = SG_QUEUE_JOBS_ALL;
    return all;
  }());
  submitted(sg::submit().to(queue, 42));
  const std::vector<sg::completion> completions = queue.next_batch(8);
  ASSERT_EQ(1u, completions.size());
  EXPECT_EQ(42u, completions[0].tag);
  EXPECT_TRUE(completions[0].job.done());
  EXPECT_TRUE(queue.next_batch(8, std::chrono::milliseconds(1)).empty());
}

TEST_F(header, plans_graphs_buffers_and_texts) {
  sg::gemm_desc desc;
  desc.a = sg::matrix(a, 3, 4), desc.b = sg::matrix(b, 4, 3), desc.c = sg::matrix(c, 3, 3);
  const sg::plan plan = context.create_plan(desc);
  EXPECT_GT(plan.get_prediction().predicted_seconds, 0);
  EXPECT_NE(std::string(plan.describe(SG_PLAN_FORMAT_TEXT)).find("predicted"), std::string::npos);
  plan.run(desc);
  EXPECT_EQ(first(), c[0]);
  EXPECT_TRUE(context.supports(desc));

  const sg::graph graph = context.create_graph();
  context.gemm_async(desc, sg::submit().in(graph));
  EXPECT_EQ(1, graph.submission_count());
  c[0] = 0;
  graph.run();
  EXPECT_EQ(first(), c[0]);

  const sg::buffer buffer = context.create_buffer(12 * sizeof(double));
  context.copy(buffer.data(), a.data(), 12 * sizeof(double));
  context.gemm(sg::matrix(static_cast<double *>(buffer.data()), 3, 4), sg::matrix(b, 4, 3), sg::matrix(c, 3, 3));
  EXPECT_EQ(first(), c[0]);
  EXPECT_EQ(12 * sizeof(double), buffer.size());

  sg::pinned<double> pinned = sg::make_pinned<double>(context, 12);
  std::copy(a.begin(), a.end(), pinned.begin());
  context.gemm(sg::matrix(pinned, 3, 4), sg::matrix(b, 4, 3), sg::matrix(c, 3, 3));
  EXPECT_EQ(first(), c[0]);
  EXPECT_EQ(12u, sg::make_pinned<double>(context, 12, 0).size());
  EXPECT_THROW(sg::make_pinned<double>(context, 12, 1), sg::error);
  const sg::pinned<double> moved = std::move(pinned);
  EXPECT_EQ(nullptr, pinned.data());
  EXPECT_EQ(12u, moved.size());

  EXPECT_NE(std::string(context.model()).find('{'), std::string::npos);  // longer than the first guess
  EXPECT_GT(std::string(context.model()).size(), 256u);
  EXPECT_EQ(1, context.device_count());
  EXPECT_NE(std::string_view(sg::version_string()), "");
}

// What std::mdspan has.
struct view {
  const double *data;
  std::size_t extents[2], strides[2];
  static constexpr std::size_t rank() { return 2; }
  const double *data_handle() const { return data; }
  std::size_t extent(std::size_t of) const { return extents[of]; }
  std::size_t stride(std::size_t of) const { return strides[of]; }
};

TEST_F(header, views_of_two_dimensions_are_matrices) {
  const sg_matrix row_major = sg::matrix(view{a.data(), {2, 3}, {6, 1}});
  EXPECT_EQ(SG_LAYOUT_ROW_MAJOR, row_major.layout);
  EXPECT_EQ(6, row_major.ld);
  const sg_matrix column_major = sg::matrix(view{a.data(), {2, 3}, {1, 4}});
  EXPECT_EQ(SG_LAYOUT_COLUMN_MAJOR, column_major.layout);
  EXPECT_EQ(4, column_major.ld);
  EXPECT_DEATH(sg::matrix(view{a.data(), {2, 3}, {8, 2}}), "");
  EXPECT_DEATH(sg::matrix(a, 4, 4), "");
  double array[4] = {};
  EXPECT_EQ(array, sg::matrix(array, 2, 2).data);
  EXPECT_DEATH(sg::matrix(array, 3, 3), "");
  EXPECT_EQ(2, sg::matrix(std::span<double>(array), 2, 2).rows);
  std::vector<std::int8_t> bytes(6);  // of a type that C++ does not have
  const sg_matrix named = sg::matrix(bytes, SG_DTYPE_F8_E4M3, 2, 3);
  EXPECT_TRUE(named.rows == 2 && named.cols == 3 && named.dtype == SG_DTYPE_F8_E4M3);
  EXPECT_DEATH(sg::matrix(bytes, SG_DTYPE_BF16, 2, 3), "");
  EXPECT_EQ(SG_DTYPE_BF16, sg::matrix(a.data(), SG_DTYPE_BF16, 2, 2).dtype);
}

TEST_F(header, groups_times_and_texts_of_errors) {
  std::vector<sg::gemm_desc> group(2);
  for (sg::gemm_desc &each : group)
    each.a = sg::matrix(a, 3, 4), each.b = sg::matrix(b, 4, 3), each.c = sg::matrix(c, 3, 3);
  std::vector<double> other(9);
  group[1].c = sg::matrix(other, 3, 3);
  context.gemm_grouped(group);
  EXPECT_EQ(first(), other[0]);
  const sg::job done = submitted();
  EXPECT_TRUE(done.wait_for(sg::forever));
  EXPECT_TRUE(done.wait_for(-std::chrono::seconds(3)));
  EXPECT_TRUE(context.synchronize(sg::forever));  // a job ends for its waiters before it has left its context
  EXPECT_TRUE(context.synchronize(-std::chrono::nanoseconds(1)));
  EXPECT_THROW(sg::make_pinned<double>(context, std::size_t(1) << 61), sg::error);
  // The text of an earlier failure is not that of a later one.
  EXPECT_THROW(context.gemm(sg::matrix(a, 4, 3), sg::matrix(b, 4, 3), sg::matrix(c, 3, 3)), sg::error);
  const sg::queue queue = context.create_queue();
  queue.close();
  try {
    queue.next_batch();
    FAIL() << "a closed queue";
  } catch (const sg::error &closed) {
    EXPECT_EQ(SG_STATUS_CANCELLED, closed.status());
    EXPECT_NE(std::string(closed.what()).find("the queue is closed"), std::string::npos) << closed.what();
  }
}

TEST_F(header, operations_by_their_operands) {
  sg::softmax_desc options;
  std::vector<float> x(8, 3), y(8);
  context.softmax(sg::matrix(x, 2, 4), sg::matrix(y, 2, 4), options);
  EXPECT_FLOAT_EQ(0.25f, y[5]);
  sg::norm_desc norm;
  norm.epsilon = 1;
  context.layer_norm(sg::matrix(x, 2, 4), nullptr, nullptr, sg::matrix(y, 2, 4), norm);
  EXPECT_FLOAT_EQ(0, y[0]);
}

}  // namespace
