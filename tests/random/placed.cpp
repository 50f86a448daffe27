// SPDX-License-Identifier: Apache-2.0
#include "placed.hpp"

#include <cmath>
#include <cstring>

#include "data.hpp"

namespace sg_test::random_tests {

placed_operand::placed_operand(arena &memory, const operand_case &where, const extent_of_operand &extent, sg_dtype type)
    : extent_(extent), type_(type) {
  const std::int64_t size = sg_dtype_size(type);
  const std::int64_t before = where.half_an_element_on && is_complex_type(type) ? size / 2 : 0;
  block_ = memory.take(where, static_cast<std::size_t>(before + extent.elements * size));
  block_.image += before, block_.address = static_cast<char *>(block_.address) + before;
  block_.size -= static_cast<std::size_t>(before);
  if (extent.form != item_form::pointers) return;
  for (std::int64_t item = 0; item < extent.items; ++item)
    pointers_.push_back(static_cast<char *>(block_.address) + extent.start(item) * size);
}

template <class Visit>
void placed_operand::each_run(Visit &&visit) const {
  const std::int64_t items = extent_.form == item_form::shared ? 1 : extent_.items;
  for (std::int64_t item = 0; item < items; ++item)
    for (std::int64_t run = 0; run < extent_.runs; ++run) visit(extent_.start(item) + run * extent_.ld, extent_.width);
}

void placed_operand::fill(const gemm_case &p, int which) {
  const auto table = table_of(p, type_, which);
  const sg_dtype component = component_of(type_);
  const std::int64_t components = is_complex_type(type_) ? 2 : 1, size = sg_dtype_size(component);
  std::uint8_t encoded[16][8];
  for (std::size_t i = 0; i < table.size(); ++i) store(component, encoded[i], table[i]);
  each_run([&](std::int64_t offset, std::int64_t elements) {
    for (std::int64_t x = offset * components; x < (offset + elements) * components; ++x)
      std::memcpy(block_.image + x * size, encoded[choice_of(seed_of(p, which), x)], static_cast<std::size_t>(size));
  });
}

void placed_operand::set(const element_value &element) {
  store(type_, block_.image + element.at * sg_dtype_size(type_), element.value);
}

void placed_operand::make_nan(std::uint32_t choice) {
  if (!extent_.runs || !extent_.width || !extent_.items) return;
  const std::int64_t item = choice % extent_.items, i = (choice >> 8) % extent_.rows, j = (choice >> 16) % extent_.cols;
  const std::int64_t size = sg_dtype_size(type_);
  std::memset(block_.image + extent_.at(item, i, j) * size, untouched, static_cast<std::size_t>(size));
}

void *placed_operand::first() const {
  return static_cast<char *>(block_.address) + extent_.offset * sg_dtype_size(type_);
}

sg_matrix placed_operand::view(const operand_case &x) const {
  const bool tight = extent_.ld == extent_.width;
  // An empty operand needs no address.
  void *const data = !pointers_.empty() || block_.size == 0 ? nullptr : first();
  return {data, extent_.rows, extent_.cols, tight && !x.says_ld ? 0 : extent_.ld, type_, x.layout};
}

bool placed_operand::is_unchanged() const {
  return before_.empty() || std::memcmp(before_.data(), block_.image, before_.size()) == 0;
}

bool placed_operand::gaps_are_unchanged() const {
  std::vector<std::uint8_t> now(block_.image, block_.image + block_.size);
  const std::int64_t size = sg_dtype_size(type_);
  each_run([&](std::int64_t offset, std::int64_t elements) {
    if (elements)
      std::memcpy(now.data() + offset * size, before_.data() + offset * size,
                  static_cast<std::size_t>(elements * size));
  });
  return now == before_;
}

placed_gemm::placed_gemm(arena &memory, const gemm_case &p, const placed_operand *a) : p_(p), a_(a) {
  if (!a_) own_a_ = placed_operand(memory, p.a, extent_of(p.a, p.rows_a(), p.cols_a(), p.batch), p.in);
  if (!p.b_is_a) own_b_ = placed_operand(memory, p.b, extent_of(p.b, p.rows_b(), p.cols_b(), p.batch), p.in);
  c = placed_operand(memory, p.c, extent_of(p.c, p.m, p.n, p.batch), p.out);
  if (p.has_bias) bias_ = placed_operand(memory, p.bias, extent_of_bias(p), p.out);
  if (!a_) own_a_.fill(p, 0);
  if (!p.b_is_a) own_b_.fill(p, 1);
  if (!p.beta_zero()) c.fill(p, 2);
  if (p.has_bias) bias_.fill(p, 3);
  if (p.has_bias && p.bias_cancels)
    for (const element_value &each : cancelling_bias(p)) bias_.set(each);
  if (p.nan_in == 1 && !a_) own_a_.make_nan(p.seed);
  if (p.nan_in == 2 && !p.b_is_a) own_b_.make_nan(p.seed);
  if (p.nan_in == 3 && !p.beta_zero()) c.make_nan(p.seed);
  if (p.nan_in == 4 && p.has_bias) bias_.make_nan(p.seed);
}

sg_gemm_desc placed_gemm::desc() const {
  sg_gemm_desc d = SG_GEMM_DESC_INIT;
  d.a = a().view(p_.a);
  d.b = b().view(p_.b_is_a ? p_.a : p_.b);
  d.c = c.view(p_.c);
  d.op_a = p_.op_a;
  d.op_b = p_.op_b;
  d.compute = p_.compute;
  d.alpha = p_.alpha;
  d.beta = p_.beta;
  d.batch = p_.batch;
  d.stride_a = a().extent().given_stride();
  d.stride_b = b().extent().given_stride();
  d.stride_c = c.extent().given_stride();
  d.a_array = a().pointers();
  d.b_array = b().pointers();
  d.c_array = c.pointers();
  d.activation = p_.activation;
  if (p_.alpha_zero() && p_.a.at_start) d.a.data = nullptr;
  if (p_.alpha_zero() && p_.b.at_start) d.b.data = nullptr;
  if (p_.has_bias) {
    d.bias = bias_.first();
    d.stride_bias = p_.batch > 1 ? bias_.extent().given_stride() : 0;
    d.bias_shape = p_.bias_shape;
  }
  return d;
}

void placed_gemm::remember() {
  if (!a_) own_a_.remember();
  if (!p_.b_is_a) own_b_.remember();
  c.remember();
  if (p_.has_bias) bias_.remember();
}

std::optional<fault> placed_gemm::check(int parts) const {
  const auto says = [](const char *what) {
    fault f;
    f.what = what;
    return f;
  };
  if (!a_ && !own_a_.is_unchanged()) return says("A was written to");
  if (!p_.b_is_a && !own_b_.is_unchanged()) return says("B was written to");
  if (p_.has_bias && !bias_.is_unchanged()) return says("the bias was written to");
  if (!c.gaps_are_unchanged()) return says("bytes between the elements of C have changed");
  if (p_.nothing_to_do()) return c.is_unchanged() ? std::optional<fault>() : says("C was written to");
  return check_elements(p_, parts, images());
}

fault placed_gemm::last_element(int parts) const { return random_tests::last_element(p_, parts, images()); }

placed_copy::placed_copy(arena &memory, const copy_case &c) : c_(c) {
  const auto place = [&](side &s, const operand_case &where, std::int64_t pitch) {
    s.offset = where.offset;
    const std::int64_t span = c.width && c.height ? (c.height - 1) * pitch + c.width : 0;
    s.bytes = memory.take(where, static_cast<std::size_t>(s.offset + span));
  };
  place(src, c.src, src_pitch());
  place(dst, c.dst, dst_pitch());
  for (std::size_t i = 0; i < src.bytes.size; ++i)
    src.bytes.image[i] = static_cast<std::uint8_t>(choice_of(c.seed, static_cast<std::int64_t>(i)) * 13 + i);
}

void placed_copy::remember() {
  for (side *s : {&src, &dst}) s->before.assign(s->bytes.image, s->bytes.image + s->bytes.size);
}

std::optional<fault> placed_copy::check() const {
  fault f;
  if (!std::equal(src.before.begin(), src.before.end(), src.bytes.image)) {
    f.what = "the source was written to";
    return f;
  }
  std::vector<std::uint8_t> wanted = dst.before;
  for (std::int64_t run = 0; c_.width && run < c_.height; ++run)
    std::memcpy(wanted.data() + dst.offset + run * dst_pitch(), src.before.data() + src.offset + run * src_pitch(),
                static_cast<std::size_t>(c_.width));
  const auto differs = std::mismatch(wanted.begin(), wanted.end(), dst.bytes.image);
  if (differs.first == wanted.end()) return {};
  f.what = "byte " + std::to_string(differs.first - wanted.begin() - dst.offset) + " of the destination is " +
           std::to_string(*differs.second) + " instead of " + std::to_string(*differs.first);
  return f;
}

}  // namespace sg_test::random_tests
