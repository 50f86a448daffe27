// SPDX-License-Identifier: Apache-2.0
// Shared by the schedules of a convolution and of its gradients: blocks of windows, each on one compute lane with a
// matrix of its own in the arena, so that the windows of one block are taken while the GEMM of another runs.
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "model/device_model.hpp"
#include "plan/layers/conv_form.hpp"
#include "plan/layers/slot_ring.hpp"
#include "plan/schedule/schedule_builder.hpp"
#include "plan/schedule/transfer.hpp"

namespace sg {

// Bytes of the matrices of windows without a caller's limit.
std::int64_t usual_conv_workspace(const device_model &model, int lanes);

// Some windows: of several images all of them.
struct conv_block {
  range images, positions;
  std::int64_t count() const noexcept { return images.size * positions.size; }
};

struct conv_cuts {
  std::int64_t parts = 1;      // of the batch: images that cross the link at once
  std::int64_t workspace = 0;  // bytes of all matrices of windows
  int lanes = 1;
};

// A batch cut into parts and blocks.
struct conv_blocks {
  std::vector<std::vector<conv_block>> of_parts;
  std::vector<range> parts;          // images
  std::int64_t most = 0, least = 0;  // windows of a block
  int lanes = 1;

  struct needs {
    std::int64_t images = 0;
    std::int64_t bytes = 0;  // of a window in the workspace, in all buffers of a lane
    int buffers = 1;
    bool merges = true;  // a block may have several images
    bool has_windows = true;
    bool splits_images = true;  // where the workspace has room for an image
  };
  // Throws SG_STATUS_OUT_OF_MEMORY.
  conv_blocks(const conv_form &f, const needs &of, const conv_cuts &cuts, const device_model &model);
  std::int64_t count() const noexcept;
};

// Images of a part on the device: the caller's, or a copy.
struct placed_images {
  std::int32_t buffer = -1;
  std::int64_t first = 0;                       // number of the image at its beginning
  std::int64_t ld = 0;                          // elements from image to image
  std::vector<std::uint32_t> ready;             // commands before any access
  std::vector<std::uint32_t> *users = nullptr;  // of a copy: commands before it is replaced
};

class conv_build {
 protected:
  using which = conv_parameter;

  // `f`: with the item strides of its operands.
  conv_build(conv_form f, const device_model &model, const conv_blocks &blocks, pageable_bytes pageable);

  bool channels_last() const noexcept { return f_.of.channels_last; }
  std::int64_t positions() const noexcept { return f_.of.positions_of_image(); }
  std::uint16_t next_lane() noexcept { return std::uint16_t(turn_++ % blocks_.lanes); }
  static std::int64_t pitch_of(std::int64_t rows) noexcept { return round_up(std::max<std::int64_t>(1, rows), grain); }
  std::int32_t alias(std::int32_t buffer, sg_dtype type, std::int64_t item_stride);  // in elements

  // The matrix of `columns` columns of a block's windows, in a buffer: as a whole, or with the groups or (by_images)
  // the images as items.
  std::int64_t matrix_pitch(const conv_block &b, std::int64_t columns) const noexcept {
    return pitch_of(channels_last() ? columns : b.count());
  }
  std::int64_t matrix_elements(std::int64_t most_windows, std::int64_t columns) const;
  view whole_matrix(std::int32_t buffer, const conv_block &b, std::int64_t columns) const;
  view matrix_items(std::int32_t buffer, sg_dtype type, const conv_block &b, std::int64_t columns, bool by_images);
  // The pixels of a block, where each window has one; the buffer's items are groups or images.
  view pixels(const placed_images &x, sg_dtype type, std::int64_t channels, const conv_block &b, bool by_images) const;
  view whole_images(const placed_images &x, sg_dtype type, std::int64_t elements, const conv_block &b) const;
  // Elements from item to item of pixels().
  static std::int64_t pixel_items(const conv_form &f, std::int64_t channels, std::int64_t positions, std::int64_t ld,
                                  bool by_images) noexcept;

  // C = op_a(A) * op_b(B) (+ C), without beta.
  command gemm(const view &c, const view &a, sg_transpose op_a, const view &b, sg_transpose op_b, std::int64_t k,
               scalar_role beta, std::uint16_t lane);
  command take_windows(const ops::windows &of, const view &images, const view &matrix, std::uint16_t lane,
                       std::int64_t first_position) const;

  // The whole of an operand on the device; its items are `item_stride` elements apart.
  std::int32_t load_whole(which x, std::int64_t item_stride, std::vector<std::uint32_t> &ready);
  // Images of a part: copied in from the host; for results only room.
  slot_ring ring_for(which x);
  placed_images place(which x, slot_ring &ring, const range &part, bool copies_in, std::int64_t item_stride);
  void bring_back(which result, const placed_images &x, const range &part, std::span<const std::uint32_t> writers);
  static std::int32_t index_of(which x) noexcept { return std::int32_t(x); }

  const conv_form f_;
  const device_model &model_;
  conv_blocks blocks_;
  schedule_builder builder_;
  transfers moves_;
  double flops_ = 0;

 private:
  std::map<std::tuple<std::int32_t, sg_dtype, std::int64_t>, std::int32_t> aliases_;
  std::int64_t turn_ = 0;
};

}  // namespace sg
