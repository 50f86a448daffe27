// SPDX-License-Identifier: Apache-2.0
// Fills of every type at every address that a component may have; gaps and what surrounds the matrix keep their bytes.
#include "ops/fill.hpp"

#include <cstring>

#include "base/dtype.hpp"
#include "gemm_case.hpp"

namespace sg::test {
namespace {

class fill : public conformance {
 protected:
  void attempt(sg_dtype type, std::int64_t rows, std::int64_t cols, std::int64_t gap, std::int64_t shift);

  stream stream_{dev()};
};

// `shift`: bytes before the first element.
void fill::attempt(sg_dtype type, std::int64_t rows, std::int64_t cols, std::int64_t gap, std::int64_t shift) {
  const std::int64_t size = size_of(type), ld = rows + gap, behind = 32;
  std::vector<char> bytes(std::size_t(shift + ld * cols * size + behind), char(0x5a)), wanted = bytes;
  auto what = backend_command<sg_backend_fill>();
  char pattern[16];
  for (std::int64_t at = 0; at < 16; ++at) pattern[at] = char(1 + at % size);
  std::memcpy(what.pattern, pattern, sizeof pattern);
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      std::memcpy(&wanted[std::size_t(shift + (i + j * ld) * size)], pattern, std::size_t(size));
  memory at_y(dev(), std::int64_t(bytes.size()));
  at_y.write(stream_, bytes.data());
  what.m = rows, what.n = cols, what.type = type;
  what.y = static_cast<char *>(at_y.data()) + shift, what.ldy = ld;
  ASSERT_TRUE(dev()->supports(what.header));
  complete(*dev(), stream_, what);
  at_y.read(stream_, bytes.data());
  ASSERT_TRUE(wanted == bytes) << sg::name_of(type) << " " << rows << "x" << cols << " gap " << gap << " shift "
                               << shift;
}

TEST_P(fill, every_type_size_and_address) {
  for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_C64, SG_DTYPE_C128, SG_DTYPE_I8})
    for (const auto &[rows, cols] :
         {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 5}, {64, 9}, {4100, 3}, {16, 5000}, {300000, 1}})
      for (const std::int64_t gap : {0, 3, 16})
        for (const std::int64_t elements : {0, 1, 2, 8}) {
          if (rows * cols > 50000 && (gap == 3 || elements == 8)) continue;
          attempt(type, rows, cols, gap, elements * (is_complex(type) ? size_of(type) / 2 : size_of(type)));
        }
}

SG_CONFORMANCE(fill);

}  // namespace
}  // namespace sg::test
