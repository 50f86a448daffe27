// SPDX-License-Identifier: Apache-2.0
#include "conv.hpp"

namespace sg_reference {

namespace {

// each(x, w, y): elements that are multiplied and added.
template <class Each>
void each_product(const conv_shape &s, Each &&each) {
  const std::int64_t out_h = s.out_h(), out_w = s.out_w(), of_group = s.of_group();
  const sg_windows &k = s.windows;
  for (std::int64_t n = 0; n < s.images; ++n)
    for (std::int64_t o = 0; o < s.out_channels; ++o)
      for (std::int64_t i = 0; i < out_h; ++i)
        for (std::int64_t j = 0; j < out_w; ++j) {
          const std::int64_t first = o / (s.out_channels / s.groups) * of_group, y = s.y_at(n, o, i, j);
          for (std::int64_t c = 0; c < of_group; ++c)
            for (std::int64_t kh = 0; kh < k.kernel_h; ++kh)
              for (std::int64_t kw = 0; kw < k.kernel_w; ++kw) {
                const std::int64_t h = i * k.stride_h - k.pad_top + kh * k.dilation_h;
                const std::int64_t w = j * k.stride_w - k.pad_left + kw * k.dilation_w;
                if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
                each(std::size_t(s.x_at(n, first + c, h, w)), std::size_t(s.w_at(o, c, kh, kw)), std::size_t(y));
              }
        }
}

}  // namespace

void add_products(const conv_shape &s, conv_operand result, const std::vector<real> &a, const std::vector<real> &b,
                  sums &to) {
  each_product(s, [&](std::size_t x, std::size_t w, std::size_t y) {
    switch (result) {
      case conv_operand::x: return to.add(std::int64_t(x), a[w] * b[y]);
      case conv_operand::w: return to.add(std::int64_t(w), a[x] * b[y]);
      case conv_operand::y: return to.add(std::int64_t(y), a[x] * b[w]);
    }
  });
}

}  // namespace sg_reference
