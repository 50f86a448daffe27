// SPDX-License-Identifier: Apache-2.0
// Groups: GEMMs of different shapes, types and scalars as one job.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "support/harness.hpp"
#include "support/numbers.hpp"
#include "support/sanitizers.hpp"

namespace sg_test {
namespace {

// One GEMM of a group with its own shape and type, and integer data whose result is exact.
struct member {
  sg_dtype type;
  std::int64_t m, n, k;
  double alpha, beta;
  std::vector<std::uint8_t> a, b, c;
  std::vector<number> expected;

  member(sg_dtype t, std::int64_t m_, std::int64_t n_, std::int64_t k_, double alpha_, double beta_, std::uint64_t seed)
      : type(t), m(m_), n(n_), k(k_), alpha(alpha_), beta(beta_), a(bytes(m * k)), b(bytes(k * n)), c(bytes(m * n)) {
    random_source random(seed);
    for (auto *x : {&a, &b, &c})
      for (std::size_t i = 0; i < x->size(); i += size()) store(type, x->data() + i, random.below(7) - 3);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        number sum = 0;
        for (std::int64_t l = 0; l < k; ++l) sum += at(a, i * k + l) * at(b, l * n + j);
        expected.push_back(static_cast<long double>(alpha) * sum + static_cast<long double>(beta) * at(c, i * n + j));
      }
  }
  std::size_t size() const { return static_cast<std::size_t>(sg_dtype_size(type)); }
  std::size_t bytes(std::int64_t elements) const { return static_cast<std::size_t>(elements) * size(); }
  number at(const std::vector<std::uint8_t> &x, std::int64_t i) const { return load(type, x.data() + bytes(i)); }

  sg_gemm_desc desc() {
    sg_gemm_desc d = SG_GEMM_DESC_INIT;
    d.a = {a.data(), m, k, 0, type, SG_LAYOUT_ROW_MAJOR};
    d.b = {b.data(), k, n, 0, type, SG_LAYOUT_ROW_MAJOR};
    d.c = {c.data(), m, n, 0, type, SG_LAYOUT_ROW_MAJOR};
    d.alpha.re = alpha;
    d.beta.re = beta;
    return d;
  }
  void check() const {
    for (std::int64_t i = 0; i < m * n; ++i) ASSERT_EQ(expected[static_cast<std::size_t>(i)], at(c, i)) << i;
  }
};

class gemm_grouped : public on_each_device {
 protected:
  static std::vector<member> group(int count) {
    constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_C64, SG_DTYPE_C128};
    std::vector<member> members;
    for (int i = 0; i < count; ++i)
      members.emplace_back(types[i % 4], 1 + i % 13, 2 + i % 7, 3 + i % 5, 1.0 + i % 3, i % 2,
                           static_cast<std::uint64_t>(i + 1));
    return members;
  }
};

TEST_P(gemm_grouped, each_its_own_shape_type_and_scalars) {
  for (const int count : {1, 2, 7, 100}) {
    auto members = group(count);
    std::vector<sg_gemm_desc> descs;
    for (member &x : members) descs.push_back(x.desc());
    job handle;
    ASSERT_OK(sg_gemm_grouped_async(context_, descs.data(), count, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    for (const member &x : members) x.check();
  }
}

TEST_P(gemm_grouped, members_without_work) {
  auto members = group(3);
  std::vector<sg_gemm_desc> descs;
  for (member &x : members) descs.push_back(x.desc());
  sg_gemm_desc empty = make_gemm(nullptr, nullptr, nullptr, 0, 0, 0);
  double untouched = 42, operand = 1;
  sg_gemm_desc idle = make_gemm(&operand, &operand, &untouched, 1, 1, 1);
  idle.alpha.re = 0;
  idle.beta.re = 1;
  descs.insert(descs.begin() + 1, {empty, idle});
  job handle;
  ASSERT_OK(
      sg_gemm_grouped_async(context_, descs.data(), static_cast<std::int32_t>(descs.size()), nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  for (const member &x : members) x.check();
  EXPECT_EQ(42, untouched);
}

TEST_P(gemm_grouped, a_batch_inside_a_group) {
  double a[2] = {2, 3}, b[2] = {5, 7}, c[2] = {}, d = 0;
  sg_gemm_desc descs[2] = {make_gemm(a, b, c, 1, 1, 1), make_gemm(a, b, &d, 1, 1, 1)};
  descs[0].batch = 2;
  descs[0].stride_a = descs[0].stride_b = descs[0].stride_c = 1;
  job handle;
  ASSERT_OK(sg_gemm_grouped_async(context_, descs, 2, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  EXPECT_EQ(10, c[0]);
  EXPECT_EQ(21, c[1]);
  EXPECT_EQ(10, d);
}

// A group that uses one operand many times, like attention heads that share their input.
TEST_P(gemm_grouped, shared_inputs) {
  std::vector<double> a(6, 2.0), b(6, 3.0), c(40);
  std::vector<sg_gemm_desc> descs;
  for (int i = 0; i < 10; ++i) descs.push_back(make_gemm(a.data(), b.data(), c.data() + 4 * i, 2, 2, 3));
  job handle;
  ASSERT_OK(sg_gemm_grouped_async(context_, descs.data(), 10, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  EXPECT_EQ(std::vector<double>(40, 18.0), c);
}

// Adjacent results: a reader of one of them waits; a reader of the memory behind the last one does not.
TEST_P(gemm_grouped, only_overlapping_jobs_wait) {
  for (const bool by_pointers : {false, true}) {
    const context wide = open_context(GetParam(), 2);
    gated_job gated(wide);
    SKIP_WITHOUT_GATE(gated);
    std::vector<double> a(10, 2.0), b(10, 3.0), c(11, 5.0);
    std::vector<sg_gemm_desc> descs;
    for (int i = 0; i < 10; ++i) descs.push_back(make_gemm(a.data() + i, b.data() + i, c.data() + i, 1, 1, 1));
    sg_submit options = SG_SUBMIT_INIT;
    sg_job *const first = gated.get();
    options.after = &first;
    options.after_count = 1;
    if (by_pointers) {
      void *pointers[3][10];
      for (int i = 0; i < 10; ++i) {
        pointers[0][i] = descs[std::size_t(i)].a.data;
        pointers[1][i] = descs[std::size_t(i)].b.data;
        pointers[2][i] = descs[std::size_t(i)].c.data;
      }
      sg_gemm_desc batch = descs[0];
      batch.batch = 10;
      batch.a_array = pointers[0];
      batch.b_array = pointers[1];
      batch.c_array = pointers[2];
      ASSERT_OK(sg_gemm_async(wide, &batch, &options, nullptr));
    } else {
      ASSERT_OK(sg_gemm_grouped_async(wide, descs.data(), 10, &options, nullptr));
    }
    double within[10] = {}, behind = 0, one = 1;
    job readers[10], other, writer;
    for (int i = 0; i < 10; ++i) {
      const sg_gemm_desc read = make_gemm(c.data() + i, &one, within + i, 1, 1, 1);
      ASSERT_OK(sg_gemm_async(wide, &read, nullptr, readers[i].out()));
    }
    const sg_gemm_desc read_behind = make_gemm(c.data() + 10, &one, &behind, 1, 1, 1);
    sg_submit urgent = SG_SUBMIT_INIT;  // in its own lane: queued jobs may fill the device's other lanes
    urgent.priority = 1;
    ASSERT_OK(sg_gemm_async(wide, &read_behind, &urgent, other.out()));
    const sg_gemm_desc write_input = make_gemm(&one, &one, a.data() + 9, 1, 1, 1);
    ASSERT_OK(sg_gemm_async(wide, &write_input, nullptr, writer.out()));
    EXPECT_OK(sg_job_wait(other, 60 * std::int64_t{1'000'000'000}, nullptr));
    for (job &reader : readers) EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_query(reader, nullptr));
    EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(writer, 5000000, nullptr));
    gated.open();
    for (job &reader : readers) ASSERT_OK(sg_job_wait(reader, SG_FOREVER, nullptr));
    ASSERT_OK(sg_job_wait(writer, SG_FOREVER, nullptr));
    for (const double x : within) EXPECT_EQ(6, x);
    EXPECT_EQ(5, behind);
    EXPECT_EQ(1, a[9]);
  }
}

// The second member's C is the first one's A, and the reverse; two results at one address.
TEST_P(gemm_grouped, overlap_between_members_is_refused) {
  double x[1] = {1}, y[1] = {2}, z[1] = {3}, w[1] = {4};
  const sg_gemm_desc reads_what_is_written[2] = {make_gemm(x, y, z, 1, 1, 1), make_gemm(z, y, w, 1, 1, 1)};
  const sg_gemm_desc writes_what_is_read[2] = {make_gemm(x, y, z, 1, 1, 1), make_gemm(y, y, x, 1, 1, 1)};
  const sg_gemm_desc writes_twice[2] = {make_gemm(x, y, z, 1, 1, 1), make_gemm(x, x, z, 1, 1, 1)};
  for (const sg_gemm_desc *descs : {reads_what_is_written, writes_what_is_read, writes_twice}) {
    sg_job *handle = reinterpret_cast<sg_job *>(1);
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm_grouped_async(context_, descs, 2, nullptr, &handle));
    EXPECT_EQ(nullptr, handle);
  }
  EXPECT_EQ(3, z[0]);
  EXPECT_EQ(1, x[0]);
}

TEST_P(gemm_grouped, overlap_between_items_of_a_member_is_refused) {
  double x[1] = {1}, y[1] = {2}, z[1] = {3}, w[1] = {4};
  void *const one[2] = {x, x}, *const other[2] = {y, y}, *const same[2] = {z, z};
  sg_gemm_desc descs[2] = {make_gemm(x, y, w, 1, 1, 1), make_gemm(x, y, z, 1, 1, 1)};
  descs[1].batch = 2;
  descs[1].a_array = one;
  descs[1].b_array = other;
  descs[1].c_array = same;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm_grouped_async(context_, descs, 2, nullptr, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "descs[1]->c_array")) << sg_last_error_message();
  EXPECT_EQ(4, w[0]);
}

// Small GEMMs of one type are one launch on the device; injected launch faults count the launches.
class one_launch : public testing::Test {
 protected:
  static constexpr std::size_t count = 100, room = 40;  // elements of each operand

  sg_status run(const char *device, std::uint32_t flags) {
    context_ = open_context(device, 0, flags | SG_CONTEXT_CHECK_HAZARDS);
    std::vector<double> host(3 * count * room), result(count * room, -1);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = double(i % 7) - 3;
    void *memory = nullptr;
    EXPECT_OK(sg_buffer_create(context_, host.size() * sizeof(double), nullptr, buffer_.out()));
    EXPECT_OK(sg_buffer_data(buffer_, &memory));
    auto *data = static_cast<double *>(memory);
    EXPECT_OK(sg_copy_async(context_, data, host.data(), host.size() * sizeof(double), nullptr, nullptr));
    std::vector<sg_gemm_desc> descs;
    const auto at = [](std::size_t operand, std::size_t i) { return (operand * count + i) * room; };
    for (std::size_t i = 0; i < count; ++i)
      descs.push_back(make_gemm(data + at(0, i), data + at(1, i), data + at(2, i), rows(i), cols(i), depth(i)));
    job all;
    EXPECT_OK(sg_gemm_grouped_async(context_, descs.data(), static_cast<std::int32_t>(count), nullptr, all.out()));
    const sg_status status = sg_job_wait(all, SG_FOREVER, nullptr);
    if (status != SG_STATUS_OK) return status;
    sg_job_statistics seen = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(all, &seen));
    EXPECT_EQ(std::int32_t{count}, seen.commands_run);
    seconds_ = double(seen.end_ns - seen.start_ns) * 1e-9;
    predicted_ = seen.predicted_seconds;
    job back;
    EXPECT_OK(
        sg_copy_async(context_, result.data(), data + at(2, 0), result.size() * sizeof(double), nullptr, back.out()));
    EXPECT_OK(sg_job_wait(back, SG_FOREVER, nullptr));
    for (std::size_t p = 0; p < count; ++p)
      for (std::int64_t i = 0; i < rows(p); ++i)
        for (std::int64_t j = 0; j < cols(p); ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < depth(p); ++l)
            sum += host[at(0, p) + std::size_t(i * depth(p) + l)] * host[at(1, p) + std::size_t(l * cols(p) + j)];
          EXPECT_EQ(sum, result[p * room + std::size_t(i * cols(p) + j)]) << p;
        }
    return status;
  }
  static std::int64_t rows(std::size_t i) { return 1 + static_cast<std::int64_t>(i) % 5; }
  static std::int64_t cols(std::size_t i) { return 1 + static_cast<std::int64_t>(i) % 7; }
  static std::int64_t depth(std::size_t i) { return 1 + static_cast<std::int64_t>(i) % 4; }

  context context_;
  buffer buffer_;
  double seconds_ = 0, predicted_ = 0;
};

TEST_F(one_launch, for_all_gemms) { EXPECT_OK(run("sim:h200?fail-launch=2", 0)); }
TEST_F(one_launch, fails_for_all) { EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, run("sim:h200?fail-launch=1", 0)); }
TEST_F(one_launch, that_is_refused_falls_back_to_single_gemms) { EXPECT_OK(run("sim:h200?refuse-launch=1", 0)); }
TEST_F(one_launch, not_without_coalescing) {
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, run("sim:h200?fail-launch=2", SG_CONTEXT_NO_COALESCING));
}
TEST_F(one_launch, takes_the_time_of_one) {
  ASSERT_OK(run("sim:h200", SG_CONTEXT_NO_COALESCING));
  const double unbatched = seconds_;
  ASSERT_OK(run("sim:h200", 0));
  EXPECT_LT(seconds_ * 20, unbatched);
}

// One launch would give each GEMM's depth to one unit while the others idle.
TEST(few_gemms, are_one_launch_unless_their_depth_is_long) {
  constexpr std::int32_t count = 4;
  constexpr std::int64_t deep = 16384;
  const auto run = [&](const char *device, std::int64_t depth, int short_ones) {
    const context in = open_context(device, 0);
    buffer memory;
    void *data = nullptr;
    EXPECT_OK(sg_buffer_create(in, std::size_t(deep + count + short_ones) * sizeof(double), nullptr, memory.out()));
    EXPECT_OK(sg_buffer_data(memory, &data));
    auto *operand = static_cast<double *>(data);
    std::vector<sg_gemm_desc> descs;
    for (int i = 0; i < count + short_ones; ++i)
      descs.push_back(make_gemm(operand, operand, operand + deep + i, 1, 1, i < count ? depth : 4));
    job all;
    EXPECT_OK(sg_gemm_grouped_async(in, descs.data(), count + short_ones, nullptr, all.out()));
    return sg_job_wait(all, SG_FOREVER, nullptr);
  };
  EXPECT_OK(run("sim:h200?fail-launch=2", 4, 0));
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, run("sim:h200?fail-launch=2", deep, 0));
  // Beside a hundred short GEMMs, which are one more launch.
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, run("sim:h200?fail-launch=5", deep, 100));
  EXPECT_OK(run("sim:h200?fail-launch=6", deep, 100));
}

// Kilobytes that the process has mapped at its peak.
long most_mapped() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmPeak:", 0) == 0) return std::stol(line.substr(7));
  return 0;
}

// Exits with 0 when a group of many calls, each of a few GEMMs, maps next to no memory.
[[noreturn]] void run_alternating_types() {
  constexpr std::int64_t count = 8000, n = 16, bytes = n * n * 2;
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 1);  // by default each thread may reserve 64 MiB for its own
#endif
  const context in = open_context("sim:h200");
  buffer memory;
  void *data = nullptr;
  EXPECT_OK(sg_buffer_create(in, std::size_t(3 * count * bytes), nullptr, memory.out()));
  EXPECT_OK(sg_buffer_data(memory, &data));
  std::vector<sg_gemm_desc> descs;
  for (std::int64_t i = 0; i < count; ++i) {
    sg_gemm_desc d = SG_GEMM_DESC_INIT;
    char *const at = static_cast<char *>(data) + 3 * i * bytes;
    const sg_dtype type = i % 8 < 4 ? SG_DTYPE_F16 : SG_DTYPE_BF16;
    d.a = {at, n, n, n, type, SG_LAYOUT_COLUMN_MAJOR};
    d.b = {at + bytes, n, n, n, type, SG_LAYOUT_COLUMN_MAJOR};
    d.c = {at + 2 * bytes, n, n, n, type, SG_LAYOUT_COLUMN_MAJOR};
    descs.push_back(d);
  }
  const long before = most_mapped();
  for (int i = 0; i < 2; ++i) {
    job all;
    EXPECT_OK(sg_gemm_grouped_async(in, descs.data(), std::int32_t{count}, nullptr, all.out()));
    EXPECT_OK(sg_job_wait(all, SG_FOREVER, nullptr));
  }
  const long more = most_mapped() - before;
  std::fprintf(stderr, "%ld kB more\n", more);
  std::_Exit(before > 0 && more < 500'000 && !testing::Test::HasFailure() ? 0 : 1);
}

// Runs in its own process, which has mapped nothing else.
TEST(alternating_types, map_no_memory_per_call) {
  if (sanitized) GTEST_SKIP() << "sanitizers map memory of their own";
#ifdef SG_TEST_STARTS_NO_PROGRAMS
  GTEST_SKIP() << "the emulator cannot start the program again";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_alternating_types(), testing::ExitedWithCode(0), "kB more");
}

ON_EACH_DEVICE(gemm_grouped);

}  // namespace
}  // namespace sg_test
