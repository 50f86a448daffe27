// SPDX-License-Identifier: Apache-2.0
// GEMMs and reductions of the simulated device against sums in extended precision, element by element.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>

#include "backends/sim/element.hpp"
#include "sim_device.hpp"

namespace sg::test {
namespace {

using wide = std::complex<long double>;

constexpr sg_dtype gemm_types[][2] = {
    {SG_DTYPE_F64, SG_DTYPE_F64},     {SG_DTYPE_F32, SG_DTYPE_F32},     {SG_DTYPE_C64, SG_DTYPE_C64},
    {SG_DTYPE_C128, SG_DTYPE_C128},   {SG_DTYPE_F16, SG_DTYPE_F16},     {SG_DTYPE_F16, SG_DTYPE_F32},
    {SG_DTYPE_BF16, SG_DTYPE_BF16},   {SG_DTYPE_BF16, SG_DTYPE_F32},    {SG_DTYPE_I8, SG_DTYPE_I32},
    {SG_DTYPE_F8_E4M3, SG_DTYPE_F32}, {SG_DTYPE_F8_E4M3, SG_DTYPE_F16}, {SG_DTYPE_F8_E4M3, SG_DTYPE_BF16},
    {SG_DTYPE_F8_E5M2, SG_DTYPE_F32}, {SG_DTYPE_F8_E5M2, SG_DTYPE_F16}, {SG_DTYPE_F8_E5M2, SG_DTYPE_BF16},
};

// Half a unit in the last place of a stored value, relative; 0 for integers.
long double rounding(sg_dtype type) {
  switch (type) {
    case SG_DTYPE_F64:
    case SG_DTYPE_C128: return 0x1p-53L;
    case SG_DTYPE_F32:
    case SG_DTYPE_C64: return 0x1p-24L;
    case SG_DTYPE_F16: return 0x1p-11L;
    case SG_DTYPE_BF16: return 0x1p-8L;
    default: return 0;
  }
}

// Half a unit in the last place of the sums of a result.
long double rounding_of_sums(sg_dtype out) { return out == SG_DTYPE_F64 || out == SG_DTYPE_C128 ? 0x1p-53L : 0x1p-24L; }

// The byte of the nearest value: the simulated chip only reads these types.
template <sg_dtype type>
std::uint8_t nearest_f8(double value) {
  unsigned best = 0;
  const auto distance = [&](unsigned bits) { return std::fabs(sim::element<type>::load(std::uint8_t(bits)) - value); };
  for (unsigned bits = 1; bits < 256; ++bits)
    if (distance(bits) < distance(best)) best = bits;
  return std::uint8_t(best);
}

// A matrix of `items` items in host memory, in one of the device's types, with gaps of NaN (or -1).
struct host_matrix {
  sg_dtype type;
  std::int64_t rows, cols, ld, items, stride;
  std::vector<std::byte> bytes;

  host_matrix(sg_dtype t, std::int64_t r, std::int64_t c, std::int64_t gap, std::int64_t count)
      : type(t),
        rows(r),
        cols(c),
        ld(r + gap),
        items(count),
        stride(ld * c + gap),
        bytes(static_cast<std::size_t>(stride * count * element_size(t)), std::byte(0xff)) {}

  wide get(std::int64_t item, std::int64_t i, std::int64_t j) const {
    return sim::with_type(type, [&]<sg_dtype t>() {
      using traits = sim::element<t>;
      const auto *at = reinterpret_cast<const typename traits::stored *>(bytes.data()) +
                       (item * stride + i + j * ld) * traits::planes;
      return wide(traits::load(at[0]), traits::planes == 2 ? traits::load(at[traits::planes - 1]) : 0.0);
    });
  }
  void set(std::int64_t item, std::int64_t i, std::int64_t j, double re, double im) {
    sim::with_type(type, [&]<sg_dtype t>() {
      using traits = sim::element<t>;
      auto *at =
          reinterpret_cast<typename traits::stored *>(bytes.data()) + (item * stride + i + j * ld) * traits::planes;
      if constexpr (requires { traits::store(re); })
        at[0] = traits::store(re);
      else
        at[0] = nearest_f8<t>(re);
      if constexpr (traits::planes == 2) at[1] = traits::store(im);
    });
  }
  void fill(std::mt19937 &random) {
    std::uniform_real_distribution<double> real(-1, 1);
    std::uniform_int_distribution<int> whole(-128, 127);
    const bool integer = type == SG_DTYPE_I8 || type == SG_DTYPE_I32;
    for (std::int64_t item = 0; item < items; ++item)
      for (std::int64_t j = 0; j < cols; ++j)
        for (std::int64_t i = 0; i < rows; ++i) {
          const double re = integer ? whole(random) : real(random);
          set(item, i, j, re, real(random));
        }
  }
};

class device_copy {
 public:
  device_copy(sim_device &device, sim_stream &stream, const host_matrix &matrix)
      : stream_(stream), memory_(device, matrix.bytes.size()) {
    move(copy_in(memory_.get(), matrix.bytes.data(), std::int64_t(matrix.bytes.size())));
  }
  void fetch(host_matrix &matrix) {
    move(copy_out(matrix.bytes.data(), memory_.get(), std::int64_t(matrix.bytes.size())));
  }
  void *get() const { return memory_.get(); }

 private:
  void move(const sg_backend_copy &copy) {
    completion end;
    ASSERT_EQ(enqueue(stream_.handle(), copy.header, end.done()), SG_STATUS_OK);
    ASSERT_EQ(end.wait().status, SG_STATUS_OK);
  }
  sim_stream &stream_;
  sim_memory memory_;
};

struct shape {
  std::int64_t m, n, k, batch;
};

wide element_of(const host_matrix &x, sg_transpose op, std::int64_t item, std::int64_t i, std::int64_t j) {
  if (op == SG_TRANSPOSE_N) return x.get(item, i, j);
  const wide value = x.get(item, j, i);
  return op == SG_TRANSPOSE_C ? std::conj(value) : value;
}

// Bytes outside C's elements must be unchanged; elements must be as close as one rounding and sums in the
// accumulator's type allow.
void check_gemm(sim_device &device, sim_stream &stream, sg_dtype in, sg_dtype out, shape s, sg_transpose op_a,
                sg_transpose op_b, wide alpha, wide beta, bool arrays) {
  SCOPED_TRACE(testing::Message() << "types " << in << "->" << out << " m " << s.m << " n " << s.n << " k " << s.k
                                  << " batch " << s.batch << " ops " << op_a << op_b << " beta " << beta.real()
                                  << " arrays " << arrays);
  std::mt19937 random(unsigned(s.m * 31 + s.n * 7 + s.k + in));
  host_matrix a(in, op_a == SG_TRANSPOSE_N ? s.m : s.k, op_a == SG_TRANSPOSE_N ? s.k : s.m, 2, s.batch);
  host_matrix b(in, op_b == SG_TRANSPOSE_N ? s.k : s.n, op_b == SG_TRANSPOSE_N ? s.n : s.k, 1, s.batch);
  host_matrix c(out, s.m, s.n, 3, s.batch);
  a.fill(random);
  b.fill(random);
  if (beta != wide(0)) c.fill(random);  // otherwise C is NaN and must not be read
  const device_copy on_a(device, stream, a), on_b(device, stream, b);
  device_copy on_c(device, stream, c);

  auto gemm = backend_command<sg_backend_gemm>();
  gemm.m = s.m;
  gemm.n = s.n;
  gemm.k = s.k;
  gemm.batch = s.batch;
  gemm.op_a = op_a;
  gemm.op_b = op_b;
  gemm.in_type = in;
  gemm.out_type = out;
  gemm.alpha = {double(alpha.real()), double(alpha.imag())};
  gemm.beta = {double(beta.real()), double(beta.imag())};
  gemm.lda = a.ld;
  gemm.ldb = b.ld;
  gemm.ldc = c.ld;
  std::vector<const void *> a_places, b_places;
  std::vector<void *> c_places;
  const auto place = [](const void *base, const host_matrix &x, std::int64_t item) {
    return static_cast<char *>(const_cast<void *>(base)) + item * x.stride * element_size(x.type);
  };
  for (std::int64_t i = 0; i < s.batch; ++i) {
    a_places.push_back(place(on_a.get(), a, i));
    b_places.push_back(place(on_b.get(), b, i));
    c_places.push_back(place(on_c.get(), c, i));
  }
  if (arrays) {
    gemm.a_array = a_places.data();
    gemm.b_array = b_places.data();
    gemm.c_array = c_places.data();
  } else {
    gemm.a = on_a.get();
    gemm.b = on_b.get();
    gemm.c = on_c.get();
    gemm.stride_a = a.stride;
    gemm.stride_b = b.stride;
    gemm.stride_c = c.stride;
  }
  completion end;
  ASSERT_EQ(enqueue(stream.handle(), gemm.header, end.done()), SG_STATUS_OK) << device.last_message();
  a_places.assign(a_places.size(), nullptr);  // the arrays are the caller's again
  ASSERT_EQ(end.wait().status, SG_STATUS_OK);
  host_matrix got = c;
  on_c.fetch(got);

  const bool complex = is_complex(in);
  for (std::int64_t item = 0; item < s.batch; ++item)
    for (std::int64_t j = 0; j < s.n; ++j)
      for (std::int64_t i = 0; i < s.m; ++i) {
        wide sum = 0;
        long double magnitude = 0;
        for (std::int64_t p = 0; p < s.k; ++p) {
          const wide x = element_of(a, op_a, item, i, p), y = element_of(b, op_b, item, p, j);
          sum += x * y;
          magnitude += std::abs(x) * std::abs(y);
        }
        wide expected = alpha * sum;
        magnitude *= std::abs(alpha);
        if (beta != wide(0)) {
          const wide before = c.get(item, i, j);
          expected += beta * before;
          magnitude += std::abs(beta) * std::abs(before);
        }
        const long double u = rounding(out);
        const long double terms = (complex ? 2 : 1) * (s.k + 3) * rounding_of_sums(out);
        const bool whole = out == SG_DTYPE_I32;
        const long double bound = whole ? 0
                                        : u * std::abs(expected) + (1 + u) * terms / (1 - terms) * magnitude +
                                              0x1p-140L + (out == SG_DTYPE_F16 ? 0x1p-25L : 0);
        const wide value = got.get(item, i, j);
        ASSERT_LE(std::abs(value - expected), bound)
            << "item " << item << " (" << i << ", " << j << "): " << double(value.real()) << " for "
            << double(expected.real());
      }
  const std::int64_t bytes = element_size(out);
  for (std::int64_t item = 0; item < s.batch; ++item)
    for (std::int64_t j = 0; j < s.n; ++j)
      for (std::int64_t gap = (item * c.stride + j * c.ld + s.m) * bytes;
           gap < (item * c.stride + (j + 1) * c.ld) * bytes; ++gap)
        ASSERT_EQ(got.bytes[gap], std::byte(0xff)) << "written between the columns";
}

TEST(SimArithmetic, EveryGemmTypeAndOp) {
  sim_device device("h200");
  sim_stream stream(device);
  for (const auto &[in, out] : gemm_types)
    for (const sg_transpose op_a : {SG_TRANSPOSE_N, SG_TRANSPOSE_T, SG_TRANSPOSE_C})
      for (const sg_transpose op_b : {SG_TRANSPOSE_N, SG_TRANSPOSE_T, SG_TRANSPOSE_C}) {
        const bool whole = in == SG_DTYPE_I8, complex = is_complex(in);
        const wide alpha = whole ? wide(-3) : complex ? wide(0.5L, -1.25L) : wide(1.5L);
        const wide beta = whole ? wide(2) : complex ? wide(-0.25L, 2) : wide(-0.75L);
        check_gemm(device, stream, in, out, {5, 7, 9, 2}, op_a, op_b, alpha, beta, false);
        check_gemm(device, stream, in, out, {6, 4, 3, 3}, op_a, op_b, alpha, 0, true);
        check_gemm(device, stream, in, out, {1, 1, 1, 1}, op_a, op_b, 1, 1, false);
      }
}

TEST(SimArithmetic, SizesAroundTheBlocks) {
  sim_device device("h200");
  sim_stream stream(device);
  for (const std::int64_t m : {1, 127, 128, 129})
    for (const std::int64_t n : {1, 63, 64, 65})
      for (const std::int64_t k : {1, 128, 131})
        check_gemm(device, stream, SG_DTYPE_F32, SG_DTYPE_F32, {m, n, k, 1}, SG_TRANSPOSE_N, SG_TRANSPOSE_T, 1, 0,
                   false);
  check_gemm(device, stream, SG_DTYPE_C64, SG_DTYPE_C64, {130, 66, 129, 1}, SG_TRANSPOSE_C, SG_TRANSPOSE_N, 1, 0,
             false);
}

TEST(SimArithmetic, NothingIsSkipped) {
  sim_device device("h200");
  sim_stream stream(device);
  host_matrix a(SG_DTYPE_F32, 2, 2, 0, 1), b(SG_DTYPE_F32, 2, 2, 0, 1), c(SG_DTYPE_F32, 2, 2, 0, 1);
  a.set(0, 0, 0, NAN, 0), a.set(0, 0, 1, 1, 0), a.set(0, 1, 0, INFINITY, 0), a.set(0, 1, 1, 1, 0);
  b.set(0, 0, 0, 0, 0), b.set(0, 1, 0, 1, 0), b.set(0, 0, 1, 2, 0), b.set(0, 1, 1, 1, 0);
  const device_copy on_a(device, stream, a), on_b(device, stream, b);
  device_copy on_c(device, stream, c);
  const sg_backend_gemm gemm = square_gemm(2, on_a.get(), on_b.get(), on_c.get());
  completion end;
  ASSERT_EQ(enqueue(stream.handle(), gemm.header, end.done()), SG_STATUS_OK);
  end.wait();
  on_c.fetch(c);
  EXPECT_TRUE(std::isnan(c.get(0, 0, 0).real()));  // NaN * 0
  EXPECT_TRUE(std::isnan(c.get(0, 1, 0).real()));  // infinity * 0
  EXPECT_TRUE(std::isnan(c.get(0, 0, 1).real()));
  EXPECT_EQ(c.get(0, 1, 1).real(), std::numeric_limits<long double>::infinity());
}

// Odd numbers between 2049 and 4095 need 12 bits: shorter formats cannot hold them.
TEST(SimArithmetic, Float32IsNeverShortened) {
  sim_device device("h200");
  sim_stream stream(device);
  host_matrix a(SG_DTYPE_F32, 64, 64, 0, 1), b(SG_DTYPE_F32, 64, 64, 0, 1), c(SG_DTYPE_F32, 64, 64, 0, 1);
  std::mt19937 random(1);
  for (int j = 0; j < 64; ++j)
    for (int i = 0; i < 64; ++i) {
      a.set(0, i, j, 2049 + 2 * int(random() % 1024), 0);
      b.set(0, i, j, int(random() % 3) - 1, 0);
    }
  const device_copy on_a(device, stream, a), on_b(device, stream, b);
  device_copy on_c(device, stream, c);
  sg_backend_gemm gemm = square_gemm(64, on_a.get(), on_b.get(), on_c.get());
  gemm.compute = SG_COMPUTE_BF16;
  completion end;
  ASSERT_EQ(enqueue(stream.handle(), gemm.header, end.done()), SG_STATUS_OK);
  end.wait();
  on_c.fetch(c);
  for (int j = 0; j < 64; ++j)
    for (int i = 0; i < 64; ++i) {
      long double sum = 0;
      for (int p = 0; p < 64; ++p) sum += a.get(0, i, p).real() * b.get(0, p, j).real();
      ASSERT_EQ(c.get(0, i, j).real(), sum);
    }
}

TEST(SimArithmetic, ReductionsOfEveryType) {
  sim_device device("h200");
  sim_stream stream(device);
  constexpr sg_dtype sums[][2] = {
      {SG_DTYPE_F64, SG_DTYPE_F64},   {SG_DTYPE_F32, SG_DTYPE_F32}, {SG_DTYPE_C64, SG_DTYPE_C64},
      {SG_DTYPE_C128, SG_DTYPE_C128}, {SG_DTYPE_I32, SG_DTYPE_I32}, {SG_DTYPE_F32, SG_DTYPE_F16},
      {SG_DTYPE_F32, SG_DTYPE_BF16},  {SG_DTYPE_F16, SG_DTYPE_F32}, {SG_DTYPE_BF16, SG_DTYPE_F32}};
  for (const auto &[part, out] : sums)
    for (const std::int64_t count : {0, 1, 4})
      for (const double beta : {0.0, 1.0, -2.0}) {
        SCOPED_TRACE(testing::Message() << part << "->" << out << " parts " << count << " beta " << beta);
        std::mt19937 random(7);
        host_matrix parts(part, 5, 6, 1, std::max<std::int64_t>(count, 1)), c(out, 5, 6, 2, 1);
        parts.fill(random);
        if (beta != 0) c.fill(random);
        const device_copy on_parts(device, stream, parts);
        device_copy on_c(device, stream, c);
        auto reduce = backend_command<sg_backend_reduce>();
        reduce.m = 5;
        reduce.n = 6;
        if (count > 0) {
          reduce.parts = on_parts.get();
          reduce.part_type = part;
        }
        reduce.out_type = out;
        reduce.beta = {beta, 0};
        reduce.parts_count = count;
        reduce.part_ld = parts.ld;
        reduce.part_stride = parts.stride;
        reduce.c = on_c.get();
        reduce.ldc = c.ld;
        completion end;
        ASSERT_EQ(enqueue(stream.handle(), reduce.header, end.done()), SG_STATUS_OK) << device.last_message();
        ASSERT_EQ(end.wait().status, SG_STATUS_OK);
        host_matrix got = c;
        on_c.fetch(got);
        for (std::int64_t j = 0; j < 6; ++j)
          for (std::int64_t i = 0; i < 5; ++i) {
            wide expected = beta == 0 ? wide(0) : wide(beta) * c.get(0, i, j);
            long double magnitude = std::abs(expected);
            for (std::int64_t p = 0; p < count; ++p)
              expected += parts.get(p, i, j), magnitude += std::abs(parts.get(p, i, j));
            const long double sums = out == SG_DTYPE_I32 ? 0 : (count + 2) * rounding_of_sums(out) * magnitude;
            const long double bound = rounding(out) * std::abs(expected) + sums;
            ASSERT_LE(std::abs(got.get(0, i, j) - expected), bound);
          }
      }
  auto wrong = backend_command<sg_backend_reduce>();
  wrong.m = wrong.n = wrong.parts_count = wrong.part_ld = wrong.ldc = 1;
  wrong.part_type = SG_DTYPE_F64;
  wrong.out_type = SG_DTYPE_F32;
  EXPECT_EQ(enqueue(stream.handle(), wrong.header, {nullptr, nullptr}), SG_STATUS_UNSUPPORTED);
}

// Every 16-bit pattern round-trips, and a value between two neighbours rounds to the nearer, ties to the even one.
template <sg_dtype type>
void check_format(unsigned infinity) {
  using format = sim::element<type>;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = std::uint16_t(bits);
    const double value = format::load(pattern);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(format::load(format::store(value))));
      continue;
    }
    ASSERT_EQ(format::store(value), pattern) << bits;
    if (std::isinf(value) || (bits & 0x7fff) + 1 >= infinity) continue;
    const double next = format::load(std::uint16_t(bits + 1)), middle = (value + next) / 2;
    ASSERT_EQ(format::store(middle), bits & 1 ? bits + 1 : bits);
    ASSERT_EQ(format::store(std::nextafter(middle, value)), bits);
    ASSERT_EQ(format::store(std::nextafter(middle, next)), bits + 1);
  }
  EXPECT_EQ(format::store(1e300), infinity);
  EXPECT_EQ(format::store(-1e300), infinity | 0x8000);
  EXPECT_EQ(format::store(1e-300), 0);
}

TEST(SimElements, HalfFormatsRoundToNearestEven) {
  check_format<SG_DTYPE_F16>(0x7c00);
  check_format<SG_DTYPE_BF16>(0x7f80);
  using f16 = sim::element<SG_DTYPE_F16>;
  EXPECT_EQ(f16::store(65504), 0x7bff);
  EXPECT_EQ(f16::store(65519.99), 0x7bff);
  EXPECT_EQ(f16::store(65520), 0x7c00);
  EXPECT_EQ(f16::load(0x3c00), 1);
  EXPECT_EQ(sim::element<SG_DTYPE_BF16>::load(0x3f80), 1);
}

TEST(SimElements, FormatsOf8Bits) {
  using e4m3 = sim::element<SG_DTYPE_F8_E4M3>;
  using e5m2 = sim::element<SG_DTYPE_F8_E5M2>;
  EXPECT_EQ(e4m3::load(0x38), 1);
  EXPECT_EQ(e4m3::load(0x7e), 448);
  EXPECT_EQ(e4m3::load(0xfe), -448);
  EXPECT_EQ(e4m3::load(0x08), 0x1p-6);
  EXPECT_EQ(e4m3::load(0x01), 0x1p-9);
  EXPECT_TRUE(std::isnan(e4m3::load(0x7f)) && std::isnan(e4m3::load(0xff)));
  EXPECT_EQ(e5m2::load(0x3c), 1);
  EXPECT_EQ(e5m2::load(0x7b), 57344);
  EXPECT_EQ(e5m2::load(0x04), 0x1p-14);
  EXPECT_EQ(e5m2::load(0x81), -0x1p-16);
  EXPECT_EQ(e5m2::load(0xfc), -INFINITY);
  EXPECT_TRUE(std::isnan(e5m2::load(0x7d)) && std::isnan(e5m2::load(0xff)));
  // Neighbours of one sign are adjacent, and the step doubles with the exponent.
  for (unsigned bits = 1; bits < 0x7e; ++bits) {
    const auto step = [&]<class F>(F) { return F::load(std::uint8_t(bits + 1)) - F::load(std::uint8_t(bits)); };
    EXPECT_EQ(step(e4m3{}), std::ldexp(1.0, std::max(int(bits >> 3), 1) - 10)) << bits;
    if (bits < 0x7b) {
      EXPECT_EQ(step(e5m2{}), std::ldexp(1.0, std::max(int(bits >> 2), 1) - 17)) << bits;
    }
  }
}

TEST(SimElements, SumsOf32BitsWrap) {
  using i32 = sim::element<SG_DTYPE_I32>;
  EXPECT_EQ(i32::store(2147483647.0), INT32_MAX);
  EXPECT_EQ(i32::store(2147483648.0), INT32_MIN);
  EXPECT_EQ(i32::store(-2147483649.0), INT32_MAX);
  EXPECT_EQ(i32::store(-1), -1);
  EXPECT_EQ(i32::store(NAN), 0);
}

}  // namespace
}  // namespace sg::test
