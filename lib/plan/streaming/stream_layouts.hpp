// SPDX-License-Identifier: Apache-2.0
// The orders in which host-resident operands can be streamed.
#pragma once

#include "plan/streaming/stream.hpp"

namespace sg {

enum class axis : std::uint8_t { m, n };
inline axis other(axis a) noexcept { return a == axis::m ? axis::n : axis::m; }

// One operand stays (A when panels run along n, B when they run along m); the other one and C pass by in panels.
//
//            n -->                 first `outer` of the depth k is streamed for all of C at once, in outer_pieces:
//        +--+--+--+--+             products begin with the first piece of either operand. The rest of the depth is
//      k |B0|B1|B2|..|             streamed panel by panel: B0, then A in `pieces` that are used with B0 as they
//        +--+--+--+--+             arrive, then B1, B2, ...; each panel of C leaves when it is complete.
//  +---+ +--+--+--+--+
//  | A | |C0|C1|C2|..|             `head` narrows the first panel, `taper` the last ones, so that little is waited for
//  +---+ +--+--+--+--+             at either end.
//
// Where C's way home is the bound, the first panel of C is formed in pieces `across` instead: each part of it leaves as
// soon as its part of A is there, instead of all of it when all of A is.
struct panel_choice {
  axis along = axis::n;
  std::int64_t panels = 1;
  double head = 1;          // width of the first panel, as a multiple of the others'
  bool taper = false;       // the last panel is cut into a half and two quarters
  std::int64_t pieces = 1;  // of the operand that stays
  bool across = false;      // its pieces are cut across the panels, not along the depth
  double outer = 0;         // share of the depth streamed for all of C at once; 0 where C is f16 or bf16
  std::int64_t outer_pieces = 1;

  bool operator==(const panel_choice &) const = default;
};
// Item after item; no operand is shared by several items.
stream_layout panel_layout(const problem &p, const panel_choice &choice);

// Tiles of C one after the other, each accumulated over the depth: needs three tiles of memory, however large the
// matrices are. Neighbouring tiles share panels where these are still there. Any batch, item after item.
struct tile_choice {
  std::int64_t tile_m = 0, tile_n = 0, tile_k = 0;
  axis inner = axis::m;  // along which the next tile lies

  bool operator==(const tile_choice &) const = default;
};
stream_layout tile_layout(const problem &p, const tile_choice &choice);
// A dimension in tiles of about `tile`.
std::vector<range> cut_tiles(std::int64_t total, std::int64_t tile);

// Groups of whole items; operands that all items share come first and stay.
stream_layout item_layout(const problem &p, std::int64_t groups);

}  // namespace sg
