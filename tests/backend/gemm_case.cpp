// SPDX-License-Identifier: Apache-2.0
#include "gemm_case.hpp"

#include <sstream>

#include "base/dtype.hpp"

namespace sg::test {

std::string gemm_spec::text() const {
  std::ostringstream out;
  out << name_of(types.in) << "->" << name_of(types.out) << " " << m << "x" << n << "x" << k << " "
      << "NTC"[op_a] << "NTC"[op_b] << " alpha " << alpha.re << "," << alpha.im << " beta " << beta.re << "," << beta.im
      << " gap " << gap << " batch " << batch << " bias " << static_cast<int>(bias) << " activation " << activation
      << " compute " << name_of(compute);
  return out.str();
}

host_operand::host_operand(sg_dtype type, std::int64_t rows, std::int64_t cols, std::int64_t gap, std::int64_t items)
    : type(type),
      rows(rows),
      cols(cols),
      ld(rows + gap),
      items(items),
      bytes(static_cast<std::size_t>((rows + gap) * cols * items * size_of(type))) {
  poison();
}

number host_operand::get(std::int64_t item, std::int64_t row, std::int64_t col) {
  return load(type, at(item, row, col));
}
void host_operand::set(std::int64_t item, std::int64_t row, std::int64_t col, number value) {
  store(type, at(item, row, col), value);
}

void host_operand::poison() {
  const real nan = std::numeric_limits<real>::quiet_NaN();
  const number value = type == SG_DTYPE_I8 ? number(77) : type == SG_DTYPE_I32 ? number(-1234567890) : number(nan, nan);
  const auto size = static_cast<std::size_t>(size_of(type));
  if (!bytes.empty()) store(type, bytes.data(), value);
  for (std::size_t i = size; i < bytes.size(); ++i) bytes[i] = bytes[i - size];
}

void host_operand::randomise(std::mt19937_64 &from) {
  // The library's distributions take longer than the rest of the test.
  const auto unit = [](std::mt19937_64 &random) { return static_cast<double>(random() >> 11) * 0x1p-52 - 1; };
  const auto whole = [](std::mt19937_64 &random) { return static_cast<int>(random() >> 56) - 128; };
  for (std::int64_t item = 0; item < items; ++item)
    for (std::int64_t j = 0; j < cols; ++j)
      for (std::int64_t i = 0; i < rows; ++i)
        set(item, i, j, is_integer(type) ? number(whole(from)) : number(unit(from), is_complex(type) ? unit(from) : 0));
}

// The slope of GELU is nowhere above 1.13; header gemm.h allows 8 units of x besides.
real activation_error(sg_activation activation, real x, real error_of_x, real unit) {
  return activation == SG_ACTIVATION_GELU ? 1.13L * error_of_x + 8 * unit * std::abs(x) : error_of_x;
}

gemm_case::gemm_case(const gemm_spec &s, std::uint64_t seed)
    : shape(s),
      a(s.types.in, s.op_a == SG_TRANSPOSE_N ? s.m : s.k, s.op_a == SG_TRANSPOSE_N ? s.k : s.m, s.gap,
        s.form == batching::shared_a ? 1 : s.batch),
      b(s.types.in, s.op_b == SG_TRANSPOSE_N ? s.k : s.n, s.op_b == SG_TRANSPOSE_N ? s.n : s.k, s.gap, s.batch),
      c(s.types.out, s.m, s.n, s.gap, s.batch),
      bias(s.types.out, s.bias == bias_form::none ? 0 : (s.bias_per_row() ? s.m : s.n), 1, 3,
           s.own_bias() ? s.batch : 1) {
  std::mt19937_64 random(seed);
  a.randomise(random);
  b.randomise(random);
  bias.randomise(random);
  // With beta == 0, C is never read: it stays poisoned.
  if (s.beta.re != 0 || s.beta.im != 0) c.randomise(random);
}

sg_backend_gemm gemm_case::command(const void *at_a, const void *at_b, void *at_c, const void *at_bias) const {
  sg_backend_gemm x = {};
  x.m = shape.m, x.n = shape.n, x.k = shape.k, x.batch = shape.batch;
  x.op_a = shape.op_a, x.op_b = shape.op_b;
  x.compute = shape.compute;
  x.in_type = shape.types.in, x.out_type = shape.types.out;
  x.alpha = shape.alpha, x.beta = shape.beta;
  x.a = at_a, x.b = at_b, x.c = at_c;
  x.lda = a.ld, x.ldb = b.ld, x.ldc = c.ld;
  x.stride_a = shape.form == batching::shared_a ? 0 : a.item_elements();
  x.stride_b = b.item_elements(), x.stride_c = c.item_elements();
  x.activation = shape.activation;
  if (shape.bias == bias_form::none) return x;
  x.bias = at_bias;
  x.bias_per_row = shape.bias_per_row();
  x.stride_bias = shape.own_bias() ? bias.item_elements() : 0;
  return x;
}

sg_status gemm_case::run(const std::shared_ptr<device> &on, stream &in) {
  before_ = c.bytes;
  const auto size = [](const host_operand &x) { return static_cast<std::int64_t>(x.bytes.size()); };
  memory at_a(on, size(a)), at_b(on, size(b)), at_c(on, size(c)), at_bias(on, size(bias));
  at_a.write(in, a.bytes.data());
  at_b.write(in, b.bytes.data());
  at_c.write(in, c.bytes.data());
  at_bias.write(in, bias.bytes.data());
  sg_backend_gemm x = command(at_a.data(), at_b.data(), at_c.data(), at_bias.data());
  std::vector<const void *> array_a, array_b;
  std::vector<void *> array_c;
  if (shape.form == batching::pointers_b) {
    for (std::int64_t i = 0; i < shape.batch; ++i)
      array_b.push_back(at_b.data() + i * b.item_elements() * size_of(b.type));
    x.b = nullptr;
    x.b_array = array_b.data();
  }
  if (shape.form == batching::pointers || shape.form == batching::scattered) {
    for (std::int64_t item = 0; item < shape.batch; ++item) {
      const std::int64_t i = shape.matrix_of(item);
      array_a.push_back(at_a.data() + i * a.item_elements() * size_of(a.type));
      array_b.push_back(at_b.data() + i * b.item_elements() * size_of(b.type));
      array_c.push_back(at_c.data() + i * c.item_elements() * size_of(c.type));
    }
    x.a = x.b = x.c = nullptr;
    x.a_array = array_a.data(), x.b_array = array_b.data(), x.c_array = array_c.data();
  }
  listener end;
  const sg_status accepted = enqueue(*on, in, x, end.done());
  // The arrays are read only during the call.
  std::fill(array_a.begin(), array_a.end(), nullptr);
  std::fill(array_b.begin(), array_b.end(), nullptr);
  std::fill(array_c.begin(), array_c.end(), nullptr);
  if (accepted != SG_STATUS_OK) return accepted;
  EXPECT_TRUE(end.wait(1));
  at_c.read(in, c.bytes.data());
  return end.results().at(0).status;
}

namespace {

// The rows x cols numbers of op(X), row-major. `conjugated`: op is C.
template <class T>
struct op_of {
  std::int64_t rows, cols;
  std::vector<T> re, im, magnitude;  // im: of complex types only

  op_of(host_operand &x, std::int64_t item, sg_transpose op)
      : rows(op == SG_TRANSPOSE_N ? x.rows : x.cols), cols(op == SG_TRANSPOSE_N ? x.cols : x.rows) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) {
        const number value = op == SG_TRANSPOSE_N ? x.get(item, i, j) : x.get(item, j, i);
        re.push_back(static_cast<T>(value.real()));
        if (is_complex(x.type)) im.push_back(static_cast<T>(op == SG_TRANSPOSE_C ? -value.imag() : value.imag()));
        magnitude.push_back(static_cast<T>(is_complex(x.type) ? std::abs(value) : std::abs(value.real())));
      }
  }
};

// to[j] += x * from[j] for the elements of a row.
template <class T>
void add_multiple(std::vector<T> &to, T x, const T *from) {
  T *const sums = to.data();
  const std::size_t count = to.size();
  for (std::size_t j = 0; j < count; ++j) sums[j] += x * from[j];
}

}  // namespace

template <class T>
void gemm_case::add_up(std::int64_t item, std::int64_t every) {
  const op_of<T> x(a, shape.form == batching::shared_a ? 0 : item, shape.op_a), y(b, item, shape.op_b);
  const bool complex = is_complex(c.type);
  const auto n = static_cast<std::size_t>(shape.n);
  sums_.clear();
  magnitudes_.clear();
  for (std::int64_t i = 0; i < shape.m; ++i) {
    std::vector<T> re(n), im(n), magnitude(n);
    for (std::int64_t l = 0; l < shape.k && i % every == 0; ++l) {
      const auto at = static_cast<std::size_t>(i * shape.k + l);
      const T *const row = y.re.data() + l * shape.n;
      add_multiple(re, x.re[at], row);
      add_multiple(magnitude, x.magnitude[at], y.magnitude.data() + l * shape.n);
      if (!complex) continue;
      const T *const row_im = y.im.data() + l * shape.n;
      add_multiple(re, -x.im[at], row_im);
      add_multiple(im, x.re[at], row_im);
      add_multiple(im, x.im[at], row);
    }
    for (std::size_t j = 0; j < n; ++j) sums_.emplace_back(re[j], im[j]);
    magnitudes_.insert(magnitudes_.end(), magnitude.begin(), magnitude.end());
  }
}

// |C - R| <= u_out |R| + (1 + u_out) gamma(k + 3, u_sum) g + (k + 1) tiny, with g the product of the magnitudes; a bias
// is one more term, and the error that an activation makes of its argument's error replaces it. Complex: the same for
// the whole number, with four products and sums of two parts in each multiply-add.
void gemm_case::check_element(std::int64_t item, std::int64_t i, std::int64_t j) {
  const bool reads_c = shape.beta.re != 0 || shape.beta.im != 0;
  const bool complex = is_complex(c.type);
  const number alpha(shape.alpha.re, complex ? shape.alpha.im : 0), beta(shape.beta.re, complex ? shape.beta.im : 0);
  const auto size = [complex](number x) { return complex ? std::abs(x) : std::abs(x.real()); };  // hypot takes long
  const number sum = sums_[static_cast<std::size_t>(i * shape.n + j)];
  const real magnitude = magnitudes_[static_cast<std::size_t>(i * shape.n + j)];
  const number old =
      reads_c ? load(c.type, &before_[static_cast<std::size_t>(((item * c.cols + j) * c.ld + i) * size_of(c.type))])
              : 0;
  const number added = shape.bias == bias_form::none
                           ? number(0)
                           : bias.get(shape.own_bias() ? shape.matrix_of(item) : 0, shape.bias_per_row() ? i : j, 0);
  const number whole = alpha * sum + (reads_c ? beta * old : number(0)) + added;
  const number expected =
      shape.activation == SG_ACTIVATION_NONE ? whole : number(activated(shape.activation, whole.real()));
  const number found = c.get(item, i, j);
  const auto where = [&] {
    return shape.text() + " at item " + std::to_string(item) + " (" + std::to_string(i) + ", " + std::to_string(j) +
           ")";
  };
  if (c.type == SG_DTYPE_I32) {
    const auto wrapped = static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(whole.real())));
    const std::int32_t kept = shape.activation == SG_ACTIVATION_RELU && wrapped < 0 ? 0 : wrapped;
    ASSERT_EQ(static_cast<std::int64_t>(found.real()), kept) << where();
    return;
  }
  const precision p = precision_of(c.type, size_of(a.type) <= 2, shape.compute);
  const real n = real(shape.k) + 3 + (complex ? 2 : 0) + (shape.bias == bias_form::none ? 0 : 1);
  const real gamma = n * p.sum / (1 - n * p.sum);
  const real g = size(alpha) * magnitude + (reads_c ? size(beta) * size(old) : 0) + size(added);
  const real parts = complex ? std::sqrt(real{2}) : 1;
  const real error = activation_error(shape.activation, whole.real(), parts * gamma * g, p.sum);
  const real bound = p.out * size(expected) + (1 + p.out) * error + real(shape.k + 1) * p.tiny;
  ASSERT_LE(size(found - expected), bound) << where() << ": " << found << " instead of " << expected;
}

void gemm_case::check(std::int64_t every) {
  for (std::int64_t item = 0; item < c.items; ++item) {
    // Where a device sums in f32 or shorter, sums in f64 count as exact.
    c.type == SG_DTYPE_F64 || c.type == SG_DTYPE_C128 ? add_up<real>(item, every) : add_up<double>(item, every);
    for (std::int64_t j = 0; j < c.cols; ++j) {
      for (std::int64_t i = 0; i < c.rows; i += every) {
        check_element(item, i, j);
        if (testing::Test::HasFatalFailure()) return;
      }
      const auto gap = static_cast<std::size_t>(((item * c.cols + j) * c.ld + c.rows) * size_of(c.type));
      ASSERT_EQ(
          std::memcmp(&before_[0] + gap, &c.bytes[0] + gap, static_cast<std::size_t>(shape.gap * size_of(c.type))), 0)
          << shape.text() << ": written behind column " << j;
    }
  }
}

}  // namespace sg::test
