// SPDX-License-Identifier: Apache-2.0
// Drawn descriptors with extreme sizes: each is refused, or planned in bounded time. Nothing is computed: what is
// accepted is recorded in a graph that does not run. Undefined arithmetic is for the sanitizers to see.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>

#include "support/harness.hpp"
#include "support/numbers.hpp"
#include "support/sanitizers.hpp"

namespace sg_test {
namespace {

using graph = owned<sg_graph, sg_graph_release>;

class extremes : public on_each_device {
 protected:
  void SetUp() override {
    on_each_device::SetUp();
    ASSERT_OK(sg_buffer_create(context_, 4096, nullptr, memory_.out()));
    ASSERT_OK(sg_buffer_data(memory_, &device_));
  }

  std::int64_t size() {
    static constexpr std::int64_t special[] = {0,
                                               1,
                                               2,
                                               3,
                                               7,
                                               64,
                                               1000,
                                               1 << 15,
                                               1 << 20,
                                               (std::int64_t{1} << 31) - 1,
                                               std::int64_t{1} << 31,
                                               std::int64_t{1} << 33,
                                               std::int64_t{1} << 40,
                                               (std::int64_t{1} << 53) + 1,
                                               std::int64_t{1} << 62,
                                               INT64_MAX,
                                               -1,
                                               INT64_MIN};
    return special[random_.below(random_.below(3) == 0 ? int(std::size(special)) : 11)];
  }
  std::int64_t small() { return random_.below(8) == 0 ? size() : 1 + random_.below(9); }
  void *anywhere() {
    switch (random_.below(4)) {
      case 0: return device_;
      case 1: return reinterpret_cast<void *>(std::uintptr_t{1} << 40);  // recorded only
      case 2: return host_;
      default: return device_;
    }
  }
  template <class Enum>
  Enum one_of(std::initializer_list<Enum> of) {
    return of.begin()[random_.below(int(of.size()))];
  }
  sg_dtype type() { return one_of({SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16, SG_DTYPE_C128}); }
  sg_layout layout() { return one_of({SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR}); }
  sg_matrix matrix(std::int64_t rows, std::int64_t cols, sg_dtype of) {
    return {anywhere(), rows, cols, random_.below(2) ? 0 : size(), of, layout()};
  }
  sg_heads heads() { return {anywhere(), size(), size(), size()}; }
  sg_windows windows() {
    return {small(), small(), small(), small(), small(), small(), small(), small(), small(), small()};
  }

  // Draws one and submits it into the graph.
  sg_status draw(int kind, const sg_submit *into) {
    const sg_dtype of = type();
    const std::int64_t m = size(), n = size(), k = size();
    switch (kind) {
      case 0: {
        sg_gemm_desc d = SG_GEMM_DESC_INIT;
        d.a = matrix(m, k, of), d.b = matrix(k, n, of), d.c = matrix(m, n, of);
        d.batch = small(), d.stride_a = size(), d.stride_b = size(), d.stride_c = size();
        if (random_.below(3) == 0) d.bias = anywhere(), d.stride_bias = size();
        return sg_gemm_async(context_, &d, into, nullptr);
      }
      case 1: {
        sg_linear_backward_desc d = SG_LINEAR_BACKWARD_DESC_INIT;
        d.dy = matrix(m, n, of), d.x = matrix(m, k, of), d.w = matrix(k, n, of);
        d.dx = matrix(m, k, of), d.dw = matrix(k, n, of);
        d.dbias = anywhere(), d.dbias_dtype = of;
        return sg_linear_backward_async(context_, &d, into, nullptr);
      }
      case 2: {
        sg_softmax_desc d = SG_SOFTMAX_DESC_INIT;
        d.x = matrix(m, n, of), d.y = matrix(m, n, of);
        if (random_.below(2)) d.mask = SG_MASK_CAUSAL, d.mask_offset = size(), d.mask_rows = small();
        return sg_softmax_async(context_, &d, into, nullptr);
      }
      case 3: {
        sg_rotary_desc d = SG_ROTARY_DESC_INIT;
        d.x = matrix(m, n, of), d.y = matrix(m, n, of);
        d.head_size = small(), d.rotated_size = small(), d.first_position = size(), d.sequence_length = size();
        if (random_.below(2)) d.cos = matrix(m, k, of), d.sin = matrix(m, k, of);
        return sg_rotary_async(context_, &d, into, nullptr);
      }
      case 4: {
        sg_conv2d_desc d = SG_CONV2D_DESC_INIT;
        d.x = {anywhere(), size()}, d.y = {anywhere(), size()}, d.w = anywhere();
        d.images = size(), d.channels = size(), d.height = size(), d.width = size(), d.out_channels = size();
        d.groups = small(), d.windows = windows(), d.dtype = of, d.workspace = std::uint64_t(size());
        return sg_conv2d_async(context_, &d, into, nullptr);
      }
      case 5: {
        sg_im2col_desc d = SG_IM2COL_DESC_INIT;
        d.x = {anywhere(), size()}, d.matrix = matrix(m, n, of);
        d.images = size(), d.channels = size(), d.height = size(), d.width = size();
        d.first_channel = small(), d.used_channels = small(), d.windows = windows();
        return sg_im2col_async(context_, &d, into, nullptr);
      }
      case 6: {
        sg_attention_desc d = SG_ATTENTION_DESC_INIT;
        d.q = heads(), d.k = heads(), d.v = heads(), d.o = heads(), d.dtype = of;
        d.batch = size(), d.heads = size(), d.kv_heads = small(), d.queries = size(), d.keys = size();
        d.width = size(), d.value_width = size(), d.workspace = std::uint64_t(size());
        if (random_.below(2)) d.mask = SG_MASK_CAUSAL, d.mask_offset = size();
        return sg_attention_async(context_, &d, into, nullptr);
      }
      case 7: {
        sg_recurrent_desc d = SG_RECURRENT_DESC_INIT;
        d.x = {anywhere(), size(), size()}, d.y = {anywhere(), size(), size()};
        d.w_ih = anywhere(), d.w_hh = anywhere(), d.hn = random_.below(2) ? anywhere() : nullptr;
        d.steps = size(), d.batch = size(), d.inputs = size(), d.hidden = size(), d.state_stride = size(), d.dtype = of;
        return sg_recurrent_async(context_, &d, into, nullptr);
      }
      case 8: {
        sg_gather_desc d = SG_GATHER_DESC_INIT;
        d.table = matrix(m, n, of), d.y = matrix(k, n, of), d.indices = anywhere();
        return sg_gather_async(context_, &d, into, nullptr);
      }
      case 9: {
        sg_dequantize_desc d = SG_DEQUANTIZE_DESC_INIT;
        d.x = matrix(m, n, SG_DTYPE_I8), d.y = matrix(m, n, of), d.scales = matrix(m, k, of);
        d.block_size = size();
        return sg_dequantize_async(context_, &d, into, nullptr);
      }
      case 10: {
        sg_norm_desc d = SG_NORM_DESC_INIT;
        d.x = matrix(m, n, of), d.y = matrix(m, n, of), d.gamma = random_.below(2) ? anywhere() : nullptr;
        return sg_norm_async(context_, &d, into, nullptr);
      }
      case 11: {
        sg_convert_desc d = SG_CONVERT_DESC_INIT;
        d.a = matrix(m, n, of), d.c = matrix(m, n, type());
        return sg_convert_async(context_, &d, into, nullptr);
      }
      default:
        return sg_copy_2d_async(context_, anywhere(), std::uint64_t(size()), anywhere(), std::uint64_t(size()),
                                std::uint64_t(m), std::uint64_t(n), into, nullptr);
    }
  }

  random_source random_{[] {
    const char *const soak = std::getenv("SG_SOAK");
    return soak && *soak == '1' ? std::uint64_t(std::chrono::steady_clock::now().time_since_epoch().count()) : 7;
  }()};
  buffer memory_;
  void *device_ = nullptr;
  alignas(64) unsigned char host_[4096];
};

TEST_P(extremes, are_refused_or_planned_in_bounded_time) {
  constexpr int kinds = 13;
  constexpr double most_seconds = sanitized ? 600 : 20;  // without a bound of the planner's: hours
  const int each = std::getenv("SG_SOAK") && *std::getenv("SG_SOAK") == '1' ? 20000 : 100;
  int accepted = 0;
  for (int kind = 0; kind < kinds; ++kind) {
    const auto kind_begin = std::chrono::steady_clock::now();
    for (int i = 0; i < each; ++i) {
      graph recorded;
      ASSERT_OK(sg_graph_create(context_, recorded.out()));
      sg_submit into = SG_SUBMIT_INIT;
      into.graph = recorded;
      const auto begin = std::chrono::steady_clock::now();
      const sg_status status = draw(kind, &into);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      accepted += status == SG_STATUS_OK;
      ASSERT_LT(seconds, most_seconds) << "operation " << kind << ", draw " << i << ": " << sg_status_name(status);
      if (seconds > 1) std::printf("operation %d, draw %d: %.1f s\n", kind, i, seconds);
      ASSERT_TRUE(status == SG_STATUS_OK || status == SG_STATUS_INVALID_ARGUMENT || status == SG_STATUS_UNSUPPORTED ||
                  status == SG_STATUS_OUT_OF_MEMORY)
          << "operation " << kind << ": " << sg_status_name(status) << ' ' << sg_last_error_message();
    }
    std::printf("operation %d: %.2f s\n", kind,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - kind_begin).count());
  }
  EXPECT_GT(accepted, each / 8) << "too few say anything about plans";
  std::printf("%d of %d were accepted\n", accepted, kinds * each);
}

ON_EACH_DEVICE(extremes);

}  // namespace
}  // namespace sg_test
