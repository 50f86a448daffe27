// SPDX-License-Identifier: Apache-2.0
// A reader of memory that a failed job was to write fails too, until the application observes the failure or the memory
// is written again.
#include <cstdio>
#include <cstring>
#include <future>
#include <string>

#include "support/harness.hpp"

namespace sg_test {
namespace {

class failures : public on_each_device {
 protected:
  // A job that was to write c[0 .. n) and has failed; its failure is unobserved.
  job failed_writer(double *c, std::int64_t n = 1, sg_queue *completions = nullptr) {
    job writer;
    gated_job gated(context_);
    sg_job *const first = gated.get();
    sg_submit options = SG_SUBMIT_INIT;
    options.after = &first;
    options.after_count = gated ? 1 : 0;
    options.queue = completions;
    const sg_gemm_desc desc = make_gemm(ones_, ones_, c, 1, n, 1);
    EXPECT_OK(sg_gemm_async(context_, &desc, &options, writer.out()));
    EXPECT_OK(sg_job_cancel(writer));
    gated.open();
    EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
    return writer;
  }
  sg_status read(const double *from, double *to = nullptr, std::uint32_t flags = 0) {
    double own = 0;
    sg_submit options = SG_SUBMIT_INIT;
    options.flags = flags;
    const sg_gemm_desc desc = make_gemm(from, ones_, to ? to : &own, 1, 1, 1);
    return sg_gemm(context_, &desc, &options);
  }
  // Of any memory.
  sg_status read_anywhere(const double *from) {
    double own = 0;
    return sg_copy(context_, &own, from, sizeof own, nullptr);
  }
  void write(double *to, std::int64_t n = 1) {
    const sg_gemm_desc desc = make_gemm(ones_, ones_, to, 1, n, 1);
    ASSERT_OK(sg_gemm(context_, &desc, nullptr));
  }

  const double ones_[4] = {1, 1, 1, 1};
  double c_[4] = {5, 5, 5, 5};
};

#define WITH_GATES()                   \
  if (gate *const probe = gate_new(8)) \
    gate_free(probe);                  \
  else                                 \
    GTEST_SKIP() << "userfaultfd is not available here"

TEST_P(failures, a_later_reader_fails_and_names_the_first_failure) {
  WITH_GATES();
  const job writer = failed_writer(c_);
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, read(c_));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "cancelled before it started")) << sg_last_error_message();
}

TEST_P(failures, an_unobserved_failure_fails_later_readers) {
  WITH_GATES();
  failed_writer(c_).reset();
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  double d = -1;
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, read(c_, &d));
  EXPECT_EQ(-1, d);
}

TEST_P(failures, observing_the_reader_observes_the_writer) {
  WITH_GATES();
  failed_writer(c_).reset();
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, read(c_));
  EXPECT_OK(read(c_)) << "the application has observed the failure and rewritten the memory";
}

TEST_P(failures, readers_of_readers_fail) {
  WITH_GATES();
  failed_writer(c_).reset();
  double d = 0, e = 0;
  const sg_gemm_desc first = make_gemm(c_, ones_, &d, 1, 1, 1), second = make_gemm(&d, ones_, &e, 1, 1, 1);
  ASSERT_OK(sg_gemm_async(context_, &first, nullptr, nullptr));
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_gemm(context_, &second, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "cancelled before it started")) << sg_last_error_message();
  EXPECT_OK(read(&d)) << "one failure, reported once";
}

TEST_P(failures, every_status_query_observes_the_failure) {
  WITH_GATES();
  enum { wait, poll, message, all, any, ways };
  for (int way = 0; way < ways; ++way) {
    const job writer = failed_writer(c_);
    sg_job *const list[] = {writer};
    char text[100];
    std::int32_t index;
    switch (way) {
      case wait: EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(writer, 0, nullptr)); break;
      case poll: EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_query(writer, nullptr)); break;
      case message: EXPECT_OK(sg_job_message(writer, text, sizeof text, nullptr)); break;
      case all: EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait_all(list, 1, 0, nullptr)); break;
      default: EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait_any(list, 1, 0, &index, nullptr)); break;
    }
    EXPECT_OK(read(c_)) << way;
  }
}

TEST_P(failures, wait_all_observes_only_the_reported_failure) {
  WITH_GATES();
  const job first = failed_writer(&c_[0]), second = failed_writer(&c_[1]);
  sg_job *const list[] = {first, second};
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait_all(list, 2, 0, nullptr));
  EXPECT_OK(read(&c_[0]));
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, read(&c_[1]));
}

TEST_P(failures, a_completion_taken_from_the_queue_observes_the_failure) {
  WITH_GATES();
  queue completions;
  ASSERT_OK(sg_queue_create(context_, nullptr, completions.out()));
  failed_writer(c_, 1, completions).reset();
  sg_completion seen{};
  std::int32_t count = 0;
  ASSERT_OK(sg_queue_next_batch(completions, &seen, sizeof(sg_completion), 1, SG_FOREVER, &count));
  EXPECT_EQ(SG_STATUS_CANCELLED, seen.status);
  EXPECT_OK(read(c_));
}

// For a runtime that collects completions before its application asks for them.
TEST_P(failures, a_queue_may_leave_failures_unobserved) {
  WITH_GATES();
  queue completions;
  sg_queue_options of_a_runtime = SG_QUEUE_OPTIONS_INIT;
  of_a_runtime.observes = 0;
  ASSERT_OK(sg_queue_create(context_, &of_a_runtime, completions.out()));
  const job writer = failed_writer(c_, 1, completions);
  sg_completion seen{};
  std::int32_t count = 0;
  ASSERT_OK(sg_queue_next_batch(completions, &seen, sizeof(sg_completion), 1, SG_FOREVER, &count));
  EXPECT_EQ(SG_STATUS_CANCELLED, seen.status);
  job reader;
  const sg_gemm_desc desc = make_gemm(c_, ones_, &c_[2], 1, 1, 1);
  ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, reader.out()));
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(5, c_[2]) << "it did not run";
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_query(writer, nullptr)) << "now the application has asked";
  EXPECT_OK(read(c_));
  of_a_runtime.observes = 2;
  queue none;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_queue_create(context_, &of_a_runtime, none.out()));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "options->observes is 2"));
}

TEST_P(failures, a_callback_observes_the_failure_before_it_runs) {
  WITH_GATES();
  const job writer = failed_writer(c_);
  struct about {
    sg_context *context;
    sg_gemm_desc reader;
    job submitted;
    std::promise<void> called;
  } a{context_, make_gemm(c_, ones_, &c_[2], 1, 1, 1), job(), {}};
  ASSERT_OK(sg_job_on_complete(
      writer,
      [](sg_job *, sg_status, void *user) {
        auto &in = *static_cast<about *>(user);
        EXPECT_OK(sg_gemm_async(in.context, &in.reader, nullptr, in.submitted.out()));
        in.called.set_value();
      },
      &a));
  a.called.get_future().wait();
  EXPECT_OK(sg_job_wait(a.submitted, SG_FOREVER, nullptr));
  EXPECT_EQ(5, c_[2]);
}

TEST_P(failures, memory_that_is_written_again_can_be_read) {
  WITH_GATES();
  failed_writer(c_, 4).reset();
  write(&c_[1], 2);
  double d = 0;
  EXPECT_OK(read(&ones_[0], &d));
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, read(&c_[0])) << "some bytes were written";
  failed_writer(c_, 4).reset();
  write(c_, 4);
  EXPECT_OK(read(&c_[3], &d));
  EXPECT_EQ(1, d);
}

// The same when the writer fails after the memory's next writer has been submitted.
TEST_P(failures, an_earlier_writer_in_flight_does_not_matter_to_a_later_one_s_reader) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit options = SG_SUBMIT_INIT;
  options.after = &first;
  options.after_count = 1;
  double d = 0;
  const sg_gemm_desc desc = make_gemm(ones_, ones_, c_, 1, 1, 1), reader = make_gemm(c_, ones_, &d, 1, 1, 1);
  job fails, writes, reads;
  ASSERT_OK(sg_gemm_async(context_, &desc, &options, fails.out()));
  ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, writes.out()));
  ASSERT_OK(sg_gemm_async(context_, &reader, nullptr, reads.out()));
  ASSERT_OK(sg_job_cancel(fails));
  gated.open();
  EXPECT_OK(sg_job_wait(reads, SG_FOREVER, nullptr));
  EXPECT_EQ(1, d);
  EXPECT_OK(sg_job_wait(writes, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(fails, SG_FOREVER, nullptr));
}

// A batch with gaps does not write the gaps, though its address range covers them.
TEST_P(failures, gaps_of_a_later_writer_are_not_written_again) {
  WITH_GATES();
  double c[8] = {};
  failed_writer(&c[1]).reset();
  sg_gemm_desc gappy = make_gemm(ones_, ones_, c, 2, 1, 1);
  gappy.c.ld = 2;
  gappy.batch = 2;
  gappy.stride_c = 4;
  ASSERT_OK(sg_gemm(context_, &gappy, nullptr));
  EXPECT_EQ(0, c[1]);
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, read(&c[1]));
}

// A job that failed for two reasons counts for both.
TEST_P(failures, observing_a_job_observes_all_causes_of_its_failure) {
  WITH_GATES();
  double sum = 0, d[2] = {};
  failed_writer(&c_[0]).reset();
  failed_writer(&c_[1]).reset();
  const sg_gemm_desc both = make_gemm(&c_[0], &c_[1], &sum, 1, 1, 1);
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_gemm(context_, &both, nullptr));
  EXPECT_OK(read(&c_[0]));
  EXPECT_OK(read(&c_[1]));

  failed_writer(&c_[0]).reset();
  failed_writer(&c_[1]).reset();
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  for (int i = 0; i < 2; ++i) {
    const sg_gemm_desc one = make_gemm(&c_[i], ones_, &d[i], 1, 1, 1);
    ASSERT_OK(sg_gemm_async(context_, &one, &record, nullptr));
  }
  job run;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, run.out()));
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(run, SG_FOREVER, nullptr));
  for (const double *each : {&c_[0], &c_[1], &d[0], &d[1]}) EXPECT_OK(read(each));
  EXPECT_OK(sg_graph_release(graph));
}

sg_status fail_with_a_long_text(const sg_custom_call *call, void *) {
  const std::string text = std::string(300, '.') + " the end of the text";
  std::snprintf(call->message, call->message_size, "%s", text.c_str());
  return SG_STATUS_BACKEND_FAILURE;
}

// The first failure in the order of submission decides, and its text is whole.
TEST_P(failures, a_run_fails_as_its_first_failed_submission) {
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(context_, 64 * sizeof(double), nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  auto *const x = static_cast<double *>(data);
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  const sg_custom_operand written = {x, sizeof *x, SG_ACCESS_WRITE};
  sg_custom_desc fails = SG_CUSTOM_DESC_INIT;
  fails.function = fail_with_a_long_text, fails.operands = &written, fails.operand_count = 1;
  ASSERT_OK(sg_custom_async(context_, &fails, &record, nullptr));
  for (int i = 1; i < 20; ++i) {
    const sg_gemm_desc reader = make_gemm(x + i - 1, x + 40, x + i, 1, 1, 1);
    ASSERT_OK(sg_gemm_async(context_, &reader, &record, nullptr));
  }
  for (int round = 0; round < 40; ++round) {
    job run;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, run.out()));
    ASSERT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_job_wait(run, SG_FOREVER, nullptr)) << round;
    char text[1000];
    ASSERT_OK(sg_job_message(run, text, sizeof text, nullptr));
    ASSERT_NE(nullptr, std::strstr(text, "submission 0")) << text;
    ASSERT_NE(nullptr, std::strstr(text, "the end of the text")) << text;
  }
  EXPECT_OK(sg_graph_release(graph));
}

// A GEMM that has nothing to do accesses nothing: only `after` makes it depend on a job.
TEST_P(failures, a_gemm_without_work_depends_on_what_it_names_only) {
  WITH_GATES();
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(context_, 64, nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  for (double *const c : {c_, static_cast<double *>(data)}) {
    sg_gemm_desc nothing = make_gemm(ones_, ones_, c, 1, 1, 0), scaled = make_gemm(ones_, ones_, c, 1, 1, 1);
    nothing.beta = {1, 0};
    scaled.alpha = {0, 0}, scaled.beta = {1, 0};
    for (const sg_gemm_desc *each : {&nothing, &scaled}) {
      failed_writer(c).reset();
      EXPECT_OK(sg_gemm(context_, each, nullptr));
      sg_gemm_desc grouped[2] = {*each, make_gemm(ones_, ones_, &c_[2], 1, 1, 1)};
      job both;
      ASSERT_OK(sg_gemm_grouped_async(context_, grouped, 2, nullptr, both.out()));
      EXPECT_OK(sg_job_wait(both, SG_FOREVER, nullptr));
      EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, read_anywhere(c)) << "it has not written c";
      for (const bool in_flight : {true, false}) {
        gated_job gated(context_);
        sg_job *const first = gated.get();
        sg_submit behind_gate = SG_SUBMIT_INIT, options = SG_SUBMIT_INIT;
        behind_gate.after = &first, behind_gate.after_count = 1;
        job fails, after;
        const sg_gemm_desc writes = make_gemm(ones_, ones_, c, 1, 1, 1);
        ASSERT_OK(sg_gemm_async(context_, &writes, &behind_gate, fails.out()));
        ASSERT_OK(sg_job_cancel(fails));
        if (!in_flight) {
          gated.open();
          EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(fails, SG_FOREVER, nullptr));
        }
        sg_job *const named = fails;
        options.after = &named, options.after_count = 1;
        ASSERT_OK(sg_gemm_async(context_, each, &options, after.out()));
        gated.open();
        EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(after, SG_FOREVER, nullptr)) << in_flight;
      }
    }
  }
}

TEST_P(failures, untracked_readers_do_not_fail) {
  WITH_GATES();
  failed_writer(c_).reset();
  EXPECT_OK(read(c_, nullptr, SG_SUBMIT_UNTRACKED));
}

TEST_P(failures, freed_memory_forgets_the_failure) {
  WITH_GATES();
  void *pinned = nullptr;
  for (int round = 0; round < 3; ++round) {  // the allocator returns the same addresses again
    ASSERT_OK(sg_host_alloc(context_, 4096, &pinned));
    auto *c = static_cast<double *>(pinned);
    c[0] = 1;
    EXPECT_OK(read(c));
    failed_writer(c).reset();
    ASSERT_OK(sg_host_free(context_, pinned));
  }
}

ON_EACH_DEVICE(failures);

}  // namespace
}  // namespace sg_test
