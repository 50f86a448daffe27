// SPDX-License-Identifier: Apache-2.0
// All-reduces on one device and over several: values against sums in higher precision, the same bits everywhere, order,
// failures, lost devices, wrong calls. SG_TEST_SEVERAL names other devices than the simulated ones, two of them.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "support/numbers.hpp"
#include "support/wrong_calls.hpp"

namespace sg_test {
namespace all_reduce {
namespace {

constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32,  SG_DTYPE_F16, SG_DTYPE_BF16,
                              SG_DTYPE_C64, SG_DTYPE_C128, SG_DTYPE_I32};

using owned_graph = owned<sg_graph, sg_graph_release>;
// So many that several devices sum parts of them.
constexpr std::int64_t parted = 600'001;
using image = std::vector<std::byte>;
using places = std::vector<std::int32_t>;  // the device of each vector

std::uint64_t devices_of(const places &at) {
  std::uint64_t all = 0;
  for (const std::int32_t each : at) all |= std::uint64_t{1} << each;
  return all;
}

const char *asked_devices() { return std::getenv("SG_TEST_SEVERAL"); }
const char *two() { return asked_devices() ? asked_devices() : "sim:h200x2"; }

// Vectors of random numbers in device memory, and what they were.
struct vectors {
  vectors(sg_context *of, const places &at, std::int64_t count, sg_dtype of_type, std::uint64_t seed = 1)
      : on(of), elements(count), type(of_type) {
    random_source random(seed);
    for (const std::int32_t device : at) {
      image &x = given.emplace_back(std::size_t(count * sg_reference::size_of(type)));
      for (std::int64_t i = 0; i < count; ++i) store(type, x.data() + i * sg_reference::size_of(type), random.of(type));
      sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
      options.device = device;
      EXPECT_OK(sg_buffer_create(of, x.size(), &options, buffers.emplace_back().out()));
      EXPECT_OK(sg_buffer_data(buffers.back(), &addresses.emplace_back()));
    }
    put();
  }
  void put() const {
    for (std::size_t v = 0; v < given.size(); ++v)
      EXPECT_OK(sg_copy(on, addresses[v], given[v].data(), given[v].size(), nullptr));
  }
  image get(std::size_t v) const {
    image found(given[v].size());
    EXPECT_OK(sg_copy(on, found.data(), addresses[v], found.size(), nullptr));
    return found;
  }
  sg_all_reduce_desc desc() const {
    sg_all_reduce_desc d = SG_ALL_REDUCE_DESC_INIT;
    d.operands = addresses.data(), d.operand_count = std::int32_t(addresses.size());
    d.elements = elements, d.dtype = type;
    return d;
  }

  // Whether all have the same bits, and each number is the sum within the rounding of a few additions: of many, some.
  void expect_sums() const {
    const image first = get(0);
    for (std::size_t v = 1; v < given.size(); ++v)
      EXPECT_EQ(first, get(v)) << "vector " << v << " differs from the first";
    const std::int64_t size = sg_reference::size_of(type);
    const sg_dtype component = type == SG_DTYPE_C64 ? SG_DTYPE_F32 : type == SG_DTYPE_C128 ? SG_DTYPE_F64 : type;
    for (std::int64_t i = 0; i<elements; i += elements> 50'000 ? 37 : 1) {
      number sum = 0;
      sg_reference::real magnitude = 0;
      for (const image &x : given) {
        const number each = load(type, x.data() + i * size);
        sum += each;
        magnitude += std::abs(each);
      }
      const number seen = load(type, first.data() + i * size);
      const sg_reference::real bound =
          type == SG_DTYPE_I32 ? 0 : unit_of(component) * magnitude * sg_reference::real(given.size());
      ASSERT_LE(std::abs(seen - sum), bound) << "element " << i << ", type " << int{type};
    }
  }

  sg_context *on;
  std::int64_t elements;
  sg_dtype type;
  std::vector<image> given;
  std::vector<buffer> buffers;
  std::vector<void *> addresses;
};

sg_job_statistics reduced(const vectors &x, const sg_submit *submit = nullptr) {
  const sg_all_reduce_desc d = x.desc();
  sg_job_statistics found = SG_JOB_STATISTICS_INIT;
  job done;
  EXPECT_OK(sg_all_reduce_async(x.on, &d, submit, done.out()));
  EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_OK(sg_job_get_statistics(done, &found));
  return found;
}

class all_reduce_on_one : public on_each_device {};

TEST_P(all_reduce_on_one, gives_each_vector_the_sum) {
  for (const sg_dtype type : types)
    for (const std::size_t count : {1, 2, 3, 11})
      for (const std::int64_t elements : {1, 1000}) {
        const vectors x(context_, places(count, 0), elements, type, count);
        reduced(x);
        x.expect_sums();
      }
  // So many that the cores of a cpu share them.
  const vectors large(context_, {0, 0, 0}, 300'001, SG_DTYPE_F32);
  reduced(large);
  large.expect_sums();
}

ON_EACH_DEVICE(all_reduce_on_one);

struct place {
  const char *machine;
  places at;
  bool is_large = false;  // large vectors, too
};
std::vector<place> all_places() {
  std::vector<place> all = {{two(), {0, 1}, true}, {two(), {1, 0, 1}}, {two(), {0, 1, 1, 0}}};
  if (asked_devices()) return all;
  all.insert(all.end(), {{"sim:h200x4", {0, 1, 2, 3}, true},
                         {"sim:h200x4", {3, 1, 0}},
                         {"sim:pcie4x2", {0, 1}},
                         {"sim:unequal2", {1, 0}}});
  return all;
}

TEST(all_reduce_on_several, gives_each_vector_the_sum) {
  for (const place &each : all_places()) {
    const context machine = open_context(each.machine);
    const auto check = [&](sg_dtype type, std::int64_t elements) {
      const vectors x(machine, each.at, elements, type);
      const sg_job_statistics found = reduced(x);
      x.expect_sums();
      EXPECT_EQ(devices_of(each.at), found.devices) << each.machine;
      EXPECT_GT(found.bytes_peer, 0u);
      EXPECT_EQ(0u, found.bytes_in + found.bytes_out);
      EXPECT_EQ(std::string("all-reduce x") + std::to_string(each.at.size()), found.strategy);
    };
    for (const sg_dtype type : types)
      for (const std::int64_t elements : {1, 5'001}) check(type, elements);
    if (each.is_large) check(SG_DTYPE_F32, parted);
  }
}

// Little memory makes many slices, whose slots are used again.
TEST(all_reduce_on_several, of_many_slices_has_the_same_bits) {
  image results[2][2];
  for (const bool is_small : {false, true}) {
    sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
    options.device = two();
    options.flags = SG_CONTEXT_CHECK_HAZARDS;
    if (is_small) options.memory_limit = 512 << 10;
    context machine;
    ASSERT_OK(sg_context_create(&options, machine.out()));
    for (const sg_dtype type : {SG_DTYPE_BF16, SG_DTYPE_F64}) {
      const vectors x(machine, {0, 1, 1}, parted, type);
      const sg_job_statistics found = reduced(x);
      EXPECT_EQ(is_small, found.commands > 80) << found.commands;
      x.expect_sums();
      results[type == SG_DTYPE_F64][is_small] = x.get(1);
    }
  }
  for (const image(&each)[2] : results) EXPECT_EQ(each[0], each[1]);
}

// Gradients of each device by GEMMs there, their sum, and a step with it: the memory alone orders them.
TEST(all_reduce_on_several, is_ordered_by_its_vectors) {
  const context machine = open_context(two());
  constexpr std::int64_t side = 96, count = side * side;
  const vectors a(machine, {0, 1}, count, SG_DTYPE_F64, 3), sums(machine, {0, 1}, count, SG_DTYPE_F64, 5);
  const vectors results(machine, {0, 1}, count, SG_DTYPE_F64, 7);
  const auto submit_step = [&](const sg_submit *submit) {
    for (int d : {0, 1}) {
      auto *const x = static_cast<double *>(a.addresses[std::size_t(d)]);
      const sg_gemm_desc gradient =
          make_gemm(x, x, static_cast<double *>(sums.addresses[std::size_t(d)]), side, side, side);
      EXPECT_OK(sg_gemm_async(machine, &gradient, submit, nullptr));
    }
    const sg_all_reduce_desc d = sums.desc();
    EXPECT_OK(sg_all_reduce_async(machine, &d, submit, nullptr));
    for (int device : {1, 0})
      EXPECT_OK(sg_copy_async(machine, results.addresses[std::size_t(device)], sums.addresses[std::size_t(device)],
                              count * sizeof(double), submit, nullptr));
  };
  const auto expect_result = [&] {
    EXPECT_OK(sg_context_synchronize(machine, SG_FOREVER));
    const image first = results.get(0);
    EXPECT_EQ(first, results.get(1));
    for (const std::int64_t at : {std::int64_t{0}, count / 2 + 5, count - 1}) {
      long double sum = 0;
      for (const image &x : a.given)
        for (std::int64_t k = 0; k < side; ++k)
          sum += load(SG_DTYPE_F64, x.data() + (at / side * side + k) * 8).real() *
                 load(SG_DTYPE_F64, x.data() + (k * side + at % side) * 8).real();
      EXPECT_NEAR(double(sum), double(load(SG_DTYPE_F64, first.data() + at * 8).real()), 1e-12);
    }
    results.put();
  };
  for (int round = 0; round < 3; ++round) submit_step(nullptr);
  expect_result();
  // The same, recorded.
  owned_graph recorded;
  ASSERT_OK(sg_graph_create(machine, recorded.out()));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = recorded;
  submit_step(&record);
  for (int round = 0; round < 2; ++round) {
    job done;
    ASSERT_OK(sg_graph_run_async(recorded, nullptr, done.out()));
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    expect_result();
  }
  // With other vectors.
  const vectors others(machine, {0, 1}, count, SG_DTYPE_F64, 9);
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  const sg_all_reduce_desc d = others.desc();
  update.operation = SG_OPERATION_ALL_REDUCE, update.desc = &d;
  EXPECT_OK(sg_graph_update(recorded, 2, &update));
  job done;
  ASSERT_OK(sg_graph_run_async(recorded, nullptr, done.out()));
  EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  others.expect_sums();
  sg_all_reduce_desc shorter = d;
  shorter.elements -= 1;
  update.desc = &shorter;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(recorded, 2, &update));
}

// The first run over several devices makes streams, also where a completion starts it that a waiting thread polls for.
TEST(all_reduce_on_several, is_the_first_run_of_a_context_behind_other_work) {
  for (int round = 0; round < 12; ++round) {
    const context machine = open_context(two());
    const vectors x(machine, {0, 1}, 5000, SG_DTYPE_F32);
    void *pinned = nullptr;
    ASSERT_OK(sg_host_alloc(machine, 20'000, &pinned));
    std::memcpy(pinned, x.given[0].data(), x.given[0].size());
    for (int i = 0; i < 4; ++i) EXPECT_OK(sg_copy_async(machine, x.addresses[0], pinned, 20'000, nullptr, nullptr));
    reduced(x);
    x.expect_sums();
    EXPECT_OK(sg_host_free(machine, pinned));
  }
}

// A stage's output and a vector on the other device: batches add up there.
TEST(all_reduce_on_several, runs_in_a_stage) {
  const context machine = open_context(two());
  constexpr std::int64_t count = 1000;
  const vectors x(machine, {1, 1}, count, SG_DTYPE_I32);
  std::vector<std::int32_t> input(count), output(count), expected(count);
  std::memcpy(expected.data(), x.given[0].data(), x.given[0].size());
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = std::int32_t(i);
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = count * sizeof(std::int32_t);
  owned<sg_pipeline, sg_pipeline_release> made;
  ASSERT_OK(sg_pipeline_create(machine, &options, made.out()));
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.output_bytes = options.input_bytes;
  sg_stage stage = SG_STAGE_INIT;
  ASSERT_OK(sg_pipeline_add_stage(made, &desc, &stage));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = stage.graph;
  ASSERT_OK(sg_copy_async(machine, stage.output, stage.input, options.input_bytes, &record, nullptr));
  void *const both[] = {stage.output, x.addresses[0]};
  sg_all_reduce_desc d = x.desc();
  d.operands = both;
  ASSERT_OK(sg_all_reduce_async(machine, &d, &record, nullptr));
  ASSERT_OK(sg_copy_async(machine, x.addresses[1], x.addresses[0], options.input_bytes, &record, nullptr));
  for (int batch = 0; batch < 3; ++batch) {
    EXPECT_OK(sg_pipeline_push(made, input.data(), output.data(), nullptr));
    for (std::size_t i = 0; i < input.size(); ++i) expected[i] += input[i];
    EXPECT_EQ(expected, output) << batch;
  }
  image last(x.given[0].size());
  std::memcpy(last.data(), expected.data(), last.size());
  EXPECT_OK(sg_context_synchronize(machine, SG_FOREVER));
  EXPECT_EQ(last, x.get(1));
}

TEST(all_reduce_on_several, fails_with_what_it_reads_and_is_cancelled) {
  const context machine = open_context(two());
  const vectors x(machine, {0, 1}, 1000, SG_DTYPE_F32);
  const sg_custom_operand written = {x.addresses[1], 4000, SG_ACCESS_WRITE};
  sg_custom_desc fails = SG_CUSTOM_DESC_INIT;
  fails.function = [](const sg_custom_call *, void *) { return SG_STATUS_BACKEND_FAILURE; };
  fails.operands = &written, fails.operand_count = 1;
  job failed, poisoned;
  ASSERT_OK(sg_custom_async(machine, &fails, nullptr, failed.out()));
  const sg_all_reduce_desc d = x.desc();
  ASSERT_OK(sg_all_reduce_async(machine, &d, nullptr, poisoned.out()));
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(poisoned, SG_FOREVER, nullptr));
  gated_job gated(machine);
  SKIP_WITHOUT_GATE(gated);
  sg_submit behind = SG_SUBMIT_INIT;
  sg_job *const before = gated.get();
  behind.after = &before, behind.after_count = 1;
  job cancelled;
  ASSERT_OK(sg_all_reduce_async(machine, &d, &behind, cancelled.out()));
  EXPECT_OK(sg_job_cancel(cancelled));
  gated.open();
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(cancelled, SG_FOREVER, nullptr));
  EXPECT_OK(sg_context_synchronize(machine, SG_FOREVER));
}

// The device is lost at each of the commands: the job completes or fails, and the other device computes on.
TEST(all_reduce_on_several, fails_with_a_lost_device) {
  if (asked_devices()) GTEST_SKIP() << "no device to lose";
  int failed = 0;
  constexpr int most = 16;
  for (int at = 1; at <= most; ++at) {
    const std::string name = "sim:h200x2?d" + std::to_string(at % 2) + ".lost-at=" + std::to_string(at);
    const context machine = open_context(name.c_str());
    sg_status status = SG_STATUS_OK;
    {
      std::vector<buffer> memory(2);
      void *addresses[2] = {};
      for (std::size_t device = 0; device < 2 && status == SG_STATUS_OK; ++device) {
        sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
        options.device = std::int32_t(device);
        status = sg_buffer_create(machine, parted * sizeof(float), &options, memory[device].out());
        if (status == SG_STATUS_OK) status = sg_buffer_data(memory[device], &addresses[device]);
      }
      sg_all_reduce_desc d = SG_ALL_REDUCE_DESC_INIT;
      d.operands = addresses, d.operand_count = 2, d.elements = parted;
      for (int i = 0; i < 40 && status == SG_STATUS_OK; ++i) status = sg_all_reduce(machine, &d, nullptr);
      if (status != SG_STATUS_OK) ++failed;
      EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, status) << name;
      EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "lost")) << sg_last_error_message();
    }
    const std::int32_t left = 1 - at % 2;
    const vectors x(machine, {left, left}, 100, SG_DTYPE_F32);
    reduced(x);
    x.expect_sums();
  }
  EXPECT_EQ(most, failed);
}

TEST(all_reduce_on_several, refuses_wrong_calls) {
  const context machine = open_context(two());
  const vectors x(machine, {0, 1}, 100, SG_DTYPE_F32);
  std::vector<float> host(100);
  void *pinned = nullptr;
  ASSERT_OK(sg_host_alloc(machine, 400, &pinned));
  stream of_second;
  sg_stream_options options = SG_STREAM_OPTIONS_INIT;
  options.device = 1;
  ASSERT_OK(sg_stream_create(machine, &options, of_second.out()));
  void *const none[] = {x.addresses[0], nullptr}, *const twice[] = {x.addresses[0], x.addresses[0]},
              *const on_host[] = {x.addresses[0], host.data()}, *const in_pinned[] = {pinned, x.addresses[0]},
              *const shifted[] = {x.addresses[0], static_cast<char *>(x.addresses[1]) + 4},
              *const unaligned[] = {x.addresses[0], static_cast<char *>(x.addresses[1]) + 2};
  const auto call = [&](auto change, const sg_submit *submit = nullptr) {
    return nulls<sg_job>([&, change, submit](sg_job **out) {
      sg_all_reduce_desc d = x.desc();
      change(d);
      return sg_all_reduce_async(machine, &d, submit, out);
    });
  };
  sg_submit on_second = SG_SUBMIT_INIT;
  on_second.stream = of_second;
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT;
  using desc = sg_all_reduce_desc;
  check({
      {"no array", invalid, {"desc->operands is NULL"}, call([](desc &d) { d.operands = nullptr; })},
      {"no vector", invalid, {"desc->operand_count is 0; it must be from 1 to 64"}, call([](desc &d) {
         d.operand_count = 0;
       })},
      {"too many", invalid, {"desc->operand_count is 65"}, call([](desc &d) { d.operand_count = 65; })},
      {"elements", invalid, {"desc->elements is -1"}, call([](desc &d) { d.elements = -1; })},
      {"bytes beyond 64 bits", invalid, {"desc->elements is"}, call([](desc &d) { d.elements = INT64_MAX / 8; })},
      {"no type", invalid, {"desc->dtype is 99"}, call([](desc &d) { d.dtype = static_cast<sg_dtype>(99); })},
      {"a type without sums", SG_STATUS_UNSUPPORTED, {"desc->dtype is i8"}, call([](desc &d) {
         d.dtype = SG_DTYPE_I8;
       })},
      {"NULL", invalid, {"desc->operands[1] is NULL"}, call([&](desc &d) { d.operands = none; })},
      {"a vector twice", invalid, {"desc->operands[0]", "desc->operands[1]", "overlap"}, call([&](desc &d) {
         d.operands = twice;
       })},
      {"host memory", invalid, {"desc->operands[1]", "pageable memory"}, call([&](desc &d) { d.operands = on_host; })},
      {"pinned memory", invalid, {"desc->operands[0]", "pinned memory"}, call([&](desc &d) {
         d.operands = in_pinned;
       })},
      {"beyond the buffer", invalid, {"desc->operands[1]"}, call([&](desc &d) { d.operands = shifted; })},
      {"alignment", invalid, {"desc->operands[1]", "aligned to 4 bytes"}, call([&](desc &d) {
         d.operands = unaligned;
       })},
      {"a stream of one device",
       invalid,
       {"submit->stream is of device 1", "desc->operands[0]", "device 0"},
       call([](desc &) {}, &on_second)},
  });
  x.put();
  for (std::size_t v = 0; v < 2; ++v) EXPECT_EQ(x.given[v], x.get(v));
  // Nothing to do.
  sg_all_reduce_desc d = x.desc();
  d.elements = 0, d.operands = none;
  EXPECT_OK(sg_all_reduce(machine, &d, nullptr));
  d = x.desc();
  d.operand_count = 1;
  EXPECT_OK(sg_all_reduce(machine, &d, nullptr));
  for (std::size_t v = 0; v < 2; ++v) EXPECT_EQ(x.given[v], x.get(v));
  EXPECT_OK(sg_host_free(machine, pinned));
}

}  // namespace
}  // namespace all_reduce
}  // namespace sg_test
