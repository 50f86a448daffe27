// SPDX-License-Identifier: Apache-2.0
// Every operation and type with operands at every multiple of the component's size: the results are those of aligned
// operands, and no other byte is written.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t aligned = 256;

std::int64_t component(sg_dtype type) { return sg_dtype_size(type) / (is_complex(type) ? 2 : 1); }

// The operands of one submission, in one memory: each is some components behind an aligned address.
class operands {
 public:
  enum class step { none, equal, growing };  // from one operand to the next

  operands(sg_context *on, sg_memory_kind kind, std::int64_t multiple, step how)
      : on_(on), kind_(kind), multiple_(multiple), how_(how), bytes_(capacity, std::uint8_t{0x5a}) {
    if (kind == SG_MEMORY_DEVICE) {
      EXPECT_OK(sg_buffer_create(on, capacity, nullptr, buffer_.out()));
      EXPECT_OK(sg_buffer_data(buffer_, &data_));
    } else if (kind == SG_MEMORY_PINNED) {
      EXPECT_OK(sg_host_alloc(on, capacity, &data_));
    } else {
      own_.resize(capacity + aligned);
      const auto start = reinterpret_cast<std::uintptr_t>(own_.data());
      data_ = own_.data() + (aligned - start % aligned) % aligned;
    }
  }
  ~operands() {
    if (kind_ == SG_MEMORY_PINNED) {
      EXPECT_OK(sg_host_free(on_, data_));
    }
  }
  operands(const operands &) = delete;

  // Numbers whose products and sums are exact in every type.
  void *add(sg_dtype type, std::int64_t count) {
    void *const at = place(type, count);
    const auto number = static_cast<std::int64_t>(all_.size());
    for (std::int64_t i = 0; i < count; ++i)
      set(i, number_of(type, (7 * i + 3 * number) % 9 - 4, (5 * i + number) % 5 - 2));
    return at;
  }
  // Zeros at an aligned address.
  void *add_reserve(sg_dtype type, std::int64_t count) {
    void *const at = place(type, count, false);
    for (std::int64_t i = 0; i < count; ++i) set(i, 0);
    return at;
  }
  void *add_indices(std::int64_t count, std::int64_t rows) {
    void *const at = place(SG_DTYPE_I32, count);
    for (std::int64_t i = 0; i < count; ++i) set(i, {static_cast<long double>(5 * i % rows), 0});
    return at;
  }
  sg_matrix matrix(sg_dtype type, std::int64_t rows, std::int64_t cols) {
    return {add(type, rows * cols), rows, cols, 0, type, SG_LAYOUT_ROW_MAJOR};
  }

  void write() { move(data_, bytes_.data()); }
  void fetch() { move(bytes_.data(), data_); }

  // The first difference from the same operands at other addresses; "": none.
  std::string difference(const operands &wanted) const {
    std::vector<std::uint8_t> gaps = bytes_;
    for (std::size_t o = 0; o < all_.size(); ++o) {
      const operand &x = all_[o], &y = wanted.all_[o];
      const bool is_exact = x.type == SG_DTYPE_I8 || x.type == SG_DTYPE_I32;
      const long double unit = is_exact ? 0 : unit_of(x.type);
      for (std::int64_t i = 0; i < x.count; ++i) {
        const std::int64_t at = i * sg_dtype_size(x.type);
        const number found = load(x.type, &bytes_[std::size_t(x.offset + at)]);
        const number expected = load(x.type, &wanted.bytes_[std::size_t(y.offset + at)]);
        if (!(std::abs(found - expected) <= 8 * unit * (1 + std::abs(expected))))
          return "element " + std::to_string(i) + " of operand " + std::to_string(o) + ": " +
                 std::to_string(double(found.real())) + " instead of " + std::to_string(double(expected.real()));
      }
      std::fill_n(gaps.begin() + x.offset, x.count * sg_dtype_size(x.type), std::uint8_t{0x5a});
    }
    static const std::vector<std::uint8_t> untouched(capacity, std::uint8_t{0x5a});
    return gaps == untouched ? "" : "a byte beside the operands was written";
  }

 private:
  struct operand {
    sg_dtype type;
    std::int64_t offset, count;
  };
  static constexpr std::size_t capacity = std::size_t{96} << 10;

  static number number_of(sg_dtype type, std::int64_t re, std::int64_t im) {
    const bool is_integer = type == SG_DTYPE_I8 || type == SG_DTYPE_I32;
    const long double scale = is_integer ? 1 : 0.25L;
    return {scale * static_cast<long double>(re), is_complex(type) ? scale * static_cast<long double>(im) : 0};
  }
  static long double unit_of(sg_dtype type) {
    return std::ldexp(1.0L, type == SG_DTYPE_BF16                           ? -8
                            : type == SG_DTYPE_F16                          ? -11
                            : type == SG_DTYPE_F64 || type == SG_DTYPE_C128 ? -50
                                                                            : -21);
  }
  void *place(sg_dtype type, std::int64_t count, bool moves = true) {
    const auto index = static_cast<std::int64_t>(all_.size());
    const std::int64_t components = how_ == step::none || !moves ? 0
                                    : how_ == step::equal        ? multiple_
                                                                 : multiple_ * (index % 3);
    const std::int64_t offset = end_ + aligned + components * component(type);
    all_.push_back({type, offset, count});
    end_ = (offset + count * sg_dtype_size(type) + aligned - 1) / aligned * aligned;
    EXPECT_LE(end_ + aligned, std::int64_t(capacity));
    return static_cast<std::uint8_t *>(data_) + offset;
  }
  void set(std::int64_t i, number value) {
    const operand &x = all_.back();
    store(x.type, &bytes_[std::size_t(x.offset + i * sg_dtype_size(x.type))], value);
  }
  void move(void *to, const void *from) {
    if (kind_ == SG_MEMORY_DEVICE)
      EXPECT_OK(sg_copy(on_, to, from, capacity, nullptr));
    else
      std::memcpy(to, from, capacity);
  }

  sg_context *on_;
  const sg_memory_kind kind_;
  const std::int64_t multiple_;
  const step how_;
  std::vector<std::uint8_t> bytes_, own_;
  std::vector<operand> all_;
  std::int64_t end_ = 0;
  buffer buffer_;
  void *data_ = nullptr;
};

class alignment : public on_each_device {
 protected:
  // Describes the submission on operands, whose values are then written, and submits it.
  using submission = std::function<std::function<sg_status(sg_context *)>(operands &)>;

  sg_status run(operands &on, const submission &described) {
    const auto submit = described(on);
    on.write();
    const sg_status status = submit(context_);
    on.fetch();
    return status;
  }

  // `narrowest`: the operand type with the smallest component. Operations of layers.h refuse host memory on a device
  // with memory of its own.
  void sweep(const std::string &name, sg_dtype narrowest, const submission &described) {
    for (const sg_memory_kind kind : {SG_MEMORY_DEVICE, SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE}) {
      operands wanted(context_, kind, 0, operands::step::none);
      const sg_status status = run(wanted, described);
      if (kind != SG_MEMORY_DEVICE && status == SG_STATUS_UNSUPPORTED) continue;
      ASSERT_OK(status) << name;
      const std::int64_t end = 16 / component(narrowest);
      for (std::int64_t multiple = 1; multiple < (kind == SG_MEMORY_DEVICE ? end : std::min<std::int64_t>(end, 3));
           ++multiple)
        for (const auto how : {operands::step::equal, operands::step::growing}) {
          if (multiple > 1 && (how == operands::step::equal) == (multiple % 2 == 0)) continue;
          operands on(context_, kind, multiple, how);
          ASSERT_OK(run(on, described)) << name << ", " << multiple << " components behind, memory " << int(kind);
          ASSERT_EQ("", on.difference(wanted))
              << name << ", " << multiple << " components behind, memory " << int(kind);
        }
    }
  }

  static std::string named(const char *operation, sg_dtype type) {
    return std::string(operation) + " of " + sg_dtype_name(type);
  }
  // The call of `function` with that descriptor.
  template <class Desc>
  static std::function<sg_status(sg_context *)> call(sg_status (*function)(sg_context *, const Desc *,
                                                                           const sg_submit *),
                                                     const Desc &desc) {
    return [=](sg_context *on) { return function(on, &desc, nullptr); };
  }
};

constexpr sg_dtype layer_types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
constexpr sg_dtype every_type[] = {SG_DTYPE_F64,  SG_DTYPE_F32, SG_DTYPE_C64, SG_DTYPE_C128,    SG_DTYPE_F16,
                                   SG_DTYPE_BF16, SG_DTYPE_I8,  SG_DTYPE_I32, SG_DTYPE_F8_E4M3, SG_DTYPE_F8_E5M2};
constexpr sg_dtype gemm_type_pairs[][2] = {
    {SG_DTYPE_F64, SG_DTYPE_F64},      {SG_DTYPE_F32, SG_DTYPE_F32},    {SG_DTYPE_C64, SG_DTYPE_C64},
    {SG_DTYPE_C128, SG_DTYPE_C128},    {SG_DTYPE_F16, SG_DTYPE_F16},    {SG_DTYPE_F16, SG_DTYPE_F32},
    {SG_DTYPE_BF16, SG_DTYPE_BF16},    {SG_DTYPE_BF16, SG_DTYPE_F32},   {SG_DTYPE_I8, SG_DTYPE_I32},
    {SG_DTYPE_F8_E4M3, SG_DTYPE_BF16}, {SG_DTYPE_F8_E5M2, SG_DTYPE_F32}};

struct extents {
  std::int64_t m, n, k;
};
constexpr extents gemm_extents[] = {{8, 16, 24}, {5, 7, 3}};

TEST_P(alignment, gemms) {
  for (const auto &[in, out] : gemm_type_pairs)
    for (const extents &s : gemm_extents)
      for (const double beta : {0.0, 1.0})
        for (const bool ends : {false, true})
          sweep(named("gemm", in), in, [=, in = in, out = out](operands &x) {
            sg_gemm_desc d = SG_GEMM_DESC_INIT;
            d.a = x.matrix(in, s.m, s.k), d.b = x.matrix(in, s.n, s.k), d.c = x.matrix(out, s.m, s.n);
            d.op_b = SG_TRANSPOSE_T, d.beta.re = beta;
            if (ends)
              d.bias = x.add(out, s.n), d.activation = is_complex(out) ? SG_ACTIVATION_NONE : SG_ACTIVATION_RELU;
            return call(sg_gemm, d);
          });
}

TEST_P(alignment, batches) {
  constexpr std::int64_t items = 3;
  for (const auto &[in, out] : gemm_type_pairs)
    for (const bool by_pointers : {false, true})
      for (const extents &s : gemm_extents)
        sweep(named("batch", in), in, [=, in = in, out = out](operands &x) {
          sg_gemm_desc d = SG_GEMM_DESC_INIT;
          d.batch = items, d.beta.re = 1;
          std::array<void *, items> a{}, b{}, c{};
          if (by_pointers) {
            d.a = {nullptr, s.m, s.k, 0, in, SG_LAYOUT_ROW_MAJOR},
            d.b = {nullptr, s.k, s.n, 0, in, SG_LAYOUT_ROW_MAJOR};
            d.c = {nullptr, s.m, s.n, 0, out, SG_LAYOUT_ROW_MAJOR};
            for (std::size_t i = 0; i < items; ++i)
              a[i] = x.add(in, s.m * s.k), b[i] = x.add(in, s.k * s.n), c[i] = x.add(out, s.m * s.n);
          } else {
            d.stride_a = s.m * s.k, d.stride_b = s.k * s.n, d.stride_c = s.m * s.n;
            d.a = {x.add(in, items * d.stride_a), s.m, s.k, 0, in, SG_LAYOUT_ROW_MAJOR};
            d.b = {x.add(in, items * d.stride_b), s.k, s.n, 0, in, SG_LAYOUT_ROW_MAJOR};
            d.c = {x.add(out, items * d.stride_c), s.m, s.n, 0, out, SG_LAYOUT_ROW_MAJOR};
          }
          return [=](sg_context *on) {
            sg_gemm_desc there = d;
            if (by_pointers) there.a_array = a.data(), there.b_array = b.data(), there.c_array = c.data();
            return sg_gemm(on, &there, nullptr);
          };
        });
}

TEST_P(alignment, groups) {
  for (const auto &[in, out] : gemm_type_pairs)
    sweep(named("group", in), in, [=, in = in, out = out](operands &x) {
      std::vector<sg_gemm_desc> all;
      for (int i = 0; i < 5; ++i) {
        const extents &s = gemm_extents[i % 2];
        sg_gemm_desc &d = all.emplace_back(sg_gemm_desc SG_GEMM_DESC_INIT);
        d.a = x.matrix(in, s.m, s.k), d.b = x.matrix(in, s.k, s.n), d.c = x.matrix(out, s.m, s.n);
      }
      return [=](sg_context *on) {
        job done;
        const sg_status status = sg_gemm_grouped_async(on, all.data(), std::int32_t(all.size()), nullptr, done.out());
        return status != SG_STATUS_OK ? status : sg_job_wait(done, SG_FOREVER, nullptr);
      };
    });
}

TEST_P(alignment, linear_layers) {
  for (const auto &[type, out] : gemm_type_pairs) {
    if (type != out) continue;
    for (const extents &s : gemm_extents) {
      sweep(named("linear", type), type, [=, type = type](operands &x) {
        sg_linear_desc d = SG_LINEAR_DESC_INIT;
        d.x = x.matrix(type, s.m, s.k), d.w = x.matrix(type, s.k, s.n), d.y = x.matrix(type, s.m, s.n);
        d.bias = x.add(type, s.n);
        return call(sg_linear, d);
      });
      if (is_complex(type)) continue;
      sweep(named("gradients of linear", type), type, [=, type = type](operands &x) {
        sg_linear_backward_desc d = SG_LINEAR_BACKWARD_DESC_INIT;
        d.x = x.matrix(type, s.m, s.k), d.w = x.matrix(type, s.k, s.n), d.dy = x.matrix(type, s.m, s.n);
        d.dx = x.matrix(type, s.m, s.k), d.dw = x.matrix(type, s.k, s.n), d.dbias = x.add(type, s.n);
        d.dbias_dtype = type;
        return call(sg_linear_backward, d);
      });
    }
  }
}

TEST_P(alignment, triangular_and_symmetric_matrices) {
  for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_C64, SG_DTYPE_C128})
    for (const sg_symmetry symmetry : {SG_SYMMETRY_SYMMETRIC, SG_SYMMETRY_HERMITIAN}) {
      sweep(named("triangular", type), type, [=](operands &x) {
        sg_triangular_desc d = SG_TRIANGULAR_DESC_INIT;
        d.a = x.matrix(type, 5, 5), d.b = x.matrix(type, 5, 7);
        d.kind = SG_TRIANGULAR_MULTIPLY, d.triangle = SG_TRIANGLE_UPPER;
        return call(sg_triangular, d);
      });
      sweep(named("symmetric", type), type, [=](operands &x) {
        sg_symmetric_desc d = SG_SYMMETRIC_DESC_INIT;
        d.a = x.matrix(type, 5, 5), d.b = x.matrix(type, 5, 7), d.c = x.matrix(type, 5, 7), d.symmetry = symmetry;
        return call(sg_symmetric, d);
      });
      sweep(named("rank k", type), type, [=](operands &x) {
        sg_rank_k_desc d = SG_RANK_K_DESC_INIT;
        d.a = x.matrix(type, 5, 7), d.b = x.matrix(type, 5, 7), d.c = x.matrix(type, 5, 5), d.symmetry = symmetry;
        d.beta.re = 1;
        return call(sg_rank_k, d);
      });
    }
}

TEST_P(alignment, functions_of_elements) {
  for (const sg_dtype type : every_type) {
    for (const std::int64_t cols : {32, 7})
      sweep(named("fill", type), type, [=](operands &x) {
        sg_fill_desc d = SG_FILL_DESC_INIT;
        d.y = x.matrix(type, 5, cols), d.value.re = 3;
        return call(sg_fill, d);
      });
    if (type == SG_DTYPE_I8 || type == SG_DTYPE_F8_E4M3 || type == SG_DTYPE_F8_E5M2) continue;
    for (const std::int64_t cols : {32, 7})
      sweep(named("axpby", type), type, [=](operands &x) {
        sg_axpby_desc d = SG_AXPBY_DESC_INIT;
        d.a = x.matrix(type, 5, cols), d.c = x.matrix(type, 5, cols);
        d.alpha.re = 2, d.beta.re = 1;
        return call(sg_axpby, d);
      });
  }
  for (const sg_dtype type : layer_types)
    for (const std::int64_t cols : {32, 7}) {
      for (const sg_function function : {SG_FUNCTION_GELU, SG_FUNCTION_ADD, SG_FUNCTION_RELU_GRADIENT})
        sweep(named("elementwise", type), type, [=](operands &x) {
          sg_elementwise_desc d = SG_ELEMENTWISE_DESC_INIT;
          d.a = x.matrix(type, 5, cols), d.c = x.matrix(type, 5, cols), d.function = function;
          if (function != SG_FUNCTION_GELU) d.b = x.matrix(type, 5, cols);
          return call(sg_elementwise, d);
        });
      sweep(named("clamp", type), type, [=](operands &x) {
        sg_clamp_backward_desc d = SG_CLAMP_BACKWARD_DESC_INIT;
        d.dy = x.matrix(type, 5, cols), d.x = x.matrix(type, 5, cols), d.dx = x.matrix(type, 5, cols);
        return call(sg_clamp_backward, d);
      });
      sweep(named("row dot", type), type, [=](operands &x) {
        sg_row_dot_desc d = SG_ROW_DOT_DESC_INIT;
        d.a = x.matrix(type, 5, cols), d.b = x.matrix(type, 5, cols), d.y = x.matrix(type, 5, 1);
        return call(sg_row_dot, d);
      });
      sweep(named("row reduce", type), type, [=](operands &x) {
        sg_row_reduce_desc d = SG_ROW_REDUCE_DESC_INIT;
        d.x = x.matrix(type, 5, cols), d.y = x.matrix(type, 5, 1);
        return call(sg_row_reduce, d);
      });
      sweep(named("softmax gradient", type), type, [=](operands &x) {
        sg_softmax_backward_desc d = SG_SOFTMAX_BACKWARD_DESC_INIT;
        d.y = x.matrix(type, 5, cols), d.dy = x.matrix(type, 5, cols), d.dx = x.matrix(type, 5, cols);
        return call(sg_softmax_backward, d);
      });
      sweep(named("norm gradient", type), type, [=](operands &x) {
        sg_norm_backward_desc d = SG_NORM_BACKWARD_DESC_INIT;
        d.dy = x.matrix(type, 5, cols), d.x = x.matrix(type, 5, cols), d.dx = x.matrix(type, 5, cols);
        d.gamma = x.matrix(type, 1, cols).data, d.dgamma = x.matrix(type, 1, cols).data;
        d.dbeta = x.matrix(type, 1, cols).data;
        return call(sg_norm_backward, d);
      });
      sweep(named("sgd", type), type, [=](operands &x) {
        sg_sgd_desc d = SG_SGD_DESC_INIT;
        d.parameters = x.matrix(type, 5, cols).data, d.gradient = x.matrix(type, 5, cols).data;
        d.elements = 5 * cols, d.dtype = type;
        return call(sg_sgd, d);
      });
      sweep(named("pooling", type), type, [=](operands &x) {
        sg_pool2d_desc d = SG_POOL2D_DESC_INIT;
        d.x.data = x.matrix(type, 5, cols).data, d.y.data = x.matrix(type, 5, cols).data;
        d.channels = 1, d.height = 5, d.width = cols, d.dtype = type;
        return call(sg_pool2d, d);
      });
      for (const sg_dtype to : layer_types)
        for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
          sweep(named("convert", type), component(to) < component(type) ? to : type, [=](operands &x) {
            sg_convert_desc d = SG_CONVERT_DESC_INIT;
            d.a = x.matrix(type, op == SG_TRANSPOSE_N ? 5 : cols, op == SG_TRANSPOSE_N ? cols : 5),
            d.c = x.matrix(to, 5, cols);
            d.op_a = op;
            return call(sg_convert, d);
          });
    }
}

TEST_P(alignment, rows) {
  for (const sg_dtype type : layer_types)
    for (const std::int64_t cols : {32, 6}) {
      sweep(named("softmax", type), type, [=](operands &x) {
        sg_softmax_desc d = SG_SOFTMAX_DESC_INIT;
        d.x = x.matrix(type, 5, cols), d.y = x.matrix(type, 5, cols);
        return call(sg_softmax, d);
      });
      sweep(named("norm", type), type, [=](operands &x) {
        sg_norm_desc d = SG_NORM_DESC_INIT;
        d.x = x.matrix(type, 5, cols), d.y = x.matrix(type, 5, cols);
        d.gamma = x.add(type, cols), d.beta = x.add(type, cols);
        return call(sg_norm, d);
      });
      sweep(named("rotary", type), type, [=](operands &x) {
        sg_rotary_desc d = SG_ROTARY_DESC_INIT;
        d.x = x.matrix(type, 5, cols), d.y = x.matrix(type, 5, cols);
        d.cos = x.matrix(type, 5, cols / 2), d.sin = x.matrix(type, 5, cols / 2);
        return call(sg_rotary, d);
      });
      if (type == SG_DTYPE_F64) continue;
      for (const auto quantization : {SG_QUANTIZATION_I8, SG_QUANTIZATION_I4})
        sweep(named("dequantize", type), SG_DTYPE_I8, [=](operands &x) {
          const std::int64_t block = cols == 32 ? 16 : 2;
          sg_dequantize_desc d = SG_DEQUANTIZE_DESC_INIT;
          d.x = x.matrix(SG_DTYPE_I8, 5, quantization == SG_QUANTIZATION_I4 ? cols / 2 : cols);
          d.scales = x.matrix(type, 5, cols / block), d.zero_points = x.matrix(SG_DTYPE_I8, 5, cols / block);
          d.y = x.matrix(type, 5, cols), d.block_size = block, d.quantization = quantization;
          return call(sg_dequantize, d);
        });
    }
  for (const sg_dtype type : every_type)
    for (const std::int64_t cols : {32, 3})
      sweep(named("gather", type), type, [=](operands &x) {
        sg_gather_desc d = SG_GATHER_DESC_INIT;
        d.table = x.matrix(type, 6, cols), d.y = x.matrix(type, 9, cols);
        d.indices = x.add_indices(9, 6);
        return call(sg_gather, d);
      });
}

constexpr std::int64_t image_count = 2, height = 5, width = 4;

TEST_P(alignment, windows) {
  constexpr std::int64_t positions = image_count * height * width;
  for (const std::int64_t channels : {8, 3})
    for (const auto layout : {SG_IMAGE_NCHW, SG_IMAGE_NHWC})
      for (const sg_dtype type : every_type) {
        const auto describe = [=](auto &d, operands &x) {
          d.images = image_count, d.channels = channels, d.height = height, d.width = width, d.image_layout = layout;
          d.columns = layout == SG_IMAGE_NHWC ? SG_FILTER_OHWI : SG_FILTER_OIHW;
          d.windows.kernel_h = d.windows.kernel_w = 3;
          d.windows.pad_top = d.windows.pad_left = d.windows.pad_bottom = d.windows.pad_right = 1;
          d.x.data = x.add(type, image_count * channels * height * width);
          const std::int64_t columns = 9 * channels;
          d.matrix =
              layout == SG_IMAGE_NHWC
                  ? x.matrix(type, positions, columns)
                  : sg_matrix{x.add(type, positions * columns), positions, columns, 0, type, SG_LAYOUT_COLUMN_MAJOR};
        };
        sweep(named("im2col", type), type, [=](operands &x) {
          sg_im2col_desc d = SG_IM2COL_DESC_INIT;
          describe(d, x);
          return call(sg_im2col, d);
        });
        if (std::find(std::begin(layer_types), std::end(layer_types), type) == std::end(layer_types)) continue;
        sweep(named("col2im", type), type, [=](operands &x) {
          sg_col2im_desc d = SG_COL2IM_DESC_INIT;
          describe(d, x);
          return call(sg_col2im, d);
        });
      }
}

TEST_P(alignment, convolutions) {
  for (const sg_dtype type : layer_types)
    for (const auto layout : {SG_IMAGE_NCHW, SG_IMAGE_NHWC})
      for (const std::int64_t kernel : {1, 3})
        for (const std::int64_t channels : {8, 3}) {
          const std::int64_t outputs = channels * 2;
          const auto describe = [=](auto &d, operands &x) {
            d.images = image_count, d.channels = channels, d.height = height, d.width = width, d.out_channels = outputs;
            d.windows.kernel_h = d.windows.kernel_w = kernel;
            d.windows.pad_top = d.windows.pad_left = d.windows.pad_bottom = d.windows.pad_right = kernel / 2;
            d.image_layout = layout, d.dtype = type;
            d.x.data = x.add(type, image_count * channels * height * width);
            d.w = x.add(type, outputs * channels * kernel * kernel);
          };
          for (const bool ends : {false, true})
            sweep(named("conv2d", type), type, [=](operands &x) {
              sg_conv2d_desc d = SG_CONV2D_DESC_INIT;
              describe(d, x);
              d.y.data = x.add(type, image_count * outputs * height * width);
              if (ends) d.bias = x.add(type, outputs), d.activation = SG_ACTIVATION_RELU;
              return call(sg_conv2d, d);
            });
          sweep(named("gradients of conv2d", type), type, [=](operands &x) {
            sg_conv2d_backward_desc d = SG_CONV2D_BACKWARD_DESC_INIT;
            describe(d, x);
            d.dy.data = x.add(type, image_count * outputs * height * width);
            d.dx.data = x.add(type, image_count * channels * height * width);
            d.dw = x.add(type, outputs * channels * kernel * kernel), d.dbias = x.add(type, outputs);
            return call(sg_conv2d_backward, d);
          });
        }
}

TEST_P(alignment, attention) {
  constexpr std::int64_t heads = 2, tokens = 9;
  for (const sg_dtype type : layer_types)
    for (const std::int64_t width_of_head : {16, 5}) {
      const auto add = [=](operands &x) {
        const std::int64_t of_token = heads * width_of_head;
        return sg_heads{x.add(type, tokens * of_token), tokens * of_token, width_of_head, of_token};
      };
      const auto describe = [=](auto &d, operands &x) {
        d.q = add(x), d.k = add(x), d.v = add(x), d.dtype = type, d.mask = SG_MASK_CAUSAL;
        d.batch = 1, d.heads = d.kv_heads = heads, d.queries = d.keys = tokens;
        d.width = d.value_width = width_of_head, d.scale = 0.5;
      };
      sweep(named("attention", type), type, [=](operands &x) {
        sg_attention_desc d = SG_ATTENTION_DESC_INIT;
        describe(d, x);
        d.o = add(x);
        return call(sg_attention, d);
      });
      sweep(named("gradients of attention", type), type, [=](operands &x) {
        sg_attention_backward_desc d = SG_ATTENTION_BACKWARD_DESC_INIT;
        describe(d, x);
        d.dout = add(x), d.dq = add(x), d.dk = add(x), d.dv = add(x);
        return call(sg_attention_backward, d);
      });
    }
}

TEST_P(alignment, recurrent_layers) {
  constexpr std::int64_t steps = 3, batch = 2, in = 5, hidden = 4;
  for (const sg_dtype type : layer_types)
    for (const sg_cell cell : {SG_CELL_LSTM, SG_CELL_GRU}) {
      const std::int64_t gates = (cell == SG_CELL_LSTM ? 4 : 3) * hidden;
      const auto describe = [=](auto &d, operands &x) {
        d.cell = cell, d.steps = steps, d.batch = batch, d.inputs = in, d.hidden = hidden, d.dtype = type;
        d.x = {x.add(type, steps * batch * in), batch * in, in};
        d.y = {x.add(type, steps * batch * hidden), batch * hidden, hidden};
        d.w_ih = x.add(type, gates * in), d.w_hh = x.add(type, gates * hidden);
        d.h0 = x.add(type, batch * hidden);
        d.state_stride = hidden;
      };
      sweep(named("recurrent", type), type, [=](operands &x) {
        sg_recurrent_desc d = SG_RECURRENT_DESC_INIT;
        describe(d, x);
        d.bias_ih = x.add(type, gates), d.bias_hh = x.add(type, gates), d.hn = x.add(type, batch * hidden);
        if (cell == SG_CELL_LSTM) d.c0 = x.add(type, batch * hidden), d.cn = x.add(type, batch * hidden);
        return call(sg_recurrent, d);
      });
      sweep(named("gradients of recurrent", type), type, [=](operands &x) {
        sg_recurrent_desc d = SG_RECURRENT_DESC_INIT;
        describe(d, x);
        d.reserve = x.add_reserve(type == SG_DTYPE_F64 ? type : SG_DTYPE_F32, 5 * steps * batch * hidden);
        sg_recurrent_backward_desc b = SG_RECURRENT_BACKWARD_DESC_INIT;
        if (cell == SG_CELL_LSTM) d.c0 = x.add(type, batch * hidden);
        b.cell = d.cell, b.steps = steps, b.batch = batch, b.inputs = in, b.hidden = hidden, b.dtype = type;
        b.x = d.x, b.y = d.y, b.w_ih = d.w_ih, b.w_hh = d.w_hh, b.h0 = d.h0, b.reserve = d.reserve;
        b.state_stride = hidden, b.gradient_dtype = type;
        b.dy = {x.add(type, steps * batch * hidden), batch * hidden, hidden};
        b.dx = {x.add(type, steps * batch * in), batch * in, in};
        b.dw_ih = x.add(type, gates * in), b.dw_hh = x.add(type, gates * hidden);
        b.dbias_ih = x.add(type, gates), b.dh0 = x.add(type, batch * hidden);
        return [=](sg_context *on) {
          const sg_status status = sg_recurrent(on, &d, nullptr);
          return status != SG_STATUS_OK ? status : sg_recurrent_backward(on, &b, nullptr);
        };
      });
    }
}

TEST_P(alignment, copies) {
  for (const std::int64_t bytes : {64, 7})
    sweep("copy", SG_DTYPE_I8, [=](operands &x) {
      void *const from = x.add(SG_DTYPE_I8, bytes), *const to = x.add(SG_DTYPE_I8, bytes);
      return [=](sg_context *on) { return sg_copy(on, to, from, std::size_t(bytes), nullptr); };
    });
}

ON_EACH_DEVICE(alignment);

}  // namespace
}  // namespace sg_test
