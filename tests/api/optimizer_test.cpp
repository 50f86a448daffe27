// SPDX-License-Identifier: Apache-2.0
// sg_sgd and sg_adam: several steps in every type against the definitions in extended precision, in a graph for several
// tensors, refused calls.
#include "support/layer_case.hpp"

namespace sg_test {
namespace {

class optimizer : public layer_case {
 protected:
  static sg_dtype state_type(sg_dtype type) { return type == SG_DTYPE_F64 ? SG_DTYPE_F64 : SG_DTYPE_F32; }
  matrix zeros(sg_dtype type, std::int64_t count) {
    matrix made(context_, type, 1, count, {});
    for (std::int64_t i = 0; i < count; ++i) made.set(0, i, 0);
    made.send();
    return made;
  }
  static reals row_of(matrix &x) {
    x.fetch();
    reals all;
    for (std::int64_t i = 0; i < x.view.cols; ++i) all.push_back(x.get(0, i));
    return all;
  }
};

// Each step is compared from the stored state before it.
TEST_P(optimizer, sgd) {
  for (int attempt = 0; attempt < 40; ++attempt) {
    const sg_dtype type = any_type();
    const std::int64_t count = attempt % 20 == 0 ? 100000 + below(100000) : any_size(1);
    matrix parameters = values(type, 1, count, {}), gradient = values(type, 1, count, {});
    matrix momentum = zeros(state_type(type), count);
    sg_sgd_desc desc = SG_SGD_DESC_INIT;
    const bool has_momentum = below(2);
    desc.parameters = parameters.view.data, desc.gradient = gradient.view.data, desc.elements = count,
    desc.dtype = type;
    desc.rate = 0.125, desc.weight_decay = below(2) ? 0.25 : 0, desc.momentum = has_momentum ? 0.75 : 0;
    desc.momentum_buffer = has_momentum ? momentum.view.data : nullptr, desc.nesterov = has_momentum && below(2);
    for (int step = 0; step < 3; ++step) {
      const reals p = row_of(parameters), g = row_of(gradient), m = row_of(momentum);
      ASSERT_OK(sg_sgd(context_, &desc, nullptr));
      reals wanted, state, sizes;
      for (std::size_t i = 0; i < p.size(); ++i) {
        const long double slope = g[i] + desc.weight_decay * p[i], kept = desc.momentum * m[i] + slope;
        state.push_back(kept);
        wanted.push_back(p[i] - desc.rate * (!has_momentum   ? slope
                                             : desc.nesterov ? slope + desc.momentum * kept
                                                             : kept));
        sizes.push_back(std::fabs(p[i]) + std::fabs(g[i]) + std::fabs(m[i]));
      }
      expect_near(parameters, wanted, sizes, named("sgd", parameters.view));
      if (has_momentum) expect_near(momentum, state, sizes, named("the momentum of sgd", parameters.view));
    }
  }
}

TEST_P(optimizer, adam) {
  for (int attempt = 0; attempt < 40; ++attempt) {
    const sg_dtype type = any_type();
    const std::int64_t count = any_size(1);
    matrix parameters = values(type, 1, count, {}), gradient = values(type, 1, count, {});
    matrix first = zeros(state_type(type), count), second = zeros(state_type(type), count);
    sg_adam_desc desc = SG_ADAM_DESC_INIT;
    desc.parameters = parameters.view.data, desc.gradient = gradient.view.data, desc.elements = count,
    desc.dtype = type;
    desc.first = first.view.data, desc.second = second.view.data, desc.rate = 0.01;
    desc.weight_decay = below(2) ? 0.25 : 0, desc.decoupled = below(2);
    for (int step = 1; step <= 4; ++step) {
      desc.step = step == 4 ? 100000 : step;
      const reals p = row_of(parameters), g = row_of(gradient), m = row_of(first), v = row_of(second);
      ASSERT_OK(sg_adam(context_, &desc, nullptr));
      reals wanted, means, squares, sizes, of_means, of_squares;
      const long double beta1 = 0.9, beta2 = 0.999, t = desc.step;
      for (std::size_t i = 0; i < p.size(); ++i) {
        const long double slope = g[i] + (desc.decoupled ? 0 : desc.weight_decay * p[i]);
        means.push_back(beta1 * m[i] + (1 - beta1) * slope);
        squares.push_back(beta2 * v[i] + (1 - beta2) * slope * slope);
        const long double from = p[i] * (desc.decoupled ? 1 - desc.rate * desc.weight_decay : 1);
        const long double change = desc.rate * (means.back() / (1 - std::pow(beta1, t))) /
                                   (std::sqrt(squares.back() / (1 - std::pow(beta2, t))) + desc.epsilon);
        wanted.push_back(from - change);
        sizes.push_back(std::fabs(p[i]) + std::fabs(change));
        of_means.push_back(std::fabs(m[i]) + std::fabs(slope)), of_squares.push_back(v[i] + slope * slope);
      }
      expect_near(parameters, wanted, sizes, named("adam", parameters.view));
      expect_near(first, means, of_means, named("the first moment", parameters.view));
      expect_near(second, squares, of_squares, named("the second moment", parameters.view));
    }
  }
}

// Many tensors are one job: a recorded graph of their steps, whose number an update sets.
TEST_P(optimizer, many_tensors_as_one_job) {
  constexpr int tensors = 5;
  std::vector<matrix> parameters, gradients, first, second;
  owned<sg_graph, sg_graph_release> graph;
  ASSERT_OK(sg_graph_create(context_, graph.out()));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  std::vector<sg_adam_desc> steps(tensors, SG_ADAM_DESC_INIT);
  for (int i = 0; i < tensors; ++i) {
    const std::int64_t count = 3 + 7 * i;
    parameters.push_back(values(SG_DTYPE_F32, 1, count, {})), gradients.push_back(values(SG_DTYPE_F32, 1, count, {}));
    first.push_back(zeros(SG_DTYPE_F32, count)), second.push_back(zeros(SG_DTYPE_F32, count));
    sg_adam_desc &desc = steps[std::size_t(i)];
    desc.parameters = parameters.back().view.data, desc.gradient = gradients.back().view.data, desc.elements = count;
    desc.first = first.back().view.data, desc.second = second.back().view.data;
    ASSERT_OK(sg_adam_async(context_, &desc, &record, nullptr));
  }
  for (int step = 1; step <= 3; ++step) {
    for (int i = 0; i < tensors; ++i) {
      steps[std::size_t(i)].step = step;
      sg_operation_desc update = SG_OPERATION_DESC_INIT;
      update.operation = SG_OPERATION_ADAM, update.desc = &steps[std::size_t(i)];
      ASSERT_OK(sg_graph_update(graph, i, &update));
    }
    std::vector<reals> before;
    for (matrix &each : parameters) before.push_back(row_of(each));
    job run;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, run.out()));
    ASSERT_OK(sg_job_wait(run, SG_FOREVER, nullptr));
    // Of equal gradients every step changes a parameter by the rate.
    for (int i = 0; i < tensors; ++i) {
      const reals g = row_of(gradients[std::size_t(i)]), p = row_of(parameters[std::size_t(i)]);
      for (std::size_t k = 0; k < p.size(); ++k)
        EXPECT_NEAR(double(before[std::size_t(i)][k] - (g[k] > 0 ? 0.001L : -0.001L)), double(p[k]), 1e-5)
            << "tensor " << i;
    }
  }
}

TEST_P(optimizer, refused) {
  matrix p = values(SG_DTYPE_F32, 1, 8, {}), g = values(SG_DTYPE_F32, 1, 8, {}), m = zeros(SG_DTYPE_F32, 8),
         v = zeros(SG_DTYPE_F32, 8);
  sg_sgd_desc sgd = SG_SGD_DESC_INIT;
  sgd.parameters = p.view.data, sgd.gradient = g.view.data, sgd.elements = 8, sgd.momentum = 0.5;
  EXPECT_REFUSED(sg_sgd(context_, &sgd, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->momentum_buffer is NULL");
  sgd.momentum = 2;
  EXPECT_REFUSED(sg_sgd(context_, &sgd, nullptr), SG_STATUS_INVALID_ARGUMENT,
                 "desc->momentum is 2; it must be from 0 to 1");
  sg_adam_desc good = SG_ADAM_DESC_INIT;
  good.parameters = p.view.data, good.gradient = g.view.data, good.first = m.view.data, good.second = v.view.data,
  good.elements = 8;
  sg_adam_desc desc = good;
  desc.step = 0;
  EXPECT_REFUSED(sg_adam(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->step is 0");
  desc = good, desc.beta2 = 1;
  EXPECT_REFUSED(sg_adam(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT,
                 "desc->beta2 is 1; it must be from 0 to below 1");
  desc = good, desc.rate = INFINITY;
  EXPECT_REFUSED(sg_adam(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->rate is inf");
  desc = good, desc.second = good.first;
  EXPECT_REFUSED(sg_adam(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "overlap");
  desc = good, desc.elements = -1;
  EXPECT_REFUSED(sg_adam(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->elements is -1");
  desc = good, desc.rate = 1e39;
  EXPECT_REFUSED(sg_adam(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT,
                 "desc->rate is 1e+39; the arithmetic is in f32");
  desc = good, desc.epsilon = 1e-50;
  EXPECT_REFUSED(sg_adam(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT,
                 "desc->epsilon is 1e-50, which is 0 in f32");
  desc = good, desc.dtype = SG_DTYPE_I8;
  EXPECT_REFUSED(sg_adam(context_, &desc, nullptr), SG_STATUS_UNSUPPORTED, "desc->dtype is i8");
}

ON_EACH_DEVICE(optimizer);

}  // namespace
}  // namespace sg_test
