// SPDX-License-Identifier: Apache-2.0
// Reductions: C = beta * C + the partial results, in their order, rounded once.
#include <random>

#include "base/dtype.hpp"
#include "harness.hpp"
#include "numbers.hpp"

namespace sg::test {
namespace {

constexpr struct {
  sg_dtype part, out;
} pairs[] = {{SG_DTYPE_F64, SG_DTYPE_F64},   {SG_DTYPE_F32, SG_DTYPE_F32}, {SG_DTYPE_C64, SG_DTYPE_C64},
             {SG_DTYPE_C128, SG_DTYPE_C128}, {SG_DTYPE_F32, SG_DTYPE_F16}, {SG_DTYPE_F32, SG_DTYPE_BF16},
             {SG_DTYPE_I32, SG_DTYPE_I32},   {SG_DTYPE_F16, SG_DTYPE_F32}, {SG_DTYPE_BF16, SG_DTYPE_F32}};

class reduce : public conformance {
 protected:
  // Runs it on images of C and of the partial results; C's image is replaced by the result.
  void run(sg_backend_reduce x, std::vector<char> &c, const std::vector<char> &parts) {
    memory at_c(dev(), static_cast<std::int64_t>(c.size())), at_parts(dev(), static_cast<std::int64_t>(parts.size()));
    at_c.write(stream_, c.data());
    at_parts.write(stream_, parts.data());
    x.c = at_c.data();
    x.parts = x.parts_count > 0 ? at_parts.data() : nullptr;
    complete(*dev(), stream_, x);
    at_c.read(stream_, c.data());
  }

  stream stream_{dev()};
};

TEST_P(reduce, every_type_beta_and_number_of_parts) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> unit(-1, 1);
  const auto any = [&](sg_dtype type) {
    return is_integer(type) ? number(static_cast<std::int32_t>(random()))
                            : number(unit(random), is_complex(type) ? unit(random) : 0);
  };
  for (const auto &types : pairs)
    for (const std::int64_t count : {0, 1, 2, 5})
      for (const sg_scalar beta : {sg_scalar{0, 0}, sg_scalar{1, 0}, sg_scalar{-3, is_complex(types.out) ? 2.0 : 0.0}})
        for (const std::int64_t m : {1, 17, 513, 1100}) {
          if (count == 0 && beta.re == 1) continue;
          const std::int64_t n = 3, ldc = m + 2, part_ld = m + 1, part_stride = part_ld * n + 3;
          const std::int64_t size = size_of(types.out), part_size = size_of(types.part);
          std::vector<char> c(static_cast<std::size_t>(ldc * n * size)),
              parts(static_cast<std::size_t>(part_stride * count * part_size) + 16);
          const number poison = is_integer(types.out) ? number(-99) : number(std::numeric_limits<real>::quiet_NaN());
          for (std::int64_t i = 0; i < ldc * n; ++i)
            store(types.out, &c[static_cast<std::size_t>(i * size)],
                  i % ldc < m && beta.re != 0 ? any(types.out) : poison);
          for (std::int64_t i = 0; i < part_stride * count; ++i)
            store(types.part, &parts[static_cast<std::size_t>(i * part_size)], any(types.part));
          const std::vector<char> before = c;
          sg_backend_reduce x = {};
          x.m = m, x.n = n, x.part_type = types.part, x.out_type = types.out, x.beta = beta;
          x.parts_count = count, x.part_ld = part_ld, x.part_stride = part_stride, x.ldc = ldc;
          run(x, c, parts);
          if (HasFatalFailure()) return;
          for (std::int64_t i = 0; i < ldc * n; ++i) {
            const std::int64_t row = i % ldc, col = i / ldc;
            const auto where = [&] {
              return std::string(name_of(types.out)) + " m " + std::to_string(m) + " parts " + std::to_string(count) +
                     " beta " + std::to_string(beta.re) + " at " + std::to_string(row) + ", " + std::to_string(col);
            };
            const auto at = static_cast<std::size_t>(i * size);
            if (row >= m) {
              ASSERT_EQ(std::memcmp(&c[at], &before[at], static_cast<std::size_t>(size)), 0) << where();
              continue;
            }
            number sum = 0;
            real magnitude = 0;
            if (beta.re != 0)
              sum = number(beta.re, beta.im) * load(types.out, &before[at]), magnitude = std::abs(sum) * 2;
            for (std::int64_t p = 0; p < count; ++p) {
              const number part = load(
                  types.part, &parts[static_cast<std::size_t>((p * part_stride + col * part_ld + row) * part_size)]);
              sum += part, magnitude += std::abs(part);
            }
            const number found = load(types.out, &c[at]);
            if (types.out == SG_DTYPE_I32) {
              ASSERT_EQ(static_cast<std::int32_t>(found.real()),
                        static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum.real()))))
                  << where();
              continue;
            }
            const precision p = precision_of(types.out, false);
            const real u = types.part == SG_DTYPE_F64 || types.part == SG_DTYPE_C128 ? std::ldexp(real{1}, -53)
                                                                                     : std::ldexp(real{1}, -24);
            ASSERT_LE(std::abs(found - sum), p.out * std::abs(sum) + real(count + 3) * u * magnitude * 1.1L + p.tiny)
                << where();
          }
        }
}

// Every 16-bit number passes unchanged through beta = 1 and a partial result of zeros, NaN as some NaN; halfway sums
// round to even.
TEST_P(reduce, sixteen_bit_results_are_rounded_once_to_even) {
  for (const sg_dtype type : {SG_DTYPE_F16, SG_DTYPE_BF16}) {
    const format &f = type == SG_DTYPE_F16 ? f16_format : bf16_format;
    std::vector<char> c(65536 * 2), parts(65536 * 4);
    for (int i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      std::memcpy(&c[static_cast<std::size_t>(2 * i)], &bits, 2);
    }
    const std::vector<char> before = c;
    sg_backend_reduce x = {};
    x.m = 65536, x.n = 1, x.part_type = SG_DTYPE_F32, x.out_type = type, x.beta = {1, 0};
    x.parts_count = 1, x.part_ld = x.part_stride = x.ldc = 65536;
    run(x, c, parts);
    for (int i = 0; i < 65536; ++i) {
      const auto at = static_cast<std::size_t>(2 * i);
      const real was = load(type, &before[at]).real(), is = load(type, &c[at]).real();
      ASSERT_TRUE(was == is || (std::isnan(was) && std::isnan(is))) << name_of(type) << " " << i << ": " << is;
    }
    // Between each two neighbours: exactly halfway, and slightly to either side.
    for (const int hair : {-1, 0, 1}) {
      for (int i = 0; i < 65536; ++i) {
        const real low = decode_16(f, static_cast<std::uint16_t>(i)),
                   high = decode_16(f, static_cast<std::uint16_t>(i + 1));
        float middle = static_cast<float>(std::isfinite(low) && std::isfinite(high) ? (low + high) / 2 : low);
        if (hair != 0) middle = std::nextafter(middle, hair * std::numeric_limits<float>::infinity());
        std::memcpy(&parts[static_cast<std::size_t>(4 * i)], &middle, 4);
      }
      x.beta = {0, 0};
      run(x, c, parts);
      for (int i = 0; i < 65536; ++i) {
        float part;
        std::memcpy(&part, &parts[static_cast<std::size_t>(4 * i)], 4);
        const real expected = round_to(f, part), is = load(type, &c[static_cast<std::size_t>(2 * i)]).real();
        ASSERT_TRUE(expected == is || (std::isnan(expected) && std::isnan(is)))
            << name_of(type) << " " << part << ": " << is << ", not " << expected;
      }
    }
  }
}

SG_CONFORMANCE(reduce);

}  // namespace
}  // namespace sg::test
