// SPDX-License-Identifier: Apache-2.0
// Repeated GEMMs with changes: the submission cache must not carry over from one to another.
#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>

#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t edge = 8;
constexpr std::size_t elements = edge * edge;

class repeats : public on_each_device {
 protected:
  void SetUp() override {
    on_each_device::SetUp();
    for (std::size_t i = 0; i < elements; ++i) {
      a_[i] = static_cast<double>(i % 7);
      b_[i] = static_cast<double>(i % 5) - 2;
    }
  }
  sg_gemm_desc usual() { return make_gemm(a_.data(), b_.data(), c_.data(), edge, edge, edge); }
  // The meaning of the descriptor, in plain loops over the host's memory. Reads C as it is.
  static std::vector<double> meant(const sg_gemm_desc &d) {
    const auto at = [](const sg_matrix &x, std::int64_t row, std::int64_t col) {
      const std::int64_t ld = x.ld != 0 ? x.ld : x.layout == SG_LAYOUT_ROW_MAJOR ? x.cols : x.rows;
      return static_cast<const double *>(x.data)[x.layout == SG_LAYOUT_ROW_MAJOR ? row * ld + col : col * ld + row];
    };
    std::vector<double> result;
    for (std::int64_t i = 0; i < d.c.rows; ++i) {
      for (std::int64_t j = 0; j < d.c.cols; ++j) {
        double sum = 0;
        const std::int64_t depth = d.op_a == SG_TRANSPOSE_N ? d.a.cols : d.a.rows;
        for (std::int64_t k = 0; k < depth; ++k)
          sum += (d.op_a == SG_TRANSPOSE_N ? at(d.a, i, k) : at(d.a, k, i)) *
                 (d.op_b == SG_TRANSPOSE_N ? at(d.b, k, j) : at(d.b, j, k));
        double whole = d.alpha.re * sum + (d.beta.re != 0 ? d.beta.re * at(d.c, i, j) : 0);
        if (d.bias) whole += static_cast<const double *>(d.bias)[d.bias_shape == SG_BIAS_PER_ROW ? i : j];
        result.push_back(d.activation == SG_ACTIVATION_RELU && whole < 0 ? 0 : whole);
      }
    }
    return result;
  }
  static std::vector<double> rows_of(const sg_matrix &x) {
    std::vector<double> result;
    for (std::int64_t i = 0; i < x.rows; ++i)
      for (std::int64_t j = 0; j < x.cols; ++j) {
        const std::int64_t ld = x.ld != 0 ? x.ld : x.layout == SG_LAYOUT_ROW_MAJOR ? x.cols : x.rows;
        result.push_back(
            static_cast<const double *>(x.data)[x.layout == SG_LAYOUT_ROW_MAJOR ? i * ld + j : j * ld + i]);
      }
    return result;
  }
  void check(const char *what, const sg_gemm_desc &desc, sg_context *on = nullptr) {
    std::fill(c_.begin(), c_.end(), 3.0);
    const std::vector<double> expected = meant(desc);
    ASSERT_OK(sg_gemm(on ? on : context_.get(), &desc, nullptr)) << what;
    EXPECT_EQ(expected, rows_of(desc.c)) << what;
  }

  using change = std::function<void(sg_gemm_desc &)>;
  std::vector<std::pair<const char *, change>> changes() {
    return {
        {"nothing", [](sg_gemm_desc &) {}},
        {"other matrices", [&](sg_gemm_desc &x) { x.a.data = d_.data(); }},
        {"A and B the same", [&](sg_gemm_desc &x) { x.a.data = x.b.data; }},
        {"op_a", [](sg_gemm_desc &x) { x.op_a = SG_TRANSPOSE_T; }},
        {"op_b", [](sg_gemm_desc &x) { x.op_b = SG_TRANSPOSE_T; }},
        {"layout of A", [](sg_gemm_desc &x) { x.a.layout = SG_LAYOUT_COLUMN_MAJOR; }},
        {"layout of C", [](sg_gemm_desc &x) { x.c.layout = SG_LAYOUT_COLUMN_MAJOR; }},
        {"alpha", [](sg_gemm_desc &x) { x.alpha.re = -2; }},
        {"alpha 0", [](sg_gemm_desc &x) { x.alpha.re = 0; }},
        {"beta", [](sg_gemm_desc &x) { x.beta.re = 2; }},
        {"alpha 0 and beta", [](sg_gemm_desc &x) { x.alpha.re = 0, x.beta.re = 2; }},
        {"bias", [&](sg_gemm_desc &x) { x.bias = a_.data(); }},
        {"another bias", [&](sg_gemm_desc &x) { x.bias = b_.data() + 1; }},
        {"bias of the rows", [&](sg_gemm_desc &x) { x.bias = a_.data(), x.bias_shape = SG_BIAS_PER_ROW; }},
        {"no bias, of the rows", [&](sg_gemm_desc &x) { x.bias_shape = SG_BIAS_PER_ROW; }},
        {"relu", [](sg_gemm_desc &x) { x.activation = SG_ACTIVATION_RELU; }},
        {"bias and relu", [&](sg_gemm_desc &x) { x.bias = b_.data(), x.activation = SG_ACTIVATION_RELU; }},
        {"bias without a GEMM", [&](sg_gemm_desc &x) { x.bias = a_.data(), x.alpha.re = 0, x.beta.re = 1; }},
        {"ld of A", [](sg_gemm_desc &x) { x.a.ld = edge + 3; }},
        {"ld of C", [](sg_gemm_desc &x) { x.c.ld = edge + 1; }},
        {"depth", [](sg_gemm_desc &x) { x.a.cols = x.b.rows = edge / 2; }},
        {"rows", [](sg_gemm_desc &x) { x.a.rows = x.c.rows = edge / 2; }},
    };
  }
  // Each with a C of its own.
  std::vector<sg_gemm_desc> usual_group(std::size_t count = 3) {
    std::vector<sg_gemm_desc> descs(count, usual());
    for (std::size_t i = 0; i < count; ++i) {
      descs[i].c.data = results_[i].data();
      if (i % 3 == 2) descs[i].op_b = SG_TRANSPOSE_T;
    }
    return descs;
  }
  void check_group(const char *what, const std::vector<sg_gemm_desc> &descs, sg_context *on = nullptr) {
    for (std::vector<double> &result : results_) std::fill(result.begin(), result.end(), 3.0);
    std::vector<std::vector<double>> expected;
    for (const sg_gemm_desc &desc : descs) expected.push_back(meant(desc));
    job all;
    ASSERT_OK(sg_gemm_grouped_async(on ? on : context_.get(), descs.data(), static_cast<std::int32_t>(descs.size()),
                                    nullptr, all.out()))
        << what;
    ASSERT_OK(sg_job_wait(all, SG_FOREVER, nullptr)) << what;
    for (std::size_t i = 0; i < descs.size(); ++i) EXPECT_EQ(expected[i], rows_of(descs[i].c)) << what << ' ' << i;
  }

  std::vector<double> a_ = std::vector<double>(2 * elements), b_ = a_, c_ = a_, d_ = std::vector<double>(elements, 1.5);
  std::vector<std::vector<double>> results_ = std::vector<std::vector<double>>(6, a_);
};

TEST_P(repeats, one_change_at_a_time) {
  for (int round = 0; round < 3; ++round) {
    for (const auto &[what, apply] : changes()) {
      sg_gemm_desc changed = usual();
      apply(changed);
      check(what, changed);
      check(what, changed);
      check("the usual one", usual());
    }
  }
}

TEST_P(repeats, one_change_in_a_group) {
  for (int round = 0; round < 2; ++round) {
    for (const auto &[what, apply] : changes()) {
      for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
        std::vector<sg_gemm_desc> changed = usual_group();
        apply(changed[which]);
        check_group(what, changed);
        check_group(what, changed);
        check_group("the usual one", usual_group());
      }
    }
  }
}

// More groups than the cache holds, cyclically; some start alike.
TEST_P(repeats, many_groups) {
  for (int round = 0; round < 4; ++round) {
    for (std::int64_t i = 0; i < 7; ++i) {
      std::vector<sg_gemm_desc> descs = usual_group();
      const std::size_t other = i % 2 == 0 ? 0 : 2;
      descs[other].a.cols = descs[other].b.rows = 1 + i;
      if (other == 2) descs[2].b = {descs[2].b.data, edge, 1 + i, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
      for (int times = 0; times <= round % 2; ++times) check_group("one of many", descs);
    }
  }
}

TEST_P(repeats, groups_of_other_lengths_and_contexts) {
  const context other = open_context(GetParam());
  for (int round = 0; round < 3; ++round) {
    check_group("three", usual_group());
    check_group("three", usual_group());
    check_group("three in another context", usual_group(), other);
    for (std::size_t count = 6; count > 0; --count) check_group("shorter and shorter", usual_group(count));
    for (std::size_t count = 1; count <= 6; ++count) {
      check_group("longer and longer", usual_group(count));
      check_group("longer and longer", usual_group(count));
    }
  }
}

TEST_P(repeats, errors_in_a_group_are_reported) {
  const auto refused = [&](const char *word, const std::function<void(std::vector<sg_gemm_desc> &)> &spoil) {
    check_group("a right one first", usual_group());
    std::vector<sg_gemm_desc> wrong = usual_group();
    spoil(wrong);
    sg_job *none = reinterpret_cast<sg_job *>(1);
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm_grouped_async(context_, wrong.data(), 3, nullptr, &none));
    EXPECT_EQ(nullptr, none);
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), word)) << sg_last_error_message();
    check_group("a right one after it", usual_group());
  };
  using group = std::vector<sg_gemm_desc>;
  refused("descs[1]->a.data", [](group &x) { x[1].a.data = nullptr; });
  refused("aligned", [](group &x) { x[2].b.data = static_cast<char *>(x[2].b.data) + 4; });
  refused("descs[0]->c overlaps", [&](group &x) { x[0].c.data = a_.data() + elements - 1; });
  refused("descs[2]->c overlaps descs[1]->c", [](group &x) { x[1].c.data = x[2].c.data; });
  refused("descs[2]->c overlaps what descs[0] reads",
          [](group &x) { x[0].a.data = static_cast<double *>(x[2].c.data) + elements - 1; });
  refused("descs[1].struct_size", [](group &x) { x[1].struct_size = 24; });
}

// More shapes than the cache holds, cyclically and each twice in a row.
TEST_P(repeats, many_shapes) {
  for (int round = 0; round < 3; ++round)
    for (std::int64_t m = 1; m <= 6; ++m)
      for (std::int64_t columns = 1; columns <= 6; ++columns)
        for (std::int64_t k = 1; k <= 6; ++k)
          for (int times = 0; times <= round; ++times)
            check("a shape of many", make_gemm(a_.data(), b_.data(), c_.data(), m, columns, k));
}

// Contexts come and go, and a new one may reuse the address of an old one.
TEST_P(repeats, other_contexts) {
  for (int round = 0; round < 5; ++round) {
    for (const char *device : {"cpu", GetParam(), "sim:a100"}) {
      const context other = open_context(device);
      check(device, usual(), other);
      check(device, usual(), other);
      check("the first context", usual());
    }
  }
}

// A plan belongs to the context that the GEMM runs in, not to the one in which an equal GEMM ran before.
TEST_P(repeats, plans_of_other_contexts) {
  const context slow = open_context("sim:pcie3"), fast = open_context("sim:h200");
  const auto predicted = [&](sg_context *on) {
    const sg_gemm_desc desc = usual();
    job done;
    sg_job_statistics seen = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_gemm_async(on, &desc, nullptr, done.out()));
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    EXPECT_OK(sg_job_get_statistics(done, &seen));
    return seen.predicted_seconds;
  };
  const double by_slow = predicted(slow), by_fast = predicted(fast);
  EXPECT_NE(by_slow, by_fast);
  EXPECT_EQ(by_slow, predicted(slow));
  EXPECT_EQ(by_fast, predicted(fast));
}

// The same descriptor with its matrices alternately in device and host memory.
TEST_P(repeats, other_memory) {
  buffer lasting;
  ASSERT_OK(sg_buffer_create(context_, elements * sizeof(double), nullptr, lasting.out()));
  void *there = nullptr, *pinned = nullptr;
  ASSERT_OK(sg_buffer_data(lasting, &there));
  ASSERT_OK(sg_host_alloc(context_, elements * sizeof(double), &pinned));
  std::copy_n(a_.begin(), elements, static_cast<double *>(pinned));
  const std::vector<double> expected = meant(usual());
  for (int round = 0; round < 4; ++round) {
    ASSERT_OK(sg_copy(context_, there, a_.data(), elements * sizeof(double), nullptr));
    for (void *a : {static_cast<void *>(a_.data()), there, pinned}) {
      sg_gemm_desc desc = usual();
      desc.a.data = a;
      std::fill(c_.begin(), c_.end(), -1.0);
      ASSERT_OK(sg_gemm(context_, &desc, nullptr));
      EXPECT_EQ(expected, rows_of(desc.c));
      std::vector<sg_gemm_desc> group = usual_group();
      group[1].a.data = a;
      for (std::vector<double> &result : results_) std::fill(result.begin(), result.end(), -1.0);
      job all;
      ASSERT_OK(sg_gemm_grouped_async(context_, group.data(), 3, nullptr, all.out()));
      ASSERT_OK(sg_job_wait(all, SG_FOREVER, nullptr));
      EXPECT_EQ(expected, rows_of(group[1].c));
    }
  }
  EXPECT_OK(sg_host_free(context_, pinned));
}

TEST_P(repeats, errors_are_reported) {
  const sg_gemm_desc right = usual();
  const auto refused = [&](const char *word, const std::function<void(sg_gemm_desc &)> &spoil) {
    check("a right one first", right);
    sg_gemm_desc wrong = right;
    spoil(wrong);
    job none;
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm_async(context_, &wrong, nullptr, none.out()));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), word)) << sg_last_error_message();
  };
  refused("a.data", [](sg_gemm_desc &x) { x.a.data = nullptr; });
  refused("aligned", [](sg_gemm_desc &x) { x.b.data = static_cast<char *>(x.b.data) + 4; });
  refused("overlaps desc->a", [&](sg_gemm_desc &x) { x.c.data = a_.data() + elements - 1; });
  refused("overlaps desc->b", [&](sg_gemm_desc &x) { x.b.data = x.c.data; });
}

// A run of a plan that no entry remembers leaves the entries of other GEMMs as they are.
TEST_P(repeats, beside_a_plan_that_multiplies_nothing) {
  sg_gemm_desc nothing = usual();
  nothing.alpha.re = 0;
  nothing.beta.re = 2;
  const sg_operation_desc operation = {sizeof operation, SG_OPERATION_GEMM, 1, &nothing};
  owned<sg_plan, sg_plan_release> plan;
  ASSERT_OK(sg_plan_create(context_, &operation, nullptr, plan.out()));
  const auto run_all = [&] {  // more forms than the cache has entries
    for (int i = 1; i <= 100; ++i) {
      sg_gemm_desc desc = usual();
      desc.alpha.re = i;
      ASSERT_OK(sg_gemm(context_, &desc, nullptr));
      EXPECT_EQ(meant(desc), std::vector<double>(c_.begin(), c_.begin() + elements)) << i;
    }
  };
  run_all();
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(sg_plan_run(plan, &operation, nullptr));
    for (int form = 100; form > 36; --form) {
      sg_gemm_desc desc = usual();
      desc.alpha.re = form;
      ASSERT_OK(sg_gemm(context_, &desc, nullptr));
      EXPECT_EQ(meant(desc), std::vector<double>(c_.begin(), c_.begin() + elements)) << form;
    }
  }
}

// Each thread has its own cache; orders and results hold whichever thread submits.
TEST_P(repeats, from_threads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<double> x(elements, t + 1), mine(elements);
      for (int i = 0; i < 50; ++i) {
        sg_gemm_desc desc = usual();
        desc.a.data = x.data();
        desc.c.data = mine.data();
        if (i % 2 == 1) desc.beta.re = 1;
        ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, nullptr));
      }
      ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
      sg_gemm_desc once = usual();
      once.a.data = x.data();
      std::vector<double> expected = meant(once);
      for (double &value : expected) value *= 2;  // one GEMM, and one added to it
      EXPECT_EQ(expected, mine);
    });
  }
  for (std::thread &each : threads) each.join();
}

ON_EACH_DEVICE(repeats);

}  // namespace
}  // namespace sg_test
