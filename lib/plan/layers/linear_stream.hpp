// SPDX-License-Identifier: Apache-2.0
// The gradients of a linear layer with operands on the host, as one stream in which dY crosses the link once: W comes
// in whole; then dY by blocks of rows, each of which gives rows of dX, and stays; then X by blocks of columns, each of
// which gives the part of dW for those inputs. Finished blocks of dX and dW go out at once.
#pragma once

#include "plan/layers/linear.hpp"

namespace sg {

struct linear_blocks {
  std::int64_t rows = 1, inputs = 1;  // blocks of dY's rows, and of X's columns
  // Host workers gather pinned blocks whose columns, as stored, are not contiguous: short runs are slow on the link.
  bool packs = false;
};

schedule build_linear_stream(const linear_problems &p, const linear_blocks &blocks, const device_model &model,
                             int lanes);
// Whether `packs` makes a difference.
bool has_short_runs(const linear_problems &p, const linear_blocks &blocks);

}  // namespace sg
