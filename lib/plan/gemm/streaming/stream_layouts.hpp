// SPDX-License-Identifier: Apache-2.0
// The orders in which host-resident operands can be streamed.
#pragma once

#include "plan/gemm/streaming/stream.hpp"

namespace sg {

enum class axis : std::uint8_t { m, n };
inline axis other(axis a) noexcept { return a == axis::m ? axis::n : axis::m; }

// One operand is resident (A when panels run along n, B when they run along m); panels of the other one and of C are
// streamed.
//
//           n -->                 The first `outer` of the depth k is streamed for all of C at once, in outer_pieces:
//       +--+--+--+--+             GEMMs begin with the first piece of either operand. The rest of the depth is
//     k |B0|B1|B2|..|             streamed by panels: B0, then A in `pieces` that are used with B0 as they arrive,
//       +--+--+--+--+             then B1, B2, ...; each panel of C is copied out when it is complete.
// +---+ +--+--+--+--+
// | A | |C0|C1|C2|..|             `head` scales the first panel, `taper` splits the last one, so that waits at either
// +---+ +--+--+--+--+             end are short.
//
// Where the link out is the bound, the first panel of C is formed in pieces `across` instead: each part of it is copied
// out as soon as its part of A has arrived, instead of waiting for all of A.
struct panel_choice {
  axis along = axis::n;
  std::int64_t panels = 1;
  double head = 1;          // width of the first panel, as a multiple of the others'
  bool taper = false;       // the last panel is split into a half and two quarters
  std::int64_t pieces = 1;  // pieces of the resident operand
  bool across = false;      // its pieces are split across the panels, not along the depth
  double outer = 0;         // share of the depth streamed for all of C at once; 0 where C is f16 or bf16
  std::int64_t outer_pieces = 1;

  bool operator==(const panel_choice &) const = default;
};
// Item after item; no operand is shared by several items.
stream_layout panel_layout(const problem &p, const panel_choice &choice);

// Tiles of C one after the other, each accumulated over the depth: needs memory for three tiles only, whatever the size
// of the matrices. Neighbouring tiles share panels that are still resident. Any batch, item after item.
struct tile_choice {
  std::int64_t tile_m = 0, tile_n = 0, tile_k = 0;
  axis inner = axis::m;  // direction of the next tile

  bool operator==(const tile_choice &) const = default;
};
stream_layout tile_layout(const problem &p, const tile_choice &choice);
// A dimension in tiles of about `tile`.
std::vector<range> cut_tiles(std::int64_t total, std::int64_t tile);

// Groups of complete items; operands that all items share are copied first and stay resident.
stream_layout item_layout(const problem &p, std::int64_t groups);

}  // namespace sg
