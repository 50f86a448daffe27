// SPDX-License-Identifier: Apache-2.0
// Steps of recurrent cells, in f64 for f64 and in f32 for the others; results are rounded once.
#pragma once

#include <streamgemm/backend.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "address_space.hpp"
#include "layers.hpp"

namespace sg::sim {

// Calls body<wide, narrow>() for the types of a cell's sums and of its result.
template <class Body>
void with_cell_types(sg_dtype type, Body &&body) {
  with_layer_type(type, [&]<class Narrow>() {
    if (type == SG_DTYPE_F64)
      body.template operator()<element<SG_DTYPE_F64>, Narrow>();
    else
      body.template operator()<element<SG_DTYPE_F32>, Narrow>();
  });
}

// `next` may be NULL. The command's own pointers are not used here and below.
inline void run_cell(const sg_backend_cell &what, std::byte *row, std::byte *next, std::byte *y) {
  with_cell_types(what.type, [&]<class Wide, class Narrow>() {
    using real = typename Wide::sum;
    for (std::int64_t at = 0; at < what.hidden * what.batch; ++at) {
      const std::int64_t column = at / what.hidden, i = at % what.hidden;
      auto *const of_row = stored_at<Wide>(row) + column * what.row_ld + i;
      const auto gate = [&](int index) -> auto & { return of_row[what.gates[index] * what.hidden]; };
      const auto sum = [&](int index) { return static_cast<real>(Wide::load(gate(index))); };
      const auto sigmoid = [&](int index) { return times_sigmoid<real>(1, sum(index)); };
      const real before = static_cast<real>(Wide::load(of_row[4 * what.hidden]));
      const auto keep = [&](int index, real value) {
        if (what.keeps) gate(index) = Wide::store(value);
      };
      real after = 0, h = 0;
      if (what.cell == SG_CELL_LSTM) {
        const real in = sigmoid(0), forget = sigmoid(1), g = std::tanh(sum(2)), out = sigmoid(3);
        after = forget * before + in * g;
        h = out * std::tanh(after);
        keep(0, in), keep(1, forget), keep(2, g), keep(3, out);
      } else if (what.step == SG_BACKEND_CELL_RESET) {
        h = sigmoid(1) * before;
      } else {
        const real reset = sigmoid(1), z = sigmoid(2);
        const real n = std::tanh(sum(0) + (what.cell == SG_CELL_GRU ? reset : 1) * sum(3));
        after = h = (1 - z) * n + z * before;
        keep(0, n), keep(1, reset), keep(2, z);
      }
      if (next) stored_at<Wide>(next)[column * what.next_ld + i] = Wide::store(after);
      stored_at<Narrow>(y)[column * what.y_ld + i] = Narrow::store(h);
    }
  });
}

// `dstate` may be NULL.
inline void run_cell_backward(const sg_backend_cell_backward &what, const std::byte *row, const std::byte *gradient,
                              std::byte *dstate, std::byte *dgates) {
  with_cell_types(what.type, [&]<class Wide, class Narrow>() {
    using real = typename Wide::sum;
    for (std::int64_t at = 0; at < what.hidden * what.batch; ++at) {
      const std::int64_t column = at / what.hidden, i = at % what.hidden;
      const auto *const of_row = stored_at<Wide>(row) + column * what.row_ld + i;
      const auto gate = [&](int index) {
        return static_cast<real>(Wide::load(of_row[what.gates[index] * what.hidden]));
      };
      const auto set = [&](int index, real value) {
        stored_at<Narrow>(dgates)[column * what.dgates_ld + what.gates[index] * what.hidden + i] = Narrow::store(value);
      };
      const real before = static_cast<real>(Wide::load(of_row[4 * what.hidden]));
      const real dh = static_cast<real>(Wide::load(stored_at<Wide>(gradient)[column * what.dh_ld + i]));
      auto *const kept = dstate ? stored_at<Wide>(dstate) + column * what.dstate_ld + i : nullptr;
      if (what.cell == SG_CELL_LSTM) {
        const real in = gate(0), forget = gate(1), g = gate(2), out = gate(3);
        const real t = std::tanh(forget * before + in * g),
                   dc = static_cast<real>(Wide::load(*kept)) + dh * out * (1 - t * t);
        set(0, dc * g * in * (1 - in));
        set(1, dc * before * forget * (1 - forget));
        set(2, dc * in * (1 - g * g));
        set(3, dh * t * out * (1 - out));
        *kept = Wide::store(dc * forget);
      } else {
        const real n = gate(0), reset = gate(1), z = gate(2), dn = dh * (1 - z) * (1 - n * n);
        set(0, dn);
        set(1, dn * gate(3) * reset * (1 - reset));
        set(2, dh * (before - n) * z * (1 - z));
        set(3, dn * reset);
        if (kept) *kept = Wide::store(static_cast<real>(Wide::load(*kept)) + dh * z);
      }
    }
  });
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_cell &what) {
  const sg_dtype wide = what.type == SG_DTYPE_F64 ? SG_DTYPE_F64 : SG_DTYPE_F32;
  const auto found = [&](const void *at, std::int64_t blocks, std::int64_t ld, sg_dtype type, const char *name) {
    return memory.device_bytes(const_cast<void *>(at), strided_extent(blocks * what.hidden, 1, what.batch, ld, type),
                               name);
  };
  std::byte *row = found(what.row, 5, what.row_ld, wide, "the row of a cell");
  std::byte *next = what.next ? found(what.next, 1, what.next_ld, wide, "the next state of a cell") : nullptr;
  std::byte *y = found(what.y, 1, what.y_ld, what.type, "Y of a cell");
  return [what, row, next, y] { run_cell(what, row, next, y); };
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_cell_backward &what) {
  const sg_dtype wide = what.type == SG_DTYPE_F64 ? SG_DTYPE_F64 : SG_DTYPE_F32;
  const auto found = [&](const void *at, std::int64_t blocks, std::int64_t ld, sg_dtype type, const char *name) {
    return memory.device_bytes(const_cast<void *>(at), strided_extent(blocks * what.hidden, 1, what.batch, ld, type),
                               name);
  };
  const std::byte *row = found(what.row, 5, what.row_ld, wide, "the row of a cell's gradients");
  const std::byte *dh = found(what.dh, 1, what.dh_ld, wide, "dh of a cell's gradients");
  std::byte *dstate =
      what.dstate ? found(what.dstate, 1, what.dstate_ld, wide, "the state's gradient of a cell") : nullptr;
  std::byte *dgates = found(what.dgates, 4, what.dgates_ld, what.type, "the gates' gradients of a cell");
  return [what, row, dh, dstate, dgates] { run_cell_backward(what, row, dh, dstate, dgates); };
}

}  // namespace sg::sim
