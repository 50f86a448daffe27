// SPDX-License-Identifier: Apache-2.0
#include "support/gemm_case.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <vector>

#include "../../reference/functions.hpp"
#include "support/guarded.hpp"
#include "support/harness.hpp"

namespace sg_test {

namespace {

constexpr std::uint8_t gap_pattern = 0xa5;
constexpr std::int64_t gap_items = 3;  // elements between one item of a strided batch and the next

void require(sg_status status, const char *what) {
  if (status == SG_STATUS_OK) return;
  throw std::runtime_error(std::string(what) + ": " + sg_status_name(status) + ": " + sg_last_error_message());
}

// All items of one operand as a host image, and a copy in the memory space that the case asks for.
class placed_operand {
 public:
  placed_operand(sg_context *context, sg_memory_kind place, sg_dtype type, sg_layout layout, std::int64_t rows,
                 std::int64_t cols, std::int64_t pad, std::int64_t items)
      : context_(context), size_(sg_dtype_size(type)), items_(items) {
    const bool by_rows = layout == SG_LAYOUT_ROW_MAJOR;
    const std::int64_t runs = by_rows ? rows : cols, width = by_rows ? cols : rows;
    const std::int64_t ld = std::max<std::int64_t>(width + pad, 1);
    item_elements_ = runs && width ? (runs - 1) * ld + width : 0;
    stride_ = item_elements_ + gap_items;
    const std::int64_t bytes = (item_elements_ + (items - 1) * stride_) * size_;
    image_ = guarded(static_cast<std::size_t>(bytes));
    std::memset(image_.data(), gap_pattern, image_.size());
    view_ = {image_.data(), rows, cols, pad ? ld : 0, type, layout};
    if (!bytes) return;
    if (place == SG_MEMORY_PINNED) {
      require(sg_host_alloc(context, static_cast<std::uint64_t>(bytes), &pinned_), "sg_host_alloc");
      view_.data = pinned_;
    } else if (place == SG_MEMORY_DEVICE) {
      require(sg_buffer_create(context, static_cast<std::uint64_t>(bytes), nullptr, device_.out()), "sg_buffer_create");
      require(sg_buffer_data(device_, &view_.data), "sg_buffer_data");
    }
  }
  ~placed_operand() {
    if (pinned_) sg_host_free(context_, pinned_);
  }
  placed_operand(const placed_operand &) = delete;

  const sg_matrix &view() const { return view_; }
  std::int64_t stride() const { return stride_; }
  std::int64_t items() const { return items_; }

  // Bytes from the start of the image to element (i, j) of an item.
  std::size_t at(std::int64_t item, std::int64_t i, std::int64_t j) const {
    const std::int64_t width = view_.layout == SG_LAYOUT_ROW_MAJOR ? view_.cols : view_.rows;
    const std::int64_t ld = view_.ld ? view_.ld : width;
    const std::int64_t inner = view_.layout == SG_LAYOUT_ROW_MAJOR ? i * ld + j : i + j * ld;
    return static_cast<std::size_t>((item * stride_ + inner) * size_);
  }
  number get(std::int64_t item, std::int64_t i, std::int64_t j) const {
    return load(view_.dtype, image_.data() + at(item, i, j));
  }
  template <class Make>
  void fill(Make &&make) {
    for (std::int64_t item = 0; item < items_; ++item)
      for (std::int64_t i = 0; i < view_.rows; ++i)
        for (std::int64_t j = 0; j < view_.cols; ++j) store(view_.dtype, image_.data() + at(item, i, j), make());
  }

  // From the image to the operand's memory, and back. The image of pageable operands is the operand.
  void upload() {
    if (view_.data == image_.data() || !image_.size()) return;
    require(sg_copy(context_, view_.data, image_.data(), image_.size(), nullptr), "upload");
  }
  void download() {
    if (view_.data == image_.data() || !image_.size()) return;
    std::memset(image_.data(), 0, image_.size());
    require(sg_copy(context_, image_.data(), view_.data, image_.size(), nullptr), "download");
  }

  std::vector<std::uint8_t> bytes() const { return {image_.data(), image_.data() + image_.size()}; }
  std::vector<void *> pointers() const {
    std::vector<void *> result;
    for (std::int64_t item = 0; item < items_; ++item)
      result.push_back(static_cast<std::uint8_t *>(view_.data) + item * stride_ * size_);
    return result;
  }
  std::size_t element_bytes() const { return static_cast<std::size_t>(size_); }

 private:
  sg_context *context_;
  std::int64_t size_, items_, item_elements_ = 0, stride_ = 0;
  guarded image_;
  void *pinned_ = nullptr;
  buffer device_;
  sg_matrix view_{};
};

// Sums of small integer products stay exact in every type that holds them.
number small_integer(random_source &random, sg_dtype type) {
  const auto part = [&] { return static_cast<long double>(random.below(9) - 4); };
  return is_complex(type) ? number{part(), part()} : number{part(), 0};
}

struct precision {
  long double accumulator, output, tiny;
};

// The bound: the accumulator's unit roundoff; the output's where it is another format; the least subnormal.
precision precision_of(const gemm_case &what) {
  switch (what.out) {
    case SG_DTYPE_F64:
    case SG_DTYPE_C128: return {0x1p-53L, 0, 0x1p-1074L};
    case SG_DTYPE_F16: return {0x1p-23L, 0x1p-11L, 0x1p-24L};
    case SG_DTYPE_BF16: return {0x1p-23L, 0x1p-8L, 0x1p-133L};
    default: return {sg_dtype_size(what.in) <= 2 ? 0x1p-23L : 0x1p-24L, 0, 0x1p-149L};  // tensor cores truncate
  }
}

long double magnitude(number x) { return std::fabs(x.real()) + std::fabs(x.imag()); }

number element(const placed_operand &x, sg_transpose op, std::int64_t item, std::int64_t i, std::int64_t j) {
  if (op == SG_TRANSPOSE_N) return x.get(item, i, j);
  const number value = x.get(item, j, i);
  return op == SG_TRANSPOSE_C ? std::conj(value) : value;
}

std::int32_t wrapped(long double value) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(value)));
}

// Checks one component of one element: R is the exact sum, g the sum of absolute values.
bool close_enough(const gemm_case &what, long double seen, long double sum, long double g) {
  if (what.out == SG_DTYPE_I32)
    return static_cast<long double>(static_cast<std::int32_t>(seen)) ==
           sg_reference::activated(what.activation, wrapped(sum));
  const long double exact = sg_reference::activated(what.activation, sum);
  if (what.integers) return seen == rounded(what.out, exact);
  const precision p = precision_of(what);
  const long double parts = what.options.parts > 0 ? what.options.parts : 64;
  const long double n = (is_complex(what.in) ? 2.0L : 1.0L) * (static_cast<long double>(what.k) + 4 + parts);
  const long double gamma = n * p.accumulator / (1 - n * p.accumulator);
  // GELU is nowhere steeper than 1.13, and may be wrong by 8 units of its argument.
  const bool gelu = what.activation == SG_ACTIVATION_GELU;
  const long double error = gelu ? 1.13L * gamma * g + 8 * p.accumulator * std::fabs(sum) : gamma * g;
  const long double bound =
      p.output * std::fabs(exact) + (1 + p.output) * error + (static_cast<long double>(what.k) + 1) * p.tiny;
  return std::fabs(seen - exact) <= bound;
}

std::string check_result(const gemm_case &what, const placed_operand &a, const placed_operand &b,
                         const placed_operand &c, const placed_operand &bias, const std::vector<std::uint8_t> &before) {
  const number alpha(what.alpha.re, is_complex(what.out) ? what.alpha.im : 0);
  const number beta(what.beta.re, is_complex(what.out) ? what.beta.im : 0);
  std::vector<std::uint8_t> expected_gaps = c.bytes();
  const auto k = static_cast<std::size_t>(what.k);
  for (std::int64_t item = 0; item < what.batch; ++item) {
    std::vector<number> columns;  // op(B), column after column
    for (std::int64_t j = 0; j < what.n; ++j)
      for (std::int64_t l = 0; l < what.k; ++l) columns.push_back(element(b, what.op_b, item, l, j));
    for (std::int64_t i = 0; i < what.m; ++i) {
      std::vector<number> row;  // of op(A)
      for (std::int64_t l = 0; l < what.k; ++l) row.push_back(element(a, what.op_a, a.items() > 1 ? item : 0, i, l));
      for (std::int64_t j = 0; j < what.n; ++j) {
        long double re = 0, im = 0, g = 0;
        for (std::size_t l = 0; l < k; ++l) {
          const number x = row[l], y = columns[static_cast<std::size_t>(j) * k + l];
          re += x.real() * y.real() - x.imag() * y.imag();
          im += x.real() * y.imag() + x.imag() * y.real();
          g += magnitude(x) * magnitude(y);
        }
        const number sum(re, im);
        number exact = alpha * sum;
        g *= magnitude(alpha);
        if (beta != number(0)) {
          const number old = load(what.out, before.data() + c.at(item, i, j));
          exact += beta * old;
          g += magnitude(beta) * magnitude(old);
        }
        if (what.has_bias) {
          const bool per_row = what.bias_shape == SG_BIAS_PER_ROW;
          const number added = bias.get(what.own_bias ? item : 0, per_row ? i : 0, per_row ? 0 : j);
          exact += added;
          g += magnitude(added);
        }
        const number seen = c.get(item, i, j);
        if (!close_enough(what, seen.real(), exact.real(), g) || !close_enough(what, seen.imag(), exact.imag(), g)) {
          char text[256];
          std::snprintf(text, sizeof text, "item %lld (%lld, %lld): (%.17Lg, %.17Lg) instead of (%.17Lg, %.17Lg)",
                        static_cast<long long>(item), static_cast<long long>(i), static_cast<long long>(j), seen.real(),
                        seen.imag(), exact.real(), exact.imag());
          return text;
        }
        std::memset(expected_gaps.data() + c.at(item, i, j), 0, c.element_bytes());
      }
    }
  }
  // C's image with its elements blanked is gaps only, which must still hold the pattern.
  std::vector<std::uint8_t> blanked = before;
  for (std::int64_t item = 0; item < what.batch; ++item)
    for (std::int64_t i = 0; i < what.m; ++i)
      for (std::int64_t j = 0; j < what.n; ++j) std::memset(blanked.data() + c.at(item, i, j), 0, c.element_bytes());
  return blanked == expected_gaps ? "" : "bytes between the elements of C have changed";
}

std::string run(sg_context *context, const gemm_case &what, sg_job_statistics *stats) {
  const bool ta = what.op_a != SG_TRANSPOSE_N, tb = what.op_b != SG_TRANSPOSE_N;
  const std::int64_t a_items = what.form == batch_form::shared_a ? 1 : what.batch;
  placed_operand a(context, what.place_a, what.in, what.layout_a, ta ? what.k : what.m, ta ? what.m : what.k, what.pad,
                   a_items);
  placed_operand b(context, what.place_b, what.in, what.layout_b, tb ? what.n : what.k, tb ? what.k : what.n, what.pad,
                   what.batch);
  placed_operand c(context, what.place_c, what.out, what.layout_c, what.m, what.n, what.pad, what.batch);

  const bool per_row = what.bias_shape == SG_BIAS_PER_ROW;
  placed_operand bias(context, what.place_bias, what.out, what.layout_c, what.has_bias && !per_row ? 1 : what.m,
                      what.has_bias ? (per_row ? 1 : what.n) : 0, 0, what.own_bias ? what.batch : 1);

  random_source random(what.seed);
  const auto value = [&](sg_dtype type) { return what.integers ? small_integer(random, type) : random.of(type); };
  a.fill([&] { return value(what.in); });
  b.fill([&] { return value(what.in); });
  const bool poisoned = what.beta.re == 0 && what.beta.im == 0 && what.out != SG_DTYPE_I32;
  c.fill([&] { return poisoned ? number(NAN, is_complex(what.out) ? NAN : 0) : value(what.out); });
  bias.fill([&] { return value(what.out); });
  for (placed_operand *operand : {&a, &b, &c, &bias}) operand->upload();
  const auto a_before = a.bytes(), b_before = b.bytes(), c_before = c.bytes(), bias_before = bias.bytes();

  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = a.view();
  desc.b = b.view();
  desc.c = c.view();
  desc.op_a = what.op_a;
  desc.op_b = what.op_b;
  desc.alpha = what.alpha;
  desc.beta = what.beta;
  desc.compute = what.compute;
  desc.batch = what.batch;
  desc.activation = what.activation;
  if (what.has_bias) {
    desc.bias = bias.view().data;
    desc.bias_shape = what.bias_shape;
    desc.stride_bias = what.own_bias ? bias.stride() : 0;
  }
  const auto a_pointers = a.pointers(), b_pointers = b.pointers(), c_pointers = c.pointers();
  if (what.form == batch_form::pointers) {
    desc.a_array = a_pointers.data();
    desc.b_array = b_pointers.data();
    desc.c_array = c_pointers.data();
    desc.a.data = desc.b.data = desc.c.data = nullptr;
  } else if (what.form != batch_form::single) {
    desc.stride_a = what.form == batch_form::shared_a ? 0 : a.stride();
    desc.stride_b = b.stride();
    desc.stride_c = c.stride();
  }
  sg_submit submit = SG_SUBMIT_INIT;
  submit.plan = &what.options;
  job handle;
  require(sg_gemm_async(context, &desc, &submit, handle.out()), "sg_gemm_async");
  require(sg_job_wait(handle, SG_FOREVER, nullptr), "sg_job_wait");
  if (stats) require(sg_job_get_statistics(handle, stats), "sg_job_get_statistics");
  for (placed_operand *operand : {&a, &b, &c, &bias}) operand->download();
  if (a.bytes() != a_before) return "A was written to";
  if (b.bytes() != b_before) return "B was written to";
  if (bias.bytes() != bias_before) return "the bias was written to";
  return check_result(what, a, b, c, bias, c_before);
}

}  // namespace

std::string gemm_case::text() const {
  static const char *const ops = "NTC", *const layouts = "rc", *const places = "apgd";
  char line[400];
  std::snprintf(line, sizeof line,
                "%s->%s m%lld n%lld k%lld op %c%c layout %c%c%c pad %lld alpha (%g,%g) beta (%g,%g) form %d batch %lld "
                "place %c%c%c bias %d%d%d%c activation %d split %d parts %d tile %lld %lld %lld limit %llu seed %llu",
                sg_dtype_name(in), sg_dtype_name(out), static_cast<long long>(m), static_cast<long long>(n),
                static_cast<long long>(k), ops[op_a], ops[op_b], layouts[layout_a], layouts[layout_b],
                layouts[layout_c], static_cast<long long>(pad), alpha.re, alpha.im, beta.re, beta.im,
                static_cast<int>(form), static_cast<long long>(batch), places[place_a], places[place_b],
                places[place_c], has_bias, own_bias, bias_shape, places[place_bias], activation, options.split,
                options.parts, static_cast<long long>(options.tile_m), static_cast<long long>(options.tile_n),
                static_cast<long long>(options.tile_k), static_cast<unsigned long long>(options.memory_limit),
                static_cast<unsigned long long>(seed));
  return line;
}

std::string run_gemm_case(sg_context *context, const gemm_case &what, sg_job_statistics *stats) {
  try {
    return run(context, what, stats);
  } catch (const std::exception &e) {
    return e.what();
  }
}

}  // namespace sg_test
