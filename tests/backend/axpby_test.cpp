// SPDX-License-Identifier: Apache-2.0
// Scale-and-add against a reference of higher precision; gaps keep their bytes.
#include "ops/axpby.hpp"

#include <cstring>
#include <random>

#include "base/dtype.hpp"
#include "gemm_case.hpp"

namespace sg::test {
namespace {

class axpby : public conformance {
 protected:
  void try_shape(sg_dtype type, std::int64_t m, std::int64_t n, std::int64_t gap, number alpha, number beta,
                 sg_activation activation) {
    std::mt19937_64 random(static_cast<std::uint64_t>(m * 1000 + n * 10 + gap));
    host_operand a(type, m, n, gap, 1), c(type, m, n, 2 * gap, 1);
    if (alpha != number(0)) a.randomise(random);  // otherwise it stays poisoned
    if (beta != number(0)) c.randomise(random);
    host_operand before = c;
    memory at_a(dev(), static_cast<std::int64_t>(a.bytes.size())),
        at_c(dev(), static_cast<std::int64_t>(c.bytes.size()));
    at_a.write(stream_, a.bytes.data());
    at_c.write(stream_, c.bytes.data());
    auto x = backend_command<sg_backend_axpby>();
    x.m = m, x.n = n, x.type = type, x.activation = activation;
    x.alpha = {static_cast<double>(alpha.real()), static_cast<double>(alpha.imag())};
    x.beta = {static_cast<double>(beta.real()), static_cast<double>(beta.imag())};
    if (alpha != number(0)) x.a = at_a.data();
    x.lda = a.ld, x.c = at_c.data(), x.ldc = c.ld;
    ASSERT_TRUE(dev()->supports(x.header));
    complete(*dev(), stream_, x);
    at_c.read(stream_, c.bytes.data());
    const std::int64_t size = size_of(type);
    const precision p = precision_of(type, false);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < c.ld; ++i) {
        const auto at = static_cast<std::size_t>((i + j * c.ld) * size);
        if (i >= m) {
          ASSERT_EQ(0, std::memcmp(&before.bytes[at], &c.bytes[at], static_cast<std::size_t>(size)))
              << "a gap was written";
          continue;
        }
        number sum = 0;
        real magnitude = 0;
        if (alpha != number(0)) sum += alpha * a.get(0, i, j), magnitude += std::abs(alpha * a.get(0, i, j));
        if (beta != number(0)) sum += beta * before.get(0, i, j), magnitude += std::abs(beta * before.get(0, i, j));
        const number wanted = is_complex(type) ? sum : number(activated(activation, sum.real()));
        const number found = load(type, &c.bytes[at]);
        const real u = p.sum, parts = is_complex(type) ? std::sqrt(real{2}) : 1;
        const real error = activation_error(activation, std::abs(sum), parts * 5 * u * magnitude, u);
        const real bound = is_integer(type) ? 0 : p.out * std::abs(wanted) + (1 + p.out) * error + 3 * p.tiny;
        ASSERT_LE(std::abs(found - wanted), bound) << name_of(type) << " " << m << "x" << n << " at " << i << ", " << j;
      }
  }

  stream stream_{dev()};
};

TEST_P(axpby, every_type_scalar_and_activation) {
  for (const sg_dtype type :
       {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16, SG_DTYPE_C64, SG_DTYPE_C128, SG_DTYPE_I32})
    for (const number alpha : {number(0), number(1), number(-2, is_complex(type) ? 1 : 0)})
      for (const number beta : {number(0), number(1), number(3, is_complex(type) ? -1 : 0)})
        for (const sg_activation activation : {SG_ACTIVATION_NONE, SG_ACTIVATION_RELU, SG_ACTIVATION_GELU}) {
          if (activation != SG_ACTIVATION_NONE && is_complex(type)) continue;
          if (activation == SG_ACTIVATION_GELU && is_integer(type)) continue;
          for (const std::int64_t gap : {0, 3}) {
            try_shape(type, 7, 5, gap, alpha, beta, activation);
            try_shape(type, 1, 9, gap, alpha, beta, activation);
            try_shape(type, 1300, 2, gap, alpha, beta, activation);
          }
        }
}

TEST_P(axpby, types_that_no_device_has) {
  for (const sg_dtype type : {SG_DTYPE_I8, SG_DTYPE_F8_E4M3, SG_DTYPE_F8_E5M2}) {
    auto x = backend_command<sg_backend_axpby>();
    x.m = x.n = x.ldc = 1, x.type = type;
    EXPECT_FALSE(dev()->supports(x.header)) << name_of(type);
  }
}

SG_CONFORMANCE(axpby);

}  // namespace
}  // namespace sg::test
