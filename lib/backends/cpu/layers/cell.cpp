// SPDX-License-Identifier: Apache-2.0
#include "cell.hpp"

#include <algorithm>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/poll.hpp"

namespace sg::cpu {
namespace {

constexpr std::int64_t run_length = 512;  // values of a gate, which stay in the first-level cache with the other gates

template <class Real>
using values = Real[run_length];

// Gates of a row, from one of their values on.
template <class Real, class Command>
class gate_pointers {
 public:
  gate_pointers(const Command &what, Real *row, std::int64_t first) : what_(what), first_(row + first) {}
  Real *operator[](int gate) const noexcept { return first_ + what_.gates[gate] * what_.hidden; }
  Real *state() const noexcept { return first_ + 4 * what_.hidden; }

 private:
  const Command &what_;
  Real *first_;
};

// Calls body(column, first, count) for runs of each column.
template <class Command, class Body>
sg_status each_run(const Command &what, workspace &space, Body &&body) noexcept {
  poll end(space);
  for (std::int64_t j = 0; j < what.batch; ++j)
    for (std::int64_t first = 0; first < what.hidden; first += run_length) {
      const std::int64_t count = std::min(run_length, what.hidden - first);
      body(j, first, count);
      if (end.stops(8 * count)) return SG_STATUS_CANCELLED;
    }
  return SG_STATUS_OK;
}

template <class Real>
sg_status run_typed(const sg_backend_cell &what, workspace &space) noexcept {
  const sg_dtype wide = sum_type_of(what.type);
  const auto activate = [wide](sg_function function, Real *to, const Real *from, std::int64_t n) {
    simd().layers->unary(wide, function, to, from, n);
  };
  const auto copy = [](const Real *from, Real *to, std::int64_t n) { std::copy(from, from + n, to); };
  return each_run(what, space, [&](std::int64_t column, std::int64_t first, std::int64_t n) {
    const gate_pointers<Real, sg_backend_cell> gate(what, static_cast<Real *>(what.row) + column * what.row_ld, first);
    alignas(64) values<Real> a, b, c, d, h;
    const Real *const before = gate.state();
    const Real *after = h;
    if (what.cell == SG_CELL_LSTM) {  // a, b, c, d: i, f, g, o; then c: the state
      activate(SG_FUNCTION_SIGMOID, a, gate[0], n);
      activate(SG_FUNCTION_SIGMOID, b, gate[1], n);
      activate(SG_FUNCTION_TANH, c, gate[2], n);
      activate(SG_FUNCTION_SIGMOID, d, gate[3], n);
      if (what.keeps) copy(a, gate[0], n), copy(b, gate[1], n), copy(c, gate[2], n), copy(d, gate[3], n);
      for (std::int64_t i = 0; i < n; ++i) c[i] = b[i] * before[i] + a[i] * c[i];
      activate(SG_FUNCTION_TANH, h, c, n);
      for (std::int64_t i = 0; i < n; ++i) h[i] *= d[i];
      after = c;
    } else if (what.step == SG_BACKEND_CELL_RESET) {
      activate(SG_FUNCTION_SIGMOID, b, gate[1], n);
      for (std::int64_t i = 0; i < n; ++i) h[i] = b[i] * before[i];
    } else {  // a, b, c: n, r, z
      const Real *const own = gate[0], *const recurrent = gate[3];
      activate(SG_FUNCTION_SIGMOID, b, gate[1], n);
      activate(SG_FUNCTION_SIGMOID, c, gate[2], n);
      if (what.cell == SG_CELL_GRU)
        for (std::int64_t i = 0; i < n; ++i) a[i] = own[i] + b[i] * recurrent[i];
      else
        for (std::int64_t i = 0; i < n; ++i) a[i] = own[i] + recurrent[i];
      activate(SG_FUNCTION_TANH, a, a, n);
      if (what.keeps) copy(a, gate[0], n), copy(b, gate[1], n), copy(c, gate[2], n);
      for (std::int64_t i = 0; i < n; ++i) h[i] = (1 - c[i]) * a[i] + c[i] * before[i];
    }
    if (what.next != nullptr) copy(after, static_cast<Real *>(what.next) + column * what.next_ld + first, n);
    char *const y = static_cast<char *>(what.y) + (column * what.y_ld + first) * element_size(what.type);
    narrow(y, what.type, h, n);
  });
}

template <class Real>
sg_status run_typed(const sg_backend_cell_backward &what, workspace &space) noexcept {
  const sg_dtype wide = sum_type_of(what.type);
  return each_run(what, space, [&](std::int64_t column, std::int64_t first, std::int64_t n) {
    const gate_pointers<const Real, sg_backend_cell_backward> gate(
        what, static_cast<const Real *>(what.row) + column * what.row_ld, first);
    const Real *const state = gate.state(), *const dh =
                                                static_cast<const Real *>(what.dh) + column * what.dh_ld + first;
    Real *const dstate =
        what.dstate == nullptr ? nullptr : static_cast<Real *>(what.dstate) + column * what.dstate_ld + first;
    const Real *const g0 = gate[0], *const g1 = gate[1], *const g2 = gate[2], *const g3 = gate[3];
    alignas(64) values<Real> a, b, c, d;
    if (n < 1) __builtin_unreachable();  // GCC 12 for aarch64 warns of an uninitialised `a` otherwise
    if (what.cell == SG_CELL_LSTM) {
      for (std::int64_t i = 0; i < n; ++i) a[i] = g1[i] * state[i] + g0[i] * g2[i];
      simd().layers->unary(wide, SG_FUNCTION_TANH, b, a, n);
      for (std::int64_t i = 0; i < n; ++i) {
        const Real tanh_c = b[i], dc = dstate[i] + dh[i] * g3[i] * (1 - tanh_c * tanh_c);
        a[i] = dc * g2[i] * g0[i] * (1 - g0[i]);
        b[i] = dc * state[i] * g1[i] * (1 - g1[i]);
        c[i] = dc * g0[i] * (1 - g2[i] * g2[i]);
        d[i] = dh[i] * tanh_c * g3[i] * (1 - g3[i]);
        dstate[i] = dc * g1[i];
      }
    } else {  // a, b, c, d: of n, r, z and the state's part of n
      for (std::int64_t i = 0; i < n; ++i) {
        a[i] = dh[i] * (1 - g2[i]) * (1 - g0[i] * g0[i]);
        b[i] = a[i] * g3[i] * g1[i] * (1 - g1[i]);
        c[i] = dh[i] * (state[i] - g0[i]) * g2[i] * (1 - g2[i]);
        d[i] = a[i] * g1[i];
      }
      for (std::int64_t i = 0; dstate != nullptr && i < n; ++i) dstate[i] += dh[i] * g2[i];
    }
    const Real *const results[] = {a, b, c, d};
    for (int block = 0; block < 4; ++block)
      narrow(static_cast<char *>(what.dgates) +
                 (column * what.dgates_ld + what.gates[block] * what.hidden + first) * element_size(what.type),
             what.type, results[block], n);
  });
}

}  // namespace

sg_status run_cell(const sg_backend_cell &what, workspace &space) noexcept {
  return what.type == SG_DTYPE_F64 ? run_typed<double>(what, space) : run_typed<float>(what, space);
}

sg_status run_cell_backward(const sg_backend_cell_backward &what, workspace &space) noexcept {
  return what.type == SG_DTYPE_F64 ? run_typed<double>(what, space) : run_typed<float>(what, space);
}

}  // namespace sg::cpu
