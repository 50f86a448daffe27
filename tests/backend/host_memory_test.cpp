// SPDX-License-Identifier: Apache-2.0
// Devices that use the host's memory: operands that touch an unreadable page, and leading dimensions so large that most
// of an operand has no memory behind it.
#include <sys/mman.h>

#include "gemm_case.hpp"

namespace sg::test {
namespace {

// `bytes` bytes between two unreadable pages: adjacent to the one behind, or to the one before.
class guarded {
 public:
  guarded(std::size_t bytes, bool at_end) : length_((bytes + page - 1) / page * page + 2 * page) {
    start_ = static_cast<char *>(mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (start_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(start_ + page, length_ - 2 * page, PROT_READ | PROT_WRITE);
    data_ = at_end ? start_ + length_ - page - bytes : start_ + page;
  }
  ~guarded() { munmap(start_, length_); }
  guarded(const guarded &) = delete;
  guarded &operator=(const guarded &) = delete;
  char *data() const { return data_; }

 private:
  static constexpr std::size_t page = 4096;
  std::size_t length_;
  char *start_, *data_;
};

class host_memory : public conformance {
 protected:
  void SetUp() override {
    if (!unified()) GTEST_SKIP() << "this device has memory of its own";
  }

  void run(const sg_backend_gemm &x) { complete(*dev(), stream_, x); }

  stream stream_{dev()};
};

// Bytes of an operand up to its last element: the last column has no gap behind it.
std::size_t footprint(const host_operand &x) {
  return static_cast<std::size_t>(((x.cols - 1) * x.ld + x.rows) * size_of(x.type));
}

TEST_P(host_memory, nothing_outside_the_operands_is_touched) {
  constexpr struct {
    std::int64_t m, n, k;
  } sizes[] = {{1, 1, 1},    {3, 1, 2},    {1, 5, 7},     {7, 5, 3},     {17, 9, 31},
               {24, 24, 24}, {33, 29, 65}, {65, 130, 33}, {100, 3, 513}, {257, 129, 5}};
  for (const pair_of_types types : all_pairs)
    for (const sg_transpose op_a : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
      for (const sg_transpose op_b : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
        for (const auto &s : sizes)
          for (const std::int64_t gap : {0, 3}) {
            gemm_case x(
                {.types = types, .m = s.m, .n = s.n, .k = s.k, .op_a = op_a, .op_b = op_b, .beta = {1, 0}, .gap = gap});
            SCOPED_TRACE(x.shape.text());
            const std::size_t bytes_a = footprint(x.a), bytes_b = footprint(x.b), bytes_c = footprint(x.c);
            for (const bool at_end : {true, false}) {
              guarded a(bytes_a, at_end), b(bytes_b, at_end), c(bytes_c, at_end);
              std::memcpy(a.data(), x.a.bytes.data(), bytes_a);
              std::memcpy(b.data(), x.b.bytes.data(), bytes_b);
              std::memcpy(c.data(), x.c.bytes.data(), bytes_c);
              run(x.command(a.data(), b.data(), c.data()));
            }
          }
}

// Each operand in turn has columns 2^30 or more elements apart.
TEST_P(host_memory, leading_dimensions_beyond_32_bits) {
  constexpr std::int64_t far[] = {std::int64_t{1} << 30, (std::int64_t{1} << 31) + 8};
  for (const pair_of_types types : all_pairs)
    for (const std::int64_t ld : far)
      for (int which = 0; which < 3; ++which)
        for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T}) {
          gemm_case x(
              {.types = types, .m = 5, .n = 3, .k = 4, .op_a = op, .op_b = op, .alpha = {2, 0}, .beta = {3, 0}});
          gemm_case near = x;
          ASSERT_EQ(near.run(dev(), stream_), SG_STATUS_OK);
          near.check();
          host_operand &wide = which == 0 ? x.a : which == 1 ? x.b : x.c;
          const std::int64_t size = size_of(wide.type);
          const auto length = static_cast<std::size_t>((ld * (wide.cols - 1) + wide.rows) * size);
          void *space =
              mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
          ASSERT_NE(space, MAP_FAILED);
          char *spread = static_cast<char *>(space);
          for (std::int64_t j = 0; j < wide.cols; ++j)
            std::memcpy(spread + j * ld * size, wide.at(0, 0, j), static_cast<std::size_t>(wide.rows * size));
          sg_backend_gemm command = x.command(x.a.bytes.data(), x.b.bytes.data(), x.c.bytes.data());
          (which == 0 ? command.a : which == 1 ? command.b : const_cast<const void *&>(command.c)) = space;
          (which == 0 ? command.lda : which == 1 ? command.ldb : command.ldc) = ld;
          run(command);
          if (which == 2)
            for (std::int64_t j = 0; j < wide.cols; ++j)
              std::memcpy(wide.at(0, 0, j), spread + j * ld * size, static_cast<std::size_t>(wide.rows * size));
          munmap(space, length);
          for (std::int64_t j = 0; j < 3; ++j)
            for (std::int64_t i = 0; i < 5; ++i)
              ASSERT_LE(std::abs(x.c.get(0, i, j) - near.c.get(0, i, j)), 0.02L * (1 + std::abs(near.c.get(0, i, j))))
                  << x.shape.text();
        }
}

SG_CONFORMANCE(host_memory);

}  // namespace
}  // namespace sg::test
