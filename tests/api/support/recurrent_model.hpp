// SPDX-License-Identifier: Apache-2.0
// Recurrent layers in extended precision, and their operands in device memory.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {

// Values of count x rows x width elements with any strides in device memory, read and written in a copy.
class strided_values {
 public:
  strided_values(sg_context *on, sg_dtype type, std::int64_t count, std::int64_t stride, std::int64_t rows,
                 std::int64_t row_stride, std::int64_t width)
      : on_(on), type_(type), counts_{count, rows, width}, strides_{stride, row_stride, 1} {
    const std::int64_t last =
        std::max<std::int64_t>(0, count - 1) * stride + std::max<std::int64_t>(0, rows - 1) * row_stride;
    image_.assign(std::size_t((last + std::max<std::int64_t>(1, width)) * size()), 0x5a);
    EXPECT_OK(sg_buffer_create(on, image_.size(), memory_.out()));
    EXPECT_OK(sg_buffer_data(memory_, &data_));
    write();
  }
  void *data() const { return data_; }
  std::int64_t elements() const { return counts_[0] * counts_[1] * counts_[2]; }
  std::vector<long double> get() {
    std::vector<long double> values;
    each([&](unsigned char *at) { values.push_back(load(type_, at).real()); });
    return values;
  }
  void set(const std::vector<long double> &values) {
    std::size_t next = 0;
    each([&](unsigned char *at) { store(type_, at, values[next++]); });
    write();
  }
  void randomise(random_source &random, double scale) {
    std::vector<long double> values;
    for (std::int64_t i = 0; i < elements(); ++i) values.push_back(scale * random.real());
    set(values);
  }
  // Reads what the device has now; fails if a gap has changed.
  void fetch() {
    std::vector<unsigned char> before = image_;
    EXPECT_OK(sg_copy(on_, image_.data(), data_, image_.size(), nullptr));
    std::vector<unsigned char> now = image_;
    each([&](unsigned char *at) {
      const std::ptrdiff_t offset = at - image_.data();
      std::copy_n(now.begin() + offset, size(), before.begin() + offset);
    });
    EXPECT_EQ(before, now) << "a gap was written";
  }

 private:
  std::int64_t size() const { return static_cast<std::int64_t>(sg_dtype_size(type_)); }
  void write() { EXPECT_OK(sg_copy(on_, data_, image_.data(), image_.size(), nullptr)); }
  template <class Body>
  void each(Body &&body) {
    for (std::int64_t i = 0; i < counts_[0]; ++i)
      for (std::int64_t j = 0; j < counts_[1]; ++j)
        for (std::int64_t k = 0; k < counts_[2]; ++k)
          body(image_.data() + (i * strides_[0] + j * strides_[1] + k) * size());
  }

  sg_context *on_;
  sg_dtype type_;
  std::int64_t counts_[3], strides_[3];
  buffer memory_;
  void *data_ = nullptr;
  std::vector<unsigned char> image_;
};

struct recurrent_shape {
  sg_cell cell = SG_CELL_LSTM;
  sg_gate_order order = SG_GATE_ORDER_DEFAULT;
  std::int64_t steps = 1, batch = 1, in = 1, hidden = 1;
  bool reverse = false;

  std::int64_t gates() const { return cell == SG_CELL_LSTM ? 4 : 3; }
};

// Operands by name, in the order of steps, sequences and values. Missing ones are zeros.
struct recurrent_values {
  std::vector<long double> x, w_ih, w_hh, bias_ih, bias_hh, h0, c0;
};

struct recurrent_results {
  std::vector<long double> y, hn, cn;
};

// The formulas of recurrent.h. `rounds`: h is rounded to the type after each step.
inline recurrent_results run_recurrent(const recurrent_shape &s, const recurrent_values &v, sg_dtype type,
                                       bool rounds) {
  using real = long double;
  const auto sigmoid = [](real a) { return 1 / (1 + std::exp(-a)); };
  const auto row_of = [&](int gate) {  // the block of i, f, g, o, or r, z, n
    static constexpr int lstm[] = {0, 2, 3, 1}, gru[] = {1, 0, 2};
    return s.order == SG_GATE_ORDER_DEFAULT ? gate : s.cell == SG_CELL_LSTM ? lstm[gate] : gru[gate];
  };
  const std::int64_t h_size = s.hidden;
  const auto at = [](const std::vector<real> &of, std::int64_t index) {
    return of.empty() ? real(0) : of[std::size_t(index)];
  };
  recurrent_results out;
  out.y.resize(std::size_t(s.steps * s.batch * h_size));
  out.hn.resize(std::size_t(s.batch * h_size)), out.cn.resize(out.hn.size());
  for (std::int64_t b = 0; b < s.batch; ++b) {
    std::vector<real> h, c;
    for (std::int64_t k = 0; k < h_size; ++k)
      h.push_back(at(v.h0, b * h_size + k)), c.push_back(at(v.c0, b * h_size + k));
    for (std::int64_t turn = 0; turn < s.steps; ++turn) {
      const std::int64_t t = s.reverse ? s.steps - 1 - turn : turn;
      const auto input = [&](int gate, std::int64_t k) {
        const std::int64_t row = row_of(gate) * h_size + k;
        real sum = at(v.bias_ih, row);
        for (std::int64_t i = 0; i < s.in; ++i)
          sum += at(v.w_ih, row * s.in + i) * at(v.x, (t * s.batch + b) * s.in + i);
        return sum;
      };
      const auto recurrent = [&](int gate, std::int64_t k, const std::vector<real> &state) {
        const std::int64_t row = row_of(gate) * h_size + k;
        real sum = at(v.bias_hh, row);
        for (std::int64_t i = 0; i < h_size; ++i) sum += at(v.w_hh, row * h_size + i) * state[std::size_t(i)];
        return sum;
      };
      std::vector<real> next = h, reset = h;
      if (s.cell == SG_CELL_GRU_RESET_BEFORE)
        for (std::int64_t k = 0; k < h_size; ++k) {
          reset[std::size_t(k)] *= sigmoid(input(0, k) + recurrent(0, k, h));
          if (rounds) {
            unsigned char bytes[8];
            store(type, bytes, reset[std::size_t(k)]);
            reset[std::size_t(k)] = load(type, bytes).real();
          }
        }
      for (std::int64_t k = 0; k < h_size; ++k) {
        const auto both = [&](int gate) { return input(gate, k) + recurrent(gate, k, h); };
        real &state = next[std::size_t(k)];
        if (s.cell == SG_CELL_LSTM) {
          c[std::size_t(k)] = sigmoid(both(1)) * c[std::size_t(k)] + sigmoid(both(0)) * std::tanh(both(2));
          state = sigmoid(both(3)) * std::tanh(c[std::size_t(k)]);
        } else {
          const real z = sigmoid(both(1));
          const real n = s.cell == SG_CELL_GRU ? std::tanh(input(2, k) + sigmoid(both(0)) * recurrent(2, k, h))
                                               : std::tanh(input(2, k) + recurrent(2, k, reset));
          state = (1 - z) * n + z * h[std::size_t(k)];
        }
        if (rounds) {
          unsigned char bytes[8];
          store(type, bytes, state);
          state = load(type, bytes).real();
        }
        out.y[std::size_t((t * s.batch + b) * h_size + k)] = state;
      }
      h = next;
    }
    for (std::int64_t k = 0; k < h_size; ++k)
      out.hn[std::size_t(b * h_size + k)] = h[std::size_t(k)], out.cn[std::size_t(b * h_size + k)] = c[std::size_t(k)];
  }
  return out;
}

// The gradient of a loss with respect to one of the operands, by central differences.
inline std::vector<long double> difference_gradient(recurrent_values &values,
                                                    std::vector<long double> recurrent_values::*of,
                                                    const std::function<long double()> &loss) {
  constexpr long double step = 1e-5L;
  std::vector<long double> gradient;
  for (long double &each : values.*of) {
    const long double kept = each;
    each = kept + step;
    const long double above = loss();
    each = kept - step;
    gradient.push_back((above - loss()) / (2 * step));
    each = kept;
  }
  return gradient;
}

}  // namespace sg_test
