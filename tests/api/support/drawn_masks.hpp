// SPDX-License-Identifier: Apache-2.0
// The masks of an attention, drawn, and which keys they leave by definition.
#pragma once

#include <streamgemm/attention.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/numbers.hpp"
#include "support/operand_memory.hpp"

namespace sg_test {

// Sizes of an attention.
struct attention_sizes {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, width = 1, value_width = 1;
};

class drawn_masks {
 public:
  enum kind : unsigned {
    bias = 1,
    visible = 2,
    query_lengths = 4,
    key_lengths = 8,
    causal = 16,
    from_end = 32,
    window = 64
  };

  // Elements of the bias whose scores are all hidden, and its gaps, are NaN.
  drawn_masks(sg_context *on, random_source &random, sg_dtype type, const attention_sizes &s, unsigned kinds)
      : on_(on), type_(type), s_(s), kinds_(kinds) {
    if (kinds & (causal | from_end)) {
      mask_ = kinds & from_end ? SG_MASK_CAUSAL_FROM_END : SG_MASK_CAUSAL;
      offset_ = random.below(3) ? random.below(7) - 3 : mask_ == SG_MASK_CAUSAL ? s.keys - s.queries : 0;
      if (kinds & window) window_ = 1 + random.below(int(s.keys) + 2);
    }
    if (kinds & query_lengths) draw_lengths(of_queries_, random, s.queries);
    if (kinds & key_lengths) draw_lengths(of_keys_, random, s.keys);
    if (kinds & visible) {
      draw_strides(shown_, random, 1);
      for (unsigned char &each : shown_.image) each = random.below(3) ? (unsigned char)(1 + random.below(255)) : 0;
      shown_.write(on);
    }
    if (kinds & bias) draw_bias(random);
  }

  template <class Desc>
  void describe(Desc &d) const {
    d.mask = mask_, d.mask_offset = offset_, d.window = window_;
    if (kinds_ & bias) d.bias = bias_.view;
    if (kinds_ & visible) d.visible = shown_.view;
    if (kinds_ & query_lengths) d.query_lengths = static_cast<const std::int32_t *>(of_queries_.memory.data());
    if (kinds_ & key_lengths) d.key_lengths = static_cast<const std::int32_t *>(of_keys_.memory.data());
  }

  // Is added to a score; minus infinity hides the key.
  long double added(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (!is_left(b, h, i, j)) return -INFINITY;
    return kinds_ & bias ? load(type_, bias_.at(b, h, i, j, size())).real() : 0;
  }

 private:
  struct scores {
    sg_heads view{};
    operand_memory memory;
    std::vector<unsigned char> image;

    const unsigned char *at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, std::int64_t bytes) const {
      return image.data() + (b * view.batch_stride + h * view.head_stride + i * view.token_stride + j) * bytes;
    }
    void write(sg_context *on) { EXPECT_OK(sg_copy(on, memory.data(), image.data(), image.size(), nullptr)); }
  };
  struct lengths {
    std::vector<std::int32_t> values;
    operand_memory memory;
  };

  std::int64_t size() const { return static_cast<std::int64_t>(sg_dtype_size(type_)); }

  void draw_lengths(lengths &to, random_source &random, std::int64_t tokens) {
    for (std::int64_t b = 0; b < std::max<std::int64_t>(1, s_.batch); ++b)
      to.values.push_back(random.below(int(tokens) + 5) - 2);
    to.memory = operand_memory(on_, to.values.size() * sizeof(std::int32_t));
    EXPECT_OK(sg_copy(on_, to.memory.data(), to.values.data(), to.values.size() * sizeof(std::int32_t), nullptr));
  }

  // Each of them 0 or beyond what the smaller ones reach.
  void draw_strides(scores &to, random_source &random, std::int64_t bytes) const {
    std::int64_t reach = s_.keys;
    for (const auto &[stride, count] : {std::pair{&to.view.token_stride, s_.queries},
                                        {&to.view.head_stride, s_.heads},
                                        {&to.view.batch_stride, s_.batch}}) {
      if (random.below(3) == 0) continue;
      *stride = reach + random.below(3);
      reach += *stride * std::max<std::int64_t>(0, count - 1);
    }
    to.image.assign(std::size_t(std::max<std::int64_t>(1, reach) * bytes), 0);
    to.memory = operand_memory(on_, to.image.size());
    to.view.data = to.memory.data();
  }

  void draw_bias(random_source &random) {
    draw_strides(bias_, random, size());
    for (std::size_t i = 0; i < bias_.image.size(); i += std::size_t(size())) store(type_, &bias_.image[i], NAN);
    for (std::int64_t b = 0; b < s_.batch; ++b)
      for (std::int64_t h = 0; h < s_.heads; ++h)
        for (std::int64_t i = 0; i < s_.queries; ++i)
          for (std::int64_t j = 0; j < s_.keys; ++j) {
            unsigned char *const at = const_cast<unsigned char *>(bias_.at(b, h, i, j, size()));
            if (!is_left(b, h, i, j) || !std::isnan(load(type_, at).real())) continue;
            store(type_, at, random.below(5) ? random.real() : -INFINITY);
          }
    bias_.write(on_);
  }

  // By all masks but the bias.
  bool is_left(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const auto length = [b](const lengths &of, std::int64_t all) {
      return of.values.empty() ? all : std::clamp<std::int64_t>(of.values[std::size_t(b)], 0, all);
    };
    const std::int64_t queries = length(of_queries_, s_.queries), keys = length(of_keys_, s_.keys);
    if (i >= queries || j >= keys) return false;
    const std::int64_t last = i + offset_ + (mask_ == SG_MASK_CAUSAL_FROM_END ? keys - queries : 0);
    if (mask_ != SG_MASK_NONE && (j > last || (window_ > 0 && j <= last - window_))) return false;
    return !(kinds_ & visible) || *shown_.at(b, h, i, j, 1) != 0;
  }

  sg_context *on_;
  sg_dtype type_;
  attention_sizes s_;
  unsigned kinds_;
  sg_mask mask_ = SG_MASK_NONE;
  std::int64_t offset_ = 0, window_ = 0;
  lengths of_queries_, of_keys_;
  scores bias_, shown_;
};

}  // namespace sg_test
