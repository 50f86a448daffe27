// SPDX-License-Identifier: Apache-2.0
// Plans of every kind of operation: what they predict is what the operation's job reports, with and without addresses;
// a run computes what the operation does; what differs from the plan is refused.
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t planned_side = 8, planned_elements = planned_side * planned_side;
using values = std::array<float, planned_elements>;

// A descriptor that lives as long as its operation.
struct described {
  std::shared_ptr<void> desc;
  sg_operation_desc operation = SG_OPERATION_DESC_INIT;
};
template <class Desc>
described described_as(sg_operation which, const Desc &desc) {
  described made;
  made.desc = std::make_shared<Desc>(desc);
  made.operation.operation = which, made.operation.desc = made.desc.get();
  return made;
}

// The descriptor of each operation, with operand i at `at(i)`.
using address_of = std::function<void *(int)>;
using with_addresses = described (*)(const address_of &at);

sg_matrix planned_matrix(void *data) {
  return {data, planned_side, planned_side, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
}

const std::map<std::string, with_addresses> each_operation = {
    {"gemm",
     [](const address_of &at) {
       sg_gemm_desc d = SG_GEMM_DESC_INIT;
       d.a = planned_matrix(at(0)), d.b = planned_matrix(at(1)), d.c = planned_matrix(at(2)), d.bias = at(3),
       d.activation = SG_ACTIVATION_RELU;
       return described_as(SG_OPERATION_GEMM, d);
     }},
    {"gemm_group",
     [](const address_of &at) {
       std::array<sg_gemm_desc, 2> d = {{SG_GEMM_DESC_INIT, SG_GEMM_DESC_INIT}};
       d[0].a = planned_matrix(at(0)), d[0].b = planned_matrix(at(1)), d[0].c = planned_matrix(at(2));
       d[1].a = planned_matrix(at(1)), d[1].b = planned_matrix(at(0)), d[1].c = planned_matrix(at(3));
       described made = described_as(SG_OPERATION_GEMM, d);
       made.operation.count = 2;
       return made;
     }},
    {"copy",
     [](const address_of &at) {
       sg_copy_desc d = SG_COPY_DESC_INIT;
       d.dst = at(0), d.src = at(1), d.width = 16, d.height = 3, d.dst_pitch = 32, d.src_pitch = 64;
       return described_as(SG_OPERATION_COPY, d);
     }},
    {"axpby",
     [](const address_of &at) {
       sg_axpby_desc d = SG_AXPBY_DESC_INIT;
       d.a = planned_matrix(at(0)), d.c = planned_matrix(at(1)), d.alpha.re = 2, d.beta.re = 3;
       return described_as(SG_OPERATION_AXPBY, d);
     }},
    {"softmax",
     [](const address_of &at) {
       sg_softmax_desc d = SG_SOFTMAX_DESC_INIT;
       d.x = planned_matrix(at(0)), d.y = planned_matrix(at(1));
       return described_as(SG_OPERATION_SOFTMAX, d);
     }},
    {"norm",
     [](const address_of &at) {
       sg_norm_desc d = SG_NORM_DESC_INIT;
       d.x = planned_matrix(at(0)), d.y = planned_matrix(at(1)), d.gamma = at(2), d.beta = at(3);
       return described_as(SG_OPERATION_NORM, d);
     }},
    {"norm_backward",
     [](const address_of &at) {
       sg_norm_backward_desc d = SG_NORM_BACKWARD_DESC_INIT;
       d.dy = planned_matrix(at(0)), d.x = planned_matrix(at(1)), d.dx = planned_matrix(at(2)), d.gamma = at(3),
       d.dgamma = at(4), d.dbeta = at(5);
       return described_as(SG_OPERATION_NORM_BACKWARD, d);
     }},
    {"linear_backward",
     [](const address_of &at) {
       sg_linear_backward_desc d = SG_LINEAR_BACKWARD_DESC_INIT;
       d.dy = planned_matrix(at(0)), d.x = planned_matrix(at(1)), d.w = planned_matrix(at(2)),
       d.dx = planned_matrix(at(3)), d.dw = planned_matrix(at(4));
       d.dbias = at(5);
       return described_as(SG_OPERATION_LINEAR_BACKWARD, d);
     }},
    {"attention",
     [](const address_of &at) {
       sg_attention_desc d = SG_ATTENTION_DESC_INIT;
       const auto heads = [&](int i) { return sg_heads{at(i), 0, 32, 8}; };
       d.q = heads(0), d.k = heads(1), d.v = heads(2), d.o = heads(3);
       d.batch = 1, d.heads = d.kv_heads = 2, d.queries = d.keys = 4, d.width = d.value_width = 8;
       d.mask = SG_MASK_CAUSAL;
       return described_as(SG_OPERATION_ATTENTION, d);
     }},
    {"attention_backward",
     [](const address_of &at) {
       sg_attention_backward_desc d = SG_ATTENTION_BACKWARD_DESC_INIT;
       const auto heads = [&](int i) { return sg_heads{at(i), 0, 32, 8}; };
       d.q = heads(0), d.k = heads(1), d.v = heads(2), d.dout = heads(3), d.dq = heads(4), d.dk = heads(5),
       d.dv = heads(6);
       d.batch = 1, d.heads = d.kv_heads = 2, d.queries = d.keys = 4, d.width = d.value_width = 8;
       return described_as(SG_OPERATION_ATTENTION_BACKWARD, d);
     }},
    {"conv2d",
     [](const address_of &at) {
       sg_conv2d_desc d = SG_CONV2D_DESC_INIT;
       d.x.data = at(0), d.w = at(1), d.y.data = at(2), d.bias = at(3);
       d.images = 1, d.channels = d.out_channels = 2, d.height = d.width = 4,
       d.windows.kernel_h = d.windows.kernel_w = 2;
       return described_as(SG_OPERATION_CONV2D, d);
     }},
    {"conv2d_backward",
     [](const address_of &at) {
       sg_conv2d_backward_desc d = SG_CONV2D_BACKWARD_DESC_INIT;
       d.dy.data = at(0), d.x.data = at(1), d.w = at(2), d.dx.data = at(3), d.dw = at(4), d.dbias = at(5);
       d.images = 1, d.channels = d.out_channels = 2, d.height = d.width = 4,
       d.windows.kernel_h = d.windows.kernel_w = 2;
       return described_as(SG_OPERATION_CONV2D_BACKWARD, d);
     }},
    {"pool2d",
     [](const address_of &at) {
       sg_pool2d_desc d = SG_POOL2D_DESC_INIT;
       d.x.data = at(0), d.y.data = at(1);
       d.images = 1, d.channels = 2, d.height = d.width = 4, d.windows.kernel_h = d.windows.kernel_w = 2;
       return described_as(SG_OPERATION_POOL2D, d);
     }},
    {"recurrent",
     [](const address_of &at) {
       sg_recurrent_desc d = SG_RECURRENT_DESC_INIT;
       d.steps = 3, d.batch = 2, d.inputs = d.hidden = 4;
       d.x = {at(0), 8, 4}, d.y = {at(1), 8, 4}, d.w_ih = at(2), d.w_hh = at(3), d.h0 = at(4), d.hn = at(5),
       d.cn = at(6);
       return described_as(SG_OPERATION_RECURRENT, d);
     }},
    {"adam",
     [](const address_of &at) {
       sg_adam_desc d = SG_ADAM_DESC_INIT;
       d.parameters = at(0), d.gradient = at(1), d.first = at(2), d.second = at(3), d.elements = planned_elements;
       return described_as(SG_OPERATION_ADAM, d);
     }},
    {"triangular",
     [](const address_of &at) {
       sg_triangular_desc d = SG_TRIANGULAR_DESC_INIT;
       d.a = planned_matrix(at(0)), d.b = planned_matrix(at(1)), d.kind = SG_TRIANGULAR_MULTIPLY;
       return described_as(SG_OPERATION_TRIANGULAR, d);
     }},
    {"symmetric",
     [](const address_of &at) {
       sg_symmetric_desc d = SG_SYMMETRIC_DESC_INIT;
       d.a = planned_matrix(at(0)), d.b = planned_matrix(at(1)), d.c = planned_matrix(at(2)), d.beta.re = 2;
       return described_as(SG_OPERATION_SYMMETRIC, d);
     }},
    {"rank_k",
     [](const address_of &at) {
       sg_rank_k_desc d = SG_RANK_K_DESC_INIT;
       d.a = planned_matrix(at(0)), d.c = planned_matrix(at(1));
       return described_as(SG_OPERATION_RANK_K, d);
     }},
};

class operation_plans : public on_each_device {
 protected:
  static constexpr int operand_count = 7;
  struct memory {
    std::vector<buffer> buffers;
    std::vector<values> host = std::vector<values>(operand_count);
    void *at[operand_count];
  };
  void SetUp() override {
    on_each_device::SetUp();
    for (int i = 0; i < operand_count; ++i) {
      on_host_.at[i] = on_host_.host[static_cast<std::size_t>(i)].data();
      ASSERT_OK(sg_buffer_create(context_, sizeof(values), nullptr, on_device_.buffers.emplace_back().out()));
      ASSERT_OK(sg_buffer_data(on_device_.buffers.back(), &on_device_.at[i]));
    }
  }
  void fill(const memory &where) {
    random_source random{7};
    for (void *each : where.at) {
      values drawn;
      for (float &value : drawn) value = 0.5F + 0.25F * float(random.real());
      ASSERT_OK(sg_copy(context_, each, drawn.data(), sizeof drawn, nullptr));
    }
  }
  std::vector<values> contents(const memory &where) {
    std::vector<values> all(operand_count);
    for (int i = 0; i < operand_count; ++i)
      EXPECT_OK(sg_copy(context_, all[static_cast<std::size_t>(i)].data(), where.at[i], sizeof(values), nullptr));
    return all;
  }
  static std::array<double, 9> figures(const sg_plan_prediction &p) {
    return {p.predicted_seconds,     p.bound_seconds,     p.flops,
            double(p.bytes_in),      double(p.bytes_out), double(p.device_bytes),
            double(p.staging_bytes), double(p.commands),  double(p.devices)};
  }
  sg_plan_prediction predict(const sg_operation_desc &what, const sg_plan_options *options, plan &made) {
    sg_plan_prediction says = SG_PLAN_PREDICTION_INIT;
    EXPECT_OK(sg_plan_create(context_, &what, options, made.out()));
    EXPECT_OK(sg_plan_get_prediction(made, &says));
    return says;
  }
  void expect_refusal(sg_status wanted, const char *text, const sg_operation_desc &what,
                      const sg_plan_options *options = nullptr) {
    sg_plan *none = reinterpret_cast<sg_plan *>(1);
    EXPECT_STATUS(wanted, sg_plan_create(context_, &what, options, &none));
    EXPECT_EQ(nullptr, none);
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message();
  }

  memory on_host_, on_device_;
};

TEST_P(operation_plans, say_what_the_jobs_do_and_run_as_they) {
  for (const auto &[name, with] : each_operation)
    for (const sg_memory_kind kind : {SG_MEMORY_DEVICE, SG_MEMORY_PAGEABLE}) {
      SCOPED_TRACE(name + (kind == SG_MEMORY_DEVICE ? " in device memory" : " in pageable memory"));
      const memory &where = kind == SG_MEMORY_DEVICE ? on_device_ : on_host_;
      const described given = with([&](int i) { return where.at[i]; });
      const described shapes = with([](int) { return SG_PLAN_ADDRESS; });
      sg_plan_options options = SG_PLAN_OPTIONS_INIT;
      options.place = kind;
      plan of_shapes, of_operands;
      const sg_plan_prediction says = predict(given.operation, nullptr, of_operands);
      EXPECT_EQ(figures(says), figures(predict(shapes.operation, &options, of_shapes)));
      EXPECT_STRNE("", says.strategy);
      std::uint64_t bytes = 0;
      EXPECT_OK(sg_plan_device_size(of_operands, 0, &bytes));
      EXPECT_EQ(says.device_bytes, bytes);

      fill(where);
      job alone, planned;
      sg_job_statistics did = SG_JOB_STATISTICS_INIT;
      ASSERT_OK(sg_run_async(context_, &given.operation, nullptr, alone.out()));
      ASSERT_OK(sg_job_wait(alone, SG_FOREVER, nullptr));
      ASSERT_OK(sg_job_get_statistics(alone, &did));
      EXPECT_EQ(did.predicted_seconds, says.predicted_seconds);
      EXPECT_EQ(did.bound_seconds, says.bound_seconds);
      EXPECT_EQ(did.flops, says.flops);
      EXPECT_EQ(did.bytes_in, says.bytes_in);
      EXPECT_EQ(did.bytes_out, says.bytes_out);
      EXPECT_EQ(did.commands, says.commands);
      EXPECT_STREQ(did.strategy, says.strategy);
      const std::vector<values> wanted = contents(where);
      fill(where);
      ASSERT_NE(wanted, contents(where)) << "the operation changes something";
      ASSERT_OK(sg_plan_run_async(of_shapes, &given.operation, nullptr, planned.out()));
      ASSERT_OK(sg_job_wait(planned, SG_FOREVER, nullptr));
      EXPECT_EQ(wanted, contents(where));
    }
}

TEST_P(operation_plans, have_descriptions_in_each_format) {
  for (const auto &[name, with] : each_operation) {
    const described shapes = with([](int) { return SG_PLAN_ADDRESS; });
    plan made;
    ASSERT_OK(sg_plan_create(context_, &shapes.operation, nullptr, made.out()));
    for (const sg_plan_format format :
         {SG_PLAN_FORMAT_TEXT, SG_PLAN_FORMAT_JSON, SG_PLAN_FORMAT_TIMELINE, SG_PLAN_FORMAT_HTML, SG_PLAN_FORMAT_SVG}) {
      std::uint64_t size = 0;
      EXPECT_OK(sg_plan_describe(made, format, nullptr, 0, &size)) << name;
      EXPECT_GT(size, 20U) << name << ' ' << format;
    }
  }
}

// A run needs addresses, and something to do.
TEST_P(operation_plans, run_with_addresses) {
  for (const auto &[name, with] : each_operation)
    for (const sg_memory_kind kind : {SG_MEMORY_DEVICE, SG_MEMORY_PAGEABLE}) {
      const described shapes = with([](int) { return SG_PLAN_ADDRESS; });
      sg_plan_options options = SG_PLAN_OPTIONS_INIT;
      options.place = kind;
      plan made;
      ASSERT_OK(sg_plan_create(context_, &shapes.operation, &options, made.out()));
      for (const sg_status status : {sg_plan_run_async(made, &shapes.operation, nullptr, nullptr),
                                     sg_run_async(context_, &shapes.operation, nullptr, nullptr)}) {
        EXPECT_EQ(SG_STATUS_INVALID_ARGUMENT, status) << name;
        EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "SG_PLAN_ADDRESS")) << sg_last_error_message();
      }
    }
  for (const char *const name : {"softmax", "copy"}) {
    const described shapes = each_operation.at(name)([](int) { return SG_PLAN_ADDRESS; });
    plan made;
    ASSERT_OK(sg_plan_create(context_, &shapes.operation, nullptr, made.out()));
    sg_softmax_desc no_rows = SG_SOFTMAX_DESC_INIT;
    no_rows.x = no_rows.y = {nullptr, 0, planned_side, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    const described nothing = shapes.operation.operation == SG_OPERATION_COPY
                                  ? described_as<sg_copy_desc>(SG_OPERATION_COPY, SG_COPY_DESC_INIT)
                                  : described_as(SG_OPERATION_SOFTMAX, no_rows);
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_plan_run_async(made, &nothing.operation, nullptr, nullptr));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "leaves nothing to do")) << sg_last_error_message();
  }
}

// NULL is an operand without an address, too, unless it leaves the operand out.
TEST_P(operation_plans, null_is_no_address) {
  const described nulls = each_operation.at("norm")([](int) { return nullptr; });
  plan without, with;
  predict(nulls.operation, nullptr, without);
  const described shapes = each_operation.at("norm")([](int) { return SG_PLAN_ADDRESS; });
  predict(shapes.operation, nullptr, with);
  fill(on_device_);
  const described given = each_operation.at("norm")([&](int i) { return on_device_.at[i]; });
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_plan_run_async(without, &given.operation, nullptr, nullptr))
      << "gamma and beta were left out";
  EXPECT_OK(sg_plan_run_async(with, &given.operation, nullptr, nullptr));
  EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
}

TEST_P(operation_plans, are_recorded) {
  const described given = each_operation.at("softmax")([&](int i) { return on_device_.at[i]; });
  plan made;
  ASSERT_OK(sg_plan_create(context_, &given.operation, nullptr, made.out()));
  owned<sg_graph, sg_graph_release> graph;
  ASSERT_OK(sg_graph_create(context_, graph.out()));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  ASSERT_OK(sg_plan_run_async(made, &given.operation, &record, nullptr));
  fill(on_device_);
  job alone, replayed;
  ASSERT_OK(sg_run_async(context_, &given.operation, nullptr, alone.out()));
  ASSERT_OK(sg_job_wait(alone, SG_FOREVER, nullptr));
  const std::vector<values> wanted = contents(on_device_);
  fill(on_device_);
  ASSERT_OK(sg_graph_run_async(graph, nullptr, replayed.out()));
  ASSERT_OK(sg_job_wait(replayed, SG_FOREVER, nullptr));
  EXPECT_EQ(wanted, contents(on_device_));
}

TEST_P(operation_plans, what_is_refused) {
  sg_operation_desc marker = SG_OPERATION_DESC_INIT;
  expect_refusal(SG_STATUS_INVALID_ARGUMENT, "is 0, a marker", marker);
  sg_softmax_desc softmax = SG_SOFTMAX_DESC_INIT;
  softmax.x = softmax.y = {nullptr, 0, planned_side, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  expect_refusal(SG_STATUS_INVALID_ARGUMENT, "operation->desc leaves nothing to do",
                 described_as(SG_OPERATION_SOFTMAX, softmax).operation);
  softmax.x = softmax.y = planned_matrix(nullptr);
  softmax.y.cols = 3;
  expect_refusal(SG_STATUS_INVALID_ARGUMENT, "operation->desc->x is 8 x 8",
                 described_as(SG_OPERATION_SOFTMAX, softmax).operation);
  expect_refusal(SG_STATUS_INVALID_ARGUMENT, "operation->desc is NULL",
                 {sizeof(sg_operation_desc), SG_OPERATION_SOFTMAX, 1, nullptr});
  expect_refusal(SG_STATUS_INVALID_ARGUMENT, "operation->operation is 1000",
                 {sizeof(sg_operation_desc), static_cast<sg_operation>(1000), 1, &softmax});
  const described norm = each_operation.at("norm")([](int) { return SG_PLAN_ADDRESS; });
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.place = static_cast<sg_memory_kind>(77);
  expect_refusal(SG_STATUS_INVALID_ARGUMENT, "options->place is 77", norm.operation, &options);

  plan made;
  ASSERT_OK(sg_plan_create(context_, &norm.operation, nullptr, made.out()));
  const auto expect_other = [&](const described &other, const char *text) {
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_plan_run_async(made, &other.operation, nullptr, nullptr));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message();
  };
  const address_of device = [&](int i) { return on_device_.at[i]; };
  expect_other(each_operation.at("softmax")(device), "a softmax; the plan is of a norm");
  described other = each_operation.at("norm")(device);
  static_cast<sg_norm_desc *>(other.desc.get())->kind = SG_NORM_RMS;
  static_cast<sg_norm_desc *>(other.desc.get())->beta = nullptr;
  expect_other(other, "differs from the plan");
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_plan_run_async(made, nullptr, nullptr, nullptr));
}

// What is supported is what can be planned, also where there is nothing to do.
TEST_P(operation_plans, support_is_told_without_addresses) {
  for (const auto &[name, with] : each_operation) {
    const described shapes = with([](int) { return SG_PLAN_ADDRESS; });
    EXPECT_OK(sg_context_supports(context_, &shapes.operation)) << name;
  }
  sg_operation_desc marker = SG_OPERATION_DESC_INIT;
  EXPECT_OK(sg_context_supports(context_, &marker));
  sg_softmax_desc softmax = SG_SOFTMAX_DESC_INIT;
  softmax.x = softmax.y = planned_matrix(nullptr);
  const sg_operation_desc operation{sizeof operation, SG_OPERATION_SOFTMAX, 1, &softmax};
  const auto supports = [&] { return sg_context_supports(context_, &operation); };
  EXPECT_OK(supports());
  softmax.x.dtype = softmax.y.dtype = SG_DTYPE_I32;
  EXPECT_STATUS(SG_STATUS_UNSUPPORTED, supports());
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "operation->desc->y.dtype is i32"))
      << sg_last_error_message();
  softmax.x.rows = 3;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, (softmax.x.dtype = softmax.y.dtype = SG_DTYPE_F32, supports()));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_supports(context_, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_context_supports(nullptr, &marker));
  sg_context_metrics counted = SG_CONTEXT_METRICS_INIT;
  EXPECT_OK(sg_context_get_metrics(context_, &counted));
  EXPECT_EQ(0U, counted.jobs_submitted) << "nothing was submitted";
}

// A memory limit applies to workspaces, as in a submission of the same limit.
TEST_P(operation_plans, keep_a_memory_limit) {
  if (std::strcmp(GetParam(), "sim:h200") != 0) GTEST_SKIP() << "operands lie in the device's memory there";
  sg_softmax_desc softmax = SG_SOFTMAX_DESC_INIT;
  softmax.x = softmax.y = {nullptr, 4096, 4096, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  const described shapes = described_as(SG_OPERATION_SOFTMAX, softmax);
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.place = SG_MEMORY_PINNED;
  plan made;
  EXPECT_GT(predict(shapes.operation, &options, made).device_bytes, std::uint64_t{1} << 25);
  options.memory_limit = std::uint64_t{1} << 10;
  expect_refusal(SG_STATUS_OUT_OF_MEMORY, "", shapes.operation, &options);
}

// What was recorded by a plan keeps its memory limit when it is updated.
TEST_P(operation_plans, keep_a_memory_limit_in_updates) {
  if (std::strcmp(GetParam(), "sim:h200") != 0) GTEST_SKIP() << "operands lie in the device's memory there";
  constexpr std::int64_t side = 512;
  std::vector<std::vector<float>> host(6, std::vector<float>(side * side, 1.0F));
  const auto at = [&](std::size_t i) {
    return sg_matrix{host[i].data(), side, side, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  };
  std::array<sg_gemm_desc, 2> group = {{SG_GEMM_DESC_INIT, SG_GEMM_DESC_INIT}};
  group[0].a = group[1].b = at(0), group[0].b = group[1].a = at(1), group[0].c = at(2), group[1].c = at(3);
  sg_linear_backward_desc layer = SG_LINEAR_BACKWARD_DESC_INIT;
  layer.dy = at(0), layer.x = at(1), layer.w = at(2), layer.dx = at(3), layer.dw = at(4);
  described of_group = described_as(SG_OPERATION_GEMM, group);
  of_group.operation.count = 2;
  for (const described &each : {of_group, described_as(SG_OPERATION_LINEAR_BACKWARD, layer)}) {
    const context own = open_context(GetParam());
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    options.memory_limit = std::uint64_t{5} << 19;
    plan made;
    ASSERT_OK(sg_plan_create(own, &each.operation, &options, made.out()));
    owned<sg_graph, sg_graph_release> graph;
    ASSERT_OK(sg_graph_create(own, graph.out()));
    sg_submit record = SG_SUBMIT_INIT;
    record.graph = graph;
    ASSERT_OK(sg_plan_run_async(made, &each.operation, &record, nullptr));
    ASSERT_OK(sg_graph_update(graph, 0, &each.operation));
    job done;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, done.out()));
    ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    sg_context_metrics counted = SG_CONTEXT_METRICS_INIT;
    EXPECT_OK(sg_context_get_metrics(own, &counted));
    EXPECT_LE(counted.device_bytes, options.memory_limit);
  }
}

ON_EACH_DEVICE(operation_plans);

}  // namespace
}  // namespace sg_test
