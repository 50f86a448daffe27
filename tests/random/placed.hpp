// SPDX-License-Identifier: Apache-2.0
// The operands of a GEMM and of a copy in memory: filled, described to the library, and checked byte by byte.
#pragma once

#include <optional>
#include <vector>

#include "arena.hpp"
#include "case.hpp"
#include "data.hpp"
#include "reference.hpp"

namespace sg_test::random_tests {

class placed_operand {
 public:
  placed_operand() = default;
  placed_operand(arena &memory, const operand_case &where, const extent_of_operand &extent, sg_dtype type);

  // Gives every element of the footprint its value (data.hpp).
  void fill(const gemm_case &p, int which);
  void set(const element_value &element);
  void make_nan(std::uint32_t choice);
  void remember() { before_.assign(block_.image, block_.image + block_.size); }

  const extent_of_operand &extent() const { return extent_; }
  sg_matrix view(const operand_case &x) const;
  void *first() const;
  void *const *pointers() const { return pointers_.empty() ? nullptr : pointers_.data(); }
  operand_image image() const { return {block_.image, extent_}; }
  operand_image image_before() const { return {before_.data(), extent_}; }
  bool is_unchanged() const;
  // Whether only elements have changed.
  bool gaps_are_unchanged() const;

 private:
  template <class Visit>
  void each_run(Visit &&visit) const;  // visit(offset in elements, elements)

  extent_of_operand extent_;
  sg_dtype type_ = SG_DTYPE_F32;
  block block_;
  std::vector<std::uint8_t> before_;
  std::vector<void *> pointers_;
};

class placed_gemm {
 public:
  // `a`: the C of an earlier step, used as A.
  placed_gemm(arena &memory, const gemm_case &p, const placed_operand *a);

  sg_gemm_desc desc() const;
  void remember();
  std::optional<fault> check(int parts) const;
  fault last_element(int parts) const;

  placed_operand c;

 private:
  const placed_operand &a() const { return a_ ? *a_ : own_a_; }
  const placed_operand &b() const { return p_.b_is_a ? a() : own_b_; }
  gemm_images images() const { return {a().image(), b().image(), c.image(), c.image_before(), bias_.image()}; }

  const gemm_case &p_;
  const placed_operand *a_;
  placed_operand own_a_, own_b_, bias_;
};

class placed_copy {
 public:
  struct side {
    block bytes;
    std::int64_t offset = 0;
    std::vector<std::uint8_t> before;
    void *address() const { return static_cast<char *>(bytes.address) + offset; }
  };

  placed_copy(arena &memory, const copy_case &c);

  std::int64_t src_pitch() const { return c_.width + c_.src_gap; }
  std::int64_t dst_pitch() const { return c_.width + c_.dst_gap; }
  void remember();
  std::optional<fault> check() const;

  side src, dst;

 private:
  const copy_case &c_;
};

}  // namespace sg_test::random_tests
