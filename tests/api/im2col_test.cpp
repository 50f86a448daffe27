// SPDX-License-Identifier: Apache-2.0
// sg_im2col and sg_col2im: layouts, ranges of channels, large matrices, order by memory, graphs, refused calls.
// tests/backend/windows_test.cpp tries every geometry.
#include <cstring>

#include "support/numbers.hpp"
#include "support/placed_values.hpp"

namespace sg_test {
namespace {

using floats = std::vector<float>;

class im2col : public placed_values {
 protected:
  using on_device = placed<float>;
  on_device place(const std::vector<float> &values) { return placed_values::place(values); }
  static floats counted(std::int64_t n) {
    floats values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(float(i + 1));
    return values;
  }
  // Two channels of 2 x 3, windows of 2 x 2 with a column of zeros at the right.
  static sg_im2col_desc small(float *x, float *matrix) {
    sg_im2col_desc desc = SG_IM2COL_DESC_INIT;
    desc.x.data = x, desc.channels = 2, desc.height = 2, desc.width = 3;
    desc.windows.kernel_h = desc.windows.kernel_w = 2, desc.windows.pad_right = 1;
    desc.matrix = {matrix, 3, 8, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    return desc;
  }
  static sg_col2im_desc back(const sg_im2col_desc &of) {
    sg_col2im_desc desc = SG_COL2IM_DESC_INIT;
    desc.x = of.x, desc.matrix = of.matrix, desc.images = of.images, desc.channels = of.channels;
    desc.height = of.height, desc.width = of.width, desc.windows = of.windows;
    desc.first_channel = of.first_channel, desc.used_channels = of.used_channels;
    desc.image_layout = of.image_layout, desc.columns = of.columns;
    return desc;
  }
};

TEST_P(im2col, has_a_row_for_each_window) {
  const auto x = place(counted(12)), matrix = place(floats(24));
  sg_im2col_desc desc = small(x, matrix);
  ASSERT_OK(sg_im2col(context_, &desc, nullptr));
  EXPECT_EQ((floats{1, 2, 4, 5, 7, 8, 10, 11,  //
                    2, 3, 5, 6, 8, 9, 11, 12,  //
                    3, 0, 6, 0, 9, 0, 12, 0}),
            fetch(matrix, 24));
  desc.columns = SG_FILTER_OHWI;
  ASSERT_OK(sg_im2col(context_, &desc, nullptr));
  EXPECT_EQ((floats{1, 7, 2, 8, 4, 10, 5, 11}), floats(fetch(matrix, 8)));
  desc.image_layout = SG_IMAGE_NHWC, desc.matrix.layout = SG_LAYOUT_COLUMN_MAJOR;
  ASSERT_OK(sg_im2col(context_, &desc, nullptr));
  EXPECT_EQ((floats{1, 3, 5, 2, 4, 6, 3, 5, 0, 4, 6, 0}), fetch(matrix, 12));
  desc.first_channel = 1, desc.matrix.cols = 4;
  ASSERT_OK(sg_im2col(context_, &desc, nullptr));
  EXPECT_EQ((floats{2, 4, 6, 4, 6, 0}), fetch(matrix, 6));
}

TEST_P(im2col, and_its_gradient_adds_them) {
  const auto x = place(floats(12, 100)), matrix = place(floats(24, 1));
  sg_col2im_desc desc = back(small(x, matrix));
  ASSERT_OK(sg_col2im(context_, &desc, nullptr));
  EXPECT_EQ((floats{1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2}), fetch(x, 12));
  desc.accumulate = 1;
  ASSERT_OK(sg_col2im(context_, &desc, nullptr));
  EXPECT_EQ((floats{2, 4, 4, 2, 4, 4, 2, 4, 4, 2, 4, 4}), fetch(x, 12));
  desc.accumulate = 0, desc.used_channels = 1, desc.image_layout = SG_IMAGE_NHWC, desc.matrix.cols = 4;
  ASSERT_OK(sg_col2im(context_, &desc, nullptr));
  EXPECT_EQ((floats{1, 4, 2, 2, 2, 4, 1, 4, 2, 2, 2, 4}), fetch(x, 12));
  desc = back(small(x, matrix));
  desc.windows.kernel_h = 3, desc.windows.dilation_h = 2;
  EXPECT_EQ(SG_STATUS_INVALID_ARGUMENT, sg_col2im(context_, &desc, nullptr));
  EXPECT_STREQ("desc->windows.kernel_h is 3, which spans 5 rows; the padded image has 2", sg_last_error_message());
}

// On cores, long operations are split between workers.
TEST_P(im2col, large_matrices_of_several_images) {
  constexpr std::int64_t images = 5, channels = 16, side = 40, stride = channels * side * side + 3;
  const floats values = counted(images * stride);
  const auto x = place(values), matrix = place(floats(images * side * side * channels * 9));
  for (const sg_layout layout : {SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR})
    for (const sg_image_layout order : {SG_IMAGE_NCHW, SG_IMAGE_NHWC}) {
      sg_im2col_desc desc = SG_IM2COL_DESC_INIT;
      desc.x = {x, stride}, desc.images = images, desc.channels = channels, desc.height = desc.width = side;
      desc.windows.kernel_h = desc.windows.kernel_w = 3;
      desc.windows.pad_top = desc.windows.pad_left = desc.windows.pad_bottom = desc.windows.pad_right = 1;
      desc.matrix = {matrix, images * side * side, channels * 9, 0, SG_DTYPE_F32, layout};
      desc.image_layout = order;
      ASSERT_OK(sg_im2col(context_, &desc, nullptr));
      const floats found = fetch(matrix, std::size_t(desc.matrix.rows * desc.matrix.cols));
      const bool last = order == SG_IMAGE_NHWC, by_rows = layout == SG_LAYOUT_ROW_MAJOR;
      for (std::int64_t row = 0; row < desc.matrix.rows; ++row)
        for (std::int64_t col = 0; col < desc.matrix.cols; ++col) {
          const std::int64_t n = row / (side * side), c = col / 9;
          const std::int64_t h = row / side % side + col % 9 / 3 - 1, w = row % side + col % 3 - 1;
          const bool inside = h >= 0 && h < side && w >= 0 && w < side;
          const std::int64_t at = n * stride + (last ? (h * side + w) * channels + c : (c * side + h) * side + w);
          ASSERT_EQ(inside ? values[std::size_t(at)] : 0,
                    found[std::size_t(by_rows ? row * desc.matrix.cols + col : col * desc.matrix.rows + row)])
              << row << ", " << col;
        }
      // Each pixel of the middle is in nine windows.
      ASSERT_OK(sg_copy(context_, matrix, floats(found.size(), 1).data(), found.size() * sizeof(float), nullptr));
      const sg_col2im_desc add = back(desc);
      ASSERT_OK(sg_col2im(context_, &add, nullptr));
      const floats sums = fetch(x, values.size());
      for (std::int64_t i = 0; i < images * stride; ++i) {
        const std::int64_t in_image = i % stride, pixel = last ? in_image / channels : in_image % (side * side);
        const auto taps = [](std::int64_t at) { return at == 0 || at == side - 1 ? 2 : 3; };
        if (in_image < channels * side * side)
          ASSERT_EQ(float(taps(pixel / side) * taps(pixel % side)), sums[std::size_t(i)]) << i;
        else
          ASSERT_EQ(values[std::size_t(i)], sums[std::size_t(i)]) << "a gap was written";
      }
      ASSERT_OK(sg_copy(context_, x, values.data(), values.size() * sizeof(float), nullptr));
    }
}

TEST_P(im2col, follows_its_operands_and_is_recorded_in_a_graph) {
  const auto x = place(floats(12)), matrix = place(floats(24)), other = place(counted(12));
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  sg_im2col_desc take = small(x, matrix);
  sg_col2im_desc add = back(take);
  ASSERT_OK(sg_im2col_async(context_, &take, &record, nullptr));
  ASSERT_OK(sg_col2im_async(context_, &add, &record, nullptr));
  const floats values = counted(12);
  ASSERT_OK(sg_copy_async(context_, x, values.data(), 12 * sizeof(float), nullptr, nullptr));
  ASSERT_OK(sg_graph_run_async(graph, nullptr, nullptr));
  EXPECT_EQ((floats{1, 4, 6, 4, 10, 12, 7, 16, 18, 10, 22, 24}), fetch(x, 12));
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_IM2COL, update.desc = &take;
  take.x.data = other;
  ASSERT_OK(sg_graph_update(graph, 0, &update));
  update.operation = SG_OPERATION_COL2IM, update.desc = &add;
  add.x.data = other;
  ASSERT_OK(sg_graph_update(graph, 1, &update));
  ASSERT_OK(sg_graph_run_async(graph, nullptr, nullptr));
  EXPECT_EQ((floats{1, 4, 6}), fetch(other, 3));
  add.accumulate = 1;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 1, &update));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "operation->desc differs from submission 1"))
      << sg_last_error_message();
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(im2col, wrong_calls_name_the_field) {
  const floats before(24, 7.0f);
  const auto x = place(counted(12)), matrix = place(before);
  const auto bad = [&](sg_status status, const char *part, auto &&spoil) {
    sg_im2col_desc desc = small(x, matrix);
    spoil(desc);
    EXPECT_STATUS(status, sg_im2col(context_, &desc, nullptr)) << part;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message();
    sg_col2im_desc add = back(desc);
    if (desc.struct_size < sizeof desc) add.struct_size = desc.struct_size;
    EXPECT_STATUS(status, sg_col2im(context_, &add, nullptr)) << part;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message();
  };
  using d = sg_im2col_desc;
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT;
  bad(invalid, "desc->struct_size", [](d &o) { o.struct_size = 8; });
  bad(invalid, "desc->images is -1", [](d &o) { o.images = -1; });
  bad(invalid, "desc->channels is 536870912", [](d &o) { o.channels = 1 << 29; });
  bad(invalid, "desc->first_channel is 3", [](d &o) { o.first_channel = 3; });
  bad(invalid, "desc->used_channels is 3", [](d &o) { o.used_channels = 3; });
  bad(invalid, "desc->windows.kernel_h is 0", [](d &o) { o.windows.kernel_h = 0; });
  bad(invalid, "desc->windows.pad_right is -1", [](d &o) { o.windows.pad_right = -1; });
  bad(invalid, "desc->windows.stride_w is 0", [](d &o) { o.windows.stride_w = 0; });
  bad(invalid, "desc->windows.dilation_h is 0", [](d &o) { o.windows.dilation_h = 0; });
  bad(invalid, "desc->image_layout is 2", [](d &o) { o.image_layout = sg_image_layout(2); });
  bad(invalid, "desc->columns is 2", [](d &o) { o.columns = sg_filter_layout(2); });
  bad(invalid, "desc->matrix is 3 x 7; with these images and windows it must be 3 x 8",
      [](d &o) { o.matrix.cols = 7; });
  bad(invalid, "desc->x.stride is 11; an image has 12", [](d &o) { o.images = 2, o.matrix.rows = 6, o.x.stride = 11; });
  bad(invalid, "columns must be at most 2147483647", [](d &o) { o.windows.kernel_h = o.windows.kernel_w = 1 << 28; });
  bad(invalid, "desc->x.data is NULL", [](d &o) { o.x.data = nullptr; });
  bad(invalid, "desc->matrix.data is NULL", [](d &o) { o.matrix.data = nullptr; });
  bad(invalid, "overlap", [&](d &o) { o.x.data = matrix + 4; });
  sg_col2im_desc add = back(small(x, matrix));
  add.accumulate = 2;
  EXPECT_STATUS(invalid, sg_col2im(context_, &add, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "desc->accumulate is 2")) << sg_last_error_message();
  add.accumulate = 0, add.matrix.dtype = SG_DTYPE_I32;
  EXPECT_STATUS(SG_STATUS_UNSUPPORTED, sg_col2im(context_, &add, nullptr));
  EXPECT_EQ(before, fetch(matrix, 24));
  EXPECT_EQ(counted(12), fetch(x, 12));
  sg_im2col_desc empty = small(nullptr, nullptr);
  empty.images = 0, empty.matrix.rows = 0;
  EXPECT_OK(sg_im2col(context_, &empty, nullptr));
  EXPECT_STATUS(invalid, sg_im2col(context_, nullptr, nullptr));
}

ON_EACH_DEVICE(im2col);

}  // namespace
}  // namespace sg_test
