// SPDX-License-Identifier: Apache-2.0
// Schedules of convolutions and of their gradients: free of hazards, within their workspace, overlapped.
#include "plan/layers/conv.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <sstream>

#include "base/error.hpp"
#include "plan/planner.hpp"
#include "plan/schedule/hazard.hpp"
#include "plan/schedule/simulate.hpp"
#include "problems.hpp"

namespace sg::test {
namespace {

struct conv_case {
  conv_form f;
  std::int64_t images = 1;
  sg_dtype type = SG_DTYPE_F32;
  sg_memory_kind at_x = SG_MEMORY_DEVICE, at_y = SG_MEMORY_DEVICE, at_w = SG_MEMORY_DEVICE, at_dx = SG_MEMORY_DEVICE,
                 at_dw = SG_MEMORY_DEVICE;
  std::int64_t gap = 0;
  bool has_bias = true, dx = true, dw = true, dbias = true, accumulates = false;
};

std::string text(const conv_case &c) {
  const ops::windows &w = c.f.of;
  std::ostringstream out;
  out << c.images << " x " << w.channels << "/" << w.groups << " x " << w.height << " x " << w.width << " to "
      << c.f.out_channels << " x " << w.out_h << " x " << w.out_w << ", kernel " << w.kernel_h << " x " << w.kernel_w
      << ", last " << w.channels_last << ", workspace " << c.f.workspace << ", gap " << c.gap << ", at " << int(c.at_x)
      << int(c.at_y) << int(c.at_w) << int(c.at_dx) << int(c.at_dw) << ", results " << c.dx << c.dw << c.dbias;
  return out.str();
}

operand images_of(const conv_case &c, std::int64_t elements, sg_memory_kind at) {
  operand x;
  x.rows = elements, x.cols = c.images, x.ld = elements + c.gap;
  x.type = c.type, x.space = at;
  return x;
}
operand values_of(std::int64_t rows, std::int64_t cols, sg_dtype type, sg_memory_kind at) {
  operand x;
  x.rows = x.ld = rows, x.cols = cols;
  x.type = type, x.space = at;
  return x;
}

conv_form forward_of(const conv_case &c) {
  using enum conv_parameter;
  conv_form f = c.f;
  for (operand &each : f.operands) each.type = c.type;
  f.at(x) = images_of(c, f.of.channels * f.of.pixels(), c.at_x);
  f.at(w) = values_of(f.columns_of_group(), f.out_channels, c.type, c.at_w);
  f.at(y) = images_of(c, f.out_channels * f.of.positions_of_image(), c.at_y);
  if (c.has_bias) f.at(bias) = values_of(f.out_channels, 1, c.type, c.at_w);
  return f;
}

conv_form backward_of(const conv_case &c) {
  using enum conv_parameter;
  conv_form f = c.f;
  f.is_backward = true;
  f.accumulates = c.accumulates;
  for (operand &each : f.operands) each.type = c.type;
  const operand images = images_of(c, f.of.channels * f.of.pixels(), c.at_x);
  if (c.dw) f.at(x) = images;
  if (c.dx) f.at(w) = values_of(f.columns_of_group(), f.out_channels, c.type, c.at_w);
  if (c.dx) f.at(dx) = images, f.at(dx).space = c.at_dx;
  f.at(y) = images_of(c, f.out_channels * f.of.positions_of_image(), c.at_y);
  if (c.dw) f.at(dw) = values_of(f.columns_of_group(), f.out_channels, SG_DTYPE_F32, c.at_dw);
  if (c.dbias) f.at(dbias) = values_of(f.out_channels, 1, SG_DTYPE_F32, c.at_dw);
  return f;
}

enum class pass { forward, backward };

form_of<conv_form> form_for(const conv_case &c, pass of) {
  return form_of<conv_form>(of == pass::forward ? forward_of(c) : backward_of(c));
}

schedule planned(const conv_case &c, pass of, const device_model &model) {
  return *make_plan(form_for(c, of), model, {});
}

void check(const conv_case &c, const device_model &model) {
  for (const pass of : {pass::forward, pass::backward}) {
    const schedule s = planned(c, of, model);
    const auto hazards = check_hazards(s);
    ASSERT_TRUE(hazards.empty()) << text(c) << ", " << s.strategy << ": " << hazards.front().text;
    EXPECT_LT(0, s.predicted_seconds) << text(c);
    const bool resident = c.at_x == SG_MEMORY_DEVICE && c.at_y == SG_MEMORY_DEVICE && c.at_w == SG_MEMORY_DEVICE;
    if (of == pass::forward && resident && c.f.workspace > 0) {
      EXPECT_LE(s.device_bytes, c.f.workspace) << text(c);
    }
    EXPECT_LE(s.bound_seconds, s.predicted_seconds) << text(c);
  }
}

TEST(conv, every_form_is_sound) {
  std::mt19937 random(3);
  const auto below = [&](std::int64_t n) { return std::int32_t(random() % std::uint32_t(n)); };
  constexpr sg_memory_kind places[] = {SG_MEMORY_DEVICE, SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE};
  for (int turn = 0; turn < 1500 && !HasFailure(); ++turn) {
    conv_case c;
    ops::windows &w = c.f.of;
    w.groups = 1 + below(3), w.channels = w.image_channels = w.groups * (1 + below(4));
    c.f.out_channels = w.groups * (1 + below(4)), c.images = 1 + below(6);
    w.height = 1 + below(12), w.width = 1 + below(12);
    if (below(4) > 0) {
      w.kernel_h = 1 + below(3), w.kernel_w = 1 + below(3);
      w.stride_h = 1 + below(2), w.stride_w = 1 + below(2), w.pad_top = below(3), w.pad_left = below(3);
    }
    w.out_h = (w.height + w.pad_top + 3 - w.kernel_h) / w.stride_h + 1;
    w.out_w = (w.width + w.pad_left + 3 - w.kernel_w) / w.stride_w + 1;
    if (w.kernel_h * w.kernel_w == 1) w.out_h = w.height, w.out_w = w.width;
    w.channels_last = below(2), w.positions_are_rows = !w.channels_last, w.channels_inner = below(2);
    c.f.workspace = below(3) ? 0 : 100000 + below(200000);
    c.gap = below(3) ? 0 : below(5), c.f.by_device = below(3) == 0;
    constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
    c.type = types[turn % 4];
    if (below(2))
      for (sg_memory_kind *each : {&c.at_x, &c.at_y, &c.at_w, &c.at_dx, &c.at_dw}) *each = places[below(3)];
    c.has_bias = below(2), c.accumulates = below(2);
    c.dx = below(3) > 0, c.dw = below(3) > 0, c.dbias = !c.dx && !c.dw ? true : below(3) > 0;
    check(c, turn % 2 == 0 ? h200() : cores(3));
  }
}

conv_case resnet(std::int64_t images, std::int32_t channels, std::int32_t side, std::int32_t kernel) {
  conv_case c;
  ops::windows &w = c.f.of;
  c.images = images, c.type = SG_DTYPE_BF16, c.f.out_channels = channels;
  w.channels = w.image_channels = channels, w.height = w.width = w.out_h = w.out_w = side;
  w.kernel_h = w.kernel_w = kernel, w.pad_top = w.pad_left = kernel / 2;
  w.positions_are_rows = true;
  return c;
}

// Windows of one pixel are the images themselves.
TEST(conv, of_single_pixels_is_one_gemm) {
  EXPECT_EQ(1u, planned(resnet(32, 256, 14, 1), pass::forward, h200()).commands.size());
  EXPECT_EQ(0, planned(resnet(32, 256, 14, 1), pass::forward, h200()).device_bytes);
}

TEST(conv, takes_windows_beside_gemms) {
  const conv_case c = resnet(64, 64, 56, 3);
  const schedule s = planned(c, pass::forward, h200());
  EXPECT_EQ(2, s.lanes[int(lane_kind::compute)]);
  EXPECT_LE(s.device_bytes, std::int64_t(256) << 20);
  double one_after_the_other = 0;
  const timeline t = simulate(s, h200());
  for (const interval &each : t.commands) one_after_the_other += each.end - each.start;
  EXPECT_LT(t.seconds, one_after_the_other);
  for (std::size_t i = 0; i < s.commands.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (s.commands[i].is<ops::im2col>() && s.commands[j].is<ops::gemm>() && t.commands[i].start < t.commands[j].end &&
          t.commands[j].start < t.commands[i].end)
        return;
  FAIL() << "no windows are taken beside a GEMM";
}

// The batch crosses the link in parts; in and out overlap.
TEST(conv, streams_the_batch) {
  conv_case c = resnet(64, 64, 56, 3);
  c.at_x = c.at_y = SG_MEMORY_PINNED;
  const schedule s = planned(c, pass::forward, h200());
  const double bytes = 64.0 * 64 * 56 * 56 * 2;
  EXPECT_EQ(bytes, s.bytes_in);
  EXPECT_EQ(bytes, s.bytes_out);
  EXPECT_LT(s.predicted_seconds, 1.5 * bytes / h200().link_in);
  const schedule back = planned(c, pass::backward, h200());
  EXPECT_EQ(2 * bytes, back.bytes_in);
  EXPECT_LT(back.predicted_seconds, 1.25 * 2 * bytes / h200().link_in);
}

TEST(conv, fits_little_memory) {
  conv_case c = resnet(64, 64, 56, 3);
  c.at_x = c.at_y = c.at_dx = SG_MEMORY_PINNED;
  for (const pass of : {pass::forward, pass::backward}) {
    plan_request r;
    r.memory_limit = 20 << 20;
    const auto what = form_for(c, of);
    EXPECT_LE(make_plan(what, h200(), r)->device_bytes, 20 << 20);
    r.memory_limit = 1 << 16;
    try {
      make_plan(what, h200(), r);
      FAIL();
    } catch (const error &e) {
      EXPECT_EQ(SG_STATUS_OUT_OF_MEMORY, e.status()) << e.what();
    }
  }
}

// Without a caller's limit the workspace grows until it has room for a few windows.
TEST(conv, of_windows_larger_than_the_usual_workspace) {
  conv_case c = resnet(8, 768, 7, 7);
  c.f.of.groups = 768;
  for (const pass of : {pass::forward, pass::backward}) {
    c.f.workspace = 0;
    EXPECT_LT(1 << 20, planned(c, of, cores(1)).device_bytes);
    c.f.workspace = 1 << 20;
    try {
      planned(c, of, cores(1));
      FAIL();
    } catch (const error &e) {
      EXPECT_NE(nullptr, std::strstr(e.what(), "the limit is 1048576")) << e.what();
    }
  }
}

// A device's own command takes images without gaps, unless they are fewer than the cores.
TEST(conv, by_the_device_where_it_can) {
  conv_case c = resnet(16, 64, 56, 3);
  c.f.by_device = true;
  const schedule s = planned(c, pass::forward, cores(8));
  EXPECT_EQ(8u, s.commands.size());
  EXPECT_TRUE(s.commands[0].is<ops::conv>());
  EXPECT_GE(8 * ((1 << 20) + 64 * 64 * 9 * 4), s.device_bytes);  // copies of rows and filters
  c.images = 1;
  EXPECT_LT(8u, planned(c, pass::forward, cores(8)).commands.size());
  c.images = 16, c.gap = 3;
  EXPECT_LT(8u, planned(c, pass::forward, cores(8)).commands.size());
}

// On a GPU, too, unless images in another order than its kernels' cost more than the windows of few channels, or images
// come from the host.
TEST(conv, by_a_gpu_unless_images_are_the_matrix) {
  conv_case few = resnet(64, 3, 224, 3), many = resnet(32, 256, 56, 3), single = resnet(32, 256, 56, 1);
  few.f.out_channels = 64;
  few.type = many.type = single.type = SG_DTYPE_BF16;
  const auto is_by_device = [](conv_case c, bool channels_last) {
    c.f.by_device = true;
    c.f.of.channels_last = c.f.of.channels_inner = channels_last, c.f.of.positions_are_rows = !channels_last;
    const schedule s = planned(c, pass::forward, h200());
    return std::any_of(s.commands.begin(), s.commands.end(), [](const command &x) { return x.is<ops::conv>(); });
  };
  EXPECT_TRUE(is_by_device(few, false));
  EXPECT_TRUE(is_by_device(few, true));
  EXPECT_TRUE(is_by_device(many, false));
  EXPECT_TRUE(is_by_device(many, true));
  EXPECT_TRUE(is_by_device(single, false));  // a GEMM would leave its bias to another pass
  EXPECT_FALSE(is_by_device(single, true));
  many.at_x = many.at_y = SG_MEMORY_PINNED;
  EXPECT_FALSE(is_by_device(many, true));
}

// Every core has windows of its own.
TEST(conv, cores_share_an_image) {
  EXPECT_EQ(8, planned(resnet(1, 64, 56, 3), pass::forward, cores(8)).lanes[int(lane_kind::compute)]);
  EXPECT_EQ(8, planned(resnet(16, 64, 7, 3), pass::backward, cores(8)).lanes[int(lane_kind::compute)]);
}

}  // namespace
}  // namespace sg::test
