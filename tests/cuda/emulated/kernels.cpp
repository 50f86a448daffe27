// SPDX-License-Identifier: Apache-2.0
// The plugin's own kernels on the emulated GPU, which refuses operands that are not aligned to the kernels' accesses.
#include "backends/cuda/kernels/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "backends/cuda/kernels/clamp.hpp"
#include "backends/cuda/kernels/conv_depthwise.hpp"
#include "backends/cuda/kernels/fill.hpp"
#include "backends/cuda/kernels/layers.hpp"
#include "backends/cuda/kernels/row_dot.hpp"
#include "backends/cuda/kernels/row_reduce.hpp"
#include "backends/sim/arithmetic.hpp"
#include "backends/sim/attention.hpp"
#include "backends/sim/axpby.hpp"
#include "backends/sim/cell.hpp"
#include "backends/sim/clamp.hpp"
#include "backends/sim/convert.hpp"
#include "backends/sim/cross_entropy.hpp"
#include "backends/sim/element.hpp"
#include "backends/sim/fill.hpp"
#include "backends/sim/gather.hpp"
#include "backends/sim/layers.hpp"
#include "backends/sim/norm_backward.hpp"
#include "backends/sim/optimizer.hpp"
#include "backends/sim/pool.hpp"
#include "backends/sim/rotary.hpp"
#include "backends/sim/row_dot.hpp"
#include "backends/sim/row_reduce.hpp"
#include "backends/sim/scatter_add.hpp"
#include "backends/sim/score_mask.hpp"
#include "backends/sim/windows.hpp"
#include "gpu.hpp"

namespace sg::cuda {
namespace {

std::byte *at(const void *memory) { return static_cast<std::byte *>(const_cast<void *>(memory)); }

// Returns like a launch: this thread's latest error, whichever call has set it.
template <class Operands, class Work>
cudaError_t launch_on(cudaStream_t in, const Operands &operands, Work &&work) {
  const auto can_access = [in](const access &x) {
    return emulated::reach(in, {x.first}) == cudaSuccess &&
           (is_aligned(x) || emulated::misaligned(false) == cudaSuccess);
  };
  if (emulated::enter(emulated::call::command) == cudaSuccess &&
      std::all_of(operands.begin(), operands.end(), can_access))
    emulated::enqueue(in, std::forward<Work>(work));
  return cudaGetLastError();
}
template <class Work>
cudaError_t launch(cudaStream_t in, std::initializer_list<access> operands, Work &&work) {
  return launch_on(in, operands, std::forward<Work>(work));
}

// Accessed component by component.
access by_component(const void *first, sg_dtype type) { return {first, component_size(type)}; }
// `count` elements at once, of contiguous runs.
access in_packs(const void *first, sg_dtype type, std::int64_t count, std::int64_t runs, std::int64_t ld) {
  const std::int64_t size = element_size(type);
  return {first, count == 1 ? component_size(type) : count * size, runs, ld * size};
}

// X, Y and vectors of operations on rows.
std::vector<access> rows_of(const row_operands &p, sg_dtype x_type, sg_dtype y_type,
                            std::initializer_list<const void *> vectors) {
  const std::int64_t pack = pack_of(p, element_size(x_type), element_size(y_type), vectors);
  std::vector<access> all{in_packs(p.x, x_type, pack, p.rows, p.x_row), in_packs(p.y, y_type, pack, p.rows, p.y_row)};
  for (const void *each : vectors) all.push_back(in_packs(each, x_type, pack, 1, 0));
  return all;
}

float with_bits_of(float x, std::uint32_t mask) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & mask); }

// To 11 significant bits, ties away from zero; a result that would become infinity is truncated.
float to_tf32(float x) {
  const float rounded = std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000u) & 0xffffe000u);
  return std::isfinite(rounded) ? rounded : with_bits_of(x, 0xffffe000u);
}
float to_bf16(float x) {
  const float rounded = f32_of_bf16(bf16_of_f32(x));
  return std::isfinite(rounded) ? rounded : with_bits_of(x, 0xffff0000u);
}

double activated(double x, sg_activation activation) {
  constexpr double root_2_over_pi = 0.7978845608028654;
  if (activation == SG_ACTIVATION_RELU) return x < 0 ? 0 : x;
  if (activation != SG_ACTIVATION_GELU) return x;
  return x == -INFINITY ? 0 : x / (1 + std::exp(-2 * root_2_over_pi * (x + 0.044715 * x * x * x)));
}

}  // namespace

cudaError_t launch_reduce(const sg_backend_reduce &what, cudaStream_t in) noexcept {
  const sg_dtype part = what.parts_count > 0 ? what.part_type : what.out_type;
  return launch(
      in, {by_component(what.parts, part), by_component(what.c, what.out_type), by_component(what.bias, what.out_type)},
      [what] { sim::add_parts(what, at(what.parts), at(what.c), at(what.bias)); });
}

cudaError_t launch_axpby(const sg_backend_axpby &what, cudaStream_t in) noexcept {
  return launch(in, {by_component(what.a, what.type), by_component(what.c, what.type)},
                [what] { sim::run_axpby(what, at(what.a), at(what.c)); });
}

cudaError_t launch_attention(const sg_backend_attention &what, cudaStream_t in) noexcept {
  const std::int64_t bytes = access_of(what);
  return launch(
      in, {{what.q.data, bytes}, {what.k.data, bytes}, {what.v.data, bytes}, by_component(what.o.data, what.type)},
      [what] { sim::run_attention(what, at(what.q.data), at(what.k.data), at(what.v.data), at(what.o.data)); });
}

cudaError_t launch_conv_depthwise(const sg_backend_conv &given, cudaStream_t in) noexcept {
  const sg_backend_conv what = as_forward(given);
  const auto convolve = [what] {
    const sg_backend_windows &w = what.of;
    const std::int32_t of_channel = what.out_channels / w.channels, taps = w.kernel_h * w.kernel_w;
    const bool flips = what.gradient == SG_BACKEND_CONV_OF_X;
    const bool last = w.channel == 1 && w.pixel == w.channels;
    sim::with_layer_type(what.type, [&]<class Type>() {
      using stored = typename Type::stored;
      using real = typename Type::sum;
      const auto *x = static_cast<const stored *>(what.x), *filters = static_cast<const stored *>(what.w);
      const auto *bias = static_cast<const stored *>(what.bias);
      auto *y = static_cast<stored *>(what.y);
      for (std::int64_t n = 0; n < w.images; ++n)
        for (std::int32_t o = 0; o < what.out_channels; ++o)
          for (std::int32_t row = 0; row < w.out_h; ++row)
            for (std::int32_t col = 0; col < w.out_w; ++col) {
              real sum = 0;
              for (std::int32_t tap = 0; tap < taps; ++tap) {
                const std::int32_t h = row * w.stride_h - w.pad_top + tap / w.kernel_w * w.dilation_h;
                const std::int32_t v = col * w.stride_w - w.pad_left + tap % w.kernel_w * w.dilation_w;
                if (h < 0 || h >= w.height || v < 0 || v >= w.width) continue;
                sum += real(Type::load(x[n * w.image + o / of_channel * w.channel + h * w.row + v * w.pixel])) *
                       real(Type::load(filters[std::int64_t{o} * taps + (flips ? taps - 1 - tap : tap)]));
              }
              if (bias != nullptr) sum += real(Type::load(bias[o]));
              const std::int64_t pixel = std::int64_t{row} * w.out_w + col, pixels = std::int64_t{w.out_h} * w.out_w;
              const std::int64_t at = last ? pixel * what.out_channels + o : o * pixels + pixel;
              y[n * what.y_image + at] = Type::store(activated(sum, what.activation));
            }
    });
  };
  return launch(in,
                {by_component(what.x, what.type), by_component(what.w, what.type), by_component(what.bias, what.type),
                 by_component(what.y, what.type)},
                convolve);
}

cudaError_t launch_elementwise(const sg_backend_elementwise &what, cudaStream_t in) noexcept {
  const sg_backend_elementwise x = as_one_column(what);
  const std::int64_t pack = pack_of(x);
  return launch(in,
                {in_packs(x.a, x.type, pack, x.n, x.lda), in_packs(x.b, x.type, pack, x.n, x.ldb),
                 in_packs(x.c, x.type, pack, x.n, x.ldc)},
                [what] { sim::run_elementwise(what, at(what.a), at(what.b), at(what.c)); });
}

cudaError_t launch_clamp(const sg_backend_clamp &what, cudaStream_t in) noexcept {
  const sg_backend_clamp x = as_one_column(what);
  const std::int64_t pack = pack_of(x);
  return launch(in,
                {in_packs(x.x, x.type, pack, x.n, x.ldx), in_packs(x.dy, x.type, pack, x.n, x.lddy),
                 in_packs(x.y, x.type, pack, x.n, x.ldy)},
                [what] { sim::run_clamp(what, at(what.x), at(what.dy), at(what.y)); });
}

cudaError_t launch_fill(const sg_backend_fill &what, cudaStream_t in) noexcept {
  const sg_backend_fill x = as_one_column(what);
  return launch(in, {{x.y, word_of(x), x.n, x.ldy * element_size(x.type)}},
                [what] { sim::run_fill(what, at(what.y)); });
}

cudaError_t launch_row_dot(const sg_backend_row_dot &what, cudaStream_t in) noexcept {
  const std::int64_t pack = pack_of(what);
  return launch(in,
                {in_packs(what.a, what.type, pack, what.rows, what.a_row),
                 in_packs(what.b, what.type, pack, what.rows, what.b_row), by_component(what.y, what.type)},
                [what] { sim::run_row_dot(what, at(what.a), at(what.b), at(what.y)); });
}

cudaError_t launch_row_reduce(const sg_backend_row_reduce &what, cudaStream_t in) noexcept {
  return launch(in,
                {in_packs(what.x, what.type, pack_of(what), what.rows, what.x_row), by_component(what.y, what.type)},
                [what] { sim::run_row_reduce(what, at(what.x), at(what.y)); });
}

cudaError_t launch_cross_entropy(const sg_backend_cross_entropy &what, cudaStream_t in) noexcept {
  return launch(
      in,
      {by_component(what.x, what.type),
       {what.indices, what.index_bytes},
       by_component(what.y, what.type),
       by_component(what.dy, what.type),
       by_component(what.dx, what.type)},
      [what] { sim::run_cross_entropy(what, at(what.x), at(what.indices), at(what.y), at(what.dy), at(what.dx)); });
}

cudaError_t launch_scatter_add(const sg_backend_scatter_add &what, cudaStream_t in) noexcept {
  return launch(
      in, {by_component(what.x, what.type), {what.indices, what.index_bytes}, by_component(what.table, what.type)},
      [what] { sim::run_scatter_add(what, at(what.x), at(what.indices), at(what.table)); });
}

cudaError_t launch_score_mask(const sg_backend_score_mask &what, cudaStream_t in) noexcept {
  return launch(in,
                {by_component(what.scores, what.type),
                 by_component(what.bias.data, what.bias_type),
                 {what.query_lengths, sizeof(std::int32_t)},
                 {what.key_lengths, sizeof(std::int32_t)},
                 {what.visible.data, 1}},
                [what] {
                  sim::run_score_mask(what, {at(what.scores), at(what.bias.data), at(what.visible.data),
                                             what.query_lengths, what.key_lengths});
                });
}

cudaError_t launch_pool(const sg_backend_pool &what, cudaStream_t in) noexcept {
  return launch(in,
                {by_component(what.x, what.type), by_component(what.y, what.type), by_component(what.dy, what.type),
                 by_component(what.dx, what.type)},
                [what] { sim::run_pool(what, at(what.x), at(what.y), at(what.dy), at(what.dx)); });
}

cudaError_t launch_norm_backward(const sg_backend_norm_backward &what, cudaStream_t in) noexcept {
  return launch(in,
                {by_component(what.dy, what.type), by_component(what.x, what.type), by_component(what.gamma, what.type),
                 by_component(what.dx, what.type), by_component(what.products, sum_type_of(what.type)),
                 by_component(what.dy_sums, sum_type_of(what.type))},
                [what] {
                  sim::run_norm_backward(what, at(what.dy), at(what.x), at(what.gamma), at(what.dx), at(what.products),
                                         at(what.dy_sums));
                });
}

cudaError_t launch_optimizer(const sg_backend_optimizer &what, cudaStream_t in) noexcept {
  const sg_dtype state = sum_type_of(what.type);
  return launch(
      in,
      {by_component(what.parameters, what.type), by_component(what.gradient, what.type),
       by_component(what.first, state), by_component(what.second, state)},
      [what] { sim::run_optimizer(what, at(what.parameters), at(what.gradient), at(what.first), at(what.second)); });
}

cudaError_t launch_softmax(const sg_backend_softmax &what, cudaStream_t in) noexcept {
  return launch_on(in, rows_of(operands_of(what), what.x_type != 0 ? what.x_type : what.type, what.type, {}),
                   [what] { sim::run_softmax(what, at(what.x), at(what.y), what.sums); });
}

cudaError_t launch_softmax_backward(const sg_backend_softmax_backward &what, cudaStream_t in) noexcept {
  return launch(
      in, {by_component(what.y, what.type), by_component(what.dy, what.dy_type), by_component(what.dx, what.type)},
      [what] { sim::run_softmax_backward(what, at(what.y), at(what.dy), at(what.dx)); });
}

cudaError_t launch_norm(const sg_backend_norm &what, cudaStream_t in) noexcept {
  return launch_on(in, rows_of(operands_of(what), what.type, what.type, {what.gamma, what.beta}),
                   [what] { sim::run_norm(what, at(what.x), at(what.y), at(what.gamma), at(what.beta)); });
}

cudaError_t launch_dequantize(const sg_backend_dequantize &what, cudaStream_t in) noexcept {
  const bool packs = is_in_packs(what);
  const std::int64_t size = element_size(what.type);
  return launch(in,
                {{what.x, packs ? packed_bytes(what) : 1, what.rows, what.x_row},
                 by_component(what.scales, what.scale_type),
                 {what.zero_points, 1},
                 {what.y, packs ? widest_access : size, what.rows, what.y_row * size}},
                [what] { sim::run_dequantize(what, at(what.x), at(what.scales), at(what.zero_points), at(what.y)); });
}

cudaError_t launch_rotary(const sg_backend_rotary &what, cudaStream_t in) noexcept {
  return launch(in,
                {by_component(what.x, what.type), by_component(what.y, what.type),
                 by_component(what.cos, what.table_type), by_component(what.sin, what.table_type)},
                [what] { sim::run_rotary(what, at(what.x), at(what.y), at(what.cos), at(what.sin)); });
}

cudaError_t launch_convert(const sg_backend_convert &what, cudaStream_t in) noexcept {
  const sg_backend_convert x = as_one_column(what);
  const std::int64_t pack = pack_of(x);
  return launch(in,
                {in_packs(x.a, x.in_type, pack, x.n, x.lda), in_packs(x.a, x.in_type, pack, x.batch, x.stride_a),
                 in_packs(x.c, x.out_type, pack, x.n, x.ldc), in_packs(x.c, x.out_type, pack, x.batch, x.stride_c)},
                [what] { sim::run_convert(what, at(what.a), at(what.c), what.divisors); });
}

cudaError_t launch_gather(const sg_backend_gather &what, cudaStream_t in) noexcept {
  const std::int64_t bytes = access_of(what);
  return launch(in,
                {{what.table, bytes, what.table_rows, what.table_row},
                 {what.indices, what.index_bytes},
                 {what.y, bytes, what.rows, what.y_row}},
                [what] { sim::run_gather(what, at(what.table), at(what.indices), at(what.y)); });
}

cudaError_t launch_cell(const sg_backend_cell &what, cudaStream_t in) noexcept {
  const sg_dtype sums = what.type == SG_DTYPE_F64 ? SG_DTYPE_F64 : SG_DTYPE_F32;
  return launch(in, {by_component(what.row, sums), by_component(what.next, sums), by_component(what.y, what.type)},
                [what] { sim::run_cell(what, at(what.row), at(what.next), at(what.y)); });
}

cudaError_t launch_cell_backward(const sg_backend_cell_backward &what, cudaStream_t in) noexcept {
  const sg_dtype sums = what.type == SG_DTYPE_F64 ? SG_DTYPE_F64 : SG_DTYPE_F32;
  return launch(in,
                {by_component(what.row, sums), by_component(what.dh, sums), by_component(what.dstate, sums),
                 by_component(what.dgates, what.type)},
                [what] { sim::run_cell_backward(what, at(what.row), at(what.dh), at(what.dstate), at(what.dgates)); });
}

cudaError_t launch_im2col(const sg_backend_im2col &what, cudaStream_t in) noexcept {
  const std::int64_t bytes = access_of(widened(what));
  return launch(in, {{what.x, bytes}, {what.matrix, bytes}},
                [what] { sim::run_im2col(what, at(what.x), at(what.matrix)); });
}

cudaError_t launch_col2im(const sg_backend_col2im &what, cudaStream_t in) noexcept {
  return launch(in, {by_component(what.matrix, what.matrix_type), by_component(what.x, what.type)},
                [what] { sim::run_col2im(what, at(what.matrix), at(what.x)); });
}

cudaError_t launch_epilogues(const gemm_epilogue *products, int count, sg_dtype type, cudaStream_t in) noexcept {
  std::vector<access> operands;
  for (int i = 0; i < count; ++i)
    operands.insert(operands.end(), {by_component(products[i].c, type), by_component(products[i].bias, type)});
  return launch_on(in, operands, [all = std::vector<gemm_epilogue>(products, products + count), type] {
    for (const gemm_epilogue &p : all)
      for (std::int64_t item = 0; item < p.batch; ++item) {
        sg_backend_reduce end{};
        end.m = p.m, end.n = p.n, end.ldc = p.ldc;
        end.out_type = type;
        end.beta = {1, 0};
        end.bias = p.bias;
        end.bias_per_row = p.bias_per_row;
        end.activation = p.activation;
        const std::byte *bias = p.bias ? at(p.bias) + item * p.stride_bias * element_size(type) : nullptr;
        sim::add_parts(end, nullptr, at(p.c) + item * p.stride_c * element_size(type), bias);
      }
  });
}

cudaError_t launch_narrow_copy(const sg_backend_copy &what, cudaStream_t in) noexcept {
  return launch(in,
                {{what.dst, access_of(what), what.height, what.dst_pitch},
                 {what.src, access_of(what), what.height, what.src_pitch}},
                [what] {
                  for (std::int64_t run = 0; run < what.height; ++run)
                    std::memcpy(at(what.dst) + run * what.dst_pitch, at(what.src) + run * what.src_pitch,
                                static_cast<std::size_t>(what.width));
                });
}

cudaError_t launch_pointer_fill(const pointer_fill &what, cudaStream_t in) noexcept {
  return launch(in, {{what.to, sizeof(void *)}},
                [what, items = std::vector<item_bases>(what.items, what.items + what.item_count)] {
                  for (int i = 0; i < what.item_count; ++i)
                    for (int o = 0; o < 3; ++o)
                      what.to[o * what.count + what.first + i] = items[static_cast<std::size_t>(i)].of[o];
                });
}

cudaError_t launch_gemm_i8(const sg_backend_gemm &what, cudaStream_t in) noexcept {
  const bool lists = what.a_array != nullptr;
  return launch(
      in, {{lists ? what.a_array : what.a, 1}, {lists ? what.b_array : what.b, 1}, {lists ? what.c_array : what.c, 4}},
      [what] {
        const auto operand = [&](const void *first, const void *const *array, std::int64_t stride, std::int64_t size) {
          sim::item_list list{at(first), stride * size, {}};
          for (std::int64_t i = 0; array != nullptr && i < what.batch; ++i) list.pointers.push_back(at(array[i]));
          return list;
        };
        sg_backend_gemm gemm = what;  // another launch applies its epilogue
        gemm.bias = nullptr;
        gemm.activation = SG_ACTIVATION_NONE;
        sim::multiply(gemm, operand(what.a, what.a_array, what.stride_a, 1),
                      operand(what.b, what.b_array, what.stride_b, 1), operand(what.c, what.c_array, what.stride_c, 4),
                      {});
      });
}

cudaError_t launch_pack_i8(const i8_panel &what, cudaStream_t in) noexcept {
  return launch(in, {{what.src, 1}, {what.dst, 1}}, [what] {
    for (std::int64_t line = 0; line < what.lines; ++line)
      for (std::int64_t l = 0; l < what.padded_depth; ++l) {
        const std::int64_t from = what.depth_is_rows ? l + line * what.ld : line + l * what.ld;
        at(what.dst)[l + line * what.padded_depth] = l < what.depth ? at(what.src)[from] : std::byte{0};
      }
  });
}

cudaError_t launch_pad(const padded_matrix &what, cudaStream_t in) noexcept {
  const std::int64_t size = what.element_bytes;
  return launch(in, {{what.src, size, what.cols, what.ld * size}, {what.dst, 16, what.dst_cols, what.dst_rows * size}},
                [what, size] {
                  std::byte *to = at(what.dst);
                  for (std::int64_t j = 0; j < what.dst_cols; ++j, to += what.dst_rows * size) {
                    const std::int64_t bytes = j < what.cols ? what.rows * size : 0;
                    if (bytes > 0) std::memcpy(to, at(what.src) + j * what.ld * size, std::size_t(bytes));
                    std::memset(to + bytes, 0, std::size_t(what.dst_rows * size - bytes));
                  }
                });
}

cudaError_t launch_widen_f8(const f8_panel *panels, int count, sg_dtype from, sg_dtype to, cudaStream_t in) noexcept {
  return launch(in, {{panels->src, 1}, {panels->dst, 8, 2, 2 * panels->dst_ld}},
                [all = std::vector<f8_panel>(panels, panels + count), from, to] {
                  for (const f8_panel &p : all)
                    for (std::int64_t column = 0; column < p.cols * p.items; ++column)
                      for (std::int64_t i = 0; i < p.rows; ++i) {
                        const std::int64_t item = column / p.cols, j = column % p.cols;
                        const auto bits =
                            static_cast<const std::uint8_t *>(p.src)[item * p.src_stride + j * p.src_ld + i];
                        const float value = from == SG_DTYPE_F8_E4M3 ? f32_of_e4m3(bits) : f32_of_e5m2(bits);
                        static_cast<std::uint16_t *>(p.dst)[column * p.dst_ld + i] =
                            to == SG_DTYPE_F16 ? f16_of_f32(value) : bf16_of_f32(value);
                      }
                });
}

cudaError_t launch_split(const split_panel &what, cudaStream_t in) noexcept {
  const std::int64_t pack = pack_of(what);
  const sg_dtype high = what.format == short_format::tf32 ? SG_DTYPE_F32 : SG_DTYPE_BF16;
  return launch(in,
                {in_packs(what.src, SG_DTYPE_F32, pack, what.cols, what.ld),
                 in_packs(what.high, high, pack, what.cols, what.high_ld),
                 in_packs(what.corrections, SG_DTYPE_BF16, pack, what.cols, what.corrections_ld)},
                [what] {
                  const std::int64_t to_second = what.depth_is_rows ? what.rows : what.cols * what.corrections_ld;
                  const bool tf32 = what.format == short_format::tf32;
                  for (std::int64_t j = 0; j < what.cols; ++j)
                    for (std::int64_t i = 0; i < what.rows; ++i) {
                      const float value = what.src[i + j * what.ld];
                      const bool finite = std::isfinite(value);
                      const float high = !finite ? value : tf32 ? to_tf32(value) : to_bf16(value);
                      const float again = finite ? to_bf16(high) : 0, rest = finite ? value - high : 0;
                      // The parts of the largest numbers must not add up to more than the number.
                      const float low = std::fabs(value) < 0x1p127f ? to_bf16(rest) : with_bits_of(rest, 0xffff0000u);
                      const std::int64_t place = i + j * what.high_ld;
                      if (tf32)
                        static_cast<float *>(what.high)[place] = high;
                      else
                        static_cast<std::uint16_t *>(what.high)[place] = bf16_of_f32(high);
                      auto *const corrections =
                          static_cast<std::uint16_t *>(what.corrections) + i + j * what.corrections_ld;
                      corrections[0] = bf16_of_f32(what.low_first ? low : again);
                      corrections[to_second] = bf16_of_f32(what.low_first ? again : low);
                    }
                });
}

}  // namespace sg::cuda
