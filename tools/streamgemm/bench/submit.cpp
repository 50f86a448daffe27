// SPDX-License-Identifier: Apache-2.0
// The suite `submit`: processor time that one submission of a small operation, submitted before, costs its thread. A
// row for each operation, beside a GEMM's.
#include <streamgemm/attention.h>
#include <streamgemm/axpby.h>
#include <streamgemm/conv.h>
#include <streamgemm/convert.h>
#include <streamgemm/gather.h>
#include <streamgemm/layers.h>
#include <streamgemm/linear.h>
#include <streamgemm/recurrent.h>

#include <cstring>
#include <ctime>

#include "../library.hpp"
#include "suite.hpp"

namespace sg::cli {

namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

class submit_suite {
 public:
  submit_suite(const suite_request &request, suite_run &out)
      : quick_(request.quick),
        out_(out),
        context_(open_context({.device = request.device.empty() ? "sim:h200" : request.device})) {
    const sg_device_info info = device_of(context_.get());
    out_.note("device", info.name);
    out_.note("description", info.description);
  }

  void run() {
    sg_gemm_desc gemm = SG_GEMM_DESC_INIT;
    gemm.a = matrix(rows, cols), gemm.b = matrix(cols, cols), gemm.c = matrix(rows, cols);
    add("gemm", sg_gemm_async, gemm);
    sg_axpby_desc axpby = SG_AXPBY_DESC_INIT;
    axpby.a = matrix(rows, cols), axpby.c = matrix(rows, cols);
    add("axpby", sg_axpby_async, axpby);
    sg_elementwise_desc gelu = SG_ELEMENTWISE_DESC_INIT;
    gelu.a = matrix(rows, cols), gelu.c = matrix(rows, cols), gelu.function = SG_FUNCTION_GELU;
    add("gelu", sg_elementwise_async, gelu);
    sg_softmax_desc softmax = SG_SOFTMAX_DESC_INIT;
    softmax.x = matrix(rows, cols), softmax.y = matrix(rows, cols);
    add("softmax", sg_softmax_async, softmax);
    sg_norm_desc norm = SG_NORM_DESC_INIT;
    norm.x = matrix(rows, cols), norm.y = matrix(rows, cols), norm.gamma = vector(cols), norm.beta = vector(cols);
    add("layer norm", sg_norm_async, norm);
    sg_convert_desc convert = SG_CONVERT_DESC_INIT;
    convert.a = matrix(rows, cols), convert.c = matrix(rows, cols);
    add("convert", sg_convert_async, convert);
    sg_gather_desc gather = SG_GATHER_DESC_INIT;
    gather.table = matrix(rows, cols), gather.y = matrix(rows, cols), gather.indices = vector(rows);
    gather.index_type = SG_INDEX_I32;
    add("gather", sg_gather_async, gather);
    add("attention", sg_attention_async, attention<sg_attention_desc>(SG_ATTENTION_DESC_INIT));
    sg_attention_backward_desc gradients = attention<sg_attention_backward_desc>(SG_ATTENTION_BACKWARD_DESC_INIT);
    add("attention backward", sg_attention_backward_async, gradients);
    sg_conv2d_desc conv = SG_CONV2D_DESC_INIT;
    conv.images = 2, conv.channels = conv.out_channels = 16, conv.height = conv.width = 8;
    conv.windows.kernel_h = conv.windows.kernel_w = 3;
    conv.windows.pad_top = conv.windows.pad_left = conv.windows.pad_bottom = conv.windows.pad_right = 1;
    conv.x.data = vector(2 * 16 * 64), conv.w = vector(16 * 16 * 9), conv.y.data = vector(2 * 16 * 64);
    conv.dtype = SG_DTYPE_F32;
    add("conv2d", sg_conv2d_async, conv);
    for (const std::int64_t steps : {16, 1024}) {
      sg_recurrent_desc lstm = SG_RECURRENT_DESC_INIT;
      lstm.cell = SG_CELL_LSTM, lstm.steps = steps, lstm.batch = 1, lstm.in = lstm.hidden = 16;
      lstm.dtype = SG_DTYPE_F32;
      lstm.x.data = vector(steps * 16), lstm.y.data = vector(steps * 16);
      lstm.x.step_stride = lstm.x.batch_stride = lstm.y.step_stride = lstm.y.batch_stride = 16;
      lstm.state_stride = 16;
      lstm.w_ih = vector(64 * 16), lstm.w_hh = vector(64 * 16);
      add("lstm of " + std::to_string(steps) + " steps", sg_recurrent_async, lstm);
    }
    sg_linear_backward_desc linear = SG_LINEAR_BACKWARD_DESC_INIT;
    linear.dy = matrix(rows, cols), linear.x = matrix(rows, cols), linear.w = matrix(cols, cols);
    linear.dx = matrix(rows, cols), linear.dw = matrix(cols, cols);
    linear.dbias = vector(cols), linear.dbias_dtype = SG_DTYPE_F32;
    add("linear backward", sg_linear_backward_async, linear);
    what_.name = "one submission";
    what_.baseline = "gemm";
    if (out_.wants(what_.name)) out_.run(what_);
  }

 private:
  static constexpr std::int64_t rows = 64, cols = 64;

  void *vector(std::int64_t elements) {
    sg_buffer *made = nullptr;
    check(sg_buffer_create(context_.get(), std::uint64_t(elements) * 8, &made), "sg_buffer_create");
    buffers_.emplace_back(made);
    void *data = nullptr;
    check(sg_buffer_data(made, &data), "sg_buffer_data");
    clear(data, std::uint64_t(elements) * 8);
    return data;
  }
  void clear(void *data, std::uint64_t bytes) {
    const std::vector<char> zeros(bytes);
    check(sg_copy(context_.get(), data, zeros.data(), bytes, nullptr), "sg_copy");
  }
  sg_matrix matrix(std::int64_t of_rows, std::int64_t of_cols) {
    return {vector(of_rows * of_cols), of_rows, of_cols, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  }
  template <class Desc>
  Desc attention(Desc d) {
    d.batch = 1, d.heads = d.kv_heads = 4, d.queries = d.keys = 64, d.width = d.value_width = 64;
    d.dtype = SG_DTYPE_F16;
    const auto heads = [this] { return sg_heads{vector(4 * 64 * 64), 4 * 64 * 64, 64 * 64, 64}; };
    d.q = heads(), d.k = heads(), d.v = heads();
    if constexpr (requires { d.o; })
      d.o = heads();
    else
      d.dout = heads(), d.dq = heads(), d.dk = heads(), d.dv = heads();
    return d;
  }

  // Few enough submissions at once that none waits for memory.
  template <class Desc>
  void add(const std::string &name, sg_status (*submit)(sg_context *, const Desc *, const sg_submit *, sg_job **),
           const Desc &desc) {
    const int count = quick_ ? 4 : 64;
    what_.variants.push_back({name, [this, name, submit, desc, count] {
                                check(submit(context_.get(), &desc, nullptr, nullptr), name.c_str());
                                check(sg_context_synchronize(context_.get(), SG_FOREVER), "sg_context_synchronize");
                                const double begun = thread_seconds();
                                for (int i = 0; i < count; ++i)
                                  check(submit(context_.get(), &desc, nullptr, nullptr), name.c_str());
                                const double taken = thread_seconds() - begun;
                                check(sg_context_synchronize(context_.get(), SG_FOREVER), "sg_context_synchronize");
                                return taken / count;
                              }});
  }

  bool quick_;
  suite_run &out_;
  context_handle context_;
  std::vector<buffer_handle> buffers_;
  bench_case what_;
};

}  // namespace

void run_submit_suite(const suite_request &request, suite_run &run) { submit_suite(request, run).run(); }

}  // namespace sg::cli
