// SPDX-License-Identifier: Apache-2.0
// Labels of jobs: copied, bounded, read back, and at the beginning of failure messages.
#include <cstddef>
#include <cstring>
#include <string>

#include "support/harness.hpp"

namespace sg_test {
namespace {

std::string label_of(sg_job *job) {
  char text[SG_LABEL_SIZE] = "unwritten";
  EXPECT_OK(sg_job_label(job, text, sizeof text, nullptr));
  return text;
}

std::string message_of(sg_job *job) {
  char text[300] = "unwritten";
  EXPECT_OK(sg_job_message(job, text, sizeof text, nullptr));
  return text;
}

class labels : public testing::TestWithParam<const char *> {
 protected:
  void SetUp() override { context_ = open_context(GetParam()); }
  void TearDown() override { sg_context_synchronize(context_, SG_FOREVER); }  // jobs use the members
  static sg_submit named(const char *label) {
    sg_submit options = SG_SUBMIT_INIT;
    options.label = label;
    return options;
  }
  job submit(const sg_submit &options) {
    const sg_gemm_desc desc = make_gemm(&a_, &b_, &c_, 1, 1, 1);
    job made;
    EXPECT_OK(sg_gemm_async(context_, &desc, &options, made.out()));
    return made;
  }
  std::string kept(const std::string &label) {
    const job made = submit(named(label.c_str()));
    return label_of(made);
  }
  context context_;
  double a_ = 2, b_ = 3, c_ = 0;
};

TEST_P(labels, are_copied_and_read_back_at_any_time) {
  char text[] = "layer 3: q * k";
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit options = named(text);
  options.after = &first;
  options.after_count = 1;
  const job behind = submit(options);
  std::memset(text, 'x', sizeof text);
  EXPECT_EQ("layer 3: q * k", label_of(behind));
  gated.open();
  EXPECT_OK(sg_job_wait(behind, SG_FOREVER, nullptr));
  EXPECT_EQ("layer 3: q * k", label_of(behind));
  EXPECT_EQ("", message_of(behind));
  EXPECT_EQ("", label_of(first));
  char two[2];
  EXPECT_OK(sg_job_label(behind, two, sizeof two, nullptr));
  EXPECT_STREQ("l", two);
}

TEST_P(labels, no_label) {
  EXPECT_EQ("", kept(""));
  EXPECT_EQ("", label_of(submit(named(nullptr))));
}

TEST_P(labels, are_truncated_between_characters) {
  const std::string most(SG_LABEL_SIZE - 1, 'a');
  EXPECT_EQ(most, kept(most));
  EXPECT_EQ(most, kept(most + "b"));
  EXPECT_EQ(most, kept(most + std::string(1000, 'b')));
  const std::string two = "\u00e9", three = "\u20ac", four = "\U0001d7d9";
  for (const std::string &character : {two, three, four}) {
    for (std::size_t before = most.size() - character.size(); before <= most.size(); ++before) {
      const std::string start(before, 'a');
      const bool fits = before + character.size() <= most.size();
      EXPECT_EQ(fits ? start + character : start, kept(start + character + "bcdef")) << before << ' ' << character;
    }
  }
  const std::string no_text(100, '\x80');  // not UTF-8
  EXPECT_EQ(std::string(most.size(), '?'), kept(no_text));
}

// So that messages and traces are texts, whatever the application passes.
TEST_P(labels, are_valid_text) {
  EXPECT_EQ("a?b", kept("a\xff"
                        "b"));
  EXPECT_EQ("???", kept("\xed\xa0\x80")) << "a surrogate";
  EXPECT_EQ("??", kept("\xc0\xaf")) << "an overlong '/'";
  EXPECT_EQ("?x", kept("\xe2x")) << "a character without its end";
  EXPECT_EQ("a?b?c", kept("a\ufffe"
                          "b\uffff"
                          "c"))
      << "no characters of XML";
  EXPECT_EQ("\ufffd\u20ac", kept("\ufffd\u20ac"));
}

TEST_P(labels, do_not_stay_in_a_reused_job_record) {
  for (int i = 0; i < 200; ++i) {
    const job with = submit(named("mine"));
    EXPECT_OK(sg_job_wait(with, SG_FOREVER, nullptr));
  }
  for (int i = 0; i < 200; ++i) {
    const job without = submit(named(nullptr));
    EXPECT_EQ("", label_of(without));
    EXPECT_OK(sg_job_wait(without, SG_FOREVER, nullptr));
  }
}

TEST_P(labels, begin_the_message_of_a_failure) {
  queue completions;
  ASSERT_OK(sg_queue_create(context_, nullptr, completions.out()));
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *first = gated.get();
  sg_submit options = named("projection");
  options.after = &first;
  options.after_count = 1;
  options.queue = completions;
  const job failing = submit(options);
  sg_job *second = failing.get();
  options = named(nullptr);
  options.after = &second;
  options.after_count = 1;
  const job unnamed = submit(options);
  options.label = "softmax";
  const job dependent = submit(options);
  ASSERT_OK(sg_job_cancel(failing));
  gated.open();
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(dependent, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(unnamed, SG_FOREVER, nullptr));
  const std::string message = message_of(dependent);
  EXPECT_EQ(0u, message.find("job \"softmax\": ")) << message;
  EXPECT_NE(std::string::npos, message.find("job \"projection\": cancelled")) << message;
  EXPECT_NE(0u, message_of(unnamed).find("job \"")) << message_of(unnamed);
  EXPECT_EQ(0u, message_of(failing).find("job \"projection\": cancelled")) << message_of(failing);
  sg_completion completion;
  std::int32_t n = 0;
  ASSERT_OK(sg_queue_next_batch(completions, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
  EXPECT_EQ(message_of(failing), completion.message);
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(failing, SG_FOREVER, nullptr));
  EXPECT_EQ(message_of(failing), sg_last_error_message());
}

// The children of a graph that is replayed job by job have the labels that they were recorded with.
TEST_P(labels, of_recorded_submissions) {
  owned<sg_graph, sg_graph_release> recorded;
  ASSERT_OK(sg_graph_create(context_, recorded.out()));
  double middle = 0, last = 0;
  sg_submit options = named("first half");
  options.graph = recorded;
  sg_gemm_desc desc = make_gemm(&a_, &b_, &middle, 1, 1, 1);
  ASSERT_OK(sg_gemm_async(context_, &desc, &options, nullptr));
  options.label = "second half";
  desc = make_gemm(&middle, &b_, &last, 1, 1, 1);
  ASSERT_OK(sg_gemm_async(context_, &desc, &options, nullptr));
  desc.alpha.re = 2;
  ASSERT_OK(update_recorded(recorded, 1, SG_OPERATION_GEMM, &desc));  // keeps the label
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit behind = named("parent");
  behind.after = &first;
  behind.after_count = 1;
  job run;
  ASSERT_OK(sg_graph_run_async(recorded, &behind, run.out()));
  EXPECT_EQ("parent", label_of(run));
  ASSERT_OK(sg_job_cancel(run));
  gated.open();
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(run, SG_FOREVER, nullptr));
  const std::string message = message_of(run);
  EXPECT_EQ(0u, message.find("job \"parent\": ")) << message;
  EXPECT_TRUE(message.find("job \"first half\": ") != std::string::npos ||
              message.find("job \"second half\": ") != std::string::npos)
      << message;
}

TEST_P(labels, change_no_result) {
  const sg_submit options = named("one");
  sg_gemm_desc desc = make_gemm(&a_, &b_, &c_, 1, 1, 1);
  ASSERT_OK(sg_gemm(context_, &desc, &options));
  EXPECT_EQ(6, c_);
  double many[300] = {};
  for (double &each : many) {
    desc = make_gemm(&a_, &b_, &each, 1, 1, 1);
    const sg_submit one = named(&each - many < 150 ? "small" : nullptr);
    ASSERT_OK(sg_gemm_async(context_, &desc, &one, nullptr));
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  for (const double each : many) EXPECT_EQ(6, each);
}

// A program compiled before labels existed has other bytes there.
TEST_P(labels, of_an_older_struct_are_not_read) {
  sg_submit options = named(reinterpret_cast<const char *>(std::uintptr_t{16}));
  options.struct_size = offsetof(sg_submit, label);
  EXPECT_EQ("", label_of(submit(options)));
}

ON_EACH_DEVICE(labels);

}  // namespace
}  // namespace sg_test
