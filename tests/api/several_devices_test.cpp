// SPDX-License-Identifier: Apache-2.0
// Contexts over several devices of a machine: where work runs, what it may read, and its order. SG_TEST_SEVERAL names
// other devices than the simulated ones, at least two of them: "cuda:0,1".
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <vector>

#include "support/gemm_case.hpp"
#include "support/gemm_plan.h"
#include "support/harness.hpp"

namespace sg_test {
namespace several_devices {
namespace {

using graph = owned<sg_graph, sg_graph_release>;

constexpr std::int64_t side = 24;
constexpr std::uint64_t bytes = side * side * sizeof(double);
using matrix = std::vector<double>;

const char *asked_devices() { return std::getenv("SG_TEST_SEVERAL"); }
const char *several() { return asked_devices() ? asked_devices() : "sim:h200x2"; }

std::int32_t count_of(sg_context *of) {
  std::int32_t count = 0;
  EXPECT_OK(sg_context_device_count(of, &count));
  return count;
}

// What messages say of a device that the context has not.
std::string refusal(const std::string &argument, std::int32_t device, std::int32_t count) {
  return argument + " is " + std::to_string(device) + "; the context's devices are 0 to " + std::to_string(count - 1);
}

struct device_matrix {
  device_matrix(sg_context *of, std::int32_t device, std::uint64_t size = bytes) {
    sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
    options.device = device;
    EXPECT_OK(sg_buffer_create(of, size, &options, memory.out()));
    void *address = nullptr;
    EXPECT_OK(sg_buffer_data(memory, &address));
    data = static_cast<double *>(address);
  }
  buffer memory;
  double *data = nullptr;
};

stream stream_on(sg_context *of, std::int32_t device) {
  sg_stream_options options = SG_STREAM_OPTIONS_INIT;
  options.device = device;
  stream made;
  EXPECT_OK(sg_stream_create(of, &options, made.out()));
  return made;
}

matrix numbers(int first) {
  matrix made(side * side);
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = double((static_cast<int>(i) * 7 + first) % 11) - 5;
  return made;
}

matrix product(const matrix &a, const matrix &b) {
  matrix c(side * side, 0);
  for (std::int64_t i = 0; i < side; ++i)
    for (std::int64_t k = 0; k < side; ++k)
      for (std::int64_t j = 0; j < side; ++j)
        c[std::size_t(i * side + j)] += a[std::size_t(i * side + k)] * b[std::size_t(k * side + j)];
  return c;
}

sg_job_statistics statistics_of(sg_job *of) {
  sg_job_statistics found = SG_JOB_STATISTICS_INIT;
  EXPECT_OK(sg_job_get_statistics(of, &found));
  return found;
}

class context_devices : public testing::Test {
 protected:
  // Submits, waits, and returns the devices that ran it.
  std::uint64_t run(const sg_gemm_desc &desc, const sg_submit *submit = nullptr) {
    job done;
    EXPECT_OK(sg_gemm_async(context_, &desc, submit, done.out()));
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    return statistics_of(done).devices;
  }
  matrix fetch(const double *from) {
    matrix made(side * side);
    EXPECT_OK(sg_copy(context_, made.data(), from, bytes, nullptr));
    return made;
  }
  void put(double *to, const matrix &from) { EXPECT_OK(sg_copy(context_, to, from.data(), bytes, nullptr)); }

  const context context_ = open_context(several());
  const std::int32_t count_ = count_of(context_);
};

TEST_F(context_devices, are_named_and_described) {
  ASSERT_GE(count_, 2);
  for (std::int32_t i = 0; i < count_; ++i) {
    sg_device_info info = SG_DEVICE_INFO_INIT;
    EXPECT_OK(sg_context_get_device_info(context_, i, &info));
    if (!asked_devices()) {
      EXPECT_EQ("sim:h200x2/" + std::to_string(i), info.name);
    }
    EXPECT_OK(sg_context_device_status(context_, i));
  }
  sg_device_info info = SG_DEVICE_INFO_INIT;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_get_device_info(context_, count_, &info));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), refusal("device", count_, count_).c_str()))
      << sg_last_error_message();
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_device_status(context_, -1));
  char text[16384] = "";
  EXPECT_OK(sg_context_machine(context_, text, sizeof text, nullptr));
  if (asked_devices()) return;
  EXPECT_NE(nullptr, std::strstr(text, "\"peers\""));
  EXPECT_NE(nullptr, std::strstr(text, "\"shared\""));
}

TEST_F(context_devices, have_buffers_that_copy_to_each_other) {
  const device_matrix on[] = {{context_, 0}, {context_, 1}, {context_, 0}};
  std::int32_t device = -1;
  EXPECT_OK(sg_buffer_device(on[1].memory, &device));
  EXPECT_EQ(1, device);
  sg_memory_kind kind{};
  EXPECT_OK(sg_context_memory_kind(context_, on[1].data, bytes, &kind));
  EXPECT_EQ(SG_MEMORY_DEVICE, kind);
  const matrix given = numbers(3);
  put(on[0].data, given);
  EXPECT_OK(sg_copy(context_, on[1].data, on[0].data, bytes, nullptr));
  EXPECT_OK(sg_copy(context_, on[2].data, on[1].data, bytes, nullptr));
  EXPECT_EQ(given, fetch(on[1].data));
  EXPECT_EQ(given, fetch(on[2].data));
  // The right half of each row.
  const matrix other = numbers(8);
  put(on[1].data, other);
  job done;
  EXPECT_OK(sg_copy_2d_async(context_, on[0].data + side / 2, side * 8, on[1].data + side / 2, side * 8, side * 4, side,
                             nullptr, done.out()));
  EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(1u, statistics_of(done).devices) << "where the destination is";
  const matrix mixed = fetch(on[0].data);
  for (std::int64_t i = 0; i < side * side; ++i)
    ASSERT_EQ(i % side < side / 2 ? given[std::size_t(i)] : other[std::size_t(i)], mixed[std::size_t(i)]) << i;
}

TEST_F(context_devices, have_pinned_memory_near_them) {
  for (std::int32_t device = -1; device < count_; ++device) {
    void *memory = nullptr;
    ASSERT_OK(sg_host_alloc_near(context_, device, 5000, &memory));
    EXPECT_EQ(0u, reinterpret_cast<std::uintptr_t>(memory) % 4096);
    std::memset(memory, 1, 5000);
    sg_memory_kind kind = SG_MEMORY_PAGEABLE;
    EXPECT_OK(sg_context_memory_kind(context_, memory, 5000, &kind));
    EXPECT_EQ(SG_MEMORY_PINNED, kind);
    EXPECT_OK(sg_host_free(context_, memory));
  }
  for (const std::int32_t device : {-2, count_}) {
    void *memory = this;
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_host_alloc_near(context_, device, 5000, &memory));
    EXPECT_EQ(nullptr, memory);
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), refusal("device", device, count_).c_str()))
        << sg_last_error_message();
  }
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_host_alloc_near(context_, 0, 5000, nullptr));
}

TEST_F(context_devices, wrong_ones_are_refused_by_name) {
  buffer made;
  sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
  options.device = count_;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_buffer_create(context_, 16, &options, made.out()));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), refusal("options->device", count_, count_).c_str()))
      << sg_last_error_message();
  options.device = SG_DEVICE_ANY;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_buffer_create(context_, 16, &options, made.out()));
  options.device = 0;
  options.reserved = 1;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_buffer_create(context_, 16, &options, made.out()));
  options.reserved = 0;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_buffer_create(context_, 0, &options, made.out()));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "bytes is 0"));
  stream in;
  sg_stream_options wrong = SG_STREAM_OPTIONS_INIT;
  wrong.device = 70;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_stream_create(context_, &wrong, in.out()));
  EXPECT_NE(nullptr,
            std::strstr(sg_last_error_message(), (refusal("options->device", 70, count_) + ", and -1").c_str()))
      << sg_last_error_message();
  wrong.device = 0;
  wrong.priority = 5;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_stream_create(context_, &wrong, in.out()));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "options->priority is 5"));
  for (const char *name : {"sim:h200x2,a100", "sim:h200,h200", "cpu:0,1"}) {
    sg_context_options of = SG_CONTEXT_OPTIONS_INIT;
    of.device = name;
    context none;
    EXPECT_NE(SG_STATUS_OK, sg_context_create(&of, none.out())) << name;
  }
}

TEST_F(context_devices, run_a_gemm_where_its_operands_are) {
  const matrix a = numbers(1), b = numbers(2), expected = product(a, b);
  for (std::int32_t device : {0, 1}) {
    const device_matrix on_a(context_, device), on_b(context_, device), on_c(context_, device);
    put(on_a.data, a);
    put(on_b.data, b);
    EXPECT_EQ(1u << device, run(make_gemm(on_a.data, on_b.data, on_c.data, side, side, side)));
    EXPECT_EQ(expected, fetch(on_c.data));
    matrix c(side * side);
    EXPECT_EQ(1u << device, run(make_gemm(a.data(), on_b.data, c.data(), side, side, side))) << "two on the host";
    EXPECT_EQ(expected, c);
  }
}

TEST_F(context_devices, run_a_gemm_of_both_where_the_result_is) {
  const matrix a = numbers(4), b = numbers(5), expected = product(a, b);
  for (std::uint32_t where = 0; where < 8; ++where) {
    const device_matrix on_a(context_, where & 1), on_b(context_, where >> 1 & 1), on_c(context_, where >> 2 & 1);
    put(on_a.data, a);
    put(on_b.data, b);
    EXPECT_EQ(1u << (where >> 2 & 1), run(make_gemm(on_a.data, on_b.data, on_c.data, side, side, side))) << where;
    EXPECT_EQ(expected, fetch(on_c.data)) << where;
    // In a stream of the other device.
    const stream other = stream_on(context_, 1 - static_cast<std::int32_t>(where >> 2 & 1));
    sg_submit submit = SG_SUBMIT_INIT;
    submit.stream = other;
    EXPECT_EQ(2u >> (where >> 2 & 1), run(make_gemm(on_b.data, on_a.data, on_c.data, side, side, side), &submit));
    EXPECT_EQ(product(b, a), fetch(on_c.data)) << where;
  }
}

TEST_F(context_devices, keep_the_work_of_a_stream) {
  const stream on_second = stream_on(context_, 1), anywhere = stream_on(context_, SG_DEVICE_ANY);
  std::int32_t device = 0;
  EXPECT_OK(sg_stream_device(on_second, &device));
  EXPECT_EQ(1, device);
  EXPECT_OK(sg_stream_device(anywhere, &device));
  EXPECT_EQ(SG_DEVICE_ANY, device);
  const matrix a = numbers(6), b = numbers(7);
  matrix c(side * side);
  sg_submit submit = SG_SUBMIT_INIT;
  submit.stream = on_second;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(2u, run(make_gemm(a.data(), b.data(), c.data(), side, side, side), &submit));
  EXPECT_EQ(product(a, b), c);
}

TEST_F(context_devices, share_host_resident_work) {
  const matrix a = numbers(6), b = numbers(7);
  std::vector<matrix> results(16, matrix(side * side));
  std::vector<job> jobs(results.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const sg_gemm_desc desc = make_gemm(a.data(), b.data(), results[i].data(), side, side, side);
    EXPECT_OK(sg_gemm_async(context_, &desc, nullptr, jobs[i].out()));
  }
  std::size_t on_second = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_OK(sg_job_wait(jobs[i], SG_FOREVER, nullptr));
    EXPECT_EQ(product(a, b), results[i]);
    on_second += statistics_of(jobs[i]).devices == 2;
  }
  // In real time each job may have ended before the next is submitted.
  if (!asked_devices()) {
    EXPECT_EQ(jobs.size() / 2, on_second) << "equal devices take turns";
  }
}

TEST_F(context_devices, run_layers_where_their_operands_are_and_refuse_both) {
  const matrix given = numbers(2);
  const device_matrix first(context_, 0), x(context_, 1), y(context_, 1);
  put(x.data, given);
  const auto view = [](double *data) { return sg_matrix{data, side, side, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR}; };
  sg_axpby_desc add = SG_AXPBY_DESC_INIT;
  add.alpha = {2, 0};
  add.beta = {0, 0};
  add.a = view(x.data);
  add.c = view(y.data);
  job done;
  ASSERT_OK(sg_axpby_async(context_, &add, nullptr, done.out()));
  EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(2u, statistics_of(done).devices);
  const matrix doubled = fetch(y.data);
  for (std::size_t i = 0; i < given.size(); ++i) ASSERT_EQ(2 * given[i], doubled[i]);
  add.c = view(first.data);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_axpby_async(context_, &add, nullptr, nullptr));
  const std::string both = sg_last_error_message();
  EXPECT_NE(std::string::npos, both.find("desc->a")) << both;
  EXPECT_NE(std::string::npos, both.find("desc->c")) << both;
  EXPECT_NE(std::string::npos, both.find("of device 1")) << both;
  const stream in = stream_on(context_, 0);
  sg_submit submit = SG_SUBMIT_INIT;
  submit.stream = in;
  add.c = view(y.data);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_axpby_async(context_, &add, &submit, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "submit->stream is of device 0"));
}

TEST_F(context_devices, run_functions_where_their_operands_are_and_refuse_both) {
  const device_matrix first(context_, 0), x(context_, 1), y(context_, 1);
  matrix host(side * side);
  sg_custom_operand operands[] = {
      {x.data, bytes, SG_ACCESS_READ}, {host.data(), bytes, SG_ACCESS_READ, 0}, {y.data, bytes, SG_ACCESS_WRITE, 0}};
  sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
  int calls = 0;
  desc.function = [](const sg_custom_call *, void *user) {
    ++*static_cast<int *>(user);
    return SG_STATUS_OK;
  };
  desc.user = &calls;
  desc.operands = operands, desc.operand_count = 3;
  job done;
  ASSERT_OK(sg_custom_async(context_, &desc, nullptr, done.out()));
  EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(2u, statistics_of(done).devices);
  EXPECT_EQ(1, calls);
  operands[2].data = first.data;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_custom_async(context_, &desc, nullptr, nullptr));
  const std::string both = sg_last_error_message();
  EXPECT_NE(std::string::npos, both.find("desc->operands[0].data")) << both;
  EXPECT_NE(std::string::npos, both.find("desc->operands[2].data")) << both;
}

TEST_F(context_devices, refuse_pointer_arrays_of_both) {
  const device_matrix on[] = {{context_, 0}, {context_, 1}}, result(context_, 0, 2 * bytes);
  void *const items[] = {on[0].data, on[1].data};
  sg_gemm_desc desc = make_gemm(nullptr, on[0].data, result.data, side, side, side);
  desc.batch = 2;
  desc.stride_c = side * side;
  desc.a_array = items;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm_async(context_, &desc, nullptr, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "mixes memory of devices 0 and 1"))
      << sg_last_error_message();
}

// Random chains of products and copies over the memory of both devices and of the host, tracked by address.
TEST_F(context_devices, order_conflicting_jobs) {
  constexpr std::size_t places = 6;
  std::vector<device_matrix> on;
  for (std::size_t i = 0; i < 4; ++i) on.emplace_back(context_, static_cast<std::int32_t>(i % 2));
  std::vector<matrix> host(2, numbers(1));
  std::vector<matrix> expected;
  double *address[places];
  for (std::size_t i = 0; i < places; ++i) {
    address[i] = i < 4 ? on[i].data : host[i - 4].data();
    expected.push_back(numbers(static_cast<int>(i)));
    EXPECT_OK(sg_copy(context_, address[i], expected[i].data(), bytes, nullptr));
  }
  std::mt19937 random(7);
  for (int step = 0; step < 300; ++step) {
    const std::size_t to = random() % places, x = random() % places, y = random() % places;
    if (to == x || to == y) continue;
    const bool multiplies = random() % 3 == 0;
    if (multiplies) {
      const sg_gemm_desc desc = make_gemm(address[x], address[y], address[to], side, side, side);
      EXPECT_OK(sg_gemm_async(context_, &desc, nullptr, nullptr));
      expected[to] = product(expected[x], expected[y]);
      for (double &each : expected[to]) each = std::fmod(each, 1e6);
    } else {
      EXPECT_OK(sg_copy_async(context_, address[to], address[x], bytes, nullptr, nullptr));
      expected[to] = expected[x];
    }
    // Keeps the numbers small: a product is replaced by the copy of a small one.
    if (multiplies) {
      const matrix small = numbers(step);
      EXPECT_OK(sg_copy(context_, address[x], small.data(), bytes, nullptr));
      EXPECT_EQ(expected[to], fetch(address[to])) << "step " << step;
      EXPECT_OK(sg_copy(context_, address[to], small.data(), bytes, nullptr));
      expected[x] = expected[to] = small;
    }
  }
  for (std::size_t i = 0; i < places; ++i) EXPECT_EQ(expected[i], fetch(address[i])) << i;
}

TEST_F(context_devices, replay_a_graph_of_both) {
  const matrix a = numbers(3), b = numbers(9);
  const device_matrix x(context_, 1), y(context_, 1), z(context_, 0);
  put(y.data, b);
  graph recorded;
  ASSERT_OK(sg_graph_create(context_, recorded.out()));
  sg_submit submit = SG_SUBMIT_INIT;
  submit.graph = recorded;
  const sg_gemm_desc first = make_gemm(a.data(), y.data, x.data, side, side, side);
  EXPECT_OK(sg_gemm_async(context_, &first, &submit, nullptr));
  EXPECT_OK(sg_copy_async(context_, z.data, x.data, bytes, &submit, nullptr));
  for (int i = 0; i < 3; ++i) {
    put(z.data, a);
    job done;
    ASSERT_OK(sg_graph_run_async(recorded, nullptr, done.out()));
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    EXPECT_EQ(3u, statistics_of(done).devices);
    EXPECT_EQ(product(a, b), fetch(z.data));
  }
}

// --- One GEMM on several devices ---

gemm_case on_several(std::int64_t m, std::int64_t n, std::int64_t k, std::int32_t count) {
  gemm_case what;
  what.in = what.out = SG_DTYPE_F32;
  what.m = m, what.n = n, what.k = k;
  what.integers = true;
  what.options.device_count = count;
  return what;
}

void expect_on(sg_context *context, gemm_case what, std::int32_t count) {
  for (const sg_memory_kind place : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE}) {
    what.place_a = what.place_b = what.place_c = what.place_bias = place;
    sg_job_statistics found = SG_JOB_STATISTICS_INIT;
    EXPECT_EQ("", run_gemm_case(context, what, &found)) << what.text();
    EXPECT_EQ((1u << count) - 1, found.devices) << what.text() << " " << found.strategy;
  }
}

// As a step of data-parallel training: work on each device, a sum over both, more work on each.
TEST_F(context_devices, run_a_graph_of_both_as_one) {
  const matrix weights = numbers(4), start = numbers(6);
  std::vector<matrix> inputs = {numbers(1), numbers(2)};
  std::vector<std::unique_ptr<device_matrix>> x, w, g, y;
  graph recorded;
  ASSERT_OK(sg_graph_create(context_, recorded.out()));
  sg_submit submit = SG_SUBMIT_INIT;
  submit.graph = recorded;
  void *sums[2];
  for (int d = 0; d < 2; ++d) {
    for (auto *each : {&x, &w, &g, &y}) each->push_back(std::make_unique<device_matrix>(context_, d));
    put(x[d]->data, inputs[d]);
    put(w[d]->data, weights);
    put(y[d]->data, start);
    sums[d] = g[d]->data;
    const sg_gemm_desc work = make_gemm(x[d]->data, w[d]->data, g[d]->data, side, side, side);
    ASSERT_OK(sg_gemm_async(context_, &work, &submit, nullptr));
  }
  sg_all_reduce_desc sum = SG_ALL_REDUCE_DESC_INIT;
  sum.operands = sums;
  sum.operand_count = 2;
  sum.elements = side * side;
  sum.dtype = SG_DTYPE_F64;
  ASSERT_OK(sg_all_reduce_async(context_, &sum, &submit, nullptr));
  for (int d = 0; d < 2; ++d) {
    sg_axpby_desc add = SG_AXPBY_DESC_INIT;
    add.a = {g[d]->data, side, side, side, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
    add.c = {y[d]->data, side, side, side, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
    add.beta.re = 1;
    ASSERT_OK(sg_axpby_async(context_, &add, &submit, nullptr));
  }
  const matrix first = product(inputs[0], weights), second = product(inputs[1], weights);
  matrix expected = start;
  for (int run = 1; run <= 4; ++run) {
    job done;
    ASSERT_OK(sg_graph_run_async(recorded, nullptr, done.out()));
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr)) << sg_last_error_message();
    const sg_job_statistics seen = statistics_of(done);
    EXPECT_EQ(3u, seen.devices);
    EXPECT_GT(seen.bytes_peer, 0u);
    if (std::strncmp(several(), "cuda", 4) == 0) {
      EXPECT_STREQ("graph of the device", seen.strategy) << "launched by one call";
    }
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += first[i] + second[i];
    for (int d = 0; d < 2; ++d) EXPECT_EQ(expected, fetch(y[d]->data)) << "run " << run << ", device " << d;
  }
  // What a device computes next has the graph's results, and the graph what was copied before.
  put(y[0]->data, start);
  ASSERT_OK(sg_graph_run_async(recorded, nullptr, nullptr));
  const sg_gemm_desc next = make_gemm(y[1]->data, w[1]->data, x[1]->data, side, side, side);
  EXPECT_OK(sg_gemm(context_, &next, nullptr));
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += first[i] + second[i];
  EXPECT_EQ(product(expected, weights), fetch(x[1]->data));
}

TEST(gemms_on_several_devices, have_the_values_of_one) {
  for (const char *name : {several(), "sim:h200x4", "sim:pcie4x2", "sim:unequal2"}) {
    if (asked_devices() && name != several()) continue;
    const context machine = open_context(name);
    const std::int32_t count = count_of(machine);
    expect_on(machine, on_several(100, 100 * count, 77, count), count);
    if (count > 2) continue;
    expect_on(machine, on_several(300, 40, 200, count), count);
    gemm_case what = on_several(130, 260, 150, count);
    what.op_a = SG_TRANSPOSE_T, what.op_b = SG_TRANSPOSE_T, what.pad = 5, what.beta = {2, 0}, what.alpha = {-1, 0};
    expect_on(machine, what, count);
    what.layout_a = what.layout_c = SG_LAYOUT_COLUMN_MAJOR;
    what.has_bias = true;
    what.activation = SG_ACTIVATION_RELU;
    expect_on(machine, what, count);
    gemm_case batch = on_several(96, 130, 64, count);
    batch.form = batch_form::strided, batch.batch = 9;
    expect_on(machine, batch, count);
    batch.form = batch_form::shared_a;
    expect_on(machine, batch, count);
  }
}

// 2, unless the devices under test differ so much that the planner leaves one out.
int planned_devices(sg_context *machine, const sg_gemm_desc &desc, const sg_plan_options &options) {
  plan made;
  EXPECT_OK(create_gemm_plan(machine, &desc, &options, made.out()));
  sg_plan_prediction says = SG_PLAN_PREDICTION_INIT;
  EXPECT_OK(sg_plan_get_prediction(made, &says));
  if (!asked_devices()) {
    EXPECT_EQ(2, says.devices);
  }
  return says.devices;
}

TEST(gemms_on_several_devices, run_at_the_same_time_and_again) {
  const context machine = open_context(several());
  constexpr std::int64_t n = 256;
  std::vector<double> a(n * n), b(n * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = double(i % 5), b[i] = double(i % 3);
  std::vector<std::vector<double>> c(6, std::vector<double>(n * n));
  std::vector<job> jobs(c.size());
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.device_count = 2;
  const int planned = planned_devices(machine, make_gemm(a.data(), b.data(), c[0].data(), n, n, n), options);
  sg_submit submit = SG_SUBMIT_INIT;
  submit.plan = &options;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < c.size(); ++i) {
      const sg_gemm_desc desc = make_gemm(a.data(), b.data(), c[i].data(), n, n, n);
      EXPECT_OK(sg_gemm_async(machine, &desc, &submit, jobs[i].out()));
    }
    for (job &each : jobs) {
      EXPECT_OK(sg_job_wait(each, SG_FOREVER, nullptr));
      const sg_job_statistics found = statistics_of(each);
      EXPECT_EQ(planned, std::popcount(found.devices));
      EXPECT_EQ(found.commands, found.commands_run);
    }
    for (std::size_t i = 1; i < c.size(); ++i) EXPECT_EQ(c[0], c[i]);
    for (const std::size_t at : {std::size_t{0}, c[0].size() / 2 + 7, c[0].size() - 1}) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += a[at / n * n + k] * b[k * n + at % n];
      EXPECT_EQ(sum, c[0][at]);
    }
    for (auto &each : c) std::fill(each.begin(), each.end(), -1);
  }
}

// The planner's own choice, of sizes that nobody computes: a device that stores nothing.
TEST(gemms_on_several_devices, are_the_planner_s_choice_where_they_are_faster) {
  if (asked_devices()) GTEST_SKIP() << "other devices are under test";
  const auto seconds = [](const char *name, std::int64_t n, std::uint64_t &devices, double &predicted) {
    const context machine = open_context(name, 0, 0);
    // Addresses that no device reads.
    void *memory = nullptr;
    EXPECT_OK(sg_host_alloc(machine, std::uint64_t(3 * n * n * 4), &memory));
    auto *const data = static_cast<float *>(memory);
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.a = {data, n, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    desc.b = {data + n * n, n, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    desc.c = {data + 2 * n * n, n, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    job done;
    EXPECT_OK(sg_gemm_async(machine, &desc, nullptr, done.out()));
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    const sg_job_statistics found = statistics_of(done);
    devices = found.devices;
    predicted = found.predicted_seconds;
    return double(found.end_ns - found.start_ns) * 1e-9;
  };
  std::uint64_t devices = 0;
  double predicted = 0, alone = 0;
  const double one = seconds("sim:h200?timing-only", 8192, devices, alone);
  EXPECT_EQ(1u, devices);
  const double two = seconds("sim:h200x2?timing-only", 8192, devices, predicted);
  EXPECT_EQ(3u, devices);
  EXPECT_LT(two, 0.6 * one);
  EXPECT_NEAR(predicted, two, 0.15 * predicted);
  seconds("sim:h200x2?timing-only", 512, devices, predicted);
  EXPECT_TRUE(devices == 1 || devices == 2) << "less than a millisecond on one: " << devices;
}

// Of three devices the second is much slower than the others: the plan leaves it out, and its text and the log say so.
TEST(gemms_on_several_devices, leave_out_a_slow_device_and_name_it) {
  const std::string file =
      std::filesystem::temp_directory_path() / ("sg-unequal-" + std::to_string(getpid()) + ".json");
  std::ofstream(file) << R"({"name": "odd3", "devices": [{"model": "h200"}, {"model": "c1060"}, {"model": "h200"}],
    "peers": [{"between": [0, 2], "class": "nvlink", "bytes_per_second": 392e9}]})";
  std::vector<std::string> logged;
  const auto keep = [](sg_log_level, const char *, const char *message, void *user) {
    static_cast<std::vector<std::string> *>(user)->push_back(message);
  };
  EXPECT_OK(sg_log_set(SG_LOG_INFO, keep, &logged));
  {
    const context machine = open_context(("sim:" + file).c_str());
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    options.devices = 7;
    options.place_a = options.place_b = options.place_c = SG_MEMORY_PINNED;
    constexpr std::int64_t n = 16384;
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.a = desc.b = desc.c = {nullptr, n, n, n, SG_DTYPE_F32, SG_LAYOUT_COLUMN_MAJOR};
    sg_plan *plan = nullptr;
    ASSERT_OK(create_gemm_plan(machine, &desc, &options, &plan));
    std::string text(std::size_t{1} << 20, '\0');
    EXPECT_OK(sg_plan_describe(plan, SG_PLAN_FORMAT_TEXT, text.data(), text.size(), nullptr));
    EXPECT_NE(std::string::npos, text.find("left out: 1 (c1060): slow, its share of the work would be ")) << text;
    sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
    EXPECT_OK(sg_plan_get_prediction(plan, &prediction));
    EXPECT_EQ(2, prediction.devices);
    EXPECT_NE(std::string::npos, text.find(" 2 (h200, ")) << text;
    EXPECT_OK(sg_plan_release(plan));
  }
  EXPECT_OK(sg_log_set(SG_LOG_OFF, nullptr, nullptr));
  EXPECT_EQ(1, std::ranges::count_if(logged, [](const std::string &each) {
              return each.starts_with("left out: 1 (c1060): slow, its share of the work would be ");
            }));
  std::filesystem::remove(file);
}

TEST(gemms_on_several_devices, run_by_a_plan_made_ahead) {
  const context machine = open_context(several());
  constexpr std::int64_t n = 256;
  std::vector<double> a(n * n, 1), b(n * n, 2), c(n * n);
  const sg_gemm_desc desc = make_gemm(a.data(), b.data(), c.data(), n, n, n);
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.device_count = 2;
  const int planned = planned_devices(machine, desc, options);
  plan made;
  ASSERT_OK(create_gemm_plan(machine, &desc, &options, made.out()));
  sg_plan_prediction says = SG_PLAN_PREDICTION_INIT;
  EXPECT_OK(sg_plan_get_prediction(made, &says));
  const auto bytes_on = [&](std::int32_t device) {
    std::uint64_t found = 1;
    EXPECT_OK(sg_plan_device_size(made, device, &found));
    return found;
  };
  std::uint64_t most = 0;
  int with_memory = 0;
  for (std::int32_t device = 0; device < count_of(machine); ++device) {
    most = std::max(most, bytes_on(device));
    with_memory += bytes_on(device) > 0;
  }
  EXPECT_EQ(says.device_bytes, most);
  EXPECT_EQ(planned, with_memory);
  std::uint64_t none = 1;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_plan_device_size(made, count_of(machine), &none));
  EXPECT_EQ(0u, none);
  for (int i = 0; i < 2; ++i) {
    job done;
    ASSERT_OK(run_gemm_plan(made, &desc, nullptr, done.out()));
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    EXPECT_EQ(planned, std::popcount(statistics_of(done).devices));
    EXPECT_EQ(std::vector<double>(n * n, 2.0 * n), c);
    std::fill(c.begin(), c.end(), 0);
  }
  // Of one of them.
  options.device_count = 0;
  options.devices = 2;
  ASSERT_OK(create_gemm_plan(machine, &desc, &options, made.out()));
  EXPECT_EQ(0u, bytes_on(0));
  EXPECT_GT(bytes_on(1), 0u);
  job done;
  ASSERT_OK(run_gemm_plan(made, &desc, nullptr, done.out()));
  EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(2u, statistics_of(done).devices);
  EXPECT_EQ(std::vector<double>(n * n, 2.0 * n), c);
  // Also in a stream of the other device, whose reserved compute units it does not use.
  sg_stream_options options_of_stream = SG_STREAM_OPTIONS_INIT;
  options_of_stream.device = 0, options_of_stream.compute_units = 4;
  stream in;
  ASSERT_OK(sg_stream_create(machine, &options_of_stream, in.out()));
  sg_submit submit = SG_SUBMIT_INIT, with_options = SG_SUBMIT_INIT;
  submit.stream = with_options.stream = in;
  with_options.plan = &options;
  job there, planned_there;
  std::fill(c.begin(), c.end(), 0);
  ASSERT_OK(run_gemm_plan(made, &desc, &submit, there.out()));
  ASSERT_OK(sg_gemm_async(machine, &desc, &with_options, planned_there.out()));
  for (const job *each : {&there, &planned_there}) {
    EXPECT_OK(sg_job_wait(*each, SG_FOREVER, nullptr));
    EXPECT_EQ(2u, statistics_of(*each).devices);
  }
  EXPECT_EQ(std::vector<double>(n * n, 2.0 * n), c);
}

TEST(copies_on_several_devices, run_by_a_plan_of_their_device) {
  const context machine = open_context(several());
  const matrix host = numbers(4);
  const device_matrix x(machine, 0), y(machine, 1);
  sg_copy_desc desc = SG_COPY_DESC_INIT;
  desc.src = host.data(), desc.width = bytes, desc.height = 1;
  const sg_operation_desc copy = {sizeof copy, SG_OPERATION_COPY, 1, &desc};
  plan made;
  ASSERT_OK(sg_plan_create(machine, &copy, nullptr, made.out()));
  desc.dst = y.data;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_plan_run_async(made, &copy, nullptr, nullptr)) << "it is of device 0";
  desc.dst = x.data;
  job done;
  ASSERT_OK(sg_plan_run_async(made, &copy, nullptr, done.out()));
  EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
}

TEST(operations_on_several_devices, run_by_a_plan_made_ahead) {
  const context machine = open_context(several());
  const matrix a = numbers(4), b = numbers(5);
  const device_matrix x(machine, 0), y(machine, 1);
  EXPECT_OK(sg_copy(machine, x.data, a.data(), bytes, nullptr));
  EXPECT_OK(sg_copy(machine, y.data, b.data(), bytes, nullptr));
  void *vectors[] = {x.data, y.data};
  sg_all_reduce_desc desc = SG_ALL_REDUCE_DESC_INIT;
  desc.operands = vectors, desc.operand_count = 2, desc.elements = side * side, desc.dtype = SG_DTYPE_F64;
  const sg_operation_desc sum = {sizeof sum, SG_OPERATION_ALL_REDUCE, 1, &desc};
  plan made;
  sg_plan_prediction says = SG_PLAN_PREDICTION_INIT;
  ASSERT_OK(sg_plan_create(machine, &sum, nullptr, made.out()));
  EXPECT_OK(sg_plan_get_prediction(made, &says));
  EXPECT_EQ(2, says.devices);
  EXPECT_GT(says.bytes_peer, 0u);
  job done;
  ASSERT_OK(sg_plan_run_async(made, &sum, nullptr, done.out()));
  EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  matrix result(a.size());
  EXPECT_OK(sg_copy(machine, result.data(), y.data, bytes, nullptr));
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i] + b[i], result[i]);
}

// Repeated runs, which are not checked as a whole, are refused like the first.
TEST(operations_on_several_devices, refuse_a_stream_of_another_device_each_time) {
  context on;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = several();
  ASSERT_OK(sg_context_create(&options, on.out()));
  const device_matrix x(on, 0), y(on, 0);
  sg_axpby_desc desc = SG_AXPBY_DESC_INIT;
  desc.a = {x.data, side, side, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  desc.c = {y.data, side, side, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  sg_operation_desc operation = SG_OPERATION_DESC_INIT;
  operation.operation = SG_OPERATION_AXPBY;
  operation.desc = &desc;
  plan made;
  ASSERT_OK(sg_plan_create(on, &operation, nullptr, made.out()));
  const stream other = stream_on(on, 1);
  sg_submit submit = SG_SUBMIT_INIT;
  submit.stream = other;
  for (int i = 0; i < 3; ++i) {
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_plan_run(made, &operation, &submit)) << i;
    EXPECT_OK(sg_plan_run(made, &operation, nullptr));
  }
}

TEST(gemms_on_several_devices, run_by_a_plan_of_memory_of_both) {
  const context machine = open_context(several());
  const matrix a = numbers(4), b = numbers(5);
  const device_matrix x(machine, 0), y(machine, 1), z(machine, 1), other(machine, 0);
  EXPECT_OK(sg_copy(machine, x.data, a.data(), bytes, nullptr));
  sg_gemm_desc desc = make_gemm(x.data, b.data(), z.data, side, side, side);
  plan made;
  ASSERT_OK(create_gemm_plan(machine, &desc, nullptr, made.out()));
  job done;
  ASSERT_OK(run_gemm_plan(made, &desc, nullptr, done.out()));
  EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(2u, statistics_of(done).devices);
  matrix c(side * side);
  EXPECT_OK(sg_copy(machine, c.data(), z.data, bytes, nullptr));
  EXPECT_EQ(product(a, b), c);
  for (const auto &[read, written] : {std::pair{y.data, z.data}, std::pair{x.data, other.data}}) {
    desc.a.data = read, desc.c.data = written;
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, run_gemm_plan(made, &desc, nullptr, nullptr));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "differs from the plan in its memory of the operands"))
        << sg_last_error_message();
  }
}

// Runs of one device and of both want the same memory, of which there is little.
TEST(gemms_on_several_devices, wait_for_memory_of_each_other) {
  if (asked_devices()) GTEST_SKIP() << "other devices are under test";
  const context machine = open_context("sim:h200x2?memory=2MiB");
  constexpr std::int64_t n = 160;
  std::vector<double> a(n * n), b(n * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = double(i % 5), b[i] = double(i % 3);
  std::vector<std::vector<double>> c(48, std::vector<double>(n * n));
  std::vector<job> jobs(c.size());
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  sg_submit submit = SG_SUBMIT_INIT;
  submit.plan = &options;
  for (std::size_t i = 0; i < c.size(); ++i) {
    options.device_count = i % 3 == 0 ? 2 : 1;
    options.devices = i % 3 == 0 ? 0 : i % 3;
    const sg_gemm_desc desc = make_gemm(a.data(), b.data(), c[i].data(), n, n, n);
    EXPECT_OK(sg_gemm_async(machine, &desc, &submit, jobs[i].out()));
  }
  for (job &each : jobs) EXPECT_OK(sg_job_wait(each, 60'000 * ms, nullptr));
  for (const auto &each : c) EXPECT_EQ(c[0], each);
}

TEST(traces_of_several_devices, have_lanes_of_each) {
  if (asked_devices()) GTEST_SKIP() << "other devices are under test";
  const context machine = open_context("sim:h200x2");
  trace recording;
  ASSERT_OK(sg_trace_start(nullptr, recording.out()));
  const matrix a = numbers(1), b = numbers(2);
  matrix c(side * side);
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.device_count = 2;
  sg_submit submit = SG_SUBMIT_INIT;
  submit.plan = &options;
  const sg_gemm_desc desc = make_gemm(a.data(), b.data(), c.data(), side, side, side);
  EXPECT_OK(sg_gemm(machine, &desc, &submit));
  EXPECT_OK(sg_trace_stop(recording));
  std::uint64_t size = 0;
  EXPECT_OK(sg_trace_export(recording, SG_TRACE_FORMAT_JSON, nullptr, 0, &size));
  std::string text(size, '\0');
  EXPECT_OK(sg_trace_export(recording, SG_TRACE_FORMAT_JSON, text.data(), size, nullptr));
  for (const char *name :
       {"\"copy in ", "\"copy in of device 1, ", "\"compute of device 1, ", "\"copy out of device 1, "})
    EXPECT_NE(std::string::npos, text.find(name)) << name << text;
}

// --- Devices that fail, or have little memory ---

sg_status run_on(sg_context *context, std::int32_t count, const matrix &a, const matrix &b, matrix &c,
                 std::uint64_t *devices = nullptr) {
  const sg_gemm_desc desc = make_gemm(a.data(), b.data(), c.data(), side, side, side);
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.device_count = count;
  sg_submit submit = SG_SUBMIT_INIT;
  submit.plan = &options;
  job done;
  const sg_status refused = sg_gemm_async(context, &desc, &submit, done.out());
  if (refused != SG_STATUS_OK) return refused;
  const sg_status status = sg_job_wait(done, SG_FOREVER, nullptr);
  if (devices) *devices = statistics_of(done).devices;
  return status;
}

TEST(lost_devices, fail_their_jobs_and_leave_those_of_others) {
  if (asked_devices()) GTEST_SKIP() << "other devices are under test";
  const context machine = open_context("sim:h200x2?d1.lost-at=40");
  const matrix a = numbers(1), b = numbers(2), expected = product(a, b);
  const device_matrix there(machine, 1);
  const stream in = stream_on(machine, 1);
  sg_submit submit = SG_SUBMIT_INIT;
  submit.stream = in;
  matrix c(side * side);
  sg_status status = SG_STATUS_OK;
  for (int i = 0; i < 60 && status == SG_STATUS_OK; ++i) {
    const sg_gemm_desc desc = make_gemm(a.data(), b.data(), c.data(), side, side, side);
    status = sg_gemm(machine, &desc, &submit);
  }
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, status);
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "device 1 is lost")) << sg_last_error_message();
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_context_device_status(machine, 1));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "is lost")) << sg_last_error_message();
  EXPECT_OK(sg_context_device_status(machine, 0));
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_copy(machine, there.data, a.data(), bytes, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "is lost")) << sg_last_error_message();
  sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
  options.device = 1;
  buffer none;
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_buffer_create(machine, bytes, &options, none.out()));
  for (int i = 0; i < 4; ++i) {
    std::fill(c.begin(), c.end(), 0);
    std::uint64_t devices = 0;
    EXPECT_OK(run_on(machine, 0, a, b, c, &devices));
    EXPECT_EQ(1u, devices) << "the one that is left";
    EXPECT_EQ(expected, c);
  }
}

// Lost at each of the commands of a run over both: it fails or succeeds, ends, and the next one is right.
TEST(lost_devices, are_survived_at_every_command) {
  if (asked_devices()) GTEST_SKIP() << "other devices are under test";
  const matrix a = numbers(1), b = numbers(2), expected = product(a, b);
  int failed = 0;
  for (int at = 1; at < 40; ++at) {
    const std::string name = "sim:h200x2?d" + std::to_string(at % 2) + ".lost-at=" + std::to_string(at);
    const context machine = open_context(name.c_str());
    matrix c(side * side);
    const sg_status first = run_on(machine, at > 8 ? 2 : 0, a, b, c);
    if (first == SG_STATUS_OK) {
      EXPECT_EQ(expected, c) << name;
    } else {
      EXPECT_TRUE(first == SG_STATUS_BACKEND_FAILURE || first == SG_STATUS_INVALID_ARGUMENT)
          << name << sg_last_error_message();
      ++failed;
    }
    // Until it is lost, at a later command.
    for (int i = 0; i < 60 && sg_context_device_status(machine, at % 2) == SG_STATUS_OK; ++i)
      if (run_on(machine, 0, a, b, c) == SG_STATUS_OK) {
        EXPECT_EQ(expected, c) << name;
      }
    EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_context_device_status(machine, at % 2)) << name;
    std::fill(c.begin(), c.end(), 0);
    EXPECT_OK(run_on(machine, 0, a, b, c)) << name;
    EXPECT_EQ(expected, c) << name;
  }
  EXPECT_GE(failed, 3);
}

// Pinned memory comes from a device that works, and what the lost one pinned stays valid.
TEST(lost_devices, leave_pinned_memory_to_the_others) {
  if (asked_devices()) GTEST_SKIP() << "other devices are under test";
  const context machine = open_context("sim:h200x2?d0.lost-at=3");
  const matrix a = numbers(1), b = numbers(2), expected = product(a, b);
  void *before = nullptr, *after = nullptr;
  EXPECT_OK(sg_host_alloc(machine, bytes, &before));
  std::memcpy(before, a.data(), bytes);
  matrix c(side * side);
  for (int i = 0; i < 60 && sg_context_device_status(machine, 0) == SG_STATUS_OK; ++i) run_on(machine, 1, a, b, c);
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_context_device_status(machine, 0));
  ASSERT_OK(sg_host_alloc(machine, bytes, &after));
  std::memcpy(after, b.data(), bytes);
  EXPECT_OK(sg_host_register(machine, c.data(), bytes));
  for (void *each : {before, after, static_cast<void *>(c.data())}) {
    sg_memory_kind kind = SG_MEMORY_PAGEABLE;
    EXPECT_OK(sg_context_memory_kind(machine, each, bytes, &kind));
    EXPECT_EQ(SG_MEMORY_PINNED, kind);
  }
  const sg_gemm_desc desc =
      make_gemm(static_cast<double *>(before), static_cast<double *>(after), c.data(), side, side, side);
  EXPECT_OK(sg_gemm(machine, &desc, nullptr));
  EXPECT_EQ(expected, c);
  EXPECT_OK(sg_host_unregister(machine, c.data()));
  EXPECT_OK(sg_host_free(machine, before));
  EXPECT_OK(sg_host_free(machine, after));
}

TEST(lost_devices, leave_nothing_when_all_are_lost) {
  if (asked_devices()) GTEST_SKIP() << "other devices are under test";
  const context machine = open_context("sim:h200x2?lost-at=12");
  const matrix a = numbers(1), b = numbers(2);
  matrix c(side * side);
  sg_status status = SG_STATUS_OK;
  for (int i = 0; i < 60 && status != SG_STATUS_NO_DEVICE; ++i) status = run_on(machine, 0, a, b, c);
  EXPECT_STATUS(SG_STATUS_NO_DEVICE, status);
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "lost")) << sg_last_error_message();
}

TEST(lost_links, are_found_by_their_data) {
  if (asked_devices()) GTEST_SKIP() << "other devices are under test";
  char text[1 << 16] = "";
  EXPECT_OK(sg_context_machine(open_context("sim:h200x2"), text, sizeof text, nullptr));
  EXPECT_NE(nullptr, std::strstr(text, "nvlink"));
  for (const char *name : {"sim:h200x2?peer-drop=0:1", "sim:h200x2?peer-drop=1:0"}) {
    std::vector<std::string> warnings;
    EXPECT_OK(sg_log_set(
        SG_LOG_WARN,
        [](sg_log_level, const char *, const char *message, void *user) {
          static_cast<std::vector<std::string> *>(user)->push_back(message);
        },
        &warnings));
    const context machine = open_context(name);
    EXPECT_OK(sg_log_set(SG_LOG_OFF, nullptr, nullptr));
    EXPECT_EQ(1, std::ranges::count_if(warnings,
                                       [](const std::string &each) {
                                         return each.starts_with("no peer path between sim:h200x2/0") &&
                                                each.ends_with("report success and write nothing");
                                       }))
        << name;
    EXPECT_OK(sg_context_machine(machine, text, sizeof text, nullptr));
    EXPECT_EQ(nullptr, std::strstr(text, "nvlink")) << name << ": copies succeed and write nothing";
    // They cross the host's links instead.
    const device_matrix first(machine, 0), second(machine, 1);
    const matrix given = numbers(3), other = numbers(4);
    for (const auto &[from, to] : {std::pair(first.data, second.data), {second.data, first.data}}) {
      matrix back(given.size());
      EXPECT_OK(sg_copy(machine, from, given.data(), bytes, nullptr));
      EXPECT_OK(sg_copy(machine, to, other.data(), bytes, nullptr));
      EXPECT_OK(sg_copy(machine, to, from, bytes, nullptr));
      EXPECT_OK(sg_copy(machine, back.data(), to, bytes, nullptr));
      EXPECT_EQ(given, back) << name;
    }
  }
}

// The second device has less memory than its model says: it is planned again.
TEST(devices_with_little_memory, get_smaller_parts) {
  if (asked_devices()) GTEST_SKIP() << "other devices are under test";
  const context machine = open_context("sim:h200x2?memory=64MiB&d1.taken=65000KiB");
  constexpr std::int64_t n = 300;
  std::vector<double> a(n * n), b(n * n), c(n * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = double(i % 5), b[i] = double(i % 3);
  const sg_gemm_desc desc = make_gemm(a.data(), b.data(), c.data(), n, n, n);
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.device_count = 2;
  sg_submit submit = SG_SUBMIT_INIT;
  submit.plan = &options;
  job done;
  ASSERT_OK(sg_gemm_async(machine, &desc, &submit, done.out()));
  EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(3u, statistics_of(done).devices);
  for (const std::size_t at : {std::size_t{0}, c.size() / 2 + 7, c.size() - 1}) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += a[at / n * n + k] * b[k * n + at % n];
    EXPECT_EQ(sum, c[at]);
  }
  const context full = open_context("sim:h200x2?memory=64MiB&d1.taken=64MiB");
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_gemm(full, &desc, &submit));
  for (const char *figure : {"bytes of device memory are wanted", "are free", "fewer do not do"})
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), figure)) << sg_last_error_message();
  options.device_count = 0;
  EXPECT_OK(sg_gemm(full, &desc, &submit)) << "on the other";
}

}  // namespace
}  // namespace several_devices
}  // namespace sg_test
