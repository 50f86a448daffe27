// SPDX-License-Identifier: Apache-2.0
#include "interpreter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "plan/schedule/lanes.hpp"
#include "plan/schedule/out_of_order_copies.hpp"

namespace sg::test {
namespace {

template <class T>
T read(const std::byte *at) {
  T v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

template <class T>
void write(std::byte *at, T v) {
  std::memcpy(at, &v, sizeof v);
}

double from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return mantissa ? std::nan("") : HUGE_VAL;
  const double magnitude = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
  return bits >> 15 ? -magnitude : magnitude;
}

// Exact for the integers of the tests; any other value is a fault of the test.
std::uint16_t to_half(double v) {
  if (std::isnan(v)) return 0xffff;
  const std::uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  if (v == 0) return sign;
  int exponent;
  const double mantissa = std::frexp(std::fabs(v), &exponent) * 2048 - 1024;
  if (mantissa != std::floor(mantissa) || exponent > 16 || exponent < -13) throw std::logic_error("not exact in f16");
  return std::uint16_t(sign | (exponent + 14) << 10 | int(mantissa));
}

std::uint16_t to_bf16(double v) {
  if (std::isnan(v)) return 0xffff;
  const auto bits = std::bit_cast<std::uint32_t>(float(v));
  if (bits & 0xffff) throw std::logic_error("not exact in bf16");
  return std::uint16_t(bits >> 16);
}

// e5m2 is the upper half of f16; of e4m3 the tests use integers only.
std::uint8_t to_e5m2(double v) {
  const std::uint16_t bits = to_half(v);
  if (bits & 0xff && !std::isnan(v)) throw std::logic_error("not exact in e5m2");
  return std::uint8_t(bits >> 8);
}
double from_e4m3(std::uint8_t bits) {
  if ((bits & 0x7f) == 0x7f) return std::nan("");
  const int exponent = bits >> 3 & 15;
  const double magnitude = exponent ? std::ldexp(8 + (bits & 7), exponent - 10) : std::ldexp(bits & 7, -9);
  return bits >> 7 ? -magnitude : magnitude;
}
std::uint8_t to_e4m3(double v) {
  for (int bits = 0; bits < 256; ++bits)
    if (from_e4m3(std::uint8_t(bits)) == v) return std::uint8_t(bits);
  if (!std::isnan(v)) throw std::logic_error("not exact in e4m3");
  return 0x7f;
}

}  // namespace

value load(sg_dtype type, const std::byte *at) {
  switch (type) {
    case SG_DTYPE_F64: return read<double>(at);
    case SG_DTYPE_F32: return read<float>(at);
    case SG_DTYPE_C64: return {read<float>(at), read<float>(at + 4)};
    case SG_DTYPE_C128: return {read<double>(at), read<double>(at + 8)};
    case SG_DTYPE_F16: return from_half(read<std::uint16_t>(at));
    case SG_DTYPE_BF16: return std::bit_cast<float>(std::uint32_t(read<std::uint16_t>(at)) << 16);
    case SG_DTYPE_I8: return read<std::int8_t>(at);
    case SG_DTYPE_I32: return read<std::int32_t>(at);
    case SG_DTYPE_F8_E4M3: return from_e4m3(read<std::uint8_t>(at));
    case SG_DTYPE_F8_E5M2: return from_half(std::uint16_t(read<std::uint8_t>(at) << 8));
  }
  throw std::logic_error("no such type");
}

void store(sg_dtype type, std::byte *at, value v) {
  switch (type) {
    case SG_DTYPE_F64: return write(at, v.real());
    case SG_DTYPE_F32: return write(at, float(v.real()));
    case SG_DTYPE_C64: write(at, float(v.real())); return write(at + 4, float(v.imag()));
    case SG_DTYPE_C128: write(at, v.real()); return write(at + 8, v.imag());
    case SG_DTYPE_F16: return write(at, to_half(v.real()));
    case SG_DTYPE_BF16: return write(at, to_bf16(v.real()));
    case SG_DTYPE_I8: return write(at, std::int8_t(v.real()));
    case SG_DTYPE_I32: return write(at, std::int32_t(v.real()));
    case SG_DTYPE_F8_E4M3: return write(at, to_e4m3(v.real()));
    case SG_DTYPE_F8_E5M2: return write(at, to_e5m2(v.real()));
  }
}

matrix_memory::matrix_memory(const operand &shape, std::int64_t batch, std::mt19937 &random, bool poison)
    : shape_(shape), shared_(!shape.pointer_array && shape.item_stride == 0) {
  constexpr std::int64_t guard = 64;
  constexpr std::byte gap{0x5a};
  const std::int64_t size = size_of(shape.type), items = shared_ ? 1 : batch;
  const std::int64_t extent = shape.rows && shape.cols ? ((shape.cols - 1) * shape.ld + shape.rows) * size : 0;
  const std::int64_t stride = shape.pointer_array ? extent + guard : shape.item_stride * size;
  for (std::int64_t i = 0; i < items; ++i) {
    // Items of a pointer array are in reverse order, so that nothing can rely on a stride.
    starts_.push_back(guard + (shape.pointer_array ? items - 1 - i : i) * stride);
  }
  bytes_.assign(std::size_t(2 * guard + (items - 1) * stride + extent), gap);
  element_.assign(bytes_.size(), false);
  std::uniform_int_distribution<int> digit(-1, 1);
  for (std::int64_t i = 0; i < items; ++i)
    for (std::int64_t c = 0; c < shape.cols; ++c)
      for (std::int64_t r = 0; r < shape.rows; ++r) {
        std::byte *at = item(i) + (r + c * shape.ld) * size;
        for (std::int64_t b = 0; b < size; ++b) element_[std::size_t(at - bytes_.data() + b)] = true;
        if (poison)
          std::memset(at, 0xff, std::size_t(size));
        else
          store(shape.type, at, {double(digit(random)), double(digit(random))});
      }
}

value matrix_memory::at(std::int64_t i, std::int64_t row, std::int64_t col) const {
  return load(shape_.type, item(i) + (row + col * shape_.ld) * size_of(shape_.type));
}

void matrix_memory::set(std::int64_t i, std::int64_t row, std::int64_t col, value v) {
  store(shape_.type, item(i) + (row + col * shape_.ld) * size_of(shape_.type), v);
}

bool matrix_memory::gaps_untouched() const {
  for (std::size_t b = 0; b < bytes_.size(); ++b)
    if (!element_[b] && bytes_[b] != std::byte{0x5a}) return false;
  return true;
}

bound_problem bind(const problem &p, std::uint32_t seed) {
  std::mt19937 random(seed);
  bound_problem bound;
  bound.p = p;
  if (is_complex(p.c.type)) {
    bound.alpha = {2, 1};
    bound.beta = {1, -1};
  }
  // Operands that must never be read are poisoned.
  bound.a = matrix_memory(p.a, p.batch, random, p.no_multiply);
  bound.b = matrix_memory(p.b, p.batch, random, p.no_multiply);
  bound.c = matrix_memory(p.c, p.batch, random, p.beta_zero);
  bound.bias = matrix_memory(p.bias, p.batch, random, false);
  return bound;
}

namespace {

value activated(sg_activation activation, value x) {
  if (activation == SG_ACTIVATION_GELU) throw std::logic_error("not exact");
  return activation == SG_ACTIVATION_RELU && x.real() < 0 ? 0 : x;
}

class interpreter {
 public:
  interpreter(const schedule &s, std::vector<bound_problem> &problems)
      : s_(s),
        problems_(problems),
        arenas_(lane_numbers(s).devices(), {std::vector<std::byte>(std::size_t(s.device_bytes), std::byte{0xff}),
                                            std::vector<std::byte>(std::size_t(s.staging_bytes), std::byte{0xff})}) {}

  void execute(const command &c) {
    for (const accessed_view &each : c.views) {
      if (!each.exists() || !on_device(each) || c.where.kind == lane_kind::staging) continue;
      const bool own = s_.buffers[each.buffer].space.device() == c.where.device;
      require(own || (c.is<ops::copy_peer>() && reads(each.mode)), "memory of another device");
    }
    if (c.is<ops::gemm>()) return gemm(c);
    if (c.is<ops::reduce>()) return reduce(c);
    copy(c);
  }

 private:
  std::byte *address(const view &v, std::int64_t item, std::int64_t row, std::int64_t col) {
    const buffer &b = s_.buffers[v.buffer];
    const std::int64_t inside = v.offset + (row + col * v.ld) * size_of(b.type);
    const std::int64_t index = v.item + item;
    if (b.kind != buffer_kind::parameter) {
      arenas &of = arenas_.at(number_of(b.space.device()));
      return (b.kind == buffer_kind::device ? of.device : of.staging).data() + b.offset + index * b.item_stride +
             inside;
    }
    bound_problem &p = problems_[b.parameter / operands_of_problem];
    matrix_memory *const operands[operands_of_problem] = {&p.a, &p.b, &p.c, &p.bias};
    matrix_memory &memory = *operands[b.parameter % operands_of_problem];
    return b.pointer_array ? memory.item(index) + inside : memory.item(0) + index * b.item_stride + inside;
  }

  value element(const view &v, std::int64_t item, std::int64_t row, std::int64_t col) {
    return load(s_.buffers[v.buffer].type, address(v, v.items == 1 ? 0 : item, row, col));
  }

  value operated(const view &v, sg_transpose op, std::int64_t item, std::int64_t row, std::int64_t col) {
    if (op == SG_TRANSPOSE_N) return element(v, item, row, col);
    const value x = element(v, item, col, row);
    return op == SG_TRANSPOSE_C ? std::conj(x) : x;
  }

  value scalar(scalar_role role, value own) const {
    switch (role) {
      case scalar_role::zero: return 0;
      case scalar_role::one: return 1;
      case scalar_role::minus_one: return -1;
      case scalar_role::conjugate: return std::conj(own);
      case scalar_role::job: break;
    }
    return own;
  }

  void require(bool condition, const char *what) const {
    if (!condition) throw std::logic_error(what);
  }

  bool on_device(const view &v) const {
    const buffer &b = s_.buffers[v.buffer];
    return b.space == SG_MEMORY_DEVICE;
  }

  // A sum as stored in element (i, j) of a command's result.
  value finished(const command &c, value sum, std::int64_t item, std::int64_t i, std::int64_t j) {
    const view &bias = c.views[ops::epilogue::bias], &result = c.views[ops::gemm::c];
    if (bias.exists()) {
      require(on_device(bias), "a bias in host memory");
      sum += bias.cols == 1 && bias.rows == result.rows ? element(bias, item, i, 0) : element(bias, item, 0, j);
    }
    return activated(epilogue_of(c).activation, sum);
  }

  void gemm(const command &command) {
    const ops::gemm &g = *command.as<ops::gemm>();
    const view &c = command.views[g.c], &a = command.views[g.a], &b = command.views[g.b];
    require(on_device(c) && on_device(a) && on_device(b), "a product of host memory");
    const bound_problem &p = problems_[command.group];
    const value alpha = scalar(g.alpha, p.alpha), beta = scalar(g.beta, p.beta);
    const sg_dtype type = s_.buffers[c.buffer].type;
    require(g.beta != scalar_role::one || type == accumulator_of(type), "sums kept in a narrow type");
    for (std::int64_t item = 0; item < c.items; ++item)
      for (std::int64_t j = 0; j < g.n; ++j)
        for (std::int64_t i = 0; i < g.m; ++i) {
          value sum = 0;
          for (std::int64_t l = 0; l < g.k; ++l)
            sum += operated(a, g.op_a, item, i, l) * operated(b, g.op_b, item, l, j);
          sum *= alpha;
          if (g.beta != scalar_role::zero) sum += beta * element(c, item, i, j);
          store(type, address(c, item, i, j), finished(command, sum, item, i, j));
        }
  }

  void reduce(const command &command) {
    const ops::reduce &r = *command.as<ops::reduce>();
    const view &c = command.views[r.c], &parts = command.views[r.parts];
    require(on_device(c) && (!parts.exists() || on_device(parts)), "a sum of host memory");
    require(c.items == 1, "a reduction has one item");
    const value beta = scalar(r.beta, problems_[command.group].beta);
    for (std::int64_t j = 0; j < c.cols; ++j)
      for (std::int64_t i = 0; i < c.rows; ++i) {
        value sum = 0;
        if (r.beta != scalar_role::zero) sum += beta * element(c, 0, i, j);
        if (parts.exists())
          for (std::int64_t part = 0; part < parts.items; ++part) sum += element(parts, part, i, j);
        store(s_.buffers[c.buffer].type, address(c, 0, i, j), finished(command, sum, 0, i, j));
      }
  }

  void narrow(const view &to, const view &from) {
    require(!on_device(from) && !on_device(to), "narrowed elsewhere than between host and staging memory");
    for (std::int64_t j = 0; j < to.cols; ++j)
      for (std::int64_t i = 0; i < to.rows; ++i) store(SG_DTYPE_BF16, address(to, 0, i, j), element(from, 0, i, j));
  }

  void copy(const command &c) {
    const view &to = destination_of(c), &from = source_of(c);
    require(to.items == 1 && from.items == 1, "a copy has one item");
    const sg_dtype type = s_.buffers[to.buffer].type, given = s_.buffers[from.buffer].type;
    if (c.is<ops::pack>() && given == SG_DTYPE_F32 && type == SG_DTYPE_BF16) return narrow(to, from);
    require(type == given, "a copy changes the type");
    const bool peers = c.is<ops::copy_peer>();
    const bool to_device = c.is<ops::copy_in>() || peers, from_device = c.is<ops::copy_out>() || peers;
    require(on_device(to) == to_device && on_device(from) == from_device, "a copy in the wrong direction");
    const ops::staging *staged = c.as<ops::pack>();
    if (c.is<ops::unpack>()) staged = c.as<ops::unpack>();
    const ops::staging part = staged ? *staged : ops::staging();
    for (std::int64_t j = 0; j < to.cols; ++j)
      for (std::int64_t i = 0; i < to.rows; ++i) {
        const bool is_below = i >= j + part.diagonal, is_above = i <= j + part.diagonal;
        if (part.accessed == stored_part::lower ? !is_below : part.accessed == stored_part::upper && !is_above)
          continue;
        std::memcpy(address(to, 0, i, j), address(from, 0, i, j), std::size_t(size_of(type)));
      }
  }

  const schedule &s_;
  std::vector<bound_problem> &problems_;
  struct arenas {
    std::vector<std::byte> device, staging;
  };
  std::vector<arenas> arenas_;  // by device
};

}  // namespace

void run(const schedule &s, std::vector<bound_problem> &problems, std::uint32_t seed) {
  std::mt19937 random(seed);
  interpreter machine(s, problems);
  // In-order lanes, and each command of host workers and each out-of-order copy by itself; the lane's next in-order
  // copy waits for the latter.
  const lane_numbers numbers(s);
  const std::vector<bool> loose = out_of_order_copies(s);
  std::vector<std::vector<std::uint32_t>> queues(std::size_t(numbers.count())), loose_before(s.commands.size());
  std::vector<std::vector<std::uint32_t>> loose_since(queues.size());  // by lane
  for (std::uint32_t i = 0; i < s.commands.size(); ++i) {
    const auto lane = std::size_t(numbers.of(s.commands[i].where));
    if (loose[i]) loose_since[lane].push_back(i);
    if (in_order(s.commands[i].where) && !loose[i]) {
      queues[lane].push_back(i);
      loose_before[i] = std::exchange(loose_since[lane], {});
    } else {
      queues.push_back({i});
    }
  }
  std::vector<std::size_t> heads(queues.size(), 0);
  std::vector<bool> done(s.commands.size(), false);
  for (std::size_t left = s.commands.size(); left > 0; --left) {
    std::vector<std::size_t> able;
    for (std::size_t l = 0; l < queues.size(); ++l) {
      if (heads[l] == queues[l].size()) continue;
      const std::uint32_t next = queues[l][heads[l]];
      const command &c = s.commands[next];
      bool waits = std::any_of(loose_before[next].begin(), loose_before[next].end(), [&](auto i) { return !done[i]; });
      for (std::uint32_t w = 0; w < c.waits; ++w) waits |= !done[s.waits[c.first_wait + w]];
      if (!waits) able.push_back(l);
    }
    if (able.empty()) throw std::logic_error("the schedule cannot go on");
    const std::size_t l = able[std::uniform_int_distribution<std::size_t>(0, able.size() - 1)(random)];
    const std::uint32_t index = queues[l][heads[l]++];
    machine.execute(s.commands[index]);
    done[index] = true;
  }
}

std::string difference(const bound_problem &before, const bound_problem &after) {
  const problem &p = before.p;
  if (!(before.a == after.a) || !(before.b == after.b) || !(before.bias == after.bias))
    return "A, B or the bias changed";
  if (!after.c.gaps_untouched()) return "something outside C was written";
  for (std::int64_t item = 0; item < p.batch; ++item)
    for (std::int64_t j = 0; j < p.n; ++j)
      for (std::int64_t i = 0; i < p.m; ++i) {
        value sum = 0;
        if (!p.no_multiply)
          for (std::int64_t l = 0; l < p.k; ++l) {
            value x = p.op_a == SG_TRANSPOSE_N ? before.a.at(item, i, l) : before.a.at(item, l, i);
            value y = p.op_b == SG_TRANSPOSE_N ? before.b.at(item, l, j) : before.b.at(item, j, l);
            if (p.op_a == SG_TRANSPOSE_C) x = std::conj(x);
            if (p.op_b == SG_TRANSPOSE_C) y = std::conj(y);
            sum += x * y;
          }
        sum *= before.alpha;
        if (!p.beta_zero) sum += before.beta * before.c.at(item, i, j);
        if (p.has_bias())
          sum += p.bias.cols == 1 && p.bias.rows == p.m ? before.bias.at(item, i, 0) : before.bias.at(item, 0, j);
        sum = activated(p.activation, sum);
        const value found = after.c.at(item, i, j);
        if (!(found == (is_complex(p.c.type) ? sum : value(sum.real()))))
          return "C(" + std::to_string(i) + ", " + std::to_string(j) + ") of item " + std::to_string(item) + " is " +
                 std::to_string(found.real()) + ", not " + std::to_string(sum.real());
      }
  return "";
}

}  // namespace sg::test
