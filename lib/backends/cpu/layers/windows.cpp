// SPDX-License-Identifier: Apache-2.0
#include "windows.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
namespace {

struct unit_16 {
  std::uint64_t low, high;
};

// Windows of one row: [first, end) of an image's row `oh`.
struct window_run {
  std::int64_t first = 0, end = 0;
  bool empty() const noexcept { return first >= end; }
};

// Those of tap column `kw` whose pixel is in the image. Pixel of window j: j * stride_w + offset.
window_run in_image(const sg_backend_windows &w, window_run run, std::int64_t offset) noexcept {
  const std::int64_t s = w.stride_w;
  if (offset < 0) run.first = std::max(run.first, (-offset + s - 1) / s);
  if (w.width <= offset) return {};
  run.end = std::min(run.end, (w.width - 1 - offset) / s + 1);
  return run;
}

std::int64_t column_of(const sg_backend_windows &w, std::int64_t channel, std::int64_t tap) noexcept {
  const std::int64_t taps = std::int64_t{w.kernel_h} * w.kernel_w;
  if (!w.channels_inner) return channel * taps + tap;
  const std::int64_t size = w.channels / w.groups, group = channel / size;
  return group * size * taps + tap * size + channel % size;
}

// `to` = every `step`-th of `from`, or zeros without it.
template <class T>
void fill_run(T *to, std::int64_t to_step, const T *from, std::int64_t step, std::int64_t n) noexcept {
  if (from == nullptr) {
    if (to_step == 1)
      std::memset(static_cast<void *>(to), 0, static_cast<std::size_t>(n) * sizeof(T));
    else
      for (std::int64_t i = 0; i < n; ++i) to[i * to_step] = T{};
  } else if (to_step == 1 && step == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * step];
  }
}

// Positions are contiguous: for each column, runs of the windows of a row.
template <class T>
sg_status by_columns(const sg_backend_windows &w, const T *x, T *matrix, workspace &space) noexcept {
  const std::int64_t of_image = std::int64_t{w.out_h} * w.out_w;
  poll end(space);
  for (std::int64_t c = 0; c < w.channels; ++c)
    for (std::int64_t tap = 0; tap < std::int64_t{w.kernel_h} * w.kernel_w; ++tap) {
      const std::int64_t kh = tap / w.kernel_w, kw = tap % w.kernel_w;
      const std::int64_t offset = kw * w.dilation_w - w.pad_left;
      T *to = matrix + column_of(w, c, tap) * w.column;
      for (std::int64_t done = 0; done < w.positions;) {
        const std::int64_t at = w.first_position + done, image = at / of_image, in_image_at = at % of_image;
        const std::int64_t oh = in_image_at / w.out_w, ow = in_image_at % w.out_w;
        const window_run run{ow, std::min<std::int64_t>(w.out_w, ow + w.positions - done)};
        const std::int64_t ih = oh * w.stride_h + kh * w.dilation_h - w.pad_top;
        window_run inside = ih >= 0 && ih < w.height ? in_image(w, run, offset) : window_run{};
        if (inside.empty()) inside = {run.end, run.end};
        fill_run<T>(to + done, 1, nullptr, 0, inside.first - run.first);
        if (!inside.empty())
          fill_run(to + done + (inside.first - ow), 1,
                   x + image * w.image + c * w.channel + ih * w.row + (inside.first * w.stride_w + offset) * w.pixel,
                   w.stride_w * w.pixel, inside.end - inside.first);
        fill_run<T>(to + done + (inside.end - ow), 1, nullptr, 0, run.end - inside.end);
        done += run.end - run.first;
        if (end.stops(run.end - run.first)) return SG_STATUS_CANCELLED;
      }
    }
  return SG_STATUS_OK;
}

// Each channel's taps are adjacent, in all groups: a tap of consecutive channels is one run.
bool has_taps_inner(const sg_backend_windows &w) noexcept { return !w.channels_inner || w.channels == w.groups; }

// The columns of a position are contiguous. A row of taps is one run if pixels and taps are adjacent; otherwise a tap
// is, of all channels or of each group.
template <class T>
sg_status by_positions(const sg_backend_windows &w, const T *x, T *matrix, workspace &space) noexcept {
  const std::int64_t of_image = std::int64_t{w.out_h} * w.out_w, taps = std::int64_t{w.kernel_h} * w.kernel_w;
  const std::int64_t size = w.channels / w.groups;
  const bool whole_rows = w.channels_inner && w.groups == 1 && w.dilation_w == 1 && w.channel == 1 && w.pixel == size;
  const bool taps_inner = has_taps_inner(w);
  poll end(space);
  const auto add_row = [&](T *to, const T *row, std::int64_t left) {
    const std::int64_t first = std::clamp<std::int64_t>(-left, 0, w.kernel_w);
    const std::int64_t last = std::clamp<std::int64_t>(w.width - left, first, w.kernel_w);
    fill_run<T>(to, 1, nullptr, 0, first * size);
    if (first < last) fill_run(to + first * size, 1, row + (left + first) * size, 1, (last - first) * size);
    fill_run<T>(to + last * size, 1, nullptr, 0, (w.kernel_w - last) * size);
  };
  for (std::int64_t p = 0; p < w.positions; ++p) {
    const std::int64_t at = w.first_position + p, image = at / of_image, in_image_at = at % of_image;
    const std::int64_t top = in_image_at / w.out_w * w.stride_h - w.pad_top;
    const std::int64_t left = in_image_at % w.out_w * w.stride_w - w.pad_left;
    T *const to = matrix + p * w.position;
    for (std::int64_t kh = 0; kh < w.kernel_h; ++kh) {
      const std::int64_t ih = top + kh * w.dilation_h;
      const bool in_rows = ih >= 0 && ih < w.height;
      const T *const row = x + image * w.image + (in_rows ? ih * w.row : 0);
      if (whole_rows && in_rows) {
        add_row(to + kh * w.kernel_w * size, row, left);
        continue;
      }
      for (std::int64_t kw = 0; kw < w.kernel_w; ++kw) {
        const std::int64_t iw = left + kw * w.dilation_w, tap = kh * w.kernel_w + kw;
        const T *const from = in_rows && iw >= 0 && iw < w.width ? row + iw * w.pixel : nullptr;
        if (taps_inner) {
          fill_run(to + tap, taps, from, w.channel, w.channels);
        } else {
          for (std::int64_t g = 0; g < w.groups; ++g)
            fill_run(to + (g * taps + tap) * size, 1, from ? from + g * size * w.channel : nullptr, w.channel, size);
        }
      }
    }
    if (end.stops(w.channels * taps)) return SG_STATUS_CANCELLED;
  }
  return SG_STATUS_OK;
}

template <class T>
sg_status im2col_of(const sg_backend_im2col &what, workspace &space) noexcept {
  const auto *x = static_cast<const T *>(what.x);
  auto *matrix = static_cast<T *>(what.matrix);
  return what.of.position == 1 ? by_columns(what.of, x, matrix, space) : by_positions(what.of, x, matrix, space);
}

// n elements of the matrix as sums.
template <class Real>
void load_run(Real *to, const void *matrix, sg_dtype type, std::int64_t at, std::int64_t step,
              std::int64_t n) noexcept {
  const std::int64_t size = element_size(type);
  const char *const from = static_cast<const char *>(matrix) + at * size;
  if (step == 1) return widen(to, from, type, n);
  if (is_short_float(type)) {
    for (std::int64_t i = 0; i < n; ++i) widen(to + i, from + i * step * size, type, 1);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = reinterpret_cast<const Real *>(from)[i * step];
  }
}

// Adds to the sums of row `ih` of some channels of an image, pixel by pixel, what the positions have of them. A run is
// of windows, or of channels where these are contiguous.
template <class Real>
class row_of_sums {
 public:
  row_of_sums(const sg_backend_col2im &what, Real *sums, Real *run)
      : what_(what), w_(what.of), sums_(sums), run_(run) {}

  // Channels [c, c + count) of row `ih`. `first`: number of the image's first position; [lo, hi): those of the matrix.
  // Returns whether anything was added.
  bool add(std::int64_t c, std::int64_t count, std::int64_t ih, std::int64_t first, std::int64_t lo, std::int64_t hi) {
    bool added = false;
    for (std::int64_t kh = 0; kh < w_.kernel_h; ++kh) {
      const std::int64_t above = ih + w_.pad_top - kh * w_.dilation_h;
      if (above < 0 || above % w_.stride_h != 0 || above / w_.stride_h >= w_.out_h) continue;
      const std::int64_t row = first + above / w_.stride_h * w_.out_w;
      const window_run run{std::max<std::int64_t>(0, lo - row), std::min<std::int64_t>(w_.out_w, hi - row)};
      for (std::int64_t kw = 0; kw < w_.kernel_w && !run.empty(); ++kw) {
        const std::int64_t offset = kw * w_.dilation_w - w_.pad_left;
        const window_run inside = in_image(w_, run, offset);
        if (inside.empty()) continue;
        const std::int64_t at = row + inside.first - w_.first_position, tap = kh * w_.kernel_w + kw;
        Real *const to = sums_ + (inside.first * w_.stride_w + offset) * count;
        if (w_.position == 1)
          add_windows(to, c, count, at, tap, inside.end - inside.first);
        else
          add_channels(to, c, count, at, tap, inside.end - inside.first);
        added = true;
      }
    }
    return added;
  }

 private:
  void add_windows(Real *to, std::int64_t c, std::int64_t count, std::int64_t at, std::int64_t tap, std::int64_t n) {
    for (std::int64_t i = 0; i < count; ++i) {
      load_run(run_, what_.matrix, what_.matrix_type, at + column_of(w_, c + i, tap) * w_.column, 1, n);
      for (std::int64_t j = 0; j < n; ++j) to[j * w_.stride_w * count + i] += run_[j];
    }
  }
  void add_channels(Real *to, std::int64_t c, std::int64_t count, std::int64_t at, std::int64_t tap, std::int64_t n) {
    const std::int64_t taps = std::int64_t{w_.kernel_h} * w_.kernel_w, size = w_.channels / w_.groups;
    const bool taps_inner = has_taps_inner(w_);
    const std::int64_t step = taps_inner ? taps : 1;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < count;) {
        const std::int64_t some = taps_inner ? count : std::min(count - i, size - (c + i) % size);
        load_run(run_, what_.matrix, what_.matrix_type, (at + j) * w_.position + column_of(w_, c + i, tap), step, some);
        for (std::int64_t s = 0; s < some; ++s) to[j * w_.stride_w * count + i + s] += run_[s];
        i += some;
      }
  }

  const sg_backend_col2im &what_;
  const sg_backend_windows &w_;
  Real *sums_, *run_;
};

template <class Real>
sg_status col2im_of(const sg_backend_col2im &what, workspace &space) noexcept {
  const sg_backend_windows &w = what.of;
  const bool channels_last = w.channel == 1 && w.pixel >= w.channels && w.channels > 1;
  const std::int64_t count = channels_last ? w.channels : 1, width = w.width * count;
  const std::int64_t longest = std::max({std::int64_t{w.out_w}, std::int64_t{w.channels}, width});
  auto *const sums =
      static_cast<Real *>(space.get(scratch::sums, static_cast<std::size_t>(width + longest) * sizeof(Real)));
  if (sums == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  Real *const run = sums + width;
  const std::int64_t size = element_size(what.type), of_image = std::int64_t{w.out_h} * w.out_w;
  row_of_sums<Real> row(what, sums, run);
  poll end(space);
  for (std::int64_t n = 0; n < w.images; ++n) {
    const std::int64_t first = n * of_image, lo = std::max(first, w.first_position);
    const std::int64_t hi = std::min(first + of_image, w.first_position + w.positions);
    if (what.accumulate && lo >= hi) continue;
    for (std::int64_t c = 0; c < w.channels; c += count)
      for (std::int64_t ih = 0; ih < w.height; ++ih) {
        std::fill_n(sums, width, Real{0});
        const bool added = row.add(c, count, ih, first, lo, hi);
        if (end.stops(width)) return SG_STATUS_CANCELLED;
        if (what.accumulate && !added) continue;
        char *const to = static_cast<char *>(what.x) + (n * w.image + c * w.channel + ih * w.row) * size;
        const auto store = [&](char *at, Real *from, std::int64_t elements) {
          if (what.accumulate) {
            widen(run, at, what.type, elements);
            for (std::int64_t i = 0; i < elements; ++i) from[i] += run[i];
          }
          narrow(at, what.type, from, elements);
        };
        if (w.pixel == count) {
          store(to, sums, width);
        } else {
          for (std::int64_t iw = 0; iw < w.width; ++iw) store(to + iw * w.pixel * size, sums + iw * count, count);
        }
      }
  }
  return SG_STATUS_OK;
}

}  // namespace

sg_status run_im2col(const sg_backend_im2col &what, workspace &space) noexcept {
  switch (what.element_bytes) {
    case 1: return im2col_of<std::uint8_t>(what, space);
    case 2: return im2col_of<std::uint16_t>(what, space);
    case 4: return im2col_of<std::uint32_t>(what, space);
    case 8: return im2col_of<std::uint64_t>(what, space);
    default: return im2col_of<unit_16>(what, space);
  }
}

sg_status run_col2im(const sg_backend_col2im &what, workspace &space) noexcept {
  return what.type == SG_DTYPE_F64 ? col2im_of<double>(what, space) : col2im_of<float>(what, space);
}

}  // namespace sg::cpu
